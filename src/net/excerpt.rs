//! The part of a description shown around a mistake: few lines, long ones truncated, without
//! terminal control sequences.

use core::ops::Range;

use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};

use super::shown;

/// Characters of a line shown before the start of a mark, and from its start on.
const BEFORE: usize = 60;
const AFTER: usize = 80;
/// Longest line, in bytes, that is shown whole.
const MOST_WHOLE: usize = 160;

/// A part of a text around a mistake.
#[derive(Debug)]
pub struct Excerpt {
    name: String,
    /// The lines shown, each with its newline.
    text: String,
    rows: Vec<Row>,
    /// Marks: their position in `text`, and their column in the description.
    marks: Vec<(Range<usize>, usize)>,
}

/// A line of the excerpt.
#[derive(Debug)]
struct Row {
    /// Start of the line in the excerpt.
    start: usize,
    /// Number of the line in the description, from 0.
    number: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    number: usize,
    bytes: Range<usize>,
}

/// Offsets in a text with their line numbers, found in one pass.
#[derive(Debug)]
pub struct Lines<'t> {
    text: &'t str,
    /// Offsets and their lines, from 0; sorted.
    numbers: Vec<(usize, usize)>,
}

impl<'t> Lines<'t> {
    pub(super) fn new(text: &'t str, offsets: impl Iterator<Item = usize>) -> Self {
        let mut offsets: Vec<usize> = offsets.map(|at| boundary(text, at)).collect();
        offsets.sort_unstable();
        offsets.dedup();
        let (mut from, mut line) = (0, 0);
        let numbers = offsets.into_iter().map(|offset| {
            let newline = |byte: &&u8| **byte == b'\n';
            line += text.as_bytes()[from..offset].iter().filter(newline).count();
            from = offset;
            (offset, line)
        });
        Self {
            text,
            numbers: numbers.collect(),
        }
    }

    fn line(&self, offset: usize) -> Line {
        let offset = boundary(self.text, offset);
        let known = self.numbers.binary_search_by_key(&offset, |&(at, _)| at);
        let number = known.map_or(0, |index| self.numbers[index].1);
        let start = self.text[..offset].rfind('\n').map_or(0, |at| at + 1);
        Line {
            number,
            bytes: start..self.end(start),
        }
    }

    pub fn end(&self, start: usize) -> usize {
        self.text[start..]
            .find('\n')
            .map_or(self.text.len(), |length| start + length)
    }

    /// Line and column, both from 1, of one of the offsets.
    pub(super) fn position(&self, offset: usize) -> (usize, usize) {
        let offset = boundary(self.text, offset);
        let line = self.line(offset);
        let column = self.text[line.bytes.start..offset].chars().count();
        (line.number + 1, column + 1)
    }

    fn before(&self, line: &Line) -> Option<Line> {
        let end = line.bytes.start.checked_sub(1)?;
        let start = self.text[..end].rfind('\n').map_or(0, |at| at + 1);
        Some(Line {
            number: line.number - 1,
            bytes: start..end,
        })
    }

    fn after(&self, line: &Line) -> Option<Line> {
        let start = line.bytes.end + 1;
        (start < self.text.len()).then(|| Line {
            number: line.number + 1,
            bytes: start..self.end(start),
        })
    }

    /// The line of each span and its neighbours. A span of several lines is marked in its first.
    pub(super) fn excerpt(&self, name: &str, spans: &[Range<usize>]) -> Excerpt {
        let mut wanted: Vec<Line> = Vec::new();
        for span in spans {
            let line = self.line(span.start);
            wanted.extend(self.before(&line));
            wanted.extend(self.after(&line));
            wanted.push(line);
        }
        wanted.sort_by_key(|line| line.number);
        wanted.dedup();
        let mut excerpt = Excerpt {
            name: name.to_owned(),
            text: String::new(),
            rows: Vec::new(),
            marks: spans
                .iter()
                .map(|span| (0..0, self.position(span.start).1 - 1))
                .collect(),
        };
        for line in wanted {
            excerpt.add(self.text, &line, spans);
        }
        excerpt
    }
}

/// The line in which `span` begins and its neighbours, from a text that messages call `name`, and
/// the position of `span` in the excerpt.
pub fn excerpt(name: &str, text: &str, span: Range<usize>) -> (Excerpt, SourceSpan) {
    let lines = Lines::new(text, core::iter::once(span.start));
    let excerpt = lines.excerpt(name, &[span]);
    let mark = excerpt.mark(0);
    let span = SourceSpan::new(mark.start.into(), mark.len());
    (excerpt, span)
}

/// The nearest character boundary at or before `offset`.
fn boundary(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

impl Excerpt {
    /// Bytes of the excerpt that mark span `index`.
    pub(super) fn mark(&self, index: usize) -> Range<usize> {
        self.marks[index].0.clone()
    }

    fn add(&mut self, text: &str, line: &Line, spans: &[Range<usize>]) {
        let row = Row {
            start: self.text.len(),
            number: line.number,
        };
        self.rows.push(row);
        // The end of a line or of the file belongs to the line.
        let here: Vec<usize> = (0..spans.len())
            .filter(|&i| {
                let at = boundary(text, spans[i].start);
                (line.bytes.start..=line.bytes.end).contains(&at)
            })
            .collect();
        let mut pieces: Vec<Range<usize>> = here
            .iter()
            .map(|&i| around(text, &line.bytes, boundary(text, spans[i].start)))
            .collect();
        if line.bytes.len() <= MOST_WHOLE {
            pieces = vec![line.bytes.clone()];
        } else if pieces.is_empty() {
            pieces = vec![around(text, &line.bytes, line.bytes.start)];
        }
        pieces.sort_by_key(|piece| piece.start);
        let mut marked: Vec<Option<Range<usize>>> = vec![None; spans.len()];
        let mut at = line.bytes.start;
        for piece in pieces {
            let from = piece.start.max(at);
            if from > at {
                self.text.push_str("...");
            }
            for (offset, letter) in text[from..piece.end.max(from)].char_indices() {
                let (offset, begin) = (from + offset, self.text.len());
                match letter {
                    '\t' => self.text.push('\t'),
                    '\r' if offset + 1 == line.bytes.end => {}
                    _ => shown::push(&mut self.text, letter),
                }
                for &i in &here {
                    let span = &spans[i];
                    if offset >= boundary(text, span.start) && offset < span.end.max(span.start + 1)
                    {
                        let end = self.text.len();
                        marked[i].get_or_insert(begin..end).end = end;
                    }
                }
            }
            at = at.max(piece.end);
        }
        if at < line.bytes.end {
            self.text.push_str("...");
        }
        let end = self.text.len();
        for &i in &here {
            self.marks[i].0 = match marked[i].clone() {
                // An empty span has an empty mark.
                Some(mark) if spans[i].is_empty() => mark.start..mark.start,
                Some(mark) => mark,
                None => end..end,
            };
        }
        self.text.push('\n');
    }

    fn row(&self, offset: usize) -> usize {
        let after = self.rows.partition_point(|row| row.start <= offset);
        after.saturating_sub(1)
    }
}

fn around(text: &str, line: &Range<usize>, offset: usize) -> Range<usize> {
    let before = text[line.start..offset].char_indices().rev();
    let start = before
        .take(BEFORE)
        .last()
        .map_or(offset, |(at, _)| line.start + at);
    let after = text[offset..line.end].char_indices();
    let end = after
        .take(AFTER)
        .last()
        .map_or(offset, |(at, letter)| offset + at + letter.len_utf8());
    start..end
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let (start, end) = (span.offset(), span.offset() + span.len());
        if end > self.text.len() || self.rows.is_empty() {
            return Err(MietteError::OutOfBounds);
        }
        let (mut first, mut last) = (self.row(start), self.row(end));
        let joined = |a: usize, b: usize| self.rows[b].number - self.rows[a].number == b - a;
        if !joined(first, last) {
            return Err(MietteError::OutOfBounds);
        }
        let column = self.marks.iter().find(|(mark, _)| mark.start == start);
        let column = column.map_or(0, |(_, column)| *column);
        let contents = |bytes: Range<usize>, number, column, count| {
            let at = SourceSpan::new(bytes.start.into(), bytes.len());
            let data = &self.text.as_bytes()[bytes];
            Box::new(MietteSpanContents::new_named(
                self.name.clone(),
                data,
                at,
                number,
                column,
                count,
            ))
        };
        if before == 0 && after == 0 {
            return Ok(contents(start..end, self.rows[first].number, column, 1));
        }
        for _ in 0..before {
            first -= usize::from(first > 0 && joined(first - 1, last));
        }
        for _ in 0..after {
            last += usize::from(last + 1 < self.rows.len() && joined(first, last + 1));
        }
        let end = self
            .rows
            .get(last + 1)
            .map_or(self.text.len(), |row| row.start);
        let bytes = self.rows[first].start..end;
        Ok(contents(
            bytes,
            self.rows[first].number,
            0,
            last - first + 1,
        ))
    }
}

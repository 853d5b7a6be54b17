//! The latest lines of a lab, for browsers that connect at any time.

use std::collections::VecDeque;

use crate::recording::{Header, Line, State};

/// Maximum number of lines kept: half an hour at five per second. Pages keep twice as many.
const MOST_LINES: usize = 9_000;
/// Limit of the memory of the lines kept, as numbers and as text, in bytes.
const MOST_BYTES: usize = 64 << 20;
/// Limit of the lines in a response, in bytes, unless a single line is longer.
const MOST_ANSWER: usize = 8 << 20;

/// Lines by number, and the state before the first.
#[derive(Debug)]
pub struct History {
    /// The state before the first of `lines`.
    before: State,
    lines: VecDeque<(Line, String)>,
    /// The number of the first of `lines`.
    first: u64,
    bytes: usize,
}

impl History {
    pub fn new(header: &Header) -> Self {
        Self {
            before: State::new(header),
            lines: VecDeque::new(),
            first: 0,
            bytes: 0,
        }
    }

    pub fn push(&mut self, line: Line) {
        // Serialising plain data cannot fail.
        let text = serde_json::to_string(&line).unwrap_or_default();
        self.bytes += bytes_of(&line, &text);
        self.lines.push_back((line, text));
        while (self.bytes > MOST_BYTES || self.lines.len() > MOST_LINES) && self.lines.len() > 1 {
            let Some((line, text)) = self.lines.pop_front() else {
                break;
            };
            self.bytes -= bytes_of(&line, &text);
            self.first += 1;
            // Ignore the result: the encoder made the line for this state.
            let _ = self.before.apply(&line);
        }
    }

    /// The update for a browser that has all lines before number `from`: `{"next": N, "lines":
    /// [...]}`, where `next` is the number for the next request. If the lines after `from` are no
    /// longer kept, everything is sent again: `"reset": true`.
    pub fn since(&self, from: u64) -> String {
        let end = self.first + self.lines.len() as u64;
        let reset = from == 0 || !(self.first..=end).contains(&from);
        let begin = if reset { self.first } else { from };
        let mut parts = Vec::new();
        if reset {
            // Serialising plain data cannot fail.
            parts.push(serde_json::to_string(&self.before.whole()).unwrap_or_default());
        }
        let mut bytes = 0;
        let mut next = begin;
        for (_, text) in self.lines.range((begin - self.first) as usize..) {
            bytes += text.len();
            if bytes > MOST_ANSWER && next > begin {
                break;
            }
            parts.push(text.clone());
            next += 1;
        }
        let lines = parts.join(",");
        format!("{{\"next\":{next},\"end\":{end},\"reset\":{reset},\"lines\":[{lines}]}}")
    }
}

/// Approximate memory of a line: its text and its changed numbers, the bulk of most lines.
fn bytes_of(line: &Line, text: &str) -> usize {
    text.len() + size_of_val(&line.v[..])
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::description;
    use crate::recording::header_of;

    #[test]
    fn browsers_that_come_late_and_those_that_stay_see_the_same() {
        let network = description::find("quickstart").unwrap();
        let header = header_of(&*network, "demo", 0);
        let mut history = History::new(&header);
        let mut states: [State; 2] = [State::new(&header), State::new(&header)];
        let mut next = 0;
        let hear = |history: &History, next: u64, state: &mut State| {
            let answer: Value = serde_json::from_str(&history.since(next)).unwrap();
            if answer["reset"] == true {
                *state = State::new(&header);
            }
            for line in answer["lines"].as_array().unwrap() {
                state.apply(&Line::deserialize_from(line)).unwrap();
            }
            answer["next"].as_u64().unwrap()
        };
        for t in 0..200 {
            let text = "x".repeat(4_000);
            let line = Line {
                t,
                e: vec![crate::recording::Event {
                    kind: "fault".to_owned(),
                    node: None,
                    link: None,
                    // Long enough to evict old lines.
                    text: text.repeat(200),
                }],
                v: vec![1 + t as i64, 5, 2, -1],
                ..Line::default()
            };
            history.push(line);
            next = hear(&history, next, &mut states[0]);
        }
        assert!(history.first > 0, "old lines are forgotten");
        let mut late = 0;
        while late < 200 {
            late = hear(&history, late, &mut states[1]);
        }
        assert_eq!(states[0], states[1]);
        assert_eq!(next, 200);
    }

    impl Line {
        fn deserialize_from(value: &Value) -> Self {
            serde_json::from_value(value.clone()).unwrap()
        }
    }
}

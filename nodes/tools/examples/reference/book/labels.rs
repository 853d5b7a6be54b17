//! Turns lists of parameters into tables. The sources have lists, because a row of a Markdown table
//! is one line, however long: `` - `key`: meaning. *Default:* value. ``

use pulldown_cmark::{Event, Tag, TagEnd};

/// Minimum share of a list's items, in percent, that must have the label.
const MOST: usize = 60;
/// A label that introduces prose, which reads better as a list.
const PROSE: &str = "Why";

type Events = Vec<Event<'static>>;

/// An item: its key, its meaning, and what follows the label.
struct Item {
    key: Events,
    meaning: Events,
    value: Events,
}

/// Turns lists whose items have the same label into tables.
pub fn tables(events: Events) -> Events {
    let mut out = Events::with_capacity(events.len());
    let mut rest = events.as_slice();
    while let Some((event, after)) = rest.split_first() {
        if let Event::Start(Tag::List(None)) = event
            && let Some(end) = end_of(rest)
            && let Some(table) = table(&rest[1..end])
        {
            out.extend(table);
            rest = &rest[end + 1..];
            continue;
        }
        out.push(event.clone());
        rest = after;
    }
    out
}

/// Position of the end of the list that begins here.
fn end_of(events: &[Event<'_>]) -> Option<usize> {
    let mut depth = 0;
    events.iter().position(|event| {
        match event {
            Event::Start(Tag::List(_)) => depth += 1,
            Event::End(TagEnd::List(_)) => depth -= 1,
            _ => {}
        }
        depth == 0
    })
}

fn table(list: &[Event<'static>]) -> Option<Events> {
    let items = list.split_inclusive(|event| matches!(event, Event::End(TagEnd::Item)));
    let items: Vec<_> = items.collect();
    let labels: Vec<_> = items.iter().filter_map(|item| label(item)).collect();
    let (_, name) = labels.first()?;
    let is_same = labels.iter().all(|(_, other)| other == name);
    if !is_same || name == PROSE || labels.len() * 100 < items.len() * MOST || items.len() < 3 {
        return None;
    }
    let mut out = vec![markup(format!(
        "<table><thead><tr><th>Key</th><th>Meaning</th><th>{name}</th></tr></thead><tbody>\n"
    ))];
    for item in items {
        let Item {
            key,
            meaning,
            value,
        } = split(item)?;
        out.push(markup("<tr><td>"));
        out.extend(key);
        out.push(markup("</td><td>"));
        out.extend(meaning);
        out.push(markup("</td><td>"));
        out.extend(value);
        out.push(markup("</td></tr>\n"));
    }
    out.push(markup("</tbody></table>\n"));
    Some(out)
}

fn markup(text: impl Into<String>) -> Event<'static> {
    Event::Html(text.into().into())
}

/// Position and words of the last label of an item.
fn label(item: &[Event<'static>]) -> Option<(usize, String)> {
    let at = item.windows(3).rposition(|three| match three {
        [
            Event::Start(Tag::Emphasis),
            Event::Text(text),
            Event::End(_),
        ] => text.ends_with(':'),
        _ => false,
    })?;
    match &item[at + 1] {
        Event::Text(text) => Some((at, text.trim_end_matches(':').to_owned())),
        _ => None,
    }
}

fn split(item: &[Event<'static>]) -> Option<Item> {
    let item = item.get(1..item.len() - 1)?;
    let is_block = |event: &Event<'_>| {
        let block = matches!(
            event,
            Event::Start(Tag::Paragraph | Tag::List(_) | Tag::CodeBlock(_))
        );
        block || matches!(event, Event::Start(Tag::Item))
    };
    if item.iter().any(is_block) {
        return None;
    }
    let (body, value) = match label(item) {
        Some((at, _)) => (&item[..at], item[at + 3..].to_vec()),
        None => (item, Vec::new()),
    };
    let colon = body.iter().position(
        |event| matches!(event, Event::Text(text) if text.contains(": ") || text.ends_with(':')),
    )?;
    let Event::Text(text) = &body[colon] else {
        return None;
    };
    let (before, after) = text.split_once(':')?;
    let text = |words: &str| Event::Text(words.to_owned().into());
    let mut key = body[..colon].to_vec();
    key.push(text(before));
    let mut meaning = vec![text(after.trim_start())];
    meaning.extend_from_slice(&body[colon + 1..]);
    Some(Item {
        key,
        meaning,
        value,
    })
}

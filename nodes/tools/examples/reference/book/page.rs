//! Converts a chapter from Markdown to HTML.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

use super::labels;

/// A heading, and the words up to the next one.
pub struct Section {
    pub title: String,
    pub id: String,
    pub text: String,
    level: HeadingLevel,
}

pub struct Page {
    pub title: String,
    /// The Markdown file, relative to the sources.
    pub source: PathBuf,
    /// The HTML file, relative to the book.
    pub file: PathBuf,
    pub sections: Vec<Section>,
    events: Vec<Event<'static>>,
}

impl Page {
    pub fn new(title: &str, source: &Path, text: &str) -> Self {
        let events = Parser::new_ext(text, Options::ENABLE_TABLES).map(Event::into_static);
        let mut page = Self {
            title: title.to_owned(),
            source: source.to_owned(),
            file: source.with_extension("html"),
            sections: Vec::new(),
            events: labels::tables(events.collect()),
        };
        page.number_headings();
        page
    }

    /// Finds the sections, and gives their headings ids.
    fn number_headings(&mut self) {
        let mut known: BTreeMap<String, usize> = BTreeMap::new();
        let mut heading = None;
        for at in 0..self.events.len() {
            match &self.events[at] {
                &Event::Start(Tag::Heading { level, .. }) => {
                    heading = Some(at);
                    self.sections.push(Section {
                        title: String::new(),
                        id: String::new(),
                        text: String::new(),
                        level,
                    });
                }
                Event::End(TagEnd::Heading(_)) => {
                    let (Some(start), Some(section)) = (heading.take(), self.sections.last_mut())
                    else {
                        continue;
                    };
                    let plain = slug(&section.title);
                    let before = known.entry(plain.clone()).or_default();
                    section.id = match *before {
                        0 => plain,
                        number => format!("{plain}-{number}"),
                    };
                    *before += 1;
                    let named = CowStr::from(section.id.clone());
                    if let Event::Start(Tag::Heading { id, .. }) = &mut self.events[start] {
                        *id = Some(named);
                    }
                }
                Event::Text(text) | Event::Code(text) => {
                    let Some(section) = self.sections.last_mut() else {
                        continue;
                    };
                    match heading {
                        Some(_) => section.title += text,
                        None => section.text += text,
                    }
                }
                // A list inside an item follows its text.
                Event::SoftBreak
                | Event::Html(_)
                | Event::Start(Tag::List(_))
                | Event::End(TagEnd::Paragraph | TagEnd::Item | TagEnd::TableCell) => {
                    if let Some(section) = self.sections.last_mut() {
                        section.text.push(' ');
                    }
                }
                _ => {}
            }
        }
    }

    /// The link to this page, from a page whose path to the root is `root`.
    pub fn link(&self, root: &str) -> String {
        format!("{root}{}", self.file.display())
    }

    /// The id of this page's section on the page for printing.
    pub fn name(&self) -> String {
        name_of(&self.file)
    }

    /// The list of the sections of a page.
    pub fn sections_list(&self) -> String {
        let of_level = |section: &&Section| section.level == HeadingLevel::H2;
        let mut list = String::from("<ol>");
        for section in self.sections.iter().filter(of_level) {
            let (id, title) = (&section.id, escaped(&section.title));
            let _ = write!(list, "<li><a href=\"#{id}\">{title}</a></li>");
        }
        list + "</ol>"
    }

    pub fn body(&self) -> String {
        self.html(
            |link| {
                let (file, anchor) = link
                    .split_once('#')
                    .map_or((link, None), |(f, a)| (f, Some(a)));
                let file = match file.strip_suffix(".md") {
                    Some(page) => format!("{page}.html"),
                    None => file.to_owned(),
                };
                anchor.map_or_else(|| file.clone(), |anchor| format!("{file}#{anchor}"))
            },
            |id| id.to_owned(),
        )
    }

    /// This page as a section of the page for printing.
    pub fn for_print(&self) -> String {
        let folder = self.source.parent().unwrap_or(Path::new(""));
        let body = self.html(
            |link| match link.split_once('#') {
                Some(("", anchor)) => format!("#{}--{anchor}", self.name()),
                Some((file, anchor)) if file.ends_with(".md") => {
                    format!("#{}--{anchor}", name_of(&joined(folder, file)))
                }
                None if link.ends_with(".md") => format!("#{}", name_of(&joined(folder, link))),
                _ => joined(folder, link).display().to_string(),
            },
            |id| format!("{}--{id}", self.name()),
        );
        format!("<section id=\"{}\">\n{body}</section>\n", self.name())
    }

    fn html(&self, link: impl Fn(&str) -> String, id: impl Fn(&str) -> String) -> String {
        let is_foreign = |url: &str| url.contains("://") || url.starts_with("mailto:");
        let link = |url: &CowStr<'_>| match is_foreign(url) {
            true => url.to_string(),
            false => link(url),
        };
        let mut out = Vec::with_capacity(self.events.len());
        let mut code: Option<String> = None;
        for event in &self.events {
            match (event, &mut code) {
                (Event::Start(Tag::CodeBlock(_)), _) => code = Some(String::new()),
                (Event::Text(text), Some(code)) => code.push_str(text),
                (Event::End(TagEnd::CodeBlock), Some(text)) => {
                    out.push(Event::Html(block(text).into()));
                    code = None;
                }
                // Drop comments, which are for readers of the sources.
                (Event::Html(_) | Event::InlineHtml(_), _) if !is_ours(event) => {}
                (event, _) => out.push(rewritten(event.clone(), link, &id)),
            }
        }
        let mut text = String::new();
        html::push_html(&mut text, out.into_iter());
        text.replace("<table>", "<div class=\"table\"><table>")
            .replace("</table>", "</table></div>")
    }
}

/// Whether markup was inserted here and not written in the page.
fn is_ours(event: &Event<'_>) -> bool {
    matches!(event, Event::Html(text) if !text.starts_with("<!--"))
}

fn rewritten<'a>(
    event: Event<'a>,
    link: impl Fn(&CowStr<'_>) -> String,
    id: impl Fn(&str) -> String,
) -> Event<'a> {
    let mut event = event;
    match &mut event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
            *dest_url = link(dest_url).into();
        }
        Event::Start(Tag::Heading { id: own, .. }) => {
            *own = own.take().map(|own| id(&own).into());
        }
        _ => {}
    }
    event
}

/// A code block. The style sheet chooses a font size at which its longest line fits.
fn block(text: &str) -> String {
    let columns = text.lines().map(|line| line.chars().count()).max();
    let columns = columns.unwrap_or(0).max(1);
    format!(
        "<pre style=\"--columns:{columns}\"><code>{}</code></pre>\n",
        escaped(text)
    )
}

/// The target of a link on a page in `folder`, relative to the root.
fn joined(folder: &Path, link: &str) -> PathBuf {
    let mut file = folder.to_owned();
    for part in link.split('/') {
        match part {
            ".." => {
                file.pop();
            }
            part => file.push(part),
        }
    }
    file
}

fn name_of(file: &Path) -> String {
    let name = file.with_extension("").display().to_string();
    name.replace(['/', '.'], "-")
}

/// The anchor of a heading, as GitHub makes it.
fn slug(heading: &str) -> String {
    let letters = heading.trim().chars().flat_map(char::to_lowercase);
    let kept = letters.filter_map(|letter| match letter {
        ' ' => Some('-'),
        '-' | '_' => Some(letter),
        letter => letter.is_alphanumeric().then_some(letter),
    });
    kept.collect()
}

pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

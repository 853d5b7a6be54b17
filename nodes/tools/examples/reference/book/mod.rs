//! Builds the guide as a book: a page of HTML per chapter, with contents and search, and all
//! chapters on one page for printing. It needs no server and fetches nothing.

mod labels;
mod page;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use self::page::{Page, escaped};
use crate::Outcome;

const HEAD: &str = include_str!("head.html");
const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("book.css");
const SCRIPT: &str = include_str!("book.js");

/// An entry of the contents.
enum Entry {
    /// The title of a part.
    Part(String),
    /// A chapter: its title and its source.
    Chapter(String, PathBuf),
}

/// The entries of `SUMMARY.md`, in mdbook's format.
fn contents(summary: &str) -> Vec<Entry> {
    let entry = |line: &str| {
        if let Some(part) = line.strip_prefix("# ") {
            return (part != "Summary").then(|| Entry::Part(part.to_owned()));
        }
        let (title, rest) = line.split_once('[')?.1.split_once("](")?;
        let file = rest.strip_suffix(')')?;
        Some(Entry::Chapter(title.to_owned(), file.into()))
    };
    summary.lines().filter_map(entry).collect()
}

/// Builds the book of the chapters in `source` in the directory `output`.
pub fn build(source: &Path, output: &Path) -> Outcome<()> {
    let read = |file: &Path| {
        fs::read_to_string(source.join(file))
            .map_err(|error| format!("{}: {error}", file.display()))
    };
    let entries = contents(&read(Path::new("SUMMARY.md"))?);
    let mut pages = Vec::new();
    for entry in &entries {
        if let Entry::Chapter(title, file) = entry {
            pages.push(Page::new(title, file, &read(file)?));
        }
    }
    check_files(source, &pages)?;
    copy_pictures(source, output)?;
    for (number, page) in pages.iter().enumerate() {
        let around = [
            number.checked_sub(1).and_then(|before| pages.get(before)),
            pages.get(number + 1),
        ];
        let body = page.body() + &neighbours(page, around);
        write(output, &page.file, whole(&entries, &pages, page, &body))?;
    }
    let first = pages.first().ok_or("SUMMARY.md has no chapters")?;
    let body = pages[0].body() + &neighbours(first, [None, pages.get(1)]);
    write(
        output,
        Path::new("index.html"),
        whole(&entries, &pages, first, &body),
    )?;
    write(output, Path::new("print.html"), print(&pages))?;
    write(output, Path::new("book.css"), STYLE)?;
    write(output, Path::new("book.js"), SCRIPT)?;
    write(output, Path::new("search.js"), index(&pages))
}

/// Rejects a chapter that the contents do not name.
fn check_files(source: &Path, pages: &[Page]) -> Outcome<()> {
    let known: BTreeSet<_> = pages.iter().map(|page| page.source.clone()).collect();
    for file in files(source, Path::new(""))? {
        let is_chapter = file.extension().is_some_and(|end| end == "md");
        if is_chapter && !known.contains(&file) && file != Path::new("SUMMARY.md") {
            return Err(format!("SUMMARY.md does not name {}", file.display()));
        }
    }
    Ok(())
}

fn copy_pictures(source: &Path, output: &Path) -> Outcome<()> {
    for file in files(source, Path::new(""))? {
        if file.extension().is_none_or(|end| end == "md") {
            continue;
        }
        let content = fs::read(source.join(&file)).map_err(|error| error.to_string())?;
        write(output, &file, content)?;
    }
    Ok(())
}

/// The files below a directory, relative to `source`.
fn files(source: &Path, below: &Path) -> Outcome<Vec<PathBuf>> {
    let mut all = Vec::new();
    let cannot = |error: std::io::Error| format!("{}: {error}", source.join(below).display());
    for entry in fs::read_dir(source.join(below)).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        let file = below.join(entry.file_name());
        match entry.file_type().map_err(cannot)?.is_dir() {
            true => all.extend(files(source, &file)?),
            false => all.push(file),
        }
    }
    Ok(all)
}

fn write(output: &Path, file: &Path, content: impl AsRef<[u8]>) -> Outcome<()> {
    let file = output.join(file);
    let made = file.parent().map_or(Ok(()), fs::create_dir_all);
    made.and_then(|()| fs::write(&file, content))
        .map_err(|error| format!("{}: {error}", file.display()))
}

/// The complete HTML page around `body`.
fn whole(entries: &[Entry], pages: &[Page], own: &Page, body: &str) -> String {
    let root = "../".repeat(own.file.components().count() - 1);
    let mut nav = String::new();
    let mut chapters = pages.iter();
    for entry in entries {
        match (
            entry,
            matches!(entry, Entry::Chapter(..)).then(|| chapters.next()),
        ) {
            (Entry::Chapter(title, _), Some(Some(page))) => {
                let is_own = page.file == own.file;
                let current = if is_own { " aria-current=\"page\"" } else { "" };
                let (link, title) = (page.link(&root), escaped(title));
                let _ = write!(nav, "<li><a href=\"{link}\"{current}>{title}</a>");
                if is_own {
                    nav += &page.sections_list();
                }
                nav += "</li>\n";
            }
            (Entry::Part(title), _) => {
                let _ = writeln!(nav, "<li class=\"part\">{}</li>", escaped(title));
            }
            _ => {}
        }
    }
    PAGE.replace("@HEAD@", &head(&escaped(&own.title), &root))
        .replace("@ROOT@", &root)
        .replace("@CONTENTS@", &nav)
        .replace("@BODY@", body)
}

fn head(title: &str, root: &str) -> String {
    HEAD.replace("@TITLE@", title).replace("@ROOT@", root)
}

/// Links to the chapters before and after.
fn neighbours(own: &Page, [before, after]: [Option<&Page>; 2]) -> String {
    let root = "../".repeat(own.file.components().count() - 1);
    let link = |page: Option<&Page>, arrow: [&str; 2]| {
        page.map_or("<span></span>".to_owned(), |page| {
            let title = escaped(&page.title);
            format!(
                "<a href=\"{}\">{}{title}{}</a>",
                page.link(&root),
                arrow[0],
                arrow[1]
            )
        })
    };
    let (before, after) = (link(before, ["&larr; ", ""]), link(after, ["", " &rarr;"]));
    format!("<div class=\"neighbours\">{before}{after}</div>\n")
}

/// All chapters as one page.
fn print(pages: &[Page]) -> String {
    let chapters: String = pages.iter().map(Page::for_print).collect();
    let list = pages.iter().map(|page| {
        let title = escaped(&page.title);
        format!("<li><a href=\"#{}\">{title}</a></li>\n", page.name())
    });
    format!(
        "{}<body class=\"all\"><main><article><h1>phitwire</h1>\n<ol>\n{}</ol>\n{chapters}\
         </article></main></body></html>\n",
        head("The guide", ""),
        list.collect::<String>()
    )
}

/// The search index, as a script: a page opened from a file cannot fetch other files.
fn index(pages: &[Page]) -> String {
    let sections = pages.iter().flat_map(|page| {
        page.sections.iter().map(|section| {
            let anchor = format!("{}#{}", page.link(""), section.id);
            json!([page.title, section.title, anchor, section.text])
        })
    });
    format!(
        "window.sections = {};\n",
        json!(sections.collect::<Vec<_>>())
    )
}

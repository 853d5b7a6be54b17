//! Tests of the book builder on small chapters.

use std::fs;
use std::path::Path;

use super::page::Page;
use super::{Entry, build, contents};

const SUMMARY: &str = "# Summary\n\n[Start](start.md)\n\n# Labs\n\n- [Deep & far](labs/deep.md)\n";
const START: &str = "# Start\n\nSee [the lab](labs/deep.md#two).\n\n<!-- unseen -->\n";
const DEEP: &str =
    "# Deep\n\n## Two\n\nBack to [the start](../start.md).\n\n## Two\n\nalways <here>\n";

fn page(text: &str) -> Page {
    Page::new("Title", Path::new("labs/deep.md"), text)
}

#[test]
fn the_contents_are_parts_and_chapters() {
    let words = contents(SUMMARY).into_iter().map(|entry| match entry {
        Entry::Part(title) => title,
        Entry::Chapter(title, file) => format!("{title}: {}", file.display()),
    });
    let words: Vec<_> = words.collect();
    assert_eq!(
        words,
        ["Start: start.md", "Labs", "Deep & far: labs/deep.md"]
    );
}

#[test]
fn headings_of_one_name_have_their_own_anchors() {
    let page = page(DEEP);
    let ids: Vec<_> = page
        .sections
        .iter()
        .map(|section| &section.id[..])
        .collect();
    assert_eq!(ids, ["deep", "two", "two-1"]);
    assert!(page.sections[2].text.contains("always"));
    let list = page.sections_list();
    assert!(
        !list.contains("deep"),
        "the title is not in the list: {list}"
    );
}

#[test]
fn links_lead_to_pages_of_the_book() {
    let text = "[a](../start.md#x) [b](#two) [c](https://example.org/d.md) ![e](f.svg)\n";
    let body = page(text).body();
    for link in [
        "../start.html#x",
        "#two",
        "https://example.org/d.md",
        "f.svg",
    ] {
        assert!(body.contains(&format!("\"{link}\"")), "{link}: {body}");
    }
    let print = page(text).for_print();
    for link in ["#start--x", "#labs-deep--two", "labs/f.svg"] {
        assert!(print.contains(&format!("\"{link}\"")), "{link}: {print}");
    }
}

#[test]
fn lists_with_one_label_become_tables_and_others_stay_lists() {
    let item = |key: &str| format!("- `{key}`: what it is. *Default:* 1.\n");
    let three = ["a", "b", "c"].map(item).concat();
    let body = page(&three).body();
    assert_eq!(body.matches("<tr>").count(), 4, "{body}");
    assert!(body.contains("<th>Default</th>"), "{body}");
    // Two items are too few, and reasons are prose.
    let two = ["a", "b"].map(item).concat();
    for text in [
        two,
        three.replace("Default", "Why"),
        three.replace("*Default:*", ""),
    ] {
        let body = page(&text).body();
        assert!(body.contains("<ul>") && !body.contains("<table>"), "{body}");
    }
}

#[test]
fn code_knows_its_longest_line() {
    let body = page("```console\n$ a\n12345678 <\n```\n").body();
    assert!(
        body.contains("--columns:10") && body.contains("&lt;"),
        "{body}"
    );
}

#[test]
fn a_book_has_a_page_for_each_chapter_and_nothing_is_forgotten() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, output) = (folder.path().join("source"), folder.path().join("book"));
    fs::create_dir_all(source.join("labs")).expect("it is ours");
    for (file, text) in [
        ("SUMMARY.md", SUMMARY),
        ("start.md", START),
        ("labs/deep.md", DEEP),
    ] {
        fs::write(source.join(file), text).expect("there is room");
    }
    build(&source, &output).expect("the book is built");
    let read = |file: &str| fs::read_to_string(output.join(file)).expect("the book has it");
    let start = read("start.html");
    assert_eq!(start, read("index.html"));
    assert!(
        start.contains("labs/deep.html#two") && !start.contains("unseen"),
        "{start}"
    );
    assert!(start.contains("Deep &amp; far"), "{start}");
    let deep = read("labs/deep.html");
    assert!(
        deep.contains("href=\"../book.css\"") && deep.contains("../start.html"),
        "{deep}"
    );
    assert!(read("search.js").contains("\"labs/deep.html#two-1\""));
    assert!(read("print.html").contains("id=\"labs-deep--two\""));

    fs::write(source.join("labs/other.md"), "# Other\n").expect("there is room");
    let forgotten = build(&source, &output).expect_err("a chapter is missing");
    assert_eq!(forgotten, "SUMMARY.md does not name labs/other.md");
}

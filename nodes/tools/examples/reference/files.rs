//! Files, documented by the modules that read and write them.

use std::path::Path;

use crate::commands::wrapped;
use crate::counters::without_links;
use crate::{Outcome, text_of};

/// Title of each file, source of its description, and further reading in the guide.
const FILES: [(&str, &str, &str); 7] = [
    (
        "Topologies (.toml)",
        "netns-scripts/topologies/pair.toml",
        "The shortest one is above. Keys of each machine: [Topologies](../topology.md), [The T3E](../t3e.md).",
    ),
    ("The run directory", "nodes/src/run_dir.rs", ""),
    ("A lab in the run directory", "netns-scripts/lib.sh", ""),
    (
        "Recordings (.phitrec)",
        "nodes/tools/src/recording/mod.rs",
        "Made by `phitwire record` and `phitwire sim --record`: [Watching a lab](../watching.md#recordings).",
    ),
    (
        "Captures (.pcapng)",
        "nodes/tools/src/capture/mod.rs",
        "Made by `phitwire capture` and `phitwire sim --capture`: [Captures](../capture.md).",
    ),
    (
        "Frames on the wire",
        "framing/src/lib.rs",
        "Every bit: [Wire formats](../wire-format.md).",
    ),
    (
        "Networks in formats of other tools",
        "nodes/tools/src/interchange/mod.rs",
        "[Topologies](../topology.md#other-tools-formats).",
    ),
];

pub fn page(root: &Path) -> Outcome<String> {
    let mut page =
        String::from("# Files\n\nWhat is read and written, as the modules say that do it.\n");
    for (title, file, more) in FILES {
        page.push_str(&format!("\n## {title}\n\n"));
        let text = text_of(root, file)?;
        page.push_str(&match file.rsplit('.').next() {
            Some("sh") => of_script(&text),
            Some("toml") => format!("```toml\n{}\n```\n", text.trim_end()),
            _ => of_module(&text),
        });
        page.push_str(&format!("\nFrom `{file}`."));
        if !more.is_empty() {
            page.push_str(&format!(" {more}"));
        }
        page.push('\n');
    }
    Ok(page)
}

/// The `//!` lines of a module, headings two levels down.
fn of_module(text: &str) -> String {
    let lines = text.lines().take_while(|line| line.starts_with("//!"));
    let lines = lines.map(|line| line[3..].strip_prefix(' ').unwrap_or(&line[3..]));
    let lines = lines.map(|line| match line.starts_with('#') {
        true => format!("##{line}\n"),
        false => format!("{line}\n"),
    });
    without_links(&lines.collect::<String>())
}

/// The description of a lab's directory in the head comment of the scripts' library.
fn of_script(text: &str) -> String {
    let lines = text
        .lines()
        .skip_while(|line| !line.starts_with("# A lab is a directory"));
    let lines = lines.take_while(|line| line.len() > 1 && !line.starts_with("# RUN is"));
    let lines = lines.map(|line| line[1..].strip_prefix(' ').unwrap_or(&line[1..]));
    let text: Vec<&str> = lines.collect();
    format!("```text\n{}```\n", wrapped(&text.join("\n")))
}

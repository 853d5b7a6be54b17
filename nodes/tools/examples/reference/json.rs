//! JSON output: its schemas, and the commands that have `--json`.

use std::path::Path;

use crate::Outcome;
use crate::commands::{Tool, output_of};

pub fn page(binaries: &Path, tools: &[Tool]) -> Outcome<String> {
    let mut page = String::from(
        "# JSON\n\nCommands with `--json` print one JSON value on standard output; everything else goes to \
         standard error. Fields may be added; those that are there keep their meaning.\n",
    );
    let command = binaries.join("phitwire");
    if let Ok(list) = output_of(&command, &["schema", "--list"]) {
        page.push_str("\n`phitwire schema NAME` prints these.\n");
        for line in list.lines() {
            let Some(name) = line.split_whitespace().next() else {
                continue;
            };
            let schema = output_of(&command, &["schema", name])?;
            page.push_str(&format!("\n## {name}\n\n"));
            let about = line[name.len()..].trim();
            if !about.is_empty() {
                page.push_str(&format!("{about}\n\n"));
            }
            page.push_str(&format!("```json\n{}\n```\n", schema.trim_end()));
        }
    }
    page.push_str("\n## Commands with --json\n\n");
    for tool in tools.iter().filter(|tool| tool.help.contains("--json")) {
        let anchor = tool.call().replace(' ', "-").replace('.', "");
        page.push_str(&format!("- [`{}`](commands.md#{anchor})\n", tool.call()));
    }
    Ok(page)
}

//! Commands and scripts, documented by their `--help`.

use std::path::Path;
use std::process::Command;

use crate::Outcome;

/// Maximum width of help text, in columns: the width of a page without horizontal scrolling.
const WIDTH: usize = 100;
/// Largest indentation, in columns, of the continuation of an option's text.
const DEEPEST: usize = 34;

/// A command or script with its help.
pub struct Tool {
    pub words: Vec<String>,
    /// Output of `--help`, wrapped to the page.
    pub help: String,
}

impl Tool {
    /// The command as typed.
    pub fn call(&self) -> String {
        self.words.join(" ")
    }
}

/// All commands with their subcommands, then the scripts.
pub fn tools(binaries: &Path, root: &Path) -> Outcome<Vec<Tool>> {
    let mut all = Vec::new();
    for name in ["phitwire", "phitwire-msgrate", "phitwire-bench"] {
        walk(&binaries.join(name), &mut vec![name.to_owned()], &mut all)?;
    }
    let directory = root.join("netns-scripts");
    let entries = std::fs::read_dir(&directory).map_err(|error| format!("{error}"))?;
    let mut scripts: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        // Libraries of other scripts have no help.
        .filter(|name| name.ends_with(".sh") && !["lib.sh", "processes.sh"].contains(&&**name))
        .collect();
    scripts.sort();
    for script in scripts {
        let help = help_of(&directory.join(&script), &["--help"])?;
        let words = vec![script];
        all.push(Tool { words, help });
    }
    Ok(all)
}

/// Adds the command called by `words`, and its subcommands.
fn walk(binary: &Path, words: &mut Vec<String>, all: &mut Vec<Tool>) -> Outcome<()> {
    let text = raw_help(binary, words)?;
    let below = subcommands(&text);
    let help = wrapped(&text);
    // `lab` passes all words to scripts, which are listed separately.
    let hands_on = words.last().is_some_and(|word| word == "lab");
    let words_now = words.iter().filter(|word| !is_filler(word)).cloned();
    let words_now = words_now.collect();
    all.push(Tool {
        words: words_now,
        help,
    });
    for name in below.into_iter().filter(|_| !hands_on) {
        let before = words.len();
        // `ctl` expects a node before its subcommands.
        if before == 2 && words[1] == "ctl" {
            words.extend(["--lab", "LAB", "NODE"].map(str::to_owned));
        }
        words.push(name);
        walk(binary, words, all)?;
        words.truncate(before);
    }
    Ok(())
}

/// Whether a word is a placeholder.
fn is_filler(word: &str) -> bool {
    ["--lab", "LAB", "NODE"].contains(&word)
}

fn raw_help(binary: &Path, words: &[String]) -> Outcome<String> {
    let mut after: Vec<&str> = words[1..].iter().map(|word| &**word).collect();
    after.push("--help");
    output_of(binary, &after)
}

fn help_of(program: &Path, words: &[&str]) -> Outcome<String> {
    output_of(program, words).map(|text| wrapped(&text))
}

/// The output of a program, which must succeed.
pub fn output_of(program: &Path, words: &[&str]) -> Outcome<String> {
    let called = || format!("{} {}", program.display(), words.join(" "));
    let output = Command::new(program)
        .args(words)
        .output()
        .map_err(|error| format!("{}: {error}", called()))?;
    if !output.status.success() {
        return Err(format!("{}: {}", called(), output.status));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("{}: {error}", called()))
}

/// The names listed under `Commands:`.
fn subcommands(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| line.starts_with(' '));
    let names = lines
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next());
    names
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

/// Wraps long lines between words and indents their continuation to the column of the text.
pub fn wrapped(help: &str) -> String {
    let mut text = String::new();
    for line in help.trim_end().lines() {
        wrap(line.trim_end(), &mut text);
    }
    text
}

fn wrap(line: &str, text: &mut String) {
    let indent = line.len() - line.trim_start().len();
    let described = line[indent..].find("  ").map(|gap| {
        let rest = &line[indent + gap..];
        indent + gap + (rest.len() - rest.trim_start().len())
    });
    let hang = described.filter(|hang| *hang <= DEEPEST).unwrap_or(indent);
    let mut rest = line;
    let mut prefix = String::new();
    while prefix.len() + rest.chars().count() > WIDTH {
        let room = WIDTH - prefix.len();
        // Never wrap inside the indentation or the name.
        let least = if prefix.is_empty() { hang } else { 0 };
        let cut = rest
            .char_indices()
            .take(room + 1)
            .filter(|(at, letter)| *letter == ' ' && *at > least)
            .last();
        let Some((cut, _)) = cut else { break };
        text.push_str(&prefix);
        text.push_str(rest[..cut].trim_end());
        text.push('\n');
        rest = rest[cut..].trim_start();
        prefix = " ".repeat(hang);
    }
    text.push_str(&prefix);
    text.push_str(rest);
    text.push('\n');
}

pub fn page(tools: &[Tool]) -> String {
    let mut page = String::from(
        "# Commands\n\nWhat each command says of itself with `--help`. `phitwire man` prints the same as a \
         manual, `phitwire completions` what a shell completes it by. The scripts at the end are in \
         `netns-scripts`, and `phitwire lab NAME` calls them from any directory.\n",
    );
    for tool in tools {
        let level = "#".repeat(tool.words.len().min(3) + 1);
        page.push_str(&format!("\n{level} {}\n\n", tool.call()));
        page.push_str(&format!("```text\n{}```\n", tool.help));
    }
    page
}

/// The page of exit statuses: the meaning of each, and the commands that mention it.
pub fn statuses(tools: &[Tool]) -> Outcome<String> {
    let mut page = String::from("# Exit statuses\n");
    let whole = tools.iter().find(|tool| tool.words == ["phitwire"]);
    let table = whole.and_then(|tool| tool.help.split_once("Exit status:\n"));
    let Some((_, table)) = table else {
        return Err("phitwire --help has no exit statuses".to_owned());
    };
    page.push_str("\n## phitwire\n\n| status | what it says |\n|---|---|\n");
    // A line that begins with a number begins a row; other lines continue it.
    let mut rows: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in table.lines().take_while(|line| line.starts_with("  ")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match (words.split_first(), rows.last_mut()) {
            (Some((status, what)), _) if status.parse::<u8>().is_ok() => {
                rows.push((status, what.to_vec()));
            }
            (_, Some((_, what))) => what.extend(words),
            _ => return Err(format!("not a row of the exit status table: {line}")),
        }
    }
    for (status, what) in rows {
        page.push_str(&format!("| {status} | {} |\n", what.join(" ")));
    }
    page.push_str(
        "\nThe scripts: 0 well, 1 failed, 2 called wrongly, 4 cannot be done here, with the reason on \
         standard error.\n\nWhat single commands say more of them:\n\n",
    );
    for tool in tools.iter().filter(|tool| tool.words != ["phitwire"]) {
        for sentence in sentences(&tool.help) {
            let words = sentence
                .split(' ')
                .map(|word| match word.starts_with("--") {
                    true => format!("`{word}`"),
                    false => word.to_owned(),
                });
            let sentence = words.collect::<Vec<_>>().join(" ");
            page.push_str(&format!("- `{}`: {sentence}\n", tool.call()));
        }
    }
    Ok(page)
}

/// The sentences about exit statuses in a help text, without its options.
fn sentences(help: &str) -> Vec<String> {
    let head = help.split("\nUsage:").next().unwrap_or_default();
    let mut found = Vec::new();
    for paragraph in head.split("\n\n") {
        let lines = paragraph.lines().filter(|line| !line.starts_with("  "));
        let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
        let text = words.join(" ");
        for sentence in text.split_inclusive(". ") {
            let lower = sentence.to_lowercase();
            if lower.contains("status ") && !lower.contains("status.sh")
                || lower.contains("status:")
            {
                found.push(sentence.trim().to_owned());
            }
        }
    }
    found
}

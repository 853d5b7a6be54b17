//! Generates the reference of the guide from the program, as Markdown with one page per subject,
//! and builds the guide as a book.
//!
//! Never installed; `docs/guide/build.sh` runs it. It queries commands for their help, and nodes of
//! every machine for their counters and registers. The meaning of counters and the description of
//! files are taken from their documentation in the sources. An item without documentation is an
//! error, so that nothing is left out by oversight.
//!
//! ```text
//! reference --root . --binaries target/release --output docs/guide/src/reference --book target/guide
//! ```

mod book;
mod commands;
mod counters;
mod files;
mod json;
mod machines;
mod registers;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

/// Generates the reference of the guide.
#[derive(Parser)]
struct Options {
    /// Root directory of the sources
    #[arg(long, value_name = "DIR")]
    root: PathBuf,
    /// Directory of the binaries
    #[arg(long, value_name = "DIR")]
    binaries: PathBuf,
    /// Output directory of the pages
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
    /// Output directory of the book, if it is wanted
    #[arg(long, value_name = "DIR")]
    book: Option<PathBuf>,
}

/// The result of a step; an error is a message for display.
type Outcome<T> = Result<T, String>;

/// The text of a source file.
fn text_of(root: &Path, file: &str) -> Outcome<String> {
    fs::read_to_string(root.join(file)).map_err(|error| format!("{file}: {error}"))
}

/// A table cell, with Markdown's cell separators escaped.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn make(options: &Options) -> Outcome<()> {
    let tools = commands::tools(&options.binaries, &options.root)?;
    let pages = [
        ("commands.md", commands::page(&tools)),
        ("exit-statuses.md", commands::statuses(&tools)?),
        ("json.md", json::page(&options.binaries, &tools)?),
        ("counters.md", counters::page(&options.root)?),
        ("registers.md", registers::page()?),
        ("files.md", files::page(&options.root)?),
    ];
    let cannot = |error| format!("{}: {error}", options.output.display());
    fs::create_dir_all(&options.output).map_err(cannot)?;
    for (name, text) in pages {
        let file = options.output.join(name);
        // Leave an unchanged page alone, so that its time does not trigger a rebuild.
        if fs::read_to_string(&file).is_ok_and(|before| before == text) {
            continue;
        }
        fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    match &options.book {
        Some(book) => book::build(&options.root.join("docs/guide/src"), book),
        None => Ok(()),
    }
}

fn main() -> ExitCode {
    match make(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("reference: {error}");
            ExitCode::FAILURE
        }
    }
}

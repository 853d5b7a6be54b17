//! Makes the reference of the guide from the program: Markdown, a page for each kind of thing.
//!
//! Never installed; `docs/guide/build.sh` runs it. Commands are asked for their help, nodes of every
//! machine for their counters and registers; what each counter means, and what files look like, is
//! read where it is documented, in the sources. What has no such line is an error, so that nothing
//! can be left out by oversight.
//!
//! ```text
//! reference --root . --binaries target/release --output docs/guide/src/reference
//! ```

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

/// Makes the reference of the guide.
#[derive(Parser)]
struct Options {
    /// Top of the sources
    #[arg(long, value_name = "DIR")]
    root: PathBuf,
    /// Where the binaries are
    #[arg(long, value_name = "DIR")]
    binaries: PathBuf,
    /// Where the pages go
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
}

/// What went wrong, for people.
type Outcome<T> = Result<T, String>;

/// The text of a file of the sources.
fn text_of(root: &Path, file: &str) -> Outcome<String> {
    fs::read_to_string(root.join(file)).map_err(|error| format!("{file}: {error}"))
}

/// A cell of a table: what Markdown would take for the end of one is not.
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
        // A page that has not changed keeps its time, so that nothing is built again for it.
        if fs::read_to_string(&file).is_ok_and(|before| before == text) {
            continue;
        }
        fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(())
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

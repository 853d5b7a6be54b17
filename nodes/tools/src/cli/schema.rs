//! `phitwire schema`: schemas of what the commands print with `--json`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use miette::miette;
use phitwire::net::short_message;
use phitwire_nodes::nearest::nearest;

use super::print;
use crate::input_file::{FileKind, InputFile};
use crate::schema::{self, Schema};

/// Print the schema of a command's --json output (JSON Schema, draft 2020-12)
///
/// Each schema has a version, in `x-version` and at the end of `$id`. The version increases when a
/// key is removed or changes its meaning; new keys may be added without it.
#[derive(Args, Debug)]
pub struct SchemaArgs {
    /// Schema; --list prints the names
    #[arg(required_unless_present = "list")]
    name: Option<String>,
    /// List all schemas: name, version, command, contents
    #[arg(long, conflicts_with_all = ["name", "check"])]
    list: bool,
    /// Validate this file against the schema instead of printing it; `-` is standard input. Exit
    /// status 1 if it does not match
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
}

/// Runs `phitwire schema`.
///
/// # Errors
/// No schema of this name, or a file that cannot be read or is not JSON.
pub fn run(args: &SchemaArgs) -> miette::Result<ExitCode> {
    let Some(name) = &args.name else {
        return print(&list());
    };
    let schema = schema::find(name).ok_or_else(|| unknown(name))?;
    match &args.check {
        None => print(schema.text),
        Some(file) => check(&schema, file),
    }
}

fn list() -> String {
    let all = schema::names().into_iter().filter_map(schema::find);
    let line = |one: Schema| {
        format!(
            "{:18} {}  {}: {}\n",
            one.name,
            one.version(),
            one.command(),
            one.title()
        )
    };
    all.map(line).collect()
}

fn unknown(name: &str) -> miette::Report {
    let names = schema::names();
    let help = match nearest(name, &names) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("available: {}", names.join(", ")),
    };
    miette!(help = help, "unknown schema `{name}`")
}

fn check(schema: &Schema, file: &Path) -> miette::Result<ExitCode> {
    let input = InputFile::open(file, FileKind::JSON)?;
    let (file, text) = (input.name.clone(), input.text()?);
    let value = serde_json::from_str(&text)
        .map_err(|error| miette!("{file} is not JSON: {}", short_message(error.to_string())))?;
    let mistakes: Vec<_> = schema
        .mistakes(&value)
        .into_iter()
        .map(short_message)
        .collect();
    if mistakes.is_empty() {
        let (name, version) = (schema.name, schema.version());
        return print(&format!(
            "{file}: valid against `{name}`, version {version}\n"
        ));
    }
    print(&(mistakes.join("\n") + "\n"))?;
    Ok(ExitCode::FAILURE)
}

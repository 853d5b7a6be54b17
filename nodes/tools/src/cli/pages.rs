//! Shell completions and manual pages, generated from the commands' arguments.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Command, ValueEnum};
use clap_complete::{Shell, generate};
use clap_mangen::Man;
use miette::{IntoDiagnostic, WrapErr, miette};
use phitwire_nodes::output;

/// The version of all commands: the package's, and the commit if known.
pub const VERSION: &str = match option_env!("PHITWIRE_COMMIT") {
    Some(_) => concat!(
        env!("CARGO_PKG_VERSION"),
        " (",
        env!("PHITWIRE_COMMIT"),
        ")"
    ),
    None => env!("CARGO_PKG_VERSION"),
};

/// The options that [`asked`] handles, for the help of commands that call it.
pub const OTHER_CALLS: &str = "Alone, --completions SHELL prints a completion script for bash, zsh \
                               or fish, and --man the manual.";

#[derive(Args, Debug)]
pub(super) struct CompletionsArgs {
    /// Shell
    shell: Shell,
}

#[derive(Args, Debug)]
pub(super) struct ManArgs {
    /// Write a page for each command into this directory, instead of one for all to standard output
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// Prints a completion script of `command` for `shell`.
///
/// # Errors
/// If it cannot be written.
pub(super) fn completions(
    mut command: Command,
    args: &CompletionsArgs,
) -> miette::Result<ExitCode> {
    super::print(&completions_of(&mut command, args.shell)?)
}

/// Prints or writes the manual of `command`.
///
/// # Errors
/// If it cannot be written.
pub(super) fn manual(command: Command, args: &ManArgs) -> miette::Result<ExitCode> {
    match &args.directory {
        None => super::print(&page_of(command)?),
        Some(directory) => write_pages(command, directory),
    }
}

fn completions_of(command: &mut Command, shell: Shell) -> miette::Result<String> {
    let name = command.get_name().to_owned();
    let mut text = Vec::new();
    generate(shell, command, name, &mut text);
    String::from_utf8(text).into_diagnostic()
}

fn page_of(command: Command) -> miette::Result<String> {
    let mut text = Vec::new();
    Man::new(command).render(&mut text).into_diagnostic()?;
    String::from_utf8(text).into_diagnostic()
}

/// One page per command, as in git and cargo: `phitwire-topology-show.1`.
fn write_pages(command: Command, directory: &Path) -> miette::Result<ExitCode> {
    let cannot = || format!("cannot write pages to {}", directory.display());
    fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(command, directory))
        .into_diagnostic()
        .wrap_err_with(cannot)?;
    Ok(ExitCode::SUCCESS)
}

/// Handles `--completions SHELL` or `--man`, given alone, for commands without such subcommands:
/// prints the completion script or manual of `command`. Returns the exit status if one of them was
/// given.
pub fn asked(arguments: &[OsString], command: impl FnOnce() -> Command) -> Option<ExitCode> {
    let mut words = arguments.iter().skip(1).map(OsString::as_os_str);
    let done = match words.next()?.to_str()? {
        "--man" => page_of(command()),
        "--completions" => {
            let shell = words.next().and_then(OsStr::to_str).unwrap_or_default();
            Shell::from_str(shell, true)
                .map_err(|_| {
                    miette!("expected --completions bash, elvish, fish, powershell or zsh")
                })
                .and_then(|shell| completions_of(&mut command(), shell))
        }
        _ => return None,
    };
    Some(match done.and_then(|text| super::print(&text)) {
        Ok(status) => status,
        Err(report) => {
            output::print_error(&output::report(&report));
            ExitCode::from(2)
        }
    })
}

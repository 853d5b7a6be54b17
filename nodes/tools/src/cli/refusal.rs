//! Errors about arguments, with hints that clap lacks: the existing commands, those elsewhere that
//! an unknown one may mean, and the labs that are up.

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use phitwire::net::harmless;
use phitwire_nodes::nearest::nearest;
use phitwire_nodes::output;
use phitwire_nodes::run_dir::labs;

/// Names that users may try, and the command meant.
const ALIASES: [(&str, &str); 6] = [
    ("counters", "stats"),
    ("list", "status"),
    ("ls", "status"),
    ("ps", "status"),
    ("start", "up"),
    ("stop", "down"),
];

/// Words for a fault that links do not support, and the closest alternative.
const LOSSES: [&str; 3] = ["drop", "lose", "loss"];
const NO_LOSS: &str = "no fault loses a frame; `phitwire lab impair LINK loss 3%` loses a share \
                       of them, force-retry makes the link resend without a loss";

/// Prints an argument error, or the requested help, as clap does, but with hints, and escapes
/// terminal control characters.
pub fn refuse(error: &clap::Error, command: &clap::Command) -> ExitCode {
    let plain = error.render().to_string();
    let mut shown = harmless(&plain);
    let arguments = std::env::args_os().skip(1);
    let arguments = arguments.map(|one| one.to_string_lossy().into_owned());
    let hints = hints(error, command, arguments, &labs());
    if hints.is_empty() && (shown == plain || !error.use_stderr()) {
        error.exit();
    }
    shown.extend(hints.iter().map(|hint| format!("\n{}", harmless(hint))));
    output::print_error(shown.trim_end());
    ExitCode::from(error.exit_code() as u8)
}

/// The hints about an error, one per line.
fn hints(
    error: &clap::Error,
    root: &clap::Command,
    arguments: impl Iterator<Item = String>,
    labs: &[String],
) -> Vec<String> {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => vec![word.clone()],
        Some(ContextValue::Strings(words)) => words.clone(),
        _ => Vec::new(),
    };
    let word = match error.kind() {
        ErrorKind::InvalidSubcommand => context(ContextKind::InvalidSubcommand),
        // After a positional argument, clap takes an unknown command for another argument.
        ErrorKind::UnknownArgument => context(ContextKind::InvalidArg),
        ErrorKind::MissingRequiredArgument => {
            let missing = context(ContextKind::InvalidArg);
            let lacks_lab = missing.iter().any(|what| what.starts_with("--lab"));
            return Vec::from_iter(lacks_lab.then(|| where_labs_are(labs)));
        }
        _ => return Vec::new(),
    };
    let (path, here) = here(root, arguments);
    let word = word.into_iter().next().unwrap_or_default();
    if word.starts_with('-') || !here.has_subcommands() {
        return Vec::new();
    }
    let names = here.get_subcommands().map(clap::Command::get_name);
    let available = names.collect::<Vec<_>>().join(", ");
    let mut hints = vec![format!("\navailable: {available}")];
    if here.get_name() == "fault" && LOSSES.iter().any(|one| word.contains(one)) {
        hints.push(NO_LOSS.to_owned());
    } else if let Some(meant) = meant(root, &path, &word) {
        hints.push(format!("did you mean `{meant}`?"));
    }
    hints
}

/// The hint for a missing `--lab`.
fn where_labs_are(labs: &[String]) -> String {
    match labs {
        [] => "\nno lab is up; `phitwire lab up TOPOLOGY --lab NAME` starts one".to_owned(),
        _ => format!(
            "\nlabs that are up: {}; PHITWIRE_LAB=NAME sets one for all commands",
            labs.join(", ")
        ),
    }
}

/// The command whose subcommand is unknown, and the names of those above it and its own.
fn here(
    root: &clap::Command,
    arguments: impl Iterator<Item = String>,
) -> (Vec<String>, &clap::Command) {
    let (mut path, mut command) = (Vec::new(), root);
    for argument in arguments {
        if let Some(next) = command.find_subcommand(&argument) {
            path.push(argument);
            command = next;
        }
    }
    (path, command)
}

/// The command elsewhere that the word may mean, as it is to be typed: one of its name, that of a
/// script, or a similar one. The commands closest to the root come first.
fn meant(root: &clap::Command, path: &[String], word: &str) -> Option<String> {
    let word = word.strip_suffix(".sh").unwrap_or(word);
    let alias = ALIASES.iter().find(|(alias, _)| *alias == word);
    let word = alias.map_or(word, |(_, name)| name);
    let mut level: Vec<(Vec<String>, String, &clap::Command)> =
        vec![(Vec::new(), root.get_name().to_owned(), root)];
    while !level.is_empty() {
        let mut below = Vec::new();
        for (names, typed, command) in &level {
            for next in command.get_subcommands() {
                let name = next.get_name();
                let names = names.iter().cloned().chain([name.to_owned()]).collect();
                below.push((names, format!("{typed}{} {name}", required(command)), next));
            }
        }
        level = below;
        // Clap itself suggests similar commands.
        let elsewhere = level.iter().filter(|(names, ..)| {
            names.split_last().is_none_or(|(_, above)| above != path) || alias.is_some()
        });
        let names: Vec<&str> = elsewhere
            .clone()
            .map(|(.., next)| next.get_name())
            .collect();
        if let Some(near) = nearest(word, &names) {
            let found = elsewhere.clone().find(|(.., next)| next.get_name() == near);
            return found.map(|(_, typed, _)| typed.clone());
        }
    }
    None
}

/// The arguments that a command requires before its subcommand.
fn required(command: &clap::Command) -> String {
    let required = command.get_arguments().filter(|one| one.is_required_set());
    let words = required.map(|one| {
        let id = one.get_id().as_str().to_uppercase();
        match one.get_long() {
            Some(long) => format!(" --{long} {id}"),
            None => format!(" {id}"),
        }
    });
    // Options first, as in the usage line.
    let (options, names): (Vec<_>, Vec<_>) = words.partition(|word| word.starts_with(" --"));
    options.concat() + &names.concat()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use clap::builder::Resettable;

    use super::super::{Cli, LAB};
    use super::*;

    /// The hints about a line that is refused, where a lab `demo` is up.
    fn error_of(line: &str) -> String {
        let words = || line.split(' ').map(str::to_owned);
        let all = ["phitwire".to_owned()].into_iter().chain(words());
        // Whatever the environment of this test.
        let root = Cli::command().mut_subcommands(|one| {
            let has_lab = one.get_arguments().any(|one| one.get_id() == "lab");
            match has_lab {
                true => one.mut_arg("lab", |lab| lab.env(Resettable::Reset)),
                false => one,
            }
        });
        let error = root.clone().try_get_matches_from(all).expect_err(line);
        hints(&error, &root, words(), &["demo".to_owned()]).join("\n")
    }

    #[test]
    fn every_required_lab_has_the_default_of_the_scripts() {
        let mut commands = vec![Cli::command()];
        let mut found = 0;
        while let Some(command) = commands.pop() {
            commands.extend(command.get_subcommands().cloned());
            let labs = command.get_arguments().filter(|one| one.get_id() == "lab");
            for lab in labs.filter(|lab| lab.is_required_set() || command.get_name() == "view") {
                assert_eq!(lab.get_env(), Some(LAB.as_ref()), "{}", command.get_name());
                found += 1;
            }
        }
        assert!(found >= 10, "{found}");
    }

    #[test]
    fn an_unknown_command_is_refused_with_the_existing_ones() {
        for (line, named) in [
            (
                "ctl --lab x nic0 fault foo",
                "lane-noise, soft-error, link-down",
            ),
            ("topology foo", "generate, check, show"),
            ("ctl --lab x nic0 foo", "stats, links, pipeline"),
        ] {
            let error = error_of(line);
            assert!(error.contains(&format!("available: {named}")), "{error}");
        }
    }

    #[test]
    fn an_unknown_command_that_exists_elsewhere_is_named() {
        for (line, meant) in [
            ("status", "phitwire lab status"),
            ("impair all loss 3%", "phitwire lab impair"),
            ("impair.sh all clear", "phitwire lab impair"),
            ("stats", "phitwire ctl --lab LAB NODE stats"),
            ("stat", "phitwire ctl --lab LAB NODE stats"),
            ("counters", "phitwire ctl --lab LAB NODE stats"),
            ("lab list", "phitwire lab status"),
            ("lab stats", "phitwire ctl --lab LAB NODE stats"),
            ("link-down", "phitwire ctl --lab LAB NODE fault link-down"),
            (
                "ctl --lab x nic0 counters",
                "phitwire ctl --lab LAB NODE stats",
            ),
        ] {
            let error = error_of(line);
            assert!(
                error.ends_with(&format!("did you mean `{meant}`?")),
                "{line}: {error}"
            );
        }
        assert!(!error_of("elephant").contains("did you mean"));
        assert!(error_of("ctl --lab x nic0 fault drop-frame 3").contains("lab impair LINK loss"));
    }

    #[test]
    fn a_missing_lab_is_refused_with_those_that_are_up() {
        for line in ["ping nic0 nic7", "top --once", "ctl r1-0 stats"] {
            let error = error_of(line);
            assert!(error.contains("labs that are up: demo;"), "{line}: {error}");
        }
        assert_eq!(error_of("ping --lab demo nic0"), "");
        assert!(where_labs_are(&[]).contains("phitwire lab up"));
    }
}

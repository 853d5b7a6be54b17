//! `phitwire sim --config FILE`: the options of a run from a file.

use std::ffi::OsString;
use std::path::Path;

use clap::builder::Resettable;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Id};
use phitwire_nodes::nearest::nearest;

use super::SimArgs;
use super::config_file::{ConfigError, ConfigFile, Entry, Setting};
use crate::input_file::{FileKind, InputFile};

/// Option that names the file, and argument that names the network.
const CONFIG: &str = "config";
const TOPOLOGY: &str = "topology";
/// Longest name, in bytes, to compare with the known ones.
const MOST_COMPARED: usize = 40;

/// The arguments of `phitwire`, with those from the file of `sim --config` inserted. An option of
/// the command line replaces the one in the file.
///
/// # Errors
/// If the file cannot be read, or has options that `sim` does not accept.
pub fn with_config(arguments: Vec<OsString>) -> miette::Result<Vec<OsString>> {
    let is_sim = arguments.get(1).is_some_and(|word| word == "sim");
    let names_a_file = |word: &OsString| word.to_string_lossy().starts_with("--config");
    if !is_sim || !arguments.iter().any(names_a_file) {
        return Ok(arguments);
    }
    // The command line alone may lack options that the file has: check the two together below.
    let free = |arg: Arg| {
        let arg = arg.required(false).requires(Resettable::<Id>::Reset);
        arg.conflicts_with(Resettable::<Id>::Reset)
    };
    // Leave an invalid command line, and --help, to the parser of all commands.
    let parsed = command()
        .mut_args(free)
        .try_get_matches_from(&arguments[1..]);
    let Some((matches, file)) = parsed.ok().and_then(|matches| {
        let file = matches.get_raw(CONFIG)?.next()?.to_owned();
        Some((matches, file))
    }) else {
        return Ok(arguments);
    };
    let file = ConfigFile::read(InputFile::open(Path::new(&file), FileKind::CONFIG)?)?;
    let mut words = Vec::new();
    for entry in &file.entries {
        let entry_words = words_of(&file, entry)?;
        if !is_given(&matches, &entry.name) {
            words.extend(entry_words);
        }
    }
    let rest = arguments[2..].iter().cloned();
    let merged: Vec<OsString> = arguments[..2]
        .iter()
        .cloned()
        .chain(words)
        .chain(rest)
        .collect();
    together(&file, &merged[1..])?;
    Ok(merged)
}

fn command() -> Command {
    SimArgs::augment_args(Command::new("sim"))
}

fn is_given(matches: &ArgMatches, name: &str) -> bool {
    let command = command();
    let arg = command.get_arguments().find(|arg| name_of(arg) == name);
    let source = arg.and_then(|arg| matches.value_source(arg.get_id().as_str()));
    source == Some(ValueSource::CommandLine)
}

/// The name of an argument in a file: that of its long option, or of its value.
fn name_of(arg: &Arg) -> &str {
    arg.get_long().unwrap_or(arg.get_id().as_str())
}

/// The arguments that an option of the file stands for.
fn words_of(file: &ConfigFile, entry: &Entry) -> Result<Vec<OsString>, ConfigError> {
    let command = command();
    let mut args = command.get_arguments();
    let known = args.find(|arg| name_of(arg) == entry.name && entry.name != CONFIG);
    let arg = known.ok_or_else(|| unknown(file, entry, &command))?;
    let name = &entry.name;
    let written = |words: &[String]| -> Vec<OsString> {
        let written = words.iter().map(|word| format!("--{name}={word}").into());
        written.collect()
    };
    let words: Vec<OsString> = match (&entry.setting, arg.get_action()) {
        (Setting::Switch(is_on), ArgAction::SetTrue) => is_on
            .then(|| format!("--{name}").into())
            .into_iter()
            .collect(),
        (Setting::Word(word), ArgAction::Set) if name == TOPOLOGY => {
            if word.starts_with('-') {
                let message = format!("`{word}` is not a network");
                return Err(file.mistake(entry.spans[1].clone(), message, None));
            }
            vec![word.into()]
        }
        (Setting::Word(word), ArgAction::Set | ArgAction::Append) => {
            written(std::slice::from_ref(word))
        }
        (Setting::List(words), ArgAction::Append) => written(words),
        // An option whose single value is a list takes it with commas.
        (Setting::List(words), ArgAction::Set) if name != TOPOLOGY => written(&[words.join(",")]),
        _ => return Err(wrong_type(file, entry, arg)),
    };
    check(file, entry, &words)?;
    Ok(words)
}

fn unknown(file: &ConfigFile, entry: &Entry, command: &Command) -> ConfigError {
    let names = command
        .get_arguments()
        .map(name_of)
        .filter(|name| *name != CONFIG);
    let names: Vec<&str> = names.collect();
    // Do not compare a long name, which is similar to none.
    let near = (entry.name.len() <= MOST_COMPARED).then(|| nearest(&entry.name, &names));
    let help = match near.flatten() {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the options are {}", names.join(", ")),
    };
    let message = format!("`phitwire sim` has no option `{}`", entry.name);
    file.mistake(entry.spans[0].clone(), message, Some(help))
}

fn wrong_type(file: &ConfigFile, entry: &Entry, arg: &Arg) -> ConfigError {
    let (name, found) = (&entry.name, entry.setting.kind());
    let wanted = match arg.get_action() {
        ArgAction::SetTrue => "true or false".to_owned(),
        ArgAction::Append => "a text in quotation marks, or a list of texts: [ ... ]".to_owned(),
        _ if name == TOPOLOGY => "the name of a network, or a file, in quotation marks".to_owned(),
        _ => {
            let value = arg.get_value_names().and_then(|names| names.first());
            let value = value.map_or_else(String::new, |name| format!(" ({name})"));
            format!("a number, or a text in quotation marks{value}")
        }
    };
    let message = format!("`{name}` cannot be {found}");
    file.mistake(
        entry.spans[1].clone(),
        message,
        Some(format!("write {wanted}")),
    )
}

/// Checks the value of one option, regardless of the others.
fn check(file: &ConfigFile, entry: &Entry, words: &[OsString]) -> Result<(), ConfigError> {
    let line = std::iter::once("sim".into()).chain(words.iter().cloned());
    match command().try_get_matches_from(line) {
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::ValueValidation | ErrorKind::InvalidValue
            ) =>
        {
            Err(of_parser(file, entry, &error))
        }
        _ => Ok(()),
    }
}

/// Checks all arguments together. An error that concerns an option of the file is shown there;
/// others are left to the parser of all commands.
fn together(file: &ConfigFile, words: &[OsString]) -> Result<(), ConfigError> {
    let Err(error) = command().try_get_matches_from(words) else {
        return Ok(());
    };
    if !matches!(
        error.kind(),
        ErrorKind::ArgumentConflict | ErrorKind::MissingRequiredArgument
    ) {
        return Ok(());
    }
    let kinds = [ContextKind::InvalidArg, ContextKind::PriorArg];
    let names = kinds.into_iter().filter_map(|kind| error.get(kind));
    let names: Vec<String> = names.flat_map(named).collect();
    let is_named = |entry: &&Entry| names.contains(&format!("--{}", entry.name));
    match file.entries.iter().find(is_named) {
        Some(entry) => Err(of_parser(file, entry, &error)),
        None => Ok(()),
    }
}

/// The options that an error names, without their values.
fn named(context: &ContextValue) -> Vec<String> {
    let all: &[String] = match context {
        ContextValue::String(one) => std::slice::from_ref(one),
        ContextValue::Strings(all) => all,
        _ => &[],
    };
    let first = all.iter().filter_map(|one| one.split([' ', '=']).next());
    first.map(str::to_owned).collect()
}

/// The first line of a parser's error, at the option in the file.
fn of_parser(file: &ConfigFile, entry: &Entry, error: &clap::Error) -> ConfigError {
    let text = error.render().to_string();
    let said = text.split("\n\n").next().unwrap_or(&text);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let message = said.strip_prefix("error: ").unwrap_or(&said);
    file.mistake(entry.spans[1].clone(), message, None)
}

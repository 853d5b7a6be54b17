//! The options of the command line, as recorded in result files.

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use serde_json::{Map, Value};

use super::SimArgs;
use crate::sim::Measured;

/// Options that have their own columns in result files or do not affect the measurement.
const ELSEWHERE: [&str; 16] = [
    "topology",
    "traffic",
    "load",
    "seed",
    "seeds",
    "threads",
    "json",
    "csv",
    "plot",
    "hgrm",
    "record",
    "record-every",
    "capture",
    "trace",
    "perfetto",
    "config",
];

/// Options that choose outputs, or the speed of a run.
const NOT_OF_RUN: [&str; 10] = [
    "config",
    "json",
    "csv",
    "plot",
    "hgrm",
    "record",
    "record-every",
    "capture",
    "perfetto",
    "threads",
];

/// Options of a run with a traffic pattern that are recorded even with their default values.
const ALWAYS: [&str; 5] = ["traffic", "load", "seed", "process", "drain"];

/// The options with their values, given or by default.
#[derive(Clone, Debug, Default)]
pub(super) struct GivenOptions(Vec<GivenOption>);

#[derive(Clone, Debug)]
struct GivenOption {
    name: String,
    values: Vec<String>,
    /// Whether the option is on the command line.
    is_given: bool,
    /// Whether its values are the default ones.
    is_default: bool,
    is_switch: bool,
    is_list: bool,
}

impl Args for GivenOptions {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

impl FromArgMatches for GivenOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let command = SimArgs::augment_args(Command::new("sim"));
        let mut given = Self::default();
        for arg in command.get_arguments() {
            let id = arg.get_id().as_str();
            let name = arg.get_long().unwrap_or(id);
            let Ok(Some(values)) = matches.try_get_raw(id) else {
                continue;
            };
            let values = values.map(|value| value.to_string_lossy().into_owned());
            let values: Vec<String> = values.collect();
            given.0.push(GivenOption {
                name: name.to_owned(),
                is_given: matches.value_source(id) == Some(ValueSource::CommandLine),
                is_default: is_default(arg, &values),
                is_switch: matches!(arg.get_action(), ArgAction::SetTrue),
                is_list: matches!(arg.get_action(), ArgAction::Append),
                values,
            });
        }
        Ok(given)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Whether these are the default values of an option. A given `--measure` never counts as default,
/// even with the default length: without the option a measurement may last longer.
fn is_default(arg: &Arg, values: &[String]) -> bool {
    let defaults = arg.get_default_values().iter();
    let defaults: Vec<_> = defaults.map(|value| value.to_string_lossy()).collect();
    !defaults.is_empty() && defaults == values
}

/// A value as JSON: a number if it prints as the same text, otherwise a string.
fn typed(text: &str) -> Value {
    let whole = text.parse::<u64>().ok().map(Value::from);
    let real = || text.parse::<f64>().ok().map(Value::from);
    let number = whole.or_else(real);
    match number {
        Some(number) if format!("{number}") == text => number,
        _ => text.into(),
    }
}

impl GivenOptions {
    /// Whether the option is on the command line.
    pub(super) fn has(&self, name: &str) -> bool {
        let mut all = self.0.iter();
        all.any(|own| own.name == name && own.is_given)
    }

    /// The options that differ from their defaults and have no columns of their own in result
    /// files.
    fn unusual(&self) -> impl Iterator<Item = (&String, &Vec<String>)> {
        let all = self.0.iter().filter(|own| own.is_given && !own.is_default);
        let all = all.filter(|own| !ELSEWHERE.contains(&&*own.name));
        all.map(|own| (&own.name, &own.values))
    }

    /// The options that define the run, as `--config` reads them.
    pub(super) fn of_run(&self) -> Map<String, Value> {
        let has_packets = !self.has("op");
        let is_wanted = |own: &&GivenOption| {
            let always = ALWAYS.contains(&&*own.name) && (has_packets || own.name == "seed");
            (own.is_given || always) && !NOT_OF_RUN.contains(&&*own.name)
        };
        let wanted = self.0.iter().filter(is_wanted);
        wanted
            .map(|own| {
                let value = match (&own.values[..], own.is_list) {
                    _ if own.is_switch => Value::Bool(true),
                    ([value], false) => typed(value),
                    (values, _) => values.iter().map(|value| typed(value)).collect(),
                };
                (own.name.clone(), value)
            })
            .collect()
    }

    /// The options that all curves share, without the compared ones, which the curves name.
    pub(super) fn chosen(&self, all: &[Measured]) -> String {
        let is_mode = |value: &String| {
            let names = all.iter().filter_map(|measured| measured.routing);
            names
                .flat_map(|name| name.split(", "))
                .any(|part| part == value)
        };
        let others = self.unusual();
        let others = others.filter(|(_, values)| !values.iter().all(is_mode));
        let texts = others.map(|(name, values)| match &values[..] {
            [value] if value == "true" => name.clone(),
            values => format!("{name} {}", values.join(",")),
        });
        texts.collect::<Vec<_>>().join(", ")
    }

    /// The arguments of `phitwire sim` that repeat one seed of a point.
    pub(super) fn command(&self, args: &SimArgs, measured: &Measured, seed: u64) -> String {
        let mut words = vec![args.topology.clone()];
        let mut option = |name: &str, value: String| {
            words.push(format!("--{name}"));
            words.extend((value != "true").then_some(value));
        };
        option("traffic", args.traffic.to_string());
        option("load", measured.load.fraction().to_string());
        option("seed", seed.to_string());
        let mode = measured.routing.unwrap_or_default();
        for (name, values) in self.unusual() {
            let of_mode = values
                .iter()
                .find(|v| mode.split(", ").any(|part| part == *v));
            match of_mode {
                Some(value) => option(name, value.clone()),
                None if name == "fault" => {
                    values.iter().for_each(|fault| option(name, fault.clone()));
                }
                None => option(name, values.join(",")),
            }
        }
        let quoted = words
            .into_iter()
            .map(|word| match word.contains([' ', '\'', '"']) {
                true => format!("'{}'", word.replace('\'', "'\\''")),
                false => word,
            });
        quoted.collect::<Vec<_>>().join(" ")
    }
}

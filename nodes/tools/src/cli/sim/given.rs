//! The options of the command line, as recorded in result files.

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use super::SimArgs;
use crate::sim::Measured;

/// Options that have their own columns in result files or do not affect the measurement.
const ELSEWHERE: [&str; 15] = [
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
];

/// The options that differ from their defaults, with their values, and the names of all given ones.
#[derive(Clone, Debug, Default)]
pub(super) struct GivenOptions(Vec<(String, Vec<String>)>, Vec<String>);

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
            if matches.value_source(id) != Some(ValueSource::CommandLine) {
                continue;
            }
            given.1.push(name.to_owned());
            if !ELSEWHERE.contains(&name)
                && let Ok(Some(values)) = matches.try_get_raw(id)
            {
                let values = values.map(|value| value.to_string_lossy().into_owned());
                let values: Vec<String> = values.collect();
                if !is_default(arg, &values) {
                    given.0.push((name.to_owned(), values));
                }
            }
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

impl GivenOptions {
    /// Whether an option has its value from the command line.
    pub(super) fn has(&self, name: &str) -> bool {
        self.1.iter().any(|own| own == name)
    }

    /// The options common to all curves. Compared modes name their own.
    pub(super) fn chosen(&self, all: &[Measured]) -> String {
        let is_mode = |value: &String| {
            let names = all.iter().filter_map(|measured| measured.routing);
            names
                .flat_map(|name| name.split(", "))
                .any(|part| part == value)
        };
        let others = self
            .0
            .iter()
            .filter(|(_, values)| !values.iter().all(is_mode));
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
        for (name, values) in &self.0 {
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

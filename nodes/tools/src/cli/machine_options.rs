//! Options of machines as arguments of a command.

use std::ffi::OsStr;

use clap::builder::{
    PossibleValuesParser, RangedU64ValueParser, StringValueParser, TypedValueParser, ValueParser,
};
use clap::{Arg, ArgAction, ArgMatches, Command};
use phitwire::catalogue::{Check, Kind, OptionSpec, OptionValues};

/// The options of machines as arguments. With several machines, the help of each option names its
/// machine, and an option that two machines have becomes one argument.
pub fn args(machines: &[(&'static str, &'static [OptionSpec])]) -> Vec<Arg> {
    let alone = machines.len() == 1;
    let all = machines.iter();
    let all: Vec<(&str, &OptionSpec)> = all
        .flat_map(|(machine, specs)| specs.iter().map(move |spec| (*machine, spec)))
        .collect();
    let mut args = Vec::new();
    for (at, (_, spec)) in all.iter().enumerate() {
        if all[..at].iter().any(|(_, other)| other.name == spec.name) {
            continue;
        }
        let same: Vec<_> = all.iter().filter(|(_, o)| o.name == spec.name).collect();
        // Accept any text if machines disagree about the kind; the network's machine checks it with
        // `OptionValues::check`.
        let kind = match same.iter().all(|(_, other)| other.kind == spec.kind) {
            true => spec.kind,
            false => Kind::Text,
        };
        let help = |(machine, spec): &&(&str, &OptionSpec)| match (alone, spec.kind) {
            (true, _) => spec.help.to_owned(),
            // The parser, which lists the words otherwise, does not know them.
            (false, Kind::Words(words)) if kind == Kind::Text => {
                let words = words.join(", ");
                format!("{machine}: {} [possible values: {words}]", spec.help)
            }
            _ => format!("{machine}: {}", spec.help),
        };
        let help: Vec<String> = same.iter().map(help).collect();
        // For the same reason, do not check here if several machines have the option.
        let check = spec.check.filter(|_| same.len() == 1);
        args.push(
            arg(
                spec,
                parser(kind, check),
                same.iter().any(|(_, o)| o.values > 1),
            )
            .help(help.join("; "))
            .required(alone && spec.required),
        );
    }
    args
}

fn arg(spec: &OptionSpec, parser: ValueParser, is_list: bool) -> Arg {
    let arg = Arg::new(spec.name)
        .long(spec.name)
        .value_name(spec.value_name)
        .value_parser(parser);
    match is_list {
        true => arg.action(ArgAction::Append).value_delimiter(','),
        false => arg.action(ArgAction::Set),
    }
}

/// A parser that checks a value and returns it unchanged.
fn parser(kind: Kind, check: Option<Check>) -> ValueParser {
    match kind {
        Kind::Number(from, to) => Number(from, to).into(),
        Kind::Words(words) => PossibleValuesParser::new(words.iter().copied()).into(),
        Kind::Text => match check {
            Some(check) => StringValueParser::new()
                .try_map(move |value| check(&value).map(|()| value))
                .into(),
            None => StringValueParser::new().into(),
        },
    }
}

/// A number in this range.
#[derive(Clone, Copy)]
struct Number(u64, u64);

impl TypedValueParser for Number {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        let range = RangedU64ValueParser::<u64>::new().range(self.0..=self.1);
        let number = range.parse_ref(command, arg, value)?;
        Ok(number.to_string())
    }
}

/// The options given for a machine.
pub fn given(matches: &ArgMatches, specs: &[OptionSpec]) -> OptionValues {
    let mut given = OptionValues::default();
    for spec in specs {
        if let Some(values) = matches.get_many::<String>(spec.name) {
            given.add(spec.name, values.cloned().collect());
        }
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &[OptionSpec] = &[
        OptionSpec::new("depth", "N", Kind::Number(1, 64), "places of a queue"),
        OptionSpec::new("mode", "MODE", Kind::Words(&["slow", "fast"]), "how").up_to(2),
    ];
    const OTHER: &[OptionSpec] = &[
        OptionSpec::new("mode", "MODE", Kind::Words(&["slow", "idle"]), "when"),
        OptionSpec::new("depth", "N", Kind::Number(1, 8), "phits of a queue"),
        OptionSpec::new("name", "NAME", Kind::Text, "what it is called").required(),
    ];

    fn read(
        machines: &[(&'static str, &'static [OptionSpec])],
        words: &[&str],
    ) -> Result<ArgMatches, String> {
        let command = Command::new("test").args(args(machines));
        let words = std::iter::once("test").chain(words.iter().copied());
        command
            .try_get_matches_from(words)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn only_given_options_are_present() {
        let matches = read(&[("One", ONE)], &["--depth", "007", "--mode", "slow,fast"]).unwrap();
        let given = given(&matches, ONE);
        assert_eq!(given.get::<u8>("depth"), Ok(Some(7)));
        assert_eq!(given.all("mode"), ["slow", "fast"]);
        let matches = read(&[("One", ONE)], &[]).unwrap();
        assert_eq!(super::given(&matches, ONE), OptionValues::default());
    }

    #[test]
    fn values_that_cannot_be_are_refused() {
        for (words, why) in [
            (["--depth", "65"], "65 is not in 1..=64"),
            (["--depth", "x"], "invalid digit"),
            (["--mode", "middling"], "possible values: slow, fast"),
        ] {
            let refused = read(&[("One", ONE)], &words).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
        let refused = read(&[("Other", OTHER)], &[]).unwrap_err();
        assert!(refused.contains("--name"), "{refused}");
    }

    #[test]
    fn an_option_of_two_machines_is_one_argument() {
        let both = &[("One", ONE), ("Other", OTHER)];
        let matches = read(both, &["--depth", "60"]).unwrap();
        assert_eq!(given(&matches, ONE).all("depth"), ["60"]);
        assert_eq!(given(&matches, OTHER).all("depth"), ["60"]);
        let help = read(both, &["--help"]).unwrap_err();
        let said = "One: places of a queue; Other: phits of a queue";
        assert!(help.contains(said), "{help}");
        let said =
            "One: how [possible values: slow, fast]; Other: when [possible values: slow, idle]";
        assert!(help.contains(said), "{help}");
    }
}

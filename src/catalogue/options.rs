//! Options that a machine adds to a command, independent of the command's parser.

use core::str::FromStr;

/// An option of a machine: `--name VALUE`.
#[derive(Clone, Copy, Debug)]
pub struct OptionSpec {
    /// Name, without the leading `--`.
    pub name: &'static str,
    /// Placeholder of the value in the help.
    pub value_name: &'static str,
    /// One sentence of help, with the unit and the default.
    pub help: &'static str,
    /// Allowed values.
    pub kind: Kind,
    /// Maximum number of values, separated by commas.
    pub values: usize,
    pub required: bool,
    /// Checks a value that already has the right [`kind`](Self::kind), independently of other
    /// options.
    pub check: Option<Check>,
}

/// Checks a value. The error says why the value is invalid.
pub type Check = fn(&str) -> Result<(), String>;

/// The kind of an option's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number in this range, inclusive.
    Number(u64, u64),
    /// One of these words.
    Words(&'static [&'static str]),
    /// Anything; the machine parses it.
    Text,
}

impl OptionSpec {
    /// An optional option with one value.
    pub const fn new(
        name: &'static str,
        value_name: &'static str,
        kind: Kind,
        help: &'static str,
    ) -> Self {
        Self {
            name,
            value_name,
            help,
            kind,
            values: 1,
            required: false,
            check: None,
        }
    }

    #[must_use]
    pub const fn required(self) -> Self {
        Self {
            required: true,
            ..self
        }
    }

    /// Allows up to this many values, separated by commas.
    #[must_use]
    pub const fn up_to(self, values: usize) -> Self {
        Self { values, ..self }
    }

    /// Rejects values for which `check` returns an error, such as [`readable`].
    #[must_use]
    pub const fn checked(self, check: fn(&str) -> Result<(), String>) -> Self {
        Self {
            check: Some(check),
            ..self
        }
    }

    /// Checks a value, as a parser for this option alone would.
    ///
    /// # Errors
    /// Why the value is invalid.
    pub fn accept(&self, value: &str) -> Result<(), String> {
        match self.kind {
            Kind::Words(words) if !words.contains(&value) => {
                Err(format!("expected one of {}", words.join(", ")))
            }
            Kind::Number(from, to) if !value.parse().is_ok_and(|n| (from..=to).contains(&n)) => {
                Err(format!("expected a number from {from} to {to}"))
            }
            Kind::Words(_) | Kind::Number(..) => Ok(()),
            Kind::Text => self.check.map_or(Ok(()), |check| check(value)),
        }
    }
}

/// Checks that a value parses as a `T`.
///
/// # Errors
/// The error of the parser.
pub fn readable<T: FromStr>(value: &str) -> Result<(), String>
where
    T::Err: ToString,
{
    let read: Result<T, T::Err> = value.parse();
    read.map(drop).map_err(|error| error.to_string())
}

/// The options given, with their values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OptionValues(Vec<(&'static str, Vec<String>)>);

/// Why a value cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("--{name} {value}: {reason}")]
pub struct OptionError {
    pub name: &'static str,
    pub value: String,
    /// Why the value is invalid.
    pub reason: String,
}

impl From<OptionError> for String {
    fn from(error: OptionError) -> Self {
        error.to_string()
    }
}

impl OptionValues {
    pub fn add(&mut self, name: &'static str, values: Vec<String>) {
        self.0.push((name, values));
    }

    /// The options with exactly one value.
    pub fn one_each(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0
            .iter()
            .filter_map(|(name, values)| match &values[..] {
                [value] => Some((*name, &value[..])),
                _ => None,
            })
    }

    pub fn extend(&mut self, more: Self) {
        self.0.extend(more.0);
    }

    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|(name, _)| *name)
    }

    /// The values of an option; empty if it was not given.
    pub fn all(&self, name: &str) -> &[String] {
        let found = self.0.iter().find(|(given, _)| *given == name);
        found.map_or(&[], |(_, values)| values)
    }

    /// Checks the values of these options. The parser of a command checks an option of several
    /// machines only as far as the machines agree.
    ///
    /// # Errors
    /// The first value that its option does not accept.
    pub fn check(&self, specs: &[OptionSpec]) -> Result<(), OptionError> {
        for spec in specs {
            let values = self.all(spec.name);
            for (at, value) in values.iter().enumerate() {
                let fits = match at < spec.values {
                    true => spec.accept(value),
                    false => Err(format!("expected at most {} values", spec.values)),
                };
                fits.map_err(|reason| OptionError {
                    name: spec.name,
                    value: value.clone(),
                    reason,
                })?;
            }
        }
        Ok(())
    }

    /// The parsed value of an option.
    ///
    /// # Errors
    /// If the value does not parse.
    pub fn get<T: FromStr>(&self, name: &'static str) -> Result<Option<T>, OptionError>
    where
        T::Err: ToString,
    {
        self.read(name).map(|values| values.into_iter().next())
    }

    /// The value of an option, parsed by `read`.
    ///
    /// # Errors
    /// If `read` fails, with its reason.
    pub fn get_with<T>(
        &self,
        name: &'static str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, OptionError> {
        let read = |value: &String| {
            read(value).map_err(|reason| OptionError {
                name,
                value: value.clone(),
                reason,
            })
        };
        self.all(name).first().map(read).transpose()
    }

    /// All parsed values of an option.
    ///
    /// # Errors
    /// The first value that does not parse.
    pub fn read<T: FromStr>(&self, name: &'static str) -> Result<Vec<T>, OptionError>
    where
        T::Err: ToString,
    {
        let values = self.all(name).iter();
        values
            .map(|value| {
                value.parse().map_err(|error: T::Err| OptionError {
                    name,
                    value: value.clone(),
                    reason: error.to_string(),
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_and_mistakes_name_their_option() {
        let mut given = OptionValues::default();
        given.add("metres", vec!["1".to_owned(), "20".to_owned()]);
        given.add("seed", vec!["x".to_owned()]);
        assert_eq!(given.read::<u32>("metres"), Ok(vec![1, 20]));
        assert_eq!(given.get::<u32>("rate"), Ok(None));
        let error = given.get::<u32>("seed").unwrap_err();
        assert_eq!(error.to_string(), "--seed x: invalid digit found in string");
        assert_eq!(given.names().collect::<Vec<_>>(), ["metres", "seed"]);
    }

    #[test]
    fn values_are_checked_against_their_option() {
        const SPECS: &[OptionSpec] = &[
            OptionSpec::new("mode", "MODE", Kind::Words(&["slow", "fast"]), "how").up_to(2),
            OptionSpec::new("depth", "N", Kind::Number(1, 64), "slots of a queue"),
            OptionSpec::new("share", "F", Kind::Text, "a share").checked(readable::<f32>),
        ];
        for (name, values, said) in [
            ("mode", "slow,fast", None),
            (
                "mode",
                "fsat",
                Some("--mode fsat: expected one of slow, fast"),
            ),
            (
                "mode",
                "slow,fast,slow",
                Some("--mode slow: expected at most 2 values"),
            ),
            ("depth", "64", None),
            (
                "depth",
                "65",
                Some("--depth 65: expected a number from 1 to 64"),
            ),
            ("share", "0.5", None),
            ("share", "half", Some("--share half: invalid float literal")),
        ] {
            let mut given = OptionValues::default();
            given.add(name, values.split(',').map(str::to_owned).collect());
            let error = given.check(SPECS).err().map(|error| error.to_string());
            assert_eq!(error.as_deref(), said);
        }
    }
}

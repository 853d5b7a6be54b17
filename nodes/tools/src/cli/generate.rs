//! `phitwire topology generate`: descriptions of networks, for all machines with a generator.

use std::process::ExitCode;

use crate::machines::machines;
use clap::{ArgMatches, Command, Error, FromArgMatches, Subcommand};
use miette::miette;
use phitwire::catalogue::{COMMON_OPTIONS, Generator, OptionSpec, OptionValues};
use phitwire::kit::digest_of_name;
use phitwire::net::{Effort, MAX_DESCRIPTION_BYTES, Network};

use super::{machine_options, print};

/// The chosen generator with its options.
#[derive(Debug)]
pub struct Wanted {
    generator: &'static Generator,
    given: OptionValues,
}

/// Longest network name, in characters.
const LONGEST_NAME: usize = 32;

impl Wanted {
    /// The network. A name must identify one network: unless `--name` is given, options that change
    /// the network but not its name are added to the name.
    ///
    /// # Errors
    /// If the options do not make a network.
    pub(super) fn network(&self) -> miette::Result<Box<dyn Network>> {
        let given = &self.given;
        let checked = given.check(self.generator.options);
        checked.map_err(|error| miette!("{error}"))?;
        let make = |given: &OptionValues| (self.generator.generate)(given);
        let network = make(&self.given).map_err(|error| miette!("{error}"))?;
        if !self.given.all("name").is_empty() {
            return Ok(network);
        }
        // If a name would be too long, use only the options' values, or a hash.
        let (mut name, mut short) = (network.name().to_owned(), network.name().to_owned());
        for option in self.generator.options.iter().filter(|o| !o.required) {
            let values = self.given.all(option.name);
            let is_another = || match make(&self.without(option.name)) {
                Ok(usual) => usual.name() == network.name() && *usual != *network,
                Err(_) => false,
            };
            if !values.is_empty() && is_another() {
                name += &format!("-{}-{}", option.name, values.join("-"));
                short += &format!("-{}", values.join("-"));
            }
        }
        if name == network.name() {
            return Ok(network);
        }
        // Restrict the characters, since names are used for files and links.
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
        let fits = [&name, &short]
            .into_iter()
            .find(|name| name.len() <= LONGEST_NAME);
        let name = match fits {
            Some(fits) => fits.clone(),
            None => format!("{}-{:08x}", network.name(), digest_of_name(&name)),
        };
        let name = name.replace(|letter| !is_plain(letter), "-");
        let mut given = self.given.clone();
        given.add("name", vec![name]);
        make(&given).map_err(|error| miette!("{error}"))
    }

    /// The options without the one of this name.
    fn without(&self, name: &str) -> OptionValues {
        let mut given = OptionValues::default();
        for other in self.given.names().filter(|other| *other != name) {
            given.add(other, self.given.all(other).to_vec());
        }
        given
    }
}

impl FromArgMatches for Wanted {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        // The command has only these subcommands, and one is required.
        let asked = matches.subcommand().and_then(|(name, matches)| {
            let generator = generators().find(|generator| generator.name == name)?;
            Some((generator, matches))
        });
        let (generator, matches) = asked.expect("expected a subcommand");
        let mut given = machine_options::given(matches, generator.options);
        given.extend(machine_options::given(matches, &COMMON_OPTIONS));
        Ok(Self { generator, given })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for Wanted {
    fn augment_subcommands(command: Command) -> Command {
        command.subcommands(generators().map(|generator| {
            Command::new(generator.name)
                .about(generator.about)
                .args(args(generator.options))
                .args(args(&COMMON_OPTIONS))
        }))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        generators().any(|generator| generator.name == name)
    }
}

fn generators() -> impl Iterator<Item = &'static Generator> {
    machines()
        .machines()
        .iter()
        .flat_map(|machine| machine.generators)
}

/// The options as arguments. They may take lists, since no positional argument follows.
fn args(specs: &'static [OptionSpec]) -> impl Iterator<Item = clap::Arg> {
    let args = machine_options::args(&[("", specs)]).into_iter();
    args.map(|arg| {
        let spec = specs.iter().find(|spec| *arg.get_id() == spec.name);
        arg.num_args(1..=spec.map_or(1, |spec| spec.values))
    })
}

/// Writes the description of the chosen network to standard output.
///
/// # Errors
/// If the options do not make a network, or its description cannot be read back.
pub fn run(wanted: &Wanted) -> miette::Result<ExitCode> {
    print(&description(&*wanted.network()?)?)
}

/// The description of a network.
///
/// # Errors
/// If the description cannot be read back.
pub(super) fn description(network: &dyn Network) -> miette::Result<String> {
    // Check the network for contradictory options, such as rates within one octant.
    let mistakes = network.check_with(Effort::Bounded);
    if let Some(mistake) = mistakes.into_iter().next() {
        return Err(miette!(help = mistake.help.clone(), "{}", mistake.message)
            .wrap_err("these options do not describe a valid network"));
    }
    let text = described(network);
    if text.len() > MAX_DESCRIPTION_BYTES {
        return Err(miette!(
            help = "generate fewer slices: they are separate networks, and one of several \
                    identical slices represents them all",
            "the description would have {} bytes; the limit is {MAX_DESCRIPTION_BYTES}",
            text.len()
        ));
    }
    Ok(text)
}

fn described(network: &dyn Network) -> String {
    let summary = network.summary();
    format!(
        "# {summary}\n# Written by `phitwire topology generate`; check changes with `phitwire \
         topology check`.\n\n{}",
        network.write()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machines::machines;
    use phitwire::catalogue::Kind;

    fn wanted(generator: &str, line: &str) -> Result<Wanted, Error> {
        let words = ["generate", generator].into_iter().chain(line.split(' '));
        let command = Wanted::augment_subcommands(Command::new("generate"));
        let matches = command.try_get_matches_from(words)?;
        Wanted::from_arg_matches(&matches)
    }

    /// The required options of a generator with minimal values for a test: 1, or for text its value
    /// name with 2 for each capital letter.
    fn ones(generator: &Generator) -> String {
        let needed = generator.options.iter().filter(|option| option.required);
        let least = |option: &OptionSpec| match option.kind {
            Kind::Number(least, _) => least.max(1).to_string(),
            Kind::Text => option.value_name.replace(char::is_uppercase, "2"),
            Kind::Words(_) => 1.to_string(),
        };
        let words: Vec<String> = needed
            .map(|option| format!("--{} {}", option.name, least(option)))
            .collect();
        words.join(" ")
    }

    /// Options, and the name of the network that they generate.
    const SHAPES: [(&str, &str, &str); 11] = [
        ("blackwidow", "--processors 64 --rank 1.5", "r1.5-64"),
        ("blackwidow", "--processors 64 --rank 2", "r2-64"),
        ("blackwidow", "--processors 1024", "r2-1024"),
        ("blackwidow", "--processors 4 --rank 1", "r1-4"),
        (
            "dragonfly",
            "--groups 9 --chassis 2 --blades 8 --nics 2",
            "aries-9x2x8x2",
        ),
        (
            "dragonfly",
            "--groups 3 --chassis 6 --blades 2 --nics 1",
            "aries-3x6x2x1",
        ),
        (
            "dragonfly",
            "--groups 1 --chassis 3 --blades 16 --nics 4",
            "aries-1x3x16x4",
        ),
        (
            "dragonfly",
            "--groups 2 --chassis 1 --blades 2 --global-links 3",
            "aries-2x1x2x1-3",
        ),
        ("t3e", "--size 4x4x2", "t3e-4x4x2"),
        ("t3e", "--size 2x2x2 --channels optimised", "t3e-2x2x2"),
        ("t3e", "--size 4x2x2 --partial 2x2x1", "t3e-4x2x2-2x2x1"),
    ];

    #[test]
    fn one_name_is_one_network() {
        for (generator, line, name) in SHAPES {
            let network = wanted(generator, line).expect(line).network().expect(line);
            assert_eq!(network.name(), name, "{line}");
            let ready = machines().generate(name).expect(name).expect(name);
            assert_eq!(*network, *ready, "{line}");
        }
    }

    #[test]
    fn another_network_has_another_name() {
        for (generator, line, name) in [
            (
                "dragonfly",
                "--groups 2 --chassis 2 --blades 2 --black-links 15",
                "aries-2x2x2x1-black-links-15",
            ),
            (
                "dragonfly",
                "--groups 4 --chassis 1 --blades 2 --arrangement relative",
                "aries-4x1x2x1-relative",
            ),
            (
                "blackwidow",
                "--processors 64 --rank 2 --taper 1/2",
                "r2-64-taper-1-2",
            ),
            ("t3e", "--size 2x2x2 --adaptive no", "t3e-2x2x2-adaptive-no"),
        ] {
            let network = wanted(generator, line).expect(line).network().expect(line);
            assert_eq!(network.name(), name, "{line}");
            let again = machines().read("-", &described(&*network)).expect(name);
            assert_eq!(*again, *network, "{name}");
        }
    }

    #[test]
    fn generated_networks_of_every_machine_are_read_back() {
        for generator in generators() {
            let line = ones(generator) + " --name me --profile paper --paced 7";
            let wanted = wanted(generator.name, &line).expect("good options");
            let network = (generator.generate)(&wanted.given).expect("a network");
            assert_eq!(network.name(), "me", "{}", generator.name);
            let text = described(&*network);
            assert!(text.starts_with(&format!("# {}\n", network.summary())));
            assert!(text.contains("profile = \"paper\"\n") && text.contains("dilation = 7\n"));
            let again = machines().read("-", &text).expect("what was written");
            assert_eq!(&*again, &*network);
        }
    }

    #[test]
    fn missing_and_impossible_options_are_reported() {
        for generator in generators() {
            let line = ones(generator);
            for bad in [
                "--paced 0",
                "--profile thin",
                "--weight 3",
                "--name a --name b",
            ] {
                let refused = wanted(generator.name, &format!("{line} {bad}"));
                assert!(refused.is_err(), "{} {bad}", generator.name);
            }
            let needs = generator.options.iter().any(|option| option.required);
            assert_eq!(wanted(generator.name, "--name me").is_err(), needs);
        }
        assert!(wanted("nothing", "--name me").is_err());
        // The parser does not count values that one word lists.
        let line = "--processors 64 --rank 2 --taper 1,1,1,1";
        let wanted = wanted("blackwidow", line).expect("fractions");
        let refused = wanted.network().expect_err("one for each rank").to_string();
        assert_eq!(refused, "--taper 1: expected at most 3 values");
    }
}

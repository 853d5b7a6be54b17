//! Machine-specific options.

use clap::{ArgMatches, Args, Command, FromArgMatches};
use miette::miette;
use phitwire::catalogue::{ChoiceError, Kind, OptionError, OptionValues, Simulation};
use phitwire::net::Network;
use phitwire::sim::direct::Simulator;
use phitwire_nodes::nearest::did_you_mean;

use crate::cli::machine_options::{args, given};
use crate::machines::machines;

/// The given options of each machine.
#[derive(Clone, Debug)]
pub(super) struct OwnOptions(Vec<(Simulation, OptionValues)>);

pub(super) fn simulations() -> impl Iterator<Item = Simulation> {
    let machines = machines().machines().iter();
    machines.filter_map(|machine| machine.simulation)
}

impl Args for OwnOptions {
    fn augment_args(command: Command) -> Command {
        let all = simulations().map(|simulation| (simulation.machine, simulation.options));
        command.args(args(&all.collect::<Vec<_>>()))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for OwnOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = simulations().map(|machine| (machine, given(matches, machine.options)));
        Ok(Self(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl OwnOptions {
    /// Rejects options of `machine` that do not apply to runs of NICs.
    pub(super) fn refuse_others(&self, machine: &Simulation) -> miette::Result<()> {
        let mut names = self.0.iter().flat_map(|(_, given)| given.names());
        let Some(other) = names.find(|name| !machine.nic_options.contains(name)) else {
            return Ok(());
        };
        let names = machine.nic_options.iter().map(|name| format!("--{name}"));
        let names = names.collect::<Vec<_>>().join(", ");
        Err(miette!(
            help = match names.is_empty() {
                true => format!("{} networks have no options with --op", machine.machine),
                false => format!("{} networks accept {names}", machine.machine),
            },
            "--{other} does not apply to --op"
        ))
    }

    /// The machine of a network and its simulators: one, or several to compare. Rejects options of
    /// other machines.
    pub(super) fn of(
        &self,
        network: &dyn Network,
    ) -> miette::Result<(Simulation, Vec<Box<dyn Simulator>>)> {
        let (own, given) = self
            .0
            .iter()
            .find(|(machine, _)| (machine.is_of)(network))
            .ok_or_else(|| miette!("network {} cannot be simulated", network.name()))?;
        let mut names = self.0.iter().flat_map(|(_, given)| given.names());
        if let Some(other) = names.find(|name| !has(own, name)) {
            let machines = self.0.iter().map(|(machine, _)| machine);
            let machines = machines.filter(|machine| has(machine, other));
            let machines: Vec<_> = machines.map(|machine| machine.machine).collect();
            return Err(miette!(
                help = accepted_beside(own, other),
                "--{other} applies only to {} networks",
                machines.join(" and ")
            ));
        }
        let chosen = (own.choose)(given).map_err(|error| refused(own, &error))?;
        Ok((*own, chosen))
    }
}

fn has(machine: &Simulation, name: &str) -> bool {
    machine.options.iter().any(|option| option.name == name)
}

/// How a machine replaces an option of other machines, and the options that it has.
fn accepted_beside(own: &Simulation, other: &str) -> String {
    let instead = own.absent.iter().find(|(name, _)| *name == other);
    let instead = instead.map_or_else(String::new, |(_, instead)| format!("{instead}, and "));
    let names = own.options.iter().map(|option| option.name);
    let names: Vec<_> = names.map(|name| format!("--{name}")).collect();
    match names.is_empty() {
        true => format!("{} networks {instead}have no options", own.machine),
        false => format!(
            "{} networks {instead}accept {}",
            own.machine,
            names.join(", ")
        ),
    }
}

/// The error about options that a machine rejects, with the nearest word for a mistyped one.
fn refused(own: &Simulation, error: &ChoiceError) -> miette::Report {
    let near = match error {
        ChoiceError::Value(OptionError { name, value, .. }) => {
            let spec = own.options.iter().find(|option| option.name == *name);
            match spec.map(|spec| spec.kind) {
                Some(Kind::Words(words)) => did_you_mean(value, words),
                _ => String::new(),
            }
        }
        ChoiceError::Refused(_) => String::new(),
    };
    miette!("{error}{near}")
}

//! Simulation of a machine's networks, as the commands see it.

use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::{OptionError, OptionSpec, OptionValues};
use crate::net::{Describe, Network};
use crate::sim::direct::{Chosen, CycleModel, DirectModel, Simulator};
use crate::time::Duration;

/// A machine whose networks can be simulated by command.
pub trait Simulated: CycleModel<Topology: Describe> {
    /// Name of the machine for display.
    const MACHINE: &'static str = <Self::Topology as Describe>::FAMILY;
    /// Options for this machine's networks only.
    const OPTIONS: &'static [OptionSpec] = &[];
    /// Options that also apply to runs of NICs.
    const NIC_OPTIONS: &'static [&'static str] = &[];
    /// Options of other machines that this one cannot have, each with what its networks do instead.
    const ABSENT: &'static [(&'static str, &'static str)] = &[];

    /// The choices in `given`: one, or several to compare.
    ///
    /// # Errors
    /// If options are invalid or conflict.
    fn choose(given: &OptionValues) -> Result<Vec<Chosen<Self>>, ChoiceError> {
        let _ = given;
        let (name, options) = (None, Self::Options::default());
        Ok(vec![Chosen { name, options }])
    }
}

/// Why options are rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    #[error(transparent)]
    Value(#[from] OptionError),
    /// The values are valid, but rejected for another reason.
    #[error("{0}")]
    Refused(String),
}

/// A simulator for each choice of options, or why the options are rejected.
pub type Choice = Result<Vec<Box<dyn Simulator>>, ChoiceError>;

/// Simulation of a machine's networks.
#[derive(Clone, Copy, Debug)]
pub struct Simulation {
    /// Name of the machine for display.
    pub machine: &'static str,
    /// Options for this machine's networks only.
    pub options: &'static [OptionSpec],
    /// Options that also apply to runs of NICs.
    pub nic_options: &'static [&'static str],
    /// Options of other machines that this one cannot have, each with what its networks do instead.
    pub absent: &'static [(&'static str, &'static str)],
    /// Default size of a message in bytes.
    pub message_bytes: u8,
    pub max_message_bytes: u8,
    /// Cycle time.
    pub cycle: Duration,
    /// Whether the machine has direct links, which pass phits without frames.
    pub has_direct_links: bool,
    /// Schema of [`Simulator::about`].
    pub about: fn(&mut SchemaGenerator) -> Schema,
    /// Name in reports for routes other than the preferred one, empty if routers do not choose: see
    /// [`CycleModel::OTHER_WAYS`].
    pub other_ways: &'static str,
    /// Whether a network belongs to this machine.
    pub is_of: fn(&dyn Network) -> bool,
    /// Makes simulators from options: one, or several to compare.
    pub choose: fn(&OptionValues) -> Choice,
}

impl Simulation {
    pub const fn of<M: Simulated>() -> Self {
        Self {
            machine: M::MACHINE,
            options: M::OPTIONS,
            nic_options: M::NIC_OPTIONS,
            absent: M::ABSENT,
            message_bytes: M::MESSAGE_BYTES,
            max_message_bytes: M::MAX_MESSAGE_BYTES,
            cycle: M::CYCLE,
            has_direct_links: M::Direct::EXISTS,
            about: M::About::json_schema,
            other_ways: M::OTHER_WAYS,
            is_of: |network| network.of_machine::<M::Topology>().is_some(),
            choose: |given| {
                given.check(M::OPTIONS)?;
                let chosen = M::choose(given)?.into_iter();
                Ok(chosen
                    .map(|one| Box::new(one) as Box<dyn Simulator>)
                    .collect())
            },
        }
    }
}

//! How the networks of a machine are simulated, as the commands see it.

use super::{Given, OptionError, OptionSpec};
use crate::net::{Describe, Network};
use crate::sim::direct::{Chosen, CycleModel, DirectModel, Simulator};
use crate::time::Duration;

/// A machine whose networks can be simulated by command.
pub trait Simulated: CycleModel<Topology: Describe> {
    /// What the machine is called in texts.
    const MACHINE: &'static str = <Self::Topology as Describe>::FAMILY;
    /// What can be chosen for its networks only.
    const OPTIONS: &'static [OptionSpec] = &[];

    /// What was chosen: one choice, or several to be compared.
    ///
    /// # Errors
    /// Options that cannot be had, or not together.
    fn choose(given: &Given) -> Result<Vec<Chosen<Self>>, ChoiceError> {
        let _ = given;
        let (name, options) = (None, Self::Options::default());
        Ok(vec![Chosen { name, options }])
    }
}

/// Why options cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    /// A value that cannot be one.
    #[error(transparent)]
    Value(#[from] OptionError),
    /// Values that there are, and that cannot be had for another reason.
    #[error("{0}")]
    Refused(String),
}

/// The machine with what was chosen, once or several times, or why it cannot be had.
pub type Choice = Result<Vec<Box<dyn Simulator>>, ChoiceError>;

/// How the networks of a machine are simulated.
#[derive(Clone, Copy, Debug)]
pub struct Simulation {
    /// What the machine is called in texts.
    pub machine: &'static str,
    /// What can be chosen for its networks only.
    pub options: &'static [OptionSpec],
    /// Bytes of a message if nothing else is said.
    pub message_bytes: u8,
    /// Bytes of the largest message.
    pub max_message_bytes: u8,
    /// Time of a cycle.
    pub cycle: Duration,
    /// Whether its links can hand phits over, or carry frames only.
    pub has_direct_links: bool,
    /// Whether a network is one of this machine.
    pub is_of: fn(&dyn Network) -> bool,
    /// What was chosen: one choice, or several to be compared.
    pub choose: fn(&Given) -> Choice,
}

impl Simulation {
    /// How the networks of this machine are simulated.
    pub const fn of<M: Simulated>() -> Self {
        Self {
            machine: M::MACHINE,
            options: M::OPTIONS,
            message_bytes: M::MESSAGE_BYTES,
            max_message_bytes: M::MAX_MESSAGE_BYTES,
            cycle: M::CYCLE,
            has_direct_links: M::Direct::EXISTS,
            is_of: |network| network.of_machine::<M::Topology>().is_some(),
            choose: |given| {
                let chosen = M::choose(given)?.into_iter();
                Ok(chosen
                    .map(|one| Box::new(one) as Box<dyn Simulator>)
                    .collect())
            },
        }
    }
}

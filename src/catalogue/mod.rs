//! What a machine offers to the commands: registering one is a [`Machine`] in the list of
//! [`machine`](crate::machine).

mod options;
mod simulation;

pub use options::{Given, Kind, OptionError, OptionSpec};
pub use simulation::{Choice, ChoiceError, Simulated, Simulation};

use crate::net::Family;
use crate::sim::soak;

/// A machine as the commands see it.
#[derive(Debug)]
pub struct Machine {
    /// Its networks: how they are read and which of them have names.
    pub networks: Family,
    /// How its networks are simulated.
    pub simulation: Simulation,
    /// What is soaked of it, in the order in which a seed is run.
    pub soak: &'static [soak::Family],
}

//! What a machine offers to the commands: registering one is a [`Machine`] in the list of
//! [`machine`](crate::machine).

mod options;

pub use options::{Given, Kind, OptionError, OptionSpec};

use crate::net::Family;

/// A machine as the commands see it.
#[derive(Debug)]
pub struct Machine {
    /// Its networks: how they are read and which of them have names.
    pub networks: Family,
}

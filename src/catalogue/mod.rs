//! What a machine offers to the commands: a [`Machine`], which a program lists in its [`Catalogue`].

mod generator;
mod list;
mod options;
mod simulation;

pub use generator::{COMMON_OPTIONS, Generator, Outline, common};
pub use list::Catalogue;
pub use options::{Check, Given, Kind, OptionError, OptionSpec, readable};
pub use simulation::{Choice, ChoiceError, Simulated, Simulation};

use phitwire_framing::carrier::frame::Frame;

use crate::link::Glance;
use crate::net::Family;
use crate::reproduce::Reproduction;
use crate::sim::soak;

/// A machine as the commands see it.
#[derive(Debug)]
pub struct Machine {
    /// Its networks: how they are read and which of them have names.
    pub networks: Family,
    /// How its networks are simulated, if they are.
    pub simulation: Option<Simulation>,
    /// What is soaked of it, in the order in which a seed is run.
    pub soak: &'static [soak::Family],
    /// What makes networks of it from options.
    pub generators: &'static [Generator],
    /// The tables that its models give again.
    pub tables: &'static [Reproduction],
    /// Descriptions that come with the commands: names and texts.
    pub ready: &'static [(&'static str, &'static str)],
    /// What a frame of its links carries; `None` for other frames, and for damaged ones.
    pub glance: fn(&Frame<'_>) -> Option<Glance>,
}

impl Machine {
    /// A machine with these networks, and nothing that it may have besides.
    pub const fn new(networks: Family) -> Self {
        Self {
            networks,
            simulation: None,
            soak: &[],
            generators: &[],
            tables: &[],
            ready: &[],
            glance: |_| None,
        }
    }
}

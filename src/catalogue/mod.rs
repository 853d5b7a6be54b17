//! Contributions of a machine to commands: a [`Machine`], listed in a program's [`Catalogue`].

mod generator;
mod list;
mod options;
mod simulation;

pub use generator::{COMMON_OPTIONS, Generator, Outline, common};
pub use list::Catalogue;
pub use options::{Check, Kind, OptionError, OptionSpec, OptionValues, readable};
pub use simulation::{Choice, ChoiceError, Simulated, Simulation};

use phitwire_framing::carrier::frame::Frame;
use phitwire_framing::carrier::lane_layout::LaneLayout;

use crate::link::FrameContents;
use crate::net::Family;
use crate::reproduce::Reproduction;
use crate::sim::soak;

/// A machine as the commands see it.
#[derive(Debug)]
pub struct Machine {
    /// Reads descriptions of the machine's networks, and generates networks by name.
    pub networks: Family,
    /// The kinds of frames on the machine's links, except training frames.
    pub frames: &'static [LaneLayout],
    /// How to simulate the networks, if supported.
    pub simulation: Option<Simulation>,
    /// Families of soak cases, in the order in which they run for each seed.
    pub soak: &'static [soak::Family],
    /// Generators of the machine's networks.
    pub generators: &'static [Generator],
    /// The tables that its models reproduce.
    pub tables: &'static [Reproduction],
    /// Descriptions shipped with the commands: names and texts.
    pub ready: &'static [(&'static str, &'static str)],
    /// Contents of a frame of the machine's links; `None` for other and damaged frames.
    pub frame_contents: fn(&Frame<'_>) -> Option<FrameContents>,
}

impl Machine {
    /// A machine with only these networks, whose links carry these kinds of frames.
    pub const fn new(networks: Family, frames: &'static [LaneLayout]) -> Self {
        Self {
            networks,
            frames,
            simulation: None,
            soak: &[],
            generators: &[],
            tables: &[],
            ready: &[],
            frame_contents: |_| None,
        }
    }
}

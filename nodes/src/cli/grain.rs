//! What moves through routers at once, as arguments name it.

use clap::ValueEnum;
use phitwire::chip::Grain;

/// Grains by their names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum GrainName {
    /// Flit by flit.
    #[default]
    Flit,
    /// Whole packets.
    Packet,
}

impl From<GrainName> for Grain {
    fn from(name: GrainName) -> Self {
        match name {
            GrainName::Flit => Self::Flit,
            GrainName::Packet => Self::Packet,
        }
    }
}

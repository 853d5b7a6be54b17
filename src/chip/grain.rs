//! Granularity of a chip's pipeline.

use schemars::JsonSchema;
use serde::Serialize;

/// The unit that moves through a chip's stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Grain {
    /// Phits or flits, as on the chip.
    #[default]
    Flit,
    /// Whole packets, if the chip's core supports them.
    Packet,
}

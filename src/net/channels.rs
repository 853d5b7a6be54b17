//! Networks whose routers have tables of the virtual channel on which a packet enters a ring.

use core::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use super::mistake::Problems;
use super::side_networks::RegisterValue;

/// Message for machines that are not [`TunableChannels`].
pub const NO_CHANNEL_TABLES: &str = "this machine has no virtual-channel tables";

/// Options of a search for tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelSearch {
    /// The machine's names of the rings wanted; empty: all.
    pub rings: Vec<String>,
    pub seed: u64,
    /// Entry changes that a run tries; `None`: the machine's default.
    pub steps: Option<u32>,
}

/// Tables found by a search.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundChannels {
    /// The tables and their quality, for people.
    pub text: String,
    /// The tables and their quality, for programs.
    pub report: ChannelReport,
    /// The tables as a file, which [`TunableChannels::read_channel_tables`] reads.
    pub file: String,
}

/// Tables found by a search, and their quality.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ChannelReport {
    /// Name of the network.
    pub name: String,
    /// Seed of the search.
    pub seed: u64,
    /// Entry changes that a run of the search tried; null: the machine's default.
    pub steps: Option<u32>,
    /// Each kind of ring.
    pub rings: Vec<RingReport>,
    /// Channels that could wait for each other in a cycle with these tables; null: no cycle.
    pub circle: Option<String>,
}

/// The tables of rings of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RingReport {
    /// Dimensions with such rings.
    pub dimensions: Vec<&'static str>,
    /// Rings of the kind.
    pub count: usize,
    /// Ordinates of the nodes.
    pub ordinates: Vec<u8>,
    /// Ordinates of the datelines in + and in - direction.
    pub datelines: [u8; 2],
    /// The table in + direction: a row of channels for each node.
    pub plus: Vec<String>,
    /// The table in - direction.
    pub minus: Vec<String>,
    /// How unevenly the links' channels are used.
    pub imbalance: Vec<Imbalance>,
}

/// How unevenly the channels of links are used, in one direction.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Imbalance {
    /// The direction: `+` or `-`.
    pub way: &'static str,
    /// Nodes of the ring, or of the parts it is cut into.
    pub nodes: usize,
    /// Imbalance before the search.
    pub before: LinkImbalance,
    /// Imbalance with the tables found.
    pub after: LinkImbalance,
}

/// Imbalance of the links of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LinkImbalance {
    /// Average over all links.
    pub average: f64,
    /// Imbalance of the worst link.
    pub maximum: f64,
}

/// A network of a machine whose routers have tables of virtual channels. A search finds such
/// tables, and they can be changed while the network runs.
pub trait TunableChannels: fmt::Debug {
    /// Searches for tables of this network's rings.
    ///
    /// # Errors
    /// Describes which rings do not exist or cannot be searched, or why no ring has tables.
    fn search_channels(&self, wanted: &ChannelSearch) -> Result<FoundChannels, String>;

    /// The registers of all routers that hold tables, with their initial values.
    ///
    /// # Errors
    /// The reason why there are no tables.
    fn channel_tables(&self) -> Result<Vec<RegisterValue>, String>;

    /// The register values of a file of tables, which may come from any source, for the rings that
    /// it names. Diagnostics call it `file`.
    ///
    /// # Errors
    /// The mistakes in the file, with their positions. Use [`judge_channels`](Self::judge_channels)
    /// to check whether the tables are safe.
    fn read_channel_tables(&self, file: &str, bytes: &[u8])
    -> Result<Vec<RegisterValue>, Problems>;

    /// Checks that packets never wait for each other in a cycle while the registers change one by
    /// one from `now` to `new`, on the paths of the description.
    ///
    /// # Errors
    /// Describes the cycle.
    fn judge_channels(&self, now: &[RegisterValue], new: &[RegisterValue]) -> Result<(), String>;
}

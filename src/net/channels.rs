//! Networks whose routers have tables of the virtual channel on which a packet enters a ring.

use core::fmt;

use serde_json::Value;

use super::mistake::Problems;
use super::side_networks::RegisterValue;

/// Message for machines that are not [`TunableChannels`].
pub const NO_CHANNEL_TABLES: &str = "this machine has no virtual-channel tables";

/// Options of a search for tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelSearch {
    /// The machine's names of the rings wanted; empty: all.
    pub rings: Vec<String>,
    /// Seed of the search.
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
    pub json: Value,
    /// The tables as a file, which [`TunableChannels::read_channel_tables`] reads.
    pub file: String,
    /// Channels that could wait for each other in a cycle with these tables; `None`: no cycle.
    pub circle: Option<String>,
}

/// A network of a machine whose routers have tables of virtual channels, which are searched by
/// computation and can be changed while the network runs.
pub trait TunableChannels: fmt::Debug {
    /// Searches for tables of this network's rings.
    ///
    /// # Errors
    /// In words, which rings do not exist or cannot be searched, or why no ring has tables.
    fn search_channels(&self, wanted: &ChannelSearch) -> Result<FoundChannels, String>;

    /// The registers of all routers that hold tables, with their initial values.
    ///
    /// # Errors
    /// The reason why there are no tables.
    fn channel_tables(&self) -> Result<Vec<RegisterValue>, String>;

    /// The register values of a file of tables, from any source, for the rings that it names.
    /// Diagnostics call it `file`.
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
    /// In words: the cycle.
    fn judge_channels(&self, now: &[RegisterValue], new: &[RegisterValue]) -> Result<(), String>;
}

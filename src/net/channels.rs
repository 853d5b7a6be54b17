//! Networks whose routers say by tables which virtual channel a packet enters a ring on.

use core::fmt;

use serde_json::Value;

use super::mistake::Problems;
use super::side_networks::RegisterValue;

/// What is said of machines that are not [`TunableChannels`].
pub const NO_CHANNEL_TABLES: &str = "this machine has no tables of virtual channels";

/// Which tables are looked for, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelSearch {
    /// The machine's words for the rings that are wanted; none stands for all.
    pub rings: Vec<String>,
    /// What the search draws from.
    pub seed: u64,
    /// Changes of an entry that a run tries; `None` = as many as the machine's own search.
    pub steps: Option<u32>,
}

/// Tables that a search has found.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundChannels {
    /// The tables and what they are worth, for people.
    pub text: String,
    /// The same for programs.
    pub json: Value,
    /// The tables as a file, which [`TunableChannels::read_channel_tables`] reads.
    pub file: String,
    /// Channels that could wait for each other in a circle by them; `None` = none can.
    pub circle: Option<String>,
}

/// A network of a machine whose routers have tables of virtual channels, which are looked for by a
/// computation and can be changed while the network runs.
pub trait TunableChannels: fmt::Debug {
    /// Looks for tables of this network's rings.
    ///
    /// # Errors
    /// In words, which rings there are not or cannot be searched, or why no ring has tables.
    fn search_channels(&self, wanted: &ChannelSearch) -> Result<FoundChannels, String>;

    /// The registers of all routers that hold tables, as they are from the beginning.
    ///
    /// # Errors
    /// In words, why there are none.
    fn channel_tables(&self) -> Result<Vec<RegisterValue>, String>;

    /// What the registers are to hold by a file of tables, whoever wrote it: those of the rings that
    /// it names. `file` is what diagnostics call it.
    ///
    /// # Errors
    /// What is wrong with the file, each with its place. Whether the tables are safe,
    /// [`judge_channels`](Self::judge_channels) says.
    fn read_channel_tables(&self, file: &str, bytes: &[u8])
    -> Result<Vec<RegisterValue>, Problems>;

    /// Whether packets never wait for each other in a circle where all registers hold what `now`
    /// says and then, one after the other, what `new` says; on the ways that the description has.
    ///
    /// # Errors
    /// In words: the circle.
    fn judge_channels(&self, now: &[RegisterValue], new: &[RegisterValue]) -> Result<(), String>;
}

//! Command-line options of the stranger.

use clap::{Parser, ValueEnum};

/// Kind of frames to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// Late, unchanged copies of a share of the link's own frames.
    Copies,
    /// The link's own frames, recorded for a while, over and over.
    Replay,
    /// The link's own frames with another epoch, link, fabric or end in their header, and a valid
    /// check.
    Foreign,
    /// The link's own frames with fewer lanes in their header, and a valid check.
    Lanes,
    /// Training frames of this session that ask for fewer lanes.
    Asks,
    /// Training frames of this session whose sender says that it is disabled.
    Disabled,
    /// Training frames of this session that report the sender's last lane as dead.
    Dead,
    /// Training frames of incarnations that never existed.
    Restarted,
    /// The link's own frames, truncated at random.
    Truncated,
    /// The link's own frames with bytes appended; over UDP also beyond the MTU.
    Oversize,
    /// The link's own frames with 1 to 16 bits flipped anywhere.
    Flipped,
    /// Random bytes, half of them after a valid header with a wrong check.
    Random,
}

impl Form {
    pub fn name(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// A stranger on the wires of a lab.
#[derive(Debug, Parser)]
pub struct Options {
    /// Lab to attack.
    #[arg(long)]
    pub lab: String,
    /// Links to attack, by number in the topology, each from both ends.
    #[arg(long, value_delimiter = ',', required = true)]
    pub links: Vec<u16>,
    /// Kind of frames to send.
    #[arg(long, value_enum)]
    pub form: Form,
    /// Frames to send from each end.
    #[arg(long, default_value_t = 100_000)]
    pub count: u64,
    /// Frames per second from each end; 0: as fast as possible. Copies have the rate of their
    /// originals.
    #[arg(long, default_value_t = 0)]
    pub rate: u64,
    /// Copies: delays in ms, of which each copy draws one. Replay: age of the recording at its first
    /// playback, from the first value.
    #[arg(long, value_delimiter = ',', default_value = "0")]
    pub delay_ms: Vec<u64>,
    /// Copies: percentage of frames to copy.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub share: u64,
    /// Copies: number of times each is sent.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub times: u64,
    /// Replay: length of the recording in ms.
    #[arg(long, default_value_t = 200)]
    pub record_ms: u64,
    /// Stop after this many seconds.
    #[arg(long, default_value_t = 60)]
    pub seconds: u64,
    /// Random seed.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

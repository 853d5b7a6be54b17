//! What the stranger is told to do.

use clap::{Parser, ValueEnum};

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// A share of the link's own frames once more, unchanged, later.
    Copies,
    /// The link's own frames, recorded for a while, over and over.
    Replay,
    /// The link's own frames with another epoch, link, fabric or end in their header, its check
    /// right.
    Foreign,
    /// The link's own frames with fewer lanes in their header, its check right.
    Lanes,
    /// Training frames of this session that ask for fewer lanes.
    Asks,
    /// Training frames of this session whose sender says that it is disabled.
    Disabled,
    /// Training frames of this session whose sender says that its last lane is gone.
    Dead,
    /// Training frames of incarnations that never were.
    Restarted,
    /// The link's own frames, cut off anywhere.
    Truncated,
    /// The link's own frames and more behind them; by UDP also more than an MTU.
    Oversize,
    /// The link's own frames with 1 to 16 bits flipped anywhere.
    Flipped,
    /// Random bytes, half of them behind a header as it should be, but for its check.
    Random,
}

impl Form {
    /// Its name in the report.
    pub fn name(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// A stranger on the wires of a lab.
#[derive(Debug, Parser)]
pub struct Options {
    /// The lab.
    #[arg(long)]
    pub lab: String,
    /// Links to attack, by their number in the topology; each from both of its ends.
    #[arg(long, value_delimiter = ',', required = true)]
    pub links: Vec<u16>,
    /// What to send.
    #[arg(long, value_enum)]
    pub form: Form,
    /// Frames to send out of each end.
    #[arg(long, default_value_t = 100_000)]
    pub count: u64,
    /// Frames per second out of each end; 0: as fast as it goes. Copies have the rate of what they
    /// copy.
    #[arg(long, default_value_t = 0)]
    pub rate: u64,
    /// Copies: how late, each by one of these. Replay: how old the record is when it is played
    /// first, by the first.
    #[arg(long, value_delimiter = ',', default_value = "0")]
    pub delay_ms: Vec<u64>,
    /// Copies: of 100 frames, how many are copied.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub share: u64,
    /// Copies: how often each is sent.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub times: u64,
    /// Replay: how long to record.
    #[arg(long, default_value_t = 200)]
    pub record_ms: u64,
    /// Ends after this many seconds, whatever was sent until then.
    #[arg(long, default_value_t = 60)]
    pub seconds: u64,
    /// Seed of all draws.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

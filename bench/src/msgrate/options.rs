//! The command line.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use phitwire::nic::RoutingMode;
use phitwire_tools::cli::pages::{OTHER_CALLS, VERSION};

/// Measure the message rate of a running lab, verifying every message.
///
/// A put is an acknowledged remote write, an atomic operation a fetching addition of one. Without
/// --from, all NICs of the lab take part in --pattern.
///
/// The rate is the number of acknowledged messages over the time in which messages were offered or
/// acknowledged: from the first message until the sources had offered all of their messages
/// (--seconds, --count), or until the last acknowledgement if that came later. The wait for
/// timeouts after a fault is reported separately.
///
/// With --rate the lab is held at a fixed load: each sender issues that many messages per second,
/// and the verdict reports what was offered and accepted per sender, and how many messages were due
/// but not sent. On machines whose routers choose between minimal and non-minimal routes it reports
/// the share of the latter.
///
/// Only one tool at a time can measure a NIC; runs on other NICs are independent. A run ends with
/// the tool, even if the tool is killed. Processes that died, restarted or stopped during the run
/// are named, including routers.
///
/// The exit status is 1 when anything was lost, duplicated, corrupted, misordered, refused or read
/// from unwritten memory (such as that of a target restarted during the run), a target was
/// unreachable or refused the run, or a NIC did not survive the run; and 2 when the measurement
/// could not be made, no target was reachable or took part, or another tool is measuring. SIGINT
/// and SIGTERM stop the sending early: what was sent is still accounted for, and the exit status is
/// 130 if that is clean; a second signal exits immediately.
#[derive(Clone, Debug, Parser)]
#[command(name = "phitwire-msgrate", version = VERSION, after_help = OTHER_CALLS)]
pub struct Options {
    /// Lab
    #[arg(long, value_name = "NAME")]
    pub lab: String,
    /// NICs that send
    #[arg(long, value_name = "NODE", value_delimiter = ',', requires = "to")]
    pub from: Vec<String>,
    /// NICs that they send to, in turn
    #[arg(long, value_name = "NODE", value_delimiter = ',', requires = "from")]
    pub to: Vec<String>,
    /// Traffic pattern
    #[arg(long, value_enum, default_value_t, conflicts_with = "from")]
    pub pattern: PatternName,
    /// Targets of `--pattern hotspot` [default: the lab's first NIC]
    #[arg(
        long,
        value_name = "NODE",
        value_delimiter = ',',
        conflicts_with = "from"
    )]
    pub hot: Vec<String>,
    /// Percentage of the messages that go to the hot spot
    #[arg(long, value_name = "PERCENT", default_value_t = 20,
          value_parser = clap::value_parser!(u8).range(1..=100))]
    pub hot_percent: u8,
    /// Operation of every message
    #[arg(long, value_enum, default_value_t)]
    pub op: Op,
    /// Payload bytes per message: 1 to 32; where NICs have block transfers (above 64 bytes), up to
    /// 16 MiB, with gets of up to 64 bytes in multiples of 4. Atomic operations: 8. Several sizes
    /// are measured in turn
    #[arg(long, value_name = "B", value_delimiter = ',', default_value = "8",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(phitwire::nic::MAX_BLOCK_SIZE)))]
    pub size: Vec<u32>,
    /// Routing mode of the packets, on machines that offer a choice [default: adaptive0; puts
    /// below 8 bytes: ordered]
    #[arg(long, value_enum, value_name = "MODE")]
    pub routing: Option<RoutingName>,
    /// Outstanding messages per sender [default: 2048, programs 256]
    #[arg(long, value_name = "W",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(phitwire::nic::MAX_WINDOW)))]
    pub window: Option<u32>,
    /// Messages per second issued by each sender, whether or not earlier ones were answered; a
    /// sender that falls behind catches up by at most --window messages [default: as fast as
    /// --window allows]
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=phitwire::nic::MAX_RATE))]
    pub rate: Option<u64>,
    /// Gaps between the messages of --rate: equal, or random like those of the sources of `phitwire
    /// sim`
    #[arg(
        long,
        value_enum,
        value_name = "GAPS",
        requires = "rate",
        default_value = "even"
    )]
    pub gaps: GapsName,
    /// Seconds to send for [default: 10, or no limit with --count]
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub seconds: Option<f64>,
    /// Maximum number of messages per sender
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Random seed of destinations and permutations
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Send from programs, one at the door of each NIC, instead of from the NICs themselves. All
    /// run inside this tool, which sees all their memory and compares every message at the end.
    /// They cannot choose routes or keep a rate
    #[arg(long, conflicts_with_all = ["routing", "rate"])]
    pub client: bool,
    /// Plot rates and latencies against message size
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
    /// Write the latencies in HdrHistogram's text format, in microseconds; for several sizes one
    /// file each, with the size in its name
    #[arg(long, value_name = "FILE.hgrm")]
    pub hgrm: Option<PathBuf>,
    /// Print one JSON object (an array for several sizes) instead of a table
    #[arg(long)]
    pub json: bool,
}

/// `--gaps`; see [`phitwire::nic::Gaps`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum GapsName {
    /// Equal, starting at a random time
    #[default]
    Even,
    /// Random, with a geometric distribution
    Random,
}

impl From<GapsName> for phitwire::nic::Gaps {
    fn from(name: GapsName) -> Self {
        match name {
            GapsName::Even => Self::Even,
            GapsName::Random => Self::Random,
        }
    }
}

/// `--pattern`; see [`phitwire::nic::TrafficPattern`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PatternName {
    /// Each message to a random other NIC
    #[default]
    Uniform,
    /// To the next NIC
    Neighbour,
    /// To the NIC with all index bits inverted
    BitComplement,
    /// To the NIC with the index bits reversed
    BitReverse,
    /// To the NIC with the index bits rotated left
    Shuffle,
    /// To the NIC with the halves of the index bits exchanged
    Transpose,
    /// To the NIC halfway round
    Tornado,
    /// To the NIC given by a random permutation
    Permutation,
    /// Each to a random NIC of the next group (machines with groups)
    GroupAdversarial,
    /// A percentage of all messages to --hot
    Hotspot,
}

/// `--op`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Op {
    /// Acknowledged remote writes
    #[default]
    Put,
    /// Remote reads
    Get,
    /// Remote fetching additions of one to 64-bit words, on NICs that support them
    Amo,
}

/// `--op` of benchmarks of two NICs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PairOp {
    /// Acknowledged remote writes
    #[default]
    Put,
    /// Remote reads
    Get,
    /// Remote fetching additions of one to 64-bit words, on NICs that support them
    Amo,
    /// Messages into previously posted receives, with --client
    Send,
}

impl PairOp {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Get => "get",
            Self::Amo => "amo",
            Self::Send => "send",
        }
    }

    /// The equivalent operation of NICs without programs, if there is one.
    pub const fn plain(self) -> Option<Op> {
        match self {
            Self::Put => Some(Op::Put),
            Self::Get => Some(Op::Get),
            Self::Amo => Some(Op::Amo),
            Self::Send => None,
        }
    }
}

impl From<Op> for PairOp {
    fn from(op: Op) -> Self {
        match op {
            Op::Put => Self::Put,
            Op::Get => Self::Get,
            Op::Amo => Self::Amo,
        }
    }
}

/// `--routing`; see [`phitwire::nic::RoutingMode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RoutingName {
    /// By load alone
    Adaptive0,
    /// By load, with a bias towards minimal paths that grows along the path
    Adaptive1,
    /// By load, with a small bias towards minimal paths
    Adaptive2,
    /// By load, with a large bias towards minimal paths
    Adaptive3,
    /// A minimal path by hash: ordered
    #[value(alias = "in-order")]
    Ordered,
    /// A non-minimal path by hash: ordered
    OrderedNonMinimal,
    /// A minimal path
    Minimal,
    /// A non-minimal path
    Valiant,
    /// A minimal path by a hash that includes the address: ordered for each cache line
    MinHash,
    /// A non-minimal path by a hash that includes the address: ordered for each cache line
    NminHash,
}

impl From<RoutingName> for RoutingMode {
    fn from(name: RoutingName) -> Self {
        match name {
            RoutingName::Adaptive0 => Self::Adaptive0,
            RoutingName::Adaptive1 => Self::Adaptive1,
            RoutingName::Adaptive2 => Self::Adaptive2,
            RoutingName::Adaptive3 => Self::Adaptive3,
            RoutingName::Ordered => Self::Ordered,
            RoutingName::OrderedNonMinimal => Self::OrderedNonMinimal,
            RoutingName::Minimal => Self::Minimal,
            RoutingName::Valiant => Self::Valiant,
            RoutingName::MinHash => Self::MinHash,
            RoutingName::NminHash => Self::NminHash,
        }
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    // Accept a nanosecond to a day; other values are mistakes.
    match text.parse::<f64>() {
        Ok(seconds) if (1e-9..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("expected a number of seconds, above 0 and at most 86400".to_owned()),
    }
}

impl Options {
    /// Number of messages that each sender keeps outstanding.
    pub fn window(&self) -> u32 {
        let usual = if self.client { 256 } else { 2048 };
        self.window.unwrap_or(usual)
    }

    /// Duration of sending in nanoseconds; zero: no limit.
    pub fn duration_ns(&self) -> u64 {
        match (self.seconds, self.count) {
            (Some(seconds), _) => ((seconds * 1e9) as u64).max(1),
            (None, Some(_)) => 0,
            (None, None) => 10_000_000_000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(words: &str) -> Result<Options, clap::Error> {
        Options::try_parse_from(
            ["phitwire-msgrate"]
                .into_iter()
                .chain(words.split_whitespace()),
        )
    }

    #[test]
    fn the_definition_is_consistent() {
        Options::command().debug_assert();
    }

    #[test]
    fn the_options_of_the_manual_are_understood() {
        let options = parse(
            "--lab demo --from n0 --to n1,n2 --op get --size 32 --window 16 --seconds 0.5 --json",
        )
        .expect("all are options");
        assert_eq!((options.from.len(), options.to.len()), (1, 2));
        assert_eq!(options.op, Op::Get);
        assert_eq!(options.duration_ns(), 500_000_000);
        let options =
            parse("--lab demo --pattern group-adversarial --rate 250000").expect("a load");
        assert_eq!(options.pattern, PatternName::GroupAdversarial);
        assert_eq!(options.rate, Some(250_000));
        let options = parse("--lab demo --pattern bit-complement").expect("a pattern");
        assert_eq!(options.pattern, PatternName::BitComplement);
        assert_eq!(options.duration_ns(), 10_000_000_000);
        assert_eq!(
            parse("--lab demo --count 5")
                .expect("a count")
                .duration_ns(),
            0
        );
    }

    #[test]
    fn contradictory_options_are_refused() {
        for words in [
            "",
            "--lab demo --from n0",
            "--lab demo --to n0",
            "--lab demo --from n0 --to n1 --pattern uniform",
            "--lab demo --size 0",
            "--lab demo --size 16777217",
            "--lab demo --routing anyhow",
            "--lab demo --window 0",
            "--lab demo --rate 0",
            "--lab demo --rate 1000000001",
            "--lab demo --rate 0.5",
            "--lab demo --seconds 0",
            "--lab demo --seconds soon",
            "--lab demo --count 0",
            "--lab demo --hot-percent 101",
            "--lab demo --pattern upwards",
            "--lab demo --client --rate 5",
            "--lab demo --client --routing minimal",
        ] {
            assert!(parse(words).is_err(), "{words}");
        }
    }
}

//! The command line.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand};
use phitwire::nic::MAX_BLOCK_SIZE;
use phitwire::nic::{Collective, MAX_BRANCHING};
use phitwire_tools::cli::pages::{OTHER_CALLS, VERSION};

use crate::msgrate::{PairOp, RoutingName};

/// Measure latency, bandwidth, random updates and collective operations on a running lab, verifying
/// every byte and result.
///
/// Rates are over the time in which messages were offered or acknowledged; they exclude the wait
/// for timeouts after a fault. Only one tool at a time can measure a NIC, and its runs end with it.
///
/// The exit status is 1 when anything was lost, duplicated, corrupted, wrong or read from unwritten
/// memory; 2 when a measurement could not be made; and 130 when SIGINT or SIGTERM interrupted a run
/// that was clean so far. A second signal exits immediately.
#[derive(Clone, Debug, Parser)]
#[command(name = "phitwire-bench", version = VERSION, after_help = OTHER_CALLS)]
pub struct Options {
    /// Benchmark
    #[command(subcommand)]
    pub benchmark: Benchmark,
}

/// What to measure.
#[derive(Clone, Debug, Subcommand)]
pub enum Benchmark {
    /// Time from issue to acknowledgement, one message at a time
    Latency(PairOptions),
    /// Payload per second from one NIC to another
    Bandwidth(PairOptions),
    /// Payload per second from one NIC to another while all links of the lab lose frames, one row
    /// per loss rate. Impairs the links (with netem, or else nftables), and clears them at the end
    Goodput(GoodputOptions),
    /// Payload per second between two NICs, in both directions at once
    Bibw(PairOptions),
    /// Random updates: fetching additions to random words of all NICs, each source to words of its
    /// own. Only where NICs have atomic operations
    Gups(SetOptions),
    /// A sum over all NICs, returned to all of them, where they have collective engines
    Allreduce(AllreduceOptions),
    /// A barrier across all NICs, where they have collective engines; with --unit, by hardware
    /// barrier units
    Barrier(BarrierOptions),
    /// Eurekas, and the barriers that follow them, by hardware barrier units
    Eureka(EurekaOptions),
    /// Messages from every NIC to every other
    Alltoall(AlltoallOptions),
}

/// Options common to all benchmarks.
#[derive(Args, Clone, Debug)]
pub struct Common {
    /// Lab
    #[arg(long, value_name = "NAME")]
    pub lab: String,
    /// Seconds per row of the table
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = seconds)]
    pub seconds: f64,
    /// Messages of each source per row, instead of --seconds [message benchmarks only]
    #[arg(short, long, value_name = "N", conflicts_with = "seconds", value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: Option<u64>,
    /// Warm-up messages of each source before a row, verified but not measured [message benchmarks
    /// only]
    #[arg(short = 'x', long, value_name = "N", default_value_t = 0)]
    pub warmup: u64,
    /// Print a JSON array, with an object per row, instead of a table
    #[arg(long)]
    pub json: bool,
}

/// Output files of message benchmarks.
#[derive(Args, Clone, Debug, Default)]
pub struct FileOptions {
    /// Plot the rows against message size
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
    /// Write the latencies in HdrHistogram's text format, in microseconds; for several rows one
    /// file each, with the size in its name
    #[arg(long, value_name = "FILE.hgrm")]
    pub hgrm: Option<PathBuf>,
}

/// Benchmarks of two NICs.
#[derive(Args, Clone, Debug)]
pub struct PairOptions {
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields are documented")]
    pub common: Common,
    /// Source [default: the lab's first NIC]
    #[arg(long, value_name = "NODE")]
    pub from: Option<String>,
    /// Target [default: the lab's last NIC]
    #[arg(long, value_name = "NODE")]
    pub to: Option<String>,
    /// Operation of every message
    #[arg(long, value_enum, default_value_t)]
    pub op: PairOp,
    /// Measure between programs at the doors of the NICs, instead of between the NICs themselves:
    /// includes the cost of the door
    #[arg(long, conflicts_with = "routing")]
    pub client: bool,
    /// Payload bytes per message, a row each [default: powers of two, to the largest message, 64
    /// KiB at most]
    #[arg(long, value_name = "B", value_delimiter = ',', value_parser = size())]
    pub size: Vec<u32>,
    /// Like --size, but as a range as in the OSU benchmarks: powers of two from MIN to MAX; a
    /// single number is MAX
    #[arg(short = 'm', long, value_name = "MIN:MAX", conflicts_with = "size", value_parser = range)]
    pub message_size: Option<SizeRange>,
    /// Number of simultaneous pairs: the first NICs send to the last ones
    #[arg(long, value_name = "N", conflicts_with_all = ["from", "to", "client"], value_parser = clap::value_parser!(u16).range(1..))]
    pub pairs: Option<u16>,
    /// Outstanding messages [default: 1 for latency, 64 otherwise]
    #[arg(long, value_name = "W", value_parser = window())]
    pub window: Option<u32>,
    /// Routing mode of the packets, on machines that offer a choice
    #[arg(long, value_enum, value_name = "MODE")]
    pub routing: Option<RoutingName>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields are documented")]
    pub files: FileOptions,
}

/// Bandwidth over losses.
#[derive(Args, Clone, Debug)]
pub struct GoodputOptions {
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields are documented")]
    pub common: Common,
    /// Loss rates of each link in each direction, a row each
    #[arg(
        long,
        value_name = "P%",
        value_delimiter = ',',
        default_value = "0%,1%,2%,5%,10%"
    )]
    pub loss: Vec<Loss>,
    /// Source [default: the lab's first NIC]
    #[arg(long, value_name = "NODE")]
    pub from: Option<String>,
    /// Target [default: the lab's last NIC]
    #[arg(long, value_name = "NODE")]
    pub to: Option<String>,
    /// Payload bytes per message, a row and a curve each
    #[arg(long, value_name = "B", value_delimiter = ',', default_value = "32", value_parser = size())]
    pub size: Vec<u32>,
    /// Outstanding messages
    #[arg(long, value_name = "W", default_value_t = 64, value_parser = window())]
    pub window: u32,
    /// Plot goodput and latency against loss
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
}

impl GoodputOptions {
    /// These options without losses.
    pub fn pair(&self) -> PairOptions {
        PairOptions {
            common: self.common.clone(),
            from: self.from.clone(),
            to: self.to.clone(),
            op: PairOp::Put,
            client: false,
            size: self.size.clone(),
            message_size: None,
            pairs: None,
            window: Some(self.window),
            routing: None,
            files: FileOptions::default(),
        }
    }
}

/// A share of frames to drop, as `impair.sh` takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Frames per million.
    pub per_million: u32,
}

impl Loss {
    /// Percentage of frames.
    pub fn percent(self) -> f64 {
        f64::from(self.per_million) / 1e4
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.percent())
    }
}

impl FromStr for Loss {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix('%').unwrap_or(text);
        match number.parse::<f64>() {
            Ok(percent) if (0.0..=50.0).contains(&percent) => Ok(Self {
                per_million: (percent * 1e4).round() as u32,
            }),
            _ => Err(format!(
                "invalid loss rate `{text}`: expected a percentage such as 1%, from 0% to 50%"
            )),
        }
    }
}

/// Benchmarks of many NICs.
#[derive(Args, Clone, Debug)]
pub struct SetOptions {
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields are documented")]
    pub common: Common,
    /// Participating NICs [default: all]
    #[arg(long, value_name = "NODE", value_delimiter = ',')]
    pub nics: Vec<String>,
    /// Outstanding messages per NIC
    #[arg(long, value_name = "W", default_value_t = 512, value_parser = window())]
    pub window: u32,
    /// Routing mode of the packets, on machines that offer a choice
    #[arg(long, value_enum, value_name = "MODE")]
    pub routing: Option<RoutingName>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields are documented")]
    pub files: FileOptions,
}

/// Messages among many NICs.
#[derive(Args, Clone, Debug)]
pub struct AlltoallOptions {
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields are documented")]
    pub set: SetOptions,
    /// Payload bytes per message, a row each [default: powers of two, to the largest message, 4 KiB
    /// at most]
    #[arg(long, value_name = "B", value_delimiter = ',', value_parser = size())]
    pub size: Vec<u32>,
    /// Like --size, but as a range as in the OSU benchmarks: powers of two from MIN to MAX; a
    /// single number is MAX
    #[arg(short = 'm', long, value_name = "MIN:MAX", conflicts_with = "size", value_parser = range)]
    pub message_size: Option<SizeRange>,
}

/// Collective operations.
#[derive(Args, Clone, Debug)]
pub struct CollectiveOptions {
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields are documented")]
    pub common: Common,
    /// Participating NICs, in order of rank [default: all]
    #[arg(long, alias = "from", value_name = "NODE", value_delimiter = ',')]
    pub nics: Vec<String>,
    /// Children per node of the tree
    #[arg(long, value_name = "N", default_value_t = MAX_BRANCHING as u32,
          value_parser = clap::value_parser!(u32).range(1..=MAX_BRANCHING as i64))]
    pub branching: u32,
    /// Collective engine, 0 to 3
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=3))]
    pub engine: u8,
}

/// Barriers by engines or by units.
#[derive(Args, Clone, Debug)]
pub struct BarrierOptions {
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields are documented")]
    pub collective: CollectiveOptions,
    /// Barrier units, all at the same time, a row each; the tree is computed and configured
    /// beforehand
    #[arg(long, value_name = "N", value_delimiter = ',', conflicts_with_all = ["branching", "engine"])]
    pub unit: Vec<u8>,
    /// With --unit: number of barriers, instead of --seconds
    #[arg(long, value_name = "N", requires = "unit", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// With --unit: wait up to this many nanoseconds before each barrier, at random
    #[arg(long, value_name = "NS", requires = "unit", default_value_t = 0)]
    pub skew_ns: u64,
}

/// Eurekas.
#[derive(Args, Clone, Debug)]
pub struct EurekaOptions {
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields are documented")]
    pub common: Common,
    /// Participating NICs, in order of rank [default: all]
    #[arg(long, alias = "from", value_name = "NODE", value_delimiter = ',')]
    pub nics: Vec<String>,
    /// Barrier units, all at the same time, a row each
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "0")]
    pub unit: Vec<u8>,
    /// Number of barriers, every other one after a eureka, instead of --seconds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Wait up to this many nanoseconds before each, at random
    #[arg(long, value_name = "NS", default_value_t = 0)]
    pub skew_ns: u64,
}

/// Collective operations with a result.
#[derive(Args, Clone, Debug)]
pub struct AllreduceOptions {
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields are documented")]
    pub collective: CollectiveOptions,
    /// Operations, a row each, such as sum-i32, xor-i64, min-f64 (with its location)
    #[arg(
        long,
        value_name = "OP",
        value_delimiter = ',',
        default_value = "sum-i32,sum-i64,sum-f32,sum-f64,min-i64,xor-i64"
    )]
    pub op: Vec<Collective>,
}

/// `-m`: a range of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeRange {
    /// The smallest, in bytes.
    pub min: u32,
    /// The largest, in bytes.
    pub max: u32,
}

impl SizeRange {
    /// The smallest size and its doublings, up to the largest.
    pub fn sizes(self) -> Vec<u32> {
        let doubled = std::iter::successors(Some(self.min), |size| size.checked_mul(2));
        doubled.take_while(|&size| size <= self.max).collect()
    }
}

fn range(text: &str) -> Result<SizeRange, String> {
    let number = |text: &str| match text.parse::<u32>() {
        Ok(bytes) if (1..=MAX_BLOCK_SIZE).contains(&bytes) => Ok(bytes),
        _ => Err(format!(
            "invalid size `{text}`: expected 1 to {MAX_BLOCK_SIZE} bytes"
        )),
    };
    let (min, max) = match text.split_once(':') {
        Some((min, "")) => (number(min)?, MAX_BLOCK_SIZE),
        Some(("", max)) => (1, number(max)?),
        Some((min, max)) => (number(min)?, number(max)?),
        None => (1, number(text)?),
    };
    match min <= max {
        true => Ok(SizeRange { min, max }),
        false => Err(format!("empty range: {min} is above {max}")),
    }
}

fn size() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=i64::from(MAX_BLOCK_SIZE))
}

fn window() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=i64::from(phitwire::nic::MAX_WINDOW))
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (1e-3..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("expected a number of seconds from 0.001 to 86400".to_owned()),
    }
}

impl Benchmark {
    pub fn common(&self) -> &Common {
        match self {
            Self::Latency(options) | Self::Bandwidth(options) | Self::Bibw(options) => {
                &options.common
            }
            Self::Goodput(options) => &options.common,
            Self::Gups(options) => &options.common,
            Self::Alltoall(options) => &options.set.common,
            Self::Allreduce(options) => &options.collective.common,
            Self::Barrier(options) => &options.collective.common,
            Self::Eureka(options) => &options.common,
        }
    }

    pub fn files(&self) -> FileOptions {
        match self {
            Self::Latency(options) | Self::Bandwidth(options) | Self::Bibw(options) => {
                options.files.clone()
            }
            Self::Gups(options) => options.files.clone(),
            Self::Alltoall(options) => options.set.files.clone(),
            Self::Goodput(options) => FileOptions {
                plot: options.plot.clone(),
                hgrm: None,
            },
            Self::Allreduce(_) | Self::Barrier(_) | Self::Eureka(_) => FileOptions::default(),
        }
    }

    pub const fn name(&self) -> &'static str {
        match self {
            Self::Latency(_) => "latency",
            Self::Bandwidth(_) => "bandwidth",
            Self::Bibw(_) => "bibw",
            Self::Goodput(_) => "goodput",
            Self::Gups(_) => "gups",
            Self::Allreduce(_) => "allreduce",
            Self::Barrier(_) => "barrier",
            Self::Eureka(_) => "eureka",
            Self::Alltoall(_) => "alltoall",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(words: &str) -> Result<Options, clap::Error> {
        let words = ["phitwire-bench"]
            .into_iter()
            .chain(words.split_whitespace());
        Options::try_parse_from(words)
    }

    #[test]
    fn the_definition_is_consistent() {
        Options::command().debug_assert();
    }

    #[test]
    fn commands_of_the_manual_parse() {
        for words in [
            "latency --lab demo",
            "latency --lab demo --from nic0 --to nic3 --op get --size 8,64,4096 --json",
            "bandwidth --lab demo --window 16 --routing valiant --seconds 0.5",
            "bandwidth --lab demo --client --op send --size 4096",
            "latency --lab demo --client --from nic0 --to nic3",
            "bibw --lab demo",
            "gups --lab demo --nics nic0,nic1,nic2 --window 1024",
            "alltoall --lab demo --size 8,64",
            "allreduce --lab demo --op sum-f64,max-i32 --branching 2 --engine 3",
            "barrier --lab demo",
            "latency --lab demo -m 8:64 -i 1000 -x 100",
            "bandwidth --lab demo --pairs 4 -m :4096",
            "barrier --lab demo --unit 3,7,9 --from nic0,nic1 --count 1000",
            "eureka --lab demo --unit 4 --skew-ns 1000",
        ] {
            parse(words).expect(words);
        }
    }

    #[test]
    fn contradictory_options_are_refused() {
        for words in [
            "",
            "latency",
            "latency --lab demo --size 0",
            "bandwidth --lab demo --size 16777217",
            "bandwidth --lab demo --window 0",
            "latency --lab demo -m 64:8",
            "latency --lab demo -m 0:8",
            "latency --lab demo -m 1:99999999",
            "latency --lab demo -m 8 --size 8",
            "latency --lab demo -i 0",
            "latency --lab demo -i 5 --seconds 1",
            "bandwidth --lab demo --pairs 0",
            "bandwidth --lab demo --pairs 2 --from nic0",
            "allreduce --lab demo --op product-i32",
            "allreduce --lab demo --branching 33",
            "barrier --lab demo --engine 4",
            "barrier --lab demo --op sum-i32",
            "barrier --lab demo --unit 3 --engine 1",
            "latency --lab demo --client --routing minimal",
            "gups --lab demo --client",
            "gups --lab demo --size 8",
            "gups --lab demo --seconds 0",
            "throughput --lab demo",
        ] {
            assert!(parse(words).is_err(), "{words}");
        }
    }

    #[test]
    fn ranges_of_sizes_are_those_of_osu() {
        let sizes = |text: &str| range(text).map(SizeRange::sizes);
        assert_eq!(sizes("8:64"), Ok(vec![8, 16, 32, 64]));
        assert_eq!(sizes("3:13"), Ok(vec![3, 6, 12]));
        assert_eq!(sizes("4"), Ok(vec![1, 2, 4]));
        assert_eq!(sizes(":2"), Ok(vec![1, 2]));
        let all = sizes("8388608:").expect("a range");
        assert_eq!(all, [8 << 20, 16 << 20]);
    }
}

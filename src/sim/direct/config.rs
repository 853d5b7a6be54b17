//! Configuration of a run in direct mode.

use schemars::JsonSchema;
use serde::Serialize;

use super::fault::Fault;
use super::message_trace::Traced;
use super::pattern::Pattern;

/// Longest link latency in cycles: a word must hold one bit per cycle of a window.
pub const MAX_LINK_CYCLES: u32 = 64;

/// A load in millionths of a port's phit rate, counting every phit of every packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Load(u32);

impl Load {
    /// Every cycle carries a phit.
    pub const FULL: Self = Self(Self::UNIT);
    /// The units in a full load.
    pub const UNIT: u32 = 1_000_000;

    /// A load in millionths; `None` if it is zero or above a full load.
    pub const fn from_millionths(millionths: u32) -> Option<Self> {
        if millionths == 0 || millionths > Self::UNIT {
            None
        } else {
            Some(Self(millionths))
        }
    }

    /// Millionths of a port's phit rate.
    pub const fn millionths(self) -> u32 {
        self.0
    }

    /// Fraction of a port's phit rate.
    pub fn fraction(self) -> f64 {
        f64::from(self.0) / f64::from(Self::UNIT)
    }
}

/// When a source creates packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Process {
    /// In every cycle with the same probability, independently.
    #[default]
    Bernoulli,
    /// In bursts of packets born as fast as a port can send them, 8 on average, separated by
    /// silence; both lengths are geometric.
    OnOff,
}

/// Mean packets per burst of [`Process::OnOff`].
pub(crate) const BURST_PACKETS: u32 = 8;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traffic {
    pub pattern: Pattern,
    /// Number of processors that take part, the first ones of the topology; `None` = all. The
    /// others are silent.
    pub participants: Option<u32>,
    /// Phits that every terminal sends per cycle. With [`request_reply`](Self::request_reply) this
    /// includes the phits of replies.
    pub load: Load,
    /// Bytes that each message writes, from 1 to the capacity of one packet.
    pub message_bytes: u8,
    /// Whether each request gets a reply, the smallest packet, and latency includes it.
    pub request_reply: bool,
    /// When packets are created.
    pub process: Process,
}

impl Default for Traffic {
    /// Uniform traffic at 30 % in messages of 16 bytes.
    fn default() -> Self {
        Self {
            pattern: Pattern::default(),
            participants: None,
            load: Load(300_000),
            message_bytes: 16,
            request_reply: false,
            process: Process::default(),
        }
    }
}

/// How long a run warms up before measuring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warmup {
    /// Until mean latency and accepted load settle, up to a limit.
    Converge {
        /// Maximum number of cycles.
        limit: u64,
    },
    /// A fixed number of cycles.
    Cycles(u64),
}

/// A run in direct mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Seed of everything random.
    pub seed: u64,
    pub traffic: Traffic,
    pub warmup: Warmup,
    pub measure_cycles: u64,
    /// An unsettled measurement is repeated with twice the length, up to this length. The earlier
    /// measurement then counts as warm-up.
    pub most_measure_cycles: u64,
    /// Cycles after the measurement in which all measured packets must arrive; otherwise the
    /// network is saturated.
    pub drain_cycles: u64,
    /// Faults during the run.
    pub faults: Vec<Fault>,
    pub traced: Option<Traced>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            seed: 1,
            traffic: Traffic::default(),
            warmup: Warmup::Converge { limit: 50_000 },
            measure_cycles: 10_000,
            most_measure_cycles: 0,
            drain_cycles: 50_000,
            faults: Vec::new(),
            traced: None,
        }
    }
}

/// Why a run cannot begin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The machine does not support its options.
    #[error("{0}")]
    Refused(String),
    /// The network belongs to another machine.
    #[error("network `{0}` belongs to another machine")]
    Elsewhere(String),
    /// The machine has no model of direct links.
    #[error("this machine supports only encoded links in simulations")]
    NoDirectLinks,
    /// The message size is outside 1 to the capacity of a packet.
    #[error("a message of {0} bytes: expected 1 to {1}")]
    MessageBytes(u8, u8),
    /// Nothing would be measured.
    #[error("a measurement needs at least one cycle")]
    NoMeasurement,
    /// The pattern does not suit the network.
    #[error(transparent)]
    Pattern(#[from] super::pattern::PatternError),
    /// The topology has no processors with links.
    #[error("no processor of the topology has a link")]
    NoTerminals,
    /// A traced NIC does not take part.
    #[error("a trace needs two participating NICs")]
    NothingToTrace,
    /// Packets can be traced only over direct links.
    #[error(
        "packets can be traced only over direct links: trace them in a lab, or omit --netem and \
         --links"
    )]
    TracedEncoded,
    /// Encoded links did not come up in time.
    #[error("not all links came up within a second of virtual time: reduce the impairment")]
    LinksDown,
    /// A part did not accept the mail of another while links came up.
    #[error("mail between parts: {0}")]
    Mail(#[from] super::mail::MailError),
    /// A node's configuration for encoded links is invalid.
    #[error(transparent)]
    Plan(#[from] crate::net::PlanError),
    /// A fault names a missing part.
    #[error("`{0}`: no such link or router in the topology")]
    NoSuchPart(String),
    /// A permanent fault over encoded links.
    #[error(
        "`{0}` needs a duration (`for TIME`): over encoded links a router does not notice a cut \
         link, and packets wait for it"
    )]
    Endless(String),
    /// A chip of the topology has no registers, or a link leads nowhere.
    #[error("the topology is inconsistent: run `phitwire topology check` for details")]
    Topology,
}

impl Config {
    /// Checks the parts that do not depend on a topology, for messages of at most `most` bytes.
    ///
    /// # Errors
    /// The first error found.
    pub fn validate(&self, most: u8) -> Result<(), ConfigError> {
        if !(1..=most).contains(&self.traffic.message_bytes) {
            return Err(ConfigError::MessageBytes(self.traffic.message_bytes, most));
        }
        if self.measure_cycles == 0 {
            return Err(ConfigError::NoMeasurement);
        }
        Ok(())
    }
}

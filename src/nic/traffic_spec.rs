//! Specification of a traffic run: participants, destinations and length.

use serde::{Deserialize, Serialize};

use super::stamp::LINE;
use super::traffic_pattern::{Choice, Groups, TrafficPattern};

/// Highest number of a participant, which has 15 bits.
pub const MAX_PROCESSOR: u16 = 0x7fff;
/// Highest number of a run: the largest that JSON represents exactly, enough for centuries of
/// microseconds.
pub const MAX_RUN: u64 = (1 << 53) - 1;
/// Maximum number of outstanding messages of a run per NIC.
pub const MAX_WINDOW: u32 = 1 << 16;
/// Highest rate of a run, in messages per second and source.
pub const MAX_RATE: u64 = 1_000_000_000;
/// Maximum number of addresses of a run per pair of processors.
pub const MAX_ADDRESSES: u16 = 4096;

/// Largest payload of a single-packet message on any NIC, in bytes.
pub(crate) const MAX_SIZE: u32 = 64;
/// Largest payload of a block transfer message, in bytes.
pub const MAX_BLOCK_SIZE: u32 = 16 << 20;
/// Bytes that a message needs to carry its number, which is required where order is not kept.
pub const NUMBERED_BYTES: u32 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Operation {
    /// An acknowledged remote write.
    #[default]
    Put = 0,
    /// A remote read, verified at the source.
    Get = 1,
    /// A remote fetch-and-add of one to a 64-bit word. Each source checks that it fetches every
    /// value once; at the end, the words show the number of additions carried out.
    Amo = 2,
}

impl Operation {
    pub(crate) fn from_code(code: u8) -> Option<Self> {
        [Self::Put, Self::Get, Self::Amo]
            .get(usize::from(code))
            .copied()
    }
}

/// Path selection of a run's packets, in networks with a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RoutingMode {
    /// By load alone.
    Adaptive0,
    /// By load, with a bias towards minimal paths that grows along the path.
    Adaptive1,
    /// By load, with a small bias towards minimal paths.
    Adaptive2,
    /// By load, with a large bias towards minimal paths.
    Adaptive3,
    /// A minimal path chosen by hash: ordered for each pair of processors.
    Ordered,
    /// A non-minimal path chosen by hash: ordered for each pair of processors.
    OrderedNonMinimal,
    Minimal,
    Valiant,
    /// A minimal path chosen by a hash that includes the address: ordered for each cache line.
    MinHash,
    /// A non-minimal path chosen by a hash that includes the address: ordered for each cache line.
    NminHash,
}

impl RoutingMode {
    pub const ALL: &'static [Self] = &[
        Self::Adaptive0,
        Self::Adaptive1,
        Self::Adaptive2,
        Self::Adaptive3,
        Self::Ordered,
        Self::OrderedNonMinimal,
        Self::Minimal,
        Self::Valiant,
        Self::MinHash,
        Self::NminHash,
    ];

    /// Whether messages of one source to one cache line of a target arrive in order.
    pub(crate) const fn keeps_order(self) -> bool {
        matches!(
            self,
            Self::Ordered | Self::OrderedNonMinimal | Self::MinHash | Self::NminHash
        )
    }
}

/// Gaps between the messages of a run with a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Gaps {
    #[default]
    Even,
    /// Random gaps with a geometric distribution, like those of simulated sources.
    Random,
}

impl Gaps {
    fn is_even(&self) -> bool {
        *self == Self::Even
    }
}

/// The messages that a kind of NIC supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// Largest payload in bytes.
    pub max_size: u32,
    /// Gets of a single packet read multiples of this many bytes.
    pub get_unit: u32,
    pub atomics: bool,
    /// Supported path selections: by load with the biases of mode 0, ordered, and possibly others.
    /// Empty if packets have no choice of path and so keep their order.
    pub ways: &'static [RoutingMode],
}

impl Abilities {
    /// A NIC that supports only puts and gets, of any number of bytes up to `max_size`.
    pub const fn puts_and_gets(max_size: u32) -> Self {
        Self {
            max_size,
            get_unit: 1,
            atomics: false,
            ways: &[],
        }
    }
}

/// Specification of one traffic run.
///
/// Every sender gets the same specification. A participant that only receives does not need it,
/// since a sender announces its run to each target before the first message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrafficSpec {
    /// Identifies the run in the counts of its targets; zero is rejected. A source's run numbers
    /// must grow from run to run, so that late messages of earlier runs are recognised.
    /// `phitwire-msgrate` uses the time of day in microseconds.
    pub run: u64,
    #[serde(default)]
    pub pattern: TrafficPattern,
    /// The participants, by processor number, in index order. May be empty for
    /// [`TrafficPattern::List`].
    #[serde(default)]
    pub processors: Vec<u16>,
    /// The group of each of the [`processors`](Self::processors) for group patterns
    /// ([`TrafficPattern::GroupAdversarial`]); otherwise empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<u16>,
    #[serde(default)]
    pub op: Operation,
    /// Payload bytes per message, 1 to [`Abilities::max_size`]. Messages of more than [`MAX_SIZE`]
    /// bytes are block transfers. Shorter gets need multiples of [`Abilities::get_unit`], and
    /// atomic operations exactly 8.
    #[serde(default = "default_size")]
    pub size: u32,
    /// Maximum number of outstanding messages of each source, 1 to [`MAX_WINDOW`].
    #[serde(default = "default_window")]
    pub window: u32,
    /// Messages per second of each source, 1 to [`MAX_RATE`]. This makes an open loop, in which a
    /// message is due whether or not earlier ones were answered. If the window is full or the link
    /// blocked, up to a window of due messages wait; the others are dropped and counted
    /// ([`TrafficReport::not_offered`](super::TrafficReport::not_offered)). Zero: no rate; as many
    /// as the window allows.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rate: u64,
    /// Gaps between the messages if there is a [`rate`](Self::rate).
    #[serde(default, skip_serializing_if = "Gaps::is_even")]
    pub gaps: Gaps,
    /// Stop issuing after this many nanoseconds; zero means no limit.
    #[serde(default)]
    pub duration_ns: u64,
    /// Stop issuing after this many messages; zero means no limit. If `duration_ns` is zero too,
    /// the run continues until it is stopped.
    #[serde(default)]
    pub count: u64,
    /// Number of addresses per target, 64 bytes apart and used in turn, 1 to [`MAX_ADDRESSES`].
    /// Block transfers use as many addresses as fit in 512 KiB, or 8 if blocks are long, spaced by
    /// their length, with one transfer at a time per address.
    #[serde(default = "default_addresses")]
    pub addresses: u16,
    #[serde(default)]
    pub seed: u64,
    /// Path selection, on machines with a choice. Defaults to the choice by load, or to ordered
    /// paths for puts of fewer than 8 bytes, which have no room for their number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ways: Option<RoutingMode>,
}

/// Serialisation omits zeros.
fn is_zero(number: &u64) -> bool {
    *number == 0
}

const fn default_size() -> u32 {
    8
}

const fn default_window() -> u32 {
    1024
}

/// 64 addresses use every value of the six lowest hash bits, and so every uplink.
const fn default_addresses() -> u16 {
    64
}

impl Default for TrafficSpec {
    fn default() -> Self {
        Self {
            run: 1,
            pattern: TrafficPattern::default(),
            processors: Vec::new(),
            groups: Vec::new(),
            op: Operation::default(),
            size: default_size(),
            window: default_window(),
            rate: 0,
            gaps: Gaps::Even,
            duration_ns: 0,
            count: 0,
            addresses: default_addresses(),
            seed: 0,
            ways: None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    #[error("run number 0 is invalid")]
    ZeroRun,
    /// Run numbers grow, so no run could follow one with a greater number.
    #[error(
        "run number {0} exceeds {MAX_RUN}; use the time of day in microseconds, as \
         phitwire-msgrate does"
    )]
    Run(u64),
    #[error("a message of {size} bytes: expected 1 to {most}")]
    Size { size: u32, most: u32 },
    #[error("a get of {size} bytes: expected a multiple of {unit}")]
    GetSize { size: u32, unit: u32 },
    #[error("an atomic operation on {0} bytes: runs support only 8")]
    AmoSize(u32),
    #[error("this NIC does not support atomic operations")]
    NoAtomics,
    #[error("this NIC cannot choose between routing modes")]
    NoRoutingModes,
    #[error("this NIC does not support this routing mode: expected one of {0:?}")]
    NoSuchRoutingMode(&'static [RoutingMode]),
    #[error(
        "puts of {0} bytes cannot carry a sequence number (those of 8 can) and need an ordered \
         routing mode"
    )]
    Unnumbered(u32),
    #[error("a window of {0} messages: expected 1 to {MAX_WINDOW}")]
    Window(u32),
    #[error("a rate of {0} messages per second: expected 1 to {MAX_RATE}")]
    Rate(u64),
    #[error("{0} addresses per target: expected 1 to {MAX_ADDRESSES}")]
    Addresses(u16),
    #[error("processor {0} does not exist in this network (numbers have 15 bits)")]
    Processor(u16),
    /// A processor is listed twice; its counts would be added twice.
    #[error("processor {0} is listed twice")]
    Twice(u16),
    #[error("this NIC is not one of the virtual nodes")]
    NoNumber,
    /// The pattern uses participants' indices, but the NIC is not a participant.
    #[error("processor {0} is not a participant")]
    NotParticipant(u16),
    #[error("this pattern needs {need} participants, not {have}")]
    Participants { need: &'static str, have: usize },
    /// A group pattern lacks the group of a participant, or all participants are in one group.
    #[error(
        "this pattern needs participants from at least two groups, and the group of each: found \
         {groups} groups for {participants} participants"
    )]
    Groups { groups: usize, participants: usize },
    #[error("a hotspot needs at least one target and a share of 1 to 100 percent")]
    Hotspot,
    #[error("{0} bytes of memory are too few for the addresses of the run")]
    Memory(u64),
    #[error("run {0} is still in progress")]
    Busy(u64),
    #[error("run {run} is older than run {latest}: run numbers must increase")]
    Outdated { run: u64, latest: u64 },
}

impl TrafficSpec {
    /// Checks all fields that do not depend on the participant.
    ///
    /// # Errors
    /// The first problem found.
    pub(crate) fn validate(&self, abilities: Abilities) -> Result<(), SpecError> {
        if self.run == 0 {
            return Err(SpecError::ZeroRun);
        }
        if self.run > MAX_RUN {
            return Err(SpecError::Run(self.run));
        }
        self.validate_message(abilities)?;
        self.validate_groups()?;
        if !(1..=MAX_WINDOW).contains(&self.window) {
            return Err(SpecError::Window(self.window));
        }
        if self.rate > MAX_RATE {
            return Err(SpecError::Rate(self.rate));
        }
        if !(1..=MAX_ADDRESSES).contains(&self.addresses) {
            return Err(SpecError::Addresses(self.addresses));
        }
        let named = match &self.pattern {
            TrafficPattern::Hotspot { targets, percent } => {
                if targets.is_empty() || !(1..=100).contains(percent) {
                    return Err(SpecError::Hotspot);
                }
                targets.as_slice()
            }
            TrafficPattern::List { destinations } => destinations.as_slice(),
            _ => &[],
        };
        for list in [&self.processors, named] {
            let mut sorted = list.to_vec();
            sorted.sort_unstable();
            if let Some(&p) = sorted.last().filter(|&&p| p > MAX_PROCESSOR) {
                return Err(SpecError::Processor(p));
            }
            if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
                return Err(SpecError::Twice(pair[0]));
            }
        }
        Ok(())
    }

    fn validate_groups(&self) -> Result<(), SpecError> {
        let (groups, participants) = (self.groups.len(), self.processors.len());
        let has_groups =
            groups == participants && Groups::new(self.groups.iter().copied()).count() > 1;
        match self.pattern {
            TrafficPattern::GroupAdversarial if !has_groups => Err(SpecError::Groups {
                groups,
                participants,
            }),
            _ => Ok(()),
        }
    }

    fn validate_message(&self, abilities: Abilities) -> Result<(), SpecError> {
        let (size, most) = (self.size, abilities.max_size);
        if !(1..=most).contains(&size) {
            return Err(SpecError::Size { size, most });
        }
        if self.op == Operation::Amo && !abilities.atomics {
            return Err(SpecError::NoAtomics);
        }
        match (self.ways, abilities.ways) {
            (Some(_), []) => return Err(SpecError::NoRoutingModes),
            (Some(ways), possible) if !possible.contains(&ways) => {
                return Err(SpecError::NoSuchRoutingMode(possible));
            }
            _ => {}
        }
        let unit = abilities.get_unit;
        match self.op {
            Operation::Get if size <= MAX_SIZE && size % unit != 0 => {
                Err(SpecError::GetSize { size, unit })
            }
            Operation::Amo if size != 8 => Err(SpecError::AmoSize(size)),
            Operation::Put
                if size < NUMBERED_BYTES && self.ways.is_some_and(|ways| !ways.keeps_order()) =>
            {
                Err(SpecError::Unnumbered(size))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn highest_processor(&self) -> u16 {
        let named = match &self.pattern {
            TrafficPattern::Hotspot { targets, .. } => targets.as_slice(),
            TrafficPattern::List { destinations } => destinations.as_slice(),
            _ => &[],
        };
        let all = self.processors.iter().chain(named);
        all.copied().max().unwrap_or(0)
    }

    pub(crate) fn is_block(&self) -> bool {
        self.size > MAX_SIZE
    }

    /// Whether a block may overwrite one whose fate is unknown. Gets change no memory, and their
    /// late responses are ignored. A put can, if each line has room for its number, so that late
    /// lines are recognised: see [`block_lines`](super::block_lines).
    pub(crate) fn follows_unknown(&self) -> bool {
        let last = self.size % LINE as u32;
        self.op == Operation::Get || last == 0 || last >= NUMBERED_BYTES
    }

    /// Path selection of the run's packets, if they have a choice.
    pub fn ways(&self) -> RoutingMode {
        match (self.ways, self.op) {
            (Some(ways), _) => ways,
            (None, Operation::Put) if self.size < NUMBERED_BYTES => RoutingMode::Ordered,
            (None, _) => RoutingMode::Adaptive0,
        }
    }

    /// The destinations of `own` and how to choose among them. Without destinations, `own` is
    /// silent.
    pub(crate) fn destinations(&self, own: u16) -> Result<(Vec<u16>, Choice), SpecError> {
        let others =
            |list: &[u16]| -> Vec<u16> { list.iter().copied().filter(|&p| p != own).collect() };
        if let TrafficPattern::List { destinations } = &self.pattern {
            return Ok((others(destinations), Choice::InTurn));
        }
        let n = self.processors.len();
        let position = self.processors.iter().position(|&p| p == own);
        let i = position.ok_or(SpecError::NotParticipant(own))?;
        match &self.pattern {
            TrafficPattern::Uniform => return Ok((others(&self.processors), Choice::Uniform)),
            TrafficPattern::Hotspot { targets, percent } => {
                let mut all = others(targets);
                let hot = all.len();
                all.extend(
                    self.processors
                        .iter()
                        .filter(|p| **p != own && !targets.contains(p)),
                );
                let percent = *percent;
                return Ok((all, Choice::Hot { hot, percent }));
            }
            TrafficPattern::GroupAdversarial => {
                let groups = Groups::new(self.groups.iter().copied());
                let next = groups.next_of(i).iter();
                let next = next.map(|&participant| self.processors[participant as usize]);
                return Ok((next.collect(), Choice::Uniform));
            }
            _ => {}
        }
        let mapping = self.pattern.mapping(n, self.seed)?;
        let to = mapping.map_or(i, |mapping| mapping.image(i));
        Ok((others(&[self.processors[to]]), Choice::InTurn))
    }
}

#[cfg(test)]
#[path = "traffic_spec_tests.rs"]
pub(crate) mod tests;

//! What a traffic run is: who takes part, who sends to whom, and how much.

use serde::{Deserialize, Serialize};

use super::MAX_PROCESSOR;
use crate::rng::Rng;

/// Largest number of messages a run may have outstanding per network interface.
pub const MAX_WINDOW: u32 = 1 << 16;
/// Largest number of addresses a run uses per pair of processors.
pub const MAX_ADDRESSES: u16 = 4096;

/// The operation of every message of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// An acknowledged remote write.
    #[default]
    Put,
    /// A remote read, whose bytes are verified at the reader.
    Get,
}

/// Who sends to whom. `i` is the sender's index among the `n` participants
/// ([`TrafficSpec::processors`]). The names and definitions are BookSim's where it has the pattern.
///
/// A processor that a permutation maps to itself stays silent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Pattern {
    /// Each message to a participant drawn at random, never to the sender itself.
    #[default]
    Uniform,
    /// To `i + 1` modulo `n`.
    Neighbour,
    /// To `n - 1 - i`: all index bits inverted when `n` is a power of two.
    BitComplement,
    /// To `i` with its index bits reversed; `n` must be a power of two.
    BitReverse,
    /// To `i` with its index bits rotated left by one; `n` must be a power of two.
    Shuffle,
    /// To `i` with the halves of its index bits exchanged; `n` must be a power of four.
    Transpose,
    /// To `i + ceil(n / 2) - 1` modulo `n`.
    Tornado,
    /// A permutation drawn from the run's seed: the same one at every participant.
    Permutation,
    /// To one of `targets` with probability `percent` / 100, otherwise uniform.
    Hotspot {
        /// Processors that are hot.
        targets: Vec<u16>,
        /// Share of messages that go to them, 1 to 100.
        percent: u8,
    },
    /// In turn to each of `destinations`, whoever the sender is (never to the sender itself).
    List {
        /// Processors to send to.
        destinations: Vec<u16>,
    },
}

/// One traffic run, as every participant is told it.
///
/// The same specification goes to every participant; a participant that only receives need not be
/// told at all, since a sender announces its run to each target before the first message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrafficSpec {
    /// Names the run; targets count deliveries under it. Differs between runs, zero is refused.
    pub run: u32,
    /// Who sends to whom.
    #[serde(default)]
    pub pattern: Pattern,
    /// The participants, by processor number, in index order. May be empty for [`Pattern::List`].
    #[serde(default)]
    pub processors: Vec<u16>,
    /// Put or get.
    #[serde(default)]
    pub op: Operation,
    /// Payload bytes per message, 1 to 32.
    #[serde(default = "default_size")]
    pub size: u8,
    /// Messages this network interface keeps outstanding, 1 to [`MAX_WINDOW`].
    #[serde(default = "default_window")]
    pub window: u32,
    /// Stop issuing after this many nanoseconds; zero means no limit.
    #[serde(default)]
    pub duration_ns: u64,
    /// Stop issuing after this many messages; zero means no limit. Both zero: until stopped.
    #[serde(default)]
    pub count: u64,
    /// Addresses used per target, in turn, 64 bytes apart; 1 to [`MAX_ADDRESSES`].
    #[serde(default = "default_addresses")]
    pub addresses: u16,
    /// Seed of all that is random in the run.
    #[serde(default)]
    pub seed: u64,
}

const fn default_size() -> u8 {
    8
}

const fn default_window() -> u32 {
    1024
}

/// 64 blocks: enough to use every value of the six lowest hash bits, and so every uplink.
const fn default_addresses() -> u16 {
    64
}

impl Default for TrafficSpec {
    fn default() -> Self {
        Self {
            run: 1,
            pattern: Pattern::default(),
            processors: Vec::new(),
            op: Operation::default(),
            size: default_size(),
            window: default_window(),
            duration_ns: 0,
            count: 0,
            addresses: default_addresses(),
            seed: 0,
        }
    }
}

/// Why a [`TrafficSpec`] cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// `run` is zero.
    #[error("a run's number must not be zero")]
    ZeroRun,
    /// `size` is not 1 to 32.
    #[error("a message of {0} bytes: 1 to 32 are possible")]
    Size(u8),
    /// `window` is zero or above [`MAX_WINDOW`].
    #[error("a window of {0} messages: 1 to {MAX_WINDOW} are possible")]
    Window(u32),
    /// `addresses` is zero or above [`MAX_ADDRESSES`].
    #[error("{0} addresses per target: 1 to {MAX_ADDRESSES} are possible")]
    Addresses(u16),
    /// A processor number has more than 15 bits.
    #[error("processor {0} does not exist: numbers have 15 bits")]
    Processor(u16),
    /// A processor is named twice. It would count as two, and what it receives as received twice.
    #[error("processor {0} is named twice")]
    Twice(u16),
    /// The network interface is not among the participants of a pattern by index.
    #[error("processor {0} is not among the participants")]
    NotParticipant(u16),
    /// The pattern needs another number of participants.
    #[error("this pattern needs {need} participants, not {have}")]
    Participants {
        /// What the pattern needs.
        need: &'static str,
        /// How many there are.
        have: usize,
    },
    /// A hot spot's `percent` is not 1 to 100, or it has no targets.
    #[error("a hot spot needs at least one target and 1 to 100 percent")]
    Hotspot,
    /// The memory has no room for the run's addresses.
    #[error("{0} bytes of memory have no room for the run's addresses")]
    Memory(u64),
    /// A run is going on already.
    #[error("run {0} is still going on")]
    Busy(u32),
}

/// How the next destination is chosen, as an index into a list of destinations.
#[derive(Clone, Debug)]
pub(crate) enum Choice {
    /// In turn (a single destination is the common case).
    InTurn,
    /// Uniform over all.
    Uniform,
    /// The first `hot` destinations with probability `percent` / 100, otherwise the others.
    Hot { hot: usize, percent: u8 },
}

impl TrafficSpec {
    /// Checks everything that does not depend on who runs it.
    ///
    /// # Errors
    /// The first thing found wrong.
    pub fn validate(&self) -> Result<(), SpecError> {
        if self.run == 0 {
            return Err(SpecError::ZeroRun);
        }
        if !(1..=32).contains(&self.size) {
            return Err(SpecError::Size(self.size));
        }
        if !(1..=MAX_WINDOW).contains(&self.window) {
            return Err(SpecError::Window(self.window));
        }
        if !(1..=MAX_ADDRESSES).contains(&self.addresses) {
            return Err(SpecError::Addresses(self.addresses));
        }
        let named = match &self.pattern {
            Pattern::Hotspot { targets, percent } => {
                if targets.is_empty() || !(1..=100).contains(percent) {
                    return Err(SpecError::Hotspot);
                }
                targets.as_slice()
            }
            Pattern::List { destinations } => destinations.as_slice(),
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

    /// The destinations of `own` and the rule of choice among them. An empty list: `own` is silent.
    pub(crate) fn destinations(&self, own: u16) -> Result<(Vec<u16>, Choice), SpecError> {
        let others =
            |list: &[u16]| -> Vec<u16> { list.iter().copied().filter(|&p| p != own).collect() };
        if let Pattern::List { destinations } = &self.pattern {
            return Ok((others(destinations), Choice::InTurn));
        }
        let n = self.processors.len();
        let position = self.processors.iter().position(|&p| p == own);
        match &self.pattern {
            Pattern::Uniform => {
                position.ok_or(SpecError::NotParticipant(own))?;
                return Ok((others(&self.processors), Choice::Uniform));
            }
            Pattern::Hotspot { targets, percent } => {
                position.ok_or(SpecError::NotParticipant(own))?;
                let mut all = others(targets);
                let hot = all.len();
                all.extend(
                    self.processors
                        .iter()
                        .filter(|p| **p != own && !targets.contains(p)),
                );
                return Ok((
                    all,
                    Choice::Hot {
                        hot,
                        percent: *percent,
                    },
                ));
            }
            _ => {}
        }
        let i = position.ok_or(SpecError::NotParticipant(own))?;
        let mapping = self.pattern.mapping(n, self.seed)?;
        let to = mapping.map_or(i, |mapping| mapping.image(i));
        Ok((others(&[self.processors[to]]), Choice::InTurn))
    }
}

/// A pattern that gives every sender one destination, for a number of participants.
#[derive(Clone, Debug)]
pub(crate) struct Mapping {
    kind: MappingKind,
    n: usize,
}

#[derive(Clone, Debug)]
enum MappingKind {
    Neighbour,
    BitComplement,
    Tornado,
    BitReverse,
    Shuffle,
    Transpose,
    Table(Vec<usize>),
}

impl Mapping {
    /// The index that the sender of index `i`, below the number of participants, sends to.
    pub(crate) fn image(&self, i: usize) -> usize {
        let n = self.n;
        let bits = n.ilog2();
        match &self.kind {
            MappingKind::Neighbour => (i + 1) % n,
            MappingKind::BitComplement => n - 1 - i,
            MappingKind::Tornado => (i + n.div_ceil(2) - 1) % n,
            MappingKind::BitReverse => {
                (0..bits).fold(0, |to, b| to | (i >> b & 1) << (bits - 1 - b))
            }
            MappingKind::Shuffle => (i << 1 | i >> bits.saturating_sub(1)) & (n - 1),
            MappingKind::Transpose => (i << (bits / 2) | i >> (bits / 2)) & (n - 1),
            MappingKind::Table(to) => to[i],
        }
    }
}

impl Pattern {
    /// The pattern over `n` participants, at least one; `None` where a sender has more than one destination.
    pub(crate) fn mapping(&self, n: usize, seed: u64) -> Result<Option<Mapping>, SpecError> {
        let wrong = |need| Err(SpecError::Participants { need, have: n });
        let kind = match self {
            Self::Uniform | Self::Hotspot { .. } | Self::List { .. } => return Ok(None),
            Self::Neighbour => MappingKind::Neighbour,
            Self::BitComplement => MappingKind::BitComplement,
            Self::Tornado => MappingKind::Tornado,
            Self::BitReverse | Self::Shuffle if !n.is_power_of_two() => {
                return wrong("a power of two");
            }
            Self::BitReverse => MappingKind::BitReverse,
            Self::Shuffle => MappingKind::Shuffle,
            Self::Transpose if n.is_power_of_two() && n.ilog2().is_multiple_of(2) => {
                MappingKind::Transpose
            }
            Self::Transpose => return wrong("a power of four"),
            Self::Permutation => MappingKind::Table(random_permutation(n, seed)),
        };
        Ok(Some(Mapping { kind, n }))
    }
}

/// Stream of the seed that draws the permutation, apart from each sender's own stream.
const PERMUTATION_STREAM: u64 = 1 << 32;

fn random_permutation(n: usize, seed: u64) -> Vec<usize> {
    let mut rng = Rng::new(seed, PERMUTATION_STREAM);
    let mut to: Vec<usize> = (0..n).collect();
    for i in (1..n).rev() {
        to.swap(i, rng.below(i as u64 + 1) as usize);
    }
    to
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(pattern: Pattern, n: u16) -> TrafficSpec {
        TrafficSpec {
            pattern,
            processors: (100..100 + n).collect(),
            ..TrafficSpec::default()
        }
    }

    fn one(pattern: Pattern, n: u16, i: u16) -> Option<u16> {
        let (list, _) = spec(pattern, n).destinations(100 + i).unwrap();
        assert!(list.len() <= 1);
        list.first().map(|p| p - 100)
    }

    #[test]
    fn permutations_follow_their_definitions() {
        assert_eq!(one(Pattern::Neighbour, 5, 4), Some(0));
        assert_eq!(one(Pattern::BitComplement, 16, 0b0110), Some(0b1001));
        assert_eq!(one(Pattern::BitComplement, 5, 2), None);
        assert_eq!(one(Pattern::BitReverse, 16, 0b0011), Some(0b1100));
        assert_eq!(one(Pattern::Shuffle, 8, 0b101), Some(0b011));
        assert_eq!(one(Pattern::Transpose, 16, 0b0111), Some(0b1101));
        assert_eq!(one(Pattern::Tornado, 8, 6), Some(1));
        assert_eq!(one(Pattern::Tornado, 7, 0), Some(3));
        assert_eq!(one(Pattern::Shuffle, 1, 0), None);
    }

    #[test]
    fn each_permutation_gives_every_processor_one_sender() {
        for pattern in [
            Pattern::Neighbour,
            Pattern::BitComplement,
            Pattern::BitReverse,
            Pattern::Shuffle,
            Pattern::Transpose,
            Pattern::Tornado,
            Pattern::Permutation,
        ] {
            let mut seen: Vec<u16> = (0..16)
                .map(|i| one(pattern.clone(), 16, i).unwrap_or(i))
                .collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..16).collect::<Vec<_>>(), "{pattern:?}");
        }
    }

    #[test]
    fn a_seed_names_one_permutation() {
        let by_seed = |seed| {
            let spec = TrafficSpec {
                seed,
                ..spec(Pattern::Permutation, 64)
            };
            (100..164)
                .map(|p| spec.destinations(p).unwrap().0)
                .collect::<Vec<_>>()
        };
        assert_eq!(by_seed(7), by_seed(7));
        assert_ne!(by_seed(7), by_seed(8));
    }

    #[test]
    fn hot_spots_come_first_and_never_include_the_sender() {
        let pattern = Pattern::Hotspot {
            targets: vec![103, 100],
            percent: 20,
        };
        let (list, choice) = spec(pattern, 5).destinations(100).unwrap();
        assert_eq!(list, [103, 101, 102, 104]);
        assert!(matches!(
            choice,
            Choice::Hot {
                hot: 1,
                percent: 20
            }
        ));
    }

    #[test]
    fn what_is_left_out_has_a_default_and_what_is_unknown_is_refused() {
        let short: TrafficSpec = toml::from_str("run = 4\nprocessors = [1, 2]").unwrap();
        assert_eq!(
            short,
            TrafficSpec {
                run: 4,
                processors: vec![1, 2],
                ..TrafficSpec::default()
            }
        );
        let text = "run = 4\nop = \"get\"\n[pattern.hotspot]\ntargets = [7]\npercent = 5";
        let long: TrafficSpec = toml::from_str(text).unwrap();
        assert_eq!(
            long.pattern,
            Pattern::Hotspot {
                targets: vec![7],
                percent: 5
            }
        );
        assert_eq!(long.op, Operation::Get);
        let again: TrafficSpec = toml::from_str(&toml::to_string(&long).unwrap()).unwrap();
        assert_eq!(again, long);
        assert!(toml::from_str::<TrafficSpec>("run = 4\nsise = 8").is_err());
        assert!(toml::from_str::<TrafficSpec>("size = 8").is_err());
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        let ok = spec(Pattern::Uniform, 4);
        assert_eq!(ok.validate(), Ok(()));
        assert_eq!(
            TrafficSpec {
                run: 0,
                ..ok.clone()
            }
            .validate(),
            Err(SpecError::ZeroRun)
        );
        assert_eq!(
            TrafficSpec {
                size: 33,
                ..ok.clone()
            }
            .validate(),
            Err(SpecError::Size(33))
        );
        assert_eq!(
            TrafficSpec {
                size: 0,
                ..ok.clone()
            }
            .validate(),
            Err(SpecError::Size(0))
        );
        assert_eq!(
            TrafficSpec {
                window: 0,
                ..ok.clone()
            }
            .validate(),
            Err(SpecError::Window(0))
        );
        let far = Pattern::List {
            destinations: vec![0x8000],
        };
        assert_eq!(spec(far, 0).validate(), Err(SpecError::Processor(0x8000)));
        let again = |list: &[u16]| list.iter().chain(&list[..1]).copied().collect::<Vec<u16>>();
        let twice = Pattern::List {
            destinations: again(&[7, 8]),
        };
        assert_eq!(spec(twice, 0).validate(), Err(SpecError::Twice(7)));
        let twice = Pattern::Hotspot {
            targets: again(&[103]),
            percent: 5,
        };
        assert_eq!(spec(twice, 5).validate(), Err(SpecError::Twice(103)));
        let twice = TrafficSpec {
            processors: again(&ok.processors),
            ..ok.clone()
        };
        assert_eq!(twice.validate(), Err(SpecError::Twice(100)));
        let cold = Pattern::Hotspot {
            targets: vec![],
            percent: 5,
        };
        assert_eq!(spec(cold, 4).validate(), Err(SpecError::Hotspot));
        assert_eq!(
            ok.destinations(99).unwrap_err(),
            SpecError::NotParticipant(99)
        );
        for pattern in [Pattern::Shuffle, Pattern::BitReverse, Pattern::Transpose] {
            let refused = spec(pattern, 6).destinations(100);
            assert!(matches!(
                refused,
                Err(SpecError::Participants { have: 6, .. })
            ));
        }
        assert!(spec(Pattern::Transpose, 8).destinations(100).is_err());
    }
}

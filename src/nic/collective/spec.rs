//! Specification of a run of collective operations: participants, tree, operation and length.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::operation::{Collective, Number, Operand, Reduce};
use crate::rng::spread;
use crate::time::Duration;

/// Virtual collective engines of a NIC (Aries white paper, "Reductions and Barriers").
pub const ENGINES: usize = 4;
/// Maximum number of children of a tree node (Aries white paper, "Reductions and Barriers").
pub const MAX_BRANCHING: usize = 32;
/// Default time to wait for other participants: many request timeouts long.
pub const DEFAULT_PATIENCE: Duration = Duration::from_ms(60_000);
/// Maximum number of participants: more than the nodes of the largest system, and few enough for
/// exact sums of 32-bit floating point numbers.
pub(crate) const MAX_PARTICIPANTS: usize = 1 << 18;
/// One hour: longer waits hide a participant that will never arrive.
const MOST_PATIENCE_NS: u64 = 3_600_000_000_000;
/// Integers up to this value are exact in 32-bit floating point numbers.
const EXACT: u64 = 1 << 24;

/// One run of collective operations. Every participant gets the same specification.
///
/// Run, rank and iteration determine every operand, so every participant can compute every result
/// exactly; sums of floating point numbers are sums of small integers. A barrier too carries a word
/// of each participant and returns their sum. A participant that leaves the barrier with the right
/// sum has left after the last one entered.
///
/// The run ends at all participants after the same iteration: a participant that has reached
/// `count` or `duration_ns`, or is ordered to stop, announces that with its next contribution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CollectiveSpec {
    /// Identifies the run and its tree, and must differ from every earlier run; zero is rejected.
    pub run: u32,
    /// The participants, by virtual node number, in order of rank.
    pub nics: Vec<u32>,
    /// Maximum number of children per tree node, 1 to 32.
    #[serde(default = "default_branching")]
    pub branching: u32,
    #[serde(default)]
    pub root: u32,
    /// Number of the collective engine, 0 to 3.
    #[serde(default)]
    pub engine: u8,
    /// The operation, such as `barrier`, `sum-i64`, `sum-f64` or `min-i32`.
    #[serde(default = "default_op")]
    pub op: Collective,
    /// Number of iterations; zero means no limit.
    #[serde(default)]
    pub count: u64,
    /// Duration in nanoseconds; zero means no limit. If `count` is zero too, the run continues
    /// until it is stopped.
    #[serde(default)]
    pub duration_ns: u64,
    /// Nanoseconds that participants wait for each other before the run fails.
    #[serde(default = "default_patience_ns")]
    pub patience_ns: u64,
}

const fn default_branching() -> u32 {
    MAX_BRANCHING as u32
}

const fn default_op() -> Collective {
    Collective::Barrier
}

const fn default_patience_ns() -> u64 {
    DEFAULT_PATIENCE.as_ns()
}

impl Default for CollectiveSpec {
    fn default() -> Self {
        Self {
            run: 1,
            nics: Vec::new(),
            branching: default_branching(),
            root: 0,
            engine: 0,
            op: default_op(),
            count: 0,
            duration_ns: 0,
            patience_ns: default_patience_ns(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CollectiveSpecError {
    #[error("run number 0 is invalid")]
    ZeroRun,
    /// The previous run had the same number, and its packets may still be in flight.
    #[error("run {0} is already over")]
    SameRun(u32),
    #[error("{0} participants: expected 1 to {MAX_PARTICIPANTS}")]
    Participants(usize),
    #[error("NIC {0} is listed twice")]
    Twice(u32),
    /// The virtual node table does not contain this entry.
    #[error("virtual node {0} does not exist")]
    VirtualNode(u32),
    #[error("this NIC is not a participant")]
    NotParticipant,
    #[error("branching factor {0}: expected 1 to {MAX_BRANCHING}")]
    Branching(u32),
    #[error("root rank {0} does not exist")]
    Root(u32),
    #[error("collective engine {0} does not exist: there are {ENGINES}")]
    Engine(u8),
    #[error("run {0} is still in progress")]
    Busy(u32),
    /// The patience is zero, or longer than an hour.
    #[error("the timeout (`patience_ns`) is zero or longer than an hour")]
    Patience,
    #[error("{0}")]
    Tree(String),
}

impl CollectiveSpec {
    /// Checks all fields that do not depend on the participant.
    ///
    /// # Errors
    /// The first problem found.
    pub fn validate(&self) -> Result<(), CollectiveSpecError> {
        if self.run == 0 {
            return Err(CollectiveSpecError::ZeroRun);
        }
        if !(1..=MAX_PARTICIPANTS).contains(&self.nics.len()) {
            return Err(CollectiveSpecError::Participants(self.nics.len()));
        }
        if !(1..=MAX_BRANCHING as u32).contains(&self.branching) {
            return Err(CollectiveSpecError::Branching(self.branching));
        }
        if self.root as usize >= self.nics.len() {
            return Err(CollectiveSpecError::Root(self.root));
        }
        if usize::from(self.engine) >= ENGINES {
            return Err(CollectiveSpecError::Engine(self.engine));
        }
        if !(1..=MOST_PATIENCE_NS).contains(&self.patience_ns) {
            return Err(CollectiveSpecError::Patience);
        }
        let mut sorted = self.nics.clone();
        sorted.sort_unstable();
        match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(CollectiveSpecError::Twice(pair[0])),
            None => Ok(()),
        }
    }

    /// The contribution of `rank` to `iteration`.
    pub fn operand(&self, rank: u32, iteration: u64) -> Operand {
        let hash = spread(spread(u64::from(self.run) << 32 | u64::from(rank)) ^ iteration);
        let Collective::Reduce(reduce, number) = self.op else {
            return Operand::i64(hash as i64);
        };
        // With one bit per rank, a wrong result shows which rank is missing. Few distinct values
        // make many words equal, so that locations decide.
        let bit = 1 << (hash % (8 * number.bytes() as u64));
        let integer = match reduce {
            Reduce::And => !bit,
            Reduce::Or => bit,
            Reduce::Min | Reduce::Max => hash % 64,
            Reduce::Sum if number.is_float() => hash % (EXACT / self.nics.len() as u64),
            Reduce::Sum | Reduce::Xor => hash,
        };
        let operand = match number {
            Number::Int32 => Operand::i32(integer as i32),
            Number::Int64 => Operand::i64(integer as i64),
            Number::Float32 => Operand::f32(integer as f32),
            Number::Float64 => Operand::f64(integer as f64),
        };
        self.op.normal(operand.at(rank.into()))
    }

    /// The expected result of `iteration`.
    pub fn result(&self, iteration: u64) -> Operand {
        let ranks = 0..self.nics.len() as u32;
        let operands = ranks.map(|rank| self.operand(rank, iteration));
        operands
            .reduce(|first, second| self.op.combine(first, second))
            .unwrap_or_default()
    }
}

//! The numbers at one moment, and the lines that change them.

use phitwire::device::pipeline::Stage;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::header::{Event, Header};

/// Maximum number of numbers in a state: 64 MiB.
const MOST_NUMBERS: usize = 8 << 20;
const MOST_TEXTS: usize = 1 << 16;
const LONGEST_TEXT: usize = 4_096;
/// Maximum number of events per line.
const MOST_EVENTS: usize = 1 << 16;
/// Maximum number of stages of a node, and of channels and positions of a stage.
const MOST_PARTS: usize = 4_096;

/// The changes since the previous line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// Time by the clock of the header.
    pub t: u64,
    /// New texts. Number 1 is the first of all texts; 0 is the empty text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub s: Vec<String>,
    /// Nodes whose stages are recorded from now on, or in a new layout.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub p: Vec<PlacedStages>,
    /// Pairs of numbers: the distance to the next changed number (from the last one, or from the
    /// position before the first), and its change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub v: Vec<i64>,
    /// Events since the previous line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub e: Vec<Event>,
}

/// The stages of a node. Their numbers follow all existing ones: per stage the stalls, then the
/// content of each position by channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlacedStages {
    /// Index in the node list.
    pub node: u32,
    /// Index of the first number of the stages.
    pub at: usize,
    /// The stages. Stalls are recorded unless absent; positions are empty here.
    pub stages: Vec<Stage>,
}

impl PlacedStages {
    /// How many numbers the stages have.
    pub fn numbers(&self) -> usize {
        let of = |stage: &Stage| 1 + stage.places.len() * stage.channels.len();
        self.stages.iter().map(of).sum()
    }
}

/// Why a line is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    #[error("time runs backwards: {0} after {1}")]
    Backwards(u64, u64),
    #[error("change of a number out of range: there are {0}")]
    NoSuchNumber(usize),
    #[error("`v` has an odd number of elements; expected pairs")]
    Odd,
    #[error("more than {1} {0}")]
    TooMany(&'static str, usize),
    #[error("event at link {0}, but there are only {1} links")]
    NoSuchLink(u32, usize),
    /// The stages are not at the end of all numbers, or belong to no node.
    #[error("stages of node {node} at invalid position {at}")]
    Misplaced {
        node: u32,
        /// Index of the first number of the stages.
        at: usize,
    },
}

/// Values of all numbers at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    pub t: u64,
    pub numbers: Vec<i64>,
    /// The texts; index 0 has number 1.
    pub texts: Vec<String>,
    /// Stages added so far, in the order of their numbers.
    placed: Vec<PlacedStages>,
    /// For each node, the index in `placed` of its latest stages.
    latest: Vec<Option<usize>>,
    links: usize,
}

impl State {
    /// The state before any line.
    pub fn new(header: &Header) -> Self {
        Self {
            t: 0,
            numbers: vec![0; header.numbers()],
            texts: Vec::new(),
            placed: Vec::new(),
            latest: vec![None; header.nodes.len()],
            links: header.links.len(),
        }
    }

    /// The stages of a node; `None` until it has reported them.
    pub fn stages(&self, node: usize) -> Option<&PlacedStages> {
        Some(&self.placed[(*self.latest.get(node)?)?])
    }

    /// Applies a line.
    ///
    /// # Errors
    /// See [`Fault`]. The state is then unusable.
    pub fn apply(&mut self, line: &Line) -> Result<(), Fault> {
        if line.t < self.t {
            return Err(Fault::Backwards(line.t, self.t));
        }
        if line.e.len() > MOST_EVENTS {
            return Err(Fault::TooMany("events in a line", MOST_EVENTS));
        }
        let mut links = line.e.iter().filter_map(|event| event.link);
        if let Some(link) = links.find(|&link| link as usize >= self.links) {
            return Err(Fault::NoSuchLink(link, self.links));
        }
        self.t = line.t;
        let is_long = |text: &String| text.len() > LONGEST_TEXT;
        if line.s.iter().any(is_long) || self.texts.len() + line.s.len() > MOST_TEXTS {
            return Err(Fault::TooMany("texts, or bytes of a text", LONGEST_TEXT));
        }
        self.texts.extend_from_slice(&line.s);
        for placed in &line.p {
            self.place(placed)?;
        }
        if !line.v.len().is_multiple_of(2) {
            return Err(Fault::Odd);
        }
        let mut at = -1_i64;
        for pair in line.v.chunks_exact(2) {
            let next = at.checked_add(pair[0]).filter(|&next| next > at);
            let number = next
                .and_then(|next| usize::try_from(next).ok())
                .and_then(|next| self.numbers.get_mut(next));
            let Some(number) = number else {
                return Err(Fault::NoSuchNumber(self.numbers.len()));
            };
            *number = number.wrapping_add(pair[1]);
            at += pair[0];
        }
        Ok(())
    }

    fn place(&mut self, placed: &PlacedStages) -> Result<(), Fault> {
        let misplaced = Fault::Misplaced {
            node: placed.node,
            at: placed.at,
        };
        let parts = placed.stages.iter().flat_map(|stage| {
            [
                stage.channels.len(),
                stage.places.len(),
                stage.capacity.len(),
            ]
        });
        if placed.stages.len() > MOST_PARTS || parts.max().unwrap_or(0) > MOST_PARTS {
            return Err(Fault::TooMany("stages, channels or positions", MOST_PARTS));
        }
        let end = self.numbers.len() + placed.numbers();
        if end > MOST_NUMBERS {
            return Err(Fault::TooMany("numbers", MOST_NUMBERS));
        }
        if placed.at != self.numbers.len() {
            return Err(misplaced);
        }
        let slot = self.latest.get_mut(placed.node as usize);
        *slot.ok_or(misplaced)? = Some(self.placed.len());
        self.placed.push(placed.clone());
        self.numbers.resize(end, 0);
        Ok(())
    }

    /// The line that leads from the initial state to this one. Any line that may follow this state
    /// may also follow that line.
    pub fn whole(&self) -> Line {
        Line {
            t: self.t,
            s: self.texts.clone(),
            p: self.placed.clone(),
            v: changes(&[], &self.numbers),
            e: Vec::new(),
        }
    }

    /// Appends numbers for the stages of a node; `None` if the limit is reached.
    pub(super) fn add(&mut self, node: usize, stages: Vec<Stage>) -> Option<&PlacedStages> {
        let placed = PlacedStages {
            node: node as u32,
            at: self.numbers.len(),
            stages,
        };
        self.place(&placed).ok()?;
        self.placed.last()
    }
}

/// The pairs that change one row of numbers into another, which may be longer.
pub(super) fn changes(from: &[i64], to: &[i64]) -> Vec<i64> {
    let mut pairs = Vec::new();
    let mut last = -1;
    for (at, &number) in to.iter().enumerate() {
        let old = from.get(at).copied().unwrap_or(0);
        if number != old {
            pairs.extend([at as i64 - last, number.wrapping_sub(old)]);
            last = at as i64;
        }
    }
    pairs
}

//! Traffic patterns, shared by live traffic and virtual time.

use serde::{Deserialize, Serialize};

use super::traffic_spec::SpecError;
use crate::rng::Rng;

/// Maps senders to destinations. `i` is the sender's index among the `n` participants
/// ([`TrafficSpec::processors`](super::TrafficSpec::processors)). Names and definitions follow
/// BookSim for the patterns that it has.
///
/// A processor that a permutation maps to itself stays silent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum TrafficPattern {
    /// To a random participant other than the sender.
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
    /// A permutation drawn from the run's seed, the same at every participant.
    Permutation,
    /// To a random participant of the next group: the adversarial pattern of networks of groups.
    /// Groups follow each other by number, the first after the last
    /// ([`TrafficSpec::groups`](super::TrafficSpec::groups)). On shortest paths, the one or few
    /// channels between two groups would carry everything that a group sends.
    GroupAdversarial,
    /// To one of `targets` with probability `percent` / 100, otherwise uniform.
    Hotspot {
        targets: Vec<u16>,
        /// Percentage of messages to these targets, 1 to 100.
        percent: u8,
    },
    /// To each of `destinations` in turn, except the sender itself. The list is the same for every
    /// sender.
    List { destinations: Vec<u16> },
}

/// How the next destination is chosen, as an index into a list of destinations.
#[derive(Clone, Debug)]
pub(crate) enum Choice {
    /// In turn; covers the common case of a single destination.
    InTurn,
    Uniform,
    /// Among the first `hot` destinations with probability `percent` / 100, else among the others.
    Hot {
        hot: usize,
        percent: u8,
    },
}

impl Choice {
    /// Chooses one of `all` destinations, at least one. `turn` is the index after the last choice
    /// in turn.
    #[inline]
    pub(crate) fn draw(&self, all: usize, turn: &mut usize, rng: &mut Rng) -> usize {
        match *self {
            Self::InTurn => {
                if *turn >= all {
                    *turn = 0;
                }
                *turn
            }
            Self::Uniform => rng.below(all as u64) as usize,
            Self::Hot { hot, percent } => {
                let wants_hot = rng.chance(u64::from(percent), 100);
                let (from, to) = match (wants_hot, hot) {
                    (_, 0) => (0, all),
                    (true, _) => (0, hot),
                    (false, _) if hot == all => (0, all),
                    (false, _) => (hot, all),
                };
                from + rng.below((to - from) as u64) as usize
            }
        }
    }
}

/// A pattern with one destination per sender, for a given number of participants.
#[derive(Clone, Debug)]
pub struct Mapping {
    pattern: TrafficPattern,
    n: usize,
    /// For a permutation, the destination of each sender.
    to: Vec<usize>,
}

impl Mapping {
    /// The destination index of sender `i`, which is below the number of participants.
    pub(crate) fn image(&self, i: usize) -> usize {
        let n = self.n;
        let bits = n.ilog2();
        match self.pattern {
            TrafficPattern::Neighbour => (i + 1) % n,
            TrafficPattern::BitComplement => n - 1 - i,
            TrafficPattern::Tornado => (i + n.div_ceil(2) - 1) % n,
            TrafficPattern::BitReverse => {
                (0..bits).fold(0, |to, b| to | (i >> b & 1) << (bits - 1 - b))
            }
            TrafficPattern::Shuffle => (i << 1 | i >> bits.saturating_sub(1)) & (n - 1),
            TrafficPattern::Transpose => (i << (bits / 2) | i >> (bits / 2)) & (n - 1),
            _ => self.to[i],
        }
    }
}

impl TrafficPattern {
    /// All patterns without parameters, in the order of the documentation.
    pub(crate) const PLAIN: [Self; 9] = [
        Self::Uniform,
        Self::BitComplement,
        Self::Transpose,
        Self::BitReverse,
        Self::Shuffle,
        Self::Permutation,
        Self::Tornado,
        Self::Neighbour,
        Self::GroupAdversarial,
    ];

    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Neighbour => "neighbour",
            Self::BitComplement => "bit-complement",
            Self::BitReverse => "bit-reverse",
            Self::Shuffle => "shuffle",
            Self::Transpose => "transpose",
            Self::Tornado => "tornado",
            Self::Permutation => "permutation",
            Self::GroupAdversarial => "group-adversarial",
            Self::Hotspot { .. } => "hotspot",
            Self::List { .. } => "list",
        }
    }

    /// The pattern over `n` participants, at least one; `None` if a sender may have several
    /// destinations.
    pub(crate) fn mapping(&self, n: usize, seed: u64) -> Result<Option<Mapping>, SpecError> {
        let wrong = |need| Err(SpecError::Participants { need, have: n });
        let to = match self {
            Self::Uniform | Self::GroupAdversarial | Self::Hotspot { .. } | Self::List { .. } => {
                return Ok(None);
            }
            Self::BitReverse | Self::Shuffle if !n.is_power_of_two() => {
                return wrong("a power of two");
            }
            Self::Transpose if !n.is_power_of_two() || !n.ilog2().is_multiple_of(2) => {
                return wrong("a power of four");
            }
            Self::Permutation => random_permutation(n, seed),
            _ => Vec::new(),
        };
        let pattern = self.clone();
        Ok(Some(Mapping { pattern, n, to }))
    }
}

/// Stream of the seed for the permutation, separate from each sender's stream.
const PERMUTATION_STREAM: u64 = 1 << 32;

fn random_permutation(n: usize, seed: u64) -> Vec<usize> {
    let mut rng = Rng::new(seed, PERMUTATION_STREAM);
    let mut to: Vec<usize> = (0..n).collect();
    for i in (1..n).rev() {
        to.swap(i, rng.below(i as u64 + 1) as usize);
    }
    to
}

/// Participants by group, for patterns from group to group.
#[derive(Clone, Debug)]
pub struct Groups {
    /// Rank of each participant's group among the groups present.
    ranks: Vec<u32>,
    /// All participants, group by group.
    participants: Vec<u32>,
    /// Index in `participants` where each group begins, plus the end.
    starts: Vec<u32>,
}

impl Groups {
    /// Builds the groups from the group number of each participant. Groups are ordered by number,
    /// which may have gaps.
    pub(crate) fn new(of: impl IntoIterator<Item = u16>) -> Self {
        let of: Vec<u16> = of.into_iter().collect();
        let mut participants: Vec<u32> = (0..of.len() as u32).collect();
        participants.sort_by_key(|&participant| of[participant as usize]);
        let mut ranks = vec![0; of.len()];
        let mut starts = Vec::new();
        let mut last = None;
        for (&participant, begin) in participants.iter().zip(0..) {
            let group = of[participant as usize];
            if last != Some(group) {
                starts.push(begin);
                last = Some(group);
            }
            ranks[participant as usize] = starts.len() as u32 - 1;
        }
        starts.push(of.len() as u32);
        Self {
            ranks,
            participants,
            starts,
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// The participants of the group after that of `participant`, in ascending order.
    #[inline]
    pub(crate) fn next_of(&self, participant: usize) -> &[u32] {
        let next = self.ranks[participant] as usize + 1;
        let next = if next == self.count() { 0 } else { next };
        &self.participants[self.starts[next] as usize..self.starts[next + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_follow_each_other_by_number() {
        let next = |of: &[u16]| {
            let groups = Groups::new(of.iter().copied());
            let next = |participant| groups.next_of(participant).to_vec();
            (groups.count(), (0..of.len()).map(next).collect::<Vec<_>>())
        };
        let (count, of) = next(&[0, 0, 0, 2, 2, 7]);
        assert_eq!(count, 3);
        assert_eq!(of[..3], [[3, 4], [3, 4], [3, 4]]);
        assert_eq!(of[3..5], [[5], [5]]);
        assert_eq!(of[5], [0, 1, 2]);
        // Participants of a lab are ordered by name, not by group.
        let (count, of) = next(&[1, 0, 2, 1, 0]);
        assert_eq!(count, 3);
        assert_eq!(of, [vec![2], vec![0, 3], vec![1, 4], vec![2], vec![0, 3]]);
        assert_eq!(next(&[5, 5]).0, 1);
        assert_eq!(next(&[]).0, 0);
    }
}

//! Checks a topology before a process starts.

mod cycles;
mod rates;
mod reach;
mod structure;
mod tables;

use super::model::FoldedClos;
use super::wiring::ClosWiring;
use phitwire::net::Effort;
use phitwire::net::{Mistake, Mistakes};

/// All mistakes of a topology, up to [`MAX_MISTAKES`](phitwire::net::MAX_MISTAKES).
///
/// Names, numbers, ports, links and subtrees are checked first, then rates per octant and table
/// entries. If they are correct, every path through the registers is followed: from every
/// processor, in every slice, to every processor, by every port that the hash or the adaptive
/// decision may choose. Then the channels that packets hold while they wait for others are searched
/// for a cycle.
///
/// The walk is exact, not sampled. Processors that no router's registers distinguish share one
/// walk, so 32,768 processors take seconds.
pub fn check(topology: &FoldedClos) -> Vec<Mistake> {
    within(topology, Effort::Exact).0.into_vec()
}

/// Like [`check`], but with the given effort. Also returns whether all packets were followed to
/// their ends.
pub(super) fn within(topology: &FoldedClos, effort: Effort) -> (Mistakes, bool) {
    let wiring = ClosWiring::new(topology);
    let mut mistakes = structure::check(topology, &wiring);
    rates::check(topology, &mut mistakes);
    tables::check(topology, &wiring, &mut mistakes);
    let mut followed = false;
    if mistakes.is_empty() {
        let walk = reach::walk(topology, &wiring, effort.steps());
        followed = walk.followed;
        mistakes.extend(walk.mistakes);
        mistakes.extend(cycles::check(topology, &wiring, &walk.waits_for));
    }
    (mistakes, followed)
}

/// Structural mistakes of a topology that lacks parts because they could not be read.
pub(super) fn structure_of_a_part(topology: &FoldedClos) -> Mistakes {
    let mut mistakes = structure::of_a_part(topology);
    rates::check(topology, &mut mistakes);
    mistakes
}

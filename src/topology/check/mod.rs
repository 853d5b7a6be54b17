//! Finding what is wrong with a topology before a process starts.

mod cycles;
mod rates;
mod reach;
pub(super) mod structure;
mod tables;

use super::mistake::Mistake;
use super::model::Topology;
use super::wiring::Wiring;

/// Mistakes reported at most: a thousand consequences of one slip help nobody.
const MOST_MISTAKES: usize = 64;

/// Everything that is wrong with a topology, up to 64 mistakes; empty if nothing is.
///
/// Names, numbers, ports, links and subtrees are judged first, then rates per octant and the
/// entries of tables. Only if all of that is right, every way through the registers is walked: from
/// every processor, in every slice, to every processor, by every port that the hash or the adaptive
/// decision may choose; and the channels that packets hold while they wait for others are searched
/// for a circle.
///
/// The walk is exact, not sampled. Processors between which no register of any router tells a
/// difference are walked to once, so that 32,768 processors take seconds.
pub fn check(topology: &Topology) -> Vec<Mistake> {
    let wiring = Wiring::new(topology);
    let mut mistakes = structure::check(topology, &wiring);
    mistakes.extend(rates::check(topology));
    mistakes.extend(tables::check(topology, &wiring));
    if mistakes.is_empty() {
        let walk = reach::walk(topology, &wiring);
        mistakes = walk.mistakes;
        mistakes.extend(cycles::check(topology, &wiring, &walk.waits_for));
    }
    mistakes.truncate(MOST_MISTAKES);
    mistakes
}

/// What is wrong with the structure of a topology of which some parts are missing because they
/// could not be read.
pub(super) fn structure_of_a_part(topology: &Topology) -> Vec<Mistake> {
    let mut mistakes = structure::of_a_part(topology);
    mistakes.extend(rates::check(topology));
    mistakes.truncate(MOST_MISTAKES);
    mistakes
}

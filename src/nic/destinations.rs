//! The sequence of destinations of a sender's messages.

use super::traffic_pattern::Choice;
use super::traffic_spec::{SpecError, TrafficSpec};
use crate::rng::Rng;

/// Draws the destinations of a processor's messages, for client programs that send in place of the
/// NIC. The sequence is infinite, or empty if the processor is silent.
#[derive(Clone, Debug)]
pub struct Destinations {
    all: Vec<u16>,
    choice: Choice,
    rng: Rng,
    turn: usize,
}

impl Destinations {
    /// The destinations of processor `own` in the run `spec`.
    ///
    /// # Errors
    /// If the pattern does not support this number of participants, or `own` is not a participant.
    pub fn new(spec: &TrafficSpec, own: u16) -> Result<Self, SpecError> {
        let (all, choice) = spec.destinations(own)?;
        let (rng, turn) = (Rng::new(spec.seed, own.into()), 0);
        Ok(Self {
            all,
            choice,
            rng,
            turn,
        })
    }

    pub fn all(&self) -> &[u16] {
        &self.all
    }
}

impl Iterator for Destinations {
    type Item = u16;

    fn next(&mut self) -> Option<u16> {
        if self.all.is_empty() {
            return None;
        }
        let index = self
            .choice
            .draw(self.all.len(), &mut self.turn, &mut self.rng);
        self.turn = index + 1;
        Some(self.all[index])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nic::TrafficPattern;

    fn of(pattern: TrafficPattern, own: u16) -> Destinations {
        let spec = TrafficSpec {
            pattern,
            processors: vec![3, 5, 9],
            ..TrafficSpec::default()
        };
        Destinations::new(&spec, own).expect("the NIC takes part")
    }

    #[test]
    fn a_list_is_gone_through_in_turn_and_a_drawn_one_is_drawn_from() {
        let destinations = vec![9, 3, 5];
        let list = of(TrafficPattern::List { destinations }, 5);
        assert_eq!(list.take(4).collect::<Vec<_>>(), [9, 3, 9, 3]);
        let mut drawn: Vec<u16> = of(TrafficPattern::Uniform, 3).take(50).collect();
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn, [5, 9], "both others, never itself");
        assert_eq!(of(TrafficPattern::Neighbour, 9).next(), Some(3));
        let destinations = vec![3];
        assert_eq!(of(TrafficPattern::List { destinations }, 3).next(), None);
    }
}

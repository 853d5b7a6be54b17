//! The deadlines of a chip's ports; the earliest is always known.

use crate::node::MAX_PORTS;
use crate::time::Time;

const _: () = assert!(
    MAX_PORTS.is_power_of_two(),
    "the tree of deadlines has a leaf for every port"
);

/// One deadline per port as a tournament tree: each inner node holds the earlier of its two
/// children, so the root holds the earliest of all.
///
/// Setting a deadline costs at most one comparison per level, of which there are six.
#[derive(Clone, Debug)]
pub(crate) struct Deadlines {
    /// The root is at 1, the children of `n` at `2 n` and `2 n + 1`; the leaves are the deadlines.
    nodes: Box<[Time; 2 * MAX_PORTS]>,
}

impl Default for Deadlines {
    /// Starts without deadlines.
    fn default() -> Self {
        Self {
            nodes: Box::new([Time::NEVER; 2 * MAX_PORTS]),
        }
    }
}

impl Deadlines {
    /// Sets deadline `number`; [`Time::NEVER`] clears it.
    ///
    /// # Panics
    /// If `number` is not below [`MAX_PORTS`].
    #[inline]
    pub(crate) fn set(&mut self, number: usize, at: Time) {
        assert!(number < MAX_PORTS, "deadline {number} of {MAX_PORTS}");
        let mut node = MAX_PORTS + number;
        self.nodes[node] = at;
        while node > 1 {
            let earlier = self.nodes[node].min(self.nodes[node ^ 1]);
            node /= 2;
            if self.nodes[node] == earlier {
                return;
            }
            self.nodes[node] = earlier;
        }
    }

    /// The earliest deadline; [`Time::NEVER`] if none is set.
    #[inline]
    pub(crate) fn earliest(&self) -> Time {
        self.nodes[1]
    }

    /// The deadlines at or before `now`, one bit per number.
    #[inline]
    pub(crate) fn due(&self, now: Time) -> u64 {
        let mut due = u64::from(self.earliest() <= now);
        let mut width = 2;
        while due != 0 && width <= MAX_PORTS {
            due = self.due_below(now, due, width);
            width *= 2;
        }
        due
    }

    /// Due nodes among the `width` of a level, given those of the level above.
    fn due_below(&self, now: Time, mut above: u64, width: usize) -> u64 {
        let mut due = 0;
        while above != 0 {
            let left = 2 * above.trailing_zeros() as usize;
            above &= above - 1;
            for child in [left, left + 1] {
                due |= u64::from(self.nodes[width + child] <= now) << child;
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// Due ports, by a scan of every deadline.
    fn due(model: &[Time; MAX_PORTS], now: Time) -> u64 {
        (model.iter().enumerate())
            .fold(0, |due, (number, at)| due | u64::from(*at <= now) << number)
    }

    #[test]
    fn matches_a_linear_scan() {
        let mut rng = Rng::new(17, 0);
        let mut deadlines = Deadlines::default();
        let mut model = [Time::NEVER; MAX_PORTS];
        let mut several = 0;
        for _ in 0..100_000 {
            let number = rng.below(MAX_PORTS as u64) as usize;
            let at = match rng.below(5) {
                0 => Time::NEVER,
                1 => Time::from_ps(rng.below(20)),
                _ => Time::from_ps(rng.below(10_000)),
            };
            deadlines.set(number, at);
            model[number] = at;
            let earliest = model
                .iter()
                .copied()
                .min()
                .expect("the model has 64 deadlines");
            assert_eq!(deadlines.earliest(), earliest);
            let now = Time::from_ps(rng.below(300));
            assert_eq!(deadlines.due(now), due(&model, now));
            several += u32::from(deadlines.due(now).count_ones() > 1);
        }
        assert!(
            several > 10_000,
            "several deadlines were due only {several} times"
        );
    }

    #[test]
    fn every_number_can_be_the_only_one() {
        let mut deadlines = Deadlines::default();
        assert_eq!(deadlines.earliest(), Time::NEVER);
        assert_eq!(deadlines.due(Time::from_ns(1_000_000)), 0);
        for number in 0..MAX_PORTS {
            let at = Time::from_ns(7);
            deadlines.set(number, at);
            assert_eq!((deadlines.earliest(), deadlines.due(at)), (at, 1 << number));
            assert_eq!(deadlines.due(Time::from_ns(6)), 0);
            deadlines.set(number, Time::NEVER);
            assert_eq!(deadlines.due(at), 0);
        }
    }

    #[test]
    fn all_can_be_due_at_once() {
        let mut deadlines = Deadlines::default();
        (0..MAX_PORTS).for_each(|number| deadlines.set(number, Time::ZERO));
        assert_eq!(deadlines.due(Time::ZERO), u64::MAX);
    }

    #[test]
    #[should_panic(expected = "deadline 64 of 64")]
    fn there_is_no_65th() {
        Deadlines::default().set(64, Time::ZERO);
    }
}

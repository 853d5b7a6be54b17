//! Names of requests: the [slot](crate::nic::slab) in the lowest bits; above it the
//! [period](crate::nic::periods) in which the request was posted, modulo what the remaining bits
//! can distinguish.

/// Minimum number of bits for the period.
const LEAST_PERIOD_BITS: u32 = 4;
/// With at least this many bits for the period, periods have their usual length.
const PERIOD_BITS: u32 = 6;
/// Maximum number of bits for a slot.
const MOST_SLOT_BITS: u32 = 16;

/// Maximum number of outstanding requests with names of `name_bits` bits, at least 5.
pub(crate) const fn most_outstanding(name_bits: u32) -> u32 {
    assert!(LEAST_PERIOD_BITS < name_bits && name_bits <= u64::BITS);
    let slot_bits = name_bits - LEAST_PERIOD_BITS;
    1 << if slot_bits < MOST_SLOT_BITS {
        slot_bits
    } else {
        MOST_SLOT_BITS
    }
}

/// Division of a name into slot and period.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names {
    slot_bits: u32,
    period_bits: u32,
}

impl Names {
    /// Names of `name_bits` bits for `outstanding` requests.
    ///
    /// # Panics
    /// If `outstanding` is 0 or more than [`most_outstanding`]; configurations are checked earlier.
    pub(super) fn new(name_bits: u32, outstanding: u32) -> Self {
        let most = most_outstanding(name_bits);
        assert!(
            (1..=most).contains(&outstanding),
            "{outstanding} outstanding requests: names of {name_bits} bits distinguish 1 to {most}"
        );
        let slot_bits = outstanding.next_power_of_two().ilog2();
        Self {
            slot_bits,
            period_bits: (name_bits - slot_bits).min(u32::BITS),
        }
    }

    /// Factor by which periods must be longer than usual. More slots leave fewer bits for the
    /// period, so each period must last longer for names to recur no sooner.
    pub(super) fn longer_periods(self) -> u64 {
        1 << PERIOD_BITS.saturating_sub(self.period_bits)
    }

    #[inline]
    pub(super) const fn name(self, slot: u32, period: u32) -> u64 {
        let period = period as u64 & ((1 << self.period_bits) - 1);
        period << self.slot_bits | slot as u64
    }

    /// The slot in `name`, if it is a valid name.
    #[inline]
    pub(super) const fn slot(self, name: u64) -> u32 {
        name as u32 & ((1 << self.slot_bits) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nic::periods::{Incarnation, Periods};
    use crate::nic::slab::{Entry, Slab};
    use crate::rng::Rng;
    use crate::time::{Duration, Time};

    #[derive(Clone, Copy, Debug)]
    struct Posted(Time);

    impl Entry for Posted {
        fn posted(&self) -> Time {
            self.0
        }
    }

    /// Names of `bits` bits, and the slots of a NIC that starts at `now`, in periods of two
    /// seconds.
    fn made((bits, outstanding): (u32, u32), now: Time) -> (Names, Slab<Posted>) {
        let names = Names::new(bits, outstanding);
        let after = Incarnation {
            clock_ns: 0,
            first: now == Time::ZERO,
        };
        let timeout = Duration::from_ms(2_000);
        let periods = Periods::new(after, now, timeout, names.longer_periods());
        (names, Slab::new(outstanding, Posted(now), periods))
    }

    #[test]
    fn sixteen_bits_are_nine_of_512_slots_and_seven_of_periods() {
        let names = Names::new(16, 512);
        assert_eq!(names.name(3, 5), 5 << 9 | 3);
        assert_eq!(names.slot(names.name(511, 127)), 511);
        let same = (0..1_000).filter(|&period| names.name(3, period) == names.name(3, 5));
        assert!(same.eq((5..1_000).step_by(128)));
        assert_eq!(names.longer_periods(), 1);
        assert_eq!(most_outstanding(16), 4_096);
        assert_eq!(Names::new(16, 4_096).longer_periods(), 4);
        assert_eq!(most_outstanding(u64::BITS), 65_536);
        let wide = Names::new(u64::BITS, 64);
        assert_eq!(wide.name(1, u32::MAX), u64::from(u32::MAX) << 6 | 1);
        assert_eq!(wide.slot(u64::MAX), 63);
    }

    #[test]
    #[should_panic = "4097 outstanding requests"]
    fn requests_without_a_slot_in_a_name_are_refused() {
        let _ = Names::new(16, 4_097);
    }

    /// Names recur after as many periods as their bits distinguish, and not before.
    #[test]
    fn a_name_comes_again_when_its_bits_have_come_round() {
        let (names, mut slab) = made((16, 512), Time::ZERO);
        let mut now = Time::ZERO;
        let mut begin = |now: Time| {
            slab.advance(now);
            let (slot, period) = slab.begin(Posted(now)).expect("the period has begun");
            slab.finish(slot);
            for _ in 0..511 {
                // Use all 512 slots in turn, so that the next request gets the same one again.
                let (slot, _) = slab.begin(Posted(now)).expect("512 names are free");
                slab.finish(slot);
            }
            names.name(slot, period)
        };
        let first = begin(now);
        let mut periods = 0;
        loop {
            now += Duration::from_ms(2_000);
            periods += 1;
            if begin(now) == first {
                break;
            }
        }
        assert_eq!(periods, 128);
    }

    /// NICs killed with requests outstanding, whose replies arrive at any later time.
    #[test]
    fn no_name_is_reused_within_two_minutes_across_restarts() {
        let sizes = [(16, 512), (16, 4_096), (12, 200), (5, 2), (64, 64)];
        for (seed, size) in (0..500).flat_map(|seed| sizes.map(|size| (seed, size))) {
            let mut rng = Rng::new(seed, 9);
            let mut now = Time::from_ns(rng.below(1 << 32));
            let mut asked: Vec<(Time, u64)> = Vec::new();
            for _life in 0..5 {
                let (names, mut slab) = made(size, now);
                for _ in 0..rng.below(100) {
                    now += Duration::from_ns(1 << [12, 24, 30, 34][rng.below(4) as usize]);
                    slab.advance(now);
                    while rng.chance(1, 3) && slab.expire(now).is_some() {}
                    let Some((slot, period)) = slab.begin(Posted(now)) else {
                        continue;
                    };
                    if rng.chance(1, 4) {
                        slab.finish(slot);
                        continue;
                    }
                    let name = names.name(slot, period);
                    assert_eq!(names.slot(name), slot);
                    if let Some((before, _)) = asked.iter().rev().find(|(_, n)| *n == name) {
                        let apart = now.since(*before);
                        assert!(
                            apart >= Duration::from_ms(120_000),
                            "{seed} {size:?}: {apart:?}"
                        );
                    }
                    asked.push((now, name));
                }
                now += Duration::from_ns(1 << [20, 28, 34][rng.below(3) as usize]);
            }
        }
    }
}

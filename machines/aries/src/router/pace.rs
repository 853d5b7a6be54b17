//! Flits that a port moves per cycle.

use super::pipeline::LOAD_CYCLES;
use crate::link::rates;
use phitwire::link::LaneRate;

/// A number of flits that a port can move in a number of cycles, spread evenly. Slots for flits are
/// numbered from cycle 0 on, so the slots of a cycle follow from the cycle's number, and both ends
/// of a link agree on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    flits: u64,
    cycles: u64,
}

impl Pace {
    /// A network port at 14 Gb/s: nine flits of data in ten cycles. The link uses the tenth flit of
    /// a set (XC white paper, "Aries Router").
    pub const PORT: Self = Self::new(LOAD_CYCLES - 1, LOAD_CYCLES);
    /// A NIC, in either direction: "The Aries NIC can perform a 64-byte read or write every five
    /// cycles (10.2 GB/s at 800MHz)" (XC white paper, "Aries Performance"). A 64-byte put is 14
    /// flits, so this is 2.56 flits per cycle of 875 MHz.
    pub const NIC: Self = Self::new(14 * 800, 5 * 875);

    const fn new(flits: u64, cycles: u64) -> Self {
        let (mut divisor, mut rest) = (flits, cycles);
        while rest != 0 {
            (divisor, rest) = (rest, divisor % rest);
        }
        Self {
            flits: flits / divisor,
            cycles: cycles / divisor,
        }
    }

    /// The pace of a network port with lanes of the given rate, at most [`PORT`](Self::PORT).
    pub const fn of_port(rate: LaneRate) -> Self {
        let (full, rate) = (rates::G14_0.bits_per_second(), rate.bits_per_second());
        assert!(rate <= full, "the rate exceeds one flit per cycle");
        Self::new(Self::PORT.flits * rate, Self::PORT.cycles * full)
    }

    /// Flits and cycles, as a reduced fraction.
    pub const fn ratio(self) -> [u64; 2] {
        [self.flits, self.cycles]
    }

    /// Number of slots before `cycle`, which is also the number of its first slot.
    #[inline]
    pub const fn before(self, cycle: u64) -> u64 {
        (cycle * self.flits).div_ceil(self.cycles)
    }

    #[inline]
    pub const fn cycle_of(self, slot: u64) -> u64 {
        slot * self.cycles / self.flits
    }

    #[inline]
    pub const fn slots_in(self, cycle: u64) -> u64 {
        self.before(cycle + 1) - self.before(cycle)
    }

    /// Number of cycles that `flits` flits take if the first moves in cycle `now`, which must have
    /// a slot.
    #[inline]
    pub const fn cycles_for(self, now: u64, flits: u64) -> u64 {
        self.cycle_of(self.before(now) + flits - 1) + 1 - now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLUE: Pace = Pace::of_port(rates::G12_5);

    #[test]
    fn rates_are_those_of_the_white_paper() {
        assert_eq!(Pace::of_port(rates::G14_0), Pace::PORT);
        assert_eq!(Pace::PORT.ratio(), [9, 10]);
        assert_eq!(Pace::NIC.ratio(), [64, 25]);
        // 0.9 x 12.5 / 14 = 0.8036.
        assert_eq!(BLUE.ratio(), [45, 56]);
    }

    #[test]
    fn a_full_port_leaves_out_every_tenth_cycle() {
        for cycle in 0..100 {
            let is_tenth = cycle % LOAD_CYCLES == LOAD_CYCLES - 1;
            assert_eq!(Pace::PORT.slots_in(cycle), u64::from(!is_tenth), "{cycle}");
        }
    }

    #[test]
    fn slots_and_cycles_agree() {
        for pace in [Pace::PORT, Pace::NIC, BLUE] {
            let [flits, cycles] = pace.ratio();
            for lap in [0, 3, 1_000_000_007] {
                assert_eq!(pace.before(lap * cycles), lap * flits);
                let mut slot = lap * flits;
                for cycle in lap * cycles..(lap + 2) * cycles {
                    assert_eq!(pace.before(cycle), slot, "{pace:?} {cycle}");
                    for _ in 0..pace.slots_in(cycle) {
                        assert_eq!(pace.cycle_of(slot), cycle, "{pace:?} {slot}");
                        slot += 1;
                    }
                }
            }
        }
    }

    #[test]
    fn a_packet_takes_the_cycles_of_its_slots() {
        for pace in [Pace::PORT, BLUE] {
            for now in (0..120).filter(|&now| pace.slots_in(now) > 0) {
                for flits in 1..=14 {
                    let mut cycle = now;
                    for _ in 1..flits {
                        cycle += 1;
                        while pace.slots_in(cycle) == 0 {
                            cycle += 1;
                        }
                    }
                    assert_eq!(
                        pace.cycles_for(now, flits),
                        cycle + 1 - now,
                        "{now} {flits}"
                    );
                }
            }
        }
    }
}

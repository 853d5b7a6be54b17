//! What can be chosen for an Aries network only.

use phitwire_framing::flit48::Routing;

use crate::chip::Grain;
use crate::machine::aries::route::registers::PortKind;
use crate::machine::aries::router::pipeline::{LOAD_CYCLES, SHORT_LINK_CYCLES};
use crate::sim::direct::config::{ConfigError, MAX_LINK_CYCLES};

/// Bytes of the largest message: one packet of 14 flits (white paper, "Aries NIC").
pub const MAX_ARIES_MESSAGE_BYTES: u8 = 64;
/// Cycles per set of ten flits: latencies are multiples of it.
const SET_CYCLES: u32 = LOAD_CYCLES as u32;
/// The longest link, 200 m.
const MAX_CYCLES: u32 = 1_000;
/// Length of a green link that [`SHORT_LINK_CYCLES`] include.
const SHORT_METRES: u32 = 1;

/// What can be chosen for an Aries network only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AriesOptions {
    /// How the ways of requests and replies are chosen.
    pub routing: Routing,
    /// What moves through the routers at once.
    pub grain: Grain,
    /// Cycles from an output port over a link of each kind (see [`PortKind`]) into the next input queue: multiples of ten.
    pub link_cycles: [u32; 4],
}

impl AriesOptions {
    /// Metres of green, black and blue links if nothing else is said. A chassis' backplane is a metre long, copper between the
    /// chassis of a group "approximately 3m", optical cables have up to 35 m (white paper, "Dragonfly
    /// Implementation", "Aries Router"): 20 m stand for what is laid in a machine room.
    pub const METRES: [u32; 3] = [1, 3, 20];

    /// Cycles of a link with `metres` of cable, at 5 ns per metre, to the nearest set: gathering a set, checking
    /// its CRC, and two SerDes are [`SHORT_LINK_CYCLES`] with the first metre. At 875 MHz a
    /// metre is 4.375 cycles.
    pub const fn cycles_of(metres: u32) -> u32 {
        let cable = metres.saturating_sub(SHORT_METRES) as u64 * 4_375 / 1_000;
        let cycles = SHORT_LINK_CYCLES + cable + SET_CYCLES as u64 / 2;
        (cycles / SET_CYCLES as u64 * SET_CYCLES as u64) as u32
    }

    /// Options with cables of these lengths in metres: green, black and blue. A NIC's link has no cable, but the pipeline of the NIC
    /// instead, and counts like a green one of a metre.
    pub const fn with_metres(routing: Routing, [green, black, blue]: [u32; 3]) -> Self {
        Self {
            routing,
            grain: Grain::Flit,
            link_cycles: [
                Self::cycles_of(SHORT_METRES),
                Self::cycles_of(green),
                Self::cycles_of(black),
                Self::cycles_of(blue),
            ],
        }
    }

    /// Cycles of a link.
    pub(super) const fn cycles(&self, kind: PortKind) -> u32 {
        self.link_cycles[kind as usize]
    }

    /// Cycles of a window: no longer than a link takes.
    pub(super) fn window(&self) -> u32 {
        let shortest = self.link_cycles.into_iter().min().unwrap_or(SET_CYCLES);
        shortest.min(MAX_LINK_CYCLES / SET_CYCLES * SET_CYCLES)
    }

    pub(super) fn longest(&self) -> u32 {
        self.link_cycles.into_iter().max().unwrap_or(SET_CYCLES)
    }

    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        for cycles in self.link_cycles {
            if !(SET_CYCLES..=MAX_CYCLES).contains(&cycles) || cycles % SET_CYCLES != 0 {
                return Err(ConfigError::AriesLinkCycles(cycles));
            }
        }
        Ok(())
    }
}

impl Default for AriesOptions {
    fn default() -> Self {
        Self::with_metres(Routing::default(), Self::METRES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cables_cost_five_nanoseconds_per_metre() {
        assert_eq!(
            [1, 3, 20, 35].map(AriesOptions::cycles_of),
            [40, 50, 120, 190]
        );
        let options = AriesOptions::default();
        assert_eq!(options.link_cycles, [40, 40, 50, 120]);
        assert_eq!((options.window(), options.longest()), (40, 120));
        assert_eq!(options.validate(), Ok(()));
        let odd = AriesOptions {
            link_cycles: [40, 45, 50, 120],
            ..options
        };
        assert_eq!(odd.validate(), Err(ConfigError::AriesLinkCycles(45)));
    }
}

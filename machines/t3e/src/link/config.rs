//! Configuration of a link end.

use phitwire_framing::carrier::lanes::Lanes;
use phitwire_framing::t3e::flit::{VCS, vc};
use phitwire_framing::t3e::packet::MAX_PACKET_FLITS;

use phitwire::link::{LaneRate, LinkStandard};
use phitwire::packets::{PacketDepths, PacketLinkConfig};

/// Lanes of the carrier. The machine's 14 wires exist only for noise.
pub const CARRIER_LANES: Lanes = Lanes::new(3, 24);
/// A link moves 14 bits 375 million times a second (T3E sec. 1): three lanes of the carrier provide
/// the same rate.
pub const RATE: LaneRate = LaneRate::new(14, 1_750_000_000);
/// Properties shared by all links.
pub const STANDARD: LinkStandard = LinkStandard {
    lanes: CARRIER_LANES,
    rates: &[RATE],
};

/// Minimum number of clocks from the choice of a flit for an output until the credit for its slot
/// is back: on the link, through the stages of the input, and back.
pub const LOOP_CLOCKS: u32 = 11;

/// Depths of the carrier at the machine's own depths of flits. The carrier is not part of the
/// machine, so flits must never wait for it: it has buffers for twice the bursts that a link ever
/// has in flight in emulated time.
pub const CARRIER_PAPER: PacketDepths = PacketDepths::new(128, 128);
/// Depths of the carrier for round trips between processes.
pub const CARRIER_LIVE: PacketDepths = PacketDepths::new(909, 8_191);

/// Capacities of an input in flits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depths {
    /// On each deterministic channel.
    pub deterministic: u16,
    /// On the adaptive channel, which a packet enters only if all of it fits.
    pub adaptive: u16,
}

impl Depths {
    /// The machine's depths (T3E sec. 1).
    pub const PAPER: Self = Self {
        deterministic: 12,
        adaptive: 22,
    };
    /// Between a router and its processor, for which T3E gives none: enough for the ten clocks at
    /// each end of a route (T3E table 2), there and back.
    pub const PROCESSOR: Self = Self {
        deterministic: 24,
        adaptive: 34,
    };
    /// For round trips between processes: the same rules, but deeper buffers.
    pub const LIVE: Self = Self {
        deterministic: 2_028,
        adaptive: 2_028 + MAX_PACKET_FLITS as u16,
    };

    #[inline]
    pub const fn of(self, channel: usize) -> u32 {
        if channel == vc::ADAPTIVE {
            self.adaptive as u32
        } else {
            self.deterministic as u32
        }
    }

    pub fn all(self) -> [u32; VCS] {
        core::array::from_fn(|channel| self.of(channel))
    }
}

// Full rate needs one slot per clock of the credit loop, plus a longest packet where packets must
// fit whole.
const _: () = assert!(Depths::PAPER.deterministic as u32 >= LOOP_CLOCKS);
const _: () = assert!(Depths::PAPER.adaptive as u32 >= LOOP_CLOCKS + MAX_PACKET_FLITS as u32);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlitLinkConfig {
    pub carrier: PacketLinkConfig,
    /// Depths of the input buffers.
    pub depths: Depths,
    /// Whether packets end here and are corrected.
    pub corrects: bool,
}

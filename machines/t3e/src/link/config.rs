//! What an end is told.

use crate::format::{MAX_PACKET_FLITS, VCS, vc};
use phitwire::link::{LaneRate, LinkConfig, LinkStandard};

/// A link moves 14 bits 375 million times a second (paper, section 1): three lanes of the carrier
/// that are as fast together.
pub const RATE: LaneRate = LaneRate::new(14, 1_750_000_000);
/// What all links have in common.
pub const STANDARD: LinkStandard = LinkStandard {
    rates: &[RATE],
    max_packet_phits: 22,
};

/// Clocks from the moment that a flit is chosen for an output until the credit for its place is
/// back, if it waits nowhere: on the link, through the stages of the input, and back.
pub const LOOP_CLOCKS: u32 = 11;

/// Flits that an input has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depths {
    /// On each deterministic channel.
    pub deterministic: u16,
    /// On the adaptive channel, which a packet enters only if there is room for all of it.
    pub adaptive: u16,
}

impl Depths {
    /// The machine's own (paper, section 1).
    pub const PAPER: Self = Self {
        deterministic: 12,
        adaptive: 22,
    };
    /// Between a router and its processor, of which the paper gives none: enough for the ten clocks
    /// that each end of a route takes (paper, table 2), there and back.
    pub const PROCESSOR: Self = Self {
        deterministic: 24,
        adaptive: 34,
    };
    /// For round trips between processes: the same rules, deeper.
    pub const LIVE: Self = Self {
        deterministic: 2_028,
        adaptive: 2_028 + MAX_PACKET_FLITS as u16,
    };

    /// Those of a channel.
    #[inline]
    pub const fn of(self, channel: usize) -> u32 {
        if channel == vc::ADAPTIVE {
            self.adaptive as u32
        } else {
            self.deterministic as u32
        }
    }

    /// Those of all channels.
    pub fn all(self) -> [u32; VCS] {
        core::array::from_fn(|channel| self.of(channel))
    }
}

// Full rate needs a place for every clock of the loop, and where a packet has to fit in whole, for
// the longest one besides.
const _: () = assert!(Depths::PAPER.deterministic as u32 >= LOOP_CLOCKS);
const _: () = assert!(Depths::PAPER.adaptive as u32 >= LOOP_CLOCKS + MAX_PACKET_FLITS as u32);

/// The configuration of an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlitLinkConfig {
    /// The carrier's.
    pub carrier: LinkConfig,
    /// Of its input.
    pub depths: Depths,
    /// Packets end here, and are corrected.
    pub corrects: bool,
}

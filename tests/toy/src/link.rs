//! The packet, and how links carry it.

use phitwire_framing::carrier::frame::FrameKind;
use phitwire_framing::carrier::lanes::Lanes;

use super::Packet;
use phitwire::link::{LaneRate, LinkStandard};
use phitwire::net::Profile;
use phitwire::packets::{self, PacketDepths, PacketEnd};

/// Default rate of the lanes.
pub const RATE: LaneRate = LaneRate::new(8, 6_250_000_000);
/// Three lanes carry words of 24 bits.
pub const LANES: Lanes = Lanes::new(3, 24);
/// Properties of all links.
pub const STANDARD: LinkStandard = LinkStandard {
    lanes: LANES,
    rates: &[RATE, LaneRate::new(9, 3_125_000_000)],
};

/// Depths of a link: few buffers in emulated time, many for round trips between processes.
pub const fn depths(profile: Profile) -> PacketDepths {
    match profile {
        Profile::Paper => PacketDepths::new(6, 128),
        Profile::Live => PacketDepths::new(1_022, 8_191),
    }
}

pub type RingEnd = PacketEnd<Packet>;

impl packets::Packet for Packet {
    const KIND: FrameKind = FrameKind::new(3);
    const LANES: Lanes = LANES;
    const LINK: &'static str = "toy";
    const BYTES: usize = 64;

    fn emit(&self, bytes: &mut [u8]) {
        for (word, at) in self.0.iter().zip(bytes.as_chunks_mut().0) {
            *at = word.to_be_bytes();
        }
    }

    fn parse(bytes: &[u8]) -> Self {
        Self(core::array::from_fn(|word| {
            u64::from_be_bytes(bytes.as_chunks().0[word])
        }))
    }
}

//! Rates of a lane (XC white paper, "Aries" and "Dragonfly Implementation").

use phitwire::link::LaneRate;

/// 14 Gb/s: an electrical link.
pub const G14_0: LaneRate = LaneRate::new(6, 14_000_000_000);
/// 12.5 Gb/s: an optical link.
pub const G12_5: LaneRate = LaneRate::new(7, 12_500_000_000);

/// A NIC's link: 64 flits of data in 25 cycles of 875 MHz, where [`G14_0`] carries 9 in 10. On the
/// chip these are wires to Netlink without lanes that carry 10.2 GB/s of payload ("Aries
/// Performance").
pub const NIC: LaneRate = LaneRate::new(8, 39_822_222_222);

/// Rates of cables, faster first.
pub const ALL: [LaneRate; 2] = [G14_0, G12_5];
/// All rates that link ends can have.
pub const OF_LINKS: [LaneRate; 3] = [G14_0, G12_5, NIC];

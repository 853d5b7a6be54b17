//! Rates of a lane (white paper, "Aries Router").

use crate::link::LaneRate;

/// 14 Gb/s: an electrical link.
pub const G14_0: LaneRate = LaneRate::new(6, 14_000_000_000);
/// 12.5 Gb/s: an optical link.
pub const G12_5: LaneRate = LaneRate::new(7, 12_500_000_000);

/// Both of them, the faster first.
pub const ALL: [LaneRate; 2] = [G14_0, G12_5];

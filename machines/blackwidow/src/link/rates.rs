//! Rates of the SerDes (BlackWidow sec. 4.4).

use phitwire::link::LaneRate;

/// 6.25 Gb/s, the full rate.
pub const G6_25: LaneRate = LaneRate::new(0, 6_250_000_000);
pub const G5_0: LaneRate = LaneRate::new(1, 5_000_000_000);
/// 3.125 Gb/s, half of the full rate.
pub const G3_125: LaneRate = LaneRate::new(2, 3_125_000_000);
pub const G2_5: LaneRate = LaneRate::new(3, 2_500_000_000);
pub const G1_5625: LaneRate = LaneRate::new(4, 1_562_500_000);
pub const G1_25: LaneRate = LaneRate::new(5, 1_250_000_000);

/// All rates, fastest first.
pub const ALL: [LaneRate; 6] = [G6_25, G5_0, G3_125, G2_5, G1_5625, G1_25];

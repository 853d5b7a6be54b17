//! Latency of packets in an empty network (T3E sec. 11 and table 2).

use super::walk::Channel;

/// Clocks in a router that a packet passes straight through, from pin to pin.
pub const STRAIGHT_CLOCKS: u32 = 3;
pub const TURN_CLOCKS: u32 = 6;
/// Clocks at the source and the destination together.
pub const END_CLOCKS: u32 = 10;

/// Numbers of hops and turns on a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Corners {
    pub hops: u32,
    pub turns: u32,
}

impl Corners {
    pub fn of(channels: &[Channel]) -> Self {
        let turns = channels
            .windows(2)
            .filter(|pair| pair[0].direction != pair[1].direction);
        Self {
            hops: channels.len() as u32,
            turns: turns.count() as u32,
        }
    }

    /// Clocks from the input of the source's router to the input of the control chip at the
    /// destination.
    pub fn clocks(self) -> u32 {
        let straight = self.hops.saturating_sub(1) - self.turns;
        2 * END_CLOCKS + STRAIGHT_CLOCKS * straight + TURN_CLOCKS * self.turns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::{Broken, Shape, generate, walk};

    /// T3E figure 7: size, average hops and diameter, average turns, average and maximum clocks of
    /// a round trip. The figure is not available; these values were computed for this project from
    /// T3E table 2.
    const FIGURE_7: [(&str, f64, u32, f64, f64, u32); 9] = [
        ("2x2x2", 1.71, 3, 0.71, 48.6, 64),
        ("2x4x2", 2.13, 4, 0.87, 52.0, 70),
        ("4x4x2", 2.58, 5, 1.06, 55.9, 76),
        ("4x4x4", 3.05, 6, 1.29, 60.0, 82),
        ("4x8x4", 4.03, 8, 1.39, 66.6, 94),
        ("8x8x4", 5.02, 10, 1.51, 73.2, 106),
        ("8x8x8", 6.01, 12, 1.63, 79.9, 118),
        ("8x16x8", 8.01, 16, 1.69, 92.2, 142),
        ("8x32x8", 12.01, 24, 1.72, 116.4, 190),
    ];

    #[test]
    fn round_trips_take_what_figure_7_shows() {
        for (text, hops, diameter, turns, average, most) in FIGURE_7 {
            let shape: Shape = text.parse().expect("a shape");
            let registers: Vec<_> = (0..shape.nodes())
                .map(|node| shape.registers(node))
                .collect();
            let broken = Broken::none(&shape);
            let all: Vec<u32> = (0..shape.nodes()).collect();
            let tables = generate(&shape, &broken, &registers, &all).expect("tables");
            // All nodes are equivalent except for the signs of half rings.
            let sources = if shape.nodes() > 512 {
                8
            } else {
                shape.nodes()
            };
            let (mut sum, mut longest, mut farthest) = ([0.0; 3], 0, 0);
            let corners = |from, to| {
                let entry = tables.route(from, to).expect("a route");
                let channels = walk(&shape, &broken, &registers, from, to, &entry);
                Corners::of(&channels.expect("a route"))
            };
            for from in 0..sources {
                for to in (0..shape.nodes()).filter(|&to| to != from) {
                    let there = corners(from, to);
                    let clocks = there.clocks() + corners(to, from).clocks();
                    let seen = [there.hops, there.turns, clocks];
                    for (sum, seen) in sum.iter_mut().zip(seen) {
                        *sum += f64::from(seen);
                    }
                    longest = longest.max(clocks);
                    farthest = farthest.max(there.hops);
                }
            }
            let pairs = f64::from(sources * (shape.nodes() - 1));
            let averages = sum.map(|sum| sum / pairs);
            for (found, (printed, digits)) in
                averages
                    .into_iter()
                    .zip([(hops, 0.005), (turns, 0.005), (average, 0.05)])
            {
                assert!(
                    (found - printed).abs() <= digits + 1e-9,
                    "{text}: {averages:?}"
                );
            }
            assert_eq!((farthest, longest), (diameter, most), "{text}");
        }
    }

    #[test]
    fn neighbours_have_no_router_between_them() {
        let corners = Corners { hops: 1, turns: 0 };
        assert_eq!(corners.clocks(), 20);
        assert_eq!(Corners::default().clocks(), 20);
        assert_eq!(Corners { hops: 4, turns: 2 }.clocks(), 35);
    }
}

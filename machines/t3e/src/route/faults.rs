//! Counts the disconnected pairs of nodes when links break.

use phitwire_framing::t3e::direction::Direction;

use super::broken::Broken;
use super::lines::Lines;
use super::registers::RouteRegisters;
use super::shape::Shape;
use phitwire::rng::Rng;

/// A routing scheme. The T3E's schemes extend [`Self::DirectionOrder`]; dimension order with all
/// signs has paths that the T3E lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// X, Y, Z, each in the shorter direction around the ring.
    MinimalDimensionOrder,
    /// X, Y, Z, each in either direction around the ring: eight choices of signs.
    DimensionOrder,
    /// The direction order of the T3E: eight choices of signs.
    DirectionOrder,
    /// Direction order with initial hops (T3E sec. 2.2).
    InitialHops,
    /// Both initial and final hops: the full routing of the T3E.
    FinalHops,
}

impl Scheme {
    pub const ALL: [Self; 5] = [
        Self::MinimalDimensionOrder,
        Self::DimensionOrder,
        Self::DirectionOrder,
        Self::InitialHops,
        Self::FinalHops,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::MinimalDimensionOrder => "minimal dimension order",
            Self::DimensionOrder => "dimension order, 8 signs",
            Self::DirectionOrder => "direction order, 8 signs",
            Self::InitialHops => "+ initial hops",
            Self::FinalHops => "+ final hop",
        }
    }
}

/// Number of ordered pairs of different nodes without a path, by scheme. Initial hops do not lead
/// into a dateline.
///
/// # Panics
/// If a node has no registers.
pub fn lost_pairs(shape: &Shape, broken: &Broken, registers: &[RouteRegisters]) -> [u32; 5] {
    let pairs = Pairs {
        shape,
        broken,
        registers,
        lines: Lines::new(shape, broken, registers),
    };
    let mut lost = [0; 5];
    for from in 0..shape.nodes() {
        for to in (0..shape.nodes()).filter(|&to| to != from) {
            let mut found = false;
            for (scheme, lost) in Scheme::ALL.into_iter().zip(&mut lost) {
                // Each scheme extends the previous one, except for the first of the T3E's schemes.
                found =
                    found && scheme != Scheme::DirectionOrder || pairs.has_path(scheme, from, to);
                *lost += u32::from(!found);
            }
        }
    }
    lost
}

struct Pairs<'a> {
    shape: &'a Shape,
    broken: &'a Broken,
    registers: &'a [RouteRegisters],
    lines: Lines<'a>,
}

impl Pairs<'_> {
    /// Whether a scheme finds a path where the previous ones find none.
    fn has_path(&self, scheme: Scheme, from: u32, to: u32) -> bool {
        let coordinates = self.shape.coordinates(to);
        let in_dimension_order = |signs| {
            self.lines
                .in_dimension_order(from, coordinates, signs)
                .is_some()
        };
        match scheme {
            Scheme::MinimalDimensionOrder => {
                in_dimension_order(self.lines.minimal_signs(from, &[to]))
            }
            Scheme::DimensionOrder => (0..8).any(in_dimension_order),
            Scheme::DirectionOrder => self.in_direction_order(from, to),
            Scheme::InitialHops => self.after_initial_hop(from, to),
            Scheme::FinalHops => {
                let above = self.shape.neighbour(to, Direction::PlusZ);
                let above = above.filter(|_| self.broken.works(to, Direction::PlusZ));
                above.is_some_and(|above| {
                    self.in_direction_order(from, above) || self.after_initial_hop(from, above)
                })
            }
        }
    }

    fn in_direction_order(&self, from: u32, to: u32) -> bool {
        let to = self.shape.coordinates(to);
        (0..8).any(|signs| self.lines.in_direction_order(from, to, signs).is_some())
    }

    fn after_initial_hop(&self, from: u32, to: u32) -> bool {
        Direction::ALL[..3].iter().any(|&hop| {
            let next = self.shape.neighbour(from, hop);
            let next = next.filter(|_| self.broken.works(from, hop));
            next.is_some_and(|next| {
                !self.registers[next as usize].is_dateline(hop) && self.in_direction_order(next, to)
            })
        })
    }
}

/// Breaks `links` different links of a machine at random.
///
/// # Panics
/// If the machine has fewer links.
pub fn break_any(shape: &Shape, links: usize, rng: &mut Rng) -> Broken {
    let mut whole: Vec<(u32, Direction, u32)> = shape.links().collect();
    assert!(
        links <= whole.len(),
        "the torus has only {} links",
        whole.len()
    );
    let mut broken = Broken::none(shape);
    for _ in 0..links {
        let drawn = rng.below(whole.len() as u64) as usize;
        let (node, direction, _) = whole.swap_remove(drawn);
        broken.set_link(shape, node, direction, true);
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::generate;

    fn machine() -> (Shape, Vec<RouteRegisters>) {
        let shape: Shape = "4x4x4".parse().expect("a shape");
        let registers = (0..64).map(|node| shape.registers(node)).collect();
        (shape, registers)
    }

    /// Averages of 30 draws, computed for this project by an earlier program with other random
    /// numbers.
    const AVERAGES: [(usize, [f64; 5]); 5] = [
        (1, [64.0, 0.0, 0.0, 0.0, 0.0]),
        (2, [127.0, 0.0, 0.0, 0.0, 0.0]),
        (4, [252.0, 10.7, 0.7, 0.0, 0.0]),
        (8, [490.0, 44.8, 7.1, 0.7, 0.5]),
        (12, [712.0, 118.0, 23.4, 4.5, 3.2]),
    ];

    #[test]
    fn each_of_the_t3es_means_saves_pairs() {
        const DRAWS: usize = 100;
        let (shape, registers) = machine();
        let mut rng = Rng::new(4_032, 0);
        for (links, averages) in AVERAGES {
            let draws: Vec<[u32; 5]> = (0..DRAWS)
                .map(|_| lost_pairs(&shape, &break_any(&shape, links, &mut rng), &registers))
                .collect();
            for (scheme, expected) in averages.into_iter().enumerate() {
                let lost = || draws.iter().map(|lost| f64::from(lost[scheme]));
                let mean = lost().sum::<f64>() / DRAWS as f64;
                let variance = lost().map(|lost| (lost - mean).powi(2)).sum::<f64>() / DRAWS as f64;
                // Both averages vary, the reference of 30 draws and ours of more. Allow four
                // standard deviations of the difference, plus rounding.
                let scatter = (variance * (1.0 / 30.0 + 1.0 / DRAWS as f64)).sqrt();
                let rounding = if expected < 100.0 { 0.05 } else { 0.5 };
                println!(
                    "{links} links, {}: {mean:.1} +- {scatter:.1}, {expected} expected",
                    Scheme::ALL[scheme].name()
                );
                let off = (mean - expected).abs();
                assert!(off <= 4.0 * scatter + rounding, "{links} links, {scheme}");
            }
            // Each further scheme of the T3E only adds paths.
            assert!(
                draws
                    .iter()
                    .all(|lost| lost[2] >= lost[3] && lost[3] >= lost[4])
            );
        }
    }

    #[test]
    fn one_broken_link_loses_sixty_four_pairs_of_the_simplest_scheme() {
        let (shape, registers) = machine();
        for (node, direction, _) in shape.links() {
            let mut broken = Broken::none(&shape);
            broken.set_link(&shape, node, direction, true);
            assert_eq!(lost_pairs(&shape, &broken, &registers), [64, 0, 0, 0, 0]);
        }
    }

    #[test]
    fn tables_lose_the_pairs_that_have_no_way() {
        let (shape, registers) = machine();
        let mut rng = Rng::new(12, 0);
        let all: Vec<u32> = (0..64).collect();
        let mut sum = 0;
        for links in [4, 12, 20, 30] {
            let broken = break_any(&shape, links, &mut rng);
            let tables = generate(&shape, &broken, &registers, &all).expect("tables");
            let [.., lost] = lost_pairs(&shape, &broken, &registers);
            assert_eq!(tables.unreachable().len(), lost as usize);
            sum += lost;
        }
        assert!(sum > 0);
    }
}

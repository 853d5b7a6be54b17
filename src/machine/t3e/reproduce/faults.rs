//! Pairs of nodes without a route where links are broken, by what routing can do (T3E paper,
//! sections 2 and 9).
//!
//! The paper says of directions, initial and final hops that they "add even more potential routes",
//! and no number. What is compared with was computed for this project before this program was
//! written, by another one and with other random numbers.

use crate::machine::t3e::route::Shape;
use crate::machine::t3e::route::faults::{Scheme, break_any, lost_pairs};
use crate::reproduce::{Row, Table, Tolerance};
use crate::rng::Rng;

/// Draws that the figures compared with are averages of.
const THEIRS: f64 = 30.0;
/// Draws of the command.
pub const DRAWS: usize = 300;

/// Broken links, and lost pairs of the 4,032 of a 4x4x4 torus, in the order of [`Scheme::ALL`].
const EXPECTED: [(usize, [f64; 5]); 5] = [
    (1, [64.0, 0.0, 0.0, 0.0, 0.0]),
    (2, [127.0, 0.0, 0.0, 0.0, 0.0]),
    (4, [252.0, 10.7, 0.7, 0.0, 0.0]),
    (8, [490.0, 44.8, 7.1, 0.7, 0.5]),
    (12, [712.0, 118.0, 23.4, 4.5, 3.2]),
];

/// Breaks links at random and looks for routes.
///
/// # Errors
/// If there is no such torus.
pub fn table(seed: u64, draws: usize) -> Result<Table, String> {
    let shape: Shape = "4x4x4".parse().map_err(|error| format!("{error}"))?;
    let registers: Vec<_> = (0..shape.nodes())
        .map(|node| shape.registers(node))
        .collect();
    let mut rng = Rng::new(seed, 4_032);
    let mut rows = Vec::new();
    for (links, expected) in EXPECTED {
        let lost: Vec<[u32; 5]> = (0..draws)
            .map(|_| lost_pairs(&shape, &break_any(&shape, links, &mut rng), &registers))
            .collect();
        for ((scheme, at), expected) in Scheme::ALL.iter().zip(0..).zip(expected) {
            let count = draws as f64;
            let of = |at: usize| lost.iter().map(move |lost| f64::from(lost[at]));
            let mean = of(at).sum::<f64>() / count;
            let variance = of(at).map(|lost| (lost - mean).powi(2)).sum::<f64>() / count;
            // Both scatter. Four standard deviations of their difference, and half of the last
            // digit that is given.
            let scatter = (variance * (1.0 / THEIRS + 1.0 / count)).sqrt();
            let digit = if expected < 100.0 { 0.05 } else { 0.5 };
            // A hundredth more than is needed, in figures that can be read.
            let tolerance = ((4.0 * scatter + digit) * 100.0).ceil() / 100.0;
            let label = format!("{links} broken, {}", scheme.name());
            rows.push(Row::new(
                label,
                expected,
                mean,
                Tolerance::Absolute(tolerance),
            ));
        }
    }
    Ok(Table {
        title: "Pairs without a route, of 4032 in a 4x4x4 torus, where links are broken".into(),
        unit: "pairs",
        decimals: 1,
        rows,
        also: Vec::new(),
        assumptions: vec![
            "The paper has no such figures. In their column stand averages of 30 draws that were computed for \
             this project beforehand, with other random numbers."
                .into(),
            format!(
                "Run: {draws} draws of so many broken links, both directions of each; for every ordered pair all \
                 ways of a scheme are tried. The tolerance is four standard deviations of the difference of \
                 both averages, and the rounding of theirs."
            ),
            "Dimension orders are X, Y, Z; direction order is that of the T3E, +X, +Y, +Z, -X, -Y, -Z, each with \
             the signs of the pair's shorter ways (minimal) or all eight choices. Initial hops go +X, +Y or \
             +Z and not into a dateline (section 3.1), final hops -Z. Minimal dimension order loses 64 pairs \
             for any one link."
                .into(),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_t3e_can_do_saves_routes() {
        let table = table(1, 40).unwrap();
        assert_eq!(table.rows.len(), 25);
        assert!(table.within(), "{table:#?}");
    }
}

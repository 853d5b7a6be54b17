//! Pairs of nodes without a route if links are broken, by routing scheme (T3E sec. 2 and 9).
//!
//! T3E says that directions, initial and final hops "add even more potential routes", but gives no
//! numbers. The reference values were computed for this project by a separate, earlier program with
//! other random numbers.

use super::sizes::torus;
use crate::route::faults::{Scheme, break_any, lost_pairs};
use phitwire::reproduce::{Kind, Row, Source, Table, Tolerance};
use phitwire::rng::Rng;

/// Number of draws that the reference values average.
const THEIRS: f64 = 30.0;
/// Number of draws of the command.
pub const DRAWS: usize = 300;

/// Number of broken links, and of lost pairs among the 4,032 of a 4x4x4 torus, in the order of
/// [`Scheme::ALL`].
const EXPECTED: [(usize, [f64; 5]); 5] = [
    (1, [64.0, 0.0, 0.0, 0.0, 0.0]),
    (2, [127.0, 0.0, 0.0, 0.0, 0.0]),
    (4, [252.0, 10.7, 0.7, 0.0, 0.0]),
    (8, [490.0, 44.8, 7.1, 0.7, 0.5]),
    (12, [712.0, 118.0, 23.4, 4.5, 3.2]),
];

/// Pairs lost by each scheme in each draw.
type Lost = Vec<[u32; 5]>;

/// Lost pairs for the numbers of broken links in [`EXPECTED`].
fn lost(seed: u64, draws: usize) -> Result<[Lost; 5], String> {
    let torus = torus("4x4x4")?;
    let shape = torus.shape();
    let registers: Vec<_> = (0..shape.nodes())
        .map(|node| shape.registers(node))
        .collect();
    let mut rng = Rng::new(seed, 4_032);
    let mut draw = |links| lost_pairs(shape, &break_any(shape, links, &mut rng), &registers);
    Ok(EXPECTED.map(|(links, _)| (0..draws).map(|_| draw(links)).collect()))
}

/// Breaks links at random and counts pairs without routes.
///
/// # Errors
/// If the torus cannot be built.
pub fn table(seed: u64, draws: usize) -> Result<Table, String> {
    Ok(table_of(&lost(seed, draws)?, draws))
}

fn table_of(all: &[Lost; 5], draws: usize) -> Table {
    let mut rows = Vec::new();
    for ((links, expected), lost) in EXPECTED.into_iter().zip(all) {
        for ((scheme, at), expected) in Scheme::ALL.iter().zip(0..).zip(expected) {
            let count = draws as f64;
            let of = |at: usize| lost.iter().map(move |lost| f64::from(lost[at]));
            let mean = of(at).sum::<f64>() / count;
            let variance = of(at).map(|lost| (lost - mean).powi(2)).sum::<f64>() / count;
            // Both averages vary. Allow four standard deviations of their difference, plus half of
            // the last printed digit.
            let scatter = (variance * (1.0 / THEIRS + 1.0 / count)).sqrt();
            let digit = if expected < 100.0 { 0.05 } else { 0.5 };
            // Round up to hundredths, so that the figures are readable.
            let tolerance = ((4.0 * scatter + digit) * 100.0).ceil() / 100.0;
            let label = format!("{links} broken links, {}", scheme.name());
            rows.push(Row::new(
                Kind::Count,
                Source::Earlier,
                label,
                expected,
                mean,
                Tolerance::Absolute(tolerance),
            ));
        }
    }
    rows.extend(between_schemes(all));
    Table {
        title: "Pairs without a route, of 4032 in a 4x4x4 torus with broken links".into(),
        unit: "pairs",
        decimals: 1,
        rows,
        also: Vec::new(),
        assumptions: vec![
            "The paper has no such figures. The \"earlier\" values are averages of 30 draws, \
             computed for this project by another program with other random numbers."
                .into(),
            format!(
                "Run: {draws} draws of broken links, both directions of each; for every ordered \
                 pair, all routes of a scheme are tried. The tolerance is four standard \
                 deviations of the difference of both averages, plus the rounding of the earlier \
                 one."
            ),
            "Dimension order is X, Y, Z; direction order is that of the T3E: +X, +Y, +Z, -X, -Y, \
             -Z, with the signs of the pair's shorter paths (minimal) or all eight choices of \
             signs. Initial hops go in +X, +Y or +Z and not across a dateline (T3E sec. 3.1), \
             final hops in -Z. Minimal dimension order loses 64 pairs for any single broken link."
                .into(),
            "Averages of 30 draws cannot show what final hops add to initial hops. The last rows \
             count the draws in which an addition of a scheme saves a pair, and those in which it \
             loses one."
                .into(),
        ],
    }
}

/// The number of pairs that each of the T3E's schemes gains over the previous one, in the same
/// draws.
fn between_schemes(all: &[Lost; 5]) -> Vec<Row> {
    let draws = || all.iter().flatten();
    let mut rows = Vec::new();
    for (at, scheme) in Scheme::ALL.iter().enumerate().skip(3) {
        let saving = draws().filter(|lost| lost[at] < lost[at - 1]).count();
        let losing = draws().filter(|lost| lost[at] > lost[at - 1]).count();
        let label = |what| format!("draws in which {} {what} a pair", scheme.name());
        let (saves, loses) = (label("saves"), label("loses"));
        let row = |label, expected, draws: usize, within| {
            let (kind, source) = (Kind::Count, Source::Expected);
            Row::new(kind, source, label, expected, draws as f64, within)
        };
        rows.push(row(saves, 1.0, saving, Tolerance::AtLeast));
        rows.push(row(loses, 0.0, losing, Tolerance::Absolute(0.0)));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_t3e_s_options_save_routes() {
        let table = table(1, 40).unwrap();
        assert_eq!(table.rows.len(), 25 + 4);
        assert!(table.within(), "{table:#?}");
    }

    /// Detects a scheme that does no more than the previous one, or as much as the next one.
    #[test]
    fn another_routing_scheme_is_outside() {
        let draws = 40;
        let lost = lost(1, draws).unwrap();
        assert!(table_of(&lost, draws).within());
        for (scheme, instead) in [
            (0, 1),
            (1, 0),
            (1, 2),
            (2, 1),
            (2, 3),
            (3, 2),
            (3, 4),
            (4, 3),
        ] {
            let mut spoiled = lost.clone();
            for lost in spoiled.iter_mut().flatten() {
                lost[scheme] = lost[instead];
            }
            let table = table_of(&spoiled, draws);
            assert!(!table.within(), "{scheme} as {instead}: {table:#?}");
        }
    }

    #[test]
    fn other_numbers_of_broken_links_are_outside() {
        let draws = 40;
        let mut lost = lost(1, draws).unwrap();
        lost.swap(3, 4);
        let table = table_of(&lost, draws);
        let outside = table.rows.iter().filter(|row| !row.within());
        let of = |links: &str| outside.clone().any(|row| row.label.starts_with(links));
        assert!(of("8 broken") && of("12 broken"), "{table:#?}");
        // One more lost pair for every scheme in every draw.
        for lost in &mut lost[0] {
            lost.iter_mut().for_each(|lost| *lost += 1);
        }
        assert_eq!(
            table_of(&lost, draws).rows[..5]
                .iter()
                .filter(|row| !row.within())
                .count(),
            5
        );
    }
}

//! T3E table 1: "Virtual channel balance".

use super::anneal::Annealing;
use super::balance::{Balance, Level};
use super::ring::{Ring, UnidirectionalRing};
use super::tables::{Entries, RingTables};

/// Balance of one assignment in a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// The printed values, with three decimals.
    pub paper: Balance,
    pub ours: Balance,
}

/// A row: the balance at one level of a ring.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    pub ring: usize,
    /// Number of nodes of the sub-rings, or of the ring in the row of the whole ring.
    pub sub_ring: usize,
    /// Tables of zeros.
    pub time_of_crossing: Cell,
    /// The machine's eight-entry tables.
    pub t3e: Cell,
    /// Tables with an entry per node.
    pub full: Cell,
}

/// The figures of T3E table 1 for a ring and its sub-rings: average and maximum by time of
/// crossing, with the tables of the T3E, and with full tables.
pub const PAPER: [(usize, usize, [[f64; 2]; 3]); 10] = [
    (4, 4, [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]),
    (8, 8, [[0.813, 1.0], [0.031, 0.250], [0.031, 0.250]]),
    (8, 4, [[0.625, 1.0], [0.125, 0.250], [0.125, 0.250]]),
    (16, 16, [[0.813, 1.0], [0.137, 0.563], [0.133, 0.563]]),
    (16, 8, [[0.656, 1.0], [0.063, 0.313], [0.063, 0.313]]),
    (16, 4, [[0.625, 1.0], [0.125, 0.250], [0.125, 0.250]]),
    (32, 32, [[0.807, 1.0], [0.220, 0.875], [0.173, 0.797]]),
    (32, 16, [[0.664, 1.0], [0.246, 0.609], [0.062, 0.250]]),
    (32, 8, [[0.656, 1.0], [0.488, 1.0], [0.031, 0.063]]),
    (32, 4, [[0.625, 1.0], [0.594, 1.0], [0.125, 0.250]]),
];

/// A seed whose tables are no worse than T3E table 1. Near-equal optima exist: among seeds 1 to 20,
/// two (5 and 16) give a ring of 16 or 32 with an equally good objective but one slightly larger
/// figure, such as a maximum of 17/64 instead of 16/64.
pub const SEED: u64 = 1;

/// The rows of T3E table 1, in its order, with tables found from `seed`, such as [`SEED`]. This
/// takes about a second.
pub fn rows(seed: u64) -> Vec<Row> {
    let mut rows = Vec::with_capacity(PAPER.len());
    for nodes in [4, 8, 16, 32] {
        let ring = Ring::whole(nodes)
            .expect("the size of the ring is valid")
            .one_way(false);
        let tables = assignments(&ring, seed);
        for &(_, sub_ring, figures) in PAPER.iter().filter(|(ring, ..)| *ring == nodes) {
            let level = Level { nodes: sub_ring };
            let cell = |column: usize| {
                let [average, maximum] = figures[column];
                Cell {
                    paper: Balance { average, maximum },
                    ours: tables[column].balance(level),
                }
            };
            rows.push(Row {
                ring: nodes,
                sub_ring,
                time_of_crossing: cell(0),
                t3e: cell(1),
                full: cell(2),
            });
        }
    }
    rows
}

/// The three assignments of the table for `ring`, in the order of its columns. The search takes
/// longer than the [machine's](super::optimised).
pub fn assignments(ring: &UnidirectionalRing, seed: u64) -> [RingTables; 3] {
    let t3e = Annealing {
        flips: 300_000,
        runs: 8,
        ..Annealing::machine(ring.nodes())
    };
    let full = Annealing {
        entries: Entries::Full,
        ring_weight: 1,
        ..t3e
    };
    [
        RingTables::time_of_crossing(ring.clone()),
        t3e.run(ring.clone(), seed),
        full.run(ring.clone(), seed),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half of the last digit printed in T3E table 1, plus floating-point error.
    const PRINTED: f64 = 0.0005 + 1e-9;

    #[test]
    fn the_figures_are_the_papers() {
        let rows = rows(SEED);
        assert_eq!(rows.len(), PAPER.len());
        for row in rows {
            let Cell { paper, ours } = row.time_of_crossing;
            assert!((ours.average - paper.average).abs() <= PRINTED, "{row:?}");
            assert!((ours.maximum - paper.maximum).abs() <= PRINTED, "{row:?}");
            for Cell { paper, ours } in [row.t3e, row.full] {
                // Near-equal optima exist, so averages may differ.
                assert!(ours.average <= paper.average + 0.01, "{row:?}");
                assert!(ours.maximum <= paper.maximum + PRINTED, "{row:?}");
            }
        }
    }
}

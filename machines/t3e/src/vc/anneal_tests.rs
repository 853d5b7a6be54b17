use super::super::{Ring, VcTables, optimised};
use super::*;

/// Lower bound on each link's imbalance at `level`: the routes with a fixed channel minus all
/// others. If the others can balance them, the bound is 0, or 1 if the number of routes is odd.
fn bounds(ring: &UnidirectionalRing, annealing: &Annealing, level: Level) -> Vec<f64> {
    let start = RingTables::time_of_crossing(ring.clone());
    let search = Search::new(annealing, &start);
    let mut free = vec![0; ring.nodes()];
    for entry in &search.entries {
        for (link, routes) in entry.routes(&start, annealing.entries, level) {
            free[link] += routes as u32;
        }
    }
    let busiest = f64::from(level.busiest(ring));
    let of = |([vc0, vc1], free): ([u32; 2], u32)| {
        let settled = (vc0 - free).abs_diff(vc1);
        f64::from(settled.saturating_sub(free).max((settled + free) % 2)) / busiest
    };
    start.loads(level).into_iter().zip(free).map(of).collect()
}

fn machine(nodes: usize) -> (UnidirectionalRing, Annealing) {
    let ring = Ring::whole(nodes).expect("a valid ring size");
    (ring.one_way(false), Annealing::machine(nodes))
}

#[test]
fn no_tables_are_better_than_structure_allows() {
    let worst = |bounds: Vec<f64>| bounds.into_iter().fold(0.0, f64::max);
    let of = |nodes, entries, sub_ring| {
        let (ring, annealing) = machine(nodes);
        let annealing = Annealing {
            entries,
            ..annealing
        };
        bounds(&ring, &annealing, Level { nodes: sub_ring })
    };
    // Three routes lead from the dateline node into its sub-ring of four.
    for nodes in [8, 16, 32] {
        assert_eq!(of(nodes, Entries::Eight, 4)[0], 0.25);
    }
    // Routes that leave the dateline on VC1 because they crossed it, minus routes that begin there.
    assert_eq!(of(16, Entries::Eight, 16)[0], (24.0 - 8.0) / 32.0);
    assert_eq!(of(32, Entries::Full, 32)[0], (112.0 - 16.0) / 128.0);
    // Routes that end at the dateline share entries with constrained ones.
    assert_eq!(worst(of(32, Entries::Eight, 32)), (120.0 - 8.0) / 128.0);
    for sub_ring in [8, 4] {
        assert_eq!(worst(of(32, Entries::Eight, sub_ring)), 1.0);
        assert!(worst(of(32, Entries::Full, sub_ring)) < 1.0);
    }
    for nodes in super::super::NODES {
        let (ring, annealing) = machine(nodes);
        let tables = annealing.run(ring.clone(), 1);
        for level in Level::of(nodes) {
            let bounds = bounds(&ring, &annealing, level);
            for (imbalance, bound) in tables.imbalances(level).into_iter().zip(bounds) {
                assert!(imbalance >= bound, "{nodes} {level:?}");
            }
        }
    }
}

#[test]
fn balanced_sub_rings_have_the_computed_cost() {
    let tables_of = |nodes, entries| {
        let (ring, annealing) = machine(nodes);
        let annealing = Annealing {
            entries,
            ring_weight: 1,
            flips: 300_000,
            ..annealing
        };
        annealing.run(ring, 0)
    };
    // One of the three routes from the dateline node into its sub-ring of four is on VC1, together
    // with those that crossed the dateline.
    for entries in [Entries::Eight, Entries::Full] {
        let tables = tables_of(16, entries);
        assert_eq!(tables.imbalances(Level { nodes: 4 })[0], 0.25);
        let maximum = tables.balance(Level { nodes: 16 }).maximum;
        assert_eq!(maximum, (25.0 - 7.0) / 32.0);
    }
    // Three of the seven routes into its sub-ring of eight.
    let tables = tables_of(32, Entries::Full);
    assert_eq!(tables.imbalances(Level { nodes: 8 })[0], 1.0 / 16.0);
    let maximum = tables.balance(Level { nodes: 32 }).maximum;
    assert_eq!(maximum, (115.0 - 13.0) / 128.0);
}

#[test]
fn the_number_of_free_entries_is_as_computed() {
    let free = |nodes, entries| {
        let (ring, annealing) = machine(nodes);
        let annealing = Annealing {
            entries,
            ..annealing
        };
        Search::new(&annealing, &RingTables::time_of_crossing(ring))
            .entries
            .len()
    };
    assert_eq!(
        [8, 16, 32].map(|nodes| free(nodes, Entries::Full)),
        [24, 96, 384]
    );
    assert_eq!(
        [8, 16, 32].map(|nodes| free(nodes, Entries::Eight)),
        [24, 96, 168]
    );
}

#[test]
fn changes_add_up_to_the_objective() {
    for (nodes, ring_weight) in [(8, 1), (12, 1), (13, 3), (32, 30)] {
        let (ring, annealing) = machine(nodes);
        let annealing = Annealing {
            ring_weight,
            ..annealing
        };
        let mut tables = RingTables::time_of_crossing(ring);
        let mut search = Search::new(&annealing, &tables);
        let mut rng = Rng::new(5, 0);
        let mut objective = search.score()[0];
        for _ in 0..1000 {
            let entry = rng.below(search.entries.len() as u64) as usize;
            objective += search.change(entry);
            search.flip(entry);
            assert!((search.score()[0] - objective).abs() < 1e-6);
        }
        for entry in search.entries.iter().filter(|entry| entry.vc1) {
            tables.set_vc1(annealing.entries, entry.of.0, entry.of.1);
        }
        // Compute the objective from the tables too, route by route.
        let squares = |level| tables.imbalances(level).iter().map(|i| i * i).sum::<f64>();
        let again: f64 = Level::of(nodes).map(squares).sum::<f64>()
            + f64::from(ring_weight - 1) * squares(Level { nodes });
        assert!((again - objective).abs() < 1e-6, "{again} is {objective}");
    }
}

#[test]
fn the_same_seed_gives_the_same_safe_tables() {
    for nodes in super::super::NODES {
        let (ring, annealing) = machine(nodes);
        for (entries, final_hops) in [(Entries::Eight, true), (Entries::Full, false)] {
            let annealing = Annealing {
                entries,
                final_hops,
                flips: 5_000,
                runs: 2,
                ..annealing
            };
            let tables = annealing.run(ring.clone(), 3);
            assert_eq!(tables, annealing.run(ring.clone(), 3));
            assert_eq!(tables.crosses_on_vc1(), None);
            if nodes >= 8 {
                assert_ne!(tables, annealing.run(ring.clone(), 4));
            }
        }
    }
}

#[test]
fn the_machines_tables_are_within_the_papers_figures() {
    let within = |nodes: usize| {
        let tables = optimised(Ring::whole(nodes).expect("a valid ring size"), false);
        for &(_, sub_ring, figures) in super::super::table1::PAPER
            .iter()
            .filter(|row| row.0 == nodes)
        {
            let [average, maximum] = figures[1];
            for minus in [false, true] {
                let ours = tables.one_way(minus).balance(Level { nodes: sub_ring });
                assert!(
                    ours.average <= average + 0.01,
                    "{nodes}/{sub_ring}: {ours:?}"
                );
                assert!(
                    ours.maximum <= maximum + 0.0005 + 1e-9,
                    "{nodes}/{sub_ring}: {ours:?}"
                );
            }
        }
    };
    [4, 8, 16, 32].into_iter().for_each(within);
}

#[test]
fn columns_through_partial_planes_keep_their_own_entries_at_vc0() {
    let ordinates = [0, 1, 2, 3, 4, 5, 6, 7, 10];
    // The dateline of + must not be the neighbour above the partial plane, which is 0.
    let ring = Ring::new(&ordinates, [4, 3]).expect("a ring");
    let tables = optimised(ring.clone(), true);
    assert_eq!(tables.crosses_on_vc1(), None);
    let straight = VcTables::time_of_crossing(ring);
    let level = Level { nodes: 9 };
    for minus in [false, true] {
        let average = |tables: &VcTables| tables.one_way(minus).balance(level).average;
        assert!(average(&tables) < average(&straight) / 4.0);
    }
    for (ordinate, [plus, minus]) in tables.routers() {
        assert_eq!((plus | minus) >> (ordinate & 7) & 1, 0);
    }
    // In rings of up to eight nodes that always holds.
    for nodes in 2..=8 {
        let ring = Ring::whole(nodes).expect("a valid ring size");
        assert_eq!(optimised(ring.clone(), true), optimised(ring, false));
    }
}

#[test]
fn the_configured_number_of_changes_is_tried() {
    for flips in [0, 1, 96, 97, 98, 2_000, u32::MAX] {
        let stages: Vec<u32> = flips_of_stages(flips).collect();
        assert_eq!(stages.len(), STAGES as usize);
        assert_eq!(stages.iter().sum::<u32>(), flips);
        assert!(stages[..96].iter().all(|&of| of == flips / STAGES));
    }
    // A single change of a random entry already leads to another result.
    let (ring, annealing) = machine(16);
    let found = |flips, seed| {
        let annealing = Annealing {
            flips,
            runs: 1,
            ..annealing
        };
        annealing.run(ring.clone(), seed)
    };
    assert!((1..20).all(|seed| found(0, seed) == found(0, 0)));
    assert!((1..20).any(|seed| found(1, seed) != found(0, 0)));
}

#[test]
fn chances_are_powers_of_e() {
    let mut rng = Rng::new(1, 0);
    for exponent in [0.01, 0.5, 1.0, 3.0] {
        let accepted = (0..100_000).filter(|_| accepts(exponent, &mut rng)).count();
        let expected = 100_000.0 * f64::exp(-exponent);
        assert!((accepted as f64 - expected).abs() < 1000.0, "{exponent}");
    }
    assert!(!accepts(f64::MAX, &mut rng));
}

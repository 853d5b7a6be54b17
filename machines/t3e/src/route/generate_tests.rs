use super::*;
use crate::route::{Stray, walk};
use phitwire::rng::Rng;

fn shape(text: &str) -> Shape {
    text.parse().expect("a shape")
}

fn registers(shape: &Shape) -> Vec<RouteRegisters> {
    (0..shape.nodes())
        .map(|node| shape.registers(node))
        .collect()
}

fn tables(shape: &Shape, broken: &Broken) -> Tables {
    let all: Vec<u32> = (0..shape.nodes()).collect();
    generate(shape, broken, &registers(shape), &all).expect("tables")
}

/// Follows every route of `tables` to its end, and adaptive routes along all paths. Returns the
/// number of routes with an initial hop, with a final hop, and without adaptivity.
fn follow(shape: &Shape, broken: &Broken, tables: &Tables) -> [u32; 3] {
    let registers = registers(shape);
    let mut path_search = MinimalPathSearch::new(shape);
    let mut found = [0; 3];
    for (from, pe, entry) in tables.routes() {
        let to = tables.destinations()[pe as usize];
        if broken.is_isolated(to) {
            continue;
        }
        let walked = walk(shape, broken, &registers, from, to, &entry);
        let channels = walked.unwrap_or_else(|stray| panic!("{from} to {to}, {entry:?}: {stray}"));
        assert_eq!(channels.is_empty(), from == to && entry.initial.is_none());
        let start = entry
            .initial
            .map_or(from, |hop| shape.neighbour(from, hop).expect("walked"));
        let free = path_search.is_free(shape, broken, start, &entry.tag);
        if !tables.in_fours() && !entry.tag.final_hop {
            assert_eq!(entry.tag.adaptive, free, "{from} to {to}: {entry:?}");
        }
        assert!(free || !entry.tag.adaptive);
        found[0] += u32::from(entry.initial.is_some());
        found[1] += u32::from(entry.tag.final_hop);
        found[2] += u32::from(!entry.tag.adaptive);
    }
    found
}

#[test]
fn whole_machines_take_shortest_ways_and_adapt() {
    for text in ["2x2x2", "4x2x4", "8x8x8", "5x3x4", "1x1x7", "8x16x8"] {
        let shape = shape(text);
        let broken = Broken::none(&shape);
        let tables = tables(&shape, &broken);
        let registers = registers(&shape);
        assert!(tables.unreachable().is_empty());
        let sources = if shape.nodes() > 600 {
            16
        } else {
            shape.nodes()
        };
        for (from, pe, entry) in tables.routes().take((sources * shape.nodes()) as usize) {
            assert!(entry.initial.is_none() && !entry.tag.final_hop && entry.tag.adaptive);
            let walked = walk(&shape, &broken, &registers, from, pe, &entry);
            let [here, there] = [from, pe].map(|node| shape.coordinates(node).0);
            let apart = |n: usize| {
                let plus = (there[n] + shape.size()[n] - here[n]) % shape.size()[n];
                plus.min(shape.size()[n] - plus)
            };
            let apart: u8 = (0..3).map(apart).sum();
            assert_eq!(walked.expect("a route").len(), usize::from(apart));
            if !tables.in_fours() && from != pe {
                let half = |n: usize| here[n].abs_diff(there[n]) * 2 == shape.size()[n];
                let odd = |n: usize| here[n] % 2 == 1;
                let rule = |n: usize| !half(n) || odd(n) == (entry.tag.signs >> n & 1 == 1);
                assert!((0..3).all(rule), "{here:?} to {there:?}: {entry:?}");
            }
        }
    }
}

#[test]
fn paths_lead_around_broken_links() {
    let mut rng = Rng::new(8, 8);
    let mut found = [0; 3];
    for (text, faults) in [("4x4x4", 12), ("5x3x4", 6), ("4x8x4", 6), ("2x4x3", 4)] {
        let shape = shape(text);
        for draw in 0..6 {
            let mut broken = Broken::none(&shape);
            for _ in 0..faults {
                let node = rng.below(shape.nodes().into()) as u32;
                let direction = Direction::ALL[rng.below(6) as usize];
                broken.set_link(&shape, node, direction, true);
            }
            if draw % 2 == 1 {
                broken.set_isolated(&shape, rng.below(shape.nodes().into()) as u32, true);
            }
            let tables = tables(&shape, &broken);
            for (sum, found) in found.iter_mut().zip(follow(&shape, &broken, &tables)) {
                *sum += found;
            }
            for &(from, pe) in tables.unreachable() {
                assert!(tables.route(from, pe).is_none() || broken.is_isolated(pe));
            }
        }
    }
    assert!(
        found[0] > 100 && found[1] > 5 && found[2] > 1_000,
        "{found:?}"
    );
}

#[test]
fn a_string_of_nodes_between_two_broken_links_is_reached_as_in_figure_4() {
    // Nodes (1, 1..=2, 0) are disconnected from the rest of their ring in Y.
    let shape = shape("4x4x1");
    let mut broken = Broken::none(&shape);
    let node = |x, y| shape.node(Coordinates([x, y, 0])).expect("a node");
    broken.set_link(&shape, node(1, 0), Direction::PlusY, true);
    broken.set_link(&shape, node(1, 2), Direction::PlusY, true);
    let tables = tables(&shape, &broken);
    assert!(tables.unreachable().is_empty());
    let found = follow(&shape, &broken, &tables);
    // +X, +Y, -X: out of the ring and back.
    let entry = tables.route(node(1, 0), node(1, 1)).expect("a route");
    assert_eq!(entry.initial, Some(Direction::PlusX));
    assert_eq!(entry.tag.signs & 1, 1);
    assert!(found[0] > 0);
}

#[test]
fn partial_planes_are_reached_and_left() {
    for text in ["4x4x4+4x2x1", "4x4x2+2x4x2", "3x5x2+2x1x1+1x5x2"] {
        let shape = shape(text);
        let broken = Broken::none(&shape);
        let tables = tables(&shape, &broken);
        assert!(tables.unreachable().is_empty(), "{text}");
        let [initial, last, ordered] = follow(&shape, &broken, &tables);
        let ways = shape.nodes() * shape.nodes();
        assert!(ordered > 0 && ordered < ways / 2, "{text}");
        // "Only need to be used if a normal direction-order route does not exist" (T3E sec. 2.3):
        // in machines like those that were built, one exists.
        let built = shape.in_fours();
        assert_eq!([initial > 0, last > 0], [!built; 2], "{text}");
    }
}

#[test]
fn an_entry_serves_four_or_none() {
    let shape = shape("8x12x6");
    let mut broken = Broken::none(&shape);
    let node = |x, y, z| shape.node(Coordinates([x, y, z])).expect("a node");
    for z in 0..3 {
        broken.set_link(&shape, node(2, 3, z), Direction::PlusX, true);
        broken.set_link(&shape, node(5, 5, z), Direction::PlusZ, true);
    }
    let dead = node(6, 6, 1);
    broken.set_isolated(&shape, dead, true);
    let mut tables = tables(&shape, &broken);
    assert!(tables.in_fours());
    let pe = tables
        .destinations()
        .iter()
        .position(|&node| node == dead)
        .expect("the node has a number");
    // The three neighbours of the failed node in its block are reached.
    assert!(
        tables
            .unreachable()
            .iter()
            .all(|&(_, unreached)| unreached == pe as u32)
    );
    assert_eq!(tables.unreachable().len(), 575);
    assert!(tables.of(dead).is_empty());
    let [_, _, ordered] = follow(&shape, &broken, &tables);
    assert!(ordered > 0);
    // One of the four can be entered only in -X and another only in -Y: each has a route, but the
    // four have no common one.
    for direction in Direction::ALL {
        broken.set_link(
            &shape,
            node(0, 0, 0),
            direction,
            direction != Direction::PlusX,
        );
        broken.set_link(
            &shape,
            node(1, 1, 0),
            direction,
            direction != Direction::PlusY,
        );
    }
    let lines = Lines::new(&shape, &broken, &registers(&shape));
    let reached = |to, signs| {
        lines
            .in_direction_order(node(4, 4, 4), Coordinates(to), signs)
            .is_some()
    };
    assert!(reached([0, 0, 0], 0b001) && reached([1, 1, 0], 0b011));
    tables = generate(&shape, &broken, &registers(&shape), tables.destinations()).expect("tables");
    follow(&shape, &broken, &tables);
    let unreached: Vec<u32> = tables
        .unreachable()
        .iter()
        .filter(|&&(from, pe)| from == node(4, 4, 4) && pe < 4)
        .map(|&(_, pe)| pe)
        .collect();
    assert_eq!(unreached, [0, 1, 2, 3]);
}

#[test]
fn a_spare_replaces_a_dead_node() {
    let shape = shape("4x4x2");
    let mut broken = Broken::none(&shape);
    broken.set_isolated(&shape, 5, true);
    let mut destinations: Vec<u32> = (0..31).collect();
    destinations[5] = 31;
    let tables = generate(&shape, &broken, &registers(&shape), &destinations).expect("tables");
    assert!(tables.unreachable().is_empty());
    follow(&shape, &broken, &tables);
    assert_eq!(
        tables.route(0, 5).map(|entry| entry.tag.to),
        Some(shape.coordinates(31))
    );
    assert_eq!(tables.route(5, 0), None);
}

#[test]
fn a_final_hop_crosses_the_dateline_on_vc0_only() {
    // Up the column no path leads to (0,0,2), and the path down ends a hop too early.
    let shape = shape("1x1x4");
    let mut broken = Broken::none(&shape);
    broken.set_link(&shape, 1, Direction::PlusZ, true);
    let mut registers = registers(&shape);
    let all = [0, 1, 2, 3];
    let route = |registers: &[RouteRegisters], signs| {
        let generator = Generator {
            shape: &shape,
            broken: &broken,
            registers,
            lines: Lines::new(&shape, &broken, registers),
            regions: Regions::new(&shape, &broken),
            path_search: MinimalPathSearch::new(&shape),
        };
        let above = Targets {
            nodes: [3, 0, 0, 0],
            count: 1,
            final_hop: true,
        };
        generator.way(1, &above, signs).is_some()
    };
    // From 1 down to the dateline of -Z at 3, and on to 2.
    assert!(route(&registers, 4));
    registers[1].vc_tables[Direction::MinusZ.index()] = 1 << 3;
    assert!(!route(&registers, 4));
    let tables = generate(&shape, &broken, &registers, &all).expect("tables");
    let entry = tables.route(1, 2).expect("a route");
    let walked = walk(&shape, &broken, &registers, 1, 2, &entry);
    assert_eq!(walked.map(|channels| channels.len()), Ok::<_, Stray>(3));
}

#[test]
fn tables_that_cannot_be_are_refused() {
    let shape = shape("8x16x8");
    let broken = Broken::none(&shape);
    let refused = |destinations: &[u32]| {
        let made = generate(&shape, &broken, &registers(&shape), destinations);
        made.expect_err("no tables").to_string()
    };
    assert!(refused(&vec![0; 2177]).starts_with("2177 processors"));
    assert!(refused(&[0, 1024]).starts_with("processor 1 is at node 1024"));
    let mut swapped: Vec<u32> = (0..1024).collect();
    swapped.swap(8, 9);
    assert!(refused(&swapped).starts_with("processors 8 to 11"));
}

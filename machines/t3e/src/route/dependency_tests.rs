use phitwire_framing::t3e::tag::Tag;

use super::*;
use crate::route::{Broken, generate, walk};
use phitwire::rng::Rng;

fn shape(text: &str) -> Shape {
    text.parse().expect("a shape")
}

fn registers(shape: &Shape) -> Vec<RouteRegisters> {
    (0..shape.nodes())
        .map(|node| shape.registers(node))
        .collect()
}

/// Arbitrary valid channel tables: all packets that cross the dateline begin on VC0, also on the
/// longer path around the ring, and with them all packets that share an entry.
fn any_channels(shape: &Shape, rng: &mut Rng) -> Vec<RouteRegisters> {
    let mut registers = registers(shape);
    for node in 0..shape.nodes() {
        for direction in Direction::ALL {
            let mut table = rng.below(256) as u8;
            let mut crossed = false;
            let mut at = node;
            while let Some(next) = shape.neighbour(at, direction).filter(|&next| next != node) {
                if crossed {
                    table &= !(1 << (shape.coordinates(next).0[direction.dimension()] & 7));
                }
                crossed |= registers[next as usize].is_dateline(direction);
                at = next;
            }
            registers[node as usize].vc_tables[direction.index()] = table;
        }
    }
    registers
}

/// The kinds of routes to check, among all that tags can describe.
#[derive(Clone, Copy, Default)]
struct RouteKinds {
    initial: bool,
    into_dateline: bool,
    final_hop: bool,
    adaptive: bool,
}

fn all_routes(shape: &Shape, ways: RouteKinds) -> Vec<(u32, Entry)> {
    let mut all = Vec::new();
    let initials: Vec<Option<Direction>> = core::iter::once(None)
        .chain(
            Direction::ALL[..3]
                .iter()
                .copied()
                .map(Some)
                .filter(|_| ways.initial),
        )
        .collect();
    for from in 0..shape.nodes() {
        for to in 0..shape.nodes() {
            for choice in 0..16 {
                let tag = Tag {
                    to: shape.coordinates(to),
                    signs: choice & 7,
                    final_hop: choice & 8 != 0,
                    adaptive: ways.adaptive,
                };
                if tag.final_hop && !ways.final_hop {
                    continue;
                }
                all.extend(
                    initials
                        .iter()
                        .map(|&initial| (from, Entry { tag, initial })),
                );
            }
        }
    }
    if !ways.into_dateline {
        all.retain(|(from, entry)| {
            entry.initial.is_none_or(|hop| {
                let next = shape.neighbour(*from, hop).expect("a torus");
                !shape.registers(next).is_dateline(hop)
            })
        });
    }
    all
}

/// A cycle in which packets on these routes can wait for each other, if there is one.
fn found(decide: Decide, text: &str, ways: RouteKinds, seed: u64) -> Option<DependencyCycle> {
    let shape = shape(text);
    let registers = any_channels(&shape, &mut Rng::new(seed, 3));
    let ways = all_routes(&shape, ways).into_iter();
    Dependencies::decided_by(decide, &shape, &[&registers], ways).find_cycle()
}

const INITIAL: RouteKinds = RouteKinds {
    initial: true,
    into_dateline: false,
    final_hop: false,
    adaptive: false,
};

#[test]
fn direction_order_and_datelines_make_no_cycle() {
    for (text, adaptive) in [
        ("4x4x4", false),
        ("4x4x4", true),
        ("5x3x4", true),
        ("2x9x1", true),
    ] {
        for seed in 0..1 {
            let ways = RouteKinds {
                adaptive,
                ..RouteKinds::default()
            };
            assert_eq!(found(decide, text, ways, seed), None, "{text}");
        }
    }
}

#[test]
fn initial_hops_make_none_on_vc0_unless_they_lead_into_a_dateline() {
    for (text, adaptive) in [("4x4x4", false), ("4x4x4", true), ("5x3x4", true)] {
        for seed in 0..3 {
            let ways = RouteKinds {
                adaptive,
                ..INITIAL
            };
            assert_eq!(found(decide, text, ways, seed), None, "{text}");
        }
    }
    let into_dateline = RouteKinds {
        into_dateline: true,
        ..INITIAL
    };
    let circle = found(decide, "4x4x4", into_dateline, 0).expect("a circle");
    // A circle around a ring in Y or Z, closed by initial hops of some packets.
    assert!(circle.0.len() > 4, "{circle}");
    let on_vc1: Decide = |registers, tag, arrival| {
        let mut decision = decide(registers, tag, arrival);
        if let (Err(Some(_)), Decision::Go { deterministic, .. }) = (arrival, &mut decision) {
            deterministic.1 = 1;
        }
        decision
    };
    let circle = found(on_vc1, "4x4x4", INITIAL, 0).expect("a circle");
    assert!(circle.0.iter().any(|&(_, _, vc)| vc == 1), "{circle}");
}

#[test]
fn a_final_hop_keeps_the_channel_in_minus_z() {
    // If channels change only at the dateline, a final hop never reaches the dateline on VC1.
    let ways = RouteKinds {
        final_hop: true,
        adaptive: true,
        ..INITIAL
    };
    let whole = shape("5x3x4");
    let all = all_routes(&whole, ways).into_iter();
    let dependencies = Dependencies::of(&whole, &registers(&whole), all);
    assert_eq!(dependencies.find_cycle(), None);
    // With any other tables, omit routes whose final hop would do so, and do not adapt those that
    // might return from an adaptive channel there.
    for (text, seed) in [("4x4x4", 0), ("5x3x4", 2)] {
        let shape = shape(text);
        let registers = any_channels(&shape, &mut Rng::new(seed, 4));
        let broken = Broken::none(&shape);
        let allowed = |(from, entry): &mut (u32, Entry)| {
            let end = shape.node(entry.tag.to).expect("a torus");
            let end = if entry.tag.final_hop {
                shape.neighbour(end, Direction::MinusZ).expect("a torus")
            } else {
                end
            };
            let channels = walk(&shape, &broken, &registers, *from, end, entry).expect("a route");
            let crosses = channels.windows(2).find(|pair| {
                let dateline = registers[pair[1].node as usize].is_dateline(Direction::MinusZ);
                dateline
                    && pair
                        .iter()
                        .all(|channel| channel.direction == Direction::MinusZ)
            });
            let last = entry.tag.final_hop && crosses.is_some();
            entry.tag.adaptive &= !last;
            !last || crosses.is_some_and(|pair| pair[0].vc == 0)
        };
        let mut all = all_routes(&shape, ways);
        let count = all.len();
        all.retain_mut(allowed);
        assert!(all.len() < count);
        let dependencies = Dependencies::of(&shape, &registers, all.into_iter());
        assert_eq!(dependencies.find_cycle(), None, "{text}");
    }
    let looks_up: Decide = |registers, tag, arrival| {
        let last = tag.final_hop && tag.to == registers.coordinates;
        match arrival {
            Ok(came) if last => decide(registers, tag, Ok(Arrival { vc: None, ..came })),
            _ => decide(registers, tag, arrival),
        }
    };
    let circle = (0..8)
        .find_map(|seed| found(looks_up, "4x4x4", ways, seed))
        .expect("a circle");
    let down = |&(_, direction, _): &(Coordinates, Direction, u8)| direction == Direction::MinusZ;
    assert!(circle.0.iter().all(down), "{circle}");
}

#[test]
fn tables_that_cross_the_dateline_on_vc1_are_reported_with_their_cycle() {
    let shape = shape("8x1x1");
    let all: Vec<u32> = (0..8).collect();
    let mut registers = registers(&shape);
    let tables = generate(&shape, &Broken::none(&shape), &registers, &all).expect("tables");
    assert_eq!(check(&shape, &registers, &tables), Ok(()));
    for registers in &mut registers {
        registers.vc_tables = [0xff; 6];
    }
    let circle = check(&shape, &registers, &tables).expect_err("a circle");
    assert_eq!(
        circle.to_string(),
        "(0,0,0) -X VC1, (7,0,0) -X VC1, (6,0,0) -X VC1, (5,0,0) -X VC1, \
         (4,0,0) -X VC1, (3,0,0) -X VC1, (2,0,0) -X VC1, (1,0,0) -X VC1"
    );
    // It is not enough that a single node uses VC0 where packets cross the dateline.
    registers[3].vc_tables = [0; 6];
    assert!(check(&shape, &registers, &tables).is_err());
    // Remove all datelines.
    for registers in &mut registers {
        registers.vc_tables = [0; 6];
        registers.datelines = 0;
    }
    let circle = check(&shape, &registers, &tables).expect_err("a circle");
    assert!(circle.0.iter().all(|&(_, _, vc)| vc == 0));
}

#[test]
fn the_channels_that_a_packet_waits_for_are_found() {
    let shape = shape("4x4x4");
    let registers = registers(&shape);
    let node = |coordinates| shape.node(Coordinates(coordinates)).expect("a node");
    let tag = Tag {
        to: Coordinates([1, 2, 0]),
        adaptive: true,
        ..Tag::default()
    };
    let entry = Entry { tag, initial: None };
    let from = node([3, 0, 0]);
    let dependencies = Dependencies::of(&shape, &registers, core::iter::once((from, entry)));
    let waits = |coordinates, direction, vc| {
        let channel = Channel {
            node: node(coordinates),
            direction,
            vc,
        };
        let waits = dependencies.waits_for(channel);
        let named = |next: Channel| {
            (
                shape.coordinates(next.node).0,
                next.direction.name(),
                next.vc,
            )
        };
        waits.into_iter().map(named).collect::<Vec<_>>()
    };
    assert_eq!(
        waits([3, 0, 0], Direction::PlusX, 0),
        [([0, 0, 0], "+X", 1)]
    );
    assert_eq!(
        waits([0, 0, 0], Direction::PlusX, 1),
        [([1, 0, 0], "+Y", 0)]
    );
    // A packet that crossed the dateline on the adaptive channel returns on VC0.
    assert_eq!(
        waits([0, 1, 0], Direction::PlusX, 0),
        [([1, 1, 0], "+Y", 0)]
    );
    assert_eq!(waits([1, 1, 0], Direction::PlusY, 0), []);
}

#[test]
fn generated_tables_make_no_cycle() {
    let mut rng = Rng::new(75, 0);
    let shapes = [
        "4x4x4",
        "5x3x4",
        "2x10x2",
        "4x8x4",
        "4x4x4+4x2x1",
        "4x6x3+4x2x2+2x6x1",
        "2x4x2+2x3x1",
    ];
    let mut hops = [0; 2];
    for text in shapes {
        let shape = shape(text);
        let all: Vec<u32> = (0..shape.nodes()).collect();
        for draw in 0..12 {
            let mut broken = Broken::none(&shape);
            for _ in 0..draw * 2 {
                let node = rng.below(shape.nodes().into()) as u32;
                broken.set_link(&shape, node, Direction::ALL[rng.below(6) as usize], true);
            }
            let mut registers = any_channels(&shape, &mut rng);
            if draw % 2 == 1 {
                // Tables are generated to avoid the paths that these channels would make unsafe.
                for table in registers.iter_mut().flat_map(|own| &mut own.vc_tables) {
                    *table = rng.below(256) as u8;
                }
            }
            let tables = generate(&shape, &broken, &registers, &all).expect("tables");
            let checked = check(&shape, &registers, &tables);
            assert!(checked.is_ok(), "{text}: {}", checked.expect_err("not ok"));
            for (_, _, entry) in tables.routes() {
                hops[0] += u32::from(entry.initial.is_some());
                hops[1] += u32::from(entry.tag.final_hop);
            }
        }
    }
    assert!(hops[0] > 500 && hops[1] > 50, "{hops:?}");
}

fn is_checked(text: &str) {
    let shape = shape(text);
    let all: Vec<u32> = (0..shape.nodes()).collect();
    let registers = any_channels(&shape, &mut Rng::new(880, 0));
    let mut broken = Broken::none(&shape);
    for node in [0, 100, 200, 300, 870] {
        broken.set_link(&shape, node, Direction::PlusZ, true);
    }
    let tables = generate(&shape, &broken, &registers, &all).expect("tables");
    assert_eq!(check(&shape, &registers, &tables), Ok(()));
}

#[test]
fn a_large_machine_is_checked() {
    is_checked("8x12x8+8x4x2+4x12x1");
}

#[test]
#[ignore = "repeats an ordinary test on a larger torus; run by --long"]
fn a_larger_machine_is_checked() {
    is_checked("8x16x8");
}

#[test]
fn datelines_of_two_columns_make_a_cycle_of_initial_hops() {
    // Shows why all columns have the dateline of +Z at ordinate 1 if planes are partial.
    let shape = shape("4x2x3+2x2x1");
    let mut registers = registers(&shape);
    let ways = || {
        let all = (0..shape.nodes()).flat_map(|from| {
            (0..shape.nodes())
                .flat_map(move |to| [(from, to, None), (from, to, Some(Direction::PlusZ))])
        });
        all.map(|(from, to, initial)| {
            let tag = Tag {
                to: shape.coordinates(to),
                ..Tag::default()
            };
            (from, Entry { tag, initial })
        })
    };
    let circle = |registers: &[RouteRegisters]| {
        let allowed = |&(from, entry): &(u32, Entry)| {
            entry.initial.is_none_or(|hop| {
                let next = shape.neighbour(from, hop).expect("a column");
                !registers[next as usize].is_dateline(hop)
            })
        };
        Dependencies::of(&shape, registers, ways().filter(allowed)).find_cycle()
    };
    assert_eq!(circle(&registers), None);
    let up = 1 << Direction::PlusZ.index();
    for node in 0..shape.nodes() {
        let Coordinates([x, y, z]) = shape.coordinates(node);
        if shape.node(Coordinates([x, y, 3])).is_none() {
            let datelines = &mut registers[node as usize].datelines;
            *datelines = *datelines & !up | if z == 0 { up } else { 0 };
        }
    }
    assert!(circle(&registers).is_some());
}

use std::collections::BTreeSet;
use std::sync::Arc;

use phitwire_framing::aries::flit::{Flit, Lines, NodeId};

use super::*;
use crate::route::harness::{At, Machine};
use crate::topology::{self, Faults, is_deadlock_free};

fn all_routes(machine: &Machine) -> Vec<Routes> {
    let registers = machine.all().map(|at| machine.registers(at));
    registers.map(Routes::new).collect()
}

fn head_to((group, router): At, routing: Routing, response: bool) -> Head {
    let to = NodeId::new(group as u16, router as u8, 2);
    let id = if routing.is_hashed() {
        Lines::first_id(0)
    } else {
        0
    };
    Head::new(response, 1, to, routing, id, 0)
}

#[derive(Debug, Default)]
struct Trace {
    kinds: Vec<PortKind>,
    classes: Vec<u8>,
    routers: Vec<At>,
    choices: Vec<Choice>,
}

/// Follows a packet from a NIC of `from` until it is ejected.
fn walk(
    machine: &Machine,
    routes: &[Routes],
    from: At,
    mut head: Head,
    rng: &mut Rng,
    load: impl Fn(At, u8) -> u32,
) -> Trace {
    let (mut at, mut port) = (from, FIRST_NIC_PORT);
    let mut trace = Trace::default();
    loop {
        trace.routers.push(at);
        assert!(trace.routers.len() <= 11, "at most ten hops: {trace:?}");
        let kind = machine.kind(at, port).expect("packets arrive over links");
        let router = &routes[machine.index(at)];
        let arrival = Arrival {
            port: port as u8,
            kind,
            head,
        };
        let decision = router.choose(arrival, PortMask::MAX, rng, |port| load(at, port));
        let Decision { way, kind: choice } = decision.expect("a complete machine has a route");
        let is_way = router.ways(kind, head).iter().any(|w| w == way);
        assert!(is_way, "{way:?} is not one of the routes");
        trace.choices.push(choice);
        if usize::from(way.port) >= FIRST_NIC_PORT {
            assert_eq!(usize::from(way.port), FIRST_NIC_PORT + 2);
            let here = NodeId::new(at.0 as u16, at.1 as u8, 2);
            assert_eq!(here, head.destination());
            return trace;
        }
        let kind = machine.kind(at, way.port.into());
        trace.kinds.push(kind.expect("a link"));
        trace.classes.push(way.class);
        head = head.with_vc(head.vc() & 4 | way.class);
        head = head.with_non_minimal(way.non_minimal);
        (at, port) = machine.peer(at, way.port.into()).expect("a link");
    }
}

#[test]
fn the_links_of_the_test_machine_have_two_ends() {
    let machine = Machine::small();
    for at in machine.all() {
        for port in 0..PORTS {
            if let Some((to, back)) = machine.peer(at, port) {
                assert_eq!(machine.peer(to, back), Some((at, port)));
                assert_eq!(machine.kind(at, port), machine.kind(to, back));
            }
        }
    }
}

/// Every pair of routers in every mode: checks destination, links and classes.
#[test]
fn every_mode_reaches_every_router_in_class_order() {
    // So few blue links that the longest paths are needed.
    let machine = Machine::new((4, 2, 3), 2, 1);
    let routes = all_routes(&machine);
    let mut rng = Rng::new(1, 2);
    let mut longest = [0; 2];
    for from in machine.all() {
        for to in machine.all() {
            let directions = [false, true].into_iter().cycle();
            for (routing, response) in Routing::ALL.into_iter().zip(directions) {
                for _ in 0..20 {
                    let noise = rng.next_u64();
                    let head = head_to(to, routing, response);
                    let load = |_, port| (noise >> (port % 60)) as u32 & 15;
                    let trace = walk(&machine, &routes, from, head, &mut rng, load);
                    let links = trace.classes.iter().zip(&trace.kinds);
                    let rank: Vec<_> = links.map(|(&class, &kind)| (class, kind)).collect();
                    // Green, black and blue links of each class appear in order, each at most once.
                    assert!(rank.is_sorted_by(|a, b| a < b), "{rank:?}");
                    let goes_up = |c: &Choice| matches!(c, Choice::NonMinimal | Choice::Diverted);
                    let up = trace.choices.iter().any(goes_up);
                    let is_blue = |(_, kind): &&(u8, PortKind)| *kind == PortKind::Blue;
                    let blues = rank.iter().filter(is_blue).count();
                    if from == to {
                        assert!(rank.is_empty());
                    } else if !up {
                        assert_eq!(blues, usize::from(from.0 != to.0));
                        assert!(rank.iter().all(|&(class, kind)| class == 0
                            || class == 3 && kind != PortKind::Blue && from.0 != to.0));
                        longest[0] = longest[0].max(rank.len());
                    } else {
                        assert!(blues <= 2 * usize::from(from.0 != to.0));
                        longest[1] = longest[1].max(rank.len());
                    }
                    match routing {
                        Routing::Minimal | Routing::Ordered | Routing::MinHash => assert!(!up),
                        mode if mode.is_non_minimal() => assert_eq!(up, from != to),
                        _ => {}
                    }
                }
            }
        }
    }
    assert_eq!(longest[0], 5, "green, black, blue, green, black");
    assert!((9..=10).contains(&longest[1]), "{longest:?}");
}

/// In deterministic modes packets of one flow take one path, and different flows spread.
#[test]
fn deterministic_packets_follow_each_other() {
    let machine = Machine::small();
    let routes = all_routes(&machine);
    let mut rng = Rng::new(3, 4);
    let all = Routing::ALL.into_iter();
    for routing in all.filter(|routing| routing.is_deterministic()) {
        let mut ways = BTreeSet::new();
        for from in machine.all() {
            for to in machine.all() {
                let head = head_to(to, routing, false);
                let mut walk = |salt: u32| {
                    let load = |_, port| salt.wrapping_mul(u32::from(port)) & 63;
                    walk(&machine, &routes, from, head, &mut rng, load).routers
                };
                let first = walk(1);
                (2..6).for_each(|salt| assert_eq!(walk(salt), first));
                if from.0 == 0 && to.0 == 1 {
                    ways.insert(first[..first.len() - 1].to_vec());
                }
            }
        }
        assert!(ways.len() > 10, "{routing:?}: {} paths", ways.len());
    }
}

/// Whether packets on some channels wait for each other in a cycle.
fn has_cycle(machine: &Machine) -> bool {
    let (network, wiring) = (&machine.network, &machine.wiring);
    let walk = topology::walk(network, wiring, &Faults::default(), &machine.routed);
    assert!(walk.followed && walk.flaws.is_empty());
    !is_deadlock_free(wiring, &walk)
}

#[test]
fn no_channel_waits_for_itself() {
    assert!(!has_cycle(&Machine::small()));
    let one_chassis = Machine::new((3, 1, 4), 2, 4);
    assert!(!has_cycle(&one_chassis));
    let one_group = Machine::new((1, 3, 3), 2, 0);
    assert!(!has_cycle(&one_group));
}

/// Canary: each of the three class registers matters.
#[test]
fn broken_classes_close_a_cycle() {
    assert!(has_cycle(&Machine::small_with(|c| c.blue[0] = [0; 4])));
    assert!(has_cycle(&Machine::small_with(|c| c.root = [0, 1, 2, 3])));
    assert!(has_cycle(&Machine::small_with(|c| c.local_up = 0)));
}

fn decide(
    routes: &Routes,
    kind: PortKind,
    head: Head,
    live: PortMask,
) -> Result<Decision, Refusal> {
    let port = FIRST_NIC_PORT as u8;
    let arrival = Arrival { port, kind, head };
    routes.choose(arrival, live, &mut Rng::new(7, 7), |_| 0)
}

#[test]
fn without_live_minimal_ports_a_packet_of_class_0_goes_up() {
    let machine = Machine::small();
    let routes = all_routes(&machine);
    for routing in Routing::ALL {
        for to in [(1, 3), (0, 5), (0, 3), (0, 1)] {
            let head = head_to(to, routing, false);
            let router = &routes[0];
            let phase = router.phase(PortKind::Processor, head, PortMask::MAX);
            let dead = phase.minimal.ports;
            assert_ne!(dead, 0);
            let decision = decide(router, PortKind::Processor, head, !dead).expect("a route up");
            assert!(decision.way.non_minimal, "{routing:?} {to:?} {decision:?}");
            assert_eq!(decision.way.class, u8::from(to.0 == 0));
            let would = routing.is_non_minimal();
            assert_eq!(decision.kind == Choice::Fallback, !would);
            let none = decide(router, PortKind::Processor, head, 0);
            assert_eq!(none, Err(Refusal::Dead));
        }
    }
    // In transit, only the black link leads on from a green port; its parallel link has failed too.
    let head = head_to((0, 3), Routing::Minimal, true);
    let blacks = routes[0].ports_of(PortKind::Black);
    let up = decide(&routes[0], PortKind::Green, head, !blacks).expect("a route up");
    assert_eq!((up.way.class, up.way.non_minimal), (1, true));
    assert_eq!(up.kind, Choice::Fallback);
    // Outside the target group, no class follows class 3.
    let arrived = head.with_vc(4 | 3);
    let dead = decide(&routes[0], PortKind::Green, arrived, !blacks);
    assert_eq!(dead, Err(Refusal::Dead));
}

#[test]
fn without_non_minimal_ports_packets_go_minimally() {
    let machine = Machine::small();
    let routes = all_routes(&machine);
    let head = head_to((1, 3), Routing::Valiant, false);
    let phase = routes[0].phase(PortKind::Processor, head, PortMask::MAX);
    let minimal = phase.minimal;
    assert_ne!(minimal.ports, 0);
    let mut registers = machine.registers((0, 0));
    let tables = Arc::make_mut(&mut registers.tables[0]);
    tables.global_non_minimal = Vec::new();
    let router = Routes::new(registers);
    for routing in [Routing::Valiant, Routing::OrderedNonMinimal] {
        let head = head_to((1, 3), routing, false);
        let decision = decide(&router, PortKind::Processor, head, PortMask::MAX).expect("a route");
        assert!(!decision.way.non_minimal && decision.kind == Choice::Fallback);
        assert!(minimal.ports >> decision.way.port & 1 != 0);
    }
}

#[test]
fn destinations_outside_the_tables_are_unroutable() {
    let routes = all_routes(&Machine::small());
    for head in [
        head_to((17, 0), Routing::Adaptive0, false),
        head_to((0, 77), Routing::Ordered, true),
        // A packet on its way down on class 2 arrives in a group other than its own, and the class
        // that it would need does not exist.
        head_to((1, 0), Routing::Minimal, false).with_vc(2),
    ] {
        let kind = [PortKind::Processor, PortKind::Blue][usize::from(head.vc() == 2)];
        assert!(routes[0].ways(kind, head).is_empty());
        let refused = decide(&routes[0], kind, head, PortMask::MAX);
        assert_eq!(refused, Err(Refusal::Unroutable));
    }
    // A NIC without a link, and one whose link is down.
    let mut registers = Machine::small().registers((0, 0));
    registers.ports[FIRST_NIC_PORT + 2] = None;
    let head = head_to((0, 0), Routing::Minimal, false);
    let router = Routes::new(registers);
    let nowhere = decide(&router, PortKind::Green, head, u64::MAX);
    assert_eq!(nowhere, Err(Refusal::Unroutable));
    let nics = routes[0].ports_of(PortKind::Processor);
    let dead = decide(&routes[0], PortKind::Green, head, !nics);
    assert_eq!(dead, Err(Refusal::Dead));
}

/// Any flit that passes as a head gets a decision.
#[test]
fn no_head_makes_a_decision_panic() {
    let machine = Machine::small();
    let routes = all_routes(&machine);
    let mut rng = Rng::new(5, 6);
    for round in 0..200_000 {
        let mut bits = rng.next_u64();
        if round % 2 == 0 {
            // Usually an existing destination.
            let to = NodeId::new((bits >> 50) as u16 & 3, (bits >> 48) as u8 & 7, bits as u8);
            bits = bits & !(0x3_ffff << 22) | u64::from(to.bits()) << 22;
        }
        let Some(head) = Head::parse(Flit::new(bits)) else {
            continue;
        };
        let kind = PortKind::ALL[rng.below(4) as usize];
        let live = rng.next_u64() | rng.next_u64();
        let arrival = Arrival {
            port: (bits >> 60) as u8,
            kind,
            head,
        };
        let router = &routes[rng.below(routes.len() as u64) as usize];
        let ways = router.ways(kind, head);
        match router.choose(arrival, live, &mut rng, |port| u32::from(port) & 7) {
            Ok(decision) => {
                let is_way = ways.iter().any(|way| way == decision.way);
                assert!(is_way, "{decision:?} {ways:?}");
            }
            Err(why) => assert_eq!(why == Refusal::Unroutable, ways.is_empty()),
        }
    }
}

/// Hashed packets of one cache line take one path, and different lines spread.
#[test]
fn the_lines_of_a_pair_spread_over_its_ways() {
    let machine = Machine::small();
    let routes = all_routes(&machine);
    let mut rng = Rng::new(3, 5);
    for (routing, least) in [(Routing::MinHash, 1), (Routing::NminHash, 3)] {
        let (mut pairs, mut found) = (0, 0);
        for (from, to) in (0..6).flat_map(|from| (0..6).map(move |to| (from, to))) {
            let mut ways = BTreeSet::new();
            for hash in 0..Lines::HASHES {
                let to = NodeId::new(1, to, 2);
                let mut walk = |number: u16| {
                    let id = Lines::first_id(hash) + number;
                    let head = Head::new(false, 1, to, routing, id, 0);
                    let load = |_, port| (u32::from(number) * u32::from(port)) & 15;
                    walk(&machine, &routes, (0, from), head, &mut rng, load).routers
                };
                let first = walk(0);
                (1..4).for_each(|number| assert_eq!(walk(number), first));
                ways.insert(first);
            }
            pairs += 1;
            found += ways.len();
        }
        assert!(found > least * pairs, "{routing:?}: {found} of {pairs}");
    }
}

/// The number of non-minimal choices among 400 packets that arrive at router 0 of group 0 by a port
/// of `kind`, if minimal ports have `load` and the others `up_load`.
fn climbing(kind: PortKind, (routing, to): (Routing, At), load: u32, up_load: u32) -> usize {
    let router = &all_routes(&Machine::small())[0];
    let mut rng = Rng::new(8, 9);
    let head = head_to(to, routing, false);
    let phase = router.phase(kind, head, u64::MAX);
    let minimal = phase.minimal.ports;
    assert_ne!(minimal, 0);
    let port = FIRST_NIC_PORT as u8;
    let arrival = Arrival { port, kind, head };
    let by = |port: u8| [up_load, load][usize::from(minimal >> port & 1 != 0)];
    let climbs = |_: &u32| {
        let decision = router.choose(arrival, u64::MAX, &mut rng, by);
        decision.expect("a route").way.non_minimal
    };
    (0..400).filter(climbs).count()
}

/// The largest load at which a minimal path is always taken while the other ports have `up_load`.
fn bears(kind: PortKind, mode: (Routing, At), up_load: u32) -> u32 {
    let is_taken = |load: &u32| climbing(kind, mode, *load, up_load) == 0;
    (0..200)
        .take_while(is_taken)
        .last()
        .expect("an idle path is chosen")
}

/// The biases are zero, growing along the path, small and large.
#[test]
fn biases_match_the_names_of_the_modes() {
    let to = (0, 3);
    // Two green links lead up; the black links are the minimal paths.
    let [source, behind_green] = [PortKind::Processor, PortKind::Green].map(|kind| {
        [
            Routing::Adaptive0,
            Routing::Adaptive1,
            Routing::Adaptive2,
            Routing::Adaptive3,
        ]
        .map(|mode| {
            let most = bears(kind, (mode, to), 2);
            assert!(climbing(kind, (mode, to), most + 1, 2) > 300, "{mode:?}");
            most
        })
    });
    // Without a bias the loads of both candidates count, and ties are minimal.
    assert_eq!(source[0], 2 + 2);
    assert_eq!(source[1], source[0], "the load has not grown yet");
    assert!(
        source[0] < source[2] && source[2] < 2 * source[0] + 4,
        "{source:?}"
    );
    assert!(source[3] > source[2], "{source:?}");
    for mode in [0, 2, 3] {
        assert_eq!(behind_green[mode], source[mode]);
    }
    assert!(behind_green[1] > source[1], "{behind_green:?}");
    let growth = AriesRegisters::BIAS[1].growth;
    assert_eq!(behind_green[1] - source[1], u32::from(growth));
    for (mode, climbs) in [
        (Routing::Minimal, 0),
        (Routing::Ordered, 0),
        (Routing::Valiant, 400),
    ] {
        for loads in [(99, 0), (0, 99)] {
            let kind = PortKind::Processor;
            assert_eq!(climbing(kind, (mode, to), loads.0, loads.1), climbs);
        }
    }
}

/// Depending on load, a later router diverts an adaptive packet, returns it, or becomes its root.
#[test]
fn adaptive_packets_are_decided_at_every_router() {
    let machine = Machine::new((4, 2, 3), 2, 1);
    let routes = all_routes(&machine);
    let mut rng = Rng::new(6, 2);
    let mut seen = [0; 4];
    for from in machine.all() {
        for to in machine.all() {
            for (mode, seen) in seen.iter_mut().enumerate() {
                let head = head_to(to, Routing::ALL[mode], false);
                for _ in 0..20 {
                    let noise = rng.next_u64();
                    let load = |_, port| (noise >> (port % 60)) as u32 & 15;
                    let trace = walk(&machine, &routes, from, head, &mut rng, load);
                    let has = |choice| u32::from(trace.choices.contains(&choice));
                    *seen += has(Choice::Diverted);
                    // After the blue link into the target's group there is no choice.
                    let last = trace.classes.iter().position(|&class| class == 3);
                    let rest = &trace.choices[last.unwrap_or(trace.choices.len() - 1)..];
                    let is_decided = |c: &Choice| {
                        matches!(c, Choice::Diverted | Choice::Returned | Choice::Root)
                    };
                    assert!(!rest.iter().skip(1).any(is_decided), "{trace:?}");
                }
            }
        }
    }
    let [none, growing, small, large] = seen;
    assert!(none > growing && none > small && small > large, "{seen:?}");
    assert!(growing > 0 && large > 0, "{seen:?}");
    // In an idle network every mode returns a packet that another router sent up.
    let router = &routes[0];
    let up = head_to((0, 3), Routing::Adaptive0, false);
    let up = up.with_vc(1).with_non_minimal(true);
    let root = decide(router, PortKind::Green, up, PortMask::MAX).expect("a route");
    assert_eq!(root.kind, Choice::Root);
    assert_eq!((root.way.class, root.way.non_minimal), (2, false));
}

/// Roots are random: every router of the group becomes the root about equally often.
#[test]
fn roots_are_spread_over_the_group() {
    let machine = Machine::new((3, 3, 4), 3, 12);
    let routes = all_routes(&machine);
    let mut rng = Rng::new(10, 11);
    let mut counts = [[0u32; 12]; 2];
    const WALKS: u32 = 24_000;
    for (row, (from, to)) in [((0, 0), (0, 5)), ((0, 0), (1, 7))].into_iter().enumerate() {
        for _ in 0..WALKS {
            let head = head_to(to, Routing::Valiant, false);
            let trace = walk(&machine, &routes, from, head, &mut rng, |_, _| 0);
            // A path up can also end in the target itself, or at its router.
            if let Some(root) = trace.choices.iter().position(|c| *c == Choice::Root) {
                assert_eq!(trace.routers[root].0, if row == 0 { 0 } else { 2 });
                counts[row][trace.routers[root].1] += 1;
            }
        }
    }
    for (row, counts) in counts.into_iter().enumerate() {
        let total: u32 = counts.iter().sum();
        assert!(total > WALKS / 2, "{total}");
        for (router, &count) in counts.iter().enumerate() {
            let own = row == 0 && (router == 0 || router == 5);
            let share = count * 1200 / total;
            let is_fair = own || (50..200).contains(&share);
            assert!(is_fair, "router {router}: {share} of 100: {counts:?}");
            let is_source = row == 0 && router == 0;
            assert!(!is_source || count == 0, "the source is not a root");
        }
    }
}

//! After any fault, the recomputed tables connect everything that is still connected, and every
//! path ends at its destination.

use super::{network, spec};
use crate::route::registers::PortKind;
use crate::topology::check::walk;
use crate::topology::{
    Arrangement, Dragonfly, DragonflySpec, DragonflyWiring, Faults, check, check_routes,
    is_deadlock_free, read,
};
use phitwire::net::{MistakeKind, NodeRef};

/// Fails if the tables of a damaged network omit a router or lead to a wrong one.
fn assert_whole(network: &Dragonfly, wiring: &DragonflyWiring, faults: &Faults, what: &str) {
    let routed = network.route_with(wiring, faults);
    let names = |&(a, b): &(u32, u32)| (network.shape.router_name(a), network.shape.router_name(b));
    let lost: Vec<_> = routed.report.lost.iter().map(names).collect();
    assert!(lost.is_empty(), "{what}: {lost:?}");
    if routed.report.cut_pairs == 0 {
        let mistakes = check_routes(network, wiring, faults, &routed);
        assert!(mistakes.is_empty(), "{what}: {mistakes:?}");
    }
    let walk = walk(network, wiring, faults, &routed);
    assert_eq!(walk.flaws, [], "{what}");
    assert_eq!(walk.unroutable, routed.report.cut_pairs, "{what}");
    assert!(is_deadlock_free(wiring, &walk), "{what}");
}

/// Every single link, router and bundle between two groups.
fn single_faults(network: &Dragonfly) -> Vec<(String, Faults)> {
    let mut all = vec![(String::from("nothing"), Faults::default())];
    let mut bundles = std::collections::BTreeMap::<(u16, u16), Faults>::new();
    for (id, link) in network.links.iter().enumerate() {
        let (NodeRef::Chip(a), NodeRef::Chip(b)) = (link.a.node, link.b.node) else {
            continue;
        };
        let mut faults = Faults::default();
        faults.links.insert(id as u32);
        all.push((network.end_name(link.a), faults));
        if network.kind(link) == Some(PortKind::Blue) {
            let pair = (network.shape.group_of(a), network.shape.group_of(b));
            bundles.entry(pair).or_default().links.insert(id as u32);
        }
    }
    for router in network.routers() {
        let mut faults = Faults::default();
        faults.routers.insert(router);
        all.push((network.shape.router_name(router), faults));
    }
    all.extend(
        bundles
            .into_iter()
            .map(|(pair, faults)| (format!("bundle {pair:?}"), faults)),
    );
    all
}

#[test]
fn any_single_fault_leaves_all_that_is_connected_joined() {
    for (groups, chassis, blades, links) in [
        (3, 2, 2, 2),
        (3, 2, 2, 4),
        (4, 2, 3, 2),
        (3, 3, 2, 4),
        (5, 1, 4, 3),
        (1, 2, 2, 0),
        (1, 3, 3, 0),
    ] {
        for (_, arrangement) in Arrangement::ALL {
            let spec = DragonflySpec {
                arrangement,
                ..spec(groups, chassis, blades, links)
            };
            let network = spec.generate().expect("a valid spec");
            assert_eq!(check(&network), []);
            let wiring = DragonflyWiring::new(&network);
            for (what, faults) in single_faults(&network) {
                let what = format!("{} {arrangement}: {what}", network.name);
                assert_whole(&network, &wiring, &faults, &what);
            }
        }
    }
}

#[test]
fn any_single_fault_of_a_shipped_network_can_be_rerouted() {
    for text in [
        include_str!("../../../../../netns-scripts/topologies/aries-pair.toml"),
        include_str!("../../../../../netns-scripts/topologies/aries-group.toml"),
        include_str!("../../../../../netns-scripts/topologies/aries-3x4.toml"),
    ] {
        let network = read("shipped", text).expect("a valid description");
        let wiring = DragonflyWiring::new(&network);
        for (what, faults) in single_faults(&network) {
            assert_whole(
                &network,
                &wiring,
                &faults,
                &format!("{}: {what}", network.name),
            );
        }
    }
}

#[test]
fn exactly_the_pairs_that_class_rules_cut_off_are_reported() {
    // Two groups of two routers each: with the green link down, no blue link arrives at a router
    // from which both can be reached.
    let network = network(2, 1, 2, 4);
    let wiring = DragonflyWiring::new(&network);
    let green = network
        .links
        .iter()
        .position(|l| network.kind(l) == Some(PortKind::Green));
    let mut faults = Faults::default();
    faults.links.insert(green.expect("a green link") as u32);
    let routed = network.route(&faults);
    let report = &routed.report;
    assert_eq!(
        report.cut_pairs, 0,
        "all are connected through the other group"
    );
    assert!(report.lost_pairs > 0 && report.lost.len() as u64 == report.lost_pairs);
    assert_eq!(report.reached_pairs + report.lost_pairs, 4 * 3);
    let walk = walk(&network, &wiring, &faults, &routed);
    assert_eq!((walk.unroutable, walk.flaws.len()), (report.lost_pairs, 0));
    let mistakes = check_routes(&network, &wiring, &faults, &routed);
    assert_eq!(mistakes[0].kind, MistakeKind::Unreachable);
    assert!(mistakes[0].message.contains("such pairs"), "{mistakes:?}");
}

#[test]
fn routers_that_are_cut_off_are_no_loss_of_the_tables() {
    let network = network(3, 2, 2, 2);
    let wiring = DragonflyWiring::new(&network);
    let victim = NodeRef::Chip(5);
    let mut faults = Faults::default();
    for (id, link) in network.links.iter().enumerate() {
        if link.a.node == victim || link.b.node == victim {
            faults.links.insert(id as u32);
        }
    }
    let report = network.route(&faults).report;
    assert_eq!((report.cut_pairs, report.lost_pairs), (22, 0));
    assert_whole(&network, &wiring, &faults, "cut off");
}

#[test]
fn the_check_finds_cycles_from_wrong_classes() {
    let good = network(3, 2, 2, 2);
    assert_eq!(check(&good), []);
    let circular = |change: fn(&mut Dragonfly)| {
        let mut network = good.clone();
        change(&mut network);
        let mistakes = check(&network);
        let circle = mistakes
            .iter()
            .find(|m| m.kind == MistakeKind::CyclicDependency);
        circle
            .unwrap_or_else(|| panic!("{mistakes:?}"))
            .message
            .clone()
    };
    // From the root on, and in the target group, packets keep the class of their path up.
    let message = circular(|n| n.classes.root = [0, 1, 2, 3]);
    assert!(message.contains("in a cycle through g"), "{message}");
    circular(|n| n.classes.blue = [[1, 1, 2, 3], [1, 1, 2, 3]]);
    circular(|n| n.classes.local_up = 2);
}

#[test]
fn tables_that_lead_nowhere_are_found() {
    let network = network(3, 2, 2, 2);
    let wiring = DragonflyWiring::new(&network);
    let faults = Faults::default();
    let mut routed = network.route(&faults);
    // A port without a link, in the entry for another group.
    let tables = &mut routed.registers[0].tables[PortKind::Processor as usize];
    std::sync::Arc::make_mut(tables).global_minimal[1] |= 1 << 39;
    let walk = walk(&network, &wiring, &faults, &routed);
    assert_eq!(walk.flaws[0].port, Some(39));
    // A failed link that is still in use.
    let mut faults = Faults::default();
    faults
        .links
        .insert(wiring.link(0, 0).expect("a green link"));
    let before = network.route(&Faults::default());
    let stale = check_routes(&network, &wiring, &faults, &before);
    assert!(
        stale
            .iter()
            .any(|m| m.message.contains("which is not connected")),
        "{stale:?}"
    );
}

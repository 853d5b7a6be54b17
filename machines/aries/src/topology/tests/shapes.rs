//! Generated dragonflies have the links of the XC white paper.

use crate::route::registers::PortKind;
use crate::topology::{Arrangement, Dragonfly, DragonflySpec, DragonflyWiring, Faults, Shape};
use phitwire::net::NodeRef;

fn network(groups: u16, chassis: u8, blades: u8, nics: u8) -> Dragonfly {
    spec(groups, chassis, blades, nics)
        .generate()
        .expect("a valid spec")
}

fn spec(groups: u16, chassis: u8, blades: u8, nics: u8) -> DragonflySpec {
    DragonflySpec {
        shape: Shape {
            groups,
            chassis,
            blades,
            nics,
        },
        ..DragonflySpec::default()
    }
}

fn count(network: &Dragonfly, kind: PortKind) -> usize {
    let links = network.links.iter();
    links
        .filter(|link| network.kind(link) == Some(kind))
        .count()
}

#[test]
fn a_full_group_has_the_links_of_the_paper() {
    let group = network(1, 6, 16, 4);
    assert_eq!(group.shape.all_nics(), 384);
    assert_eq!(count(&group, PortKind::Processor), 384);
    assert_eq!(count(&group, PortKind::Green), 6 * 16 * 15 / 2);
    assert_eq!(count(&group, PortKind::Black), 16 * 15 * 3);
    assert_eq!(count(&group, PortKind::Blue), 0);
}

#[test]
fn every_port_has_one_link_and_every_pair_of_groups_its_bundle() {
    for (_, arrangement) in Arrangement::ALL {
        let small = [(3, 2, 2, 2), (3, 2, 2, 4), (5, 1, 3, 1)];
        let large = [(6, 6, 16, 48), (9, 3, 4, 12), (13, 2, 16, 8)];
        for (groups, chassis, blades, links) in small.into_iter().chain(large) {
            let network = DragonflySpec {
                global_links: Some(links),
                arrangement,
                ..spec(groups, chassis, blades, 2)
            };
            let network = network.generate().expect("the network fits");
            let wiring = DragonflyWiring::new(&network);
            let mut bundles = std::collections::BTreeMap::<(u16, u16), u16>::new();
            let mut used = std::collections::HashSet::new();
            for (id, link) in network.links.iter().enumerate() {
                for end in [link.a, link.b] {
                    let is_new = used.insert((end.node, end.port));
                    assert!(is_new, "{}", network.end_name(end));
                    if let NodeRef::Chip(router) = end.node {
                        assert_eq!(wiring.link(router, end.port), Some(id as u32));
                    }
                }
                let (NodeRef::Chip(a), NodeRef::Chip(b)) = (link.a.node, link.b.node) else {
                    continue;
                };
                if network.kind(link) == Some(PortKind::Blue) {
                    let pair = (network.shape.group_of(a), network.shape.group_of(b));
                    *bundles.entry(pair).or_default() += 1;
                }
            }
            assert_eq!(bundles.len(), usize::from(groups * (groups - 1) / 2));
            assert!(bundles.values().all(|&n| n == links));
            // Blue links are spread evenly: no router has two more than another.
            let blues: Vec<usize> = network
                .routers()
                .map(|r| {
                    let kinds = wiring.kinds(r);
                    kinds.iter().filter(|k| **k == Some(PortKind::Blue)).count()
                })
                .collect();
            let (least, most) = (blues.iter().min(), blues.iter().max());
            let spread = most.expect("routers") - least.expect("routers");
            let sets = network.generator.expect("generated").set_links;
            assert!(spread <= if sets == 4 { 2 } else { 1 }, "{spread}");
        }
    }
}

#[test]
fn names_lead_back_to_nodes() {
    let network = network(3, 2, 2, 2);
    for router in network.routers() {
        let node = NodeRef::Chip(router);
        assert_eq!(network.find(&network.node_name(node)), Some(node));
    }
    for nic in network.nics() {
        let node = NodeRef::Processor(nic);
        assert_eq!(network.find(&network.node_name(node)), Some(node));
        assert_eq!(network.shape.nic_of(network.shape.node_id(nic)), Some(nic));
    }
    assert_eq!(network.node_name(NodeRef::Chip(11)), "g2-c1s1");
    let bad = "g3-c0s0 g0-c2s0 g0-c0s2 nic24 nic nic01 g0 g-c0s0 g0-c0s0x";
    for bad in bad.split(' ') {
        assert_eq!(network.find(bad), None, "{bad}");
    }
}

#[test]
fn specs_that_do_not_fit_are_refused() {
    let refused = |spec: DragonflySpec| {
        spec.generate()
            .expect_err("the spec is rejected")
            .to_string()
    };
    assert!(refused(spec(242, 6, 16, 4)).contains("1 to 241"));
    assert!(refused(spec(1, 7, 1, 1)).contains("7 chassis"));
    assert!(refused(spec(1, 1, 17, 1)).contains("17 blades"));
    assert!(refused(spec(1, 1, 1, 5)).contains("5 NICs"));
    let mut black = spec(1, 6, 2, 1);
    black.black_links = Some(4);
    assert!(refused(black).contains("1 to 3"));
    let mut global = spec(3, 2, 2, 1);
    global.global_links = Some(21);
    assert!(refused(global.clone()).contains("1 to 20"));
    (global.global_links, global.set_links) = (Some(6), Some(4));
    assert!(refused(global).contains("sets of 4"));
}

#[test]
fn default_bundles_are_whole_cables_between_full_groups() {
    let links = |groups, chassis, blades| {
        let spec = spec(groups, chassis, blades, 1);
        spec.generator().expect("a valid spec").global_links
    };
    assert_eq!(links(241, 6, 16), 4);
    assert_eq!(links(6, 6, 16), 192);
    assert_eq!(links(8, 6, 16), 136, "34 cables: FLOOR(240 / 7)");
    assert_eq!(links(3, 2, 2), 20);
    assert_eq!(links(1, 2, 2), 0);
}

#[test]
fn whole_networks_reach_all_pairs_without_detours() {
    let shapes = [
        (1, 1, 1),
        (1, 2, 2),
        (2, 2, 2),
        (3, 2, 2),
        (4, 1, 4),
        (9, 3, 4),
    ];
    for (groups, chassis, blades) in shapes {
        let network = network(groups, chassis, blades, 1);
        let report = network.route(&Faults::default()).report;
        let routers = network.shape.routers() as u64;
        let all = routers * (routers - 1);
        assert_eq!(report.reached_pairs, all, "{groups}x{chassis}x{blades}");
        assert_eq!((report.lost_pairs, report.cut_pairs), (0, 0));
        assert_eq!(report.detours, []);
    }
}

#[test]
#[ignore = "takes seconds in a release build"]
fn the_full_machine_is_generated_and_routed() {
    let network = network(241, 6, 16, 4);
    assert_eq!(network.shape.routers(), 23_136);
    assert_eq!(network.shape.all_nics(), 92_544);
    assert_eq!(count(&network, PortKind::Blue), 241 * 960 / 2);
    let report = network.route(&Faults::default()).report;
    assert_eq!(report.reached_pairs, 23_136 * 23_135);
    assert_eq!(report.lost_pairs, 0);
}

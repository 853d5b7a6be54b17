//! Every node of a dragonfly gets a configuration, and the two ends of a link agree.

use phitwire_framing::carrier::frame::LinkEnd;

use super::{network, spec};
use crate::link::rates;
use crate::route::registers::{AriesRegisters, PortKind};
use crate::topology::{Faults, LAB_DOMAIN, lab_key};
use phitwire::net::{Clock, Network, NodeRef, PlanError, Profile, Runtime};
use phitwire::time::Time;

#[test]
fn the_ends_of_every_link_agree() {
    let network = network(3, 2, 2, 2);
    let runtime = Runtime::new("lab", 7);
    let mut ends = Vec::new();
    let registers = network.route(&Faults::default()).registers;
    for node in network.nodes() {
        let name = network.node_name(node);
        match node {
            NodeRef::Chip(router) => {
                let registers = registers[router as usize].clone();
                let config = network.plan_router(router, registers, &runtime);
                let config = config.expect("a router");
                assert_eq!(config.name, name);
                for (port, link) in config.ports {
                    assert_eq!(link.link().local().port, port);
                    ends.push(link);
                }
            }
            NodeRef::Processor(nic) => {
                let config = network.plan_nic(nic, &runtime).expect("a NIC");
                assert_eq!(config.name(), name);
                ends.push(config.link().clone());
            }
        }
    }
    ends.sort_by_key(|end| (end.link().link(), end.link().end() == LinkEnd::B));
    assert_eq!(ends.len(), 2 * 42);
    for pair in ends.chunks(2) {
        let [a, b] = pair else { panic!("two ends") };
        let (x, y) = (a.link(), b.link());
        assert_eq!((x.end(), y.end()), (LinkEnd::A, LinkEnd::B));
        assert_eq!((x.local(), x.peer()), (y.peer(), y.local()));
        assert_eq!((x.fabric(), x.rate()), (y.fabric(), y.rate()));
        assert_eq!((a.sets(), a.registers()), (b.sets(), b.registers()));
    }
    let optical = ends.iter().filter(|end| end.link().rate() == rates::G12_5);
    assert_eq!(optical.count(), 2 * 6, "all blue links");
}

#[test]
fn settings_and_registers_reach_the_nodes() {
    let mut network = network(3, 2, 2, 2);
    network.settings.own.degrades_allowed = 1;
    network.settings.outstanding = 17;
    network.settings.forward_progress_ms = 3;
    let runtime = Runtime {
        profile: Some(Profile::Paper),
        clock: Some(Clock::Paced { dilation: 100 }),
        ..Runtime::new("lab", 1)
    };
    let Some(NodeRef::Chip(number)) = network.find("g1-c0s1") else {
        panic!("a router");
    };
    let routed = network.route(&Faults::default());
    let registers = routed.registers[number as usize].clone();
    let router = network.plan_router(number, registers, &runtime);
    let router = router.expect("a router");
    // The times of a description are real times, so one below the request timeout stays below it,
    // however slow the clock.
    assert_eq!(router.registers.forward_progress_ns, 3_000_000 / 100);
    let registers = AriesRegisters {
        forward_progress_ns: 3_000_000,
        ..router.registers.clone()
    };
    assert_eq!(registers, routed.registers[5]);
    assert_eq!(router.registers.ports[30], Some(PortKind::Blue));
    assert_eq!(
        router.ports[0].1.sets().window_sets,
        64,
        "the depths of the chip"
    );
    assert_eq!(router.ports[0].1.registers().max_degrades, 1);
    let nic = network.plan_nic(5, &runtime).expect("a NIC");
    assert_eq!(nic.node(), network.shape.node_id(5));
    assert_eq!((nic.max_outstanding(), nic.virtual_nodes().len()), (17, 12));
    assert_eq!(nic.virtual_nodes().get(5), Some(nic.node()));
    assert_ne!(lab_key(&runtime), lab_key(&Runtime::new("other", 1)));
    assert_eq!(LAB_DOMAIN, 0);
}

#[test]
fn a_missing_node_has_no_plan() {
    let mut network = network(3, 2, 2, 2);
    network.absent = vec![4];
    network.links = network
        .generator
        .expect("generated")
        .links(&network.shape, &network.absent);
    let runtime = Runtime::new("lab", 1);
    for name in ["g1-c0s0", "nic4", "nic12", "r1-0"] {
        let error = network.device(name, &runtime, Time::ZERO).err();
        assert_eq!(error, Some(PlanError::NoSuchNode(name.to_owned())));
    }
    let lines = network.plan_lines().expect("the network has few links");
    assert!(!lines.contains("g1-c0s0\t"));
    let first = lines.lines().find(|line| line.starts_with("link\t0\t"));
    assert_eq!(
        first,
        Some("link\t0\tnic0\t0\tg0-c0s0\t40\tp0\tp40\t198.18.0.0\t198.18.0.1")
    );
}

#[test]
fn too_many_links_for_processes_are_refused() {
    let network = spec(120, 6, 16, 4).generate().expect("the network fits");
    assert!(matches!(
        network.plan_lines(),
        Err(PlanError::TooManyLinks(_))
    ));
}

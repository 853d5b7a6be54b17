//! The configuration of processes and scripts.

use std::net::Ipv4Addr;

use phitwire_framing::carrier::frame::LinkEnd;

use crate::link::PhitProfile;
use crate::route::registers::PortKind;
use crate::topology::{BlackWidowSpec, ClosSettings, FoldedClos};
use phitwire::chip::RouterClock;
use phitwire::link::{LinkClock, LinkProfile};
use phitwire::net::Network as _;
use phitwire::net::{Clock, LinkAddresses, NodeRef, PlanError, Profile, Runtime};
use phitwire::time::{Duration, Time};

fn lab(settings: ClosSettings) -> FoldedClos {
    let spec = BlackWidowSpec {
        processors: 8,
        subtree: 4,
        slices: 2,
        settings,
        ..Default::default()
    };
    spec.generate().expect("a valid network")
}

#[test]
fn the_ends_of_every_link_agree() {
    let topology = lab(ClosSettings::default());
    let runtime = Runtime::new("lab", 7);
    let mut ends = Vec::new();
    for processor in 0..topology.processors.len() as u32 {
        let config = topology.plan_nic(processor, &runtime).expect("a NIC");
        assert_eq!(config.links.len(), 2);
        ends.extend(config.links.iter().map(|port| port.link().clone()));
    }
    for chip in 0..topology.chips.len() as u32 {
        let config = topology.plan_router(chip, &runtime).expect("a router");
        for (port, link) in &config.ports {
            assert_eq!(link.link().local().port, *port);
        }
        ends.extend(config.ports.iter().map(|(_, port)| port.link().clone()));
    }
    assert_eq!(ends.len(), 2 * topology.links.len());
    ends.sort_by_key(|end| (end.link(), end.end() == LinkEnd::B));
    for pair in ends.chunks(2) {
        let [a, b] = pair else { panic!("two ends") };
        assert_eq!((a.end(), b.end()), (LinkEnd::A, LinkEnd::B));
        assert_eq!((a.local(), a.peer()), (b.peer(), b.local()));
        assert_eq!((a.fabric(), a.rate()), (b.fabric(), b.rate()));
        assert_eq!(a.profile(), b.profile());
    }
}

#[test]
fn registers_describe_the_peer_of_each_port() {
    let topology = lab(ClosSettings::default());
    let registers = topology.chip_registers(0).expect("a chip");
    let kind = |port: usize| registers.tiles[port].as_ref().map(|tile| tile.kind);
    for (first, expected) in [(0, PortKind::Down), (32, PortKind::Side)] {
        let kinds = [0, 1, 2, 3].map(|port| kind(first + port));
        assert_eq!(kinds, [Some(expected); 4]);
        assert_eq!(kind(first + 4), None);
    }
    assert_eq!(registers.forward_progress_ns, 15_000_000_000);
}

#[test]
fn settings_reach_the_nodes_and_the_run_may_override_them() {
    let topology = lab(ClosSettings {
        profile: Profile::Paper,
        clock: Clock::Paced { dilation: 500 },
        request_timeout_ms: 3_000,
        outstanding: 77,
        memory_bytes: 4_096,
        ..ClosSettings::default()
    });
    let runtime = Runtime::new("lab", 1);
    let nic = topology.plan_nic(5, &runtime).expect("a NIC");
    assert_eq!((nic.number, nic.outstanding), (5, 77));
    assert_eq!(nic.memory_bytes, 4_096);
    assert_eq!(nic.timeout, Duration::from_ms(3_000));
    let router = topology.plan_router(0, &runtime).expect("a router");
    // This is real time too: 30 ms emulated are 15 s.
    assert_eq!(router.registers.forward_progress_ns, 15_000_000_000 / 500);
    assert_eq!(
        nic.links[1].link().clock(),
        LinkClock::Paced { dilation: 500 }
    );
    assert_eq!(*nic.links[1].link().profile(), LinkProfile::paper());
    assert_eq!(*nic.links[1].phits(), PhitProfile::paper());
    // The same network over wires that the clock does not stretch: times are those of the wires,
    // and depths stay the same.
    let real = Runtime {
        real_wires: true,
        ..runtime.clone()
    };
    let nic = topology.plan_nic(5, &real).expect("planned above");
    let live = LinkProfile::live();
    assert_eq!(*nic.links[1].phits(), PhitProfile::paper());
    let profile = nic.links[1].link().profile();
    assert_eq!(profile.min_retry_timeout, live.min_retry_timeout);
    assert_eq!(profile.min_training_interval, live.min_training_interval);
    // The dilated timeout, 500 x 100 us, is shorter, so the live one applies.
    assert_eq!(profile.max_retry_timeout, live.max_retry_timeout);
    let clock = nic.links[1].link().clock();
    assert_eq!(LinkProfile::live().over_real_wires(clock), live);
    let live = Runtime {
        clock: Some(Clock::FreeRunning),
        profile: Some(Profile::Live),
        ..runtime
    };
    let Some(NodeRef::Chip(chip)) = topology.find("s1-r1-0") else {
        panic!("a chip is not a NIC");
    };
    let router = topology.plan_router(chip, &live).expect("a router");
    assert_eq!(router.clock, RouterClock::FreeRunning);
    let asleep = LinkProfile {
        silence: None,
        ..LinkProfile::live()
    };
    assert_eq!(
        *router.ports[0].1.link().profile(),
        asleep,
        "in virtual time"
    );
    let nobody = topology.device("nobody", &live, Time::ZERO).err();
    assert_eq!(nobody, Some(PlanError::NoSuchNode("nobody".into())));
}

#[test]
fn labs_are_distinguished() {
    assert_ne!(Runtime::new("a", 1).fabric, Runtime::new("b", 1).fabric);
}

#[test]
fn addresses_are_pairs_of_198_18() {
    let of = |link| LinkAddresses::of(link).map(|l| (l.a, l.b));
    let first = Ipv4Addr::new(198, 18, 0, 0);
    let last = Ipv4Addr::new(198, 19, 255, 255);
    assert_eq!(of(0), Some((first, Ipv4Addr::new(198, 18, 0, 1))));
    assert_eq!(of(65_535).map(|(_, b)| b), Some(last));
    assert_eq!(of(65_536), None);
}

#[test]
fn lines_for_scripts_are_separated_by_tabs() {
    let lab = lab(ClosSettings::default());
    let lines = lab.plan_lines().expect("few links");
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines.len(), 4 + 8 + 16 + 8);
    assert_eq!(lines[0], "node\ts0-r1-0\trouter");
    assert_eq!(lines[4], "node\tnic0\tnic");
    let first = "link\t0\tnic0\t0\ts0-r1-0\t0\tp0\tp0\t198.18.0.0\t198.18.0.1";
    assert_eq!(lines[12], first);
    let last = "link\t23\ts1-r1-0\t35\ts1-r1-1\t35\tp35\tp35\t198.18.0.46\t198.18.0.47";
    assert_eq!(*lines.last().expect("a line"), last);
}

#[test]
fn too_many_links_for_processes_are_refused() {
    let spec = BlackWidowSpec {
        processors: 32_768,
        ..BlackWidowSpec::default()
    };
    let topology = spec.generate().expect("a valid network");
    let refused = topology.plan_lines();
    assert!(matches!(refused, Err(PlanError::TooManyLinks(_))));
    // The processor's own link has a small id.
    assert!(topology.plan_nic(0, &Runtime::new("lab", 1)).is_ok());
}

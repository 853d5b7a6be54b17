//! Tests that hold for every machine, and tests of two machines together.

mod catalogue;
mod collectives;
mod datagrams;
mod journeys;
mod loads;
mod local;
mod messages;
mod ready;
mod saturation;
mod stages;
mod standstill;
mod strangers;
mod traces;

use serde_json::{Value, json};

use phitwire_framing::carrier::frame::{FrameHeader, LinkEnd};
use phitwire_framing::yarc::control::ControlWord;
use phitwire_framing::yarc::frame::{DataFrame, emit_data};

use phitwire::device::*;
use phitwire::link::testing::rig::{self, A, B};
use phitwire::link::{ErrorInjection, LinkState, NodeLink};
use phitwire::net::{Network, NodeRef, Runtime};
use phitwire::time::{Duration, Time};
use phitwire_aries::link::AriesLcb;
use phitwire_aries::link::testing::{Aries, Pair};
use phitwire_aries::topology::{Dragonfly, DragonflySpec, Shape};
use phitwire_blackwidow::link::Lcb;
use phitwire_blackwidow::link::testing::Yarc;
use phitwire_blackwidow::topology::{BlackWidowSpec, FoldedClos};
use phitwire_machines::{CATALOGUE, MACHINES};

/// The first NIC and the last router of a network.
fn both(network: &dyn Network) -> [Box<dyn Device>; 2] {
    let nodes = network.nodes();
    let is_nic = |node: &&NodeRef| matches!(node, NodeRef::Processor(_));
    let nic = nodes.iter().find(is_nic).unwrap();
    let router = nodes.iter().rfind(|node| !is_nic(node)).unwrap();
    let runtime = Runtime::new("lab", 1);
    [*nic, *router].map(|node| {
        let name = network.node_name(node);
        network.device(&name, &runtime, Time::ZERO).unwrap()
    })
}

fn blackwidow_network() -> FoldedClos {
    let spec = BlackWidowSpec {
        processors: 2,
        subtree: 2,
        ..BlackWidowSpec::default()
    };
    spec.generate().unwrap()
}

fn blackwidow() -> [Box<dyn Device>; 2] {
    both(&blackwidow_network())
}

fn dragonfly() -> Dragonfly {
    let spec = DragonflySpec {
        shape: Shape {
            groups: 2,
            chassis: 1,
            blades: 2,
            nics: 1,
        },
        global_links: Some(1),
        ..DragonflySpec::default()
    };
    spec.generate().unwrap()
}

fn aries() -> [Box<dyn Device>; 2] {
    both(&dragonfly())
}

fn text<T>(result: Result<T, DeviceError>) -> String {
    result.err().expect("it is refused").to_string()
}

#[test]
fn unsupported_requests_are_refused_in_the_same_words() {
    for [mut nic, mut router] in [blackwidow(), aries()] {
        assert_eq!((nic.kind(), router.kind()), (Kind::Nic, Kind::Router));
        let name = RegisterName::Name("chip.id");
        let refused = text(nic.need_registers(name).map(drop));
        assert_eq!(refused, "a nic has no register chip.id");
        let refused = text(nic.need::<capability::Tables>().map(drop));
        assert!(
            refused.contains("this nic has no replaceable route tables"),
            "{refused}"
        );
        let refused = text(router.need::<capability::Traffic>().map(drop));
        assert_eq!(refused, "a router cannot generate traffic");
        let refused = text(router.need::<capability::Collectives>().map(drop));
        assert_eq!(refused, "this router has no collective engine");
        assert!(nic.need::<capability::Traffic>().is_ok() && router.need_registers(name).is_ok());
    }
    assert!(blackwidow()[0].need::<capability::Collectives>().is_err());
    assert!(aries()[0].need::<capability::Collectives>().is_ok());
    assert!(blackwidow()[1].need::<capability::Tables>().is_err());
}

#[test]
fn registers_that_there_are_not_are_named() {
    for [_, mut router] in [blackwidow(), aries()] {
        for name in [
            RegisterName::Name("chip.nothing"),
            RegisterName::Address(0xfff0),
        ] {
            let registers = router.need_registers(name).unwrap();
            let refused = text(registers.read(name));
            assert!(refused.contains("unknown register"), "{refused}");
            assert!(refused.contains(&name.to_string()), "{refused}");
            let refused = text(registers.write(name, 1));
            assert!(refused.starts_with(&name.to_string()), "{refused}");
        }
        let in_use = RegisterName::Name("chip.ports_in_use");
        let registers = router.need_registers(in_use).unwrap();
        assert_ne!(registers.read(in_use).unwrap(), 0);
        assert!(
            registers.write(in_use, 1).is_err(),
            "the register is read-only"
        );
    }
}

#[test]
fn links_accept_only_the_faults_of_their_machine() {
    let own = [
        LinkFault::BadCrc,
        LinkFault::Reinit,
        LinkFault::LoseClock(Duration::from_ms(1)),
        LinkFault::Inject(ErrorInjection {
            lane_mask: 1,
            bit_mask: 1,
            probability: 1,
            max_per_64_sets: 1,
            seed: 1,
        }),
    ];
    let now = Time::ZERO;
    for (devices, has_own) in [(blackwidow(), false), (aries(), true)] {
        for mut device in devices {
            let (port, _) = device.links().next().expect("it has a link");
            for fault in [LinkFault::SoftError, LinkFault::ForceRetry, LinkFault::Down] {
                device.link_fault(now, port, fault).unwrap();
            }
            let state = |device: &dyn Device| device.link(port).map(|link| link.state());
            assert_eq!(state(&*device), Some(phitwire::link::LinkState::Disabled));
            device.link_fault(now, port, LinkFault::Up).unwrap();
            assert_ne!(state(&*device), Some(phitwire::link::LinkState::Disabled));
            for fault in own {
                let done = device.link_fault(now, port, fault);
                assert_eq!(done.is_ok(), has_own, "{fault:?}: {done:?}");
            }
            let nowhere = device.link_fault(now, 200, LinkFault::SoftError);
            assert!(
                matches!(nowhere, Err(DeviceError::NoLink(200))),
                "{nowhere:?}"
            );
            assert_eq!((device.holds(), device.account().total()), (0, 0));
        }
    }
}

#[test]
fn tables_of_another_topology_are_refused_whole() {
    let [_, mut router] = aries();
    let router = router.need::<capability::Tables>().unwrap();
    let (tables, digest) = (router.tables(), router.routing().digest);
    let spoilt = |spoil: fn(&mut Value)| {
        let mut other = tables.clone();
        // Spoil the last entry, so that anything accepted before it would show.
        spoil(&mut other[3]["global_non_minimal"]);
        other
    };
    for (wrong, why) in [
        (spoilt(|table| *table = json!([])), "another topology?"),
        (
            spoilt(|table| table[0] = json!(1_u64 << 63)),
            "a router has only",
        ),
        (
            spoilt(|table| *table = json!("all")),
            "cannot parse the tables",
        ),
    ] {
        let refused = text(router.install(wrong));
        assert!(refused.contains(why), "{refused}");
        assert_eq!(router.routing().digest, digest);
    }
    let other = spoilt(|table| table[0] = json!(1_u64 << 39));
    router.install(other).unwrap();
    assert_ne!(router.routing().digest, digest);
    router.install(tables).unwrap();
    assert_eq!(router.routing().digest, digest);
    router.quiesce();
    assert!(router.routing().quiesced && router.routing().drained);
    router.release();
    assert!(!router.routing().quiesced);
}

#[test]
fn every_table_and_generator_has_the_name_of_its_machine_or_its_network() {
    let tables: Vec<&str> = MACHINES
        .iter()
        .flat_map(|machine| machine.tables.iter().map(|table| table.name))
        .collect();
    let known = [
        "blackwidow-table2",
        "blackwidow-table3",
        "blackwidow-table4",
        "blackwidow-radix",
        "aries-table1",
        "aries-table2",
        "aries-table3",
        "aries-crc",
        "aries-efficiency",
        "aries-performance",
        "xc-figure11",
        "xc-figure12",
        "xc-figure13",
        "xc-figure14",
        "xc-figure15",
        "xc-hop",
        "xc-amo",
        "t3e-table1",
        "t3e-table2",
        "t3e-table3",
        "t3e-table4",
        "t3e-figure7",
        "t3e-figure8",
        "t3e-faults",
    ];
    assert_eq!(tables[..known.len()], known);
    let generators = MACHINES.iter().flat_map(|machine| machine.generators);
    let generators: Vec<&str> = generators.map(|generator| generator.name).collect();
    assert_eq!(generators[..2], ["blackwidow", "dragonfly"]);
}

#[test]
fn names_make_networks_and_others_are_refused() {
    let terminals = |name: &str| {
        let nodes = CATALOGUE.generate(name).expect(name).expect(name).nodes();
        let is_terminal = |node: &&NodeRef| matches!(node, NodeRef::Processor(_));
        nodes.iter().filter(is_terminal).count()
    };
    assert_eq!(terminals("r1.5-64"), 64);
    assert_eq!(terminals("aries-3x2x2x2:2"), 24);
    for name in ["nowhere", "r9-32", "r1-99", "aries-3x2x2", "aries-3x2x2x9"] {
        assert!(
            CATALOGUE.generate(name).is_none_or(|made| made.is_err()),
            "{name}"
        );
    }
}

/// Size of frames on all links of this test.
const FRAME_BYTES: usize = 1_472;

#[test]
fn link_ends_of_two_machines_refuse_each_other() {
    let mut now = Time::from_ns(5);
    let mut aries = AriesLcb::new(rig::live::<Aries>(A), now);
    let mut yarc = Lcb::new(rig::live::<Yarc>(B), now);
    let mut buf = vec![0; FRAME_BYTES];
    for _ in 0..20 {
        while let Some(length) = yarc.poll_frame(now, &mut buf) {
            aries.handle_frame(now, &buf[..length]);
        }
        while let Some(length) = aries.poll_frame(now, &mut buf) {
            yarc.handle_frame(now, &buf[..length]);
        }
        now += Duration::from_ms(20);
    }
    assert_eq!(yarc.state(), LinkState::Refused);
    assert_eq!(aries.state(), LinkState::Refused);
}

#[test]
fn frames_of_phits_are_no_frames_of_sets() {
    let mut pair = Pair::up(4);
    let word = ControlWord::default();
    let mut buf = vec![0; 1_000];
    let (tx_epoch, rx_epoch) = pair.ends[A].lcb.epochs();
    let header = FrameHeader {
        kind: DataFrame::KIND,
        end: LinkEnd::A,
        link: 7,
        fabric: 0xfab,
        tx_epoch,
        rx_epoch,
        lanes: 7,
        units: 0,
    };
    let length = emit_data(&header, &word, &[&[], &[]], &mut buf).unwrap();
    pair.inject(B, &buf[..length]);
    assert_eq!(pair.count(B, |c| c.drop_bad_kind), 1);
}

#[test]
fn the_family_decides_the_reader() {
    let aries = dragonfly();
    assert_eq!(
        &*CATALOGUE.read("a.toml", &aries.write()).expect("good"),
        &aries as &dyn Network
    );
    let pair = include_str!("../../netns-scripts/topologies/pair.toml");
    for text in [pair.to_owned(), format!("family = \"blackwidow\"\n{pair}")] {
        let read = CATALOGUE.read("pair.toml", &text).expect("good");
        assert!(read.of_machine::<FoldedClos>().is_some());
        assert_eq!(read.node_names(), ["r1-0", "nic0", "nic1"]);
    }
    let unknown = CATALOGUE
        .read("t.toml", "family = \"t4e\"\n")
        .expect_err("no such family");
    assert_eq!(unknown.mistakes().len(), 1, "{}", unknown.lines());
    assert!(
        unknown.lines().contains("t.toml:1:10"),
        "{}",
        unknown.lines()
    );
}

//! Stage reports of every machine's devices, in worlds and in simulations.

use std::cell::RefCell;
use std::rc::Rc;

use super::{MACHINES, aries, blackwidow_network, dragonfly};
use phitwire::catalogue::OptionValues;
use phitwire::device::PipelineReport;
use phitwire::net::Network;
use phitwire::nic::TrafficSpec;
use phitwire::sim::direct::{Config, Links, Load, Report, Serial, Snapshot, Traffic, Warmup};
use phitwire::sim::{LinkSpec, World};
use phitwire::time::Duration;
use phitwire_machines::CATALOGUE;
use phitwire_t3e::topology::TorusSpec;

/// Checks a report: channels have names and capacity, and hold no more than that.
fn check(machine: &str, report: &PipelineReport) {
    for stage in &report.stages {
        assert!(!stage.channels.is_empty(), "{machine}: {stage:?}");
        assert!(
            [0, stage.channels.len()].contains(&stage.capacity.len()),
            "{machine}: {stage:?}"
        );
        for position in &stage.places {
            assert_eq!(
                position.held.len(),
                stage.channels.len(),
                "{machine}: {stage:?}"
            );
            for (held, room) in position.held.iter().zip(&stage.capacity) {
                assert!(held <= room, "{machine}: {stage:?}");
            }
        }
    }
}

/// All NICs write to each other; compares stages and counters during the run.
fn stages_are_accounted_for<L: Network>(machine: &str, network: L) {
    let mut world = World::new(network, 7, LinkSpec::default()).expect("a world");
    assert!(world.bring_up(Duration::from_ms(200)), "links come up");
    let spec = TrafficSpec {
        run: 3,
        processors: world.traffic_numbers(),
        window: 64,
        count: 400,
        ..serde_json::from_str(r#"{"run":3}"#).unwrap()
    };
    world.start_traffic(&spec).unwrap();
    let mut held = 0;
    for _ in 0..3_000 {
        world.fabric.step();
        for id in world.nics().chain(world.routers()) {
            let device = world.fabric.node(id);
            let (report, account) = (device.pipeline(), device.account());
            assert_eq!(report.inside(), account.total(), "{machine}: {report:?}");
            check(machine, &report);
            held += report.inside();
        }
    }
    assert!(held > 0, "{machine}: nothing was looked at");
}

#[test]
fn stages_hold_what_their_device_accounts_for() {
    stages_are_accounted_for("blackwidow", blackwidow_network());
    stages_are_accounted_for("aries", dragonfly());
    let torus = TorusSpec::new("2x2x1".parse().expect("a shape")).torus();
    stages_are_accounted_for("t3e", torus);
}

#[test]
fn a_wrong_account_would_be_noticed() {
    let [nic, router] = aries();
    for device in [nic, router] {
        let mut report = device.pipeline();
        assert_eq!(report.inside(), device.account().total());
        let stage = report.stages.iter_mut().find(|stage| stage.inside).unwrap();
        stage.places[0].held[0] += 1;
        assert_ne!(report.inside(), device.account().total());
    }
}

/// The report of a run, and snapshots of it every `every` cycles.
fn run(network: &dyn Network, links: Links, every: Option<u64>) -> (Report, Vec<Snapshot>) {
    let mut machines = MACHINES.iter().filter_map(|machine| machine.simulation);
    let machine = machines.find(|machine| (machine.is_of)(network)).unwrap();
    let chosen = (machine.choose)(&OptionValues::default())
        .unwrap()
        .remove(0);
    let config = Config {
        traffic: Traffic {
            load: Load::from_millionths(400_000).unwrap(),
            message_bytes: machine.message_bytes,
            ..Traffic::default()
        },
        warmup: Warmup::Cycles(1_000),
        measure_cycles: 2_000,
        ..Config::default()
    };
    let mut run = chosen
        .build(network, &config, links, 1, &mut Serial)
        .unwrap();
    let seen = Rc::new(RefCell::new(Vec::new()));
    if let Some(every) = every {
        let seen = Rc::clone(&seen);
        let record = move |shot| seen.borrow_mut().push(shot);
        run.watch(network, every, Box::new(record)).unwrap();
    }
    let report = run.run(&mut Serial, &mut |_| {});
    (report, seen.take())
}

#[test]
fn simulations_can_be_looked_at_and_go_on_as_if_nobody_did() {
    for name in ["quickstart", "aries-3x4", "t3e-2x2x2"] {
        let ready = MACHINES.iter().flat_map(|machine| machine.ready);
        let text = ready.clone().find(|(own, _)| *own == name).unwrap().1;
        let network = &*CATALOGUE.read(name, text).unwrap();
        for links in [Links::Direct, Links::Encoded(None)] {
            let (alone, _) = run(network, links, None);
            let (watched, seen) = run(network, links, Some(100));
            assert_eq!(alone.trace_hash, watched.trace_hash, "{name} {links:?}");
            assert!(seen.len() > 25, "{name} {links:?}: {}", seen.len());
            assert!(seen.is_sorted_by_key(|shot| shot.cycle));
            let last = seen.last().unwrap();
            assert_eq!(last.ends.len(), 2 * network.link_count());
            let ends: Vec<_> = last.ends.iter().map(|end| end.as_ref().unwrap()).collect();
            // In a ring of two, no packet takes the longer direction.
            let used = ends.iter().filter(|end| end.carried > 0).count();
            assert!(2 * used > ends.len(), "{name} {links:?}: {used}");
            assert!(ends.iter().all(|end| end.up), "{name} {links:?}");
            let mut held = 0;
            for shot in &seen {
                for (_, report) in &shot.routers {
                    check(name, report);
                    held += report.inside();
                }
            }
            assert!(held > 0, "{name} {links:?}: nothing in any stage");
        }
    }
}

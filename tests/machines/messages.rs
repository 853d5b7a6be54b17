//! Runs of NICs in the machine's own time, compared with the documented times of their path.

use phitwire::catalogue::OptionValues;
use phitwire::net::Network;
use phitwire::nic::{Operation, TrafficPattern, TrafficSpec};
use phitwire::sim::{Measured, MessageOp, World};
use phitwire::time::Duration;
use phitwire_machines::{CATALOGUE, MACHINES};

const LIMIT: Duration = Duration::from_ms(1_000);

/// The world of a ready-made or generated network, with one option of its machine.
fn world(name: &str, option: Option<(&'static str, &str)>) -> World<dyn Network> {
    let mut ready = MACHINES.iter().flat_map(|machine| machine.ready);
    let network = match ready.find(|(own, _)| *own == name) {
        Some((_, text)) => CATALOGUE.read(name, text).unwrap(),
        None => CATALOGUE.generate(name).unwrap().unwrap(),
    };
    let mut machines = MACHINES.iter().filter_map(|machine| machine.simulation);
    let machine = machines.find(|machine| (machine.is_of)(&*network)).unwrap();
    let mut given = OptionValues::default();
    if let Some((name, values)) = option {
        given.add(name, values.split(',').map(str::to_owned).collect());
    }
    let chosen = (machine.choose)(&given).unwrap().remove(0);
    let wires = chosen.wires(&*network).unwrap();
    let mut world = World::of_machine(network, 1, &wires).unwrap();
    assert!(world.bring_up(Duration::from_ms(10)), "links come up");
    world
}

/// A hundred messages from the first NIC to the last, one at a time.
fn hundred(world: &World<dyn Network>, op: Operation, size: u32) -> TrafficSpec {
    let numbers = world.traffic_numbers();
    TrafficSpec {
        processors: vec![numbers[0]],
        pattern: TrafficPattern::List {
            destinations: vec![*numbers.last().unwrap()],
        },
        op,
        size,
        window: 1,
        count: 100,
        ..TrafficSpec::default()
    }
}

fn ping(world: &mut World<dyn Network>, op: Operation, size: u32) -> Measured {
    let spec = hundred(world, op, size);
    let measured = world.measure_traffic(&spec, LIMIT).unwrap();
    assert_eq!(measured.violations, []);
    assert_eq!((measured.completed, measured.nics), (100, 1));
    measured
}

/// Nanoseconds of a message, without rounding to buckets.
fn ns(name: &str, option: Option<(&'static str, &str)>, op: Operation, size: u32) -> f64 {
    ping(&mut world(name, option), op, size).elapsed.as_ns() as f64 / 100.0
}

#[test]
fn a_put_takes_the_sum_of_its_documented_stages() {
    let put = |name| ns(name, None, Operation::Put, 8);
    for (name, stages, extra) in [
        // There and back: two links of 40 cycles, Netlink 6 + 6, a router of 47 cycles of 1.143 ns.
        // The five flits of a put fit into one set, whose time is part of the link's.
        (
            "aries-pair",
            2.0 * (2.0 * 40.0 + 12.0 + 47.0) * 1.143,
            -0.5..0.5,
        ),
        // Two links of 25 ns and a router of 31.25 ns. A put has 10 phits of 1.28 ns, its response
        // 4.
        ("pair", 2.0 * (2.0 * 25.0 + 31.25) + 12.0 * 1.28, 0.0..60.0),
    ] {
        let more = put(name) - stages;
        assert!(extra.contains(&more), "{name}: {more} ns beyond {stages}");
    }
}

#[test]
fn a_metre_of_cable_takes_five_nanoseconds_each_way() {
    let put = |name, option, values| ns(name, Some((option, values)), Operation::Put, 8);
    // Aries links have lengths of whole sets: 80 m are 350 cycles, 400 ns.
    let [near, far] = ["1,1,1", "81,1,1"].map(|metres| put("aries-1x1x2x1", "metres", metres));
    assert!((far - near - 800.0).abs() < 1.0, "{near} {far}");
    // Two links of BlackWidow, 4 cycles of 1.25 ns per metre.
    let [near, far] = ["20", "60"].map(|cycles| put("pair", "link-cycles", cycles));
    assert!((far - near - 200.0).abs() < 3.0, "{near} {far}");
}

#[test]
fn every_machine_runs_what_it_has() {
    for (name, ops) in [
        ("aries-3x4", &MessageOp::ALL[..]),
        ("pair", &[MessageOp::Put, MessageOp::Get]),
        (
            "t3e-2x2x2",
            &[
                MessageOp::Put,
                MessageOp::Get,
                MessageOp::Amo,
                MessageOp::Barrier,
            ],
        ),
    ] {
        let mut world = world(name, None);
        assert_eq!(world.operations(), ops, "{name}");
        let numbers = world.traffic_numbers();
        for (run, &op) in (1..).zip(ops) {
            if op.of_messages().is_some() {
                continue;
            }
            let measured = world.measure_collective(op, &numbers, (run, 20), LIMIT);
            let measured = measured.unwrap();
            assert_eq!(measured.violations, [], "{name} {}", op.name());
            assert_eq!(measured.completed, 20, "{name} {}", op.name());
        }
    }
    for (name, op) in [
        ("aries-3x4", Operation::Get),
        ("aries-3x4", Operation::Amo),
        ("t3e-2x2x2", Operation::Put),
        ("t3e-2x2x2", Operation::Get),
        ("pair", Operation::Get),
    ] {
        ping(&mut world(name, None), op, 8);
    }
}

/// A NIC joins up to 16 operations in a turn, and alone it also ends them in that turn.
#[test]
fn a_collective_run_of_one_nic_ends() {
    let mut world = world("aries-pair", None);
    let one = &world.traffic_numbers()[..1];
    for (run, count) in [(1, 15), (2, 16), (3, 32)] {
        let measured = world.measure_collective(MessageOp::Barrier, one, (run, count), LIMIT);
        let measured = measured.unwrap();
        assert_eq!((measured.completed, measured.violations), (count, vec![]));
    }
}

#[test]
fn a_run_without_progress_is_a_finding() {
    let mut world = world("aries-pair", None);
    let spec = TrafficSpec {
        processors: world.traffic_numbers(),
        ..TrafficSpec::default()
    };
    // Less than the time of a message.
    let patience = Duration::from_ns(100);
    let measured = world.measure_traffic(&spec, patience).unwrap();
    let found = measured.violations.iter().map(ToString::to_string);
    let found: Vec<_> = found.collect();
    assert!(
        found
            .iter()
            .any(|text| text.contains("no operation completed within 0.1 us")),
        "{found:?}"
    );
}

#[test]
fn a_run_may_take_longer_than_the_patience() {
    let mut world = world("aries-pair", None);
    let spec = hundred(&world, Operation::Put, 8);
    let patience = Duration::from_us(20);
    let measured = world.measure_traffic(&spec, patience).unwrap();
    assert_eq!(measured.violations, []);
    assert!(measured.elapsed > patience, "{:?}", measured.elapsed);
}

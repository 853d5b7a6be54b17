//! Runs of NICs in the machine's own time, compared with the documented times of their path.

use phitwire::catalogue::OptionValues;
use phitwire::net::{HostUse, Network};
use phitwire::nic::local::{Client, Taken};
use phitwire::nic::{Operation, TrafficPattern, TrafficSpec, Window};
use phitwire::sim::{Measured, MessageOp, World};
use phitwire::time::{Duration, Time};
use phitwire_framing::door::{
    Access, AtomicOp, Command, Completion, Local, Remote, Request, Status, Width,
};
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
        (
            "aries-3x4",
            &[
                MessageOp::Put,
                MessageOp::Get,
                MessageOp::Amo,
                MessageOp::Send,
                MessageOp::Allreduce,
                MessageOp::Barrier,
            ][..],
        ),
        ("pair", &[MessageOp::Put, MessageOp::Get]),
        (
            "t3e-2x2x2",
            &[
                MessageOp::Put,
                MessageOp::Get,
                MessageOp::Amo,
                MessageOp::Barrier,
                MessageOp::Eureka,
            ],
        ),
    ] {
        let mut world = world(name, None);
        assert_eq!(world.operations(), ops, "{name}");
        let numbers = world.traffic_numbers();
        for (run, &op) in (1..).zip(ops) {
            if !op.is_collective() {
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

/// The world of `aries-pair` with the times of its hosts.
fn with_hosts() -> World<dyn Network> {
    let mut ready = MACHINES.iter().flat_map(|machine| machine.ready);
    let (name, text) = ready.find(|(name, _)| *name == "aries-pair").unwrap();
    let network = CATALOGUE.read(name, text).unwrap();
    let wires = vec![Duration::from_ns(40); network.link_count()];
    let host = Some(HostUse { processes: None });
    let mut world = World::with_hosts(network, 1, &wires, host).unwrap();
    assert!(world.bring_up(Duration::from_ms(10)), "links come up");
    world
}

/// When the program at the first NIC sees the end of `request`, after its start.
fn program_asks(world: &mut World<dyn Network>, request: Request<'_>) -> Duration {
    let nic = world.nics().next().unwrap();
    let mut begin = Time::ZERO;
    world.fabric.attend(nic, |device, now| {
        let port = device.local_port().unwrap();
        let command = Command { name: 1, request };
        assert_eq!(port.command(now, Client(1), &command), Taken::UnderWay);
        begin = now;
        true
    });
    let mut seen = None;
    while seen.is_none() {
        assert!(world.fabric.step(), "the request ends");
        world.fabric.attend(nic, |device, now| {
            let port = device.local_port().unwrap();
            if let Some((_, Completion::End { status, .. })) = port.next_completion() {
                assert_eq!(status, Status::Done);
                seen = Some(now);
            }
            false
        });
    }
    seen.unwrap().since(begin)
}

/// Requests of programs take the times of hosts like the messages of runs.
#[test]
fn programs_and_runs_see_the_same_hosts() {
    let mut world = with_hosts();
    let numbers = world.traffic_numbers();
    let nics: Vec<_> = world.nics().collect();
    let mut handle = 0;
    for &nic in &nics {
        world.fabric.attend(nic, |device, now| {
            let port = device.local_port().unwrap();
            port.attach(1, 0, Box::new(Blank)).unwrap();
            let part = Local {
                offset: 0,
                bytes: 4096,
            };
            let access = Access::ALL;
            let request = Request::Register { part, access };
            let command = Command { name: 0, request };
            match port.command(now, Client(1), &command) {
                Taken::Ended(Status::Done, word) => handle = word as u16,
                other => panic!("{other:?}"),
            }
            true
        });
    }
    let at = Remote {
        processor: numbers[1],
        handle,
        offset: 64,
    };
    let put = Request::Put {
        to: at,
        data: &[7; 8],
        event: false,
        ordered: false,
    };
    let into = Local {
        offset: 0,
        bytes: 8,
    };
    let get = Request::Get {
        from: at,
        into,
        ordered: false,
    };
    let add = Request::Atomic {
        at,
        op: AtomicOp::Add,
        width: Width::Bits64,
        operands: [1, 0],
        fetch: true,
        ordered: false,
    };
    for (run, op, request) in [
        (1, Operation::Put, put),
        (2, Operation::Get, get),
        (3, Operation::Amo, add),
    ] {
        let spec = TrafficSpec {
            run,
            ..hundred(&world, op, 8)
        };
        let measured = world.measure_traffic(&spec, LIMIT).unwrap();
        // The median: an atomic operation at a new address misses the cache.
        let of_run = measured.latency.quantile(500) as f64;
        let first = program_asks(&mut world, request);
        let of_program = program_asks(&mut world, request).as_ns() as f64;
        assert!(
            first.as_ns() as f64 > 0.98 * of_program,
            "{op:?}: {first:?}"
        );
        let share = of_program / of_run;
        assert!(
            (0.98..1.02).contains(&share),
            "{op:?}: {of_program} ns, {of_run} ns in a run"
        );
        assert!(of_program > 780.0, "{op:?}: {of_program} ns with hosts");
    }
}

/// Memory without content.
#[derive(Debug)]
struct Blank;

impl Window for Blank {
    fn size(&self) -> u64 {
        1 << 16
    }

    fn read(&self, _: u64, out: &mut [u8]) {
        out.fill(0);
    }

    fn write(&mut self, _: u64, _: &[u8]) {}

    fn update(&mut self, _: u64, _: &dyn Fn(u64) -> u64) -> u64 {
        0
    }
}

#[test]
fn sends_arrive_once_from_every_source() {
    let mut world = with_hosts();
    let mut latest = Duration::ZERO;
    for (run, size) in (1..).zip([1, 8, 1_000, 70_000]) {
        let spec = TrafficSpec {
            run,
            size,
            processors: world.traffic_numbers(),
            pattern: TrafficPattern::Neighbour,
            window: 3,
            count: 20,
            ..TrafficSpec::default()
        };
        let measured = world
            .measure_messages(MessageOp::Send, &spec, LIMIT)
            .unwrap();
        assert_eq!(measured.violations, [], "{size}");
        assert_eq!((measured.completed, measured.nics), (40, 2), "{size}");
        assert!(measured.elapsed > latest, "longer messages take longer");
        latest = measured.elapsed;
    }
}

#[test]
fn a_send_without_progress_is_a_finding() {
    let mut world = with_hosts();
    let spec = hundred(&world, Operation::Put, 8);
    // Less than the time of a message.
    let patience = Duration::from_ns(300);
    let measured = world
        .measure_messages(MessageOp::Send, &spec, patience)
        .unwrap();
    assert!(!measured.violations.is_empty());
}

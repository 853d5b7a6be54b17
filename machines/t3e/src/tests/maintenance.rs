use phitwire_framing::t3e::direction::Direction;
use phitwire_framing::t3e::tag::Coordinates;

use super::{Torus, World, puts, router, set, torus, with, world};
use crate::CYCLE_PS;
use crate::route::{RouteRegisters, dependency};
use crate::router::T3eRouter;
use phitwire::chip::RegisterError;
use phitwire::device::{RegisterName, capability};
use phitwire::net::{Network, NodeRef};
use phitwire::sim::check::Allowance;
use phitwire::time::Duration;

/// Sends a request to the router of node `to` through that of node `from`. Returns `None` without a
/// reply.
fn ask(
    world: &mut World<Torus>,
    (from, to): (u32, u32),
    register: &str,
    write: Option<u64>,
) -> Option<Result<u64, RegisterError>> {
    let side = world
        .topology()
        .side_networks()
        .expect("a torus has side networks");
    let way = side.way(NodeRef::Chip(from), NodeRef::Chip(to), &|_| true);
    let (way, node) = (way.expect("a route"), router(world, from));
    let question = with(world, node, |device| {
        let remote = device.need::<capability::Maintenance>()?;
        remote.ask(&way, RegisterName::Name(register), write)
    });
    let question = question.expect("a register");
    for _ in 0..100 {
        let answer = with(world, node, |device| {
            device
                .need::<capability::Maintenance>()
                .expect("the device has remote registers")
                .answer(question)
        });
        if answer.is_some() {
            return answer;
        }
        world.fabric.run_for(Duration::from_us(1));
    }
    None
}

#[test]
fn every_router_is_read_and_written_from_a_corner() {
    for paced in [false, true] {
        let mut world = world(torus("3x3x3"), paced);
        for to in 0..27 {
            let coordinates = world.topology().shape().coordinates(to);
            let read = ask(&mut world, (0, to), "physical", None);
            assert_eq!(read, Some(Ok(coordinates.bits().into())));
            let value = 0x100 + u64::from(to);
            let write = ask(&mut world, (0, to), "logical", Some(value));
            assert_eq!(write, Some(Ok(value)));
            let core = world.node::<T3eRouter>(router(&world, to)).core();
            assert_eq!(u64::from(core.crossbar().processor), value);
            let tree = ask(&mut world, (0, to), "barrier.17", Some(1));
            assert_eq!(tree, Some(Ok(1)));
            let read_only = ask(&mut world, (0, to), "maintenance.writes", Some(1));
            assert_eq!(read_only, Some(Err(RegisterError::ReadOnly)));
            let writes = ask(&mut world, (0, to), "maintenance.writes", None);
            assert_eq!(writes, Some(Ok(2)));
            let bad = ask(&mut world, (0, to), "datelines", Some(64));
            assert!(matches!(bad, Some(Err(RegisterError::BadValue { .. }))));
            let none = ask(&mut world, (0, to), "table.500", None);
            assert_eq!(none, Some(Err(RegisterError::Unknown)));
        }
    }
}

#[test]
fn of_two_packets_that_meet_one_is_eaten() {
    let mut world = world(torus("4x1x1"), true);
    // Both packets leave router 1 towards router 2 in the same clock; one begins there, and the
    // other passes through.
    let question = |world: &mut World<Torus>, from: u32, way: [i8; 6]| {
        let node = router(world, from);
        let name = RegisterName::Name("physical");
        let asked = with(world, node, |device| {
            device
                .need::<capability::Maintenance>()?
                .ask(&way, name, None)
        });
        (node, asked.expect("a register"))
    };
    let eaten = |world: &World<Torus>| -> u64 {
        let routers = world.routers();
        routers
            .map(|node| world.node::<T3eRouter>(node).core().maintenance().eaten)
            .sum()
    };
    let (first, one) = question(&mut world, 1, [1, 0, 0, 0, 0, 0]);
    let (_, two) = question(&mut world, 1, [1, 0, 0, 0, 0, 0]);
    assert_eq!(eaten(&world), 1, "the second one, by the first that flows");
    world.fabric.run_for(Duration::from_us(20));
    let answer = |world: &mut World<Torus>, question| {
        with(world, first, |device| {
            device
                .need::<capability::Maintenance>()
                .expect("the device has remote registers")
                .answer(question)
        })
    };
    assert_eq!(answer(&mut world, one), Some(Ok(2)));
    assert_eq!(answer(&mut world, two), None);
    assert_eq!(eaten(&world), 1);
}

/// Packets from three inputs leave router (1, 0, 0) by one output, at all relevant clock offsets.
#[test]
fn a_port_moves_one_flit_in_a_clock() {
    let ways = [
        ([1, 0, 0], [1, 0, 0, 0, 0, 0]),
        ([1, 1, 0], [0, -1, 0, 1, 0, 0]),
        ([0, 0, 0], [2, 0, 0, 0, 0, 0]),
    ];
    let mut passed = [0; 2];
    for ((one, other), shift) in [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]
        .into_iter()
        .flat_map(|pair| (0..12).map(move |shift| (pair, shift)))
    {
        let mut world = world(torus("4x4x1"), true);
        let ask = |world: &mut World<Torus>, (coordinates, way): ([u8; 3], [i8; 6])| {
            let name = RegisterName::Name("physical");
            let node = world.topology().shape().node(Coordinates(coordinates));
            let node = router(world, node.expect("the node exists"));
            let asked = with(world, node, |device| {
                device
                    .need::<capability::Maintenance>()?
                    .ask(&way, name, None)
            });
            (node, asked.expect("a register"))
        };
        let first = ask(&mut world, ways[one]);
        let clocks = Duration::from_ps(CYCLE_PS * shift);
        world.fabric.run_for(clocks);
        let second = ask(&mut world, ways[other]);
        world.fabric.run_for(Duration::from_us(20));
        for (passed, (node, question)) in passed.iter_mut().zip([first, second]) {
            let answer = with(&mut world, node, |device| {
                let remote = device
                    .need::<capability::Maintenance>()
                    .expect("the device has remote registers");
                remote.answer(question)
            });
            *passed += u32::from(answer.is_some());
        }
    }
    assert!(
        passed.iter().all(|count| (30..72).contains(count)),
        "{passed:?}"
    );
}

const X: [Direction; 2] = [Direction::PlusX, Direction::MinusX];

fn channels(direction: Direction) -> String {
    format!("vc_table.{}", direction.index())
}

/// The current registers of routers in a ring of eight.
fn registers(world: &World<Torus>) -> Vec<RouteRegisters> {
    let of = |node| world.node::<T3eRouter>(router(world, node)).core();
    (0..8).map(|node| of(node).crossbar().registers).collect()
}

/// Checks for circular waits among channels.
fn check(world: &World<Torus>) -> Result<(), dependency::DependencyCycle> {
    let torus = world.topology();
    let tables = &torus.routes().expect("tables").tables;
    dependency::check(torus.shape(), &registers(world), tables)
}

/// Loads tables by which all packets cross the datelines on VC1 into a ring of eight, and sends
/// traffic until the ring jams. Returns the number of acknowledged messages.
fn jam(world: &mut World<Torus>) -> u64 {
    for node in 0..8 {
        for direction in X {
            let node = router(world, node);
            set(world, node, &channels(direction), 0xff);
        }
    }
    let circle = check(world).expect_err("all routes cross on VC1");
    assert_eq!(circle.0.len(), 8, "{circle}");
    assert!(circle.0.iter().all(|(.., vc)| *vc == 1), "{circle}");
    // A full buffer holds three such packets, so none waits with its head in the next buffer: a
    // packet in progress cannot be rerouted.
    let mut traffic = puts(world, 3, 400);
    traffic.size = 8;
    world.start_traffic(&traffic).expect("traffic");
    let mut before = u64::MAX;
    for _ in 0..100 {
        world.fabric.run_for(Duration::from_us(50));
        let now = world.report(3).acknowledged;
        if now == before {
            break;
        }
        before = now;
    }
    before
}

#[test]
fn a_jammed_network_is_repaired_by_maintenance_packets() {
    let mut spec = torus("8x1x1");
    spec.adaptive = false;
    let mut world = world(spec, true);
    let right = registers(&world);
    assert_eq!(check(&world), Ok(()));
    let before = jam(&mut world);
    assert!(before < 8 * 400, "the network jams: {before}");
    world.fabric.run_for(Duration::from_ms(1));
    assert_eq!(world.report(3).acknowledged, before, "for good");

    // Packets leave the dateline on VC0, whether they cross it or begin there. Then packets on VC1
    // no longer wait in a circle.
    for to in 0..8 {
        let datelines = ask(&mut world, (5, to), "datelines", None);
        let Some(Ok(datelines)) = datelines else {
            panic!("the maintenance network works: {datelines:?}");
        };
        for direction in X {
            if datelines >> direction.index() & 1 != 0 {
                let zero = ask(&mut world, (5, to), &channels(direction), Some(0));
                assert_eq!(zero, Some(Ok(0)));
            }
        }
        let escapes = datelines & (1 << X[0].index() | 1 << X[1].index());
        let written = ask(&mut world, (5, to), "escapes", Some(escapes));
        assert_eq!(written, Some(Ok(escapes)));
    }
    assert_eq!(check(&world), Ok(()));
    assert!(
        world.finish(3, Duration::from_ms(100)),
        "the network drains"
    );
    let found = world.drain(3, None, Allowance::default(), Duration::from_ms(20));
    assert!(found.is_empty(), "{found:?}");
    assert_eq!(world.report(3).acknowledged, 8 * 400);

    // Restore the original state.
    for (to, right) in (0..8).zip(right) {
        for direction in X {
            let right = right.vc_tables[direction.index()].into();
            let written = ask(&mut world, (5, to), &channels(direction), Some(right));
            assert_eq!(written, Some(Ok(right)));
        }
        assert_eq!(ask(&mut world, (5, to), "escapes", Some(0)), Some(Ok(0)));
    }
    assert_eq!(check(&world), Ok(()));
    let traffic = puts(&world, 4, 400);
    world.start_traffic(&traffic).expect("traffic");
    assert!(world.finish(4, Duration::from_ms(100)));
    let found = world.drain(4, None, Allowance::default(), Duration::from_ms(20));
    assert!(found.is_empty(), "{found:?}");
}

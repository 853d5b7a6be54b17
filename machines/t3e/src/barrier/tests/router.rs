use phitwire_framing::t3e::direction::Direction;

use super::*;
use phitwire::rng::Rng;

const UP: Port = Port::Link(Direction::MinusX);
const EAST: Port = Port::Link(Direction::PlusX);

fn unit() -> UnitNumber {
    UnitNumber::new(12).expect("a unit")
}

fn message(kind: Kind) -> Message {
    Message { kind, unit: unit() }
}

/// A router with children at the local processor and in +X.
fn router(parent: Option<Direction>) -> BarrierRouter {
    let mut router = BarrierRouter::new();
    let register = TreeRegister::new([Port::Local, EAST].into_iter().collect(), parent);
    assert!(router.configure(unit(), register.expect("a register")));
    router
}

fn inner() -> BarrierRouter {
    router(Some(Direction::MinusX))
}

fn sent(router: &mut BarrierRouter, port: Port) -> Vec<Kind> {
    core::iter::from_fn(|| router.next(port))
        .map(|message| message.kind)
        .collect()
}

fn give(router: &mut BarrierRouter, from: Port, kind: Kind) -> Result<(), Ignored> {
    router.receive_word(from, message(kind).encode())
}

#[test]
fn the_last_child_completes_the_barrier() {
    let mut inner = inner();
    assert_eq!(give(&mut inner, EAST, Kind::Arrive), Ok(()));
    assert!(inner.pending_ports().is_empty());
    assert!(!inner.is_idle(unit()));
    assert_eq!(give(&mut inner, Port::Local, Kind::Arrive), Ok(()));
    assert_eq!(inner.pending_ports().iter().collect::<Vec<_>>(), [UP]);
    assert_eq!(sent(&mut inner, UP), [Kind::Arrive]);
    assert!(inner.register(unit()).is_complete());
    assert_eq!(give(&mut inner, UP, Kind::BarrierDone), Ok(()));
    assert_eq!(sent(&mut inner, EAST), [Kind::BarrierDone]);
    assert!(!inner.is_idle(unit()));
    assert_eq!(sent(&mut inner, Port::Local), [Kind::BarrierDone]);
    assert!(inner.is_idle(unit()) && inner.pending_ports().is_empty());
    assert_eq!(
        (inner.counters().barriers_done, inner.counters().sent),
        (1, 3)
    );
}

#[test]
fn the_root_notifies_all_its_children() {
    let mut root = router(None);
    assert_eq!(give(&mut root, EAST, Kind::Eureka), Ok(()));
    assert_eq!(
        give(&mut root, Port::Local, Kind::Eureka),
        Err(Ignored::EurekaRepeated)
    );
    assert_eq!(give(&mut root, EAST, Kind::Arrive), Ok(()));
    assert_eq!(give(&mut root, Port::Local, Kind::Arrive), Ok(()));
    for port in [EAST, Port::Local] {
        assert_eq!(sent(&mut root, port), [Kind::EurekaDone, Kind::BarrierDone]);
    }
    assert!(root.is_idle(unit()));
}

/// The maximum number of messages waits when a child is slow and its sibling starts the next round
/// at once.
#[test]
fn three_messages_wait_in_order() {
    let mut root = router(None);
    for (from, kind) in [
        (EAST, Kind::Eureka),
        (EAST, Kind::Arrive),
        (Port::Local, Kind::Arrive),
    ] {
        assert_eq!(give(&mut root, from, kind), Ok(()));
    }
    assert_eq!(
        sent(&mut root, Port::Local),
        [Kind::EurekaDone, Kind::BarrierDone]
    );
    assert_eq!(give(&mut root, Port::Local, Kind::Eureka), Ok(()));
    assert_eq!(give(&mut root, Port::Local, Kind::Arrive), Ok(()));
    assert_eq!(root.pending_len(EAST, unit()), 3);
    // A child that was not notified of the first barrier cannot take part in the second.
    assert_eq!(
        give(&mut root, EAST, Kind::Arrive),
        Err(Ignored::ArrivalEarly)
    );
    assert_eq!(
        give(&mut root, EAST, Kind::Eureka),
        Err(Ignored::EurekaLate)
    );
    let expected = [Kind::EurekaDone, Kind::BarrierDone, Kind::EurekaDone];
    assert_eq!(sent(&mut root, EAST), expected);
    assert_eq!(give(&mut root, EAST, Kind::Arrive), Ok(()));
    assert_eq!(sent(&mut root, EAST), [Kind::BarrierDone]);
}

/// Two processors below and one elsewhere trigger at the same time: one message goes up, one down,
/// and none is left.
#[test]
fn repeats_of_a_eureka_end_here() {
    let mut inner = inner();
    assert_eq!(give(&mut inner, EAST, Kind::Eureka), Ok(()));
    assert_eq!(give(&mut inner, UP, Kind::EurekaDone), Ok(()));
    assert_eq!(
        give(&mut inner, Port::Local, Kind::Eureka),
        Err(Ignored::EurekaRepeated)
    );
    assert_eq!(sent(&mut inner, UP), [Kind::Eureka]);
    let mut done = router(Some(Direction::MinusX));
    assert_eq!(give(&mut done, UP, Kind::EurekaDone), Ok(()));
    assert_eq!(
        give(&mut done, EAST, Kind::Eureka),
        Err(Ignored::EurekaRepeated)
    );
    assert_eq!(sent(&mut done, UP), []);
    assert!(!Ignored::EurekaRepeated.is_fault());
    assert_eq!(done.counters().eurekas_repeated, 1);
}

/// The counter of messages ignored for a reason.
fn counter(reason: Ignored) -> &'static str {
    match reason {
        Ignored::UnitUnused => "unit_unused",
        Ignored::NotFromAChild => "not_from_a_child",
        Ignored::NotFromTheParent => "not_from_the_parent",
        Ignored::ArrivalRepeated => "arrivals_repeated",
        Ignored::ArrivalEarly => "arrivals_early",
        Ignored::EurekaLate => "eurekas_late",
        Ignored::EurekaRepeated => "eurekas_repeated",
        Ignored::BarrierUnasked => "barriers_unasked",
        Ignored::EurekaDoneRepeated => "eurekas_done_repeated",
        Ignored::Damaged(_) => "damaged",
    }
}

/// Each fault is ignored, counted once, and has no other effect.
#[test]
fn unexpected_messages_are_counted_by_reason() {
    let arrived = || {
        let mut router = inner();
        for child in [EAST, Port::Local] {
            assert_eq!(give(&mut router, child, Kind::Arrive), Ok(()));
        }
        router
    };
    let done = || {
        let mut router = inner();
        assert_eq!(give(&mut router, UP, Kind::EurekaDone), Ok(()));
        router
    };
    let (unused, root) = (BarrierRouter::new, || router(None));
    let north = Port::Link(Direction::PlusY);
    let faults = [
        (unused(), EAST, Kind::Arrive, Ignored::UnitUnused),
        (unused(), EAST, Kind::EurekaDone, Ignored::UnitUnused),
        (inner(), UP, Kind::Arrive, Ignored::NotFromAChild),
        (inner(), north, Kind::Eureka, Ignored::NotFromAChild),
        (inner(), EAST, Kind::BarrierDone, Ignored::NotFromTheParent),
        (root(), UP, Kind::EurekaDone, Ignored::NotFromTheParent),
        (arrived(), EAST, Kind::Arrive, Ignored::ArrivalRepeated),
        (arrived(), EAST, Kind::Eureka, Ignored::EurekaLate),
        (inner(), UP, Kind::BarrierDone, Ignored::BarrierUnasked),
        // All children have arrived, but the parent has not been signalled.
        (arrived(), UP, Kind::BarrierDone, Ignored::BarrierUnasked),
        (done(), UP, Kind::EurekaDone, Ignored::EurekaDoneRepeated),
        (done(), Port::Local, Kind::Eureka, Ignored::EurekaRepeated),
    ];
    for (mut router, from, kind, reason) in faults {
        let before = router.clone();
        assert_eq!(
            give(&mut router, from, kind),
            Err(reason),
            "{from} {kind:?}"
        );
        let mut changed = Vec::new();
        router
            .counters()
            .for_each(|name, value| changed.push((name, value)));
        before.counters().for_each(|name, value| {
            changed.retain(|&counted| counted != (name, value));
        });
        assert_eq!(
            changed.iter().map(|c| c.0).collect::<Vec<_>>(),
            [counter(reason)]
        );
        router.counters = before.counters.clone();
        assert_eq!(format!("{router:?}"), format!("{before:?}"));
    }
    let mut router = inner();
    let damaged = router.receive_word(EAST, message(Kind::Arrive).encode() ^ 1 << 50);
    assert!(matches!(
        damaged,
        Err(Ignored::Damaged(MessageError::Check { .. }))
    ));
    assert_eq!(router.counters().damaged, 1);
}

#[test]
fn a_unit_at_work_is_reset_and_that_is_counted() {
    let mut router = inner();
    let register = router.register(unit());
    assert!(router.configure(unit(), register));
    assert_eq!(give(&mut router, EAST, Kind::Eureka), Ok(()));
    assert_eq!(give(&mut router, EAST, Kind::Arrive), Ok(()));
    let at_work = router.register(unit());
    assert!(!router.configure(unit(), at_work));
    assert!(router.is_idle(unit()) && router.pending_ports().is_empty());
    assert_eq!(router.register(unit()), register);
    assert_eq!(router.next(UP), None);
    assert_eq!(router.counters().reset_at_work, 1);
    assert!(router.configure(unit(), TreeRegister::UNUSED));
    assert_eq!(
        give(&mut router, EAST, Kind::Arrive),
        Err(Ignored::UnitUnused)
    );
}

/// Reasons are counted, but not checked here.
fn ignore(_: Result<(), Ignored>) {}

/// Whatever arrives on the wires, nothing panics, and the number of waiting messages stays bounded.
#[test]
fn no_message_does_harm() {
    let mut rng = Rng::new(7, 0);
    let mut longest = [0; 2];
    for _ in 0..200 {
        let mut router = BarrierRouter::new();
        let waits = 1 + rng.below(8);
        for _ in 0..2_000 {
            let port = Port::ALL[rng.below(7) as usize];
            // Use few units, so that their messages meet.
            let message = Message {
                kind: Kind::ALL[rng.below(4) as usize],
                unit: UnitNumber::new(rng.below(3) as u8 * 15).expect("a unit"),
            };
            match rng.below(200) {
                0 => {
                    let bits = rng.below(1 << TreeRegister::BITS) as u32;
                    if let Ok(register) = TreeRegister::from_bits(bits) {
                        router.configure(message.unit, register);
                    }
                }
                1 => ignore(router.receive_word(port, rng.next_u64())),
                2..120 => drop(router.receive(port, message)),
                // Messages valid for a child or the parent, whether or not they fit the state.
                _ => {
                    let register = router.register(message.unit);
                    let children = register.children();
                    let parent = register.parent().map(Port::Link);
                    if children.contains(port) == message.kind.is_up() {
                        ignore(router.receive(port, message));
                    } else if let Some(parent) = parent.filter(|_| !message.kind.is_up()) {
                        ignore(router.receive(parent, message));
                    }
                }
            }
            if rng.below(waits) == 0 {
                let port = Port::ALL[rng.below(7) as usize];
                let waited = router.pending_ports().contains(port);
                assert_eq!(router.next(port).is_some(), waited);
            }
            let unit = message.unit;
            let parent = router.register(unit).parent().map(Port::Link);
            for port in Port::ALL {
                let up = usize::from(parent == Some(port));
                longest[up] = router.pending_len(port, unit).max(longest[up]);
            }
        }
    }
    assert_eq!(longest, [3, 2]);
}

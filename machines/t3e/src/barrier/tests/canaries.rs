//! Canaries: the checkers of a network detect faults.

use phitwire_framing::t3e::barrier::Kind;
use phitwire_framing::t3e::direction::Direction;

use super::network::{Network, Options, Report, Sabotage, Violation};
use super::plan::{Plan, Role};
use super::torus::Torus;
use crate::barrier::Ignored;

/// A line of four nodes with its root at node 1: 3 - 2 - 1 - 0.
fn run(plan: Plan, change: impl Fn(&mut Options)) -> Result<Report, Violation> {
    let mut torus = Torus::new([4, 1, 1]);
    torus.break_link(3, Direction::PlusX);
    let mut options = Options::new(0);
    change(&mut options);
    let network = Network::new(torus, vec![plan], options);
    assert_eq!((network.tree(0).root(), network.tree(0).height()), (1, 2));
    network.run()
}

fn line(
    roles: [Role; 4],
    rounds: usize,
    change: impl Fn(&mut Options),
) -> Result<Report, Violation> {
    run(Plan::always(&NODES, &roles, rounds), change)
}

const NODES: [u32; 4] = [0, 1, 2, 3];
const BARRIER: [Role; 4] = [Role::Join; 4];
const EUREKA: [Role; 4] = [Role::Watch, Role::Watch, Role::Watch, Role::Trigger];

/// Runs with a fault. With `strict`, a fault that a router ignores ends the run.
fn sabotaged(roles: [Role; 4], sabotage: Sabotage, strict: bool) -> Result<Report, Violation> {
    line(roles, 3, |options| {
        options.sabotage = Some(sabotage);
        options.strict = strict;
        options.skew = 40;
    })
}

#[test]
fn without_sabotage_nothing_is_found() {
    for roles in [BARRIER, EUREKA] {
        line(roles, 3, |options| options.skew = 40).expect("a clean run");
    }
}

#[test]
fn a_router_that_signals_one_child_too_early_is_noticed() {
    for node in 0..4 {
        let found = sabotaged(BARRIER, Sabotage::EarlySignal(node), false);
        // A leaf has one child, so it cannot signal early.
        let expected = if matches!(node, 0 | 3) {
            None
        } else {
            Some(Violation::Early)
        };
        assert_eq!(found.err(), expected, "node {node}");
    }
    let found = sabotaged(BARRIER, Sabotage::EarlySignal(2), true);
    assert!(found.is_err());
}

#[test]
fn a_lost_message_is_noticed() {
    for n in 0..9 {
        for kind in [Kind::Arrive, Kind::BarrierDone] {
            for lost in [Sabotage::Drop(kind, n), Sabotage::Damage(kind, n)] {
                for strict in [false, true] {
                    let found = sabotaged(BARRIER, lost, strict).expect_err("the message is lost");
                    let damaged = matches!(found, Violation::Fault(Ignored::Damaged(_)));
                    let seen = strict && matches!(lost, Sabotage::Damage(..));
                    assert!(
                        if seen {
                            damaged
                        } else {
                            found == Violation::Stuck
                        },
                        "{found:?}"
                    );
                }
            }
        }
    }
    // If the only trigger or its notification is lost, watching processors wait forever.
    for kind in [Kind::Eureka, Kind::EurekaDone] {
        let found = sabotaged(EUREKA, Sabotage::Drop(kind, 0), true);
        assert_eq!(found, Err(Violation::Stuck));
    }
    // The run does not get stuck, since no processor waits for this eureka, but the eureka is
    // reported as missed.
    let roles = [Role::Join, Role::Join, Role::Join, Role::Trigger];
    let found = sabotaged(roles, Sabotage::Drop(Kind::EurekaDone, 0), true);
    assert_eq!(found, Err(Violation::Missed));
}

/// The races are harmless only while links keep order.
#[test]
fn messages_out_of_order_are_noticed() {
    let late = |roles, kind, delay, strict, seed| {
        line(roles, 3, |options| {
            options.sabotage = Some(Sabotage::Delay(kind, 0, delay));
            options.strict = strict;
            options.seed = seed;
            options.skew = 20 * seed;
        })
    };
    // An arrival overtakes the eureka before it, which then arrives while other arrivals are
    // missing, or after its round.
    let alone = [Role::Join, Role::Join, Role::Join, Role::TriggerAndJoin];
    let late_here = Violation::Fault(Ignored::EurekaLate);
    let found: Vec<_> = (0..40)
        .map(|seed| late(alone, Kind::Eureka, 8, true, seed))
        .collect();
    assert!(found.contains(&Err(late_here)) && found.contains(&Err(Violation::Leftover)));
    // A second trigger hides the loss, and the late eureka would count for the next round.
    let two = [Role::Trigger, Role::Join, Role::Join, Role::Trigger];
    let found = late(two, Kind::Eureka, 60, false, 0);
    assert_eq!(found, Err(Violation::Leftover));
    let found = late(alone, Kind::EurekaDone, 60, false, 0);
    assert_eq!(found, Err(Violation::Missed));
}

fn repeated(plan: Plan, kind: Kind, n: u64, delay: u64, strict: bool) -> Violation {
    let found = run(plan, |options| {
        options.sabotage = Some(Sabotage::Repeat(kind, n, delay));
        options.strict = strict;
    });
    found.expect_err("a message arrived twice")
}

#[test]
fn a_message_that_comes_twice_is_noticed() {
    let eurekas = || Plan::always(&NODES, &EUREKA, 3);
    let barriers = || Plan::always(&NODES, &BARRIER, 3);
    // Messages 0 and 1 of the root go to routers, message 2 to its processor.
    for n in 0..2 {
        let twice = Violation::Fault(Ignored::EurekaDoneRepeated);
        assert_eq!(repeated(eurekas(), Kind::EurekaDone, n, 0, true), twice);
        let twice = Violation::Fault(Ignored::BarrierUnasked);
        assert_eq!(repeated(barriers(), Kind::BarrierDone, n, 0, true), twice);
        // The router ignores the repeated message unless `strict`, so only the number of words
        // reveals it.
        let found = repeated(eurekas(), Kind::EurekaDone, n, 0, false);
        assert_eq!(found, Violation::Messages);
    }
    for kind in [Kind::BarrierDone, Kind::EurekaDone] {
        assert_eq!(repeated(eurekas(), kind, 2, 0, true), Violation::Unexpected);
    }
    let twice = Violation::Fault(Ignored::ArrivalRepeated);
    assert_eq!(repeated(barriers(), Kind::Arrive, 0, 0, true), twice);
    // The repeated message is delayed into a later round, where it looks like a eureka of that
    // round.
    let mut plan = eurekas();
    plan.rounds[1..].fill(BARRIER.to_vec());
    assert_eq!(
        repeated(plan, Kind::EurekaDone, 0, 20, true),
        Violation::Phantom
    );
    // The first router to send an arrival is that of node 0 or node 3, whose only child is its
    // processor.
    assert_eq!(
        repeated(barriers(), Kind::Arrive, 0, 500, true),
        Violation::Remains
    );
}

/// Runs reach the bounds of three and two messages, so a smaller bound is exceeded.
#[test]
fn too_many_that_wait_are_noticed() {
    let roles = [Role::TriggerAndJoin; 4];
    let run = |bounds| {
        (0..40).find_map(|seed| {
            let found = line(roles, 20, |options| {
                options.seed = seed;
                options.slowness = 6;
                options.bounds = bounds;
            });
            found.err()
        })
    };
    assert_eq!(run([3, 2]), None);
    assert_eq!(run([2, 2]), Some(Violation::TooMany));
    assert_eq!(run([3, 1]), Some(Violation::TooMany));
}

//! Trees that fail because participants disagree, do not join or are unreachable.

use super::engine_tests::{barrier, join_of, op};
use super::test_net::*;
use super::*;
use phitwire::time::Duration;

pub(super) fn join_all(net: &mut Net, engine: usize, but: &[usize], collective: Collective) {
    for rank in (0..net.nics.len()).filter(|rank| !but.contains(rank)) {
        net.join(rank, engine, &join_of(collective, Operand::default()));
    }
}

pub(super) fn outcome(net: &mut Net, rank: usize) -> Option<Result<Operand, CollectiveFailure>> {
    let all = net.completions(rank);
    assert!(all.len() <= 1);
    all.first().map(|completion| completion.outcome)
}

#[test]
fn participants_that_disagree_all_learn_it_and_go_on() {
    for (odd, other) in [(11, "max-i64"), (0, "sum-i32"), (3, "barrier")] {
        let mut net = Net::new(12, 2);
        net.set_up(1, 3, 0);
        for rank in 0..12 {
            let text = if rank == odd { other } else { "sum-i64" };
            net.join(rank, 1, &join_of(op(text), Operand::i64(1)));
        }
        net.settle(Time::NEVER);
        for rank in 0..12 {
            let got = outcome(&mut net, rank);
            assert_eq!(got, Some(Err(CollectiveFailure::Mismatch)), "{odd} {rank}");
            net.join(rank, 1, &join_of(op("sum-i64"), Operand::i64(1)));
        }
        net.settle(Time::NEVER);
        for rank in 0..12 {
            assert_eq!(outcome(&mut net, rank), Some(Ok(Operand::i64(12))));
        }
    }
}

#[test]
fn a_missing_member_is_named_and_no_other_hangs() {
    for absent in [0, 2, 12] {
        let mut net = Net::new(13, 3);
        net.set_up(2, 3, 0);
        join_all(&mut net, 2, &[absent], Collective::Barrier);
        let began = net.now;
        net.settle(Time::NEVER);
        assert!(net.now.since(began) < Duration::from_ms(45));
        for rank in (0..13).filter(|&rank| rank != absent) {
            let got = outcome(&mut net, rank).expect("the operation has ended");
            assert!(got.is_err(), "{rank}");
        }
        // The missing rank is notified of the failure when it joins, like every rank that retries.
        for rank in 0..13 {
            let again = net.nics[rank].join(net.now, 2, &barrier());
            assert!(matches!(again, Err(JoinError::Broken(_))), "{rank}");
        }
        // After another setup the tree works again.
        for rank in 0..13 {
            let tree = CollectiveTree {
                epoch: 8,
                ..net.tree(3, 0, rank)
            };
            net.nics[rank].set_up_collective(2, &tree).unwrap();
        }
        join_all(&mut net, 2, &[], Collective::Barrier);
        net.settle(Time::NEVER);
        for rank in 0..13 {
            assert_eq!(outcome(&mut net, rank), Some(Ok(Operand::default())));
        }
    }
}

#[test]
fn the_failure_names_the_child_that_others_waited_for() {
    let mut net = Net::new(13, 3);
    net.set_up(2, 3, 0);
    // All but the leaf 12 and its parent 3 join late, so that the patience of 3 ends first.
    net.join(3, 2, &barrier());
    net.step_to(net.now + Duration::from_ms(10));
    join_all(&mut net, 2, &[3, 12], Collective::Barrier);
    net.settle(Time::NEVER);
    for rank in 0..12 {
        let named = CollectiveFailure::NoContribution(node(12));
        assert_eq!(outcome(&mut net, rank), Some(Err(named)), "{rank}");
    }
}

#[test]
fn an_unreachable_member_is_named_to_all_others() {
    for dead in [0, 1, 5] {
        let mut net = Net::new(30, 4);
        net.set_up(0, 4, 0);
        join_all(&mut net, 0, &[], Collective::Barrier);
        net.settle(Time::NEVER);
        (0..30).for_each(|rank| assert!(outcome(&mut net, rank).unwrap().is_ok()));
        net.cut = vec![dead];
        join_all(&mut net, 0, &[], Collective::Barrier);
        net.settle(Time::NEVER);
        for rank in 0..30 {
            let got = outcome(&mut net, rank).expect("the operation has ended");
            assert!(got.is_err(), "{rank}: {got:?}");
        }
    }
}

#[test]
fn a_result_that_cannot_be_delivered_breaks_the_tree() {
    let mut net = Net::new(3, 4);
    net.set_up(0, 1, 0);
    net.join(2, 0, &barrier());
    net.join(1, 0, &barrier());
    net.step_to(net.now + TIMEOUT.times(2));
    net.settle(net.now + TIMEOUT.times(4));
    net.cut = vec![2];
    net.join(0, 0, &barrier());
    net.settle(Time::NEVER);
    assert_eq!(outcome(&mut net, 0), Some(Ok(Operand::default())));
    assert_eq!(outcome(&mut net, 1), Some(Ok(Operand::default())));
    let lost = CollectiveFailure::NoResult(node(1));
    assert_eq!(outcome(&mut net, 2), Some(Err(lost)));
    let again = net.nics[0].join(net.now, 0, &barrier());
    let unreachable = CollectiveFailure::Unreachable(node(2));
    assert_eq!(again, Err(JoinError::Broken(unreachable)));
}

#[test]
fn another_key_is_refused_and_all_members_are_notified() {
    let mut net = Net::new(7, 4);
    net.set_up(0, 2, 0);
    let tree = CollectiveTree {
        key: KEY + 1,
        ..net.tree(2, 0, 6)
    };
    net.nics[6].set_up_collective(0, &tree).unwrap();
    join_all(&mut net, 0, &[], Collective::Barrier);
    net.settle(Time::NEVER);
    let refused = CollectiveFailure::Refused(node(2), Status::BadKey);
    assert_eq!(outcome(&mut net, 6), Some(Err(refused)));
    for rank in 0..6 {
        assert!(outcome(&mut net, rank).unwrap().is_err());
    }
    assert!(net.counters().collective_strangers > 0);
}

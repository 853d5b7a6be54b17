//! Silent peers that are awaited: probed, and given up or not.

use super::*;
use crate::engine::clock::{PATIENCE, TICK};

/// Checks until a peer that never replies is given up, and a few more.
const ENOUGH: u32 = (PATIENCE.as_millis() / TICK.as_millis()) as u32 + 8;
const LOST: i32 = libc::EHOSTUNREACH;

impl Network {
    /// Lets only this program make progress for `count` checks; returns its failed operations.
    fn looks(&mut self, who: usize, count: u32) -> Vec<(usize, i32, Why)> {
        let end = self.now + TICK * count;
        for at in (0..self.nodes.len()).filter(|&at| at != who) {
            self.nodes[at].computes_until = Duration::MAX;
        }
        self.run(end, |_| false);
        self.nodes
            .iter_mut()
            .for_each(|node| node.computes_until = Duration::ZERO);
        let mut errors = self.nodes[who].errors();
        errors.sort_unstable_by_key(|error| error.0);
        errors
    }
}

impl Node {
    /// Posts a receive from one endpoint of the vector, or from any.
    fn expect(&mut self, from: Option<usize>, tagged: bool, context: usize) {
        let (mut posted, _) = program::posted(context, 1, 8);
        posted.from = from.map(|n| self.address(n));
        self.endpoint
            .receive(&mut self.shared, tagged, posted, false);
    }

    fn address(&self, number: usize) -> crate::engine::wire::Address {
        let vector = self.shared.vectors.get(0).expect("it is there");
        vector.get(number as u64).expect("it has so many")
    }

    /// Commands in flight, except posted receives.
    fn commands(&self) -> usize {
        self.under_way - crate::engine::slots::RECEIVES
    }
}

#[test]
fn a_running_peer_that_sends_nothing_is_not_lost() {
    let mut net = all(3);
    net.nodes[0].expect(Some(1), true, 1);
    net.nodes[0].expect(None, false, 2);
    // Let only the first program make progress.
    for _ in 0..100 {
        net.looks(0, 1);
        assert!(net.nodes[0].commands() <= 8, "questions accumulate");
    }
    assert_eq!(net.nodes[0].errors(), []);
    net.nodes[1].send(0, 1, 3, pattern(8, 0));
    assert_eq!([net.wait(0).context], [1]);
}

#[test]
fn without_waiting_operations_no_peer_is_probed() {
    let mut net = all(2);
    net.nodes[1].is_silent = true;
    assert_eq!(net.looks(0, ENOUGH), []);
    assert_eq!(net.nodes[0].commands(), 0);
}

#[test]
fn operations_that_wait_for_a_dead_peer_fail() {
    let mut net = all(3);
    net.nodes[1].is_silent = true;
    net.nodes[0].expect(Some(1), true, 1);
    net.nodes[0].expect(Some(1), false, 2);
    net.nodes[0].expect(None, true, 3);
    net.nodes[0].expect(Some(2), true, 4);
    net.nodes[0].send(1, 1, 5, pattern(PART + 1, 0));
    net.nodes[0].send(1, 1, 6, pattern(8, 0));
    let far = Far {
        number: 1,
        address: 0,
        key: 1,
    };
    let Node {
        shared, endpoint, ..
    } = &mut net.nodes[0];
    let into = Pieces::leaked(vec![0; 8]);
    let asked = endpoint.read(shared, far, into, op(7, 0));
    assert_eq!(asked, Ok(()));
    assert_eq!(
        net.looks(0, ENOUGH),
        [
            (1, LOST, Why::Unreachable),
            (2, LOST, Why::Unreachable),
            (3, LOST, Why::SomeoneLost),
            (5, libc::ETIMEDOUT, Why::Unknown),
            (6, libc::ETIMEDOUT, Why::Unknown),
            (7, libc::ETIMEDOUT, Why::Unknown),
        ]
    );
    assert!(net.nodes[0].commands() <= 8, "questions accumulate");
    // Operations on lost peers now fail at once; those from any source were failed before.
    net.nodes[0].expect(Some(1), true, 11);
    net.nodes[0].expect(None, true, 12);
    net.nodes[0].send(1, 1, 13, pattern(8, 0));
    assert_eq!(
        net.looks(0, 0),
        [(11, LOST, Why::Unreachable), (13, LOST, Why::Unreachable)]
    );
    // Messages of live peers still arrive.
    net.nodes[2].send(0, 1, 0, pattern(8, 0));
    assert_eq!(net.wait(0).context, 4);
    assert_eq!(net.nodes[0].endpoint.count("stages"), 0);
}

#[test]
fn a_program_that_is_cut_off_loses_all_peers() {
    let mut net = all(8);
    net.nodes[0].is_silent = true;
    net.nodes[0].expect(None, true, 1);
    // The peers are probed in turn.
    assert_eq!(net.looks(0, ENOUGH + 4), [(1, LOST, Why::SomeoneLost)]);
    net.nodes[0].expect(Some(7), true, 2);
    assert_eq!(net.looks(0, ENOUGH), [(2, LOST, Why::Unreachable)]);
}

/// Otherwise programs mistake the null context of a failed injection for one of their operations.
#[test]
fn failed_injections_are_not_reported() {
    let mut net = all(2);
    net.nodes[1].is_silent = true;
    let inject = |one: &mut Node| {
        let from = Pieces::leaked(vec![0; 8]);
        let silent = Op {
            reports_success: false,
            ..op(0, FI_SEND)
        };
        one.endpoint
            .send(&mut one.shared, 1, from, (None, None), silent)
    };
    assert_eq!(inject(&mut net.nodes[0]), Ok(()));
    assert_eq!(net.looks(0, ENOUGH), []);
    // The next injection is rejected.
    assert_eq!(inject(&mut net.nodes[0]), Err(LOST));
}

/// The cut lasts seven and a half seconds, and may begin at any time.
#[test]
fn a_temporary_cut_loses_no_peer() {
    let mut net = all(2);
    net.nodes[0].expect(Some(1), true, 1);
    for round in 0..5 {
        net.nodes[1].is_silent = true;
        assert_eq!(net.looks(0, 15), [], "round {round}");
        net.rejoin();
        assert_eq!(net.looks(0, 10 + round), [], "round {round}");
    }
    net.nodes[1].send(0, 1, 2, pattern(8, 0));
    assert_eq!(net.wait(0).context, 1);
}

#[test]
fn an_ended_program_is_lost_to_its_waiting_peers() {
    let mut net = all(3);
    net.nodes[0].expect(Some(2), true, 1);
    net.nodes[0].expect(None, false, 2);
    net.nodes[2].is_ended = true;
    assert_eq!(net.looks(0, 8), [(1, LOST, Why::Departed)]);
    // The program may have ended in order: receives from any source wait on.
    net.nodes[0].expect(Some(2), false, 3);
    assert_eq!(net.looks(0, 0), [(3, LOST, Why::Departed)]);
    assert_eq!(net.looks(0, ENOUGH), []);
}

#[test]
fn messages_sent_before_the_end_are_received() {
    let mut net = all(2);
    net.nodes[1].send(0, 1, 0, pattern(8, 0));
    net.nodes[1].send(0, 2, 0, pattern(PART, 0));
    // Let the NIC take the messages first: those left in the ring are lost with the program.
    net.looks(1, 1);
    net.nodes[1].is_ended = true;
    net.nodes[0].expect(Some(1), false, 1);
    assert_eq!(net.looks(0, 8), [(1, LOST, Why::Departed)]);
    net.nodes[0].expect(Some(1), true, 2);
    assert_eq!(net.wait(0).context, 2);
    // The long message was only announced.
    net.nodes[0].receive(2, 3, PART);
    assert_eq!(net.looks(0, 0), [(3, LOST, Why::Departed)]);
}

#[test]
fn peeking_for_a_message_of_a_dead_peer_fails() {
    let mut net = all(2);
    net.nodes[1].is_silent = true;
    let (mut wanted, _) = program::posted(1, 1, 0);
    wanted.from = Some(net.nodes[0].address(1));
    let mut looks = 0;
    loop {
        net.nodes[0].peek(&wanted, 0);
        match net.looks(0, 1)[..] {
            [(1, libc::ENOMSG, _)] => looks += 1,
            [(1, LOST, Why::Unreachable)] => break,
            ref other => panic!("{other:?}"),
        }
        assert!(looks < ENOUGH, "the loss is never reported");
    }
    assert!(looks > 10, "after {looks} looks");
}

/// MPI receives active messages in pools; waiting for the reply of a lost peer would never end.
#[test]
fn a_receive_pool_reports_a_loss_and_stays_usable() {
    let mut net = all(3);
    net.nodes[1].is_silent = true;
    let (posted, _) = program::posted(1, 1, 1000);
    let Node {
        shared, endpoint, ..
    } = &mut net.nodes[0];
    endpoint.receive(shared, true, posted, true);
    assert_eq!(net.looks(0, ENOUGH), [(1, LOST, Why::SomeoneLost)]);
    assert_eq!(net.looks(0, ENOUGH), [], "once");
    net.nodes[2].send(0, 1, 2, pattern(8, 0));
    assert_eq!(net.wait(0).context, 1);
}

#[test]
fn a_loss_is_reported_to_the_next_receive_from_any_source() {
    let mut net = all(2);
    net.nodes[1].is_silent = true;
    net.nodes[0].expect(Some(1), true, 1);
    assert_eq!(net.looks(0, ENOUGH), [(1, LOST, Why::Unreachable)]);
    net.nodes[0].expect(None, true, 2);
    assert_eq!(net.looks(0, 0), [(2, LOST, Why::SomeoneLost)]);
    net.nodes[0].expect(None, true, 3);
    assert_eq!(net.looks(0, 0), []);
}

/// Neither a receive nor a message fails; messages used to fail after a minute.
#[test]
fn without_an_end_of_patience_silence_loses_nobody() {
    let mut net = all(2);
    net.nodes[0].endpoint.wait_for(Duration::ZERO);
    net.nodes[1].is_silent = true;
    net.nodes[0].expect(Some(1), true, 1);
    net.nodes[0].send(1, 1, 2, pattern(8, 0));
    assert_eq!(net.looks(0, 10 * ENOUGH), []);
    assert!(net.nodes[0].commands() <= 9, "questions accumulate");
    let Node {
        shared, endpoint, ..
    } = &mut net.nodes[0];
    endpoint.sent(shared, 0, Status::NoReceive);
    assert_eq!(net.nodes[0].errors(), []);
    net.rejoin();
    net.nodes[1].receive(1, 3, 8);
    assert_eq!([net.wait(0).context, net.wait(1).context], [2, 3]);
}

#[test]
fn without_an_end_of_patience_programs_that_have_ended_are_lost() {
    let mut net = all(2);
    net.nodes[0].endpoint.wait_for(Duration::ZERO);
    net.leave(1);
    net.nodes[0].expect(Some(1), true, 1);
    net.nodes[0].send(1, 1, 2, pattern(8, 0));
    assert_eq!(
        net.looks(0, 8),
        [(1, LOST, Why::Departed), (2, LOST, Why::Unknown)]
    );
}

/// Waits of half a second add up, with pauses in between: the peer is probed, and given up.
#[test]
fn short_waits_add_up() {
    let mut net = all(2);
    net.nodes[1].is_silent = true;
    for wait in 1..=2 * ENOUGH {
        net.nodes[0].expect(Some(1), true, 1);
        match net.looks(0, 1)[..] {
            [] => {}
            [(1, LOST, Why::Unreachable)] => {
                assert!(wait >= ENOUGH - 8, "after {wait} waits");
                return;
            }
            ref other => panic!("{other:?}"),
        }
        let Node {
            shared, endpoint, ..
        } = &mut net.nodes[0];
        assert!(endpoint.cancel(shared, 1));
        assert_eq!(net.looks(0, 4), [(1, libc::ECANCELED, Why::Plain)]);
    }
    panic!("nobody is given up");
}

/// No number of failed tries, and no length of time, ends the resends.
#[test]
fn messages_are_resent_while_the_peer_answers_probes() {
    let mut net = all(2);
    net.nodes[0].send(1, 1, 1, pattern(8, 0));
    let Node {
        shared, endpoint, ..
    } = &mut net.nodes[0];
    for status in [Status::TimedOut, Status::Damaged, Status::NoReceive] {
        for _ in 0..10 * ENOUGH {
            endpoint.sent(shared, 0, status);
            endpoint.tick();
        }
    }
    assert_eq!(net.nodes[0].errors(), []);
    let into = net.nodes[1].receive(1, 2, 8);
    assert_eq!([net.wait(0).context, net.wait(1).context], [1, 2]);
    assert_eq!(into.now(), pattern(8, 0));
}

/// Two programs, the first of which has the second message of the other and misses its first.
fn with_a_missing_message() -> Network {
    let mut net = all(2);
    net.faults.lost = 1_000;
    net.nodes[1].send(0, 1, 1, pattern(8, 0));
    net.turn(1);
    net.faults.lost = 0;
    net.nodes[1].send(0, 1, 2, pattern(8, 1));
    net.settle();
    assert_eq!(net.nodes[0].endpoint.count("held"), 1);
    net
}

#[test]
fn missing_messages_of_a_dead_sender_are_not_awaited() {
    let mut net = with_a_missing_message();
    net.nodes[1].is_silent = true;
    net.looks(0, ENOUGH);
    assert_eq!(net.nodes[0].endpoint.count("held"), 0);
    // A program that ends is detected even without a limit of patience.
    let mut net = with_a_missing_message();
    net.nodes[0].endpoint.wait_for(Duration::ZERO);
    net.leave(1);
    net.looks(0, 8);
    assert_eq!(net.nodes[0].endpoint.count("held"), 0);
}

/// The sender gave up the receiver, which itself has no limit of patience.
#[test]
fn messages_given_up_by_a_living_sender_are_not_awaited() {
    let mut net = with_a_missing_message();
    net.nodes[0].endpoint.wait_for(Duration::ZERO);
    net.cuts.insert((0, 1), net.now + TICK * ENOUGH);
    net.run(net.now + TICK * ENOUGH, |_| false);
    let failed = net.nodes[1].errors();
    assert_eq!(failed, [(1, libc::ETIMEDOUT, Why::Unknown)]);
    assert_eq!(net.nodes[0].endpoint.count("held"), 1);
    net.run(net.now + Duration::from_secs(60), |_| false);
    assert_eq!(net.nodes[0].endpoint.count("held"), 0);
    net.nodes[0].expect(Some(1), true, 3);
    assert_eq!(net.looks(0, 0), [(3, LOST, Why::Unreachable)]);
}

/// Nothing is in flight to the peer: its NIC has taken a whole window, and its program acknowledges
/// nothing.
#[test]
fn messages_that_wait_for_a_window_fail_with_their_peer() {
    let mut net = all(2);
    net.settle();
    net.nodes[1].computes_until = Duration::MAX;
    (0..40).for_each(|n| net.nodes[0].send(1, 1, n, pattern(8, 0)));
    net.settle();
    assert_eq!(net.nodes[0].commands(), 0);
    net.leave(1);
    let failed = net.looks(0, 8);
    let sent = 40 - failed.len();
    assert!((1..40).contains(&sent), "{failed:?}");
    let is_departed =
        |(n, error): (usize, &(usize, i32, Why))| *error == (sent + n, LOST, Why::Departed);
    assert!(failed.iter().enumerate().all(is_departed), "{failed:?}");
}

/// A NIC has receives for four programs.
#[test]
fn receives_are_posted_when_another_program_frees_slots() {
    let mut net = Network::new(&[0; 5], 1, false);
    net.nodes[0].send(4, 1, 1, pattern(8, 0));
    net.nodes[4].receive(1, 2, 8);
    net.settle();
    assert_eq!(net.nodes[0].commands(), 1, "the message waits");
    net.leave(1);
    assert_eq!(net.wait(4).context, 2);
    assert_eq!(net.wait(0).context, 1);
    net.settle();
    assert_eq!(net.nodes[4].commands(), 0, "all are posted");
}

/// A peer is lost to a cut, and its program ends before it is notified.
#[test]
fn lost_programs_that_have_ended_are_not_probed_for_ever() {
    let mut net = all(2);
    net.cuts.insert((0, 1), Duration::MAX);
    net.nodes[0].expect(Some(1), true, 1);
    assert_eq!(net.looks(0, ENOUGH), [(1, LOST, Why::Unreachable)]);
    net.cuts.clear();
    net.leave(1);
    net.looks(0, 100);
    let probes = net.nodes[0].endpoint.probes();
    net.looks(0, 200);
    assert_eq!(net.nodes[0].endpoint.probes(), probes);
}

/// Each wait is shorter than the time until the first probe.
#[test]
fn waits_from_anyone_add_up() {
    let mut net = all(3);
    net.nodes[1].is_silent = true;
    let mut failed = Vec::new();
    for n in 0..ENOUGH {
        net.nodes[0].expect(None, true, 1);
        failed = net.looks(0, 2);
        if !failed.is_empty() {
            break;
        }
        let Node {
            shared, endpoint, ..
        } = &mut net.nodes[0];
        assert!(endpoint.cancel(shared, 1), "round {n}");
        net.nodes[0].errors();
        assert_eq!(net.looks(0, 1), []);
    }
    assert_eq!(failed, [(1, LOST, Why::SomeoneLost)]);
}

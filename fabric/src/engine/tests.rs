//! Endpoints over a network in virtual time.

mod atomics;
mod counted;
mod delivery;
mod domains;
mod liveness;
mod lost;
mod network;
mod opened;
mod parts;
pub mod program;
mod soak;

use std::time::Duration;

use phitwire_client::door::{Access, Local, Status};

use super::access::{Change, Far};
use super::elements::Form;
use super::matching::Posted;
use super::shared::{Entry, Op, Region, Why};
use super::wire::{Address, MOST_EAGER, PART};
use crate::flags::{
    FI_CLAIM, FI_DISCARD, FI_MULTI_RECV, FI_RECV, FI_REMOTE_READ, FI_REMOTE_WRITE, FI_SEND,
    FI_TAGGED,
};
use crate::memory::{Bytes, Pieces};
use network::{Network, Node};
use program::{op, pattern};

/// Programs with a NIC each, which do not reach the programs' memory.
fn all(count: u16) -> Network {
    let processors: Vec<_> = (0..count).collect();
    Network::new(&processors, 1, false)
}

impl Network {
    /// Runs the network until `who` has a completion.
    fn wait(&mut self, who: usize) -> Entry {
        let end = self.now + Duration::from_secs(10);
        let mut found = None;
        self.run(end, |net| {
            let queue = net.nodes[who].shared.queues.get_mut(0);
            let queue = queue.expect("it is there");
            assert_eq!(queue.errors.front(), None);
            found = queue.entries.pop_front();
            found.is_some()
        });
        found
            .unwrap_or_else(|| panic!("nothing completes at {who}"))
            .0
    }

    /// Runs the network for 100 ms, enough for everything in flight.
    fn settle(&mut self) {
        self.run(self.now + Duration::from_millis(100), |_| false);
    }
}

impl Node {
    fn send(&mut self, to: u64, tag: u64, context: usize, bytes: Vec<u8>) {
        let message = (context, bytes);
        program::send(&mut self.endpoint, &mut self.shared, to, tag, message);
    }

    fn receive(&mut self, tag: u64, context: usize, bytes: usize) -> Pieces {
        let (posted, into) = program::posted(context, tag, bytes);
        self.endpoint.receive(&mut self.shared, true, posted, false);
        into
    }

    fn peek(&mut self, wanted: &Posted, flags: u64) {
        self.endpoint.peek(&mut self.shared, wanted, flags);
    }

    fn errors(&mut self) -> Vec<(usize, i32, Why)> {
        program::errors(&mut self.shared)
    }
}

#[test]
fn messages_of_all_lengths_arrive() {
    let mut net = all(2);
    let lengths = [
        0,
        1,
        64,
        MOST_EAGER,
        MOST_EAGER + 1,
        PART,
        PART + 1,
        11 * PART + 5,
    ];
    for (n, bytes) in lengths.into_iter().enumerate() {
        // Every other message arrives before its receive is posted.
        let early = n % 2 == 0;
        let mut into = early.then(|| net.nodes[1].receive(n as u64, 1, bytes));
        net.nodes[0].send(1, n as u64, 2, pattern(bytes, n));
        if !early {
            net.settle();
            into = Some(net.nodes[1].receive(n as u64, 1, bytes));
        }
        let entry = net.wait(1);
        assert_eq!(
            (entry.context, entry.len, entry.tag, entry.data),
            (1, bytes, n as u64, n as u64)
        );
        assert_eq!(net.wait(0).context, 2);
        assert_eq!(
            into.expect("it was posted").now(),
            pattern(bytes, n),
            "{bytes}"
        );
    }
    for (node, kind) in [(0, "offers"), (1, "pulls"), (0, "stages"), (1, "fetches")] {
        assert_eq!(net.nodes[node].endpoint.count(kind), 0, "{kind}");
    }
}

#[test]
fn an_end_point_reaches_itself() {
    let mut net = all(1);
    for bytes in [10, 3 * PART + 1] {
        let into = net.nodes[0].receive(5, 1, bytes);
        net.nodes[0].send(0, 5, 2, pattern(bytes, 3));
        let mut contexts = [net.wait(0).context, net.wait(0).context];
        contexts.sort_unstable();
        assert_eq!(contexts, [1, 2]);
        assert_eq!(into.now(), pattern(bytes, 3));
    }
}

#[test]
fn duplicated_messages_arrive_once() {
    let mut net = all(2);
    for n in 0..200_usize {
        net.nodes[0].send(1, 9, n, pattern(20, n));
        // The message arrived, but the NIC reported that it did not.
        let Node {
            shared, endpoint, ..
        } = &mut net.nodes[0];
        if n % 3 == 0
            && let Some(slot) = endpoint.sending()
        {
            endpoint.sent(shared, slot, Status::TimedOut);
        }
        let into = net.nodes[1].receive(9, n, 20);
        assert_eq!(net.wait(1).context, n);
        assert_eq!(into.now(), pattern(20, n));
    }
}

/// A program may end after its last send, when only half of an acknowledgement to it has arrived.
/// Its NIC then has no handle for the rest, but its messages are received all the same.
#[test]
fn messages_of_an_ended_program_are_received() {
    let mut net = all(2);
    net.nodes[1].send(0, 9, 1, pattern(20, 1));
    assert_eq!(net.wait(1).context, 1, "it is there, and unread");
    net.nodes[0].send(1, 9, 2, pattern(20, 2));
    let Node {
        shared, endpoint, ..
    } = &mut net.nodes[0];
    endpoint.sent(shared, 0, Status::NoHandle);
    assert!(
        net.nodes[0].errors().is_empty(),
        "whether it has ended is asked"
    );
    let (mut posted, into) = program::posted(3, 9, 20);
    posted.from = Some(net.nodes[1].endpoint.address());
    let Node {
        shared, endpoint, ..
    } = &mut net.nodes[0];
    endpoint.receive(shared, true, posted, false);
    while net.wait(0).context != 3 {}
    assert_eq!(into.now(), pattern(20, 1));
}

/// A sender that requested no acknowledgement must not wait for one when its window shrinks.
#[test]
fn a_window_that_shrinks_does_not_close() {
    let mut net = all(2);
    let count = |n: usize| if n == 0 { 7 } else { 20 };
    for round in 0..2 {
        for n in 0..count(round) {
            net.nodes[0].send(1, 9, n, pattern(20, n));
        }
        for n in 0..count(round) {
            net.nodes[1].receive(9, n, 20);
            assert_eq!(net.wait(1).context, n);
        }
        let vector = net.nodes[0].shared.vectors.get_mut(0).expect("it is there");
        for processor in 100..160 {
            vector.insert(Address {
                processor,
                ..Address::default()
            });
        }
    }
}

#[test]
fn peeks_claims_and_cancels() {
    let mut net = all(2);
    let (wanted, _) = program::posted(40, 3, 0);
    net.nodes[1].peek(&wanted, 0);
    assert_eq!(net.nodes[1].errors(), [(40, libc::ENOMSG, Why::Plain)]);
    for tag in [3, 3, 4] {
        net.nodes[0].send(1, tag, 0, pattern(PART + 1, tag as usize));
    }
    let (last, _) = program::posted(41, 4, 0);
    net.settle();
    net.nodes[1].peek(&last, 0);
    assert_eq!(net.wait(1).len, PART + 1);
    // Claim one; other receives get the next message with its tag.
    let Node {
        shared, endpoint, ..
    } = &mut net.nodes[1];
    endpoint.peek(shared, &wanted, FI_CLAIM);
    endpoint.peek(shared, &last, FI_DISCARD);
    let into = net.nodes[1].receive(3, 42, PART + 1);
    let (claiming, claimed) = program::posted(40, 3, PART + 1);
    let Node {
        shared, endpoint, ..
    } = &mut net.nodes[1];
    assert!(endpoint.claim(shared, claiming, 0));
    let mut contexts: Vec<_> = (0..4).map(|_| net.wait(1).context).collect();
    contexts.sort_unstable();
    assert_eq!(contexts, [40, 40, 41, 42]);
    assert_eq!(
        (into.now(), claimed.now()),
        (pattern(PART + 1, 3), pattern(PART + 1, 3))
    );
    (0..3).for_each(|_| {
        net.wait(0);
    });
    net.nodes[1].receive(77, 43, 8);
    let Node {
        shared, endpoint, ..
    } = &mut net.nodes[1];
    assert!(endpoint.cancel(shared, 43) && !endpoint.cancel(shared, 43));
    assert_eq!(net.nodes[1].errors(), [(43, libc::ECANCELED, Why::Plain)]);
}

#[test]
fn one_receive_takes_several_messages() {
    let mut net = all(2);
    let (mut posted, into) = program::posted(1, 0, 100);
    posted.ignore = u64::MAX;
    let Node {
        shared, endpoint, ..
    } = &mut net.nodes[1];
    endpoint.set_least_room(30);
    endpoint.receive(shared, false, posted, true);
    let mut bufs = Vec::new();
    for n in 0..3 {
        let from = Pieces::leaked(pattern(25, n));
        let Node {
            shared, endpoint, ..
        } = &mut net.nodes[0];
        endpoint
            .send(shared, 1, from, (None, None), op(2, FI_SEND))
            .expect("there is room");
        let entry = net.wait(1);
        assert_eq!(entry.flags & FI_MULTI_RECV != 0, n == 2);
        bufs.push(entry.buf - into.address());
    }
    assert_eq!(bufs, [0, 25, 50]);
    assert_eq!(into.now()[50..75], pattern(25, 2));
}

/// The program owns the memory again once the operation fails.
#[test]
fn a_cancelled_buffer_ends_after_the_messages_that_land_in_it() {
    let mut net = all(2);
    for bytes in [None, Some(3 * PART + 1)] {
        let (posted, into) = program::posted(1, 0, 4 * PART);
        let Node {
            shared, endpoint, ..
        } = &mut net.nodes[1];
        endpoint.receive(shared, true, posted, true);
        if let Some(bytes) = bytes {
            net.nodes[0].send(1, 0, 2, pattern(bytes, 3));
            let soon = net.now + Duration::from_secs(1);
            assert!(net.run(soon, |net| net.nodes[1].endpoint.count("pulls") > 0));
        }
        let Node {
            shared, endpoint, ..
        } = &mut net.nodes[1];
        assert!(endpoint.cancel(shared, 1) && !endpoint.cancel(shared, 1));
        if let Some(bytes) = bytes {
            assert_eq!(net.nodes[1].errors(), [], "it lands");
            net.settle();
            let queue = net.nodes[1].shared.queues.get_mut(0);
            let ended = queue.and_then(|queue| queue.entries.pop_front());
            let (entry, _) = ended.expect("the message is received");
            assert_eq!((entry.len, entry.flags & FI_MULTI_RECV), (bytes, 0));
            assert_eq!(into.to_vec(0, bytes), pattern(bytes, 3));
        }
        assert_eq!(net.nodes[1].errors(), [(1, libc::ECANCELED, Why::Plain)]);
        assert_eq!(net.nodes[1].endpoint.count("buffers"), 0);
    }
}

#[test]
fn a_buffer_for_messages_of_a_lost_peer_ends() {
    let mut net = all(2);
    let from = net.nodes[1].endpoint.address();
    net.leave(1);
    // One is posted before the loss, the other fails at once.
    for _ in 0..2 {
        let (mut posted, _) = program::posted(1, 0, 100);
        posted.from = Some(from);
        let Node {
            shared, endpoint, ..
        } = &mut net.nodes[0];
        endpoint.receive(shared, true, posted, true);
        net.run(net.now + Duration::from_secs(5), |_| false);
        let lost = (1, libc::EHOSTUNREACH, Why::Departed);
        assert_eq!(net.nodes[0].errors(), [lost]);
        assert_eq!(net.nodes[0].endpoint.count("buffers"), 0);
    }
}

/// Checks that addresses outside the memory, and an unknown key, are rejected.
fn outside_is_rejected(net: &mut Network, far: impl Fn(u64) -> Far) {
    for (far, len) in [
        (far(3 * PART as u64 - 4), 8),
        (Far { key: 12, ..far(0) }, 8),
        (far(u64::MAX), PART),
    ] {
        let Node {
            shared, endpoint, ..
        } = &mut net.nodes[0];
        let from = Pieces::leaked(vec![1; len]);
        endpoint
            .write(shared, far, from, None, op(4, 0))
            .expect("there is room");
        net.settle();
        assert_eq!(net.nodes[0].errors(), [(4, libc::EREMOTEIO, Why::Refused)]);
    }
}

#[test]
fn memory_is_written_read_and_changed() {
    let mut net = all(2);
    let memory = Pieces::leaked(vec![0; 3 * PART]);
    let Pieces::One(bytes) = memory.clone() else {
        unreachable!("it is one");
    };
    let access = FI_REMOTE_READ | FI_REMOTE_WRITE;
    let base = 0;
    let region = Region {
        bytes,
        access,
        base,
        open: None,
        counters: Vec::new(),
    };
    net.nodes[1].shared.regions.insert(11, region);
    let far = |address| Far {
        number: 1,
        address,
        key: 11,
    };
    for bytes in [8, MOST_EAGER + 1, 2 * PART + 3] {
        let Node {
            shared, endpoint, ..
        } = &mut net.nodes[0];
        let from = Pieces::leaked(pattern(bytes, 1));
        endpoint
            .write(shared, far(16), from, None, op(1, 0))
            .expect("there is room");
        net.wait(0);
        assert_eq!(memory.to_vec(16, bytes), pattern(bytes, 1));
        let Node {
            shared, endpoint, ..
        } = &mut net.nodes[0];
        let into = Pieces::leaked(vec![0; bytes]);
        endpoint
            .read(shared, far(16), into.clone(), op(2, 0))
            .expect("there is room");
        net.wait(0);
        assert_eq!(into.now(), pattern(bytes, 1));
    }
    memory.fill(0, &40_u64.to_ne_bytes());
    let change = Change {
        datatype: 7,
        op: 2,
        form: Form::Fetch,
        count: 1,
    };
    let old = Pieces::leaked(vec![0; 8]);
    let two = Some(Pieces::leaked(2_u64.to_ne_bytes().to_vec()));
    let Node {
        shared, endpoint, ..
    } = &mut net.nodes[0];
    let parts = [two, None, Some(old.clone())];
    endpoint
        .atomic(shared, far(0), change, parts, op(3, 0))
        .expect("there is room");
    net.wait(0);
    assert_eq!(
        (old.now(), memory.to_vec(0, 8)),
        (40_u64.to_ne_bytes().to_vec(), 42_u64.to_ne_bytes().to_vec())
    );
    outside_is_rejected(&mut net, far);
    assert!(Bytes::none().is_empty());
}

#[test]
fn a_lost_peer_fails_the_operations_that_wait_for_it() {
    let mut net = all(2);
    let change = Change {
        datatype: 7,
        op: 2,
        form: Form::Write,
        count: 1,
    };
    let far = Far {
        number: 1,
        address: 0,
        key: 1,
    };
    let one = Some(Pieces::leaked(1_u64.to_ne_bytes().to_vec()));
    let Node {
        shared, endpoint, ..
    } = &mut net.nodes[0];
    endpoint
        .atomic(shared, far, change, [one, None, None], op(1, 0))
        .expect("there is room");
    endpoint
        .send(
            shared,
            1,
            Pieces::leaked(vec![0; PART]),
            (None, None),
            op(2, FI_SEND),
        )
        .expect("there is room");
    // It is silent for longer than patience, and it is unknown whether anything arrived.
    endpoint.wait_for(super::clock::TICK);
    net.nodes[1].is_silent = true;
    net.run(net.now + Duration::from_secs(8), |_| false);
    let mut errors = net.nodes[0].errors();
    errors.sort_unstable_by_key(|error| error.0);
    assert_eq!(
        errors,
        [
            (1, libc::ETIMEDOUT, Why::Unknown),
            (2, libc::ETIMEDOUT, Why::Unknown)
        ]
    );
    let Node {
        shared, endpoint, ..
    } = &mut net.nodes[0];
    endpoint
        .send(
            shared,
            1,
            Pieces::leaked(vec![0; 4]),
            (None, None),
            op(3, FI_SEND),
        )
        .expect("the failure is reported later");
    assert_eq!(
        net.nodes[0].errors(),
        [(3, libc::EHOSTUNREACH, Why::Unreachable)]
    );
    assert_eq!(net.nodes[0].endpoint.count("stages"), 0);
}

#[test]
fn the_end_of_a_registration_that_was_given_up_is_not_that_of_the_next_one() {
    let mut net = all(1);
    let part = Local {
        offset: 0,
        bytes: 64,
    };
    let endpoint = &mut net.nodes[0].endpoint;
    // When the first registration completes, it is no longer awaited.
    endpoint.begin_registration(part, Access::ALL);
    endpoint.begin_registration(part, Access::ALL);
    net.settle();
    // Handle 0 belongs to the stages. The abandoned registration was undone.
    let ended = net.nodes[0].endpoint.ended_registration();
    let (status, handle) = ended.expect("it has ended");
    assert_eq!(status, Status::Done);
    let other = 3 - u16::try_from(handle).expect("1 or 2");
    assert_eq!(net.close(0, other), Err(Status::NotYours));
    assert_eq!(net.close(0, handle as u16), Ok(0));
}

/// Canary for the checks between parts, which run at every turn of an endpoint.
#[test]
#[should_panic(expected = "each stage in use has an owner")]
fn a_stage_without_an_owner_is_noticed() {
    let mut net = all(1);
    net.nodes[0].endpoint.lose_a_stage();
    net.settle();
}

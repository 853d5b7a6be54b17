//! A program's objects and operations, for tests of endpoints and of their drivers.

use crate::engine::endpoint::Endpoint;
use crate::engine::matching::Posted;
use crate::engine::shared::{Binds, Op, Queue, Shared, Vector, Why};
use crate::engine::wire::Address;
use crate::flags::{FI_RECV, FI_SEND, FI_TAGGED};
use crate::memory::Pieces;

/// Binds an endpoint to a new queue and a new, empty vector, both with number 0.
pub fn bind(endpoint: &mut Endpoint) -> Shared {
    let mut shared = Shared::default();
    let queue = shared.queues.insert(Queue::default());
    let queue = queue.map(|queue| (queue, false));
    *endpoint.binds_mut() = Binds {
        vector: shared.vectors.insert(Vector::default()),
        transmit: queue,
        receive: queue,
        ..Binds::default()
    };
    shared
}

/// Adds all addresses to the vector of each program.
pub fn introduce<'a>(all: impl Iterator<Item = &'a mut Shared>, addresses: &[Address]) {
    for shared in all {
        let vector = shared.vectors.get_mut(0).expect("it is there");
        addresses.iter().for_each(|&address| {
            vector.insert(address);
        });
    }
}

pub fn op(context: usize, flags: u64) -> Op {
    Op {
        context,
        flags,
        reports_success: true,
        is_delivery: false,
        tag: 0,
    }
}

pub fn pattern(bytes: usize, seed: usize) -> Vec<u8> {
    (0..bytes).map(|n| (n * 7 + n / 256 + seed) as u8).collect()
}

/// Sends a message with a tag, which is also its data.
pub fn send(
    endpoint: &mut Endpoint,
    shared: &mut Shared,
    to: u64,
    tag: u64,
    (context, bytes): (usize, Vec<u8>),
) {
    let from = Pieces::leaked(bytes);
    let op = op(context, FI_SEND | FI_TAGGED);
    let sent = endpoint.send(shared, to, from, (Some(tag), Some(tag)), op);
    assert_eq!(sent, Ok(()));
}

/// A receive of messages with a tag from anyone, and its memory.
pub fn posted(context: usize, tag: u64, bytes: usize) -> (Posted, Pieces) {
    let into = Pieces::leaked(vec![0; bytes]);
    let posted = Posted {
        op: op(context, FI_RECV | FI_TAGGED),
        into: into.clone(),
        tag,
        ignore: 0,
        from: None,
        multi: None,
    };
    (posted, into)
}

/// Takes the failed operations of a program.
pub fn errors(shared: &mut Shared) -> Vec<(usize, i32, Why)> {
    let queue = shared.queues.get_mut(0).expect("it is there");
    let failed = queue.errors.drain(..);
    failed
        .map(|(entry, failure, _)| (entry.context, failure.errno, failure.why))
        .collect()
}

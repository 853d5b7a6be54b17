//! Operations on memory that NICs reach, and what else uses their resources.

use super::*;
use crate::engine::reach::Reach;
use crate::engine::slots::STAGES;
use crate::memory::Arena;

/// Two programs; the second one has opened memory of `bytes` bytes.
struct Opened {
    net: Network,
    region: Bytes,
    key: u64,
    arena: Arena,
}

impl Opened {
    fn new(bytes: usize) -> Self {
        let mut net = Network::new(&[0, 1], 1, true);
        let mut arena = Arena::default();
        let region = arena.bytes(0, bytes);
        net.memories.push(region);
        let access = FI_REMOTE_READ | FI_REMOTE_WRITE;
        let node = &mut net.nodes[1];
        let base = node.endpoint.begin_opening(&region, access);
        let base = base.expect("NICs reach it");
        net.settle();
        let ended = net.nodes[1].endpoint.ended_registration();
        let Some((Status::Done, handle)) = ended else {
            panic!("{ended:?}");
        };
        let reach = Reach {
            handle: handle as u16,
            base,
        };
        let key = reach.key(1);
        let opened = Region {
            bytes: region,
            access,
            base: region.address(),
            reach: Some((reach, 0)),
        };
        net.nodes[1].shared.regions.insert(key, opened);
        Self {
            net,
            region,
            key,
            arena,
        }
    }

    fn lend(&mut self, bytes: &[u8]) -> Bytes {
        let memory = self.arena.bytes(0, bytes.len());
        Pieces::One(memory).fill(0, bytes);
        self.net.memories.push(memory);
        memory
    }

    fn far(&self, at: u64) -> Far {
        Far {
            number: 1,
            address: self.region.address() + at,
            key: self.key,
        }
    }
}

/// Puts have their stages from the call on; a transfer that found none gets those that they free.
#[test]
fn stages_of_puts_go_to_the_transfers_that_wait_for_some() {
    let mut opened = Opened::new(STAGES * 4_000);
    for n in 0..STAGES {
        let from = Pieces::One(opened.lend(&pattern(4_000, n)));
        let far = opened.far(n as u64 * 4_000);
        let Node {
            shared, endpoint, ..
        } = &mut opened.net.nodes[0];
        let begun = endpoint.write(shared, far, from, None, op(n, 0));
        assert_eq!(begun, Ok(()));
    }
    let bytes = pattern(600_000, 5);
    let (first, second) = bytes.split_at(1_000);
    let pieces = Pieces::Many(vec![opened.lend(first), opened.lend(second)]);
    let into = opened.lend(&vec![0; bytes.len()]);
    let (mut posted, _) = Node::posted(1_000, 7, 0);
    posted.into = Pieces::One(into);
    let Node {
        shared, endpoint, ..
    } = &mut opened.net.nodes[1];
    endpoint.receive(shared, true, posted, false);
    let Node {
        shared, endpoint, ..
    } = &mut opened.net.nodes[0];
    let message = (Some(7), None);
    let begun = endpoint.send(shared, 1, pieces, message, op(2_000, FI_SEND | FI_TAGGED));
    assert_eq!(begun, Ok(()));
    assert_eq!(opened.net.wait(1).context, 1_000);
    assert_eq!(Pieces::One(into).now(), bytes);
    opened.net.settle();
    for n in 0..STAGES {
        let written = Pieces::One(opened.region).to_vec(n * 4_000, 4_000);
        assert!(written == pattern(4_000, n), "put {n}");
    }
}

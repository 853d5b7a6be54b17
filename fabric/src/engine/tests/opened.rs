//! Operations on memory that NICs reach, and other users of the same resources.

use super::*;
use crate::engine::reach::Reach;
use crate::engine::shared::Open;
use crate::engine::slots::STAGES;
use crate::memory::Arena;

/// Programs, the second of which has opened memory.
pub struct Opened {
    pub net: Network,
    pub region: Bytes,
    pub key: u64,
    arena: Arena,
}

impl Opened {
    /// Two programs, the second of which opens `bytes` bytes.
    pub fn new(bytes: usize) -> Self {
        Self::by(Network::new(&[0, 1], 1, true), 1, bytes)
    }

    /// The memory belongs to the domain of the second program, and `opener` opens it.
    pub fn by(mut net: Network, opener: usize, bytes: usize) -> Self {
        let mut arena = Arena::default();
        let region = arena.bytes(0, bytes);
        net.memories.push(region);
        let access = FI_REMOTE_READ | FI_REMOTE_WRITE;
        let node = &mut net.nodes[opener];
        let base = node.endpoint.begin_opening(&region, access);
        let base = base.expect("NICs reach it");
        net.settle();
        let ended = net.nodes[opener].endpoint.ended_registration();
        let Some((Status::Done, handle)) = ended else {
            panic!("{ended:?}");
        };
        let reach = Reach {
            handle: handle as u16,
            base,
        };
        let key = reach.key(1).expect("its numbers are small");
        let opened = Region {
            bytes: region,
            access,
            base: region.address(),
            open: Some(Open {
                reach,
                by: Some(net.nodes[opener].endpoint.address()),
            }),
            counters: Vec::new(),
        };
        net.nodes[1].shared.regions.insert(key, opened);
        Self {
            net,
            region,
            key,
            arena,
        }
    }

    pub fn lend(&mut self, bytes: &[u8]) -> Bytes {
        let memory = self.arena.bytes(0, bytes.len());
        Pieces::One(memory).fill(0, bytes);
        self.net.memories.push(memory);
        memory
    }

    pub fn far(&self, at: u64) -> Far {
        Far {
            number: 1,
            address: self.region.address() + at,
            key: self.key,
        }
    }
}

/// Puts take their stages at the call; a transfer that found none gets the stages that they free.
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
    let (mut posted, _) = program::posted(1_000, 7, 0);
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

/// Closes registered memory, as the program does.
pub fn close(net: &mut Network, at: usize, key: u64) {
    let node = &mut net.nodes[at];
    assert!(node.shared.regions.remove(&key).is_some(), "it was open");
    node.endpoint.region_closed(&mut node.shared, key);
}

#[test]
fn writes_to_memory_that_is_closed_end_before_that() {
    let mut opened = Opened::new(600_000);
    let from = Pieces::One(opened.lend(&pattern(600_000, 1)));
    let (far, key) = (opened.far(0), opened.key);
    let Node {
        shared, endpoint, ..
    } = &mut opened.net.nodes[0];
    // A write with data is a request, and the target fetches the bytes.
    let begun = endpoint.write(shared, far, from, Some(5), op(1, 0));
    assert_eq!(begun, Ok(()));
    let net = &mut opened.net;
    let soon = net.now + Duration::from_secs(1);
    assert!(net.run(soon, |net| net.nodes[1].endpoint.is_using(key)));
    // The answers are lost, so the fetches would be repeated.
    net.faults.lost = 1_000;
    close(net, 1, key);
    let late = net.now + Duration::from_secs(5);
    assert!(net.run(late, |net| !net.nodes[1].endpoint.is_using(key)));
    net.faults.lost = 0;
    Pieces::One(opened.region).fill(0, &vec![9; 600_000]);
    net.run(net.now + Duration::from_secs(20), |_| false);
    assert!(
        Pieces::One(opened.region)
            .now()
            .iter()
            .all(|&byte| byte == 9)
    );
    assert_eq!(net.nodes[0].errors(), [(1, libc::EREMOTEIO, Why::Refused)]);
    assert_eq!(net.nodes[1].endpoint.count("pulls"), 0);
}

/// The first program reads a long region of the second one.
fn with_a_long_read() -> Network {
    let mut net = all(2);
    let memory = Pieces::leaked(vec![0; 12 * PART]);
    let Pieces::One(bytes) = memory else {
        unreachable!("it is one");
    };
    let region = Region {
        bytes,
        access: FI_REMOTE_READ,
        base: 0,
        open: None,
        counters: Vec::new(),
    };
    net.nodes[1].shared.regions.insert(11, region);
    let far = Far {
        number: 1,
        address: 0,
        key: 11,
    };
    let Node {
        shared, endpoint, ..
    } = &mut net.nodes[0];
    let into = Pieces::leaked(vec![0; 12 * PART]);
    assert_eq!(endpoint.read(shared, far, into, op(1, 0)), Ok(()));
    net
}

/// Checks that nothing is left of a read of closed memory.
fn has_ended(net: &mut Network) {
    assert_eq!(net.nodes[0].errors(), [(1, libc::EREMOTEIO, Why::Refused)]);
    for (at, kind) in [(0, "pulls"), (0, "requests"), (1, "offers"), (1, "stages")] {
        assert_eq!(net.nodes[at].endpoint.count(kind), 0, "{kind} at {at}");
    }
}

#[test]
fn reads_of_memory_that_is_closed_end() {
    let mut net = with_a_long_read();
    let soon = net.now + Duration::from_secs(1);
    assert!(net.run(soon, |net| net.nodes[1].endpoint.count("stages") > 1));
    close(&mut net, 1, 11);
    net.settle();
    has_ended(&mut net);
}

/// The announcement is lost at first, and arrives together with the end of the transfer.
#[test]
fn an_announcement_and_its_end_may_arrive_together() {
    let mut net = with_a_long_read();
    net.turn(1);
    net.nodes[1].computes_until = Duration::MAX;
    net.settle();
    net.nodes[1].computes_until = Duration::ZERO;
    net.faults.lost = 1_000;
    net.turn(1);
    net.faults.lost = 0;
    assert_eq!(net.nodes[1].endpoint.count("offers"), 1);
    close(&mut net, 1, 11);
    net.settle();
    assert_eq!(net.nodes[0].endpoint.count("held"), 1);
    net.run(net.now + Duration::from_secs(5), |_| false);
    has_ended(&mut net);
}

/// All handles are in use when memory is to be opened again, so the handle of an idle range is
/// taken.
#[test]
fn idle_ranges_spare_their_handle_for_memory_that_is_renewed() {
    let mut opened = Opened::new(64);
    let bytes = pattern(PART, 1);
    let from = Pieces::One(opened.lend(&bytes));
    let into = Pieces::One(opened.lend(&vec![0; PART]));
    let put = Pieces::One(opened.lend(&pattern(64, 2)));
    let far = opened.far(0);
    let net = &mut opened.net;
    // The stages, the region, and a range that stays open after its message.
    net.most_handles = 3;
    let (mut posted, _) = program::posted(1, 7, 0);
    posted.into = into;
    let Node {
        shared, endpoint, ..
    } = &mut net.nodes[0];
    endpoint.receive(shared, true, posted, false);
    let Node {
        shared, endpoint, ..
    } = &mut net.nodes[1];
    let message = (Some(7), None);
    let begun = endpoint.send(shared, 0, from, message, op(2, FI_SEND));
    assert_eq!(begun, Ok(()));
    assert_eq!([net.wait(1).context, net.wait(0).context], [2, 1]);
    assert_eq!(net.open_handles(1).len(), 3);
    // One handle fewer: the region cannot be opened again as long as the range is open.
    net.most_handles = 2;
    let Node {
        shared, endpoint, ..
    } = &mut net.nodes[0];
    let begun = endpoint.write(shared, far, put, None, op(3, 0));
    assert_eq!(begun, Ok(()));
    net.faults.lost = 1_000;
    net.turn(0);
    net.faults.lost = 0;
    assert_eq!(net.wait(0).context, 3);
    assert_eq!(Pieces::One(opened.region).now(), pattern(64, 2));
}

//! Puts and gets of local programs at NICs of every machine.

use phitwire_framing::door::hello::{ANY_MEMBER, Entry};
use phitwire_framing::door::{Access, AtomicOp, Completion, Local, Remote, Request, Status, Width};

use super::local::{BYTES, JOB, Lab, processor_of};
use super::{blackwidow_network, dragonfly};
use phitwire::device::capability;
use phitwire::net::Network;
use phitwire::nic::local::Taken;
use phitwire::nic::{MAX_WINDOWS, PutEnd};
use phitwire::time::Duration;
use phitwire_t3e::topology::TorusSpec;

const PART: Local = Local {
    offset: 4096,
    bytes: 1 << 16,
};

/// A program at the first NIC, one at the last, and the address of the latter's part.
struct Pair<L> {
    lab: Lab<L>,
    here: usize,
    there: usize,
    at: Remote,
    longest: usize,
    names: u64,
}

fn put(at: Remote, offset: u64, data: &[u8]) -> Request<'_> {
    Request::Put {
        to: Remote { offset, ..at },
        data,
        event: false,
        ordered: false,
    }
}

const fn get(at: Remote, offset: u64, bytes: u64) -> Request<'static> {
    Request::Get {
        from: Remote { offset, ..at },
        into: Local {
            offset: 1 << 18,
            bytes,
        },
        ordered: false,
    }
}

const fn atomic(at: Remote, op: AtomicOp, operands: [u64; 2]) -> Request<'static> {
    Request::Atomic {
        at,
        op,
        width: Width::Bits64,
        operands,
        fetch: true,
        ordered: false,
    }
}

impl<L: Network> Pair<L> {
    fn new(network: L) -> Self {
        let mut lab = Lab::new(network);
        let last = lab.nics.len() - 1;
        let here = lab.attach(0, JOB, ANY_MEMBER).expect("there is room");
        let there = lab.attach(last, JOB, ANY_MEMBER).expect("there is room");
        let at = Remote {
            processor: processor_of(&mut lab, last),
            handle: lab.register(there, PART.offset, PART.bytes),
            offset: 0,
        };
        let longest = lab.with(0, |port, _| port.longest_put()).into();
        Self {
            lab,
            here,
            there,
            at,
            longest,
            names: 0,
        }
    }

    /// Posts a request, and returns how it ended.
    fn end_of(&mut self, program: usize, request: Request<'_>) -> (Status, u64) {
        self.names += 1;
        let name = self.names;
        match self.lab.ask(program, name, request) {
            Taken::Ended(status, word) => return (status, word),
            Taken::Later => panic!("there is room"),
            Taken::UnderWay => {}
        }
        for _ in 0..1_000 {
            self.lab.run(Duration::from_us(20));
            let is_its = |got: &Completion| match *got {
                Completion::End {
                    name: n,
                    status,
                    word,
                    ..
                } if n == name => Some((status, word)),
                _ => None,
            };
            if let Some(end) = self.lab.programs[program].got.iter().find_map(is_its) {
                return end;
            }
        }
        panic!("{request:?} does not end");
    }

    fn done(&mut self, request: Request<'_>) -> u64 {
        let (status, word) = self.end_of(self.here, request);
        assert_eq!(status, Status::Done, "{request:?}");
        word
    }

    /// The bytes at an offset of the part.
    fn memory(&self, offset: u64, bytes: usize) -> Vec<u8> {
        let at = (PART.offset + offset) as usize;
        self.lab.programs[self.there].shared.bytes(at, bytes)
    }
}

fn bytes(from: u8, count: usize) -> Vec<u8> {
    (0..count).map(|n| from.wrapping_add(n as u8)).collect()
}

fn puts_and_gets(network: impl Network) {
    let mut pair = Pair::new(network);
    let (at, longest) = (pair.at, pair.longest);
    let last = PART.bytes - longest as u64;
    for (round, offset) in [64, 0, last].into_iter().enumerate() {
        let data = bytes(round as u8 + 1, longest);
        pair.done(put(at, offset, &data));
        assert_eq!(pair.memory(offset, longest), data);
        pair.done(get(at, offset, longest as u64));
        assert_eq!(
            pair.lab.programs[pair.here].shared.bytes(1 << 18, longest),
            data
        );
    }
    pair.done(put(at, 256, &[7; 8]));
    assert_eq!(
        pair.memory(248, 24),
        [[0; 8], [7; 8], [0; 8]].as_flattened()
    );
    let outside = [PART.bytes, BYTES];
    for offset in outside {
        let data = vec![9; longest];
        for request in [put(at, offset, &data), get(at, offset, longest as u64)] {
            assert_eq!(
                pair.end_of(pair.here, request).0,
                Status::OutOfBounds,
                "{offset}"
            );
        }
    }
    let (own, len) = (BYTES - 8, longest as u64);
    let into = Local {
        offset: own,
        bytes: len,
    };
    let from = at;
    let request = Request::Get {
        from,
        into,
        ordered: false,
    };
    assert_eq!(pair.end_of(pair.here, request).0, Status::NotInSegment);
    for offset in [1 << 40, u64::MAX] {
        assert_eq!(
            pair.end_of(pair.here, put(at, offset, &[1; 8])).0,
            Status::Offset
        );
    }
}

fn strangers(network: impl Network) {
    let mut pair = Pair::new(network);
    let (at, longest) = (pair.at, pair.longest);
    pair.done(put(at, 0, &bytes(3, longest)));
    let stranger = pair
        .lab
        .attach(0, JOB + 1, ANY_MEMBER)
        .expect("there is room");
    let before = pair.memory(0, PART.bytes as usize);
    for handle in 0..256 {
        let guess = Remote { handle, ..at };
        for request in [put(guess, 0, &[9; 8]), get(guess, 0, 8)] {
            let (status, _) = pair.end_of(stranger, request);
            let refusals = [Status::NoHandle, Status::WrongKey, Status::OutOfBounds];
            assert!(refusals.contains(&status), "{handle}: {status}");
        }
    }
    assert!(
        pair.memory(0, PART.bytes as usize) == before,
        "nothing has changed"
    );
    let unknown = [Status::NotYours];
    let deregister = Request::Deregister { handle: at.handle };
    assert!(unknown.contains(&pair.end_of(stranger, deregister).0));

    // Allow only this access.
    let access = Access {
        put: true,
        get: false,
        atomic: false,
    };
    let part = Local {
        offset: 0,
        bytes: 64,
    };
    let (status, handle) = pair.end_of(pair.there, Request::Register { part, access });
    assert_eq!(status, Status::Done);
    let handle = handle as u16;
    let put_only = Remote { handle, ..at };
    pair.done(put(put_only, 0, &[5; 8]));
    let refusals = [Status::Forbidden, Status::OutOfBounds];
    let (status, _) = pair.end_of(pair.here, get(put_only, 0, 8));
    assert!(refusals.contains(&status), "{status}");

    // A departed program cannot be reached, and gets no completions.
    let (there, here) = (pair.there, pair.here);
    pair.lab.detach(there);
    let (status, _) = pair.end_of(here, put(at, 0, &[1; 8]));
    assert!(
        [Status::NoHandle, Status::OutOfBounds].contains(&status),
        "{status}"
    );
    pair.lab.begin(here, 999, put(at, 0, &[1; 8]));
    pair.lab.detach(here);
    let heir = pair.lab.attach(0, JOB, ANY_MEMBER).expect("there is room");
    pair.lab.run(Duration::from_ms(2));
    assert_eq!(pair.lab.programs[heir].got, [], "it has asked for nothing");
}

/// Unsupported operations end at once and change nothing.
fn no_more_than_loads_and_stores(network: impl Network, has_atomics: bool) {
    let mut pair = Pair::new(network);
    let at = pair.at;
    let from = Local {
        offset: 0,
        bytes: 64,
    };
    let (processor, member, fence) = (at.processor, 0, false);
    let mut refused = vec![
        Request::Put {
            to: at,
            data: &[1; 8],
            event: true,
            ordered: false,
        },
        Request::BlockPut {
            to: at,
            from,
            event: None,
            fence,
        },
        Request::BlockGet {
            from: at,
            into: from,
            fence,
        },
        Request::Send {
            processor,
            member,
            from,
        },
        Request::Receive { into: from },
        Request::CancelReceive,
        atomic(at, AtomicOp::FloatAdd, [1, 0]),
    ];
    if !has_atomics {
        refused.push(atomic(at, AtomicOp::Add, [1, 0]));
    }
    for request in refused {
        assert_eq!(
            pair.end_of(pair.here, request),
            (Status::Unsupported, 0),
            "{request:?}"
        );
    }
    let data = [1; 65];
    for data in [&data[..pair.longest + 1], &[]] {
        assert_eq!(pair.end_of(pair.here, put(at, 0, data)).0, Status::Length);
    }
    assert!(pair.memory(0, 64) == [0; 64]);
    // Check handles and their bounds.
    for (part, status) in [
        (
            Local {
                offset: 0,
                bytes: BYTES + 64,
            },
            Status::NotInSegment,
        ),
        (
            Local {
                offset: u64::MAX - 63,
                bytes: 128,
            },
            Status::NotInSegment,
        ),
        (
            Local {
                offset: 8,
                bytes: 64,
            },
            Status::Offset,
        ),
        (
            Local {
                offset: 0,
                bytes: 0,
            },
            Status::Length,
        ),
    ] {
        let access = Access::ALL;
        let register = Request::Register { part, access };
        assert_eq!(pair.end_of(pair.here, register).0, status, "{part:?}");
    }
    let part = from;
    let access = Access::ALL;
    let mut handles = 0;
    while pair.end_of(pair.here, Request::Register { part, access }).0 == Status::Done {
        handles += 1;
    }
    assert_eq!(handles, 32, "another program has room");
    // Use up the slots for programs.
    for client in 1..MAX_WINDOWS as u64 {
        pair.lab
            .attach(0, JOB + (client << 32), ANY_MEMBER)
            .map(drop)
            .unwrap_or_else(|entry| {
                assert_eq!(entry, Entry::KeyTaken, "two jobs may have one key");
            });
    }
    // Requests of the NIC's user, such as IP, end separately from those of programs.
    let data = [3; 8];
    pair.lab.begin(pair.here, 77, put(at, 0, &data));
    let id = pair.lab.nics[0];
    let name = pair.lab.world.fabric.command(id, |device, now| {
        let puts = device.need::<capability::Puts>().expect("it puts");
        let name = puts.put(now, processor, 1 << 12, &data, false);
        device.advance(now);
        name.expect("there is room")
    });
    pair.lab.run(Duration::from_ms(1));
    let ends = pair.lab.world.fabric.command(id, |device, _| {
        let puts = device.need::<capability::Puts>().expect("it puts");
        std::iter::from_fn(|| puts.put_ended()).collect::<Vec<_>>()
    });
    assert_eq!(ends, [(name, PutEnd::Done)]);
    assert_eq!(pair.lab.status(pair.here, 77), Some(Status::Done));
}

fn torus() -> impl Network {
    TorusSpec::new("2x2x1".parse().expect("a shape")).torus()
}

#[test]
fn a_folded_clos_loads_and_stores() {
    puts_and_gets(blackwidow_network());
    strangers(blackwidow_network());
    no_more_than_loads_and_stores(blackwidow_network(), false);
    // A load or store stays within a line of 32 bytes.
    let mut pair = Pair::new(blackwidow_network());
    for request in [put(pair.at, 24, &[1; 16]), get(pair.at, 31, 2)] {
        assert_eq!(pair.end_of(pair.here, request).0, Status::Length);
    }
}

#[test]
fn a_torus_loads_and_stores() {
    puts_and_gets(torus());
    strangers(torus());
    no_more_than_loads_and_stores(torus(), true);
}

#[test]
fn a_dragonfly_loads_and_stores() {
    puts_and_gets(dragonfly());
    strangers(dragonfly());
}

#[test]
fn a_torus_changes_words() {
    let mut pair = Pair::new(torus());
    let at = Remote {
        offset: 512,
        ..pair.at
    };
    for (op, operands, was, is) in [
        (AtomicOp::Add, [5, 0], 0, 5),
        (AtomicOp::Add, [u64::MAX, 0], 5, 4),
        (AtomicOp::CompareSwap, [4, 0xff0], 4, 0xff0),
        (AtomicOp::CompareSwap, [4, 1], 0xff0, 0xff0),
        (AtomicOp::Or, [0xf, 0], 0xff0, 0xfff),
        (AtomicOp::And, [0xf0f, 0], 0xfff, 0xf0f),
        (AtomicOp::Swap, [42, 0], 0xf0f, 42),
    ] {
        assert_eq!(pair.done(atomic(at, op, operands)), was, "{op:?}");
        assert_eq!(pair.memory(512, 8), u64::to_le_bytes(is), "{op:?}");
    }
    let misaligned = Remote { offset: 516, ..at };
    let (status, _) = pair.end_of(pair.here, atomic(misaligned, AtomicOp::Add, [1, 0]));
    assert_eq!(status, Status::OutOfBounds);
    assert_eq!(pair.memory(512, 8), u64::to_le_bytes(42));
}

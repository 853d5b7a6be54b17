//! Local programs at NICs, through a dragonfly.

mod shares;

use std::sync::{Arc, Mutex};

use phitwire_framing::door::hello::{ANY_MEMBER, Entry};
use phitwire_framing::door::{
    Access, AtomicOp, Command, Completion, Local, Remote, Request, Status, Width,
};

use super::dragonfly;
use phitwire::device::capability;
use phitwire::nic::local::{Client, LocalPort, Taken, key_of};
use phitwire::nic::{MAX_WINDOWS, Window};
use phitwire::node::Node as _;
use phitwire::rng::Rng;
use phitwire::sim::{LinkSpec, NodeId, World};
use phitwire::time::{Duration, Time};

pub(super) const JOB: u64 = 0x1234_5678_9abc;
pub(super) const BYTES: u64 = 1 << 20;

/// Memory that a program shares with its NIC.
#[derive(Clone, Debug)]
pub(super) struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(vec![0; BYTES as usize])))
    }

    pub(super) fn bytes(&self, offset: usize, bytes: usize) -> Vec<u8> {
        self.0.lock().unwrap()[offset..offset + bytes].to_vec()
    }

    pub(super) fn fill(&self, offset: usize, data: &[u8]) {
        self.0.lock().unwrap()[offset..offset + data.len()].copy_from_slice(data);
    }
}

impl Window for Shared {
    fn size(&self) -> u64 {
        BYTES
    }

    fn read(&self, offset: u64, out: &mut [u8]) {
        out.copy_from_slice(&self.bytes(offset as usize, out.len()));
    }

    fn write(&mut self, offset: u64, data: &[u8]) {
        self.fill(offset as usize, data);
    }

    fn update(&mut self, offset: u64, change: &dyn Fn(u64) -> u64) -> u64 {
        let word = self.bytes(offset as usize, 8);
        let old = u64::from_le_bytes(word.try_into().unwrap());
        self.fill(offset as usize, &change(old).to_le_bytes());
        old
    }
}

pub(super) struct Program {
    nic: usize,
    client: Client,
    pub(super) shared: Shared,
    pub(super) got: Vec<Completion>,
}

pub(super) struct Lab<L> {
    pub(super) world: World<L>,
    pub(super) nics: Vec<NodeId>,
    pub(super) programs: Vec<Program>,
}

impl<L: phitwire::net::Network> Lab<L> {
    pub(super) fn new(network: L) -> Self {
        let mut world = World::new(network, 7, LinkSpec::default()).expect("a world");
        assert!(world.bring_up(Duration::from_ms(200)), "links come up");
        let nics = world.nics().collect();
        Self {
            world,
            nics,
            programs: Vec::new(),
        }
    }

    pub(super) fn with<R>(
        &mut self,
        nic: usize,
        act: impl FnOnce(&mut dyn LocalPort, Time) -> R,
    ) -> R {
        let id = self.nics[nic];
        self.world.fabric.command(id, |device, now| {
            let result = act(
                device.need::<capability::Door>().expect("it has a door"),
                now,
            );
            device.advance(now);
            result
        })
    }

    pub(super) fn attach(&mut self, nic: usize, job: u64, member: u8) -> Result<usize, Entry> {
        let shared = Shared::new();
        let window = Box::new(shared.clone());
        let (client, _) = self.with(nic, |port, _| port.attach(job, member, window))?;
        self.programs.push(Program {
            nic,
            client,
            shared,
            got: Vec::new(),
        });
        Ok(self.programs.len() - 1)
    }

    pub(super) fn detach(&mut self, program: usize) {
        let Program { nic, client, .. } = self.programs[program];
        self.with(nic, |port, now| port.detach(now, client));
    }

    pub(super) fn ask(&mut self, program: usize, name: u64, request: Request<'_>) -> Taken {
        let Program { nic, client, .. } = self.programs[program];
        let command = Command { name, request };
        self.with(nic, |port, now| port.command(now, client, &command))
    }

    /// Posts a request that stays in flight.
    pub(super) fn begin(&mut self, program: usize, name: u64, request: Request<'_>) {
        assert_eq!(self.ask(program, name, request), Taken::UnderWay);
    }

    pub(super) fn run(&mut self, time: Duration) {
        self.run_polled(time, Duration::from_us(10));
    }

    /// Runs for `time`, with programs that look for completions once in each `interval`.
    fn run_polled(&mut self, time: Duration, interval: Duration) {
        let end = self.world.fabric.now() + time;
        while self.world.fabric.now() < end {
            self.world.fabric.run_for(interval);
            for nic in 0..self.nics.len() {
                let got: Vec<_> = self.with(nic, |port, _| {
                    std::iter::from_fn(|| port.next_completion()).collect()
                });
                for (client, completion) in got {
                    let is_it = |p: &&mut Program| (p.nic, p.client) == (nic, client);
                    // Client numbers are reused: take the latest program with this one.
                    let program = self.programs.iter_mut().rev().find(is_it);
                    program
                        .expect("completions are somebody's")
                        .got
                        .push(completion);
                }
            }
        }
    }

    pub(super) fn register(&mut self, program: usize, offset: u64, bytes: u64) -> u16 {
        let part = Local { offset, bytes };
        let access = Access::ALL;
        match self.ask(program, 0, Request::Register { part, access }) {
            Taken::Ended(Status::Done, handle) => handle as u16,
            other => panic!("{other:?}"),
        }
    }

    /// The status of the ended command `name`.
    pub(super) fn status(&self, program: usize, name: u64) -> Option<Status> {
        self.programs[program]
            .got
            .iter()
            .find_map(|got| match *got {
                Completion::End {
                    name: n, status, ..
                } if n == name => Some(status),
                _ => None,
            })
    }
}

pub(super) fn processor_of(lab: &mut Lab<impl phitwire::net::Network>, nic: usize) -> u16 {
    lab.with(nic, |port, _| port.processor())
        .expect("it has a number")
}

#[test]
fn programs_put_get_add_and_send() {
    let mut lab = Lab::new(dragonfly());
    let last = lab.nics.len() - 1;
    let a = lab.attach(0, JOB, ANY_MEMBER).unwrap();
    let b = lab.attach(last, JOB, ANY_MEMBER).unwrap();
    let (at_a, at_b) = (processor_of(&mut lab, 0), processor_of(&mut lab, last));
    let handle = lab.register(b, 4096, 1 << 19);
    let to = |offset| Remote {
        processor: at_b,
        handle,
        offset,
    };
    let mut rng = Rng::new(1, 1);
    let data: Vec<u8> = (0..200_000).map(|_| rng.next_u64() as u8).collect();
    lab.programs[a].shared.fill(0, &data);
    let put = Request::Put {
        to: to(64),
        data: &data[..64],
        event: true,
        ordered: false,
    };
    assert_eq!(lab.ask(a, 1, put), Taken::UnderWay);
    let whole = Local {
        offset: 0,
        bytes: data.len() as u64,
    };
    let block = Request::BlockPut {
        to: to(1000),
        from: whole,
        event: Some(4711),
        fence: false,
    };
    assert_eq!(lab.ask(a, 2, block), Taken::UnderWay);
    let add = Request::Atomic {
        at: to(128),
        op: AtomicOp::Add,
        width: Width::Bits64,
        operands: [5, 0],
        fetch: true,
        ordered: false,
    };
    for name in 3..6 {
        assert_eq!(lab.ask(a, name, add), Taken::UnderWay);
    }
    let into = Local {
        offset: 1 << 19,
        bytes: 300_000,
    };
    assert_eq!(lab.ask(b, 9, Request::Receive { into }), Taken::UnderWay);
    let send = Request::Send {
        processor: at_b,
        member: 0,
        from: whole,
    };
    assert_eq!(lab.ask(a, 6, send), Taken::UnderWay);
    lab.run(Duration::from_ms(5));
    for name in 1..7 {
        assert_eq!(lab.status(a, name), Some(Status::Done), "command {name}");
    }
    let shared = lab.programs[b].shared.clone();
    assert_eq!(shared.bytes(4096 + 64, 64), data[..64]);
    assert_eq!(shared.bytes(4096 + 128, 8), 15_u64.to_le_bytes());
    assert!(
        shared.bytes(4096 + 1000, data.len()) == data,
        "the block is there"
    );
    assert!(
        shared.bytes(1 << 19, data.len()) == data,
        "so is the message"
    );
    let got = &lab.programs[b].got;
    assert!(got.contains(&Completion::PutEvent {
        processor: at_a,
        handle,
        offset: 64,
        bytes: 64
    }));
    assert!(got.contains(&Completion::BlockEvent {
        processor: at_a,
        handle,
        word: 4711
    }));
    assert!(got.contains(&Completion::Received {
        name: 9,
        status: Status::Done,
        processor: at_a,
        bytes: data.len() as u64
    }));
    let got = lab.programs[a].got.iter();
    let fetched = got.filter_map(|got| match *got {
        Completion::End {
            name: 3..6, word, ..
        } => Some(word),
        _ => None,
    });
    let mut words: Vec<_> = fetched.collect();
    words.sort_unstable();
    assert_eq!(words, [0, 5, 10]);
    let get = Request::BlockGet {
        from: to(1000),
        into: Local {
            offset: 1 << 18,
            bytes: data.len() as u64,
        },
        fence: false,
    };
    assert_eq!(lab.ask(a, 7, get), Taken::UnderWay);
    let get = Request::Get {
        from: to(64),
        into: Local {
            offset: (1 << 20) - 64,
            bytes: 64,
        },
        ordered: true,
    };
    assert_eq!(lab.ask(a, 8, get), Taken::UnderWay);
    lab.run(Duration::from_ms(5));
    assert_eq!(lab.status(a, 7), Some(Status::Done));
    let own = lab.programs[a].shared.clone();
    assert!(own.bytes(1 << 18, data.len()) == data, "got back");
    assert_eq!(own.bytes((1 << 20) - 64, 64), data[..64]);
}

#[test]
fn a_program_reaches_nothing_of_another_job_or_outside_its_own_data() {
    let mut lab = Lab::new(dragonfly());
    let a = lab.attach(0, JOB, ANY_MEMBER).unwrap();
    let beside = lab.attach(0, JOB + 1, ANY_MEMBER).unwrap();
    let b = lab.attach(1, JOB + 1, ANY_MEMBER).unwrap();
    let handle = lab.register(b, 0, 4096);
    let processor = processor_of(&mut lab, 1);
    let whole = Local {
        offset: 0,
        bytes: 4096,
    };
    lab.ask(b, 1, Request::Receive { into: whole });
    let put = |handle| Request::Put {
        to: Remote {
            processor,
            handle,
            offset: 0,
        },
        data: &[1; 8],
        event: true,
        ordered: false,
    };
    // Handle 0 is that of traffic runs.
    for (name, handle, status) in [
        (1, handle, Status::WrongKey),
        (2, 0, Status::WrongKey),
        (3, handle + 1, Status::NoHandle),
    ] {
        assert_eq!(lab.ask(a, name, put(handle)), Taken::UnderWay);
        lab.run(Duration::from_ms(1));
        assert_eq!(lab.status(a, name), Some(status), "put {name}");
    }
    assert_eq!(lab.ask(a, 4, put(0xfff0)), Taken::refused(Status::NoHandle));
    let send = Request::Send {
        processor,
        member: 0,
        from: whole,
    };
    assert_eq!(lab.ask(a, 5, send), Taken::UnderWay);
    lab.run(Duration::from_ms(3_000));
    assert_eq!(lab.status(a, 5), Some(Status::NoReceive));
    assert_eq!(lab.programs[b].got, [], "nobody has disturbed it");
    assert_eq!(lab.programs[b].shared.bytes(0, 4096), [0; 4096]);
    for (offset, bytes, status) in [
        (8, 64, Status::Offset),
        (0, 63, Status::Length),
        (0, 0, Status::Length),
    ] {
        let (part, access) = (Local { offset, bytes }, Access::ALL);
        let register = Request::Register { part, access };
        assert_eq!(lab.ask(a, 6, register), Taken::refused(status), "{part:?}");
    }
    for part in [
        Local {
            offset: BYTES - 64,
            bytes: 128,
        },
        Local {
            offset: 1 << 40,
            bytes: 64,
        },
        Local {
            offset: u64::MAX - 63,
            bytes: 64,
        },
    ] {
        let refused = Taken::refused(Status::NotInSegment);
        let access = Access::ALL;
        assert_eq!(lab.ask(a, 6, Request::Register { part, access }), refused);
        assert_eq!(lab.ask(a, 6, Request::Receive { into: part }), refused);
        let to = Remote {
            processor,
            handle,
            offset: 0,
        };
        let block = Request::BlockPut {
            to,
            from: part,
            event: None,
            fence: false,
        };
        assert_eq!(lab.ask(a, 6, block), refused);
    }
    let own = lab.register(a, 0, 64);
    let theirs = Request::Deregister { handle: own };
    assert_eq!(lab.ask(beside, 1, theirs), Taken::refused(Status::NotYours));
    assert_eq!(lab.ask(a, 7, theirs), Taken::Ended(Status::Done, 0));
    assert_eq!(lab.ask(a, 7, theirs), Taken::refused(Status::NotYours));
}

#[test]
fn an_exited_program_leaves_nothing_and_disturbs_no_other() {
    let mut lab = Lab::new(dragonfly());
    let stays = lab.attach(0, JOB, 0).unwrap();
    let peer = lab.attach(1, JOB, 0).unwrap();
    let processors = [processor_of(&mut lab, 0), processor_of(&mut lab, 1)];
    let target = lab.register(peer, 0, BYTES);
    let mut rng = Rng::new(5, 5);
    // The program leaves once in each 100 us of the 300 us that its transfers take. The check at
    // the end detects even a single slot that was not released.
    for round in 0..3_u64 {
        let goes = lab.attach(0, JOB, 1).unwrap();
        let handle = lab.register(goes, 0, BYTES);
        let shared = lab.programs[goes].shared.clone();
        let all = Local {
            offset: 0,
            bytes: BYTES,
        };
        for name in 0..8 {
            let at = Remote {
                processor: processors[1],
                handle: target,
                offset: 0,
            };
            let (from, into, fence) = (all, all, false);
            lab.begin(
                goes,
                name,
                Request::BlockGet {
                    from: at,
                    into,
                    fence,
                },
            );
            let event = Some(name);
            lab.begin(
                goes,
                name,
                Request::BlockPut {
                    to: at,
                    from,
                    event,
                    fence,
                },
            );
            lab.begin(goes, name, Request::Receive { into });
            // The peer sends to it, and puts into its registered memory.
            let processor = processors[0];
            lab.ask(
                peer,
                100,
                Request::Send {
                    processor,
                    member: 1,
                    from,
                },
            );
            let to = Remote {
                processor,
                handle,
                offset: 0,
            };
            lab.ask(
                peer,
                101,
                Request::BlockPut {
                    to,
                    from,
                    event: None,
                    fence,
                },
            );
        }
        lab.run(Duration::from_us(10 + 100 * round + rng.below(100)));
        let got = lab.programs[goes].got.len();
        lab.detach(goes);
        let add = Request::Atomic {
            at: Remote {
                processor: processors[1],
                handle: target,
                offset: BYTES - 8,
            },
            op: AtomicOp::Add,
            width: Width::Bits64,
            operands: [1, 0],
            fetch: true,
            ordered: false,
        };
        assert_eq!(lab.ask(goes, 1, add), Taken::refused(Status::NotYours));
        assert_eq!(lab.ask(stays, 1_000 + round, add), Taken::UnderWay);
        // Everything that the program began has timed out by then.
        lab.run(Duration::from_ms(2));
        lab.run_polled(Duration::from_ms(2_500), Duration::from_ms(1));
        assert_eq!(
            lab.programs[goes].got.len(),
            got,
            "nobody hears of it any more"
        );
        assert_eq!(lab.status(stays, 1_000 + round), Some(Status::Done));
        assert_eq!(Arc::strong_count(&shared.0), 2, "its memory is given back");
    }
    // Check that all slots are reusable.
    for client in 2..MAX_WINDOWS as u64 + 1 {
        let entry = lab.attach(0, JOB + client, ANY_MEMBER).map(|_| ());
        assert_eq!(entry, Ok(()), "client {client}");
    }
    assert_eq!(lab.attach(0, JOB, ANY_MEMBER).map(|_| ()), Err(Entry::Full));
}

#[test]
fn a_message_of_a_program_that_has_gone_is_not_sent() {
    let mut lab = Lab::new(dragonfly());
    let peer = lab.attach(1, JOB, 0).unwrap();
    let processor = processor_of(&mut lab, 1);
    let whole = Local {
        offset: 0,
        bytes: BYTES,
    };
    for wait in [0, 1, 2, 5, 30, 60, 200] {
        let goes = lab.attach(0, JOB, 0).unwrap();
        let shared = lab.programs[goes].shared.clone();
        for name in 0..20 {
            let send = Request::Send {
                processor,
                member: 0,
                from: whole,
            };
            assert_eq!(lab.ask(goes, name, send), Taken::UnderWay);
        }
        if wait > 0 {
            lab.run(Duration::from_us(wait));
        }
        lab.detach(goes);
        lab.programs[peer].got.clear();
        lab.ask(peer, 3, Request::Receive { into: whole });
        lab.run(Duration::from_ms(3));
        assert_eq!(Arc::strong_count(&shared.0), 2, "nothing is kept for it");
        for got in &lab.programs[peer].got {
            let is_cut = matches!(
                *got,
                Completion::Received { status: Status::Aborted, bytes, .. } if bytes < BYTES / 2
            );
            assert!(is_cut, "after {wait} us: {got:?}");
        }
        lab.ask(peer, 3, Request::CancelReceive);
    }
}

#[test]
fn members_and_keys_are_distinguished() {
    let mut lab = Lab::new(dragonfly());
    lab.attach(0, JOB, 3).unwrap();
    assert_eq!(lab.attach(0, JOB, 3).unwrap_err(), Entry::MemberTaken);
    lab.attach(0, JOB, ANY_MEMBER).unwrap();
    assert_eq!(lab.attach(0, JOB, 0).unwrap_err(), Entry::MemberTaken);
    let same = |job: &u64| key_of(*job, ANY_MEMBER) == key_of(JOB, ANY_MEMBER);
    let another = (1..1_000_000).find(same).expect("keys have 16 bits");
    assert_eq!(lab.attach(0, another, 9).unwrap_err(), Entry::KeyTaken);
    assert!(lab.attach(1, another, 9).is_ok(), "nobody has it there");
}

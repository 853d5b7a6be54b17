//! Local programs at the doors of running NICs: operations between honest programs, and the limits
//! of hostile ones.
#![allow(
    clippy::duplicate_mod,
    reason = "what the examples share, each of them brings"
)]

use std::fs;
use std::io::{IoSliceMut, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use phitwire::rng::Rng;
use phitwire_client::door::hello::{ANY_MEMBER, Entry, HELLO_BYTES, Hello, Welcome};
use phitwire_client::door::segment::{
    CLIENT_SLEEPS_AT, COMMANDS_HEAD_AT, COMMANDS_TAIL_AT, COMPLETIONS_HEAD_AT, COMPLETIONS_TAIL_AT,
    DATA_AT, NIC_SLEEPS_AT,
};
use phitwire_client::door::{
    Access, AtomicOp, COMMAND_BYTES, CollectiveRequest, Command, Completion, Local, Reduction,
    Remote, Request, Status, Width,
};
use phitwire_client::{Error, Mapping, Nic, Options};
use phitwire_lab::{Lab, wait_for};

mod hostile;

#[path = "../../../client/examples/counter.rs"]
mod counter;
#[path = "../../../client/examples/halo.rs"]
mod halo;
#[path = "../../../client/examples/put_get.rs"]
mod put_get;
#[path = "../../../client/examples/ring.rs"]
mod ring;

const JOB: u64 = 0x0dd_5eed;
const DATA: u64 = 1 << 20;
const PATIENCE: Option<Duration> = Some(Duration::from_secs(30));

/// Two network interfaces of one Aries router.
struct Pair {
    lab: Lab,
}

impl Pair {
    fn new() -> Self {
        let program = env!("CARGO_BIN_EXE_phitwire");
        let text = include_str!("../../../netns-scripts/topologies/aries-pair.toml");
        let mut lab = Lab::new(program, text, 8);
        for node in ["g0-c0s0", "nic0", "nic1"] {
            lab.start(node);
        }
        lab.wait("");
        Self { lab }
    }

    fn door(&self, nic: &str) -> PathBuf {
        self.lab.run_dir().join(format!("t/{nic}.door"))
    }

    fn attach(&self, nic: &str, job: u64) -> Nic {
        let options = Options {
            job,
            member: None,
            data_bytes: DATA,
        };
        Nic::attach(self.door(nic), &options).expect("there is room")
    }

    fn counter(&self, nic: &str, name: &str) -> u64 {
        let stats = self.lab.ctl_json(&format!("{nic} stats"));
        stats[name]
            .as_u64()
            .unwrap_or_else(|| panic!("{name} in {stats}"))
    }

    /// Number of descriptors, and of mappings of segments, of a node's process.
    fn held(&self, node: &str) -> (usize, usize) {
        let process = self.lab.processes.iter().find(|(name, _)| name == node);
        let pid = process.expect("it runs").1.id();
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
        let segments = maps.lines().filter(|line| line.contains("phitwire-door"));
        (descriptors, segments.count())
    }
}

/// Waits for the end of command `name`. Returns its status and word; drops other completions.
fn end(nic: &mut Nic, name: u64) -> (Status, u64) {
    loop {
        let next = nic.wait(PATIENCE).expect("it is there");
        match next.expect("it ends") {
            Completion::End {
                name: is,
                status,
                word,
                ..
            } if is == name => return (status, word),
            _ => {}
        }
    }
}

fn register(nic: &mut Nic) -> u16 {
    let part = Local {
        offset: 0,
        bytes: DATA,
    };
    nic.register(1, part, Access::ALL).unwrap();
    let (status, handle) = end(nic, 1);
    assert_eq!(status, Status::Done);
    handle as u16
}

#[test]
fn the_examples_run_through_the_network() {
    let pair = Pair::new();
    let doors: Vec<_> = ["nic0", "nic1", "nic0"].map(|nic| pair.door(nic)).into();
    for ended in [
        counter::common::run(&doors, counter::DATA_BYTES, counter::program),
        halo::common::run(&doors, halo::DATA_BYTES, halo::program),
        put_get::common::run(&doors, put_get::DATA_BYTES, put_get::program),
        ring::common::run(&doors, ring::DATA_BYTES, ring::program),
    ] {
        ended.expect("all is well");
    }
}

#[test]
fn refusals_give_reasons_and_a_dead_nic_is_noticed() {
    let mut pair = Pair::new();
    let mut a = pair.attach("nic0", JOB);
    let mut b = pair.attach("nic1", JOB);
    let handle = register(&mut b);
    let there = |handle, offset| Remote {
        processor: 1,
        handle,
        offset,
    };
    for (name, to, status) in [
        (10, there(handle, 0), Status::Done),
        (11, there(handle, DATA - 7), Status::OutOfBounds),
        (12, there(handle + 1, 0), Status::NoHandle),
        (13, there(0, 0), Status::WrongKey),
        (14, there(handle, 1 << 40), Status::Offset),
        (
            15,
            Remote {
                processor: 2,
                ..there(handle, 0)
            },
            Status::NoProcessor,
        ),
    ] {
        a.put(name, to, &[7; 8], false).unwrap();
        assert_eq!(end(&mut a, name), (status, 0), "put {name}");
    }
    let part = Local {
        offset: 8,
        bytes: 64,
    };
    a.register(20, part, Access::ALL).unwrap();
    assert_eq!(end(&mut a, 20).0, Status::Offset);
    a.deregister(21, handle + 7).unwrap();
    assert_eq!(end(&mut a, 21).0, Status::NotYours);
    // Kill the peer: requests must time out rather than wait forever.
    let mut child = pair.lab.take("nic1");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(matches!(b.wait(PATIENCE), Err(Error::Gone)));
    a.put(30, there(handle, 0), &[1; 8], false).unwrap();
    assert_eq!(end(&mut a, 30).0, Status::TimedOut);
}

/// Two programs that add, put and send continuously, and check every byte.
struct Honest {
    stop: Arc<AtomicBool>,
    rounds: Arc<AtomicU64>,
    thread: thread::JoinHandle<()>,
}

impl Honest {
    fn start(pair: &Pair) -> Self {
        let mut a = pair.attach("nic0", JOB);
        let mut b = pair.attach("nic1", JOB);
        let handle = register(&mut b);
        let stop = Arc::new(AtomicBool::new(false));
        let rounds = Arc::new(AtomicU64::new(0));
        let (ends, counts) = (stop.clone(), rounds.clone());
        let thread = thread::spawn(move || {
            let mut rng = Rng::new(3, 3);
            let mut round = 0;
            while !ends.load(Ordering::SeqCst) {
                exchange(&mut a, &mut b, handle, round, &mut rng);
                round += 1;
                counts.store(round, Ordering::SeqCst);
            }
        });
        Self {
            stop,
            rounds,
            thread,
        }
    }

    /// Waits until both have completed `rounds` more rounds.
    fn go_on(&self, rounds: u64) {
        let begin = self.rounds.load(Ordering::SeqCst);
        wait_for(
            || self.thread.is_finished() || self.rounds.load(Ordering::SeqCst) >= begin + rounds,
            "the others' progress",
        );
        assert!(!self.thread.is_finished(), "they have failed");
    }

    /// Descriptors and mappings of a node while no other program attaches or leaves. A node that
    /// has just admitted a program still holds the descriptors that it passed, so this repeats
    /// until two values some rounds apart agree.
    fn held(&self, pair: &Pair, node: &str) -> (usize, usize) {
        loop {
            self.go_on(1);
            let before = pair.held(node);
            self.go_on(3);
            if pair.held(node) == before {
                return before;
            }
        }
    }

    fn end(self) {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.join().expect("all was well");
    }
}

/// Exchanges a put, an addition and a message.
fn exchange(a: &mut Nic, b: &mut Nic, handle: u16, round: u64, rng: &mut Rng) {
    let bytes = 1 + rng.below(60_000);
    let data: Vec<u8> = (0..bytes).map(|_| rng.next_u64() as u8).collect();
    a.write(0, &data).unwrap();
    let (from, into) = (
        Local { offset: 0, bytes },
        Local {
            offset: 128 << 10,
            bytes: 64 << 10,
        },
    );
    let at = |offset| Remote {
        processor: 1,
        handle,
        offset,
    };
    b.receive(50, into).unwrap();
    b.flush();
    a.send(51, 1, b.member(), from).unwrap();
    a.block_put(52, at(256 << 10), from, None).unwrap();
    let op = AtomicOp::Add;
    a.atomic(53, at(512 << 10), op, [1, 0], true).unwrap();
    let mut left = 3;
    while left > 0 {
        match a.wait(PATIENCE).unwrap().expect("it ends") {
            Completion::End {
                name, status, word, ..
            } => {
                assert_eq!(status, Status::Done, "command {name} of round {round}");
                assert!(name != 53 || word == round, "{word} additions, not {round}");
                left -= 1;
            }
            other => panic!("{other:?}"),
        }
    }
    match b.wait(PATIENCE).unwrap().expect("it comes") {
        Completion::Received {
            name: 50,
            status: Status::Done,
            bytes: got,
            ..
        } => assert_eq!(got, bytes),
        other => panic!("{other:?}"),
    }
    for offset in [128 << 10, 256 << 10] {
        let mut found = vec![0; data.len()];
        b.read(offset, &mut found).unwrap();
        assert!(found == data, "what arrived in round {round} at {offset}");
    }
}

/// Sets up an engine for two programs at two network interfaces.
fn set_up(nic: &mut Nic, rank: u16, epoch: u32) {
    nic.write(0, &[0, 0, 1, 0]).unwrap();
    let processors = Local {
        offset: 0,
        bytes: 4,
    };
    let request = CollectiveRequest::SetUp {
        engine: 1,
        rank,
        branching: 2,
        epoch,
        patience_ms: 20_000,
        processors,
    };
    nic.collective(60, request).unwrap();
    assert_eq!(end(nic, 60), (Status::Done, 0));
}

fn join(nic: &mut Nic, op: Reduction, word: u64) {
    let request = CollectiveRequest::Join {
        engine: 1,
        op,
        word,
        location: 0,
    };
    nic.collective(61, request).unwrap();
    nic.flush();
}

#[test]
fn reductions_name_the_program_that_left() {
    let pair = Pair::new();
    let mut a = pair.attach("nic0", JOB);
    for epoch in 1..=10 {
        let mut b = pair.attach("nic1", JOB);
        set_up(&mut a, 0, epoch);
        set_up(&mut b, 1, epoch);
        for round in 0..50 {
            for nic in [&mut a, &mut b] {
                join(nic, Reduction::SumI64, round + 1);
            }
            for nic in [&mut a, &mut b] {
                assert_eq!(end(nic, 61), (Status::Done, 2 * round + 2));
            }
        }
        // A member that waits for the barrier exits.
        join(&mut b, Reduction::Barrier, 0);
        wait_for(
            || pair.counter("nic1", "collectives_joined") >= u64::from(epoch) * 51,
            "that it has joined",
        );
        drop(b);
        // Its contribution counts until the node notices its exit.
        wait_for(
            || pair.counter("nic1", "door.gone") >= u64::from(epoch),
            "that it has gone",
        );
        join(&mut a, Reduction::Barrier, 0);
        assert_eq!(end(&mut a, 61), (Status::Left, 1));
    }
}

/// A restarted NIC sends no requests for up to two seconds, which must not count towards any
/// timeout.
#[test]
fn a_set_up_ends_only_once_the_nic_may_send() {
    let pair = Pair::new();
    let [mut other, mut a] = [0, 1].map(|_| pair.attach("nic0", JOB));
    let far = Remote {
        processor: 1,
        handle: 1,
        offset: 0,
    };
    other.put(70, far, &[1; 8], false).unwrap();
    other.flush();
    set_up(&mut a, 0, 1);
    // By then, requests made before `set_up` have been sent.
    thread::sleep(Duration::from_millis(20));
    assert_eq!(pair.counter("nic0", "puts_posted"), 1);
}

#[test]
fn programs_that_end_at_any_moment_leave_nothing() {
    let pair = Pair::new();
    let honest = Honest::start(&pair);
    let nodes = ["nic0", "nic1"];
    let before = nodes.map(|node| honest.held(&pair, node));
    let mut rng = Rng::new(17, 1);
    for round in 0..100 {
        let mut a = pair.attach("nic0", JOB + 1);
        let mut b = pair.attach("nic1", JOB + 1);
        let handle = register(&mut b);
        let whole = Local {
            offset: 0,
            bytes: DATA,
        };
        for name in 0..20 {
            let to = Remote {
                processor: 1,
                handle,
                offset: 0,
            };
            a.block_put(name, to, whole, Some(name)).unwrap();
            a.block_get(name, to, whole).unwrap();
            a.send(name, 1, b.member(), whole).unwrap();
            b.receive(name, whole).unwrap();
        }
        a.flush();
        b.flush();
        thread::sleep(Duration::from_micros(rng.below(5_000)));
        if rng.chance(1, 2) {
            drop(a);
            thread::sleep(Duration::from_micros(rng.below(2_000)));
            drop(b);
        } else {
            drop(b);
            thread::sleep(Duration::from_micros(rng.below(2_000)));
            drop(a);
        }
        if round % 20 == 0 {
            honest.go_on(1);
        }
    }
    let gone = || nodes.map(|node| pair.held(node)) == before;
    wait_for(gone, "what they held");
    honest.go_on(3);
    honest.end();
}

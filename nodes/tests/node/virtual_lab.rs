//! Labs in virtual time: scripted programs at the doors, under any scheduling of the host.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use phitwire::net::{HostUse, Network};
use phitwire::rng::Rng;
use phitwire::sim::World;
use phitwire::time::Duration as Span;
use phitwire_client::door::{Access, AtomicOp, Completion, Local, Remote, Status};
use phitwire_client::{Nic, Options};
use phitwire_machines::CATALOGUE;
use phitwire_nodes::run_dir::LabDir;
use phitwire_nodes::stop::Stop;
use phitwire_nodes::virtual_lab::{Ended, VirtualLab};

/// A private run directory, whatever the umask.
fn private_directory() -> tempfile::TempDir {
    let mode = fs::Permissions::from_mode(0o700);
    let made = tempfile::Builder::new().permissions(mode).tempdir();
    made.expect("a directory")
}

fn world(topology: &str, seed: u64) -> World<dyn Network> {
    let file = format!("../netns-scripts/topologies/{topology}.toml");
    let text = fs::read_to_string(&file).expect("the description");
    let network = CATALOGUE.read(&file, &text).expect("a network");
    let wires = vec![Span::from_ns(25); network.link_count()];
    let host = network.has_host_times().then(HostUse::default);
    let world = World::with_hosts(network, seed, &wires, host);
    let mut world = world.expect("a world");
    assert!(world.bring_up(Span::from_ms(100)), "links train");
    world
}

/// A virtual lab in a thread of the test.
struct Lab {
    directory: tempfile::TempDir,
    stop: Stop,
    thread: JoinHandle<Ended>,
}

impl Lab {
    fn of(topology: &'static str, seed: u64) -> Self {
        let directory = private_directory();
        let at = LabDir::below(directory.path(), "lab").expect("a name");
        let stop = Stop::new().expect("a descriptor");
        let stops = stop.clone();
        let (sender, is_up) = std::sync::mpsc::channel();
        let thread = thread::spawn(move || {
            let world = world(topology, seed);
            let mut lab = VirtualLab::new(&at, world, stops).expect("a lab");
            sender.send(()).expect("the test waits");
            lab.run().expect("the lab runs");
            lab.ended()
        });
        is_up.recv().expect("the lab comes up");
        Self {
            directory,
            stop,
            thread,
        }
    }

    fn door(&self, nic: &str) -> PathBuf {
        self.directory
            .path()
            .join("lab")
            .join(format!("{nic}.door"))
    }

    fn end(self) -> Ended {
        self.stop.request();
        self.thread.join().expect("no panic")
    }
}

fn attach(door: &Path, job: u64) -> Nic {
    let options = Options {
        job,
        member: None,
        data_bytes: 1 << 16,
    };
    Nic::attach(door, &options).expect("a NIC")
}

/// Delays of the host, which must not show.
struct Scheduling(Rng);

impl Scheduling {
    fn disturb(&mut self) {
        match self.0.below(8) {
            0 => thread::sleep(Duration::from_micros(self.0.below(2_000))),
            1 => thread::yield_now(),
            2 => (0..self.0.below(20_000)).for_each(|_| std::hint::spin_loop()),
            _ => {}
        }
    }
}

fn end_of(nic: &mut Nic, command: u64) -> u64 {
    loop {
        match nic.wait(Some(Duration::from_secs(60))) {
            Ok(Some(Completion::End {
                name, status, word, ..
            })) if name == command => {
                assert_eq!(status, Status::Done, "command {command}");
                return word;
            }
            Ok(Some(_)) => {}
            other => panic!("no end of command {command}: {other:?}"),
        }
    }
}

/// Registers memory, puts and adds at the other program by a script of `seed`, and reports each
/// virtual time.
fn program(mut nic: Nic, to: u16, seed: u64, mut host: Scheduling) -> String {
    let mut script = Rng::new(seed, u64::from(to));
    let mut log = String::new();
    let part = Local {
        offset: 0,
        bytes: 1 << 16,
    };
    nic.register(1, part, Access::ALL).expect("room");
    let handle = end_of(&mut nic, 1) as u16;
    for name in 2..60 {
        host.disturb();
        let at = Remote {
            processor: to,
            handle,
            offset: script.below(1_000) * 8,
        };
        match script.below(4) {
            0 => nic.put(name, at, &[name as u8; 8], false).expect("room"),
            1 => {
                let op = AtomicOp::Add;
                nic.atomic(name, at, op, [1, 0], true).expect("room");
            }
            2 => {
                let time = Duration::from_nanos(script.below(3_000));
                nic.sleep_virtually(time).expect("a NIC");
                continue;
            }
            _ => {
                nic.put(name, at, &[1; 64], false).expect("room");
                host.disturb();
                // Poll instead of waiting.
                while nic.poll().expect("a NIC").is_none() {}
                writeln!(log, "{name} {:?}", nic.virtual_time()).expect("memory");
                continue;
            }
        }
        let word = end_of(&mut nic, name);
        writeln!(log, "{name} {word} {:?}", nic.virtual_time()).expect("memory");
    }
    // The other program still needs this one's memory.
    nic.sleep_virtually(Duration::from_millis(5))
        .expect("a NIC");
    log
}

/// Runs two programs and returns what they and the lab report.
fn run(seed: u64, host: u64) -> (Vec<String>, Ended) {
    let lab = Lab::of("aries-pair", seed);
    let nics = ["nic0", "nic1"].map(|nic| attach(&lab.door(nic), 7));
    let numbers = [1, 0].map(|peer: usize| nics[peer].processor());
    let programs = nics.into_iter().zip(numbers).zip(0..);
    let programs = programs.map(|((nic, to), n)| {
        let host = Scheduling(Rng::new(host, n));
        thread::spawn(move || program(nic, to, seed, host))
    });
    let programs: Vec<_> = programs.collect();
    let logs = programs
        .into_iter()
        .map(|program| program.join().expect("no panic"));
    (logs.collect(), lab.end())
}

#[test]
fn the_scheduling_of_the_host_does_not_show() {
    for seed in 1..4 {
        let first = run(seed, 0);
        for host in 1..6 {
            assert_eq!(run(seed, host), first, "seed {seed}, scheduling {host}");
        }
    }
    let (a, b) = (run(1, 0), run(2, 0));
    assert_ne!(a.1.trace_hash, b.1.trace_hash);
}

#[test]
fn a_program_that_leaves_or_computes_does_not_stop_the_others_longer() {
    let lab = Lab::of("aries-pair", 1);
    let mut one = attach(&lab.door("nic0"), 7);
    let other = attach(&lab.door("nic1"), 7);
    let begin = one.virtual_time().expect("a virtual lab");
    let has_slept = Arc::new(AtomicBool::new(false));
    let flag = has_slept.clone();
    let sleeper = thread::spawn(move || {
        one.sleep_virtually(Duration::from_micros(5))
            .expect("a NIC");
        flag.store(true, Ordering::SeqCst);
        one.virtual_time()
    });
    // The other program does not wait, so time stands still.
    thread::sleep(Duration::from_millis(50));
    assert!(!has_slept.load(Ordering::SeqCst));
    drop(other);
    let end = sleeper.join().expect("no panic").expect("a virtual lab");
    assert_eq!(end, begin + Duration::from_micros(5));
    lab.end();
}

#[test]
fn one_thread_may_use_two_nics() {
    let lab = Lab::of("aries-pair", 1);
    let mut nics = ["nic0", "nic1"].map(|nic| attach(&lab.door(nic), 7));
    let part = Local {
        offset: 0,
        bytes: 64,
    };
    let handles = [0, 1].map(|n: usize| {
        nics[n].register(1, part, Access::ALL).expect("room");
        end_of(&mut nics[n], 1) as u16
    });
    for round in 2..20 {
        let (from, to) = ((round % 2) as usize, (1 - round % 2) as usize);
        let at = Remote {
            processor: nics[to].processor(),
            handle: handles[to],
            offset: 0,
        };
        nics[from]
            .put(round, at, &round.to_le_bytes(), true)
            .expect("room");
        nics[from].flush();
        // The target polls a word of its memory; the arrival ends its pause.
        let before = nics[to].virtual_time();
        while nics[to].word(0).expect("inside").load(Ordering::Acquire) != round {
            nics[to].pause(Duration::from_millis(1)).expect("a NIC");
        }
        let took = nics[to]
            .virtual_time()
            .zip(before)
            .map(|(now, then)| now - then);
        assert!(took < Some(Duration::from_micros(2)), "{took:?}");
        end_of(&mut nics[from], round);
    }
    lab.end();
}

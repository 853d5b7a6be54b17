//! A client with NICs without a network, and with misbehaving sockets.

mod fake;

use fake::Fake;
use phitwire_client::descriptors::{self, Event};
use phitwire_client::door::hello::{Entry, HELLO_BYTES, Operations, Welcome};
use phitwire_client::door::{Access, AtomicOp, Completion, EntryError, Local, Remote, Status};
use phitwire_client::{AttachError, Error, Mapping, Nic, Options};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::{Duration, Instant};

const OPTIONS: Options = Options {
    job: 7,
    member: None,
    data_bytes: 1 << 16,
};
const LONG: Option<Duration> = Some(Duration::from_secs(30));
const PART: Local = Local {
    offset: 64,
    bytes: 128,
};

fn attach(door: &Path) -> Nic {
    Nic::attach(door, &OPTIONS).expect("it lets us in")
}

/// The outcome of the command with the next completion.
fn ended(nic: &mut Nic) -> (u64, Status, u64) {
    match nic.wait(LONG).expect("it runs") {
        Some(Completion::End {
            name, status, word, ..
        }) => (name, status, word),
        other => panic!("{other:?}"),
    }
}

fn registered(nic: &mut Nic, access: Access) -> Remote {
    nic.register(1, PART, access).expect("there is room");
    let (_, status, handle) = ended(nic);
    assert_eq!(status, Status::Done);
    Remote {
        processor: nic.processor(),
        handle: handle as u16,
        offset: 0,
    }
}

#[test]
fn an_attached_program_has_a_number_and_memory() {
    let fake = Fake::start(2);
    let (first, second) = (attach(&fake.doors[1]), attach(&fake.doors[1]));
    assert_eq!((first.processor(), first.member()), (1, 0));
    assert_eq!((second.processor(), second.member()), (1, 1));
    assert_eq!((first.longest_put(), first.data_bytes()), (64, 1 << 16));
    first.write(5, b"ours").expect("inside");
    let mut found = [0xa5; 6];
    first.read(4, &mut found).expect("inside");
    assert_eq!(&found, b"\0ours\0");
    second.read(4, &mut found).expect("inside");
    assert_eq!(found, [0; 6], "each has its own");
    first.read(1 << 16, &mut [0]).expect_err("outside");
    first.write(u64::MAX, &[0]).expect_err("outside");
    first.word(4).expect_err("no word begins there");
    let word = first.word(0).expect("inside").load(Relaxed);
    assert_eq!(word.to_le_bytes(), *b"\0\0\0\0\0our");
}

#[test]
fn every_end_has_its_reason() {
    let fake = Fake::start(2);
    let (mut a, mut b) = (attach(&fake.doors[0]), attach(&fake.doors[1]));
    let only_puts = Access {
        put: true,
        get: false,
        atomic: false,
    };
    let closed = registered(&mut b, only_puts);
    let open = registered(&mut b, Access::ALL);
    let at = |offset| Remote { offset, ..open };
    let nobody = Remote {
        processor: 9,
        ..open
    };
    let far = Local {
        offset: 1 << 16,
        bytes: 8,
    };
    let add = AtomicOp::Add;
    let cases: [(Result<(), Error>, Status); 10] = [
        (a.put(2, at(120), b"12345678", false), Status::Done),
        (a.put(2, at(121), b"12345678", false), Status::OutOfBounds),
        (a.put(2, at(u64::MAX), b"1", false), Status::OutOfBounds),
        (a.put(2, nobody, b"1", false), Status::NoHandle),
        (a.get(2, closed, PART), Status::Forbidden),
        (a.get(2, open, far), Status::NotInSegment),
        (a.atomic(2, at(4), add, [1, 0], true), Status::Misaligned),
        (a.send(2, 9, 0, PART), Status::NoProcessor),
        (a.receive(2, far), Status::NotInSegment),
        (a.deregister(2, open.handle), Status::NotYours),
    ];
    for (n, (posted, status)) in cases.into_iter().enumerate() {
        posted.expect("there is room");
        assert_eq!(ended(&mut a), (2, status, 0), "case {n}");
    }
    assert_eq!(a.under_way(), 0);
    let too_long = a.put(2, open, &[0; 65], false);
    assert_eq!(too_long, Err(Error::Entry(EntryError::Length)));
    let word = b.word(64 + 120).expect("inside").load(Acquire);
    assert_eq!(word, u64::from_le_bytes(*b"12345678"));
}

#[test]
fn a_receive_is_taken_back_or_has_its_message() {
    let fake = Fake::start(1);
    let (mut a, mut b) = (attach(&fake.doors[0]), attach(&fake.doors[0]));
    a.receive(5, PART).expect("there is room");
    a.take_back(5).expect("there is room");
    a.take_back(6).expect("there is room");
    assert_eq!(ended(&mut a), (5, Status::Done, 1));
    assert_eq!(ended(&mut a), (6, Status::Done, 0));
    assert_eq!(a.under_way(), 0);
    a.receive(8, PART).expect("there is room");
    a.flush();
    b.write(PART.offset, b"message").expect("inside");
    b.send(1, 0, a.member(), PART).expect("there is room");
    assert_eq!(ended(&mut b), (1, Status::Done, 0));
    let received = Completion::Received {
        name: 8,
        status: Status::Done,
        processor: 0,
        bytes: PART.bytes,
    };
    assert_eq!(a.wait(LONG), Ok(Some(received)));
    let mut found = [0; 7];
    a.read(PART.offset, &mut found).expect("inside");
    assert_eq!(&found, b"message");
}

#[test]
fn more_commands_than_all_rings_hold_are_carried_out() {
    let fake = Fake::start(2);
    let (mut a, mut b) = (attach(&fake.doors[0]), attach(&fake.doors[1]));
    let counter = registered(&mut b, Access::ALL);
    const ALL: u64 = 20_000;
    let (mut posted, mut ends) = (0, 0);
    while ends < ALL {
        if posted < ALL {
            match a.atomic(posted, counter, AtomicOp::Add, [1, 0], true) {
                Ok(()) => {
                    posted += 1;
                    continue;
                }
                Err(error) => assert_eq!(error, Error::Full),
            }
        }
        match a.wait(LONG).expect("it runs") {
            Some(Completion::End { name, word, .. }) => {
                assert_eq!((name, word), (ends, ends));
                ends += 1;
            }
            // There is room for commands again.
            None => assert!(posted < ALL),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(a.under_way(), 0);
}

#[test]
fn waiting_ends_in_time_or_when_the_other_side_is_gone() {
    let mut fake = Fake::start(1);
    let mut nic = attach(&fake.doors[0]);
    nic.receive(1, PART).expect("there is room");
    let start = Instant::now();
    assert_eq!(nic.wait(Some(Duration::from_millis(50))), Ok(None));
    let took = start.elapsed();
    assert!((50..5_000).contains(&took.as_millis()), "{took:?}");

    // A separate event loop: nothing to do, then woken by a completion.
    assert!(nic.arm());
    nic.disarm();
    nic.take_back(1).expect("there is room");
    if nic.arm() {
        let mut wanted = [nix::poll::PollFd::new(
            nic.fd(),
            nix::poll::PollFlags::POLLIN,
        )];
        let woken = nix::poll::poll(&mut wanted, nix::poll::PollTimeout::from(30_000_u16));
        assert_eq!(woken, Ok(1));
    }
    nic.disarm();
    assert_eq!(ended(&mut nic), (1, Status::Done, 1));

    let sleeper = std::thread::spawn(move || (nic.wait(LONG), nic));
    std::thread::sleep(Duration::from_millis(50));
    fake.stop();
    let (found, mut nic) = sleeper.join().expect("it does not panic");
    assert_eq!(found, Err(Error::Gone));
    let polled = (0..100_000).find_map(|_| nic.poll().err());
    assert_eq!(polled, Some(Error::Gone));
}

#[test]
fn a_program_that_leaves_takes_its_memory_with_it() {
    let fake = Fake::start(2);
    let (mut a, mut b) = (attach(&fake.doors[0]), attach(&fake.doors[1]));
    let there = registered(&mut b, Access::ALL);
    a.put(1, there, b"here", false).expect("there is room");
    assert_eq!(ended(&mut a).1, Status::Done);
    drop(b);
    // The NIC removes the program only when it has nothing else to do.
    let is_gone = (0..1_000).any(|_| {
        std::thread::sleep(Duration::from_millis(1));
        a.put(1, there, b"here", false).expect("there is room");
        ended(&mut a).1 == Status::NoHandle
    });
    assert!(is_gone);
    assert_eq!(attach(&fake.doors[1]).member(), 0);
}

/// Attaches to a socket that is served only by `answer`.
fn refused(options: &Options, answer: impl FnOnce(UnixStream) + Send + 'static) -> AttachError {
    let directory = tempfile::tempdir().expect("there is room");
    let door = directory.path().join("door");
    let listener = UnixListener::bind(&door).expect("the path is new");
    let server = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("somebody comes");
        let mut hello = [0; HELLO_BYTES];
        socket.read_exact(&mut hello).expect("it says hello");
        answer(socket);
    });
    let found = Nic::attach(&door, options).expect_err("it is wrong");
    server.join().expect("it has answered");
    let text = found.to_string();
    println!("{text}");
    assert!(text.starts_with(&format!("{}: ", door.display())), "{text}");
    found
}

fn welcome(data_bytes: u64) -> [u8; HELLO_BYTES] {
    let mut message = [0xa5; HELLO_BYTES];
    Welcome {
        entry: Entry::Welcome,
        member: 0,
        processor: 0,
        longest_put: 64,
        operations: Operations::ALL,
        is_virtual: false,
        data_bytes,
    }
    .emit(&mut message);
    message
}

#[test]
fn other_files_than_doors_are_refused_with_a_reason() {
    let send = |bytes: Vec<u8>| {
        move |mut socket: UnixStream| socket.write_all(&bytes).expect("it is read")
    };
    for entry in Entry::ALL.into_iter().skip(1) {
        let mut message = [0; HELLO_BYTES];
        Welcome::refused(entry).emit(&mut message);
        let found = refused(&OPTIONS, send(message.to_vec()));
        assert!(matches!(found, AttachError::Refused { entry: e, .. } if e == entry));
    }
    let found = refused(&OPTIONS, send(vec![0; HELLO_BYTES]));
    assert!(matches!(found, AttachError::NotADoor { .. }), "{found:?}");
    let mut message = welcome(1 << 16);
    message[4] = 9;
    let found = refused(&OPTIONS, send(message.to_vec()));
    let is_version = |e| e == EntryError::Version;
    assert!(matches!(found, AttachError::NotUnderstood { error, .. } if is_version(error)));
    for short in [0, 1, HELLO_BYTES - 1] {
        let found = refused(&OPTIONS, send(welcome(1 << 16)[..short].to_vec()));
        assert!(matches!(found, AttachError::Broke { .. }), "{found:?}");
    }
    let found = refused(&OPTIONS, send(welcome(1 << 16).to_vec()));
    assert!(matches!(found, AttachError::Unfit { .. }), "{found:?}");
}

#[test]
fn unfit_descriptors_are_refused() {
    // Actual bytes of memory, bytes announced in the welcome, and number of events sent.
    for (actual, announced, events) in [
        (1 << 16, 1 << 17, 2),
        (1 << 17, 1 << 16, 2),
        (0, 0, 2),
        (1 << 16, 1 << 16, 1),
    ] {
        let found = refused(&OPTIONS, move |socket| {
            let (_, memory) = Mapping::create(actual).expect("there is memory");
            let event = Event::new().expect("there are descriptors");
            let all = [memory.as_fd(), event.as_fd(), event.as_fd()];
            let with = &all[..1 + events];
            descriptors::send(&socket, &welcome(announced), with).expect("it is read");
        });
        assert!(matches!(found, AttachError::Unfit { .. }), "{found:?}");
    }
    // An event in place of memory; too many descriptors.
    for count in [3, 4, 200] {
        let found = refused(&OPTIONS, move |socket| {
            let event = Event::new().expect("there are descriptors");
            let all = vec![event.as_fd(); count];
            descriptors::send(&socket, &welcome(1 << 16), &all).expect("it is read");
        });
        match count {
            3 => assert!(matches!(found, AttachError::Unfit { .. }), "{found:?}"),
            _ => assert!(matches!(found, AttachError::Broke { .. }), "{found:?}"),
        }
    }
}

#[test]
fn a_door_without_a_listener_fails_at_once() {
    for path in ["/nonexistent/door", "/tmp", &"x".repeat(200), ""] {
        let found = Nic::attach(path, &OPTIONS).expect_err("nobody listens");
        assert!(matches!(found, AttachError::Connect { .. }), "{found:?}");
    }
    let data_bytes = (1 << 32) + 1;
    let member = Some(255);
    for options in [
        Options {
            data_bytes,
            ..OPTIONS
        },
        Options { member, ..OPTIONS },
    ] {
        let found = Nic::attach("/nonexistent/door", &options).expect_err("no such options");
        assert!(matches!(found, AttachError::Options { .. }), "{found:?}");
    }
}

/// Every node has a control socket beside its door, which would not answer.
#[test]
fn a_control_socket_is_recognised_at_once() {
    let lab = tempfile::tempdir().expect("there is room");
    let at = |name: &str| lab.path().join(name);
    let names = ["nic0.sock", "nic0.door", "nic1.door", "r0.sock"];
    let _all = names.map(|name| UnixListener::bind(at(name)).expect("the path is new"));
    let patience = Duration::from_secs(20);
    let error = |name: &str| {
        let start = Instant::now();
        let found = Nic::attach_within(at(name), &OPTIONS, patience).expect_err("no door");
        assert!(start.elapsed() < patience, "{found}");
        found
    };
    for (name, what) in [
        ("nic0.sock", "its door is "),
        ("r0.sock", "a node without a door"),
    ] {
        let found = error(name);
        assert!(matches!(found, AttachError::NotADoor { .. }), "{found:?}");
        assert!(found.to_string().contains(what), "{found}");
    }
    let found = error("nic9.door").to_string();
    assert!(
        found.contains("doors there: nic0.door, nic1.door"),
        "{found}"
    );
}

/// A service that greets with a line, and keeps the connection.
#[test]
fn another_service_is_recognised_by_its_answer() {
    let directory = tempfile::tempdir().expect("there is room");
    let path = directory.path().join("service");
    let listener = UnixListener::bind(&path).expect("the path is new");
    let service = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("it connects");
        socket.write_all(b"220 ready\r\n").expect("it is read");
        let _ = socket.read_to_end(&mut Vec::new());
    });
    let found = Nic::attach_within(&path, &OPTIONS, Duration::from_secs(20));
    let found = found.expect_err("it is no door");
    assert!(matches!(found, AttachError::NotADoor { .. }), "{found:?}");
    service.join().expect("it ends with the connection");
}

#[test]
fn a_silent_door_times_out() {
    let directory = tempfile::tempdir().expect("there is room");
    let door = directory.path().join("door");
    let _listener = UnixListener::bind(&door).expect("the path is new");
    let start = Instant::now();
    let patience = Duration::from_secs(1);
    let found = Nic::attach_within(&door, &OPTIONS, patience).expect_err("nobody answers");
    assert!(matches!(found, AttachError::Silent { .. }), "{found:?}");
    assert!(
        found.to_string().contains("no answer within 1 s"),
        "{found}"
    );
    assert!(found.to_string().contains("NODE.door"), "{found}");
    let took = start.elapsed().as_secs();
    assert!((1..20).contains(&took), "{took} s");
}

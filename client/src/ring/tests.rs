use super::*;
use nix::sys::eventfd::EventFd;
use phitwire_framing::door::segment::DATA_AT;
use phitwire_framing::door::{Local, Remote};
use std::thread;

const PART: Local = Local {
    offset: 0,
    bytes: 64,
};

fn pair() -> (ClientEnd, NicEnd) {
    let (ours, memory) = Mapping::create(0).expect("there is memory");
    let theirs = Mapping::open(memory, ours.data_bytes()).expect("it is right");
    (
        ClientEnd::new(Arc::new(theirs)),
        NicEnd::new(Arc::new(ours)),
    )
}

fn put(name: u64) -> Command<'static> {
    let to = Remote {
        processor: 1,
        handle: 2,
        offset: name,
    };
    let data = b"all of these bytes";
    let request = Request::Put {
        to,
        data,
        event: false,
        ordered: false,
    };
    Command { name, request }
}

fn receive(name: u64) -> Command<'static> {
    let request = Request::Receive { into: PART };
    Command { name, request }
}

fn end(name: u64, status: Status, word: u64) -> Completion {
    Completion::End {
        name,
        status,
        word,
        bytes: 0,
    }
}

/// Takes a command like a NIC: only if there is room for its completion.
fn take(nic: &mut NicEnd) -> Option<u64> {
    let mut entry = [0xa5; COMMAND_BYTES];
    let fits = nic.room().expect("the client is right") > 0;
    if !fits || !nic.command(&mut entry).expect("the client is right") {
        return None;
    }
    nic.taken();
    let command = Command::parse(&entry).expect("the client is right");
    if let Request::Put { .. } = command.request {
        assert_eq!(command, put(command.name));
    }
    Some(command.name)
}

#[test]
fn entries_keep_their_order_past_the_end_of_the_rings() {
    let (mut client, mut nic) = pair();
    let (mut posted, mut polled) = (0, 0);
    for round in 0..2_000 {
        for _ in 0..round % 37 {
            client.post(&put(posted)).expect("there is room");
            posted += 1;
        }
        assert!(!client.publish(), "nobody sleeps");
        while let Some(name) = take(&mut nic) {
            nic.complete(&end(name, Status::Done, !name));
        }
        assert!(!nic.publish(), "nobody sleeps");
        while let Some(found) = client.poll().expect("the other side is right") {
            assert_eq!(found, end(polled, Status::Done, !polled));
            polled += 1;
        }
        assert_eq!((polled, client.under_way()), (posted, 0));
    }
    assert!(posted > 5 * COMPLETIONS);
}

#[test]
fn nothing_is_seen_before_it_is_published() {
    let (mut client, mut nic) = pair();
    client.post(&put(7)).expect("there is room");
    assert!(!nic.has_commands());
    assert_eq!(take(&mut nic), None);
    assert!(!client.publish());
    assert!(nic.has_commands());
    assert_eq!(take(&mut nic), Some(7));
    nic.complete(&end(7, Status::Busy, 0));
    assert!(!client.has_completions());
    assert_eq!(client.poll(), Ok(None));
    assert!(!nic.publish());
    assert!(client.has_completions());
    assert_eq!(client.poll(), Ok(Some(end(7, Status::Busy, 0))));
    assert_eq!((client.poll(), client.unpublished()), (Ok(None), 1));
    assert!(!nic.has_more_room());
    assert!(!client.publish());
    assert!(nic.has_more_room());
    assert_eq!(nic.room(), Ok(COMPLETIONS));
    assert!(!nic.has_more_room());
}

#[test]
fn a_command_stays_until_it_is_taken() {
    let (mut client, mut nic) = pair();
    client.post(&put(1)).expect("there is room");
    client.post(&put(2)).expect("there is room");
    assert!(!client.publish());
    let mut entry = [0; COMMAND_BYTES];
    for name in [1, 2] {
        for _ in 0..3 {
            assert_eq!(nic.command(&mut entry), Ok(true));
            assert_eq!(Command::parse(&entry), Ok(put(name)));
        }
        nic.taken();
    }
    assert_eq!(nic.command(&mut entry), Ok(false));
}

#[test]
#[should_panic = "no entry to take"]
fn taking_from_an_empty_ring_panics() {
    pair().1.taken();
}

#[test]
#[should_panic = "no room for completions"]
fn no_completion_is_written_over_another() {
    let (_, mut nic) = pair();
    for name in 0..=COMPLETIONS {
        nic.complete(&end(name, Status::Done, 0));
    }
}

#[test]
fn a_full_ring_of_commands_takes_more_when_some_were_taken() {
    let (mut client, mut nic) = pair();
    for name in 0..COMMANDS {
        client.post(&receive(name)).expect("there is room");
    }
    client.sleeps(true);
    assert!(!client.publish());
    assert_eq!(take(&mut nic), Some(0));
    assert!(!nic.publish(), "the client did not ask for room");
    client.sleeps(false);

    client
        .post(&receive(COMMANDS))
        .expect("there is room for one");
    assert_eq!(client.post(&receive(9)), Err(PostError::Full));
    client.sleeps(true);
    assert!(!client.publish());
    assert!(!client.has_more_room());
    assert_eq!(take(&mut nic), Some(1));
    assert!(nic.publish(), "the client wants room");
    assert!(client.has_more_room() && !client.has_completions());
    client.sleeps(false);
    client.post(&receive(9)).expect("there is room for one");
    assert!(!client.has_more_room());
}

#[test]
fn outstanding_commands_fit_into_the_completion_ring() {
    let (mut client, mut nic) = pair();
    let mut post_all = |command: &Command<'_>, nic: &mut NicEnd| {
        let mut posted = 0;
        loop {
            match client.post(command) {
                Ok(()) => posted += 1,
                Err(PostError::Full) if client.under_way() % COMMANDS == 0 && posted > 0 => {
                    assert!(!client.publish());
                    let before = posted;
                    while take(nic).is_some() {}
                    assert!(!nic.publish());
                    match client.post(command) {
                        Ok(()) => posted += 1,
                        Err(_) => return (before, client.under_way()),
                    }
                }
                Err(error) => panic!("{error}"),
            }
        }
    };
    let receives = post_all(&receive(1), &mut nic);
    assert_eq!(receives, (MOST_RECEIVES, MOST_RECEIVES));
    assert_eq!(post_all(&put(1), &mut nic), (COMMANDS, COMPLETIONS));
    for _ in 0..COMPLETIONS {
        nic.complete(&end(1, Status::Done, 0));
    }
    assert_eq!(nic.room(), Ok(0));
    assert!(!nic.publish());
    nic.sleeps_until_room();
    assert!(!nic.has_more_room());
    assert!(client.poll().expect("it is right").is_some());
    assert_eq!(client.under_way(), COMPLETIONS - 1);
    assert!(client.publish(), "the network interface wants room");
    assert!(nic.has_more_room());
    nic.sleeps(true);
    assert!(client.poll().expect("it is right").is_some());
    assert!(!client.publish(), "there are no new commands");
}

#[test]
fn a_receive_taken_back_has_ended() {
    let take_back = |name| Command {
        name,
        request: Request::CancelReceive,
    };
    let (mut client, mut nic) = pair();
    // The second take-back is too late, since its receive has a message. Names have 48 bits.
    for name in [1, 2] {
        client.post(&receive(name)).expect("there is room");
        client
            .post(&take_back(name | 1 << 60))
            .expect("there is room");
    }
    assert!(!client.publish());
    let received = Completion::Received {
        name: 2,
        status: Status::Done,
        processor: 3,
        bytes: 64,
    };
    let block_event = Completion::BlockEvent {
        processor: 3,
        handle: 1,
        word: 1,
    };
    let steps = [
        (block_event, 4),
        (end(1, Status::Done, 1), 2),
        (received, 1),
        (end(2, Status::Done, 0), 0),
    ];
    for (completion, under_way) in steps {
        nic.complete(&completion);
        assert!(!nic.publish());
        assert_eq!(client.poll(), Ok(Some(completion)));
        assert_eq!(client.under_way(), under_way);
    }
    nic.complete(&end(1, Status::Done, 0));
    assert!(!nic.publish());
    assert_eq!(client.poll(), Err(Broken::Unasked));
    assert_eq!(client.poll(), Err(Broken::Unasked));
}

/// The parts of the error about an index.
fn broken<T>(result: Result<T, Broken>) -> (&'static str, u64, u64, u64) {
    match result.map(|_| ()) {
        Err(Broken::Index {
            what,
            is,
            least,
            most,
        }) => (what, is, least, most),
        other => panic!("{other:?}"),
    }
}

#[test]
fn indices_of_a_hostile_client_are_refused() {
    let (mut client, mut nic) = pair();
    let set = |nic: &NicEnd, at, value| nic.mapping.word(at).store(value, Relaxed);
    for name in 0..3 {
        client.post(&put(name)).expect("there is room");
    }
    assert!(!client.publish());
    for name in 0..3 {
        assert_eq!(take(&mut nic), Some(name));
    }
    assert!(!nic.publish());
    let mut entry = [0; COMMAND_BYTES];
    for tail in [0, 2, 3 + COMMANDS + 1, u64::MAX] {
        set(&nic, COMMANDS_TAIL_AT, tail);
        let expected = ("tail of commands", tail, 3, 3 + COMMANDS);
        assert_eq!(broken(nic.command(&mut entry)), expected);
    }
    set(&nic, COMMANDS_TAIL_AT, 3 + COMMANDS);
    assert_eq!(nic.command(&mut entry), Ok(true));

    for name in 0..5 {
        nic.complete(&end(name, Status::Done, 0));
    }
    // Not published yet, so the client cannot have taken it.
    set(&nic, COMPLETIONS_HEAD_AT, 1);
    assert_eq!(broken(nic.room()), ("head of completions", 1, 0, 0));
    assert!(!nic.publish());
    set(&nic, COMPLETIONS_HEAD_AT, 4);
    assert_eq!(nic.room(), Ok(COMPLETIONS - 1));
    for head in [0, 3, 6, u64::MAX] {
        set(&nic, COMPLETIONS_HEAD_AT, head);
        assert_eq!(broken(nic.room()), ("head of completions", head, 4, 5));
    }
    // The NIC must not read its own indices back.
    set(&nic, COMMANDS_HEAD_AT, u64::MAX);
    set(&nic, COMPLETIONS_TAIL_AT, u64::MAX);
    set(&nic, COMPLETIONS_HEAD_AT, 5);
    assert_eq!(nic.room(), Ok(COMPLETIONS));
    assert_eq!(nic.command(&mut entry), Ok(true));
}

#[test]
fn indices_and_entries_of_a_hostile_network_interface_are_refused() {
    let (mut client, nic) = pair();
    let set = |at, value| nic.mapping.word(at).store(value, Relaxed);
    set(COMPLETIONS_TAIL_AT, COMPLETIONS + 1);
    let expected = ("tail of completions", COMPLETIONS + 1, 0, COMPLETIONS);
    assert_eq!(broken(client.poll()), expected);
    for name in 0..COMMANDS {
        client.post(&put(name)).expect("there is room");
    }
    set(COMMANDS_HEAD_AT, 1);
    match client.post(&put(0)) {
        Err(PostError::Broken(error)) => {
            assert_eq!(broken::<()>(Err(error)), ("head of commands", 1, 0, 0));
        }
        other => panic!("{other:?}"),
    }
    set(COMPLETIONS_TAIL_AT, 1);
    for (at, reason) in [(0, EntryError::Kind), (1, EntryError::Code)] {
        let mut entry = [0; COMPLETION_BYTES];
        entry[at] = 0xff;
        nic.mapping
            .write(completion_at(0), &entry)
            .expect("inside of it");
        assert_eq!(client.poll(), Err(Broken::Entry(reason)));
        assert_eq!(client.poll(), Err(Broken::Entry(reason)));
    }
    assert!(completion_at(COMPLETIONS - 1) + COMPLETION_BYTES <= DATA_AT);
}

#[test]
fn a_million_entries_of_two_threads() {
    const ALL: u64 = 1_000_000;
    let (mut client, mut nic) = pair();
    let server = thread::spawn(move || {
        let mut done = 0;
        while done < ALL {
            while let Some(name) = take(&mut nic) {
                nic.complete(&end(name, Status::Done, name * 3));
                done += 1;
            }
            assert!(!nic.publish(), "nobody sleeps");
            thread::yield_now();
        }
    });
    let (mut posted, mut polled) = (0, 0);
    while polled < ALL {
        while posted < ALL && client.post(&put(posted)).is_ok() {
            posted += 1;
        }
        while let Some(found) = client.poll().expect("the other side is right") {
            assert_eq!(found, end(polled, Status::Done, polled * 3));
            polled += 1;
        }
        assert!(!client.publish(), "nobody sleeps");
        thread::yield_now();
    }
    server.join().expect("the other side is right");
}

/// Both sides sleep after a varying time without work, so that one publishes just as the other goes
/// to sleep. A lost wake would hang this test, as happens occasionally without the fences.
#[test]
fn no_wake_up_is_lost() {
    const ALL: u64 = 100_000;
    let (mut client, mut nic) = pair();
    let events = || Arc::new(EventFd::new().expect("there are descriptors"));
    let (to_nic, to_client) = (events(), events());
    let wake = |event: &EventFd| assert_eq!(event.write(1), Ok(8));
    let nap = |event: &EventFd| assert!(event.read().is_ok());
    let server = thread::spawn({
        let (to_nic, to_client) = (to_nic.clone(), to_client.clone());
        move || {
            let mut done = 0;
            while done < ALL {
                while let Some(name) = take(&mut nic) {
                    nic.complete(&end(name, Status::Done, 0));
                    done += 1;
                }
                if nic.publish() {
                    wake(&to_client);
                }
                let moment = done * 7 % 61;
                let has_more = (0..moment).any(|_| nic.has_commands());
                nic.sleeps(true);
                if !has_more && !nic.has_commands() && done < ALL {
                    nap(&to_nic);
                }
                nic.sleeps(false);
            }
        }
    });
    let (mut posted, mut polled) = (0, 0);
    while polled < ALL {
        // Mostly single commands, sometimes a burst.
        let burst = if posted % 64 == 0 { 10 } else { 1 };
        while posted < ALL && client.under_way() < burst {
            client.post(&put(posted)).expect("there is room");
            posted += 1;
        }
        if client.publish() {
            wake(&to_nic);
        }
        let moment = polled * 5 % 67;
        let has_more = (0..moment).any(|_| client.has_completions());
        client.sleeps(true);
        if !has_more && !client.has_completions() {
            nap(&to_client);
        }
        client.sleeps(false);
        while client.poll().expect("the other side is right").is_some() {
            polled += 1;
        }
    }
    server.join().expect("the other side is right");
}

//! A program that writes anything into its rings.

use super::*;

/// An attached program that violates the protocol.
struct Rogue {
    _socket: UnixStream,
    mapping: Mapping,
    events: [fs::File; 2],
}

impl Rogue {
    fn new(pair: &Pair) -> Self {
        let mut socket = UnixStream::connect(pair.door("nic0")).unwrap();
        let hello = Hello {
            member: ANY_MEMBER,
            job: JOB + 1,
            data_bytes: DATA,
        };
        let mut message = [0; HELLO_BYTES];
        hello.emit(&mut message);
        socket.write_all(&message).unwrap();
        let mut room = nix::cmsg_space!([i32; 3]);
        let (mut parts, flags) = ([IoSliceMut::new(&mut message)], MsgFlags::empty());
        let got = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut room), flags).unwrap();
        let rights = got.cmsgs().unwrap().find_map(|part| match part {
            ControlMessageOwned::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        });
        let own = |raw: &i32| {
            // SAFETY: the kernel has just opened the descriptor for this process.
            unsafe { OwnedFd::from_raw_fd(*raw) }
        };
        let mut descriptors: Vec<OwnedFd> = rights.unwrap().iter().map(own).collect();
        let welcome = Welcome::parse(&message).unwrap();
        assert_eq!(welcome.entry, Entry::Welcome);
        let events = [descriptors.remove(1), descriptors.remove(1)].map(fs::File::from);
        Self {
            _socket: socket,
            mapping: Mapping::open(descriptors.remove(0), welcome.data_bytes).unwrap(),
            events,
        }
    }

    fn wake(&self) {
        let _ = (&self.events[0]).write(&1_u64.to_ne_bytes());
    }

    /// Makes the events blocking: a read or write that cannot complete would then block forever.
    fn block_events(&self) {
        for event in &self.events {
            let clear = FcntlArg::F_SETFL(OFlag::empty());
            fcntl(event, clear).expect("a descriptor of its own");
        }
    }

    /// Writes random bytes wherever the NIC reads.
    fn scribble(&self, rng: &mut Rng) {
        let mut rubbish = vec![0; DATA_AT - 4096];
        for chunk in rubbish.chunks_mut(8) {
            let word = rng.next_u64().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
        if rng.chance(1, 2) {
            for entry in rubbish
                .as_chunks_mut::<COMMAND_BYTES>()
                .0
                .iter_mut()
                .take(1024)
            {
                hostile(rng, entry);
            }
        }
        self.mapping.write(4096, &rubbish).unwrap();
        for at in [
            COMMANDS_HEAD_AT,
            COMPLETIONS_TAIL_AT,
            NIC_SLEEPS_AT,
            CLIENT_SLEEPS_AT,
        ] {
            let word = rng.next_u64() >> rng.below(64);
            self.mapping.word(at).store(word, Ordering::SeqCst);
        }
        let tail = self.mapping.word(COMMANDS_TAIL_AT);
        if rng.chance(3, 4) {
            tail.store(1 + rng.below(1024), Ordering::SeqCst);
        } else {
            let word = rng.next_u64() >> rng.below(64);
            tail.store(word, Ordering::SeqCst);
            self.mapping
                .word(COMPLETIONS_HEAD_AT)
                .store(word, Ordering::SeqCst);
        }
        self.wake();
    }
}

/// A command with random fields.
fn hostile(rng: &mut Rng, entry: &mut [u8; COMMAND_BYTES]) {
    let at = Remote {
        processor: rng.below(3) as u16,
        handle: rng.below(40) as u16,
        offset: rng.next_u64() >> rng.below(64),
    };
    let part = Local {
        offset: rng.next_u64() >> rng.below(64),
        bytes: rng.next_u64() >> rng.below(64),
    };
    let (event, fence, data) = (Some(rng.next_u64()), rng.chance(1, 9), [0x66; 64]);
    let request = match rng.below(13) {
        0 => Request::Put {
            to: at,
            data: &data[..1 + rng.below(64) as usize],
            event: true,
            ordered: fence,
        },
        1 => Request::Get {
            from: at,
            into: Local {
                bytes: rng.below(80),
                ..part
            },
            ordered: fence,
        },
        2 => Request::Atomic {
            at,
            op: AtomicOp::Add,
            width: Width::Bits64,
            operands: [1, 0],
            fetch: true,
            ordered: fence,
        },
        3 => Request::BlockPut {
            to: at,
            from: part,
            event,
            fence,
        },
        4 => Request::BlockGet {
            from: at,
            into: part,
            fence,
        },
        5 => Request::Send {
            processor: at.processor,
            member: rng.below(3) as u8,
            from: part,
        },
        6 => Request::Receive { into: part },
        7 => Request::CancelReceive,
        8 => Request::Register {
            part,
            access: Access::ALL,
        },
        9 => Request::Deregister { handle: at.handle },
        10 => Request::Collective(CollectiveRequest::SetUp {
            engine: rng.below(5) as u8,
            rank: rng.below(2) as u16,
            branching: rng.below(34) as u8,
            epoch: rng.below(4) as u32,
            patience_ms: rng.below(30) as u32,
            processors: part,
        }),
        11 => Request::Collective(CollectiveRequest::Join {
            engine: rng.below(5) as u8,
            op: Reduction::SumI64,
            word: 1,
            location: 0,
        }),
        _ => Request::Collective(CollectiveRequest::Leave {
            engine: rng.below(5) as u8,
        }),
    };
    let name = rng.below(8);
    Command { name, request }.emit(entry).expect("it is one");
}

#[test]
fn garbage_in_rings_harms_no_other_program() {
    let pair = Pair::new();
    let honest = Honest::start(&pair);
    let before = honest.held(&pair, "nic0");
    let mut rng = Rng::new(9, 9);
    for _ in 0..40 {
        let rogue = Rogue::new(&pair);
        if rng.chance(1, 2) {
            rogue.block_events();
        }
        for _ in 0..1 + rng.below(4) {
            rogue.scribble(&mut rng);
            thread::sleep(Duration::from_millis(rng.below(4)));
        }
        honest.go_on(1);
    }
    let gone = || pair.counter("nic0", "door.clients") == 1;
    wait_for(gone, "the end of the rogues");
    wait_for(|| pair.held("nic0") == before, "what they held");
    assert!(pair.counter("nic0", "door.dismissed") > 0);
    let [commands, malformed] =
        ["commands", "malformed"].map(|name| pair.counter("nic0", &format!("door.{name}")));
    assert!(
        malformed > 100 && commands - malformed > 1_000,
        "{commands}, {malformed}"
    );
    honest.go_on(3);
    honest.end();
}

#[test]
fn kept_descriptors_and_silent_connections_delay_no_other_program() {
    let pair = Pair::new();
    let honest = Honest::start(&pair);
    let before = honest.held(&pair, "nic0");
    // These programs have exited, but their events and memory are kept, and wake the node.
    let kept: Vec<_> = (0..20)
        .map(|_| {
            let Rogue {
                mapping, events, ..
            } = Rogue::new(&pair);
            (mapping, events)
        })
        .collect();
    wait_for(|| pair.counter("nic0", "door.gone") == 20, "their end");
    for (mapping, events) in &kept {
        let _ = (&events[0]).write(&1_u64.to_ne_bytes());
        mapping.word(COMMANDS_TAIL_AT).store(7, Ordering::SeqCst);
    }
    wait_for(|| pair.held("nic0") == before, "what they held");
    let turns = || pair.counter("nic0", "loop.turns");
    honest.go_on(3);
    // Connections that send nothing, half of a hello, or something else.
    let mut silent = Vec::new();
    for n in 0..60 {
        let mut stream = UnixStream::connect(pair.door("nic0")).unwrap();
        match n % 3 {
            0 => {}
            1 => stream.write_all(&[0x70; 7]).unwrap(),
            _ => {
                stream.write_all(&[0x71; HELLO_BYTES]).unwrap();
                let mut answer = [0; HELLO_BYTES];
                stream.read_exact(&mut answer).unwrap();
                let welcome = Welcome::parse(&answer).unwrap();
                assert_eq!(welcome.entry, Entry::NotUnderstood);
            }
        }
        silent.push(stream);
    }
    drop(pair.attach("nic0", JOB + 5));
    honest.go_on(3);
    // Attach until the limit; the next program must get an error.
    let mut all = Vec::new();
    let refused = loop {
        let options = Options {
            job: JOB + 10 + all.len() as u64,
            member: None,
            data_bytes: 0,
        };
        match Nic::attach(pair.door("nic0"), &options) {
            Ok(nic) => all.push(nic),
            Err(error) => break error.to_string(),
        }
    };
    assert_eq!(all.len(), 63, "{refused}");
    assert!(
        refused.contains("the NIC has reached its limit of programs"),
        "{refused}"
    );
    drop(all);
    drop(silent);
    let gone = || pair.counter("nic0", "door.clients") == 1;
    wait_for(gone, "their end");
    honest.go_on(1);
    honest.end();
    // Without work, the node must sleep, even if others hold descriptors.
    thread::sleep(Duration::from_millis(200));
    let begin = turns();
    thread::sleep(Duration::from_millis(500));
    let per_second = 2 * (turns() - begin);
    assert!(per_second < 5_000, "{per_second} turns a second at rest");
}

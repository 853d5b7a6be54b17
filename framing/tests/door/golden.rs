//! Golden entries and messages, all self-made. Each is written field by field, at the offsets in
//! the module docs, and as its decoded value.

use phitwire_framing::door::hello::{ANY_MEMBER, Entry, Hello, Operations, Welcome};
use phitwire_framing::door::segment::{
    COMMANDS, COMMANDS_AT, COMPLETIONS, COMPLETIONS_AT, DATA_AT, command_at, completion_at,
};
use phitwire_framing::door::{
    Access, AtomicOp, CollectiveRequest, Command, Completion, EntryError, Local, Reduction, Remote,
    Request, Status, Width,
};

/// Fields at their offsets, the rest zero.
pub fn laid<const N: usize>(fields: &[(usize, &[u8])]) -> [u8; N] {
    let mut bytes = [0; N];
    for (at, field) in fields {
        bytes[*at..at + field.len()].copy_from_slice(field);
    }
    bytes
}

const REMOTE: Remote = Remote {
    processor: 0x0102,
    handle: 0x0304,
    offset: 0x11_2233_4455,
};
const LOCAL: Local = Local {
    offset: 0x0a0b_0c0d,
    bytes: 0x1_0000,
};
const WHERE: (usize, &[u8]) = (4, &[2, 1, 4, 3]);
const OFFSET: (usize, &[u8]) = (16, &[0x55, 0x44, 0x33, 0x22, 0x11]);
const DATA: (usize, &[u8]) = (24, &[0x0d, 0x0c, 0x0b, 0x0a, 0, 0, 0, 0, 0, 0, 1]);
const NAME: (usize, &[u8]) = (8, &[6, 5, 4, 3, 2, 1]);

/// One command of each kind: its name, bytes and decoded request.
pub fn commands() -> Vec<(&'static str, [u8; 128], Request<'static>)> {
    let all = |name, fields: &[(usize, &[u8])], request| {
        let with_name = [fields, &[NAME]].concat();
        (name, laid(&with_name), request)
    };
    let put = Request::Put {
        to: REMOTE,
        data: b"phits",
        event: true,
        ordered: true,
    };
    let get = Request::Get {
        from: REMOTE,
        into: LOCAL,
        ordered: true,
    };
    let atomic = Request::Atomic {
        at: REMOTE,
        op: AtomicOp::CompareSwap,
        width: Width::Bits32,
        operands: [0x77, 0x88],
        fetch: true,
        ordered: false,
    };
    let block_put = Request::BlockPut {
        to: REMOTE,
        from: LOCAL,
        event: Some(0x99),
        fence: true,
    };
    let block_get = Request::BlockGet {
        from: REMOTE,
        into: LOCAL,
        fence: true,
    };
    let send = Request::Send {
        processor: 0x0102,
        member: 9,
        from: LOCAL,
    };
    let access = Access {
        put: true,
        get: false,
        atomic: true,
    };
    let register = Request::Register {
        part: LOCAL,
        access,
    };
    let word = (40, &[0x99][..]);
    let operands = [(40, &[0x77][..]), (48, &[0x88])];
    vec![
        all(
            "put",
            &[(0, &[0, 3, 0, 5]), WHERE, OFFSET, (64, b"phits")],
            put,
        ),
        all("get", &[(0, &[1, 2]), WHERE, OFFSET, DATA], get),
        all(
            "atomic",
            &[(0, &[2, 9, 6]), WHERE, OFFSET, operands[0], operands[1]],
            atomic,
        ),
        all(
            "block-put",
            &[(0, &[3, 5]), WHERE, OFFSET, DATA, word],
            block_put,
        ),
        all("block-get", &[(0, &[4, 4]), WHERE, OFFSET, DATA], block_get),
        all("send", &[(0, &[5, 0, 9]), (4, &[2, 1]), DATA], send),
        all(
            "receive",
            &[(0, &[6]), DATA],
            Request::Receive { into: LOCAL },
        ),
        all("take-back", &[(0, &[7])], Request::CancelReceive),
        all("register", &[(0, &[8, 0, 5]), DATA], register),
        all(
            "deregister",
            &[(0, &[9]), (6, &[4, 3])],
            Request::Deregister { handle: 0x0304 },
        ),
        all(
            "collective-set-up",
            &[
                (0, &[16, 0, 3]),
                (4, &[2, 1, 8]),
                DATA,
                word,
                (48, &[0xe8, 3]),
            ],
            Request::Collective(CollectiveRequest::SetUp {
                engine: 3,
                rank: 0x0102,
                branching: 8,
                epoch: 0x99,
                patience_ms: 1000,
                processors: LOCAL,
            }),
        ),
        all(
            "collective-join",
            &[(0, &[17, 0, 3]), (4, &[20]), operands[0], operands[1]],
            Request::Collective(CollectiveRequest::Join {
                engine: 3,
                op: Reduction::MinF64,
                word: 0x77,
                location: 0x88,
            }),
        ),
        all(
            "collective-leave",
            &[(0, &[18, 0, 3])],
            Request::Collective(CollectiveRequest::Leave { engine: 3 }),
        ),
    ]
}

/// One completion of each kind.
pub fn completions() -> Vec<(&'static str, [u8; 64], Completion)> {
    let name = 0x0102_0304_0506;
    let end = Completion::End {
        name,
        status: Status::WrongKey,
        word: 0x99,
        bytes: 0x1_0000,
    };
    let received = Completion::Received {
        name,
        status: Status::Aborted,
        processor: 0x0102,
        bytes: 0x1_0000,
    };
    let put_event = Completion::PutEvent {
        processor: 0x0102,
        handle: 0x0304,
        offset: 0x77,
        bytes: 5,
    };
    let block_event = Completion::BlockEvent {
        processor: 0x0102,
        handle: 0x0304,
        word: 0x99,
    };
    let from: (usize, &[u8]) = (2, &[2, 1, 4, 3]);
    let (word, bytes): (_, (usize, &[u8])) = ((16, &[0x99][..]), (24, &[0, 0, 1]));
    vec![
        ("end", laid(&[(0, &[0, 10]), NAME, word, bytes]), end),
        (
            "received",
            laid(&[(0, &[1, 17, 2, 1]), NAME, bytes]),
            received,
        ),
        (
            "put_event",
            laid(&[(0, &[2]), from, (24, &[5]), (32, &[0x77])]),
            put_event,
        ),
        ("block_event", laid(&[(0, &[3]), from, word]), block_event),
    ]
}

pub fn hello() -> ([u8; 24], Hello) {
    let job: (usize, &[u8]) = (8, &[8, 7, 6, 5, 4, 3, 2, 1]);
    let bytes = laid(&[(0, b"phwD\x03\x00\xff"), job, (16, &[0, 0, 1])]);
    let meaning = Hello {
        member: ANY_MEMBER,
        job: 0x0102_0304_0506_0708,
        data_bytes: 0x1_0000,
    };
    (bytes, meaning)
}

pub fn welcome() -> ([u8; 24], Welcome) {
    let here: (usize, &[u8]) = (8, &[2, 1, 64, 0, 0b1_1111]);
    let bytes = laid(&[(0, b"phwD\x03\x00\x00\x03"), here, (16, &[0, 0, 1])]);
    let meaning = Welcome {
        entry: Entry::Welcome,
        member: 3,
        processor: 0x0102,
        longest_put: 64,
        operations: Operations::ALL,
        is_virtual: false,
        data_bytes: 0x1_0000,
    };
    (bytes, meaning)
}

#[test]
fn commands_are_parsed() {
    for (name, bytes, request) in commands() {
        let expected = Command {
            name: 0x0102_0304_0506,
            request,
        };
        assert_eq!(Command::parse(&bytes), Ok(expected), "{name}");
    }
}

#[test]
fn commands_are_emitted() {
    for (kind, bytes, request) in commands() {
        let mut found = [0xa5; 128];
        let name = 0x0102_0304_0506;
        Command { name, request }
            .emit(&mut found)
            .expect("it is right");
        assert_eq!(found, bytes, "{kind}");
    }
}

#[test]
fn completions_are_parsed_and_emitted() {
    for (name, bytes, meaning) in completions() {
        assert_eq!(Completion::parse(&bytes), Ok(meaning), "{name}");
        let mut found = [0xa5; 64];
        meaning.emit(&mut found);
        assert_eq!(found, bytes, "{name}");
    }
}

#[test]
fn first_messages_are_parsed_and_emitted() {
    let mut found = [0xa5; 24];
    let (bytes, meaning) = hello();
    assert_eq!(Hello::parse(&bytes), Ok(meaning));
    meaning.emit(&mut found);
    assert_eq!(found, bytes);
    let mut found = [0xa5; 24];
    let (bytes, meaning) = welcome();
    assert_eq!(Welcome::parse(&bytes), Ok(meaning));
    meaning.emit(&mut found);
    assert_eq!(found, bytes);
    for entry in Entry::ALL {
        Welcome::refused(entry).emit(&mut found);
        assert_eq!(
            Welcome::parse(&found).map(|welcome| welcome.entry),
            Ok(entry)
        );
    }
}

#[test]
fn codes_are_those_that_are_written_down() {
    for (code, op) in AtomicOp::ALL.into_iter().enumerate() {
        assert_eq!(op as usize, code);
    }
    for (code, status) in Status::ALL.into_iter().enumerate() {
        assert_eq!(status as usize, code);
        let mut bytes = completions()[0].1;
        bytes[1] = code as u8;
        let found = Completion::parse(&bytes);
        assert!(matches!(found, Ok(Completion::End { status: s, .. }) if s == status));
    }
    assert_eq!((Width::Bits64.bytes(), Width::Bits32.bytes()), (8, 4));
}

#[test]
fn a_put_of_too_much_or_nothing_is_not_emitted() {
    for data in [&[][..], &[0; 65]] {
        let request = Request::Put {
            to: REMOTE,
            data,
            event: false,
            ordered: false,
        };
        let mut entry = [0xa5; 128];
        let found = Command { name: 0, request }.emit(&mut entry);
        assert_eq!(found, Err(EntryError::Length));
        assert_eq!(entry, [0xa5; 128]);
    }
}

#[test]
fn the_segment_is_as_drawn() {
    assert_eq!((command_at(0), completion_at(0)), (4096, 135_168));
    assert_eq!(command_at(COMMANDS - 1) + 128, COMPLETIONS_AT);
    assert_eq!(completion_at(COMPLETIONS - 1) + 64, 397_312);
    assert_eq!((COMMANDS_AT, DATA_AT), (4096, 458_752));
    assert_eq!(command_at(5 * COMMANDS + 3), command_at(3));
    assert_eq!(completion_at(5 * COMPLETIONS + 3), completion_at(3));
}

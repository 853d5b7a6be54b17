//! Properties of the door's formats for all values: round trips, unique encodings, no panic on any
//! bytes.

use crate::decode::{decode, decode_command, decode_completion, decode_hello, decode_welcome};
use phitwire_framing::door::{
    Access, AtomicOp, CollectiveRequest, Command, Completion, Local, Reduction, Remote, Request,
    Status, Width,
};
use proptest::prelude::*;

prop_compose! {
    fn remote()(processor: u16, handle: u16, offset: u64) -> Remote {
        Remote { processor, handle, offset }
    }
}

prop_compose! {
    fn local()(offset: u64, bytes: u64) -> Local {
        Local { offset, bytes }
    }
}

prop_compose! {
    fn access()(put: bool, get: bool, atomic: bool) -> Access {
        Access { put, get, atomic }
    }
}

fn atomic() -> impl Strategy<Value = Request<'static>> {
    let word = (0..AtomicOp::ALL.len(), any::<(bool, bool, bool)>());
    (remote(), word, any::<[u64; 2]>()).prop_map(|(at, (op, bits), operands)| {
        let (narrow, fetch, ordered) = bits;
        Request::Atomic {
            at,
            op: AtomicOp::ALL[op],
            width: if narrow { Width::Bits32 } else { Width::Bits64 },
            operands,
            fetch,
            ordered,
        }
    })
}

/// Any request except a put, which has data.
fn request() -> impl Strategy<Value = Request<'static>> {
    let event = proptest::option::of(any::<u64>());
    prop_oneof![
        (remote(), local(), any::<bool>()).prop_map(|(from, into, ordered)| Request::Get {
            from,
            into,
            ordered
        }),
        atomic(),
        (remote(), local(), event, any::<bool>()).prop_map(|(to, from, event, fence)| {
            Request::BlockPut {
                to,
                from,
                event,
                fence,
            }
        }),
        (remote(), local(), any::<bool>()).prop_map(|(from, into, fence)| Request::BlockGet {
            from,
            into,
            fence
        }),
        (any::<(u16, u8)>(), local()).prop_map(|((processor, member), from)| Request::Send {
            processor,
            member,
            from
        }),
        local().prop_map(|into| Request::Receive { into }),
        Just(Request::CancelReceive),
        (local(), access()).prop_map(|(part, access)| Request::Register { part, access }),
        any::<u16>().prop_map(|handle| Request::Deregister { handle }),
        collective().prop_map(Request::Collective),
    ]
}

fn collective() -> impl Strategy<Value = CollectiveRequest> {
    let op = (0..Reduction::ALL.len()).prop_map(|at| Reduction::ALL[at]);
    prop_oneof![
        (any::<(u8, u16, u8, u32, u32)>(), local()).prop_map(|(numbers, processors)| {
            let (engine, rank, branching, epoch, patience_ms) = numbers;
            CollectiveRequest::SetUp {
                engine,
                rank,
                branching,
                epoch,
                patience_ms,
                processors,
            }
        }),
        (op, any::<(u8, u64, u64)>()).prop_map(|(op, (engine, word, location))| {
            CollectiveRequest::Join {
                engine,
                op,
                word,
                location,
            }
        }),
        any::<u8>().prop_map(|engine| CollectiveRequest::Leave { engine }),
    ]
}

fn completion() -> impl Strategy<Value = Completion> {
    let status = || (0..Status::ALL.len()).prop_map(|code| Status::ALL[code]);
    prop_oneof![
        (status(), any::<[u64; 3]>()).prop_map(|(status, [name, word, bytes])| Completion::End {
            name,
            status,
            word,
            bytes
        }),
        (status(), any::<(u64, u16, u64)>()).prop_map(|(status, (name, processor, bytes))| {
            Completion::Received {
                name,
                status,
                processor,
                bytes,
            }
        }),
        any::<(u16, u16, u64, u64)>().prop_map(|(processor, handle, offset, bytes)| {
            Completion::PutEvent {
                processor,
                handle,
                offset,
                bytes,
            }
        }),
        any::<(u16, u16, u64)>().prop_map(|(processor, handle, word)| Completion::BlockEvent {
            processor,
            handle,
            word
        }),
    ]
}

fn comes_back(command: Command<'_>) {
    let mut entry = [0xa5; 128];
    command.emit(&mut entry).expect("it is right");
    assert_eq!(Command::parse(&entry), Ok(command));
}

proptest! {
    #[test]
    fn commands_come_back(name: u64, request in request()) {
        comes_back(Command { name, request });
    }

    #[test]
    fn puts_come_back(name: u64, to in remote(), event: bool, ordered: bool,
        data in prop::collection::vec(any::<u8>(), 1..=64))
    {
        comes_back(Command { name, request: Request::Put { to, data: &data, event, ordered } });
    }

    #[test]
    fn completions_come_back(completion in completion()) {
        let mut entry = [0xa5; 64];
        completion.emit(&mut entry);
        prop_assert_eq!(Completion::parse(&entry), Ok(completion));
    }

    #[test]
    fn any_bytes_have_one_form_or_none(bytes in prop::collection::vec(any::<u8>(), 0..=128)) {
        decode(&bytes);
    }

    /// Random bytes rarely pass the checks of reserved fields, but a slightly damaged valid entry
    /// does.
    #[test]
    fn damaged_entries_have_one_form_or_none(name: u64, request in request(),
        completion in completion(), changes in prop::collection::vec(any::<(u8, u8)>(), 1..4))
    {
        let mut entry = [0; 128];
        Command { name, request }.emit(&mut entry).expect("it is right");
        let mut end = [0; 64];
        completion.emit(&mut end);
        for (at, value) in changes {
            entry[usize::from(at % 128)] = value;
            end[usize::from(at % 64)] = value;
            let _ = (decode_command(&entry), decode_completion(&end));
        }
    }

    #[test]
    fn first_messages_have_one_form_or_none(mut message: [u8; 24], at in 7..16_usize) {
        message[..6].copy_from_slice(b"phwD\x03\x00");
        message[6] %= 8;
        let _ = (decode_hello(&message), decode_welcome(&message));
        message[7] = 0;
        prop_assert_eq!(decode_hello(&message), Ok(()));
        message[12..16].fill(0);
        prop_assert_eq!(decode_welcome(&message).is_ok(), message[6] < 7);
        message[at] ^= 1;
        prop_assert_eq!(decode_hello(&message).is_ok(), at != 7);
    }
}

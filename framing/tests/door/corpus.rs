//! Replays the fuzz corpus of the door, and verifies its generated part.

use crate::common::corpus::{Inputs, all_occur, inputs, neighbours, replay};
use crate::decode::{Outcome, decode};
use crate::golden::{commands, completions, hello, laid, welcome};
use phitwire_framing::door::EntryError;

fn changed(bytes: &[u8], at: usize, value: u8) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at] = value;
    bytes
}

fn all() -> Inputs {
    let put = commands()[0].1;
    let end = completions()[0].1;
    let (hello, _) = hello();
    let good = commands()
        .into_iter()
        .map(|(name, entry, _)| (name, entry.to_vec()));
    let ends = completions()
        .into_iter()
        .map(|(name, entry, _)| (name, entry.to_vec()));
    let messages = [("hello", hello.to_vec()), ("welcome", welcome().0.to_vec())];
    let full = laid::<128>(&[(0, &[0, 0, 0, 64]), (64, &[0xff; 64])]);
    let bad = [
        ("empty", vec![]),
        ("short", put[..127].to_vec()),
        ("full-put", full.to_vec()),
        ("kind", changed(&put, 0, 10)),
        ("flag", changed(&put, 1, 4)),
        ("unknown-flag", changed(&put, 1, 0x80)),
        ("operation", changed(&commands()[2].1, 2, 12)),
        ("access", changed(&commands()[8].1, 2, 8)),
        ("reduction", changed(&commands()[11].1, 4, 3)),
        ("long-epoch", changed(&commands()[10].1, 44, 1)),
        ("long-branching", changed(&commands()[10].1, 7, 1)),
        ("leave-with-rank", changed(&commands()[12].1, 4, 1)),
        ("empty-put", laid::<128>(&[]).to_vec()),
        ("long-put", changed(&put, 3, 65)),
        ("get-with-data", changed(&commands()[1].1, 3, 1)),
        ("behind-data", changed(&put, 69, 1)),
        ("reserved", changed(&put, 56, 1)),
        ("not-this-kinds", changed(&put, 40, 1)),
        ("completion-kind", changed(&end, 0, 4)),
        ("completion-status", changed(&end, 1, 23)),
        ("completion-reserved", changed(&end, 40, 1)),
        ("completion-not-this-kinds", changed(&end, 32, 1)),
        ("magic", changed(&hello, 0, b'P')),
        ("version", changed(&hello, 4, 1)),
        ("entry", changed(&welcome().0, 6, 7)),
        ("welcome-reserved", changed(&welcome().0, 12, 1)),
    ];
    inputs(good.chain(ends).chain(messages).chain(bad))
}

#[test]
fn corpus_is_complete_and_holds() {
    let outcomes = replay("door_command", &all(), decode);
    let of = |reasons: fn(&Outcome) -> Option<EntryError>| -> Vec<_> {
        outcomes.iter().filter_map(reasons).collect()
    };
    let of_messages = [EntryError::Magic, EntryError::Version];
    let commands = of(|outcome| outcome.command?.err());
    all_occur(&EntryError::ALL, &commands, &of_messages);
    let mut cannot = of_messages.to_vec();
    cannot.extend([EntryError::Flags, EntryError::Length]);
    all_occur(&EntryError::ALL, &of(|o| o.completion?.err()), &cannot);
    let of_entries = [EntryError::Kind, EntryError::Flags, EntryError::Length];
    let welcomes = of(|outcome| outcome.welcome?.err());
    all_occur(&EntryError::ALL, &welcomes, &of_entries);
    for kind in (0..10).chain(16..19) {
        assert!(
            outcomes.iter().any(|o| o.command == Some(Ok(kind))),
            "{kind}"
        );
    }
    for kind in 0..4 {
        let mut found = outcomes.iter();
        assert!(found.any(|o| o.completion == Some(Ok(kind))), "{kind}");
    }
    assert!(outcomes.iter().any(|o| o.hello == Some(Ok(()))));
}

#[test]
fn neighbours_of_the_corpus_do_not_panic() {
    neighbours(&all(), |bytes| {
        decode(bytes);
    });
}

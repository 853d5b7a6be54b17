//! Replays the operation lists of the fuzz target `aries_link` with a stable toolchain, and
//! verifies their generated part.
#![expect(
    clippy::disallowed_methods,
    reason = "a test may read files; the core may not"
)]

mod operations;

use std::collections::BTreeMap;
use std::path::PathBuf;

use operations::{Outcome, run};
use phitwire::rng::Rng;
use proptest::prelude::*;

type Inputs = BTreeMap<String, Vec<u8>>;

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/aries_link")
}

/// A list of `count` random operations with codes from `codes`.
fn mixture(seed: u64, flags: u8, codes: &[u8], count: usize) -> Vec<u8> {
    let mut rng = Rng::new(seed, 0);
    let mut bytes = vec![flags];
    for _ in 0..count {
        bytes.push(codes[rng.below(codes.len() as u64) as usize]);
        bytes.push(rng.next_u64() as u8);
        // An operation with several operands consumes the bytes that follow, codes included.
    }
    bytes
}

/// One list for each kind of event, with each set of flags.
fn generated() -> Inputs {
    // The codes of a working link: push, poll, deliver, take, advance time.
    const WORK: [u8; 9] = [0, 1, 2, 4, 4, 5, 6, 10, 11];
    let kinds: [(&str, &[u8]); 8] = [
        ("work", &[]),
        ("lost", &[7]),
        ("twice", &[8]),
        ("corrupt", &[9, 9]),
        ("commands", &[12]),
        ("hostile", &[13]),
        ("forged", &[14, 15]),
        ("everything", &[7, 8, 9, 12, 13, 14, 15]),
    ];
    let mut inputs = Inputs::new();
    inputs.insert("empty".to_owned(), Vec::new());
    for (profile, flags) in [("live", 0), ("paper", 1), ("cramped", 2), ("training", 4)] {
        for (number, (kind, more)) in (1..).zip(kinds) {
            let codes = [&WORK[..], more].concat();
            let bytes = mixture(number, flags, &codes, 150);
            inputs.insert(format!("{profile}-{kind}"), bytes);
        }
    }
    inputs
}

fn committed() -> Inputs {
    let files = std::fs::read_dir(directory()).expect("the corpus is there");
    files
        .map(|file| {
            let path = file.expect("a readable directory").path();
            let name = path.file_name().expect("it has one").to_string_lossy();
            (name.into_owned(), std::fs::read(&path).expect("readable"))
        })
        .collect()
}

#[test]
fn the_corpus_is_what_was_generated_and_more() {
    let generated = generated();
    if std::env::var_os("PHITWIRE_REGENERATE").is_some() {
        std::fs::create_dir_all(directory()).expect("writable");
        for (name, bytes) in &generated {
            std::fs::write(directory().join(name), bytes).expect("writable");
        }
    }
    let committed = committed();
    for (name, bytes) in &generated {
        assert!(
            committed.get(name) == Some(bytes),
            "{name} is out of date: PHITWIRE_REGENERATE=1 cargo test -p phitwire --test aries_link"
        );
    }
}

#[test]
fn the_corpus_keeps_the_rules_and_reaches_everything() {
    let mut all = Outcome::default();
    for (name, bytes) in committed() {
        let outcome = run(&bytes);
        if !outcome.is_forged && !outcome.was_down {
            assert_eq!(outcome.pushed, outcome.arrived, "{name}");
        }
        all.pushed += outcome.pushed;
        all.arrived += outcome.arrived;
        all.replayed += outcome.replayed;
        all.refused += outcome.refused;
        all.is_forged |= outcome.is_forged;
        all.was_down |= outcome.was_down;
    }
    assert!(all.pushed > 500 && all.arrived > 500, "{all:?}");
    assert!(all.replayed > 0 && all.refused > 0, "{all:?}");
    assert!(all.is_forged && all.was_down, "{all:?}");
}

#[test]
#[should_panic(expected = "packets of channel 3, each once")]
fn a_packet_that_comes_twice_is_noticed() {
    let flits = operations::packet(3, 5, 4);
    let expected = operations::check(3, &flits, 5, false);
    operations::check(3, &flits, expected, false);
}

#[test]
#[should_panic(expected = "packet 5 of channel 3")]
fn a_wrong_bit_is_noticed() {
    let mut flits = operations::packet(3, 5, 4);
    flits[2] = phitwire_framing::aries::flit::Flit::new(flits[2].bits() ^ 1);
    operations::check(3, &flits, 5, false);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_bytes_keep_the_rules(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        run(&bytes);
    }

    #[test]
    fn operations_of_every_kind_keep_the_rules(seed in any::<u64>(), flags in 0..8_u8, kinds in any::<u16>()) {
        let mut codes = vec![0, 1, 2, 4, 4, 5, 6, 10, 11];
        codes.extend((0..16).filter(|code| kinds >> code & 1 != 0));
        run(&mixture(seed, flags, &codes, 200));
    }
}

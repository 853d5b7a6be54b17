//! Replays the corpora of the fuzz targets `t3e_link` and `t3e_flits` with a stable toolchain, and
//! verifies their generated part.
#![expect(
    clippy::disallowed_methods,
    reason = "a test may read files; the core may not"
)]

mod decode;
mod operations;

use std::collections::BTreeMap;
use std::path::PathBuf;

use operations::{Outcome, run};
use phitwire::rng::Rng;
use phitwire_framing::t3e::barrier::{Kind, Message, UnitNumber};
use phitwire_framing::t3e::burst::{BURST_FLITS, Burst};
use phitwire_framing::t3e::flit::{Control, Flit, VCS};
use phitwire_framing::t3e::maintenance::{MaintenancePacket, SourceRoute};
use proptest::prelude::*;

type Inputs = BTreeMap<String, Vec<u8>>;

fn directory(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/corpus")
        .join(target)
}

/// A list of `count` random operations with codes from `codes`.
fn mixture(seed: u64, flags: u8, codes: &[u8], count: usize) -> Vec<u8> {
    let mut rng = Rng::new(seed, 0);
    let mut bytes = vec![flags];
    for _ in 0..count {
        let code = codes[rng.below(codes.len() as u64) as usize];
        bytes.push(code + 15 * rng.below(8) as u8);
        bytes.push(rng.next_u64() as u8);
        if code == 14 {
            bytes.extend(burst(&mut rng));
        }
    }
    bytes
}

/// A burst of individually plausible flits in an arbitrary order.
fn burst(rng: &mut Rng) -> [u8; Burst::BYTES] {
    let mut burst = Burst::default();
    for at in 0..BURST_FLITS {
        let vc = rng.below(VCS as u64) as usize;
        let is_head = rng.chance(1, 3);
        let packet = operations::packet(vc, rng.next_u64() as u32 >> 8, rng.below(4) as usize);
        burst.words[at] = match is_head {
            true => packet.flits()[0],
            false => rng.next_u64(),
        };
        let control = match rng.below(6) {
            0 => Control::IDLE,
            1 => Control::barrier(),
            _ => Control::data(vc, is_head),
        };
        burst.controls[at] = match rng.chance(1, 2) {
            true => control.with_credit(rng.below(VCS as u64) as usize),
            false => control,
        };
    }
    let mut bytes = [0; Burst::BYTES];
    burst.emit(&mut bytes);
    bytes
}

/// One list for each kind of event, with each set of flags.
fn operation_lists() -> Inputs {
    // The codes of a working link: push, poll, deliver, take, advance time.
    const WORK: [u8; 10] = [0, 1, 2, 3, 4, 5, 6, 6, 10, 11];
    let kinds: [(&str, &[u8]); 8] = [
        ("work", &[]),
        ("lost", &[7]),
        ("twice", &[8]),
        ("corrupt", &[9, 9]),
        ("commands", &[12]),
        ("hostile", &[13]),
        ("forged", &[14, 14]),
        ("everything", &[7, 8, 9, 12, 13, 14]),
    ];
    let mut inputs = Inputs::new();
    inputs.insert("empty".to_owned(), Vec::new());
    for (profile, flags) in [("live", 0), ("paper", 1), ("shallow", 2), ("training", 4)] {
        for (number, (kind, more)) in (1..).zip(kinds) {
            let codes = [&WORK[..], more].concat();
            let bytes = mixture(number, flags, &codes, 150);
            inputs.insert(format!("{profile}-{kind}"), bytes);
        }
    }
    inputs
}

/// Flits in bursts.
fn bursts(flits: &[Flit]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for flits in flits.chunks(BURST_FLITS) {
        let mut burst = Burst::default();
        for (at, flit) in flits.iter().enumerate() {
            (burst.words[at], burst.controls[at]) = (flit.word, flit.control);
        }
        let mut bytes_of_burst = [0; Burst::BYTES];
        burst.emit(&mut bytes_of_burst);
        bytes.extend(bytes_of_burst);
    }
    bytes
}

/// Barrier messages of all kinds.
fn messages() -> Vec<Flit> {
    let all = Kind::ALL.into_iter().zip(UnitNumber::all());
    let flit = |(kind, unit)| Flit {
        word: Message { kind, unit }.encode(),
        control: Control::barrier(),
    };
    all.map(flit).collect()
}

/// Maintenance packets, one of which is at its target.
fn maintenance() -> Vec<Flit> {
    let ways = [[1, -1, 0, 31, -31, 2], [0; 6]];
    let packets = ways.map(|way| MaintenancePacket::request(SourceRoute(way), 5, 0x100, Some(!7)));
    let flits = packets.iter().flat_map(|packet| (0..).zip(packet.words()));
    let flit = |(at, word)| Flit {
        word,
        control: Control::maintenance(at == 0),
    };
    flits.map(flit).collect()
}

/// Bursts of all kinds of flits, valid and invalid.
fn flits() -> Inputs {
    let packets = |count: u32| -> Vec<Flit> {
        let packets = (0..count).flat_map(|id| {
            let vc = id as usize % VCS;
            let packet = operations::packet(vc, id, id as usize);
            let flits: Vec<Flit> = (0..)
                .zip(packet.flits())
                .map(|(at, &word)| Flit::data(word, vc, at == 0))
                .collect();
            flits
        });
        packets.collect()
    };
    let changed = |change: fn(usize, &mut Flit)| {
        let mut flits = packets(12);
        flits
            .iter_mut()
            .enumerate()
            .for_each(|(at, flit)| change(at, flit));
        bursts(&flits)
    };
    let messages = messages();
    let mut wrong = messages.clone();
    wrong[0].word ^= 1 << 40;
    wrong[1].word ^= 0b1110;
    let mut rng = Rng::new(1, 1);
    let wild: Vec<u8> = (0..20).flat_map(|_| burst(&mut rng)).collect();
    let noise: Vec<u8> = (0..5 * Burst::BYTES)
        .map(|_| rng.next_u64() as u8)
        .collect();
    let inputs: [(&str, Vec<u8>); 11] = [
        ("empty", Vec::new()),
        ("packets", bursts(&packets(12))),
        (
            "one-bit",
            changed(|at, flit| flit.word ^= u64::from(at % 7 == 0) << (at % 64)),
        ),
        (
            "two-bits",
            changed(|at, flit| flit.word ^= u64::from(at % 7 == 0) * 0b101),
        ),
        (
            "no-marks",
            changed(|_, flit| flit.control = Control::data(1, false)),
        ),
        (
            "all-marks",
            changed(|_, flit| flit.control = Control::data(1, true)),
        ),
        ("messages", bursts(&messages)),
        ("wrong-messages", bursts(&wrong)),
        ("maintenance", bursts(&maintenance())),
        ("wild", wild),
        ("noise", noise),
    ];
    let inputs = inputs.into_iter();
    inputs
        .map(|(name, bytes)| (name.to_owned(), bytes))
        .collect()
}

fn committed(target: &str) -> Inputs {
    let files = std::fs::read_dir(directory(target)).expect("the corpus is there");
    files
        .map(|file| {
            let path = file.expect("a readable directory").path();
            let name = path.file_name().expect("it has one").to_string_lossy();
            (name.into_owned(), std::fs::read(&path).expect("readable"))
        })
        .collect()
}

#[test]
fn the_corpora_are_what_was_generated_and_more() {
    for (target, generated) in [("t3e_link", operation_lists()), ("t3e_flits", flits())] {
        if std::env::var_os("PHITWIRE_REGENERATE").is_some() {
            std::fs::create_dir_all(directory(target)).expect("writable");
            for (name, bytes) in &generated {
                std::fs::write(directory(target).join(name), bytes).expect("writable");
            }
        }
        let committed = committed(target);
        for (name, bytes) in &generated {
            assert!(
                committed.get(name) == Some(bytes),
                "{name} is out of date: PHITWIRE_REGENERATE=1 cargo test -p phitwire --test t3e_link"
            );
        }
    }
}

#[test]
fn the_operations_keep_the_rules_and_reach_everything() {
    let mut all = Outcome::default();
    for (name, bytes) in committed("t3e_link") {
        let outcome = run(&bytes);
        if !outcome.is_forged && !outcome.was_down {
            assert_eq!(outcome.pushed, outcome.arrived, "{name}");
        }
        all.pushed += outcome.pushed;
        all.arrived += outcome.arrived;
        all.cut += outcome.cut;
        all.replayed += outcome.replayed;
        all.refused += outcome.refused;
        all.misplaced += outcome.misplaced;
        all.is_forged |= outcome.is_forged;
        all.was_down |= outcome.was_down;
    }
    assert!(all.pushed > 500 && all.arrived > 300, "{all:?}");
    assert!(all.replayed > 0 && all.refused > 0, "{all:?}");
    assert!(all.is_forged && all.was_down, "{all:?}");
}

#[test]
fn the_flits_reach_every_answer() {
    let mut all = decode::Outcome::default();
    for bytes in committed("t3e_flits").values() {
        all.add(&decode::decode(bytes));
        all.add(&decode::decode_with_checks_made_right(bytes));
    }
    // No packet is left to correct, because the buffer has corrected them all.
    assert_eq!(all.packets[1], 0);
    let packets = [all.packets[0], all.packets[2]];
    let reached = [&all.headers[..], &packets, &all.messages, &all.maintenance].concat();
    assert!(reached.iter().all(|count| *count > 0), "{all:?}");
    assert!(
        all.unreadable > 0 && all.cut > 0 && all.discarded > 0,
        "{all:?}"
    );
}

#[test]
#[should_panic(expected = "packets of channel 3, each once")]
fn a_packet_that_comes_twice_is_noticed() {
    let packet = operations::packet(3, 5, 2);
    let expected = operations::check(3, packet.flits(), 5, false);
    operations::check(3, packet.flits(), expected.expect("it is whole"), false);
}

#[test]
#[should_panic(expected = "packet 5 of channel 3")]
fn a_wrong_bit_is_noticed() {
    let mut words = operations::packet(3, 5, 2).flits().to_vec();
    words[3] ^= 1;
    operations::check(3, &words, 5, false);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_bytes_keep_the_rules(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        run(&bytes);
        decode::decode(&bytes);
        decode::decode_with_checks_made_right(&bytes);
    }

    #[test]
    fn operations_of_every_kind_keep_the_rules(
        seed in any::<u64>(),
        flags in 0..8_u8,
        kinds in any::<u16>(),
    ) {
        let mut codes = vec![0, 1, 2, 3, 4, 5, 6, 6, 10, 11];
        codes.extend((0..15).filter(|code| kinds >> code & 1 != 0));
        run(&mixture(seed, flags, &codes, 200));
    }

    #[test]
    fn flits_in_any_order_keep_the_rules(seed in any::<u64>(), count in 0..40_usize) {
        let mut rng = Rng::new(seed, 0);
        let bytes: Vec<u8> = (0..count).flat_map(|_| burst(&mut rng)).collect();
        decode::decode(&bytes);
        decode::decode_with_checks_made_right(&bytes);
    }
}

//! Replays the Aries fuzz corpora with a stable toolchain, and keeps their generated part as it should be.
#![expect(
    clippy::disallowed_methods,
    reason = "a test may read files; the codecs may not"
)]

#[path = "common/decode48.rs"]
mod decode;
#[path = "common/aries.rs"]
mod golden;

use decode::{Outcome, decode, decode_as_packet, decode_with_checks_made_right, sets_of};
use golden::{
    ADD_32, COMPARE_SWAP, CONTROL, CONTROL_SET, DATA_SET, DONE, GET_64, MESSAGE, OLD_64, PUT_8,
    PUT_64, READ_4, READ_60, READ_64, REFUSED, SET_FRAME, flits,
};
use phitwire_framing::aries::flit::{Flit, Head};
use phitwire_framing::aries::frame::{SetFrame, SetFrameWriter, set_frame_len};
use phitwire_framing::aries::packet::{PacketError, packet_check};
use phitwire_framing::aries::set::{SetBytes, SetError};
use phitwire_framing::carrier::frame::{FrameError, FrameHeader, LinkEnd};
use std::collections::BTreeMap;
use std::path::PathBuf;

type Inputs = BTreeMap<String, Vec<u8>>;

fn directory(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../fuzz/corpus")
        .join(target)
}

fn frame_of(sets: &[SetBytes]) -> Vec<u8> {
    let header = FrameHeader {
        kind: SetFrame::KIND,
        end: LinkEnd::A,
        link: 3,
        fabric: 0x1234_5678,
        tx_epoch: 1,
        rx_epoch: 2,
        lanes: 7,
        units: 0,
    };
    let mut buf = vec![0; set_frame_len(sets.len())];
    let mut writer = SetFrameWriter::new(&header, &mut buf).expect("there is a set");
    for set in sets {
        *writer.slot().expect("the buffer has its length") = *set;
    }
    writer.finish().expect("there is a set");
    buf
}

fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            crc >> 1 ^ (0x82f6_3b78 & (crc & 1).wrapping_neg())
        })
    })
}

/// The golden frame with one change of its header and the right check.
fn changed(change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = SET_FRAME.to_vec();
    change(&mut bytes);
    let check = crc32c(&bytes[..20]).to_be_bytes();
    bytes[20..24].copy_from_slice(&check);
    bytes
}

fn changed_set(set: &SetBytes, change: impl Fn(&mut SetBytes)) -> SetBytes {
    let mut set = *set;
    change(&mut set);
    decode::make_right(&mut set);
    set
}

const PACKETS: [(&str, &[u64]); 13] = [
    ("put-64", &PUT_64),
    ("put-8", &PUT_8),
    ("get-64", &GET_64),
    ("compare-swap", &COMPARE_SWAP),
    ("add-32", &ADD_32),
    ("message", &MESSAGE),
    ("control", &CONTROL),
    ("done", &DONE),
    ("read-64", &READ_64),
    ("read-4", &READ_4),
    ("read-60", &READ_60),
    ("old-64", &OLD_64),
    ("refused", &REFUSED),
];

/// Inputs of the target for frames: name to bytes.
fn frames() -> Inputs {
    let stream: Vec<Flit> = PACKETS.iter().flat_map(|(_, bits)| flits(bits)).collect();
    let sets = sets_of(&stream, 0x7e);
    let mut noisy = frame_of(&sets);
    noisy[24..]
        .iter_mut()
        .step_by(97)
        .for_each(|byte| *byte ^= 9);
    let reserved = changed_set(&CONTROL_SET, |set| set[1] = 1);
    let contradiction = changed_set(&CONTROL_SET, |set| set[5] ^= 1);
    let silence = changed_set(&[0; 60], |_| {});
    [
        ("empty", vec![]),
        ("golden", SET_FRAME.to_vec()),
        ("packets", frame_of(&sets)),
        ("packets-cut-front", frame_of(&sets[2..])),
        ("packets-cut-back", frame_of(&sets[..sets.len() - 1])),
        ("noise", noisy),
        ("idle", frame_of(&[silence])),
        ("set-crc", frame_of(&[[0; 60], DATA_SET])),
        ("set-reserved", frame_of(&[reserved])),
        ("set-contradiction", frame_of(&[contradiction])),
        ("short", SET_FRAME[..23].to_vec()),
        ("magic", changed(|b| b[0] = 0)),
        ("version", changed(|b| b[1] = 0x15)),
        ("kind", changed(|b| b[1] |= 2)),
        ("length", changed(|b| b.truncate(143))),
        ("set-count", changed(|b| b[18] = 0xff)),
        ("no-sets", changed(|b| b[19] = 0)),
        ("header-check", {
            let mut bytes = SET_FRAME.to_vec();
            bytes[20] ^= 1;
            bytes
        }),
        ("reserved-header", changed(|b| b[16] = 0x80)),
        ("no-lanes", changed(|b| b[17] = 0)),
    ]
    .into_iter()
    .map(|(name, bytes)| (name.to_owned(), bytes))
    .collect()
}

/// Inputs of the target for packets: flits of six bytes.
fn packets() -> Inputs {
    let bytes =
        |packet: &[Flit]| -> Vec<u8> { packet.iter().flat_map(|flit| flit.to_bytes()).collect() };
    let xor = |golden: &[u64], at: usize, bits: u64| {
        let mut packet = flits(golden);
        packet[at] = Flit::new(packet[at].bits() ^ bits);
        packet
    };
    let right = |mut packet: Vec<Flit>| {
        let check = packet_check(&packet).computed;
        let last = packet.last_mut().expect("a packet has flits");
        *last = Flit::new(last.bits() & !0xffff | u64::from(check));
        packet
    };
    let mut poisoned = flits(&PUT_8);
    let head = Head::parse(poisoned[0]).expect("it is golden");
    poisoned[0] = head.with_poison().with_vc(2).with_non_minimal(true).flit();
    let bad = [
        ("empty", vec![]),
        ("cut", flits(&PUT_64[..13])),
        ("shape", right(xor(&PUT_8, 0, 0x12))),
        ("reserved-command", right(xor(&PUT_8, 0, 14))),
        ("reserved-status", xor(&DONE, 0, 63)),
        ("poisoned", poisoned),
        ("crc", xor(&PUT_8, 3, 1)),
        ("padding", right(xor(&PUT_8, 4, 1 << 16))),
    ];
    let good = PACKETS.map(|(name, bits)| (name, flits(bits)));
    let all = good.into_iter().chain(bad);
    all.map(|(name, packet)| (name.to_owned(), bytes(&packet)))
        .collect()
}

/// What is committed for a target; rewritten first where that is asked for.
fn committed(target: &str, generated: &Inputs) -> Inputs {
    let directory = directory(target);
    if std::env::var_os("PHITWIRE_REGENERATE").is_some() {
        std::fs::create_dir_all(&directory).expect("the corpus can be written");
        for (name, bytes) in generated {
            std::fs::write(directory.join(name), bytes).expect("the corpus can be written");
        }
    }
    let mut inputs = Inputs::new();
    for entry in std::fs::read_dir(directory).expect("the corpus is committed") {
        let path = entry.expect("the corpus can be listed").path();
        let name = path.file_name().expect("it is a file").to_string_lossy();
        let bytes = std::fs::read(&path).expect("the corpus can be read");
        inputs.insert(name.into_owned(), bytes);
    }
    for (name, bytes) in generated {
        let found = inputs.get(name);
        assert_eq!(
            found,
            Some(bytes),
            "{name}: see fuzz/README.md to regenerate"
        );
    }
    inputs
}

fn replay(target: &str, generated: &Inputs, run: impl Fn(&[u8]) -> Outcome) -> Vec<Outcome> {
    let inputs = committed(target, generated);
    let outcomes = inputs.iter().map(|(name, bytes)| {
        let outcome = run(bytes);
        println!("{name}: {outcome:?}");
        outcome
    });
    outcomes.collect()
}

#[test]
fn corpus_of_frames_is_complete_and_holds() {
    let outcomes = replay("sets", &frames(), |bytes| {
        decode_with_checks_made_right(bytes);
        decode(bytes)
    });
    for error in FrameError::ALL {
        // The others are those of other kinds of frame.
        let other = [
            FrameError::BadPhitCount,
            FrameError::ReservedTraining,
            FrameError::BadName,
        ];
        let seen = outcomes
            .iter()
            .any(|outcome| outcome.rejected == Some(error));
        assert_eq!(seen, !other.contains(&error), "{error}");
    }
    for error in SetError::ALL {
        let seen = outcomes.iter().any(|outcome| outcome.sets.contains(&error));
        assert!(
            seen,
            "no input has a set that is rejected as {}",
            error.name()
        );
    }
    let packets = outcomes.iter().find(|outcome| outcome.good[2] == 7);
    assert_eq!(packets.map(|outcome| outcome.good[3]), Some(6));
    assert!(outcomes.iter().any(|outcome| outcome.good[0] > 0));
}

#[test]
fn corpus_of_packets_is_complete_and_holds() {
    let outcomes = replay("packet48", &packets(), decode_as_packet);
    for error in PacketError::ALL {
        // A packet is cut out by its head and its length, so these two cannot occur; they have tests
        // of their own, and so has one in the wrong direction.
        let cannot = [
            PacketError::NoHead,
            PacketError::Length,
            PacketError::Direction,
        ];
        let seen = outcomes
            .iter()
            .any(|outcome| outcome.packets.contains(&error));
        assert_eq!(seen, !cannot.contains(&error), "{}", error.name());
    }
    let good = |kind| {
        outcomes
            .iter()
            .filter(|o: &&Outcome| o.good[kind] > 0)
            .count()
    };
    assert!(good(2) >= 7 && good(3) >= 5);
}

/// Every input, cut at every length and with every byte changed.
#[test]
fn neighbours_of_the_corpora_do_not_panic() {
    let neighbours = |inputs: Inputs, run: &dyn Fn(&[u8])| {
        for bytes in inputs.values() {
            for cut in 0..bytes.len() {
                run(&bytes[..cut]);
            }
            for at in 0..bytes.len() {
                for value in [0x00, 0xff, 0x80, bytes[at] ^ 1] {
                    let mut bytes = bytes.clone();
                    bytes[at] = value;
                    run(&bytes);
                }
            }
        }
    };
    neighbours(packets(), &|bytes| drop(decode_as_packet(bytes)));
    let small = frames().into_iter().filter(|(_, bytes)| bytes.len() < 200);
    neighbours(small.collect(), &|bytes| {
        decode(bytes);
        decode_with_checks_made_right(bytes);
    });
}

#[test]
fn checks_made_right_reach_the_packets() {
    let mut sets = SET_FRAME[24..].to_vec();
    sets[59] ^= 1;
    sets[119] ^= 1;
    let outcome = decode_with_checks_made_right(&sets);
    assert_eq!((outcome.rejected, outcome.good), (None, [1, 1, 1, 1]));
}

//! Replays the fuzz corpus with a stable toolchain, and keeps its generated part as it should be.
#![expect(
    clippy::disallowed_methods,
    reason = "a test may read files; the codecs may not"
)]

#[path = "common/decode.rs"]
mod decode;
#[path = "common/mod.rs"]
mod golden;

use decode::{crc32c, decode, decode_with_checks_made_right};
use golden::{
    DATA_FRAME, READ_13, READ_DATA_32, REGISTER_READ_REPLY, REGISTER_WRITE, TRAINING_FRAME,
    WRITE_8, WRITE_32, WRITE_DONE, phits,
};
use phitwire_framing::carrier::frame::{FrameError, FrameHeader, LinkEnd};
use phitwire_framing::carrier::number::PacketNumber;
use phitwire_framing::lane_area;
use phitwire_framing::yarc::control::ControlWord;
use phitwire_framing::yarc::frame::{DataFrame, emit_data, frame_len};
use phitwire_framing::yarc::phit::Phit;
use std::collections::BTreeMap;
use std::path::PathBuf;

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/frame")
}

fn frame_of(phits: &[Phit], seq: u64, offset: u8) -> Vec<u8> {
    let header = FrameHeader {
        kind: DataFrame::KIND,
        end: LinkEnd::A,
        link: 3,
        fabric: 0x1234_5678,
        tx_epoch: 1,
        rx_epoch: 2,
        lanes: 7,
        units: 0,
    };
    let word = ControlWord {
        seq: PacketNumber::new(seq),
        offset,
        ..Default::default()
    };
    let mut bytes = vec![0; frame_len(phits.len())];
    emit_data(&header, &word, &[phits, &[]], &mut bytes).expect("the buffer has its length");
    bytes
}

/// A golden frame with one change and, over its first `checked` bytes, a right check.
fn changed(frame: &[u8], checked: usize, change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = frame.to_vec();
    change(&mut bytes);
    if bytes.len() >= checked + 4 {
        let check = crc32c(&bytes[..checked]).to_be_bytes();
        bytes[checked..checked + 4].copy_from_slice(&check);
    }
    bytes
}

/// The inputs that this test can make: name to bytes.
fn generated() -> BTreeMap<String, Vec<u8>> {
    let contents: [&[u32]; 7] = [
        &WRITE_32,
        &WRITE_DONE,
        &REGISTER_WRITE,
        &WRITE_8,
        &READ_13,
        &READ_DATA_32,
        &REGISTER_READ_REPLY,
    ];
    let stream: Vec<Phit> = contents
        .iter()
        .flat_map(|contents| phits(contents))
        .collect();
    let mut noisy = frame_of(&stream, 9, 0);
    let area = lane_area(&noisy).expect("it is a frame");
    noisy[area]
        .iter_mut()
        .step_by(17)
        .for_each(|byte| *byte ^= 0x24);
    let data = |change: &dyn Fn(&mut Vec<u8>)| changed(&DATA_FRAME, 42, change);
    let training = |change: &dyn Fn(&mut Vec<u8>)| changed(&TRAINING_FRAME, 100, change);
    [
        ("empty", vec![]),
        ("data", DATA_FRAME.to_vec()),
        ("training", TRAINING_FRAME.to_vec()),
        ("packets", frame_of(&stream, 9, 0)),
        ("packets-cut-front", frame_of(&stream[..30], 9, 0)),
        ("packets-cut-back", frame_of(&stream[30..], 11, 7)),
        ("idle", frame_of(&[], 9, 0)),
        ("noise", noisy),
        ("short", DATA_FRAME[..20].to_vec()),
        ("magic", data(&|b| b[0] = 0)),
        ("version", data(&|b| b[1] = 0x11)),
        ("kind", data(&|b| b[1] |= 0x08)),
        ("length", data(&|b| b.truncate(189))),
        ("header-check", changed(&DATA_FRAME, 1000, |b| b[42] ^= 1)),
        ("map-check", changed(&DATA_FRAME, 1000, |b| b[35] ^= 0x40)),
        ("rest-check", changed(&DATA_FRAME, 1000, |b| b[24] ^= 1)),
        ("rest", data(&|b| b[20..30].fill(0xff))),
        ("reserved-header", data(&|b| b[16] = 0x80)),
        ("no-lanes", data(&|b| b[17] = 0)),
        ("phit-count", data(&|b| b[19] = 46)),
        ("training-phit-count", training(&|b| b[19] = 48)),
        ("reserved-training", training(&|b| b[21] |= 0x20)),
        ("name", training(&|b| b[40] = 0xff)),
        ("training-long", training(&|b| b.push(0))),
    ]
    .into_iter()
    .map(|(name, bytes)| (name.to_owned(), bytes))
    .collect()
}

#[test]
fn corpus_is_complete_and_holds() {
    if std::env::var_os("PHITWIRE_REGENERATE").is_some() {
        std::fs::create_dir_all(directory()).expect("the corpus can be written");
        for (name, bytes) in generated() {
            std::fs::write(directory().join(name), bytes).expect("the corpus can be written");
        }
    }
    let mut inputs = BTreeMap::new();
    for entry in std::fs::read_dir(directory()).expect("the corpus is committed") {
        let path = entry.expect("the corpus can be listed").path();
        let name = path
            .file_name()
            .expect("it is a file")
            .to_string_lossy()
            .into_owned();
        inputs.insert(name, std::fs::read(path).expect("the corpus can be read"));
    }
    for (name, bytes) in generated() {
        assert_eq!(
            inputs.get(&name),
            Some(&bytes),
            "{name}: see fuzz/README.md to regenerate"
        );
    }
    let mut reasons = Vec::new();
    let (mut words, mut checked, mut decoded) = (0, 0, [0; 3]);
    for (name, bytes) in &inputs {
        println!("{name}: {:?}", decode(bytes));
        let outcome = decode(bytes);
        reasons.extend(outcome.rejected);
        words += usize::from(outcome.word);
        checked += outcome.checked;
        decoded
            .iter_mut()
            .zip(outcome.decoded)
            .for_each(|(sum, n)| *sum += n);
        decode_with_checks_made_right(bytes);
    }
    for reason in FrameError::ALL {
        assert!(
            reasons.contains(&reason) || reason == FrameError::BadSetCount,
            "no input is rejected as {}",
            reason.name()
        );
    }
    assert!(
        words >= 5 && checked >= 10 && decoded.iter().all(|n| *n >= 2),
        "{decoded:?}"
    );
}

/// Every golden frame and the frame of packets, cut at every length and with every byte changed.
#[test]
fn neighbours_of_the_corpus_do_not_panic() {
    for (_, bytes) in generated() {
        for cut in 0..bytes.len() {
            decode(&bytes[..cut]);
        }
        for at in 0..bytes.len() {
            for value in [0x00, 0xff, 0x80, bytes[at] ^ 1] {
                let mut bytes = bytes.clone();
                bytes[at] = value;
                decode(&bytes);
                decode_with_checks_made_right(&bytes);
            }
        }
    }
}

#[test]
fn checks_made_right_reach_the_phits() {
    let mut input = DATA_FRAME.to_vec();
    input[0] = 0;
    assert_eq!(decode_with_checks_made_right(&input).rejected, None);
    let mut input = TRAINING_FRAME.to_vec();
    input[0] = 1;
    assert_eq!(decode_with_checks_made_right(&input).rejected, None);
}

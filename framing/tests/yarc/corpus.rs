//! Replays the fuzz corpus of frames, and verifies its generated part.

use crate::common::corpus::{Inputs, all_occur, inputs, neighbours, replay};
use crate::common::{TRAINING_FRAME, changed, header};
use crate::decode::{decode, decode_with_checks_made_right};
use crate::golden::{
    DATA_FRAME, READ_13, READ_DATA_32, REGISTER_READ_REPLY, REGISTER_WRITE, WRITE_8, WRITE_32,
    WRITE_DONE, phits,
};
use phitwire_framing::carrier::frame::{FrameError, FrameHeader, LinkEnd};
use phitwire_framing::carrier::number::PacketNumber;
use phitwire_framing::yarc::control::ControlWord;
use phitwire_framing::yarc::frame::{DataFrame, emit_data, frame_len};
use phitwire_framing::yarc::phit::Phit;

fn frame_of(phits: &[Phit], seq: u64, offset: u8) -> Vec<u8> {
    let header = FrameHeader {
        end: LinkEnd::A,
        link: 3,
        fabric: 0x1234_5678,
        tx_epoch: 1,
        rx_epoch: 2,
        ..header(DataFrame::KIND, 0)
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

/// Generated inputs, by name.
fn generated() -> Inputs {
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
    let area = DataFrame::LAYOUT.area(&noisy).expect("it is a frame");
    noisy[area]
        .iter_mut()
        .step_by(17)
        .for_each(|byte| *byte ^= 0x24);
    let data = |change: &dyn Fn(&mut Vec<u8>)| changed(&DATA_FRAME, 42, change);
    let training = |change: &dyn Fn(&mut Vec<u8>)| changed(&TRAINING_FRAME, 100, change);
    inputs([
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
    ])
}

#[test]
fn corpus_is_complete_and_holds() {
    let outcomes = replay("frame", &generated(), |bytes| {
        decode_with_checks_made_right(bytes);
        decode(bytes)
    });
    let rejected: Vec<_> = outcomes.iter().filter_map(|o| o.rejected).collect();
    // Skip errors of other kinds of frames.
    let other = [FrameError::BadSetCount, FrameError::ReservedControl];
    all_occur(&FrameError::ALL, &rejected, &other);
    let words = outcomes.iter().filter(|outcome| outcome.word).count();
    let checked: usize = outcomes.iter().map(|outcome| outcome.checked).sum();
    let decoded = [0, 1, 2].map(|kind| outcomes.iter().map(|o| o.decoded[kind]).sum::<usize>());
    assert!(
        words >= 5 && checked >= 10 && decoded.iter().all(|n| *n >= 2),
        "{decoded:?}"
    );
}

/// Every golden frame and the frame of packets, truncated to every length and with every byte
/// changed.
#[test]
fn neighbours_of_the_corpus_do_not_panic() {
    neighbours(&generated(), |bytes| {
        decode(bytes);
        decode_with_checks_made_right(bytes);
    });
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

//! Replays the fuzz corpora of frames and of packets, and verifies their generated part.

use crate::common::changed;
use crate::common::corpus::{Inputs, all_occur, inputs, neighbours, replay};
use crate::decode::{
    Outcome, changed_set, decode, decode_as_packet, decode_with_checks_made_right, frame_of,
    sets_of,
};
use crate::golden::{
    ADD_32, COMPARE_SWAP, CONTROL, CONTROL_SET, DATA_SET, DONE, GET_64, JOINED, MESSAGE, OLD_64,
    PUT_8, PUT_64, READ_4, READ_60, READ_64, REFUSED, SET_FRAME, changed as damaged, flits, xor,
};
use phitwire_framing::aries::flit::{Flit, Head};
use phitwire_framing::aries::packet::PacketError;
use phitwire_framing::aries::set::SetError;
use phitwire_framing::carrier::frame::FrameError;

const PACKETS: [(&str, &[u64]); 14] = [
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
    ("joined", &JOINED),
];

/// Inputs of the target for frames, by name.
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
    inputs([
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
        ("magic", changed(&SET_FRAME, 20, |b| b[0] = 0)),
        ("version", changed(&SET_FRAME, 20, |b| b[1] = 0x15)),
        ("kind", changed(&SET_FRAME, 20, |b| b[1] |= 2)),
        ("length", changed(&SET_FRAME, 20, |b| b.truncate(143))),
        ("set-count", changed(&SET_FRAME, 20, |b| b[18] = 0xff)),
        ("no-sets", changed(&SET_FRAME, 20, |b| b[19] = 0)),
        ("header-check", changed(&SET_FRAME, 1000, |b| b[20] ^= 1)),
        ("reserved-header", changed(&SET_FRAME, 20, |b| b[16] = 0x80)),
        ("no-lanes", changed(&SET_FRAME, 20, |b| b[17] = 0)),
    ])
}

/// Inputs of the target for packets: flits of six bytes.
fn packets() -> Inputs {
    let bytes =
        |packet: &[Flit]| -> Vec<u8> { packet.iter().flat_map(|flit| flit.to_bytes()).collect() };
    let mut poisoned = flits(&PUT_8);
    let head = Head::parse(poisoned[0]).expect("it is golden");
    poisoned[0] = head.with_poison().with_vc(2).with_non_minimal(true).flit();
    let bad = [
        ("empty", vec![]),
        ("cut", flits(&PUT_64[..13])),
        ("shape", damaged(&PUT_8, true, xor(0, 0x12))),
        ("reserved-command", damaged(&PUT_8, true, xor(0, 14))),
        ("reserved-status", damaged(&DONE, false, xor(0, 63))),
        ("poisoned", poisoned),
        ("crc", damaged(&PUT_8, false, xor(3, 1))),
        ("padding", damaged(&PUT_8, true, xor(4, 1 << 16))),
    ];
    let good = PACKETS.map(|(name, bits)| (name, flits(bits)));
    let all = good.into_iter().chain(bad);
    inputs(all.map(|(name, packet)| (name, bytes(&packet))))
}

#[test]
fn corpus_of_frames_is_complete_and_holds() {
    let outcomes = replay("sets", &frames(), |bytes| {
        decode_with_checks_made_right(bytes);
        decode(bytes)
    });
    let rejected: Vec<_> = outcomes.iter().filter_map(|o| o.rejected).collect();
    // Skip errors of other kinds of frames.
    let other = [
        FrameError::BadPhitCount,
        FrameError::ReservedControl,
        FrameError::ReservedTraining,
        FrameError::BadName,
    ];
    all_occur(&FrameError::ALL, &rejected, &other);
    let sets: Vec<_> = outcomes.iter().flat_map(|o| o.sets.clone()).collect();
    all_occur(&SetError::ALL, &sets, &[]);
    let packets = outcomes.iter().find(|outcome| outcome.good[2] == 7);
    assert_eq!(packets.map(|outcome| outcome.good[3]), Some(7));
    assert!(outcomes.iter().any(|outcome| outcome.good[0] > 0));
}

#[test]
fn corpus_of_packets_is_complete_and_holds() {
    let outcomes = replay("packet48", &packets(), decode_as_packet);
    let packets: Vec<_> = outcomes.iter().flat_map(|o| o.packets.clone()).collect();
    // Packets are cut by head and length, so the first two reasons cannot occur. These have
    // separate tests, as does a packet in the wrong direction.
    let cannot = [
        PacketError::NoHead,
        PacketError::Length,
        PacketError::Direction,
    ];
    all_occur(&PacketError::ALL, &packets, &cannot);
    let good = |kind| {
        outcomes
            .iter()
            .filter(|o: &&Outcome| o.good[kind] > 0)
            .count()
    };
    assert!(good(2) >= 7 && good(3) >= 5);
}

#[test]
fn neighbours_of_the_corpora_do_not_panic() {
    neighbours(&packets(), |bytes| drop(decode_as_packet(bytes)));
    let small = frames().into_iter().filter(|(_, bytes)| bytes.len() < 200);
    neighbours(&small.collect(), |bytes| {
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

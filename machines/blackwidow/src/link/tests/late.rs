//! Late frames: unchanged copies of a link's own frames, of any age.
//!
//! netem, a switch that duplicates frames, a second path or a replayed capture can all deliver
//! frames that were valid once. The tape keeps copies of the frames that the pair sent. For ages
//! too long for a test, older numbers are written into a copy, which makes it the frame that the
//! link would have sent that long ago.

use proptest::prelude::*;

use phitwire_framing::carrier::number::PacketNumber;
use phitwire_framing::yarc::control::{ControlWord, LinkStatus};
use phitwire_framing::yarc::frame::{DataFrame, emit_data};
use phitwire_framing::yarc::packet::Vc;
use phitwire_framing::yarc::phit::Phit;

use crate::link::PhitProfile;
use crate::link::testing::{Pair, REQUEST, RESPONSE, config, with};
use phitwire::link::testing::end::Drain;
use phitwire::link::testing::pair::Wire;
use phitwire::link::testing::rig::{A, B, SECOND};
use phitwire::link::{LinkCounters, LinkProfile, LinkView};
use phitwire::time::Duration;

/// Ages in packets: around the wraps of 15, 16, 17 and 32 bits, a window more and less, and far
/// beyond.
const AGES: [u64; 18] = [
    1,
    100,
    8_190,
    8_191,
    8_192,
    (1 << 15) - 1,
    1 << 15,
    (1 << 16) - 8_191,
    (1 << 16) - 4_000,
    (1 << 16) - 1,
    1 << 16,
    (1 << 16) + 1,
    (1 << 17) - 100,
    1 << 17,
    (1 << 32) - 8_191,
    (1 << 32) - 1,
    1 << 32,
    (1 << 46) + 77,
];

/// First packet number of these sessions. With it frames can have any age, the numbers soon pass
/// half their space, and 16 and 32 bits wrap.
const FIRST: u64 = (1 << 47) - 20_000;

fn pair(seed: u64, first: u64) -> Pair {
    let end = |end| {
        let builder = config(end).first_packet(first);
        with(builder, PhitProfile::live())
    };
    Pair::with(seed, end(A), end(B), 1_472)
}

fn data(bytes: &[u8]) -> Option<DataFrame<'_>> {
    DataFrame::parse(bytes).ok()
}

fn word(bytes: &[u8]) -> Option<ControlWord> {
    data(bytes)?.control_word().ok()
}

/// A data frame with another control word.
fn with_word(bytes: &[u8], change: impl FnOnce(&mut ControlWord)) -> Vec<u8> {
    let data = data(bytes).expect("a data frame");
    let mut word = data.control_word().expect("an intact sideband");
    change(&mut word);
    let mut phits = vec![Phit::IDLE; data.phits()];
    data.decode(&mut phits);
    let mut buf = vec![0; bytes.len()];
    let length = emit_data(data.header(), &word, &[&phits, &[]], &mut buf);
    assert_eq!(length, Ok(bytes.len()));
    buf
}

/// The frame `bytes`, as if sent `packets` packets and `acked` acknowledgements earlier. Its credit
/// counts are random, since those of that time are unknown.
fn aged(pair: &mut Pair, bytes: &[u8], packets: u64, acked: u64) -> Vec<u8> {
    let vc_ack = [0; 2].map(|_: u32| pair.rng.next_u64() as u32 & 0xf_ffff);
    with_word(bytes, |word| {
        word.seq = PacketNumber::new(word.seq.get().wrapping_sub(packets));
        word.ack = PacketNumber::new(word.ack.get().wrapping_sub(acked));
        if acked > 0 {
            word.vc_ack = vc_ack;
        }
    })
}

/// Data frames of the tape for `to`, with their numbers.
fn tape(pair: &Pair, to: usize) -> Vec<(u64, Vec<u8>)> {
    let frames = pair.tape.iter().filter(|(end, _)| *end == to);
    frames
        .filter_map(|(_, bytes)| Some((word(bytes)?.seq.get(), bytes.clone())))
        .collect()
}

fn dropped_as_impossible(counters: &LinkCounters) -> u64 {
    counters.drop_impossible_ack
        + counters.drop_impossible_vc_ack
        + counters.drop_impossible_position
}

/// Checks that late frames caused no rejection, resend or recovery.
fn assert_undisturbed(pair: &Pair) {
    for end in [A, B] {
        let counters = pair.ends[end].lcb.counters();
        let state = pair.state();
        assert_eq!(dropped_as_impossible(counters), 0, "{state}");
        assert_eq!(counters.tx_retransmitted_packets, 0, "{state}");
        assert_eq!(counters.rx_spurious_gaps, 0, "{state}");
        assert_eq!(counters.rx_recoveries, 0, "{state}");
    }
}

/// The link sends more than 2^17 packets in each direction while every twentieth frame is repeated,
/// unchanged, at every age.
#[test]
fn unchanged_copies_of_any_age_change_nothing() {
    let mut pair = Pair::up(1);
    pair.restart_tape();
    let mut stale = 0;
    for round in 0..70_u64 {
        for _ in 0..2_000 {
            pair.ends[A].send(REQUEST, 5);
            pair.ends[B].send(RESPONSE, 4);
        }
        pair.finish(SECOND);
        for to in [A, B] {
            let frames = tape(&pair, to);
            // Copies arrive while the link is quiet, and while more is in flight.
            pair.ends[1 - to].send(REQUEST, 7);
            pair.settle();
            for (_, copy) in frames.iter().skip(round as usize % 20).step_by(20) {
                pair.inject(to, copy);
            }
        }
        stale = pair.count(B, |c| c.rx_stale_frames);
    }
    pair.finish(SECOND);
    assert!(stale > 2_000, "{stale}");
    assert!(pair.count(B, |c| c.rx_packets) > 1 << 17);
    assert_undisturbed(&pair);
}

/// As above, at ages that a test cannot wait for.
#[test]
fn late_frames_of_every_age_are_distinguished_from_new_ones() {
    for age in AGES {
        for acked in [0, 1, age] {
            let mut pair = pair(age, FIRST);
            pair.wait_up();
            pair.restart_tape();
            pair.exchange(9_000, SECOND);
            let frames = tape(&pair, B);
            pair.load(A, 300);
            pair.load(B, 300);
            pair.settle();
            for (_, bytes) in frames {
                let old = aged(&mut pair, &bytes, age, acked);
                pair.inject(B, &old);
                pair.settle();
            }
            pair.finish(SECOND);
        }
    }
}

#[test]
fn numbers_come_round_under_loss_copies_and_reordering() {
    for bits in [16, 32, 48] {
        for seed in 0..3 {
            let mut pair = pair(seed, (1 << bits) - 6_000);
            pair.wait_up();
            pair.wire(|wire| {
                wire.loss = 20;
                wire.duplicate = 50;
                wire.reorder = 50;
                wire.corrupt = 5;
                wire.jitter = Duration::from_us(20);
            });
            pair.exchange(12_000, SECOND.times(20));
            assert!(pair.ends[B].lcb.wire().rx.expected() == (1 << bits) + 6_000);
            for end in [A, B] {
                let counters = pair.ends[end].lcb.counters();
                assert_eq!(dropped_as_impossible(counters), 0, "{}", pair.state());
            }
        }
    }
}

#[test]
fn positions_never_sent_are_impossible_and_not_stale() {
    let mut pair = Pair::up(2);
    pair.restart_tape();
    pair.load(A, 100);
    pair.finish(SECOND);
    let (_, frame) = tape(&pair, B).remove(0);
    let none = u64::MAX;
    for (seq, ack) in [
        (none, 0),
        (1 << 47, 0),
        (8_292, 0),
        (50, none),
        (50, 1),
        (50, 1 << 16),
    ] {
        let before = dropped_as_impossible(pair.ends[B].lcb.counters());
        let forged = with_word(&frame, |word| {
            (word.seq, word.ack) = (PacketNumber::new(seq), PacketNumber::new(ack));
        });
        pair.inject(B, &forged);
        let after = dropped_as_impossible(pair.ends[B].lcb.counters());
        assert_eq!(after, before + 1, "seq {seq}, ack {ack}");
    }
    assert_eq!(pair.count(B, |c| c.rx_stale_frames), 0);
    pair.load(A, 100);
    pair.finish(SECOND);
}

/// Credits sent with an older acknowledgement are outdated, whatever their twenty bits suggest.
#[test]
fn an_old_frame_gives_no_credits_and_takes_none_back() {
    let mut pair = Pair::up(3);
    pair.restart_tape();
    pair.load(B, 50);
    pair.load(A, 50);
    pair.finish(SECOND);
    let (_, frame) = tape(&pair, A).remove(0);
    pair.ends[B].drain = Drain::Blocked;
    for _ in 0..300 {
        pair.ends[A].send(REQUEST, 10);
    }
    pair.run_for(Duration::from_ms(5));
    let credits = pair.ends[A].lcb.wire().credits(Vc::Request);
    let known = pair.count(B, |c| c.rx_phits) as u32;
    for step in [1, 100, 2_999, (1 << 19) - 1, 1 << 19, (1 << 20) - 16_000] {
        let old = with_word(&frame, |word| {
            word.ack = PacketNumber::new(49);
            word.vc_ack = [known + step, known + step].map(|count| count & 0xf_ffff);
            word.status = LinkStatus::RetryRequest;
        });
        pair.inject(A, &old);
        assert_eq!(
            pair.ends[A].lcb.wire().credits(Vc::Request),
            credits,
            "{step}"
        );
        assert_eq!(pair.count(A, |c| c.tx_rewinds_requested), 0);
    }
    pair.ends[B].drain = Drain::Eager;
    pair.finish(SECOND);
}

/// The link learns nothing from copies: no round trip, no lateness.
#[test]
fn stale_frames_teach_nothing_and_are_not_answered() {
    let mut pair = Pair::up(4);
    pair.restart_tape();
    for _ in 0..20_000 {
        pair.ends[A].send(REQUEST, 5);
    }
    pair.finish(SECOND);
    pair.run_for(Duration::from_ms(10));
    let frames = tape(&pair, B);
    let last = frames.last().unwrap().0;
    let stale: Vec<_> = frames
        .iter()
        .filter(|(seq, _)| seq + 9_000 < last)
        .collect();
    let frames = pair.frames;
    let learnt = |pair: &Pair| {
        let end = &pair.ends[B].lcb;
        (end.reorder_hold(), end.round_trip(), end.retry_timeout())
    };
    let before = learnt(&pair);
    for _ in 0..50 {
        for (_, bytes) in &stale {
            pair.inject(B, bytes);
            pair.settle();
        }
        pair.run_for(Duration::from_us(300));
    }
    assert_eq!(pair.frames, frames, "{}", pair.state());
    assert_eq!(learnt(&pair), before);
    let count = 50 * stale.len() as u64;
    assert!(count > 4_000);
    assert_eq!(pair.count(B, |c| c.rx_stale_frames), count);
    assert_eq!(
        pair.count(B, |c| c.rx_duplicate_phits),
        0,
        "duplicates are not decoded"
    );
}

/// Copies within the window look like retransmissions, whose acknowledgement may have been lost;
/// but one reply per delay is enough.
#[test]
fn a_storm_of_young_copies_is_answered_now_and_then() {
    let mut pair = Pair::up(5);
    pair.restart_tape();
    pair.load(A, 2_000);
    pair.finish(SECOND);
    pair.run_for(Duration::from_ms(10));
    let frames = tape(&pair, B);
    let (sent, start) = (pair.frames[B], pair.now);
    for (_, bytes) in frames.iter().cycle().take(10_000) {
        pair.inject(B, bytes);
        let probe = with_word(bytes, |word| word.status = LinkStatus::Probe);
        pair.inject(B, &probe);
        pair.run_for(Duration::from_us(2));
    }
    let answers = pair.frames[B] - sent;
    let delays = pair.now.since(start).as_ns() / LinkProfile::live().ack_delay.as_ns();
    assert!(
        answers > 0 && answers <= delays + 1,
        "{answers} in {delays} delays"
    );
    assert_eq!(pair.count(A, |c| c.tx_retransmitted_packets), 0);
}

#[derive(Clone, Debug)]
enum Operation {
    Load {
        end: usize,
        packets: usize,
    },
    Run {
        us: u64,
    },
    /// A frame of the tape is repeated, at its age or older by some packets and acknowledgements.
    Copy {
        to: usize,
        which: prop::sample::Index,
        packets: u64,
        acked: u64,
    },
    Loss(u64),
    Reorder(u64),
    Drain {
        end: usize,
        drain: Drain,
    },
}

fn age() -> impl Strategy<Value = u64> {
    prop_oneof![
        3 => Just(0_u64),
        4 => prop::sample::select(AGES.to_vec()),
        2 => (prop::sample::select(AGES.to_vec()), 0..400_u64).prop_map(|(age, more)| age + more),
        1 => 0..FIRST / 2,
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    use Operation::*;
    let drain = prop_oneof![
        3 => Just(phitwire::link::testing::end::Drain::Eager),
        2 => (1..40_u32).prop_map(phitwire::link::testing::end::Drain::Slow),
        1 => Just(phitwire::link::testing::end::Drain::Blocked),
    ];
    prop_oneof![
        4 => (0..2_usize, 1..400_usize).prop_map(|(end, packets)| Load { end, packets }),
        4 => (1..2_000_u64).prop_map(|us| Run { us }),
        12 => (0..2_usize, any::<prop::sample::Index>(), age(), age())
            .prop_map(|(to, which, packets, acked)| Copy { to, which, packets, acked }),
        1 => (0..100_u64).prop_map(Loss),
        1 => (0..300_u64).prop_map(Reorder),
        1 => (0..2_usize, drain).prop_map(|(end, drain)| Drain { end, drain }),
    ]
}

fn apply(pair: &mut Pair, operation: Operation) {
    match operation {
        Operation::Load { end, packets } => pair.load(end, packets),
        Operation::Run { us } => pair.run_for(Duration::from_us(us)),
        Operation::Loss(parts) => pair.wire(|wire| wire.loss = parts),
        Operation::Reorder(parts) => pair.wire(|wire| wire.reorder = parts),
        Operation::Drain { end, drain } => pair.ends[end].drain = drain,
        Operation::Copy {
            to,
            which,
            packets,
            acked,
        } => {
            let frames: Vec<_> = pair.tape.iter().filter(|(end, _)| *end == to).collect();
            if frames.is_empty() {
                return;
            }
            let bytes = which.get(&frames).1.clone();
            // Renumber a copy only if its new position has been received already, since its
            // contents do not match the new numbers.
            let here = pair.ends[to].lcb.wire().rx.expected();
            let behind = word(&bytes).is_some_and(|word| {
                let phits = data(&bytes).map_or(0, |data| data.phits()) as i64;
                word.seq.distance_from(here) - packets as i64 + phits / 4 <= 0
            });
            let copy = if behind && packets > 0 {
                aged(pair, &bytes, packets, acked)
            } else {
                bytes
            };
            pair.inject(to, &copy);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn copies_of_any_age_neither_deliver_nor_mint_nor_wedge(
        seed in any::<u64>(),
        first in prop::sample::select(vec![FIRST, (1 << 48) - 500, (1 << 47) - 700]),
        operations in prop::collection::vec(operation(), 1..80),
    ) {
        let mut pair = pair(seed, first);
        pair.wait_up();
        pair.restart_tape();
        for operation in operations {
            apply(&mut pair, operation);
        }
        pair.wire(|wire| *wire = Wire::clean());
        pair.ends.iter_mut().for_each(|end| end.drain = Drain::Eager);
        pair.finish(SECOND.times(30));
        for end in [A, B] {
            let sent = pair.count(end, |c| c.tx_packets);
            prop_assert_eq!(pair.count(1 - end, |c| c.rx_packets), sent);
            prop_assert_eq!(pair.count(end, |c| c.tx_acked_packets), sent);
        }
    }
}

/// While the peer is suspended it sends no replies, and only old copies arrive: that ends no
/// session, and nothing is lost when it resumes.
#[test]
fn old_copies_do_not_end_the_session_of_a_suspended_peer() {
    let mut pair = Pair::up(6);
    pair.restart_tape();
    for _ in 0..12_000 {
        pair.ends[B].send(REQUEST, 5);
    }
    pair.finish(SECOND);
    let (_, old) = tape(&pair, A).remove(0);
    pair.wire(|wire| wire.cut = true);
    pair.load(A, 100);
    for _ in 0..100 {
        pair.inject(A, &old);
        pair.run_for(Duration::from_ms(100));
    }
    assert_eq!(pair.count(A, |c| c.rx_stale_frames), 100);
    pair.wire(|wire| wire.cut = false);
    pair.finish(SECOND.times(2));
    for end in &pair.ends {
        assert_eq!(end.lcb.counters().unusable_sessions, 0);
        assert_eq!(end.lcb.counters().tx_discarded_packets, 0);
    }
}

/// A peer whose frames all count as old shares no session with this end, which eventually notices.
#[test]
fn an_end_that_sees_only_stale_frames_begins_a_new_session() {
    let mut pair = Pair::up(7);
    pair.restart_tape();
    for _ in 0..12_000 {
        pair.ends[B].send(REQUEST, 5);
    }
    pair.finish(SECOND);
    let (_, old) = tape(&pair, A).remove(0);
    pair.wire(|wire| wire.cut = true);
    let begin = pair.now;
    while pair.count(A, |c| c.unusable_sessions) == 0 {
        assert!(
            pair.now.since(begin) < SECOND.times(100),
            "{}",
            pair.state()
        );
        pair.inject(A, &old);
        pair.run_for(Duration::from_ms(100));
    }
    assert!(pair.now.since(begin) > SECOND.times(50));
    pair.wire(|wire| wire.cut = false);
    pair.wait_up();
}

//! Bursts that no correct peer sends.

use phitwire_framing::t3e::burst::{BURST_FLITS, Burst};
use phitwire_framing::t3e::flit::{Control, Flit, VCS};

use crate::link::testing::{Flits, Pair, packet};
use crate::link::{BurstPacket, Depths, FlitBuffer, FlitCounters};
use phitwire::link::testing::hostile::never_panics;
use phitwire::link::testing::rig::{A, B, Link};
use phitwire::link::{NodeLink, ReceiveBuffer as _};
use phitwire::packets::link::testing::forged;
use phitwire::rng::Rng;
use phitwire::time::Duration;

fn frame(pair: &Pair, to: usize, bursts: &[BurstPacket]) -> Vec<u8> {
    let ends = [1 - to, to].map(|end| pair.ends[end].lcb.carrier());
    forged(ends, 7, 0, bursts)
}

fn counters(pair: &Pair, end: usize) -> FlitCounters {
    let end = &pair.ends[end];
    end.lcb.flit_counters()
}

fn of(flits: &[Flit]) -> BurstPacket {
    let mut burst = Burst::default();
    for (at, flit) in flits.iter().enumerate() {
        (burst.words[at], burst.controls[at]) = (flit.word, flit.control);
    }
    BurstPacket(burst)
}

/// A burst of individually valid flits in a random order.
fn some(rng: &mut Rng) -> BurstPacket {
    let mut burst = Burst::default();
    for at in 0..BURST_FLITS {
        let vc = rng.below(VCS as u64) as usize;
        let control = match rng.below(8) {
            0 => Control::IDLE,
            1 => Control::barrier(),
            2 => Control::maintenance(rng.chance(1, 2)),
            _ => Control::data(vc, rng.chance(1, 3)),
        };
        burst.controls[at] = match rng.chance(1, 2) {
            true => control.with_credit(rng.below(VCS as u64) as usize),
            false => control,
        };
        burst.words[at] = match rng.below(3) {
            0 => packet(vc, rng.next_u64() as u32, rng.below(4) as usize)[0].word,
            1 => rng.next_u64() >> 4 | 1 << 62,
            _ => rng.next_u64(),
        };
    }
    BurstPacket(burst)
}

#[test]
fn hostile_bursts_neither_panic_nor_overfill_the_buffers() {
    let mut pair = Pair::up(1);
    never_panics(&mut pair, 20_000, |pair| {
        let to = pair.rng.below(2) as usize;
        let bursts: Vec<_> = (0..pair.rng.below(12))
            .map(|_| some(&mut pair.rng))
            .collect();
        frame(pair, to, &bursts)
    });
    for end in [A, B] {
        for vc in 0..VCS {
            assert!(Flits::credits(&pair.ends[end].lcb, vc) < 1 << 12);
        }
    }
    // Repeat without a consumer.
    let mut pair = Pair::up(2);
    for _ in 0..3_000 {
        let bursts: Vec<_> = (0..10).map(|_| some(&mut pair.rng)).collect();
        let frame = frame(&pair, B, &bursts);
        pair.inject(B, &frame);
    }
    let input = pair.ends[B].lcb.input();
    assert!(input.queued() <= 10 * 2_029 * VCS as u64);
    let counters = counters(&pair, B);
    assert!(counters.rx_overflows > 0 && counters.rx_urgent_lost > 0);
}

#[test]
fn a_second_grant_and_credits_from_nowhere_are_not_believed() {
    let mut pair = Pair::up(3);
    pair.exchange(50, Duration::from_ms(1_000));
    let before = Flits::credits(&pair.ends[B].lcb, 0);
    // A grant of the largest possible counts.
    let grant = Flit {
        word: !(7 << 60),
        control: Control::IDLE,
    };
    let bytes = frame(&pair, B, &[of(&[grant])]);
    pair.inject(B, &bytes);
    assert_eq!(Flits::credits(&pair.ends[B].lcb, 0), before);
    let credit = Flit {
        word: 0,
        control: Control::IDLE.with_credit(0),
    };
    for _ in 0..1_000 {
        let bytes = frame(&pair, B, &[of(&[credit; BURST_FLITS])]);
        pair.inject(B, &bytes);
    }
    assert_eq!(Flits::credits(&pair.ends[B].lcb, 0), 4_095);
    assert_eq!(
        counters(&pair, B).rx_impossible_credits,
        8_000 - (4_095 - u64::from(before))
    );
    // Return them in one word: excess credits are rejected, those of another channel accepted.
    let many = Flit {
        word: 1 << 62 | 4_095 | 1 << 24,
        control: Control::IDLE,
    };
    let before = counters(&pair, B).rx_impossible_credits;
    let third = Flits::credits(&pair.ends[B].lcb, 2);
    let bytes = frame(&pair, B, &[of(&[many])]);
    pair.inject(B, &bytes);
    assert_eq!(Flits::credits(&pair.ends[B].lcb, 0), 4_095);
    assert_eq!(Flits::credits(&pair.ends[B].lcb, 2), third + 1);
    assert_eq!(counters(&pair, B).rx_impossible_credits, before + 4_095);
}

/// Words of idle flits have unused bits.
#[test]
fn idle_words_with_bits_that_mean_nothing_are_refused_and_counted() {
    let mut pair = Pair::up(4);
    pair.exchange(50, Duration::from_ms(1_000));
    let before: [u32; VCS] = core::array::from_fn(|vc| Flits::credits(&pair.ends[B].lcb, vc));
    let unused = [61, 60].map(|bit| 1 << 62 | 1 << bit | 1);
    let no_kind = [1, 1 << 59, 1 << 61, u64::MAX >> 2];
    let grants = [60, 61, 62].map(|bit| 1 << 63 | 1 << bit | 1);
    let all = [&unused[..], &no_kind, &grants].concat();
    for &word in &all {
        let control = Control::IDLE;
        let bytes = frame(&pair, B, &[of(&[Flit { word, control }])]);
        pair.inject(B, &bytes);
    }
    let after = core::array::from_fn(|vc| Flits::credits(&pair.ends[B].lcb, vc));
    assert_eq!(before, after, "none of them returns a credit");
    assert_eq!(counters(&pair, B).rx_bad_idle_words, all.len() as u64);
    assert_eq!(counters(&pair, B).rx_impossible_credits, 0);
}

/// If a header announces more flits than follow, the missing ones are made up, reported, and cost
/// no credit.
#[test]
fn an_interrupted_packet_is_completed_and_reported() {
    let mut buffer = FlitBuffer::correcting(Depths::PAPER);
    let (long, short) = (packet(1, 5, 3), packet(1, 6, 0));
    assert_eq!(buffer.receive(1, long[0]), (1, false));
    assert_eq!(buffer.receive(1, short[0]), (10, false));
    assert_eq!(buffer.receive(1, short[1]), (1, false));
    assert_eq!(buffer.len(1), 12);
    // Of twelve slots the peer has used three, and may use nine.
    for flit in short.iter().cycle().take(8) {
        assert_eq!(buffer.receive(1, *flit), (1, false));
    }
    assert_eq!(buffer.receive(1, short[0]), (1, false));
    assert_eq!(buffer.receive(1, short[1]), (0, false));
    assert_eq!(buffer.counters.rx_overflows, 1);
    let freed = (0..buffer.len(1)).filter(|_| buffer.pop(1).1).count();
    assert_eq!(freed, 12);
}

/// If a header has no free slot, the rest of its packet is discarded too.
#[test]
fn the_rest_of_a_packet_whose_header_had_no_slot_is_discarded() {
    let mut buffer = FlitBuffer::new(Depths::PAPER);
    let long = packet(0, 5, 3);
    for flit in &long {
        assert_eq!(buffer.receive(0, *flit), (1, false));
    }
    let short = packet(0, 6, 0);
    for flit in &short {
        buffer.receive(0, *flit);
    }
    assert_eq!(buffer.receive(0, long[0]), (0, false), "the buffer is full");
    buffer.pop(0);
    assert_eq!(
        buffer.receive(0, long[1]),
        (0, true),
        "the flit has no header"
    );
    assert_eq!(buffer.counters.rx_headless_flits, 1);
}

//! Sessions that end in the middle of packets, and wrong bits above the carrier.

use phitwire_framing::t3e::flit::{Control, Flit};
use phitwire_framing::t3e::header::{Command, Header, Name};
use phitwire_framing::t3e::maintenance::MAINTENANCE_FLITS;
use phitwire_framing::t3e::tag::Tag;

use crate::link::end::MAX_URGENT;
use crate::link::testing::{Pair, apply_fault};
use phitwire::device::{LinkFault, LinkView as _};
use phitwire::link::NodeLink;
use phitwire::link::impair::Probability;
use phitwire::link::testing::rig::{A, B, Drain};
use phitwire::time::Duration;

#[test]
fn packets_cut_by_a_session_end_are_completed_and_marked() {
    let (mut cut, mut given_up) = (0, 0);
    for seed in 0..60 {
        let mut pair = Pair::up(seed);
        pair.allow_gaps();
        // Packets lost and not yet resent end with the session.
        pair.wire(|wire| wire.loss = 500);
        for end in [A, B] {
            pair.ends[end].frame_bytes = 300;
            pair.load(end, 60);
        }
        let us = 1 + pair.rng.below(40);
        pair.run_for(Duration::from_us(us));
        pair.link_down(A);
        pair.wire(|wire| wire.loss = 0);
        let us = pair.rng.below(3_000);
        pair.run_for(Duration::from_us(us));
        pair.link_up(A);
        pair.wait_up();
        pair.exchange(50, Duration::from_ms(5_000));
        cut += pair.ends.iter().map(|end| end.cut).sum::<u64>();
        for end in &pair.ends {
            let counters = end.lcb.flit_counters();
            assert_eq!(counters.rx_overflows + counters.rx_impossible_credits, 0);
            let account = end.lcb.account();
            assert_eq!(account.credits, account.offers, "every credit is back");
        }
        for end in [A, B] {
            let [own, peer] = [end, 1 - end].map(|end| {
                let lcb = &pair.ends[end].lcb;
                lcb.flit_counters()
            });
            // Some of the discarded flits had arrived, so fewer are missing.
            let missing = own.tx_flits - peer.rx_flits;
            assert!(missing <= own.tx_discarded_flits, "{missing} {own:?}");
            given_up += own.tx_discarded_flits;
        }
    }
    assert!(cut > 10 && given_up > 1_000, "{cut} {given_up}");
}

#[test]
fn grants_come_with_what_is_left_in_the_buffers() {
    let mut pair = Pair::up(7);
    pair.allow_gaps();
    pair.ends[B].drain = Drain::Blocked;
    pair.load(A, 100);
    pair.run_for(Duration::from_ms(5));
    let held: Vec<u32> = (0..5)
        .map(|vc| pair.ends[B].lcb.input().buffer().len(vc))
        .collect();
    assert!(held.iter().all(|held| *held > 0));
    pair.link_down(B);
    pair.run_for(Duration::from_ms(5));
    pair.link_up(B);
    pair.wait_up();
    pair.run_for(Duration::from_ms(5));
    let credits = pair.ends[A].lcb.account().credits;
    let all = pair.ends[B].lcb.account().offers;
    for vc in 0..5 {
        assert_eq!(credits[vc] + held[vc], all[vc]);
    }
    pair.ends[B].drain = Drain::Eager;
    pair.exchange(50, Duration::from_ms(5_000));
}

#[test]
fn one_wrong_bit_is_corrected_and_two_are_reported() {
    let mut pair = Pair::up(8);
    // Cut packets are beyond correction.
    pair.allow_gaps();
    let noise = |of: u64, lane| LinkFault::LaneNoise {
        lane,
        per_bit: Probability::from_ratio(1, of),
    };
    assert!(
        !apply_fault(&mut pair, A, noise(10, 14)),
        "the lane does not exist"
    );
    assert!(apply_fault(&mut pair, A, noise(20_000, 3)));
    pair.load(A, 30_000);
    pair.run_until(Duration::from_ms(60_000), |pair| {
        pair.ends[A].backlog.is_empty()
    });
    pair.run_for(Duration::from_ms(100));
    let lcb = &pair.ends[B].lcb;
    let counters = lcb.flit_counters();
    assert!(counters.rx_corrected_packets > 10, "{counters:?}");
    let account = pair.ends[A].lcb.account();
    assert_eq!(account.credits, account.offers, "every credit is back");
}

/// A header flit of `command` with three wrong bits, read as one of `other`.
fn misread(command: Command, other: Command) -> Option<u64> {
    let word = Header::new(command, Tag::default(), Name::new(1), 3).emit();
    for a in 0..64 {
        for b in 0..a {
            for c in 0..b {
                let wrong = word ^ 1 << a ^ 1 << b ^ 1 << c;
                if Header::parse(wrong).is_ok_and(|(header, _)| header.command == other) {
                    return Some(wrong);
                }
            }
        }
    }
    None
}

#[test]
fn a_packet_with_a_length_too_large_times_out() {
    let mut longer = Command::ALL.into_iter().filter(|(_, _, flits)| *flits > 2);
    let long = longer.find_map(|(other, _, flits)| {
        let head = misread(Command::Get1, other)?;
        Some((other, flits, head))
    });
    let (long, flits, head) = long.expect("three wrong bits are not detected");
    let whole = Header::new(long, Tag::default(), Name::new(1), 3).emit();
    for (head, is_doubtful) in [(head, true), (whole, false)] {
        let mut pair = Pair::up(9);
        pair.allow_gaps();
        pair.ends[B].drain = Drain::Blocked;
        for (at, word) in [head, 7].into_iter().enumerate() {
            pair.ends[A].lcb.push(1, Flit::data(word, 1, at == 0));
        }
        pair.run_for(Duration::from_ms(400));
        let lacks = |pair: &Pair| pair.ends[B].lcb.input().buffer().coming(1);
        assert_eq!(lacks(&pair), flits - 2);
        pair.run_for(Duration::from_ms(200));
        if !is_doubtful {
            assert_eq!(lacks(&pair), flits - 2, "the rest may arrive late");
            continue;
        }
        let lcb = &pair.ends[B].lcb;
        assert_eq!(
            (lacks(&pair), lcb.input().buffer().len(1)),
            (0, flits.into())
        );
        assert_eq!(lcb.flit_counters().rx_truncated_packets, 1);
        pair.ends[B].drain_unchecked();
        pair.run_for(Duration::from_ms(50));
        let account = pair.ends[A].lcb.account();
        assert_eq!(account.credits, account.offers, "every credit is back");
        // The timed-out packet must not make later ones time out.
        pair.ends[B].drain = Drain::Eager;
        pair.exchange(50, Duration::from_ms(5_000));
    }
}

/// Of two packets in a row that lack equally many flits, the second gets the full timeout.
#[test]
fn a_second_packet_in_doubt_has_its_own_time() {
    let word = Header::new(Command::Put1, Tag::default(), Name::new(1), 3).emit();
    let header = word ^ 1 << 20;
    let mut pair = Pair::up(10);
    pair.allow_gaps();
    pair.ends[B].drain = Drain::Blocked;
    let push = |pair: &mut Pair, words: &[u64]| {
        for &word in words {
            let flit = Flit::data(word, 1, word == header);
            pair.ends[A].lcb.push(1, flit);
        }
    };
    let lacks = |pair: &Pair| pair.ends[B].lcb.input().buffer().coming(1);
    push(&mut pair, &[header, 7]);
    pair.run_for(Duration::from_ms(300));
    assert_eq!(lacks(&pair), 2);
    push(&mut pair, &[7, 7, header, 7]);
    pair.run_for(Duration::from_ms(300));
    assert_eq!(lacks(&pair), 2, "the flits have waited for 300 ms, not 600");
    pair.run_for(Duration::from_ms(300));
    assert_eq!(lacks(&pair), 0);
    let lcb = &pair.ends[B].lcb;
    assert_eq!(lcb.flit_counters().rx_truncated_packets, 1);
}

/// A maintenance packet cut off by the end of a session before its header was read is dropped
/// entirely: routers would reserve ports for it.
#[test]
fn a_maintenance_packet_that_is_cut_off_unseen_is_dropped() {
    let flit = |control| Flit { word: 0, control };
    let barrier = flit(Control::barrier());
    for came in 1..=MAINTENANCE_FLITS {
        let mut pair = Pair::up(12);
        let lcb = &mut pair.ends[A].lcb;
        for at in 0..came {
            assert!(lcb.push_urgent(flit(Control::maintenance(at == 0))));
            assert!(lcb.push_urgent(barrier));
        }
        pair.run_for(Duration::from_ms(5));
        let has = |pair: &mut Pair| -> Vec<Flit> {
            let input = pair.ends[B].lcb.input_mut();
            core::iter::from_fn(|| input.pop_urgent()).collect()
        };
        pair.link_down(B);
        let left = has(&mut pair);
        let maintenance = left.iter().filter(|flit| **flit != barrier).count();
        let whole = came == MAINTENANCE_FLITS;
        assert_eq!(maintenance, if whole { came } else { 0 }, "{left:?}");
        assert_eq!(left.len() - maintenance, came, "no barrier flit is lost");
        let lcb = &pair.ends[B].lcb;
        let lost = lcb.flit_counters().rx_urgent_lost;
        assert_eq!(lost, if whole { 0 } else { came as u64 });
    }
}

/// A maintenance packet begins only if its other flits fit, too.
#[test]
fn a_maintenance_packet_that_has_begun_is_taken_whole() {
    let flit = |control| Flit { word: 0, control };
    let barrier = flit(Control::barrier());
    for before in 0..MAX_URGENT {
        let mut pair = Pair::up(11);
        let lcb = &mut pair.ends[A].lcb;
        let filled = (0..before).all(|_| lcb.push_urgent(barrier));
        if !filled || !lcb.push_urgent(flit(Control::maintenance(true))) {
            assert!(
                before > MAX_URGENT - 5,
                "there was room for {before} and more"
            );
            continue;
        }
        for _ in 1..MAINTENANCE_FLITS {
            while lcb.takes_urgent() {
                lcb.push_urgent(barrier);
            }
            assert!(!lcb.push_urgent(barrier));
            assert!(
                lcb.push_urgent(flit(Control::maintenance(false))),
                "after {before}"
            );
        }
    }
}

//! The input queue's rules for bad packets (BlackWidow sec. 4.3), one interleaving at a time.

use phitwire_framing::yarc::crc16::PacketCrc;
use phitwire_framing::yarc::packet::{EopStatus, Vc};
use phitwire_framing::yarc::phit::{Phit, PhitKind};

use crate::link::testing::packet;
use crate::link::{InputQueue, Verdict};

const VC: Vc = Vc::Request;

fn write(queue: &mut InputQueue, phits: &[Phit]) {
    phits.iter().for_each(|phit| queue.phit(*phit));
}

fn poison(phits: &[Phit]) -> Phit {
    let mut crc = PacketCrc::new();
    phits.iter().for_each(|phit| crc.update(phit.content()));
    Phit::new(PhitKind::Eop, crc.eop(EopStatus::TransmitError))
}

fn accept(queue: &mut InputQueue, phits: &[Phit]) -> bool {
    let (eop, rest) = phits.split_last().unwrap();
    write(queue, rest);
    queue.end(*eop, Verdict::Accepted)
}

fn reject(queue: &mut InputQueue, phits: &[Phit]) {
    write(queue, phits);
    queue.end(poison(phits), Verdict::Rejected);
}

fn pop(queue: &mut InputQueue, count: usize) -> Vec<Phit> {
    (0..count).map(|_| queue.pop(VC)).collect()
}

#[test]
fn a_rejected_packet_that_has_not_begun_vanishes() {
    let mut queue = InputQueue::with_depth(40, 19);
    let (first, bad) = (packet(VC, 0, 5), packet(VC, 1, 8));
    assert!(accept(&mut queue, &first));
    reject(&mut queue, &bad[..6]);
    assert_eq!(queue.len(VC), 5);
    assert!(accept(&mut queue, &bad));
    assert_eq!(pop(&mut queue, 13), [first, bad].concat());
    assert_eq!(queue.take_acks(VC), 13);
}

#[test]
fn a_rejected_packet_that_has_begun_flows_on_and_gives_no_acks() {
    let mut queue = InputQueue::with_depth(40, 19);
    let bad = packet(VC, 0, 8);
    write(&mut queue, &bad[..4]);
    pop(&mut queue, 2);
    assert_eq!(queue.take_acks(VC), 0, "held back until the verdict");
    write(&mut queue, &bad[4..6]);
    queue.end(poison(&bad[..6]), Verdict::Rejected);
    assert_eq!(queue.len(VC), 5, "the rest, with a corrected end");
    assert_eq!(pop(&mut queue, 5).last(), Some(&poison(&bad[..6])));
    assert_eq!(queue.take_acks(VC), 0);
    assert!(accept(&mut queue, &bad));
    pop(&mut queue, 8);
    assert_eq!(
        queue.take_acks(VC),
        8,
        "the resent packet used the same credits"
    );
}

#[test]
fn acks_of_an_open_packet_come_with_its_acceptance() {
    let mut queue = InputQueue::with_depth(40, 19);
    let (first, good) = (packet(VC, 0, 4), packet(VC, 1, 8));
    assert!(accept(&mut queue, &first));
    write(&mut queue, &good[..5]);
    pop(&mut queue, 7);
    assert_eq!(queue.take_acks(VC), 4, "only those of the previous packet");
    write(&mut queue, &good[5..7]);
    assert!(queue.end(good[7], Verdict::Accepted));
    assert_eq!(queue.take_acks(VC), 3);
    pop(&mut queue, 5);
    assert_eq!(queue.take_acks(VC), 5);
}

#[test]
fn retransmissions_fail_again_while_the_poisoned_rest_is_blocked() {
    let mut queue = InputQueue::with_depth(19, 19);
    let bad = packet(VC, 0, 19);
    write(&mut queue, &bad[..17]);
    pop(&mut queue, 1);
    write(&mut queue, &bad[17..18]);
    queue.end(poison(&bad[..18]), Verdict::Rejected);
    assert_eq!(queue.len(VC), 18);
    for cut in [3, 18, 1, 18] {
        reject(&mut queue, &bad[..cut]);
        assert_eq!(queue.len(VC), 18, "removed behind the blocked packet");
    }
    assert!(
        accept(&mut queue, &bad),
        "credits and slack hold both packets"
    );
    assert_eq!(queue.len(VC), 37);
    pop(&mut queue, 18);
    assert_eq!(queue.take_acks(VC), 0);
    assert_eq!(pop(&mut queue, 19), bad);
    assert_eq!(queue.take_acks(VC), 19);
}

#[test]
fn a_retransmission_begins_while_it_still_arrives_and_fails_again() {
    let mut queue = InputQueue::with_depth(19, 19);
    let bad = packet(VC, 0, 19);
    write(&mut queue, &bad[..10]);
    pop(&mut queue, 1);
    queue.end(poison(&bad[..10]), Verdict::Rejected);
    // The second copy arrives behind the rest of the first, which then drains into it.
    write(&mut queue, &bad[..12]);
    pop(&mut queue, 10 + 3);
    assert_eq!(queue.take_acks(VC), 0);
    queue.end(poison(&bad[..12]), Verdict::Rejected);
    assert_eq!(queue.len(VC), 10, "the packet had begun, so it flows on");
    assert!(accept(&mut queue, &bad));
    pop(&mut queue, 29);
    assert_eq!(queue.take_acks(VC), 19);
    assert!(queue.is_empty());
}

#[test]
fn an_overflowing_packet_is_excised_and_discarded_to_its_end() {
    let mut queue = InputQueue::with_depth(20, 19);
    let full = packet(VC, 0, 19);
    assert!(accept(&mut queue, &full));
    assert!(accept(&mut queue, &packet(VC, 1, 16)));
    assert_eq!(queue.len(VC), 35);
    let over = packet(VC, 2, 8);
    write(&mut queue, &over[..5]);
    assert_eq!(
        queue.len(VC),
        35,
        "the fifth packet did not fit and was excised"
    );
    write(&mut queue, &over[5..7]);
    pop(&mut queue, 30);
    assert!(
        !queue.end(over[7], Verdict::Accepted),
        "discarded up to its EOP although there is room"
    );
    assert_eq!(queue.len(VC), 5);
    assert!(accept(&mut queue, &over));
}

#[test]
fn an_end_that_does_not_fit_is_an_overflow_too() {
    let mut queue = InputQueue::with_depth(20, 19);
    assert!(accept(&mut queue, &packet(VC, 0, 19)));
    assert!(accept(&mut queue, &packet(VC, 1, 13)));
    assert!(!accept(&mut queue, &packet(VC, 2, 8)));
    assert_eq!(queue.len(VC), 32);
    assert!(accept(&mut queue, &packet(VC, 2, 7)));
}

/// A packet that an earlier link marked `transmit_error`, received correctly on this one.
fn poisoned_upstream(phits: usize) -> Vec<Phit> {
    let mut whole = packet(VC, 0, phits);
    whole.pop();
    let eop = poison(&whole);
    whole.push(eop);
    whole
}

#[test]
fn a_packet_poisoned_upstream_gives_its_acks_back_here() {
    let mut queue = InputQueue::with_depth(40, 19);
    let bad = poisoned_upstream(7);
    assert!(accept(&mut queue, &bad));
    assert_eq!(queue.len(VC), 0, "a packet that had not begun is removed");
    assert_eq!(queue.take_acks(VC), 7);
    write(&mut queue, &bad[..3]);
    pop(&mut queue, 1);
    write(&mut queue, &bad[3..6]);
    assert!(queue.end(bad[6], Verdict::Accepted));
    assert_eq!(queue.take_acks(VC), 1, "a packet that had begun is kept");
    assert_eq!(pop(&mut queue, 6), bad[1..]);
    assert_eq!(queue.take_acks(VC), 6);
}

#[test]
fn channels_do_not_mix() {
    let mut queue = InputQueue::with_depth(40, 19);
    let (request, response) = (packet(Vc::Request, 0, 4), packet(Vc::Response, 0, 6));
    assert!(accept(&mut queue, &request));
    write(&mut queue, &response[..3]);
    assert_eq!(queue.pending_vcs(), 0b11);
    assert_eq!(queue.front(Vc::Response), Some(response[0]));
    pop(&mut queue, 4);
    assert_eq!(
        queue.take_acks(Vc::Request),
        4,
        "the open packet is on the other channel"
    );
    assert_eq!(queue.pending_vcs(), 0b10);
    assert_eq!(queue.front(Vc::Request), None);
}

#[test]
#[should_panic(expected = "the queue is empty")]
fn nothing_comes_out_of_an_empty_queue() {
    InputQueue::with_depth(40, 19).pop(VC);
}

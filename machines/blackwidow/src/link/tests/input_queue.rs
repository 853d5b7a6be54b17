//! The input queue reports its changes.

use crate::link::{InputQueue, Verdict};
use phitwire::link::{Change, ReceiveBuffer};
use phitwire::rng::Rng;
use phitwire_framing::yarc::crc16::PacketCrc;
use phitwire_framing::yarc::packet::{EopStatus, Vc};
use phitwire_framing::yarc::phit::{Phit, PhitKind};

/// Writes a few phits of packets that may be rejected. Their contents have few values, so that
/// packets often look alike. `open` is the number of phits of the packet being written.
fn write_phits(rng: &mut Rng, queue: &mut InputQueue, open: &mut u64) {
    for _ in 0..rng.below(8) {
        if *open == 0 {
            let head = rng.below(2) << 15 | rng.below(2);
            queue.phit(Phit::new(PhitKind::Head, head as u32));
            *open = 1;
        } else if *open < 18 && rng.chance(3, 4) {
            queue.phit(Phit::new(PhitKind::Body, rng.below(2) as u32));
            *open += 1;
        } else {
            let status = match rng.below(3) {
                0 => EopStatus::TransmitError,
                _ => EopStatus::Healthy,
            };
            let verdict = match rng.below(3) {
                0 => Verdict::Rejected,
                _ => Verdict::Accepted,
            };
            let eop = PacketCrc::new().eop(status);
            queue.end(Phit::new(PhitKind::Eop, eop), verdict);
            *open = 0;
        }
    }
}

/// The state of a queue that a reader compares before and after.
fn measured(queue: &InputQueue) -> [(u32, [Option<Phit>; 2]); 2] {
    Vc::ALL.map(|vc| (queue.len(vc), [queue.front(vc), queue.second(vc)]))
}

#[test]
fn a_queue_reports_changes_as_measured() {
    let mut rng = Rng::new(5, 0);
    let mut queue = InputQueue::with_depth(40, 19);
    let (mut open, mut fronts, mut arrivals) = (0, 0, 0);
    for _ in 0..200_000 {
        let before = measured(&queue);
        write_phits(&mut rng, &mut queue, &mut open);
        let after = measured(&queue);
        let mut changes = [None; 2];
        queue.take_changes(|vc, change| changes[vc] = Some(change));
        for vc in 0..2 {
            let new = after[vc].0.saturating_sub(before[vc].0);
            let expected = match new {
                0 if before[vc].1 == after[vc].1 => None,
                0 => Some(Change::Front),
                new => Some(Change::Arrived(new)),
            };
            assert_eq!(changes[vc], expected);
            fronts += u32::from(changes[vc] == Some(Change::Front));
            arrivals += u32::from(new > 0);
        }
        for vc in Vc::ALL {
            let most = rng.below(8);
            for _ in 0..most {
                if queue.ready(vc) {
                    queue.pop(vc);
                }
            }
        }
    }
    assert!(fronts > 1_000 && arrivals > 10_000, "{fronts}, {arrivals}");
}

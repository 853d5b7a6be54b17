//! Packets that are cut, dropped and withdrawn, and ports that fail or stall.

use super::*;
use phitwire::time::Duration;

#[test]
fn violations_are_swallowed_counted_and_reported() {
    let (mut core, mut bench) = (Core::new(up_chip()), Bench::default());
    bench.inject(&mut core, 40, &packet(head(100, REQUEST), 0, 0, 9));
    bench.inject(&mut core, 40, &packet(head(7, REQUEST), 0, 0, 5));
    bench.drain(&mut core);
    let (port, destination) = (40, 100);
    let violation = RouterEvent::UpDownViolation { port, destination };
    assert_eq!(core.poll_event(), Some(violation));
    assert_eq!(bench.packets(7).len(), 1, "the next packet is not affected");
    assert_eq!(core.counters().up_down_violations, 1);
    assert_eq!(core.counters().swallowed_phits, 9);

    let chip = chip_of(|port, tile| {
        tile.exit_mask = 0xffff_ffff << (port & 32);
        tile.root_detect.mask = 31;
    });
    let (mut core, mut bench) = (Core::new(chip), Bench::default());
    bench.inject(&mut core, 2, &packet(head(100, REQUEST), 0, 0, 4));
    bench.drain(&mut core);
    let unroutable = RouterEvent::Unroutable {
        port: 2,
        destination,
    };
    assert_eq!(core.poll_event(), Some(unroutable));
    let chip = core.registers().clone();
    let (mut core, mut bench) = (Core::new(chip), Bench::default());
    bench.inject(&mut core, 50, &packet(head(3, REQUEST), 0, 0, 4));
    bench.inject(&mut core, 2, &packet(head(3, REQUEST), 0, 0, 4));
    bench.drain(&mut core);
    let violation = RouterEvent::VirtualRouterViolation {
        port: 50,
        destination: 3,
    };
    assert_eq!(core.poll_event(), Some(violation));
    assert_eq!(bench.packets(3).len(), 1);
    assert_eq!(core.counters().virtual_router_violations, 1);
}

/// Packets cut anywhere, even right after the head, pass every stage and leave no state behind.
#[test]
fn short_poisoned_packets_pass_every_stage() {
    for length in 1..=18 {
        for adaptive in [false, true] {
            let (mut core, mut bench) = (Core::new(up_chip()), Bench::default());
            let h = Head {
                adaptive,
                hashed: !adaptive,
                ..head(100, REQUEST)
            };
            let whole = packet(h, 5, 1, 19);
            for _ in 0..40 {
                bench.inject(&mut core, 3, &cut(&whole, length));
                bench.inject(&mut core, 4, &cut(&whole, length));
            }
            bench.inject(&mut core, 3, &whole);
            bench.drain(&mut core);
            let packets: Vec<_> = (32..64).flat_map(|port| bench.packets(port)).collect();
            assert_eq!(packets.len(), 81);
            assert_eq!(packets.iter().filter(|p| **p == whole).count(), 1);
            assert_eq!(core.counters().poisoned_packets_forwarded, 80);
            assert_eq!(core.phits_inside(), 0);
        }
    }
}

#[test]
fn streams_without_head_or_end_do_not_wedge_the_tile() {
    let (mut core, mut bench) = flat();
    let good = packet(head(9, REQUEST), 0, 3, 6);
    // A packet without its head.
    bench.queues[1][0].extend(&good[1..]);
    core.arrived(1, 0, 5);
    // A packet without its end: the next head is forwarded as body.
    bench.inject(&mut core, 1, &good[..4]);
    bench.inject(&mut core, 1, &good);
    bench.inject(&mut core, 1, &good);
    bench.drain(&mut core);
    let packets = bench.packets(9);
    assert_eq!(packets.iter().map(Vec::len).collect::<Vec<_>>(), [10, 6]);
    assert_eq!(packets[1], good);
    assert_eq!(core.counters().headless_packets, 1);
    assert_eq!(core.counters().stray_heads, 1);
}

/// The link withdraws a rejected packet before it has begun to flow (BlackWidow sec. 4.3).
#[test]
fn a_packet_taken_back_before_it_flowed_leaves_no_trace() {
    let (mut core, mut bench) = flat();
    // The packet at the front is routed and waits for room in its row buffer.
    bench.blocked[0] = 1 << 8;
    bench.inject_all(&mut core, 0, 0..3, |id| packet(head(8, REQUEST), 0, id, 19));
    bench.drain(&mut core);
    let left = bench.queues[0][0].len();
    assert!(left > 19);
    bench.queues[0][0].truncate(left - 19);
    // It is replaced by a packet to a free port.
    bench.inject(&mut core, 0, &packet(head(9, REQUEST), 0, 0, 19));
    bench.drain(&mut core);
    let others = bench.packets(9).len();
    assert_eq!(
        others, 0,
        "the packet waits behind the second one to port 8"
    );
    bench.blocked[0] = 0;
    core.output_changed(8);
    bench.drain(&mut core);
    assert_eq!(bench.packets(8).len(), 2);
    assert_eq!(bench.packets(9).len(), 1);

    // Repeat with an empty queue: the old decision must not delay the new packet.
    let (mut core, mut bench) = flat();
    bench.blocked[0] = 1 << 8;
    bench.inject(&mut core, 0, &packet(head(8, REQUEST), 0, 0, 19));
    bench.inject(&mut core, 0, &packet(head(8, REQUEST), 0, 1, 7));
    bench.inject(&mut core, 0, &packet(head(8, REQUEST), 0, 2, 19));
    bench.drain(&mut core);
    assert_eq!(bench.queues[0][0].len(), 19);
    bench.queues[0][0].clear();
    bench.inject(&mut core, 0, &packet(head(9, REQUEST), 0, 0, 5));
    bench.drain(&mut core);
    assert_eq!(bench.packets(9).len(), 1);
}

#[test]
fn a_dead_port_discards_and_others_flow() {
    let (mut core, mut bench) = flat();
    bench.down = 1 << 8;
    for id in 0..30 {
        bench.inject(&mut core, 0, &packet(head(8, REQUEST), 0, id, 19));
        bench.inject(&mut core, 0, &packet(head(16, REQUEST), 0, id, 4));
    }
    bench.drain(&mut core);
    assert_eq!(bench.packets(16).len(), 30);
    assert_eq!(core.counters().dead_port_packets, 30);
    assert_eq!(core.counters().dead_port_phits, 30 * 19);
    bench.down = 0;
    core.output_changed(8);
    bench.inject(&mut core, 0, &packet(head(8, REQUEST), 0, 99, 4));
    bench.drain(&mut core);
    assert_eq!(bench.packets(8).len(), 1);
}

/// The link fails within a packet: it accepts and discards the rest, and the packets behind it are
/// discarded.
#[test]
fn a_port_that_dies_in_the_middle_of_a_packet_does_not_wedge_the_switch() {
    let (mut core, mut bench) = flat();
    bench.inject(&mut core, 0, &packet(head(8, REQUEST), 0, 1, 19));
    bench.run(&mut core, 2);
    bench.inject(&mut core, 9, &packet(head(8, REQUEST), 0, 2, 5));
    bench.inject(&mut core, 18, &packet(head(8, RESPONSE), 0, 3, 7));
    bench.run(&mut core, 23 + 6);
    assert_eq!(bench.sent[8].len(), 6);
    bench.down = 1 << 8;
    core.output_changed(8);
    bench.drain(&mut core);
    assert_eq!(bench.sent[8].len(), 19);
    assert_eq!(core.counters().dead_port_phits, 12);
    assert_eq!(core.counters().dead_port_packets, 2);
    assert_eq!(core.phits_inside(), 0);
}

fn us(us: u64) -> Time {
    Time::from_ns(us * 1_000)
}

#[test]
fn forward_progress_expires_discards_and_recovers() {
    let (mut core, mut bench) = flat();
    let timeout = Duration::from_ns(1_000_000);
    bench.blocked[0] = 1 << 8;
    for id in 0..10 {
        bench.inject(&mut core, 0, &packet(head(8, REQUEST), 0, id, 10));
        bench.inject(&mut core, 0, &packet(head(8, RESPONSE), 0, id, 10));
    }
    bench.drain(&mut core);
    assert_eq!(bench.packets(8).len(), 10, "responses flow");
    core.check_forward_progress(us(10));
    assert_eq!(core.next_progress_check(), Some(us(10) + timeout));
    core.check_forward_progress(us(1_009));
    assert_eq!(core.poll_event(), None);
    core.check_forward_progress(us(1_010));
    let (port, vc) = (8, REQUEST);
    let expired = RouterEvent::ForwardProgress { port, vc };
    assert_eq!(core.poll_event(), Some(expired));
    assert_eq!(core.discarding(), [1 << 8, 0]);
    bench.drain(&mut core);
    assert_eq!(core.counters().stalled_port_packets, 10);
    assert_eq!(core.phits_inside(), 0);
    // More packets are discarded until the link accepts one.
    bench.inject(&mut core, 0, &packet(head(8, REQUEST), 0, 0, 5));
    bench.drain(&mut core);
    assert_eq!(core.counters().stalled_port_packets, 11);
    bench.blocked[0] = 0;
    bench.inject(&mut core, 0, &packet(head(8, REQUEST), 0, 0, 5));
    bench.drain(&mut core);
    assert_eq!(bench.packets(8).len(), 11);
    let restored = RouterEvent::ForwardProgressRestored { port, vc };
    assert_eq!(core.poll_event(), Some(restored));
    assert_eq!(core.discarding(), [0, 0]);
    core.check_forward_progress(us(9_000_000));
    assert_eq!(core.next_progress_check(), None);
}

#[test]
fn progress_restarts_the_countdown() {
    let (mut core, mut bench) = flat();
    bench.blocked[0] = 1 << 8;
    bench.inject_all(&mut core, 0, 0..10, |id| {
        packet(head(8, REQUEST), 0, id, 10)
    });
    bench.drain(&mut core);
    core.check_forward_progress(us(0));
    // One packet leaves shortly before the timer expires.
    bench.blocked[0] = 0;
    core.output_changed(8);
    bench.run(&mut core, 3);
    bench.blocked[0] = 1 << 8;
    bench.drain(&mut core);
    core.check_forward_progress(us(999));
    core.check_forward_progress(us(1_500));
    assert_eq!(core.poll_event(), None);
    core.check_forward_progress(us(1_999));
    assert!(core.poll_event().is_some());
}

/// Random events: complete, cut, headless and endless packets, maintenance packets, withdrawn
/// packets, links that block and fail, forward-progress timeouts, register changes. The core must
/// drain completely, and every port must still work.
#[test]
fn chaos_leaves_nothing_behind_and_nothing_broken() {
    for seed in 0..60 {
        let (mut core, mut bench) = (Core::new(up_chip()), Bench::default());
        let mut rng = Rng::new(seed, 77);
        for round in 0..600u64 {
            let port = rng.below(64) as usize;
            let vc = Vc::from_index(rng.below(2) as usize);
            let h = Head {
                adaptive: rng.chance(1, 2),
                hashed: rng.chance(1, 2),
                source_routed: rng.chance(1, 10),
                payload: rng.below(8) as u8,
                ..head(rng.below(200) as u16, vc)
            };
            let length = 4 + rng.below(16) as usize;
            let (hash, id) = (rng.below(1 << 15) as u16, rng.below(1 << 22) as u32);
            let whole = packet(h, hash, id, length);
            let keep = 1 + rng.below(length as u64 - 1) as usize;
            match rng.below(12) {
                0 | 1 => bench.inject(&mut core, port, &cut(&whole, keep)),
                2 => {
                    let queue = &mut bench.queues[port][vc.index()];
                    queue.extend(&whole[keep..]);
                    core.arrived(port, vc.index(), (length - keep) as u32);
                }
                3 => bench.inject(&mut core, port, &whole[..keep]),
                4 => {
                    let queue = &mut bench.queues[port][vc.index()];
                    let last = queue.iter().rposition(|phit| phit.is_head());
                    queue.truncate(last.unwrap_or(queue.len()));
                }
                5 => bench.blocked[vc.index()] ^= 1 << rng.below(64),
                6 => bench.down ^= 1 << rng.below(64),
                7 => core.check_forward_progress(Time::from_ns(round * 10_000)),
                8 => {
                    let _ = core.write_register(0x4000 | rng.below(0x1000) as u16, rng.below(64));
                }
                _ => bench.inject(&mut core, port, &whole),
            }
            (0..64).for_each(|port| core.output_changed(port));
            bench.run(&mut core, rng.below(30));
        }
        bench.blocked = [0; 2];
        bench.down = 0;
        // End every stream with an end of packet, and restore the registers of every tile.
        for port in 0..64 {
            for vc in Vc::ALL {
                let end = cut(&packet(head(0, vc), 0, 0, 4), 1);
                bench.queues[port][vc.index()].push_back(end[1]);
                core.arrived(port, vc.index(), 1);
            }
            core.output_changed(port);
        }
        bench.drain(&mut core);
        assert_eq!(core.phits_inside(), 0, "seed {seed}");
        let mut queues = bench.queues.iter().flatten();
        assert!(queues.all(VecDeque::is_empty), "seed {seed}");
        core.registers = up_chip();
        core.compile_routes();
        let before: Vec<usize> = (0..64).map(|port| bench.sent[port].len()).collect();
        for port in 0..64u16 {
            let whole = packet(head(port % 32, REQUEST), port, 1, 9);
            bench.inject(&mut core, port.into(), &whole);
        }
        bench.drain(&mut core);
        for (port, before) in before.iter().enumerate().take(32) {
            let sent = bench.sent[port].len() - before;
            assert_eq!(sent, 18, "seed {seed} port {port}");
        }
    }
}

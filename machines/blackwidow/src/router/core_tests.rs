use std::collections::{HashMap, VecDeque};

use phitwire_framing::yarc::packet::{Head, Vc, check_packet, head_dest, head_vc};

use super::*;
use crate::router::harness::{Bench, chip_of, cut, down_tile, flat, head, low, packet, up_chip};
use crate::router::pipeline::ZERO_LOAD_CYCLES;
use phitwire::rng::Rng;

#[path = "core_fault_tests.rs"]
mod faults;

const REQUEST: Vc = Vc::Request;
const RESPONSE: Vc = Vc::Response;

/// BlackWidow sec. 3: 25 stages, for every tile.
#[test]
fn zero_load_latency_is_25_cycles() {
    for (from, to) in [(0, 0), (0, 63), (63, 0), (9, 9), (17, 42)] {
        let (mut core, mut bench) = flat();
        bench.run(&mut core, 5);
        bench.inject(&mut core, from, &packet(head(to, REQUEST), 0, 1, 4));
        bench.drain(&mut core);
        let cycles: Vec<u64> = bench.sent[usize::from(to)].iter().map(|s| s.0).collect();
        assert_eq!(cycles, [30, 31, 32, 33]);
    }
    assert_eq!(ZERO_LOAD_CYCLES * super::super::pipeline::CYCLE_PS, 31_250);
}

#[test]
fn phits_that_come_one_by_one_leave_25_cycles_later_one_by_one() {
    let (mut core, mut bench) = flat();
    let packet = packet(head(20, REQUEST), 0, 1, 6);
    for (n, phit) in packet.iter().enumerate() {
        bench.queues[3][0].push_back(*phit);
        core.arrived(3, 0, 1);
        bench.run(&mut core, 1 + n as u64 % 3);
    }
    bench.drain(&mut core);
    let cycles: Vec<u64> = bench.sent[20].iter().map(|s| s.0).collect();
    assert_eq!(cycles, [25, 26, 28, 31, 32, 34]);
}

#[test]
fn one_flow_uses_every_cycle() {
    let (mut core, mut bench) = flat();
    bench.inject_all(&mut core, 5, 0..100, |id| {
        packet(head(33, REQUEST), 0, id, 19)
    });
    bench.drain(&mut core);
    let cycles: Vec<u64> = bench.sent[33].iter().map(|s| s.0).collect();
    assert_eq!(cycles, (25..25 + 1900).collect::<Vec<_>>());
}

#[test]
fn a_permutation_runs_at_full_rate() {
    let (mut core, mut bench) = flat();
    // Every input of a row sends to a different column, and every column receives from different
    // rows.
    for port in 0..64u16 {
        let to = (port * 8 + port / 8) % 64;
        for id in 0..20 {
            let whole = packet(head(to, REQUEST), 0, id, 10);
            bench.inject(&mut core, port.into(), &whole);
        }
    }
    bench.drain(&mut core);
    for sent in &bench.sent {
        assert_eq!(sent.len(), 200);
        assert_eq!(sent.last().unwrap().0, 25 + 199);
    }
}

/// Checks that every packet arrived once and undamaged at its destination, in order per source,
/// destination and virtual channel. Packets carry their source in the hash phit and their number as
/// payload.
fn check_delivery(bench: &Bench, expected: &HashMap<(u16, u16, usize), u32>) {
    let mut next: HashMap<(u16, u16, usize), u32> = HashMap::new();
    for port in 0..64 {
        for packet in bench.packets(port) {
            check_packet(&packet).expect("a complete, intact packet");
            let first = packet[0].content();
            assert_eq!(usize::from(head_dest(first)), port);
            let source = (packet[1].content() & 0x7fff) as u16;
            let flow = (source, port as u16, head_vc(first).index());
            let next = next.entry(flow).or_default();
            assert_eq!(packet[2].content(), *next, "order of {flow:?}");
            *next += 1;
        }
    }
    assert_eq!(&next, expected);
}

#[test]
fn uniform_traffic_is_delivered_exactly_once_and_in_order() {
    let (mut core, mut bench) = flat();
    let mut rng = Rng::new(11, 0);
    let mut sent = HashMap::new();
    for _ in 0..400 {
        for port in 0..64u16 {
            if rng.chance(1, 12) {
                let vc = Vc::from_index(rng.below(2) as usize);
                let to = rng.below(64) as u16;
                let count: &mut u32 = sent.entry((port, to, vc.index())).or_default();
                let length = 4 + rng.below(16) as usize;
                let whole = packet(head(to, vc), port, *count, length);
                bench.inject(&mut core, port.into(), &whole);
                *count += 1;
            }
        }
        // Outputs block at random.
        bench.blocked = [0; 2].map(|_: u64| rng.next_u64() & rng.next_u64());
        (0..64).for_each(|port| core.output_changed(port));
        bench.run(&mut core, 3);
    }
    bench.blocked = [0; 2];
    (0..64).for_each(|port| core.output_changed(port));
    bench.drain(&mut core);
    check_delivery(&bench, &sent);
    assert_eq!(core.phits_inside(), 0, "all credits are back");
}

#[test]
fn hotspot_is_shared_fairly() {
    let (mut core, mut bench) = flat();
    for port in 0..64u16 {
        for id in 0..100 {
            let whole = packet(head(36, REQUEST), port, id, 5);
            bench.inject(&mut core, port.into(), &whole);
        }
    }
    bench.run(&mut core, 25 + 64 * 5 * 20);
    let mut shares = [0u32; 64];
    for packet in bench.packets(36) {
        shares[packet[1].content() as usize] += 1;
    }
    assert!(shares.iter().all(|&n| (19..=21).contains(&n)), "{shares:?}");
}

#[test]
fn the_two_virtual_channels_share_an_output_equally() {
    let (mut core, mut bench) = flat();
    for id in 0..200 {
        bench.inject(&mut core, 1, &packet(head(8, REQUEST), 1, id, 7));
        bench.inject(&mut core, 1, &packet(head(8, RESPONSE), 1, id, 7));
        bench.inject(&mut core, 2, &packet(head(8, RESPONSE), 2, id, 7));
    }
    bench.run(&mut core, 700);
    let requests = |p: &&Vec<Phit>| head_vc(p[0].content()) == REQUEST;
    let packets = bench.packets(8);
    let share = packets.iter().filter(requests).count();
    assert!((47..=50).contains(&share), "{share} of {}", packets.len());
}

/// Requests without credits stay inside, and do not block responses (BlackWidow sec. 4.2).
#[test]
fn blocked_requests_do_not_block_responses() {
    let (mut core, mut bench) = flat();
    bench.blocked[0] = 1 << 50;
    for id in 0..50 {
        bench.inject(&mut core, 7, &packet(head(50, REQUEST), 7, id, 19));
        bench.inject(&mut core, 7, &packet(head(50, RESPONSE), 7, id, 19));
    }
    bench.drain(&mut core);
    let packets = bench.packets(50);
    assert_eq!(packets.len(), 50);
    assert!(packets.iter().all(|p| head_vc(p[0].content()) == RESPONSE));
    // 16 + 10 phits fill the row and the column buffer; the rest waits in the input queue.
    assert_eq!(core.phits_inside(), 26);
    assert_eq!(bench.queues[7][0].len(), 50 * 19 - 26);
    bench.blocked[0] = 0;
    core.output_changed(50);
    bench.drain(&mut core);
    assert_eq!(bench.packets(50).len(), 100);
}

/// BlackWidow sec. 7.5: "a maximum-length packet can block traffic from the same input row to other
/// outputs in the same column (by leaving its tail in the row buffer)", and only that.
#[test]
fn a_blocked_wormhole_blocks_its_row_buffer_and_nothing_else() {
    let (mut core, mut bench) = flat();
    bench.blocked[0] = 1 << 8;
    bench.inject(&mut core, 0, &packet(head(8, REQUEST), 0, 0, 19));
    bench.run(&mut core, 60);
    // Same input, same column, another row: waits behind the tail in the row buffer.
    bench.inject(&mut core, 0, &packet(head(16, REQUEST), 0, 0, 4));
    // Another input of the same row, same column: has a separate row buffer.
    bench.inject(&mut core, 1, &packet(head(16, REQUEST), 1, 0, 4));
    // The same output waits if the packet comes from the same row. From another row of the same
    // column it has a separate column buffer but the same blocked link. Another column is free.
    bench.inject(&mut core, 9, &packet(head(24, REQUEST), 9, 0, 4));
    bench.drain(&mut core);
    assert_eq!(bench.packets(16).len(), 1);
    assert_eq!(bench.packets(16)[0][1].content(), 1);
    assert_eq!(bench.packets(24).len(), 1);
    bench.blocked[0] = 0;
    core.output_changed(8);
    bench.drain(&mut core);
    assert_eq!(bench.packets(8).len(), 1);
    assert_eq!(bench.packets(16).len(), 2);
}

/// A subswitch output stays with a packet even if its phits come slowly.
#[test]
fn an_output_virtual_channel_stays_with_its_packet() {
    let (mut core, mut bench) = flat();
    let slow = packet(head(8, REQUEST), 1, 0, 12);
    bench.queues[0][0].push_back(slow[0]);
    core.arrived(0, 0, 1);
    bench.run(&mut core, 2);
    bench.inject(&mut core, 1, &packet(head(8, REQUEST), 2, 0, 6));
    for phit in &slow[1..] {
        bench.run(&mut core, 9);
        bench.queues[0][0].push_back(*phit);
        core.arrived(0, 0, 1);
    }
    bench.drain(&mut core);
    let packets = bench.packets(8);
    assert_eq!(packets[0], slow);
    assert_eq!(packets.len(), 2);
}

#[test]
fn hashed_requests_keep_their_path_and_spread() {
    let (mut core, mut bench) = (Core::new(up_chip()), Bench::default());
    let hashed = Head {
        hashed: true,
        ..head(100, REQUEST)
    };
    for id in 0..256u32 {
        bench.inject(&mut core, 3, &packet(hashed, id as u16 % 64, id, 5));
    }
    bench.drain(&mut core);
    for port in 32..64 {
        let packets = bench.packets(port);
        assert_eq!(packets.len(), 8);
        // Packets of one hash always took the same port, in order.
        for pair in packets.windows(2) {
            assert!(pair[0][2].content() < pair[1][2].content());
            assert_eq!(pair[0][1].content() % 32, pair[1][1].content() % 32);
        }
    }
}

/// The hash needs the second phit; a head that arrives alone waits for it.
#[test]
fn a_hashed_head_waits_for_its_second_phit() {
    let (mut core, mut bench) = (Core::new(up_chip()), Bench::default());
    let hashed = Head {
        hashed: true,
        ..head(100, REQUEST)
    };
    let phits = packet(hashed, 9, 1, 5);
    bench.queues[3][0].push_back(phits[0]);
    core.arrived(3, 0, 1);
    bench.drain(&mut core);
    assert_eq!(
        bench.queues[3][0].len(),
        1,
        "the packet has not begun to flow"
    );
    bench.queues[3][0].extend(&phits[1..]);
    core.arrived(3, 0, 4);
    bench.drain(&mut core);
    let expected = 32 + (3 ^ 100 ^ 9) % 32;
    assert_eq!(bench.packets(expected), [phits]);
}

#[test]
fn adaptive_packets_spread_evenly_and_avoid_blocked_ports() {
    let (mut core, mut bench) = (Core::new(up_chip()), Bench::default());
    let adaptive = Head {
        adaptive: true,
        ..head(100, RESPONSE)
    };
    bench.inject_all(&mut core, 3, 0..640, |id| packet(adaptive, 0, id, 4));
    bench.drain(&mut core);
    let counts: Vec<usize> = (32..64).map(|port| bench.packets(port).len()).collect();
    let is_fair = counts.iter().all(|&n| n == 20);
    assert!(is_fair, "fair among equals: {counts:?}");

    let (mut core, mut bench) = (Core::new(up_chip()), Bench::default());
    bench.blocked[1] = 1 << 40 | 1 << 45;
    bench.inject_all(&mut core, 3, 0..640, |id| packet(adaptive, 0, id, 4));
    bench.drain(&mut core);
    let delivered: usize = (32..64).map(|port| bench.packets(port).len()).sum();
    // The blocked ports hold the packets that chose them before they looked full: at most the
    // contents of their column buffers and of the row buffers of their column.
    assert!(delivered >= 640 - 2 * 26 / 4 - 2, "{delivered}");
    assert_eq!(core.counters().adaptive_packets, 640);
}

/// A row buffer full of two-phit packets behind a blocked output holds as many packets as possible.
#[test]
fn a_row_buffer_full_of_heads_keeps_their_row_masks() {
    let (mut core, mut bench) = flat();
    bench.blocked[0] = u64::MAX;
    for n in 0..60u16 {
        let to = 8 * (n * 5 % 8);
        bench.inject(&mut core, 0, &cut(&packet(head(to, REQUEST), n, 0, 4), 1));
    }
    bench.drain(&mut core);
    bench.blocked[0] = 0;
    (0..64).for_each(|port| core.output_changed(port));
    bench.drain(&mut core);
    let total: usize = (0..8).map(|row| bench.packets(8 * row).len()).sum();
    assert_eq!(total, 60);
    for row in 0..8u16 {
        for packet in bench.packets(usize::from(8 * row)) {
            assert_eq!(head_dest(packet[0].content()), 8 * row);
        }
    }
}

#[test]
fn an_idle_router_does_no_work() {
    let (mut core, mut bench) = flat();
    core.run_until(1_000_000_000, &mut bench);
    assert_eq!(core.counters().executed_cycles, 0);
    bench.inject(&mut core, 0, &packet(head(63, REQUEST), 0, 1, 4));
    bench.drain(&mut core);
    let executed = core.counters().executed_cycles;
    // Arrival, row bus, subswitch, output and the returning credits, 4 phits each.
    assert!(executed <= 24, "{executed} cycles executed for one packet");
    core.run_until(2_000_000_000, &mut bench);
    assert_eq!(core.counters().executed_cycles, executed);
    assert_eq!(core.cycle(), 2_000_000_000);
    assert_eq!(core.next_cycle(), None);
}

#[test]
fn a_blocked_router_does_no_work_either() {
    let (mut core, mut bench) = flat();
    bench.blocked = [u64::MAX; 2];
    for port in 0..64u16 {
        for id in 0..20 {
            bench.inject(&mut core, port.into(), &packet(head(id, REQUEST), 0, 0, 19));
        }
    }
    bench.drain(&mut core);
    let executed = core.counters().executed_cycles;
    core.run_until(core.cycle() + 1_000_000, &mut bench);
    assert_eq!(core.counters().executed_cycles, executed);
}

#[test]
fn the_same_input_gives_the_same_output_in_the_same_cycles() {
    let run = |by_one: bool| {
        let (mut core, mut bench) = (Core::new(up_chip()), Bench::default());
        let mut rng = Rng::new(5, 5);
        for _ in 0..3_000 {
            let port = rng.below(32) as usize;
            let h = Head {
                adaptive: rng.chance(1, 2),
                ..head(rng.below(200) as u16, REQUEST)
            };
            let whole = packet(h, 0, 0, 4 + rng.below(16) as usize);
            bench.inject(&mut core, port, &whole);
            // Skipping cycles has no effect on results.
            match by_one {
                true => (0..2).for_each(|_| bench.run(&mut core, 1)),
                false => bench.run(&mut core, 2),
            }
        }
        core.run(&mut bench);
        (bench.sent, core.counters())
    };
    assert_eq!(run(true), run(false));
}

/// A smaller radix is modelled by the same code with fewer tiles in use.
#[test]
fn a_chip_with_two_ports_routes_between_them() {
    let mut tiles = vec![None; 12];
    for port in [3, 11] {
        let mut tile = down_tile();
        tile.root_detect = low(1);
        tile.down_mask = 1;
        tile.port_map[..2].copy_from_slice(&[3, 11]);
        tiles[port] = Some(tile);
    }
    let mut core = Core::new(ChipRegisters {
        tiles,
        forward_progress_ns: 1_000,
    });
    let mut bench = Bench::default();
    bench.inject(&mut core, 3, &packet(head(1, REQUEST), 0, 1, 4));
    bench.inject(&mut core, 11, &packet(head(0, REQUEST), 0, 1, 4));
    bench.inject(&mut core, 11, &packet(head(2, REQUEST), 0, 1, 4));
    bench.drain(&mut core);
    assert_eq!((bench.packets(3).len(), bench.packets(11).len()), (1, 1));
    assert_eq!(core.counters().unroutable_packets, 1);
}

/// Sources write one phit per cycle, as links do, with light and heavy load.
#[test]
fn packets_that_arrive_phit_by_phit_are_delivered_whole() {
    for (chance, cycles) in [(1_000, 150_000u64), (20, 20_000)] {
        let (mut core, mut bench) = flat();
        let mut rng = Rng::new(12, chance);
        let mut sent = HashMap::new();
        let mut sources: Vec<VecDeque<Phit>> = vec![VecDeque::new(); 64];
        let mut vcs = [0; 64];
        for cycle in 0..cycles {
            for port in 0..64u16 {
                let source = &mut sources[usize::from(port)];
                if source.is_empty() && cycle < cycles - 20 && rng.chance(1, chance) {
                    let vc = Vc::from_index(rng.below(2) as usize);
                    let to = rng.below(64) as u16;
                    let count: &mut u32 = sent.entry((port, to, vc.index())).or_default();
                    let length = 4 + rng.below(16) as usize;
                    source.extend(packet(head(to, vc), port, *count, length));
                    vcs[usize::from(port)] = vc.index();
                    *count += 1;
                }
                if let Some(phit) = source.pop_front() {
                    bench.queues[usize::from(port)][vcs[usize::from(port)]].push_back(phit);
                    core.arrived(port.into(), vcs[usize::from(port)], 1);
                }
            }
            bench.run(&mut core, 1);
        }
        bench.drain(&mut core);
        check_delivery(&bench, &sent);
        assert_eq!(core.phits_inside(), 0);
    }
}

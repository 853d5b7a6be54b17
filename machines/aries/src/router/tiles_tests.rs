use phitwire_framing::aries::flit::{Flit, Head, Routing};

use super::*;
use crate::route::harness::Machine;
use crate::route::registers::{NETWORK_PORTS, PortKind};
use crate::router::core::Core;
use crate::router::harness::{Bench, GRAINS, core_of, packet, request, router};
use crate::router::load::LoadSteps;
use crate::router::pipeline::{LOAD_CYCLES, ZERO_LOAD_CYCLES};
use phitwire::chip::Grain;

const GREEN: usize = 0;
const BLACK: usize = 15;
pub(super) const BLUE: usize = 30;

/// A request for router 3 of the group, which is behind the black link.
fn to_3(length: u8, id: u16) -> Head {
    request((0, 3), 1, Routing::Minimal, length, id)
}

/// A mask of all ports but `ports`, for links that are down.
fn only(ports: &[usize]) -> u64 {
    let keep = ports.iter().fold(0, |keep, port| keep | 1u64 << port);
    !keep & ((1 << NETWORK_PORTS) - 1)
}

#[test]
fn an_idle_router_takes_forty_seven_cycles() {
    for length in [1, 5, 14] {
        let (mut core, mut bench) = router();
        bench.inactive = only(&[BLACK]);
        core.run_until(20, &mut bench);
        let head = to_3(length, 7);
        // From a green port to the black one, on class 0.
        bench.send(&mut core, GREEN, head);
        core.run(&mut bench);
        let packets = bench.packets(BLACK);
        assert_eq!(packets.len(), 1);
        assert_eq!(packets[0].0, 20 + ZERO_LOAD_CYCLES);
        assert_eq!(packets[0].1, packet(head));
        let cycles: Vec<u64> = bench.sent[BLACK].iter().map(|&(cycle, _)| cycle).collect();
        // A flit per cycle, except for the tenth of every ten.
        let expected: Vec<u64> = (67..).filter(|c| c % 10 != 9).take(length.into()).collect();
        assert_eq!(cycles, expected);
        assert_eq!(core.flits_inside(), 0);
    }
}

#[test]
fn netlink_adds_six_cycles_on_either_side() {
    let (mut core, mut bench) = router();
    let head = request((0, 0), 2, Routing::Adaptive0, 14, 7);
    core.run_until(20, &mut bench);
    bench.send(&mut core, FIRST_NIC_PORT, head);
    core.run(&mut bench);
    let packets = bench.packets(FIRST_NIC_PORT + 2);
    assert_eq!(packets[0].1, packet(head));
    assert_eq!(packets[0].0, 20 + 6 + ZERO_LOAD_CYCLES + 6);
    assert_eq!(core.counters().eject_decisions, 1);
}

/// An announced flit behaves like one that arrives.
#[test]
fn announced_flits_move_when_they_have_arrived() {
    let run = |announce: bool| {
        let (mut core, mut bench) = router();
        bench.inactive = only(&[BLACK]);
        let flits = packet(to_3(5, 7));
        if announce {
            let Core::Flits(tiles) = &mut core else {
                unreachable!("the core moves flits");
            };
            for i in 0..5 {
                tiles.announce(40 + i, GREEN, 0);
            }
            // The flits are queued slightly before they become visible, which is not checked.
            let mut other = core_of(Machine::small().registers((0, 0)));
            bench.inject(&mut other, GREEN, &flits);
        } else {
            core.run_until(40, &mut bench);
            bench.inject(&mut core, GREEN, &flits);
        }
        core.run(&mut bench);
        bench.sent[BLACK].clone()
    };
    assert_eq!(run(true), run(false));
}

/// A head leaves on the virtual channel of the decision, for requests and for responses.
#[test]
fn virtual_channels_change_at_blue_links_and_roots() {
    let black_only = only(&[BLACK]);
    let not_black = only(&[BLUE, BLUE + 1, GREEN, GREEN + 1]);
    // (in port, vc, non-minimal, destination, ports up) -> (out port, vc, non-minimal)
    let cases = [
        // Minimal in the source group, and in an intermediate group on its path down.
        ((GREEN, 0, false, (0, 3), black_only), (BLACK, 0, false)),
        ((GREEN, 2, false, (0, 3), black_only), (BLACK, 2, false)),
        // By a blue link into the target group.
        ((BLUE, 0, false, (0, 3), black_only), (BLACK, 3, false)),
        ((BLUE, 2, false, (0, 3), black_only), (BLACK, 3, false)),
        // By a blue link into an intermediate group, and on towards the root.
        ((BLUE, 0, true, (2, 3), black_only), (BLACK, 1, true)),
        // The root in an intermediate group, after the last black step.
        ((BLACK, 1, true, (2, 3), not_black), (99, 2, false)),
        // The root in the own group.
        ((BLACK, 1, true, (0, 3), black_only), (BLACK, 2, false)),
        // After a green port, only a black step or the root is possible.
        ((GREEN, 1, true, (0, 3), black_only), (BLACK, 99, true)),
    ];
    for (from, to) in cases {
        for response in [false, true] {
            let (port, class, non_minimal, at, inactive) = from;
            let (mut core, mut bench) = router();
            bench.inactive = inactive;
            let base = if response { 4 } else { 0 };
            let to_nic = request(at, 1, Routing::Adaptive0, 3, 9);
            let head = Head::new(response, 3, to_nic.destination(), to_nic.routing(), 9, 0)
                .with_vc(base + class)
                .with_non_minimal(non_minimal);
            bench.send(&mut core, port, head);
            core.run(&mut bench);
            let out: Vec<(usize, Head)> = (0..NETWORK_PORTS)
                .flat_map(|port| bench.heads(port).into_iter().map(move |head| (port, head)))
                .collect();
            assert_eq!(out.len(), 1, "{from:?}");
            let (out_port, out_head) = out[0];
            if to.1 == 99 {
                let class = out_head.vc() - base;
                let is_right = out_head.non_minimal() && class == 1 || class == 2;
                assert!(is_right, "{from:?}");
                continue;
            }
            assert!(to.0 == 99 || to.0 == out_port, "{from:?} by {out_port}");
            assert_eq!(out_head.vc(), base + to.1, "{from:?}");
            assert_eq!(out_head.non_minimal(), to.2, "{from:?}");
            let same = out_head.with_vc(base + class).with_non_minimal(non_minimal);
            assert_eq!(same, head, "the rest of the head is unchanged");
        }
    }
}

#[test]
fn packets_from_a_nic_are_routed_as_new() {
    let (mut core, mut bench) = router();
    bench.inactive = only(&[BLACK, BLACK + 1]);
    let head = to_3(3, 9);
    bench.inject(
        &mut core,
        FIRST_NIC_PORT,
        &packet(head.with_vc(3).with_non_minimal(true)),
    );
    core.run(&mut bench);
    let heads = [bench.heads(BLACK), bench.heads(BLACK + 1)].concat();
    assert_eq!(heads, [head]);
    assert_eq!(core.counters().minimal_decisions, 1);
}

#[test]
fn a_saturated_port_sends_nine_flits_in_ten_cycles() {
    let (mut core, mut bench) = router();
    bench.inactive = only(&[BLACK]);
    for i in 0..100 {
        // From three inputs of different rows.
        let port = [GREEN, GREEN + 1, BLUE][i % 3];
        bench.send(&mut core, port, to_3(9, i as u16));
    }
    core.run(&mut bench);
    let sent = &bench.sent[BLACK];
    assert_eq!(sent.len(), 900);
    let span = sent[899].0 - sent[0].0 + 1;
    assert!((998..=1_003).contains(&span), "{span} cycles");
}

#[test]
fn packets_for_dead_links_are_discarded_and_counted() {
    let (mut core, mut bench) = router();
    bench.inactive = only(&[BLACK]);
    bench.blocked = [1 << BLACK; VCS];
    for id in 0..4 {
        bench.send(&mut core, GREEN, to_3(14, id));
    }
    bench.run(&mut core, 200);
    assert!(bench.packets(BLACK).is_empty());
    let decided = core.committed_flits(BLACK);
    assert!(decided > 14, "{decided} flits wait for the link");
    // The link fails: routed packets are lost, and the others find no live port.
    bench.inactive |= 1 << BLACK;
    core.output_changed(BLACK);
    core.run(&mut bench);
    let counters = core.counters();
    let lost = counters.dead_port_packets + counters.no_live_port_packets;
    assert_eq!(lost, 4);
    assert!(counters.dead_port_packets > 0 && counters.no_live_port_packets > 0);
    assert_eq!(counters.dead_port_flits + counters.swallowed_flits, 4 * 14);
    let destination = to_3(1, 0).destination();
    let event = AriesEvent::NoLivePort {
        tile: 0,
        destination,
    };
    assert_eq!(core.poll_event(), Some(event));
    assert_eq!(core.poll_event(), None);
    assert_eq!((core.flits_inside(), core.committed_flits(BLACK)), (0, 0));
    // The link recovers, and so does the traffic.
    (bench.inactive, bench.blocked) = (only(&[BLACK]), [0; VCS]);
    core.output_changed(BLACK);
    bench.send(&mut core, GREEN, to_3(14, 9));
    core.run(&mut bench);
    assert_eq!(bench.packets(BLACK).len(), 1);
}

#[test]
fn adaptive_packets_leave_a_dying_link_alone() {
    let (mut core, mut bench) = router();
    bench.inactive = 1 << BLACK;
    for id in 0..20 {
        bench.send(
            &mut core,
            FIRST_NIC_PORT,
            request((0, 3), 1, Routing::Adaptive3, 5, id),
        );
    }
    core.run(&mut bench);
    let left = [BLACK + 1, GREEN, GREEN + 1].map(|port| bench.packets(port).len());
    assert_eq!(left.iter().sum::<usize>(), 20);
    let counters = core.counters();
    assert_eq!(
        counters.dead_port_packets + counters.no_live_port_packets,
        0
    );
}

#[test]
fn packets_outside_the_tables_are_discarded_and_reported_once() {
    let (mut core, mut bench) = router();
    let head = request((77, 3), 1, Routing::Minimal, 14, 9);
    for _ in 0..3 {
        bench.send(&mut core, GREEN, head);
    }
    bench.send(&mut core, FIRST_NIC_PORT + 3, head);
    // A stray flit between packets.
    bench.inject(&mut core, GREEN, &[Flit::new(0xf << 40)]);
    let strays = [Flit::new(0xf << 40), Flit::new(0)];
    bench.inject(&mut core, FIRST_NIC_PORT + 3, &strays);
    bench.send(&mut core, GREEN, request((0, 0), 1, Routing::Minimal, 2, 9));
    core.run(&mut bench);
    assert_eq!(core.counters().unroutable_packets, 4);
    assert_eq!(core.counters().swallowed_flits, 4 * 14);
    assert_eq!(core.counters().headless_flits, 3);
    let events: Vec<_> = core::iter::from_fn(|| core.poll_event()).collect();
    assert_eq!(events.len(), 2);
    assert!(matches!(events[0], AriesEvent::Unroutable { .. }));
    let next = bench.packets(FIRST_NIC_PORT + 1);
    assert_eq!(next.len(), 1, "the next packet is complete");
    assert_eq!(core.flits_inside(), 0);
}

#[test]
fn a_virtual_channel_without_progress_is_discarded_until_it_moves() {
    let (mut core, mut bench) = router();
    bench.inactive = only(&[BLACK]);
    bench.blocked[0] = 1 << BLACK;
    bench.send(&mut core, GREEN, to_3(14, 1));
    core.run(&mut bench);
    core.check_forward_progress(Time::ZERO);
    assert_eq!(core.next_progress_check(), Some(Time::from_ns(1_000_000)));
    core.check_forward_progress(Time::from_ns(999_999));
    assert_eq!(core.poll_event(), None);
    core.check_forward_progress(Time::from_ns(1_000_000));
    let (tile, vc) = (BLACK as u8, 0);
    let stalled = AriesEvent::ForwardProgress { tile, vc };
    assert_eq!(core.poll_event(), Some(stalled));
    core.run(&mut bench);
    assert_eq!(core.flits_inside(), 0);
    assert_eq!(core.counters().stalled_port_packets, 1);
    assert_eq!(core.discarding()[0], 1 << BLACK);
    // The other virtual channel was not blocked.
    let response = to_3(3, 1).with_vc(4);
    bench.inject(&mut core, GREEN, &packet(response));
    core.run(&mut bench);
    assert_eq!(bench.packets(BLACK).len(), 1);
    bench.blocked[0] = 0;
    bench.send(&mut core, GREEN, to_3(14, 1));
    core.run(&mut bench);
    assert_eq!(bench.packets(BLACK).len(), 2);
    let restored = AriesEvent::ForwardProgressRestored { tile, vc };
    assert_eq!(core.poll_event(), Some(restored));
    core.check_forward_progress(Time::from_ns(5_000_000));
    assert_eq!(core.next_progress_check(), None);
}

/// Removes all ports but `ports` from the tables.
fn name_only(core: &mut Core, ports: &[usize]) {
    let keep = !only(ports);
    let mut registers = core.registers().clone();
    for tables in &mut registers.tables {
        let tables = std::sync::Arc::make_mut(tables).by_name_mut();
        let entries = tables.into_iter().flat_map(|(_, entries)| entries);
        entries.for_each(|entry| *entry &= keep);
    }
    core.install(registers);
}

#[test]
fn a_dead_port_counts_as_full_until_no_table_names_it() {
    let (mut core, mut bench) = router();
    core.run(&mut bench);
    assert_eq!(core.reported_load(PortKind::Green), 0);
    bench.inactive = 1 << BLUE;
    core.link_changed(BLUE);
    core.run(&mut bench);
    let reported =
        [PortKind::Green, PortKind::Black, PortKind::Blue].map(|kind| core.reported_load(kind));
    assert_eq!(
        reported,
        [15, 15, 0],
        "no router needs the load behind a blue link"
    );
    let all: Vec<usize> = (0..PORTS).filter(|&port| port != BLUE).collect();
    name_only(&mut core, &all);
    core.run(&mut bench);
    assert_eq!(core.reported_load(PortKind::Green), 0);
}

#[test]
fn the_load_of_the_next_links_is_reported_to_neighbours() {
    let (mut core, mut bench) = router();
    name_only(&mut core, &[BLUE, GREEN]);
    bench.inactive = only(&[BLUE, GREEN]);
    bench.blocked = [1 << BLUE; VCS];
    // Packets to the other group, behind the blue link.
    let to = (Machine::small().peer((0, 0), BLUE).expect("a link").0.0, 0);
    for (id, port) in (0..12).zip([GREEN, BLACK].into_iter().cycle()) {
        bench.send(&mut core, port, request(to, 1, Routing::Minimal, 14, id));
    }
    core.run(&mut bench);
    let waiting = core.committed_flits(BLUE);
    let blues = core.registers().ports.iter().flatten();
    let blues = blues.filter(|kind| **kind == PortKind::Blue).count() as u32;
    let load = (waiting / LoadSteps::PAPER.reported).div_ceil(blues) as u8;
    assert!(load >= 1, "{waiting} of {blues}");
    assert_eq!(core.reported_load(PortKind::Green), load);
    assert_eq!(core.reported_load(PortKind::Black), load);
    assert_eq!(core.reported_load(PortKind::Blue), 0);
    let mut reported = bench.reported.iter();
    assert!(reported.any(|&(_, port, value)| (port, value) == (GREEN, load)));
    let is_due = |&(cycle, port, _): &(u64, usize, u8)| cycle % LOAD_CYCLES == 0 && port != BLUE;
    assert!(bench.reported.iter().all(is_due));
    bench.blocked = [0; VCS];
    core.output_changed(BLUE);
    core.run(&mut bench);
    let over = core.reported_load(PortKind::Green);
    assert_eq!(over, 0, "no load is reported afterwards");
    let last = bench.reported.iter().rev().find(|t| t.1 == GREEN);
    assert_eq!(last.map(|t| t.2), Some(0));
    assert_eq!(core.next_cycle(), None);
}

/// Each of the three metrics moves traffic away from a port.
#[test]
fn every_load_metric_moves_packets() {
    let share = |bench: &mut Bench, core: &mut Core| {
        for id in 0..60 {
            bench.send(core, GREEN, to_3(1, id));
            core.run(bench);
        }
        bench.packets(BLACK).len()
    };
    let (mut core, mut bench) = router();
    let fair = share(&mut bench, &mut core);
    assert!((15..45).contains(&fair), "{fair} of 60");
    let (mut core, mut bench) = router();
    bench.peer_loads.insert(BLACK, 1);
    assert_eq!(share(&mut bench, &mut core), 0, "downstream");
    let (mut core, mut bench) = router();
    bench.far.insert(BLACK, LoadSteps::PAPER.far);
    assert_eq!(share(&mut bench, &mut core), 0, "far end");
    let (mut core, mut bench) = router();
    bench.blocked[4] = 1 << BLACK;
    // Near end: responses that cannot leave by the port.
    bench.inactive = only(&[BLACK]);
    bench.send(&mut core, GREEN, to_3(14, 1).with_vc(4));
    core.run(&mut bench);
    bench.inactive = 0;
    core.output_changed(BLACK + 1);
    assert_eq!(share(&mut bench, &mut core), 0, "near end");
}

#[test]
fn registers_can_be_replaced_while_it_runs() {
    let (mut core, mut bench) = router();
    let head = to_3(5, 7);
    bench.send(&mut core, GREEN, head);
    core.run(&mut bench);
    core.quiesce();
    bench.send(&mut core, FIRST_NIC_PORT, head);
    core.run(&mut bench);
    assert_eq!(core.flits_inside(), 0);
    assert_eq!(core.counters().packets_forwarded, 1);
    let mut registers = Machine::small().registers((0, 0));
    let green = std::sync::Arc::make_mut(&mut registers.tables[0]);
    green.local_minimal[3] = 1 << (GREEN + 1);
    core.install(registers);
    assert!(core.is_quiesced());
    core.release();
    core.run(&mut bench);
    assert_eq!(bench.heads(GREEN + 1), [head]);
    assert_eq!(core.counters().installs, 1);
}

/// A packet that moves as one item is complete, and waits for all its flits.
#[test]
fn items_are_whole_packets() {
    let whole = GRAINS
        .into_iter()
        .filter(|(grain, _)| *grain == Grain::Packet);
    for (grain, clock) in whole {
        let registers = Machine::small().registers((0, 0));
        whole_packets(Core::new(registers, grain, clock));
    }
}

fn whole_packets(mut core: Core) {
    let mut bench = Bench::default();
    (bench.packets_whole, bench.inactive) = (true, only(&[BLACK]));
    let packets: Vec<Vec<Flit>> = (1..=14)
        .map(|length| packet(to_3(length, length.into())))
        .collect();
    for flits in &packets {
        bench.inject(&mut core, GREEN, flits);
    }
    // Half a packet, followed by an unroutable one.
    let (half, rest) = packets[13].split_at(6);
    bench.inject(&mut core, GREEN, half);
    core.run(&mut bench);
    let sent: Vec<Vec<Flit>> = bench.packets(BLACK).into_iter().map(|p| p.1).collect();
    assert_eq!(sent, packets);
    assert_eq!(core.flits_inside(), 0, "half a packet waits outside");
    bench.inject_rest(&mut core, GREEN, 0, rest);
    bench.send(
        &mut core,
        GREEN,
        request((99, 3), 1, Routing::Minimal, 14, 0),
    );
    bench.inject(&mut core, FIRST_NIC_PORT, half);
    core.run(&mut bench);
    assert_eq!(bench.packets(BLACK).len(), 15);
    assert_eq!(core.counters().swallowed_flits, 14);
    bench.inject_rest(&mut core, FIRST_NIC_PORT, 0, rest);
    core.run(&mut bench);
    assert_eq!(bench.packets(BLACK).len(), 16);
    assert_eq!(bench.packets(BLACK)[15].1, packets[13]);
    // Packets to a NIC are whole too.
    let to_nic = packet(request((0, 0), 1, Routing::Minimal, 9, 1));
    bench.inject(&mut core, GREEN, &to_nic);
    core.run(&mut bench);
    assert_eq!(bench.packets(FIRST_NIC_PORT + 1)[0].1, to_nic);
    assert_eq!(core.flits_inside(), 0);
    assert_eq!(core.counters().flits_forwarded, 15 * 7 + 14 + 14 + 9);
}

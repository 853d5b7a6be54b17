use phitwire_framing::aries::flit::{Head, Routing};

use crate::route::harness::Machine;
use crate::route::registers::FIRST_NIC_PORT;
use crate::router::core::Core;
use crate::router::harness::{Bench, GRAINS, request, router};
use phitwire::chip::{Grain, RouterClock};

fn to_nic(nic: u8, id: u16) -> Head {
    request((0, 0), nic, Routing::Adaptive0, 14, id)
}

/// The grains with cycle times.
const PACED_GRAINS: [(Grain, RouterClock); 2] = [GRAINS[0], GRAINS[1]];
/// A port to router 1 of the group.
const GREEN: usize = 0;

fn bench_of(grain: Grain) -> Bench {
    let mut bench = Bench::default();
    bench.packets_whole = grain == Grain::Packet;
    bench
}

/// 2.56 flits per cycle exceed a NIC's half of the pair's four tiles.
#[test]
fn a_nic_exceeds_its_share_in_and_out_while_the_other_is_quiet() {
    for (grain, clock) in PACED_GRAINS {
        let mut core = Core::new(Machine::small().registers((0, 0)), grain, clock);
        let mut bench = bench_of(grain);
        for id in 0..400 {
            bench.send(&mut core, FIRST_NIC_PORT, to_nic(3, id));
        }
        core.run(&mut bench);
        let out = FIRST_NIC_PORT + 3;
        assert_eq!(bench.packets(out).len(), 400);
        let span = bench.sent[out].last().expect("sent").0 - bench.sent[out][0].0;
        let least = 399 * 14 * 25 / 64;
        assert!(
            (least..least + 40).contains(&span),
            "{grain:?}: 5,600 flits in {span} cycles"
        );
    }
}

#[test]
fn two_nics_of_a_pair_share_four_tiles() {
    for (grain, clock) in PACED_GRAINS {
        let mut core = Core::new(Machine::small().registers((0, 0)), grain, clock);
        let mut bench = bench_of(grain);
        for id in 0..100 {
            for nic in 0..2 {
                bench.send(&mut core, FIRST_NIC_PORT + nic, to_nic(2 + nic as u8, id));
            }
        }
        core.run(&mut bench);
        for out in [FIRST_NIC_PORT + 2, FIRST_NIC_PORT + 3] {
            assert_eq!(bench.packets(out).len(), 100);
            let sent = &bench.sent[out];
            let span = sent[sent.len() - 1].0 - sent[0].0 + 1;
            assert!((680..800).contains(&span), "1,400 flits in {span} cycles");
        }
    }
}

/// NICs 0 and 1 send packets to another router, whose link is the bottleneck. Returns how many
/// packets of each have left when the first NIC runs out.
fn served(
    (grain, clock): (Grain, RouterClock),
    lengths: [u8; 2],
    routing: Routing,
    responses: [bool; 2],
) -> [usize; 2] {
    const PACKETS: u16 = 300;
    let mut core = Core::new(Machine::small().registers((0, 0)), grain, clock);
    let mut bench = bench_of(grain);
    bench.inactive = !(1 << GREEN | 0xf << FIRST_NIC_PORT);
    for id in 0..PACKETS {
        for nic in 0..2 {
            let head = request((0, 1), 0, routing, lengths[nic], id | (nic as u16) << 10);
            bench.send(&mut core, FIRST_NIC_PORT + nic, head);
            if responses[nic] {
                let head = request((0, 1), 0, routing, 1, 1 << 11).with_vc(4);
                bench.send(&mut core, FIRST_NIC_PORT + nic, head);
            }
        }
    }
    core.run(&mut bench);
    let requests = bench.heads(GREEN).into_iter().filter(|head| head.vc() < 4);
    let mut counts = [0; 2];
    for head in requests {
        counts[usize::from(head.packet_id() >> 10 & 1)] += 1;
        if counts.contains(&usize::from(PACKETS)) {
            break;
        }
    }
    counts
}

/// The link accepts packets of the four tiles in turn, and Netlink serves the NICs in turn,
/// whatever else they send. A NIC whose packets are 14 times as long gets at least a third of the
/// turns, and so at least four times the flits of the other.
#[test]
fn two_nics_at_one_link_are_served_in_turn() {
    for grain in GRAINS {
        for routing in [Routing::Minimal, Routing::Ordered] {
            for lengths in [[14, 14], [14, 3], [3, 14], [1, 14]] {
                for responses in [[false, false], [true, false], [false, true]] {
                    let [a, b] = served(grain, lengths, routing, responses);
                    let most = if lengths[0] == lengths[1] { 24 } else { 200 };
                    assert!(
                        a.abs_diff(b) <= most,
                        "{grain:?} {routing:?} {lengths:?} {responses:?}: {a} and {b}"
                    );
                }
            }
        }
    }
}

/// An ordered flow uses one tile and so one flit per cycle; its packets stay in order among others.
#[test]
fn ordered_packets_use_one_tile_and_stay_in_order() {
    let (mut core, mut bench) = router();
    for id in 0..100 {
        bench.send(
            &mut core,
            FIRST_NIC_PORT,
            request((0, 0), 3, Routing::Ordered, 14, id),
        );
        bench.send(
            &mut core,
            FIRST_NIC_PORT + 1,
            request((0, 0), 3, Routing::Adaptive0, 5, id),
        );
    }
    core.run(&mut bench);
    let heads = bench.heads(FIRST_NIC_PORT + 3);
    let ordered: Vec<u16> = heads
        .iter()
        .filter(|h| h.routing() == Routing::Ordered)
        .map(|h| h.packet_id())
        .collect();
    assert_eq!(ordered, (0..100).collect::<Vec<_>>());
    let first = bench.sent[FIRST_NIC_PORT + 3][0].0;
    let last = bench.sent[FIRST_NIC_PORT + 3].last().expect("sent").0;
    assert!(last - first >= 1_400, "one tile sends one flit per cycle");
}

/// A NIC that accepts nothing delays neither the other NIC of its pair nor the responses.
#[test]
fn a_blocked_nic_does_not_hold_up_its_neighbour_or_responses() {
    for (grain, clock) in GRAINS {
        let mut core = Core::new(Machine::small().registers((0, 0)), grain, clock);
        let mut bench = bench_of(grain);
        let blocked = FIRST_NIC_PORT + 2;
        bench.blocked[..4].fill(1 << blocked);
        for id in 0..8 {
            bench.send(&mut core, 0, to_nic(2, id));
        }
        core.run(&mut bench);
        for id in 0..20 {
            // From another input, because the first one's queue is blocked.
            bench.send(&mut core, 16, to_nic(3, id));
            bench.send(&mut core, 16, to_nic(2, id).with_vc(4));
        }
        core.run(&mut bench);
        assert_eq!(bench.packets(FIRST_NIC_PORT + 3).len(), 20);
        assert_eq!(bench.packets(blocked).len(), 20);
        bench.blocked = [0; 8];
        core.output_changed(blocked);
        core.run(&mut bench);
        assert_eq!(bench.packets(blocked).len(), 28);
        assert_eq!(core.flits_inside(), 0);
    }
}

/// Room on a NIC's link is never reserved twice.
#[test]
fn no_more_is_promised_than_the_link_takes() {
    for (grain, clock) in GRAINS {
        let mut core = Core::new(Machine::small().registers((0, 0)), grain, clock);
        let mut bench = bench_of(grain);
        bench.room = Some(20);
        for id in 0..50 {
            for port in [0, 15, 30] {
                bench.send(&mut core, port, to_nic(2, id));
            }
        }
        core.run(&mut bench);
        assert_eq!(bench.packets(FIRST_NIC_PORT + 2).len(), 150);
        assert_eq!(core.flits_inside(), 0);
    }
}

#[test]
fn quiesce_finishes_what_has_begun() {
    let (mut core, mut bench) = router();
    for id in 0..3 {
        bench.send(&mut core, FIRST_NIC_PORT, to_nic(3, id));
    }
    bench.run(&mut core, 10);
    core.quiesce();
    core.run(&mut bench);
    assert_eq!(bench.packets(FIRST_NIC_PORT + 3).len(), 1);
    assert_eq!(core.flits_inside(), 0);
    assert_eq!(core.next_cycle(), None);
    core.release();
    core.run(&mut bench);
    assert_eq!(bench.packets(FIRST_NIC_PORT + 3).len(), 3);
}

use phitwire_framing::aries::flit::{Head, Routing};

use crate::machine::aries::route::registers::FIRST_NIC_PORT;
use crate::machine::aries::router::harness::{Bench, request, router};

fn to_nic(nic: u8, id: u16) -> Head {
    request((0, 0), nic, Routing::Adaptive0, 14, id)
}

/// Cycles from the first to the last flit at a port.
fn span(bench: &Bench, port: usize) -> u64 {
    let sent = &bench.sent[port];
    sent[sent.len() - 1].0 - sent[0].0 + 1
}

#[test]
fn one_nic_uses_two_flits_per_cycle_in_and_out() {
    let (mut core, mut bench) = router();
    for id in 0..100 {
        bench.send(&mut core, FIRST_NIC_PORT, to_nic(3, id));
    }
    core.run(&mut bench);
    let out = FIRST_NIC_PORT + 3;
    assert_eq!(bench.packets(out).len(), 100);
    let span = span(&bench, out);
    assert!((700..740).contains(&span), "1,400 flits in {span} cycles");
}

#[test]
fn two_nics_of_a_pair_share_four_tiles() {
    let (mut core, mut bench) = router();
    for id in 0..100 {
        for nic in 0..2 {
            bench.send(&mut core, FIRST_NIC_PORT + nic, to_nic(2 + nic as u8, id));
        }
    }
    core.run(&mut bench);
    for out in [FIRST_NIC_PORT + 2, FIRST_NIC_PORT + 3] {
        assert_eq!(bench.packets(out).len(), 100);
        let span = span(&bench, out);
        assert!((700..800).contains(&span), "1,400 flits in {span} cycles");
    }
}

/// An ordered flow has one tile and so one flit per cycle; its packets stay in order between
/// others.
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
    assert!(last - first >= 1_400, "one tile sends a flit per cycle");
}

/// A NIC that takes nothing does not hold up the other one of its pair, nor the responses.
#[test]
fn a_blocked_nic_does_not_hold_up_its_neighbour_or_responses() {
    let (mut core, mut bench) = router();
    let blocked = FIRST_NIC_PORT + 2;
    bench.blocked[..4].fill(1 << blocked);
    for id in 0..8 {
        bench.send(&mut core, 0, to_nic(2, id));
    }
    core.run(&mut bench);
    for id in 0..20 {
        // From another input, because the first one's queue stands.
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

/// What the NIC's link has room for is never promised twice.
#[test]
fn no_more_is_promised_than_the_link_takes() {
    let (mut core, mut bench) = router();
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

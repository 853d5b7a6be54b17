use phitwire_framing::yarc::maintenance::RouteVector;
use phitwire_framing::yarc::packet::Head;

use super::*;
use crate::route::registers::PortKind;
use crate::router::harness::{Bench, chip_of, cut, flat, head, packet};
use crate::router::register_map::{CHIP_ID, register_address};

fn request(way: &[u8], back: &[u8], register: &str, value: Option<u64>) -> Vec<Phit> {
    let back = RouteVector::new(back).expect("a legal route");
    let maintenance = Packet {
        route: RouteVector::new(way).expect("a legal route"),
        hop: 0,
        register: register_address(register).unwrap_or(0xffff),
        tag: 0xa5,
        operation: match value {
            None => Operation::Read { back },
            Some(value) => Operation::Write { back, value },
        },
    };
    encoded(&maintenance)
}

/// A request to read the chip's identity, whose reply leaves by port 9.
fn read_id() -> Vec<Phit> {
    request(&[], &[9], "chip.id", None)
}

fn encoded(packet: &Packet) -> Vec<Phit> {
    let mut out = PacketBuf::new();
    assert!(packet.encode(&mut out));
    out.as_slice().to_vec()
}

fn reply(way: &[u8], operation: Operation) -> Vec<Phit> {
    encoded(&Packet {
        route: RouteVector::new(way).expect("a legal route"),
        hop: 0,
        register: 0,
        tag: 1,
        operation,
    })
}

fn replies(bench: &Bench, port: usize) -> Vec<Packet> {
    let decode = |packet: Vec<Phit>| {
        check_packet(&packet).expect("a correct check");
        Packet::decode(&packet).expect("a maintenance packet")
    };
    bench.packets(port).into_iter().map(decode).collect()
}

#[test]
fn a_read_is_answered_by_the_return_vector() {
    let (mut core, mut bench) = flat();
    bench.inject(&mut core, 5, &request(&[], &[9, 4], "chip.id", None));
    bench.drain(&mut core);
    let replies = replies(&bench, 9);
    assert_eq!(replies.len(), 1);
    assert_eq!((replies[0].hop, replies[0].tag), (1, 0xa5));
    let done = Operation::ReadReply {
        status: RegisterStatus::Done,
        value: CHIP_ID,
    };
    assert_eq!(replies[0].operation, done);
    assert_eq!(core.counters().maintenance_reads, 1);
}

#[test]
fn a_write_changes_the_register_and_the_routes() {
    let (mut core, mut bench) = flat();
    // Logical port 0 becomes physical port 20 for packets from port 5.
    let map = u64::from_le_bytes([20, 1, 2, 3, 4, 5, 6, 7]);
    let write = request(&[], &[5], "tile5.port_map.0", Some(map));
    bench.inject(&mut core, 5, &write);
    bench.drain(&mut core);
    let status = RegisterStatus::Done;
    let done = Operation::WriteReply { status };
    assert_eq!(replies(&bench, 5)[0].operation, done);
    let address = register_address("tile5.port_map.0").unwrap();
    assert_eq!(core.read_register(address), Some(map));
    let value = map;
    let written = RouterEvent::RegisterWritten { address, value };
    assert_eq!(core.poll_event(), Some(written));
    bench.inject(&mut core, 5, &packet(head(0, Vc::Request), 0, 1, 4));
    bench.inject(&mut core, 6, &packet(head(0, Vc::Request), 0, 1, 4));
    bench.drain(&mut core);
    assert_eq!((bench.packets(20).len(), bench.packets(0).len()), (1, 1));
}

#[test]
fn refused_accesses_are_answered_too() {
    let (mut core, mut bench) = flat();
    bench.inject(&mut core, 5, &request(&[], &[5], "chip.id", Some(1)));
    bench.inject(&mut core, 5, &request(&[], &[5], "no such register", None));
    bench.drain(&mut core);
    let operations: Vec<_> = replies(&bench, 5).iter().map(|r| r.operation).collect();
    let expected = [
        Operation::WriteReply {
            status: RegisterStatus::ReadOnly,
        },
        Operation::ReadReply {
            status: RegisterStatus::Unknown,
            value: 0,
        },
    ];
    assert_eq!(operations, expected);
    assert_eq!(core.counters().maintenance_refused, 2);
}

/// A packet in transit is forwarded with the next hop index and a valid check.
#[test]
fn a_packet_for_a_router_further_on_is_forwarded() {
    let (mut core, mut bench) = flat();
    let far = request(&[33, 12], &[1, 2, 3], "chip.id", None);
    bench.inject(&mut core, 5, &far);
    bench.drain(&mut core);
    let forwarded = replies(&bench, 33);
    assert_eq!(forwarded[0].hop, 1);
    // The second router sends it to port 12, and the third executes it.
    let (mut core, mut bench2) = flat();
    bench2.inject(&mut core, 0, &bench.packets(33)[0]);
    bench2.drain(&mut core);
    let (mut core, mut bench3) = flat();
    bench3.inject(&mut core, 0, &bench2.packets(12)[0]);
    bench3.drain(&mut core);
    assert_eq!(replies(&bench3, 1).len(), 1);
    assert_eq!(core.counters().maintenance_reads, 1);
}

/// A packet whose end does not mark it as undamaged has no effect.
#[test]
fn a_damaged_packet_is_not_executed() {
    let good = request(&[], &[5], "tile5.exit_mask", Some(0));
    let address = register_address("tile5.exit_mask").unwrap();
    for length in 1..good.len() - 1 {
        let (mut core, mut bench) = flat();
        bench.inject(&mut core, 5, &cut(&good, length));
        bench.inject(&mut core, 5, &packet(head(9, Vc::Request), 0, 1, 4));
        bench.drain(&mut core);
        assert_eq!(core.read_register(address), Some(u64::MAX));
        assert_eq!(core.counters().maintenance_damaged, 1, "cut after {length}");
        assert_eq!(bench.packets(9).len(), 1);
    }
    // The check detects flipped bits that the link did not see, which represent damage inside the
    // router.
    for flipped in 0..good.len() {
        let (mut core, mut bench) = flat();
        let mut bad = good.clone();
        bad[flipped] = Phit::new(bad[flipped].kind(), bad[flipped].content() ^ 1 << 7);
        bench.inject(&mut core, 5, &bad);
        bench.drain(&mut core);
        assert_eq!(core.read_register(address), Some(u64::MAX));
    }
}

#[test]
fn a_source_routed_packet_longer_than_any_is_dropped() {
    let (mut core, mut bench) = flat();
    let long = Head {
        source_routed: true,
        ..head(0, Vc::Request)
    };
    bench.inject(&mut core, 5, &packet(long, 0, 0, 40));
    bench.inject(&mut core, 5, &packet(head(9, Vc::Request), 0, 1, 4));
    bench.drain(&mut core);
    assert_eq!(core.counters().maintenance_malformed, 1);
    assert_eq!(bench.packets(9).len(), 1);
}

#[test]
fn replies_that_cannot_leave_hold_requests_back_and_lose_nothing() {
    let (mut core, mut bench) = flat();
    bench.blocked[1] = 1 << 9;
    for _ in 0..20 {
        bench.inject(&mut core, 5, &read_id());
    }
    // Responses of the same input tile, including a maintenance packet, still pass.
    bench.inject(&mut core, 5, &packet(head(30, Vc::Response), 0, 1, 4));
    bench.drain(&mut core);
    assert!(core.counters().maintenance_reads < 20);
    bench.blocked[1] = 0;
    core.output_changed(9);
    bench.drain(&mut core);
    assert_eq!(replies(&bench, 9).len(), 20);
    assert_eq!(bench.packets(30).len(), 1);
    assert_eq!(core.phits_inside(), 0);
}

/// Requests to this router, and replies that pass through the same tile, interleaved at random.
#[test]
fn passing_replies_and_local_requests_share_a_tile() {
    let (mut core, mut bench) = flat();
    for n in 0..60u64 {
        bench.inject(&mut core, 5, &read_id());
        bench.inject(&mut core, 5, &passing_reply());
        let response = packet(head(40, Vc::Response), 0, n as u32, 4);
        bench.inject(&mut core, 5, &response);
        bench.run(&mut core, n % 7);
    }
    bench.drain(&mut core);
    assert_eq!(replies(&bench, 9).len(), 60);
    assert_eq!(replies(&bench, 17).len(), 60);
    assert_eq!(bench.packets(40).len(), 60);
}

#[test]
fn maintenance_packets_keep_the_rules_of_routing() {
    let chip = chip_of(|port, tile| {
        tile.exit_mask = if port < 48 { (1 << 48) - 1 } else { !0 << 48 };
        if port >= 32 {
            tile.kind = PortKind::Up;
        }
    });
    let (mut core, mut bench) = (Core::new(chip), Bench::default());
    bench.inject(&mut core, 40, &request(&[41], &[], "chip.id", None));
    bench.inject(&mut core, 1, &request(&[50], &[], "chip.id", None));
    bench.drain(&mut core);
    assert!(bench.sent.iter().all(Vec::is_empty));
    assert_eq!(core.counters().up_down_violations, 1);
    assert_eq!(core.counters().virtual_router_violations, 1);
}

/// A reply that is addressed to a router changes nothing and gets no reply.
#[test]
fn a_reply_addressed_to_a_router_is_dropped() {
    let (mut core, mut bench) = flat();
    let status = RegisterStatus::Done;
    bench.inject(&mut core, 5, &reply(&[], Operation::WriteReply { status }));
    bench.drain(&mut core);
    assert!(bench.sent.iter().all(Vec::is_empty));
    assert_eq!(core.counters().maintenance_malformed, 1);
}

/// A reply that passes through the tile to port 17.
fn passing_reply() -> Vec<Phit> {
    let (status, value) = (RegisterStatus::Done, 7);
    reply(&[17, 3], Operation::ReadReply { status, value })
}

/// A packet stopped halfway waits for a slot in its row buffer, whatever else its tile sends.
#[test]
fn a_maintenance_packet_does_not_wake_a_packet_that_waits_for_its_row_buffer() {
    for blocked in Vc::ALL {
        let (mut core, mut bench) = flat();
        bench.blocked[blocked.index()] = 1 << 8;
        for id in 0..4 {
            bench.inject(&mut core, 5, &packet(head(8, blocked), 5, id, 19));
        }
        bench.drain(&mut core);
        // A passing reply on the other channel, and a local reply on the same one.
        let (maintenance, out) = match blocked {
            Vc::Request => (passing_reply(), 17),
            Vc::Response => (read_id(), 9),
        };
        bench.inject(&mut core, 5, &maintenance);
        bench.drain(&mut core);
        bench.blocked = [0; 2];
        core.output_changed(8);
        bench.drain(&mut core);
        assert_eq!(replies(&bench, out).len(), 1);
        let packets = bench.packets(8);
        assert_eq!(packets.len(), 4);
        for (id, packet) in packets.iter().enumerate() {
            check_packet(packet).expect("a whole packet");
            assert_eq!(packet[2].content(), id as u32);
        }
        assert_eq!(core.phits_inside(), 0);
    }
}

/// A local reply follows as soon as the packet that holds its channel has ended.
#[test]
fn a_reply_leaves_when_the_packet_before_it_has_ended() {
    let (mut core, mut bench) = flat();
    let data = packet(head(30, Vc::Response), 0, 1, 6);
    let (end, begin) = data.split_last().expect("not empty");
    bench.inject(&mut core, 5, begin);
    bench.run(&mut core, 60);
    bench.inject(&mut core, 5, &read_id());
    bench.drain(&mut core);
    assert!(replies(&bench, 9).is_empty(), "packets are not interleaved");
    assert!(core.phits_inside() > 0, "the reply is inside");
    bench.queues[5][1].push_back(*end);
    core.arrived(5, 1, 1);
    bench.drain(&mut core);
    assert_eq!(bench.packets(30).len(), 1);
    assert_eq!(replies(&bench, 9).len(), 1);
    assert_eq!(core.phits_inside(), 0);
    // The next request still gets a reply.
    bench.inject(&mut core, 5, &read_id());
    bench.drain(&mut core);
    assert_eq!(replies(&bench, 9).len(), 2);
}

#[test]
fn a_packet_gathered_by_half_is_inside() {
    let (mut core, mut bench) = flat();
    bench.inject(&mut core, 5, &read_id()[..3]);
    bench.drain(&mut core);
    assert_eq!(core.phits_inside(), 3);
}

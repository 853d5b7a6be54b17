//! Maintenance packets: golden vectors, hop by hop through routers, rejected packets.

use crate::golden::{
    REGISTER_READ, REGISTER_READ_REPLY, REGISTER_WRITE, REGISTER_WRITE_REPLY, closed, dirty,
    flipped, phits,
};
use phitwire_framing::yarc::crc16::CrcPatch;
use phitwire_framing::yarc::maintenance::{
    MAX_HOPS, MAX_REQUEST_HOPS, Maintenance, Operation, READ_PHITS, READ_REPLY_PHITS,
    RegisterStatus, RouteVector, WRITE_PHITS, WRITE_REPLY_PHITS, hops_in_second, next_hop,
    port_in_phit, vector_phit,
};
use phitwire_framing::yarc::memory::DecodeError;
use phitwire_framing::yarc::packet::{
    EopError, EopStatus, Head, PacketBuf, PacketError, Vc, check_packet, head_payload, second_phit,
};
use phitwire_framing::yarc::phit::{Phit, PhitKind};

fn way(ports: &[u8]) -> RouteVector {
    RouteVector::new(ports).expect("a way of the test fits")
}

fn golden() -> [(&'static [u32], Maintenance); 4] {
    let back = way(&[7, 8, 9, 10, 11, 12, 13, 62]);
    let packet = |ports: &[u8], hop, (register, tag), operation| Maintenance {
        route: way(ports),
        hop,
        register,
        tag,
        operation,
    };
    let value = 0xfedc_ba98_7654_3210;
    let write = Operation::Write { back, value };
    let read = Operation::Read { back: way(&[]) };
    let read_reply = Operation::ReadReply {
        status: RegisterStatus::Done,
        value: 0x0123_4567_89ab_cdef,
    };
    let status = RegisterStatus::Unknown;
    let write_reply = Operation::WriteReply { status };
    let long = [1, 2, 3, 4, 5, 6, 7];
    [
        (
            &REGISTER_WRITE,
            packet(&[1, 63, 0, 31], 0, (0xc0de, 0x5a), write),
        ),
        (&REGISTER_READ, packet(&long, 3, (1, 0xff), read)),
        (
            &REGISTER_READ_REPLY,
            packet(&[7, 8, 9], 2, (0xc0de, 0x5a), read_reply),
        ),
        (
            &REGISTER_WRITE_REPLY,
            packet(&[], 0, (0xffff, 1), write_reply),
        ),
    ]
}

#[test]
fn deconstruct() {
    let head = Head::parse(REGISTER_READ[0]);
    assert!(head.source_routed && !head.adaptive && !head.hashed);
    assert_eq!((head.dest, head.vc, head.payload), (0, Vc::Request, 3));
    assert_eq!(hops_in_second(REGISTER_READ[1]), 7);
    for hop in 0..7 {
        assert_eq!(port_in_phit(REGISTER_READ[vector_phit(hop)], hop), hop + 1);
    }
    assert_eq!(port_in_phit(REGISTER_WRITE[vector_phit(1)], 1), 63);
}

#[test]
fn construct() {
    // REGISTER_WRITE_REPLY by hand.
    let head = Head {
        dest: 0,
        vc: Vc::Response,
        hashed: false,
        adaptive: false,
        source_routed: true,
        payload: 0,
    };
    let second = second_phit(0, 3 << 4);
    let contents = [head.emit(), second, 0, 0, 1 << 12, 0xffff | 1 << 16];
    assert_eq!(closed(&contents).as_slice(), phits(&REGISTER_WRITE_REPLY));
}

#[test]
fn parse() {
    for (golden, packet) in golden() {
        assert_eq!(check_packet(&phits(golden)), Ok(EopStatus::Healthy));
        assert_eq!(Maintenance::decode(&phits(golden)), Ok(packet));
    }
}

#[test]
fn emit() {
    for (golden, packet) in golden() {
        let mut out = dirty();
        assert!(packet.encode(&mut out));
        assert_eq!(out.as_slice(), phits(golden));
    }
    let sizes = [WRITE_PHITS, READ_PHITS, READ_REPLY_PHITS, WRITE_REPLY_PHITS];
    assert_eq!(golden().map(|(golden, _)| golden.len()), sizes);
}

/// Forwards a source-routed packet like a router, phit by phit: updates the check and never
/// recomputes it.
fn forward(packet: &[Phit]) -> PacketBuf {
    let mut out = PacketBuf::new();
    let old = packet[0].content();
    let mut patch = CrcPatch::new(old ^ next_hop(old));
    for phit in packet {
        let content = match phit.kind() {
            PhitKind::Head => next_hop(old),
            PhitKind::Eop => patch.apply(phit.content()),
            _ => {
                patch.advance();
                phit.content()
            }
        };
        assert!(out.push(Phit::new(phit.kind(), content)));
    }
    out
}

#[test]
fn a_router_changes_the_hop_and_keeps_the_check_right() {
    for (golden, packet) in golden() {
        let mut at = PacketBuf::new();
        assert!(packet.encode(&mut at));
        for hop in 1..=8 {
            at = forward(at.as_slice());
            assert_eq!(check_packet(at.as_slice()), Ok(EopStatus::Healthy));
            let expected = Maintenance {
                hop: (packet.hop + hop) % 8,
                ..packet
            };
            let found = Maintenance::decode(at.as_slice());
            assert_eq!(found, Ok(expected), "{golden:x?}");
        }
    }
}

#[test]
fn a_router_does_not_hide_damage() {
    let mut damaged = phits(&REGISTER_WRITE);
    damaged[9] = Phit::new(PhitKind::Body, damaged[9].content() ^ 0x40);
    let sent = forward(&damaged);
    let crc = PacketError::Eop(EopError::Crc);
    assert_eq!(check_packet(sent.as_slice()), Err(crc));
    assert_eq!(head_payload(sent.as_slice()[0].content()), 1);
}

#[test]
fn replies_take_the_reverse_path() {
    let [(_, write), (_, read), (_, read_reply), (_, write_reply)] = golden();
    let reply = write
        .reply(RegisterStatus::ReadOnly, 9)
        .expect("a write is answered");
    assert_eq!(reply.route, way(&[7, 8, 9, 10, 11, 12, 13, 62]));
    assert_eq!((reply.hop, reply.tag, reply.register), (0, 0x5a, 0xc0de));
    let status = RegisterStatus::ReadOnly;
    assert_eq!(reply.operation, Operation::WriteReply { status });
    let status = RegisterStatus::Done;
    let reply = read.reply(status, 9).expect("a read is answered");
    assert_eq!(reply.operation, Operation::ReadReply { status, value: 9 });
    assert_eq!(read_reply.reply(status, 0), None);
    assert_eq!(write_reply.reply(status, 0), None);
}

#[test]
fn paths_that_are_too_long_are_refused() {
    assert_eq!(RouteVector::new(&[64]), None);
    assert_eq!(RouteVector::new(&[0; MAX_HOPS + 1]), None);
    let (_, mut read) = golden()[1];
    read.route = way(&[0; MAX_REQUEST_HOPS + 1]);
    let mut out = dirty();
    assert!(!read.encode(&mut out));
    assert_eq!(out, dirty());
}

#[test]
fn packets_that_are_wrong_in_a_field_are_rejected_by_its_name() {
    use DecodeError::{Hash, Length, Operation, Padding, Routing, Size, Status, Unhealthy};
    let eop = READ_PHITS - 1;
    let reserved = PacketError::Eop(EopError::StatusReserved);
    let transmit_error = Unhealthy(EopStatus::TransmitError);
    let cases: [(&[u32], usize, u32, DecodeError); 19] = [
        (&REGISTER_READ, 0, 1 << 18, Routing),
        (&REGISTER_READ, 0, 1 << 17, Routing),
        (&REGISTER_READ, 0, 1 << 16, Routing),
        (&REGISTER_READ, 0, 1 << 15, Routing),
        (&REGISTER_READ, 0, 1, Routing),
        (&REGISTER_READ, 1, 1, Hash),
        (&REGISTER_READ, 1, 4 << 19, Operation),
        (&REGISTER_READ, 1, 1 << 19, Size),
        // Seven hops become fifteen, and no hops back become nine.
        (&REGISTER_READ, 1, 8 << 15, Length),
        (&REGISTER_READ, 7, 9 << 12, Length),
        (&REGISTER_READ, 2, 1 << 21, Padding),
        (&REGISTER_READ, 4, 1 << 20, Padding),
        (&REGISTER_READ, 4, 1 << 6, Padding),
        (&REGISTER_READ, 5, 1, Padding),
        (&REGISTER_READ, 8, 1 << 16, Status),
        (&REGISTER_READ_REPLY, 5, 4 << 16, Status),
        (&REGISTER_WRITE, 9, 1 << 20, Padding),
        (&REGISTER_READ, eop, 1 << 16, transmit_error),
        (&REGISTER_READ, eop, 3 << 16, DecodeError::Packet(reserved)),
    ];
    for (golden, phit, flip, error) in cases {
        let packet = flipped(golden, phit, flip);
        assert_eq!(Maintenance::decode(&packet), Err(error), "{packet:?}");
    }
    let short = Maintenance::decode(&phits(&[0; 3]));
    assert_eq!(short, Err(DecodeError::Packet(PacketError::Length)));
}

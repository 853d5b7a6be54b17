//! Head, second and end-of-packet phits, memory packets: golden vectors and rejected packets.

use crate::golden::{
    READ_13, READ_DATA_5, READ_DATA_32, REFUSED, WRITE_1, WRITE_8, WRITE_32, WRITE_DONE, closed,
    dirty, flipped, phits,
};
use phitwire_framing::yarc::memory::{
    DecodeError, EncodeError, LINE_BYTES, Request, RequestPacket, Response, Status, decode_request,
    decode_response, encode_request, encode_response, read_data_phits, write_phits,
};
use phitwire_framing::yarc::packet::{
    Eop, EopError, EopStatus, Head, MAX_PACKET_PHITS, MIN_PACKET_PHITS, PacketBuf, PacketError, Vc,
    check_packet, hash_bits, head_adaptive, head_dest, head_hashed, head_payload,
    head_source_routed, head_vc, payload_bits, second_payload, second_phit,
};
use phitwire_framing::yarc::phit::{CONTENT_MASK, Phit};

fn line() -> [u8; LINE_BYTES] {
    std::array::from_fn(|i| 0xe0 + i as u8)
}

fn first(data: &[u8]) -> [u8; LINE_BYTES] {
    let mut line = [0; LINE_BYTES];
    line[..data.len()].copy_from_slice(data);
    line
}

fn requests() -> Vec<(&'static [u32], RequestPacket)> {
    let packet = |(dest, source, tid), request| RequestPacket {
        dest,
        source,
        tid,
        request,
    };
    let write = |address, data: &[u8]| Request::Write {
        address,
        data: first(data),
        len: data.len() as u8,
    };
    let read = Request::Read {
        address: 0x0fed_cba9_8765,
        len: 13,
    };
    let (write_32, write_8) = (
        write(0x1234_5678_9ac0, &line()),
        write(0x28, &[1, 2, 3, 4, 5, 6, 7, 8]),
    );
    let write_1 = write(0xffff_ffff_ffff, &[0xa5]);
    vec![
        (&WRITE_32, packet((0x1234, 0x4567, 0xabcde), write_32)),
        (&WRITE_8, packet((0x7fff, 1, 0), write_8)),
        (&WRITE_1, packet((0, 0x7fff, 0xf_ffff), write_1)),
        (&READ_13, packet((0x60, 0x61, 0x12345), read)),
    ]
}

fn responses() -> Vec<(&'static [u32], u16, Response)> {
    let tid = 0x12345;
    let done = Response::WriteDone {
        tid: 0xabcde,
        status: Status::Done,
    };
    let read = |len: u8| Response::ReadData {
        tid,
        len,
        data: first(&line()[..len.into()]),
    };
    let refused = Response::Refused {
        tid,
        status: Status::OutOfRange,
    };
    vec![
        (&WRITE_DONE, 0x4567, done),
        (&READ_DATA_32, 0x61, read(32)),
        (&READ_DATA_5, 0x61, read(5)),
        (&REFUSED, 0x61, refused),
    ]
}

#[test]
fn deconstruct() {
    let head = WRITE_32[0];
    assert_eq!((head_dest(head), head_vc(head)), (0x1234, Vc::Request));
    assert_eq!(head_payload(head), 0);
    assert!(head_hashed(head) && !head_adaptive(head) && !head_source_routed(head));
    // BlackWidow sec. 7.8.2: address[20:6] of 0x1234_5678_9ac0.
    let address = 0x1234_5678_9ac0_u64;
    assert_eq!(hash_bits(WRITE_32[1]), (address >> 6 & 0x7fff) as u16);
    // The upper seven bits of the 15-bit source 0x4567.
    assert_eq!(second_payload(WRITE_32[1]), (0x4567 >> 8) as u8);

    let head = READ_DATA_5[0];
    assert_eq!((head_dest(head), head_vc(head)), (0x61, Vc::Response));
    assert_eq!(head_payload(head), 1);
    assert!(!head_hashed(head) && head_adaptive(head) && !head_source_routed(head));
    assert_eq!(hash_bits(READ_DATA_5[1]), 0);
    let (crc, status) = (0x8173, EopStatus::Healthy);
    assert_eq!(Eop::parse(0x008173), Ok(Eop { crc, status }));
}

#[test]
fn construct() {
    // WRITE_DONE by hand: tid 20 bits, length - 1 5 bits, status 4 bits.
    let head = Head {
        dest: 0x4567,
        vc: Vc::Response,
        hashed: false,
        adaptive: true,
        source_routed: false,
        payload: 0,
    };
    let payload = 0xabcde_u32 << 9;
    let second = second_phit(0, (payload >> 22) as u8);
    let out = closed(&[head.emit(), second, payload & CONTENT_MASK]);
    assert_eq!(out.as_slice(), phits(&WRITE_DONE));
}

#[test]
fn parse() {
    for (golden, packet) in requests() {
        assert_eq!(check_packet(&phits(golden)), Ok(EopStatus::Healthy));
        assert_eq!(decode_request(&phits(golden)), Ok(packet));
    }
    for (golden, dest, response) in responses() {
        assert_eq!(check_packet(&phits(golden)), Ok(EopStatus::Healthy));
        assert_eq!(decode_response(&phits(golden)), Ok((dest, response)));
    }
}

#[test]
fn emit() {
    for (golden, packet) in requests() {
        let mut out = dirty();
        let p = packet;
        let encoded = encode_request(p.dest, p.source, p.tid, &p.request, &mut out);
        assert_eq!(encoded, Ok(()));
        assert_eq!(out.as_slice(), phits(golden));
    }
    for (golden, dest, response) in responses() {
        let mut out = dirty();
        assert_eq!(encode_response(dest, &response, &mut out), Ok(()));
        assert_eq!(out.as_slice(), phits(golden));
    }
}

/// BlackWidow sec. 4.1: "A minimum packet contains 4 phits carrying 32 payload bits."
#[test]
fn shortest_packet_has_four_phits_and_32_payload_bits() {
    let mut out = PacketBuf::new();
    let done = Response::WriteDone {
        tid: 0xf_ffff,
        status: Status::Busy,
    };
    encode_response(0x7fff, &done, &mut out).unwrap();
    assert_eq!(out.len(), MIN_PACKET_PHITS);
    assert_eq!(payload_bits(out.len()), 32);
    // Count the payload bits in the encoding: those of the first three phits that are neither
    // routing nor hash bits.
    let routing_and_hash = [0x7_ffff_u32, 0x7fff, 0];
    let free = routing_and_hash.map(|fixed| (CONTENT_MASK & !fixed).count_ones());
    assert_eq!(free.iter().sum::<u32>(), 32);
    assert_eq!(head_dest(out.as_slice()[0].content()), 0x7fff);
    assert_eq!(payload_bits(3), 0, "three phits are no packet");
}

/// BlackWidow sec. 4.3: "a 32B cache-line write results in a packet with 19 phits (6 header, 12
/// data, and 1 EOP)".
#[test]
fn longest_packet_is_a_write_of_32_bytes_in_19_phits() {
    let mut out = PacketBuf::new();
    let write = |byte| Request::Write {
        address: 0xffff_ffff_ffe0,
        data: [byte; 32],
        len: 32,
    };
    encode_request(1, 2, 3, &write(0), &mut out).unwrap();
    let zeros = out;
    encode_request(1, 2, 3, &write(0xff), &mut out).unwrap();
    assert_eq!((zeros.len(), out.len()), (MAX_PACKET_PHITS, 19));
    let both = zeros.as_slice().iter().zip(out.as_slice());
    let differs: Vec<bool> = both.map(|(a, b)| a != b).collect();
    assert_eq!(differs[..6], [false; 6], "6 header phits");
    assert_eq!(differs[6..18], [true; 12], "12 data phits");
    assert!(out.as_slice()[18].is_eop(), "1 EOP");
    assert!(!out.push(Phit::IDLE), "no room for a twentieth");
}

#[test]
fn sizes_of_all_requests_and_responses() {
    for len in 1..=32_u8 {
        let mut out = dirty();
        let write = Request::Write {
            address: 32 - u64::from(len),
            data: [7; 32],
            len,
        };
        encode_request(1, 2, 3, &write, &mut out).unwrap();
        assert_eq!(out.len(), write_phits(usize::from(len)));
        assert_eq!(out.len(), 6 + (usize::from(len) * 8).div_ceil(22) + 1);
        let data = Response::ReadData {
            tid: 3,
            len,
            data: [7; 32],
        };
        encode_response(1, &data, &mut out).unwrap();
        assert_eq!(out.len(), read_data_phits(usize::from(len)));
    }
    assert_eq!(write_phits(8), 10);
    assert_eq!((read_data_phits(8), read_data_phits(32)), (7, 16));
}

#[test]
fn values_out_of_range_are_not_encoded() {
    let write = |address, len| Request::Write {
        address,
        data: [0; 32],
        len,
    };
    let read = |address, len| Request::Read { address, len };
    let cases = [
        (0x8000, 0, 0, read(0, 1), EncodeError::Dest),
        (0, 0x8000, 0, read(0, 1), EncodeError::Source),
        (0, 0, 1 << 20, read(0, 1), EncodeError::Tid),
        (0, 0, 0, read(1 << 48, 1), EncodeError::Address),
        (0, 0, 0, write(0, 0), EncodeError::Length),
        (0, 0, 0, write(0, 33), EncodeError::Length),
        (0, 0, 0, write(1, 32), EncodeError::CrossesLine),
        (0, 0, 0, read(31, 2), EncodeError::CrossesLine),
    ];
    for (dest, source, tid, request, error) in cases {
        let mut out = dirty();
        let encoded = encode_request(dest, source, tid, &request, &mut out);
        assert_eq!(encoded, Err(error), "{request:?}");
        assert_eq!(out, dirty(), "the buffer is unchanged");
    }
    let data = |tid, len| Response::ReadData {
        tid,
        len,
        data: [0; 32],
    };
    let cases = [
        (0x8000, data(0, 1), EncodeError::Dest),
        (0, data(1 << 20, 1), EncodeError::Tid),
        (0, data(0, 0), EncodeError::Length),
        (0, data(0, 33), EncodeError::Length),
    ];
    for (dest, response, error) in cases {
        let mut out = dirty();
        assert_eq!(encode_response(dest, &response, &mut out), Err(error));
        assert_eq!(out, dirty());
    }
}

#[test]
fn requests_that_are_wrong_in_a_field_are_rejected_by_its_name() {
    use DecodeError::{Length, Mask, Operation, Padding, Routing, Size, Unhealthy};
    use EopStatus::{SoftError, TransmitError};
    let reserved = DecodeError::Packet(PacketError::Eop(EopError::StatusReserved));
    let eop = WRITE_8[9];
    let cases: [(&[u32], usize, u32, DecodeError); 13] = [
        (&WRITE_8, 0, 1 << 15, Routing),
        (&WRITE_8, 0, 1 << 16, Routing),
        (&WRITE_8, 0, 1 << 17, Routing),
        (&WRITE_8, 0, 1 << 18, Routing),
        (&WRITE_8, 0, 7 << 19, Operation),
        // The sixth phit has the mask of bytes 8 to 15: empty, with a gap, with one byte more.
        (&WRITE_8, 5, 0x00ff00, Mask),
        (&WRITE_8, 5, 0x000200, Mask),
        (&WRITE_8, 5, 1 << 16, Size),
        (&WRITE_8, 8, 1, Padding),
        // Reject a length of 32 at an address within a line.
        (&READ_13, 4, !READ_13[4] & 0x1f, Length),
        (&WRITE_8, 9, eop ^ 1 << 16, Unhealthy(TransmitError)),
        (&WRITE_8, 9, eop ^ 2 << 16, Unhealthy(SoftError)),
        (&WRITE_8, 9, eop ^ 3 << 16, reserved),
    ];
    for (golden, phit, flip, error) in cases {
        let packet = flipped(golden, phit, flip);
        assert_eq!(decode_request(&packet), Err(error), "{packet:?}");
        assert!(!error.name().is_empty() && !error.to_string().is_empty());
    }
    let cases = [
        (phits(&WRITE_8[7..]), PacketError::Length),
        (phits(&[0; 20]), PacketError::Length),
        (phits(&READ_13)[1..].to_vec(), PacketError::Kinds),
    ];
    for (packet, error) in cases {
        assert_eq!(decode_request(&packet), Err(DecodeError::Packet(error)));
        let error = DecodeError::Packet(error);
        assert!(!error.name().is_empty() && !error.to_string().is_empty());
    }
}

#[test]
fn responses_that_are_wrong_in_a_field_are_rejected_by_its_name() {
    use DecodeError::{Hash, Length, Operation, Padding, Routing, Size, Status};
    let cases: [(&[u32], usize, u32, DecodeError); 10] = [
        (&WRITE_DONE, 0, 1 << 15, Routing),
        (&WRITE_DONE, 0, 1 << 16, Routing),
        (&WRITE_DONE, 0, 3 << 19, Operation),
        (&WRITE_DONE, 1, 1, Hash),
        (&WRITE_DONE, 2, 4, Status),
        (&WRITE_DONE, 2, 1 << 4, Length),
        (&READ_DATA_5, 2, 1, Status),
        (&READ_DATA_5, 2, 8 << 4, Size),
        (&READ_DATA_5, 4, 1, Padding),
        (&READ_DATA_5, 2, 4 << 4, Size),
    ];
    for (golden, phit, flip, error) in cases {
        let packet = flipped(golden, phit, flip);
        assert_eq!(decode_response(&packet), Err(error), "{packet:?}");
    }
}

#[test]
fn end_of_packet_is_rejected_by_reason() {
    for bit in 18..22 {
        assert_eq!(Eop::parse(1 << bit), Err(EopError::ReservedNonZero));
        let packet = flipped(&WRITE_8, 9, 1 << bit);
        let error = PacketError::Eop(EopError::ReservedNonZero);
        assert_eq!(check_packet(&packet), Err(error));
    }
    assert_eq!(Eop::parse(3 << 16), Err(EopError::StatusReserved));
    let packet = flipped(&WRITE_8, 9, 1);
    assert_eq!(check_packet(&packet), Err(PacketError::Eop(EopError::Crc)));
}

#[test]
fn every_flipped_bit_of_a_packet_is_found() {
    let goldens: [&[u32]; 5] = [&WRITE_32, &WRITE_8, &READ_13, &WRITE_DONE, &READ_DATA_32];
    for golden in goldens {
        for phit in 0..golden.len() {
            for bit in 0..22 {
                let packet = flipped(golden, phit, 1 << bit);
                assert!(check_packet(&packet).is_err(), "phit {phit} bit {bit}");
            }
        }
    }
}

//! Properties for all values: round trips, detection, and no panic on any bytes.

use crate::decode::{decode, decode_with_checks_made_right};
use crate::golden::closed;
use phitwire_framing::carrier::frame::{FrameHeader, LinkEnd};
use phitwire_framing::carrier::lanes::Permutation;
use phitwire_framing::carrier::number::PacketNumber;
use phitwire_framing::carrier::training::{PATTERN_BYTES, Training, name_bytes};
use phitwire_framing::yarc::control::{ControlWord, LinkStatus, WordRest};
use phitwire_framing::yarc::frame::{DataFrame, emit_data, frame_len, padded_phits};
use phitwire_framing::yarc::maintenance::{Maintenance, Operation, RegisterStatus, RouteVector};
use phitwire_framing::yarc::memory::{
    Request, RequestPacket, Response, Status, decode_request, decode_response, encode_request,
    encode_response,
};
use phitwire_framing::yarc::packet::{Eop, EopStatus, Head, PacketBuf, check_packet};
use phitwire_framing::yarc::phit::{LANES, Phit, PhitKind};
use proptest::prelude::*;

prop_compose! {
    fn header()(end in any::<bool>(), link: u16, fabric: u32, tx_epoch: u32, rx_epoch: u32, lanes in 1..8_u8)
        -> FrameHeader
    {
        let end = if end { LinkEnd::B } else { LinkEnd::A };
        FrameHeader { kind: DataFrame::KIND, end, link, fabric, tx_epoch, rx_epoch, lanes, units: 0 }
    }
}

prop_compose! {
    fn word()(seq: u64, offset in 0..32_u8, status in 0..3, ack: u64, pass: u16, a in 0..1_u32 << 20, b in 0..1_u32 << 20)
        -> ControlWord
    {
        let status = [LinkStatus::Normal, LinkStatus::RetryRequest, LinkStatus::Probe][status as usize];
        let (seq, ack) = (PacketNumber::new(seq), PacketNumber::new(ack));
        ControlWord { seq, offset, status, ack, vc_ack: [a, b], pass }
    }
}

prop_compose! {
    fn cable()(order in Just([0, 1, 2]).prop_shuffle(), invert: [bool; 3]) -> Permutation {
        Permutation::new(order, invert).expect("a shuffle is a permutation")
    }
}

/// First byte, length and data of a request within one line.
fn in_line() -> impl Strategy<Value = (u64, u8, [u8; 32])> {
    (0..1_u64 << 43, 0..32_u8, any::<[u8; 32]>()).prop_flat_map(|(line, first, data)| {
        (1..=32 - first).prop_map(move |len| {
            let mut data = data;
            data[usize::from(len)..].fill(0);
            (line << 5 | u64::from(first), len, data)
        })
    })
}

prop_compose! {
    fn request()(dest in 0..1_u16 << 15, source in 0..1_u16 << 15, tid in 0..1_u32 << 20,
        (address, len, data) in in_line(), write: bool) -> RequestPacket
    {
        let request =
            if write { Request::Write { address, data, len } } else { Request::Read { address, len } };
        RequestPacket { dest, source, tid, request }
    }
}

fn response() -> impl Strategy<Value = Response> {
    let status = prop_oneof![
        Just(Status::Done),
        Just(Status::OutOfRange),
        Just(Status::Unsupported),
        Just(Status::Busy)
    ];
    (0..1_u32 << 20, status, in_line(), 0..3).prop_map(|(tid, status, (_, len, data), which)| {
        match which {
            0 => Response::WriteDone { tid, status },
            1 => Response::ReadData { tid, len, data },
            _ => Response::Refused { tid, status },
        }
    })
}

fn way(longest: usize) -> impl Strategy<Value = RouteVector> {
    prop::collection::vec(0..64_u8, 0..=longest)
        .prop_map(|ports| RouteVector::new(&ports).expect("ports and length are within bounds"))
}

fn maintenance() -> impl Strategy<Value = Maintenance> {
    let status = prop_oneof![
        Just(RegisterStatus::Done),
        Just(RegisterStatus::Unknown),
        Just(RegisterStatus::ReadOnly),
        Just(RegisterStatus::BadValue)
    ];
    let fields = (
        way(7),
        0..8_u8,
        any::<(u16, u8, u64)>(),
        way(8),
        status,
        0..4,
    );
    fields.prop_map(
        |(route, hop, (register, tag, value), back, status, which)| {
            let operation = match which {
                0 => Operation::Read { back },
                1 => Operation::Write { back, value },
                2 => Operation::ReadReply { status, value },
                _ => Operation::WriteReply { status },
            };
            Maintenance {
                route,
                hop,
                register,
                tag,
                operation,
            }
        },
    )
}

fn phit() -> impl Strategy<Value = Phit> {
    (0..4_u8, 0..1_u32 << 22)
        .prop_map(|(kind, content)| Phit::new(PhitKind::from_code(kind), content))
}

/// A packet of random content, which covers all bits.
fn packet() -> impl Strategy<Value = PacketBuf> {
    prop::collection::vec(0..1_u32 << 22, 3..=18).prop_map(|contents| closed(&contents))
}

proptest! {
    #[test]
    fn every_head_content_round_trips(content in 0..1_u32 << 22) {
        prop_assert_eq!(Head::parse(content).emit(), content);
        if let Ok(eop) = Eop::parse(content) {
            prop_assert_eq!(eop.emit(), content);
        }
    }

    #[test]
    fn requests_round_trip(packet in request()) {
        let mut out = PacketBuf::new();
        let RequestPacket { dest, source, tid, request } = packet;
        encode_request(dest, source, tid, &request, &mut out).unwrap();
        prop_assert_eq!(check_packet(out.as_slice()), Ok(EopStatus::Healthy));
        prop_assert_eq!(decode_request(out.as_slice()), Ok(packet));
        prop_assert!(decode_response(out.as_slice()).is_err());
        prop_assert!(Maintenance::decode(out.as_slice()).is_err());
    }

    #[test]
    fn responses_round_trip(dest in 0..1_u16 << 15, response in response()) {
        let mut out = PacketBuf::new();
        encode_response(dest, &response, &mut out).unwrap();
        prop_assert_eq!(check_packet(out.as_slice()), Ok(EopStatus::Healthy));
        prop_assert_eq!(decode_response(out.as_slice()), Ok((dest, response)));
        prop_assert!(decode_request(out.as_slice()).is_err());
    }

    #[test]
    fn maintenance_round_trips(packet in maintenance()) {
        let mut out = PacketBuf::new();
        prop_assert!(packet.encode(&mut out));
        prop_assert_eq!(check_packet(out.as_slice()), Ok(EopStatus::Healthy));
        prop_assert_eq!(Maintenance::decode(out.as_slice()), Ok(packet));
    }

    /// Decoders accept only the encoder's output, so no value has two encodings.
    #[test]
    fn decoders_accept_only_what_encoders_write(packet in packet(), r in 0..4_u8, op in 0..3_u32) {
        let mut packet = packet;
        let phits = packet.as_mut_slice();
        // Make acceptance likely: use the routing bits of a request, a response or a maintenance
        // packet.
        let bits = [0x1_0000, 0x2_8000, 0x4_0000, 0x4_8000][usize::from(r)];
        let dest = if r < 2 { phits[0].content() & 0x7fff } else { 0 };
        phits[0] = Phit::new(PhitKind::Head, bits | op << 19 | dest);
        if r > 0 {
            phits[1] = Phit::new(PhitKind::Body, phits[1].content() & !0x7fff);
        }
        let mut again = PacketBuf::new();
        let eop = phits.len() - 1;
        if let Ok(RequestPacket { dest, source, tid, request }) = decode_request(packet.as_slice()) {
            encode_request(dest, source, tid, &request, &mut again).unwrap();
        } else if let Ok((dest, response)) = decode_response(packet.as_slice()) {
            encode_response(dest, &response, &mut again).unwrap();
        } else if let Ok(maintenance) = Maintenance::decode(packet.as_slice()) {
            prop_assert!(maintenance.encode(&mut again));
        } else {
            return Ok(());
        }
        prop_assert_eq!(&again.as_slice()[..eop], &packet.as_slice()[..eop]);
    }

    #[test]
    fn control_words_round_trip(word in word()) {
        let rest = WordRest::parse(&word.rest().emit());
        prop_assert_eq!(ControlWord::parse(&word.emit(), rest), Ok(word));
    }

    #[test]
    fn up_to_five_flipped_bits_of_a_word_are_found(
        word in word(), bits in prop::collection::hash_set(0..96_usize, 1..=5)
    ) {
        let mut bytes = word.emit();
        bits.iter().for_each(|bit| bytes[bit / 8] ^= 1 << (bit % 8));
        prop_assert!(ControlWord::parse(&bytes, word.rest()).is_err());
    }

    #[test]
    fn up_to_three_flipped_bits_of_a_packet_are_found(
        packet in packet(), bits in prop::collection::hash_set(0..19 * 22_usize, 1..=3)
    ) {
        let mut packet = packet;
        let phits = packet.as_mut_slice();
        let all = phits.len() * 22;
        let bits: std::collections::HashSet<usize> = bits.iter().map(|bit| bit % all).collect();
        for bit in bits {
            let phit = &mut phits[bit / 22];
            *phit = Phit::new(phit.kind(), phit.content() ^ 1 << (bit % 22));
        }
        prop_assert!(check_packet(packet.as_slice()).is_err());
    }

    #[test]
    fn data_frames_round_trip(
        header in header(), word in word(), cable in cable(),
        phits in prop::collection::vec(phit(), 0..300), cut in any::<prop::sample::Index>()
    ) {
        let (a, b) = phits.split_at(cut.index(phits.len() + 1));
        let mut buf = vec![0xa5; frame_len(phits.len())];
        prop_assert_eq!(emit_data(&header, &word, &[a, b], &mut buf), Ok(buf.len()));
        let area = DataFrame::LAYOUT.area(&buf).unwrap();
        LANES.swizzle_area(&mut buf[area], header.lanes, &cable);
        let Ok(frame) = DataFrame::parse(&buf) else { panic!("own frame is not accepted") };
        let frame = frame.behind(cable);
        let padded = padded_phits(phits.len());
        prop_assert_eq!(*frame.header(), FrameHeader { units: padded as u16, ..header });
        prop_assert_eq!(frame.control_word(), Ok(word));
        let mut out = vec![Phit::from_bits(0xa5a5_a5a5); padded];
        prop_assert_eq!(frame.decode(&mut out), padded);
        prop_assert_eq!(&out[..phits.len()], &phits[..]);
        prop_assert!(out[phits.len()..].iter().all(|phit| *phit == Phit::IDLE));
        for (i, phit) in out.iter().enumerate() {
            let raw = frame.raw(i).unwrap();
            prop_assert_eq!((raw.kind(), raw.content()), (phit.kind(), phit.content()));
        }
    }

    #[test]
    fn any_flipped_bit_of_header_or_map_is_found(
        header in header(), phits in prop::collection::vec(phit(), 0..200),
        bit in any::<prop::sample::Index>()
    ) {
        let mut buf = vec![0xa5; frame_len(phits.len())];
        emit_data(&header, &ControlWord::default(), &[&phits, &[]], &mut buf).unwrap();
        let bit = bit.index(DataFrame::LAYOUT.area(&buf).unwrap().start * 8);
        buf[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(DataFrame::parse(&buf).is_err());
    }

    /// Noise on one lane affects only the bits of that lane, through any cable.
    #[test]
    fn noise_on_a_lane_is_noise_on_its_bits(
        header in header(), cable in cable(), noise in any::<[u32; 48]>(), physical in 0..3_u8
    ) {
        let mut buf = vec![0; frame_len(0)];
        emit_data(&header, &ControlWord::default(), &[&[], &[]], &mut buf).unwrap();
        let Ok(clean) = DataFrame::parse(&buf) else { panic!("own frame is not accepted") };
        let clean: Vec<u32> = (0..48).map(|i| clean.raw(i).unwrap().wire()).collect();
        let area = DataFrame::LAYOUT.area(&buf).unwrap();
        LANES.swizzle_area(&mut buf[area.clone()], header.lanes, &cable);
        let arrives = (0..3_u8).filter(|k| header.lanes >> cable.order()[usize::from(*k)] & 1 == 1);
        let physical_lanes = arrives.fold(0, |mask, k| mask | 1 << k);
        let hit = LANES.bits_of(physical_lanes, physical);
        let mut noise = noise.into_iter();
        LANES.map_area(&mut buf[area], |wire| wire ^ noise.next().unwrap() & hit);
        let Ok(frame) = DataFrame::parse(&buf) else { panic!("noise hit the header") };
        let frame = frame.behind(cable);
        let allowed = LANES.bits_of(header.lanes, cable.order()[usize::from(physical)]);
        for (i, clean) in clean.into_iter().enumerate() {
            prop_assert_eq!((frame.raw(i).unwrap().wire() ^ clean) & !allowed, 0);
        }
    }

    #[test]
    fn training_frames_round_trip(
        header in header(), small: [u8; 6], heard: bool, window_packets: u16, credits: [u32; 2],
        node in "[a-z0-9-]{1,32}", expect in "\\PC{1,8}",
        pattern in prop::collection::vec(any::<u8>(), PATTERN_BYTES)
    ) {
        let training = Training {
            header: FrameHeader { kind: Training::KIND, ..header },
            state: small[0],
            heard,
            rx_lanes: small[1] & 7,
            port: small[2],
            expect_port: small[3],
            max_packet: small[4],
            rate: small[5],
            window_packets,
            credits,
            node: name_bytes(&node).unwrap(),
            expect_node: name_bytes(&expect).unwrap(),
            pattern: pattern.try_into().expect("a vector of this length"),
        };
        let mut buf = vec![0xa5; training.buffer_len()];
        prop_assert_eq!(training.emit(&mut buf), Ok(buf.len()));
        prop_assert_eq!(Training::parse(&buf), Ok(training));
    }

    #[test]
    fn cables_are_found(cable in cable()) {
        let mut received = LANES.pattern();
        LANES.swizzle_area(&mut received, 7, &cable);
        prop_assert_eq!(LANES.find_cable(&received), Ok(cable));
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        decode(&bytes);
        decode_with_checks_made_right(&bytes);
    }

    /// Bytes with a valid header and check, so that the phits after them are decoded.
    #[test]
    fn no_phits_panic(header in header(), phits in prop::collection::vec(phit(), 0..120),
        noise in any::<[u32; 32]>())
    {
        let mut buf = vec![0; frame_len(phits.len())];
        emit_data(&header, &ControlWord::default(), &[&phits, &[]], &mut buf).unwrap();
        let area = DataFrame::LAYOUT.area(&buf).unwrap();
        let mut noise = noise.into_iter().cycle();
        LANES.map_area(&mut buf[area], |wire| wire ^ noise.next().unwrap() >> 8);
        decode(&buf);
    }
}

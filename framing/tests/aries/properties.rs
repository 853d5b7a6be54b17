//! Properties of the Aries formats for all values: round trips, detection, no panic on any bytes.

use crate::decode::{
    Outcome, decode, decode_as_packet, decode_flits, decode_set, decode_with_checks_made_right,
    sets_of,
};
use crate::golden::comes_back;
use phitwire_framing::aries::crc20;
use phitwire_framing::aries::flit::{Flit, Head, NodeId, Routing};
use phitwire_framing::aries::packet::{
    AmoOp, Command, MAX_DATA, Request, Response, Status, Width, packet_check, write_others,
};
use phitwire_framing::aries::set::{ControlSet, DataSet, SET_BYTES, Set, Tail};
use proptest::prelude::*;

fn node() -> impl Strategy<Value = NodeId> {
    (0..1_u32 << 18).prop_map(NodeId::from_bits)
}

fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        any::<bool>().prop_map(|event| Command::Put { event }),
        (1..=16_u8).prop_map(|words| Command::Get { words }),
        (0..12_usize, any::<bool>(), any::<bool>()).prop_map(|(op, wide, fetch)| {
            let width = if wide { Width::Bits64 } else { Width::Bits32 };
            let op = AmoOp::ALL[op];
            Command::Amo { op, width, fetch }
        }),
        any::<bool>().prop_map(|last| Command::Message { last }),
        (0..16_u8).prop_map(|code| Command::Control { code }),
    ]
}

prop_compose! {
    /// A request and the data for its command.
    fn request()(destination in node(), source in node(), routing: u8, packet_id in 0..1_u16 << 12,
        command in command(), mdh in 0..1_u16 << 12, echo in 0..32_u8, ssid in 0..1_u16 << 4, address in 0..1_u64 << 40,
        key: u16, mut data in prop::collection::vec(any::<u8>(), 0..=MAX_DATA), rest in any::<[u8; 16]>())
        -> (Request, Vec<u8>)
    {
        match command {
            Command::Control { .. } if !data.is_empty() => {
                data.truncate(data.len() / 6 * 6 + 4);
                let padded = (data.len() + 2).next_multiple_of(6) - 2;
                data.resize(padded, 0);
            }
            _ => if let Some(bytes) = command.operand_bytes() {
                data = rest[..bytes].to_vec();
            }
        }
        let routing = Routing::from_code(routing, packet_id);
        (Request { destination, source, routing, packet_id, command, mdh, echo, ssid, address, key }, data)
    }
}

prop_compose! {
    fn response()(destination in node(), routing: u8, packet_id in 0..1_u16 << 12, echo in 0..32_u8, status in 0..10_usize,
        joined in prop::option::of(prop::collection::vec(0..1_u16 << 12, 0..40)), mut data in prop::collection::vec(any::<u8>(), 0..=MAX_DATA)) -> (Response, Vec<u8>)
    {
        let status = Status::ALL[status];
        if status != Status::Done {
            data.clear();
        }
        data.truncate(data.len() / 4 * 4);
        let joined = joined.filter(|_| status == Status::Done);
        if let Some(numbers) = &joined {
            let mut list = [0; MAX_DATA];
            let bytes = write_others(packet_id, numbers, &mut list);
            data = list[..bytes].to_vec();
        }
        let joined = joined.is_some();
        (Response { destination, routing: Routing::from_code(routing, packet_id), packet_id, echo, status, joined }, data)
    }
}

prop_compose! {
    fn control_set()(probe: bool, nack: bool, next: u32, ack: u32, missing_from: u16, missing: u16, vc_acks: [u32; 8],
        clock in 0..1_u64 << 48, pulse: bool, load in 0..16_u8) -> ControlSet
    {
        ControlSet { probe, nack, next, ack, missing_from, missing, vc_acks, clock, pulse, load }
    }
}

prop_compose! {
    fn data_set()(flits: [u64; 9], number in 0..128_u8, ack in 0..64_u8, nack: bool, load in 0..16_u8,
        clock: bool, vc_ack: u8) -> DataSet
    {
        let tail = Tail { number, ack, nack, load, clock, vc_ack };
        DataSet { flits: flits.map(Flit::new), tail }
    }
}

fn set() -> impl Strategy<Value = Set> {
    prop_oneof![
        data_set().prop_map(Set::Data),
        control_set().prop_map(Set::Control)
    ]
}

/// Distinct positions of flipped bits.
fn flips(bits: usize, most: usize) -> impl Strategy<Value = Vec<usize>> {
    prop::collection::btree_set(0..bits, 1..=most).prop_map(|set| set.into_iter().collect())
}

proptest! {
    #[test]
    fn requests_come_back((request, data) in request()) {
        let packet = comes_back!(Request, request, data);
        let head = Head::parse(packet[0]).unwrap();
        prop_assert_eq!((head.vc(), usize::from(head.length())), (0, packet.len()));
    }

    #[test]
    fn responses_come_back((response, data) in response()) {
        let packet = comes_back!(Response, response, data);
        prop_assert_eq!(Head::parse(packet[0]).unwrap().vc(), 4);
    }

    #[test]
    fn routers_change_nothing_that_counts((request, data) in request(), vc in 0..4_u8, non_minimal: bool) {
        let mut packet = comes_back!(Request, request, data);
        let head = Head::parse(packet[0]).unwrap();
        packet[0] = head.with_vc(vc).with_non_minimal(non_minimal).flit();
        prop_assert_eq!(Request::parse(&packet, &mut [0; MAX_DATA]), Ok((request, data.len())));
    }

    #[test]
    fn up_to_three_flipped_bits_of_a_packet_are_seen((request, data) in request(), flips in flips(672, 3)) {
        let mut packet = comes_back!(Request, request, data);
        prop_assume!(packet.len() > 3);
        let free = |at: usize, bit: usize| at == 0 && (bit >= 44 || bit == 6);
        let mut changed = false;
        for flip in flips {
            let (at, bit) = (flip / 48, flip % 48);
            if at < packet.len() && !free(at, bit) {
                packet[at] = Flit::new(packet[at].bits() ^ 1 << bit);
                changed = true;
            }
        }
        prop_assert_eq!(packet_check(&packet).is_good(), !changed);
    }

    #[test]
    fn sets_come_back(set in set()) {
        let mut bytes = [0xa5; SET_BYTES];
        set.emit(&mut bytes);
        prop_assert_eq!(Set::parse(&bytes), Ok(set));
    }

    #[test]
    fn up_to_five_and_any_odd_number_of_flipped_bits_of_a_set_are_seen(set in set(), flips in flips(480, 99)) {
        let mut bytes = [0; SET_BYTES];
        set.emit(&mut bytes);
        let (few, odd) = (flips.len().min(5), flips.len() - (1 - flips.len() % 2));
        for count in [few, odd] {
            let mut bytes = bytes;
            flips[..count].iter().for_each(|bit| bytes[bit / 8] ^= 1 << (bit % 8));
            prop_assert!(!crc20::is_good(&bytes));
        }
    }

    #[test]
    fn bursts_of_a_set_are_seen(set in set(), burst in 1..1_u32 << 20, at in 0..461_usize) {
        let mut bytes = [0; SET_BYTES];
        set.emit(&mut bytes);
        for bit in (0..20).filter(|bit| burst >> bit & 1 != 0) {
            bytes[(at + bit) / 8] ^= 0x80 >> ((at + bit) % 8);
        }
        prop_assert!(!crc20::is_good(&bytes));
    }

    #[test]
    fn packets_straddle_sets(packets in prop::collection::vec(request(), 1..20), first: u8) {
        let mut stream = Vec::new();
        for (request, data) in &packets {
            stream.extend(comes_back!(Request, *request, data));
        }
        let mut outcome = Outcome::default();
        let mut flits = Vec::new();
        for set in sets_of(&stream, first) {
            decode_set(&set, &mut flits, &mut outcome);
        }
        decode_flits(&flits, &mut outcome);
        prop_assert_eq!(outcome.good[2], packets.len());
        prop_assert_eq!(outcome.packets, vec![]);
    }

    #[test]
    fn no_bytes_make_the_decoders_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        decode(&bytes);
        decode_with_checks_made_right(&bytes);
        decode_as_packet(&bytes);
    }
}

//! Aries packets: golden vectors, flit counts of the Cray XC white paper, rejected packets.

use crate::common::reasons_are_distinct;
use crate::golden::{
    ADD_32, COMPARE_SWAP, CONTROL, DONE, GET_64, JOINED, MESSAGE, OLD_64, PUT_8, PUT_64, READ_4,
    READ_60, READ_64, REFUSED, changed, comes_back, flits, xor,
};
use phitwire_framing::aries::flit::{Flit, Head, MAX_PACKET_FLITS, NodeId, Routing};
use phitwire_framing::aries::packet::{
    AmoOp, Command, ECHO_BITS, EmitError, MAX_DATA, MAX_JOINED, Operands, PacketError, Request,
    RequestView, Response, Status, Width, others, packet_check, write_others,
};

const FAR: NodeId = NodeId::new(240, 95, 3);
const NEAR: NodeId = NodeId::new(1, 2, 1);
const OPERANDS: Operands = Operands {
    first: 0x0123_4567_89ab_cdef,
    second: 0xfedc_ba98_7654_3210,
};

fn line() -> Vec<u8> {
    (0xc0..=0xff).collect()
}

const fn put_64() -> Request {
    Request {
        destination: FAR,
        source: NEAR,
        routing: Routing::Adaptive1,
        packet_id: 0xabc,
        command: Command::Put { event: true },
        mdh: 0x123,
        echo: 0x15,
        ssid: 5,
        address: 0xfe_dcba_9876,
        key: 0xbeef,
    }
}

/// `base` with the fields in which golden requests differ.
fn of(
    base: Request,
    routing: Routing,
    packet_id: u16,
    command: Command,
    target: [u64; 4],
) -> Request {
    let [mdh, ssid, address, key] = target;
    Request {
        routing,
        packet_id,
        command,
        mdh: mdh as u16,
        echo: 0,
        ssid: ssid as u16,
        address,
        key: key as u16,
        ..base
    }
}

/// The golden requests: decoded, their data, their flits.
fn requests() -> Vec<(Request, Vec<u8>, &'static [u64])> {
    let to_near = Request {
        destination: NEAR,
        source: FAR,
        routing: Routing::Ordered,
        ..put_64()
    };
    let put = Command::Put { event: false };
    let put_8 = Request {
        echo: 0x1f,
        ..of(to_near, Routing::Adaptive0, 1, put, [0xfff, 0xf, 8, 1])
    };
    let get = Command::Get { words: 16 };
    let target = [0x800, 0, 0xff_ffff_ffc0, 0xffff];
    let get_64 = of(put_64(), Routing::Valiant, 0xfff, get, target);
    let amo = |op, width, fetch| Command::Amo { op, width, fetch };
    let (op, width) = (AmoOp::CompareSwap, Width::Bits64);
    let (swap, target) = (amo(op, width, true), [1, 2, 0x1000, 0x8001]);
    let compare_swap = of(put_64(), Routing::Ordered, 2, swap, target);
    let (operands, count) = OPERANDS.to_bytes(op, width);
    let (op, width) = (AmoOp::Add, Width::Bits32);
    let (add, target) = (amo(op, width, false), [1, 2, 0x1004, 0x8001]);
    let add_32 = of(to_near, Routing::Ordered, 3, add, target);
    let minus_two = Operands {
        first: 2_u64.wrapping_neg(),
        second: 0,
    };
    let minus_two = minus_two.to_bytes(op, width).0;
    let last = Command::Message { last: true };
    let message = of(to_near, Routing::Adaptive2, 4, last, [7, 8, 0x40, 9]);
    let code = Command::Control { code: 12 };
    let control = of(to_near, Routing::Ordered, 5, code, [10, 11, 12, 13]);
    vec![
        (put_64(), line(), &PUT_64),
        (put_8, (1..=8).collect(), &PUT_8),
        (get_64, vec![], &GET_64),
        (compare_swap, operands[..count].to_vec(), &COMPARE_SWAP),
        (add_32, minus_two[..4].to_vec(), &ADD_32),
        (message, vec![0x5a], &MESSAGE),
        (control, line()[..16].to_vec(), &CONTROL),
    ]
}

fn responses() -> Vec<(Response, Vec<u8>, &'static [u64])> {
    let response = |routing, packet_id, echo, status| Response {
        destination: NEAR,
        routing,
        packet_id,
        echo,
        status,
        joined: false,
    };
    let done = Status::Done;
    let refused = Response {
        destination: FAR,
        ..response(Routing::Adaptive0, 1, 0x1a, Status::OutOfBounds)
    };
    let joined = Response {
        destination: FAR,
        joined: true,
        ..response(Routing::NminHash, 0xffe, 0x15, done)
    };
    let numbers = [0x0f, 0xff, 0, 0, 0, 8, 0x0f, 0xfe, 0x0f, 0xfe];
    let old = OPERANDS.first.to_be_bytes().to_vec();
    let four = response(Routing::Adaptive3, 6, 0x1f, done);
    let sixty = response(Routing::Minimal, 7, 0xa, done);
    vec![
        (response(Routing::Adaptive1, 0xabc, 0, done), vec![], &DONE),
        (response(Routing::Valiant, 0xfff, 0, done), line(), &READ_64),
        (four, line()[..4].to_vec(), &READ_4),
        (response(Routing::Ordered, 2, 1, done), old, &OLD_64),
        (sixty, line()[..60].to_vec(), &READ_60),
        (refused, vec![], &REFUSED),
        (joined, numbers.to_vec(), &JOINED),
    ]
}

#[test]
fn deconstruct() {
    let packet = flits(&PUT_64);
    let view = RequestView::new([packet[0], packet[1], packet[2]]);
    assert_eq!((view.command(), view.source()), (6, NEAR));
    assert_eq!(view.echo(), 0x15);
    assert_eq!((view.mdh(), view.ssid()), (0x123, 5));
    assert_eq!((view.address(), view.key()), (0xfe_dcba_9876, 0xbeef));
    let head = Head::parse(packet[0]).unwrap();
    assert_eq!((head.length(), head.code()), (14, 6));
    assert_eq!(head.destination(), FAR);
    // In class 4, the command's high bit is in flit 1.
    let packet = flits(&ADD_32);
    let view = RequestView::new([packet[0], packet[1], packet[2]]);
    assert_eq!((view.command(), packet[0].bits() & 0x3f), (0x43, 3));
    assert_eq!(packet_check(&packet).found, 0x4f2d);
    assert!(packet_check(&packet).is_good());
    let head = Head::parse(flits(&READ_64)[0]).unwrap();
    assert_eq!((head.vc(), head.length(), head.code()), (4, 12, 0));
}

#[test]
fn construct() {
    for golden in [&PUT_64[..], &ADD_32, &CONTROL, &GET_64] {
        let from = flits(golden);
        let header = [from[0], from[1], from[2]];
        let wanted = RequestView::new(header);
        let mut view = RequestView::new([Flit::new(0xa5a5_a5a5_a5a5); 3]);
        view.set_key(wanted.key());
        view.set_address(wanted.address());
        view.set_ssid(wanted.ssid());
        view.set_echo(wanted.echo());
        view.set_mdh(wanted.mdh());
        view.set_source(wanted.source());
        view.set_command_high(wanted.command() >> 6 != 0);
        view.set_head(Head::parse(from[0]).unwrap());
        assert_eq!(view.into_inner(), header);
    }
}

#[test]
fn golden_requests_are_written_and_read() {
    for (request, data, golden) in requests() {
        assert_eq!(comes_back!(Request, request, data), flits(golden));
    }
}

#[test]
fn golden_responses_are_written_and_read() {
    for (response, data, golden) in responses() {
        assert_eq!(comes_back!(Response, response, data), flits(golden));
    }
}

#[test]
fn flit_counts_are_the_papers() {
    // Cray XC white paper, "Aries Performance": "Each 64-byte write (put) requires 14 request flits
    // and 1 response flit. A 64-byte read (get) requires three request flits and 12 response
    // flits."
    assert_eq!((PUT_64.len(), DONE.len()), (14, 1));
    assert_eq!(REFUSED.len(), 2);
    assert_eq!((GET_64.len(), READ_64.len()), (3, 12));
    assert_eq!(MAX_PACKET_FLITS, PUT_64.len());
    assert_eq!(put_64().buffer_len(8), 5);
    let get = Command::Get { words: 16 };
    assert_eq!(get.response_bytes(), 64);
}

#[test]
fn a_response_names_whom_else_it_answers() {
    let (joined, golden, _) = responses().pop().unwrap();
    let read: Vec<u16> = others(joined.packet_id, &golden).collect();
    assert_eq!(read, [0xfff, 0, 8]);
    for count in 0..=MAX_JOINED + 1 {
        let numbers: Vec<u16> = (0..count as u16).map(|i| (0xff0 + i) & 0xfff).collect();
        let mut data = [0; MAX_DATA];
        let bytes = write_others(0x7ff, &numbers, &mut data);
        let packet = comes_back!(Response, joined, data[..bytes]);
        assert!(packet.len() % 2 == 1 && packet.len() <= 11, "{count}");
        let read: Vec<u16> = others(0x7ff, &data[..bytes]).collect();
        assert_eq!(read, numbers[..count.min(MAX_JOINED)]);
    }
}

#[test]
fn only_what_is_done_answers_others_and_in_one_form() {
    let mut out = [Flit::IDLE; MAX_PACKET_FLITS];
    let (joined, golden, _) = responses().pop().unwrap();
    let refused = Response {
        status: Status::Busy,
        ..joined
    };
    let expected = Err(EmitError::BadDataLength);
    assert_eq!(refused.emit(&golden, &mut out), expected);
    for bytes in (0..=MAX_DATA).filter(|bytes| ![10, 22, 34, 46, 58].contains(bytes)) {
        assert_eq!(joined.emit(&[0; MAX_DATA][..bytes], &mut out), expected);
    }
}

#[test]
fn every_length_of_a_put_and_of_a_response_comes_back() {
    let line = line();
    for event in [false, true] {
        for bytes in 0..=MAX_DATA {
            let put = Request {
                command: Command::Put { event },
                ..put_64()
            };
            let packet = comes_back!(Request, put, line[..bytes]);
            assert_eq!(packet.len(), 3 + (bytes + 2).div_ceil(6));
        }
    }
    for bytes in 0..=MAX_DATA {
        let response = responses()[0].0;
        let mut packet = [Flit::IDLE; MAX_PACKET_FLITS];
        if bytes % 4 != 0 {
            let refused = response.emit(&line[..bytes], &mut packet);
            assert_eq!(refused, Err(EmitError::BadDataLength));
            continue;
        }
        comes_back!(Response, response, line[..bytes]);
    }
}

#[test]
fn a_response_repeats_any_echo() {
    for echo in 0..1 << ECHO_BITS {
        for (response, data, golden) in responses() {
            let response = Response { echo, ..response };
            let packet = comes_back!(Response, response, data);
            assert_eq!(packet.len(), golden.len());
        }
    }
}

#[test]
fn every_atomic_operation_has_a_code_of_its_own() {
    let mut codes = std::collections::BTreeSet::new();
    for op in AmoOp::ALL {
        for width in [Width::Bits32, Width::Bits64] {
            for fetch in [false, true] {
                let command = Command::Amo { op, width, fetch };
                let request = Request {
                    command,
                    ..put_64()
                };
                let mask = u64::MAX >> (64 - 8 * width.bytes());
                let second = [0, OPERANDS.second & mask][usize::from(op.operands() == 2)];
                let first = OPERANDS.first & mask;
                let operands = Operands { first, second };
                let (bytes, count) = operands.to_bytes(op, width);
                assert_eq!(Some(count), command.operand_bytes());
                let packet = comes_back!(Request, request, bytes[..count]);
                assert_eq!(Operands::from_bytes(&bytes[..count], width), operands);
                let header = RequestView::new([packet[0], packet[1], packet[2]]);
                assert!(codes.insert(header.command()), "{command:?}");
                let answer = if fetch { width.bytes() } else { 0 };
                assert_eq!(command.response_bytes(), answer);
            }
        }
    }
    assert_eq!(codes.len(), 48);
}

#[test]
fn commands_without_a_code_are_not_emitted() {
    let mut out = [Flit::new(0xa5); 16];
    let with = |command| Request {
        command,
        ..put_64()
    };
    let mut refuse = |command, bytes: usize, why| {
        assert_eq!(with(command).emit(&[0; 65][..bytes], &mut out), Err(why));
        assert!(out.iter().all(|flit| flit.bits() == 0xa5));
    };
    refuse(Command::Put { event: true }, 65, EmitError::BadDataLength);
    let last = Command::Message { last: true };
    refuse(last, 65, EmitError::BadDataLength);
    refuse(Command::Get { words: 0 }, 0, EmitError::BadArgument);
    refuse(Command::Get { words: 17 }, 0, EmitError::BadArgument);
    refuse(Command::Get { words: 1 }, 1, EmitError::BadDataLength);
    refuse(Command::Control { code: 16 }, 0, EmitError::BadArgument);
    let add = Command::Amo {
        op: AmoOp::Add,
        width: Width::Bits32,
        fetch: true,
    };
    refuse(add, 8, EmitError::BadDataLength);
    refuse(add, 0, EmitError::BadDataLength);
    let refusal = Response {
        status: Status::Busy,
        ..responses()[0].0
    };
    assert_eq!(refusal.emit(&[1], &mut out), Err(EmitError::BadDataLength));
    let long = responses()[0].0.emit(&[1; 65], &mut out);
    assert_eq!(long, Err(EmitError::BadDataLength));
}

fn request_error(packet: &[Flit]) -> PacketError {
    Request::parse(packet, &mut [0; MAX_DATA]).unwrap_err()
}

fn response_error(packet: &[Flit]) -> PacketError {
    Response::parse(packet, &mut [0; MAX_DATA]).unwrap_err()
}

#[test]
fn rejected_requests_are_named() {
    use PacketError::{Crc, Direction, Length, NoHead, Padding, Poisoned, ReservedCommand, Shape};
    let poison = |packet: &mut Vec<Flit>| {
        packet[0] = Head::parse(packet[0]).unwrap().with_poison().flit();
    };
    let (poisoned, damaged) = (
        changed(&PUT_8, false, poison),
        changed(&PUT_8, false, xor(3, 1)),
    );
    // The sender of either is still known.
    assert!(Request::parse_header(&poisoned).is_ok());
    assert!(Request::parse_header(&damaged).is_ok());
    let wasted = changed(&ADD_32, true, |packet| {
        xor(0, 3 ^ 5)(packet);
        xor(1, 1 << 47)(packet);
    });
    let swapped = |bits| changed(&COMPARE_SWAP, true, xor(0, bits));
    let cases = [
        (vec![], NoHead),
        (vec![Flit::IDLE], NoHead),
        (flits(&PUT_8)[..4].to_vec(), Length),
        (flits(&DONE), Direction),
        (changed(&PUT_8[..1], false, xor(0, (5 ^ 1) << 40)), Shape),
        // A get with data, a put without, a put with fewer flits than unused bytes.
        (changed(&PUT_8, true, xor(0, 0x12)), Shape),
        (changed(&GET_64, false, xor(0, 0x1f)), Shape),
        (wasted, Shape),
        (swapped(6 ^ 3), Shape),
        (changed(&PUT_8, true, xor(0, 2 ^ 12)), ReservedCommand),
        (swapped(6 ^ 12), ReservedCommand),
        (poisoned, Poisoned),
        (damaged, Crc),
        (changed(&PUT_8, true, xor(4, 1 << 16)), Padding),
    ];
    for (packet, error) in cases {
        assert_eq!(request_error(&packet), error, "{packet:x?}");
    }
}

#[test]
fn rejected_responses_are_named() {
    assert_eq!(response_error(&flits(&GET_64)), PacketError::Direction);
    assert_eq!(response_error(&flits(&READ_64)[1..]), PacketError::NoHead);
    let short_of_nothing = changed(&DONE, false, xor(0, 0x20));
    let expected = PacketError::ReservedStatus;
    assert_eq!(response_error(&short_of_nothing), expected);
    for status in [0, 1, 7, 17, 10 | 1 << 31] {
        let reserved = changed(&REFUSED, true, xor(1, (10 ^ status) << 16));
        assert_eq!(response_error(&reserved), expected, "{status}");
    }
    // The data area has room for 68 bytes; the declared 64 bytes have a shorter encoding.
    let long = changed(&READ_64, true, |packet| {
        packet.push(Flit::IDLE);
        xor(0, 0x20 | (12 ^ 13) << 40)(packet);
    });
    assert_eq!(response_error(&long), PacketError::Shape);
    let damaged = changed(&READ_64, false, xor(7, 1 << 40));
    assert_eq!(response_error(&damaged), PacketError::Crc);
    let padding = changed(&READ_60, true, xor(11, 1 << 16));
    assert_eq!(response_error(&padding), PacketError::Padding);
    reasons_are_distinct(&PacketError::ALL, PacketError::index, PacketError::name);
}

/// Every field affects the check, except those that routers write.
#[test]
fn the_check_covers_all_bits_that_routers_do_not_change() {
    for golden in [&PUT_64[..], &PUT_8, &READ_4] {
        let packet = flits(golden);
        let head = Head::parse(packet[0]).unwrap();
        let on_the_way = head.with_vc(head.vc() | 3).with_non_minimal(true);
        let on_the_way = on_the_way.with_poison();
        let free = head.with_vc(7).flit().bits() ^ head.with_vc(0).flit().bits()
            | (head.flit().bits() ^ on_the_way.flit().bits());
        assert_eq!(free.count_ones(), 5);
        for at in 0..packet.len() {
            for bit in 0..48 {
                let mut packet = packet.clone();
                xor(at, 1 << bit)(&mut packet);
                let untouched = at == 0 && free >> bit & 1 != 0;
                assert_eq!(packet_check(&packet).is_good(), untouched, "{at}.{bit}");
            }
        }
    }
}

//! Packets that no correct NIC sends are counted and do no harm.

use phitwire_framing::aries::flit::{Flit, Head, Routing};
use phitwire_framing::aries::packet::{Command, MAX_DATA, Request, Response};

use super::interface::Owner;
use super::packet_buf::PacketBuf;
use super::receive::ANNOUNCE;
use super::test_bench::*;
use super::*;
use phitwire::rng::Rng;

/// A packet with a valid check and random fields, many of them with meaningful values.
fn request(rng: &mut Rng) -> Vec<Flit> {
    let mut data = [0; MAX_DATA];
    data.fill_with(|| rng.next_u64() as u8);
    let op = AmoOp::ALL[rng.below(12) as usize];
    let (mut len, width) = (rng.below(65) as usize, Width::Bits64);
    let fetch = rng.chance(1, 2);
    let command = match rng.below(6) {
        0 => Command::Put { event: fetch },
        1 => Command::Get {
            words: 1 + rng.below(16) as u8,
        },
        2 => Command::Amo { op, width, fetch },
        3 | 4 => Command::Message { last: fetch },
        _ => Command::Control {
            code: rng.below(16) as u8,
        },
    };
    len = command.operand_bytes().unwrap_or(len);
    let (any, low) = (rng.below(1 << 12) as u16, rng.below(64) as u16);
    let handles = [ALL, ANNOUNCE, any, low];
    let packet_id = rng.next_u64() as u16 & Head::PACKET_ID_MASK;
    let request = Request {
        destination: NODES[1],
        source: [NODES[0], NodeId::from_bits(rng.next_u64() as u32)][rng.below(2) as usize],
        routing: Routing::from_code(rng.below(8) as u8, packet_id),
        packet_id,
        command,
        mdh: handles[rng.below(4) as usize],
        echo: rng.below(32) as u8,
        ssid: rng.below(8) as u16,
        address: rng.next_u64() >> (24 + rng.below(40)),
        key: [KEY, rng.next_u64() as u16][usize::from(rng.chance(1, 8))],
    };
    let mut flits = [Flit::IDLE; 14];
    let used = request.emit(&data[..len], &mut flits).unwrap();
    flits[..used].to_vec()
}

fn response(rng: &mut Rng) -> Vec<Flit> {
    let status = Status::ALL[rng.below(10) as usize];
    let len = if status == Status::Done {
        4 * rng.below(17)
    } else {
        0
    };
    let response = Response {
        destination: NODES[0],
        routing: Routing::Adaptive0,
        packet_id: rng.below(1 << 12) as u16,
        // Usually the echo of the first period, rarely any other.
        echo: if rng.chance(1, 16) {
            rng.below(32) as u8
        } else {
            0
        },
        status,
        joined: false,
    };
    let mut flits = [Flit::IDLE; 14];
    let used = response.emit(&[7; MAX_DATA][..len as usize], &mut flits);
    flits[..used.unwrap()].to_vec()
}

/// A head of random length, followed by random flits.
fn noise(rng: &mut Rng, is_response: bool) -> Vec<Flit> {
    let length = 1 + rng.below(14) as u8;
    let code = rng.below(64) as u8;
    let node = NODES[usize::from(!is_response)];
    let mode = Routing::Adaptive0;
    let id = rng.below(1 << 12) as u16;
    let mut head = Head::new(is_response, length, node, mode, id, code);
    if rng.chance(1, 4) {
        head = head.with_poison();
    }
    let rest = (1..length).map(|_| Flit::new(rng.next_u64()));
    core::iter::once(head.flit()).chain(rest).collect()
}

#[test]
fn no_packet_breaks_a_network_interface() {
    let mut rng = Rng::new(77, 0);
    let mut pair = Pair::with(config(0), config(1).amo_update(AmoUpdate::Lazy));
    pair.harm.lost = 50;
    let mut out = PacketBuf::new();
    for round in 0..150_000_u64 {
        let now = pair.now;
        let packet = match rng.below(4) {
            0..3 => request(&mut rng),
            _ => noise(&mut rng, false),
        };
        pair.nics[1].serve(now, &packet, &mut out);
        let packet = match rng.below(4) {
            0..3 => response(&mut rng),
            _ => noise(&mut rng, true),
        };
        pair.nics[0].handle_response(now, &packet);
        if round % 16 == 0 {
            let owner = Owner::User(round);
            let _ = pair.nics[0].post(now, owner, &post(get(64), at(0)));
            let local = rng.below(MEMORY);
            let receive = Receive {
                local,
                length: MEMORY - local,
                key: KEY,
                user: round,
            };
            pair.nics[1].responder.receives.post(receive);
            let transfer = transfer(SEND, 0, rng.below(2_000));
            let _ = pair.nics[0].transfer(now, round as usize / 16 % 4, transfer);
            pair.step();
            pair.completions();
            pair.target_events();
        }
    }
    pair.drain();
    let (source, target) = (pair.nics[0].counters(), pair.nics[1].counters());
    // Every kind of event occurred.
    assert!(target.puts_served > 1_000 && target.atomics_served > 100);
    assert!(target.refused_bad_mdh > 1_000 && target.refused_bad_key > 100);
    assert!(target.refused_poisoned + target.discard_shape > 1_000);
    assert!(target.messages_served > 100 && target.receives_done > 100);
    assert!(source.unknown_responses > 1_000);
    assert!(source.mismatched_responses > 100, "{source:?}");
    // The NIC still works.
    pair.harm.lost = 0;
    pair.completions();
    assert_eq!(pair.ask(put(&[5; 3]), at(77)), Outcome::Done);
    assert_eq!(pair.read(1, 77, 3), [5; 3]);
}

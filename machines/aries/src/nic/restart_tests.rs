//! A NIC that is killed and restarted while responses to its predecessor are in flight.

use std::collections::HashMap;

use phitwire_framing::aries::flit::Flit;
use phitwire_framing::aries::packet::{Request, Response};

use super::interface::{Interface, Owner};
use super::packet_buf::PacketBuf;
use super::test_bench::*;
use super::*;
use phitwire::nic::traffic_spec::Operation;
use phitwire::nic::{Incarnation, ProbeError, ProbeSpec};
use phitwire::rng::Rng;
use phitwire::time::{Duration, Time};

/// Requests of an incarnation, by the number that the completion repeats.
type OpenRequests = HashMap<u64, (bool, u64)>;

fn born(now: Time) -> Interface {
    let patient = config(0).request_timeout(Duration::from_ms(10_000));
    let after = Incarnation {
        clock_ns: 0,
        first: false,
    };
    let mut nic = Interface::new(&patient.incarnation(after).build().unwrap(), now);
    // The deadline is the time from which the NIC may send requests.
    let opens = nic.next_deadline().unwrap_or(now);
    assert!(opens <= now + Duration::from_ms(2_000));
    let probe = ProbeSpec {
        to: 1,
        op: Operation::Put,
        bytes: 8,
        address: 0,
        ordered: false,
    };
    if opens > now {
        assert_eq!(nic.probe(now, &probe).err(), Some(ProbeError::Early));
    }
    nic.advance(opens);
    nic
}

/// Puts and gets, some of which get no response.
fn ask(nic: &mut Interface, now: Time, rng: &mut Rng) -> (Vec<Vec<Flit>>, OpenRequests) {
    let mut asked = OpenRequests::new();
    for user in 0..1 + rng.below(200) {
        let (is_get, address) = (rng.chance(1, 2), 64 * rng.below(1_000));
        let word = [user as u8; 8];
        let operation = if is_get { get(8) } else { put(&word) };
        nic.post(now, Owner::User(user), &post(operation, at(address)))
            .unwrap();
        asked.insert(user, (is_get, address));
    }
    let mut packets = Vec::new();
    while let Some(packet) = nic.requester.next_packet(Time::NEVER) {
        packets.push(packet.as_slice().to_vec());
        nic.requester.packet_sent();
    }
    (packets, asked)
}

fn served(target: &mut Interface, now: Time, requests: &[Vec<Flit>]) -> Vec<Vec<Flit>> {
    let mut out = PacketBuf::new();
    let answer = |packet: &Vec<Flit>| {
        target
            .serve(now, packet, &mut out)
            .then(|| out.as_slice().to_vec())
    };
    requests.iter().filter_map(answer).collect()
}

/// The response with the echo of the request that has the same id, as if there were no echoes.
fn forged(response: &[Flit], requests: &[Vec<Flit>]) -> Vec<Flit> {
    let mut data = [0; MAX_DATA];
    let (mut found, bytes) = Response::parse(response, &mut data).unwrap();
    for request in requests {
        let (request, _) = Request::parse_header(request).unwrap();
        if request.packet_id == found.packet_id {
            found.echo = request.echo;
        }
    }
    let mut flits = [Flit::IDLE; 14];
    let used = found.emit(&data[..bytes], &mut flits).unwrap();
    flits[..used].to_vec()
}

/// Three incarnations. Requests of the last are carried out only after all responses to the others
/// have arrived. Returns the number of requests that completed nevertheless.
fn completed_by_others(seed: u64, forge: bool) -> usize {
    let mut rng = Rng::new(seed, 3);
    let mut target = Interface::new(&config(1).build().unwrap(), Time::ZERO);
    let mut now = Time::from_ns(rng.below(4_000_000_000));
    let mut late = Vec::new();
    for _life in 0..2 {
        let mut nic = born(now);
        now += Duration::from_ms(2_000);
        let (requests, _) = ask(&mut nic, now, &mut rng);
        late.extend(served(&mut target, now, &requests));
        now += Duration::from_ns(rng.below([50_000_000, 5_000_000_000][rng_bit(seed)]));
    }
    let mut nic = born(now);
    now += Duration::from_ms(2_000);
    let (requests, asked) = ask(&mut nic, now, &mut rng);
    for response in &late {
        now += Duration::from_ns(rng.below(1_000_000));
        let forged = forge.then(|| forged(response, &requests));
        nic.handle_response(now, forged.as_ref().unwrap_or(response));
    }
    let early = core::iter::from_fn(|| nic.poll_completion()).count();
    if !forge {
        // Ids that were never used belong to no other period.
        let counters = nic.counters();
        let ignored = counters.stale_responses + counters.unknown_responses;
        assert_eq!(ignored, late.len() as u64, "{seed}");
        assert!(counters.stale_responses > 0, "{seed}");
        // The NIC accepts each response to its own requests once.
        for response in served(&mut target, now, &requests) {
            nic.handle_response(now, &response);
        }
        let completions: Vec<_> = core::iter::from_fn(|| nic.poll_completion()).collect();
        assert_eq!(completions.len(), asked.len(), "{seed}");
        for completion in completions {
            let (is_get, address) = asked[&completion.user];
            let mut there = [0; 8];
            target.responder.memory.read(address, &mut there).unwrap();
            match completion.outcome {
                Outcome::Data { data, len: 8 } if is_get => {
                    assert!(data[..8].iter().all(|byte| *byte == data[0]));
                }
                Outcome::Done if !is_get => assert_ne!(there, [0xff; 8]),
                other => panic!("{seed}: {other:?}"),
            }
        }
    }
    early
}

fn rng_bit(seed: u64) -> usize {
    (seed & 1) as usize
}

#[test]
fn no_response_to_a_predecessor_completes_a_request() {
    for seed in 0..3_000 {
        assert_eq!(completed_by_others(seed, false), 0, "{seed}");
    }
}

/// Without the echo the same incarnations accept wrong responses: data of other requests, and puts
/// that were never carried out.
#[test]
fn canary_ids_alone_would_not_do() {
    let wrong = (0..200).filter(|&seed| completed_by_others(seed, true) > 0);
    assert!(wrong.count() > 40);
}

/// A damaged response to a predecessor's request does not fail a request of this incarnation.
#[test]
fn a_damaged_response_to_a_predecessor_ends_nothing() {
    let mut rng = Rng::new(1, 1);
    let mut target = Interface::new(&config(1).build().unwrap(), Time::ZERO);
    let start = Time::ZERO + Duration::from_ms(3_000);
    let mut old = born(start);
    let (requests, _) = ask(&mut old, start + Duration::from_ms(2_000), &mut rng);
    let late = served(&mut target, start, &requests);
    let again = start + Duration::from_ms(2_000);
    let mut nic = born(again);
    let now = again + Duration::from_ms(2_000);
    ask(&mut nic, now, &mut rng);
    for response in late.iter().filter(|response| response.len() > 1) {
        let mut damaged = response.clone();
        damaged[1] = Flit::new(damaged[1].bits() ^ 1);
        nic.handle_response(now, &damaged);
    }
    assert!(nic.counters().damaged_responses > 0);
    assert!(nic.poll_completion().is_none());
}

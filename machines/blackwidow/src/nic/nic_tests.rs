use phitwire_framing::carrier::frame::LinkEnd;
use phitwire_framing::yarc::crc16::PacketCrc;
use phitwire_framing::yarc::maintenance::{
    Maintenance, Operation as RegisterOperation, RegisterStatus, RouteVector,
};
use phitwire_framing::yarc::memory::{
    Request, Response, Status, decode_request, decode_response, encode_request, encode_response,
};
use phitwire_framing::yarc::packet::{EopStatus, PacketBuf, Vc};
use phitwire_framing::yarc::phit::{Phit, PhitKind};

use super::test_bench::{A, B, NicPair as _, Pair, RawPeer, User as _, config, events};
use super::*;
use phitwire::device::DeviceEvent;
use phitwire::link::testing::joined::SECOND;
use phitwire::link::{LinkFault, NodeLink};
use phitwire::net::Profile;
use phitwire::nic::*;
use phitwire::node::Node;
use phitwire::packets::transfer::MAX_DATA;
use phitwire::packets::{Completion, Outcome, PostError, Refusal};
use phitwire::rng::Rng;
use phitwire::time::{Duration, Time};

const WRITTEN: Outcome = Outcome::Done {
    data: [0; MAX_DATA],
    len: 0,
};

fn completions(nic: &mut BlackWidowNic) -> Vec<Completion> {
    nic.completions()
}

fn settle(pair: &mut Pair) {
    pair.until(SECOND, |pair| pair.nics[0].outstanding() == 0);
}

fn outcome_of(nic: &mut BlackWidowNic, tid: u64) -> Outcome {
    let all = completions(nic);
    all.iter()
        .find(|c| c.name == tid)
        .expect("the request has ended")
        .outcome
}

#[test]
fn every_size_and_alignment_goes_there_and_back() {
    let mut pair = Pair::new(1);
    let mut rng = Rng::new(1, 1);
    let mut model = vec![0_u8; 1 << 12];
    for len in 1..=32_usize {
        for at in 0..=32 - len {
            let line = rng.below(128) * 32;
            let address = line + at as u64;
            let data: Vec<u8> = (0..len).map(|_| rng.next_u64() as u8).collect();
            pair.nics[0].write(pair.now, B, address, &data).unwrap();
            model[address as usize..][..len].copy_from_slice(&data);
            let tid = pair.nics[0].read(pair.now, B, address, len as u8).unwrap();
            settle(&mut pair);
            let outcome = outcome_of(&mut pair.nics[0], tid);
            let Outcome::Done {
                data: got,
                len: got_len,
            } = outcome
            else {
                panic!("a read returns data");
            };
            assert_eq!((&got[..len], usize::from(got_len)), (&data[..], len));
            assert!(got[len..].iter().all(|&b| b == 0));
        }
    }
    // Whole-line reads show that only the written bytes have changed.
    for line in 0..128_u64 {
        let tid = pair.nics[0].read(pair.now, B, line * 32, 32).unwrap();
        settle(&mut pair);
        let Outcome::Done { data, .. } = outcome_of(&mut pair.nics[0], tid) else {
            panic!()
        };
        assert_eq!(data[..32], model[line as usize * 32..][..32]);
    }
}

#[test]
fn invalid_requests_are_refused_at_once() {
    let mut pair = Pair::new(1);
    let now = pair.now;
    let (nic, long) = (&mut pair.nics[0], [1; 300]);
    let answers = [
        nic.write(now, B, 30, &long[..3]),
        nic.write(now, B, 0, &long[..33]),
        nic.read(now, B, 0, 0),
        nic.read(now, 0x8000, 0, 1),
        nic.read(now, B, 1 << 48, 1),
    ];
    for (index, answer) in answers.iter().enumerate() {
        assert_eq!(*answer, Err(PostError::NotHere), "{index}");
    }
    let put = RemotePuts::put(nic, now, B, 0, &long, false);
    assert_eq!(put, Err(PutError::Impossible));
    assert_eq!(pair.nics[0].outstanding(), 0);
    assert_eq!(completions(&mut pair.nics[0]), []);
}

#[test]
fn an_access_beyond_the_memory_is_refused_by_the_target() {
    let mut pair = Pair::new(1);
    let refused = |refusal| Outcome::Refused(Some(refusal));
    pair.nics[0].read(pair.now, B, 1 << 20, 8).unwrap();
    pair.nics[0]
        .write(pair.now, B, (1 << 20) + 32, &[7; 4])
        .unwrap();
    pair.nics[0].read(pair.now, B, (1 << 47) + 64, 8).unwrap();
    settle(&mut pair);
    let ends = completions(&mut pair.nics[0]);
    assert!(
        ends.len() == 3
            && ends
                .iter()
                .all(|c| c.outcome == refused(Refusal::OutOfRange))
    );
    let (at, line) = (ANNOUNCE_ADDRESS, [7; 32]);
    let tid = pair.nics[0].write(pair.now, B, at, &line).unwrap();
    settle(&mut pair);
    assert_eq!(
        outcome_of(&mut pair.nics[0], tid),
        refused(Refusal::Unsupported)
    );
    assert_eq!(pair.nics[1].counters().refused_out_of_range, 3);
    assert_eq!(pair.nics[1].counters().refused_unsupported, 1);
    assert_eq!(pair.nics[0].counters().requests_refused, 4);
}

#[test]
fn thousands_are_outstanding_at_once_and_the_limit_holds() {
    let a = NicConfig {
        outstanding: 4_000,
        ..config(LinkEnd::A, 1, 1)
    };
    let mut pair = Pair::with(a, config(LinkEnd::B, 1, 1));
    let mut posted = 0_u32;
    let mut most = 0;
    while posted < 20_000 {
        let address = u64::from(posted) * 32 % (1 << 20);
        match pair.nics[0].write(pair.now, B, address, &posted.to_le_bytes()) {
            Ok(_) => posted += 1,
            Err(PostError::TooMany | PostError::NoRoom) => {
                most = most.max(pair.nics[0].outstanding());
                pair.step();
                completions(&mut pair.nics[0]);
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!((1_000..=4_000).contains(&most), "{most}");
    settle(&mut pair);
    assert_eq!(pair.nics[0].counters().writes_done, 20_000);
    assert_eq!(pair.nics[0].counters().requests_timed_out, 0);
}

#[test]
fn completions_that_nobody_fetches_stop_the_asking() {
    let a = NicConfig {
        outstanding: 10,
        ..config(LinkEnd::A, 1, 1)
    };
    let mut pair = Pair::with(a, config(LinkEnd::B, 1, 1));
    for _ in 0..10 {
        pair.nics[0].write(pair.now, B, 0, &[1]).unwrap();
    }
    settle(&mut pair);
    assert_eq!(
        pair.nics[0].write(pair.now, B, 0, &[1]),
        Err(PostError::TooMany)
    );
    assert_eq!(completions(&mut pair.nics[0]).len(), 10);
    assert!(pair.nics[0].write(pair.now, B, 0, &[1]).is_ok());
}

#[test]
fn a_time_out_is_reported_and_a_late_response_completes_nothing() {
    let mut pair = Pair::new(1);
    pair.run(Duration::from_ms(5));
    pair.impair("loss 100%");
    let posted = pair.now;
    let tid = pair.nics[0].write(posted, B, 64, &[9; 8]).unwrap();
    settle(&mut pair);
    let all = completions(&mut pair.nics[0]);
    assert_eq!(all.len(), 1);
    assert_eq!((all[0].name, all[0].outcome), (tid, Outcome::Unknown));
    let waited = all[0].completed.since(posted);
    let about = Duration::from_ms(50)..Duration::from_ms(51);
    assert!(about.contains(&waited), "{waited:?}");
    // The link finally delivers the write, and its response is late.
    pair.impair("");
    pair.until(SECOND, |pair| pair.nics[0].counters().late_responses == 1);
    assert_eq!(completions(&mut pair.nics[0]), []);
    let mut stored = [0; 8];
    pair.nics[1].memory().read(64, &mut stored).unwrap();
    assert_eq!(stored, [9; 8]);
}

#[test]
fn the_next_deadline_includes_request_timeouts() {
    let mut pair = Pair::new(1);
    pair.run(Duration::from_ms(5));
    let posted = pair.now;
    pair.nics[0].write(posted, B, 0, &[1]).unwrap();
    pair.impair("loss 100%");
    let deadline = posted + Duration::from_ms(50);
    let wakeup = pair.nics[0].next_wakeup();
    assert!(wakeup.is_some_and(|wakeup| wakeup.at <= deadline));
    // A single call at the deadline ends the request.
    pair.nics[0].advance(deadline);
    assert_eq!(completions(&mut pair.nics[0])[0].outcome, Outcome::Unknown);
}

#[test]
fn a_soft_error_is_discarded_at_the_destination_and_times_out() {
    let mut pair = Pair::new(1);
    let now = pair.now;
    let lcb = pair.nics[0].end_mut(0).unwrap();
    assert!(lcb.apply_fault(now, LinkFault::SoftError));
    let lost = pair.nics[0].write(pair.now, B, 0, &[9; 8]).unwrap();
    let next = pair.nics[0].write(pair.now, B, 64, &[8; 8]).unwrap();
    settle(&mut pair);
    let ends: Vec<_> = completions(&mut pair.nics[0])
        .iter()
        .map(|c| (c.name, c.outcome))
        .collect();
    assert_eq!(ends, [(next, WRITTEN), (lost, Outcome::Unknown)]);
    assert_eq!(pair.nics[1].counters().discard_soft_error, 1);
    let mut stored = [0xa5; 8];
    pair.nics[1].memory().read(0, &mut stored).unwrap();
    assert_eq!(stored, [0; 8]);
}

/// A packet with the given phits (without an EOP), a valid check and `status`.
fn closed(phits: &[Phit], status: EopStatus) -> PacketBuf {
    let (mut packet, mut crc) = (PacketBuf::new(), PacketCrc::new());
    for &phit in phits {
        crc.update(phit.content());
        assert!(packet.push(phit));
    }
    assert!(packet.push(Phit::new(PhitKind::Eop, crc.eop(status))));
    packet
}

fn request(tid: u32, request: Request) -> PacketBuf {
    let mut packet = PacketBuf::new();
    encode_request(A, B, tid, &request, &mut packet).unwrap();
    packet
}

fn write_to(address: u64) -> Request {
    Request::Write {
        address,
        data: [1; 32],
        len: 8,
    }
}

#[test]
fn malformed_packets_are_discarded_and_counted_by_reason() {
    let mut peer = RawPeer::new(Profile::Live);
    let good = request(1, write_to(0));
    let phits = &good.as_slice()[..good.len() - 1];
    let with = |index: usize, flip: u32| {
        let mut phits = phits.to_vec();
        let old = phits[index];
        phits[index] = Phit::new(old.kind(), old.content() ^ flip);
        closed(&phits, EopStatus::Healthy)
    };
    let sent = [
        closed(phits, EopStatus::SoftError),
        with(0, 1),                              // Wrong destination.
        with(0, 1 << 16),                        // Wrong `h` bit.
        with(0, 7 << 19),                        // Wrong operation.
        closed(&phits[..5], EopStatus::Healthy), // Too short for its fields.
        with(phits.len() - 1, 1),                // Nonzero padding.
    ];
    for packet in &sent {
        assert!(peer.send(Vc::Request, packet));
    }
    assert!(peer.send(Vc::Request, &good));
    peer.run(Duration::from_ms(5));
    let counters = peer.nic.counters();
    assert_eq!(counters.discard_soft_error, 1);
    assert_eq!(counters.discard_misrouted, 1);
    assert_eq!(counters.discard_routing_bits, 1);
    assert_eq!(counters.discard_operation, 1);
    assert_eq!(counters.discard_size + counters.discard_byte_mask, 1);
    assert_eq!(counters.discard_padding, 1);
    assert_eq!(counters.writes_served, 1);
    assert_eq!(peer.take(Vc::Response).len(), 1);
}

#[test]
fn a_response_that_does_not_fit_its_request_completes_nothing() {
    let mut peer = RawPeer::new(Profile::Live);
    let tid = peer.nic.write(peer.now, B, 0, &[1; 8]).unwrap();
    peer.run(Duration::from_ms(1));
    let asked = peer.take(Vc::Request);
    let asked = decode_request(asked[0].as_slice()).unwrap();
    assert_eq!((asked.tid, asked.source, asked.dest), (tid as u32, A, B));
    let mut respond = |response: Response| {
        let mut packet = PacketBuf::new();
        encode_response(A, &response, &mut packet).unwrap();
        assert!(peer.send(Vc::Response, &packet));
        peer.run(Duration::from_ms(1));
        completions(&mut peer.nic)
    };
    let tid = tid as u32;
    let read = Response::ReadData {
        tid,
        len: 8,
        data: [1; 32],
    };
    let done = |tid| Response::WriteDone {
        tid,
        status: Status::Done,
    };
    // A repeated response is recognised.
    let responses = [
        read,
        done(tid ^ 1),
        done(tid ^ 1 << 19),
        done(tid),
        done(tid),
    ];
    for (response, ended) in responses.into_iter().zip([0, 0, 0, 1, 0]) {
        assert_eq!(respond(response).len(), ended, "{response:?}");
    }
    let counters = peer.nic.counters();
    // One response belongs to a request of another period.
    assert_eq!(counters.mismatched_responses, 1);
    assert_eq!(counters.unknown_responses, 2);
    assert_eq!(counters.stale_responses, 1);
}

#[test]
fn a_maintenance_packet_goes_out_and_its_reply_is_reported() {
    let mut peer = RawPeer::new(Profile::Live);
    let route = RouteVector::new(&[7]).unwrap();
    let back = RouteVector::new(&[3, 9]).unwrap();
    let asked = Maintenance {
        route,
        hop: 0,
        register: 0x0102,
        tag: 5,
        operation: RegisterOperation::Read { back },
    };
    let elsewhere = post_maintenance(&mut peer.nic, 1, &asked);
    assert_eq!(elsewhere, Err(MaintenanceError::Port(1)));
    post_maintenance(&mut peer.nic, 0, &asked).unwrap();
    peer.run(Duration::from_ms(1));
    let got = peer.take(Vc::Request);
    assert_eq!(Maintenance::decode(got[0].as_slice()), Ok(asked));
    let reply = asked.reply(RegisterStatus::Done, 0xfeed).unwrap();
    let back = post_maintenance(&mut peer.nic, 0, &reply);
    assert_eq!(back, Err(MaintenanceError::Route));
    // The reply arrives; a request is discarded, because a NIC has no registers.
    for packet in [reply, asked] {
        let mut phits = PacketBuf::new();
        assert!(packet.encode(&mut phits));
        assert!(peer.send(packet.operation.vc(), &phits));
    }
    peer.run(Duration::from_ms(1));
    let port = 0;
    let event = DeviceEvent::own(Some(port), Register { port, reply });
    assert!(events(&mut peer.nic).contains(&event));
    assert_eq!(peer.nic.counters().discard_source_routed, 1);
}

#[test]
fn requests_wait_when_responses_cannot_leave_but_responses_are_taken() {
    let mut peer = RawPeer::new(Profile::Paper);
    // The peer takes no responses from its input queue, so its credits run out.
    let mut sent = 0;
    for _ in 0..2_000 {
        sent += u64::from(peer.send(Vc::Request, &request(sent as u32, write_to(sent % 8 * 64))));
        peer.step();
    }
    let counters = peer.nic.counters();
    assert!(counters.response_stalls > 0);
    assert!(counters.writes_served < sent, "requests have backed up");
    assert!(
        !peer.lcb.wire().can_begin(Vc::Request),
        "backpressure reaches the sender"
    );
    // In this state the NIC still accepts a response to its own request.
    let own = peer.nic.write(peer.now, B, 0, &[1; 8]).unwrap();
    peer.run(Duration::from_ms(1));
    assert_eq!(peer.take(Vc::Request).len(), 1);
    let done = Response::WriteDone {
        tid: own as u32,
        status: Status::Done,
    };
    let mut packet = PacketBuf::new();
    encode_response(A, &done, &mut packet).unwrap();
    assert!(peer.send(Vc::Response, &packet));
    peer.run(Duration::from_ms(1));
    assert_eq!(outcome_of(&mut peer.nic, own), WRITTEN);
    // When the peer takes responses again, all requests are served in order.
    let mut tids = Vec::new();
    for _ in 0..2_000 {
        for packet in peer.take(Vc::Response) {
            let Ok((B, Response::WriteDone { tid, .. })) = decode_response(packet.as_slice())
            else {
                panic!("a write is answered");
            };
            tids.push(tid);
        }
        peer.step();
    }
    assert_eq!(tids, (0..sent as u32).collect::<Vec<_>>());
}

#[test]
fn requests_to_one_block_share_a_slice_and_all_slices_are_used() {
    for slices in 1..=4 {
        let mut used = [0_u32; 4];
        for block in 0..40_000_u64 {
            let slice = slice_of(block * 64, slices);
            assert!((0..64).all(|at| slice_of(block * 64 + at, slices) == slice));
            used[slice] += 1;
        }
        let even = 40_000 / slices as u32;
        let is_even = |n: &u32| n.abs_diff(even) < even / 10;
        assert!(used[..slices].iter().all(is_even), "{used:?}");
        // Within a slice every value of the lowest hash bits still occurs.
        let mut bits = [0_u64; 4];
        for block in 0..1024_u64 {
            bits[slice_of(block * 64, slices)] |= 1 << (block % 64);
        }
        assert!(bits[..slices].iter().all(|&seen| seen == u64::MAX));
    }
}

#[test]
fn an_idle_network_interface_asks_for_little() {
    let mut pair = Pair::new(1);
    pair.run(Duration::from_ms(100));
    let mut wakeups = 0;
    let end = pair.now + SECOND;
    while let Some(wakeup) = pair.nics[0].next_wakeup().filter(|wakeup| wakeup.at < end) {
        wakeups += 1;
        pair.now = pair.now.max(wakeup.at);
        pair.step();
        assert!(wakeups < 1_000, "an idle network interface spins");
    }
    assert!(Time::ZERO < pair.now);
}

use phitwire_framing::aries::flit::{Flit, Head};
use phitwire_framing::aries::packet::{Command, Request};

use super::interface::Owner;
use super::responder::Responder;
use super::test_bench::*;
use super::*;
use phitwire::rng::Rng;
use phitwire::time::Duration;

fn bytes(rng: &mut Rng, len: usize) -> Vec<u8> {
    (0..len).map(|_| rng.next_u64() as u8).collect()
}

fn add_one(width: Width, fetch: bool, into: Option<u64>) -> Operation<'static> {
    Operation::Atomic {
        op: AmoOp::Add,
        width,
        operands: Operands {
            first: 1,
            second: 0,
        },
        fetch,
        into,
    }
}

/// Posts from node 0 without checking for room.
fn post_now(
    pair: &mut Pair,
    user: u64,
    operation: Operation<'_>,
    at: RemoteAddress,
) -> Result<(), PostError> {
    let now = pair.now;
    pair.nics[0].post(now, Owner::User(user), &post(operation, at))
}

#[test]
fn puts_and_gets_of_every_size_go_there_and_back() {
    let mut pair = Pair::new();
    let mut rng = Rng::new(1, 1);
    let mut model = vec![0_u8; 4096];
    for len in 1..=64 {
        let address = rng.below(4096 - 64);
        let data = bytes(&mut rng, len);
        assert_eq!(pair.ask(put(&data), at(address)), Outcome::Done);
        model[address as usize..][..len].copy_from_slice(&data);
    }
    for len in (4..=64).step_by(4) {
        let address = rng.below(1000) * 4;
        let Outcome::Data { data, len: got } = pair.ask(get(len), at(address)) else {
            panic!("a get without data");
        };
        let wanted = &model[address as usize..][..usize::from(len)];
        assert_eq!((&data[..usize::from(len)], got), (wanted, len));
        assert!(data[usize::from(len)..].iter().all(|&b| b == 0));
    }
    assert_eq!(pair.read(1, 0, 4096), model);
    let counters = pair.nics[1].counters();
    assert_eq!((counters.puts_served, counters.gets_served), (64, 16));
}

#[test]
fn packets_have_the_flits_that_the_paper_counts() {
    let mut pair = Pair::new();
    pair.keep = true;
    for (operation, request, response) in [
        (put(&[1; 64]), 14, 1),
        (get(64), 3, 12),
        (put(&[1; 8]), 5, 1),
        (get(8), 3, 3),
        (atomic(AmoOp::Add, Width::Bits64, 1, 0), 5, 3),
    ] {
        pair.seen.clear();
        pair.ask(operation, at(0));
        let flits: Vec<usize> = pair.seen.iter().map(Vec::len).collect();
        assert_eq!(flits, [request, response], "{operation:?}");
    }
    // Payload efficiency in the XC white paper: 64 bytes in 15 flits, 9 flits in 60 bytes.
    assert_eq!(64 * 9 * 100 / (15 * 60), 64);
}

#[test]
fn every_reason_to_refuse_is_counted_and_reported() {
    let mut pair = Pair::new();
    let small = Domain {
        base: 1024,
        length: 100,
        key: 7,
        permissions: Permissions::READ_ONLY,
    };
    let Responder {
        domains, memory, ..
    } = &mut pair.nics[1].responder;
    domains.register(6, small, memory.memory()).unwrap();
    let here = |handle, key, offset| RemoteAddress {
        handle,
        key,
        offset,
        ..at(0)
    };
    let last = here(ALL, KEY, MEMORY - 1);
    let add = atomic(AmoOp::Add, Width::Bits64, 1, 0);
    let add_32 = atomic(AmoOp::Add, Width::Bits32, 1, 0);
    for (operation, at, status) in [
        (put(&[1]), here(9, KEY, 0), Status::BadMdh),
        (get(4), here(4000, KEY, 0), Status::BadMdh),
        (put(&[1]), here(ALL, KEY + 1, 0), Status::BadKey),
        (add, here(6, KEY, 0), Status::BadKey),
        (put(&[1; 2]), last, Status::OutOfBounds),
        (get(64), here(6, 7, 40), Status::OutOfBounds),
        (get(4), here(6, 7, (1 << 40) - 4), Status::OutOfBounds),
        (get(4), here(ALL, KEY, 2), Status::Misaligned),
        (add, here(ALL, KEY, 4), Status::Misaligned),
        (add_32, here(ALL, KEY, 2), Status::Misaligned),
        (put(&[1]), here(6, 7, 0), Status::Unsupported),
        (add, here(6, 7, 0), Status::Unsupported),
    ] {
        assert_eq!(pair.ask(operation, at), refused(status), "{operation:?}");
    }
    let counters = pair.nics[1].counters();
    assert_eq!(counters.refused_bad_mdh, 2);
    assert_eq!(counters.refused_bad_key, 2);
    assert_eq!(counters.refused_out_of_bounds, 3);
    assert_eq!(counters.refused_misaligned, 3);
    assert_eq!(counters.refused_unsupported, 2);
    assert_eq!(pair.nics[0].counters().requests_refused, 12);
    assert_eq!(pair.read(1, 0, 2048), [0; 2048], "the memory is unchanged");
    let inside = pair.ask(get(60), here(6, 7, 40));
    assert!(matches!(inside, Outcome::Data { .. }), "{inside:?}");
    // An OR with zero only reads.
    for (bits, outcome) in [(0, Outcome::Fetched(0)), (1, refused(Status::Unsupported))] {
        let or = atomic(AmoOp::Or, Width::Bits64, bits, 0);
        assert_eq!(pair.ask(or, here(6, 7, 8)), outcome);
    }
}

#[test]
fn invalid_requests_are_refused_at_once() {
    let mut pair = Pair::new();
    let mut error = |operation, at| {
        let asked = post_now(&mut pair, 0, operation, at);
        asked.expect_err("the request is rejected")
    };
    assert_eq!(error(put(&[]), at(0)), PostError::Length(0));
    assert_eq!(error(put(&[0; 65]), at(0)), PostError::Length(65));
    for len in [0, 6, 68] {
        assert_eq!(error(get(len), at(0)), PostError::Length(len.into()));
    }
    assert_eq!(error(get(4), at(1 << 40)), PostError::Offset(1 << 40));
    let handle = RemoteAddress {
        handle: 4096,
        ..at(0)
    };
    assert_eq!(error(get(4), handle), PostError::Handle(4096));
    let nobody = RemoteAddress {
        target: Target::Virtual(2),
        ..at(0)
    };
    assert_eq!(error(get(4), nobody), PostError::VirtualNode(2));
    for (into, flag, bad) in [
        (Some(MEMORY), None, MEMORY),
        (None, Some((u64::MAX, 1)), u64::MAX),
        (None, Some((MEMORY - 7, 1)), MEMORY - 7),
    ] {
        let far = Operation::Get { len: 4, into, flag };
        assert_eq!(error(far, at(0)), PostError::LocalBounds(bad));
    }
    assert_eq!(pair.nics[0].requester.outstanding.slab.used(), 0);
    assert!(pair.completions().is_empty());
}

/// The word after an operation, computed independently of the NIC's code.
fn model(op: AmoOp, bits: u32, old: u64, first: u64, second: u64) -> u64 {
    let mask = u64::MAX >> (64 - bits);
    let signed = |word: u64| i128::from(word.cast_signed() << (64 - bits) >> (64 - bits));
    let float = |word: u64| match bits {
        64 => f64::from_bits(word),
        _ => f64::from(f32::from_bits(word as u32)),
    };
    let unfloat = |x: f64| match bits {
        64 => x.to_bits(),
        _ => u64::from((x as f32).to_bits()),
    };
    let new = match op {
        AmoOp::And => !(!old | !first),
        AmoOp::Or => !(!old & !first),
        AmoOp::Xor => (old | first) & !(old & first),
        AmoOp::Add => (u128::from(old) + u128::from(first)) as u64,
        AmoOp::AndXor => (old & first | second) & !(old & first & second),
        AmoOp::Swap => first,
        AmoOp::CompareSwap => [old, second][usize::from(old == first)],
        AmoOp::IntMin => [old, first][usize::from(signed(first) < signed(old))],
        AmoOp::IntMax => [old, first][usize::from(signed(first) > signed(old))],
        AmoOp::FloatAdd => unfloat(float(old) + float(first)),
        AmoOp::FloatMin => [old, first][usize::from(float(first) < float(old))],
        AmoOp::FloatMax => [old, first][usize::from(float(first) > float(old))],
    };
    new & mask
}

#[test]
fn every_atomic_operation_agrees_with_a_model() {
    let mut pair = Pair::new();
    let mut rng = Rng::new(2, 2);
    for op in AmoOp::ALL {
        for (width, bits) in [(Width::Bits64, 64), (Width::Bits32, 32)] {
            for round in 0..40 {
                let mut word = || match op {
                    AmoOp::FloatAdd | AmoOp::FloatMin | AmoOp::FloatMax => {
                        let x = rng.below(1 << 20) as f64 / 64.0 - 8192.0;
                        [x.to_bits(), u64::from((x as f32).to_bits())][usize::from(bits == 32)]
                    }
                    _ => rng.next_u64() >> (64 - bits) >> (rng.below(4) * 8),
                };
                let (old, mut first, second) = (word(), word(), word());
                if round % 2 == 0 && op == AmoOp::CompareSwap {
                    first = old;
                }
                let address = 64 + 4 * 2 * rng.below(100);
                let size = width.bytes();
                pair.write(1, address, &old.to_le_bytes()[..size]);
                let mut operation = atomic(op, width, first, second);
                let fetching = round % 3 != 0;
                if let Operation::Atomic { fetch, .. } = &mut operation {
                    *fetch = fetching;
                }
                let outcome = pair.ask(operation, at(address));
                let expected = [Outcome::Done, Outcome::Fetched(old)][usize::from(fetching)];
                assert_eq!(outcome, expected, "{op:?}");
                let new = model(op, bits, old, first, second).to_le_bytes();
                let found = pair.read(1, address, size);
                assert_eq!(found, new[..size], "{op:?} {bits} {old:#x} {first:#x}");
            }
        }
    }
    assert_eq!(pair.nics[1].counters().atomics_served, 12 * 2 * 40);
}

#[test]
fn fetched_words_and_flagged_gets_arrive_in_local_memory() {
    let mut pair = Pair::new();
    let word = 0x0123_4567_89ab_cdef_u64.to_le_bytes();
    pair.write(1, 512, &word);
    let flagged = Operation::Get {
        len: 8,
        into: Some(1000),
        flag: Some((2000, 0xf1a6)),
    };
    assert_eq!(pair.ask(flagged, at(512)), Outcome::Done);
    assert_eq!(pair.read(0, 1000, 8), word);
    assert_eq!(pair.read(0, 2000, 8), 0xf1a6_u64.to_le_bytes());
    let fetch = add_one(Width::Bits32, true, Some(3000));
    assert_eq!(pair.ask(fetch, at(516)), Outcome::Done);
    assert_eq!(pair.read(0, 3000, 8), 0x0123_4567_u64.to_le_bytes());
    assert_eq!(pair.read(1, 516, 4), 0x0123_4568_u32.to_le_bytes());
    // A rejected get changes neither data nor flag.
    let flag = Some((2000, 1));
    let into = Some(1000);
    let refused_get = Operation::Get { len: 8, into, flag };
    assert_eq!(pair.ask(refused_get, at(2)), refused(Status::Misaligned));
    assert_eq!(pair.read(0, 2000, 8), 0xf1a6_u64.to_le_bytes());
    assert_eq!(pair.nics[0].counters().flags_written, 1);
}

#[test]
fn a_thousand_packets_are_outstanding_and_the_limit_holds() {
    let mut pair = Pair::new();
    pair.spread = 3000;
    for n in 0..MAX_OUTSTANDING.into() {
        let posted = post_now(&mut pair, n, put(&[1; 8]), at(8 * n));
        assert_eq!(posted, Ok(()));
    }
    let more = post_now(&mut pair, 0, put(&[1]), at(0));
    assert_eq!(more, Err(PostError::TooMany));
    pair.drain();
    let mut users: Vec<u64> = pair.completions().iter().map(|c| c.user).collect();
    assert!(!users.is_sorted(), "no response overtook another");
    users.sort_unstable();
    assert!(users.iter().copied().eq(0..MAX_OUTSTANDING.into()));
}

#[test]
fn completions_that_nobody_fetches_hold_up_more() {
    let mut pair = Pair::with(config(0).completion_queue(3), config(1).target_queue(2));
    let with_event = Operation::Put {
        data: &[9; 5],
        event: true,
    };
    for _ in 0..3 {
        pair.post(Owner::User(0), &post(with_event, at(32)));
    }
    let full = PostError::CompletionQueueFull;
    let now = pair.now;
    let more = post_now(&mut pair, 0, with_event, at(0));
    assert_eq!((more, pair.nics[0].open(now, 0)), (Err(full), Err(full)));
    pair.drain();
    let more = post_now(&mut pair, 0, with_event, at(0));
    assert_eq!(more, Err(full));
    assert_eq!(pair.completions().len(), 3);
    pair.post(Owner::User(0), &post(put(&[1]), at(0)));
    // The target's queue drops and counts events that do not fit.
    let event = TargetEvent::Put {
        source: NODES[0],
        ssid: 0,
        handle: ALL,
        offset: 32,
        len: 5,
    };
    assert_eq!(pair.target_events(), [event, event]);
    assert_eq!(pair.nics[1].counters().target_event_overflows, 1);
}

#[test]
fn a_lost_packet_times_out_and_its_late_response_is_ignored() {
    let mut pair = Pair::new();
    pair.harm.lost = 1000;
    pair.post(Owner::User(1), &post(put(&[1]), at(0)));
    pair.drain();
    let ends = pair.completions();
    assert_eq!(ends[0].outcome, Outcome::Failed(Failure::TimedOut));
    assert!(ends[0].completed.since(ends[0].posted) >= TIMEOUT);
    // The next response arrives after its timeout.
    pair.harm.lost = 0;
    pair.spread = 20_000;
    for n in 0..200 {
        pair.post(Owner::User(n), &post(put(&[1; 8]), at(8 * n)));
    }
    pair.drain();
    let late = pair.completions();
    let failed = late.iter().filter(|c| c.outcome.failure().is_some());
    let timed_out = failed.count();
    assert!(late.len() == 200 && timed_out > 20 && timed_out < 200);
    pair.run(Duration::from_ms(50));
    let counters = pair.nics[0].counters();
    assert_eq!(counters.requests_timed_out, timed_out as u64 + 1);
    assert_eq!(counters.late_responses, timed_out as u64);
    assert_eq!(counters.unknown_responses, 0);
    assert_eq!(counters.requests_done, 200 - timed_out as u64);
    assert_eq!(pair.nics[0].requester.outstanding.slab.quarantined(), 1);
}

#[test]
fn a_request_that_never_left_gives_its_id_back() {
    let mut pair = Pair::new();
    pair.post(Owner::User(1), &post(put(&[1]), at(0)));
    pair.now += TIMEOUT;
    pair.drain();
    let counters = pair.nics[0].counters();
    assert_eq!(counters.requests_timed_out, 1);
    assert_eq!(counters.requests_unsent, 1);
    assert_eq!(pair.nics[0].requester.outstanding.slab.quarantined(), 0);
    assert_eq!(pair.read(1, 0, 1), [0]);
}

#[test]
fn duplicated_responses_complete_nothing_twice() {
    let mut pair = Pair::new();
    pair.harm.duplicated_responses = 500;
    pair.spread = 100;
    let rounds = 20_000;
    for n in 0..rounds {
        let add = add_one(Width::Bits64, n % 2 == 0, None);
        pair.post(Owner::User(n), &post(add, at(64)));
        if n % 64 == 0 {
            let ends = pair.completions();
            assert!(ends.iter().all(|c| c.outcome.failure().is_none()));
        }
    }
    pair.drain();
    pair.completions();
    pair.run(Duration::from_ms(1));
    assert_eq!(pair.read(1, 64, 8), rounds.to_le_bytes());
    let counters = pair.nics[0].counters();
    assert_eq!(counters.requests_done, rounds);
    assert_eq!(counters.requests_timed_out, 0);
    assert!(counters.unknown_responses > rounds / 3);
    let counters = pair.nics[1].counters();
    assert_eq!(counters.amo_cache_misses, 1);
    assert_eq!(counters.amo_cache_hits, rounds - 1);
}

#[test]
fn damaged_packets_are_refused_and_reported() {
    let mut pair = Pair::new();
    (pair.harm.poisoned, pair.harm.flipped) = (20, 20);
    let rounds = 10_000;
    let mut ends = Vec::new();
    for n in 0..rounds {
        let add = add_one(Width::Bits64, true, None);
        pair.post(Owner::User(n), &post(add, at(64)));
        if n % 64 == 0 {
            ends.extend(pair.completions());
        }
    }
    pair.drain();
    ends.extend(pair.completions());
    assert_eq!(ends.len() as u64, rounds);
    let count = |outcome: Outcome| ends.iter().filter(|c| c.outcome == outcome).count() as u64;
    let poisoned = count(refused(Status::Poisoned));
    let bad_crc = count(refused(Status::BadCrc));
    let unknown = count(Outcome::Failed(Failure::DamagedResponse));
    assert!(poisoned > 100 && bad_crc > 100 && unknown > 100);
    let target = pair.nics[1].counters();
    assert!(target.refused_poisoned >= poisoned && target.refused_bad_crc >= bad_crc);
    assert_eq!(pair.nics[0].counters().damaged_responses, unknown);
    // Responses and effects agree, except for damaged responses.
    let sum = u64::from_le_bytes(pair.read(1, 64, 8).try_into().unwrap());
    let has_fetched = |end: &&Completion| matches!(end.outcome, Outcome::Fetched(_));
    let fetched = ends.iter().filter(has_fetched);
    assert_eq!(sum, target.atomics_served);
    assert!((fetched.count() as u64..=rounds - poisoned - bad_crc).contains(&sum));
}

#[test]
fn virtual_handles_and_nodes_are_translated() {
    let mut pair = Pair::new();
    let entry = VirtualHandles {
        key: KEY,
        first: 0,
        count: 2,
        base: ALL,
    };
    pair.nics[1].responder.handles.add(entry).unwrap();
    let zero = RemoteAddress { handle: 0, ..at(8) };
    assert_eq!(pair.ask(put(&[3; 8]), zero), Outcome::Done);
    assert_eq!(pair.read(1, 8, 8), [3; 8]);
    let one = RemoteAddress { handle: 1, ..at(8) };
    assert_eq!(pair.ask(put(&[3; 8]), one), refused(Status::BadMdh));
    assert_eq!(pair.nics[1].counters().handles_translated, 2);
    // Virtual node 0 is this node until it is remapped to the other node.
    let elsewhere = RemoteAddress {
        target: Target::Virtual(0),
        ..at(16)
    };
    let before = pair.nics[0].virtual_nodes.remap(0, NODES[1]);
    assert_eq!(before, Some(NODES[0]));
    assert_eq!(pair.ask(put(&[4; 8]), elsewhere), Outcome::Done);
    assert_eq!(pair.read(1, 16, 8), [4; 8]);
}

#[test]
fn packets_for_others_and_nonsense_are_discarded() {
    let mut pair = Pair::new();
    let request = Request {
        destination: NodeId::new(9, 9, 0),
        source: NODES[0],
        routing: Routing::Adaptive0,
        packet_id: 1,
        command: Command::Put { event: false },
        mdh: ALL,
        echo: 0,
        ssid: 0,
        address: 0,
        key: KEY,
    };
    let mut packet = [Flit::IDLE; 14];
    let mut emit = |request: &Request| {
        let flits = request.emit(&[1; 8], &mut packet).unwrap();
        packet[..flits].to_vec()
    };
    let stranger = emit(&request);
    let mine = Request {
        destination: NODES[1],
        ..request
    };
    let mine = emit(&mine);
    pair.send(1, &stranger);
    // A packet cut off by a link is filled with ones and poisoned.
    let mut cut = mine.clone();
    cut[0] = Head::parse(cut[0]).unwrap().with_poison().flit();
    cut[1..].fill(Flit::new(u64::MAX));
    pair.send(1, &cut);
    // The head's length differs from the command's.
    pair.send(1, &mine[..1]);
    let reserved = Flit::new(mine[0].bits() | 0xf);
    pair.send(1, &[&[reserved], &mine[1..]].concat());
    let response = Head::new(true, 1, NODES[1], Routing::Adaptive0, 99, 0).flit();
    pair.send(1, &[response]);
    pair.run(Duration::from_ms(1));
    let counters = pair.nics[1].counters();
    assert_eq!(counters.discard_misrouted, 1);
    assert_eq!(counters.discard_length, 1);
    assert_eq!(counters.unknown_responses, 1);
    assert_eq!((counters.discard_command, counters.discard_shape), (1, 1));
    assert_eq!(counters.puts_served, 0);
    assert_eq!(pair.nics[0].counters().unknown_responses, 0);
}

#[test]
fn ordered_requests_keep_their_mode_and_their_answers_need_none() {
    let mut pair = Pair::new();
    pair.keep = true;
    let ordered = Post {
        routing: Routing::Ordered,
        ..post(put(&[1]), at(0))
    };
    pair.post(Owner::User(0), &ordered);
    pair.drain();
    let mode = |packet: &Vec<Flit>| Head::parse(packet[0]).unwrap().routing();
    let modes: Vec<Routing> = pair.seen.iter().map(mode).collect();
    assert_eq!(modes, [Routing::Ordered, Routing::Adaptive0]);
}

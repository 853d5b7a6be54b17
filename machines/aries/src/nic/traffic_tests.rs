//! Traffic runs between two NICs over a network that reorders, loses, duplicates and damages
//! packets.

use super::domain::Domain;
use super::interface::{Interface, Owner};
use super::outstanding::MAX_OUTSTANDING;
use super::test_bench::{
    Harm, KEY, MEMORY, NODES, Pair, TIMEOUT, at, config, get, post, whole_memory,
};
use super::traffic::RUN_DOMAIN;
use super::virtual_node::VirtualNodes;
use phitwire::nic::stamp::read_line;
use phitwire::nic::traffic_pattern::TrafficPattern;
use phitwire::nic::traffic_report::{RunPhase, TrafficReport};
use phitwire::nic::traffic_spec::{Operation, RoutingMode, SpecError, TrafficSpec};
use phitwire::time::Duration;
use phitwire_framing::aries::flit::NodeId;

fn bench() -> Pair {
    let with_domain = |index| config(index).domain(RUN_DOMAIN, whole_memory());
    Pair::with(with_domain(0), with_domain(1))
}

fn start_both(pair: &mut Pair, spec: &TrafficSpec) {
    for (number, nic) in pair.nics.iter_mut().enumerate() {
        let nonce = 99 + number as u32;
        nic.start_traffic(pair.now, nonce, spec.clone()).unwrap();
    }
}

/// Both reports of `run`, or of the last run, merged.
fn merged(pair: &Pair, run: Option<u64>) -> TrafficReport {
    let mut merged = TrafficReport::default();
    for nic in &pair.nics {
        merged.merge(&nic.traffic_report(run).unwrap());
    }
    merged
}

fn to(destinations: &[u16]) -> TrafficPattern {
    let destinations = destinations.to_vec();
    TrafficPattern::List { destinations }
}

fn phase(pair: &Pair) -> RunPhase {
    pair.nics[0].traffic_report(None).unwrap().phase
}

/// Asserts that only losses and rejections occurred.
#[track_caller]
fn assert_right(report: &TrafficReport, op: Operation) {
    let wrong = report.corrupted + report.duplicated + report.misordered + report.surplus();
    assert_eq!(wrong, 0, "{op:?}: {report:?}");
}

fn spec(op: Operation, size: u32, count: u64) -> TrafficSpec {
    TrafficSpec {
        run: 7,
        pattern: TrafficPattern::Uniform,
        processors: vec![0, 1],
        op,
        size,
        count,
        ..TrafficSpec::default()
    }
}

/// Runs `spec` from both sides and merges the reports.
fn run(pair: &mut Pair, spec: &TrafficSpec) -> TrafficReport {
    start_both(pair, spec);
    let limit = pair.now + Duration::from_ms(500);
    let done = |nic: &Interface| nic.traffic_report(None).unwrap().phase == RunPhase::Done;
    while !pair.nics.iter().all(done) {
        assert!(pair.now < limit, "the run does not end");
        pair.step();
    }
    merged(pair, Some(spec.run))
}

#[test]
fn every_operation_and_size_is_accounted_for() {
    let sizes = |op| match op {
        Operation::Put => vec![1, 3, 7, 8, 9, 32, 63, 64],
        Operation::Get => vec![4, 8, 60, 64],
        Operation::Amo => vec![8],
    };
    for op in [Operation::Put, Operation::Get, Operation::Amo] {
        for size in sizes(op) {
            let mut pair = bench();
            // In a real network ordered packets stay in order; in this one they do so only if no
            // packet overtakes another.
            pair.spread = if size < 8 { 1 } else { 20 };
            let report = run(&mut pair, &spec(op, size, 3_000));
            assert!(report.is_clean(), "{op:?} {size}: {report:?}");
            assert_eq!((report.sent, report.acknowledged), (6_000, 6_000));
            assert_eq!(report.overtaken > 0, op == Operation::Put && size >= 8);
            let mut nics = pair.nics.iter_mut();
            assert!(nics.all(|nic| nic.run_done.take() == Some(7)));
        }
    }
}

#[test]
fn blocks_are_accounted_for() {
    for op in [Operation::Put, Operation::Get] {
        for size in [65, 100, 4_096, 10_001] {
            let mut pair = bench();
            let report = run(&mut pair, &spec(op, size, 50));
            assert!(report.is_clean(), "{op:?} {size}: {report:?}");
            assert_eq!((report.sent, report.acknowledged), (100, 100));
            assert_eq!(report.size, size);
            assert_eq!(report.delivered, if op == Operation::Put { 100 } else { 0 });
            assert!(pair.completions().is_empty() && pair.target_events().is_empty());
        }
    }
}

/// The last line has no room for a number that distinguishes it from that of a later block.
#[test]
fn blocks_that_may_be_on_their_way_are_not_overwritten() {
    let mut pair = bench();
    pair.harm.lost = 2;
    let spec = TrafficSpec {
        addresses: 8,
        ..spec(Operation::Put, 1_985, 400)
    };
    let report = run(&mut pair, &spec);
    assert!(report.timed_out > 0, "{report:?}");
    assert_right(&report, Operation::Put);
    // All addresses were given up.
    assert!(report.sent < 800, "{report:?}");
}

/// Some packets take several timeouts. So pieces of abandoned blocks arrive between those of the
/// next blocks to the same addresses, and responses arrive after the end of their requests.
#[test]
fn late_lines_of_a_block_are_no_fault_of_the_next() {
    for op in [Operation::Put, Operation::Get] {
        for (size, late) in [(128, 50), (1_000, 10), (4_096, 5)] {
            let mut pair = bench();
            pair.spread = 500;
            pair.harm = Harm {
                lost: 1,
                late,
                ..Harm::default()
            };
            let report = run(&mut pair, &spec(op, size, 300));
            assert_right(&report, op);
            assert_eq!(report.sent, 600, "{op:?} {size}: {report:?}");
            assert!(report.timed_out > 20, "{op:?} {size}: {report:?}");
            assert!(report.acknowledged > 20, "{op:?} {size}: {report:?}");
            assert_eq!(report.stale > 0, op == Operation::Put, "{report:?}");
            let late = |nic: &Interface| nic.counters().late_responses;
            assert!(pair.nics.iter().map(late).sum::<u64>() > 20);
        }
    }
}

/// A restarted target has a new memory and no record of the run.
#[test]
fn runs_of_blocks_outlive_their_target() {
    for (op, size) in [(Operation::Put, 4_096), (Operation::Get, 4_096)] {
        let mut pair = bench();
        let spec = TrafficSpec {
            pattern: to(&[1]),
            window: 64,
            ..spec(op, size, 0)
        };
        pair.nics[0].start_traffic(pair.now, 5, spec).unwrap();
        pair.run(Duration::from_ms(2));
        let again = config(1).domain(RUN_DOMAIN, whole_memory());
        pair.harm.lost = 1_000;
        pair.run(TIMEOUT.times(3));
        let before = pair.nics[0].traffic_report(None).unwrap();
        assert!(before.timed_out > 8, "{before:?}");
        pair.nics[1] = Interface::new(&again.build().unwrap(), pair.now);
        pair.harm.lost = 0;
        pair.run(TIMEOUT.times(3));
        let after = pair.nics[0].traffic_report(None).unwrap();
        assert!(after.acknowledged > before.acknowledged + 100, "{after:?}");
        assert_eq!(after.phase, RunPhase::Running, "{op:?}: {after:?}");
        assert_eq!(after.corrupted, 0, "{op:?}: {after:?}");
        assert_eq!(after.unwritten > 0, op == Operation::Get, "{after:?}");
    }
}

/// 16 MiB take 262,144 packets each; the run ends without sending them all.
#[test]
fn a_run_of_large_blocks_ends_soon_after_the_second_stop() {
    let cases = [Operation::Put, Operation::Get, Operation::Get];
    for (op, lost) in cases.into_iter().zip([0, 0, 300]) {
        let domain = Domain {
            length: 1 << 28,
            ..whole_memory()
        };
        let large = |index| {
            let config = config(index).memory_bytes(1 << 28);
            config.domain(RUN_DOMAIN, domain)
        };
        let mut pair = Pair::with(large(0), large(1));
        pair.harm.lost = lost;
        let blocks = TrafficSpec {
            addresses: 2,
            ..spec(op, 1 << 24, 0)
        };
        let nic = &mut pair.nics[0];
        nic.start_traffic(pair.now, 3, blocks.clone()).unwrap();
        for _ in 0..300 {
            let open = pair.nics[0].transfers.open();
            pair.step();
            // One block per step: writing several at once would delay the link.
            assert!(pair.nics[0].transfers.open() <= open + 1);
        }
        assert!(pair.nics[0].transfers.open() > 1);
        pair.nics[0].stop_traffic(pair.now);
        (0..100).for_each(|_| pair.step());
        assert_eq!(
            phase(&pair),
            RunPhase::Draining,
            "the run waits for the transfer"
        );
        let stopped_at = pair.now;
        pair.nics[0].stop_traffic(pair.now);
        while phase(&pair) != RunPhase::Done {
            pair.step();
            assert!(
                pair.now < stopped_at + TIMEOUT + Duration::from_ms(1),
                "{op:?}"
            );
        }
        // The run holds no resources any more, so the next one can use all.
        assert_eq!(pair.nics[0].transfers.open(), 0);
        assert_eq!(pair.nics[0].requester.outstanding.slab.used(), 0);
        pair.harm.lost = 0;
        let next = TrafficSpec {
            run: 8,
            ..spec(op, 1_000, 20)
        };
        pair.nics[0].start_traffic(pair.now, 4, next).unwrap();
        while phase(&pair) != RunPhase::Done {
            pair.step();
            assert!(pair.now < stopped_at + TIMEOUT.times(4), "{op:?}");
        }
        let report = pair.nics[0].traffic_report(Some(8)).unwrap();
        let counts = (report.acknowledged, report.corrupted);
        assert_eq!(counts, (20, 0), "{report:?}");
    }
}

#[test]
fn blocks_go_on_to_others_when_one_target_is_gone() {
    let mut pair = bench();
    // The source is not in the list, and the second target never responds.
    let nobody = NodeId::new(7, 7, 7);
    for nic in &mut pair.nics {
        nic.virtual_nodes = VirtualNodes::new(vec![NODES[0], nobody, NODES[1]]);
    }
    let spec = TrafficSpec {
        pattern: to(&[1, 2]),
        addresses: 8,
        ..spec(Operation::Put, 4_097, 200)
    };
    // The second target is missing from the first block on.
    pair.ghost = Some(nobody);
    pair.nics[0].start_traffic(pair.now, 1, spec).unwrap();
    pair.run(Duration::from_ms(200));
    let report = pair.nics[0].traffic_report(None).unwrap();
    assert_eq!(report.phase, RunPhase::Done, "{report:?}");
    assert_eq!(report.sent, 200, "{report:?}");
    // A partly sent block costs the target an address. Blocks that only waited behind it fail with
    // it and return their addresses. So rounds of up to eight blocks, then seven and so on, each
    // leave at least one address less.
    let most = (1..=8).sum();
    assert!((8..=most).contains(&report.timed_out), "{report:?}");
    assert_eq!(report.sent, report.acknowledged + report.timed_out);
    assert_eq!(report.refused + report.corrupted, 0, "{report:?}");
}

#[test]
fn nothing_of_an_earlier_block_passes_for_a_later_one() {
    let mut pair = bench();
    let spec = spec(Operation::Get, 16_384, 0);
    pair.nics[0].start_traffic(pair.now, 5, spec).unwrap();
    pair.run(Duration::from_ms(2));
    let local = (MEMORY / 4) * 3;
    // Until the data arrives, the end of the destination of a block get holds inverted data.
    let seen = (0..2_000).any(|_| {
        pair.step();
        pair.read(0, local, 1)[0] == !read_line(MEMORY / 2)[0]
    });
    assert!(seen, "no block was overwritten before its get");
    pair.nics[0].runs.stop();
    pair.drain();
    assert_eq!(pair.nics[0].traffic_report(None).unwrap().corrupted, 0);
}

#[test]
fn canary_a_block_with_a_wrong_byte_shows() {
    for op in [Operation::Put, Operation::Get] {
        let mut pair = bench();
        start_both(&mut pair, &spec(op, 16_384, 1));
        // By now the source has written its block, or the target's memory is filled.
        while pair.nics[0].transfers.open() == 0 {
            pair.step();
        }
        let local = (MEMORY / 4) * 3;
        let nic = usize::from(op == Operation::Get);
        let at = [local, MEMORY / 2][nic] + 16_383;
        let byte = pair.read(nic, at, 1)[0];
        pair.write(nic, at, &[byte ^ 4]);
        pair.drain();
        let merged = merged(&pair, None);
        assert_eq!(merged.corrupted, 1, "{op:?}: {merged:?}");
        assert_eq!(merged.sent, 2, "{op:?}: {merged:?}");
    }
}

#[test]
fn one_run_after_the_other_starts_from_nothing() {
    let mut pair = bench();
    for run_number in 1..=20 {
        for op in [Operation::Amo, Operation::Put, Operation::Get] {
            let number = run_number * 3 + (op as u64 + 1) % 3;
            let spec = TrafficSpec {
                run: number,
                ..spec(op, 8, 300)
            };
            let report = run(&mut pair, &spec);
            assert!(report.is_clean(), "{number}: {report:?}");
        }
    }
    // An atomic run that was replaced keeps its count.
    let atomics = merged(&pair, Some(60));
    assert_eq!((atomics.delivered, atomics.sent), (600, 600));
}

#[test]
fn packets_lost_in_transit_count_as_lost_or_unknown_only() {
    let small = [Operation::Put, Operation::Amo, Operation::Get];
    for (op, size) in small.into_iter().zip([16, 8, 32]) {
        let mut pair = bench();
        pair.harm.lost = 5;
        let report = run(&mut pair, &spec(op, size, 4_000));
        assert_eq!(report.sent, 8_000);
        assert_eq!(report.acknowledged + report.timed_out, report.sent);
        let lost = report.lost();
        assert!(lost > 0 && lost <= report.timed_out, "{report:?}");
        assert_right(&report, op);
        if op == Operation::Put {
            assert!(report.missing > 0 && report.missing <= report.lost());
        }
    }
}

#[test]
fn damaged_packets_are_refused_and_distinguished_from_lost_ones() {
    for op in [Operation::Put, Operation::Amo] {
        let mut pair = bench();
        (pair.harm.poisoned, pair.harm.flipped) = (5, 5);
        let report = run(&mut pair, &spec(op, 8, 4_000));
        assert!(report.refused > 0, "{report:?}");
        let ended = report.acknowledged + report.timed_out + report.refused;
        assert_eq!(ended, report.sent);
        assert_right(&report, op);
    }
}

#[test]
fn canary_additions_made_twice_or_by_strangers_show() {
    let with = |change: fn(u64) -> u64| {
        let mut pair = bench();
        let spec = TrafficSpec {
            count: 0,
            duration_ns: 2_000_000,
            ..spec(Operation::Amo, 8, 0)
        };
        start_both(&mut pair, &spec);
        pair.run(Duration::from_ms(1));
        let memory = &mut pair.nics[1].responder.memory;
        memory.update_64(0, change).unwrap();
        pair.drain();
        merged(&pair, None)
    };
    let good = with(|sum| sum);
    assert!(good.is_clean() && good.phase == RunPhase::Done, "{good:?}");
    // The region of source 0 starts at address 0 of the target's memory. One more addition makes
    // the sum too large.
    let twice = with(|old| old + 1);
    assert_eq!(twice.surplus(), 1);
    assert!(!twice.is_clean());
    let undone = with(|old| old - 1);
    assert!(undone.duplicated > 0 && undone.lost() == 1, "{undone:?}");
    let damaged = with(|old| old ^ 1 << 50);
    assert!(damaged.corrupted > 0, "{damaged:?}");
}

#[test]
fn invalid_runs_are_refused() {
    let mut pair = bench();
    let mut refused = |spec: TrafficSpec| {
        let now = pair.now;
        pair.nics[0]
            .start_traffic(now, 1, spec)
            .expect_err("the run is rejected")
    };
    let get = SpecError::GetSize { size: 6, unit: 4 };
    let (size, most) = ((16 << 20) + 1, 16 << 20);
    let short = TrafficSpec {
        ways: Some(RoutingMode::Valiant),
        ..spec(Operation::Put, 4, 1)
    };
    let mut nobody = spec(Operation::Put, 8, 1);
    nobody.pattern = to(&[2]);
    for (spec, error) in [
        (spec(Operation::Amo, 4, 1), SpecError::AmoSize(4)),
        (spec(Operation::Get, 6, 1), get),
        (
            spec(Operation::Put, size, 1),
            SpecError::Size { size, most },
        ),
        (short, SpecError::Unnumbered(4)),
        (nobody, SpecError::Processor(2)),
    ] {
        let text = format!("{spec:?}");
        assert_eq!(refused(spec), error, "{text}");
    }
}

#[test]
fn a_target_without_the_domain_or_with_another_key_refuses_the_run() {
    for build in [
        |index| config(index),
        |index: usize| {
            let mut domain = whole_memory();
            domain.key = KEY + index as u16;
            config(index).domain(RUN_DOMAIN, domain)
        },
    ] {
        let mut pair = Pair::with(build(0), build(1));
        let report = run(&mut pair, &spec(Operation::Put, 8, 10));
        assert_eq!((report.unwilling, report.refusers), (2, vec![0, 1]));
        assert_eq!((report.unreachable, report.sent), (0, 0));
    }
}

#[test]
fn a_target_that_does_not_answer_is_out_of_reach() {
    let mut pair = bench();
    pair.harm.lost = 1_000;
    let before = pair.now;
    let report = run(&mut pair, &spec(Operation::Put, 8, 10));
    assert_eq!((report.unreachable, report.sent), (2, 0));
    let took = pair.now.since(before);
    assert!((TIMEOUT..TIMEOUT.times(2)).contains(&took), "{took:?}");
    assert_ne!(NODES[0], NODES[1]);
}

/// Gets, blocks and additions, some of which find the target's memory altered by `spoil`.
fn spoilt_in_transit(op: Operation, size: u32, spoil: fn(&mut Pair)) -> TrafficReport {
    let mut pair = bench();
    let spec = TrafficSpec {
        duration_ns: 30_000_000,
        window: 64,
        ..spec(op, size, 0)
    };
    pair.nics[0].start_traffic(pair.now, 5, spec).unwrap();
    pair.run(Duration::from_ms(10));
    spoil(&mut pair);
    pair.run(Duration::from_ms(40));
    let report = pair.nics[0].traffic_report(None).unwrap();
    assert_eq!(report.phase, RunPhase::Done, "{report:?}");
    assert!(!report.is_clean(), "{op:?} {size}: {report:?}");
    report
}

const READING: [(Operation, u32); 6] = [
    (Operation::Get, 4),
    (Operation::Get, 8),
    (Operation::Get, 64),
    (Operation::Get, 100),
    (Operation::Get, 4_096),
    (Operation::Amo, 8),
];

/// Regression: the whole contents of the new memory were reported as corrupted.
#[test]
fn memory_of_a_restarted_target_does_not_count_as_corrupted() {
    for (op, size) in READING {
        let report = spoilt_in_transit(op, size, |pair| {
            let again = config(1).domain(RUN_DOMAIN, whole_memory());
            pair.nics[1] = Interface::new(&again.build().unwrap(), pair.now);
        });
        assert_eq!(report.corrupted, 0, "{op:?} {size}: {report:?}");
        assert!(report.unwritten > 0, "{op:?} {size}: {report:?}");
        assert_eq!(report.duplicated, 0);
    }
}

#[test]
fn canary_zeros_in_a_memory_that_has_lived_all_the_time_are_corrupt() {
    for (op, size) in READING {
        let report = spoilt_in_transit(op, size, |pair| {
            pair.write(1, 0, &vec![0; MEMORY as usize]);
        });
        assert!(report.corrupted > 0, "{op:?} {size}: {report:?}");
        assert_eq!(report.unwritten, 0, "{op:?} {size}: {report:?}");
    }
}

/// Regression: a target that had met the predecessor of a restarted source was reported as
/// unreachable.
#[test]
fn a_run_of_an_older_number_is_refused_and_called_that() {
    let mut pair = bench();
    let of_run = |run| TrafficSpec {
        run,
        ..spec(Operation::Put, 8, 10)
    };
    assert!(run(&mut pair, &of_run(9)).is_clean());
    let again = config(0).domain(RUN_DOMAIN, whole_memory());
    pair.nics[0] = Interface::new(&again.build().unwrap(), pair.now);
    pair.nics[0].start_traffic(pair.now, 6, of_run(3)).unwrap();
    pair.run(Duration::from_ms(1));
    let report = merged(&pair, Some(3));
    assert_eq!((report.unreachable, report.sent), (0, 0), "{report:?}");
    assert_eq!(report.outdated_by, 9);
    assert_eq!((report.unwilling, report.refusers), (1, vec![1]));
    assert_eq!(pair.nics[1].counters().runs_outdated, 1);
}

/// Regression: users got `TooMany` until the run was over.
#[test]
fn a_user_has_room_while_a_run_uses_all_outstanding_packets() {
    let mut pair = bench();
    pair.spread = 2_000;
    let spec = TrafficSpec {
        window: 4_096,
        ..spec(Operation::Put, 8, 0)
    };
    pair.nics[0].start_traffic(pair.now, 5, spec).unwrap();
    pair.run(Duration::from_ms(4));
    for user in 0..20 {
        let outstanding = pair.nics[0].requester.outstanding.slab.used();
        assert!(outstanding >= MAX_OUTSTANDING, "{outstanding}");
        let posted = pair.nics[0].post(pair.now, Owner::User(user), &post(get(8), at(64)));
        assert_eq!(posted, Ok(()), "{user}");
        // Longer than any packet and its response take.
        (0..4_100).for_each(|_| pair.step());
        assert_eq!(pair.completions().len(), 1);
    }
}

/// Small messages and blocks are both issued when due, and the NIC reports the due time as
/// deadline.
#[test]
fn messages_of_a_run_with_a_rate_go_when_they_are_due() {
    for (op, size, rate) in [
        (Operation::Put, 8, 200_000),
        (Operation::Get, 64, 50_000),
        (Operation::Amo, 8, 50_000),
        (Operation::Put, 1_000, 10_000),
    ] {
        let mut pair = bench();
        let duration = Duration::from_ms(5);
        let spec = TrafficSpec {
            rate,
            duration_ns: duration.as_ns(),
            ..spec(op, size, 0)
        };
        start_both(&mut pair, &spec);
        let interval = Duration::from_ns(1_000_000_000 / rate);
        while phase(&pair) != RunPhase::Done {
            pair.step();
            if phase(&pair) == RunPhase::Running {
                let next = pair.nics[0]
                    .next_deadline()
                    .expect("a message is due later");
                let is_near = next > pair.now && next <= pair.now + interval;
                assert!(is_near, "{op:?} {size}");
            }
        }
        let due = rate * duration.as_ns() / 1_000_000_000;
        for nic in &pair.nics {
            let report = nic.traffic_report(Some(spec.run)).unwrap();
            assert_eq!((report.sent, report.not_offered), (due, 0), "{op:?} {size}");
        }
    }
}

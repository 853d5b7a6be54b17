//! Traffic runs between two NICs over links that lose frames, stop and recover.

use phitwire_framing::carrier::frame::LinkEnd;

use super::test_bench::{A, B, NicPair as _, Pair, User as _, config, events};
use super::*;
use phitwire::device::{DeviceError, DeviceEvent, TrafficRuns as _};
use phitwire::link::testing::joined::SECOND;
use phitwire::link::{LinkView, NodeLink};
use phitwire::nic::*;
use phitwire::node::Node;
use phitwire::time::Duration;

fn of_gets(run: u64, size: u32, count: u64) -> TrafficSpec {
    TrafficSpec {
        op: Operation::Get,
        ..put_run(run, size, count)
    }
}

fn start(pair: &mut Pair, spec: TrafficSpec) {
    pair.nics[0].start_traffic(pair.now, spec);
}

fn run(pair: &mut Pair, spec: TrafficSpec) -> TrafficReport {
    let run = spec.run;
    start(pair, spec);
    pair.until_traffic_is_done(SECOND);
    merged(pair, run)
}

fn stop(pair: &mut Pair, run: u64) -> TrafficReport {
    pair.nics[0].stop();
    pair.until_traffic_is_done(SECOND);
    merged(pair, run)
}

fn restart_b(pair: &mut Pair) {
    let again = config(LinkEnd::B, 1, 2);
    pair.nics[1] = BlackWidowNic::new(again, pair.now);
}

#[track_caller]
fn assert_some_corrupted(report: &TrafficReport) {
    let is_some = report.corrupted > 0 && report.corrupted < report.acknowledged;
    assert!(is_some, "{report:?}");
    assert!(!report.is_clean());
}

fn put_run(run: u64, size: u32, count: u64) -> TrafficSpec {
    TrafficSpec {
        run,
        pattern: TrafficPattern::List {
            destinations: vec![B],
        },
        size,
        count,
        ..TrafficSpec::default()
    }
}

fn merged(pair: &Pair, run: u64) -> TrafficReport {
    let mut report = pair.nics[0].traffic_report(Some(run)).unwrap();
    if let Some(other) = pair.nics[1].traffic_report(Some(run)) {
        report.merge(&other);
    }
    report
}

#[test]
fn a_run_of_puts_is_verified_at_every_size() {
    let mut pair = Pair::new(1);
    for size in 1..=32 {
        let run = size.into();
        let report = self::run(&mut pair, put_run(run, size, 2_000));
        assert!(report.is_clean(), "{report:?}");
        let counts = [report.sent, report.acknowledged, report.delivered];
        assert_eq!(counts, [2_000; 3]);
        assert_eq!(report.latency.count(), 2_000);
        assert!(report.elapsed_ns > 0 && report.latency.quantile(500) > 0);
        assert!(events(&mut pair.nics[0]).contains(&DeviceEvent::TrafficDone { run }));
    }
    assert_eq!(pair.nics[0].traffic_report(None).unwrap().run, 32);
    assert_eq!(pair.nics[1].traffic_report(None).unwrap().run, 32);
    assert!(pair.nics[0].traffic_report(Some(99)).is_none());
}

#[test]
fn a_run_of_gets_is_verified_and_finds_damage() {
    let mut pair = Pair::new(1);
    for size in [1, 3, 8, 17, 32] {
        let run = size.into();
        let report = self::run(&mut pair, of_gets(run, size, 1_000));
        assert!(report.is_clean(), "{report:?}");
        assert_eq!(report.acknowledged, 1_000, "{report:?}");
    }
    // Canary: one bit of the target's memory is wrong.
    start(&mut pair, of_gets(50, 5, 0));
    pair.run(Duration::from_ms(1));
    let address = (1 << 19) + u64::from(A) * 64 * 64 + 64 * 7 + 4;
    let mut byte = [0];
    pair.nics[1].memory().read(address, &mut byte).unwrap();
    pair.nics[1]
        .memory_mut()
        .write(address, &[byte[0] ^ 1])
        .unwrap();
    pair.run(Duration::from_ms(1));
    assert_some_corrupted(&stop(&mut pair, 50));
}

/// Regression: gets of up to five bytes accepted zeros.
#[test]
fn canary_zeros_in_a_memory_that_has_lived_all_the_time_are_wrong_at_every_size() {
    for size in [1, 2, 5, 8, 32] {
        let mut pair = Pair::new(1);
        start(&mut pair, of_gets(50, size, 0));
        pair.run(Duration::from_ms(1));
        let address = (1 << 19) + u64::from(A) * 64 * 64 + 64 * 7;
        pair.nics[1].memory_mut().write(address, &[0; 64]).unwrap();
        pair.run(Duration::from_ms(1));
        assert_some_corrupted(&stop(&mut pair, 50));
    }
}

/// Regression: everything that gets found in the new memory was reported as corrupted.
#[test]
fn gets_from_a_target_that_was_started_again_are_not_called_corrupted() {
    for size in [1, 3, 8, 32] {
        let mut pair = Pair::new(1);
        let gets = TrafficSpec {
            window: 16,
            ..of_gets(1, size, 0)
        };
        start(&mut pair, gets);
        pair.run(Duration::from_ms(2));
        restart_b(&mut pair);
        pair.run(Duration::from_ms(200));
        let report = stop(&mut pair, 1);
        assert_eq!(report.corrupted, 0, "{size}: {report:?}");
        let some = 101..report.acknowledged;
        assert!(some.contains(&report.unwritten), "{report:?}");
        assert!(!report.is_clean());
        assert_eq!(pair.nics[1].counters().refused_unknown_run, 1);
    }
}

/// Regression: a target that had met the predecessor of a restarted source was reported as
/// unreachable.
#[test]
fn a_run_of_an_older_number_is_refused_and_called_that() {
    let mut pair = Pair::new(1);
    run(&mut pair, put_run(9, 8, 10));
    pair.nics[0] = BlackWidowNic::new(config(LinkEnd::A, 1, 2), pair.now);
    pair.wait_for_links();
    let report = run(&mut pair, put_run(3, 8, 10));
    assert_eq!((report.unreachable, report.sent), (0, 0), "{report:?}");
    assert_eq!(report.outdated_by, 9);
    assert!(!report.is_clean());
    assert_eq!((report.unwilling, report.refusers), (1, vec![B]));
    // A higher number is accepted.
    assert!(run(&mut pair, put_run(10, 8, 10)).is_clean());
}

#[test]
fn both_directions_under_loss_are_exact() {
    let mut pair = Pair::new(4);
    pair.impair("loss 14%");
    let spec = TrafficSpec {
        run: 9,
        processors: vec![A, B],
        duration_ns: 40_000_000,
        window: 500,
        ..TrafficSpec::default()
    };
    pair.nics[0].start_traffic(pair.now, spec.clone());
    pair.nics[1].start_traffic(pair.now, spec.clone());
    let again = pair.nics[0].start(pair.now, spec);
    assert!(matches!(
        again,
        Err(DeviceError::Traffic(SpecError::Busy(9)))
    ));
    pair.until_traffic_is_done(SECOND);
    let report = merged(&pair, 9);
    assert!(report.is_clean(), "{report:?}");
    assert!(report.delivered > 1_000);
    // All four slices carried a part of the traffic.
    for port in 0..4 {
        assert!(pair.nics[0].end(port).unwrap().counters().tx_packets > 50);
    }
}

#[test]
fn a_duration_ends_the_run_and_sets_the_deadline() {
    let mut pair = Pair::new(1);
    let spec = TrafficSpec {
        count: 0,
        duration_ns: 3_000_000,
        ..put_run(4, 8, 0)
    };
    let started = pair.now;
    pair.nics[0].start_traffic(pair.now, spec);
    pair.until(SECOND, |pair| {
        pair.nics[0].traffic_report(None).unwrap().phase == RunPhase::Running
    });
    let wakeup = pair.nics[0].next_wakeup().unwrap();
    assert!(wakeup.at.since(started) <= Duration::from_ms(4));
    pair.until_traffic_is_done(SECOND);
    let elapsed = pair.nics[0].traffic_report(None).unwrap().elapsed_ns;
    assert!((2_900_000..3_500_000).contains(&elapsed), "{elapsed}");
}

#[test]
fn a_target_that_does_not_exist_is_unreachable_not_endless() {
    let mut pair = Pair::new(1);
    let nobody = TrafficPattern::List {
        destinations: vec![77, B],
    };
    let spec = TrafficSpec {
        pattern: nobody,
        ..put_run(5, 8, 100)
    };
    let report = run(&mut pair, spec);
    assert_eq!((report.unreachable, report.delivered), (1, 100));
    assert!(!report.is_clean());
    // The announcement, eight quick repetitions and two even ones.
    assert_eq!(pair.nics[1].counters().discard_misrouted, 11);
}

#[test]
fn a_dead_slice_does_not_hold_up_the_others() {
    let mut pair = Pair::new(4);
    pair.nics[0].start_traffic(pair.now, put_run(6, 8, 0));
    pair.run(Duration::from_ms(1));
    let now = pair.now;
    let lcb = pair.nics[0].end_mut(2).unwrap();
    lcb.link_down(now);
    pair.run(Duration::from_ms(5));
    let before = merged(&pair, 6).delivered;
    // Requests in the failed slice time out, and then the others can use the window.
    pair.run(Duration::from_ms(60));
    assert!(merged(&pair, 6).delivered > before + 1_000);
    let report = stop(&mut pair, 6);
    let wrong = [report.duplicated, report.misordered, report.corrupted];
    assert_eq!(wrong, [0; 3]);
    assert_eq!(report.sent, report.acknowledged + report.timed_out);
}

#[test]
fn after_the_peer_has_restarted_traffic_flows_again() {
    let mut pair = Pair::new(1);
    let spec = TrafficSpec {
        window: 16,
        ..put_run(1, 8, 0)
    };
    pair.nics[0].start_traffic(pair.now, spec);
    pair.run(Duration::from_ms(2));
    restart_b(&mut pair);
    pair.run(Duration::from_ms(200));
    stop(&mut pair, 1);
    let first = pair.nics[0].traffic_report(Some(1)).unwrap();
    assert_eq!(first.sent, first.acknowledged + first.timed_out);
    let report = run(&mut pair, put_run(2, 8, 5_000));
    assert!(report.is_clean() && report.delivered == 5_000, "{report:?}");
}

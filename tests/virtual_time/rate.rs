//! Traffic at a rate: NICs wake only at their own deadlines and when frames arrive.

use phitwire::device::TrafficRuns as _;
use phitwire::nic::{TrafficReport, TrafficSpec};
use phitwire::time::Duration;
use phitwire_blackwidow::nic::BlackWidowNic;

use crate::harness::{Network, live, run, uniform, up};

const RUN_MS: u64 = 20;

/// A run of 20 ms in which each of 8 sources issues `rate` messages per second.
fn at_rate(seed: u64, rate: u64, window: u32) -> (Network, TrafficReport) {
    let mut network = up(&live(8, 4), seed);
    let spec = TrafficSpec {
        rate,
        window,
        duration_ns: Duration::from_ms(RUN_MS).as_ns(),
        count: 0,
        ..uniform(&network, 1, 0)
    };
    let report = run(&mut network, &spec, Duration::from_ms(2_000));
    (network, report)
}

#[test]
fn a_load_that_the_network_carries_is_offered_whole() {
    for rate in [1_000, 20_000] {
        let (network, report) = at_rate(3, rate, 64);
        let due = rate * RUN_MS / 1_000;
        assert_eq!((report.sent, report.not_offered), (8 * due, 0));
        for node in network.nics() {
            let of_one = network.node::<BlackWidowNic>(node).report(Some(1));
            assert_eq!(of_one.expect("each has sent").sent, due);
        }
        // Nothing queues, so the latency does not depend on the rate.
        let median = report.latency.quantile(500);
        assert!(
            median < 200_000,
            "{median} ns at {rate} messages per second"
        );
    }
}

#[test]
fn of_a_load_beyond_the_window_the_rest_is_counted() {
    let (_, report) = at_rate(4, 1_000_000, 2);
    let due = 8 * 1_000_000 * RUN_MS / 1_000;
    assert_eq!(report.sent + report.not_offered, due);
    assert!(report.not_offered > due / 2, "{report:?}");
    // Expect as many as a closed loop with this window sends, which is the limit.
    let mut network = up(&live(8, 4), 4);
    let closed = TrafficSpec {
        window: 2,
        duration_ns: Duration::from_ms(RUN_MS).as_ns(),
        ..uniform(&network, 1, 0)
    };
    let closed = run(&mut network, &closed, Duration::from_ms(2_000));
    let share = report.sent as f64 / closed.sent as f64;
    assert!((0.95..1.05).contains(&share), "{share}");
}

#[test]
fn a_seed_names_a_run_with_a_rate() {
    let trace = |seed| at_rate(seed, 5_000, 64).0.fabric.trace_hash();
    assert_eq!(trace(7), trace(7));
    assert_ne!(trace(7), trace(8));
}

//! Runs without faults.

use phitwire::time::Duration;

use crate::harness::{GET, live, paced, run, uniform, up};

#[test]
fn puts_through_one_router() {
    for spec in [live(2, 2), paced(2, 2)] {
        let mut network = up(&spec, 1);
        let traffic = uniform(&network, 1, 500);
        let report = run(&mut network, &traffic, Duration::from_ms(1_000));
        assert_eq!(
            (report.sent, report.acknowledged, report.delivered),
            (1_000, 1_000, 1_000)
        );
    }
}

#[test]
fn gets_through_one_router() {
    for spec in [live(2, 2), paced(2, 2)] {
        let mut network = up(&spec, 1);
        let mut traffic = uniform(&network, 1, 500);
        (traffic.op, traffic.size) = (GET, 32);
        let report = run(&mut network, &traffic, Duration::from_ms(1_000));
        assert_eq!((report.sent, report.acknowledged), (1_000, 1_000));
    }
}

//! Golden runs: topology, traffic and seed give these counters, byte for byte.
//!
//! A change that is meant regenerates them: `INSTA_UPDATE=always cargo test --test virtual_time
//! golden`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use phitwire::machine::blackwidow::nic::BlackwidowNic;
use phitwire::machine::blackwidow::router::Yarc;
use phitwire::machine::blackwidow::topology::BlackwidowSpec;
use phitwire::nic::{Operation, Pattern, TrafficSpec};
use phitwire::time::Duration;

use crate::harness::{Network, impair_all, live, paced, run, uniform, up};

/// Every counter that is not zero, summed over all nodes and links, with the report and the trace
/// hash.
fn counters(network: &Network, run_id: u64) -> String {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    let mut add = |kind: &str, name: &str, value: u64| {
        *sums.entry(format!("{kind}.{name}")).or_default() += value;
    };
    for node in network.routers() {
        network
            .node::<Yarc>(node)
            .counters()
            .for_each(|name, value| add("router", name, value));
    }
    for node in network.nics() {
        network
            .node::<BlackwidowNic>(node)
            .counters()
            .for_each(|name, value| add("nic", name, value));
    }
    for link in network.links() {
        for (node, port) in network.fabric.ends(link) {
            if let Some(link) = network.fabric.node(node).link(port) {
                link.for_each_counter(&mut |name, value| add("link", name, value));
            }
        }
    }
    let report = network.report(run_id);
    let mut text = format!(
        "trace_hash {:016x}\nnow_ps {}\nsent {}\nacknowledged {}\ndelivered {}\np50_ns {}\np99_ns {}\n",
        network.fabric.trace_hash(),
        network.fabric.now().as_ps(),
        report.sent,
        report.acknowledged,
        report.delivered,
        report.latency.quantile(500),
        report.latency.quantile(990),
    );
    for (name, value) in sums.into_iter().filter(|(_, value)| *value != 0) {
        writeln!(text, "{name} {value}").expect("a string takes everything");
    }
    text
}

fn golden(
    spec: &BlackwidowSpec,
    words: &str,
    traffic: impl Fn(TrafficSpec) -> TrafficSpec,
) -> String {
    let mut network = up(spec, 2006);
    impair_all(&mut network, words);
    let traffic = traffic(uniform(&network, 1, 200));
    run(&mut network, &traffic, Duration::from_ms(60_000));
    counters(&network, 1)
}

#[test]
fn quickstart_with_one_percent_loss() {
    insta::assert_snapshot!(golden(&live(8, 4), "loss 1%", |traffic| traffic));
}

#[test]
fn the_chips_own_depths_and_clock() {
    let gets = |traffic| TrafficSpec {
        op: Operation::Get,
        pattern: Pattern::BitComplement,
        size: 32,
        ..traffic
    };
    insta::assert_snapshot!(golden(&paced(8, 4), "", gets));
}

#[test]
fn a_golden_run_notices_a_change() {
    let one = golden(&live(4, 4), "", |traffic| traffic);
    let same = golden(&live(4, 4), "", |traffic| traffic);
    let other = golden(&live(4, 4), "", |traffic| TrafficSpec {
        size: 9,
        ..traffic
    });
    assert_eq!(one, same);
    assert_ne!(one, other);
}

//! Tests of the metrics of a made-up lab, and of the dashboard's queries.

use std::collections::BTreeSet;

use phitwire::device::PipelineReport;
use phitwire::device::pipeline::Stage;
use phitwire::nic::{LatencyCounts, TrafficReport};
use phitwire_nodes::control::RoutingReport;
use prometheus::TextEncoder;
use prometheus::proto::MetricType;
use serde_json::Value;

use super::families::of;
use crate::watch::Sample;
use crate::watch::tests::lab;

const DASHBOARD: &str = include_str!("../../../../../docs/grafana/phitwire.json");

/// A lab with one instance of every exported quantity.
fn sample() -> (String, Sample) {
    let (network, mut sample) = lab();
    let router = &mut sample.nodes[0];
    router.routing = Some(RoutingReport::default());
    let mut stage = Stage::inside("row buffer", "phits", "tile").channels(&["request"]);
    stage = stage.capacity([16]).stalls(8);
    stage.holds(0, [3]);
    stage.holds(5, [4]);
    router.pipeline = Some(PipelineReport {
        stages: vec![stage],
    });
    let link = &mut router.links[0];
    (link.rtt_ns, link.heard_ms, link.credits) = (Some(2_000), Some(5), vec![9, 9]);
    link.lane_retries = vec![0; 3];
    let port = router.links[0].port;
    for (name, value) in [
        (format!("port{port}.tx_frames"), 5),
        ("noise.flipped_bits".to_owned(), 6),
        ("noise_flipped_bits".to_owned(), 7),
        ("loop.slept_ns".to_owned(), 1_500_000_000),
        ("io.bytes_sent".to_owned(), 1),
        ("io.bytes_received".to_owned(), 1),
    ] {
        router.counters.insert(name, value);
    }
    let nic = sample.nodes.last_mut().expect("it has nodes");
    nic.traffic = Some(TrafficReport {
        acknowledged: 3,
        latency: LatencyCounts {
            buckets: vec![(900, 1), (9_000, 2)],
            max_ns: 9_000,
        },
        ..TrafficReport::default()
    });
    sample.nodes[1].silent = Some("it stands still".into());
    (network.summary(), sample)
}

fn text(of_sample: Option<&(String, Sample)>) -> String {
    let families = of("demo", of_sample);
    let text = TextEncoder::new().encode_to_string(&families);
    text.expect("families that are not empty")
}

#[test]
fn a_lab_is_exported_in_the_text_format() {
    let text = text(Some(&sample()));
    for line in [
        "phitwire_lab_up{lab=\"demo\"} 1",
        "# TYPE phitwire_link_frames_sent_total counter",
        "phitwire_node_noise_flipped_bit_total{lab=\"demo\",node=\"r1-0\"} 6",
        "phitwire_node_loop_slept_seconds_total{lab=\"demo\",node=\"r1-0\"} 1.5",
        "phitwire_node_up{lab=\"demo\",node=\"r1-1\",kind=\"router\"} 0",
        "phitwire_stage_held{lab=\"demo\",node=\"r1-0\",stage=\"row buffer\",unit=\"phits\",channel=\"request\"} 7",
        "phitwire_stage_stalls_total{lab=\"demo\",node=\"r1-0\",stage=\"row buffer\",unit=\"phits\"} 8",
        "# TYPE phitwire_traffic_latency_seconds histogram",
        "phitwire_traffic_latency_seconds_bucket{lab=\"demo\",node=\"nic7\",le=\"0.000001\"} 1",
        "phitwire_traffic_latency_seconds_count{lab=\"demo\",node=\"nic7\"} 3",
    ] {
        assert!(
            text.lines().any(|other| other == line),
            "no {line} in\n{text}"
        );
    }
    assert!(text.contains("phitwire_port_tx_frames_total{lab=\"demo\",node=\"r1-0\",port=\""));
    let silent = |line: &&str| line.contains("node=\"r1-1\"") && !line.contains("_node_up");
    assert_eq!(
        text.lines().find(silent),
        None,
        "a silent node has no other metrics"
    );
}

#[test]
fn names_go_by_the_conventions_and_no_series_comes_twice() {
    let sample = sample();
    for family in of("demo", Some(&sample)) {
        let name = family.name();
        let is_counter = family.get_field_type() == MetricType::COUNTER;
        assert_eq!(name.ends_with("_total"), is_counter, "{name}");
        assert!(!family.help().is_empty(), "{name}");
        for unit in ["_ns", "_us", "_ms"] {
            assert!(!name.contains(unit), "{name} is not in a base unit");
        }
    }
    let text = text(Some(&sample));
    let series = text.lines().filter(|line| !line.starts_with('#'));
    let mut seen = BTreeSet::new();
    for line in series {
        let (name, _) = line.rsplit_once(' ').expect("a name and a value");
        assert!(seen.insert(name), "{name} twice");
    }
}

#[test]
fn a_lab_that_has_gone_is_not_up() {
    let text = text(None);
    assert!(text.contains("phitwire_lab_up{lab=\"demo\"} 0\n"), "{text}");
    assert!(!text.contains("phitwire_node"));
}

/// The names of phitwire's metrics in an expression.
fn named(expression: &str) -> impl Iterator<Item = &str> {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("phitwire_"))
}

fn expressions<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_str() {
                    Some(text) if name == "expr" || name == "query" || name == "definition" => {
                        found.push(text);
                    }
                    _ => expressions(value, found),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| expressions(value, found)),
        _ => {}
    }
}

#[test]
fn the_dashboard_queries_only_exported_metrics() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("JSON");
    let reported: BTreeSet<String> = of("demo", Some(&sample()))
        .into_iter()
        .flat_map(|family| {
            let name = family.name();
            [
                name.to_owned(),
                format!("{name}_bucket"),
                format!("{name}_count"),
            ]
        })
        .collect();
    let mut found = Vec::new();
    expressions(&dashboard, &mut found);
    let names: BTreeSet<&str> = found
        .iter()
        .flat_map(|expression| named(expression))
        .collect();
    assert!(names.len() >= 10, "{names:?}");
    let missing: Vec<_> = names
        .iter()
        .filter(|name| !reported.contains(**name))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(named("rate(phitwire_nonsense_total[1m])").eq(["phitwire_nonsense_total"]));
}

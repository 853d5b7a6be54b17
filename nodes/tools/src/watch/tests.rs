//! Tests of events and rates, with made-up samples.

use crate::machines::machines;
use phitwire::net::{Network, NodeRef};
use phitwire::nic::{RunPhase, TrafficReport};
use phitwire_nodes::control::{LinkReport, NodeKind, RoutingReport};

use super::{EventDetector, EventKind, NodeSample, Rates, Sample, events};

const DESCRIPTION: &str = include_str!("../../../../netns-scripts/topologies/quickstart.toml");

/// The network of the quickstart, and a sample of it, healthy and idle.
pub fn lab() -> (Box<dyn Network>, Sample) {
    let network = machines()
        .read("quickstart.toml", DESCRIPTION)
        .expect("a network");
    let mut nodes: Vec<NodeSample> = network
        .nodes()
        .into_iter()
        .zip(100..)
        .map(|(node, pid)| {
            let kind = match node {
                NodeRef::Chip(_) => NodeKind::Router,
                NodeRef::Processor(_) => NodeKind::Nic,
            };
            NodeSample {
                pid: Some(pid),
                ..NodeSample::unknown(network.node_name(node).into_owned(), kind)
            }
        })
        .collect();
    for id in 0..network.link_count() {
        let (a, b) = network.ends(id);
        for (end, other) in [(a, b), (b, a)] {
            let name = network.node_name(end.node);
            let node = nodes.iter_mut().find(|node| node.name == name);
            node.expect("it is there").links.push(LinkReport {
                port: end.port,
                link: id as u16,
                peer: network.end_name(other),
                state: "active".to_owned(),
                lcb: "active".to_owned(),
                up: true,
                rx_lanes: 3,
                tx_lanes: 3,
                ..LinkReport::default()
            });
        }
    }
    let sample = Sample {
        at_ms: 1_000,
        took_ms: 1,
        nodes,
    };
    (network, sample)
}

/// The first link of a node, to change it.
fn first_link(sample: &mut Sample, node: usize) -> &mut LinkReport {
    &mut sample.nodes[node].links[0]
}

fn later(sample: &Sample) -> Sample {
    Sample {
        at_ms: sample.at_ms + 500,
        ..sample.clone()
    }
}

fn kinds(before: &Sample, after: &Sample) -> Vec<EventKind> {
    let events = events(before, after).into_iter();
    events.map(|event| event.kind).collect()
}

#[test]
fn each_event_is_reported_once() {
    let (_, before) = lab();
    assert_eq!(kinds(&before, &later(&before)), [], "nothing has happened");
    type Change = fn(&mut Sample);
    let changes: [(Change, EventKind); 9] = [
        (
            |s| s.nodes[0].silent = Some("stopped".into()),
            EventKind::NodeSilent,
        ),
        (|s| s.nodes[0].pid = Some(9), EventKind::NodeRestarted),
        (|s| first_link(s, 0).up = false, EventKind::LinkDown),
        (|s| first_link(s, 0).rx_lanes = 2, EventKind::LaneLost),
        (|s| first_link(s, 0).impaired = true, EventKind::Impaired),
        (
            |s| s.nodes[0].routing.as_mut().expect("set").digest = "b".into(),
            EventKind::Reroute,
        ),
        (
            |s| {
                let port = s.nodes[0].links[0].port;
                let name = format!("port{port}.fault_link_down");
                s.nodes[0].counters.insert(name, 1);
            },
            EventKind::FaultInjected,
        ),
        (
            |s| {
                s.nodes[3].traffic = Some(TrafficReport {
                    run: 7,
                    phase: RunPhase::Running,
                    ..TrafficReport::default()
                });
            },
            EventKind::TrafficStarted,
        ),
        (|s| first_link(s, 0).tx_lanes = 1, EventKind::LaneLost),
    ];
    let mut before = before;
    before.nodes[0].routing = Some(RoutingReport {
        digest: "a".into(),
        ..RoutingReport::default()
    });
    for (change, kind) in changes {
        let mut after = later(&before);
        change(&mut after);
        assert_eq!(kinds(&before, &after), [kind]);
        let event = &events(&before, &after)[0];
        assert_eq!(event.at_ms, after.at_ms);
        assert!(!event.text.is_empty());
    }
}

#[test]
fn changes_at_a_silent_node_are_reported_when_it_answers() {
    let (_, mut well) = lab();
    well.nodes[5].traffic = Some(TrafficReport {
        run: 7,
        ..TrafficReport::default()
    });
    let mut silent = later(&well);
    for at in [0, 5] {
        let (name, kind) = (silent.nodes[at].name.clone(), silent.nodes[at].kind);
        silent.nodes[at] = NodeSample {
            silent: Some("it does not answer".into()),
            ..NodeSample::unknown(name, kind)
        };
    }
    let still = later(&silent);
    let mut back = later(&well);
    back.at_ms = still.at_ms + 500;
    first_link(&mut back, 0).up = false;
    back.nodes[5].pid = Some(9);
    let mut detector = EventDetector::default();
    let mut kinds = |before: &Sample, after: &Sample| {
        let events = detector.detect(before, after).into_iter();
        events.map(|event| event.kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&well, &silent), [EventKind::NodeSilent; 2]);
    assert_eq!(kinds(&silent, &still), []);
    let expected = [
        EventKind::NodeBack,
        EventKind::LinkDown,
        EventKind::NodeBack,
        EventKind::NodeRestarted,
    ];
    assert_eq!(kinds(&still, &back), expected);
    assert_eq!(kinds(&back, &later(&back)), [], "once");
}

#[test]
fn recoveries_are_reported_too() {
    let (_, well) = lab();
    let mut broken = later(&well);
    first_link(&mut broken, 0).up = false;
    first_link(&mut broken, 1).rx_lanes = 1;
    first_link(&mut broken, 1).impaired = true;
    broken.nodes[4].silent = Some("gone".into());
    let expected = [
        EventKind::LinkUp,
        EventKind::ImpairmentGone,
        EventKind::LaneBack,
        EventKind::NodeBack,
    ];
    assert_eq!(kinds(&broken, &later(&well)), expected);
    let mut gone = later(&broken);
    gone.nodes[4].silent = Some("still gone".into());
    assert_eq!(kinds(&broken, &gone), [], "it was silent before");
}

#[test]
fn the_end_of_a_run_is_reported_once() {
    let (_, mut before) = lab();
    let report = |phase, acknowledged| {
        Some(TrafficReport {
            run: 7,
            phase,
            acknowledged,
            ..TrafficReport::default()
        })
    };
    before.nodes[3].traffic = report(RunPhase::Running, 10);
    let mut after = later(&before);
    after.nodes[3].traffic = report(RunPhase::Done, 20);
    assert_eq!(kinds(&before, &after), [EventKind::TrafficDone]);
    assert_eq!(kinds(&after, &later(&after)), []);
}

#[test]
fn rates_are_those_of_a_direction_and_of_its_own_time() {
    let (network, before) = lab();
    let mut after = later(&before);
    let (a, b) = network.ends(0);
    let change = |sample: &mut Sample, end: phitwire::net::End, to: &dyn Fn(&mut LinkReport)| {
        let name = network.node_name(end.node);
        let node = sample.nodes.iter_mut().find(|node| node.name == name);
        let links = &mut node.expect("it is there").links;
        to(links
            .iter_mut()
            .find(|l| l.port == end.port)
            .expect("it is there"));
    };
    change(&mut after, a, &|link| {
        (link.frames_sent, link.resent) = (500, 5)
    });
    change(&mut after, b, &|link| {
        (link.frames_received, link.bad_checks) = (400, 3);
        link.frames_sent = 250;
    });
    let rates = Rates::between(&*network, &before, &after);
    let [there, back] = &rates.links[0].directions;
    assert_eq!(
        (there.frames, there.resent, there.bad_checks),
        (1000.0, 10.0, 6.0)
    );
    assert_eq!((there.share, back.share), (0.1, 0.05));
    assert_eq!(
        (back.frames, back.resent, back.bad_checks),
        (500.0, 0.0, 0.0)
    );
    assert_eq!(there.from, network.node_name(a.node));
    assert_eq!((there.from_port, there.to_port), (a.port, b.port));

    // Nothing is known of a new process, so its sent count is inferred from the received count of
    // its peer.
    let name = network.node_name(a.node).into_owned();
    let node = after.nodes.iter_mut().find(|node| node.name == name);
    node.expect("it is there").pid = Some(1);
    let rates = Rates::between(&*network, &before, &after);
    assert_eq!(rates.links[0].directions[0].frames, 800.0);

    let none = Rates::between(&*network, &before, &before);
    assert!(
        none.links
            .iter()
            .all(|link| link.directions[0].frames == 0.0)
    );
}

#[test]
fn a_sample_reads_as_it_was_written() {
    let (_, mut sample) = lab();
    sample.nodes[0].counters.insert("port1.tx_frames".into(), 7);
    sample.nodes[0]
        .counters
        .insert("port10.tx_frames".into(), 8);
    let port: Vec<_> = sample.nodes[0].port_counters(1).collect();
    assert_eq!(port, [("tx_frames", 7)], "port 10 is not port 1");
    let text = serde_json::to_string(&sample).expect("plain data");
    let read: Sample = serde_json::from_str(&text).expect("as written");
    assert_eq!(read, sample);
}

//! Moments of a lab.

use std::collections::BTreeMap;

use phitwire_nodes::control::LinkReport;

use super::encoder::{EndMoment, Moment, NodeMoment};
use super::header::{Clock, EndField, Header, NodeField, Source, latency_bucket};
use crate::watch::{NodeSample, Sample};

/// The header of a recording of a lab that begins at `begin_ms`, in milliseconds since 1970.
pub fn header_of(network: &dyn phitwire::net::Network, lab: &str, begin_ms: u64) -> Header {
    let clock = Clock {
        unit: "ms".to_owned(),
        per_second: 1e3,
        begin_ms: Some(begin_ms),
    };
    Header::new(network, lab, Source::Lab, clock)
}

/// The moment of a sample, for the nodes and links of `header`.
pub fn moment_of(header: &Header, sample: &Sample) -> Moment {
    let by_name: BTreeMap<&str, &NodeSample> = sample
        .nodes
        .iter()
        .map(|node| (node.name.as_str(), node))
        .collect();
    let nodes: Vec<Option<&NodeSample>> = header
        .nodes
        .iter()
        .map(|node| by_name.get(node.name.as_str()).copied())
        .collect();
    let ends = header.links.iter().flat_map(|link| {
        link.0.map(|(node, port)| {
            let node = nodes[node as usize].filter(|node| node.silent.is_none())?;
            Some(end(node.link(port)?))
        })
    });
    Moment {
        ends: ends.collect(),
        nodes: nodes.iter().map(|found| node(*found)).collect(),
    }
}

/// The moment of a link end from its report.
pub(crate) fn end(report: &LinkReport) -> EndMoment {
    let mut moment = EndMoment {
        state: report.state.clone(),
        why: report.why.clone(),
        ..EndMoment::default()
    };
    let mut set = |field: EndField, value: u64| moment.numbers[field as usize] = value as i64;
    set(EndField::Up, report.up.into());
    set(EndField::RxLanes, report.rx_lanes.into());
    set(EndField::TxLanes, report.tx_lanes.into());
    set(EndField::Carried, report.frames_sent);
    set(EndField::Received, report.frames_received);
    set(EndField::Sent, report.sent);
    set(EndField::Resent, report.resent);
    set(EndField::BadChecks, report.bad_checks);
    set(EndField::Window, report.window);
    set(EndField::RoundTrip, report.rtt_ns.unwrap_or(0));
    let credits = EndField::Credits as usize;
    for (vc, &left) in report.credits.iter().take(EndField::VCS).enumerate() {
        moment.numbers[credits + vc] = left.into();
    }
    for (vc, &offer) in report.offers.iter().take(EndField::VCS).enumerate() {
        moment.numbers[credits + EndField::VCS + vc] = offer.into();
    }
    moment
}

fn node(sample: Option<&NodeSample>) -> NodeMoment {
    let Some(sample) = sample else {
        return NodeMoment {
            silent: Some("no sample of this node".to_owned()),
            ..NodeMoment::default()
        };
    };
    let mut moment = NodeMoment {
        silent: sample.silent.clone(),
        pipeline: sample.pipeline.clone(),
        ..NodeMoment::default()
    };
    let mut set = |field: NodeField, value: u64| moment.numbers[field as usize] = value as i64;
    set(NodeField::Process, sample.pid.unwrap_or(0).into());
    set(NodeField::BytesSent, sample.counter("io.bytes_sent"));
    set(
        NodeField::BytesReceived,
        sample.counter("io.bytes_received"),
    );
    if let Some(run) = &sample.traffic {
        set(NodeField::Run, run.run);
        set(NodeField::Sent, run.sent);
        set(NodeField::Answered, run.acknowledged);
        set(NodeField::TimedOut, run.timed_out);
        set(NodeField::Outstanding, run.outstanding);
        for &(ns, count) in &run.latency.buckets {
            moment.numbers[NodeField::Latencies as usize + latency_bucket(ns)] += count as i64;
        }
    }
    moment
}

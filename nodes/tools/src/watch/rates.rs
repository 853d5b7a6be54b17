//! Rates per second between two samples.

use phitwire::net::{End, Network, NodeRef};
use phitwire_nodes::control::LinkReport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sample::{NodeSample, Sample};

/// Frames per second at which a wire of a lab counts as full: an arbitrary scale, since the wires
/// of a lab have no rate of their own. `view/page/data.js` has the same.
const FULL: f64 = 10_000.0;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rates {
    /// Seconds between the two samples.
    pub seconds: f64,
    /// Rates by the link's number in the topology.
    pub links: Vec<LinkRates>,
    /// In the order of the samples.
    pub nodes: Vec<NodeRates>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkRates {
    /// Number of the link in the topology.
    pub link: usize,
    /// Rates from end A to end B, and back.
    pub directions: [DirectionRates; 2],
}

/// Rates of one direction of a link; zero if uncounted because an end is silent or was restarted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DirectionRates {
    /// The sending node.
    pub from: String,
    /// Port of the sending node.
    pub from_port: u8,
    /// The receiving node.
    pub to: String,
    /// Port of the receiving node.
    pub to_port: u8,
    /// Frames per second: as sent, or as received if the sender is silent.
    pub frames: f64,
    /// Packets, or sets, resent per second.
    pub resent: f64,
    /// Packets, or sets, received with an invalid check, per second.
    pub bad_checks: f64,
    /// `frames` relative to 10,000 per second, at most 1: an arbitrary scale, since the wires of a
    /// lab have no rate of their own.
    pub share: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeRates {
    /// Name of the node.
    pub node: String,
    /// Bytes of frames sent per second, without encapsulation.
    pub bytes_sent: f64,
    /// Bytes of frames received per second.
    pub bytes_received: f64,
    /// Messages of the latest traffic run that were acknowledged, per second.
    pub acknowledged: f64,
    /// Messages of that run that were sent, per second.
    pub sent: f64,
}

impl Rates {
    /// The rates between two samples of a lab that runs `network`; all zero if no time passed.
    pub fn between(network: &dyn Network, before: &Sample, after: &Sample) -> Self {
        let seconds = after.at_ms.saturating_sub(before.at_ms) as f64 / 1e3;
        let pair = |name: &str| Some((before.node(name)?, after.node(name)?));
        let names = |node: NodeRef| network.node_name(node).into_owned();
        let links: Vec<LinkRates> = (0..network.link_count())
            .map(|link| {
                let (a, b) = network.ends(link);
                let ends = [a, b].map(|end| Watched::new(names(end.node), end, &pair));
                let [a, b] = &ends;
                let directions = [(a, b), (b, a)].map(|(from, to)| from.towards(to, seconds));
                LinkRates { link, directions }
            })
            .collect();
        let nodes = after.nodes.iter();
        let nodes = nodes.map(|node| node_rates(before.node(&node.name), node, seconds));
        Self {
            seconds,
            nodes: nodes.collect(),
            links,
        }
    }
}

/// A link end in both samples.
struct Watched<'a> {
    name: String,
    port: u8,
    reports: Option<(&'a LinkReport, &'a LinkReport)>,
}

impl<'a> Watched<'a> {
    fn new(
        name: String,
        end: End,
        pair: &impl Fn(&str) -> Option<(&'a NodeSample, &'a NodeSample)>,
    ) -> Self {
        let nodes = pair(&name).filter(|(before, after)| before.pid == after.pid);
        let reports =
            nodes.and_then(|(before, after)| Some((before.link(end.port)?, after.link(end.port)?)));
        Self {
            name,
            port: end.port,
            reports,
        }
    }

    fn rate(&self, count: impl Fn(&LinkReport) -> u64, seconds: f64) -> Option<f64> {
        let (before, after) = self.reports?;
        Some(per_second(count(before), count(after), seconds))
    }

    fn towards(&self, to: &Self, seconds: f64) -> DirectionRates {
        let sent = self.rate(|link| link.frames_sent, seconds);
        let received = || to.rate(|link| link.frames_received, seconds);
        let frames = sent.or_else(received).unwrap_or(0.0);
        DirectionRates {
            from: self.name.clone(),
            from_port: self.port,
            to: to.name.clone(),
            to_port: to.port,
            frames,
            resent: self.rate(|link| link.resent, seconds).unwrap_or(0.0),
            bad_checks: to.rate(|link| link.bad_checks, seconds).unwrap_or(0.0),
            share: (frames / FULL).min(1.0),
        }
    }
}

fn node_rates(before: Option<&NodeSample>, after: &NodeSample, seconds: f64) -> NodeRates {
    let mut rates = NodeRates {
        node: after.name.clone(),
        ..NodeRates::default()
    };
    let Some(before) = before.filter(|before| before.pid == after.pid) else {
        return rates;
    };
    let counter = |name| per_second(before.counter(name), after.counter(name), seconds);
    rates.bytes_sent = counter("io.bytes_sent");
    rates.bytes_received = counter("io.bytes_received");
    if let (Some(old), Some(new)) = (&before.traffic, &after.traffic)
        && old.run == new.run
    {
        rates.acknowledged = per_second(old.acknowledged, new.acknowledged, seconds);
        rates.sent = per_second(old.sent, new.sent, seconds);
    }
    rates
}

/// The rate of a counter; zero if the counter restarted.
fn per_second(before: u64, after: u64, seconds: f64) -> f64 {
    match seconds > 0.0 {
        true => after.saturating_sub(before) as f64 / seconds,
        false => 0.0,
    }
}

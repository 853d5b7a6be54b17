//! A lab at one moment, as plain data.

use std::collections::BTreeMap;

use phitwire::nic::TrafficReport;
use phitwire_nodes::control::{LinkReport, NodeKind, PipelineReport, RoutingReport};
use serde::{Deserialize, Serialize};

/// All nodes of a lab, asked within one interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// When it was taken: milliseconds since 1970, UTC.
    pub at_ms: u64,
    /// Milliseconds that taking it took.
    pub took_ms: u64,
    /// The nodes, in the order of the network: routers first.
    pub nodes: Vec<NodeSample>,
}

/// What one node has said of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeSample {
    /// Its name.
    pub name: String,
    /// What it is, as the network has it.
    pub kind: NodeKind,
    /// Why it does not answer, if it does not; then all else is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent: Option<String>,
    /// Its process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Every counter by name, as `phitwire ctl NODE stats` shows them.
    pub counters: BTreeMap<String, u64>,
    /// How its links stand, by port.
    pub links: Vec<LinkReport>,
    /// How a router's routing stands, where its tables can be replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routing: Option<RoutingReport>,
    /// What is in the stages of a router's pipeline, where that can be asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<PipelineReport>,
    /// The latest traffic run at a network interface, with the latencies of its messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<TrafficReport>,
}

impl Sample {
    /// The node of that name.
    pub fn node(&self, name: &str) -> Option<&NodeSample> {
        self.nodes.iter().find(|node| node.name == name)
    }
}

impl NodeSample {
    /// A node of which nothing is known.
    pub fn unknown(name: String, kind: NodeKind) -> Self {
        Self {
            name,
            kind,
            silent: None,
            pid: None,
            counters: BTreeMap::new(),
            links: Vec::new(),
            routing: None,
            pipeline: None,
            traffic: None,
        }
    }

    /// The link of a port.
    pub fn link(&self, port: u8) -> Option<&LinkReport> {
        self.links.iter().find(|link| link.port == port)
    }

    /// A counter; zero where there is none.
    pub fn counter(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or(0)
    }

    /// Counters of a port, without `portN.` in front.
    pub fn port_counters(&self, port: u8) -> impl Iterator<Item = (&str, u64)> {
        let prefix = format!("port{port}.");
        let from = self.counters.range(prefix.clone()..);
        from.map_while(move |(name, &value)| Some((name.strip_prefix(&prefix)?, value)))
    }
}

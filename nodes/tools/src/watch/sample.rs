//! A lab at one moment, as plain data.

use std::collections::BTreeMap;

use phitwire::nic::TrafficReport;
use phitwire_nodes::control::{LinkReport, NodeKind, PipelineReport, RoutingReport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The state of all nodes of a lab, taken within one interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// When it was taken: milliseconds since 1970, UTC.
    pub at_ms: u64,
    /// Duration of the sample, in milliseconds.
    pub took_ms: u64,
    /// The nodes, in the order of the network: routers first.
    pub nodes: Vec<NodeSample>,
}

/// The reports of one node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeSample {
    /// Name of the node.
    pub name: String,
    /// Role of the node.
    pub kind: NodeKind,
    /// Why the node does not reply; if present, everything else is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub silent: Option<String>,
    /// Process id of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32")]
    pub pid: Option<u32>,
    /// All counters by name, as in `phitwire ctl NODE stats`.
    pub counters: BTreeMap<String, u64>,
    /// Links of the node, by port.
    pub links: Vec<LinkReport>,
    /// A router's routing state, if its tables can be replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RoutingReport")]
    pub routing: Option<RoutingReport>,
    /// The content of a router's pipeline stages, if available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "PipelineReport")]
    pub pipeline: Option<PipelineReport>,
    /// The latest traffic run of a NIC, with the latencies of its messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "TrafficReport")]
    pub traffic: Option<TrafficReport>,
}

impl Sample {
    pub fn node(&self, name: &str) -> Option<&NodeSample> {
        self.nodes.iter().find(|node| node.name == name)
    }
}

impl NodeSample {
    /// A node with no data.
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

    pub fn link(&self, port: u8) -> Option<&LinkReport> {
        self.links.iter().find(|link| link.port == port)
    }

    /// A counter; zero if missing.
    pub fn counter(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or(0)
    }

    /// Counters of a port, without the prefix `portN.`.
    pub fn port_counters(&self, port: u8) -> impl Iterator<Item = (&str, u64)> {
        let prefix = format!("port{port}.");
        let from = self.counters.range(prefix.clone()..);
        from.map_while(move |(name, &value)| Some((name.strip_prefix(&prefix)?, value)))
    }
}

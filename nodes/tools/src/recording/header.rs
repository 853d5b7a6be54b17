//! The header of a recording.

use phitwire::net::Network;
use phitwire_nodes::control::NodeKind;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The version of the format.
const VERSION: u32 = 1;
/// Maximum number of nodes and of links, which bounds the memory for an untrusted file.
const MOST: usize = 1 << 16;
/// Size limit of a drawing.
const MOST_DRAWING: usize = 16 << 20;

/// The numbers of a link end, in this order. They are followed by the credits that the end has left
/// on each of [`VCS`](EndField::VCS) virtual channels, and by those that its peer offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum EndField {
    /// The link state, a text.
    State,
    /// 1 if packets flow, otherwise 0.
    Up,
    /// Number of lanes in use for receiving.
    RxLanes,
    /// Number of lanes in use for sending.
    TxLanes,
    /// Units sent on the wire: see [`Header::carried`].
    Carried,
    /// Units received from the wire.
    Received,
    /// Units sent for the first time.
    Sent,
    Resent,
    /// Units received with an invalid check.
    BadChecks,
    /// Unacknowledged units.
    Window,
    /// The round trip, in nanoseconds.
    RoundTrip,
    /// Why packets do not flow, a text.
    Why,
    /// The first of the credits.
    Credits,
}

impl EndField {
    /// Virtual channels whose credits are recorded.
    pub const VCS: usize = 8;
}

/// Count of numbers per link end.
pub const END_FIELDS: usize = EndField::Credits as usize + 2 * EndField::VCS;

/// The numbers of a node, in this order, followed by [`LATENCY_BUCKETS`] counts of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum NodeField {
    /// Why the node does not reply, a text; none if it does.
    Silent,
    /// Process id of the node.
    Process,
    /// Bytes of frames sent.
    BytesSent,
    /// Bytes of frames received.
    BytesReceived,
    /// Number of the latest traffic run.
    Run,
    /// Messages sent in that run.
    Sent,
    /// Messages acknowledged in that run.
    Answered,
    /// Messages timed out in that run.
    TimedOut,
    /// Messages without a response yet.
    Outstanding,
    /// The first of the latencies.
    Latencies,
}

/// Count of latency buckets: see [`latency_bucket`].
pub const LATENCY_BUCKETS: usize = 48;

/// Count of numbers per node.
pub const NODE_FIELDS: usize = NodeField::Latencies as usize + LATENCY_BUCKETS;

/// The bucket of a latency. The first bucket ends at 256 ns, and bounds double every two buckets.
pub fn latency_bucket(ns: u64) -> usize {
    let doublings = (ns.max(1) as f64 / 256.0).log2();
    let bucket = (2.0 * doublings).ceil().max(0.0) as usize;
    bucket.min(LATENCY_BUCKETS - 1)
}

/// The kind of network that was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// A lab of processes.
    Lab,
    /// A simulation in virtual time.
    Sim,
}

/// The unit of the lines' times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clock {
    /// The unit: `ms`, `cycles`.
    pub unit: String,
    /// Units per second of playback.
    pub per_second: f64,
    /// Wall-clock time of zero, in milliseconds since 1970, UTC; absent for other clocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begin_ms: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeHead {
    pub name: String,
    pub kind: NodeKind,
}

/// A link: for ends A and B, the index of the node in the node list, and the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkHead(pub [(u32, u8); 2]);

/// The fixed part of a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    pub phitrec: u32,
    /// Name of the lab or network.
    pub name: String,
    /// The network in one line.
    pub summary: String,
    pub source: Source,
    /// The unit of the lines' times.
    pub clock: Clock,
    /// The unit of [`EndField::Carried`]: `frames`, `phits`.
    pub carried: String,
    /// Capacity of a wire in the unit of `carried`, per unit of the clock, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full: Option<f64>,
    /// Count of numbers per link end and per node, and of the credits and latencies among them.
    pub layout: [usize; 4],
    /// The nodes, routers first.
    pub nodes: Vec<NodeHead>,
    /// The links, by number.
    pub links: Vec<LinkHead>,
    /// The drawing of the network, unless it is too large: elements of class `link` have link
    /// numbers in `data-links`, those of class `node` names in `data-nodes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub svg: Option<String>,
    /// A drawing in the same style with one box per group, subtree or plane, to begin with if `svg`
    /// is large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overview: Option<String>,
}

/// Why a header is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HeaderError {
    /// Another version of the format.
    #[error("the recording has format version {0}; this command reads version {VERSION}")]
    Version(u32),
    /// Another layout of the numbers.
    #[error("the recording has the layout {0:?}; this command reads {LAYOUT:?}")]
    Layout([usize; 4]),
    /// Too many nodes or links.
    #[error("the recording has {0} {1}; the limit is {MOST}")]
    TooMany(usize, &'static str),
    /// A link to a node that does not exist.
    #[error("link {0} ends at node {1}, but there are only {2} nodes")]
    NoSuchNode(usize, u32, usize),
    #[error("invalid clock of {0} units per second: expected a number above zero")]
    Clock(String),
    #[error("the drawing {0}")]
    Drawing(&'static str),
}

const LAYOUT: [usize; 4] = [END_FIELDS, NODE_FIELDS, EndField::VCS, LATENCY_BUCKETS];

impl Header {
    /// The header of a recording of `network`, which ran as `name`.
    pub fn new(network: &dyn Network, name: &str, source: Source, clock: Clock) -> Self {
        let nodes = network.nodes();
        let index = |node| nodes.iter().position(|other| *other == node).unwrap_or(0) as u32;
        // Look up positions once instead of for each link.
        let indices: std::collections::BTreeMap<_, _> =
            nodes.iter().map(|&node| (node, index(node))).collect();
        let head = |&node: &phitwire::net::NodeRef| NodeHead {
            name: network.node_name(node).into_owned(),
            kind: match node {
                phitwire::net::NodeRef::Chip(_) => NodeKind::Router,
                phitwire::net::NodeRef::Processor(_) => NodeKind::Nic,
            },
        };
        let links = (0..network.link_count()).map(|link| {
            let (a, b) = network.ends(link);
            LinkHead([a, b].map(|end| (indices.get(&end.node).copied().unwrap_or(0), end.port)))
        });
        let svg = network.svg().ok();
        let overview = network.drawing(None).ok();
        Self {
            phitrec: VERSION,
            name: name.to_owned(),
            summary: network.summary(),
            source,
            clock,
            carried: "frames".to_owned(),
            full: None,
            layout: LAYOUT,
            nodes: nodes.iter().map(head).collect(),
            links: links.collect(),
            overview: overview.filter(|drawing| Some(drawing) != svg.as_ref()),
            svg,
        }
    }

    /// How many numbers there are before any node has reported its stages.
    pub fn numbers(&self) -> usize {
        2 * self.links.len() * END_FIELDS + self.nodes.len() * NODE_FIELDS
    }

    /// Index of the first number of a link end.
    #[cfg(test)]
    pub fn end_at(&self, link: usize, is_b: bool) -> usize {
        (2 * link + usize::from(is_b)) * END_FIELDS
    }

    /// Index of the first number of a node.
    pub fn node_at(&self, node: usize) -> usize {
        2 * self.links.len() * END_FIELDS + node * NODE_FIELDS
    }

    /// Validates an untrusted header.
    ///
    /// # Errors
    /// See [`HeaderError`].
    pub fn check(&self) -> Result<(), HeaderError> {
        if self.phitrec != VERSION {
            return Err(HeaderError::Version(self.phitrec));
        }
        if self.layout != LAYOUT {
            return Err(HeaderError::Layout(self.layout));
        }
        for (count, what) in [(self.nodes.len(), "nodes"), (self.links.len(), "links")] {
            if count > MOST {
                return Err(HeaderError::TooMany(count, what));
            }
        }
        for (number, link) in self.links.iter().enumerate() {
            for (node, _) in link.0 {
                if node as usize >= self.nodes.len() {
                    return Err(HeaderError::NoSuchNode(number, node, self.nodes.len()));
                }
            }
        }
        if !(self.clock.per_second.is_finite() && self.clock.per_second > 0.0) {
            return Err(HeaderError::Clock(self.clock.per_second.to_string()));
        }
        [&self.svg, &self.overview]
            .into_iter()
            .flatten()
            .try_for_each(|drawing| check_drawing(drawing))
    }
}

/// Rejects drawings with active content. The pages also forbid scripts in drawings.
fn check_drawing(svg: &str) -> Result<(), HeaderError> {
    let wrong = if svg.len() > MOST_DRAWING {
        "is larger than 16 MiB"
    } else if !svg.starts_with("<svg ") {
        "is not an SVG"
    } else {
        let lower = svg.to_ascii_lowercase();
        match [
            "<script",
            "<foreignobject",
            "javascript:",
            "<!",
            "<?",
            "<iframe",
        ]
        .iter()
        .any(|word| lower.contains(word))
        {
            true => "contains active content",
            false => return Ok(()),
        }
    };
    Err(HeaderError::Drawing(wrong))
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// The kind, such as `link-down`.
    pub kind: String,
    /// The node where it happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The link where it happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<u32>,
    pub text: String,
}

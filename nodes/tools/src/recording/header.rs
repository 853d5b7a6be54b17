//! What a recording says once.

use phitwire::net::Network;
use phitwire_nodes::control::NodeKind;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The version of the format.
const VERSION: u32 = 1;
/// Nodes and links at most: what a file of strangers can make a reader keep.
const MOST: usize = 1 << 16;
/// Bytes of a drawing at most.
const MOST_DRAWING: usize = 16 << 20;

/// The numbers of a link's end, in this order, and behind them [`VCS`](EndField::VCS) credits that it
/// has left on each virtual channel, and as many that its peer offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum EndField {
    /// The state of the link, a text.
    State,
    /// Whether packets flow.
    Up,
    /// Lanes received on, and sent on.
    RxLanes,
    /// See there.
    TxLanes,
    /// What the wire has been given: see [`Header::carried`].
    Carried,
    /// The same of the other direction, as this end has received it.
    Received,
    /// Units sent for the first time.
    Sent,
    /// Units sent again.
    Resent,
    /// Units that came with a wrong check.
    BadChecks,
    /// Units that the peer has not acknowledged.
    Window,
    /// The round trip, in nanoseconds.
    RoundTrip,
    /// Why packets do not flow, a text.
    Why,
    /// The first of the credits.
    Credits,
}

impl EndField {
    /// Virtual channels of which credits are kept.
    pub const VCS: usize = 8;
}

/// Numbers of a link's end.
pub const END_FIELDS: usize = EndField::Credits as usize + 2 * EndField::VCS;

/// The numbers of a node, in this order, and behind them [`LATENCY_BUCKETS`] counts of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum NodeField {
    /// Why it does not answer, a text; nothing if it does.
    Silent,
    /// Its process.
    Process,
    /// Bytes of frames sent, and received.
    BytesSent,
    /// See there.
    BytesReceived,
    /// The number of the latest traffic run.
    Run,
    /// Messages sent in it, answered, and given up.
    Sent,
    /// See there.
    Answered,
    /// See there.
    TimedOut,
    /// Messages without answer.
    Outstanding,
    /// The first of the latencies.
    Latencies,
}

/// Counts of messages by latency: see [`latency_bucket`].
pub const LATENCY_BUCKETS: usize = 48;

/// Numbers of a node.
pub const NODE_FIELDS: usize = NodeField::Latencies as usize + LATENCY_BUCKETS;

/// The bucket of a latency: the first is up to 256 ns, and two of them double it.
pub fn latency_bucket(ns: u64) -> usize {
    let doublings = (ns.max(1) as f64 / 256.0).log2();
    let bucket = (2.0 * doublings).ceil().max(0.0) as usize;
    bucket.min(LATENCY_BUCKETS - 1)
}

/// What was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// A lab of processes.
    Lab,
    /// A simulation in virtual time.
    Sim,
}

/// What the times of lines count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clock {
    /// Of what: `ms`, `cycles`.
    pub unit: String,
    /// How many of them are a second to those who look on.
    pub per_second: f64,
    /// When it stood at zero, in milliseconds since 1970, UTC, if it is one of people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begin_ms: Option<u64>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeHead {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: NodeKind,
}

/// A link: places of its nodes in the list of nodes, and ports there. End A comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkHead(pub [(u32, u8); 2]);

/// What there is in a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// The version of the format.
    pub phitrec: u32,
    /// What was recorded: the lab, or the network.
    pub name: String,
    /// The network in one line.
    pub summary: String,
    /// Where it ran.
    pub source: Source,
    /// What the times of lines count.
    pub clock: Clock,
    /// What the wires carry as [`EndField::Carried`] counts it: `frames`, `phits`.
    pub carried: String,
    /// How much of that a wire can carry in a unit of the clock, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full: Option<f64>,
    /// Numbers of each end of a link, and of each node, and credits and latencies among them.
    pub layout: [usize; 4],
    /// The nodes, routers first.
    pub nodes: Vec<NodeHead>,
    /// The links, by number.
    pub links: Vec<LinkHead>,
    /// The drawing of the network, unless it is too large for one: elements of class `link` have the
    /// numbers of links in `data-links`, those of class `node` names in `data-nodes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub svg: Option<String>,
}

/// Why something is no header.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HeaderError {
    /// Of another version.
    #[error("it is of version {0} of the format, and this command reads version {VERSION}")]
    Version(u32),
    /// Numbers are laid out otherwise.
    #[error("its numbers are laid out as {0:?}; this command reads {LAYOUT:?}")]
    Layout([usize; 4]),
    /// Too many.
    #[error("it has {0} {1}; {MOST} are read at most")]
    TooMany(usize, &'static str),
    /// A link of nobody.
    #[error("link {0} ends at node {1}, and there are {2} nodes")]
    NoSuchNode(usize, u32, usize),
    /// Time that cannot pass.
    #[error("its clock has {0} units in a second; that is to be a number above zero")]
    Clock(String),
    /// A drawing that is none.
    #[error("its drawing {0}")]
    Drawing(&'static str),
}

const LAYOUT: [usize; 4] = [END_FIELDS, NODE_FIELDS, EndField::VCS, LATENCY_BUCKETS];

impl Header {
    /// The header of a recording of `network`, which ran as `name`.
    pub fn new(network: &dyn Network, name: &str, source: Source, clock: Clock) -> Self {
        let nodes = network.nodes();
        let place = |node| nodes.iter().position(|other| *other == node).unwrap_or(0) as u32;
        // Positions are looked up for each link: nodes come in the order of their numbers.
        let places: std::collections::BTreeMap<_, _> =
            nodes.iter().map(|&node| (node, place(node))).collect();
        let head = |&node: &phitwire::net::NodeRef| NodeHead {
            name: network.node_name(node).into_owned(),
            kind: match node {
                phitwire::net::NodeRef::Chip(_) => NodeKind::Router,
                phitwire::net::NodeRef::Processor(_) => NodeKind::Nic,
            },
        };
        let links = (0..network.link_count()).map(|link| {
            let (a, b) = network.ends(link);
            LinkHead([a, b].map(|end| (places.get(&end.node).copied().unwrap_or(0), end.port)))
        });
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
            svg: network.svg().ok(),
        }
    }

    /// Numbers that there are before any node has told of its stages.
    pub fn numbers(&self) -> usize {
        2 * self.links.len() * END_FIELDS + self.nodes.len() * NODE_FIELDS
    }

    /// Where the numbers of a link's end begin.
    pub fn end_at(&self, link: usize, is_b: bool) -> usize {
        (2 * link + usize::from(is_b)) * END_FIELDS
    }

    /// Where the numbers of a node begin.
    pub fn node_at(&self, node: usize) -> usize {
        2 * self.links.len() * END_FIELDS + node * NODE_FIELDS
    }

    /// Whether strangers' words can be believed.
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
        self.svg.as_deref().map_or(Ok(()), check_drawing)
    }
}

/// A drawing is to have nothing that a browser would do. It does nothing of that anyway: pages say
/// that scripts of drawings are not to be run.
fn check_drawing(svg: &str) -> Result<(), HeaderError> {
    let wrong = if svg.len() > MOST_DRAWING {
        "is larger than 16 MiB"
    } else if !svg.starts_with("<svg ") {
        "is no SVG"
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
            true => "has more in it than a drawing",
            false => return Ok(()),
        }
    };
    Err(HeaderError::Drawing(wrong))
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// What kind of thing it is, such as `link-down`.
    pub kind: String,
    /// At which node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// At which link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<u32>,
    /// What has happened, in words.
    pub text: String,
}

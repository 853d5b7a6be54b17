//! A packet's path and times, assembled from the records of routers: as a table, as JSON, and for
//! Perfetto.

pub mod live;
pub mod perfetto;
pub mod table;

use phitwire::net::{Hop, Network, NodeRef, PathEnd, Peers, Sightings, TracedPacket};
use phitwire::trace::{Choice, Passage};
use schemars::JsonSchema;
use serde::Serialize;

pub const VERSION: u32 = 1;

/// Unit of reported times.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Unit {
    /// `ns` or `cycles`.
    pub name: &'static str,
    /// Picoseconds per unit.
    pub ps: u64,
}

impl Unit {
    pub const NS: Self = Self {
        name: "ns",
        ps: 1_000,
    };

    /// Converts picoseconds.
    fn of(self, ps: i128) -> f64 {
        ps as f64 / self.ps as f64
    }
}

/// A traced packet and its response.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Trace {
    /// Version of this schema.
    pub version: u32,
    /// `lab NAME` or `sim TOPOLOGY`.
    pub source: String,
    /// The unit of all times, which count from when the packet was sent or created.
    pub unit: Unit,
    /// The sending NIC.
    pub from: String,
    /// The receiving NIC.
    pub to: String,
    /// The operation of the packet.
    pub operation: String,
    /// The packet's identity in routers.
    pub identity: u64,
    /// Outcome of the operation at the sender.
    pub outcome: String,
    /// When it ended; null if it has not.
    pub ended: Option<f64>,
    /// Path of the request and, if one was sent, of the response.
    pub ways: Vec<PathReport>,
    /// Parts that could not be determined, and why.
    pub notes: Vec<String>,
}

/// The path of one packet.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PathReport {
    /// `request` or `response`.
    pub kind: &'static str,
    /// The sending NIC.
    pub from: String,
    /// The receiving NIC.
    pub to: String,
    /// When it started; null if unknown.
    pub began: Option<f64>,
    /// When it arrived; null if unknown.
    pub came: Option<f64>,
    /// The routers on the path.
    pub hops: Vec<HopReport>,
    /// `delivered`, or the last known position of the packet, or that the last link sent it and
    /// nothing more is known.
    pub end: String,
    /// Whether the packet is known to have arrived.
    pub delivered: bool,
}

/// A router on a path.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HopReport {
    /// Name of the router.
    pub router: String,
    /// Port on which the packet arrived.
    pub in_port: u8,
    /// Virtual channel on which the packet arrived.
    pub in_vc: u8,
    /// Length of the packet in phits or flits, if its header contains it.
    pub units: Option<u8>,
    /// When its header arrived.
    pub arrived: Option<f64>,
    /// Time since the previous router or NIC.
    pub link: Option<f64>,
    /// The stages that it passed.
    pub stages: Vec<StageReport>,
    /// The routing decisions.
    pub choices: Vec<Choice>,
    /// Port by which the packet left.
    pub out_port: Option<u8>,
    /// Virtual channel by which the packet left.
    pub out_vc: Option<u8>,
    /// The next hop: `NODE:PORT`.
    pub next: Option<String>,
    /// Units that the output link resent since then, until everything sent was acknowledged or
    /// until now.
    pub resent: Option<u64>,
}

/// A stage of a router.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StageReport {
    /// Name of the stage.
    pub stage: String,
    /// When the packet left it.
    pub left: f64,
    /// Time in the stage; null if the arrival is unknown.
    pub time: Option<f64>,
    /// Part of that time during which the packet waited for others.
    pub wait: Option<f64>,
}

/// When a packet started and arrived.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    /// When the packet started.
    pub began_ps: Option<u64>,
    /// When it arrived.
    pub came_ps: Option<u64>,
    /// Whether a response proves the arrival, regardless of the report of the last link.
    pub has_come: bool,
}

/// The context that all paths of a trace share.
#[derive(Clone, Copy, Debug)]
pub struct TraceContext<'a> {
    pub network: &'a dyn Network,
    pub peers: &'a Peers,
    /// The records of the routers.
    pub seen: &'a Sightings,
    pub unit: Unit,
    /// When the packet was sent or created.
    pub zero_ps: u64,
}

impl TraceContext<'_> {
    /// A time relative to the start.
    pub fn at(&self, ps: u64) -> f64 {
        self.unit.of(i128::from(ps) - i128::from(self.zero_ps))
    }

    fn name(&self, node: NodeRef) -> String {
        self.network.node_name(node).into_owned()
    }

    /// Follows a packet and reports its path. Also returns when it was last seen.
    pub fn report_path(&self, packet: TracedPacket, ends: Ends) -> (PathReport, Option<u64>) {
        let (hops, way) = self.peers.follow(packet, self.seen);
        let last_ps = hops.last().and_then(|hop| hop.passage.last_ps());
        let mut before = ends.began_ps;
        let reports = hops.iter().map(|hop| self.hop(hop, &mut before)).collect();
        let delivered = match way {
            PathEnd::Delivered => true,
            PathEnd::LastLink { .. } => ends.has_come || ends.came_ps.is_some(),
            _ => false,
        };
        let path = PathReport {
            kind: if packet.response {
                "response"
            } else {
                "request"
            },
            from: self.name(packet.from),
            to: self.name(packet.to),
            began: ends.began_ps.map(|ps| self.at(ps)),
            came: ends.came_ps.filter(|_| delivered).map(|ps| self.at(ps)),
            end: match delivered {
                true => "delivered".to_owned(),
                false => self.end(&packet, &hops, &way),
            },
            hops: reports,
            delivered,
        };
        (path, last_ps)
    }

    fn hop(&self, hop: &Hop, before: &mut Option<u64>) -> HopReport {
        let passage = &hop.passage;
        let link = passage.arrived_ps.zip(*before);
        let link = link.map(|(came, left)| self.unit.of(i128::from(came) - i128::from(left)));
        *before = passage.last_ps();
        HopReport {
            router: self.name(hop.router),
            in_port: passage.port,
            in_vc: passage.vc,
            units: passage.units,
            arrived: passage.arrived_ps.map(|ps| self.at(ps)),
            link,
            stages: self.stages(passage),
            choices: passage.choices.clone(),
            out_port: passage.departure.map(|out| out.port),
            out_vc: passage.departure.map(|out| out.vc),
            next: hop.to.map(|end| self.network.end_name(end)),
            resent: passage.departure.and_then(|out| out.resent),
        }
    }

    fn stages(&self, passage: &Passage) -> Vec<StageReport> {
        let steps = passage.steps.iter().zip(passage.stays());
        let stages = steps.map(|(step, (stage, _, both))| StageReport {
            stage: stage.to_owned(),
            left: self.at(step.left_ps),
            time: both.map(|[time, _]| self.unit.of(time.into())),
            wait: both.map(|[_, wait]| self.unit.of(wait.into())),
        });
        stages.collect()
    }

    /// The end of a path in words.
    fn end(&self, packet: &TracedPacket, hops: &[Hop], way: &PathEnd) -> String {
        let last = hops.last().map(|hop| (self.name(hop.router), hop));
        let Some((last, hop)) = last else {
            let from = self.name(packet.from);
            return match way {
                PathEnd::NotQueried(router) => format!(
                    "unknown: router {} next to {from} does not answer",
                    self.name(*router)
                ),
                _ => format!("not seen: no router next to {from} saw it"),
            };
        };
        let out = hop
            .to
            .map_or(String::new(), |end| self.network.end_name(end));
        let port = hop.passage.departure.map_or(0, |out| out.port);
        match way {
            PathEnd::Delivered => "delivered".to_owned(),
            PathEnd::LastLink { ended } => format!(
                "sent over the last link, from {last} by port {port} to {out}, but not seen there: \
                 {}",
                match ended {
                    true => "the link went down before acknowledging it",
                    false => "the link has not acknowledged it",
                }
            ),
            PathEnd::Misdelivered(node) => format!("delivered to {} instead", self.name(*node)),
            PathEnd::NotSeen => "not seen".to_owned(),
            PathEnd::Inside => match hop.passage.steps.last() {
                Some(step) => format!("last seen inside {last}, after its {}", step.stage),
                None => format!(
                    "last seen inside {last}, at the front of the queue of port {}",
                    hop.passage.port
                ),
            },
            PathEnd::Discarded(why) => format!("discarded by {last}: {why}"),
            PathEnd::OnLink { acknowledged } => format!(
                "last seen leaving {last} by port {port} for {out}, {}",
                match acknowledged {
                    true => "acknowledged by the link, but not seen since",
                    false => "not acknowledged by the link",
                }
            ),
            PathEnd::NotQueried(router) => format!(
                "last seen leaving {last} by port {port} for {out}; {} does not answer",
                self.name(*router)
            ),
            PathEnd::Loop => format!("caught in a cycle; last seen leaving {last}"),
        }
    }
}

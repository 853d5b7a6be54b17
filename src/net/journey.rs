//! A packet's path through a network, assembled from the records of routers.

use std::collections::BTreeMap;

use super::model::{End, NodeRef};
use super::network::Network;
use crate::trace::Passage;

/// Longest path, in routers: a longer one is a loop.
const MOST_HOPS: usize = 64;

/// Records of the routers of a network, on one clock; routers that could not be queried are
/// missing.
pub type Sightings = BTreeMap<NodeRef, Vec<Passage>>;

/// A router on the path.
#[derive(Clone, Debug, PartialEq)]
pub struct Hop {
    pub router: NodeRef,
    /// The router's record of the packet.
    pub passage: Passage,
    /// The link end at which the packet arrived next, if it left.
    pub to: Option<End>,
}

/// Where a packet's path ends, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathEnd {
    /// At the destination NIC: the last link confirms the arrival.
    Delivered,
    /// Left the last router for the destination NIC, but the link does not confirm the arrival.
    LastLink {
        /// Whether that link has gone down since.
        ended: bool,
    },
    /// At another NIC.
    Misdelivered(NodeRef),
    /// The router next to the source has not seen the packet.
    NotSeen,
    /// Still in the last router.
    Inside,
    /// The last router discarded the packet.
    Discarded(String),
    /// Left the last router, and the next one, which was queried, has not seen it.
    OnLink {
        /// Whether the link reports that the packet arrived at the other end.
        acknowledged: bool,
    },
    /// Left the last router for one that could not be queried.
    NotQueried(NodeRef),
    /// Longer than any valid path: a loop.
    Loop,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracedPacket {
    pub from: NodeRef,
    pub to: NodeRef,
    pub response: bool,
    /// Distinguishes the packet from others.
    pub identity: u64,
    /// Earliest time at which the packet was sent.
    pub not_before_ps: u64,
    /// Maximum difference between the routers' clocks.
    pub slack_ps: u64,
}

/// The other end of every link.
#[derive(Clone, Debug)]
pub struct Peers(BTreeMap<End, End>);

impl Peers {
    pub fn of(network: &dyn Network) -> Self {
        let ends = (0..network.link_count()).map(|link| network.ends(link));
        Self(ends.flat_map(|(a, b)| [(a, b), (b, a)]).collect())
    }

    /// The other end of the link at `end`.
    pub fn of_end(&self, end: End) -> Option<End> {
        self.0.get(&end).copied()
    }

    /// Links of a node: its own ends and the other ends.
    pub fn of_node(&self, node: NodeRef) -> impl Iterator<Item = (End, End)> {
        let all = End { node, port: 0 }..=End {
            node,
            port: u8::MAX,
        };
        self.0.range(all).map(|(own, other)| (*own, *other))
    }

    /// Follows a packet from router to router.
    pub fn follow(&self, packet: TracedPacket, seen: &Sightings) -> (Vec<Hop>, PathEnd) {
        let mut hops: Vec<Hop> = Vec::new();
        let first = self.of_node(packet.from).filter_map(|(_, at)| {
            let not_before = packet.not_before_ps.saturating_sub(packet.slack_ps);
            Some((at.node, passage(packet, at, not_before, seen)?))
        });
        let came = |(_, passage): &(NodeRef, &Passage)| passage.arrived_ps.or(passage.last_ps());
        let Some((mut router, mut passage)) = first.min_by_key(came) else {
            let asked = self.of_node(packet.from).next();
            let way = match asked {
                Some((_, at)) if !seen.contains_key(&at.node) => PathEnd::NotQueried(at.node),
                _ => PathEnd::NotSeen,
            };
            return (hops, way);
        };
        loop {
            let out = passage.departure;
            let to = out.and_then(|out| {
                let port = out.port;
                self.of_end(End { node: router, port })
            });
            hops.push(Hop {
                router,
                passage: passage.clone(),
                to,
            });
            let (Some(out), Some(to)) = (out, to) else {
                let way = match &passage.discarded {
                    Some(why) => PathEnd::Discarded(why.to_string()),
                    None => PathEnd::Inside,
                };
                return (hops, way);
            };
            if matches!(to.node, NodeRef::Processor(_)) {
                let ended = out.link_ended;
                let way = match (to.node == packet.to, out.acknowledged) {
                    (true, true) => PathEnd::Delivered,
                    (true, false) => PathEnd::LastLink { ended },
                    (false, _) => PathEnd::Misdelivered(to.node),
                };
                return (hops, way);
            }
            if hops.len() == MOST_HOPS {
                return (hops, PathEnd::Loop);
            }
            let left = passage.left_ps().unwrap_or(0);
            let not_before = left.saturating_sub(packet.slack_ps);
            match self::passage(packet, to, not_before, seen) {
                Some(next) => (router, passage) = (to.node, next),
                None if seen.contains_key(&to.node) => {
                    let acknowledged = out.acknowledged;
                    return (hops, PathEnd::OnLink { acknowledged });
                }
                None => return (hops, PathEnd::NotQueried(to.node)),
            }
        }
    }
}

/// The packet's earliest passage through port `at`.
fn passage(packet: TracedPacket, at: End, not_before: u64, seen: &Sightings) -> Option<&Passage> {
    let is_it = |passage: &&Passage| {
        let came = passage.arrived_ps.or(passage.last_ps());
        passage.port == at.port
            && passage.response == packet.response
            && passage.identity.is_none_or(|of| of == packet.identity)
            // A packet without a time was already waiting when the recording began: accept it.
            && came.is_none_or(|came| came >= not_before)
    };
    let passages = seen.get(&at.node)?.iter().filter(is_it);
    passages.min_by_key(|passage| {
        (
            passage.identity.is_none(),
            passage.arrived_ps.or(passage.last_ps()),
        )
    })
}

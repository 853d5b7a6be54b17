//! Events between two samples.

use std::collections::BTreeMap;

use phitwire_nodes::control::LinkReport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sample::{NodeSample, Sample};

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// A node stopped replying.
    NodeSilent,
    /// A node replies again.
    NodeBack,
    /// A node runs in another process than before.
    NodeRestarted,
    /// A link went down.
    LinkDown,
    /// A link is up again.
    LinkUp,
    /// A link that is up has fewer lanes than before.
    LaneLost,
    /// A link that is up has more lanes than before.
    LaneBack,
    /// A router has other route tables than before.
    Reroute,
    /// A fault was injected or removed on purpose.
    FaultInjected,
    /// The kernel impairs a port now: by a queueing discipline such as netem, or by a filter.
    Impaired,
    /// That discipline or filter was removed.
    ImpairmentGone,
    /// A traffic run has begun at a NIC.
    TrafficStarted,
    /// A traffic run has ended at a NIC.
    TrafficDone,
}

impl EventKind {
    /// Name of the kind, as serialised.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NodeSilent => "node-silent",
            Self::NodeBack => "node-back",
            Self::NodeRestarted => "node-restarted",
            Self::LinkDown => "link-down",
            Self::LinkUp => "link-up",
            Self::LaneLost => "lane-lost",
            Self::LaneBack => "lane-back",
            Self::Reroute => "reroute",
            Self::FaultInjected => "fault-injected",
            Self::Impaired => "impaired",
            Self::ImpairmentGone => "impairment-gone",
            Self::TrafficStarted => "traffic-started",
            Self::TrafficDone => "traffic-done",
        }
    }
}

/// An event in a lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LabEvent {
    /// When it was noticed: milliseconds since 1970, UTC.
    pub at_ms: u64,
    /// Name of the node.
    pub node: String,
    /// The port, for events of a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u8")]
    pub port: Option<u8>,
    /// The number of that link in the topology.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u16")]
    pub link: Option<u16>,
    /// Kind of the event.
    pub kind: EventKind,
    /// The event in words.
    pub text: String,
}

/// The events between two samples of one lab, in the order of the nodes. Each end of a link reports
/// its own events.
pub fn events(before: &Sample, after: &Sample) -> Vec<LabEvent> {
    EventDetector::default().detect(before, after)
}

/// Finds the events between consecutive samples. Changes at a silent node appear when it replies
/// again, compared with its last known state.
#[derive(Debug, Default)]
pub struct EventDetector {
    /// The last known state of silent nodes.
    last_known: BTreeMap<String, NodeSample>,
}

impl EventDetector {
    /// The events between two samples of the same network. The later sample must be the next call's
    /// earlier one.
    pub fn detect(&mut self, before: &Sample, after: &Sample) -> Vec<LabEvent> {
        let mut events = Vec::new();
        for node in &after.nodes {
            let Some(earlier) = before.node(&node.name) else {
                continue;
            };
            if node.silent.is_some() && earlier.silent.is_none() {
                self.last_known.insert(node.name.clone(), earlier.clone());
            }
            let mut collector = EventCollector {
                at_ms: after.at_ms,
                node,
                events: &mut events,
            };
            if collector.answers(earlier) {
                let heard = self.last_known.remove(&node.name);
                collector.compare(heard.as_ref().unwrap_or(earlier));
            }
        }
        events
    }
}

/// Collects the events of one node.
struct EventCollector<'a> {
    at_ms: u64,
    node: &'a NodeSample,
    events: &'a mut Vec<LabEvent>,
}

impl EventCollector<'_> {
    fn add(&mut self, kind: EventKind, link: Option<&LinkReport>, text: impl Into<String>) {
        self.events.push(LabEvent {
            at_ms: self.at_ms,
            node: self.node.name.clone(),
            port: link.map(|link| link.port),
            link: link.map(|link| link.link),
            kind,
            text: text.into(),
        });
    }

    /// Whether the node replies now. A change is an event.
    fn answers(&mut self, earlier: &NodeSample) -> bool {
        match (&earlier.silent, &self.node.silent) {
            (None, Some(why)) => self.add(EventKind::NodeSilent, None, why),
            (Some(_), None) => self.add(EventKind::NodeBack, None, "node answers again"),
            (Some(_), Some(_)) | (None, None) => {}
        }
        self.node.silent.is_none()
    }

    /// Adds an event for each difference from the last known state.
    fn compare(&mut self, earlier: &NodeSample) {
        let restarted = matches!((earlier.pid, self.node.pid), (Some(a), Some(b)) if a != b);
        if restarted {
            let text = format!("restarted as process {}", self.node.pid.unwrap_or(0));
            self.add(EventKind::NodeRestarted, None, text);
        }
        for link in &self.node.links {
            if let Some(before) = earlier.link(link.port) {
                self.compare_links(before, link);
            }
        }
        self.compare_routing(earlier);
        if !restarted && earlier.silent.is_none() {
            self.compare_faults(earlier);
        }
        self.compare_traffic(earlier);
    }

    fn compare_links(&mut self, before: &LinkReport, link: &LinkReport) {
        if before.impaired != link.impaired {
            let (kind, words) = match link.impaired {
                true => (EventKind::Impaired, "the kernel impairs frames"),
                false => (
                    EventKind::ImpairmentGone,
                    "the kernel no longer impairs frames",
                ),
            };
            self.add(kind, Some(link), format!("to {}: {words}", link.peer));
        }
        match (before.up, link.up) {
            (true, false) => {
                let why = link.why.as_deref().unwrap_or("unknown reason");
                let text = format!("to {}: {}: {why}", link.peer, link.state);
                self.add(EventKind::LinkDown, Some(link), text);
            }
            (false, true) => {
                let text = format!("to {}: link up", link.peer);
                self.add(EventKind::LinkUp, Some(link), text);
            }
            (true, true) => {
                let lanes = [
                    ("received on", before.rx_lanes, link.rx_lanes),
                    ("sent on", before.tx_lanes, link.tx_lanes),
                ];
                for (what, old, new) in lanes {
                    let kind = match new.cmp(&old) {
                        std::cmp::Ordering::Less => EventKind::LaneLost,
                        std::cmp::Ordering::Greater => EventKind::LaneBack,
                        std::cmp::Ordering::Equal => continue,
                    };
                    let text = format!("to {}: {new} lanes {what}, previously {old}", link.peer);
                    self.add(kind, Some(link), text);
                }
            }
            (false, false) => {}
        }
    }

    fn compare_routing(&mut self, earlier: &NodeSample) {
        if let (Some(before), Some(now)) = (&earlier.routing, &self.node.routing)
            && before.digest != now.digest
        {
            self.add(EventKind::Reroute, None, "route tables changed");
        }
    }

    fn compare_faults(&mut self, earlier: &NodeSample) {
        for (name, &value) in &self.node.counters {
            let Some((port, fault)) = fault_counter(name) else {
                continue;
            };
            let times = value.saturating_sub(earlier.counter(name));
            if times > 0 {
                let link = self.node.link(port);
                let peer = link.map_or("", |link| &link.peer);
                let mut text = format!("to {peer}: {fault}");
                if times > 1 {
                    text.push_str(&format!(", {times} times"));
                }
                self.add(EventKind::FaultInjected, link, text);
            }
        }
    }

    fn compare_traffic(&mut self, earlier: &NodeSample) {
        let Some(now) = &self.node.traffic else {
            return;
        };
        let before = earlier.traffic.as_ref();
        let known = before.is_some_and(|before| before.run == now.run);
        let was_going = known && before.is_some_and(|before| before.phase != Default::default());
        let goes = now.phase != Default::default();
        if !known && now.run != 0 {
            let text = format!("run {} of {} bytes", now.run, now.size);
            self.add(EventKind::TrafficStarted, None, text);
        }
        if !goes && (was_going || !known) && now.run != 0 {
            let text = format!(
                "run {}: {} messages answered, {} timed out",
                now.run, now.acknowledged, now.timed_out
            );
            self.add(EventKind::TrafficDone, None, text);
        }
    }
}

/// The port and fault of a counter of injected faults: `portN.fault_KIND`.
fn fault_counter(name: &str) -> Option<(u8, String)> {
    let (port, counter) = name.strip_prefix("port")?.split_once('.')?;
    let fault = counter.strip_prefix("fault_")?.replace('_', "-");
    Some((port.parse().ok()?, fault))
}

//! A node with what a process adds to it: noise on its cables, and why its links are down.

use phitwire::link::{DownReason, ErrorInjection, LinkEvent, LinkState};
use phitwire::node::{Node, PortId, WakeReason, Wakeup};
use phitwire::time::{Duration, Time};
use serde_json::{Value, json};

use crate::control::server::ClientId;
use crate::control::{Fault, LinkReport, Refusal, Register, Request};
use crate::holding::Holding;
use crate::live_link::{LinkFault, LiveLink, Misfits};
use crate::live_node::LiveNode;
use crate::noise::{Noise, parse_rate};

/// See the module's text.
#[derive(Debug)]
pub struct Station<N> {
    /// The node itself.
    pub node: N,
    noise: Noise,
    /// By port, why its link is not up, as far as events told.
    why: Vec<Option<String>>,
    /// By port, what is wrong with its wire: the state's name, and the reason.
    wires: Vec<Option<(&'static str, String)>>,
    /// When a quiesced router goes on by itself.
    held_until: Option<Time>,
    /// Who keeps it for runs.
    holding: Holding,
}

/// The longest time that a router can be quiesced for by one command, in milliseconds.
const LONGEST_HOLD_MS: u64 = 60_000;

impl<N: LiveNode> Station<N> {
    /// `node` on clean cables; noise, if asked for, will be drawn from `seed`.
    pub fn new(node: N, seed: u64) -> Self {
        let (why, wires) = (vec![None; node.ports()], vec![None; node.ports()]);
        Self {
            node,
            noise: Noise::new(seed),
            why,
            wires,
            held_until: None,
            holding: Holding::default(),
        }
    }

    /// Ports that have a link.
    pub fn linked_ports(&self) -> impl Iterator<Item = PortId> {
        (0..self.node.ports() as PortId).filter(|&port| self.node.link(port).is_some())
    }

    /// What is wrong with the wire of a port, if anything is: the state's name, and the reason.
    pub fn set_wire(&mut self, port: PortId, wrong: Option<(&'static str, String)>) {
        if let Some(wire) = self.wires.get_mut(usize::from(port)) {
            *wire = wrong;
        }
    }

    /// How the links stand, by port.
    pub fn links(&self, now: Time) -> Vec<LinkReport> {
        self.linked_ports()
            .filter_map(|port| Some(self.report(now, port, self.node.link(port)?)))
            .collect()
    }

    fn report(&self, now: Time, port: PortId, link: &dyn LiveLink) -> LinkReport {
        let mut report = link.report(port);
        let heard = link.last_accepted();
        report.heard_ms = heard.map(|at| now.since(at).as_ns() / 1_000_000);
        if !report.up {
            let told = self.why[usize::from(port)].clone();
            report.why =
                Some(told.unwrap_or_else(|| guess(link.state(), link.misfits(), &report.peer)));
        } else if link.is_silent() {
            report.state = "silent".to_owned();
            report.why = Some(silent(&report));
        } else if link.is_stalled() {
            report.state = "stalled".to_owned();
            report.why = Some(stalled(&report.peer));
        }
        // A link may not have noticed yet, and where it has, this is the cause.
        if let Some((name, why)) = &self.wires[usize::from(port)] {
            report.state = (*name).to_owned();
            report.why = Some(why.clone());
        }
        report.up &= report.why.is_none();
        report
    }

    /// Calls `visit` with every counter of the node and of the noise.
    pub fn for_each_counter(&self, visit: &mut dyn FnMut(&str, u64)) {
        self.node.for_each_counter(visit);
        visit("noise.flipped_bits", self.noise.flipped_bits());
    }

    /// Breaks something on purpose.
    ///
    /// # Errors
    /// When there is no such port or lane, or the rate is none.
    pub fn fault(&mut self, now: Time, fault: &Fault) -> Result<(), String> {
        let port = fault.port();
        let Some(link) = self.node.link(port) else {
            let ports: Vec<_> = self.linked_ports().map(|port| port.to_string()).collect();
            return Err(format!(
                "port {port} has no link; these have: {}",
                ports.join(" ")
            ));
        };
        let has_sets = link.has_sets();
        if let Fault::LaneNoise { lane, rate, .. } = fault {
            return self.noise.set(port, *lane, parse_rate(rate)?);
        }
        let fault = match *fault {
            Fault::LaneNoise { .. } => return Ok(()),
            Fault::SoftError { .. } => LinkFault::SoftError,
            Fault::LinkDown { .. } => LinkFault::Down,
            Fault::LinkUp { .. } => LinkFault::Up,
            Fault::ForceRetry { .. } => LinkFault::ForceRetry,
            _ if !has_sets => {
                return Err(format!(
                    "port {port} has a YARC link, which has no such register"
                ));
            }
            Fault::BadCrc { .. } => LinkFault::BadCrc,
            Fault::Reinit { .. } => LinkFault::Reinit,
            Fault::LoseClock { ms, .. } => LinkFault::LoseClock(Duration::from_ms(ms.min(60_000))),
            Fault::Inject {
                lane_mask,
                bit_mask,
                probability,
                max_per_64_sets,
                seed,
                ..
            } => LinkFault::Inject(ErrorInjection {
                lane_mask,
                bit_mask,
                probability,
                max_per_64_sets,
                seed,
            }),
        };
        self.node.link_fault(now, port, fault);
        Ok(())
    }

    /// Answers a request that only needs the node.
    ///
    /// # Errors
    /// What the node says; and the requests that are the process's own business.
    pub fn answer(
        &mut self,
        now: Time,
        client: ClientId,
        request: Request,
    ) -> Result<Value, Refusal> {
        match request {
            Request::Claim(holder) => self.holding.claim(&self.node, client, holder),
            Request::TrafficStart { .. } | Request::CollectiveStart { .. } => {
                self.holding.may_start(client)?;
                self.answer_itself(now, request).map_err(Refusal::from)
            }
            Request::TrafficStatus { run } => self
                .node
                .traffic_status(run)
                .map_err(Holding::unknown_run::<N>),
            Request::CollectiveStatus => self
                .node
                .collective_status()
                .map_err(Holding::unknown_run::<N>),
            request => self.answer_itself(now, request).map_err(Refusal::from),
        }
    }

    /// A client of the control socket has gone. If it kept this node, its runs end.
    pub fn client_gone(&mut self, now: Time, client: ClientId) {
        self.holding.client_gone(&mut self.node, now, client);
    }

    fn answer_itself(&mut self, now: Time, request: Request) -> Result<Value, String> {
        match request {
            Request::Links => serde_json::to_value(self.links(now)).map_err(|e| e.to_string()),
            Request::Get { register } => {
                let value = self.node.register(&register)?;
                Ok(register_value(&register, value))
            }
            Request::Set { register, value } => {
                self.node.set_register(&register, value)?;
                Ok(register_value(&register, value))
            }
            Request::Fault(fault) => self.fault(now, &fault).map(|()| json!({})),
            Request::TrafficStart { spec } => {
                self.node.traffic_start(now, spec).map(|()| json!({}))
            }
            Request::TrafficStatus { run } => self.node.traffic_status(run),
            Request::TrafficStop => self.node.traffic_stop().map(|()| json!({})),
            Request::CollectiveStart { spec } => {
                self.node.collective_start(now, spec).map(|()| json!({}))
            }
            Request::CollectiveStatus => self.node.collective_status(),
            Request::CollectiveStop => self.node.collective_stop(now).map(|()| json!({})),
            Request::Quiesce { hold_ms } => self.quiesce(now, hold_ms),
            Request::Release => {
                self.held_until = None;
                self.node.release().map(|()| json!({}))
            }
            Request::Routing => {
                serde_json::to_value(self.node.routing()?).map_err(|e| e.to_string())
            }
            Request::Tables => serde_json::to_value(self.node.tables()?).map_err(|e| e.to_string()),
            Request::Install { tables } => self.node.install(*tables).map(|()| json!({})),
            Request::Stats
            | Request::Info
            | Request::Offload { .. }
            | Request::Claim(_)
            | Request::Shutdown => Err("not the node's business".to_owned()),
        }
    }

    fn quiesce(&mut self, now: Time, hold_ms: u64) -> Result<Value, String> {
        if !(1..=LONGEST_HOLD_MS).contains(&hold_ms) {
            return Err(format!(
                "a router is held for 1 to {LONGEST_HOLD_MS} ms, not {hold_ms}: ask again before they are over"
            ));
        }
        self.node.quiesce()?;
        self.held_until = Some(now + Duration::from_ms(hold_ms));
        Ok(json!({}))
    }

    /// Whoever had the router quiesced has not said another word in time.
    fn end_hold(&mut self, now: Time) {
        if self.held_until.is_some_and(|until| until <= now) {
            self.held_until = None;
            match self.node.release() {
                Ok(()) => tracing::warn!("released: whoever quiesced this router has not"),
                Err(error) => tracing::error!(error, "not released"),
            }
        }
    }

    /// Remembers what an event says of why a link is down.
    fn note(&mut self, event: &N::Event) {
        let Some((port, event)) = N::link_event(event) else {
            return;
        };
        let Some(why) = self.why.get_mut(usize::from(port)) else {
            return;
        };
        match event {
            LinkEvent::Up { .. } => *why = None,
            LinkEvent::Down { why: reason, .. } => *why = Some(down(*reason).to_owned()),
            LinkEvent::Refused { message } => *why = Some(message.clone()),
            _ => {}
        }
    }
}

/// The answer about a register. Its `hex` is for readers to whom every number is a floating-point
/// one, such as `jq`: a register has 64 bits, theirs have 53.
fn register_value(register: &Register, value: u64) -> Value {
    json!({ "register": register, "value": value, "hex": format!("{value:#x}") })
}

fn down(reason: DownReason) -> &'static str {
    match reason {
        DownReason::Command => "taken down by command at this end",
        DownReason::PeerDown => "taken down by command at the other end",
        DownReason::NoLanes => "no lane is left: each had too many retries",
        DownReason::PeerRestarted => "the other end was restarted; initialisation has begun again",
        DownReason::Silence => "the other end has fallen silent",
        DownReason::Stalled => {
            "the other end is heard, but acknowledges nothing; initialisation has begun again"
        }
        DownReason::Missing => {
            "a packet that was asked for has not come for a minute; initialisation has begun again"
        }
        DownReason::Unusable => "no frame that came could be used; initialisation has begun again",
    }
}

fn silent(report: &LinkReport) -> String {
    let peer = &report.peer;
    let since = match report.heard_ms {
        Some(ms) => format!(
            "nothing has been accepted from {peer} for {:.1} s",
            ms as f64 / 1e3
        ),
        None => format!("nothing has been accepted from {peer}"),
    };
    match report.unacknowledged_packets {
        0 => format!("{since}, although it was asked"),
        packets => format!("{since}, and {packets} packets are unacknowledged"),
    }
}

fn stalled(peer: &str) -> String {
    format!(
        "{peer} is heard, but acknowledges nothing that it is sent: do frames as long as this link's MTU pass in that \
         direction?"
    )
}

/// Why a link is not up, from what it has counted.
fn guess(state: LinkState, misfits: Misfits, peer: &str) -> String {
    let foreign = misfits
        .foreign
        .iter()
        .max_by_key(|(count, _)| count)
        .filter(|(count, _)| *count > 0);
    match (state, foreign) {
        (LinkState::Disabled, _) => down(DownReason::Command).to_owned(),
        (LinkState::Dead, _) => down(DownReason::NoLanes).to_owned(),
        (_, Some((count, what))) => format!("receives {what} ({count}) where {peer} should be"),
        _ if misfits.frames == 0 => {
            format!("nothing received from {peer}: is its process running, its interface up?")
        }
        _ => format!("{peer} is heard, initialisation has not ended"),
    }
}

impl<N: LiveNode> Node for Station<N> {
    type Event = N::Event;

    fn ports(&self) -> usize {
        self.node.ports()
    }

    fn handle_frame(&mut self, now: Time, port: PortId, bytes: &[u8]) {
        self.node.handle_frame(now, port, bytes);
    }

    fn advance(&mut self, now: Time) {
        self.end_hold(now);
        self.node.advance(now);
    }

    fn ready_ports(&self) -> u64 {
        self.node.ready_ports()
    }

    fn poll_frame(&mut self, now: Time, port: PortId, buf: &mut [u8]) -> Option<usize> {
        let bytes = self.node.poll_frame(now, port, buf)?;
        self.noise.apply(port, &mut buf[..bytes]);
        Some(bytes)
    }

    fn next_wakeup(&self) -> Option<Wakeup> {
        let hold = self.held_until.map(|at| Wakeup {
            at,
            reason: WakeReason::Request,
        });
        Wakeup::earlier(self.node.next_wakeup(), hold)
    }

    fn poll_event(&mut self) -> Option<N::Event> {
        let event = self.node.poll_event()?;
        self.note(&event);
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_about_a_register_has_all_64_bits() {
        let answer = register_value(&Register::Name("mask".into()), 1 << 63 | 1);
        assert_eq!(answer["hex"], "0x8000000000000001");
        assert_eq!(answer["value"], 1_u64 << 63 | 1);
    }
}

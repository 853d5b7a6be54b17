//! A node with the additions of a process: cable noise, the reasons why links are down, and the
//! client that holds it for runs.

use std::collections::BTreeMap;

use phitwire::device::{Device, DeviceError, DeviceEvent, LinkFault, LinkView};
use phitwire::link::{DownReason, ErrorInjection, LinkCounters, LinkEvent, LinkState};
use phitwire::node::{MAX_PORTS, Node, PortId, WakeReason, Wakeup};
use phitwire::time::{Duration, Time};

use crate::claims::Claims;
use crate::control::server::ClientId;
use crate::control::{Fault, LinkReport, MAX_CLOCKLESS_MS, PEER_SILENT};
use crate::noise::{Noise, parse_rate};

mod requests;

use requests::Failure;

/// See the module docs.
#[derive(Debug)]
pub struct LiveDevice {
    pub device: Box<dyn Device>,
    noise: Noise,
    /// The reason why each port's link is down, according to events.
    why: Vec<Option<String>>,
    /// The defect of each port's wire: the name of the state, and the reason.
    wires: Vec<Option<(&'static str, String)>>,
    /// Bit mask of the ports below which the kernel impairs frames.
    impaired: u64,
    /// Number of faults injected, by port and kind.
    faults: BTreeMap<(PortId, &'static str), u64>,
    /// Time at which a quiesced router resumes without a release.
    held_until: Option<Time>,
    /// The client that holds the node for runs.
    claims: Claims,
}

impl LiveDevice {
    /// A node without noise. `seed` is for noise that is injected later.
    pub fn new(device: Box<dyn Device>, seed: u64) -> Self {
        let ports = device.ports();
        assert!(ports <= MAX_PORTS, "masks of ports have {MAX_PORTS} bits");
        let (why, wires) = (vec![None; ports], vec![None; ports]);
        Self {
            device,
            noise: Noise::new(seed),
            why,
            wires,
            impaired: 0,
            faults: BTreeMap::new(),
            held_until: None,
            claims: Claims::default(),
        }
    }

    pub fn linked_ports(&self) -> impl Iterator<Item = PortId> {
        self.device.links().map(|(port, _)| port)
    }

    /// Records the defect of a port's wire, if any: the name of the state, and the reason.
    pub fn set_wire(&mut self, port: PortId, wrong: Option<(&'static str, String)>) {
        if let Some(wire) = self.wires.get_mut(usize::from(port)) {
            *wire = wrong;
        }
    }

    /// Records the ports, as a bit mask, below which the kernel impairs frames.
    pub fn set_impaired(&mut self, ports: u64) {
        self.impaired = ports;
    }

    /// The state of the links, by port.
    pub fn links(&self, now: Time) -> Vec<LinkReport> {
        let links = self.device.links();
        links
            .map(|(port, link)| self.report(now, port, link))
            .collect()
    }

    fn report(&self, now: Time, port: PortId, link: &dyn LinkView) -> LinkReport {
        let mut report = LinkReport::of(port, link);
        let heard = link.last_accepted();
        report.heard_ms = heard.map(|at| now.since(at).as_ns() / 1_000_000);
        if !report.up {
            let reason = self.why[usize::from(port)].clone();
            report.why =
                Some(reason.unwrap_or_else(|| guess(link.state(), link.counters(), &report.peer)));
        } else if link.is_silent() {
            report.state = "silent".to_owned();
            report.why = Some(silent(&report));
        } else if link.is_stalled() {
            report.state = "stalled".to_owned();
            report.why = Some(stalled(&report.peer));
        }
        // Report the wire's defect: it is the cause, even if the link has not noticed it yet.
        if let Some((name, why)) = &self.wires[usize::from(port)] {
            report.state = (*name).to_owned();
            report.why = Some(why.clone());
        }
        report.up &= report.why.is_none();
        report.impaired = self.impaired >> port & 1 != 0;
        report
    }

    /// Calls `visit` with every counter of the node and of the noise.
    pub fn for_each_counter(&self, visit: &mut dyn FnMut(&str, u64)) {
        self.device.for_each_counter(visit);
        visit("noise.flipped_bits", self.noise.flipped_bits());
        for ((port, fault), &times) in &self.faults {
            visit(
                &format!("port{port}.fault_{}", fault.replace('-', "_")),
                times,
            );
        }
    }

    fn fault(&mut self, now: Time, fault: &Fault) -> Result<(), Failure> {
        let port = fault.port();
        let Some(link) = self.device.link(port) else {
            let linked = self.linked_ports().map(|port| port.to_string()).collect();
            return Err(Failure::NoLink { port, linked });
        };
        let layout = link.lane_layout();
        let fault = match *fault {
            Fault::LaneNoise { lane, ref rate, .. } => {
                let per_bit = parse_rate(rate).map_err(Failure::Noise)?;
                let fault = LinkFault::LaneNoise { lane, per_bit };
                return match self.device.link_fault(now, port, fault) {
                    // The device does not support this fault, so inject it on the cable.
                    Err(DeviceError::NoSuchFault { .. }) => {
                        let noise = self.noise.set((port, layout), lane, per_bit);
                        noise.map_err(Failure::Noise)
                    }
                    suffered => Ok(suffered?),
                };
            }
            Fault::SoftError { .. } => LinkFault::SoftError,
            Fault::LinkDown { .. } => LinkFault::Down,
            Fault::LinkUp { .. } => LinkFault::Up,
            Fault::ForceRetry { .. } => LinkFault::ForceRetry,
            Fault::BadCrc { .. } => LinkFault::BadCrc,
            Fault::Reinit { .. } => LinkFault::Reinit,
            Fault::LoseClock { ms, .. } => {
                at_most("ms", ms, MAX_CLOCKLESS_MS)?;
                LinkFault::LoseClock(Duration::from_ms(ms))
            }
            Fault::Inject {
                lane_mask,
                bit_mask,
                probability,
                max_per_64_sets,
                seed,
                ..
            } => {
                at_most("lane_mask", lane_mask, 7)?;
                at_most("max_per_64_sets", max_per_64_sets, 64)?;
                LinkFault::Inject(ErrorInjection {
                    lane_mask,
                    bit_mask,
                    probability,
                    max_per_64_sets,
                    seed,
                })
            }
        };
        Ok(self.device.link_fault(now, port, fault)?)
    }

    /// Handles the disconnect of a control client. If it held this node, its runs end.
    pub fn client_gone(&mut self, now: Time, client: ClientId) {
        self.claims.client_gone(&mut *self.device, now, client);
    }

    /// Releases the router if the client that quiesced it has not renewed the hold in time.
    fn end_hold(&mut self, now: Time) {
        if self.held_until.is_some_and(|until| until <= now) {
            self.held_until = None;
            if let Some(router) = self.device.rerouting() {
                router.release();
                tracing::warn!(
                    "released the router: the client that quiesced it did not renew the hold"
                );
            }
        }
    }

    /// Records why a link is down, if the event gives a reason.
    fn note(&mut self, event: &DeviceEvent) {
        let Some((port, event)) = event.link() else {
            return;
        };
        let Some(why) = self.why.get_mut(usize::from(port)) else {
            return;
        };
        match event {
            LinkEvent::Up { .. } => *why = None,
            LinkEvent::Down { why: reason, .. } => {
                *why = Some(match reason {
                    DownReason::Stalled => format!("{}: {UNHEARD}", down(*reason)),
                    _ => down(*reason).to_owned(),
                });
            }
            LinkEvent::Refused { message } => *why = Some(message.clone()),
            _ => {}
        }
    }
}

fn at_most(what: &'static str, value: impl Into<u64>, most: u64) -> Result<(), Failure> {
    let value = value.into();
    if value <= most {
        Ok(())
    } else {
        Err(Failure::TooLarge(what, value, most))
    }
}

/// Possible causes if the peer is heard but hears nothing.
const UNHEARD: &str = "do frames of this link's MTU get through to it? Has the hardware address of \
                       its interface changed (see its log; run `ip neigh flush nud all` here)?";

fn down(reason: DownReason) -> &'static str {
    match reason {
        DownReason::Command => "taken down by command at this end",
        DownReason::PeerDown => "taken down by command at the other end",
        DownReason::NoLanes => "all lanes failed after too many retries",
        DownReason::PeerRestarted => "the other end restarted; the link is training again",
        DownReason::Silence => PEER_SILENT,
        DownReason::Stalled => {
            "the other end is alive but acknowledges nothing; the link is training again"
        }
        DownReason::Missing => {
            "a missing packet was not resent for a minute; the link is training again"
        }
        DownReason::Unusable => "no received frame was usable; the link is training again",
    }
}

fn silent(report: &LinkReport) -> String {
    let peer = &report.peer;
    let since = match report.heard_ms {
        Some(ms) => format!("nothing accepted from {peer} for {:.1} s", ms as f64 / 1e3),
        None => format!("nothing accepted from {peer}"),
    };
    match report.unacknowledged_packets {
        0 => format!("{since}, despite probes"),
        packets => format!("{since}; {packets} packets are unacknowledged"),
    }
}

fn stalled(peer: &str) -> String {
    format!("{peer} is alive but acknowledges nothing: {UNHEARD}")
}

/// Guesses from the counters why a link is not up.
fn guess(state: LinkState, counters: &LinkCounters, peer: &str) -> String {
    let foreign = [
        (counters.drop_wrong_fabric, "frames of another lab"),
        (counters.drop_wrong_link, "frames of another link"),
        (counters.drop_wrong_end, "reflections of its own frames"),
        (
            counters.drop_bad_version,
            "frames of another protocol version",
        ),
        (counters.drop_bad_magic, "frames of another protocol"),
        (
            counters.drop_wrong_peer,
            "training frames from a node other than the expected peer",
        ),
    ];
    let foreign = foreign.iter().max_by_key(|(count, _)| count);
    let foreign = foreign.filter(|(count, _)| *count > 0);
    match (state, foreign) {
        (LinkState::Disabled, _) => down(DownReason::Command).to_owned(),
        (LinkState::Dead, _) => down(DownReason::NoLanes).to_owned(),
        (_, Some((count, what))) => {
            format!("receives {what} ({count}), expected frames from {peer}")
        }
        _ if counters.rx_frames == 0 => {
            format!("nothing received from {peer}: is its process running and its interface up?")
        }
        _ => format!("{peer} is alive, but training has not finished"),
    }
}

impl Node for LiveDevice {
    type Event = DeviceEvent;

    fn ports(&self) -> usize {
        self.device.ports()
    }

    fn handle_frame(&mut self, now: Time, port: PortId, bytes: &[u8]) {
        self.device.handle_frame(now, port, bytes);
    }

    fn handle_suspension(&mut self, now: Time, span: Duration) {
        self.device.handle_suspension(now, span);
    }

    fn advance(&mut self, now: Time) {
        self.end_hold(now);
        self.device.advance(now);
        // Settle memory before the completions that refer to it are delivered to programs.
        if let Some(port) = self.device.local_port() {
            port.flush();
        }
    }

    fn ready_ports(&self) -> u64 {
        self.device.ready_ports()
    }

    fn poll_frame(&mut self, now: Time, port: PortId, buf: &mut [u8]) -> Option<usize> {
        let bytes = self.device.poll_frame(now, port, buf)?;
        self.noise.apply(port, &mut buf[..bytes]);
        Some(bytes)
    }

    fn next_wakeup(&self) -> Option<Wakeup> {
        let hold = self.held_until.map(|at| Wakeup {
            at,
            reason: WakeReason::Request,
        });
        Wakeup::earlier(self.device.next_wakeup(), hold)
    }

    fn poll_event(&mut self) -> Option<DeviceEvent> {
        let event = self.device.poll_event()?;
        self.note(&event);
        Some(event)
    }
}

#[cfg(test)]
mod tests;

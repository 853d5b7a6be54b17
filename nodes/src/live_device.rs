//! A node with the additions of a process: cable noise, the reasons why links are down, and the
//! client that holds it for runs.

use std::collections::BTreeMap;

use phitwire::chip::RegisterError;
use phitwire::device::{Device, DeviceError, DeviceEvent, LinkFault, LinkView, RegisterName};
use phitwire::link::{DownReason, ErrorInjection, LinkCounters, LinkEvent, LinkState};
use phitwire::node::{MAX_PORTS, Node, PortId, WakeReason, Wakeup};
use phitwire::time::{Duration, Time};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::clock;
use crate::control::server::ClientId;
use crate::control::{
    Fault, LinkReport, MAX_CLOCKLESS_MS, ProbeReport, Refusal, Register, Request, WatchedReport,
};
use crate::holding::{self, Holding};
use crate::noise::{Noise, parse_rate};

/// See the module docs.
#[derive(Debug)]
pub struct LiveDevice {
    pub device: Box<dyn Device>,
    noise: Noise,
    /// The reason why each port's link is down, according to events.
    why: Vec<Option<String>>,
    /// The defect of each port's wire: the name of the state, and the reason.
    wires: Vec<Option<(&'static str, String)>>,
    /// Bit mask of the ports behind which a queueing discipline delays or drops frames.
    impaired: u64,
    /// Number of faults made on each port.
    faults: BTreeMap<(PortId, &'static str), u64>,
    /// Time at which a quiesced router resumes without a release.
    held_until: Option<Time>,
    /// The client that holds the node for runs.
    holding: Holding,
}

/// Longest time for which one command quiesces a router, in milliseconds.
const LONGEST_HOLD_MS: u64 = 60_000;

/// Longest time for which a router watches packets, in milliseconds.
const LONGEST_WATCH_MS: u64 = 600_000;
/// Maximum number of passages in one reply, which must fit into a line. The latest ones are kept.
const MOST_TOLD: usize = 512;

/// Offset to add to the process time `now` to get nanoseconds since the machine was started.
fn clock_offset_ns(now: Time) -> i64 {
    let since_boot = i128::from(clock::since_boot_ns());
    (since_boot - i128::from(now.as_ns())) as i64
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error("invalid run specification: {0}")]
    Spec(serde_json::Error),
    /// The reply cannot be serialised.
    #[error(transparent)]
    Answer(#[from] serde_json::Error),
    #[error("no such traffic run")]
    UnknownRun,
    #[error("no collective run was started here")]
    NoCollectives,
    #[error("no barrier run was started at unit {0}")]
    NoBarriers(u8),
    #[error("the other router reported: {0}")]
    Remote(RegisterError),
    #[error("port {port} has no link; ports with a link: {}", .linked.join(" "))]
    NoLink {
        port: PortId,
        /// The ports that have a link.
        linked: Vec<String>,
    },
    /// The noise rate or the lane is invalid.
    #[error("{0}")]
    Noise(String),
    #[error("{0} is {1}, but at most {2} is allowed")]
    TooLarge(&'static str, u64, u64),
    #[error("the hold must be 1 to {LONGEST_HOLD_MS} ms, not {0}; renew it before it expires")]
    Hold(u64),
    #[error("the watch must be 1 to {LONGEST_WATCH_MS} ms, not {0}")]
    Watch(u64),
    /// The node does not handle the request; the process does.
    #[error("requests of this kind are not for the node")]
    NotOurs,
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        failure.to_string().into()
    }
}

impl LiveDevice {
    /// `device` on clean cables. `seed` is for the noise of later faults.
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
            holding: Holding::default(),
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

    /// Records the ports, as a bit mask, behind which a queueing discipline delays or drops frames.
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
            let told = self.why[usize::from(port)].clone();
            report.why =
                Some(told.unwrap_or_else(|| guess(link.state(), link.counters(), &report.peer)));
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
                    // The device does not support this fault, so make it on the cable.
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

    /// Handles a request that concerns only the node.
    ///
    /// # Errors
    /// The node's refusal, or that the process must handle this request.
    pub fn answer(
        &mut self,
        now: Time,
        client: ClientId,
        request: Request,
    ) -> Result<Value, Refusal> {
        match request {
            Request::Claim(holder) => self.holding.claim(&*self.device, client, holder),
            Request::TrafficStart { .. } | Request::CollectiveStart { .. } => {
                self.holding.may_start(client)?;
                Ok(self.answer_itself(now, request)?)
            }
            Request::ClaimUnit { unit, holder } => {
                self.holding
                    .claim_unit(&*self.device, (client, unit), holder)
            }
            Request::BarrierPrepare { unit } => {
                self.holding.may_use(client, unit)?;
                Ok(self.answer_itself(now, request)?)
            }
            Request::BarrierStart { ref spec } => {
                if let Some(unit) = spec["unit"]
                    .as_u64()
                    .and_then(|unit| u8::try_from(unit).ok())
                {
                    self.holding.may_use(client, unit)?;
                }
                Ok(self.answer_itself(now, request)?)
            }
            Request::TrafficStatus { .. }
            | Request::CollectiveStatus
            | Request::BarrierStatus { .. } => {
                let known = self.answer_itself(now, request);
                known.map_err(|unknown| holding::unknown_run(self.device.kind(), unknown.into()))
            }
            request => Ok(self.answer_itself(now, request)?),
        }
    }

    /// Handles the disconnect of a control client. If it held this node, its runs end.
    pub fn client_gone(&mut self, now: Time, client: ClientId) {
        self.holding.client_gone(&mut *self.device, now, client);
    }

    fn answer_itself(&mut self, now: Time, request: Request) -> Result<Value, Failure> {
        let device = &mut *self.device;
        match request {
            Request::Links => return written(&self.links(now)),
            Request::Pipeline => return written(&device.pipeline()),
            Request::Fault(fault) => {
                self.fault(now, &fault)?;
                *self.faults.entry((fault.port(), fault.word())).or_default() += 1;
            }
            Request::Get { register } => {
                let name = register_name(&register);
                let value = device.need_registers(name)?.read(name)?;
                return Ok(register_value(&register, value));
            }
            Request::Set { register, value } => {
                let name = register_name(&register);
                device.need_registers(name)?.write(name, value)?;
                return Ok(register_value(&register, value));
            }
            Request::TrafficStart { spec } => {
                let traffic = device.need_traffic_mut()?;
                traffic.start(now, read(spec)?)?;
            }
            Request::TrafficStatus { run } => {
                let report = device.need_traffic()?.report(run);
                return written(&report.ok_or(Failure::UnknownRun)?);
            }
            Request::TrafficStop => device.need_traffic_mut()?.stop(),
            Request::CollectiveStart { spec } => {
                let collectives = device.need_collectives_mut()?;
                collectives.start(now, read(spec)?)?;
            }
            Request::CollectiveStatus => {
                let report = device.need_collectives()?.report();
                return written(&report.ok_or(Failure::NoCollectives)?);
            }
            Request::CollectiveStop => device.need_collectives_mut()?.stop(now),
            Request::BarrierPrepare { unit } => device.need_barriers_mut()?.prepare(unit)?,
            Request::BarrierStart { spec } => {
                let barriers = device.need_barriers_mut()?;
                barriers.start(now, read(spec)?)?;
            }
            Request::BarrierStatus { unit } => {
                let report = device.need_barriers()?.report(unit);
                return written(&report.ok_or(Failure::NoBarriers(unit))?);
            }
            Request::BarrierStop { unit } => device.need_barriers_mut()?.stop(unit),
            Request::RemoteAsk {
                way,
                register,
                value,
            } => return self.ask_remote(&way, &register, value),
            Request::RemoteAnswer { question } => return self.remote_answer(question),
            Request::Quiesce { hold_ms } => self.quiesce(now, hold_ms)?,
            Request::Release => {
                self.held_until = None;
                device.need_rerouting()?.release();
            }
            Request::Routing => return written(&device.need_rerouting()?.routing()),
            Request::Tables => return Ok(device.need_rerouting()?.tables()),
            Request::Install { tables } => device.need_rerouting()?.install(tables)?,
            Request::Renumber { number } => device.need_traffic_mut()?.renumber(number)?,
            Request::Watch { flow, hold_ms } => {
                if !(1..=LONGEST_WATCH_MS).contains(&hold_ms) {
                    return Err(Failure::Watch(hold_ms));
                }
                let until = now + Duration::from_ms(hold_ms);
                device.need_tracing()?.watch(now, flow, until);
            }
            Request::Watched { identity } => {
                let mut watched = device.need_tracing()?.watched(now, identity);
                let many = watched.passages.len().saturating_sub(MOST_TOLD);
                watched.passages.drain(..many);
                watched.dropped += many as u64;
                return written(&WatchedReport {
                    watched,
                    clock_offset_ns: clock_offset_ns(now),
                });
            }
            Request::Want { identity } => device.need_tracing()?.want(identity),
            Request::Unwatch => device.need_tracing()?.unwatch(),
            Request::Probe(spec) => {
                let probe = device.need_probes()?.probe(now, &spec);
                return written(&ProbeReport {
                    probe: probe.map_err(DeviceError::from)?,
                    sent_ps: now.as_ps(),
                    clock_offset_ns: clock_offset_ns(now),
                });
            }
            Request::ProbeEnded { number } => {
                return match device.need_probes()?.probe_ended(number) {
                    Some(end) => written(&end),
                    None => Ok(json!({ "pending": true })),
                };
            }
            Request::Registers => {
                let name = RegisterName::Name("at all");
                return written(&device.need_registers(name)?.list());
            }
            Request::Outlook(question) => {
                return written(&device.need_outlook()?.outlook(&question));
            }
            Request::Stats
            | Request::Info
            | Request::Offload { .. }
            | Request::Claim(_)
            | Request::ClaimUnit { .. }
            | Request::Shutdown => return Err(Failure::NotOurs),
        }
        Ok(json!({}))
    }

    /// Requests a register access at another router. The client polls for the reply.
    fn ask_remote(
        &mut self,
        way: &[i8],
        register: &Register,
        value: Option<u64>,
    ) -> Result<Value, Failure> {
        let remote = self.device.need_remote_registers()?;
        let question = remote.ask(way, register_name(register), value)?;
        Ok(json!({ "question": question }))
    }

    fn remote_answer(&mut self, question: u32) -> Result<Value, Failure> {
        let answer = self.device.need_remote_registers()?.answer(question);
        Ok(match answer {
            None => json!({ "pending": true }),
            Some(value) => {
                let value = value.map_err(Failure::Remote)?;
                json!({ "value": value, "hex": format!("{value:#x}") })
            }
        })
    }

    fn quiesce(&mut self, now: Time, hold_ms: u64) -> Result<(), Failure> {
        if !(1..=LONGEST_HOLD_MS).contains(&hold_ms) {
            return Err(Failure::Hold(hold_ms));
        }
        self.device.need_rerouting()?.quiesce();
        self.held_until = Some(now + Duration::from_ms(hold_ms));
        Ok(())
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
            LinkEvent::Down { why: reason, .. } => *why = Some(down(*reason).to_owned()),
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

fn read<T: DeserializeOwned>(spec: Value) -> Result<T, Failure> {
    serde_json::from_value(spec).map_err(Failure::Spec)
}

fn written(answer: &impl Serialize) -> Result<Value, Failure> {
    Ok(serde_json::to_value(answer)?)
}

fn register_name(register: &Register) -> RegisterName<'_> {
    match register {
        Register::Address(address) => RegisterName::Address(*address),
        Register::Name(name) => RegisterName::Name(name),
    }
}

/// The reply to a register access. `hex` is for readers such as `jq` whose numbers are
/// floating-point: a register has 64 bits, the mantissa of a double 53.
fn register_value(register: &Register, value: u64) -> Value {
    json!({ "register": register, "value": value, "hex": format!("{value:#x}") })
}

fn down(reason: DownReason) -> &'static str {
    match reason {
        DownReason::Command => "taken down by command at this end",
        DownReason::PeerDown => "taken down by command at the other end",
        DownReason::NoLanes => "all lanes failed after too many retries",
        DownReason::PeerRestarted => "the other end restarted; the link is training again",
        DownReason::Silence => "the other end is silent",
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
    format!(
        "{peer} is alive but acknowledges nothing: do frames of this link's MTU get through to \
         it? Has the hardware address of its interface changed (see its log; run `ip neigh flush \
         all` here)?"
    )
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

    fn stood_still(&mut self, now: Time, span: Duration) {
        self.device.stood_still(now, span);
    }

    fn advance(&mut self, now: Time) {
        self.end_hold(now);
        self.device.advance(now);
        // Settle memory before the completions that refer to it are delivered to programs.
        if let Some(port) = self.device.local_port() {
            port.settle();
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
mod tests {
    use super::*;

    #[test]
    fn faults_beyond_what_their_help_names_are_refused() {
        let mut device = crate::holding::tests::device();
        let inject = |lane_mask, max_per_64_sets| Fault::Inject {
            port: 0,
            probability: 1,
            lane_mask,
            bit_mask: 1,
            max_per_64_sets,
            seed: 1,
        };
        let lose = |ms| Fault::LoseClock { port: 0, ms };
        for (fault, why) in [
            (lose(60_001), "ms is 60001, but at most 60000 is allowed"),
            (inject(8, 1), "lane_mask is 8, but at most 7 is allowed"),
            (
                inject(7, 65),
                "max_per_64_sets is 65, but at most 64 is allowed",
            ),
        ] {
            let refused = device.answer(Time::ZERO, 1, Request::Fault(fault));
            assert_eq!(refused.expect_err(why).text, why);
        }
        // This link has no sets, so it must refuse the fault even for values in range.
        for fault in [lose(60_000), inject(7, 64)] {
            let refused = device.answer(Time::ZERO, 1, Request::Fault(fault));
            let text = refused.expect_err("the link has no sets").text;
            assert!(!text.contains("at most"), "{text}");
        }
    }

    #[test]
    fn the_answer_about_a_register_has_all_64_bits() {
        let answer = register_value(&Register::Name("mask".into()), 1 << 63 | 1);
        assert_eq!(answer["hex"], "0x8000000000000001");
        assert_eq!(answer["value"], 1_u64 << 63 | 1);
    }
}

//! The NIC as a node, with ports, memory, requests and traffic.

use phitwire_framing::yarc::maintenance::{Maintenance, Operation as RegisterOperation};
use phitwire_framing::yarc::memory::Request;
use phitwire_framing::yarc::packet::{EopStatus, PacketBuf, Vc, eop_status, head_source_routed};
use phitwire_framing::yarc::phit::Phit;

use super::ABILITIES;
use super::config::NicConfig;
use super::counters::NicCounters;
use super::outstanding::{Asker, Tid, longer_periods};
use super::port::Port;
use super::requester::{Answer, Completion, Outcome, PostError, Requester, slice_of};
use super::responder::Responder;
use crate::link::Lcb;
use phitwire::kit::Events;
use phitwire::link::{LinkEvent, NodeLink};
use phitwire::nic::checker::ANNOUNCE_ADDRESS;
use phitwire::nic::memory::Memory;
use phitwire::nic::periods::Periods;
use phitwire::nic::programs::{Answer as Ended, Programs};
use phitwire::nic::runs::Runs;
use phitwire::nic::traffic::Source;
use phitwire::nic::traffic_report::TrafficReport;
use phitwire::nic::traffic_spec::{Operation, SpecError, TrafficSpec};
use phitwire::nic::{
    Answered, Issuer, Message, ProbeError, ProbeLog, ProbeOutcome, ProbeSpec, RunRequest,
    probed_address,
};
use phitwire::node::{Node, PortId, WakeReason, Wakeup};
use phitwire::rng::Rng;
use phitwire::time::{Duration, Time};

/// Maximum number of events kept until they are fetched; the oldest is dropped first.
const MAX_EVENTS: usize = 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NicEvent {
    Link {
        port: PortId,
        event: LinkEvent,
    },
    /// All messages of a traffic run have been answered or have timed out.
    TrafficDone {
        run: u64,
    },
    Register {
        /// The port on which the reply arrived.
        port: PortId,
        reply: Maintenance,
    },
}

/// A BlackWidow NIC; see the module's documentation.
///
/// Beyond the calls of [`Node`], [`post`](Self::post) may be called at any time, also between
/// `advance` and `poll_frame`, and [`poll_completion`](Self::poll_completion) after `advance`.
/// [`start_traffic`](Self::start_traffic) may be called at any time and takes effect at the next
/// `advance`.
#[derive(Debug)]
pub struct BlackWidowNic {
    config: NicConfig,
    ports: Vec<Port>,
    requester: Requester,
    responder: Responder,
    runs: Runs,
    /// Counters that the parts do not keep.
    counters: NicCounters,
    events: Events<NicEvent>,
    pub(super) probes: ProbeLog,
    now: Time,
}

impl BlackWidowNic {
    /// Creates a NIC whose links start to train at `now`.
    pub fn new(config: NicConfig, now: Time) -> Self {
        let ports = config
            .ports
            .iter()
            .map(|link| Port::new(link.clone(), now))
            .collect();
        let (timeout, slots) = (config.request_timeout, config.max_outstanding);
        let longer = longer_periods(slots);
        let periods = Periods::new(config.incarnation, now, timeout, longer);
        Self {
            requester: Requester::new(config.processor, slots, periods, timeout),
            responder: Responder::new(config.processor, config.memory_bytes),
            ports,
            runs: Runs::default(),
            counters: NicCounters::default(),
            events: Events::new(MAX_EVENTS),
            probes: ProbeLog::default(),
            now,
            config,
        }
    }

    pub fn config(&self) -> &NicConfig {
        &self.config
    }

    pub fn processor(&self) -> u16 {
        self.config.processor
    }

    /// Posts a write or read to processor `dest`. [`poll_completion`](Self::poll_completion)
    /// returns its outcome. Requests to one 64-byte block of one processor are executed in posting
    /// order.
    ///
    /// # Errors
    /// On a [`PostError`] nothing is posted.
    pub fn post(&mut self, now: Time, dest: u16, request: Request) -> Result<Tid, PostError> {
        if !self.requester.user_has_room() {
            return Err(PostError::TooMany);
        }
        let ports = &mut self.ports;
        self.requester
            .issue(now, dest, &request, Asker::User, ports)
    }

    /// Writes `data` (1 to 32 bytes) to `address` of processor `dest`; see [`post`](Self::post).
    ///
    /// # Errors
    /// See [`PostError`].
    pub fn write(
        &mut self,
        now: Time,
        dest: u16,
        address: u64,
        data: &[u8],
    ) -> Result<Tid, PostError> {
        let mut line = [0; 32];
        let fitting = data.len().min(line.len());
        line[..fitting].copy_from_slice(&data[..fitting]);
        // The encoder rejects invalid lengths.
        let len = u8::try_from(data.len()).unwrap_or(u8::MAX);
        self.post(
            now,
            dest,
            Request::Write {
                address,
                data: line,
                len,
            },
        )
    }

    /// Reads `len` (1 to 32) bytes at `address` of processor `dest`; see [`post`](Self::post).
    ///
    /// # Errors
    /// See [`PostError`].
    pub fn read(&mut self, now: Time, dest: u16, address: u64, len: u8) -> Result<Tid, PostError> {
        self.post(now, dest, Request::Read { address, len })
    }

    /// Posts a request for a local program.
    pub(super) fn post_for_program(
        &mut self,
        now: Time,
        dest: u16,
        request: &Request,
    ) -> Result<Tid, PostError> {
        let ports = &mut self.ports;
        self.requester
            .issue(now, dest, request, Asker::Program, ports)
    }

    pub(super) fn post_probe(&mut self, now: Time, spec: &ProbeSpec) -> Result<Tid, ProbeError> {
        let len = u8::try_from(spec.bytes).unwrap_or(u8::MAX);
        let request = match spec.op {
            Operation::Put => Request::Write {
                // Within the range of probe addresses, so that any path can be probed.
                address: probed_address(spec.address),
                data: [0; 32],
                len,
            },
            Operation::Get => Request::Read {
                address: spec.address,
                len,
            },
            Operation::Amo => return Err(ProbeError::Impossible),
        };
        let ports = &mut self.ports;
        let issued = self
            .requester
            .issue(now, spec.to, &request, Asker::Probe, ports);
        issued.map_err(|error| match error {
            PostError::TooMany | PostError::QueueFull => ProbeError::Full,
            _ => ProbeError::Impossible,
        })
    }

    pub(super) fn programs_mut(&mut self) -> &mut Programs {
        &mut self.responder.programs
    }

    pub fn poll_completion(&mut self) -> Option<Completion> {
        self.requester.poll_completion()
    }

    /// Sends a maintenance packet on `port`. Its reply arrives as [`NicEvent::Register`]. Tags and
    /// timeouts are the task of the maintenance controller.
    ///
    /// # Errors
    /// [`PostError::Port`], [`PostError::QueueFull`], [`PostError::Route`].
    pub fn post_maintenance(
        &mut self,
        port: PortId,
        packet: &Maintenance,
    ) -> Result<(), PostError> {
        let at = self
            .ports
            .get_mut(usize::from(port))
            .ok_or(PostError::Port(port))?;
        if !at.request_has_room() {
            return Err(PostError::QueueFull);
        }
        let mut out = PacketBuf::new();
        if packet.operation.vc() != Vc::Request || !packet.encode(&mut out) {
            return Err(PostError::Route);
        }
        at.send_request(None, &out);
        Ok(())
    }

    /// Number of outstanding requests of the user and of traffic runs.
    pub fn outstanding(&self) -> u32 {
        self.requester.outstanding.slab.used()
    }

    /// The links, including input not yet processed.
    pub(super) fn link_ports(&self) -> impl Iterator<Item = (usize, &Lcb)> {
        self.ports.iter().map(|port| &port.link).enumerate()
    }

    /// Number of requests and responses queued for each link.
    pub(super) fn waiting_for_links(&self) -> impl Iterator<Item = (usize, [u64; 2])> {
        self.ports.iter().map(Port::waiting).enumerate()
    }

    pub fn memory(&self) -> &Memory {
        &self.responder.memory
    }

    /// This processor's memory, for local writes.
    pub fn memory_mut(&mut self) -> &mut Memory {
        &mut self.responder.memory
    }

    pub fn lcb(&self, port: PortId) -> Option<&Lcb> {
        Some(&self.ports.get(usize::from(port))?.link)
    }

    /// The link control block of a port, for fault commands.
    pub fn lcb_mut(&mut self, port: PortId) -> Option<&mut Lcb> {
        Some(&mut self.ports.get_mut(usize::from(port))?.link)
    }

    /// Counters of all parts except the links.
    pub fn counters(&self) -> NicCounters {
        let mut all = NicCounters {
            run_stragglers: self.responder.checker.stragglers(),
            ..self.counters.clone()
        };
        all.add(&self.requester.counters);
        all.add(&self.responder.counters);
        self.ports.iter().for_each(|port| all.add(&port.counters));
        all
    }

    /// Starts a traffic run.
    ///
    /// # Errors
    /// See [`SpecError`]; a run in progress then continues.
    pub fn start_traffic(&mut self, now: Time, spec: TrafficSpec) -> Result<(), SpecError> {
        let Self { config, .. } = self;
        let nonce = Rng::new(config.seed ^ now.as_ps(), u64::from(config.processor)).next_u64();
        let source = Source {
            processor: config.processor,
            memory_bytes: config.memory_bytes,
            nonce: nonce as u32,
            abilities: ABILITIES,
            timeout: config.request_timeout,
        };
        self.runs
            .start(now, spec, source, |processor| Some(processor.into()))
    }

    /// Excludes the last `bytes` of every memory from later runs.
    pub(super) fn reserve_memory(&mut self, bytes: u64) {
        self.runs.reserve(bytes);
    }

    /// Number of writes of other processors executed here.
    pub(super) fn writes_served(&self) -> u64 {
        self.responder.counters.writes_served
    }

    /// Stops issuing messages of the current run, if any, but still waits for outstanding ones.
    pub fn stop_traffic(&mut self) {
        self.runs.stop();
    }

    /// This NIC's report on `run`, as source and target. Without `run`: of the last run started
    /// here, or else of the last one announced here. `None` if no such run is known.
    pub fn traffic_report(&self, run: Option<u64>) -> Option<TrafficReport> {
        let no_atomics = |_| unreachable!("this NIC has no atomic operations");
        let checker = &self.responder.checker;
        self.runs.report(run, checker, no_atomics)
    }

    fn event(&mut self, event: NicEvent) {
        self.counters.events_lost += self.events.push(event);
    }

    /// Delivers the outcome of a request to its requester.
    #[inline]
    fn settle(&mut self, now: Time, answer: Answer) {
        let Answer {
            pending, outcome, ..
        } = &answer;
        let request = match pending.asker {
            Asker::User => return self.requester.complete(now, answer),
            Asker::Program => {
                let ended = match outcome {
                    Outcome::TimedOut => Ended::Unknown,
                    Outcome::Refused { .. } => Ended::Refused,
                    Outcome::Written => Ended::Done(&[]),
                    Outcome::Read { data, len } => Ended::Done(&data[..usize::from(*len)]),
                };
                let name = answer.tid.bits().into();
                return self.responder.programs.ended(name, ended);
            }
            Asker::Probe => {
                let ended = match outcome {
                    Outcome::TimedOut => ProbeOutcome::TimedOut,
                    Outcome::Refused { .. } => ProbeOutcome::Refused,
                    Outcome::Written | Outcome::Read { .. } => ProbeOutcome::Done,
                };
                let times = (pending.posted, now);
                return self.probes.ended(answer.tid.bits().into(), times, ended);
            }
            Asker::Run(request) => request,
        };
        let answered = match outcome {
            Outcome::TimedOut => Answered::Unknown,
            Outcome::Refused { .. } => Answered::Refused,
            Outcome::Written => Answered::Written,
            Outcome::Read { data, len } => Answered::Read(&data[..usize::from(*len)]),
        };
        let request = (request, pending.address);
        self.runs.answered(now, pending.posted, request, answered);
    }

    /// Processes arrivals on port `index`: all responses, and requests while there is room for
    /// their responses.
    fn receive(&mut self, now: Time, index: usize) {
        while self.ports[index].receive(Vc::Response) {
            let packet = self.ports[index].packet(Vc::Response);
            match open(packet, &mut self.counters) {
                Envelope::Memory => {
                    if let Some(answer) = self.requester.answer(packet) {
                        self.settle(now, answer);
                    }
                }
                Envelope::Reply(reply) => self.event(NicEvent::Register {
                    port: index as PortId,
                    reply,
                }),
                Envelope::Discarded => {}
            }
        }
        let mut out = PacketBuf::new();
        let port = &mut self.ports[index];
        while port.response_has_room() {
            if !port.receive(Vc::Request) {
                break;
            }
            let packet = port.packet(Vc::Request);
            if matches!(open(packet, &mut self.counters), Envelope::Memory)
                && self.responder.serve(packet, &mut out)
            {
                port.send_response(&out);
            }
        }
        if !port.response_has_room() && port.link.input().ready(Vc::Request) {
            self.counters.response_stalls += 1;
        }
        port.link.give_back();
    }
}

/// Kind of a complete packet, from its first and last phit.
enum Envelope {
    /// Undamaged and not source-routed: a request or response, if it can be decoded.
    Memory,
    Reply(Maintenance),
    Discarded,
}

#[inline]
fn open(packet: &[Phit], counters: &mut NicCounters) -> Envelope {
    let (Some(head), Some(eop)) = (packet.first(), packet.last()) else {
        return Envelope::Discarded;
    };
    match eop_status(eop.content()) {
        Some(EopStatus::Healthy) if head_source_routed(head.content()) => {
            return open_maintenance(packet, counters);
        }
        Some(EopStatus::Healthy) => return Envelope::Memory,
        Some(EopStatus::SoftError) => counters.discard_soft_error += 1,
        Some(EopStatus::TransmitError) => counters.discard_transmit_error += 1,
        None => counters.discard_shape += 1,
    }
    Envelope::Discarded
}

#[cold]
fn open_maintenance(packet: &[Phit], counters: &mut NicCounters) -> Envelope {
    match Maintenance::decode(packet) {
        Ok(reply) if is_reply(&reply) => return Envelope::Reply(reply),
        Ok(_) => counters.discard_source_routed += 1,
        Err(error) => counters.malformed(error),
    }
    Envelope::Discarded
}

fn is_reply(packet: &Maintenance) -> bool {
    matches!(
        packet.operation,
        RegisterOperation::ReadReply { .. } | RegisterOperation::WriteReply { .. }
    )
}

impl Node for BlackWidowNic {
    type Event = NicEvent;

    fn ports(&self) -> usize {
        self.ports.len()
    }

    fn handle_frame(&mut self, now: Time, port: PortId, bytes: &[u8]) {
        if let Some(port) = self.ports.get_mut(usize::from(port)) {
            port.link.handle_frame(now, bytes);
        }
    }

    fn stood_still(&mut self, now: Time, span: Duration) {
        for port in &mut self.ports {
            port.link.stood_still(now, span);
        }
        self.requester.stood_still(now, span);
        self.runs.stood_still(now, span);
    }

    fn advance(&mut self, now: Time) {
        self.now = now;
        self.requester.outstanding.slab.advance(now);
        for index in 0..self.ports.len() {
            let port = &mut self.ports[index];
            port.link.handle_timers(now);
            port.flush(|tid| self.requester.outstanding.get(tid).is_some());
            self.receive(now, index);
            while let Some(event) = self.ports[index].link.poll_event() {
                self.event(NicEvent::Link {
                    port: index as PortId,
                    event,
                });
            }
        }
        while let Some(answer) = self.requester.expire(now) {
            self.settle(now, answer);
        }
        let mut issuer = SliceIssuer {
            now,
            requester: &mut self.requester,
            ports: &mut self.ports,
        };
        if let Some(run) = self.runs.issue(now, &mut issuer) {
            self.event(NicEvent::TrafficDone { run });
        }
    }

    fn ready_ports(&self) -> u64 {
        let ready =
            |(index, port): (usize, &Port)| u64::from(port.link.wants_to_send(self.now)) << index;
        self.ports.iter().enumerate().map(ready).sum()
    }

    fn poll_frame(&mut self, now: Time, port: PortId, buf: &mut [u8]) -> Option<usize> {
        self.ports
            .get_mut(usize::from(port))?
            .link
            .poll_frame(now, buf)
    }

    fn next_wakeup(&self) -> Option<Wakeup> {
        let links = self.ports.iter().map(|port| port.link.next_wakeup());
        let link = links.min().and_then(|at| Wakeup::at(at, WakeReason::Link));
        let deadlines = [self.requester.next_deadline(), self.runs.deadline()];
        let request = deadlines.into_iter().flatten().min();
        Wakeup::earlier(
            link,
            request.and_then(|at| Wakeup::at(at, WakeReason::Request)),
        )
    }

    fn poll_event(&mut self) -> Option<NicEvent> {
        self.events.pop()
    }
}

/// Issues the requests of a run on their slices.
struct SliceIssuer<'a> {
    now: Time,
    requester: &'a mut Requester,
    ports: &'a mut [Port],
}

impl Issuer for SliceIssuer<'_> {
    #[inline]
    fn can_go(&self, address: u64) -> bool {
        self.ports[slice_of(address, self.ports.len())].request_can_go()
    }

    fn has_other_ways(&self) -> bool {
        self.ports.len() > 1 && self.ports.iter().any(Port::request_can_go)
    }

    #[inline]
    fn issue(&mut self, processor: u16, request: RunRequest, message: &Message<'_>) -> bool {
        let asker = Asker::Run(request);
        let mut line = [0; 32];
        let request = match *message {
            Message::Announce(&data) => Request::Write {
                address: ANNOUNCE_ADDRESS,
                data,
                len: 32,
            },
            Message::Put { address, data } => {
                line[..data.len()].copy_from_slice(data);
                Request::Write {
                    address,
                    data: line,
                    len: data.len() as u8,
                }
            }
            Message::Get { address, len } => Request::Read { address, len },
            Message::Add { .. } | Message::Block(_) => {
                unreachable!("the specification was checked")
            }
        };
        self.requester
            .issue(self.now, processor, &request, asker, self.ports)
            .is_ok()
    }
}

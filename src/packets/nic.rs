//! A NIC for test traffic and client programs. It has a link into each network slice, and keeps
//! requests that wait for replies and replies that wait for a link.

#[path = "nic_probes.rs"]
mod probes;
#[path = "nic_services.rs"]
mod services;

use serde_json::{Map, Value, json};

use super::counters::{Count, NicCounting};
use super::link::PacketLinkConfig;
use super::message_queues::MessageQueues;
use super::nic_core::NicCore;
use super::outstanding::{Pending, RequestOrigin};
use super::post::{Completion, Completions, Outcome, PostError, is_possible};
use super::transfer::{Kind, MAX_DATA, MESSAGE_BYTES, Transfer};
use super::transfer_end::{Arrival, ConfigOf, PacketTransfers, TransferEnd};
use crate::device::{
    self, Device, DeviceError, DeviceEvent, LinkFault, LinkView, NodeAccount, PipelineReport,
    TrafficRuns,
};
use crate::kit::Events;
use crate::link::NodeLink as _;
use crate::nic::checker::ANNOUNCEMENT_BYTES;
use crate::nic::local::LocalPort;
use crate::nic::programs::Answer;
use crate::nic::runs::Runs;
use crate::nic::{Answered, Incarnation, MAX_SIZE, Memory, ProbeLog, Probes, RemotePuts};
use crate::node::{Node, PortId, WakeReason, Wakeup};
use crate::time::{Duration, Time};

/// Maximum number of events kept until they are fetched; older ones are lost.
const MAX_EVENTS: usize = 1_024;

/// Configuration of a NIC; `C` configures a link end.
#[derive(Clone, Debug)]
pub struct TransferNicConfig<C> {
    pub number: u16,
    /// Number of NICs in the network, numbered from 0.
    pub nics: u16,
    /// One per network slice; port `i` is the link into slice `i`.
    pub links: Vec<C>,
    pub memory_bytes: u64,
    /// Maximum number of outstanding requests, 1 to [`TransferNic::MOST_OUTSTANDING`].
    pub outstanding: u32,
    /// Maximum number of replies that wait for each link; beyond that, requests wait in the input
    /// buffer. If requests and replies share a virtual channel, this must cover all replies that
    /// the NIC can owe to all others together, or the NICs may deadlock.
    pub answers: usize,
    pub timeout: Duration,
    /// Describes earlier incarnations of the NIC.
    pub incarnation: Incarnation,
    /// Seed of the nonces of runs; without one they come from the epoch of the first link.
    pub seed: Option<u64>,
}

impl<C> TransferNicConfig<C> {
    /// Separates the links' configuration from the rest.
    pub(super) fn split(self) -> (Vec<C>, TransferNicConfig<()>) {
        let Self {
            number,
            nics,
            links,
            memory_bytes,
            outstanding,
            answers,
            timeout,
            incarnation,
            seed,
        } = self;
        let rest = TransferNicConfig {
            number,
            nics,
            links: Vec::new(),
            memory_bytes,
            outstanding,
            answers,
            timeout,
            incarnation,
            seed,
        };
        (links, rest)
    }
}

pub type PacketNicConfig = TransferNicConfig<PacketLinkConfig>;

pub type PacketNic<P> = TransferNic<PacketTransfers<P>>;

/// A NIC over any links that carry transfers.
///
/// Call order: as for every [`Node`]; [`post`](Self::post) any number of times, and after each
/// [`advance`](Node::advance) [`poll_completion`](Self::poll_completion) until it returns `None`.
#[derive(Debug)]
pub struct TransferNic<E: TransferEnd> {
    nic_core: NicCore<E>,
    runs: Runs,
    completions: Completions,
    probes: ProbeLog,
    events: Events<DeviceEvent>,
}

#[derive(Clone, Copy, Debug)]
enum Ended<'a> {
    By(&'a Transfer),
    /// No undamaged reply arrived.
    Unknown,
}

impl<E: TransferEnd> TransferNic<E> {
    /// Maximum number of outstanding requests, limited by the names that a transfer can carry.
    pub const MOST_OUTSTANDING: u32 = super::names::most_outstanding(E::NAME_BITS);

    /// A NIC whose links begin to train at `now`.
    ///
    /// # Panics
    /// If there are no links, if the memory exceeds
    /// [`MAX_MEMORY_BYTES`](crate::nic::memory::MAX_MEMORY_BYTES), or if `outstanding` is 0 or
    /// above [`MOST_OUTSTANDING`](Self::MOST_OUTSTANDING). Descriptions of networks are checked
    /// earlier.
    pub fn new(config: TransferNicConfig<ConfigOf<E>>, now: Time) -> Self {
        const {
            let most = E::ABILITIES.max_size as usize;
            assert!(ANNOUNCEMENT_BYTES <= most && most <= MAX_DATA);
            assert!(
                MAX_DATA <= MAX_SIZE as usize,
                "runs of this machine send no blocks"
            );
            assert!(!E::MESSAGES || MESSAGE_BYTES <= most);
            assert!(E::ABILITIES.get_unit > 0);
            assert!(
                E::REQUEST_QUEUE == 0 || E::REQUESTS.is_some(),
                "requests that wait need a channel of their own"
            );
        }
        Self {
            completions: Completions::new(config.outstanding),
            nic_core: NicCore::new(config, now),
            runs: Runs::default(),
            probes: ProbeLog::default(),
            events: Events::new(MAX_EVENTS),
        }
    }

    pub fn memory(&self) -> &Memory {
        &self.nic_core.responder.memory
    }

    pub fn memory_mut(&mut self) -> &mut Memory {
        &mut self.nic_core.responder.memory
    }

    pub fn queues(&self) -> &MessageQueues {
        &self.nic_core.responder.queues
    }

    /// The message queues, for programs that open them and take messages out.
    pub fn queues_mut(&mut self) -> &mut MessageQueues {
        &mut self.nic_core.responder.queues
    }

    /// The NIC's counters, except those of its links.
    pub fn counters(&self) -> E::Counters {
        let mut counters = self.nic_core.counters.clone();
        counters.set_stragglers(self.nic_core.responder.checker.stragglers());
        counters
    }

    /// Sends a request, after filling in sender and name, and returns the name, which the
    /// completion repeats.
    ///
    /// # Errors
    /// See [`PostError`]; after [`NoRoom`](PostError::NoRoom) and [`TooMany`](PostError::TooMany)
    /// the same request may succeed later.
    pub fn post(&mut self, now: Time, asked: &Transfer) -> Result<u64, PostError> {
        if !self.completions.has_room() {
            return Err(PostError::TooMany);
        }
        let name = self.post_for(now, asked, RequestOrigin::User)?;
        self.completions.posted();
        Ok(name)
    }

    fn post_for(
        &mut self,
        now: Time,
        asked: &Transfer,
        origin: RequestOrigin,
    ) -> Result<u64, PostError> {
        let nic_core = &mut self.nic_core;
        let is_possible = is_possible(asked, E::ABILITIES, E::MESSAGES) && E::can_carry(asked);
        if asked.to >= nic_core.config.nics || !is_possible {
            return Err(PostError::NotHere);
        }
        nic_core.see(now);
        if !nic_core.has_room(asked) {
            return Err(PostError::NoRoom);
        }
        nic_core.ask(*asked, origin).ok_or(PostError::TooMany)
    }

    /// The user's oldest unreported completion.
    pub fn poll_completion(&mut self) -> Option<Completion> {
        self.completions.pop()
    }

    pub fn number(&self) -> u16 {
        self.nic_core.config.number
    }

    /// The link of a port.
    pub fn end(&self, port: PortId) -> Option<&E::Link> {
        Some(&self.nic_core.ports.get(usize::from(port))?.link)
    }

    /// The link of a port, for fault commands and for contents other than transfers.
    pub fn end_mut(&mut self, port: PortId) -> Option<&mut E::Link> {
        Some(&mut self.nic_core.ports.get_mut(usize::from(port))?.link)
    }

    /// Words that other NICs can read but not write, from
    /// [`REGISTERS`](super::responder::REGISTERS) on.
    pub fn registers_mut(&mut self) -> &mut Vec<u64> {
        &mut self.nic_core.responder.registers
    }

    fn event(&mut self, event: DeviceEvent) {
        let lost = self.events.push(event);
        self.nic_core.counters.count(Count::EventsLost(lost));
    }

    /// Receives packets from `port` while there is room for the replies.
    fn receive(&mut self, port: usize) {
        for channel in 0..E::CHANNELS {
            loop {
                let nic_core = &mut self.nic_core;
                if E::REQUESTS == Some(channel) && nic_core.is_full(port) {
                    E::stalled(&nic_core.ports[port].link, &mut nic_core.counters);
                    break;
                }
                let Some(front) = nic_core.ports[port].front(channel, &mut nic_core.counters)
                else {
                    break;
                };
                let (transfer, is_whole) = match front {
                    Arrival::Whole(transfer) => (transfer, true),
                    Arrival::Damaged(transfer) => (transfer, false),
                    Arrival::NoTransfer => {
                        nic_core.ports[port].pop(channel);
                        nic_core.counters.count(Count::Malformed);
                        continue;
                    }
                    Arrival::Event(event) => {
                        nic_core.ports[port].pop(channel);
                        self.event(event);
                        continue;
                    }
                };
                let is_request = transfer.kind.is_request();
                // Receiving resumes with the next frame, once the link accepts replies.
                if is_request && nic_core.is_full(port) {
                    break;
                }
                nic_core.ports[port].pop(channel);
                if E::FIXED_NUMBER && transfer.to != nic_core.config.number {
                    nic_core.counters.count(Count::Misrouted);
                    continue;
                }
                match (is_request, is_whole) {
                    (true, true) => nic_core.serve(port, &transfer),
                    (true, false) => nic_core.spoiled(port, &transfer),
                    (false, _) => self.answered(&transfer, is_whole),
                }
            }
        }
    }

    #[inline]
    fn answered(&mut self, answer: &Transfer, is_whole: bool) {
        if !is_whole {
            self.nic_core.counters.count(Count::DamagedReply);
        }
        let Some(request) = self.nic_core.ended(answer, is_whole) else {
            return;
        };
        let ended = match is_whole {
            true => Ended::By(answer),
            false => Ended::Unknown,
        };
        self.report_outcome(answer.name, &request, ended);
    }

    /// Reports the outcome of a request to its requester.
    #[inline]
    fn report_outcome(&mut self, name: u64, request: &Pending, ended: Ended<'_>) {
        let now = self.nic_core.now;
        let asked = match request.origin {
            RequestOrigin::Run(asked) => asked,
            RequestOrigin::User => {
                self.completions.push(completion(name, request, now, ended));
                return;
            }
            RequestOrigin::Probe => {
                let outcome = probes::probe_outcome(&ended);
                self.probes.ended(name, (request.posted, now), outcome);
                return;
            }
            RequestOrigin::Program => {
                self.nic_core
                    .responder
                    .programs
                    .ended(name, answer_to(&ended));
                return;
            }
        };
        let answered = match ended {
            Ended::Unknown => Answered::Unknown,
            Ended::By(answer) => match (answer.kind, request.kind) {
                (Kind::Done, Kind::Get) => Answered::Read(answer.data()),
                (Kind::Done, Kind::Put) => Answered::Written,
                (Kind::Done, _) => Answered::Added(answer.word(0)),
                // Announcements and queries are repeated, so damage is not a failure.
                (Kind::Damaged, _) if request.is_announcement() => Answered::Damaged,
                _ => Answered::Refused,
            },
        };
        let of = (asked, request.address);
        self.runs.answered(now, request.posted, of, answered);
    }

    fn expire(&mut self) {
        while let Some((name, request)) = self.nic_core.expire() {
            self.report_outcome(name, &request, Ended::Unknown);
        }
    }
}

/// The result of a request, for a client program.
#[cold]
fn answer_to<'a>(ended: &Ended<'a>) -> Answer<'a> {
    match ended {
        Ended::Unknown => Answer::Unknown,
        Ended::By(answer) => match answer.kind {
            Kind::Done => Answer::Done(answer.data()),
            Kind::Damaged => Answer::Damaged,
            _ => Answer::Refused,
        },
    }
}

/// The result of a request, for the user.
#[cold]
fn completion(name: u64, request: &Pending, now: Time, ended: Ended<'_>) -> Completion {
    let outcome = match ended {
        Ended::Unknown => Outcome::Unknown,
        Ended::By(answer) => match answer.kind {
            Kind::Done => Outcome::Done {
                data: answer.data,
                len: answer.len,
            },
            Kind::Damaged => Outcome::Damaged,
            _ => Outcome::Refused(answer.refusal),
        },
    };
    Completion {
        name,
        kind: request.kind,
        address: request.address,
        posted: request.posted,
        completed: now,
        outcome,
    }
}

impl<E: TransferEnd> Node for TransferNic<E> {
    type Event = DeviceEvent;

    fn ports(&self) -> usize {
        self.nic_core.ports.len()
    }

    fn handle_frame(&mut self, now: Time, port: PortId, bytes: &[u8]) {
        if let Some(link) = self.end_mut(port) {
            link.handle_frame(now, bytes);
        }
    }

    fn handle_suspension(&mut self, now: Time, span: Duration) {
        self.nic_core.handle_suspension(now, span);
        self.runs.handle_suspension(now, span);
    }

    fn advance(&mut self, now: Time) {
        self.nic_core.see(now);
        for port in 0..self.nic_core.ports.len() {
            self.nic_core.ports[port].link.handle_timers(now);
            self.nic_core.flush(port);
            self.receive(port);
            self.nic_core.ports[port].link.give_back();
            while let Some(event) = self.nic_core.ports[port].link.poll_event() {
                let port = port as PortId;
                self.event(DeviceEvent::Link { port, event });
            }
        }
        self.expire();
        if let Some(run) = self.runs.issue(now, &mut self.nic_core) {
            self.event(DeviceEvent::TrafficDone { run });
        }
    }

    fn ready_ports(&self) -> u64 {
        let ready = |port: usize| {
            self.nic_core.ports[port]
                .link
                .wants_to_send(self.nic_core.now)
        };
        let ports = 0..self.nic_core.ports.len();
        ports.map(|port| u64::from(ready(port)) << port).sum()
    }

    fn poll_frame(&mut self, now: Time, port: PortId, buf: &mut [u8]) -> Option<usize> {
        self.end_mut(port)?.poll_frame(now, buf)
    }

    fn next_wakeup(&self) -> Option<Wakeup> {
        let requests = [
            self.nic_core.outstanding.next_deadline(),
            self.runs.deadline(),
        ];
        let request = requests.into_iter().flatten().min();
        let links = self
            .nic_core
            .ports
            .iter()
            .map(|port| port.link.next_wakeup());
        let link = links.min().and_then(|at| Wakeup::at(at, WakeReason::Link));
        Wakeup::earlier(
            link,
            request.and_then(|at| Wakeup::at(at, WakeReason::Request)),
        )
    }

    fn poll_event(&mut self) -> Option<DeviceEvent> {
        self.events.pop()
    }
}

impl<E: TransferEnd> Device for TransferNic<E> {
    fn kind(&self) -> device::Kind {
        device::Kind::Nic
    }

    fn link(&self, port: PortId) -> Option<&dyn LinkView> {
        self.end(port).map(|link| link as &dyn LinkView)
    }

    fn link_fault(&mut self, now: Time, port: PortId, fault: LinkFault) -> Result<(), DeviceError> {
        let link = self.end_mut(port).ok_or(DeviceError::NoLink(port))?;
        device::break_link(link, now, (port, fault))
    }

    fn for_each_counter(&self, visit: &mut dyn FnMut(&str, u64)) {
        self.counters().for_each(&mut *visit);
        for (port, link) in (self as &dyn Device).links() {
            link.for_each_counter(&mut |name, value| visit(&format!("port{port}.{name}"), value));
        }
    }

    fn account(&self) -> NodeAccount {
        NodeAccount {
            inside: self.nic_core.inside(),
            unit: "answers",
            requests: self.nic_core.outstanding.slab.used(),
            ..NodeAccount::default()
        }
    }

    fn pipeline(&self) -> PipelineReport {
        self.nic_core.pipeline()
    }

    fn describe(&self) -> Map<String, Value> {
        let config = &self.nic_core.config;
        let facts = [
            // Tools identify the NIC by this number.
            ("processor", json!(config.number)),
            ("memory_bytes", json!(config.memory_bytes)),
            ("max_outstanding", json!(config.outstanding)),
        ];
        // A spare NIC is unreachable until it takes over another NIC's number.
        let spare = (config.number >= config.nics).then_some(("spare", json!(true)));
        let facts = facts.into_iter().chain(spare);
        facts.map(|(name, fact)| (name.to_owned(), fact)).collect()
    }

    fn begin_drain(&mut self, _: Time) {
        self.stop();
    }

    fn traffic(&self) -> Option<&dyn TrafficRuns> {
        Some(self)
    }

    fn traffic_mut(&mut self) -> Option<&mut dyn TrafficRuns> {
        Some(self)
    }

    fn remote_puts(&mut self) -> Option<&mut dyn RemotePuts> {
        Some(self)
    }

    fn probes(&mut self) -> Option<&mut dyn Probes> {
        Some(self)
    }

    fn local_port(&mut self) -> Option<&mut dyn LocalPort> {
        Some(self)
    }
}

#[cfg(test)]
#[path = "nic_request_tests.rs"]
mod request_tests;
#[cfg(test)]
#[path = "nic_tests.rs"]
mod tests;

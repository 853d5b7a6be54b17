//! A NIC for test traffic and client programs, with one link, requests that wait for replies, and
//! replies that wait for the link.

#[path = "nic_probes.rs"]
mod probes;
#[path = "nic_services.rs"]
mod services;

use serde_json::{Map, Value, json};

use super::counters::TransferNicCounters;
use super::link::{PacketEnd, PacketLinkConfig};
use super::message_queues::MessageQueues;
use super::post::{Completion, Completions, Outcome, PostError, is_possible};
use super::side::{Asker, Pending, Side};
use super::transfer::{Kind, MAX_DATA, MESSAGE_BYTES, Transfer};
use super::transfer_end::{Malformed, TransferEnd};
use crate::device::{
    self, Device, DeviceError, DeviceEvent, LinkFault, LinkView, NodeAccount, PipelineReport,
    TrafficRuns,
};
use crate::kit::Events;
use crate::nic::checker::ANNOUNCEMENT_BYTES;
use crate::nic::local::LocalPort;
use crate::nic::programs::Answer;
use crate::nic::runs::Runs;
use crate::nic::{Answered, Incarnation, MAX_SIZE, Memory, ProbeLog, Probes, RemotePuts};
use crate::node::{Node, PortId, WakeReason, Wakeup};
use crate::time::{Duration, Time};

/// Maximum number of events kept until they are fetched; older ones are lost.
const MAX_EVENTS: usize = 1_024;

/// Configuration of a NIC; `C` configures its link end.
#[derive(Clone, Debug)]
pub struct TransferNicConfig<C> {
    pub number: u16,
    /// Number of NICs in the network, numbered from 0.
    pub nics: u16,
    pub link: C,
    pub memory_bytes: u64,
    /// Maximum number of outstanding requests, 1 to [`TransferNic::MOST_OUTSTANDING`].
    pub outstanding: u32,
    /// Maximum number of replies that wait for the link; beyond that, requests wait in the input
    /// buffer. If requests and replies share a virtual channel, this must cover all replies that
    /// the NIC can owe to all others together, or the NICs may deadlock.
    pub answers: usize,
    pub timeout: Duration,
    /// Describes earlier incarnations of the NIC.
    pub incarnation: Incarnation,
}

impl<C> TransferNicConfig<C> {
    /// Separates the link's configuration from the rest.
    pub(super) fn split(self) -> (C, TransferNicConfig<()>) {
        let Self {
            number,
            nics,
            link,
            memory_bytes,
            outstanding,
            answers,
            timeout,
            incarnation,
        } = self;
        let rest = TransferNicConfig {
            number,
            nics,
            link: (),
            memory_bytes,
            outstanding,
            answers,
            timeout,
            incarnation,
        };
        (link, rest)
    }
}

pub type PacketNicConfig = TransferNicConfig<PacketLinkConfig>;

pub type PacketNic<P> = TransferNic<PacketEnd<P>>;

/// A NIC over any link end that carries transfers.
///
/// Call order: as for every [`Node`]; [`post`](Self::post) any number of times, and after each
/// [`advance`](Node::advance) [`poll_completion`](Self::poll_completion) until it returns `None`.
#[derive(Debug)]
pub struct TransferNic<E: TransferEnd> {
    side: Side<E>,
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

    /// A NIC whose link begins to train at `now`.
    ///
    /// # Panics
    /// If `outstanding` is 0 or above [`MOST_OUTSTANDING`](Self::MOST_OUTSTANDING); configurations
    /// are checked earlier.
    pub fn new(config: TransferNicConfig<E::Config>, now: Time) -> Self {
        const {
            let most = E::ABILITIES.max_size as usize;
            assert!(ANNOUNCEMENT_BYTES <= most && most <= MAX_DATA);
            assert!(
                MAX_DATA <= MAX_SIZE as usize,
                "runs of this machine send no blocks"
            );
            assert!(!E::MESSAGES || MESSAGE_BYTES <= most);
            assert!(E::ABILITIES.get_unit > 0);
        }
        Self {
            completions: Completions::new(config.outstanding),
            side: Side::new(config, now),
            runs: Runs::default(),
            probes: ProbeLog::default(),
            events: Events::new(MAX_EVENTS),
        }
    }

    pub fn memory(&self) -> &Memory {
        &self.side.responder.memory
    }

    pub fn memory_mut(&mut self) -> &mut Memory {
        &mut self.side.responder.memory
    }

    pub fn queues(&self) -> &MessageQueues {
        &self.side.responder.queues
    }

    /// The message queues, for programs that open them and take messages out.
    pub fn queues_mut(&mut self) -> &mut MessageQueues {
        &mut self.side.responder.queues
    }

    pub fn counters(&self) -> &TransferNicCounters {
        &self.side.counters
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
        let name = self.post_for(now, asked, Asker::User)?;
        self.completions.posted();
        Ok(name)
    }

    fn post_for(&mut self, now: Time, asked: &Transfer, asker: Asker) -> Result<u64, PostError> {
        let side = &mut self.side;
        if asked.to >= side.config.nics || !is_possible(asked, E::ABILITIES, E::MESSAGES) {
            return Err(PostError::NotHere);
        }
        side.see(now);
        if !side.has_room(asked.kind, asked.len) {
            return Err(PostError::NoRoom);
        }
        side.ask(*asked, asker).ok_or(PostError::TooMany)
    }

    /// The user's oldest unreported completion.
    pub fn poll_completion(&mut self) -> Option<Completion> {
        self.completions.pop()
    }

    pub fn number(&self) -> u16 {
        self.side.config.number
    }

    /// The NIC's link, for its other contents than transfers.
    pub fn link_mut(&mut self) -> &mut E {
        &mut self.side.link
    }

    /// Words that other NICs can read but not write, from
    /// [`REGISTERS`](super::responder::REGISTERS) on.
    pub fn registers_mut(&mut self) -> &mut Vec<u64> {
        &mut self.side.responder.registers
    }

    fn event(&mut self, event: DeviceEvent) {
        self.side.counters.events_lost += self.events.push(event);
    }

    /// Receives arrived transfers while there is room for the replies.
    fn receive(&mut self) {
        for channel in 0..E::CHANNELS {
            while let Some(front) = E::front(self.side.link.input(), channel) {
                let (Ok(transfer) | Err(Malformed::Damaged(transfer))) = &front else {
                    E::pop(self.side.link.input_mut(), channel);
                    self.side.counters.discard_malformed += 1;
                    continue;
                };
                let (is_request, is_whole) = (transfer.kind.is_request(), front.is_ok());
                if is_request && self.side.is_full() {
                    // The next frame resumes receiving once the link accepts replies. Stop only if
                    // it refuses them, or nothing would wake the NIC.
                    self.side.answer();
                    if self.side.is_full() {
                        break;
                    }
                }
                E::pop(self.side.link.input_mut(), channel);
                match (is_request, is_whole) {
                    (true, true) => self.side.serve(transfer),
                    (true, false) => self.side.spoiled(transfer),
                    (false, _) => self.answered(transfer, is_whole),
                }
            }
        }
    }

    #[inline]
    fn answered(&mut self, answer: &Transfer, is_whole: bool) {
        self.side.counters.damaged_answers += u64::from(!is_whole);
        let Some(request) = self.side.ended(answer, is_whole) else {
            return;
        };
        self.side.counters.requests_done += 1;
        let ended = match is_whole {
            true => Ended::By(answer),
            false => Ended::Unknown,
        };
        self.tell(answer.name, &request, ended);
    }

    /// Reports the outcome of a request to its requester.
    #[inline]
    fn tell(&mut self, name: u64, request: &Pending, ended: Ended<'_>) {
        let now = self.side.now;
        let asked = match request.asker {
            Asker::Run(asked) => asked,
            Asker::User => {
                self.completions.push(completion(name, request, now, ended));
                return;
            }
            Asker::Probe => {
                let outcome = probes::probe_outcome(&ended);
                self.probes.ended(name, (request.posted, now), outcome);
                return;
            }
            Asker::Program => {
                self.side.responder.programs.ended(name, answer_to(&ended));
                return;
            }
        };
        let answered = match ended {
            Ended::Unknown => Answered::Unknown,
            Ended::By(answer) => match (answer.kind, request.kind) {
                (Kind::Done, Kind::Get) => Answered::Read(answer.data()),
                (Kind::Done, Kind::Put) => Answered::Written,
                (Kind::Done, _) => Answered::Added(answer.word(0)),
                // Announcements and queries are repeated, so damage is no failure.
                (Kind::Damaged, _) if request.is_announcement() => Answered::Damaged,
                _ => Answered::Refused,
            },
        };
        let of = (asked, request.address);
        self.runs.answered(now, request.posted, of, answered);
    }

    fn expire(&mut self) {
        while let Some((name, request)) = self.side.expire() {
            self.tell(name, &request, Ended::Unknown);
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
            _ => Outcome::Refused,
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
        1
    }

    fn handle_frame(&mut self, now: Time, _: PortId, bytes: &[u8]) {
        self.side.link.handle_frame(now, bytes);
    }

    fn stood_still(&mut self, now: Time, span: Duration) {
        self.side.stood_still(now, span);
        self.runs.stood_still(now, span);
    }

    fn advance(&mut self, now: Time) {
        self.side.see(now);
        self.side.link.handle_timers(now);
        self.side.answer();
        self.receive();
        self.side.link.give_back();
        self.side.answer();
        self.expire();
        if let Some(run) = self.runs.issue(now, &mut self.side) {
            self.event(DeviceEvent::TrafficDone { run });
        }
        while let Some(event) = self.side.link.poll_event() {
            self.event(DeviceEvent::Link { port: 0, event });
        }
    }

    fn ready_ports(&self) -> u64 {
        self.side.link.wants_to_send(self.side.now).into()
    }

    fn poll_frame(&mut self, now: Time, _: PortId, buf: &mut [u8]) -> Option<usize> {
        self.side.link.poll_frame(now, buf)
    }

    fn next_wakeup(&self) -> Option<Wakeup> {
        let pending = &self.side.pending;
        let requests = pending.next_deadline(self.side.config.timeout);
        let requests = [requests, self.runs.deadline()];
        let request = requests.into_iter().flatten().min();
        let link = Wakeup::at(self.side.link.next_wakeup(), WakeReason::Link);
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
        (port == 0).then_some(&self.side.link as &dyn LinkView)
    }

    fn link_fault(&mut self, now: Time, port: PortId, fault: LinkFault) -> Result<(), DeviceError> {
        if port != 0 {
            return Err(DeviceError::NoLink(port));
        }
        device::break_link(&mut self.side.link, now, (port, fault))
    }

    fn for_each_counter(&self, visit: &mut dyn FnMut(&str, u64)) {
        self.side.counters.for_each(&mut *visit);
        let link = &self.side.link;
        link.for_each_counter(&mut |name, value| visit(&format!("port0.{name}"), value));
    }

    fn account(&self) -> NodeAccount {
        NodeAccount {
            inside: self.side.answers.len() as u64,
            unit: "answers",
            requests: self.side.pending.used(),
            ..NodeAccount::default()
        }
    }

    fn pipeline(&self) -> PipelineReport {
        self.side.pipeline()
    }

    fn describe(&self) -> Map<String, Value> {
        let config = &self.side.config;
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

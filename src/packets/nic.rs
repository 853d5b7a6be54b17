//! A network interface of whole packets, for verified traffic: one link, requests that wait for
//! their answers, and answers that wait for the link.

use std::collections::VecDeque;

use serde_json::{Map, Value, json};

use super::link::PacketEnd;
use super::transfer::{Kind, MAX_DATA, Transfer, TransferPacket};
use crate::device::{
    self, Device, DeviceError, DeviceEvent, LinkEnd as _, LinkFault, LinkView, NodeAccount,
    TrafficRuns,
};
use crate::kit::Events;
use crate::kit::counters::counters;
use crate::link::{EndStatus, LinkConfig, LinkPort};
use crate::nic::checker::{
    ANNOUNCE_ADDRESS, ANNOUNCEMENT_BYTES, Announced, Announcement, Checker, Purpose,
};
use crate::nic::periods::Periods;
use crate::nic::runs::Runs;
use crate::nic::slab::{Entry, Slab};
use crate::nic::traffic::Source;
use crate::nic::{
    Abilities, Answered, Incarnation, Issuer, Memory, Message, Operation, RunRequest,
    TrafficReport, TrafficSpec,
};
use crate::node::{Node, PortId, WakeReason, Wakeup};
use crate::time::{Duration, Time};

/// Events that wait to be fetched; older ones are lost.
const MAX_EVENTS: usize = 1_024;

/// What a network interface is told.
#[derive(Clone, Debug)]
pub struct PacketNicConfig {
    /// Its number.
    pub number: u16,
    /// How many there are in the network, with numbers from 0 on.
    pub nics: u16,
    /// Its link.
    pub link: LinkConfig,
    /// Bytes of its memory.
    pub memory_bytes: u64,
    /// Requests that may be outstanding.
    pub outstanding: u32,
    /// Answers that may wait for the link: while there are so many, requests wait in the input
    /// buffer. Where they share a virtual channel with answers, it must be as many as can be owed
    /// to all others together, or network interfaces may wait for each other in a circle.
    pub answers: usize,
    /// After which a request is given up.
    pub timeout: Duration,
    /// What it knows of those before it.
    pub incarnation: Incarnation,
}

/// A request that waits for its answer.
#[derive(Clone, Copy, Debug)]
struct Pending {
    posted: Time,
    request: RunRequest,
    address: u64,
}

impl Entry for Pending {
    fn posted(&self) -> Time {
        self.posted
    }
}

counters! {
    /// What happened at one network interface since it was made. All counters only grow.
    pub struct PacketNicCounters {
        /// Packets discarded: no transfer that network interfaces send.
        discard_malformed,
        /// Answers to requests that had been given up, or do not exist.
        late_responses,
        /// Events lost because nobody fetched them.
        events_lost,
    }
}

/// A network interface.
#[derive(Debug)]
pub struct PacketNic<P: TransferPacket> {
    counters: PacketNicCounters,
    side: Side<P>,
    runs: Runs,
    events: Events<DeviceEvent>,
}

/// The network interface, apart from its runs.
#[derive(Debug)]
struct Side<P: TransferPacket> {
    config: PacketNicConfig,
    now: Time,
    link: LinkPort<PacketEnd<P>>,
    pending: Slab<Pending>,
    answers: VecDeque<P>,
    memory: Memory,
    checker: Checker,
}

impl<P: TransferPacket> PacketNic<P> {
    /// A network interface whose link begins to train at `now`.
    pub fn new(config: PacketNicConfig, now: Time) -> Self {
        const { assert!(ANNOUNCEMENT_BYTES <= P::MAX_BYTES && P::MAX_BYTES <= MAX_DATA) };
        let idle = Pending {
            posted: now,
            request: RunRequest::Message(0),
            address: 0,
        };
        let periods = Periods::new(config.incarnation, now, config.timeout, 1);
        let side = Side {
            now,
            link: LinkPort::new(config.link.clone(), now),
            pending: Slab::new(config.outstanding, idle, periods),
            answers: VecDeque::new(),
            memory: Memory::new(config.memory_bytes),
            checker: Checker::default(),
            config,
        };
        Self {
            counters: PacketNicCounters::default(),
            side,
            runs: Runs::default(),
            events: Events::new(MAX_EVENTS),
        }
    }

    /// What its traffic may be.
    const ABILITIES: Abilities = Abilities {
        max_size: P::MAX_BYTES as u32,
        get_unit: 1,
        atomics_and_ways: false,
    };

    fn event(&mut self, event: DeviceEvent) {
        self.counters.events_lost += self.events.push(event);
    }

    /// Takes in what has come, as far as there is room for the answers.
    fn receive(&mut self) {
        for vc in 0..P::VCS {
            while let Some(packet) = self.side.link.input().front(vc) {
                let transfer = packet.unpack();
                let is_request = transfer.is_some_and(|transfer| transfer.kind.is_request());
                if is_request && self.side.answers.len() >= self.side.config.answers {
                    break;
                }
                self.side.link.input_mut().pop(vc);
                match transfer {
                    Some(transfer) if is_request => self.side.serve(&transfer),
                    Some(transfer) => self.answered(&transfer),
                    None => self.counters.discard_malformed += 1,
                }
            }
        }
    }

    /// An answer came.
    fn answered(&mut self, transfer: &Transfer) {
        let (slot, period) = (transfer.name as u32, (transfer.name >> 32) as u32);
        let pending = &mut self.side.pending;
        if pending.period(slot) != Some(period) {
            self.counters.late_responses += 1; // Of a request that was given up long ago.
            return;
        }
        let Some(&Pending {
            posted,
            request,
            address,
        }) = pending.get(slot)
        else {
            self.counters.late_responses += 1;
            pending.release(slot);
            return;
        };
        pending.finish(slot);
        let answered = match (transfer.kind, transfer.data()) {
            (Kind::Refused, _) => Answered::Refused,
            (_, []) => Answered::Written,
            (_, data) => Answered::Read(data),
        };
        self.runs
            .answered(self.side.now, posted, (request, address), answered);
    }

    /// Gives up requests whose answers do not come.
    fn expire(&mut self, now: Time) {
        let timeout = self.side.config.timeout.as_ps();
        let limit = Time::from_ps(now.as_ps().saturating_sub(timeout));
        while let Some((_, pending)) = self.side.pending.expire(limit) {
            let of = (pending.request, pending.address);
            self.runs
                .answered(now, pending.posted, of, Answered::Unknown);
        }
    }
}

impl<P: TransferPacket> Side<P> {
    /// Carries a request out and answers it.
    fn serve(&mut self, transfer: &Transfer) {
        let Transfer { from, address, .. } = *transfer;
        let mut read = [0; MAX_DATA];
        let data = transfer.data();
        let read = &mut read[..data.len()];
        let done = match transfer.kind {
            _ if usize::from(transfer.len) > P::MAX_BYTES => false,
            Kind::Get => self.memory.read(address, read).is_ok(),
            _ if address == ANNOUNCE_ADDRESS => self.announced(from, data),
            _ => self.memory.write(address, data).is_ok(),
        };
        let mut answer = transfer.answer(if done { Kind::Done } else { Kind::Refused });
        if done && transfer.kind == Kind::Get {
            answer = answer.with(read);
        } else if done {
            self.checker.put(from.into(), address, data);
        }
        self.answers.push_back(P::pack(&answer));
    }

    fn announced(&mut self, source: u16, data: &[u8]) -> bool {
        let told = Announcement::parse(data);
        let can =
            |told: &Announcement| told.op != Operation::Amo && told.size as usize <= P::MAX_BYTES;
        let Some((purpose, told)) = told.filter(|(_, told)| can(told)) else {
            return false;
        };
        let (source, own) = (source.into(), self.config.number.into());
        let found = match purpose {
            Purpose::Begin => self.checker.announce(source, own, told, &mut self.memory),
            Purpose::Ask => self.checker.knows(source, &told),
        };
        found == Announced::Accepted
    }

    /// Sends a packet, if the link has room for it.
    fn send(&mut self, packet: P) -> bool {
        let has_room = self.link.end().room(packet.vc()) > 0;
        if has_room {
            self.link.end_mut().push(packet);
        }
        has_room
    }

    /// Sends answers, as many as the link has room for.
    fn answer(&mut self) {
        while let Some(&answer) = self.answers.front()
            && self.send(answer)
        {
            self.answers.pop_front();
        }
    }
}

impl<P: TransferPacket> Issuer for Side<P> {
    fn can_go(&self, _: u64) -> bool {
        // Answers go first, where they share a channel.
        self.answers.is_empty() && (0..P::VCS).any(|vc| self.link.end().room(vc) > 0)
    }

    fn has_other_ways(&self) -> bool {
        false
    }

    fn issue(&mut self, dest: u16, request: RunRequest, message: &Message<'_>) -> bool {
        let (kind, address, len, data) = match *message {
            Message::Announce(data) => (Kind::Put, ANNOUNCE_ADDRESS, data.len() as u8, &data[..]),
            Message::Put { address, data } => (Kind::Put, address, data.len() as u8, data),
            Message::Get { address, len } => (Kind::Get, address, len, &[][..]),
            Message::Add { .. } | Message::Block(_) => unreachable!("it has no ability for these"),
        };
        let transfer = |name| {
            let from = self.config.number;
            let transfer = Transfer {
                to: dest,
                from,
                kind,
                address,
                name,
                len,
                data: [0; _],
            };
            P::pack(&Transfer {
                len,
                ..transfer.with(data)
            })
        };
        // The name of a request changes nothing about its channel.
        if !self.answers.is_empty() || self.link.end().room(transfer(0).vc()) == 0 {
            return false;
        }
        let posted = self.now;
        let entry = Pending {
            posted,
            request,
            address,
        };
        let Some((slot, period)) = self.pending.begin(entry) else {
            return false;
        };
        let packet = transfer(u64::from(period) << 32 | u64::from(slot));
        self.send(packet)
    }
}

impl<P: TransferPacket> Node for PacketNic<P> {
    type Event = DeviceEvent;

    fn ports(&self) -> usize {
        1
    }

    fn handle_frame(&mut self, now: Time, _: PortId, bytes: &[u8]) {
        self.side.link.handle_frame(now, bytes);
    }

    fn advance(&mut self, now: Time) {
        self.side.now = now;
        self.side.pending.advance(now);
        self.side.link.handle_timers(now);
        self.side.answer();
        self.receive();
        self.side.link.give_back();
        self.side.answer();
        self.expire(now);
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
        let timeout = pending
            .oldest()
            .map(|posted| posted + self.side.config.timeout);
        let requests = [timeout, pending.opens(), self.runs.deadline()];
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

impl<P: TransferPacket> Device for PacketNic<P> {
    fn kind(&self) -> device::Kind {
        device::Kind::Nic
    }

    fn link(&self, port: PortId) -> Option<&dyn LinkView> {
        (port == 0).then(|| self.side.link.end() as &dyn LinkView)
    }

    fn link_fault(&mut self, now: Time, port: PortId, fault: LinkFault) -> Result<(), DeviceError> {
        if port != 0 {
            return Err(DeviceError::NoLink(port));
        }
        let (end, input) = self.side.link.parts_mut();
        end.break_link(now, (port, fault), input)
    }

    fn for_each_counter(&self, visit: &mut dyn FnMut(&str, u64)) {
        self.counters.for_each(&mut *visit);
        let link = self.side.link.end();
        link.counters()
            .for_each(|name, value| visit(&format!("port0.{name}"), value));
    }

    fn account(&self) -> NodeAccount {
        NodeAccount {
            inside: self.side.answers.len() as u64,
            unit: "answers",
            requests: self.side.pending.len(),
            ..NodeAccount::default()
        }
    }

    fn describe(&self) -> Map<String, Value> {
        let config = &self.side.config;
        let facts = [
            // By which tools know it.
            ("processor", json!(config.number)),
            ("memory_bytes", json!(config.memory_bytes)),
            ("max_outstanding", json!(config.outstanding)),
        ];
        Map::from_iter(facts.map(|(name, fact)| (name.to_owned(), fact)))
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
}

impl<P: TransferPacket> TrafficRuns for PacketNic<P> {
    fn number(&self) -> Option<u16> {
        Some(self.side.config.number)
    }

    fn abilities(&self) -> Abilities {
        Self::ABILITIES
    }

    fn start(&mut self, now: Time, spec: TrafficSpec) -> Result<(), DeviceError> {
        let config = &self.side.config;
        let nics = config.nics;
        let source = Source {
            processor: config.number,
            memory_bytes: config.memory_bytes,
            nonce: self.side.link.end().epochs().0 ^ now.as_ns() as u32,
            abilities: Self::ABILITIES,
            timeout: config.timeout,
        };
        let there = |nic: u16| (nic < nics).then_some(nic.into());
        Ok(self.runs.start(now, spec, source, there)?)
    }

    fn report(&self, run: Option<u64>) -> Option<TrafficReport> {
        let no_atomics = |_| unreachable!("no atomic run is announced to this interface");
        self.runs.report(run, &self.side.checker, no_atomics)
    }

    fn stop(&mut self) {
        self.runs.stop();
    }
}

#[cfg(test)]
#[path = "nic_tests.rs"]
mod tests;

//! The network interface: writes and reads of up to 32 bytes, for verified traffic.
//!
//! The first word of a packet is, from the lowest bits on: destination and source, 16 bits each,
//! what it is, and a length. Then come the address, the name of the request, and from the fifth
//! word on the data.

use std::collections::VecDeque;

use super::Packet;
use super::link::RingEnd;
use crate::device::{
    Device, DeviceError, DeviceEvent, Kind, LinkEnd as _, LinkFault, LinkView, NodeAccount,
    TrafficRuns,
};
use crate::kit::Events;
use crate::link::{LinkConfig, LinkPort};
use crate::nic::checker::{ANNOUNCE_ADDRESS, Announced, Announcement, Checker, Purpose};
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

/// What a packet is.
const PUT: u8 = 0;
const GET: u8 = 1;
const DONE: u8 = 2;
const REFUSED: u8 = 3;

/// Answers that may wait for the link: more than all network interfaces can be owed at once.
const MAX_ANSWERS: usize = 1 << 20;

/// What a network interface is told.
#[derive(Clone, Debug)]
pub struct NicConfig {
    /// Its number, and how many there are.
    pub number: u16,
    /// How many there are.
    pub nics: u16,
    /// Its link.
    pub link: LinkConfig,
    /// Bytes of its memory.
    pub memory_bytes: u64,
    /// Requests that may be outstanding.
    pub outstanding: u32,
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

/// The network interface, apart from its runs.
#[derive(Debug)]
struct Side {
    config: NicConfig,
    now: Time,
    link: LinkPort<RingEnd>,
    pending: Slab<Pending>,
    answers: VecDeque<Packet>,
    memory: Memory,
    checker: Checker,
}

/// A network interface.
#[derive(Debug)]
pub struct RingNic {
    side: Side,
    runs: Runs,
    events: Events<DeviceEvent>,
}

/// The first word of a packet.
fn head(dest: u16, source: u16, kind: u8, len: usize) -> u64 {
    u64::from(dest) | u64::from(source) << 16 | u64::from(kind) << 32 | (len as u64) << 40
}

fn words(bytes: &[u8]) -> [u64; 4] {
    let mut data = [0; 32];
    data[..bytes.len()].copy_from_slice(bytes);
    core::array::from_fn(|i| u64::from_le_bytes(data.as_chunks().0[i]))
}

fn bytes(packet: &Packet) -> [u8; 32] {
    let mut data = [0; 32];
    for (word, at) in packet[4..].iter().zip(data.as_chunks_mut().0) {
        *at = word.to_le_bytes();
    }
    data
}

impl RingNic {
    /// A network interface whose link begins to train at `now`.
    pub fn new(config: NicConfig, now: Time) -> Self {
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
            side,
            runs: Runs::default(),
            events: Events::new(1_024),
        }
    }

    fn receive(&mut self, packet: &Packet) {
        let &[head, address, name, ..] = packet;
        let (kind, len) = ((head >> 32) as u8, (head >> 40) as usize);
        let data = bytes(packet);
        if kind == PUT || kind == GET {
            return self.side.serve(
                (head >> 16) as u16,
                kind,
                (address, name),
                &data[..len.min(32)],
            );
        }
        let (slot, period) = (name as u32, (name >> 32) as u32);
        if self.side.pending.period(slot) != Some(period) {
            return; // Of a request that was given up long ago.
        }
        let Some(&Pending {
            posted,
            request,
            address,
        }) = self.side.pending.get(slot)
        else {
            self.side.pending.release(slot);
            return;
        };
        self.side.pending.finish(slot);
        let answered = match kind {
            REFUSED => Answered::Refused,
            _ if len > 0 => Answered::Read(&data[..len.min(32)]),
            _ => Answered::Written,
        };
        self.runs
            .answered(self.side.now, posted, (request, address), answered);
    }
}

impl Side {
    /// Carries a request out and answers it.
    fn serve(&mut self, source: u16, kind: u8, (address, name): (u64, u64), data: &[u8]) {
        let mut read = data.to_vec();
        let done = match kind {
            GET => self.memory.read(address, &mut read).is_ok(),
            _ if address == ANNOUNCE_ADDRESS => self.announced(source, data),
            _ => self.memory.write(address, data).is_ok(),
        };
        if kind == PUT {
            read.clear();
            self.checker.put(source.into(), address, data);
        }
        let kind = if done { DONE } else { REFUSED };
        let head = head(source, self.config.number, kind, read.len());
        let [a, b, c, d] = words(&read);
        if self.answers.len() < MAX_ANSWERS {
            self.answers.push_back([head, address, name, 0, a, b, c, d]);
        }
    }

    fn announced(&mut self, source: u16, data: &[u8]) -> bool {
        let told = Announcement::parse(data);
        let Some((purpose, told)) =
            told.filter(|(_, told)| told.op != Operation::Amo && told.size <= 32)
        else {
            return false;
        };
        let (source, own) = (source.into(), self.config.number.into());
        let found = match purpose {
            Purpose::Begin => self.checker.announce(source, own, told, &mut self.memory),
            Purpose::Ask => self.checker.knows(source, &told),
        };
        found == Announced::Accepted
    }
}

/// What its traffic may be.
const ABILITIES: Abilities = Abilities {
    max_size: 32,
    get_unit: 1,
    atomics_and_ways: false,
};

impl Issuer for Side {
    fn can_go(&self, _: u64) -> bool {
        self.answers.is_empty() && self.link.end().room(0) > 0
    }

    fn has_other_ways(&self) -> bool {
        false
    }

    fn issue(&mut self, dest: u16, request: RunRequest, message: &Message<'_>) -> bool {
        let (kind, address, len, data) = match *message {
            Message::Announce(data) => (PUT, ANNOUNCE_ADDRESS, data.len(), &data[..]),
            Message::Put { address, data } => (PUT, address, data.len(), data),
            Message::Get { address, len } => (GET, address, len.into(), &[][..]),
            Message::Add { .. } | Message::Block(_) => unreachable!("it has no ability for these"),
        };
        let posted = self.now;
        if !self.can_go(address) {
            return false;
        }
        let Some((slot, period)) = self.pending.begin(Pending {
            posted,
            request,
            address,
        }) else {
            return false;
        };
        let (name, [a, b, c, d]) = (u64::from(period) << 32 | u64::from(slot), words(data));
        let head = head(dest, self.config.number, kind, len);
        self.link
            .end_mut()
            .push([head, address, name, 0, a, b, c, d]);
        true
    }
}

impl Node for RingNic {
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
        while let Some(packet) = self.side.link.input_mut().pop(0) {
            self.receive(&packet);
        }
        self.side.link.give_back();
        while self.side.link.end().room(0) > 0
            && let Some(answer) = self.side.answers.pop_front()
        {
            self.side.link.end_mut().push(answer);
        }
        let limit = Time::from_ps(now.as_ps().saturating_sub(self.side.config.timeout.as_ps()));
        while let Some((
            _,
            Pending {
                posted,
                request,
                address,
            },
        )) = self.side.pending.expire(limit)
        {
            self.runs
                .answered(now, posted, (request, address), Answered::Unknown);
        }
        if let Some(run) = self.runs.issue(now, &mut self.side) {
            let _ = self.events.push(DeviceEvent::TrafficDone { run });
        }
        while let Some(event) = self.side.link.poll_event() {
            let _ = self.events.push(DeviceEvent::Link { port: 0, event });
        }
    }

    fn ready_ports(&self) -> u64 {
        self.side.link.wants_to_send(self.side.now).into()
    }

    fn poll_frame(&mut self, now: Time, _: PortId, buf: &mut [u8]) -> Option<usize> {
        self.side.link.poll_frame(now, buf)
    }

    fn next_wakeup(&self) -> Option<Wakeup> {
        let oldest = self.side.pending.oldest();
        let timeout = oldest.map(|posted| posted + self.side.config.timeout);
        let requests = [timeout, self.side.pending.opens(), self.runs.deadline()];
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

impl Device for RingNic {
    fn kind(&self) -> Kind {
        Kind::Nic
    }

    fn link(&self, port: PortId) -> Option<&dyn LinkView> {
        (port == 0).then(|| self.side.link.end() as &dyn LinkView)
    }

    fn link_fault(&mut self, now: Time, port: PortId, fault: LinkFault) -> Result<(), DeviceError> {
        let (end, input) = self.side.link.parts_mut();
        end.break_link(now, (port, fault), input)
    }

    fn account(&self) -> NodeAccount {
        NodeAccount {
            requests: self.side.pending.len(),
            ..NodeAccount::default()
        }
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

impl TrafficRuns for RingNic {
    fn number(&self) -> Option<u16> {
        Some(self.side.config.number)
    }

    fn abilities(&self) -> Abilities {
        ABILITIES
    }

    fn start(&mut self, now: Time, spec: TrafficSpec) -> Result<(), DeviceError> {
        let NicConfig {
            number,
            nics,
            memory_bytes,
            timeout,
            ..
        } = self.side.config;
        let epoch = self.side.link.end().epochs().0;
        let source = Source {
            processor: number,
            memory_bytes,
            nonce: epoch ^ now.as_ns() as u32,
            abilities: ABILITIES,
            timeout,
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

//! A test network between NICs, which delays, reorders, loses, duplicates and damages packets.

use std::collections::BTreeMap;

use phitwire_framing::aries::flit::{Flit, Head};
use phitwire_framing::aries::packet::{Command, Request, Response};
use phitwire_framing::carrier::frame::LinkEnd;

use super::interface::{Interface, Owner};
use super::packet_buf::PacketBuf;
use super::traffic::RUN_CODE;
use super::*;
use crate::link::STANDARD;
use crate::link::{AriesLinkConfig, SetProfile};
use phitwire::link::{EndName, LinkConfig};
use phitwire::rng::Rng;
use phitwire::time::{Duration, Time};

pub(super) const NODES: [NodeId; 2] = [NodeId::new(0, 1, 2), NodeId::new(3, 4, 1)];
pub(super) const MEMORY: u64 = 1 << 20;
/// Handle and key of the domain that covers the whole memory.
pub(super) const ALL: u16 = 5;
pub(super) const KEY: u16 = 0xcafe;
pub(super) const TIMEOUT: Duration = Duration::from_ms(5);
const STEP: Duration = Duration::from_us(1);

pub(super) fn whole_memory() -> Domain {
    Domain {
        base: 0,
        length: MEMORY,
        key: KEY,
        permissions: Permissions::ALL,
    }
}

pub(super) fn link(end: LinkEnd, epoch: u32) -> AriesLinkConfig {
    let name = |node: &str| EndName {
        node: node.to_owned(),
        port: 0,
    };
    let (local, peer) = match end {
        LinkEnd::A => (name("a"), name("b")),
        LinkEnd::B => (name("b"), name("a")),
    };
    let link = LinkConfig::builder(STANDARD, 0, end, local, peer)
        .epoch(epoch)
        .build()
        .unwrap();
    AriesLinkConfig::new(link, SetProfile::live()).unwrap()
}

pub(super) fn config(index: usize) -> AriesNicConfigBuilder {
    let (name, end) = [("a", LinkEnd::A), ("b", LinkEnd::B)][index];
    AriesNicConfig::builder(name, NODES[index], link(end, 1))
        .memory_bytes(MEMORY)
        .request_timeout(TIMEOUT)
        .virtual_nodes(VirtualNodes::new(NODES.to_vec()))
        .domain(ALL, whole_memory())
}

/// Faults of each kind, per thousand packets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Harm {
    pub lost: u64,
    pub duplicated_responses: u64,
    pub poisoned: u64,
    pub flipped: u64,
    /// Delayed beyond the timeout.
    pub late: u64,
}

pub(super) struct Pair {
    pub nics: [Interface; 2],
    pub now: Time,
    pub harm: Harm,
    /// Longest delay of a packet in steps; packets overtake each other.
    pub spread: u64,
    /// If `keep` is set, every packet as sent.
    pub seen: Vec<Vec<Flit>>,
    pub keep: bool,
    /// A node that does not exist. It gets responses to its announcements of runs, but sends none.
    pub ghost: Option<NodeId>,
    rng: Rng,
    serial: u64,
    wire: BTreeMap<(Time, u64), (usize, Vec<Flit>)>,
}

impl Pair {
    pub(super) fn with(a: AriesNicConfigBuilder, b: AriesNicConfigBuilder) -> Self {
        let nics = [a, b].map(|config| Interface::new(&config.build().unwrap(), Time::ZERO));
        Self {
            nics,
            now: Time::from_ns(1),
            harm: Harm::default(),
            spread: 20,
            seen: Vec::new(),
            keep: false,
            ghost: None,
            rng: Rng::new(11, 0),
            serial: 0,
            wire: BTreeMap::new(),
        }
    }

    pub(super) fn new() -> Self {
        Self::with(config(0), config(1))
    }

    /// Sends a packet to the other side, subject to the faults in `harm`.
    pub(super) fn send(&mut self, to: usize, packet: &[Flit]) {
        let mut packet = packet.to_vec();
        if let Some(response) = self.ghost_response(&packet) {
            self.wire
                .insert((self.now + STEP, u64::MAX), (1 - to, response));
        }
        if self.keep {
            self.seen.push(packet.clone());
        }
        let Harm {
            lost,
            duplicated_responses,
            poisoned,
            flipped,
            late,
        } = self.harm;
        let head = Head::parse(packet[0]).unwrap();
        if self.rng.chance(poisoned, 1000) {
            packet[0] = head.with_poison().flit();
        }
        if packet.len() > 3 && self.rng.chance(flipped, 1000) {
            let last = packet.len() - 1;
            packet[last] = Flit::new(packet[last].bits() ^ 1 << self.rng.below(48));
        }
        let copies = match self.rng.chance(lost, 1000) {
            true => 0,
            false if !head.is_response() => 1,
            false => 1 + u64::from(self.rng.chance(duplicated_responses, 1000)),
        };
        for _ in 0..copies {
            let mut delay = STEP.times(1 + self.rng.below(self.spread));
            if late > 0 && self.rng.chance(late, 1000) {
                delay = delay + TIMEOUT.times(1 + self.rng.below(4));
            }
            self.serial += 1;
            self.wire
                .insert((self.now + delay, self.serial), (to, packet.clone()));
        }
    }

    fn ghost_response(&self, packet: &[Flit]) -> Option<Vec<Flit>> {
        let head = Head::parse(packet[0])?;
        let is_for_it = !head.is_response() && Some(head.destination()) == self.ghost;
        let (request, _) = Request::parse_header(packet).ok().filter(|_| is_for_it)?;
        let is_announcement = request.command == Command::Control { code: RUN_CODE };
        let response = Response {
            destination: request.source,
            routing: Routing::Adaptive0,
            packet_id: request.packet_id,
            echo: request.echo,
            status: Status::Done,
            joined: false,
        };
        let mut out = PacketBuf::new();
        out.fill(|flits| response.emit(&[], flits)).ok()?;
        is_announcement.then(|| out.as_slice().to_vec())
    }

    pub(super) fn step(&mut self) {
        self.now += STEP;
        let mut out = PacketBuf::new();
        while let Some(entry) = self.wire.first_entry()
            && entry.key().0 <= self.now
        {
            let (to, packet) = entry.remove();
            if Head::parse(packet[0]).unwrap().is_response() {
                self.nics[to].handle_response(self.now, &packet);
            } else if self.nics[to].serve(self.now, &packet, &mut out) {
                self.send(1 - to, out.as_slice());
            }
        }
        for from in 0..2 {
            self.nics[from].advance(self.now);
            while let Some(packet) = self.next_packet(from) {
                self.send(1 - from, &packet);
            }
        }
    }

    fn next_packet(&mut self, from: usize) -> Option<Vec<Flit>> {
        let requester = &mut self.nics[from].requester;
        let packet = requester.next_packet(Time::NEVER)?.as_slice().to_vec();
        requester.packet_sent();
        Some(packet)
    }

    pub(super) fn run(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            self.step();
        }
    }

    /// Steps until no request is outstanding and no transfer open.
    pub(super) fn drain(&mut self) {
        let end = self.now + Duration::from_ms(20_000);
        let busy =
            |nic: &Interface| nic.requester.outstanding.slab.used() > 0 || nic.transfers.open() > 0;
        while self.nics.iter().any(busy) {
            assert!(self.now < end, "the bench does not come to rest");
            self.step();
        }
    }

    /// Posts a request from node 0, stepping while there is no room.
    pub(super) fn post(&mut self, owner: Owner, post: &Post<'_>) {
        loop {
            match self.nics[0].post(self.now, owner, post) {
                Ok(()) => return,
                Err(PostError::TooMany) => self.step(),
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Posts one request from node 0 and waits for its outcome.
    pub(super) fn ask(&mut self, operation: Operation<'_>, at: RemoteAddress) -> Outcome {
        self.post(Owner::User(1), &post(operation, at));
        self.drain();
        let completion = self.nics[0]
            .poll_completion()
            .expect("the request has ended");
        assert!(self.nics[0].poll_completion().is_none());
        completion.outcome
    }

    pub(super) fn completions(&mut self) -> Vec<Completion> {
        std::iter::from_fn(|| self.nics[0].poll_completion()).collect()
    }

    pub(super) fn target_events(&mut self) -> Vec<TargetEvent> {
        std::iter::from_fn(|| self.nics[1].responder.events.pop_front()).collect()
    }

    pub(super) fn read(&mut self, nic: usize, address: u64, len: usize) -> Vec<u8> {
        let mut out = vec![0; len];
        let memory = &mut self.nics[nic].responder.memory;
        memory.read(address, &mut out).unwrap();
        out
    }

    pub(super) fn write(&mut self, nic: usize, address: u64, data: &[u8]) {
        let memory = &mut self.nics[nic].responder.memory;
        memory.write(address, data).unwrap();
    }
}

/// An address in the other node's memory.
pub(super) fn at(offset: u64) -> RemoteAddress {
    RemoteAddress {
        target: Target::Virtual(1),
        handle: ALL,
        key: KEY,
        offset,
    }
}

pub(super) fn post(operation: Operation<'_>, at: RemoteAddress) -> Post<'_> {
    Post {
        at,
        operation,
        routing: Routing::Adaptive0,
    }
}

pub(super) fn put(data: &[u8]) -> Operation<'_> {
    Operation::Put { data, event: false }
}

pub(super) fn get(len: u8) -> Operation<'static> {
    Operation::Get {
        len,
        into: None,
        flag: None,
    }
}

pub(super) fn atomic(op: AmoOp, width: Width, first: u64, second: u64) -> Operation<'static> {
    Operation::Atomic {
        op,
        width,
        operands: Operands { first, second },
        fetch: true,
        into: None,
    }
}

pub(super) fn transfer(operation: BlockOperation, local: u64, length: u64) -> BlockTransfer {
    BlockTransfer {
        target: Target::Virtual(1),
        operation,
        local,
        length,
        routing: Routing::Adaptive0,
        fence: false,
        event: None,
        user: length,
    }
}

pub(super) fn block_put(offset: u64) -> BlockOperation {
    let (handle, key) = (ALL, KEY);
    BlockOperation::Put {
        handle,
        key,
        offset,
    }
}

pub(super) fn block_get(offset: u64) -> BlockOperation {
    let (handle, key) = (ALL, KEY);
    BlockOperation::Get {
        handle,
        key,
        offset,
    }
}

pub(super) const SEND: BlockOperation = BlockOperation::Send { key: KEY };

pub(super) fn refused(status: Status) -> Outcome {
    Outcome::Failed(Failure::Refused(status))
}

//! A processor: an open-loop source, and a sink that accepts a flit in every cycle.

use std::sync::Arc;

use phitwire_framing::t3e::flit::{Flit, FlitKind, VCS, vc};
use phitwire_framing::t3e::header::{Command, Name};
use phitwire_framing::t3e::packet::PacketBuf;

use super::T3e;
use super::credits::Returned;
use super::packet::{Assembly, Delivery, Message, Operation};
use crate::link::{Credits, Depths};
use phitwire::kit::bits;
use phitwire::link::MAX_VCS;
use phitwire::sim::direct::exchange::{Arrivals, Exchange};
use phitwire::sim::direct::model::{self, PortAccount, Terminal as _};
use phitwire::sim::direct::shared::{self, LastSeen};
use phitwire::sim::direct::source::{NEVER, Source};

type Shared = shared::Shared<T3e>;
type Common = shared::Common<T3e>;

/// The packet format that terminals use.
#[derive(Clone, Debug)]
pub struct Format {
    pub(super) operation: Operation,
    pub(super) bytes: u8,
    /// Whether requests keep their order and do not adapt.
    pub(super) ordered: bool,
    /// Maximum number of outstanding requests per processor, if it waits for responses.
    pub(super) outstanding: usize,
    /// Number of clocks that a request spends in the memory.
    pub(super) memory: u64,
    /// The participating logical processors, by index.
    pub(super) numbers: Arc<[u16]>,
}

impl Format {
    pub(super) const fn commands(&self) -> [Command; 2] {
        self.operation.commands(self.bytes)
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Reply(Message);

/// A source and sink behind one link.
#[derive(Debug)]
pub struct Terminal {
    common: Common,
    processor: u16,
    credits: Credits,
    assembly: Assembly,
    /// The virtual channel of the packet that holds the wires.
    channel: u8,
    /// A packet that has stopped halfway without credits while a packet of the other channel holds
    /// the wires: requests and responses do not block each other (T3E sec. 3.3).
    halted: Option<(PacketBuf, u8)>,
    /// Birth cycles of the requests that wait for responses, by the low bits of their names.
    births: Vec<u64>,
    /// Unused values of those low bits.
    free: Vec<u32>,
    waiting: usize,
    /// The last request from each source, if requests keep their order.
    last_seen: Option<LastSeen>,
}

/// Bits of the name that distinguish the waiting requests of a terminal.
const SLOT_BITS: u32 = Name::ID_BITS;

impl Terminal {
    /// The terminal at a position, of the processor with the given number. If `ordered`, requests
    /// arrive there in order.
    pub(super) fn new((index, processor): (u64, u16), source: Source, ordered: bool) -> Self {
        Self {
            common: Common::new(index, source),
            processor,
            credits: Credits::new(Depths::PROCESSOR.all()),
            assembly: Assembly::default(),
            channel: 0,
            halted: None,
            births: Vec::new(),
            free: Vec::new(),
            waiting: 0,
            last_seen: ordered.then(LastSeen::new),
        }
    }

    /// Handles a flit that has arrived in cycle `now` on a channel.
    #[inline]
    pub(super) fn take(
        &mut self,
        now: u64,
        (vc, word): (usize, u64),
        assembly: &mut Assembly,
        shared: &mut Shared,
    ) {
        if let Some(got) = assembly.take(vc, word, self.processor) {
            self.arrived(now, got, shared);
        }
    }

    /// Handles a packet that has arrived in cycle `now`.
    fn arrived(&mut self, now: u64, got: Delivery, shared: &mut Shared) {
        let Delivery {
            command,
            mut message,
            from,
            ..
        } = got;
        if command.is_response() {
            let slot = message.name as usize & ((1 << SLOT_BITS) - 1);
            let born = self
                .births
                .get_mut(slot)
                .map(|at| core::mem::replace(at, NEVER));
            message.birth = born.unwrap_or(NEVER);
            if message.birth != NEVER {
                self.waiting -= 1;
                self.free.push(slot as u32);
            }
        } else if let Some(seen) = &mut self.last_seen {
            // Births are unique, because a source generates at most one request per cycle.
            let overtaken = seen.is_overtaken(from.into(), message.birth as u32, u32::MAX);
            shared.tally.overtaken += u64::from(overtaken);
        }
        if let Some(message_trace) = &mut shared.message_trace {
            match command.is_response() {
                true => message_trace.answered(self.processor.into(), message.birth, now),
                false => {
                    message_trace.arrived(from.into(), self.processor.into(), message.birth, now);
                }
            }
        }
        let key = message.key(command);
        let tally = &mut shared.tally;
        tally.arrived_packets += 1;
        tally.damaged += u64::from(!got.whole);
        tally.arrived_keys = tally.arrived_keys.wrapping_add(key);
        self.common.trace.add(now);
        self.common.trace.add(key);
        let is_answered = shared.request_reply && !command.is_response();
        if is_answered {
            tally.replies_made += 1;
            let to = from;
            self.common.replies.push_back((
                now + 1 + shared.format.memory,
                Reply(Message { to, ..message }),
            ));
        } else {
            shared.message_arrived(message.birth.min(now), now);
        }
    }

    /// Allocates a name for a request generated in cycle `birth`.
    fn name(&mut self, sequence: u32, birth: u64, waits: bool) -> u32 {
        if !waits {
            return sequence & ((1 << Name::BITS) - 1);
        }
        self.waiting += 1;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.births.push(NEVER);
            self.births.len() as u32 - 1
        });
        self.births[slot as usize] = birth;
        slot | (sequence & ((1 << (Name::BITS - SLOT_BITS)) - 1)) << SLOT_BITS
    }

    /// Chooses the next packet to hold the wires when the current one cannot proceed. As at an
    /// output of a router, a packet keeps them until it ends or is blocked (T3E sec. 7).
    fn choose(&mut self, now: u64, shared: &mut Shared) {
        let room = [vc::REQUEST, vc::RESPONSE].map(|vc| self.credits.left(vc) > 0);
        let under_way = [&self.common.packet, &self.halted];
        let mut is_free = [true; 2];
        for (packet, _) in under_way.into_iter().flatten() {
            is_free[usize::from(packet.is_response())] = false;
        }
        if let Some((packet, _)) = &self.halted
            && room[usize::from(packet.is_response())]
        {
            self.channel = channel(packet) as u8;
            core::mem::swap(&mut self.common.packet, &mut self.halted);
            return;
        }
        if is_free == [false; 2] || !self.common.is_up {
            return;
        }
        let due = self.due(shared).map(|due| due <= now);
        let may = core::array::from_fn(|kind| is_free[kind] && room[kind] && due[kind]);
        if may != [false, false]
            && let Some(packet) = self.next_packet(may, shared)
        {
            self.channel = channel(&packet) as u8;
            let blocked = self.common.packet.replace((packet, 0));
            self.halted = self.halted.take().or(blocked);
        }
    }

    /// Sends during a window in which the given credits arrive. Returns the cycles in which flits
    /// were sent.
    fn transmit(
        &mut self,
        base: u64,
        credits: &Returned,
        flits: &mut [Flit],
        shared: &mut Shared,
    ) -> u64 {
        let mut sent = 0;
        for (cycle, flit) in flits.iter_mut().enumerate() {
            if let Some(vc) = credits.get(cycle) {
                self.credits.give(vc);
            }
            if self.common.packet.is_none() || self.credits.left(self.channel.into()) == 0 {
                self.choose(base + cycle as u64, shared);
            }
            let Some((packet, done)) = &mut self.common.packet else {
                continue;
            };
            let channel = usize::from(self.channel);
            if self.credits.left(channel) == 0 {
                continue;
            }
            let at = usize::from(*done);
            *flit = Flit::data(packet.flits()[at], channel, at == 0);
            self.credits.take(channel);
            sent |= 1 << cycle;
            *done += 1;
            if at + 1 == packet.flits().len() {
                self.common.packet = None;
                shared.tally.sent_packets += 1;
            }
        }
        sent
    }
}

/// The virtual channel on which a packet enters its router.
pub(super) fn channel(packet: &PacketBuf) -> usize {
    match packet.is_response() {
        true => vc::RESPONSE,
        false => vc::REQUEST,
    }
}

impl model::Terminal<T3e> for Terminal {
    fn run_window(
        &mut self,
        index: usize,
        base: u64,
        exchange: &mut Exchange<T3e>,
        shared: &mut Shared,
    ) -> u64 {
        let size = exchange.window;
        let slot = exchange.terminal_slot(index) as usize;
        let arrivals = core::mem::take(&mut exchange.read.arrivals[slot]);
        let mut freed = Returned::default();
        for cycle in bits(arrivals.phits) {
            let flit = exchange.read.phits[slot * size + cycle];
            if let FlitKind::Data(vc) = flit.control.kind() {
                shared.tally.arrived_phits += 1;
                freed.set(cycle, vc.into());
                let own = self.processor;
                if let Some(got) = self.assembly.take(vc.into(), flit.word, own) {
                    self.arrived(base + cycle as u64, got, shared);
                }
            }
        }
        let at = self.common.peer as usize * size;
        let flits = &mut exchange.write.phits[at..at + size];
        let phits = self.transmit(base, &arrivals.credits, flits, shared);
        let out = Arrivals {
            phits,
            credits: freed,
        };
        self.common.send(0, out, exchange, shared);
        let end = base + size as u64;
        if self.halted.is_some() {
            return end;
        }
        // At the limit of outstanding requests, a response must arrive first.
        match self.common.packet.is_none() && self.request_due(shared) == NEVER {
            true => self.common.reply_due().max(end),
            false => self.common.next_cycle(end),
        }
    }

    fn is_at_rest(&self) -> bool {
        let common = &self.common;
        let has_replies = common.is_up && !common.replies.is_empty();
        let is_sending = common.packet.is_some() || self.halted.is_some();
        !is_sending && !has_replies && !self.is_receiving()
    }

    fn account(&self) -> PortAccount {
        let mut account = PortAccount {
            slots: Some(slots(Depths::PROCESSOR)),
            ..PortAccount::default()
        };
        account.credits[..VCS].copy_from_slice(&self.credits.all());
        account
    }

    fn next_request(&mut self, shared: &mut Shared) -> PacketBuf {
        let source = &mut self.common.source;
        let head = source.head();
        let (to, _) = source.take(self.common.number, &shared.births, &shared.destinations);
        let message = Message {
            to: shared.format.numbers[to as usize],
            name: self.name(head.sequence, head.birth, shared.request_reply),
            birth: head.birth,
        };
        let [command, _] = shared.format.commands();
        shared.request_sent(message.key(command), head.birth);
        if let Some(message_trace) = &mut shared.message_trace {
            let ends = (self.common.number, to.into());
            let identity = u64::from(message.name) & ((1 << Name::ID_BITS) - 1);
            message_trace.sent(ends, head.birth, || [identity; 2]);
        }
        message.request(command, self.processor, shared.format.ordered)
    }

    fn reply(Reply(message): Reply, shared: &mut Shared) -> PacketBuf {
        let [_, command] = shared.format.commands();
        shared.reply_sent(message.key(command));
        message.response(command)
    }

    fn common(&self) -> &Common {
        &self.common
    }

    fn common_mut(&mut self) -> &mut Common {
        &mut self.common
    }

    fn request_due(&self, shared: &Shared) -> u64 {
        let full = shared.request_reply && self.waiting >= shared.format.outstanding;
        match full {
            true => NEVER,
            false => self.common.source.head().birth,
        }
    }

    fn reserved(&self) -> u64 {
        0
    }

    fn is_receiving(&self) -> bool {
        self.assembly.is_open()
    }
}

#[cfg(test)]
impl Terminal {
    pub(super) fn lose_credits(&mut self, vc: usize, credits: u32) {
        (0..credits).for_each(|_| self.credits.take(vc));
    }

    /// Swaps the next request with the one after it from the same source.
    pub(super) fn swap_next(&mut self) {
        let seen = self.last_seen.as_mut();
        seen.expect("the run tracks request order").swap_next();
    }

    /// Makes the checker expect the requests of each source in order.
    pub(super) fn expect_order(&mut self) {
        self.last_seen = Some(LastSeen::new());
    }
}

/// The depths of a link in the checkers' format.
pub(super) fn slots(depths: Depths) -> [u32; MAX_VCS] {
    let mut slots = [0; MAX_VCS];
    slots[..VCS].copy_from_slice(&depths.all());
    slots
}

//! A NIC in virtual time: an open-loop source, and a sink for the packets that its link delivers.

use phitwire_framing::aries::flit::{Flit, NodeId, Routing};

use super::credits::Returned;
use super::packet::{Assembly, Delivery, Name, Outstanding, Packet, Reply, id_of, line_hash};
use super::{Aries, INPUT_FLITS, NIC_LANES};
use crate::link::{IdealEnd, SetProfile};
use crate::router::pace::Pace;
use phitwire::kit::bits;
use phitwire::sim::direct::exchange::{Arrivals, Exchange};
use phitwire::sim::direct::model::{self, PortAccount, Stream, Terminal as _};
use phitwire::sim::direct::shared::{self, LastSeen};
use phitwire::sim::direct::source::{NEVER, Source};

type Shared = shared::Shared<Aries>;
type Common = shared::Common<Aries>;

/// The scope within which requests are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Requests of one NIC to another.
    PerPair,
    /// Requests to cache lines of one hash value.
    PerLine,
}

impl Order {
    pub(super) const fn of(routing: Routing) -> Option<Self> {
        match (routing.is_deterministic(), routing.is_hashed()) {
            (false, _) => None,
            (true, false) => Some(Self::PerPair),
            (true, true) => Some(Self::PerLine),
        }
    }
}

#[derive(Debug)]
pub struct Terminal {
    common: Common,
    node: u32,
    /// The link end. Its buffer is always drained.
    end: IdealEnd,
    assembly: Assembly,
    outstanding: Outstanding,
    /// For modes that keep order: the scope, and the latest requests received.
    last_seen: Option<(Order, LastSeen)>,
}

/// The credits that arrive in a window, and which of them have been applied.
struct UpcomingCredits<'a> {
    lanes: &'a [Returned; NIC_LANES],
    /// Cycles whose credits have been applied.
    done: u64,
}

impl UpcomingCredits<'_> {
    /// Applies the credits up to and including `cycle`.
    fn up_to(&mut self, cycle: usize, end: &mut IdealEnd) {
        let new = (u64::MAX >> (63 - cycle)) & !self.done;
        self.done |= new;
        for lane in self.lanes {
            for cycle in bits(lane.cycles & new) {
                end.give(lane.vc(cycle as u32));
            }
        }
    }

    /// The next cycle with credits.
    fn next(&self) -> Option<usize> {
        let left = self.lanes.iter().fold(0, |all, lane| all | lane.cycles) & !self.done;
        (left != 0).then(|| left.trailing_zeros() as usize)
    }
}

impl Terminal {
    pub(super) fn new(number: u64, node: u32, source: Source, order: Option<Order>) -> Self {
        Self {
            common: Common::new(number, source),
            node,
            end: IdealEnd::new(&SetProfile::paper(), 0),
            assembly: Assembly::default(),
            outstanding: Outstanding::default(),
            last_seen: order.map(|order| (order, LastSeen::new())),
        }
    }

    /// Takes the flits of a window, and returns the freed slots.
    fn receive(
        &mut self,
        base: u64,
        cycles: [u64; NIC_LANES],
        flits: &[u64],
        shared: &mut Shared,
    ) -> [Returned; NIC_LANES] {
        let mut freed = [Returned::default(); NIC_LANES];
        let size = flits.len() / NIC_LANES;
        for cycle in bits(cycles.into_iter().fold(0, |all, lane| all | lane)) {
            for lane in 0..NIC_LANES {
                if cycles[lane] >> cycle & 1 == 0 {
                    continue;
                }
                shared.tally.arrived_phits += 1;
                let flit = flits[lane * size + cycle];
                let (vc, delivery) = self.assembly.take(flit, shared.format.routing);
                freed[lane].credit(cycle as u32, vc);
                if let Some(delivery) = delivery {
                    self.arrived(base + cycle as u64, delivery, shared);
                }
            }
        }
        freed
    }

    /// Handles a packet that arrived in cycle `now`.
    pub(super) fn arrived(&mut self, now: u64, delivery: Delivery, shared: &mut Shared) {
        let tally = &mut shared.tally;
        tally.arrived_packets += 1;
        let (key, dest) = match delivery {
            Delivery::Request(name, _) => (name.key(), name.dest),
            Delivery::Reply(name) => (name.key(), name.dest),
            Delivery::Damaged => {
                tally.damaged += 1;
                return;
            }
        };
        tally.arrived_keys = tally.arrived_keys.wrapping_add(key);
        tally.misrouted += u64::from(dest != self.node);
        self.common.trace.add(now);
        self.common.trace.add(key);
        match delivery {
            Delivery::Request(name, whole) => {
                tally.damaged += u64::from(!whole);
                tally.overtaken += u64::from(self.is_overtaken(name));
                if let Some(message_trace) = &mut shared.message_trace {
                    message_trace.arrived(name.source, name.dest, name.birth, now);
                }
                if shared.request_reply {
                    shared.tally.replies_made += 1;
                    self.common.replies.push_back((now + 1, name.reply()));
                } else {
                    // A damaged packet may claim a birth in the future.
                    shared.message_arrived(name.birth.min(now), now);
                }
            }
            Delivery::Reply(name) => match self.outstanding.end(name.id) {
                Some(born) => {
                    if let Some(message_trace) = &mut shared.message_trace {
                        message_trace.answered(self.node, born, now);
                    }
                    shared.message_arrived(born, now);
                }
                None => tally.misrouted += 1,
            },
            Delivery::Damaged => {}
        }
    }

    /// Whether a later request of the same source has already arrived. With order per line, only
    /// requests to the same lines count.
    fn is_overtaken(&mut self, name: Name) -> bool {
        self.last_seen.as_mut().is_some_and(|(order, seen)| {
            let lines = match order {
                Order::PerPair => 0,
                Order::PerLine => line_hash(name.sequence, Routing::MinHash).unwrap_or(0),
            };
            let key = u32::from(lines) << NodeId::BITS | name.source;
            seen.is_overtaken(key, name.sequence, Name::SEQUENCE_MASK)
        })
    }

    /// Sends as many flits as the credits of a window allow. Returns the cycles in which flits were
    /// sent, by lane.
    fn transmit(
        &mut self,
        base: u64,
        credits: &[Returned; NIC_LANES],
        flits: &mut [u64],
        shared: &mut Shared,
    ) -> [u64; NIC_LANES] {
        let size = flits.len() / NIC_LANES;
        let mut sent = [0; NIC_LANES];
        let mut coming = UpcomingCredits {
            lanes: credits,
            done: 0,
        };
        let mut slot = Pace::NIC.before(base);
        let end = Pace::NIC.before(base + size as u64);
        while slot < end {
            if self.common.packet.is_none() {
                match self.begin(base, slot, size, &mut coming, shared) {
                    Some(at) => slot = at,
                    None => break,
                }
            }
            let Some((packet, done)) = &mut self.common.packet else {
                break;
            };
            let now = Pace::NIC.cycle_of(slot);
            let (cycle, lane) = (
                (now - base) as usize,
                (slot - Pace::NIC.before(now)) as usize,
            );
            let flit = packet.flits()[usize::from(*done)];
            flits[lane * size + cycle] = flit;
            sent[lane] |= 1 << cycle;
            self.end.push(Flit::new(flit), now);
            *done += 1;
            slot += 1;
            if usize::from(*done) == packet.flits().len() {
                self.common.packet = None;
                shared.tally.sent_packets += 1;
            }
        }
        coming.up_to(size - 1, &mut self.end);
        sent
    }

    /// Begins the next packet in the first slot of `Pace::NIC` at or after `from` in which a packet
    /// is ready and can be sent. Returns `None` if the window has no such slot.
    fn begin(
        &mut self,
        base: u64,
        from: u64,
        size: usize,
        coming: &mut UpcomingCredits<'_>,
        shared: &mut Shared,
    ) -> Option<u64> {
        if !self.common.is_up {
            return None;
        }
        let ready = self.due(shared);
        let lengths = [shared.format.request_flits, super::packet::REPLY_FLITS];
        let end = base + size as u64;
        let mut slot = from;
        loop {
            // Skip to the first ready packet.
            let earliest = ready[0].min(ready[1]).clamp(base, end);
            slot = slot.max(Pace::NIC.before(earliest));
            let now = Pace::NIC.cycle_of(slot);
            if now >= end {
                return None;
            }
            coming.up_to((now - base) as usize, &mut self.end);
            let may = [0, 1].map(|i| ready[i] <= now && self.end.has_credits(4 * i, lengths[i]));
            if may != [false, false] {
                self.common.packet = Some((self.next_packet(may, shared)?, 0));
                return Some(slot);
            }
            // Sleep until credits arrive or another packet is ready.
            let later = ready.into_iter().filter(|&ready| ready > now).min();
            let later = later.map_or(end, |ready| ready.min(end));
            let credit = coming.next().map_or(end, |next| base + next as u64);
            slot = Pace::NIC.before(later.min(credit));
        }
    }
}

impl model::Terminal<Aries> for Terminal {
    fn run_window(
        &mut self,
        index: usize,
        base: u64,
        exchange: &mut Exchange<Aries>,
        shared: &mut Shared,
    ) -> u64 {
        let size = exchange.window;
        let slot = exchange.terminal_slot(index) as usize;
        let arrivals: [_; NIC_LANES] =
            core::array::from_fn(|lane| core::mem::take(&mut exchange.read.arrivals[slot + lane]));
        let flits = &exchange.read.phits[slot * size..(slot + NIC_LANES) * size];
        let freed = self.receive(base, arrivals.map(|lane| lane.phits), flits, shared);
        let at = self.common.peer as usize * size;
        let flits = &mut exchange.write.phits[at..at + NIC_LANES * size];
        let credits = arrivals.map(|lane| lane.credits);
        let sent = self.transmit(base, &credits, flits, shared);
        for lane in 0..NIC_LANES {
            let out = Arrivals {
                phits: sent[lane],
                credits: freed[lane],
            };
            self.common.send(lane as u32, out, exchange, shared);
        }
        self.common.next_cycle(base + size as u64)
    }

    fn account(&self) -> PortAccount {
        let (left, vc) = self.assembly.open();
        PortAccount {
            credits: self.end.used().map(|used| INPUT_FLITS.wrapping_sub(used)),
            coming: Stream { vc, left },
            ..PortAccount::default()
        }
    }

    fn next_request(&mut self, shared: &mut Shared) -> Packet {
        let source = &mut self.common.source;
        let head = source.head();
        let (to, _) = source.take(self.common.number, &shared.births, &shared.destinations);
        let routing = shared.format.routing;
        let id = if shared.request_reply {
            let hash = line_hash(head.sequence, routing);
            self.outstanding.begin(head.birth, hash)
        } else {
            id_of(head.sequence, routing)
        };
        let name = Name {
            dest: shared.format.nodes[to as usize],
            source: self.node,
            sequence: Name::sequence(head.sequence),
            id,
            birth: head.birth,
        };
        shared.request_sent(name.key(), head.birth);
        if let Some(message_trace) = &mut shared.message_trace {
            let ends = (self.common.number, to.into());
            message_trace.sent(ends, head.birth, || [id.into(); 2]);
        }
        Packet::request(name, shared.format.request_flits, shared.format.routing)
    }

    fn reply(name: Reply, shared: &mut Shared) -> Packet {
        shared.reply_sent(name.key());
        Packet::reply(name, shared.format.routing)
    }

    fn common(&self) -> &Common {
        &self.common
    }

    fn common_mut(&mut self) -> &mut Common {
        &mut self.common
    }

    fn request_due(&self, shared: &Shared) -> u64 {
        let head = self.common.source.head();
        let hash = line_hash(head.sequence, shared.format.routing);
        let full = self.outstanding.len() >= shared.format.outstanding;
        match shared.request_reply && (full || !self.outstanding.has_id(hash)) {
            true => NEVER,
            false => head.birth,
        }
    }

    fn reserved(&self) -> u64 {
        let left = |(packet, done): &(Packet, u8)| packet.flits().len() as u64 - u64::from(*done);
        self.common.packet.as_ref().map_or(0, left)
    }

    fn is_receiving(&self) -> bool {
        self.assembly.is_open()
    }
}

#[cfg(test)]
impl Terminal {
    /// Swaps the next request with the one after it from the same source.
    pub(super) fn swap_next(&mut self) {
        let (_, seen) = self
            .last_seen
            .as_mut()
            .expect("the run tracks request order");
        seen.swap_next();
    }

    /// Sets the scope within which requests of a source must arrive in order.
    pub(super) fn expect_order(&mut self, order: Option<Order>) {
        self.last_seen = order.map(|order| (order, LastSeen::new()));
    }
}

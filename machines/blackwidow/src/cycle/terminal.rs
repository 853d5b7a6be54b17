//! A processor's port: an open-loop source, and a sink that takes a phit in every cycle.

use phitwire_framing::yarc::packet::{HASH_MASK, MAX_PACKET_PHITS, Vc};
use phitwire_framing::yarc::phit::{CONTENT_MASK, Phit};

use super::BlackWidow;
use super::length::Pace;
use super::packet::{Assembly, Delivery, Name, Packet};
use crate::link::{OutputCredits, ideal_credits};
use phitwire::kit::bits;
use phitwire::sim::direct::exchange::{Arrivals, Exchange};
use phitwire::sim::direct::model::{self, PortAccount, Stream, Terminal as _};
use phitwire::sim::direct::shared::{self, LastSeen};
use phitwire::sim::direct::source::{NEVER, Source};

type Shared = shared::Shared<BlackWidow>;
type Common = shared::Common<BlackWidow>;

#[derive(Debug)]
pub struct Terminal {
    common: Common,
    processor: u16,
    credits: OutputCredits,
    assembly: Assembly,
    pace: Pace,
    /// Number of requests that await their reply, in runs with replies.
    outstanding: u32,
    /// The last request received, by source and path.
    last_seen: LastSeen,
}

/// Cycles of a window in which credits arrive that have not been applied yet, per virtual channel.
struct UpcomingCredits([u64; 2]);

impl UpcomingCredits {
    /// Applies the credits that arrive up to and including `cycle`.
    fn up_to(&mut self, cycle: usize, credits: &mut OutputCredits) {
        let past = u64::MAX >> (63 - cycle);
        for vc in Vc::ALL {
            let cycles = &mut self.0[vc.index()];
            if *cycles & past != 0 {
                credits.give(vc, (*cycles & past).count_ones());
                *cycles &= !past;
            }
        }
    }
}

impl Terminal {
    pub(crate) fn new(number: u64, processor: u16, source: Source) -> Self {
        Self {
            common: Common::new(number, source),
            processor,
            credits: ideal_credits(MAX_PACKET_PHITS as u8),
            assembly: Assembly::default(),
            pace: Pace::default(),
            outstanding: 0,
            last_seen: LastSeen::new(),
        }
    }

    /// Sets the pace and the longest packet of the terminal's link.
    pub(super) fn set_link(&mut self, pace: Pace, max_packet_phits: u8) {
        self.pace = pace;
        self.credits = ideal_credits(max_packet_phits);
    }

    /// Takes the phits of a window; returns the cycles in which slots became free, per virtual
    /// channel.
    fn receive(&mut self, base: u64, cycles: u64, phits: &[u32], shared: &mut Shared) -> [u64; 2] {
        let mut freed = [0; 2];
        shared.tally.arrived_phits += u64::from(cycles.count_ones());
        for cycle in bits(cycles) {
            let phit = Phit::from_bits(phits[cycle]);
            freed[self.assembly.vc(phit).index()] |= 1 << cycle;
            if let Some(delivery) = self.assembly.take(phit, shared.format.seal) {
                self.arrived(base + cycle as u64, delivery, shared);
            }
        }
        freed
    }

    /// Handles a packet that arrived in cycle `now`.
    pub(crate) fn arrived(&mut self, now: u64, delivery: Delivery, shared: &mut Shared) {
        let Delivery {
            name, hash, intact, ..
        } = delivery;
        let tally = &mut shared.tally;
        let key = name.key();
        tally.arrived_packets += 1;
        tally.arrived_keys = tally.arrived_keys.wrapping_add(key);
        tally.damaged += u64::from(!intact);
        tally.misrouted += u64::from(name.dest != self.processor);
        self.common.trace.add(now);
        self.common.trace.add(key);
        if let Some(message_trace) = &mut shared.message_trace {
            let born = name.born(now).min(now);
            match name.vc {
                Vc::Request => {
                    message_trace.arrived(name.source.into(), name.dest.into(), born, now)
                }
                Vc::Response => message_trace.answered(name.dest.into(), born, now),
            }
        }
        if name.vc == Vc::Response {
            self.outstanding = self.outstanding.saturating_sub(1);
        }
        if name.vc == Vc::Request {
            let way = hash & shared.format.deciding_hash_bits;
            tally.overtaken += u64::from(self.is_overtaken(name, way));
            if shared.request_reply {
                tally.replies_made += 1;
                self.common.replies.push_back((now + 1, name.reply()));
                return;
            }
        }
        // A damaged packet may claim a birth before the start, so limit it.
        let born = name.born(now).min(now);
        shared.message_arrived(born, now);
    }

    /// Whether a later request of the same source and path arrived earlier.
    fn is_overtaken(&mut self, name: Name, way: u16) -> bool {
        let key = u32::from(name.source) | u32::from(way) << 16;
        let last_seen = &mut self.last_seen;
        last_seen.is_overtaken(key, name.sequence, CONTENT_MASK)
    }

    /// Sends as many phits as possible in a window whose credits arrive in the given cycles.
    /// Returns the cycles in which phits were sent.
    fn transmit(
        &mut self,
        base: u64,
        credits: [u64; 2],
        phits: &mut [u32],
        shared: &mut Shared,
    ) -> u64 {
        let size = phits.len();
        let mut coming = UpcomingCredits(credits);
        let mut sent = 0u64;
        let mut cycle = 0;
        while cycle < size {
            if self.pace.is_slow() {
                cycle = cycle.max(self.pace.next().saturating_sub(base) as usize);
                if cycle >= size {
                    break;
                }
            }
            if self.common.packet.is_none() {
                match self.begin(base, cycle, size, &mut coming, shared) {
                    Some(at) => cycle = at,
                    None => break,
                }
            }
            let Some((packet, done)) = &mut self.common.packet else {
                break;
            };
            let left = &packet.phits()[usize::from(*done)..];
            let mut count = left.len().min(size - cycle);
            if self.pace.is_slow() {
                self.pace.send(base + cycle as u64);
                count = 1;
            }
            phits[cycle..cycle + count].copy_from_slice(&left[..count]);
            sent |= (u64::MAX >> (64 - count)) << cycle;
            self.credits.take(count as u32);
            cycle += count;
            let is_last = count == left.len();
            if is_last {
                self.common.packet = None;
                shared.tally.sent_packets += 1;
            } else {
                *done += count as u8;
            }
        }
        coming.up_to(size - 1, &mut self.credits);
        sent
    }

    /// Begins the next packet in the first cycle at or after `from` in which one is available and
    /// can be sent. Returns `None` if the window has no such cycle.
    fn begin(
        &mut self,
        base: u64,
        from: usize,
        size: usize,
        coming: &mut UpcomingCredits,
        shared: &mut Shared,
    ) -> Option<usize> {
        if !self.common.is_up {
            return None;
        }
        let ready = self.due(shared);
        let mut at = [size; 2];
        for vc in Vc::ALL {
            let ready = ready[vc.index()];
            if ready < base + size as u64 {
                let earliest = from.max(ready.saturating_sub(base) as usize);
                let lacking = self.credits.lacking(vc);
                let coming = coming.0[vc.index()];
                at[vc.index()] = first_with_credits(lacking, coming, earliest, size);
            }
        }
        let cycle = at[0].min(at[1]);
        if cycle >= size {
            return None;
        }
        let vc = self
            .common
            .turn
            .arbitrate(0, at[0] == cycle, at[1] == cycle);
        let packet = if vc == 0 {
            self.next_request(shared)
        } else {
            self.next_reply(shared)?
        };
        if !self.credits.has_room(packet.vc()) {
            coming.up_to(cycle, &mut self.credits);
        }
        self.credits.begin(packet.vc());
        self.common.packet = Some((packet, 0));
        Some(cycle)
    }
}

impl model::Terminal<BlackWidow> for Terminal {
    fn run_window(
        &mut self,
        index: usize,
        base: u64,
        exchange: &mut Exchange<BlackWidow>,
        shared: &mut Shared,
    ) -> u64 {
        let size = exchange.window;
        let slot = exchange.terminal_slot(index) as usize;
        let arrivals = core::mem::take(&mut exchange.read.arrivals[slot]);
        let phits = &exchange.read.phits[slot * size..(slot + 1) * size];
        let freed = self.receive(base, arrivals.phits, phits, shared);
        let at = self.common.peer as usize * size;
        let phits = &mut exchange.write.phits[at..at + size];
        let sent = self.transmit(base, arrivals.credits, phits, shared);
        let out = Arrivals {
            phits: sent,
            credits: freed,
        };
        self.common.send(0, out, exchange, shared);
        self.common.next_cycle(base + size as u64)
    }

    fn account(&self) -> PortAccount {
        let mut account = PortAccount {
            coming: Stream {
                vc: self.assembly.vc(Phit::IDLE).index() as u8,
                left: 0,
            },
            ..PortAccount::default()
        };
        for vc in Vc::ALL {
            account.credits[vc.index()] = self.credits.available(vc);
        }
        account
    }

    fn request_due(&self, shared: &Shared) -> u64 {
        match shared.request_reply && self.outstanding >= shared.format.outstanding {
            true => NEVER,
            false => self.common.source.head().birth,
        }
    }

    fn next_request(&mut self, shared: &mut Shared) -> Packet {
        self.outstanding += u32::from(shared.request_reply);
        let head = self.common.source.head();
        let (to, hash) =
            self.common
                .source
                .take(self.common.number, &shared.births, &shared.destinations);
        let hash = hash & HASH_MASK as u16;
        let dest = shared.format.numbers[to as usize];
        let name = Name::request(self.processor, dest, head.sequence, head.birth);
        shared.request_sent(name.key(), head.birth);
        let seal = shared.format.seal;
        let packet = Packet::request(name, hash, shared.format.request_phits, seal);
        if let Some(message_trace) = &mut shared.message_trace {
            let ends = (self.common.number, to.into());
            let reply = Packet::reply(name.reply(), seal);
            let identities = || [packet.identity(), reply.identity()];
            message_trace.sent(ends, head.birth, identities);
        }
        packet
    }

    fn reply(name: Name, shared: &mut Shared) -> Packet {
        shared.reply_sent(name.key());
        Packet::reply(name, shared.format.seal)
    }

    fn common(&self) -> &Common {
        &self.common
    }

    fn common_mut(&mut self) -> &mut Common {
        &mut self.common
    }

    fn reserved(&self) -> u64 {
        let left = |(packet, done): &(Packet, u8)| packet.phits().len() as u64 - u64::from(*done);
        self.common.packet.as_ref().map_or(0, left)
    }

    fn is_receiving(&self) -> bool {
        self.assembly.is_open()
    }
}

#[cfg(test)]
impl Terminal {
    /// Swaps the next request with the one after it from the same source and path.
    pub(super) fn swap_next(&mut self) {
        self.last_seen.swap_next();
    }
}

/// The first cycle of a window, at or after `from`, by which the `lacking` credits for a packet
/// have arrived; `size` if there is none.
fn first_with_credits(lacking: u32, coming: u64, from: usize, size: usize) -> usize {
    let mut cycle = from;
    if lacking == 0 {
        return cycle;
    }
    while cycle < size {
        let come = (coming & (u64::MAX >> (63 - cycle))).count_ones();
        if come >= lacking {
            return cycle;
        }
        let later = coming & !(u64::MAX >> (63 - cycle));
        if later == 0 {
            return size;
        }
        cycle = later.trailing_zeros() as usize;
    }
    size
}

#[cfg(test)]
mod tests {
    use super::*;
    use phitwire::sim::direct::Traffic;
    use phitwire::sim::direct::source::Births;

    #[test]
    fn a_request_that_overtakes_is_noticed() {
        let births = Births::new(&Traffic::default(), 13, [1, 1]);
        let source = Source::new(1, 0, false, &births);
        let mut terminal = Terminal::new(0, 7, source);
        let mut overtaken =
            |sequence, hash| terminal.is_overtaken(Name::request(3, 7, sequence, 0), hash);
        assert!(!overtaken(5, 9));
        assert!(!overtaken(8, 9));
        assert!(!overtaken(7, 10), "other hash bits take another path");
        assert!(overtaken(7, 9));
        assert!(overtaken(7, 9), "the same request again");
        assert!(!overtaken(0x3f_ffff, 30));
        assert!(!overtaken(2, 30), "numbers wrap around");
    }

    #[test]
    fn credits_of_this_window_count_from_their_cycle_on() {
        assert_eq!(first_with_credits(0, 0, 3, 20), 3);
        assert_eq!(first_with_credits(1, 0, 3, 20), 20);
        assert_eq!(first_with_credits(2, 0b1010_0000, 3, 20), 7);
        assert_eq!(first_with_credits(119, u64::MAX, 0, 64), 64);
        assert_eq!(first_with_credits(59, u64::MAX, 0, 64), 58);
    }
}

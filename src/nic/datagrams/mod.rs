//! Datagrams between NICs, carried by puts: the transport of an operating system's network device.
//!
//! Each NIC keeps eight slots in its memory for every other NIC. A source puts the bytes of a
//! datagram into one of its free slots at the target. When all those puts are acknowledged, it puts
//! a word that describes the datagram: the bell. The target takes the datagram and puts the same
//! word back as the receipt, which frees the slot. The word holds a check of the bytes, so that a
//! datagram damaged by a late put into a reused slot is dropped, not delivered.
//!
//! Datagrams to one target normally arrive in the order sent. A lost datagram is counted and not
//! resent. A silent target is suspended for a while, and does not delay datagrams to others.

mod layout;
mod peer;

use std::collections::{BTreeMap, VecDeque};

pub use layout::MOST_DATAGRAM_BYTES;
use layout::{Bell, LINE, Layout, line, word};
use peer::{Outgoing, Peer, Slot};

use super::memory::Memory;
use super::puts::{PutEnd, PutError, RemotePuts};
use crate::kit::counters::counters;
use crate::time::{Duration, Time};

/// Maximum number of datagrams to one target that wait for a slot, and of their bytes. A sender of
/// a few megabits a second loses no short datagram while the target is suspended for half a second;
/// of the longest datagrams, sixteen fit.
const MOST_WAITING: (usize, usize) = (256, 16 * MOST_DATAGRAM_BYTES);
/// Maximum number of outstanding puts, even if the NIC allows more. Twice as many gave no more
/// throughput (`docs/guide/src/results.md`), and delayed other puts.
const MOST_PUTS: usize = 384;
/// Limit on outstanding puts to a target that has not responded for [`QUIET_AFTER`].
const FEW_TO_ONE: usize = 32;
/// A target silent for this long may be dead, and its puts are limited. A datagram in flight for
/// this long no longer delays others.
const QUIET_AFTER: Duration = Duration::from_ms(20);
/// A target that does not respond for this long is suspended, even if puts take longer to time out:
/// the machine's settings allow up to a minute. A link that recovers or a detour found within this
/// time goes unnoticed.
const SUSPEND_AFTER: Duration = Duration::from_ms(2_000);
/// Limit on outstanding puts to a target that was suspended and has not responded since.
const PROBES: usize = 2;
/// Maximum number of puts to one target before the next target's turn.
const PUTS_PER_TURN: usize = 32;
/// Maximum number of resends of a damaged bell or receipt.
const ATTEMPTS: u8 = 8;
/// A datagram without a receipt after this time is given up.
const PATIENCE: Duration = Duration::from_ms(5_000);
/// Suspension of an unresponsive target: the first value, doubled each time up to the second.
const SILENCE: (Duration, Duration) = (Duration::from_ms(500), Duration::from_ms(8_000));

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatagramError {
    #[error("too many datagrams are in flight")]
    Full,
    #[error("processor {0} does not answer")]
    Silent(u16),
    #[error("{0} bytes: a datagram has 1 to {MOST_DATAGRAM_BYTES}")]
    Length(usize),
    #[error("processor {0} does not exist in this network")]
    NoProcessor(u16),
}

/// The memories are too small for datagrams among this many processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{memory} bytes of memory: datagrams between {processors} processors need {needed}")]
pub struct NoRoom {
    pub(crate) memory: u64,
    /// Bytes needed; half of them are for traffic runs.
    pub(crate) needed: u64,
    pub(crate) processors: u16,
}

counters! {
    #[derive(Copy)]
    pub struct DatagramCounters {
        /// Datagrams accepted for sending.
        datagrams_sent,
        /// Datagrams taken by their target.
        datagrams_taken,
        /// Datagrams given up because their puts were lost or no receipt arrived.
        datagrams_lost,
        /// Datagrams rejected at the source because too many were in flight to their target.
        datagrams_full,
        /// Datagrams rejected at the source because their target is suspended.
        datagrams_silent,
        /// Datagrams received.
        datagrams_received,
        /// Datagrams that arrived damaged and were dropped.
        datagrams_broken,
        /// Puts resent because they arrived damaged.
        puts_repeated,
    }
}

#[derive(Clone, Copy, Debug)]
enum PendingPut {
    Piece { to: u16, serial: u32, offset: usize },
    Word(Word),
}

#[derive(Clone, Copy, Debug)]
struct Word {
    to: u16,
    slot: usize,
    bell: Bell,
    is_receipt: bool,
    attempts: u8,
}

impl Word {
    /// The address at the peer to which NIC `own` puts the word.
    fn address(&self, layout: Layout, own: u16) -> u64 {
        let words = match self.is_receipt {
            true => layout.receipts(own),
            false => layout.bells(own),
        };
        words + word(self.slot)
    }

    /// Whether the slot still waits for this word. Otherwise a resend would overwrite a later put.
    fn counts(&self, peer: &Peer) -> bool {
        match self.is_receipt {
            true => peer.heard[self.slot] == self.bell.0,
            false => {
                matches!(peer.slots[self.slot], Slot::Announced(bell, _) if bell == self.bell)
            }
        }
    }

    const fn is_for_slot_of(&self, other: &Self) -> bool {
        self.to == other.to && self.slot == other.slot && self.is_receipt == other.is_receipt
    }
}

/// Limits on outstanding puts.
#[derive(Clone, Copy, Debug)]
struct PutLimits {
    /// In total: three quarters of the NIC's limit; the rest is for others.
    puts: usize,
    /// To one target: two thirds of the total, so that a dead target cannot hold every put until it
    /// times out.
    to_one: usize,
}

impl PutLimits {
    fn of(outstanding: usize) -> Self {
        let puts = (outstanding - outstanding / 4).clamp(1, MOST_PUTS);
        let to_one = puts.div_ceil(3) * 2;
        Self { puts, to_one }
    }
}

/// The datagrams of one NIC.
///
/// Call order: [`poll`](Self::poll) when the NIC has advanced, then any number of
/// [`receive`](Self::receive) and [`send`](Self::send), then [`put`](Self::put).
#[derive(Debug)]
pub struct Datagrams {
    layout: Layout,
    limits: PutLimits,
    own: u16,
    peers: Vec<Peer>,
    /// Peers with datagrams in flight or waiting, in turn order.
    busy: VecDeque<u16>,
    words: VecDeque<Word>,
    asked: BTreeMap<u64, PendingPut>,
    serial: u32,
    /// Received bells, with their source and slot.
    arrived: VecDeque<(u16, usize, Bell)>,
    puts_served: Option<u64>,
    counters: DatagramCounters,
}

impl Datagrams {
    /// Reserves memory for datagrams among processors 0 to `processors` - 1; all NICs of a network
    /// need the same number. `nonce` must differ between incarnations.
    ///
    /// # Errors
    /// [`NoRoom`].
    pub fn new(processors: u16, nonce: u64, puts: &mut dyn RemotePuts) -> Result<Self, NoRoom> {
        let memory = puts.own_memory().size();
        let bytes = Layout::bytes(processors);
        let needed = 2 * bytes;
        let Some(base) = memory.checked_sub(bytes).filter(|_| needed <= memory) else {
            return Err(NoRoom {
                memory,
                needed,
                processors,
            });
        };
        let base = base / LINE as u64 * LINE as u64;
        puts.reserve(memory - base);
        let layout = Layout {
            base,
            processors: processors.into(),
        };
        Ok(Self {
            layout,
            limits: PutLimits::of(puts.most_outstanding()),
            own: 0,
            peers: (0..processors).map(|_| Peer::new(nonce)).collect(),
            busy: VecDeque::new(),
            words: VecDeque::new(),
            asked: BTreeMap::new(),
            serial: 0,
            arrived: VecDeque::new(),
            puts_served: None,
            counters: DatagramCounters::default(),
        })
    }

    pub fn counters(&self) -> &DatagramCounters {
        &self.counters
    }

    /// Sends a datagram to processor `to`.
    ///
    /// # Errors
    /// On a [`DatagramError`] nothing is sent.
    pub fn send(&mut self, now: Time, to: u16, bytes: &[u8]) -> Result<(), DatagramError> {
        if bytes.is_empty() || bytes.len() > MOST_DATAGRAM_BYTES {
            return Err(DatagramError::Length(bytes.len()));
        }
        let Some(peer) = self.peers.get_mut(usize::from(to)) else {
            return Err(DatagramError::NoProcessor(to));
        };
        if now < peer.silent_until {
            self.counters.datagrams_silent += 1;
            return Err(DatagramError::Silent(to));
        }
        if !peer.may_wait(bytes.len()) {
            let lost = peer.give_up(now);
            if lost == 0 {
                self.counters.datagrams_full += 1;
                return Err(DatagramError::Full);
            }
            self.counters.datagrams_lost += lost + peer.fall_silent(now);
            return Err(DatagramError::Silent(to));
        }
        self.counters.datagrams_sent += 1;
        if !peer.busy {
            peer.busy = true;
            self.busy.push_back(to);
        }
        peer.waits(bytes.to_vec());
        Ok(())
    }

    /// Copies the oldest received datagram into `room`, of at least [`MOST_DATAGRAM_BYTES`], and
    /// returns its length.
    ///
    /// # Panics
    /// If `room` is too short for the datagram.
    pub fn receive(&mut self, puts: &mut dyn RemotePuts, room: &mut [u8]) -> Option<usize> {
        while let Some((source, slot, bell)) = self.arrived.pop_front() {
            self.queue_word(source, slot, bell, true);
            let bytes = bell.length();
            let slot = self.layout.slot(source, slot);
            if (1..=MOST_DATAGRAM_BYTES).contains(&bytes)
                && let data = &mut room[..bytes]
                && puts.own_memory().read(slot, data).is_ok()
                && bell.describes(data)
            {
                self.counters.datagrams_received += 1;
                return Some(bytes);
            }
            self.counters.datagrams_broken += 1;
        }
        None
    }

    /// Queues a bell or a receipt, replacing an unsent one for the same slot.
    fn queue_word(&mut self, to: u16, slot: usize, bell: Bell, is_receipt: bool) {
        let word = Word {
            to,
            slot,
            bell,
            is_receipt,
            attempts: 0,
        };
        match self.words.iter_mut().find(|w| w.is_for_slot_of(&word)) {
            Some(earlier) => *earlier = word,
            None => self.words.push_back(word),
        }
    }

    /// Handles completed puts, and polls the memory for bells and receipts.
    pub fn poll(&mut self, now: Time, puts: &mut dyn RemotePuts) {
        while let Some((name, end)) = puts.put_ended() {
            self.ended(now, name, end);
        }
        let served = Some(puts.puts_served());
        if self.puts_served != served {
            self.puts_served = served;
            self.look(puts.own_memory());
        }
    }

    /// Issues as many puts as the limits allow. Returns whether it issued any.
    pub fn put(&mut self, now: Time, puts: &mut dyn RemotePuts) -> bool {
        // A spare NIC has no number until it replaces a processor.
        let Some(own) = puts.number() else {
            return false;
        };
        self.own = own;
        self.put_words(now, puts) | self.put_pieces(now, puts) | self.put_words(now, puts)
    }

    /// When [`put`](Self::put) is due without any further event.
    pub fn next_deadline(&self) -> Option<Time> {
        let busy = self.busy.iter().map(|&to| &self.peers[usize::from(to)]);
        busy.flat_map(|peer| [peer.suspends_at(), peer.gives_up_at()])
            .flatten()
            .min()
    }

    fn ended(&mut self, now: Time, name: u64, end: PutEnd) {
        match self.asked.remove(&name) {
            None => {}
            Some(PendingPut::Word(word))
                if end == PutEnd::Damaged
                    && word.attempts < ATTEMPTS
                    && word.counts(&self.peers[usize::from(word.to)]) =>
            {
                let attempts = word.attempts + 1;
                self.counters.puts_repeated += 1;
                self.words.push_back(Word { attempts, ..word });
            }
            Some(PendingPut::Word(_)) => {}
            Some(PendingPut::Piece { to, serial, offset }) => {
                let peer = &mut self.peers[usize::from(to)];
                let is_its = |outgoing: &&mut Outgoing| outgoing.serial == serial;
                let Some(outgoing) = peer.under_way.iter_mut().find(is_its) else {
                    if end != PutEnd::Lost {
                        peer.answers_late(now);
                    }
                    return;
                };
                debug_assert!(
                    0 < outgoing.outstanding && outgoing.outstanding <= peer.outstanding,
                    "each put ends once, and counts towards its peer"
                );
                outgoing.outstanding -= 1;
                peer.outstanding -= 1;
                if end != PutEnd::Lost {
                    peer.answered = now;
                }
                match end {
                    PutEnd::Done => {}
                    PutEnd::Damaged if outgoing.may_repeat() => {
                        outgoing.attempts += 1;
                        outgoing.again.push(offset);
                        self.counters.puts_repeated += 1;
                    }
                    PutEnd::Damaged => outgoing.lost = true,
                    // Drop only this datagram: the target responds to other puts.
                    PutEnd::Lost if now < peer.answered + QUIET_AFTER => outgoing.lost = true,
                    PutEnd::Lost => self.counters.datagrams_lost += peer.fall_silent(now),
                }
            }
        }
    }

    fn look(&mut self, memory: &Memory) {
        for (number, peer) in (0..).zip(&mut self.peers) {
            if let Some(bells) = line(memory, self.layout.bells(number)) {
                let mut new: Vec<(usize, Bell)> = Vec::new();
                for (slot, (heard, bell)) in peer.heard.iter_mut().zip(bells).enumerate() {
                    if *heard != bell {
                        *heard = bell;
                        new.push((slot, Bell(bell)));
                    }
                }
                new.retain(|(_, bell)| bell.0 != 0);
                new.sort_by_key(|(_, bell)| bell.behind(peer.next));
                for (slot, bell) in new {
                    peer.next = bell.behind(0).wrapping_add(1);
                    peer.answers();
                    self.arrived.push_back((number, slot, bell));
                }
            }
            if !peer
                .slots
                .iter()
                .any(|slot| matches!(slot, Slot::Announced(..)))
            {
                continue;
            }
            let Some(receipts) = line(memory, self.layout.receipts(number)) else {
                continue;
            };
            for (slot, receipt) in peer.slots.iter_mut().zip(receipts) {
                if matches!(slot, Slot::Announced(bell, _) if bell.0 == receipt) {
                    *slot = Slot::Free;
                    self.counters.datagrams_taken += 1;
                    peer.silent_until = Time::ZERO;
                    peer.silence = SILENCE.0;
                }
            }
        }
    }

    fn put_words(&mut self, now: Time, puts: &mut dyn RemotePuts) -> bool {
        let mut any = false;
        while let Some(&word) = self.words.front() {
            let (address, bytes) = (
                word.address(self.layout, self.own),
                word.bell.0.to_le_bytes(),
            );
            match puts.put(now, word.to, address, &bytes, true) {
                Ok(name) => {
                    let before = self.asked.insert(name, PendingPut::Word(word));
                    debug_assert!(before.is_none(), "put {name} has not ended");
                    any = true;
                }
                Err(PutError::Full) => break,
                Err(PutError::Impossible) => {}
            }
            self.words.pop_front();
        }
        any
    }

    /// Puts pieces of datagrams, target by target, and rings the bell of each complete datagram.
    fn put_pieces(&mut self, now: Time, puts: &mut dyn RemotePuts) -> bool {
        let (mut any, mut idle) = (false, 0);
        while idle < self.busy.len()
            && let Some(to) = self.busy.pop_front()
        {
            self.leave_the_deaf(now, to);
            self.begin_waiting(now, to);
            let Stepped { put, full } = self.step(now, to, puts);
            self.ring(now, to);
            let peer = &mut self.peers[usize::from(to)];
            peer.busy = !peer.is_idle();
            if peer.busy {
                self.busy.push_back(to);
            }
            any |= put;
            idle = if put { 0 } else { idle + 1 };
            if full {
                break;
            }
        }
        any
    }

    fn leave_the_deaf(&mut self, now: Time, to: u16) {
        let peer = &mut self.peers[usize::from(to)];
        if peer.suspends_at().is_some_and(|at| at <= now) {
            self.counters.datagrams_lost += peer.fall_silent(now);
        }
    }

    /// Assigns slots to waiting datagrams.
    fn begin_waiting(&mut self, now: Time, to: u16) {
        let peer = &mut self.peers[usize::from(to)];
        self.counters.datagrams_lost += peer.give_up(now);
        let is_free = |slot: &Slot| *slot == Slot::Free;
        while let Some(slot) = peer.slots.iter().position(is_free)
            && let Some(data) = peer.next_waiting()
        {
            self.serial = self.serial.wrapping_add(1);
            peer.begin(now, slot, self.serial, data);
        }
    }

    fn step(&mut self, now: Time, to: u16, puts: &mut dyn RemotePuts) -> Stepped {
        let mut stepped = Stepped::default();
        let peer = &mut self.peers[usize::from(to)];
        for _ in 0..PUTS_PER_TURN {
            if !peer.has_room(now, self.limits.to_one) {
                break;
            }
            let mut outgoing = peer.under_way.iter_mut();
            let Some(outgoing) = outgoing.find(|outgoing| outgoing.has_piece()) else {
                break;
            };
            let (offset, piece) = outgoing.piece(puts.longest_put());
            let address = self.layout.slot(self.own, outgoing.slot) + offset as u64;
            let posted = match self.asked.len() < self.limits.puts {
                true => puts.put(now, to, address, piece, false),
                false => Err(PutError::Full),
            };
            match posted {
                Ok(name) => {
                    let (bytes, serial) = (piece.len(), outgoing.serial);
                    outgoing.was_put(bytes);
                    peer.was_asked(now);
                    let asked = PendingPut::Piece { to, serial, offset };
                    let before = self.asked.insert(name, asked);
                    debug_assert!(before.is_none(), "put {name} has not ended");
                    stepped.put = true;
                }
                Err(PutError::Full) => {
                    stepped.full = true;
                    break;
                }
                Err(PutError::Impossible) => outgoing.lost = true,
            }
        }
        stepped
    }

    /// Rings the bells of complete datagrams in order, but skips those that take too long.
    fn ring(&mut self, now: Time, to: u16) {
        let mut at = 0;
        loop {
            let peer = &mut self.peers[usize::from(to)];
            let Some(outgoing) = peer.under_way.get(at) else {
                return;
            };
            let Outgoing {
                slot, bell, lost, ..
            } = *outgoing;
            if !outgoing.is_done() {
                if now < outgoing.began + QUIET_AFTER {
                    return;
                }
                at += 1;
                continue;
            }
            debug_assert!(
                peer.slots[slot] == Slot::Filling,
                "a datagram fills its slot until its bell rings"
            );
            peer.under_way.remove(at);
            if lost {
                peer.slots[slot] = Slot::Free;
                self.counters.datagrams_lost += 1;
            } else {
                peer.slots[slot] = Slot::Announced(bell, now);
                self.queue_word(to, slot, bell, false);
            }
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Stepped {
    put: bool,
    full: bool,
}

#[cfg(test)]
mod tests;

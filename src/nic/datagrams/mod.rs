//! Datagrams between network interfaces, by puts: what a network device of an operating system
//! carries.
//!
//! Each network interface keeps eight places in its memory for every other one. A source puts the
//! bytes of a datagram into a free place of its own at the target, and when all of them have been
//! answered, a word that describes them: the bell. The target takes the datagram out and puts the
//! same word back: the receipt, which frees the place. The word has a check of the bytes, so that
//! what a late put damages in a place that serves again is dropped, not delivered.
//!
//! Those to one target arrive in the order in which they were sent, as a rule. One that does not
//! arrive is counted and not repeated; a target that is silent is left alone for a while. Nobody
//! else waits for it.

mod layout;
mod peer;

use std::collections::{BTreeMap, VecDeque};

pub use layout::MOST_DATAGRAM_BYTES;
use layout::{Bell, LINE, Layout, line, word};
use peer::{Outgoing, Peer, Place};

use super::memory::Memory;
use super::puts::{PutEnd, PutError, RemotePuts};
use crate::kit::counters::counters;
use crate::time::{Duration, Time};

/// Datagrams to one target that wait for a place, and their bytes: so many short ones that a sender
/// of some megabits a second loses none while the target stands still for half a second, and sixteen
/// of the longest.
const MOST_WAITING: (usize, usize) = (256, 16 * MOST_DATAGRAM_BYTES);
/// Puts outstanding at the most, however many the network interface may have. Twice as many carried
/// no more (`docs/guide/src/results.md`), and others' puts waited behind them.
const MOST_PUTS: usize = 384;
/// Those to a target that has answered none for [`HUSH`].
const FEW_TO_ONE: usize = 32;
/// A target that answers nothing for so long may be dead, and a datagram that is under way for so
/// long is not waited for.
const HUSH: Duration = Duration::from_ms(20);
/// A target that has answered nothing for so long is left alone, however long puts take to time
/// out: that is a matter of the machine's settings, and up to a minute. A link that comes back or a
/// way round that is found in this time goes unnoticed.
const DEAF: Duration = Duration::from_ms(2_000);
/// Puts outstanding to one that has been left alone and has not answered since.
const PROBES: usize = 2;
/// Puts of one datagram before it is the turn of another target's.
const PUTS_PER_TURN: usize = 32;
/// Times that a damaged bell or receipt is repeated.
const ATTEMPTS: u8 = 8;
/// A receipt that has not come for so long does not come.
const PATIENCE: Duration = Duration::from_ms(5_000);
/// How long a target that did not answer is left alone: twice as long each time, up to the second.
const SILENCE: (Duration, Duration) = (Duration::from_ms(500), Duration::from_ms(8_000));

/// Why a datagram was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatagramError {
    /// As many as may be are on their way to that processor, or wait.
    #[error("as many datagrams as may be are on their way")]
    Full,
    /// The processor did not answer, and is left alone for a while.
    #[error("processor {0} does not answer")]
    Silent(u16),
    /// None, or more than [`MOST_DATAGRAM_BYTES`].
    #[error("{0} bytes: datagrams have 1 to {MOST_DATAGRAM_BYTES}")]
    Length(usize),
    /// Nobody has that number.
    #[error("there is no processor {0} in this network")]
    NoProcessor(u16),
}

/// The memories are too small for datagrams among so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{memory} bytes of memory: datagrams among {processors} processors need {needed}")]
pub struct NoRoom {
    /// Bytes that a network interface has.
    pub(crate) memory: u64,
    /// Bytes it would need, half of them for traffic runs.
    pub(crate) needed: u64,
    /// The processors.
    pub(crate) processors: u16,
}

counters! {
    /// Datagrams of one network interface.
    #[derive(Copy)]
    pub struct DatagramCounters {
        /// Datagrams taken from the sender.
        datagrams_sent,
        /// Datagrams whose target has taken them.
        datagrams_taken,
        /// Datagrams that were given up: their puts were lost, or no receipt came.
        datagrams_lost,
        /// Datagrams not taken from the sender: too many were on their way to their target.
        datagrams_full,
        /// Datagrams not taken from the sender: their target does not answer.
        datagrams_silent,
        /// Datagrams that arrived.
        datagrams_received,
        /// Datagrams that arrived otherwise than they were sent, and were dropped.
        datagrams_broken,
        /// Puts repeated because they came damaged.
        puts_repeated,
    }
}

/// A put under way.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Piece { to: u16, serial: u32, offset: usize },
    Word(Word),
}

/// A bell, or a receipt for one.
#[derive(Clone, Copy, Debug)]
struct Word {
    to: u16,
    place: usize,
    bell: Bell,
    is_receipt: bool,
    attempts: u8,
}

impl Word {
    /// Where `own` puts it.
    fn address(&self, layout: Layout, own: u16) -> u64 {
        let words = match self.is_receipt {
            true => layout.receipts(own),
            false => layout.bells(own),
        };
        words + word(self.place)
    }

    /// Whether the place still waits for it. What was put later must not be overwritten by what is
    /// repeated.
    fn counts(&self, peer: &Peer) -> bool {
        match self.is_receipt {
            true => peer.heard[self.place] == self.bell.0,
            false => {
                matches!(peer.places[self.place], Place::Told(bell, _) if bell == self.bell)
            }
        }
    }

    const fn is_of_the_place_of(&self, other: &Self) -> bool {
        self.to == other.to && self.place == other.place && self.is_receipt == other.is_receipt
    }
}

/// How many puts may be outstanding.
#[derive(Clone, Copy, Debug)]
struct Most {
    /// In all: three quarters of what the network interface may have, the rest is left to others.
    puts: usize,
    /// To one target: two thirds of them, so that who dies does not keep all until they time out.
    to_one: usize,
}

impl Most {
    fn of(outstanding: usize) -> Self {
        let puts = (outstanding - outstanding / 4).clamp(1, MOST_PUTS);
        let to_one = puts.div_ceil(3) * 2;
        Self { puts, to_one }
    }
}

/// The datagrams of one network interface.
///
/// Call order: [`hear`](Self::hear) when the network interface has advanced, then any number of
/// [`receive`](Self::receive) and [`send`](Self::send), then [`put`](Self::put).
#[derive(Debug)]
pub struct Datagrams {
    layout: Layout,
    most: Most,
    own: u16,
    peers: Vec<Peer>,
    /// Those with something under way, in their turn.
    busy: VecDeque<u16>,
    words: VecDeque<Word>,
    asked: BTreeMap<u64, Asked>,
    serial: u32,
    /// Bells that were heard: source, place.
    arrived: VecDeque<(u16, usize, Bell)>,
    puts_served: Option<u64>,
    counters: DatagramCounters,
}

impl Datagrams {
    /// Makes room in the memory for datagrams among processors 0 to `processors` - 1; all network
    /// interfaces of a network have to be told the same. `nonce` differs from every other
    /// incarnation's.
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
            most: Most::of(puts.most_outstanding()),
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

    /// What was counted.
    pub fn counters(&self) -> &DatagramCounters {
        &self.counters
    }

    /// Sends a datagram to processor `to`.
    ///
    /// # Errors
    /// [`DatagramError`]; it is not sent then.
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

    /// Takes the datagram that has arrived first, into `room`, which has [`MOST_DATAGRAM_BYTES`]:
    /// its length.
    ///
    /// # Panics
    /// If it has not.
    pub fn receive(&mut self, puts: &mut dyn RemotePuts, room: &mut [u8]) -> Option<usize> {
        while let Some((source, place, bell)) = self.arrived.pop_front() {
            self.tell(source, place, bell, true);
            let bytes = bell.length();
            let place = self.layout.place(source, place);
            if (1..=MOST_DATAGRAM_BYTES).contains(&bytes)
                && let data = &mut room[..bytes]
                && puts.own_memory().read(place, data).is_ok()
                && bell.describes(data)
            {
                self.counters.datagrams_received += 1;
                return Some(bytes);
            }
            self.counters.datagrams_broken += 1;
        }
        None
    }

    /// Has a bell or a receipt put, instead of an earlier one of the same place that is not out yet.
    fn tell(&mut self, to: u16, place: usize, bell: Bell, is_receipt: bool) {
        let word = Word {
            to,
            place,
            bell,
            is_receipt,
            attempts: 0,
        };
        match self.words.iter_mut().find(|w| w.is_of_the_place_of(&word)) {
            Some(earlier) => *earlier = word,
            None => self.words.push_back(word),
        }
    }

    /// Takes in what has become of puts, and what others have put here.
    pub fn hear(&mut self, now: Time, puts: &mut dyn RemotePuts) {
        while let Some((name, end)) = puts.put_ended() {
            self.ended(now, name, end);
        }
        let served = Some(puts.puts_served());
        if self.puts_served != served {
            self.puts_served = served;
            self.look(puts.own_memory());
        }
    }

    /// Puts what there is room for. Whether there was anything.
    pub fn put(&mut self, now: Time, puts: &mut dyn RemotePuts) -> bool {
        // A spare has no number before it takes another's place.
        let Some(own) = puts.number() else {
            return false;
        };
        self.own = own;
        self.put_words(now, puts) | self.put_pieces(now, puts) | self.put_words(now, puts)
    }

    /// When [`put`](Self::put) is due although nothing has happened.
    pub fn next_deadline(&self) -> Option<Time> {
        let busy = self.busy.iter().map(|&to| &self.peers[usize::from(to)]);
        busy.flat_map(|peer| [peer.deaf_at(), peer.gives_up_at()])
            .flatten()
            .min()
    }

    /// A put has ended.
    fn ended(&mut self, now: Time, name: u64, end: PutEnd) {
        match self.asked.remove(&name) {
            None => {}
            Some(Asked::Word(word))
                if end == PutEnd::Damaged
                    && word.attempts < ATTEMPTS
                    && word.counts(&self.peers[usize::from(word.to)]) =>
            {
                let attempts = word.attempts + 1;
                self.counters.puts_repeated += 1;
                self.words.push_back(Word { attempts, ..word });
            }
            Some(Asked::Word(_)) => {}
            Some(Asked::Piece { to, serial, offset }) => {
                let peer = &mut self.peers[usize::from(to)];
                let is_its = |outgoing: &&mut Outgoing| outgoing.serial == serial;
                let Some(outgoing) = peer.under_way.iter_mut().find(is_its) else {
                    if end != PutEnd::Lost {
                        peer.answers_late(now);
                    }
                    return;
                };
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
                    // Others are answered.
                    PutEnd::Lost if now < peer.answered + HUSH => outgoing.lost = true,
                    PutEnd::Lost => self.counters.datagrams_lost += peer.fall_silent(now),
                }
            }
        }
    }

    /// Looks for bells and receipts.
    fn look(&mut self, memory: &Memory) {
        for (number, peer) in (0..).zip(&mut self.peers) {
            if let Some(bells) = line(memory, self.layout.bells(number)) {
                let mut new: Vec<(usize, Bell)> = Vec::new();
                for (place, (heard, bell)) in peer.heard.iter_mut().zip(bells).enumerate() {
                    if *heard != bell {
                        *heard = bell;
                        new.push((place, Bell(bell)));
                    }
                }
                new.retain(|(_, bell)| bell.0 != 0);
                new.sort_by_key(|(_, bell)| bell.behind(peer.next));
                for (place, bell) in new {
                    peer.next = bell.behind(0).wrapping_add(1);
                    peer.answers();
                    self.arrived.push_back((number, place, bell));
                }
            }
            if !peer
                .places
                .iter()
                .any(|place| matches!(place, Place::Told(..)))
            {
                continue;
            }
            let Some(receipts) = line(memory, self.layout.receipts(number)) else {
                continue;
            };
            for (place, receipt) in peer.places.iter_mut().zip(receipts) {
                if matches!(place, Place::Told(bell, _) if bell.0 == receipt) {
                    *place = Place::Free;
                    self.counters.datagrams_taken += 1;
                    peer.silent_until = Time::ZERO;
                    peer.silence = SILENCE.0;
                }
            }
        }
    }

    /// Puts bells and receipts.
    fn put_words(&mut self, now: Time, puts: &mut dyn RemotePuts) -> bool {
        let mut any = false;
        while let Some(&word) = self.words.front() {
            let (address, bytes) = (
                word.address(self.layout, self.own),
                word.bell.0.to_le_bytes(),
            );
            match puts.put(now, word.to, address, &bytes, true) {
                Ok(name) => {
                    self.asked.insert(name, Asked::Word(word));
                    any = true;
                }
                Err(PutError::Full) => break,
                Err(PutError::Impossible) => {}
            }
            self.words.pop_front();
        }
        any
    }

    /// Puts bytes of datagrams, the targets in turn, and has bells rung for those that are there.
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
        if peer.deaf_at().is_some_and(|at| at <= now) {
            self.counters.datagrams_lost += peer.fall_silent(now);
        }
    }

    /// Gives places to datagrams that wait for one.
    fn begin_waiting(&mut self, now: Time, to: u16) {
        let peer = &mut self.peers[usize::from(to)];
        self.counters.datagrams_lost += peer.give_up(now);
        let is_free = |place: &Place| *place == Place::Free;
        while let Some(place) = peer.places.iter().position(is_free)
            && let Some(data) = peer.next_waiting()
        {
            self.serial = self.serial.wrapping_add(1);
            peer.begin(now, place, self.serial, data);
        }
    }

    /// Puts some bytes of the datagrams to one target.
    fn step(&mut self, now: Time, to: u16, puts: &mut dyn RemotePuts) -> Stepped {
        let mut stepped = Stepped::default();
        let peer = &mut self.peers[usize::from(to)];
        for _ in 0..PUTS_PER_TURN {
            if !peer.has_room(now, self.most.to_one) {
                break;
            }
            let mut outgoing = peer.under_way.iter_mut();
            let Some(outgoing) = outgoing.find(|outgoing| outgoing.has_piece()) else {
                break;
            };
            let (offset, piece) = outgoing.piece(puts.longest_put());
            let address = self.layout.place(self.own, outgoing.place) + offset as u64;
            let posted = match self.asked.len() < self.most.puts {
                true => puts.put(now, to, address, piece, false),
                false => Err(PutError::Full),
            };
            match posted {
                Ok(name) => {
                    let (bytes, serial) = (piece.len(), outgoing.serial);
                    outgoing.was_put(bytes);
                    peer.was_asked(now);
                    let asked = Asked::Piece { to, serial, offset };
                    self.asked.insert(name, asked);
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

    /// Has bells rung for datagrams that are in their places, in their order but for those that
    /// take too long.
    fn ring(&mut self, now: Time, to: u16) {
        let mut at = 0;
        loop {
            let peer = &mut self.peers[usize::from(to)];
            let Some(outgoing) = peer.under_way.get(at) else {
                return;
            };
            let Outgoing {
                place, bell, lost, ..
            } = *outgoing;
            if !outgoing.is_done() {
                if now < outgoing.began + HUSH {
                    return;
                }
                at += 1;
                continue;
            }
            peer.under_way.remove(at);
            if lost {
                peer.places[place] = Place::Free;
                self.counters.datagrams_lost += 1;
            } else {
                peer.places[place] = Place::Told(bell, now);
                self.tell(to, place, bell, false);
            }
        }
    }
}

/// What a step came to.
#[derive(Clone, Copy, Debug, Default)]
struct Stepped {
    put: bool,
    full: bool,
}

#[cfg(test)]
mod tests;

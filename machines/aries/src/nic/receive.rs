//! Posted receives, and the messages that fill them: the receive message table.
//!
//! XC white paper, "Remote Memory Access" and "Ordering and Completion": a block transfer may
//! *send* to a node without giving an address; the receive message table (RMT) matches it to a
//! receive that the target has posted. The pieces of a message arrive in any order.
//!
//! The first piece announces the message: its handle is [`ANNOUNCE`], its address is the length of
//! the message, and it has the first 64 bytes. A longer message is assigned a handle, which the
//! response returns. The other pieces carry that handle, and their offset in the message as
//! address. A piece that is marked as last but has no data means that the source gave up.

use std::collections::VecDeque;

use phitwire_framing::aries::flit::NodeId;
use phitwire_framing::aries::packet::{MAX_DATA, Status};

use super::amo_cache::CachedMemory;
use super::client_words::client_of;
use super::completion::{Failure, TargetEvent};
use super::domain::HANDLES;
use phitwire::nic::local::Client;
use phitwire::time::{Duration, Time};

pub(crate) const ANNOUNCE: u16 = HANDLES;
pub const MAX_RECEIVES: usize = 1024;
/// Maximum number of messages that arrive concurrently.
pub const MAX_ARRIVING: usize = 64;
const ARRIVING_BITS: u32 = MAX_ARRIVING.trailing_zeros();
/// Number of generations of a handle. Excludes [`ANNOUNCE`] and all ones.
const GENERATIONS: u16 = (1 << (12 - ARRIVING_BITS)) - 1;
/// Response bytes of an announcement that is not the complete message.
pub(crate) const HANDLE_BYTES: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receive {
    /// Local address for the message.
    pub local: u64,
    /// Size of the buffer in bytes.
    pub length: u64,
    /// Protection key that a message must have.
    pub key: u16,
    /// Value repeated in the event.
    pub user: u64,
}

/// A message of which some pieces have arrived.
#[derive(Clone, Copy, Debug)]
struct Arriving {
    source: NodeId,
    ssid: u16,
    receive: Receive,
    length: u64,
    arrived: u64,
    latest: Time,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'a> {
    pub source: NodeId,
    pub ssid: u16,
    pub handle: u16,
    pub key: u16,
    pub address: u64,
    pub last: bool,
    pub data: &'a [u8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub status: Status,
    pub handle: Option<u16>,
    /// The event of a receive that has ended.
    pub event: Option<TargetEvent>,
}

impl Taken {
    const fn refused(status: Status) -> Self {
        Self {
            status,
            handle: None,
            event: None,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Receives {
    posted: VecDeque<Receive>,
    arriving: [Option<Arriving>; MAX_ARRIVING],
    generations: [u16; MAX_ARRIVING],
    /// Time without a piece after which a message is given up.
    patience: Duration,
    /// When to check for such messages; `None` while no message is arriving.
    look_at: Option<Time>,
}

impl Receives {
    /// Creates an empty table. A message is given up after `patience` without a piece. `begin` is
    /// random, so that handles differ from those of a predecessor.
    pub(crate) fn new(patience: Duration, begin: u64) -> Self {
        Self {
            posted: VecDeque::new(),
            arriving: [None; MAX_ARRIVING],
            generations: [(begin % u64::from(GENERATIONS)) as u16; MAX_ARRIVING],
            patience,
            look_at: None,
        }
    }

    /// Posts a receive; returns false if there are too many.
    pub(crate) fn post(&mut self, receive: Receive) -> bool {
        let room = self.posted.len() < MAX_RECEIVES;
        if room {
            self.posted.push_back(receive);
        }
        room
    }

    /// Cancels a posted receive; returns whether there was one.
    pub(crate) fn take_back(&mut self, user: u64) -> bool {
        let index = self.posted.iter().position(|receive| receive.user == user);
        index.and_then(|index| self.posted.remove(index)).is_some()
    }

    /// Removes all receives of a client. If a message is arriving for one of them, its remaining
    /// pieces are rejected.
    pub(crate) fn forget(&mut self, client: Client) {
        let is_its = |receive: &Receive| client_of(receive.user) == Some(client);
        self.posted.retain(|receive| !is_its(receive));
        for slot in &mut self.arriving {
            slot.take_if(|arriving| is_its(&arriving.receive));
        }
    }

    pub(crate) fn waiting(&self) -> usize {
        self.posted.len()
    }

    pub(crate) fn take(
        &mut self,
        now: Time,
        piece: &Piece<'_>,
        memory: &mut CachedMemory,
    ) -> Taken {
        if piece.handle == ANNOUNCE {
            self.announced(now, piece, memory)
        } else {
            self.continued(now, piece, memory)
        }
    }

    fn announced(&mut self, now: Time, piece: &Piece<'_>, memory: &mut CachedMemory) -> Taken {
        let length = piece.address;
        let Some(index) = self.posted.iter().position(|r| r.key == piece.key) else {
            return Taken::refused(Status::NotReady);
        };
        let receive = self.posted[index];
        let first = length.min(MAX_DATA as u64);
        let whole = length == first;
        if length > receive.length || piece.data.len() as u64 != first || piece.last != whole {
            return Taken::refused(Status::OutOfBounds);
        }
        let slot = self.arriving.iter().position(Option::is_none);
        let Some(slot) = slot.or(whole.then_some(0)) else {
            return Taken::refused(Status::Busy);
        };
        if memory.write(receive.local, piece.data).is_err() {
            return Taken::refused(Status::OutOfBounds);
        }
        self.posted.remove(index);
        let arriving = Arriving {
            source: piece.source,
            ssid: piece.ssid,
            receive,
            length,
            arrived: first,
            latest: now,
        };
        if whole {
            return Taken {
                status: Status::Done,
                handle: None,
                event: Some(arriving.event(None)),
            };
        }
        self.arriving[slot] = Some(arriving);
        self.look_at = self.look_at.or(Some(now + self.patience));
        self.generations[slot] = (self.generations[slot] + 1) % GENERATIONS;
        Taken {
            status: Status::Done,
            handle: Some(self.generations[slot] << ARRIVING_BITS | slot as u16),
            event: None,
        }
    }

    fn continued(&mut self, now: Time, piece: &Piece<'_>, memory: &mut CachedMemory) -> Taken {
        let slot = usize::from(piece.handle) % MAX_ARRIVING;
        let generation = piece.handle >> ARRIVING_BITS;
        let Some(arriving) = &mut self.arriving[slot] else {
            return Taken::refused(Status::BadMdh);
        };
        let theirs = (piece.source, piece.ssid) == (arriving.source, arriving.ssid);
        if !theirs || generation != self.generations[slot] {
            return Taken::refused(Status::BadMdh);
        }
        if piece.key != arriving.receive.key {
            return Taken::refused(Status::BadKey);
        }
        let done = |event| Taken {
            status: Status::Done,
            handle: None,
            event,
        };
        if piece.last {
            let event = arriving.event(Some(Failure::Aborted));
            self.arriving[slot] = None;
            return done(Some(event));
        }
        let bytes = piece.data.len() as u64;
        let end = piece.address.saturating_add(bytes);
        let address = arriving.receive.local.saturating_add(piece.address);
        if end > arriving.length || memory.write(address, piece.data).is_err() {
            return Taken::refused(Status::OutOfBounds);
        }
        arriving.arrived += bytes;
        arriving.latest = now;
        if arriving.arrived < arriving.length {
            return done(None);
        }
        let event = arriving.event(None);
        self.arriving[slot] = None;
        done(Some(event))
    }

    /// Gives up the next message for which no piece arrived in time.
    pub(crate) fn expire(&mut self, now: Time) -> Option<TargetEvent> {
        if self.look_at? > now {
            return None;
        }
        let patience = self.patience;
        let overdue = |a: &mut Arriving| a.latest + patience <= now;
        if let Some(late) = self
            .arriving
            .iter_mut()
            .find_map(|slot| slot.take_if(overdue))
        {
            return Some(late.event(Some(Failure::TimedOut)));
        }
        let oldest = self.arriving.iter().flatten().map(|a| a.latest).min();
        self.look_at = oldest.map(|latest| latest + patience);
        None
    }

    pub(crate) fn next_deadline(&self) -> Option<Time> {
        self.look_at
    }
}

impl Arriving {
    fn event(&self, failure: Option<Failure>) -> TargetEvent {
        TargetEvent::Received {
            user: self.receive.user,
            source: self.source,
            bytes: self.arrived,
            failure,
        }
    }
}

//! The state that a NIC keeps for a peer, and the datagrams in flight to it.

use std::collections::VecDeque;

use super::layout::{Bell, LINE, SLOTS};
use super::{
    ATTEMPTS, FEW_TO_ONE, MOST_WAITING, PATIENCE, PROBES, QUIET_AFTER, SILENCE, SUSPEND_AFTER,
};
use crate::rng::Rng;
use crate::time::{Duration, Time};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    Free,
    Filling,
    /// The bell was rung at this time.
    Announced(Bell, Time),
}

/// A datagram being put into its slot.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) slot: usize,
    pub(super) serial: u32,
    pub(super) began: Time,
    pub(super) bell: Bell,
    pub(super) data: Vec<u8>,
    /// Bytes put for the first time so far.
    pub(super) next: usize,
    /// Offsets of the pieces to resend.
    pub(super) again: Vec<usize>,
    /// Number of resends so far.
    pub(super) attempts: u16,
    pub(super) outstanding: usize,
    pub(super) lost: bool,
}

impl Outgoing {
    pub(super) fn has_piece(&self) -> bool {
        !self.lost && (self.next < self.data.len() || !self.again.is_empty())
    }

    /// The next bytes to put, at most `longest`, and their offset.
    pub(super) fn piece(&self, longest: usize) -> (usize, &[u8]) {
        let offset = self.again.last().copied().unwrap_or(self.next);
        let rest = &self.data[offset..];
        (offset, &rest[..rest.len().min(longest)])
    }

    /// Records that a piece of `bytes` bytes was put.
    pub(super) fn was_put(&mut self, bytes: usize) {
        self.outstanding += 1;
        if self.again.pop().is_none() {
            self.next += bytes;
            debug_assert!(self.next <= self.data.len(), "pieces end with the datagram");
        }
    }

    /// Whether another resend is allowed. The limit grows with the datagram's 64-byte lines.
    pub(super) fn may_repeat(&self) -> bool {
        usize::from(self.attempts) < usize::from(ATTEMPTS) + self.data.len() / LINE
    }

    pub(super) fn is_done(&self) -> bool {
        self.outstanding == 0 && !self.has_piece()
    }
}

#[derive(Debug)]
pub(super) struct Peer {
    pub(super) number: u16,
    pub(super) slots: [Slot; SLOTS],
    /// Outstanding puts to the peer.
    pub(super) outstanding: usize,
    /// When the first of the outstanding puts was posted.
    pub(super) asked: Time,
    /// When the peer last responded to a put.
    pub(super) answered: Time,
    /// Whether the peer is in the queue of busy peers.
    pub(super) busy: bool,
    pub(super) under_way: VecDeque<Outgoing>,
    waiting: VecDeque<Vec<u8>>,
    waiting_bytes: usize,
    pub(super) silent_until: Time,
    pub(super) silence: Duration,
    pub(super) heard: [u64; SLOTS],
    /// Number of the bell expected next.
    pub(super) next: u16,
}

impl Peer {
    pub(super) fn new(nonce: u64) -> Self {
        Self {
            number: Rng::new(nonce, 0).next_u64() as u16,
            slots: [Slot::Free; SLOTS],
            outstanding: 0,
            asked: Time::ZERO,
            answered: Time::ZERO,
            busy: false,
            under_way: VecDeque::new(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            silent_until: Time::ZERO,
            silence: SILENCE.0,
            heard: [0; SLOTS],
            next: 0,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.under_way.is_empty() && self.waiting.is_empty()
    }

    /// Whether another datagram of `bytes` bytes may wait.
    pub(super) fn may_wait(&self, bytes: usize) -> bool {
        let (datagrams, most_bytes) = MOST_WAITING;
        self.waiting.len() < datagrams && self.waiting_bytes + bytes <= most_bytes
    }

    pub(super) fn waits(&mut self, data: Vec<u8>) {
        debug_assert!(self.may_wait(data.len()), "the sender checked for room");
        self.waiting_bytes += data.len();
        self.waiting.push_back(data);
    }

    pub(super) fn next_waiting(&mut self) -> Option<Vec<u8>> {
        let data = self.waiting.pop_front()?;
        self.waiting_bytes -= data.len();
        debug_assert!(
            !self.waiting.is_empty() || self.waiting_bytes == 0,
            "the bytes are those of waiting datagrams"
        );
        Some(data)
    }

    /// Whether another put may go to this target, up to the limit `most`.
    pub(super) fn has_room(&self, now: Time, most: usize) -> bool {
        let is_quiet = self.answered + QUIET_AFTER < now;
        let was_silent = self.silence > SILENCE.0;
        self.outstanding
            < match (is_quiet, was_silent) {
                (false, _) => most,
                (true, false) => FEW_TO_ONE.min(most),
                (true, true) => PROBES,
            }
    }

    /// When the peer is suspended unless it responds.
    pub(super) fn suspends_at(&self) -> Option<Time> {
        (self.outstanding > 0).then(|| self.asked.max(self.answered) + SUSPEND_AFTER)
    }

    /// When the next overdue receipt frees its slot for a waiting datagram.
    pub(super) fn gives_up_at(&self) -> Option<Time> {
        let due = self.slots.iter().filter_map(|slot| match slot {
            Slot::Announced(_, since) => Some(*since + PATIENCE),
            Slot::Free | Slot::Filling => None,
        });
        due.min().filter(|_| !self.waiting.is_empty())
    }

    pub(super) fn was_asked(&mut self, now: Time) {
        if self.outstanding == 0 {
            self.asked = now;
        }
        self.outstanding += 1;
    }

    /// Records the response to a put of a datagram that was given up: the target is slow, not dead.
    pub(super) fn answers_late(&mut self, now: Time) {
        self.answered = now;
        self.silent_until = Time::ZERO;
    }

    pub(super) fn answers(&mut self) {
        self.silent_until = Time::ZERO;
        self.silence = SILENCE.0;
    }

    /// Suspends the peer and gives up its datagrams, in flight and waiting. Returns their number.
    /// The slots are reused at once, because puts may take long to time out; the check of each
    /// datagram detects damage by a late put.
    pub(super) fn fall_silent(&mut self, now: Time) -> u64 {
        if self.silent_until <= now {
            self.silent_until = now + self.silence;
            self.silence = SILENCE.1.min(self.silence.times(2));
        }
        let lost = self.waiting.len() + self.under_way.len();
        self.waiting.clear();
        self.waiting_bytes = 0;
        for outgoing in self.under_way.drain(..) {
            self.slots[outgoing.slot] = Slot::Free;
        }
        self.outstanding = 0;
        lost as u64
    }

    /// Frees the slots whose receipt is overdue, and returns their number.
    pub(super) fn give_up(&mut self, now: Time) -> u64 {
        let mut lost = 0;
        for slot in &mut self.slots {
            if matches!(slot, Slot::Announced(_, since) if *since + PATIENCE <= now) {
                *slot = Slot::Free;
                lost += 1;
            }
        }
        lost
    }

    pub(super) fn begin(&mut self, now: Time, slot: usize, serial: u32, data: Vec<u8>) {
        debug_assert!(self.slots[slot] == Slot::Free, "a slot holds one datagram");
        self.slots[slot] = Slot::Filling;
        self.under_way.push_back(Outgoing {
            slot,
            serial,
            began: now,
            bell: Bell::new(self.number, &data),
            data,
            next: 0,
            again: Vec::new(),
            attempts: 0,
            outstanding: 0,
            lost: false,
        });
        self.number = self.number.wrapping_add(1);
    }
}

//! One end of a link with a core behind it, and the checker of its deliveries.

use std::collections::VecDeque;

use super::rig::Link;
use crate::link::{LinkEvent, NodeLink};
use crate::time::Time;

/// Rate at which the core behind an input buffer takes words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drain {
    Eager,
    /// At most this many words of each channel per step.
    Slow(u32),
    Blocked,
}

/// One end with its core: packets to send, packets received.
pub struct End<L: Link> {
    pub lcb: L::Lcb,
    pub backlog: VecDeque<(usize, Vec<L::Word>)>,
    /// Words of the packet being pushed.
    pub pushing: VecDeque<L::Word>,
    /// Maximum number of words pushed per step.
    pub push_words: usize,
    /// Push packets word by word even without a limit.
    pub word_by_word: bool,
    pub drain: Drain,
    pub partial: Vec<Vec<L::Word>>,
    pub next_id: Vec<u32>,
    pub got_id: Vec<u32>,
    pub poisoned: u64,
    pub soft_errors: u64,
    pub cut: u64,
    pub events: Vec<LinkEvent>,
    pub frame_bytes: usize,
    /// Number of this end's process, counting restarts.
    pub number: u32,
    /// Ids may be missing: a session was lost.
    pub gaps_allowed: bool,
}

impl<L: Link> End<L> {
    pub fn new(config: L::Config, now: Time, frame_bytes: usize) -> Self {
        let lcb = L::Lcb::new(config, now);
        Self {
            lcb,
            backlog: VecDeque::new(),
            pushing: VecDeque::new(),
            push_words: usize::MAX,
            word_by_word: false,
            drain: Drain::Eager,
            partial: vec![Vec::new(); L::VCS],
            next_id: vec![0; L::VCS],
            got_id: vec![0; L::VCS],
            poisoned: 0,
            soft_errors: 0,
            cut: 0,
            events: Vec::new(),
            frame_bytes,
            number: 0,
            gaps_allowed: false,
        }
    }

    /// This end as a new process: its packet ids are higher, and received ids may have gaps.
    pub fn incarnation(mut self, number: u32) -> Self {
        assert!(number < L::PROCESSES, "packet ids have no more bits");
        self.number = number;
        self.next_id.fill(number << L::ID_BITS);
        self.gaps_allowed = true;
        self
    }

    /// Queues the next packet on `vc` for sending.
    pub fn send(&mut self, vc: usize, words: usize) {
        let id = self.next_id[vc];
        self.next_id[vc] += 1;
        self.backlog.push_back((vc, L::packet(vc, id, words)));
    }

    pub fn push(&mut self) {
        let mut left = self.push_words;
        while left > 0 {
            if let Some(word) = self.pushing.pop_front() {
                L::push(&mut self.lcb, word);
                left -= 1;
                continue;
            }
            // Take the oldest packet of any channel: channels do not block each other.
            let mut seen = 0_u8;
            let ready = self.backlog.iter().position(|(vc, words)| {
                let first = seen & (1 << vc) == 0;
                seen |= 1 << vc;
                first && L::can_begin(&self.lcb, *vc, words.len())
            });
            let Some(index) = ready else { return };
            let (vc, words) = self.backlog.remove(index).expect("the packet is queued");
            let mut before = self.backlog.iter().take(index);
            assert!(
                !before.any(|(other, _)| *other == vc),
                "order within a channel"
            );
            if self.push_words == usize::MAX && !self.word_by_word {
                L::push_packet(&mut self.lcb, &words);
            } else {
                self.pushing = words.into();
            }
        }
    }

    pub fn take(&mut self) {
        for vc in 0..L::VCS {
            let most = match self.drain {
                Drain::Eager => u32::MAX,
                Drain::Slow(words) => words,
                Drain::Blocked => 0,
            };
            for _ in 0..most.min(L::len(self.lcb.input(), vc)) {
                self.pop(vc);
            }
        }
        self.give_back();
    }

    pub fn give_back(&mut self) {
        self.lcb.give_back();
    }

    pub fn pop(&mut self, vc: usize) {
        let word = L::pop(self.lcb.input_mut(), vc);
        self.partial[vc].push(word);
        if L::is_whole(&self.partial[vc]) {
            let packet = core::mem::take(&mut self.partial[vc]);
            L::check(self, vc, &packet);
        }
    }

    /// Drains the input unchecked and returns the credits.
    pub fn drain_unchecked(&mut self) {
        for vc in 0..L::VCS {
            while L::len(self.lcb.input(), vc) > 0 {
                L::pop(self.lcb.input_mut(), vc);
            }
        }
        self.give_back();
    }

    /// Packet `id` arrived on `vc`: checks that each arrives once and in order.
    pub fn arrived(&mut self, vc: usize, id: u32) {
        let expected = &mut self.got_id[vc];
        if self.gaps_allowed {
            assert!(id >= *expected, "packet {id} again, expected {expected}");
        } else {
            assert_eq!(
                id, *expected,
                "each packet arrives once and in order on {vc}"
            );
        }
        *expected = id + 1;
    }
}

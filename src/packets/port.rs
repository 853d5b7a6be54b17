//! A port of a NIC: a link, and the transfers that wait for it.

use std::collections::VecDeque;

use super::transfer::{Kind, Transfer};
use super::transfer_end::{Arrival, ConfigOf, TransferEnd};
use crate::link::NodeLink as _;
use crate::time::Time;

#[derive(Debug)]
pub(super) struct Port<E: TransferEnd> {
    pub(super) link: E::Link,
    end: E,
    requests: VecDeque<Transfer>,
    pub(super) answers: VecDeque<Transfer>,
}

impl<E: TransferEnd> Port<E> {
    pub(super) fn new(link: ConfigOf<E>, now: Time) -> Self {
        Self {
            link: E::Link::new(link, now),
            end: E::default(),
            requests: VecDeque::with_capacity(E::REQUEST_QUEUE),
            answers: VecDeque::new(),
        }
    }

    /// Number of requests and replies that wait for the link.
    pub(super) fn waiting(&self) -> [u64; 2] {
        [self.requests.len() as u64, self.answers.len() as u64]
    }

    /// Whether a request can leave now. Replies go first where they share a channel.
    #[inline]
    pub(super) fn request_can_go(&self, kind: Kind, len: u8) -> bool {
        let is_first = E::REQUESTS.is_some() || self.answers.is_empty();
        is_first && self.requests.is_empty() && E::has_room(&self.link, kind, len)
    }

    /// Whether a request can leave or wait.
    #[inline]
    pub(super) fn request_has_room(&self, kind: Kind, len: u8) -> bool {
        self.requests.len() < E::REQUEST_QUEUE || self.request_can_go(kind, len)
    }

    /// Sends or queues a request for which there is room.
    #[inline]
    pub(super) fn ask(&mut self, asked: &Transfer) {
        if self.request_can_go(asked.kind, asked.len) {
            E::send(&mut self.link, asked);
        } else {
            assert!(
                self.requests.len() < E::REQUEST_QUEUE,
                "the caller checked for room"
            );
            self.requests.push_back(*asked);
        }
    }

    /// Sends or queues a reply.
    #[inline]
    pub(super) fn answer(&mut self, answer: &Transfer) {
        if self.answers.is_empty() && E::has_room(&self.link, answer.kind, answer.len) {
            E::send(&mut self.link, answer);
        } else {
            self.answers.push_back(*answer);
        }
    }

    /// Sends waiting transfers as long as there is room: replies, then requests. Drops requests
    /// that no longer wait for a reply according to `waits`, and returns their number.
    #[inline]
    pub(super) fn flush(&mut self, waits: impl Fn(u64) -> bool) -> u64 {
        while let Some(answer) = self.answers.front()
            && E::has_room(&self.link, answer.kind, answer.len)
        {
            E::send(&mut self.link, answer);
            self.answers.pop_front();
        }
        let mut unsent = 0;
        while let Some(asked) = self.requests.front() {
            if !waits(asked.name) {
                unsent += 1;
            } else if E::has_room(&self.link, asked.kind, asked.len) {
                E::send(&mut self.link, asked);
            } else {
                break;
            }
            self.requests.pop_front();
        }
        unsent
    }

    /// See [`TransferEnd::front`].
    #[inline]
    pub(super) fn front(&mut self, channel: usize, counters: &mut E::Counters) -> Option<Arrival> {
        self.end.front(&mut self.link, channel, counters)
    }

    /// See [`TransferEnd::pop`].
    #[inline]
    pub(super) fn pop(&mut self, channel: usize) {
        self.end.pop(&mut self.link, channel);
    }
}

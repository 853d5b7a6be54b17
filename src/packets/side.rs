//! The requesting side of a NIC: its link, requests that wait for their replies, and replies that
//! wait for the link.

use std::collections::VecDeque;

use super::counters::TransferNicCounters;
use super::names::Names;
use super::nic::TransferNicConfig;
use super::responder::Responder;
use super::transfer::{Kind, Transfer};
use super::transfer_end::TransferEnd;
use crate::device::PipelineReport;
use crate::device::pipeline::Stage;
use crate::link::LinkView;
use crate::nic::checker::ANNOUNCE_ADDRESS;
use crate::nic::periods::Periods;
use crate::nic::slab::{Entry, Slab};
use crate::nic::{Issuer, Message, RunRequest};
use crate::time::{Duration, Time};

/// The requester, which gets the reply.
#[derive(Clone, Copy, Debug)]
pub(super) enum Asker {
    User,
    Program,
    Probe,
    Run(RunRequest),
}

/// A request that waits for its reply.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(crate) posted: Time,
    pub(crate) asker: Asker,
    pub(crate) kind: Kind,
    pub(crate) address: u64,
    /// Bytes that its reply carries on success.
    pub(crate) answer_bytes: u8,
}

impl Entry for Pending {
    #[inline]
    fn posted(&self) -> Time {
        self.posted
    }
}

impl Pending {
    /// Whether the request announces or queries a run.
    pub(super) const fn is_announcement(&self) -> bool {
        matches!(self.asker, Asker::Run(asked) if !matches!(asked, RunRequest::Message(_)))
    }
}

/// A NIC without its users.
#[derive(Debug)]
pub(super) struct Side<E: TransferEnd> {
    pub(crate) counters: TransferNicCounters,
    pub(crate) config: TransferNicConfig<()>,
    pub(crate) now: Time,
    pub(crate) link: E,
    names: Names,
    pub(crate) pending: Slab<Pending>,
    pub(crate) answers: VecDeque<Transfer>,
    pub(crate) responder: Responder,
    /// Whether requests of the current run keep their order.
    pub(crate) ordered: bool,
}

impl<E: TransferEnd> Side<E> {
    /// The queues and their fill levels.
    pub(super) fn pipeline(&self) -> PipelineReport {
        let end: &dyn LinkView = &self.link;
        let unit = end.account().units.credits;
        PipelineReport {
            stages: vec![
                Stage::inside("outstanding requests", "requests", "NIC")
                    .single("without response", self.pending.used().into())
                    .capacity([self.config.outstanding.into()]),
                Stage::inside("waiting for the link", "packets", "NIC")
                    .single("responses", self.answers.len() as u64)
                    .capacity([self.config.answers as u64]),
                Stage::of_links([(0, end)].into_iter()),
                Stage::outside("input buffer", unit, "port").of_inputs([(0, &self.link)]),
            ],
        }
    }

    pub(super) fn new(config: TransferNicConfig<E::Config>, now: Time) -> Self {
        let (link, config) = config.split();
        let idle = Pending {
            posted: now,
            asker: Asker::User,
            kind: Kind::Put,
            address: 0,
            answer_bytes: 0,
        };
        let names = Names::new(E::NAME_BITS, config.outstanding);
        let longer = names.longer_periods();
        let periods = Periods::new(config.incarnation, now, config.timeout, longer);
        let can = (E::ABILITIES, E::MESSAGES);
        Self {
            counters: TransferNicCounters::default(),
            now,
            link: E::new(link, now),
            names,
            pending: Slab::new(config.outstanding, idle, periods),
            answers: VecDeque::new(),
            responder: Responder::new(config.number, can, config.memory_bytes),
            ordered: false,
            config,
        }
    }

    /// Advances the time.
    #[inline]
    pub(super) fn see(&mut self, now: Time) {
        self.now = now;
        self.pending.advance(now);
    }

    /// Serves a request; its reply waits for the link.
    #[inline]
    pub(super) fn serve(&mut self, asked: &Transfer) {
        debug_assert!(!self.is_full(), "the queue of replies has room");
        let answer = self.responder.serve(asked, &mut self.counters);
        self.answers.push_back(answer);
    }

    /// Rejects a request that arrived damaged.
    #[cold]
    pub(super) fn spoiled(&mut self, asked: &Transfer) {
        self.counters.damaged_requests += 1;
        self.answers.push_back(asked.answer(Kind::Damaged));
    }

    /// Whether the queue of replies is full.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.answers.len() >= self.config.answers
    }

    /// Sends as many replies as the link has room for.
    #[inline]
    pub(super) fn answer(&mut self) {
        while let Some(answer) = self.answers.front()
            && self.link.has_room(answer.kind, answer.len)
        {
            self.link.send(answer);
            self.answers.pop_front();
        }
    }

    /// Whether a request of this kind can leave now. Replies go first where they share a channel.
    #[inline]
    pub(super) fn has_room(&self, kind: Kind, len: u8) -> bool {
        self.answers.is_empty() && self.link.has_room(kind, len)
    }

    /// Sends a request for which there is room. Returns its name, or `None` if none is free.
    #[inline]
    pub(super) fn ask(&mut self, mut asked: Transfer, asker: Asker) -> Option<u64> {
        let Transfer {
            kind, address, len, ..
        } = asked;
        debug_assert!(self.has_room(kind, len), "the caller checked for room");
        let (slot, period) = self.pending.begin(Pending {
            posted: self.now,
            asker,
            kind,
            address,
            answer_bytes: kind.answer_bytes(len),
        })?;
        asked.from = self.config.number;
        asked.name = self.names.name(slot, period);
        debug_assert_eq!(
            self.names.slot(asked.name),
            slot,
            "the reply finds its request"
        );
        self.link.send(&asked);
        Some(asked.name)
    }

    /// Removes and returns the request that the reply `answer` ends. A reply whose name matches no
    /// request is late.
    #[inline]
    pub(super) fn ended(&mut self, answer: &Transfer, is_whole: bool) -> Option<Pending> {
        let slot = self.names.slot(answer.name);
        let pending = &mut self.pending;
        let is_its = |period| self.names.name(slot, period) == answer.name;
        let is_recent = pending.period(slot).is_some_and(is_its);
        let Some(&request) = pending.get(slot).filter(|_| is_recent) else {
            self.counters.late_responses += 1;
            if is_recent {
                pending.release(slot);
            }
            return None;
        };
        if is_whole && answer.kind == Kind::Done && answer.len != request.answer_bytes {
            self.counters.mismatched_responses += 1;
            return None;
        }
        pending.finish(slot);
        Some(request)
    }

    /// See [`Node::stood_still`](crate::node::Node::stood_still).
    pub(super) fn stood_still(&mut self, now: Time, span: Duration) {
        self.link.stood_still(now, span);
        self.pending.stood_still(now, span, self.config.timeout);
    }

    /// The next request that timed out.
    pub(super) fn expire(&mut self) -> Option<(u64, Pending)> {
        let (at, oldest) = self.pending.times_out(self.config.timeout)?;
        if at > self.now {
            return None;
        }
        let (slot, request) = self.pending.expire(oldest)?;
        let period = self
            .pending
            .period(slot)
            .expect("the expired request was waiting in this slot");
        Some((self.names.name(slot, period), request))
    }
}

impl<E: TransferEnd> Issuer for Side<E> {
    #[inline]
    fn can_go(&self, _: u64) -> bool {
        self.has_room(Kind::Get, 0)
    }

    fn has_other_ways(&self) -> bool {
        false
    }

    #[inline]
    fn issue(&mut self, dest: u16, request: RunRequest, message: &Message<'_>) -> bool {
        let (kind, address, len, data) = match *message {
            Message::Announce(data) => (Kind::Put, ANNOUNCE_ADDRESS, data.len() as u8, &data[..]),
            Message::Put { address, data } => (Kind::Put, address, data.len() as u8, data),
            Message::Get { address, len } => (Kind::Get, address, len, &[][..]),
            Message::Add { address } => (Kind::Increment, address, 0, &[][..]),
            Message::Block(_) => unreachable!("this machine sends no blocks"),
        };
        if !self.has_room(kind, len) {
            return false;
        }
        let mut asked = Transfer::new(dest, kind, address);
        asked.data[..data.len()].copy_from_slice(data);
        asked.len = len;
        asked.ordered = self.ordered;
        self.ask(asked, Asker::Run(request)).is_some()
    }
}

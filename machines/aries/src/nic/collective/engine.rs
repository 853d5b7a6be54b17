//! A virtual collective engine: executes the operations of one reduction tree, one after the other.
//!
//! Operations are numbered from 0 in the order in which they are joined. The engine collects the
//! contributions of its own node and of each child, combines them and sends the partial result to
//! its parent. The parent's result ends the operation here, and is sent to the children. The root
//! waits for no parent.
//!
//! A request that timed out may have been carried out, so every message is repeated until it is
//! acknowledged, and its receiver recognises repetitions by their number. A contribution counts
//! only for the operation that is being collected, and only if that child has not contributed yet;
//! a result counts only for the operation that waits for it. No participant can be ahead by more
//! than one operation, since it joins the next operation after the result of this one.
//!
//! Contributions are combined in a fixed order, first the node's own, then the children's by index,
//! whatever the order of arrival, so that sums of floating point numbers depend only on the tree.

use std::collections::VecDeque;

use phitwire_framing::aries::flit::NodeId;
use phitwire_framing::aries::packet::{Response, Status};

use super::super::completion::Failure;
use super::super::counters::AriesNicCounters;
use super::message::{CollectiveFailure, Kind, Message};
use super::outbox::Outbox;
use super::tree::Neighbours;
use phitwire::nic::{Collective, Operand};
use phitwire::time::{Duration, Time};

/// The user that joined the operation and gets the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Joiner {
    /// A user, with the value that the completion repeats.
    User(u64),
    Driver,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// Respond at once with this status.
    Answered(Status),
    /// A new contribution or result of this neighbour was accepted: the status is "done".
    News(usize),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Joined {
    pub joiner: Joiner,
    pub collective: Collective,
    pub operand: Operand,
    pub mark: bool,
    /// Local address for the result.
    pub into: Option<u64>,
    pub at: Time,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub joined: Joined,
    pub engine: u8,
    pub sequence: u32,
    pub outcome: Result<Operand, CollectiveFailure>,
    pub mark: bool,
}

/// A "done" that a neighbour waits for. The next message to the neighbour carries it, or else a
/// response.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owed {
    pub answer: Response,
    /// When a response must carry it at the latest.
    pub due: Time,
}

/// Collects the effects of engines.
#[derive(Debug)]
pub(super) struct Sink {
    pub now: Time,
    /// Time that an engine takes for a step.
    pub step: Duration,
    pub ended: VecDeque<Ended>,
    pub counters: AriesNicCounters,
}

impl Default for Sink {
    fn default() -> Self {
        Self {
            now: Time::ZERO,
            step: Duration::ZERO,
            ended: VecDeque::new(),
            counters: AriesNicCounters::default(),
        }
    }
}

impl Sink {
    pub(super) fn at(&mut self, now: Time) -> &mut Self {
        self.now = now;
        self
    }
}

#[derive(Debug)]
pub(super) struct Engine {
    index: u8,
    pub tree: Neighbours,
    /// Number of the operation that is being collected or waits for its result.
    sequence: u32,
    joined: Option<Joined>,
    /// Contributions to the operation, by child.
    shares: Box<[Option<Message>]>,
    /// Whether the partial result was sent to the parent.
    handed_up: bool,
    /// The failure of the tree, if it has failed.
    broken: Option<CollectiveFailure>,
    outboxes: Box<[Option<Outbox>]>,
    /// Outboxes with an unsent message, one bit each.
    due: u64,
    /// Delayed response to the last message, by neighbour.
    owed: Box<[Option<Owed>]>,
    /// Canary: completes operations although this many children are missing.
    #[cfg(test)]
    pub hasty: usize,
}

impl Engine {
    pub(super) fn new(index: u8, tree: Neighbours) -> Self {
        Self {
            index,
            sequence: 0,
            joined: None,
            shares: vec![None; tree.children()].into(),
            handed_up: false,
            broken: None,
            outboxes: vec![None; tree.len()].into(),
            due: 0,
            owed: vec![None; tree.len()].into(),
            #[cfg(test)]
            hasty: 0,
            tree,
        }
    }

    /// Whether the engine can be removed without loss: no operation is joined, and all results are
    /// delivered. That holds for every failed engine.
    pub(super) fn is_idle(&self) -> bool {
        self.broken.is_some() || self.has_delivered_all()
    }

    /// Whether no operation is joined and no neighbour still needs a result or a failure.
    pub(super) fn has_delivered_all(&self) -> bool {
        self.joined.is_none() && self.outboxes.iter().all(Option::is_none)
    }

    pub(super) fn broken(&self) -> Option<CollectiveFailure> {
        self.broken
    }

    pub(super) fn is_joined(&self) -> bool {
        self.joined.is_some()
    }

    /// Joins the next operation. None may be pending, and the tree must not have failed.
    pub(super) fn join(&mut self, joined: Joined, sink: &mut Sink) -> u32 {
        debug_assert!(self.joined.is_none() && self.broken.is_none());
        let sequence = self.sequence;
        self.joined = Some(joined);
        self.progress(sink);
        sequence
    }

    /// Handles a message from another node. The response to a new contribution or result may be
    /// delayed: see [`owe`](Self::owe).
    pub(super) fn handle(&mut self, source: NodeId, message: &Message, sink: &mut Sink) -> Taken {
        let parent = self.tree.parent();
        let from = match (self.tree.index_of(source), message.kind) {
            (Some(from), Kind::Contribution) if Some(from) != parent => from,
            (Some(from), Kind::Result) if Some(from) == parent => from,
            (Some(from), Kind::Abort) => from,
            _ => {
                sink.counters.collective_strangers += 1;
                return Taken::Answered(Status::Unsupported);
            }
        };
        if let (Kind::Abort, Err(failure)) = (message.kind, message.outcome) {
            self.break_off(failure, Some(from), sink);
            return Taken::Answered(Status::Done);
        }
        if let Some(failure) = self.broken {
            // Repeat the failure: `from` has not received it, or its acknowledgement was lost.
            self.queue_abort(from, failure, sink.now);
            return Taken::Answered(Status::Done);
        }
        let ahead = message.sequence.wrapping_sub(self.sequence).cast_signed();
        match message.kind {
            _ if ahead < 0 => {
                sink.counters.collective_duplicates += 1;
                Taken::Answered(Status::Done)
            }
            // The sender is further ahead than possible; `Busy` makes it resend.
            _ if ahead > 0 => Taken::Answered(Status::Busy),
            Kind::Contribution => self.contribute(from, *message, sink),
            _ if self.handed_up => {
                sink.counters.collective_results += 1;
                self.finish(message, sink);
                Taken::News(from)
            }
            // Reject a result for which no partial result was sent to the parent.
            _ => {
                sink.counters.collective_strangers += 1;
                Taken::Answered(Status::Unsupported)
            }
        }
    }

    fn contribute(&mut self, child: usize, share: Message, sink: &mut Sink) -> Taken {
        if self.shares[child].is_some() {
            sink.counters.collective_duplicates += 1;
            return Taken::Answered(Status::Done);
        }
        sink.counters.collective_contributions += 1;
        self.shares[child] = Some(share);
        // A contributor to this operation has the previous result, so stop sending it.
        self.clear(child);
        self.progress(sink);
        Taken::News(child)
    }

    /// Delays the response to a message from `neighbour` that [`handle`](Self::handle) accepted,
    /// until the next message to it or until the response is due. Returns an earlier delayed
    /// response, which must be sent now.
    ///
    /// In a sequence of operations there is always a next message: a result carries the response to
    /// a contribution, and the next contribution the response to the result.
    pub(super) fn owe(&mut self, neighbour: usize, owed: Owed) -> Option<Owed> {
        self.owed[neighbour].replace(owed)
    }

    /// Takes the delayed response that the next message to `neighbour` will carry.
    pub(super) fn settle(&mut self, neighbour: usize) -> Option<Owed> {
        self.owed[neighbour].take()
    }

    /// Removes and returns an overdue response.
    pub(super) fn overdue(&mut self, now: Time) -> Option<Owed> {
        let is_due = |owed: &mut Owed| owed.due <= now;
        self.owed.iter_mut().find_map(|owed| owed.take_if(is_due))
    }

    /// Removes and returns all delayed responses.
    pub(super) fn all_owed(&mut self) -> impl Iterator<Item = Owed> {
        self.owed.iter_mut().filter_map(Option::take)
    }

    #[cfg(not(test))]
    fn is_complete(&self) -> bool {
        self.shares.iter().all(Option::is_some)
    }

    /// Whether every child has contributed, except those that the canary leaves out.
    #[cfg(test)]
    fn is_complete(&self) -> bool {
        self.shares.iter().filter(|share| share.is_none()).count() <= self.hasty
    }

    /// Combines the contributions once all have arrived.
    fn progress(&mut self, sink: &mut Sink) {
        let Some(joined) = &self.joined else {
            return;
        };
        if self.handed_up || !self.is_complete() {
            return;
        }
        let own = Message {
            kind: Kind::Contribution,
            sequence: self.sequence,
            collective: joined.collective,
            outcome: Ok(joined.operand),
            mark: joined.mark,
        };
        let all = self.shares.iter().flatten().fold(own, Message::with);
        match self.tree.parent() {
            Some(parent) => {
                self.handed_up = true;
                self.post(parent, all, sink.now + sink.step);
            }
            None => self.finish(&all, sink),
        }
    }

    fn finish(&mut self, result: &Message, sink: &mut Sink) {
        let result = Message {
            kind: Kind::Result,
            ..*result
        };
        if let Some(parent) = self.tree.parent() {
            self.clear(parent);
        }
        for child in 0..self.tree.children() {
            self.post(child, result, sink.now + sink.step);
        }
        let agreed = |joined: &Joined| match result.outcome {
            Ok(_) if joined.collective != result.collective => Err(CollectiveFailure::Mismatch),
            outcome => outcome,
        };
        let outcome = self.joined.as_ref().map_or(result.outcome, agreed);
        self.end(outcome, result.mark, sink);
        self.sequence = self.sequence.wrapping_add(1);
        self.shares.fill(None);
        self.handed_up = false;
    }

    fn end(&mut self, outcome: Result<Operand, CollectiveFailure>, mark: bool, sink: &mut Sink) {
        let Some(joined) = self.joined.take() else {
            return;
        };
        sink.counters.collectives_done += u64::from(outcome.is_ok());
        sink.counters.collectives_failed += u64::from(outcome.is_err());
        sink.ended.push_back(Ended {
            joined,
            engine: self.index,
            sequence: self.sequence,
            outcome,
            mark,
        });
    }

    /// Fails the tree, and notifies all neighbours but `from`, which reported the failure.
    pub(super) fn break_off(
        &mut self,
        failure: CollectiveFailure,
        from: Option<usize>,
        sink: &mut Sink,
    ) {
        if self.broken.is_some() {
            if let Some(from) = from {
                // Do not notify `from`, which reported the failure.
                self.clear(from);
            }
            return;
        }
        sink.counters.collective_breaks += 1;
        self.broken = Some(failure);
        self.end(Err(failure), false, sink);
        for neighbour in 0..self.tree.len() {
            self.clear(neighbour);
            if Some(neighbour) != from {
                self.queue_abort(neighbour, failure, sink.now);
            }
        }
    }

    fn queue_abort(&mut self, neighbour: usize, failure: CollectiveFailure, now: Time) {
        if self.outboxes[neighbour].is_some() {
            return;
        }
        let abort = Message {
            kind: Kind::Abort,
            sequence: self.sequence,
            collective: Collective::Barrier,
            outcome: Err(failure),
            mark: false,
        };
        self.post(neighbour, abort, now);
    }

    fn post(&mut self, neighbour: usize, message: Message, now: Time) {
        self.outboxes[neighbour] = Some(Outbox::new(now, message));
        self.due |= 1 << neighbour;
    }

    fn clear(&mut self, neighbour: usize) {
        self.outboxes[neighbour] = None;
        self.due &= !(1 << neighbour);
    }

    fn waiting(&self) -> impl Iterator<Item = usize> + use<> {
        let mut due = self.due;
        core::iter::from_fn(move || {
            let neighbour = (due != 0).then(|| due.trailing_zeros() as usize)?;
            due &= due - 1;
            Some(neighbour)
        })
    }

    pub(super) fn next_message(&self, now: Time) -> Option<(usize, &Message)> {
        self.waiting().find_map(|neighbour| {
            let outbox = self.outboxes[neighbour].as_ref()?;
            let is_due = outbox.due().is_some_and(|at| at <= now);
            is_due.then_some((neighbour, &outbox.message))
        })
    }

    /// Records that the message of [`next_message`](Self::next_message) was sent as request
    /// `number`.
    pub(super) fn sent(&mut self, neighbour: usize, number: u32) {
        if let Some(outbox) = &mut self.outboxes[neighbour] {
            outbox.sent(number);
            self.due &= !(1 << neighbour);
        }
    }

    /// Handles the end of request `number` to a neighbour.
    pub(super) fn answered(
        &mut self,
        neighbour: usize,
        number: u32,
        failure: Option<Failure>,
        sink: &mut Sink,
    ) {
        let Some(outbox) = self.outboxes.get_mut(neighbour).and_then(Option::as_mut) else {
            return;
        };
        if !outbox.is_sent_as(number) {
            return;
        }
        let not_ready = match failure {
            None => return self.clear(neighbour),
            Some(Failure::Refused(Status::Busy | Status::NotReady)) => true,
            Some(Failure::Refused(Status::BadCrc | Status::Poisoned)) => false,
            Some(Failure::Refused(status)) => {
                self.clear(neighbour);
                let node = self.tree.node(neighbour);
                let failure = CollectiveFailure::Refused(node, status);
                return self.break_off(failure, Some(neighbour), sink);
            }
            Some(_) => false,
        };
        if outbox.repeat(sink.now, not_ready, self.tree.patience) {
            self.due |= 1 << neighbour;
            sink.counters.collective_retries += 1;
        } else {
            let failure = self.silence(neighbour);
            self.clear(neighbour);
            self.break_off(failure, Some(neighbour), sink);
        }
    }

    /// The failure to report when a neighbour is silent.
    fn silence(&self, neighbour: usize) -> CollectiveFailure {
        let node = self.tree.node(neighbour);
        match &self.outboxes[neighbour] {
            Some(outbox) if outbox.not_ready => CollectiveFailure::NotReady(node),
            Some(_) => CollectiveFailure::Unreachable(node),
            None if Some(neighbour) == self.tree.parent() => CollectiveFailure::NoResult(node),
            None => CollectiveFailure::NoContribution(node),
        }
    }

    /// Fails the operation if other participants did not arrive in time.
    pub(super) fn expire(&mut self, sink: &mut Sink) {
        if self.patience_ends().is_none_or(|end| end > sink.now) {
            return;
        }
        let missing = self.shares.iter().position(Option::is_none);
        let Some(neighbour) = missing.or(self.tree.parent()) else {
            unreachable!("the root waits only for children");
        };
        self.break_off(self.silence(neighbour), None, sink);
    }

    fn patience_ends(&self) -> Option<Time> {
        Some(self.joined.as_ref()?.at + self.tree.patience)
    }

    /// When a message must be sent (if `can_send`) or the operation times out.
    pub(super) fn next_deadline(&self, can_send: bool) -> Option<Time> {
        let answers = self.owed.iter().flatten().map(|owed| owed.due);
        let mut next = self.patience_ends().into_iter().chain(answers).min();
        if can_send {
            let due = self.waiting();
            let times = due.filter_map(|neighbour| self.outboxes[neighbour].as_ref()?.due());
            next = times.chain(next).min();
        }
        next
    }
}

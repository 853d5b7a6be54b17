//! The collective engine: command class 7.
//!
//! XC white paper, "Reductions and Barriers": every NIC has four virtual collective engines, each
//! with its own reduction tree of branching up to 32. A node joins an operation with its
//! contribution. The NICs then work without a processor until the result is in each memory and each
//! completion queue. One operation may be pending per engine.

mod driver;
mod engine;
mod layout;
mod message;
mod outbox;
mod run;
mod tree;

#[cfg(test)]
mod engine_tests;
#[cfg(test)]
mod failure_tests;
#[cfg(test)]
mod message_tests;
#[cfg(test)]
mod run_tests;
#[cfg(test)]
mod test_net;

use std::collections::VecDeque;

use phitwire_framing::aries::flit::{NodeId, Routing};
use phitwire_framing::aries::packet::{Command, Request, Response, Status};
use thiserror::Error;

pub use message::CollectiveFailure;
pub use tree::{CollectiveTree, TreeError, TreePosition};

use super::amo_cache::CachedMemory;
use super::completion::Failure;
use super::counters::AriesNicCounters;
use super::outstanding::{Landing, PacketId, RequestName, RequestOrigin, Share};
use super::requester::{Ask, Requester};
use super::virtual_node::Target;
use driver::Driver;
pub(crate) use engine::Joiner;
use engine::{Ended, Engine, Joined, Owed, Sink, Taken};
use message::{Kind, Message};
use phitwire::nic::{Collective, ENGINES, MAX_BRANCHING, Operand};
use phitwire::time::{Duration, Time};
use tree::Neighbours;

/// Maximum number of completions that are expected or not yet fetched.
const MAX_COMPLETIONS: usize = 1024;
/// Maximum operations of a run joined in one turn. Only operations with a single participant end
/// within a turn.
const RUN_TURNS: usize = 16;

// A request's number consists of engine, neighbour and serial number, so that the response to a
// replaced message has no effect.
const ENGINE_SHIFT: u32 = 30;
const NEIGHBOUR_SHIFT: u32 = 24;
const NEIGHBOUR_MASK: u32 = (1 << (ENGINE_SHIFT - NEIGHBOUR_SHIFT)) - 1;
const SERIAL_MASK: u32 = (1 << NEIGHBOUR_SHIFT) - 1;

const _: () = assert!(ENGINES == 1 << (32 - ENGINE_SHIFT));
const _: () = assert!(MAX_BRANCHING < NEIGHBOUR_MASK as usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Join {
    /// The operation, the same at all participants.
    pub collective: Collective,
    pub contribution: Contribution,
    /// Local address for the result, which the completion carries too. See
    /// [`Collective::memory_bytes`].
    pub into: Option<u64>,
    /// A bit in addition to the word, for any operation. The completion has the OR of all marks.
    pub mark: bool,
    /// Value repeated in the completion.
    pub user: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contribution {
    /// The value; ignored in a barrier.
    Word(Operand),
    /// Local address of the value, which is read at the join. See [`Collective::memory_bytes`].
    Memory(u64),
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JoinError {
    /// The engine does not exist or has no tree.
    #[error("collective engine {0} has no tree")]
    NoTree(usize),
    #[error("an operation is pending on the collective engine")]
    Pending,
    /// Bitwise operations are undefined for floating point numbers.
    #[error("operation {0} does not exist")]
    Operation(Collective),
    /// The tree has failed and must be set up again at all participants.
    #[error("the tree has failed: {0}")]
    Broken(CollectiveFailure),
    #[error("local address {0:#x} is outside the memory")]
    LocalBounds(u64),
    #[error("the completion queue is full")]
    CompletionQueueFull,
    #[error("a collective run uses the engine")]
    Driven,
}

/// The end of a collective operation at this participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectiveCompletion {
    pub user: u64,
    pub engine: u8,
    /// Number of the operation on the engine since its tree was set up, the same at all
    /// participants.
    pub sequence: u32,
    pub collective: Collective,
    pub joined: Time,
    pub completed: Time,
    pub mark: bool,
    /// The result, or the reason for the failure.
    pub outcome: Result<Operand, CollectiveFailure>,
}

/// Serves control requests of other nodes and sends its own without a processor. Users only set up
/// trees and join operations.
#[derive(Debug)]
pub(crate) struct CollectiveUnit {
    own: NodeId,
    engines: [Option<Box<Engine>>; ENGINES],
    /// Effects of the engines, including ended operations whose results must still be written to
    /// memory.
    sink: Sink,
    completions: VecDeque<CollectiveCompletion>,
    /// Users' operations that are joined or whose completion is not fetched yet.
    due: usize,
    serial: u32,
    /// Whether the requester had no room; the unit is called when there is room again.
    stalled: bool,
    driver: Option<Driver>,
    /// Engines whose users have gone. Each is freed once its neighbours have its results.
    left: [bool; ENGINES],
    /// Time of a process between two operations of a run.
    between: Duration,
    /// How long a response may wait for a message that carries it; zero disables the delay.
    answer_wait: Duration,
    /// Engine and neighbour of the last served message, if its "done" may be delayed.
    news: Option<(usize, usize)>,
    /// This NIC's request that the last served message completed.
    answered: Option<RequestName>,
    /// Delayed responses of removed engines.
    overdue: VecDeque<Owed>,
}

impl CollectiveUnit {
    /// The unit of the NIC at `own`. A response to a neighbour waits up to `answer_wait` for the
    /// next message to that neighbour, which then carries it.
    pub(crate) fn new(own: NodeId, answer_wait: Duration) -> Self {
        Self {
            own,
            engines: Default::default(),
            sink: Sink::default(),
            completions: VecDeque::new(),
            due: 0,
            serial: 0,
            stalled: false,
            driver: None,
            left: [false; ENGINES],
            between: Duration::ZERO,
            answer_wait,
            news: None,
            answered: None,
            overdue: VecDeque::new(),
        }
    }

    /// Sets the time of an engine's step, and that of a process between two operations of a run.
    pub(crate) fn set_times(&mut self, step: Duration, between: Duration) {
        (self.sink.step, self.between) = (step, between);
    }

    pub(crate) fn counters(&self) -> &AriesNicCounters {
        &self.sink.counters
    }

    /// Sets up a tree.
    ///
    /// # Errors
    /// See [`TreeError`].
    pub(crate) fn configure(
        &mut self,
        engine: usize,
        tree: &CollectiveTree,
        resolve: impl Fn(Target) -> Option<NodeId>,
    ) -> Result<(), TreeError> {
        let (own, slot) = (self.own, self.idle_slot(engine)?);
        let tree = Neighbours::new(tree, own, resolve)?;
        let before = slot.replace(Box::new(Engine::new(engine as u8, tree)));
        self.answer_all_of(before);
        self.left[engine] = false;
        Ok(())
    }

    /// Removes a tree.
    ///
    /// # Errors
    /// [`TreeError::Engine`], [`TreeError::Busy`].
    pub(crate) fn release(&mut self, engine: usize) -> Result<(), TreeError> {
        let before = self.idle_slot(engine)?.take();
        self.answer_all_of(before);
        Ok(())
    }

    /// Sends the delayed responses of a removed engine.
    fn answer_all_of(&mut self, engine: Option<Box<Engine>>) {
        let mut engine = engine;
        let owed = engine.iter_mut().flat_map(|engine| engine.all_owed());
        self.overdue.extend(owed);
    }

    /// The slot of an engine that is idle or has no tree.
    fn idle_slot(&mut self, engine: usize) -> Result<&mut Option<Box<Engine>>, TreeError> {
        let is_driven = self.is_driven(engine);
        let slot = self.engines.get_mut(engine);
        let slot = slot.ok_or(TreeError::Engine(engine))?;
        if is_driven || slot.as_ref().is_some_and(|engine| !engine.is_idle()) {
            return Err(TreeError::Busy);
        }
        Ok(slot)
    }

    /// Whether the engine is idle or has no tree.
    pub(crate) fn is_idle(&self, engine: usize) -> bool {
        let engine = self.engines.get(engine).and_then(Option::as_ref);
        engine.is_none_or(|engine| engine.is_idle())
    }

    /// Whether an operation that this node joined is pending on the engine.
    pub(crate) fn is_joined(&self, engine: usize) -> bool {
        let engine = self.engines.get(engine).and_then(Option::as_ref);
        engine.is_some_and(|engine| engine.is_joined())
    }

    /// Fails the tree at every participant that can be reached.
    pub(crate) fn stop(&mut self, now: Time, engine: usize) {
        let Some(Some(found)) = self.engines.get_mut(engine) else {
            return;
        };
        let sink = self.sink.at(now);
        found.break_off(CollectiveFailure::Stopped(self.own), None, sink);
    }

    /// Joins the next operation on an engine and returns its number.
    ///
    /// # Errors
    /// See [`JoinError`].
    pub(crate) fn join(
        &mut self,
        now: Time,
        engine: usize,
        joiner: Joiner,
        join: &Join,
        memory: &mut CachedMemory,
    ) -> Result<u32, JoinError> {
        if joiner != Joiner::Driver && self.is_driven(engine) {
            return Err(JoinError::Driven);
        }
        let found = self.engines.get_mut(engine).and_then(Option::as_mut);
        let found = found.ok_or(JoinError::NoTree(engine))?;
        if !join.collective.is_valid() {
            return Err(JoinError::Operation(join.collective));
        }
        if let Some(failure) = found.broken() {
            return Err(JoinError::Broken(failure));
        }
        if found.is_joined() {
            return Err(JoinError::Pending);
        }
        if self.due >= MAX_COMPLETIONS && joiner != Joiner::Driver {
            return Err(JoinError::CompletionQueueFull);
        }
        let operand = operand_of(join, joiner, memory)?;
        self.sink.counters.collectives_joined += 1;
        self.due += usize::from(joiner != Joiner::Driver);
        let joined = Joined {
            joiner,
            collective: join.collective,
            operand,
            mark: join.mark,
            into: join.into,
            at: now,
        };
        let sink = self.sink.at(now);
        Ok(found.join(joined, sink))
    }

    pub(crate) fn poll_completion(&mut self) -> Option<CollectiveCompletion> {
        self.poll_completion_of(|_| true)
    }

    /// The oldest completion whose user value satisfies `is_its`.
    pub(crate) fn poll_completion_of(
        &mut self,
        is_its: impl Fn(u64) -> bool,
    ) -> Option<CollectiveCompletion> {
        let mut all = self.completions.iter();
        let at = all.position(|completion| is_its(completion.user))?;
        self.due -= 1;
        self.completions.remove(at)
    }

    /// Removes an engine's user. A pending operation fails at all participants; the result of an
    /// ended one is still delivered to participants that lack it. Then the engine is freed.
    pub(crate) fn leave(&mut self, now: Time, engine: usize) {
        let Some(Some(found)) = self.engines.get_mut(engine) else {
            return;
        };
        if found.is_joined() {
            self.stop(now, engine);
        }
        self.left[engine] = true;
        self.part();
    }

    /// Frees engines without a user once they have no more to do.
    fn part(&mut self) {
        for (slot, left) in self.engines.iter_mut().zip(&mut self.left) {
            let is_over = slot
                .as_ref()
                .is_none_or(|engine| engine.has_delivered_all());
            if *left && is_over {
                // Send the engine's delayed responses now.
                let owed = slot.iter_mut().flat_map(|engine| engine.all_owed());
                self.overdue.extend(owed);
                (*slot, *left) = (None, false);
            }
        }
    }

    /// Carries out control request `code` (0 to 11) with its data. Returns [`Status::Busy`] if the
    /// request cannot be accepted now, and [`Status::NotReady`] if the tree is not set up.
    pub(crate) fn serve(&mut self, now: Time, request: &Request, code: u8, data: &[u8]) -> Status {
        let Some((epoch, message, answers)) = Message::parse(code, request.address, data) else {
            return Status::Unsupported;
        };
        let Some(slot) = self.engines.get_mut(usize::from(request.mdh)) else {
            return Status::BadMdh;
        };
        let Some(engine) = slot.as_mut().filter(|engine| engine.tree.epoch == epoch) else {
            if message.kind == Kind::Contribution {
                return Status::NotReady;
            }
            // Acknowledge the result: it belongs to a removed tree, whose owner had the results
            // before removing it.
            self.sink.counters.collective_duplicates += 1;
            return Status::Done;
        };
        if engine.tree.key != request.key {
            self.sink.counters.collective_strangers += 1;
            return Status::BadKey;
        }
        let sink = self.sink.at(now);
        match engine.handle(request.source, &message, sink) {
            Taken::Answered(status) => {
                // Ignore `answers` if the request is unsupported: the sender may not be a
                // neighbour.
                self.answered = answers.filter(|_| status != Status::Unsupported);
                status
            }
            Taken::News(neighbour) => {
                self.answered = answers;
                self.news = Some((request.mdh.into(), neighbour));
                Status::Done
            }
        }
    }

    /// Whether the response to the message [served](Self::serve) last may be delayed. If so, it is
    /// kept here.
    pub(crate) fn keeps(&mut self, now: Time, answer: &Response) -> bool {
        let Some((engine, neighbour)) = self.news.take() else {
            return false;
        };
        if self.answer_wait == Duration::ZERO {
            return false;
        }
        let Some(engine) = &mut self.engines[engine] else {
            return false;
        };
        let owed = Owed {
            answer: *answer,
            due: now + self.answer_wait,
        };
        self.overdue.extend(engine.owe(neighbour, owed));
        true
    }

    /// Takes this NIC's request that the last served message completed.
    #[inline]
    pub(crate) fn take_answered(&mut self) -> Option<RequestName> {
        self.answered.take()
    }

    /// Returns a response that no message carried in time.
    pub(crate) fn next_answer(&mut self, now: Time) -> Option<Response> {
        if self.is_unused() {
            return None;
        }
        let owed = self.overdue.pop_front().or_else(|| {
            let mut engines = self.engines.iter_mut().flatten();
            engines.find_map(|engine| engine.overdue(now))
        })?;
        self.sink.counters.collective_answers += 1;
        Some(owed.answer)
    }

    /// Handles the end of request `number` of the engines.
    pub(crate) fn answered(&mut self, now: Time, number: u32, failure: Option<Failure>) {
        let neighbour = number >> NEIGHBOUR_SHIFT & NEIGHBOUR_MASK;
        let Some(engine) = &mut self.engines[(number >> ENGINE_SHIFT) as usize] else {
            return;
        };
        let sink = self.sink.at(now);
        engine.answered(neighbour as usize, number, failure, sink);
    }

    /// Whether [`issue`](Self::issue) has nothing to do: most NICs never have a tree.
    #[inline]
    fn is_unused(&self) -> bool {
        self.engines.iter().all(Option::is_none)
            && self.driver.is_none()
            && self.sink.ended.is_empty()
            && self.overdue.is_empty()
            && !self.stalled
    }

    /// Sends messages while the requester has room (including the reserve), and writes results to
    /// memory.
    pub(crate) fn issue(
        &mut self,
        now: Time,
        requester: &mut Requester,
        memory: &mut CachedMemory,
    ) {
        if self.is_unused() {
            return;
        }
        let sink = self.sink.at(now);
        for engine in self.engines.iter_mut().flatten() {
            engine.expire(sink);
        }
        self.part();
        self.complete_all(now, memory);
        let mut turns = 0;
        // After its last operation a run needs one more call, to notice that it is over.
        while (turns < RUN_TURNS || !self.has_turns()) && self.drive(now, memory) {
            self.complete_all(now, memory);
            turns += 1;
        }
        self.send(now, requester);
    }

    fn complete_all(&mut self, now: Time, memory: &mut CachedMemory) {
        while let Some(ended) = self.sink.ended.pop_front() {
            self.complete(now, &ended, memory);
        }
    }

    fn complete(&mut self, now: Time, ended: &Ended, memory: &mut CachedMemory) {
        let Joined {
            joiner,
            collective,
            into,
            at,
            ..
        } = ended.joined;
        if let (Some(into), Ok(operand)) = (into, ended.outcome) {
            let mut bytes = [0; 16];
            let len = operand.to_memory(collective, &mut bytes);
            let written = memory.write(into, &bytes[..len]);
            debug_assert!(written.is_ok(), "joining checks local addresses");
        }
        match joiner {
            Joiner::User(user) => self.completions.push_back(CollectiveCompletion {
                user,
                engine: ended.engine,
                sequence: ended.sequence,
                collective,
                joined: at,
                completed: now,
                mark: ended.mark,
                outcome: ended.outcome,
            }),
            Joiner::Driver => {
                if let Some(driver) = &mut self.driver {
                    driver.ended(now, ended);
                }
            }
        }
    }

    fn send(&mut self, now: Time, requester: &mut Requester) {
        let Self {
            engines,
            serial,
            stalled,
            ..
        } = self;
        *stalled = false;
        for (index, engine) in engines.iter_mut().enumerate() {
            let Some(engine) = engine else { continue };
            while let Some((neighbour, message)) = engine.next_message(now) {
                let message = *message;
                if !requester.has_room(Share::Reserve) {
                    *stalled = true;
                    return;
                }
                *serial = (*serial + 1) & SERIAL_MASK;
                let number = (index as u32) << ENGINE_SHIFT
                    | (neighbour as u32) << NEIGHBOUR_SHIFT
                    | *serial;
                let owed = engine.settle(neighbour);
                let answers = owed.map(|owed| name_of(&owed.answer));
                let (data, bytes) = message.data(engine.tree.epoch, answers);
                let ask = Ask {
                    node: engine.tree.node(neighbour),
                    command: Command::Control {
                        code: message.kind as u8,
                    },
                    handle: index as u16,
                    key: engine.tree.key,
                    ssid: 0,
                    address: message.address(),
                    routing: Routing::default(),
                    data: &data[..bytes],
                    answer_bytes: 0,
                    landing: Landing::NONE,
                };
                requester
                    .issue(now, &ask, RequestOrigin::Collective(number))
                    .expect("28 bytes of control fit into a packet");
                engine.sent(neighbour, number);
            }
        }
    }

    /// When [`issue`](Self::issue) must be called even if nothing arrives.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        let engines = self.engines.iter().flatten();
        let deadlines = engines.filter_map(|engine| engine.next_deadline(!self.stalled));
        let run = self.driver.as_ref().and_then(Driver::due);
        let overdue = self.overdue.front().map(|owed| owed.due);
        deadlines.chain(run).chain(overdue).min()
    }
}

const fn name_of(answer: &Response) -> RequestName {
    (PacketId::from_bits(answer.packet_id), answer.echo)
}

fn operand_of(
    join: &Join,
    joiner: Joiner,
    memory: &mut CachedMemory,
) -> Result<Operand, JoinError> {
    let collective = join.collective;
    let len = collective.memory_bytes();
    if let Some(into) = join.into {
        let end = into.checked_add(len as u64);
        if end.is_none_or(|end| end > memory.memory().size()) {
            return Err(JoinError::LocalBounds(into));
        }
    }
    let operand = match join.contribution {
        // Only runs use a barrier's word.
        Contribution::Word(_) if collective == Collective::Barrier && joiner != Joiner::Driver => {
            Operand::default()
        }
        Contribution::Word(operand) => operand,
        Contribution::Memory(address) => {
            let mut bytes = [0; 16];
            let read = memory.read(address, &mut bytes[..len]);
            read.map_err(|_| JoinError::LocalBounds(address))?;
            Operand::from_memory(collective, &bytes[..len])
        }
    };
    Ok(collective.normal(operand))
}

//! The barrier units of a router: their registers, and what becomes of messages.
//!
//! A barrier: when all children have signalled, the router signals its parent; the root tells all
//! children that the barrier is done, and so does every router that is told (paper, section 6).
//! A eureka: the first child that signals is enough.
//!
//! # Rounds
//!
//! A *round* of a unit ends at a router when it is told, or as the root finds, that the barrier is
//! done. The messages of one round on one link keep their order, and so nothing of a round is left
//! when it ends, whatever the processors do:
//!
//! - Two processors trigger the eureka at once. The router passes the first one up and drops the
//!   others of that round, also those that come after it has told its children that the eureka is
//!   done ([`Ignored::EurekaRepeated`]). The paper does not ask for this; it is what bounds the
//!   number of messages that wait for a port.
//! - A processor's eureka travels before its own arrival, on the same way. So each repeat has come
//!   and gone when the last child arrives, and cannot start a eureka in the next round.
//! - A processor may be told of the eureka though it has joined the barrier already. It ignores
//!   that; what it is told next is that the barrier is done.
//! - A processor that was told that the barrier is done may trigger the next eureka at once, while
//!   its siblings still wait to be told. Per port the order is kept.
//!
//! For this a router keeps two bits per unit beside the 17 of the register: a eureka has been
//! passed up in this round, and a eureka has been told.
//!
//! # Damage
//!
//! No message is ever repeated or acknowledged. One that is lost leaves a barrier that does not end
//! until software configures the unit again; one that does not fit the state of its unit is ignored
//! and counted. What waits stays within its bound whatever comes from a wire.

use thiserror::Error;

use super::message::{Kind, Message, MessageError, UNITS, UnitNumber};
use super::pending::{Pending, Signal};
use super::tree::{Port, PortSet, TreeRegister};

phitwire::counters! {
    /// What a router counts of barriers and eurekas.
    pub struct BarrierCounters {
        /// Arrivals of children taken.
        arrivals,
        /// Eurekas of children taken.
        eurekas,
        /// Barriers that were done here: passed on, or found done at the root.
        barriers_done,
        /// Eurekas that were done here: passed on, or found done at the root.
        eurekas_done,
        /// Messages sent.
        sent,
        /// Eurekas of children dropped since one has been passed on; no fault.
        eurekas_repeated,
        /// Words that were no message.
        damaged,
        /// Messages of units without a tree here.
        unit_unused,
        /// Messages to a parent from a port that is no child.
        not_from_a_child,
        /// Messages to children from a port that is not the parent.
        not_from_the_parent,
        /// Arrivals of children that have arrived.
        arrivals_repeated,
        /// Arrivals of children that have not been told of the last barrier yet.
        arrivals_early,
        /// Eurekas of children behind their arrival.
        eurekas_late,
        /// Barriers done though the router has not signalled its parent.
        barriers_unasked,
        /// Eurekas done for the second time before one barrier.
        eurekas_done_repeated,
        /// Units configured while they were at work.
        reset_at_work,
    }
}

/// Why a message changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Ignored {
    /// A eureka was passed on already. The one reason which is no fault.
    #[error("a eureka has been passed on since the last barrier")]
    EurekaRepeated,
    /// It is no message.
    #[error(transparent)]
    Damaged(MessageError),
    /// The unit has no tree here.
    #[error("the unit is not in use")]
    UnitUnused,
    /// It goes up, and does not come from a child.
    #[error("what sends to its parent is no child")]
    NotFromAChild,
    /// It goes down, and does not come from the parent.
    #[error("what sends to its children is not the parent")]
    NotFromTheParent,
    /// The child has arrived already.
    #[error("the child has arrived already")]
    ArrivalRepeated,
    /// The child cannot know yet that the last barrier is done.
    #[error("the child has not been told of the last barrier")]
    ArrivalEarly,
    /// The child has arrived, or has not been told of the last barrier.
    #[error("the child has arrived, and signals a eureka")]
    EurekaLate,
    /// The router has not told its parent that all children have arrived.
    #[error("a barrier is done that children here have not all joined")]
    BarrierUnasked,
    /// The parent has told it already.
    #[error("the eureka has been told since the last barrier")]
    EurekaDoneRepeated,
}

impl Ignored {
    /// Whether no router that works as described here sends such a message.
    #[inline]
    pub const fn is_fault(self) -> bool {
        !matches!(self, Self::EurekaRepeated)
    }
}

/// The barrier units of a router.
///
/// Call order: [`configure`](Self::configure) units, then [`receive`](Self::receive) whenever a
/// message has come, and [`next`](Self::next) for each port of
/// [`pending_ports`](Self::pending_ports) when that port can send. A message that was taken is to
/// be sent: nothing else keeps it.
#[derive(Clone, Debug, Default)]
pub struct BarrierRouter {
    registers: [TreeRegister; UNITS],
    /// Units of which a eureka was passed to the parent, or found done by the root, in this round.
    eureka_passed: u32,
    /// Units whose children were told of a eureka in this round.
    eureka_told: u32,
    pending: [Pending; Port::COUNT],
    /// Ports with something to send.
    waiting: PortSet,
    counters: BarrierCounters,
}

impl BarrierRouter {
    /// A router of which no unit is in use.
    pub fn new() -> Self {
        Self::default()
    }

    /// The register of a unit.
    #[inline]
    pub const fn register(&self, unit: UnitNumber) -> TreeRegister {
        self.registers[unit.index()]
    }

    /// Gives a unit its place in a tree, or none ([`TreeRegister::UNUSED`]). It begins afresh: the
    /// children of `register` that have signalled are ignored.
    ///
    /// A unit at work (see [`is_idle`](Self::is_idle)) is reset, which is counted: what waited is
    /// not sent, and who has signalled is forgotten. Messages on the links are not caught; so
    /// software configures a tree while nothing of it is under way, or else uses another unit.
    /// Returns whether the unit was idle.
    pub fn configure(&mut self, unit: UnitNumber, register: TreeRegister) -> bool {
        let idle = self.is_idle(unit);
        self.counters.reset_at_work += u64::from(!idle);
        for port in Port::ALL {
            self.pending[port.index()].clear(unit);
            self.settle(port);
        }
        self.eureka_passed &= !unit.bit();
        self.eureka_told &= !unit.bit();
        self.registers[unit.index()] = register;
        self.registers[unit.index()].restart();
        idle
    }

    /// Whether the unit is between rounds: nobody has signalled, and nothing waits.
    pub fn is_idle(&self, unit: UnitNumber) -> bool {
        let eureka = (self.eureka_passed | self.eureka_told) & unit.bit() != 0;
        let signalled = !self.register(unit).signalled().is_empty();
        !eureka && !signalled && self.pending.iter().all(|port| port.len(unit) == 0)
    }

    /// What has been counted.
    pub const fn counters(&self) -> &BarrierCounters {
        &self.counters
    }

    /// Ports that have something to send.
    #[inline]
    pub const fn pending_ports(&self) -> PortSet {
        self.waiting
    }

    /// Messages of a unit that wait for a port: at most three to a child and two to the parent.
    pub const fn pending_len(&self, port: Port, unit: UnitNumber) -> u32 {
        self.pending[port.index()].len(unit)
    }

    /// Takes the next message for a port: units in turn, those of one unit in order.
    #[inline]
    pub fn next(&mut self, port: Port) -> Option<Message> {
        let (unit, signal) = self.pending[port.index()].next()?;
        self.settle(port);
        self.counters.sent += 1;
        let up = self.register(unit).parent().map(Port::Link) == Some(port);
        let kind = match (signal, up) {
            (Signal::Barrier, true) => Kind::Arrive,
            (Signal::Eureka, true) => Kind::Eureka,
            (Signal::Barrier, false) => Kind::BarrierDone,
            (Signal::Eureka, false) => Kind::EurekaDone,
        };
        Some(Message { kind, unit })
    }

    /// Takes the word of a flit that has come on the barrier channel of `from`.
    ///
    /// # Errors
    /// Why nothing changed; it has been counted.
    pub fn receive_word(&mut self, from: Port, word: u64) -> Result<(), Ignored> {
        match Message::decode(word) {
            Ok(message) => self.receive(from, message),
            Err(error) => {
                let reason = Ignored::Damaged(error);
                self.count(reason);
                Err(reason)
            }
        }
    }

    /// Takes a message that has come from `from`.
    ///
    /// # Errors
    /// Why nothing changed; it has been counted.
    #[inline]
    pub fn receive(&mut self, from: Port, message: Message) -> Result<(), Ignored> {
        let unit = message.unit;
        let taken = match message.kind {
            Kind::Arrive => self.on_arrive(from, unit),
            Kind::Eureka => self.on_eureka(from, unit),
            Kind::BarrierDone => self.on_barrier_done(from, unit),
            Kind::EurekaDone => self.on_eureka_done(from, unit),
        };
        if let Err(reason) = taken {
            self.count(reason);
        }
        taken
    }

    fn on_arrive(&mut self, from: Port, unit: UnitNumber) -> Result<(), Ignored> {
        self.check_child(from, unit)?;
        if self.register(unit).signalled().contains(from) {
            return Err(Ignored::ArrivalRepeated);
        }
        if self.pending[from.index()].has_barrier(unit) {
            return Err(Ignored::ArrivalEarly);
        }
        self.counters.arrivals += 1;
        let register = &mut self.registers[unit.index()];
        register.signal(from);
        if register.is_complete() {
            match register.parent() {
                Some(parent) => self.send(Port::Link(parent), unit, Signal::Barrier),
                None => self.barrier_done(unit),
            }
        }
        Ok(())
    }

    fn on_eureka(&mut self, from: Port, unit: UnitNumber) -> Result<(), Ignored> {
        self.check_child(from, unit)?;
        let register = self.register(unit);
        if register.signalled().contains(from) || self.pending[from.index()].has_barrier(unit) {
            return Err(Ignored::EurekaLate);
        }
        if (self.eureka_passed | self.eureka_told) & unit.bit() != 0 {
            return Err(Ignored::EurekaRepeated);
        }
        self.counters.eurekas += 1;
        self.eureka_passed |= unit.bit();
        match register.parent() {
            Some(parent) => self.send(Port::Link(parent), unit, Signal::Eureka),
            None => self.eureka_done(unit),
        }
        Ok(())
    }

    fn on_barrier_done(&mut self, from: Port, unit: UnitNumber) -> Result<(), Ignored> {
        self.check_parent(from, unit)?;
        let asked = self.register(unit).is_complete();
        if !asked || self.pending[from.index()].has_barrier(unit) {
            return Err(Ignored::BarrierUnasked);
        }
        self.barrier_done(unit);
        Ok(())
    }

    fn on_eureka_done(&mut self, from: Port, unit: UnitNumber) -> Result<(), Ignored> {
        self.check_parent(from, unit)?;
        if self.eureka_told & unit.bit() != 0 {
            return Err(Ignored::EurekaDoneRepeated);
        }
        self.eureka_done(unit);
        Ok(())
    }

    /// Ends the round here and tells the children.
    fn barrier_done(&mut self, unit: UnitNumber) {
        self.counters.barriers_done += 1;
        self.registers[unit.index()].restart();
        self.eureka_passed &= !unit.bit();
        self.eureka_told &= !unit.bit();
        self.tell_children(unit, Signal::Barrier);
    }

    /// Tells the children of a eureka.
    fn eureka_done(&mut self, unit: UnitNumber) {
        self.counters.eurekas_done += 1;
        self.eureka_told |= unit.bit();
        self.tell_children(unit, Signal::Eureka);
    }

    fn tell_children(&mut self, unit: UnitNumber, signal: Signal) {
        for child in self.register(unit).children().iter() {
            self.send(child, unit, signal);
        }
    }

    fn send(&mut self, port: Port, unit: UnitNumber, signal: Signal) {
        let pending = &mut self.pending[port.index()];
        match signal {
            Signal::Eureka => pending.push_eureka(unit),
            Signal::Barrier => pending.push_barrier(unit),
        }
        self.waiting.insert(port);
    }

    fn settle(&mut self, port: Port) {
        if self.pending[port.index()].is_empty() {
            self.waiting.remove(port);
        }
    }

    fn check_child(&self, from: Port, unit: UnitNumber) -> Result<(), Ignored> {
        let register = self.register(unit);
        if !register.is_used() {
            return Err(Ignored::UnitUnused);
        }
        let is_child = register.children().contains(from);
        is_child.then_some(()).ok_or(Ignored::NotFromAChild)
    }

    fn check_parent(&self, from: Port, unit: UnitNumber) -> Result<(), Ignored> {
        let register = self.register(unit);
        if !register.is_used() {
            return Err(Ignored::UnitUnused);
        }
        let is_parent = register.parent().map(Port::Link) == Some(from);
        is_parent.then_some(()).ok_or(Ignored::NotFromTheParent)
    }

    fn count(&mut self, reason: Ignored) {
        let counters = &mut self.counters;
        let counter = match reason {
            Ignored::EurekaRepeated => &mut counters.eurekas_repeated,
            Ignored::Damaged(_) => &mut counters.damaged,
            Ignored::UnitUnused => &mut counters.unit_unused,
            Ignored::NotFromAChild => &mut counters.not_from_a_child,
            Ignored::NotFromTheParent => &mut counters.not_from_the_parent,
            Ignored::ArrivalRepeated => &mut counters.arrivals_repeated,
            Ignored::ArrivalEarly => &mut counters.arrivals_early,
            Ignored::EurekaLate => &mut counters.eurekas_late,
            Ignored::BarrierUnasked => &mut counters.barriers_unasked,
            Ignored::EurekaDoneRepeated => &mut counters.eurekas_done_repeated,
        };
        *counter += 1;
    }
}

#[cfg(test)]
#[path = "tests/router.rs"]
mod tests;

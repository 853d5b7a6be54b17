//! The barrier units of a router: their registers, and the handling of messages.
//!
//! In a barrier, a router signals its parent when all its children have signalled. The root then
//! notifies all its children that the barrier is done, and every notified router does the same (T3E
//! sec. 6). For a eureka, the first child that signals is enough.
//!
//! # Rounds
//!
//! A *round* of a unit ends at a router when the router is notified that the barrier is done or, at
//! the root, when the last child has signalled. The messages of one round on one link keep their
//! order, so no message of a round is left when it ends, whatever the processors do:
//!
//! - Two processors may trigger the eureka at the same time. The router passes the first signal up
//!   and drops the others of that round, including those that arrive after it has notified its
//!   children of the eureka ([`Ignored::EurekaRepeated`]). T3E sec. 6 does not require this; it
//!   bounds the number of messages that wait for a port.
//! - A processor's eureka travels ahead of its arrival, on the same path. So every repeated eureka
//!   has passed when the last child arrives, and none can start a eureka in the next round.
//! - A processor may be notified of the eureka after it has joined the barrier. It ignores that
//!   notification; the next one is that the barrier is done.
//! - A processor that has been notified of the end of the barrier may trigger the next eureka at
//!   once, while its siblings still wait for the notification. Order is kept per port.
//!
//! For this a router keeps two bits per unit in addition to the 17 of the register: whether a
//! eureka has been passed up in this round, and whether a eureka has been sent to the children.
//!
//! # Damage
//!
//! Messages are never repeated or acknowledged. After a lost message, a barrier does not end until
//! software reconfigures the unit. A message that does not fit the state of its unit is ignored and
//! counted. The number of waiting messages stays bounded, whatever arrives on a wire.

use phitwire_framing::t3e::barrier::{Kind, Message, MessageError, UNITS, UnitNumber};
use thiserror::Error;

use super::pending::{Pending, Signal};
use super::tree::{Port, PortSet, TreeRegister};

phitwire::counters! {
    /// Counters of barriers and eurekas in a router.
    pub struct BarrierCounters {
        /// Accepted arrivals of children.
        arrivals,
        /// Accepted eurekas of children.
        eurekas,
        /// Completed barriers: passed on or, at the root, detected.
        barriers_done,
        /// Completed eurekas: passed on or, at the root, detected.
        eurekas_done,
        /// Messages sent.
        sent,
        /// Eurekas of children dropped because one was already passed up; no fault.
        eurekas_repeated,
        /// Words that are not valid messages.
        damaged,
        /// Messages for units without a tree at this router.
        unit_unused,
        /// Messages to a parent from a port that is not a child.
        not_from_a_child,
        /// Messages to children from a port that is not the parent.
        not_from_the_parent,
        /// Arrivals of children that had already arrived.
        arrivals_repeated,
        /// Arrivals of children not yet notified of the last barrier.
        arrivals_early,
        /// Eurekas of children after their arrival.
        eurekas_late,
        /// Barriers reported done before the router has signalled its parent.
        barriers_unasked,
        /// Second eureka done within one barrier.
        eurekas_done_repeated,
        /// Units configured while active.
        reset_at_work,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Ignored {
    /// A eureka was already passed up. This is the only reason that is not a fault.
    #[error("a eureka was already passed on since the last barrier")]
    EurekaRepeated,
    #[error(transparent)]
    Damaged(MessageError),
    #[error("the unit is not in use")]
    UnitUnused,
    #[error("the sender signals a parent but is not a child")]
    NotFromAChild,
    #[error("the sender signals children but is not the parent")]
    NotFromTheParent,
    #[error("the child has already arrived")]
    ArrivalRepeated,
    #[error("the child was not yet notified of the last barrier")]
    ArrivalEarly,
    /// The child has already arrived, or was not notified of the last barrier yet.
    #[error(
        "the child signalled a eureka after it had arrived, or before it was notified of the last \
             barrier"
    )]
    EurekaLate,
    /// The router has not signalled its parent that all children have arrived.
    #[error("barrier completed before all children arrived")]
    BarrierUnasked,
    #[error("the eureka was already reported since the last barrier")]
    EurekaDoneRepeated,
}

impl Ignored {
    /// Whether the message is a fault, which no correct router sends.
    #[inline]
    pub const fn is_fault(self) -> bool {
        !matches!(self, Self::EurekaRepeated)
    }
}

/// The barrier units of a router. Call order: [`configure`](Self::configure) units, then
/// [`receive`](Self::receive) for each arriving message, and [`next`](Self::next) for each port of
/// [`pending_ports`](Self::pending_ports) when that port can send. The caller must send the message
/// that `next` returns, because no copy is kept.
#[derive(Clone, Debug, Default)]
pub struct BarrierRouter {
    registers: [TreeRegister; UNITS],
    /// Units whose eureka was passed to the parent or, at the root, detected in this round.
    eureka_passed: u32,
    /// Units whose children were notified of a eureka in this round.
    eureka_sent: u32,
    pending: [Pending; Port::COUNT],
    waiting: PortSet,
    counters: BarrierCounters,
}

impl BarrierRouter {
    pub fn new() -> Self {
        Self::default()
    }

    #[inline]
    pub const fn register(&self, unit: UnitNumber) -> TreeRegister {
        self.registers[unit.index()]
    }

    /// Sets the position of a unit in a tree, or removes it ([`TreeRegister::UNUSED`]). The unit
    /// starts a new round: signalled children in `register` are ignored.
    ///
    /// An active unit (see [`is_idle`](Self::is_idle)) is reset, which is counted: waiting messages
    /// are dropped, and signals are forgotten. Messages on the links are not removed, so software
    /// must configure a tree only while none of its messages is in flight, or use another unit.
    /// Returns whether the unit was idle.
    pub fn configure(&mut self, unit: UnitNumber, register: TreeRegister) -> bool {
        let idle = self.is_idle(unit);
        self.counters.reset_at_work += u64::from(!idle);
        for port in Port::ALL {
            self.pending[port.index()].clear(unit);
            self.settle(port);
        }
        self.eureka_passed &= !unit.bit();
        self.eureka_sent &= !unit.bit();
        self.registers[unit.index()] = register;
        self.registers[unit.index()].restart();
        idle
    }

    /// Whether the unit is between rounds: no child has signalled, and no message waits.
    pub fn is_idle(&self, unit: UnitNumber) -> bool {
        let eureka = (self.eureka_passed | self.eureka_sent) & unit.bit() != 0;
        let signalled = !self.register(unit).signalled().is_empty();
        !eureka && !signalled && self.pending.iter().all(|port| port.len(unit) == 0)
    }

    pub const fn counters(&self) -> &BarrierCounters {
        &self.counters
    }

    #[inline]
    pub const fn pending_ports(&self) -> PortSet {
        self.waiting
    }

    /// Number of messages of a unit that wait for a port: at most three to a child, and two to the
    /// parent.
    pub const fn pending_len(&self, port: Port, unit: UnitNumber) -> u32 {
        self.pending[port.index()].len(unit)
    }

    /// Takes the next message for a port: units take turns, and each unit's messages stay in order.
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

    /// Handles the word of a flit from the barrier channel of `from`.
    ///
    /// # Errors
    /// The reason for ignoring the message, which is also counted.
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

    /// Handles a message from `from`.
    ///
    /// # Errors
    /// The reason for ignoring the message, which is also counted.
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
        if (self.eureka_passed | self.eureka_sent) & unit.bit() != 0 {
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
        if self.eureka_sent & unit.bit() != 0 {
            return Err(Ignored::EurekaDoneRepeated);
        }
        self.eureka_done(unit);
        Ok(())
    }

    /// Ends the round at this router, and notifies the children.
    fn barrier_done(&mut self, unit: UnitNumber) {
        self.counters.barriers_done += 1;
        self.registers[unit.index()].restart();
        self.eureka_passed &= !unit.bit();
        self.eureka_sent &= !unit.bit();
        self.notify_children(unit, Signal::Barrier);
    }

    fn eureka_done(&mut self, unit: UnitNumber) {
        self.counters.eurekas_done += 1;
        self.eureka_sent |= unit.bit();
        self.notify_children(unit, Signal::Eureka);
    }

    fn notify_children(&mut self, unit: UnitNumber, signal: Signal) {
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

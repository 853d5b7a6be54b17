//! The 32 units of a processor shell, between its processor and its router (T3E sec. 6).

use phitwire_framing::t3e::barrier::{Message, UNITS, UnitNumber};

use super::pending::next_unit;
use super::unit::{BarrierUnit, Notified, Operation, OperationError, State};

phitwire::counters! {
    /// Counters of barriers and eurekas in a processor shell.
    pub struct ShellCounters {
        /// Completed barriers.
        barriers,
        /// Notified eurekas, at most one per barrier.
        eurekas,
        /// Messages sent to the router.
        sent,
        /// Rejected operations.
        refused,
        /// Messages from the router that did not fit the state of their unit.
        unexpected,
        /// Units reset while active.
        reset_at_work,
    }
}

/// The units of a processor.
///
/// Call order: [`grant`](Self::grant) units, then [`operate`](Self::operate) for the processor,
/// [`receive`](Self::receive) for messages from the router, and
/// [`next_message`](Self::next_message) while [`has_pending`](Self::has_pending) and the path to
/// the router is free.
#[derive(Clone, Debug, Default)]
pub struct BarrierShell {
    units: [BarrierUnit; UNITS],
    /// Units that the processor may use.
    granted: u32,
    /// Units whose completion interrupts the processor.
    interrupting: u32,
    /// Units with a pending interrupt.
    interrupts: u32,
    /// Units with messages to send.
    pending: u32,
    /// The unit at which the round-robin search starts.
    turn: u8,
    counters: ShellCounters,
}

impl BarrierShell {
    pub fn new() -> Self {
        Self::default()
    }

    /// Grants the processor access to a unit, or revokes it, which resets the unit
    /// ([`reset`](Self::reset)). On the machine, virtual memory controls access.
    pub fn grant(&mut self, unit: UnitNumber, access: bool) {
        if access {
            self.granted |= unit.bit();
        } else {
            self.granted &= !unit.bit();
            self.reset(unit);
        }
    }

    /// Sets whether the processor is interrupted when a barrier completes, or when a eureka takes
    /// the unit from S_BAR to S_EUR: "detected via polling or can optionally interrupt the leaf
    /// processors".
    pub fn set_interrupting(&mut self, unit: UnitNumber, interrupting: bool) {
        self.interrupting &= !unit.bit();
        self.interrupting |= u32::from(interrupting) << unit.index();
    }

    #[inline]
    pub const fn has_access(&self, unit: UnitNumber) -> bool {
        self.granted & unit.bit() != 0
    }

    #[inline]
    pub const fn has_interrupt(&self, unit: UnitNumber) -> bool {
        self.interrupts & unit.bit() != 0
    }

    /// A unit, for reading its state and counts.
    #[inline]
    pub const fn unit(&self, unit: UnitNumber) -> &BarrierUnit {
        &self.units[unit.index()]
    }

    #[inline]
    pub const fn state(&self, unit: UnitNumber) -> State {
        self.unit(unit).state()
    }

    /// Executes an operation.
    ///
    /// # Errors
    /// If the processor has no access to the unit, or the unit is armed. Nothing changes in that
    /// case.
    pub fn operate(
        &mut self,
        unit: UnitNumber,
        operation: Operation,
    ) -> Result<(), OperationError> {
        let done = if self.granted & unit.bit() == 0 {
            Err(OperationError::NoAccess)
        } else {
            self.units[unit.index()].operate(operation)
        };
        self.counters.refused += u64::from(done.is_err());
        self.settle(unit);
        done
    }

    /// Handles a message from the router. A unit without access accepts none.
    pub fn receive(&mut self, message: Message) -> Notified {
        let unit = message.unit;
        let notified = if self.granted & unit.bit() == 0 {
            Notified::Unexpected
        } else {
            self.units[unit.index()].notify(message.kind)
        };
        let counters = &mut self.counters;
        match notified {
            Notified::BarrierDone => counters.barriers += 1,
            Notified::EurekaSeen | Notified::EurekaKnown => counters.eurekas += 1,
            Notified::Unexpected => counters.unexpected += 1,
        }
        if matches!(notified, Notified::BarrierDone | Notified::EurekaSeen) {
            self.interrupts |= self.interrupting & unit.bit();
        }
        notified
    }

    #[inline]
    pub const fn has_pending(&self) -> bool {
        self.pending != 0
    }

    /// Takes the next message for the router: units take turns, and each unit's messages stay in
    /// order.
    #[inline]
    pub fn next_message(&mut self) -> Option<Message> {
        let unit = next_unit(self.pending, self.turn)?;
        self.turn = (unit.index() + 1) as u8 % UNITS as u8;
        let kind = self.units[unit.index()].next_kind()?;
        self.settle(unit);
        self.counters.sent += 1;
        Some(Message { kind, unit })
    }

    /// Takes and clears the pending interrupts, one bit per unit.
    #[inline]
    pub const fn take_interrupts(&mut self) -> u32 {
        core::mem::replace(&mut self.interrupts, 0)
    }

    /// Resets a unit to S_BAR without messages to send, before its tree is reconfigured.
    pub fn reset(&mut self, unit: UnitNumber) {
        self.counters.reset_at_work += u64::from(!self.unit(unit).is_idle());
        self.units[unit.index()].reset();
        self.interrupts &= !unit.bit();
        self.settle(unit);
    }

    pub const fn counters(&self) -> &ShellCounters {
        &self.counters
    }

    fn settle(&mut self, unit: UnitNumber) {
        let pending = self.units[unit.index()].has_pending();
        self.pending &= !unit.bit();
        self.pending |= u32::from(pending) << unit.index();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use phitwire::rng::Rng;
    use phitwire_framing::t3e::barrier::Kind;

    fn unit(number: u8) -> UnitNumber {
        UnitNumber::new(number).expect("a unit")
    }

    #[test]
    fn units_that_were_not_granted_do_nothing() {
        let mut shell = BarrierShell::new();
        let refused = shell.operate(unit(4), Operation::Bar);
        assert_eq!(refused, Err(OperationError::NoAccess));
        let done = Message {
            kind: Kind::EurekaDone,
            unit: unit(4),
        };
        assert_eq!(shell.receive(done), Notified::Unexpected);
        assert_eq!(shell.state(unit(4)), State::Bar);
        assert_eq!(shell.next_message(), None);
        assert_eq!(
            (shell.counters().refused, shell.counters().unexpected),
            (1, 1)
        );
    }

    #[test]
    fn units_take_turns_and_interrupt_if_asked_to() {
        let mut shell = BarrierShell::new();
        for number in [0, 9, 31] {
            shell.grant(unit(number), true);
            let operation = if number == 9 {
                Operation::EurB
            } else {
                Operation::Bar
            };
            assert_eq!(shell.operate(unit(number), operation), Ok(()));
        }
        assert_eq!(
            shell.operate(unit(9), Operation::Bar),
            Err(OperationError::Armed)
        );
        shell.set_interrupting(unit(9), true);
        let sent: Vec<_> = core::iter::from_fn(|| shell.next_message()).collect();
        let sent: Vec<_> = sent.iter().map(|m| (m.unit.index(), m.kind)).collect();
        let arrive = Kind::Arrive;
        assert_eq!(
            sent,
            [(0, arrive), (9, Kind::Eureka), (31, arrive), (9, arrive)]
        );
        for number in [0, 9] {
            let done = Message {
                kind: Kind::BarrierDone,
                unit: unit(number),
            };
            assert_eq!(shell.receive(done), Notified::BarrierDone);
        }
        assert_eq!(
            (shell.take_interrupts(), shell.take_interrupts()),
            (1 << 9, 0)
        );
        assert_eq!(shell.unit(unit(9)).barriers(), 1);
        shell.grant(unit(31), false);
        assert_eq!(shell.counters().reset_at_work, 1);
        assert_eq!(shell.state(unit(31)), State::Bar);
    }
    /// Whatever the router and the processor send, a unit sends only what figure 6 allows.
    #[test]
    fn no_message_does_harm() {
        let mut rng = Rng::new(11, 0);
        let mut shell = BarrierShell::new();
        let mut last = [None; UNITS];
        for _ in 0..50_000 {
            let number = unit(rng.below(4) as u8 * 10);
            match rng.below(8) {
                0 => shell.grant(number, rng.below(20) > 0),
                1..4 => {
                    let kind = Kind::ALL[rng.below(4) as usize];
                    let notified = shell.receive(Message { kind, unit: number });
                    if notified == Notified::BarrierDone {
                        assert_eq!(last[number.index()], Some(Kind::Arrive));
                    }
                }
                4..6 => {
                    let operations = [Operation::Bar, Operation::Eur, Operation::EurB];
                    let armed = shell.state(number) == State::Arm;
                    let done = shell.operate(number, operations[rng.below(3) as usize]);
                    assert!(done.is_err() || !armed);
                }
                _ => {
                    let pending = shell.has_pending();
                    let sent = shell.next_message();
                    assert_eq!(sent.is_some(), pending);
                    if let Some(sent) = sent {
                        last[sent.unit.index()] = Some(sent.kind);
                    }
                }
            }
        }
        assert!(shell.counters().barriers > 100, "{:?}", shell.counters());
    }
}

//! A barrier/eureka synchronization unit (BSU) of a processor.
//!
//! Source: T3E sec. 6 and figure 6. Only the labels of the figure are legible in the available
//! copies:
//!
//! ```text
//! barrier:  S_BAR --OP_BAR--> S_ARM --barrier done--> S_BAR
//! eureka:   S_BAR --OP_EUR or eureka done--> S_EUR --OP_BAR or OP_EUR_B--> S_ARM --> S_BAR
//!           S_BAR --OP_EUR_B--> S_ARM
//! ```

use thiserror::Error;

use phitwire_framing::t3e::barrier::Kind;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum State {
    /// S_BAR: not armed, and no eureka seen.
    #[default]
    Bar,
    /// S_ARM: the processor has joined the barrier.
    Arm,
    /// S_EUR: the processor has signalled the eureka, or was notified of it.
    Eur,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// OP_BAR: joins the barrier.
    Bar,
    /// OP_EUR: signals the eureka.
    Eur,
    /// OP_EUR_B: signals the eureka and joins the barrier.
    EurB,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum OperationError {
    /// Figure 6 allows no operation in S_ARM.
    #[error("the unit is armed: its barrier has not completed")]
    Armed,
    /// "A set of processors can be given access to a particular BSU" (T3E sec. 6); this processor
    /// has no access.
    #[error("the processor has no access to the unit")]
    NoAccess,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notified {
    /// The barrier is done: S_ARM to S_BAR.
    BarrierDone,
    /// Another processor has signalled the eureka: S_BAR to S_EUR.
    EurekaSeen,
    /// A eureka was signalled, but this processor has signalled it too, or has joined the barrier
    /// without waiting for it. The state does not change.
    EurekaKnown,
    /// The message does not fit the state and is ignored.
    Unexpected,
}

/// A unit, with its counts and its messages to send.
///
/// Call order: [`operate`](Self::operate) for the processor, [`notify`](Self::notify) for messages
/// from the router; after `operate`, call [`next_kind`](Self::next_kind) until it returns `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BarrierUnit {
    state: State,
    /// Whether a eureka waits for the router, ahead of any arrival.
    eureka_waits: bool,
    /// Whether an arrival waits for the router.
    arrival_waits: bool,
    /// Whether the network reported a eureka since the last barrier.
    eureka_notified: bool,
    barriers: u64,
    eurekas: u64,
}

/// The next state, and whether the operation sends a eureka and an arrival.
const fn transition(from: State, operation: Operation) -> Option<(State, bool, bool)> {
    Some(match (from, operation) {
        (State::Arm, _) => return None,
        (State::Bar, Operation::Bar) => (State::Arm, false, true),
        (State::Bar, Operation::Eur) => (State::Eur, true, false),
        (State::Bar, Operation::EurB) => (State::Arm, true, true),
        // Accept a second eureka: the processor cannot detect that another was first, so this is
        // not a program error.
        (State::Eur, Operation::Eur) => (State::Eur, false, false),
        (State::Eur, Operation::Bar | Operation::EurB) => (State::Arm, false, true),
    })
}

impl BarrierUnit {
    #[inline]
    pub const fn state(&self) -> State {
        self.state
    }

    #[inline]
    pub const fn barriers(&self) -> u64 {
        self.barriers
    }

    /// Number of eurekas that the network reported, at most one per barrier, in any state.
    #[inline]
    pub const fn eurekas(&self) -> u64 {
        self.eurekas
    }

    #[inline]
    pub const fn has_pending(&self) -> bool {
        self.eureka_waits || self.arrival_waits
    }

    /// Whether the unit is in S_BAR and has no messages to send.
    #[inline]
    pub const fn is_idle(&self) -> bool {
        matches!(self.state, State::Bar) && !self.has_pending()
    }

    /// Executes an operation. Its messages wait in the unit: at most a eureka and an arrival.
    ///
    /// # Errors
    /// If the unit is armed.
    pub const fn operate(&mut self, operation: Operation) -> Result<(), OperationError> {
        let Some((state, eureka, arrival)) = transition(self.state, operation) else {
            return Err(OperationError::Armed);
        };
        debug_assert!(
            !(eureka && self.has_pending() || arrival && self.arrival_waits),
            "a barrier completes only after its arrival was sent"
        );
        self.state = state;
        self.eureka_waits |= eureka;
        self.arrival_waits |= arrival;
        Ok(())
    }

    #[inline]
    pub const fn next_kind(&mut self) -> Option<Kind> {
        if self.eureka_waits {
            self.eureka_waits = false;
            Some(Kind::Eureka)
        } else if self.arrival_waits {
            self.arrival_waits = false;
            Some(Kind::Arrive)
        } else {
            None
        }
    }

    pub const fn notify(&mut self, kind: Kind) -> Notified {
        match kind {
            Kind::BarrierDone => {
                if !matches!(self.state, State::Arm) || self.has_pending() {
                    return Notified::Unexpected;
                }
                self.state = State::Bar;
                self.eureka_notified = false;
                self.barriers += 1;
                Notified::BarrierDone
            }
            Kind::EurekaDone => {
                if self.eureka_notified {
                    return Notified::Unexpected;
                }
                self.eureka_notified = true;
                self.eurekas += 1;
                if !matches!(self.state, State::Bar) {
                    return Notified::EurekaKnown;
                }
                self.state = State::Eur;
                Notified::EurekaSeen
            }
            Kind::Arrive | Kind::Eureka => Notified::Unexpected,
        }
    }

    /// Returns to S_BAR without messages to send, for software that reconfigures the tree. Keeps
    /// the counts.
    pub const fn reset(&mut self) {
        self.state = State::Bar;
        self.eureka_waits = false;
        self.arrival_waits = false;
        self.eureka_notified = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPERATIONS: [Operation; 3] = [Operation::Bar, Operation::Eur, Operation::EurB];

    fn in_state(state: State) -> BarrierUnit {
        let mut unit = BarrierUnit::default();
        match state {
            State::Bar => {}
            State::Arm => unit.operate(Operation::Bar).expect("from S_BAR"),
            State::Eur => assert_eq!(unit.notify(Kind::EurekaDone), Notified::EurekaSeen),
        }
        while unit.next_kind().is_some() {}
        assert_eq!(unit.state(), state);
        unit
    }

    fn sent(unit: &mut BarrierUnit) -> Vec<Kind> {
        core::iter::from_fn(|| unit.next_kind()).collect()
    }

    #[test]
    fn operations_are_those_of_figure_6() {
        let (bar, arm, eur) = (State::Bar, State::Arm, State::Eur);
        let (eureka, arrive) = (Kind::Eureka, Kind::Arrive);
        let expected: [(State, Operation, State, &[Kind]); 6] = [
            (bar, Operation::Bar, arm, &[arrive]),
            (bar, Operation::Eur, eur, &[eureka]),
            (bar, Operation::EurB, arm, &[eureka, arrive]),
            (eur, Operation::Bar, arm, &[arrive]),
            (eur, Operation::Eur, eur, &[]),
            (eur, Operation::EurB, arm, &[arrive]),
        ];
        for (from, operation, to, messages) in expected {
            let mut unit = in_state(from);
            assert_eq!(unit.operate(operation), Ok(()));
            assert_eq!(unit.state(), to);
            assert_eq!(unit.has_pending(), !messages.is_empty());
            assert_eq!(sent(&mut unit), messages);
        }
        for operation in OPERATIONS {
            let mut unit = in_state(arm);
            let before = unit.clone();
            assert_eq!(unit.operate(operation), Err(OperationError::Armed));
            assert_eq!(unit, before);
        }
    }

    #[test]
    fn notifications_are_those_of_figure_6() {
        use Notified::{BarrierDone, EurekaKnown, EurekaSeen, Unexpected};
        let (bar, arm, eur) = (State::Bar, State::Arm, State::Eur);
        let expected = [
            (bar, Kind::EurekaDone, eur, EurekaSeen),
            (bar, Kind::BarrierDone, bar, Unexpected),
            (arm, Kind::EurekaDone, arm, EurekaKnown),
            (arm, Kind::BarrierDone, bar, BarrierDone),
            (eur, Kind::EurekaDone, eur, Unexpected),
            (eur, Kind::BarrierDone, eur, Unexpected),
            (bar, Kind::Arrive, bar, Unexpected),
            (arm, Kind::Eureka, arm, Unexpected),
        ];
        for (from, kind, to, what) in expected {
            let mut unit = in_state(from);
            assert_eq!(unit.notify(kind), what);
            assert_eq!(unit.state(), to);
            assert_eq!(unit.barriers(), u64::from(what == BarrierDone));
        }
    }

    #[test]
    fn a_processor_is_notified_of_its_own_eureka() {
        let mut unit = in_state(State::Bar);
        unit.operate(Operation::Eur).expect("from S_BAR");
        assert_eq!(unit.notify(Kind::EurekaDone), Notified::EurekaKnown);
        assert_eq!(unit.notify(Kind::EurekaDone), Notified::Unexpected);
        assert_eq!((unit.eurekas(), unit.state()), (1, State::Eur));
    }

    #[test]
    fn no_barrier_is_done_before_its_arrival_was_sent() {
        let mut unit = in_state(State::Bar);
        unit.operate(Operation::EurB).expect("from S_BAR");
        assert_eq!(unit.next_kind(), Some(Kind::Eureka));
        assert_eq!(unit.notify(Kind::BarrierDone), Notified::Unexpected);
        assert_eq!(unit.next_kind(), Some(Kind::Arrive));
        assert_eq!(unit.notify(Kind::BarrierDone), Notified::BarrierDone);
        assert!(unit.is_idle());
        unit.operate(Operation::EurB).expect("from S_BAR");
        unit.reset();
        assert!(unit.is_idle());
        assert_eq!(unit.barriers(), 1);
    }
}

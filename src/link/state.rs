//! State transitions of a link end, all checked here.

use super::event::LinkState;

/// Whether a link end may go from `from` to `to`.
const fn allowed(from: LinkState, to: LinkState) -> bool {
    use LinkState::{Active, Dead, Disabled, Refused, Training};
    match (from, to) {
        // A command takes a link down from any state, and only a command takes it up again.
        (Training | Refused | Active | Dead, Disabled) | (Disabled, Training) => true,
        // The expected peer may replace a wrong one.
        (Training, Refused) | (Refused, Training) => true,
        (Training, Active) => true,
        // The peer restarted, went down or fell silent.
        (Active, Training) => true,
        (Active, Dead) => true,
        // A new incarnation of the peer retrains all lanes.
        (Dead, Training) => true,
        _ => false,
    }
}

impl LinkState {
    /// Changes to `to`.
    ///
    /// # Panics
    /// If the protocol has no such transition. That would be a bug here: no peer can cause it.
    pub(crate) fn go(&mut self, to: Self) {
        assert!(
            allowed(*self, to),
            "invalid link state transition from {} to {}",
            self.name(),
            to.name()
        );
        *self = to;
    }

    /// The code of this state in training frames.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Disabled => 0,
            Self::Training => 1,
            Self::Refused => 2,
            Self::Active => 3,
            Self::Dead => 4,
        }
    }

    /// The state with this code; an unknown one is a peer still in training.
    pub(crate) const fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Disabled,
            2 => Self::Refused,
            3 => Self::Active,
            4 => Self::Dead,
            _ => Self::Training,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_training_leads_to_active_and_no_state_to_itself() {
        for from in LinkState::ALL {
            assert_eq!(
                allowed(from, LinkState::Active),
                from == LinkState::Training
            );
            assert!(!allowed(from, from));
            assert_eq!(LinkState::from_code(from.code()), from);
        }
    }

    #[test]
    #[should_panic(expected = "invalid link state transition from disabled to active")]
    fn a_step_that_is_not_there_panics() {
        LinkState::Disabled.go(LinkState::Active);
    }
}

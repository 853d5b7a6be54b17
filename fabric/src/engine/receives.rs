//! The receives that an endpoint keeps posted, and whether the NIC accepts them.

use super::core::Core;
use super::outbox::Outgoing;
use super::slots::RECEIVES;

/// Posted receives. Peers are assumed to post the same number; messages beyond theirs are rejected
/// and resent.
#[derive(Debug)]
pub struct Receives {
    count: usize,
    /// Slots of receives that the NIC rejected because other programs hold them all.
    rejected: Vec<usize>,
    /// Whether a check is in progress.
    is_checking: bool,
    /// Whether a receive was posted when the last check ended.
    had_any: bool,
}

impl Receives {
    /// Posts `count` receives.
    pub(super) fn new(core: &mut Core, count: usize) -> Self {
        debug_assert!(count <= RECEIVES, "each has a slot");
        for slot in 0..count {
            core.outbox.push(Outgoing::Receive(slot));
        }
        Self {
            count,
            rejected: Vec::new(),
            is_checking: false,
            had_any: false,
        }
    }

    /// Number of posted receives if the NIC accepts all.
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// Records that the NIC has rejected a receive.
    pub(super) fn reject(&mut self, slot: usize) {
        self.rejected.push(slot);
        debug_assert!(
            self.rejected.len() <= self.count,
            "a receive is rejected once"
        );
    }

    /// Posts rejected receives again, since other programs may have left; but not during a check,
    /// which would then miss them.
    pub(super) fn post_rejected(&mut self, core: &mut Core) {
        if self.is_checking {
            return;
        }
        for slot in self.rejected.drain(..) {
            core.outbox.push(Outgoing::Receive(slot));
        }
    }

    /// Posts rejected receives again, and begins to check whether the NIC takes any.
    pub(super) fn begin_check(&mut self, core: &mut Core) {
        self.post_rejected(core);
        self.is_checking = true;
        core.outbox.push(Outgoing::Check);
    }

    /// Handles the end of the check.
    pub(super) const fn end_check(&mut self) {
        self.is_checking = false;
        self.had_any = self.rejected.len() < self.count;
    }

    /// Whether a receive was posted at the end of the check; `None` until the NIC has ended it.
    pub(super) const fn has_any(&self) -> Option<bool> {
        match self.is_checking {
            true => None,
            false => Some(self.had_any),
        }
    }

    /// Checks the invariants between the fields.
    #[cfg(test)]
    pub(super) fn check(&self) {
        assert!(self.rejected.len() <= self.count, "each is rejected once");
    }
}

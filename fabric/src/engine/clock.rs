//! The engine's time: it counts checks for arrivals, not seconds. A machine that was suspended, or
//! a program that was computing, has not waited for its peers.

use std::time::Duration;

/// Shortest time between checks.
pub const TICK: Duration = Duration::from_millis(500);
/// Time limit for a peer that leaves probes unanswered. A path cut for seven seconds loses no peer;
/// that is several times what a lab's routers take to notice a cut (`give_up_ms`, two seconds) and
/// `phitwire manage --watch` takes to route around it (one).
pub const PATIENCE: Duration = Duration::from_secs(10);

/// The checks so far, and the number of checks that a silent peer is granted.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    checks: u32,
    /// Checks without a reply before a peer is given up; 0: never.
    patience: u32,
}

impl Default for Clock {
    fn default() -> Self {
        Self {
            checks: 0,
            patience: in_ticks(PATIENCE),
        }
    }
}

/// Converts a time to a number of checks, rounded down.
pub(super) const fn in_ticks(time: Duration) -> u32 {
    (time.as_millis() / TICK.as_millis()) as u32
}

impl Clock {
    /// Sets how long a peer may leave probes unanswered; zero: no limit.
    pub const fn wait_for(&mut self, patience: Duration) {
        self.patience = in_ticks(patience);
    }

    /// Counts a check.
    pub(super) const fn tick(&mut self) {
        self.checks = self.checks.saturating_add(1);
    }

    pub(super) const fn checks(&self) -> u32 {
        self.checks
    }

    /// Checks without a reply before a peer is given up; `None`: never.
    pub(super) const fn patience(&self) -> Option<u32> {
        match self.patience {
            0 => None,
            checks => Some(checks),
        }
    }
}

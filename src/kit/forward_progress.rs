//! Forward-progress timers of the output virtual channels of a chip.

use super::tiles::boxed;
use crate::node::MAX_PORTS;
use crate::time::{Duration, Time};

/// A countdown per output and virtual channel. It runs while something waits for the output and
/// restarts when something leaves.
#[derive(Debug)]
pub struct ForwardProgress<const VCS: usize> {
    /// Length of the countdown, in driver time.
    timeout: Duration,
    /// Driver nanoseconds per emulated nanosecond.
    dilation: u32,
    /// Outputs, per virtual channel, with a running countdown.
    running: [u64; VCS],
    any: bool,
    /// When the countdown of (virtual channel, output) began.
    since: Box<[[Time; MAX_PORTS]; VCS]>,
    /// Time of the next check, not later than the earliest expiry.
    next_check: Time,
}

impl<const VCS: usize> Default for ForwardProgress<VCS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const VCS: usize> ForwardProgress<VCS> {
    pub fn new() -> Self {
        Self {
            timeout: Duration::ZERO,
            dilation: 1,
            running: [0; VCS],
            any: false,
            since: boxed([Time::ZERO; MAX_PORTS]),
            next_check: Time::NEVER,
        }
    }

    /// Sets the driver nanoseconds per emulated nanosecond, at least 1. Set the timeout again
    /// afterwards.
    pub fn set_dilation(&mut self, dilation: u32) {
        self.dilation = dilation.max(1);
    }

    /// Sets the length of a countdown, in emulated time.
    pub fn set_timeout_ns(&mut self, ns: u64) {
        self.timeout = Duration::from_ns(ns).times(self.dilation.into());
        self.next_check = Time::ZERO;
    }

    /// When to call [`check`](Self::check) at the latest. May be earlier than the next expiry,
    /// never later.
    pub fn next_check(&self) -> Option<Time> {
        (self.any && self.next_check != Time::NEVER).then_some(self.next_check)
    }

    /// Updates the countdowns to `now`. For each virtual channel, `waiting` are the outputs that
    /// something waits for, and `moved` those that something left since the last call. Returns the
    /// outputs whose countdown expired; `None` if no check was due.
    pub fn check(
        &mut self,
        now: Time,
        waiting: [u64; VCS],
        moved: [u64; VCS],
    ) -> Option<[u64; VCS]> {
        let any = waiting.iter().any(|&outputs| outputs != 0);
        if !any && !self.any {
            return None;
        }
        self.any = any;
        for vc in 0..VCS {
            let mut restart = waiting[vc] & (moved[vc] | !self.running[vc]);
            if restart != 0 {
                self.next_check = self.next_check.min(now + self.timeout);
            }
            while restart != 0 {
                self.since[vc][restart.trailing_zeros() as usize] = now;
                restart &= restart - 1;
            }
            self.running[vc] = waiting[vc];
        }
        (now >= self.next_check).then(|| self.expire(now))
    }

    #[cold]
    fn expire(&mut self, now: Time) -> [u64; VCS] {
        let (mut next, mut expired) = (Time::NEVER, [0; VCS]);
        for (vc, expired) in expired.iter_mut().enumerate() {
            for output in (0..MAX_PORTS).filter(|output| self.running[vc] >> output & 1 != 0) {
                let expiry = self.since[vc][output] + self.timeout;
                if expiry > now {
                    next = next.min(expiry);
                } else {
                    *expired |= 1 << output;
                }
            }
            self.running[vc] &= !*expired;
        }
        self.next_check = next;
        self.any = next != Time::NEVER;
        expired
    }
}

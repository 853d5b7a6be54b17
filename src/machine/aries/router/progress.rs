//! Forward-progress timers of the output virtual channels (the chip has one of 36 bits each).

use super::pipeline::{TILE_VCS, TILES};
use super::tiles::boxed;
use crate::machine::aries::route::registers::VCS;
use crate::time::{Duration, Time};

/// The countdown of every output tile and virtual channel.
#[derive(Debug)]
pub(super) struct Progress {
    /// In the driver's time.
    timeout: Duration,
    /// Tiles, per virtual channel, whose countdown runs.
    running: [u64; VCS],
    any: bool,
    /// When the countdown of (virtual channel, tile) began.
    since: Box<[Time; TILE_VCS]>,
    /// Not later than the earliest expiry.
    next_check: Time,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self {
            timeout: Duration::ZERO,
            running: [0; VCS],
            any: false,
            since: boxed(Time::ZERO),
            next_check: Time::NEVER,
        }
    }

    pub(super) fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
        self.next_check = Time::ZERO;
    }

    pub(super) fn next_check(&self) -> Option<Time> {
        (self.any && self.next_check != Time::NEVER).then_some(self.next_check)
    }

    /// Brings the countdowns up to `now`. True when some have ended: those of `expired`.
    pub(super) fn check(
        &mut self,
        now: Time,
        waiting: [u64; VCS],
        moved: [u64; VCS],
        expired: &mut [u64; VCS],
    ) -> bool {
        let all = waiting.iter().fold(0, |all, tiles| all | tiles);
        if all == 0 && !self.any {
            return false;
        }
        self.any = all != 0;
        for vc in 0..VCS {
            let mut restart = waiting[vc] & (moved[vc] | !self.running[vc]);
            if restart != 0 {
                self.next_check = self.next_check.min(now + self.timeout);
            }
            while restart != 0 {
                let tile = restart.trailing_zeros() as usize;
                restart &= restart - 1;
                self.since[vc * TILES + tile] = now;
            }
            self.running[vc] = waiting[vc];
        }
        now >= self.next_check && self.expire(now, expired)
    }

    #[cold]
    fn expire(&mut self, now: Time, expired: &mut [u64; VCS]) -> bool {
        let mut next = Time::NEVER;
        for (vc, (expired, running)) in expired.iter_mut().zip(&mut self.running).enumerate() {
            for tile in (0..TILES).filter(|tile| *running >> tile & 1 != 0) {
                let expiry = self.since[vc * TILES + tile] + self.timeout;
                if expiry > now {
                    next = next.min(expiry);
                } else {
                    *expired |= 1 << tile;
                }
            }
            *running &= !*expired;
        }
        self.next_check = next;
        expired.iter().any(|&tiles| tiles != 0)
    }
}

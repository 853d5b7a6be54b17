use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};
use phitwire::time::Time;

/// Monotonic time since the process started, in the core's units.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
        }
    }

    pub fn now(&self) -> Time {
        Time::from_ns(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

/// Time from `now` until `at`, zero if that is past. Rounded up, so that a sleep of that length
/// never ends before `at`.
pub fn until(now: Time, at: Time) -> Duration {
    Duration::from_nanos(at.as_ps().saturating_sub(now.as_ps()).div_ceil(1000))
}

/// A number that identifies this incarnation of a process, never zero. A new number shows peers
/// that the process was restarted.
pub fn incarnation() -> u32 {
    let since_1970 = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    // In steps of 1/1024 s, the lower 32 bits repeat after seven weeks. The process id
    // distinguishes processes started within the same step.
    let steps = (since_1970.as_millis() as u64 * 1024 / 1000) as u32;
    steps
        .wrapping_mul(31)
        .wrapping_add(std::process::id())
        .max(1)
}

/// Nanoseconds since the machine was started, including suspend: a clock that is common to all
/// processes and never goes back. Zero if the kernel has none.
pub fn since_boot_ns() -> u64 {
    let since = clock_gettime(ClockId::CLOCK_BOOTTIME).map(Duration::from);
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_never_ends_early_and_never_is_negative() {
        assert_eq!(
            until(Time::from_ps(1000), Time::from_ps(2001)),
            Duration::from_nanos(2)
        );
        assert_eq!(
            until(Time::from_ps(2001), Time::from_ps(1000)),
            Duration::ZERO
        );
    }

    #[test]
    fn time_goes_forward_in_nanoseconds() {
        let clock = Clock::new();
        let first = clock.now();
        std::thread::sleep(Duration::from_millis(2));
        let span = clock.now().since(first).as_ns();
        assert!((2_000_000..2_000_000_000).contains(&span), "{span}");
    }
}

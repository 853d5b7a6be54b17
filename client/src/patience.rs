//! Time limits that count only while this process runs.

use std::fs;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use phitwire_framing::attendance::{AttendedClock, LONGEST_GAP_MS};

/// A time limit that ignores time during which the waiting process did not run.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    began: Instant,
    clock: AttendedClock,
    limit: Duration,
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Patience {
    /// Starts the limit now.
    pub fn new(limit: Duration) -> Self {
        Self {
            began: Instant::now(),
            clock: AttendedClock::new(LONGEST_GAP_MS * 1_000_000, 0),
            limit,
        }
    }

    /// Time left, never zero; `None` if the limit has passed. Call it after each check for input.
    /// `asleep` is the longest time that the process may have slept before.
    pub fn left(&mut self, asleep: Duration) -> Option<Duration> {
        let now = nanos(self.began.elapsed());
        let attended = Duration::from_nanos(self.clock.look(now, nanos(asleep)));
        self.limit
            .checked_sub(attended)
            .filter(|left| !left.is_zero())
    }
}

/// A note for error messages if the load exceeds 1.5 per processor; otherwise empty.
pub fn overload() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: Option<f64> = text.split(' ').next().and_then(|first| first.parse().ok());
    let processors = available_parallelism().map_or(1, usize::from);
    match load {
        Some(load) if load > 1.5 * processors as f64 => {
            format!("; the machine is overloaded (load {load} on {processors} processors)")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_and_a_standstill_is_no_part_of_it() {
        let mut patience = Patience::new(Duration::from_millis(200));
        // The test announces no sleep, so this one counts as a suspension.
        std::thread::sleep(Duration::from_millis(300));
        assert!(patience.left(Duration::ZERO) > Some(Duration::from_millis(140)));
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(patience.left(Duration::from_secs(10)), None);
    }
}

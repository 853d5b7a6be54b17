//! Rate limit of the event log: the first event of a kind is logged at once, then at most one line
//! per second.
//!
//! Otherwise a node that receives one bad packet after another, or has an interface that flaps,
//! would write a line for each.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

/// Shortest time between two lines of a kind.
pub const INTERVAL: Duration = Duration::from_secs(1);

/// Events of one kind since its last log line.
#[derive(Debug)]
struct Since<E> {
    written: Instant,
    more: u64,
    last: Option<E>,
}

/// Events of type `E` by kind `K`. The number of kinds bounds the memory used.
#[derive(Debug)]
pub struct Throttle<K, E> {
    kinds: HashMap<K, Since<E>>,
    /// Time before which no line is due.
    next: Option<Instant>,
}

impl<K: Eq + Hash, E> Throttle<K, E> {
    pub fn new() -> Self {
        Self {
            kinds: HashMap::new(),
            next: None,
        }
    }

    /// Passes `event` to `write` if it is the first of its kind within a second, otherwise stores
    /// it.
    pub fn note(&mut self, now: Instant, kind: K, event: E, write: impl FnOnce(&E, u64)) {
        let next = self.next.get_or_insert(now + INTERVAL);
        *next = (*next).min(now + INTERVAL);
        if let Some(since) = self.kinds.get_mut(&kind) {
            since.more += 1;
            since.last = Some(event);
            return;
        }
        write(&event, 1);
        let since = Since {
            written: now,
            more: 0,
            last: None,
        };
        self.kinds.insert(kind, since);
    }

    /// Passes events that have waited for a second to `write`: the last event of each kind, and
    /// their number.
    pub fn flush(&mut self, now: Instant, write: impl FnMut(&E, u64)) {
        if self.next.is_some_and(|next| now >= next) {
            self.write_older(now, INTERVAL, write);
        }
    }

    /// Passes all waiting events to `write`, at the end of the process.
    pub fn flush_all(&mut self, now: Instant, write: impl FnMut(&E, u64)) {
        self.write_older(now, Duration::ZERO, write);
    }

    /// The next time at which [`flush`](Self::flush) has work; `None` if nothing waits.
    pub fn next_flush(&self) -> Option<Instant> {
        self.next
    }

    fn write_older(&mut self, now: Instant, than: Duration, mut write: impl FnMut(&E, u64)) {
        self.kinds.retain(|_, since| {
            if now.saturating_duration_since(since.written) < than {
                return true;
            }
            let Some(last) = since.last.take() else {
                // After a quiet second, the next event counts as the first again.
                return false;
            };
            write(&last, since.more);
            since.more = 0;
            since.written = now;
            true
        });
        self.next = self.kinds.values().map(|s| s.written + INTERVAL).min();
    }
}

impl<K: Eq + Hash, E> Default for Throttle<K, E> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use phitwire::device::{DeviceEvent, EventKind};
    use phitwire::node::PortId;

    /// A router's event for a packet without a route.
    #[derive(Debug, PartialEq)]
    struct Unroutable(u16);

    fn bad(port: PortId, destination: u16) -> DeviceEvent {
        DeviceEvent::own(Some(port), Unroutable(destination))
    }

    type Log = Throttle<EventKind, DeviceEvent>;

    fn note(
        log: &mut Log,
        now: Instant,
        event: DeviceEvent,
        write: impl FnOnce(&DeviceEvent, u64),
    ) {
        log.note(now, event.kind(), event, write);
    }

    #[test]
    fn a_storm_of_one_kind_is_a_line_per_second_and_each_port_has_its_own() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let mut log = Log::new();
        let mut lines = Vec::new();
        for ms in 0..2500 {
            log.flush(at(ms), |event, count| {
                lines.push((ms, event.clone(), count))
            });
            note(&mut log, at(ms), bad(3, ms as u16), |event, count| {
                lines.push((ms, event.clone(), count));
            });
        }
        note(&mut log, at(2500), bad(4, 7), |event, count| {
            lines.push((2500, event.clone(), count));
        });
        let wanted = [
            (0, bad(3, 0), 1),
            (1000, bad(3, 999), 999),
            (2000, bad(3, 1999), 1000),
            (2500, bad(4, 7), 1),
        ];
        assert_eq!(lines, wanted);
        assert_eq!(log.next_flush(), Some(at(3000)));
        lines.clear();
        log.flush_all(at(2600), |event, count| {
            lines.push((2600, event.clone(), count))
        });
        assert_eq!(
            lines,
            [(2600, bad(3, 2499), 500)],
            "the last notices are flushed"
        );
    }

    #[test]
    fn after_a_quiet_second_the_next_one_is_written_at_once() {
        let start = Instant::now();
        let mut log = Log::new();
        let mut lines = 0;
        for second in [0, 2, 4] {
            let now = start + Duration::from_secs(second);
            log.flush(now, |_, _| panic!("a notice is pending"));
            note(&mut log, now, bad(0, 0), |_, _| lines += 1);
        }
        assert_eq!(lines, 3);
        log.flush(start + Duration::from_secs(9), |_, _| {
            panic!("a notice is pending")
        });
        assert_eq!(log.next_flush(), None, "no wake-up is scheduled");
    }
}

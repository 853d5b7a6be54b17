//! Events of a node in the log, as many lines of a kind and port as [`Throttle`] lets through.

use std::time::Instant;

use phitwire::device::{DeviceEvent, EventKind};

use crate::throttle::Throttle;

/// Events of a node on their way to the log. There are as many kinds as the node's events have
/// variants, for each port: that bounds what is kept here.
#[derive(Debug)]
pub struct EventLog {
    throttle: Throttle<EventKind, DeviceEvent>,
}

impl EventLog {
    /// Nothing has happened.
    pub fn new() -> Self {
        Self {
            throttle: Throttle::new(),
        }
    }

    /// See [`Throttle::note`].
    pub fn note(
        &mut self,
        now: Instant,
        event: DeviceEvent,
        write: impl FnOnce(&DeviceEvent, u64),
    ) {
        self.throttle.note(now, event.kind(), event, write);
    }

    /// See [`Throttle::flush`].
    pub fn flush(&mut self, now: Instant, write: impl FnMut(&DeviceEvent, u64)) {
        self.throttle.flush(now, write);
    }

    /// See [`Throttle::flush_all`].
    pub fn flush_all(&mut self, now: Instant, write: impl FnMut(&DeviceEvent, u64)) {
        self.throttle.flush_all(now, write);
    }

    /// See [`Throttle::next_flush`].
    pub fn next_flush(&self) -> Option<Instant> {
        self.throttle.next_flush()
    }
}

impl Default for EventLog {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use phitwire::node::PortId;

    /// What a router might say of a packet that it knows no way for.
    #[derive(Debug, PartialEq)]
    struct Unroutable(u16);

    fn bad(port: PortId, destination: u16) -> DeviceEvent {
        DeviceEvent::own(Some(port), Unroutable(destination))
    }

    #[test]
    fn a_storm_of_one_kind_is_a_line_per_second_and_each_port_has_its_own() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let mut log = EventLog::new();
        let mut lines = Vec::new();
        for ms in 0..2500 {
            log.flush(at(ms), |event, count| {
                lines.push((ms, event.clone(), count))
            });
            log.note(at(ms), bad(3, ms as u16), |event, count| {
                lines.push((ms, event.clone(), count));
            });
        }
        log.note(at(2500), bad(4, 7), |event, count| {
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
            "nothing is forgotten at the end"
        );
    }

    #[test]
    fn after_a_quiet_second_the_next_one_is_written_at_once() {
        let start = Instant::now();
        let mut log = EventLog::new();
        let mut lines = 0;
        for second in [0, 2, 4] {
            let now = start + Duration::from_secs(second);
            log.flush(now, |_, _| panic!("nothing waits"));
            log.note(now, bad(0, 0), |_, _| lines += 1);
        }
        assert_eq!(lines, 3);
        log.flush(start + Duration::from_secs(9), |_, _| {
            panic!("nothing waits")
        });
        assert_eq!(log.next_flush(), None, "nothing to wake up for");
    }
}

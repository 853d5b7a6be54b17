//! Events in the log: the first of a kind and port at once, then one line per second at most.
//!
//! Without that, a node that is sent one bad packet after another would write a line for each.

use std::collections::HashMap;
use std::fmt::Debug;
use std::mem::{Discriminant, discriminant};
use std::time::{Duration, Instant};

use phitwire::link::LinkEvent;
use phitwire::node::PortId;

use crate::live_node::LiveNode;

/// Between two lines about the same.
const INTERVAL: Duration = Duration::from_secs(1);

type Kind<E> = (
    Discriminant<E>,
    Option<Discriminant<LinkEvent>>,
    Option<PortId>,
);

/// What happened of one kind since it was last written.
#[derive(Debug)]
struct Since<E> {
    written: Instant,
    more: u64,
    last: Option<E>,
}

/// Events of a node on their way to the log. There are as many kinds as the node's events have
/// variants, for each port: that bounds what is kept here.
#[derive(Debug)]
pub struct EventLog<N: LiveNode> {
    kinds: HashMap<Kind<N::Event>, Since<N::Event>>,
    /// No line is due before this.
    next: Option<Instant>,
}

impl<N: LiveNode> EventLog<N>
where
    N::Event: Debug,
{
    /// Nothing has happened.
    pub fn new() -> Self {
        Self {
            kinds: HashMap::new(),
            next: None,
        }
    }

    /// Hands `event` to `write` if it is the first of its kind within a second, and remembers it
    /// otherwise.
    pub fn note(&mut self, now: Instant, event: N::Event, write: impl FnOnce(&N::Event, u64)) {
        let link = N::link_event(&event).map(|(_, event)| discriminant(event));
        let kind = (discriminant(&event), link, N::event_port(&event));
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

    /// Hands to `write` what has waited for a second: the last event of a kind, and how many there
    /// were of it.
    pub fn flush(&mut self, now: Instant, write: impl FnMut(&N::Event, u64)) {
        if self.next.is_some_and(|next| now >= next) {
            self.write_older(now, INTERVAL, write);
        }
    }

    /// Hands all that waits to `write`: there will be no later.
    pub fn flush_all(&mut self, now: Instant, write: impl FnMut(&N::Event, u64)) {
        self.write_older(now, Duration::ZERO, write);
    }

    /// When [`flush`](Self::flush) has something to do, if ever.
    pub fn next_flush(&self) -> Option<Instant> {
        self.next
    }

    fn write_older(&mut self, now: Instant, than: Duration, mut write: impl FnMut(&N::Event, u64)) {
        self.kinds.retain(|_, since| {
            if now.saturating_duration_since(since.written) < than {
                return true;
            }
            let Some(last) = since.last.take() else {
                // Quiet for a second: the next one is a first one again.
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

impl<N: LiveNode> Default for EventLog<N>
where
    N::Event: Debug,
{
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use phitwire::router::yarc::{RouterEvent, Yarc};

    fn bad(port: PortId, destination: u16) -> RouterEvent {
        RouterEvent::Unroutable { port, destination }
    }

    #[test]
    fn a_storm_of_one_kind_is_a_line_per_second_and_each_port_has_its_own() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let mut log = EventLog::<Yarc>::new();
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
        let mut log = EventLog::<Yarc>::new();
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

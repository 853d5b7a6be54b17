//! Events that wait to be fetched.

use std::collections::VecDeque;

/// The latest events, up to a fixed number, until somebody fetches them: the oldest gives way to a
/// new one.
#[derive(Clone, Debug)]
pub struct Events<E> {
    queue: VecDeque<E>,
    most: usize,
}

impl<E> Events<E> {
    /// Room for up to `most` events.
    pub const fn new(most: usize) -> Self {
        Self {
            queue: VecDeque::new(),
            most,
        }
    }

    /// Adds an event. Returns the number of events that were lost by that: 0 or 1.
    #[must_use = "lost events are counted"]
    pub fn push(&mut self, event: E) -> u64 {
        let lost = self.queue.len() == self.most && self.queue.pop_front().is_some();
        self.queue.push_back(event);
        lost.into()
    }

    /// The next event, oldest first.
    #[inline]
    pub fn pop(&mut self) -> Option<E> {
        self.queue.pop_front()
    }
}

/// How events of one kind wait, so that no burst of one kind keeps another from being seen.
pub(crate) enum Wait {
    /// The first of its kind (below [`KINDS`]) and port: of packets that go nowhere, say, of which
    /// counters have the rest.
    First(usize, u8),
    /// Each, as long as there is room; what finds none is lost and counted.
    Each,
    /// The last word of each: what is said again takes the place of what was said.
    Last,
}

/// Kinds of which only the first waits, at most.
pub(crate) const KINDS: usize = 3;

/// An event of a router for its maintenance system.
pub(crate) trait Interrupt: PartialEq {
    /// How it waits.
    fn wait(&self) -> Wait;
}

/// The interrupts of a router that wait to be fetched. Their number is bounded.
#[derive(Debug)]
pub(crate) struct Interrupts<E> {
    queue: VecDeque<E>,
    /// Ports, per kind, of which the first waits.
    first: [u64; KINDS],
    /// Those of [`Wait::Each`] that wait.
    each: usize,
    /// Those of [`Wait::Each`] that found no room.
    pub(crate) lost: u64,
}

impl<E> Default for Interrupts<E> {
    fn default() -> Self {
        Self {
            queue: VecDeque::new(),
            first: [0; KINDS],
            each: 0,
            lost: 0,
        }
    }
}

impl<E: Interrupt> Interrupts<E> {
    /// Events of [`Wait::Each`] that have room.
    pub(crate) const ROOM: usize = 256;

    /// Adds an event, unless it says nothing new or has no room.
    #[cold]
    pub(crate) fn push(&mut self, event: E) {
        match event.wait() {
            Wait::First(kind, port) if self.first[kind] >> (port % 64) & 1 != 0 => return,
            Wait::First(kind, port) => self.first[kind] |= 1 << (port % 64),
            Wait::Each if self.each == Self::ROOM => return self.lost += 1,
            Wait::Each => self.each += 1,
            Wait::Last => self.queue.retain(|waiting| *waiting != event),
        }
        self.queue.push_back(event);
    }

    /// The oldest event.
    pub(crate) fn pop(&mut self) -> Option<E> {
        let event = self.queue.pop_front()?;
        match event.wait() {
            Wait::First(kind, port) => self.first[kind] &= !(1 << (port % 64)),
            Wait::Each => self.each -= 1,
            Wait::Last => {}
        }
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_gives_way() {
        let mut events = Events::new(2);
        let lost: Vec<_> = (0..4).map(|event| events.push(event)).collect();
        assert_eq!(lost, [0, 0, 1, 1]);
        assert_eq!(
            [events.pop(), events.pop(), events.pop()],
            [Some(2), Some(3), None]
        );
    }
}

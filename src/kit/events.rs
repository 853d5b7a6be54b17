//! Queues of events.

use std::collections::VecDeque;

use crate::node::MAX_PORTS;

/// Recent events not yet fetched, up to a fixed number: a new event displaces the oldest.
#[derive(Clone, Debug)]
pub struct Events<E> {
    queue: VecDeque<E>,
    most: usize,
}

impl<E> Events<E> {
    /// A queue for up to `most` events.
    pub const fn new(most: usize) -> Self {
        Self {
            queue: VecDeque::new(),
            most,
        }
    }

    /// Adds an event. Returns 1 if that displaced another, otherwise 0.
    #[must_use = "dropped events must be counted"]
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

/// Queueing rule of an event, which keeps a burst of one kind from displacing others.
pub enum QueueRule {
    /// Keep only the first event of its kind (below [`KINDS`]) and port, such as an unroutable
    /// packet; counters count the rest.
    First(usize, u8),
    /// Keep every event while there is room; count the lost ones.
    Each,
    /// Keep the last of equal events: a repeated one replaces the queued one.
    Last,
}

/// Number of kinds of [`QueueRule::First`].
pub(crate) const KINDS: usize = 3;

/// An event of a router for its maintenance system.
pub trait Interrupt: PartialEq {
    /// The queueing rule of the event.
    fn queue_rule(&self) -> QueueRule;
}

/// A bounded queue of a router's interrupts.
#[derive(Debug)]
pub struct Interrupts<E> {
    queue: VecDeque<E>,
    /// Ports, per kind, whose first event is queued.
    first: [u64; KINDS],
    /// Events of [`QueueRule::Each`] in the queue.
    each: usize,
    /// Events of [`QueueRule::Each`] lost for lack of room.
    pub lost: u64,
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
    /// Maximum number of queued events of [`QueueRule::Each`].
    pub const ROOM: usize = 256;

    /// Queues an event, unless it is redundant or the queue is full.
    ///
    /// # Panics
    /// If a port is not below [`MAX_PORTS`].
    #[cold]
    pub fn push(&mut self, event: E) {
        if let QueueRule::First(_, port) = event.queue_rule() {
            assert!(usize::from(port) < MAX_PORTS, "a chip has no port {port}");
        }
        match event.queue_rule() {
            QueueRule::First(kind, port) if self.first[kind] >> port & 1 != 0 => return,
            QueueRule::First(kind, port) => self.first[kind] |= 1 << port,
            QueueRule::Each if self.each == Self::ROOM => return self.lost += 1,
            QueueRule::Each => self.each += 1,
            QueueRule::Last => self.queue.retain(|waiting| *waiting != event),
        }
        self.queue.push_back(event);
    }

    /// The oldest event.
    pub fn pop(&mut self) -> Option<E> {
        let event = self.queue.pop_front()?;
        match event.queue_rule() {
            QueueRule::First(kind, port) => self.first[kind] &= !(1 << port),
            QueueRule::Each => self.each -= 1,
            QueueRule::Last => {}
        }
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_event_is_dropped() {
        let mut events = Events::new(2);
        let lost: Vec<_> = (0..4).map(|event| events.push(event)).collect();
        assert_eq!(lost, [0, 0, 1, 1]);
        assert_eq!(
            [events.pop(), events.pop(), events.pop()],
            [Some(2), Some(3), None]
        );
    }
}

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

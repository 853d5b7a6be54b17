//! Event queues. The provider has no events; programs may write their own.

use std::collections::VecDeque;

use crate::flags::FI_ETOOSMALL;

/// Maximum number of events in a queue that requests no size.
const USUAL_ROOM: usize = 256;

/// A queue of events: the number of each, and its bytes.
#[derive(Debug)]
pub struct EventQueue {
    events: VecDeque<(u32, Vec<u8>)>,
    room: usize,
}

impl EventQueue {
    /// A queue for `size` events; 0: the usual number.
    pub fn new(size: usize) -> Self {
        let room = match size {
            0 => USUAL_ROOM,
            size => size,
        };
        let events = VecDeque::new();
        Self { events, room }
    }

    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Adds an event.
    ///
    /// # Errors
    /// `EAGAIN` if the queue is full.
    pub fn write(&mut self, event: u32, bytes: &[u8]) -> Result<(), i32> {
        if self.events.len() >= self.room {
            return Err(libc::EAGAIN);
        }
        self.events.push_back((event, bytes.to_vec()));
        Ok(())
    }

    /// Returns the oldest event, and removes it unless `peek` is set.
    ///
    /// # Errors
    /// `EAGAIN` if there is none; `FI_ETOOSMALL` if it has more than `most` bytes.
    pub fn read(&mut self, most: usize, peek: bool) -> Result<(u32, Vec<u8>), i32> {
        let first = self.events.front().ok_or(libc::EAGAIN)?;
        if first.1.len() > most {
            return Err(FI_ETOOSMALL);
        }
        let taken = match peek {
            true => self.events.front().cloned(),
            false => self.events.pop_front(),
        };
        taken.ok_or(libc::EAGAIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_in_order_and_peeks_leave_them() {
        let mut queue = EventQueue::new(2);
        assert_eq!(queue.read(8, false), Err(libc::EAGAIN));
        assert_eq!(queue.write(1, b"one"), Ok(()));
        assert_eq!(queue.write(2, b"two"), Ok(()));
        assert_eq!(queue.write(3, b"three"), Err(libc::EAGAIN), "it is full");
        assert_eq!(queue.read(2, false), Err(FI_ETOOSMALL));
        assert_eq!(queue.read(3, true), Ok((1, b"one".to_vec())));
        assert_eq!(queue.read(3, false), Ok((1, b"one".to_vec())));
        assert_eq!(queue.read(8, false), Ok((2, b"two".to_vec())));
        assert!(queue.is_empty());
    }
}

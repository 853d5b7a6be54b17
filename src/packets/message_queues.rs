//! Message queues at the receiving NIC.
//!
//! A message of 64 bytes goes to the end of one of many queues, each with a control word of tail,
//! limit and interrupt threshold (lecture notes on Scott's paper of ASPLOS 1996; the exact function
//! of the three was not available). Here they are not addresses but count messages since the queue
//! was opened. A message that finds the tail at the limit is rejected; any other advances the tail
//! by one. Taking a message out advances the limit. A tail that reaches the threshold raises one
//! interrupt.

use std::collections::VecDeque;

use super::transfer::MESSAGE_BYTES;

/// Maximum number of queues, numbered from 0.
pub const MAX_QUEUES: u8 = 64;
/// Largest capacity of a queue in messages.
pub const MAX_ROOM: u32 = 1 << 16;
/// A threshold that no queue reaches.
pub const NEVER: u64 = u64::MAX;

/// State of a queue, in messages since it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlWord {
    /// Messages that have arrived.
    pub tail: u64,
    /// Tail at which the queue is full.
    pub limit: u64,
    /// Tail at which it interrupts.
    pub threshold: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Number of the sending NIC.
    pub from: u16,
    pub data: [u8; MESSAGE_BYTES],
}

/// Why a queue was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueueError {
    #[error("queue {0} does not exist: numbers are below {MAX_QUEUES}")]
    Number(u8),
    #[error("queue {0} is already open")]
    Open(u8),
    #[error("a queue of {0} messages: expected 1 to {MAX_ROOM}")]
    Room(u32),
}

#[derive(Clone, Debug)]
struct Queue {
    control: ControlWord,
    /// Oldest first; the limit bounds them.
    waiting: VecDeque<Message>,
}

/// The queues of a NIC, all closed at first.
///
/// Call order: [`open`](Self::open), then [`poll`](Self::poll) as messages arrive; to avoid
/// constant polling, [`arm`](Self::arm) and [`take_interrupts`](Self::take_interrupts).
#[derive(Clone, Debug, Default)]
pub struct MessageQueues {
    queues: Vec<Option<Queue>>,
    /// Queues that have interrupted, by bit.
    interrupts: u64,
}

impl MessageQueues {
    fn get_mut(&mut self, number: u64) -> Option<&mut Queue> {
        let number = usize::try_from(number).ok()?;
        self.queues.get_mut(number)?.as_mut()
    }

    /// Opens queue `number` with room for `room` messages.
    ///
    /// # Errors
    /// See [`QueueError`].
    pub fn open(&mut self, number: u8, room: u32) -> Result<(), QueueError> {
        if number >= MAX_QUEUES {
            return Err(QueueError::Number(number));
        }
        if !(1..=MAX_ROOM).contains(&room) {
            return Err(QueueError::Room(room));
        }
        if self.get_mut(number.into()).is_some() {
            return Err(QueueError::Open(number));
        }
        let index = usize::from(number);
        if self.queues.len() <= index {
            self.queues.resize(index + 1, None);
        }
        let control = ControlWord {
            tail: 0,
            limit: room.into(),
            threshold: NEVER,
        };
        self.queues[index] = Some(Queue {
            control,
            waiting: VecDeque::new(),
        });
        Ok(())
    }

    /// The control word of queue `number`, if it is open.
    pub fn control(&self, number: u8) -> Option<ControlWord> {
        let queue = self.queues.get(usize::from(number))?.as_ref()?;
        Some(queue.control)
    }

    /// Makes queue `number` interrupt when its tail reaches `threshold`; immediately if it already
    /// has. Returns false if the queue is not open.
    pub fn arm(&mut self, number: u8, threshold: u64) -> bool {
        let Some(queue) = self.get_mut(number.into()) else {
            return false;
        };
        queue.control.threshold = threshold;
        self.interrupts |= u64::from(queue.control.tail >= threshold) << number;
        true
    }

    /// Queues that have interrupted since the last call, by bit.
    pub fn take_interrupts(&mut self) -> u64 {
        core::mem::take(&mut self.interrupts)
    }

    /// Messages waiting in all queues.
    pub fn waiting(&self) -> u64 {
        let queues = self.queues.iter().flatten();
        queues.map(|queue| queue.waiting.len() as u64).sum()
    }

    /// Takes the oldest message of queue `number`, freeing its slot.
    pub fn poll(&mut self, number: u8) -> Option<Message> {
        let queue = self.get_mut(number.into())?;
        let message = queue.waiting.pop_front()?;
        debug_assert!(
            queue.control.tail > queue.waiting.len() as u64,
            "the message arrived"
        );
        queue.control.limit += 1;
        Some(message)
    }

    /// Appends a message to queue `number`; false if it is full or not open.
    pub(super) fn deliver(&mut self, number: u64, message: Message) -> bool {
        let Some(queue) = self.get_mut(number) else {
            return false;
        };
        let ControlWord {
            tail,
            limit,
            threshold,
        } = &mut queue.control;
        debug_assert!(
            *tail <= *limit && *limit - *tail <= u64::from(MAX_ROOM),
            "the limit bounds the tail, and the room the limit"
        );
        if tail == limit {
            return false;
        }
        *tail += 1;
        let interrupts = tail == threshold;
        queue.waiting.push_back(message);
        debug_assert!(queue.waiting.len() as u64 <= u64::from(MAX_ROOM));
        self.interrupts |= u64::from(interrupts) << number;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(number: u8) -> Message {
        Message {
            from: 3,
            data: [number; MESSAGE_BYTES],
        }
    }

    #[test]
    fn a_full_queue_refuses_until_one_is_taken() {
        let mut queues = MessageQueues::default();
        assert!(!queues.deliver(2, message(0)), "the queue is not open");
        queues.open(2, 2).unwrap();
        for (number, taken) in [(0, true), (1, true), (2, false)] {
            assert_eq!(queues.deliver(2, message(number)), taken);
        }
        assert_eq!(queues.poll(2), Some(message(0)));
        assert!(queues.deliver(2, message(3)));
        assert!(!queues.deliver(2, message(4)));
        let control = ControlWord {
            tail: 3,
            limit: 3,
            threshold: NEVER,
        };
        assert_eq!((queues.control(2), queues.waiting()), (Some(control), 2));
        assert_eq!(queues.poll(2), Some(message(1)));
        assert_eq!(queues.poll(2), Some(message(3)));
        assert_eq!(queues.poll(2), None);
        assert_eq!(queues.poll(0), None);
    }

    #[test]
    fn a_threshold_interrupts_once_also_if_it_has_been_passed() {
        let mut queues = MessageQueues::default();
        queues.open(63, 10).unwrap();
        assert!(queues.arm(63, 2) && !queues.arm(1, 2));
        assert!(queues.deliver(63, message(0)));
        assert_eq!(queues.take_interrupts(), 0);
        assert!(queues.deliver(63, message(1)));
        assert!(queues.deliver(63, message(2)));
        assert_eq!(queues.take_interrupts(), 1 << 63);
        assert_eq!(queues.take_interrupts(), 0);
        assert!(queues.arm(63, 3));
        assert_eq!(queues.take_interrupts(), 1 << 63);
    }

    #[test]
    fn invalid_queues_are_not_opened() {
        let mut queues = MessageQueues::default();
        assert_eq!(queues.open(64, 1), Err(QueueError::Number(64)));
        assert_eq!(queues.open(0, 0), Err(QueueError::Room(0)));
        let most = MAX_ROOM + 1;
        assert_eq!(queues.open(0, most), Err(QueueError::Room(most)));
        assert_eq!(queues.open(0, 1), Ok(()));
        assert_eq!(queues.open(0, 1), Err(QueueError::Open(0)));
        for number in [1, 64, u64::MAX] {
            assert!(!queues.deliver(number, message(0)), "{number}");
        }
    }
}

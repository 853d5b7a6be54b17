//! A message to a neighbour, repeated until it is acknowledged or patience ends.

use super::message::Message;
use phitwire::time::{Duration, Time};

/// First wait after a neighbour was not ready. The wait doubles up to the longest.
const FIRST_WAIT: Duration = Duration::from_us(20);
const LONGEST_WAIT: Duration = Duration::from_ms(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Due(Time),
    /// Sent as this request, which is unanswered.
    Sent(u32),
}

/// A message to one neighbour. A second is never needed: a neighbour that has joined the next
/// operation has the previous result.
#[derive(Clone, Debug)]
pub(super) struct Outbox {
    pub message: Message,
    posted: Time,
    state: State,
    wait: Duration,
    /// Whether the neighbour reported last that it is not ready.
    pub not_ready: bool,
}

impl Outbox {
    pub(super) fn new(now: Time, message: Message) -> Self {
        Self {
            message,
            posted: now,
            state: State::Due(now),
            wait: FIRST_WAIT,
            not_ready: false,
        }
    }

    pub(super) fn due(&self) -> Option<Time> {
        match self.state {
            State::Due(at) => Some(at),
            State::Sent(_) => None,
        }
    }

    pub(super) fn sent(&mut self, number: u32) {
        self.state = State::Sent(number);
    }

    pub(super) fn is_sent_as(&self, number: u32) -> bool {
        self.state == State::Sent(number)
    }

    /// Schedules a repetition: at once, or after a wait if the neighbour was not ready. Returns
    /// false once patience has ended.
    pub(super) fn repeat(&mut self, now: Time, not_ready: bool, patience: Duration) -> bool {
        self.not_ready = not_ready;
        let mut at = now;
        if not_ready {
            at += self.wait;
            self.wait = self.wait.times(2).min(LONGEST_WAIT);
        }
        self.state = State::Due(at);
        now < self.posted + patience
    }
}

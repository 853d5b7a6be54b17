//! Packets that may wait for more than there is of them.

use super::buffer::FlitBuffer;
use crate::format::VCS;
use phitwire::time::Time;

/// A header with three wrong bits is read as one with a single one, and may then say a length that
/// is not its packet's. Where that is too long, the next header on its channel ends the packet; and
/// where none comes, as what would send it waits for this one, only time does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Doubts {
    /// By channel: where what has come of the packet ended when it was looked at last, and when it
    /// is given up.
    of: [(u64, Time); VCS],
    deadline: Time,
}

impl Doubts {
    /// No packet is doubted.
    pub const NONE: Self = Self {
        of: [(0, Time::NEVER); VCS],
        deadline: Time::NEVER,
    };

    /// Looks at packets of which something may have come: they have until `until` for the rest.
    #[cold]
    pub fn look(&mut self, buffer: &FlitBuffer, until: Time) {
        for (vc, (ended, given_up)) in self.of.iter_mut().enumerate() {
            match buffer.doubtful(vc) {
                Some(end) if end == *ended => {}
                Some(end) => (*ended, *given_up) = (end, until),
                None => (*ended, *given_up) = (0, Time::NEVER),
            }
        }
        self.set_deadline();
    }

    fn set_deadline(&mut self) {
        let all = self.of.iter().map(|(_, given_up)| *given_up);
        self.deadline = all.min().unwrap_or(Time::NEVER);
    }

    /// When the first is given up.
    #[inline]
    pub fn deadline(&self) -> Time {
        self.deadline
    }

    /// The channels of packets that are given up now.
    #[inline]
    pub fn due(&mut self, now: Time) -> impl Iterator<Item = usize> + use<> {
        let due = if self.deadline <= now {
            self.take_due(now)
        } else {
            0
        };
        (0..VCS).filter(move |vc| due >> vc & 1 != 0)
    }

    #[cold]
    fn take_due(&mut self, now: Time) -> u8 {
        let mut due = 0;
        for (vc, doubt) in self.of.iter_mut().enumerate() {
            if doubt.1 <= now {
                due |= 1 << vc;
                *doubt = (0, Time::NEVER);
            }
        }
        self.set_deadline();
        due
    }
}

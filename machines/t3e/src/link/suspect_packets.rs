//! Packets that may wait for flits that do not exist.

use phitwire_framing::t3e::flit::VCS;

use super::buffer::FlitBuffer;
use phitwire::time::Time;

/// A header with three wrong bits is read as one with a single wrong bit, and may then give a wrong
/// length. If it is too long, the next header on its channel ends the packet; if none arrives,
/// because its sender waits for this packet, only a timeout ends it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SuspectPackets {
    /// By channel: end position of the packet when last checked, and when to give it up.
    of: [(u64, Time); VCS],
    deadline: Time,
}

impl SuspectPackets {
    pub const NONE: Self = Self {
        of: [(0, Time::NEVER); VCS],
        deadline: Time::NEVER,
    };

    /// Checks packets that may have grown: the rest must arrive by `until`.
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

    /// Time at which the first packet is given up.
    #[inline]
    pub fn deadline(&self) -> Time {
        self.deadline
    }

    /// The channels of packets to give up now.
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

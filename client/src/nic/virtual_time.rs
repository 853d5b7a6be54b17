//! Waits of programs in virtual labs.

use std::time::Duration;

use phitwire_framing::door::Completion;
use phitwire_framing::door::segment::WaitKind;

use super::{Error, Nic};
use crate::turns::VirtualClock;

impl Nic {
    /// Whether the NIC runs in virtual time: time stands still while the program computes, and
    /// waits take virtual time.
    pub const fn is_virtual(&self) -> bool {
        self.turns.is_some()
    }

    /// The virtual time since the start of the lab; `None` if the lab is not virtual.
    pub fn virtual_time(&self) -> Option<Duration> {
        self.turns.as_ref().map(|turns| turns.now())
    }

    /// The clock of a virtual lab, which outlives the NIC.
    pub fn virtual_clock(&self) -> Option<VirtualClock> {
        self.turns.as_ref().map(|turns| turns.clock())
    }

    /// In a virtual lab: how many programs have attached to this NIC, this one included.
    pub fn attachment(&self) -> Option<u64> {
        self.turns.as_ref().map(|turns| turns.attachment())
    }

    /// In a virtual lab, waits until there is a completion at any NIC that this thread uses, or
    /// `most` has passed. Otherwise returns at once.
    ///
    /// # Errors
    /// As for [`wait`](Self::wait).
    pub fn pause_polling(&mut self, most: Duration) -> Result<(), Error> {
        self.rest(WaitKind::Poll, most)
    }

    /// Like [`pause_polling`](Self::pause_polling), but the wait also ends when another program has
    /// written to this one's memory, and only for what arrives from now on: for programs that poll a
    /// [`word`](Self::word) and may leave completions untaken.
    ///
    /// # Errors
    /// As for [`wait`](Self::wait).
    pub fn pause(&mut self, most: Duration) -> Result<(), Error> {
        self.rest(WaitKind::Arrival, most)
    }

    /// In a virtual lab, waits until `time` has passed. Otherwise returns at once.
    ///
    /// # Errors
    /// As for [`wait`](Self::wait).
    pub fn sleep_virtually(&mut self, time: Duration) -> Result<(), Error> {
        self.rest(WaitKind::Sleep, time)
    }

    pub(super) fn wait_in_virtual_time(
        &mut self,
        timeout: Option<Duration>,
    ) -> Result<Option<Completion>, Error> {
        let begin = self.virtual_time().unwrap_or_default();
        let end = timeout.and_then(|timeout| begin.checked_add(timeout));
        loop {
            let has_room = self.end.has_more_room();
            if let Some(completion) = self.poll_at_once()? {
                return Ok(Some(completion));
            }
            let now = self.virtual_time().unwrap_or_default();
            let left = end.map_or(Duration::MAX, |end| end.saturating_sub(now));
            if has_room || left.is_zero() {
                return Ok(None);
            }
            if let Err(error) = self.rest(WaitKind::Completion, left) {
                // The NIC may have completed something before it ended.
                return self.end.poll()?.ok_or(error).map(Some);
            }
        }
    }

    /// Ends the program's turn, and waits for the next one.
    fn rest(&mut self, kind: WaitKind, most: Duration) -> Result<(), Error> {
        self.flush();
        let by_completions = matches!(kind, WaitKind::Completion | WaitKind::Poll);
        if by_completions && (self.end.has_completions() || self.end.has_more_room()) {
            return Ok(());
        }
        let Some(turns) = &self.turns else {
            return Ok(());
        };
        self.end.sleeps(true);
        turns.end(kind, turns.now().saturating_add(most));
        self.wakes_nic.wake();
        let result = self.until_turn();
        self.end.sleeps(false);
        result
    }

    fn until_turn(&mut self) -> Result<(), Error> {
        loop {
            let is_gone = self.sleep(None)?;
            self.wakes_us.clear();
            if self.turns.as_mut().is_none_or(|turns| turns.has_begun()) {
                return Ok(());
            }
            if is_gone {
                return Err(Error::Gone);
            }
        }
    }
}

//! Ports whose frames the kernel rejects, reported once when that begins and once when it ends.

use std::fmt;
use std::time::{Duration, Instant};

use nix::errno::Errno;

/// Time after which a port has recovered, if messages were sent and none failed.
const CALM: Duration = Duration::from_secs(1);

/// Why the kernel rejects a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SendFailure {
    /// The socket's or the device's queue is full.
    QueueFull,
    /// The interface is down, unreachable or gone.
    LinkDown,
    /// No socket listens at the other end.
    Refused,
    /// The frame is longer than the interface allows.
    TooLong,
    /// A filter, such as a rule of nftables, forbids the frame.
    Forbidden,
    Other,
}

impl From<Errno> for SendFailure {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::EAGAIN | Errno::ENOBUFS | Errno::ENOMEM => Self::QueueFull,
            Errno::ENETDOWN
            | Errno::ENETUNREACH
            | Errno::EHOSTUNREACH
            | Errno::EHOSTDOWN
            | Errno::EADDRNOTAVAIL
            | Errno::ENXIO
            // The socket is waiting for its interface.
            | Errno::EDESTADDRREQ
            | Errno::ENODEV => Self::LinkDown,
            Errno::ECONNREFUSED => Self::Refused,
            Errno::EMSGSIZE => Self::TooLong,
            Errno::EPERM | Errno::EACCES => Self::Forbidden,
            _ => Self::Other,
        }
    }
}

impl fmt::Display for SendFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::QueueFull => "the interface queue is full, or a queueing discipline drops them",
            Self::LinkDown => "the interface or the route to the other end is gone",
            Self::Refused => "no process listens at the other end",
            Self::TooLong => "they exceed the MTU of the interface",
            Self::Forbidden => "a filter blocks them (see `nft list ruleset`)",
            Self::Other => "the kernel rejects them",
        })
    }
}

/// A period in which the kernel rejects a port's frames.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trouble {
    failure: SendFailure,
    errno: Errno,
    since: Instant,
    last: Instant,
    /// Frames rejected so far.
    frames: u64,
    /// Messages of the port sent before the last failure.
    sent: u64,
    logged: bool,
}

/// A notice about a port's trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendNotice {
    /// The trouble began.
    Failing { failure: SendFailure, errno: Errno },
    /// The trouble ended.
    Recovered {
        failure: SendFailure,
        after: Duration,
        frames: u64,
    },
}

impl Trouble {
    /// Records that `frames` frames failed after `sent` messages of the port. Continues `before` if
    /// the failure is the same.
    pub fn after(before: Option<Self>, now: Instant, errno: Errno, frames: u64, sent: u64) -> Self {
        let failure = errno.into();
        let new = Self {
            failure,
            errno,
            since: now,
            last: now,
            frames,
            sent,
            logged: false,
        };
        match before {
            Some(before) if before.failure == failure => Self {
                frames: before.frames + frames,
                since: before.since,
                logged: before.logged,
                ..new
            },
            _ => new,
        }
    }

    /// The next notice, if any, given the number of messages sent so far. `Recovered` is the last.
    pub fn poll(&mut self, now: Instant, sent: u64) -> Option<SendNotice> {
        let Self { failure, errno, .. } = *self;
        if !self.logged {
            self.logged = true;
            return Some(SendNotice::Failing { failure, errno });
        }
        let calm = now.saturating_duration_since(self.last) >= CALM;
        (calm && sent > self.sent).then(|| SendNotice::Recovered {
            failure,
            after: self.last.saturating_duration_since(self.since),
            frames: self.frames,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn send_errors_are_logged_when_they_begin_and_end() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let failing = |errno: Errno| {
            Some(SendNotice::Failing {
                failure: errno.into(),
                errno,
            })
        };
        let mut trouble = Trouble::after(None, at(0), Errno::ENETDOWN, 3, 10);
        assert_eq!(trouble.poll(at(0), 10), failing(Errno::ENETDOWN));
        for ms in 1..500 {
            trouble = Trouble::after(Some(trouble), at(ms), Errno::ENXIO, 1, 10);
            assert_eq!(trouble.poll(at(ms), 10), None, "once");
        }
        assert_eq!(trouble.poll(at(9000), 10), None, "no message was sent");
        assert_eq!(trouble.poll(at(1400), 11), None, "too recent");
        let over = SendNotice::Recovered {
            failure: SendFailure::LinkDown,
            after: Duration::from_millis(499),
            frames: 502,
        };
        assert_eq!(trouble.poll(at(1500), 11), Some(over));
        let mut other = Trouble::after(Some(trouble), at(600), Errno::EPERM, 1, 11);
        assert_eq!(
            other.poll(at(600), 11),
            failing(Errno::EPERM),
            "another kind"
        );
    }
}

//! Probes: single operations of no consequence, to see whether and how they arrive.
//!
//! A probe is a request like any other in all that a router sees, but it changes nothing: what it
//! reads nobody looks at, what it adds is zero, and what it puts is thrown away at the target, which
//! answers as if it were written. So it may run beside whatever uses the memories.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::traffic_spec::Operation;
use crate::time::Time;

/// Where puts of probes go, where a machine tells them by their address: as many bytes as below
/// `PROBE_BYTES` from there on, which no memory has.
pub(crate) const PROBE_ADDRESS: u64 = 3 << 45;
/// Bytes of the addresses of such puts: of all that machines route by.
const PROBE_BYTES: u64 = 1 << 21;
/// Probes of one network interface whose ends are remembered.
pub(crate) const MAX_PROBES: usize = 64;

/// Whether a put to that address is a probe's.
#[inline]
pub const fn is_probed(address: u64) -> bool {
    address & !(PROBE_BYTES - 1) == PROBE_ADDRESS
}

/// The address of a probe's put that has the same low bits as another one.
#[inline]
pub const fn probed_address(like: u64) -> u64 {
    PROBE_ADDRESS | like & (PROBE_BYTES - 1)
}

/// What a probe asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeSpec {
    /// The number of the network interface that it goes to.
    pub to: u16,
    /// What it does.
    pub op: Operation,
    /// Bytes put or got; an atomic operation has eight.
    pub bytes: u32,
    /// The address that a get or an atomic operation is for. Of a put, the lowest 21 bits are taken.
    #[serde(default)]
    pub address: u64,
    /// Whether its packet takes the way of ordered ones, where the machine has a choice.
    #[serde(default)]
    pub ordered: bool,
}

/// A probe that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// By which its end is asked for.
    pub number: u64,
    /// What routers know its packets by; see [`Passage::identity`](crate::trace::Passage::identity).
    pub identity: u64,
}

/// How a probe ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeOutcome {
    /// The target has done it, and the answer has come.
    Done,
    /// The target would not do it.
    Refused,
    /// It, or the answer, came damaged.
    Damaged,
    /// No answer came in time.
    TimedOut,
}

/// The end of a probe, in the network interface's own time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeEnd {
    /// Which.
    pub(crate) number: u64,
    /// When it was sent.
    pub posted_ps: u64,
    /// When its answer was seen, or nobody waited any more.
    pub ended_ps: u64,
    /// How it ended.
    pub outcome: ProbeOutcome,
}

/// Why a probe was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// As many requests as may be are outstanding, or wait for the link.
    #[error("too many requests are outstanding: try again")]
    Full,
    /// The machine, or its memory, has no such operation.
    #[error("there is no such operation of that length at that address")]
    Impossible,
    /// Nobody has that number.
    #[error("nobody has number {0}")]
    Nobody(u16),
}

/// A network interface that sends probes.
pub trait Probes {
    /// The number that routers know it by.
    fn routed_number(&self) -> u32;

    /// Sends a probe.
    ///
    /// # Errors
    /// See [`ProbeError`].
    fn probe(&mut self, now: Time, spec: &ProbeSpec) -> Result<Probe, ProbeError>;

    /// How a probe of the last [`MAX_PROBES`] ended, once.
    fn probe_ended(&mut self, number: u64) -> Option<ProbeEnd>;
}

/// The ends of probes that nobody has asked for yet.
#[derive(Clone, Debug, Default)]
pub struct ProbeLog(VecDeque<ProbeEnd>);

impl ProbeLog {
    /// Remembers an end; the oldest goes.
    pub fn ended(&mut self, number: u64, (posted, ended): (Time, Time), outcome: ProbeOutcome) {
        if self.0.len() == MAX_PROBES {
            self.0.pop_front();
        }
        self.0.push_back(ProbeEnd {
            number,
            posted_ps: posted.as_ps(),
            ended_ps: ended.as_ps(),
            outcome,
        });
    }

    /// The end of that probe.
    pub fn take(&mut self, number: u64) -> Option<ProbeEnd> {
        let index = self.0.iter().position(|end| end.number == number)?;
        self.0.remove(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nic::checker::ANNOUNCE_ADDRESS;
    use crate::nic::programs::is_registered;

    #[test]
    fn probes_are_told_by_their_address_and_nothing_else_is_there() {
        let others = [
            ANNOUNCE_ADDRESS,
            ANNOUNCE_ADDRESS + PROBE_BYTES,
            0,
            1 << 40,
            1 << 46,
        ];
        assert!(
            others
                .iter()
                .all(|&other| !is_probed(other) && !is_registered(PROBE_ADDRESS))
        );
        assert_eq!(probed_address(1 << 40 | 0x12345), PROBE_ADDRESS | 0x12345);
        assert!(is_probed(PROBE_ADDRESS) && is_probed(PROBE_ADDRESS + PROBE_BYTES - 1));
        assert!(!is_probed(PROBE_ADDRESS + PROBE_BYTES));
        assert_eq!(PROBE_ADDRESS >> 48, 0, "it fits into an address");
    }

    #[test]
    fn ends_are_kept_until_they_are_asked_for() {
        let mut log = ProbeLog::default();
        let times = (Time::ZERO, Time::from_ns(1));
        for number in 0..100 {
            log.ended(number, times, ProbeOutcome::Done);
        }
        assert_eq!(log.take(0), None, "too old");
        assert_eq!(log.take(99).map(|end| end.ended_ps), Some(1_000));
        assert_eq!((log.take(99), log.0.len()), (None, MAX_PROBES - 1));
    }
}

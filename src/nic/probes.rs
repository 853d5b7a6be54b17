//! Probes: single operations without effect, which show whether and how packets arrive.
//!
//! Routers handle a probe like any other request, but it changes nothing: its reads are ignored,
//! its additions add zero, and the target discards its puts but responds as if it had written them.
//! So probes can run alongside other users of the memories.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::traffic_spec::Operation;
use crate::time::Time;

/// First of the `PROBE_BYTES` addresses of probe puts, on machines that recognise them by address.
/// They lie beyond every memory.
pub(crate) const PROBE_ADDRESS: u64 = 3 << 45;
/// Size of the address range of probe puts: covers all address bits that machines route by.
const PROBE_BYTES: u64 = 1 << 21;
/// Number of completed probes whose outcome one NIC keeps.
pub(crate) const MAX_PROBES: usize = 64;

#[inline]
pub const fn is_probed(address: u64) -> bool {
    address & !(PROBE_BYTES - 1) == PROBE_ADDRESS
}

/// The probe put address with the low bits of `like`.
#[inline]
pub const fn probed_address(like: u64) -> u64 {
    PROBE_ADDRESS | like & (PROBE_BYTES - 1)
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeSpec {
    pub to: u16,
    pub op: Operation,
    /// Bytes to put or get; eight for an atomic operation.
    pub bytes: u32,
    /// Address of the operation; for a put, only the lowest 21 bits count.
    #[serde(default)]
    pub address: u64,
    /// Whether the packet must take an ordered path, on machines with a choice.
    #[serde(default)]
    pub ordered: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// Identifies the probe when its outcome is queried.
    pub number: u64,
    /// Identity of the probe's packets; see [`Passage::identity`](crate::trace::Passage::identity).
    pub identity: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeOutcome {
    /// The target carried out the probe, and the response arrived.
    Done,
    Refused,
    /// The request or the response arrived damaged.
    Damaged,
    TimedOut,
}

/// Outcome of a probe, with the NIC's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeEnd {
    pub(crate) number: u64,
    pub posted_ps: u64,
    /// When the response arrived or the probe timed out.
    pub ended_ps: u64,
    pub outcome: ProbeOutcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// Too many requests are outstanding or waiting for the link.
    #[error("too many requests are outstanding; try again")]
    Full,
    /// The NIC was restarted and sends nothing yet.
    #[error(
        "the NIC was restarted, and sends nothing before answers to its earlier requests can no \
         longer be mistaken for new ones: 2 s, or 1/10 of the request timeout; try again"
    )]
    Early,
    /// The machine does not support the operation, or its memory has no such address.
    #[error("no operation with this length and address")]
    Impossible,
    #[error("no NIC has number {0}")]
    Nobody(u16),
}

pub trait Probes {
    /// The number of the NIC in routing tables.
    fn routed_number(&self) -> u32;

    /// Sends a probe.
    ///
    /// # Errors
    /// See [`ProbeError`].
    fn probe(&mut self, now: Time, spec: &ProbeSpec) -> Result<Probe, ProbeError>;

    /// Returns the outcome of a probe once, if it is among the last [`MAX_PROBES`].
    fn probe_ended(&mut self, number: u64) -> Option<ProbeEnd>;
}

/// Outcomes that have not been queried yet.
#[derive(Clone, Debug, Default)]
pub struct ProbeLog(VecDeque<ProbeEnd>);

impl ProbeLog {
    /// Records an outcome, and discards the oldest when full.
    pub fn ended(&mut self, number: u64, (posted, ended): (Time, Time), outcome: ProbeOutcome) {
        debug_assert!(posted <= ended, "a probe ends after it was posted");
        if self.0.len() == MAX_PROBES {
            self.0.pop_front();
        }
        self.0.push_back(ProbeEnd {
            number,
            posted_ps: posted.as_ps(),
            ended_ps: ended.as_ps(),
            outcome,
        });
        debug_assert!(self.0.len() <= MAX_PROBES, "the oldest is discarded");
    }

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
    fn probes_are_recognised_by_their_reserved_address() {
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
        assert_eq!(
            PROBE_ADDRESS >> 48,
            0,
            "the probe address fits into an address"
        );
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

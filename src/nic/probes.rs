//! Probes: single operations without effect, to see whether and how they arrive.
//!
//! To routers a probe is a request like any other, but it changes nothing: its reads are ignored,
//! it adds zero, and the target discards its puts but responds as if it had written them. So it may
//! run alongside other users of the memories.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::traffic_spec::Operation;
use crate::time::Time;

/// Address of probe puts, where a machine recognises them by address: the `PROBE_BYTES` from here
/// on, which no memory has.
pub(crate) const PROBE_ADDRESS: u64 = 3 << 45;
/// Bytes of the address range of such puts: covers all bits that machines route by.
const PROBE_BYTES: u64 = 1 << 21;
/// Probes of one NIC whose ends are remembered.
pub(crate) const MAX_PROBES: usize = 64;

/// Whether a put to `address` is a probe.
#[inline]
pub const fn is_probed(address: u64) -> bool {
    address & !(PROBE_BYTES - 1) == PROBE_ADDRESS
}

/// The probe put address with the same low bits as `like`.
#[inline]
pub const fn probed_address(like: u64) -> u64 {
    PROBE_ADDRESS | like & (PROBE_BYTES - 1)
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeSpec {
    /// Number of the target NIC.
    pub to: u16,
    pub op: Operation,
    /// Bytes to put or get; an atomic operation has eight.
    pub bytes: u32,
    /// Address of a get or an atomic operation. For a put, only the lowest 21 bits count.
    #[serde(default)]
    pub address: u64,
    /// Whether the probe's packet takes an ordered path, where the machine has a choice.
    #[serde(default)]
    pub ordered: bool,
}

/// A probe sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// Number by which to query the probe's end.
    pub number: u64,
    /// Identity of its packets; see [`Passage::identity`](crate::trace::Passage::identity).
    pub identity: u64,
}

/// How a probe ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeOutcome {
    /// The target carried out the probe, and the response arrived.
    Done,
    /// The target rejected the probe.
    Refused,
    /// The probe or the response arrived damaged.
    Damaged,
    TimedOut,
}

/// The end of a probe, in the NIC's own time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeEnd {
    /// Number of the probe.
    pub(crate) number: u64,
    /// When the probe was sent.
    pub posted_ps: u64,
    /// When the response arrived, or the probe timed out.
    pub ended_ps: u64,
    pub outcome: ProbeOutcome,
}

/// Why a probe was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// The maximum of requests is outstanding or waiting for the link.
    #[error("too many requests are outstanding; try again")]
    Full,
    /// The machine or its memory has no such operation.
    #[error("no operation with this length and address")]
    Impossible,
    #[error("no NIC has number {0}")]
    Nobody(u16),
}

/// A NIC that sends probes.
pub trait Probes {
    /// The number by which routers know the NIC.
    fn routed_number(&self) -> u32;

    /// Sends a probe.
    ///
    /// # Errors
    /// See [`ProbeError`].
    fn probe(&mut self, now: Time, spec: &ProbeSpec) -> Result<Probe, ProbeError>;

    /// Outcome of a probe, if among the last [`MAX_PROBES`]; reported once.
    fn probe_ended(&mut self, number: u64) -> Option<ProbeEnd>;
}

/// Ends of probes not queried yet.
#[derive(Clone, Debug, Default)]
pub struct ProbeLog(VecDeque<ProbeEnd>);

impl ProbeLog {
    /// Records an end; the oldest is discarded when full.
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

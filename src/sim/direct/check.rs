//! Invariants of every run.

use core::fmt;

use super::mail::MailError;
use super::summary::EndAccount;

/// A violated invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// Phits were lost or created: those sent are neither at their destinations nor in the network.
    Phits {
        /// Phits that terminals have sent.
        sent: u64,
        /// Phits that terminals have received.
        arrived: u64,
        /// Phits found in routers and on links.
        inside: u64,
    },
    /// Credits of a link and virtual channel are neither at the sender nor accounted for by phits
    /// and credits in flight.
    Credits {
        /// Part and slot of the sending end.
        end: (u32, u32),
        vc: u8,
        /// Credits at the sender, plus those that phits and returning credits account for.
        found: u64,
        /// The expected number.
        of: u32,
    },
    /// Phits arrived at a full input queue.
    Overflow(u64),
    /// Packets did not arrive exactly once: their number or the sum of their keys differs.
    Deliveries { sent: u64, arrived: u64 },
    /// Packets arrived with contents that were not sent.
    Damaged(u64),
    /// Messages took so long that the birth bits of their packets wrapped around: reported
    /// latencies are too low.
    Misdated {
        /// Birth bits that a packet carries.
        bits: u32,
    },
    /// Packets arrived at the wrong processor.
    Misrouted(u64),
    /// Requests overtook earlier ones with the same source, destination and hash bits.
    Overtaken(u64),
    /// Packets that arrived from above would have left upwards or sideways.
    UpDown(u64),
    /// Routers rejected packets for another reason.
    Refused(u64),
    /// A part rejected the mail of another. The run ended there, so the report contains nothing
    /// else.
    Mail(MailError),
    /// An encoded link violates an invariant at rest.
    Link(crate::sim::check::Violation),
    /// Packets were still in the network long after the sources had stopped.
    Starved { phits: u64, cycles: u64 },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Phits {
                sent,
                arrived,
                inside,
            } => write!(
                f,
                "phits: {sent} sent, {arrived} arrived, {inside} in the network"
            ),
            Self::Credits { end, vc, found, of } => write!(
                f,
                "credits: end {}.{} vc {vc} has or is owed {found} of {of}",
                end.0, end.1
            ),
            Self::Link(violation) => violation.fmt(f),
            Self::Mail(error) => write!(f, "mail between parts: {error}"),
            Self::Overflow(phits) => {
                write!(f, "buffers: {phits} phits arrived at full input queues")
            }
            Self::Deliveries { sent, arrived } => write!(
                f,
                "deliveries: {sent} packets sent, {arrived} arrived, or different ones"
            ),
            Self::Damaged(n) => write!(f, "payload: {n} packets damaged"),
            Self::Misdated { bits } => write!(
                f,
                "latencies: messages took more than {} cycles, the most that a packet's timestamp \
                 can express",
                1u64 << bits
            ),
            Self::Misrouted(n) => write!(
                f,
                "destination: {n} packets delivered to the wrong processor"
            ),
            Self::Overtaken(n) => write!(f, "order: {n} requests overtook others"),
            Self::UpDown(n) => write!(
                f,
                "up-then-down: {n} packets tried to go up after going down"
            ),
            Self::Refused(n) => write!(f, "routers rejected {n} packets"),
            Self::Starved { phits, cycles } => write!(
                f,
                "starvation: {phits} phits still inside after {cycles} cycles without new packets"
            ),
        }
    }
}

/// Checks that on every link and virtual channel each credit is at the sender, stands for a phit in
/// flight or queued, or is on its way back. `ends` are all ends of the network, with `vcs` virtual
/// channels of `of` credits each, unless the `slots` of an end say otherwise.
pub(crate) fn check_credits(
    ends: &[EndAccount],
    vcs: usize,
    of: u32,
    violations: &mut Vec<Violation>,
) {
    let mut by_end: Vec<&EndAccount> = ends.iter().collect();
    by_end.sort_by_key(|account| account.end);
    for sender in ends {
        let peer = by_end.binary_search_by_key(&sender.peer, |account| account.end);
        let nowhere = EndAccount::default();
        let receiver = peer.map_or(&nowhere, |at| by_end[at]);
        for vc in 0..vcs {
            let of = sender.slots.map_or(of, |slots| slots[vc]);
            let found = u64::from(sender.credits[vc])
                + u64::from(sender.credits_coming[vc])
                + u64::from(receiver.phits_coming[vc])
                + u64::from(receiver.queued[vc]);
            if found != u64::from(of) {
                violations.push(Violation::Credits {
                    end: sender.end,
                    vc: vc as u8,
                    found,
                    of,
                });
            }
        }
    }
}

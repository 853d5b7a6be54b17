//! Checkers: what must hold in every simulation once nothing moves any more.
//!
//! They look at plain accounts that are taken from the nodes, so that a test can spoil an account
//! and see that the checker notices.

use phitwire_framing::packet24::Vc;
use thiserror::Error;

use super::fabric::{Direction, LinkId, NodeId};
use crate::link::{Lcb, LinkState};
use crate::nic::TrafficReport;

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Violation {
    /// Credits that are neither at the sender nor explained by anything in flight.
    #[error("link {} {direction:?} vc {}: {left} of {offered} credits are left at rest", link.0, vc.index())]
    Credits {
        /// The link.
        link: LinkId,
        /// The direction that the credits are for.
        direction: Direction,
        /// The virtual channel.
        vc: Vc,
        /// Phits of credit at the sender.
        left: u32,
        /// Phits that the receiver offered.
        offered: u32,
    },
    /// Packets that the sender holds for retransmission although nothing moves.
    #[error("link {} {direction:?}: {packets} packets are unacknowledged at rest", link.0)]
    Unacknowledged {
        /// The link.
        link: LinkId,
        /// The direction.
        direction: Direction,
        /// How many.
        packets: u64,
    },
    /// Packets were lost or made on a link.
    #[error("link {} {direction:?}: {taken} packets taken, {accepted} accepted, {discarded} discarded", link.0)]
    Packets {
        /// The link.
        link: LinkId,
        /// The direction.
        direction: Direction,
        /// Packets that the sender's core handed over.
        taken: u64,
        /// Packets that the receiver accepted.
        accepted: u64,
        /// Packets that the sender gave up.
        discarded: u64,
    },
    /// Phits remain inside a router.
    #[error("node {}: {phits} phits are inside at rest", node.0)]
    PhitsInside {
        /// The router.
        node: NodeId,
        /// How many.
        phits: u64,
    },
    /// Requests of a network interface are without answer or time-out.
    #[error("node {}: {requests} requests are outstanding at rest", node.0)]
    Outstanding {
        /// The network interface.
        node: NodeId,
        /// How many.
        requests: u32,
    },
    /// Messages of a run did not arrive once, whole and in order.
    #[error("messages: {0}")]
    Messages(String),
}

/// What one end of a link says about the direction that it sends in, and about what it received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndAccount {
    /// Whether the link is active; otherwise nothing is demanded of it.
    pub active: bool,
    /// Phits of credit left, per virtual channel.
    pub credits: [u32; 2],
    /// Phits per virtual channel that this end offers to its peer.
    pub offers: u32,
    /// Packets sent and not acknowledged.
    pub unacknowledged: u64,
    /// Packets handed over by the core.
    pub taken: u64,
    /// Packets given up because the link went down.
    pub discarded: u64,
    /// Packets received.
    pub accepted: u64,
}

impl EndAccount {
    /// The account of a link control block.
    pub fn of(lcb: &Lcb) -> Self {
        let counters = lcb.counters();
        Self {
            active: lcb.state() == LinkState::Active,
            credits: Vc::ALL.map(|vc| lcb.credits(vc)),
            offers: lcb.config().profile().input_phits_per_vc,
            unacknowledged: lcb.unacknowledged_packets(),
            taken: counters.tx_packets,
            discarded: counters.tx_discarded_packets,
            accepted: counters.rx_packets,
        }
    }
}

/// Checks one direction of a link at rest. `whole_history` says that the counters of both ends began
/// together: then packets are conserved too, unless a link that went down discarded some.
pub fn check_direction(
    link: LinkId,
    direction: Direction,
    sender: &EndAccount,
    receiver: &EndAccount,
    whole_history: bool,
    violations: &mut Vec<Violation>,
) {
    if !sender.active || !receiver.active {
        return;
    }
    for vc in Vc::ALL {
        let (left, offered) = (sender.credits[vc.index()], receiver.offers);
        if left != offered {
            violations.push(Violation::Credits {
                link,
                direction,
                vc,
                left,
                offered,
            });
        }
    }
    if sender.unacknowledged != 0 {
        let packets = sender.unacknowledged;
        violations.push(Violation::Unacknowledged {
            link,
            direction,
            packets,
        });
    }
    let EndAccount {
        taken, discarded, ..
    } = *sender;
    let accepted = receiver.accepted;
    // What was discarded may or may not have arrived before.
    let explained = accepted <= taken && taken - accepted <= discarded;
    if whole_history && !explained {
        violations.push(Violation::Packets {
            link,
            direction,
            taken,
            accepted,
            discarded,
        });
    }
}

/// What may be wrong with a run without being a violation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Messages may time out and be lost: something that held some was destroyed, or a packet was
    /// poisoned on purpose.
    pub losses: bool,
}

/// Checks the merged report of all sources and targets of a finished run.
pub fn check_messages(report: &TrafficReport, allow: Allowance) -> Result<(), Violation> {
    let wrong = |what: &str, count: u64| Violation::Messages(format!("{count} {what}"));
    for (count, what) in [
        (report.duplicated, "duplicated"),
        (report.corrupted, "corrupted"),
        (report.unwritten, "that found unwritten memory"),
        (report.misordered, "misordered"),
        (report.outstanding, "neither answered nor timed out"),
        (report.refused, "refused"),
        (
            report.acknowledged.saturating_sub(report.sent),
            "answers too many",
        ),
    ] {
        if count > 0 {
            return Err(wrong(what, count));
        }
    }
    if report.sent != report.acknowledged + report.timed_out {
        let sum = report.acknowledged + report.timed_out;
        return Err(wrong("without a fate", report.sent.abs_diff(sum)));
    }
    if !allow.losses {
        for (count, what) in [
            (report.lost(), "lost"),
            (report.missing, "missing"),
            (report.timed_out, "timed out"),
            (report.unreachable, "targets unreachable"),
            (report.unwilling, "targets unwilling"),
        ] {
            if count > 0 {
                return Err(wrong(what, count));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: LinkId = LinkId(3);

    fn ends() -> [EndAccount; 2] {
        let end = EndAccount {
            active: true,
            credits: [128, 128],
            offers: 128,
            unacknowledged: 0,
            taken: 50,
            discarded: 0,
            accepted: 50,
        };
        [end, end]
    }

    fn violations(ends: [EndAccount; 2], whole_history: bool) -> Vec<Violation> {
        let mut found = Vec::new();
        let [sender, receiver] = &ends;
        check_direction(
            LINK,
            Direction::AToB,
            sender,
            receiver,
            whole_history,
            &mut found,
        );
        found
    }

    #[test]
    fn a_link_at_rest_passes() {
        assert_eq!(violations(ends(), true), []);
    }

    #[test]
    fn every_leak_of_a_link_is_found() {
        let spoilt: [fn(&mut [EndAccount; 2]); 6] = [
            |ends| ends[0].credits[0] -= 4,
            |ends| ends[0].credits[1] += 4,
            |ends| ends[0].unacknowledged = 1,
            |ends| ends[1].accepted -= 1,
            |ends| ends[1].accepted += 1,
            |ends| (ends[0].taken, ends[0].discarded) = (60, 9),
        ];
        for (index, spoil) in spoilt.into_iter().enumerate() {
            let mut ends = ends();
            spoil(&mut ends);
            assert_eq!(violations(ends, true).len(), 1, "leak {index}");
        }
    }

    #[test]
    fn what_is_explained_is_no_leak() {
        let mut discarded = ends();
        (discarded[0].taken, discarded[0].discarded) = (60, 12);
        assert_eq!(violations(discarded, true), []);
        let mut restarted = ends();
        restarted[1].accepted = 3;
        assert_eq!(violations(restarted, false), []);
        let mut down = ends();
        (down[1].active, down[0].credits) = (false, [0, 0]);
        assert_eq!(violations(down, true), []);
    }

    fn report() -> TrafficReport {
        TrafficReport {
            sent: 9,
            acknowledged: 9,
            delivered: 9,
            ..TrafficReport::default()
        }
    }

    #[test]
    fn every_fault_of_a_run_is_found() {
        assert_eq!(check_messages(&report(), Allowance::default()), Ok(()));
        let spoilt: [fn(&mut TrafficReport); 12] = [
            |r| r.duplicated = 1,
            |r| r.corrupted = 1,
            |r| r.unwritten = 1,
            |r| r.misordered = 1,
            |r| r.missing = 1,
            |r| r.refused = 1,
            |r| r.unreachable = 1,
            |r| r.unwilling = 1,
            |r| r.delivered = 8,
            |r| (r.acknowledged, r.timed_out) = (8, 1),
            |r| (r.acknowledged, r.outstanding) = (8, 1),
            |r| r.acknowledged = 10,
        ];
        for (index, spoil) in spoilt.into_iter().enumerate() {
            let mut report = report();
            spoil(&mut report);
            assert!(
                check_messages(&report, Allowance::default()).is_err(),
                "fault {index}"
            );
        }
    }

    #[test]
    fn losses_are_allowed_only_where_something_was_destroyed() {
        let mut report = report();
        (report.acknowledged, report.timed_out, report.delivered) = (7, 2, 7);
        assert!(check_messages(&report, Allowance::default()).is_err());
        let allow = Allowance { losses: true };
        assert_eq!(check_messages(&report, allow), Ok(()));
        report.acknowledged = 6;
        assert!(
            check_messages(&report, allow).is_err(),
            "one message has no fate"
        );
        report.acknowledged = 7;
        report.duplicated = 1;
        assert!(
            check_messages(&report, allow).is_err(),
            "destruction does not duplicate"
        );
    }
}

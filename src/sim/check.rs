//! Checkers of invariants that hold in every simulation at rest.
//!
//! They inspect plain accounts taken from the nodes, so that a test can corrupt an account and see
//! the checker fail.

use thiserror::Error;

use super::fabric::{Direction, LinkId, NodeId};
pub(crate) use crate::device::EndAccount;
use crate::device::NodeAccount;
use crate::nic::TrafficReport;
use crate::nic::{BarrierReport, CollectiveReport};

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Violation {
    /// Credits are missing: neither the sender nor data in flight accounts for them.
    #[error(
        "link {} {direction:?} vc {vc}: {left} of {offered} {unit} of credit remain at rest",
        link.0
    )]
    Credits {
        link: LinkId,
        direction: Direction,
        vc: usize,
        /// Credit at the sender.
        left: u32,
        /// Credits that the receiver offers per channel.
        offered: u32,
        unit: &'static str,
    },
    /// The sender still holds data for resending at rest.
    #[error("link {} {direction:?}: {amount} {unit} unacknowledged at rest", link.0)]
    Unacknowledged {
        link: LinkId,
        direction: Direction,
        amount: u64,
        unit: &'static str,
    },
    /// The sender took data from its core but has not sent it at rest.
    #[error("link {} {direction:?}: {amount} {unit} unsent at rest", link.0)]
    Unsent {
        link: LinkId,
        direction: Direction,
        amount: u64,
        unit: &'static str,
    },
    /// Data was lost or created on a link.
    #[error(
        "link {} {direction:?}: {taken} {unit} taken, {accepted} accepted, {given_up} given up",
        link.0
    )]
    Conservation {
        link: LinkId,
        direction: Direction,
        /// Units taken from the sender's core.
        taken: u64,
        /// Units that the receiver accepted.
        accepted: u64,
        /// Units that the sender gave up.
        given_up: u64,
        unit: &'static str,
    },
    #[error("barriers: {0}")]
    Barriers(String),
    #[error("node {}: {amount} {unit} inside at rest", node.0)]
    Inside {
        node: NodeId,
        amount: u64,
        unit: &'static str,
    },
    /// A NIC's requests or block transfers never ended.
    #[error(
        "node {}: {requests} requests and {transfers} block transfers outstanding at rest",
        node.0
    )]
    Outstanding {
        node: NodeId,
        requests: u32,
        transfers: usize,
    },
    /// Messages of a run did not arrive exactly once, whole and in order.
    #[error("messages: {0}")]
    Messages(String),
    /// A collective run failed its checks.
    #[error("collectives: {0}")]
    Collectives(&'static str),
}

impl Violation {
    /// Violations of a node at rest.
    pub(super) fn of_node(node: NodeId, account: NodeAccount) -> impl Iterator<Item = Self> {
        let NodeAccount {
            inside: amount,
            unit,
            requests,
            transfers,
        } = account;
        let inside = (amount != 0).then_some(Self::Inside { node, amount, unit });
        let outstanding = (requests != 0 || transfers != 0).then_some(Self::Outstanding {
            node,
            requests,
            transfers,
        });
        inside.into_iter().chain(outstanding)
    }
}

/// Checks one direction of a link at rest. With `whole_history`, the counters of both ends started
/// together, so everything taken must be conserved except for losses of a link that went down.
pub(crate) fn check_direction(
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
    let units = sender.units;
    for (vc, (&left, &offered)) in sender.credits.iter().zip(&receiver.offers).enumerate() {
        if left != offered {
            violations.push(Violation::Credits {
                link,
                direction,
                vc,
                left,
                offered,
                unit: units.credits,
            });
        }
    }
    if sender.unacknowledged != 0 {
        violations.push(Violation::Unacknowledged {
            link,
            direction,
            amount: sender.unacknowledged,
            unit: units.unacknowledged,
        });
    }
    if sender.unsent != 0 {
        violations.push(Violation::Unsent {
            link,
            direction,
            amount: sender.unsent,
            unit: units.credits,
        });
    }
    let (taken, accepted) = (sender.taken, receiver.accepted);
    // The number given up is an upper bound of the loss: some of those units had arrived.
    if whole_history
        && let Some(given_up) = sender.given_up
        && !(accepted <= taken && taken - accepted <= given_up)
    {
        violations.push(Violation::Conservation {
            link,
            direction,
            taken,
            accepted,
            given_up,
            unit: units.conserved,
        });
    }
}

/// Losses that a run may have without a violation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Messages that deliberately poisoned packets may have cost: one each, or several where one
    /// packet can respond to several messages.
    pub soft_errors: u64,
    /// Whether packets were destroyed together with a node or link, so that any message may be
    /// lost.
    pub destroyed: bool,
    /// Whether targets reject poisoned or cut requests with a reply instead of dropping them.
    pub refusals: bool,
}

impl Allowance {
    /// Any message may be lost.
    pub const DESTROYED: Self = Self {
        soft_errors: 0,
        destroyed: true,
        refusals: false,
    };

    /// Messages that may fail.
    const fn failures(self) -> u64 {
        if self.destroyed {
            u64::MAX
        } else {
            self.soft_errors
        }
    }
}

/// Checks the merged report of all sources and targets of a finished run.
///
/// # Errors
/// The first violation.
pub(crate) fn check_messages(report: &TrafficReport, allow: Allowance) -> Result<(), Violation> {
    let check = |all: &[(u64, &str)]| {
        let wrong = all.iter().find(|(count, _)| *count > 0);
        wrong.map_or(Ok(()), |(count, what)| {
            Err(Violation::Messages(format!("{count} {what}")))
        })
    };
    let refusals = if allow.refusals { allow.failures() } else { 0 };
    let failed = report.refused + report.timed_out;
    let ended = report.acknowledged + failed;
    check(&[
        (report.surplus(), "executed but never sent"),
        (report.duplicated, "duplicated"),
        (report.corrupted, "corrupted"),
        (report.unwritten, "read from unwritten memory"),
        (report.misordered, "misordered"),
        (report.outstanding, "neither answered nor timed out"),
        (report.refused.saturating_sub(refusals), "refused"),
        (
            failed.saturating_sub(allow.failures()),
            "more refused or timed out than were poisoned",
        ),
        (
            (report.acknowledged + report.refused).saturating_sub(report.sent),
            "more answers than requests",
        ),
        (report.sent.abs_diff(ended), "without an outcome"),
    ])?;
    if allow.failures() > 0 {
        return Ok(());
    }
    check(&[
        (report.lost(), "lost"),
        (report.missing, "missing"),
        (report.unreachable, "targets unreachable"),
        (report.unwilling, "targets unwilling"),
    ])
}

/// Checks that no barrier ended before all had joined and, if `nothing_happened`, that none was
/// lost or late.
///
/// # Errors
/// [`Violation::Barriers`].
pub fn check_barriers(report: &BarrierReport, nothing_happened: bool) -> Result<(), Violation> {
    let is_right = match nothing_happened {
        true => report.is_clean() && report.barriers > 0,
        false => report.early == 0,
    };
    if is_right {
        return Ok(());
    }
    Err(Violation::Barriers(format!(
        "unit {}, {} of {} participants: {} done, {} early, {} lost, {} timed out, failure {:?}",
        report.unit,
        report.reported,
        report.participants,
        report.barriers,
        report.early,
        report.lost,
        report.timed_out,
        report.failure
    )))
}

/// Checks the merged report of all participants of a finished collective run of `iterations`
/// iterations.
///
/// # Errors
/// The first violation.
pub(crate) fn check_collectives(
    report: &CollectiveReport,
    iterations: u64,
    allow: Allowance,
) -> Result<(), Violation> {
    if report.wrong > 0 {
        return Err(Violation::Collectives("wrong result"));
    }
    let whole = report.is_clean() && report.iterations == iterations;
    if !whole && allow.failures() == 0 {
        let what = "some participants lack results";
        return Err(Violation::Collectives(what));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: LinkId = LinkId(3);
    const LOSSES: Allowance = Allowance::DESTROYED;
    const CUT_IN_TWO: Allowance = Allowance {
        refusals: true,
        ..LOSSES
    };
    const POISON: Allowance = Allowance {
        soft_errors: 1,
        destroyed: false,
        refusals: true,
    };

    /// Link ends with a known number of units given up.
    fn ends(vcs: usize) -> [EndAccount; 2] {
        let end = EndAccount {
            active: true,
            credits: vec![128; vcs],
            offers: vec![128; vcs],
            taken: 50,
            given_up: Some(0),
            accepted: 50,
            ..EndAccount::default()
        };
        [end.clone(), end]
    }

    fn violations([sender, receiver]: &[EndAccount; 2], whole_history: bool) -> Vec<Violation> {
        let mut found = Vec::new();
        let way = Direction::AToB;
        check_direction(LINK, way, sender, receiver, whole_history, &mut found);
        found
    }

    #[test]
    fn a_link_at_rest_passes() {
        assert_eq!(violations(&ends(2), true), []);
        assert_eq!(violations(&ends(8), true), []);
    }

    #[test]
    fn every_leak_of_a_link_is_found() {
        let spoilt: [fn(&mut [EndAccount; 2]); 8] = [
            |ends| ends[0].credits[0] -= 4,
            |ends| ends[0].credits[1] += 4,
            |ends| *ends[0].credits.last_mut().unwrap() += 4,
            |ends| ends[0].unacknowledged = 1,
            |ends| ends[0].unsent = 1,
            |ends| ends[1].accepted -= 1,
            |ends| ends[1].accepted += 1,
            |ends| (ends[0].taken, ends[0].given_up) = (60, Some(9)),
        ];
        for vcs in [2, 8] {
            for (index, spoil) in spoilt.into_iter().enumerate() {
                let mut ends = ends(vcs);
                spoil(&mut ends);
                assert_eq!(violations(&ends, true).len(), 1, "leak {index}");
            }
        }
    }

    #[test]
    fn explained_losses_are_no_leak() {
        for given_up in [Some(12), None] {
            let mut discarded = ends(2);
            (discarded[0].taken, discarded[0].given_up) = (60, given_up);
            assert_eq!(violations(&discarded, true), []);
        }
        let mut restarted = ends(2);
        restarted[1].accepted = 3;
        assert_eq!(violations(&restarted, false), []);
        let mut down = ends(2);
        (down[1].active, down[0].credits) = (false, vec![0, 0]);
        assert_eq!(violations(&down, true), []);
    }

    #[test]
    fn leftovers_in_a_node_are_found() {
        let of = |account| Violation::of_node(NodeId(1), account).count();
        let rest = NodeAccount::default();
        assert_eq!(of(rest), 0);
        assert_eq!(of(NodeAccount { inside: 1, ..rest }), 1);
        assert_eq!(
            of(NodeAccount {
                requests: 1,
                ..rest
            }),
            1
        );
        assert_eq!(
            of(NodeAccount {
                transfers: 1,
                ..rest
            }),
            1
        );
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
        let allow = LOSSES;
        assert_eq!(check_messages(&report, allow), Ok(()));
        report.acknowledged = 6;
        assert!(
            check_messages(&report, allow).is_err(),
            "one message has no outcome"
        );
        report.acknowledged = 7;
        report.duplicated = 1;
        assert!(
            check_messages(&report, allow).is_err(),
            "destruction does not duplicate messages"
        );
    }

    #[test]
    fn additions_that_nobody_sent_are_found() {
        let mut report = report();
        report.delivered = 10;
        assert!(check_messages(&report, LOSSES).is_err());
        (report.delivered, report.acknowledged) = (9, 8);
        assert!(
            check_messages(&report, LOSSES).is_err(),
            "one message has no outcome"
        );
    }

    #[test]
    fn no_more_fail_than_were_poisoned() {
        let mut report = report();
        (report.acknowledged, report.refused, report.delivered) = (8, 1, 8);
        assert_eq!(check_messages(&report, POISON), Ok(()));
        assert!(check_messages(&report, Allowance::default()).is_err());
        assert_eq!(check_messages(&report, CUT_IN_TWO), Ok(()));
        assert!(
            check_messages(&report, LOSSES).is_err(),
            "a rejection is not a loss if targets reject nothing"
        );
        (report.refused, report.timed_out) = (0, 1);
        assert_eq!(check_messages(&report, POISON), Ok(()));
        (report.acknowledged, report.timed_out) = (7, 2);
        assert!(check_messages(&report, POISON).is_err());
        assert_eq!(check_messages(&report, LOSSES), Ok(()));
    }

    #[test]
    fn collectives_may_fail_only_where_something_was_destroyed_and_be_wrong_never() {
        let mut report = CollectiveReport {
            iterations: 5,
            ..CollectiveReport::default()
        };
        let check = check_collectives;
        assert!(check(&report, 6, Allowance::default()).is_err());
        report.failed = 1;
        assert!(check(&report, 5, Allowance::default()).is_err());
        assert_eq!(check(&report, 5, LOSSES), Ok(()));
        report.wrong = 1;
        assert!(check(&report, 5, LOSSES).is_err());
    }
}

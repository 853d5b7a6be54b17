//! Checkers: what must hold in a dragonfly once nothing moves any more. They look at plain accounts, as those of
//! [BlackWidow](crate::sim::check) do.

use phitwire_framing::flit48::VCS;
use thiserror::Error;

use crate::link::AriesLcb;
use crate::nic::TrafficReport;
use crate::nic::aries::CollectiveReport;
use crate::sim::check::{Allowance, Violation, check_messages};
use crate::sim::fabric::{Direction, LinkId, NodeId};

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AriesViolation {
    /// Credits that are neither at the sender nor explained by anything in flight.
    #[error("link {} {direction:?} vc {vc}: {left} of {offered} flits of credit are left at rest", link.0)]
    Credits {
        /// The link.
        link: LinkId,
        /// The direction that the credits are for.
        direction: Direction,
        /// The virtual channel.
        vc: usize,
        /// Flits of credit at the sender.
        left: u32,
        /// Flits that the receiver offers to one channel.
        offered: u32,
    },
    /// Sets or flits that the sender holds although nothing moves.
    #[error("link {} {direction:?}: {sets} sets unacknowledged and {flits} flits unsent at rest", link.0)]
    Held {
        /// The link.
        link: LinkId,
        /// The direction.
        direction: Direction,
        /// Data sets without acknowledgement.
        sets: u64,
        /// Flits taken from the core and not sent.
        flits: u32,
    },
    /// Flits were lost or made on a link whose session has lasted.
    #[error("link {} {direction:?}: {taken} flits taken, {handed_up} handed up", link.0)]
    Flits {
        /// The link.
        link: LinkId,
        /// The direction.
        direction: Direction,
        /// Flits that the sender's core handed over.
        taken: u64,
        /// Flits that the receiver handed up.
        handed_up: u64,
    },
    /// Flits remain inside a router or in its input buffers.
    #[error("node {}: {flits} flits are inside at rest", node.0)]
    FlitsInside {
        /// The router.
        node: NodeId,
        /// How many.
        flits: u64,
    },
    /// Requests or block transfers of a network interface have not come to their end.
    #[error("node {}: {requests} requests and {transfers} block transfers are outstanding at rest", node.0)]
    Outstanding {
        /// The network interface.
        node: NodeId,
        /// Requests.
        requests: u32,
        /// Block transfers.
        transfers: usize,
    },
    /// Messages of a run did not arrive once and whole.
    #[error(transparent)]
    Messages(#[from] Violation),
    /// Operations of a collective run were not right.
    #[error("collectives: {0}")]
    Collectives(&'static str),
}

/// What one end of a link says about the direction that it sends in, and about what it received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AriesEndAccount {
    /// Whether the link is active; otherwise nothing is demanded of it.
    pub active: bool,
    /// Flits of credit left, per virtual channel.
    pub credits: [u32; VCS],
    /// Flits that this end offers to one virtual channel when all others are empty.
    pub offers: u32,
    /// Data sets sent and not acknowledged.
    pub unacknowledged: u64,
    /// Flits taken and not sent.
    pub backlog: u32,
    /// Flits handed over by the core.
    pub taken: u64,
    /// Packets given up because the link went down.
    pub discarded: u64,
    /// Flits handed up to the core.
    pub handed_up: u64,
}

impl AriesEndAccount {
    /// The account of a link control block.
    pub fn of(lcb: &AriesLcb) -> Self {
        let sets = lcb.aries_config().sets();
        Self {
            active: lcb.is_active(),
            credits: lcb.credits(),
            offers: sets.private_flits + sets.common_flits,
            unacknowledged: lcb.unacknowledged_sets(),
            backlog: lcb.backlog_flits(),
            taken: lcb.set_counters().tx_flits,
            discarded: lcb.counters().tx_discarded_packets,
            handed_up: lcb.set_counters().rx_flits,
        }
    }
}

/// Checks one direction of a link at rest. `whole_history` says that the counters of both ends began together: then
/// flits are conserved too, unless a link that went down discarded some.
pub fn check_direction(
    link: LinkId,
    direction: Direction,
    [sender, receiver]: [&AriesEndAccount; 2],
    whole_history: bool,
    violations: &mut Vec<AriesViolation>,
) {
    if !sender.active || !receiver.active {
        return;
    }
    for (vc, &left) in sender.credits.iter().enumerate() {
        let offered = receiver.offers;
        if left != offered {
            violations.push(AriesViolation::Credits {
                link,
                direction,
                vc,
                left,
                offered,
            });
        }
    }
    let (sets, flits) = (sender.unacknowledged, sender.backlog);
    if sets != 0 || flits != 0 {
        violations.push(AriesViolation::Held {
            link,
            direction,
            sets,
            flits,
        });
    }
    let (taken, handed_up) = (sender.taken, receiver.handed_up);
    if whole_history && sender.discarded == 0 && taken != handed_up {
        violations.push(AriesViolation::Flits {
            link,
            direction,
            taken,
            handed_up,
        });
    }
}

/// What may be wrong with a run without being a violation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AriesAllowance {
    /// Packets that may have been poisoned on purpose. The target refuses such a request; such a response leaves its
    /// request without one.
    pub soft_errors: u64,
    /// Something that held packets was destroyed, so that any of them may be lost. What was cut in two is refused as if
    /// it were poisoned.
    pub destroyed: bool,
}

impl AriesAllowance {
    const fn losses(self) -> bool {
        self.destroyed || self.soft_errors > 0
    }
}

/// Checks the merged report of all sources and targets of a finished run.
///
/// # Errors
/// What is wrong with it.
pub fn check_run(report: &TrafficReport, allow: AriesAllowance) -> Result<(), AriesViolation> {
    let wrong = |count: u64, what: &str| Err(Violation::Messages(format!("{count} {what}")).into());
    if report.surplus() > 0 {
        return wrong(report.surplus(), "carried out that nobody sent");
    }
    if report.refused > allow.soft_errors && !allow.destroyed {
        return wrong(report.refused, "refused");
    }
    let failed = report.refused + report.timed_out;
    if failed > allow.soft_errors && !allow.destroyed {
        return wrong(failed, "failed, more than were poisoned");
    }
    // What was refused has its fate.
    let others = TrafficReport {
        sent: report.sent.saturating_sub(report.refused),
        refused: 0,
        ..report.clone()
    };
    let losses = allow.losses();
    Ok(check_messages(&others, Allowance { losses })?)
}

/// Checks the merged report of all participants of a finished collective run of so many iterations.
///
/// # Errors
/// What is wrong with it.
pub fn check_collectives(
    report: &CollectiveReport,
    iterations: u64,
    allow: AriesAllowance,
) -> Result<(), AriesViolation> {
    if report.wrong > 0 {
        return Err(AriesViolation::Collectives("a result was wrong"));
    }
    if !allow.losses() && (!report.is_clean() || report.iterations != iterations) {
        let what = "not everybody had every result";
        return Err(AriesViolation::Collectives(what));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOSSES: AriesAllowance = AriesAllowance {
        soft_errors: 0,
        destroyed: true,
    };
    const POISON: AriesAllowance = AriesAllowance {
        soft_errors: 1,
        destroyed: false,
    };

    fn ends() -> [AriesEndAccount; 2] {
        let end = AriesEndAccount {
            active: true,
            credits: [128; VCS],
            offers: 128,
            taken: 50,
            handed_up: 50,
            ..AriesEndAccount::default()
        };
        [end, end]
    }

    fn violations(ends: [AriesEndAccount; 2], whole_history: bool) -> Vec<AriesViolation> {
        let mut found = Vec::new();
        let [a, b] = &ends;
        check_direction(
            LinkId(3),
            Direction::AToB,
            [a, b],
            whole_history,
            &mut found,
        );
        found
    }

    #[test]
    fn every_leak_of_a_link_is_found() {
        assert_eq!(violations(ends(), true), []);
        let spoilt: [fn(&mut [AriesEndAccount; 2]); 6] = [
            |ends| ends[0].credits[0] -= 4,
            |ends| ends[0].credits[7] += 4,
            |ends| ends[0].unacknowledged = 1,
            |ends| ends[0].backlog = 1,
            |ends| ends[1].handed_up -= 1,
            |ends| ends[1].handed_up += 1,
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
        (discarded[0].taken, discarded[0].discarded) = (60, 1);
        assert_eq!(violations(discarded, true), []);
        let mut restarted = ends();
        restarted[1].handed_up = 3;
        assert_eq!(violations(restarted, false), []);
        let mut down = ends();
        (down[1].active, down[0].credits) = (false, [0; VCS]);
        assert_eq!(violations(down, true), []);
    }

    #[test]
    fn additions_that_nobody_sent_are_found() {
        let mut report = TrafficReport {
            sent: 9,
            acknowledged: 9,
            delivered: 9,
            ..TrafficReport::default()
        };
        assert_eq!(check_run(&report, AriesAllowance::default()), Ok(()));
        report.delivered = 10;
        assert!(check_run(&report, LOSSES).is_err());
        (report.delivered, report.acknowledged) = (9, 8);
        assert!(check_run(&report, LOSSES).is_err(), "one has no fate");
    }

    #[test]
    fn no_more_fail_than_were_poisoned() {
        let mut report = TrafficReport {
            sent: 9,
            acknowledged: 8,
            refused: 1,
            delivered: 8,
            ..TrafficReport::default()
        };
        assert_eq!(check_run(&report, POISON), Ok(()));
        assert!(check_run(&report, AriesAllowance::default()).is_err());
        assert_eq!(check_run(&report, LOSSES), Ok(()), "it may be cut in two");
        (report.refused, report.timed_out) = (0, 1);
        assert_eq!(check_run(&report, POISON), Ok(()));
        (report.acknowledged, report.timed_out) = (7, 2);
        assert!(check_run(&report, POISON).is_err());
        assert_eq!(check_run(&report, LOSSES), Ok(()));
    }

    #[test]
    fn collectives_may_fail_only_where_something_was_destroyed_and_be_wrong_never() {
        let mut report = CollectiveReport {
            iterations: 5,
            ..CollectiveReport::default()
        };
        let check = check_collectives;
        assert!(check(&report, 6, AriesAllowance::default()).is_err());
        report.failed = 1;
        assert!(check(&report, 5, AriesAllowance::default()).is_err());
        assert_eq!(check(&report, 5, LOSSES), Ok(()));
        report.wrong = 1;
        assert!(check(&report, 5, LOSSES).is_err());
    }
}

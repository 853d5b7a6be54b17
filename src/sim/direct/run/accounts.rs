//! Sums over a network, and their invariants.

use super::super::check::{Violation, check_credits};
use super::super::encoded::check_links;
use super::super::model::{ChipView, CycleModel, DirectModel};
use super::super::part::Command;
use super::super::summary::{Ends, Results, Section, TerminalSums};
use super::super::tally::Tally;
use super::{Mark, Simulation};

impl<M: CycleModel> Simulation<M> {
    pub fn tally(&self) -> Tally {
        self.parts.summary(Section::Tally).tally
    }

    pub(super) fn chips(&self) -> ChipView {
        self.parts.summary(Section::Chips).chips
    }

    pub(super) fn terminals(&self) -> TerminalSums {
        self.parts.summary(Section::Terminals).terminals
    }

    pub(super) fn ends(&self) -> Ends {
        self.parts.summary(Section::Ends).ends
    }

    pub(super) fn results(&self) -> Results {
        self.parts.summary(Section::Results).results
    }

    /// Requests born in the measurement up to now, by terminal.
    pub(super) fn births(&mut self) -> Vec<u64> {
        self.parts.command(&Command::CountBirths);
        self.parts.summary(Section::Births).births
    }

    /// Checks the invariants that hold between any two windows: phits and credits are conserved.
    pub fn check_now(&self, violations: &mut Vec<Violation>) {
        let tally = self.tally();
        let mut ends = self.ends();
        let inside = ends.inside;
        // Encoded links resend phits, so those can be counted only at rest.
        let mut link_violations = Vec::new();
        check_links(&mut ends.encoded, &mut link_violations);
        violations.extend(link_violations.into_iter().map(Violation::Link));
        let gone = self.discarded()[1];
        if tally.sent_phits != tally.arrived_phits.wrapping_add(inside + gone) {
            violations.push(Violation::Phits {
                sent: tally.sent_phits,
                arrived: tally.arrived_phits,
                inside,
            });
        }
        let (vcs, credits) = (M::Direct::VCS, M::Direct::CREDITS);
        check_credits(&ends.direct, vcs, credits, violations);
        let overflows = self.chips().overflows;
        if overflows > 0 {
            violations.push(Violation::Overflow(overflows));
        }
    }

    /// Packets and phits that routers dropped because of faults; without faults, a reject is a
    /// violation.
    pub(crate) fn discarded(&self) -> [u64; 2] {
        match self.has_faults && !self.encoded {
            true => self.chips().discarded,
            false => [0; 2],
        }
    }

    /// Violations of encoded links at rest.
    pub(super) fn link_violations(&self) -> Vec<crate::sim::check::Violation> {
        let mut found = Vec::new();
        check_links(&mut self.ends().encoded, &mut found);
        found
    }

    /// Checks the invariants of an empty network.
    pub(super) fn check_packets(&self, violations: &mut Vec<Violation>) {
        let tally = self.tally();
        let gone = self.discarded()[0];
        let is_same = gone > 0 || tally.sent_keys == tally.arrived_keys;
        if tally.sent_packets != tally.arrived_packets + gone || !is_same {
            violations.push(Violation::Deliveries {
                sent: tally.sent_packets,
                arrived: tally.arrived_packets,
            });
        } else if gone == 0 && tally.sent_births != tally.arrived_births {
            violations.push(Violation::Misdated {
                bits: M::BIRTH_BITS,
            });
        }
        let chips = self.chips();
        let up_down = chips.rule_violations;
        let refused = if self.has_faults { 0 } else { chips.refused };
        for (count, violation) in [
            (tally.damaged, Violation::Damaged(tally.damaged)),
            (tally.misrouted, Violation::Misrouted(tally.misrouted)),
            (tally.overtaken, Violation::Overtaken(tally.overtaken)),
            (up_down, Violation::UpDown(up_down)),
            (refused, Violation::Refused(refused)),
        ] {
            if count > 0 {
                violations.push(violation);
            }
        }
    }

    pub(super) fn mark(&self) -> Mark {
        Mark {
            tally: self.tally(),
            chips: self.chips(),
            loads: self.parts.summary(Section::Loads).loads,
        }
    }
}

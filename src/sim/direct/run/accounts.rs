//! Sums over a run's partitions, and their invariants.

use super::super::check::{Violation, check_credits};
use super::super::encoded::check_links;
use super::super::model::{ChipView, CycleModel, DirectModel, LinkAccount, Terminal};
use super::super::partition::Partition;
use super::super::tally::Tally;
use super::{MOST_WAITING, Mark, Simulation, StageSamples};

impl<M: CycleModel> Simulation<M> {
    pub fn tally(&self) -> Tally {
        let mut sum = Tally::default();
        for partition in &self.partitions {
            sum.add(&partition.shared.tally);
        }
        sum
    }

    /// Checks the invariants between any two windows: phits and credits are conserved.
    pub fn check_now(&self, violations: &mut Vec<Violation>) {
        let tally = self.tally();
        let inside: u64 = self.partitions.iter().map(Partition::phits_inside).sum();
        // Encoded links resend phits, so those can be counted only at rest.
        violations.extend(self.links_amiss().into_iter().map(Violation::Link));
        let gone = self.discarded()[1];
        if tally.sent_phits != tally.arrived_phits.wrapping_add(inside + gone) {
            violations.push(Violation::Phits {
                sent: tally.sent_phits,
                arrived: tally.arrived_phits,
                inside,
            });
        }
        let mut accounts = Vec::new();
        for partition in &self.partitions {
            partition.accounts(&mut accounts);
        }
        let (vcs, credits) = (M::Direct::VCS, M::Direct::CREDITS);
        check_credits(&accounts, vcs, credits, violations);
        let mut overflows = 0;
        self.each_chip(|chip| overflows += chip.overflows);
        if overflows > 0 {
            violations.push(Violation::Overflow(overflows));
        }
    }

    /// Packets and phits that routers dropped because of faults; without faults, a reject is a
    /// violation.
    pub(crate) fn discarded(&self) -> [u64; 2] {
        let mut sum = [0; 2];
        if self.has_faults && !self.encoded {
            self.each_chip(|chip| {
                sum[0] += chip.discarded[0];
                sum[1] += chip.discarded[1];
            });
        }
        sum
    }

    /// Violations of encoded links at rest.
    pub(super) fn links_amiss(&self) -> Vec<crate::sim::check::Violation> {
        let mut found = Vec::new();
        check_links(&mut self.link_accounts(), &mut found);
        found
    }

    pub(super) fn link_accounts(&self) -> Vec<LinkAccount> {
        let mut accounts = Vec::new();
        for partition in &self.partitions {
            partition.link_accounts(&mut accounts);
        }
        accounts
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
        let mut up_down = 0;
        let mut refused = 0;
        self.each_chip(|chip| {
            up_down += chip.rule_violations;
            refused += if self.has_faults { 0 } else { chip.refused };
        });
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

    pub(super) fn each_chip(&self, mut visit: impl FnMut(ChipView)) {
        for partition in &self.partitions {
            partition.each_chip(&mut visit);
        }
    }

    pub(super) fn sample(&self, samples: &mut StageSamples) {
        samples.samples += 1;
        self.each_chip(|chip| {
            for (sum, phits) in samples.phits.iter_mut().zip(chip.phits_by_stage) {
                *sum += phits;
            }
        });
    }

    pub(super) fn mark(&self) -> Mark {
        let tally = self.tally();
        let limit = self.cycle;
        let mut stalls = [0; 3];
        let mut hops = 0;
        let mut choices = [0; 2];
        let mut waiting = 0;
        self.each_chip(|chip| {
            hops += chip.phit_hops;
            for (sum, n) in stalls.iter_mut().zip(chip.stalls) {
                *sum += n;
            }
            for (sum, n) in choices.iter_mut().zip(chip.choices) {
                *sum = u64::wrapping_add(*sum, n);
            }
        });
        for partition in &self.partitions {
            let shared = &partition.shared;
            for terminal in &partition.terminals {
                let terminal = terminal.common();
                waiting += terminal.source.waiting_before(
                    limit,
                    MOST_WAITING,
                    terminal.number,
                    &shared.births,
                    &shared.destinations,
                );
            }
        }
        let of_terminals = |p: &Partition<M>| {
            let sent = p.terminals.iter().map(|t| t.common().sent_phits);
            sent.collect()
        };
        Mark {
            tally,
            waiting,
            backlog: waiting + tally.replies_made - tally.replies_sent,
            ports: self
                .partitions
                .iter()
                .map(Partition::sent_by_port)
                .collect(),
            terminals: self.partitions.iter().map(of_terminals).collect(),
            stalls,
            hops,
            choices,
        }
    }
}

//! Access of tests to the parts of an endpoint.

use phitwire_client::door::Status;

use super::super::shared::{Failure, Shared};
use super::Endpoint;

impl Endpoint {
    /// Unfinished items, by kind.
    pub(in super::super) fn left(&self) -> Vec<(&'static str, usize)> {
        let mut left = vec![
            ("offers", self.offers.len()),
            ("served", self.serving.len()),
            ("renewals", self.renewal.len()),
            ("commands", self.core.outbox.len()),
            ("stages", self.core.stages.len() - self.offers.kept()),
            self.matching.left(),
        ];
        left.extend(self.session.left());
        left.extend(self.pulls.left());
        left.extend(self.requests.left());
        left.extend(self.one_sided.left());
        left
    }

    /// Checks the invariants within each part, and between parts.
    pub(in super::super) fn check(&self) {
        assert!(
            self.core.actions.is_empty(),
            "actions do not outlive a call"
        );
        if self.core.is_gone {
            return;
        }
        self.session.check();
        self.matching.check();
        self.pulls.check();
        self.requests.check();
        let staged = self.offers.check(&self.core) + self.one_sided.check();
        assert_eq!(
            self.core.stages.len(),
            staged,
            "each stage in use has an owner"
        );
    }

    /// Takes a stage without an owner.
    pub(in super::super) fn lose_a_stage(&mut self) {
        let stage = self.core.stages.insert(());
        assert!(stage.is_some(), "there is room");
    }

    /// Stages kept for lost peers.
    pub(in super::super) fn kept(&self) -> usize {
        self.offers.kept()
    }

    pub(in super::super) const fn probes(&self) -> u64 {
        self.liveness.probes
    }

    /// Number of unfinished items of a kind.
    pub(in super::super) fn count(&self, kind: &str) -> usize {
        let mut left = self.left().into_iter();
        let found = left.find(|(name, _)| *name == kind);
        found.unwrap_or_else(|| panic!("{kind}: no such kind")).1
    }

    /// Why each peer is lost, if it is.
    pub(in super::super) fn failures(&self) -> Vec<Option<Failure>> {
        self.core.peers.iter().map(|peer| peer.failed).collect()
    }

    /// Ends the message in a slot with this status; the slot may be free.
    pub(in super::super) fn sent(&mut self, shared: &mut Shared, slot: usize, status: Status) {
        self.session.completed(&mut self.core, shared, slot, status);
        self.route(shared);
    }

    /// The first slot that holds a message.
    pub(in super::super) fn sending(&self) -> Option<usize> {
        let mut slots = 0..super::super::slots::SENDS;
        slots.find(|&slot| self.session.request(&self.core, slot).is_some())
    }

    /// Counts a check.
    pub(in super::super) const fn tick(&mut self) {
        self.core.clock.tick();
    }
}

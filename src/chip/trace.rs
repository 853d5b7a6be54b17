//! The packet watch of a router chip.

use super::chip_core::ChipCore;
use super::node::Chip;
use crate::link::LinkView as _;
use crate::time::Time;
use crate::trace::{Flow, Tracing, Watch, Watched};

impl<C: ChipCore> Chip<C> {
    /// Sets the time of the watch and removes an expired watch.
    #[cold]
    pub(super) fn see(&mut self, now: Time) {
        let Some(slot) = self.core_mut().watch() else {
            return;
        };
        self.watches = match slot {
            Some(watch) => {
                let goes_on = watch.see(now);
                if !goes_on {
                    *slot = None;
                }
                goes_on
            }
            None => false,
        };
    }

    /// Reports to the watch whether the links have resent packets, and delivered those that
    /// departed.
    #[cold]
    pub(super) fn settle_watch(&mut self) {
        let Some(mut watch) = self.core_mut().watch().and_then(Option::take) else {
            return;
        };
        if watch.is_unsettled() {
            watch.settle(|port| {
                let end = self.lcb(port).filter(|end| end.is_active())?;
                Some((end.resent(), end.unacknowledged_packets() == 0))
            });
        }
        if let Some(slot) = self.core_mut().watch() {
            *slot = Some(watch);
        }
    }
}

impl<C: ChipCore> Tracing for Chip<C> {
    fn watch(&mut self, now: Time, flow: Flow, until: Time) {
        let clock = self.cycle_clock();
        if let Some(slot) = self.core_mut().watch() {
            *slot = Some(Box::new(Watch::new(flow, now, until, clock)));
            self.watches = true;
        }
    }

    fn watched(&mut self, now: Time, identity: Option<u64>) -> Watched {
        self.see(now);
        self.settle_watch();
        let watch = self.core_mut().watch().and_then(|slot| slot.as_ref());
        watch.map_or_else(Watched::default, |watch| watch.report(identity))
    }

    fn want(&mut self, identity: u64) {
        if let Some(watch) = self.core_mut().watch().and_then(Option::as_mut) {
            watch.want(identity);
        }
    }

    fn unwatch(&mut self) {
        if let Some(slot) = self.core_mut().watch() {
            *slot = None;
        }
        self.watches = false;
    }
}

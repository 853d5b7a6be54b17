//! Transfers that end early because their owner has gone or their target is silent.

use super::super::block_transfer::{Active, Queued, Stage};
use super::super::completion::Failure;
use super::super::transaction::Transactions;
use super::super::transfer_targets::{Silence, TargetIndex};
use super::{BlockTransferEngine, CHANNELS, TransferEnded, TransferOwner};

impl BlockTransferEngine {
    /// Ends all transfers of `owner`. Afterwards its memory is accessed only by transfers that were
    /// sent completely.
    pub(crate) fn give_up(&mut self, owner: TransferOwner, transactions: &mut Transactions) {
        let is_its = |queued: &Queued, _: bool| queued.owner == owner;
        self.fail(Failure::Aborted, is_its, transactions);
    }

    /// Fails the transfers queued behind a window that has timed out completely, so that they do
    /// not cost a timeout per window. If all targets are silent, this includes transfers to other
    /// targets, which waited only because the window was full. Sends and fenced transfers are
    /// excluded, since they may wait for something else.
    pub(super) fn fail_silent(
        &mut self,
        target: TargetIndex,
        who: Silence,
        transactions: &mut Transactions,
    ) {
        let is_silent = |queued: &Queued, is_fenced: bool| {
            let others_too = who == Silence::All && !queued.is_send() && !is_fenced;
            queued.target == target || others_too
        };
        self.fail(Failure::TimedOut, is_silent, transactions);
    }

    /// Ends the transfers that `which` selects. Queued ones end at once; partly sent ones end when
    /// their outstanding packets have been answered or timed out; completely sent ones are left
    /// alone. The second argument of `which` says whether the transfer is behind a fence.
    fn fail(
        &mut self,
        failure: Failure,
        which: impl Fn(&Queued, bool) -> bool,
        transactions: &mut Transactions,
    ) {
        for index in 0..CHANNELS {
            let (ended, open, targets) = (&mut self.ended, &mut self.open, &mut self.targets);
            let mut is_fenced = false;
            self.channels[index].queue.retain(|queued| {
                is_fenced |= queued.transfer.fence;
                let fails = which(queued, is_fenced);
                if fails {
                    open.remove(&queued.serial);
                    targets.leave(queued.target);
                    ended.push_back(TransferEnded {
                        owner: queued.owner,
                        transfer: queued.transfer,
                        channel: index as u8,
                        queued: queued.queued,
                        bytes: 0,
                        failure: Some(failure),
                        unsent: true,
                    });
                }
                !fails
            });
        }
        let is_partly_out = |active: &Active| {
            let is_out = active.stage == Stage::Streaming && active.left() == 0;
            !is_out && active.stage < Stage::Ending && which(&active.what, false)
        };
        for slot in self.slots.find(is_partly_out) {
            let active = self.slots.get(slot);
            active.failure.get_or_insert(failure);
            if let Stage::Announcing(_) = active.stage {
                // The target has received no packet of the transfer.
                active.stage = Stage::Ended;
                self.waiting.retain(|&waiting| waiting != slot);
                self.take_out(slot);
            }
            self.proceed(slot, transactions);
        }
    }
}

//! The bypass for isolated packets: the stages handle them without the buffers between them.
//!
//! Where wires take no time ([`grain`](super::grain)), packets reach the subswitches one after
//! another. If a packet's row buffer is empty and no other packet waits for its output, it is
//! granted the subswitch and the output as soon as it leaves its input queue. Every arbiter,
//! counter, load and trace on its path sees it as usual. It only skips the row and the column
//! buffer, where it would be written and read at once, and likewise the queues of Netlink. If its
//! link or NIC cannot accept it, it waits in the column buffer and continues from there. A test
//! runs routers with and without the buffers, with links that run out of credits, stall and fail,
//! and compares arbiters, loads, counters, random choices and deliveries every eighth step.

use super::columns::Current;
use super::grain::Items;
use super::pipeline::{COLUMNS, ColumnBufferId, RowBufferId};
use super::pool::Item;
use super::tiles::{Ports, Tiles};
use super::watched::watch_switch;

impl<I: Items> Tiles<I> {
    /// Sends an item whose route by `output` is decided and committed.
    #[inline]
    pub(super) fn send_on<P: Ports>(
        &mut self,
        output: usize,
        id: RowBufferId,
        item: Item,
        io: &mut P,
    ) {
        let alone = !I::TIMED
            && self.loads.committed(output) == u16::from(item.flits())
            && (self.rows.are_empty() || self.rows.pipes[id.index()].is_empty());
        #[cfg(test)]
        {
            self.alone += u64::from(alone);
        }
        if alone && I::THROUGH {
            return self.pass_through(output, id, item, io);
        }
        let to = ColumnBufferId::new(id.subswitch(), item.slot.vc(), output / COLUMNS);
        self.send_to_row(id, item);
        if alone {
            self.grant_row(to.subswitch(), to.row(), 1 << to.vc());
            self.rows.deactivate_if_blocked(to.subswitch());
            self.output(output, io);
        }
    }

    #[inline]
    fn pass_through<P: Ports>(&mut self, output: usize, from: RowBufferId, item: Item, io: &mut P) {
        let slot = item.slot;
        let vc = slot.vc();
        let to = ColumnBufferId::new(from.subswitch(), vc, output / COLUMNS);
        self.rows.grant_alone(to, from);
        if self.watch.is_some() {
            watch_switch(&mut self.watch, self.cycle, (from, to), slot);
        }
        let (_, can) = self.can_leave(output, vc, slot, io);
        if !can {
            let now = self.wire_clock();
            self.columns.write::<I>(now, to, item, &mut self.pool);
            self.columns.arrived(to);
            return self.output(output, io);
        }
        if self.columns.discarding[vc] >> output & 1 != 0 {
            self.resume(output, vc);
        }
        let current = Current::new(vc, to.source_row(), 0);
        self.begin_leaving(output, current, slot);
        self.leave_by(output, current, item, io);
    }
}

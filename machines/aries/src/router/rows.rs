//! Second stage: row buffers and the 64 x 6 subswitches (XC white paper, "Aries Router").
//!
//! A subswitch has an input per row buffer (eight lanes of its row with eight virtual channels
//! each) and an output per row, whose column buffers are divided by the virtual channel on which
//! packets leave. Arbitration among the inputs grants an output's virtual channel to a packet,
//! which keeps it until its end (wormhole). In each cycle another arbitration decides which virtual
//! channel uses the output. A flit moves when the column buffer has a free slot, so column buffers
//! are allocated while the packet is switched.

use super::grain::Items;
use super::pipeline::{BUFFERS, ColumnBufferId, ROWS, RowBufferId, RowPipe, TILES, Wake};
use super::pool::{Fifo, Item, Pool, Slot};
use super::tiles::Tiles;
use super::watched::watch_switch;
use crate::route::registers::VCS;
use phitwire::kit::below;
use phitwire::kit::tiles::boxed;
use phitwire::kit::{MatrixArbiter, Next, Room};

/// Tag of a row buffer whose front packet has not requested an output; otherwise the tag is its
/// target.
const UNDECIDED: u8 = 0xff;
/// Tag of a row buffer from which a packet is still being read.
const READING: u8 = 0xfe;
/// Marks an unused virtual channel of an output.
const FREE: u8 = 0xff;

/// A 64 x 6 subswitch. Inputs are numbered by virtual channel, then lane.
#[derive(Clone, Copy, Debug)]
struct Subswitch {
    /// Inputs with a flit, by output and virtual channel there.
    requests: [[u64; VCS]; ROWS],
    /// The input whose packet holds an output's virtual channel.
    holder: [[u8; VCS]; ROWS],
    /// Virtual channels of each output whose column buffer has a free slot.
    open: [u8; ROWS],
    /// Virtual channels that can move a flit, one byte per output.
    grantable: u64,
    /// Outputs that a packet is passing, marked by all bits of their byte.
    busy: u64,
    arbiters: [Arbiters; ROWS],
}

/// The arbiters of an output, side by side so that a granted packet touches a single cache
/// line of a subswitch.
#[derive(Clone, Copy, Debug)]
struct Arbiters {
    vc: MatrixArbiter,
    /// The input that last held each virtual channel.
    last: [u8; VCS],
}

impl Subswitch {
    const fn new() -> Self {
        Self {
            requests: [[0; VCS]; ROWS],
            holder: [[FREE; VCS]; ROWS],
            open: [0xff; ROWS],
            grantable: 0,
            busy: 0,
            arbiters: [Arbiters {
                vc: MatrixArbiter::new(),
                last: [0; VCS],
            }; ROWS],
        }
    }

    /// The inputs that may send to an output's virtual channel, regardless of room.
    #[inline]
    fn eligible(&self, row: usize, vc: usize) -> u64 {
        let requests = self.requests[row][vc];
        match self.holder[row][vc] {
            FREE => requests,
            holder => requests & 1 << below::<64>(holder as usize),
        }
    }

    /// Recomputes whether an output's virtual channel can move a flit.
    #[inline]
    fn refresh(&mut self, row: usize, vc: usize) {
        let can = self.eligible(row, vc) != 0 && self.open[row] >> vc & 1 != 0;
        let bit = row * 8 + vc;
        self.grantable = self.grantable & !(1 << bit) | u64::from(can) << bit;
    }

    /// The next input after the last holder of the output's virtual channel.
    #[inline]
    fn pick(&self, row: usize, vc: usize) -> u32 {
        let eligible = self.eligible(row, vc);
        debug_assert!(eligible != 0, "an eligible input");
        let first = u32::from(self.arbiters[row].last[vc]) + 1;
        (eligible.rotate_right(first).trailing_zeros() + first) % 64
    }
}

#[derive(Debug)]
pub(super) struct Rows {
    /// Subswitches that may have an output to grant.
    pub(super) active: u64,
    /// Items in row buffers and on the wires to them.
    items: u32,
    fifos: Box<[Fifo; BUFFERS]>,
    pub(super) pipes: Box<[RowPipe; BUFFERS]>,
    subswitches: Box<[Subswitch; TILES]>,
}

impl Rows {
    pub(super) fn new() -> Self {
        Self {
            active: 0,
            items: 0,
            fifos: boxed(Fifo::EMPTY),
            pipes: boxed(RowPipe::new(UNDECIDED)),
            subswitches: boxed(Subswitch::new()),
        }
    }

    /// Puts a flit on a row bus. Returns true if the subswitch must be woken when the flit arrives.
    #[inline]
    pub(super) fn write<I: Items>(
        &mut self,
        cycle: u32,
        id: RowBufferId,
        item: Item,
        pool: &mut Pool,
    ) -> bool {
        let wakes = I::write(&mut self.pipes[id.index()], cycle, item.flits());
        self.items += 1;
        pool.push(&mut self.fifos[id.index()], item);
        wakes
    }

    /// Whether nothing is in any row buffer, or on a wire to one.
    #[inline]
    pub(super) fn are_empty(&self) -> bool {
        self.items == 0
    }

    /// Deactivates a subswitch that can move nothing until something changes.
    #[inline]
    pub(super) fn deactivate_if_blocked(&mut self, number: usize) {
        let switch = &self.subswitches[number];
        if switch.grantable & !switch.busy == 0 {
            self.active &= !(1 << number);
        }
    }

    /// Grants an output to a packet that has no competition.
    #[inline]
    pub(super) fn grant_alone(&mut self, to: ColumnBufferId, from: RowBufferId) {
        let switch = &mut self.subswitches[below::<TILES>(to.subswitch())];
        let (row, vc) = (below::<ROWS>(to.row()), to.vc());
        let arbiters = &mut switch.arbiters[row];
        arbiters.vc.grant(vc as u8);
        arbiters.last[vc] = from.requester() as u8;
    }

    /// Marks an output of a subswitch as occupied by a packet.
    pub(super) fn take_output(&mut self, number: usize, row: usize) {
        self.subswitches[number].busy |= 0xff << (8 * row);
    }

    /// Marks an output of a subswitch as free again.
    pub(super) fn free_output(&mut self, number: usize, row: usize) {
        let switch = &mut self.subswitches[number];
        switch.busy &= !(0xff << (8 * row));
        self.active |= u64::from(switch.grantable & !switch.busy != 0) << number;
    }

    /// Begins to read a packet from a row buffer, which requests no other output until the packet's
    /// end.
    pub(super) fn begin_reading(&mut self, id: RowBufferId) {
        self.pipes[id.index()].tag = READING;
    }

    /// Ends the read of a packet. Returns whether another packet has arrived.
    pub(super) fn end_reading(&mut self, id: RowBufferId, now: u32) -> bool {
        let pipe = &mut self.pipes[id.index()];
        pipe.tag = UNDECIDED;
        pipe.is_ready(now)
    }

    #[cfg(test)]
    pub(super) fn subswitches(&self) -> &impl core::fmt::Debug {
        &self.subswitches
    }

    /// Flits in row buffers and on the wires to them, by subswitch and virtual channel.
    pub(super) fn by_subswitch<I: Items>(&self) -> [[u64; VCS]; TILES] {
        let mut held = [[0; VCS]; TILES];
        for (index, pipe) in self.pipes.iter().enumerate() {
            let id = RowBufferId::at(index);
            held[id.subswitch()][id.vc()] += u64::from(I::flits(pipe));
        }
        held
    }

    /// Flits in row buffers and on the wires to them.
    pub(super) fn flits<I: Items>(&self) -> u64 {
        self.pipes
            .iter()
            .map(|pipe| u64::from(I::flits(pipe)))
            .sum()
    }
}

impl<I: Items> Tiles<I> {
    /// Requests an output for a flit that arrived in an empty row buffer, or for a head at its
    /// front.
    #[inline]
    pub(super) fn request_output(&mut self, id: RowBufferId) {
        let rows = &mut self.rows;
        let pipe = &mut rows.pipes[id.index()];
        if I::PACKETS && pipe.tag == READING {
            return;
        }
        if pipe.tag == UNDECIDED {
            let front = self.pool.front(&rows.fifos[id.index()]);
            debug_assert!(
                front.is_some_and(Slot::is_head),
                "a packet begins with its head"
            );
            pipe.tag = front.map_or(0, Slot::target);
        }
        let (row, vc) = (
            below::<ROWS>(usize::from(pipe.tag & 7)),
            below::<VCS>(usize::from(pipe.tag >> 3)),
        );
        let number = id.subswitch();
        let switch = &mut rows.subswitches[below::<TILES>(number)];
        switch.requests[row][vc] |= 1 << id.requester();
        switch.refresh(row, vc);
        rows.active |= 1 << number;
    }

    /// Handles the report of a free slot in a column buffer at the subswitch.
    #[inline]
    pub(super) fn column_slot_freed(&mut self, id: ColumnBufferId) {
        if !self.column_has_room(id, 0) {
            return;
        }
        let (number, row, vc) = (id.subswitch(), below::<ROWS>(id.row()), id.vc());
        let switch = &mut self.rows.subswitches[below::<TILES>(number)];
        switch.open[row] |= 1 << vc;
        switch.refresh(row, vc);
        self.rows.active |= u64::from(switch.grantable & !switch.busy != 0) << number;
    }

    /// Whether a flit can be written to a column buffer in this cycle (`after` is 0) or the next
    /// (1). If not, the subswitch will be woken when it can.
    #[inline]
    fn column_has_room(&mut self, id: ColumnBufferId, after: u32) -> bool {
        let now = self.wire_clock();
        match I::room(&mut self.columns.pipes[id.index()], now, after) {
            Room::Open => true,
            Room::Ahead(cycles) => {
                self.wake_ahead(cycles.into(), Wake::ColumnWriter(id));
                false
            }
            Room::Starved => false,
        }
    }

    /// Each subswitch moves as many flits as it can: at most one per output and one per row buffer.
    pub(super) fn subswitch_stage(&mut self) {
        let mut pending = self.rows.active;
        while pending != 0 {
            let number = below::<TILES>(pending.trailing_zeros() as usize);
            pending &= pending - 1;
            let switch = &self.rows.subswitches[number];
            let mut grantable = switch.grantable & !switch.busy;
            // A row buffer requests one output at a time, and the next only after all outputs are
            // granted, so two outputs never read the same buffer.
            let (mut asking, mut asks) = ([RowBufferId::new(0, 0, 0); ROWS], 0);
            while grantable != 0 {
                let row = below::<ROWS>(grantable.trailing_zeros() as usize / 8);
                let vcs = (grantable >> (8 * row)) as u8;
                grantable &= !(0xff << (8 * row));
                if let Some(from) = self.grant_row(number, row, vcs) {
                    asking[asks] = from;
                    asks += 1;
                }
            }
            for &id in &asking[..asks] {
                self.request_output(id);
            }
            self.rows.deactivate_if_blocked(number);
        }
    }

    /// Moves one item through an output of a subswitch, whose virtual channels `vcs` can move an
    /// item. Returns the row buffer that requests an output next.
    #[inline]
    pub(super) fn grant_row(&mut self, number: usize, row: usize, vcs: u8) -> Option<RowBufferId> {
        let switch = &mut self.rows.subswitches[number];
        let vc = below::<VCS>(usize::from(switch.arbiters[row].vc.arbitrate(vcs)));
        let from = RowBufferId::of_requester(number, switch.pick(row, vc));
        let asks = self.switch_flit(ColumnBufferId::new(number, vc, row), from);
        asks.then_some(from)
    }

    /// Moves one flit from a row buffer to a column bus. Returns true if it ends a packet and
    /// another waits, which requests an output next.
    #[inline]
    fn switch_flit(&mut self, to: ColumnBufferId, from: RowBufferId) -> bool {
        let (number, vc, row) = (
            below::<TILES>(to.subswitch()),
            to.vc(),
            below::<ROWS>(to.row()),
        );
        let requester = from.requester();
        let cycle = self.wire_clock();
        let rows = &mut self.rows;
        let Some(item) = self.pool.pop(&mut rows.fifos[from.index()]) else {
            unreachable!("a requesting row buffer has a flit");
        };
        let slot = item.slot;
        rows.items -= 1;
        let pipe = &mut rows.pipes[from.index()];
        let (next, wakes_input) = I::read(pipe, cycle, item.flits());
        let switch = &mut rows.subswitches[number];
        if slot.is_head() {
            switch.holder[row][vc] = requester as u8;
            switch.arbiters[row].last[vc] = requester as u8;
            if self.watch.is_some() {
                watch_switch(&mut self.watch, self.cycle, (from, to), slot);
            }
        }
        if slot.is_last() {
            pipe.tag = UNDECIDED;
            switch.holder[row][vc] = FREE;
        }
        if slot.is_last() || next != Next::Ready {
            switch.requests[row][vc] &= !(1 << requester);
        }
        if wakes_input {
            self.wake_row_writer(from);
        }
        let wakes = self.columns.write::<I>(cycle, to, item, &mut self.pool);
        self.on_column_bus(to, wakes);
        let full = !self.column_has_room(to, 1);
        self.stalls[1] += u64::from(full);
        let switch = &mut self.rows.subswitches[number];
        switch.open[row] &= !(u8::from(full) << vc);
        switch.refresh(row, vc);
        if self.passes_switch(from, to, item.flits(), next) {
            return false;
        }
        if let Next::Ahead(cycles) = next {
            self.wake_ahead(cycles.into(), Wake::RowReader(from));
        }
        slot.is_last() && next == Next::Ready
    }
}

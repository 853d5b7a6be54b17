//! Second stage: row buffers and the 8x8 subswitches (BlackWidow sec. 3, 5.1, 6, 7.5).
//!
//! A packet wins a subswitch output by 8-to-1 arbitration among the row buffers, per virtual
//! channel, and keeps it until its end (wormhole). In each cycle a 2-to-1 arbitration decides which
//! virtual channel uses the output. A phit moves when the column buffer has a free slot, so column
//! buffers are allocated while the packet is switched.

use super::core::{Core, SLOT_EOP, SLOT_HEAD, SLOT_KIND_MASK, SLOT_MASK_SHIFT, Slot};
use super::pipeline::{
    BUFFERS, COLUMN_CYCLES, ColumnBufferId, ROW_CREDIT_CYCLES, Ring, RowBufferId, RowPipe, Wake,
};
use super::watched::watch_switch;
use crate::route::adaptive::preferred_rows;
use crate::route::registers::PORTS;
use phitwire::kit::below;
use phitwire::kit::pipe::RING_SLOTS;
use phitwire::kit::tiles::boxed;
use phitwire::kit::{MatrixArbiter, Next, Room, RoundRobin};

/// Tag of a row buffer whose front packet has not chosen its output row; otherwise the tag is that
/// row.
const UNDECIDED: u8 = 0xff;

/// One virtual channel of a subswitch.
///
/// Each eight-byte word has one byte per output (output row), with one bit per input (lane of the
/// row).
#[derive(Clone, Copy, Debug)]
struct SubswitchVc {
    /// Lanes with a phit, by output.
    requests: u64,
    /// All ones if the output is free, otherwise only the lane of the packet that holds it.
    holders: u64,
    /// All ones if the column buffer has a free slot, otherwise zeros.
    open: u64,
    lane_turn: [MatrixArbiter; 8],
}

#[derive(Clone, Copy, Debug)]
struct Subswitch {
    vcs: [SubswitchVc; 2],
    /// One arbiter between the virtual channels per output.
    vc_turn: RoundRobin,
    /// Breaks ties of the adaptive row choice.
    row_turn: MatrixArbiter,
}

impl Subswitch {
    const fn new() -> Self {
        let vc = SubswitchVc {
            requests: 0,
            holders: u64::MAX,
            open: u64::MAX,
            lane_turn: [MatrixArbiter::new(); 8],
        };
        Self {
            vcs: [vc; 2],
            vc_turn: RoundRobin::new(),
            row_turn: MatrixArbiter::new(),
        }
    }
}

#[derive(Debug)]
pub(super) struct Rows {
    /// Subswitches that may have an output to grant.
    pub(super) active: u64,
    rings: Box<[Ring; BUFFERS]>,
    pub(super) pipes: Box<[RowPipe; BUFFERS]>,
    subswitches: Box<[Subswitch; PORTS]>,
}

impl Rows {
    pub(super) fn new() -> Self {
        Self {
            active: 0,
            rings: boxed(Ring([0; RING_SLOTS])),
            pipes: boxed(RowPipe::new(UNDECIDED)),
            subswitches: boxed(Subswitch::new()),
        }
    }

    /// Puts a phit on a row bus. Returns true if the subswitch must be woken when the phit arrives.
    #[inline]
    pub(super) fn write(&mut self, cycle: u32, id: RowBufferId, slot: Slot) -> bool {
        let (place, wakes) = self.pipes[id.index()].write(cycle);
        self.rings[id.index()].0[place] = slot;
        wakes
    }

    /// The free slots in the eight row buffers of (`port`, `vc`) that the input tile knows of.
    #[inline]
    pub(super) fn credits_of_input(&self, port: usize, vc: usize, cycle: u32) -> [u8; 8] {
        core::array::from_fn(|column| {
            self.pipes[RowBufferId::new(port, vc, column).index()].credits(cycle)
        })
    }

    /// Phits in row buffers and on the wires to them.
    pub(super) fn phits(&self) -> u64 {
        self.pipes.iter().map(|pipe| u64::from(pipe.len())).sum()
    }

    /// Phits by subswitch and virtual channel.
    pub(super) fn by_subswitch(&self) -> [[u64; 2]; PORTS] {
        let mut held = [[0; 2]; PORTS];
        for (index, pipe) in self.pipes.iter().enumerate() {
            let id = RowBufferId::at(index);
            held[id.subswitch()][id.vc()] += u64::from(pipe.len());
        }
        held
    }
}

impl Core {
    /// Requests an output for a phit that arrived in an empty row buffer.
    #[inline]
    pub(super) fn request_output(&mut self, id: RowBufferId) {
        let subswitch = id.subswitch();
        let mut target = self.rows.pipes[id.index()].tag;
        if target == UNDECIDED {
            target = self.choose_row(id);
            self.rows.pipes[id.index()].tag = target;
        }
        self.rows.subswitches[subswitch].vcs[id.vc()].requests |=
            1 << (u32::from(target & 7) * 8 + id.lane() as u32);
        self.rows.active |= 1 << subswitch;
    }

    /// The second stage of the adaptive choice (BlackWidow sec. 5.1 and 7.8.3). Deterministic
    /// packets have only one row.
    #[inline]
    fn choose_row(&mut self, id: RowBufferId) -> u8 {
        let slot = self.rows.rings[id.index()].0[self.rows.pipes[id.index()].front()];
        debug_assert!(
            slot & SLOT_KIND_MASK == SLOT_HEAD,
            "a packet begins with its head"
        );
        let rows = (slot >> SLOT_MASK_SHIFT) as u8;
        debug_assert!(rows != 0, "a head comes with its row mask");
        if rows & rows.wrapping_sub(1) == 0 {
            return (rows.trailing_zeros() & 7) as u8;
        }
        let (subswitch, cycle) = (id.subswitch(), self.cycle as u32);
        let credits = self.columns.credits_of_subswitch(subswitch, id.vc(), cycle);
        let row = self.rows.subswitches[subswitch]
            .row_turn
            .arbitrate(preferred_rows(credits, rows));
        if self.watch.is_some() {
            self.watch_rows(id, slot, (credits, rows), row);
        }
        row
    }

    /// Handles the report of a free slot in a column buffer at the subswitch.
    #[inline]
    pub(super) fn column_slot_freed(&mut self, id: ColumnBufferId) {
        if !self.column_has_room(id, 0) {
            return;
        }
        let vc = &mut self.rows.subswitches[id.subswitch()].vcs[id.vc()];
        let mask = 0xff << (8 * id.row());
        vc.open |= mask;
        if vc.requests & mask != 0 {
            self.rows.active |= 1 << id.subswitch();
        }
    }

    /// Whether a phit can be written to a column buffer in this cycle (`after` is 0) or the next
    /// (1). If not, the subswitch will be woken when it can.
    #[inline]
    fn column_has_room(&mut self, id: ColumnBufferId, after: u32) -> bool {
        match self.columns.pipes[id.index()].room(self.cycle as u32, after) {
            Room::Open => true,
            Room::Ahead(cycles) => {
                self.calendar
                    .enter(self.cycle, cycles.into(), Wake::ColumnWriter(id));
                false
            }
            Room::Starved => false,
        }
    }

    /// Each subswitch moves as many phits as it can: at most one per output and one per row buffer.
    pub(super) fn subswitch_stage(&mut self) {
        let mut pending = self.rows.active;
        while pending != 0 {
            let subswitch = pending.trailing_zeros() as usize;
            pending &= pending - 1;
            self.switch(subswitch);
        }
    }

    #[inline]
    fn switch(&mut self, subswitch: usize) {
        let grantable = self.rows.subswitches[below::<PORTS>(subswitch)]
            .vcs
            .map(|vc| vc.requests & vc.holders & vc.open);
        let [requests, responses] = grantable;
        if requests | responses == 0 {
            self.rows.active &= !(1 << subswitch);
            return;
        }
        // The two virtual channels of a row buffer share its read port. Rotate the order of the
        // outputs every cycle, so that no output always finds the read port taken.
        let first = (self.cycle & 7) as u32;
        let mut outputs = (requests | responses).rotate_right(8 * first);
        let mut unread = 0xffu8;
        while outputs != 0 {
            let step = outputs.trailing_zeros() / 8;
            outputs &= !(0xff << (8 * step));
            let row = (step + first) & 7;
            let asks = (requests >> (8 * row)) as u8 & unread;
            let answers = (responses >> (8 * row)) as u8 & unread;
            if asks | answers == 0 {
                continue;
            }
            let switch = &mut self.rows.subswitches[below::<PORTS>(subswitch)];
            let vc = switch.vc_turn.arbitrate(row, asks != 0, answers != 0);
            let lanes = if vc == 0 { asks } else { answers };
            let lane = switch.vcs[vc].lane_turn[row as usize].pick(lanes);
            unread &= !(1 << lane);
            self.switch_phit(
                ColumnBufferId::new(subswitch, vc, row as usize),
                lane.into(),
            );
        }
    }

    /// Moves one phit from a row buffer to a column channel.
    #[inline]
    fn switch_phit(&mut self, to: ColumnBufferId, lane: usize) {
        let (subswitch, vc, row) = (to.subswitch(), to.vc(), to.row());
        let from = RowBufferId::new(subswitch & 0x38 | lane, vc, subswitch & 7);
        let (now, cycle) = (self.cycle, self.cycle as u32);
        let rows = &mut self.rows;
        let pipe = &mut rows.pipes[from.index()];
        let slot = rows.rings[from.index()].0[pipe.front()];
        let (next, wakes_input) = pipe.read(cycle);
        let switch = &mut rows.subswitches[subswitch].vcs[vc];
        let request = 1u64 << (8 * row + lane);
        let outputs = 0xffu64 << (8 * row);
        let kind = slot & SLOT_KIND_MASK;
        if kind == SLOT_HEAD {
            switch.lane_turn[row].grant(lane as u8);
            switch.holders = switch.holders & !outputs | request;
            if let Some(watch) = &mut self.watch {
                watch_switch(watch, now, (from, to), slot);
            }
        } else if kind == SLOT_EOP {
            pipe.tag = UNDECIDED;
            switch.holders |= outputs;
        }
        if kind == SLOT_EOP || next != Next::Ready {
            switch.requests &= !request;
        }
        if wakes_input {
            self.calendar
                .enter(now, ROW_CREDIT_CYCLES, Wake::RowWriter(from));
        }
        if self
            .columns
            .write(cycle, to, slot & !(0xff << SLOT_MASK_SHIFT))
        {
            self.calendar
                .enter(now, COLUMN_CYCLES, Wake::ColumnReader(to));
        }
        if !self.column_has_room(to, 1) {
            self.stalls[1] += 1;
            self.rows.subswitches[subswitch].vcs[vc].open &= !outputs;
        }
        match next {
            // The next packet chooses its row now, and requests an output from the next cycle on.
            Next::Ready if kind == SLOT_EOP => self.request_output(from),
            Next::Ahead(cycles) => self
                .calendar
                .enter(now, cycles.into(), Wake::RowReader(from)),
            Next::Ready | Next::Empty => {}
        }
    }
}

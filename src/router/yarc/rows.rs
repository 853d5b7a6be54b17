//! Second stage: row buffers and the 8x8 subswitches (paper, sections 3, 5.1, 6, 7.5).
//!
//! A subswitch output is given to a packet by 8-to-1 arbitration among the row buffers, per
//! virtual channel, and stays with it until its end (wormhole); each cycle a 2-to-1 arbitration decides
//! which virtual channel uses the output. A phit moves when the column buffer has a free
//! place, so column buffers are allocated as the packet is switched.

use super::core::{Core, SLOT_EOP, SLOT_HEAD, SLOT_KIND_MASK, SLOT_MASK_SHIFT, Slot, boxed};
use super::pipeline::{
    BUFFERS, ColumnBufferId, PORT_VCS, ROW_CREDIT_CYCLES, ROW_CYCLES, ROW_SLOTS, RowBufferId,
};
use super::registers::PORTS;
use crate::route::adaptive::{COLUMN_BUFFER_PHITS, preferred_rows};
use crate::switch::{DelayLine, MatrixArbiter, RoundRobin};

/// `target`: the packet at the front has not chosen its output row.
const UNDECIDED: u8 = 0xff;

/// The state of one row buffer of one virtual channel.
#[derive(Clone, Copy, Debug)]
struct RowBuffer {
    head: u8,
    tail: u8,
    /// Phits that have arrived over the wire and not been read.
    visible: u8,
    /// Output row of the packet at the front.
    target: u8,
}

/// All row buffers and subswitches of a chip.
///
/// Words of eight bytes hold one byte per subswitch output (= output row), and in the byte one
/// bit per input (= lane of the row).
#[derive(Debug)]
pub(super) struct Rows {
    /// Subswitches that may have something to grant.
    pub(super) active: u64,
    slots: Box<[Slot; BUFFERS * ROW_SLOTS]>,
    buffers: Box<[RowBuffer; BUFFERS]>,
    /// Which lanes have a phit for which output.
    requests: Box<[u64; PORT_VCS]>,
    /// All ones where the output is free, else only the lane of the packet that holds it.
    holders: Box<[u64; PORT_VCS]>,
    /// All ones where the column buffer has a free place, else zeros.
    open: Box<[u64; PORT_VCS]>,
    column_credits: Box<[[u8; 8]; PORT_VCS]>,
    lane_turn: Box<[MatrixArbiter; BUFFERS]>,
    vc_turn: Box<[RoundRobin; PORTS]>,
    row_turn: Box<[MatrixArbiter; PORTS]>,
    /// Phits on the row buses: row buffers that will see one more.
    pub(super) inbound: DelayLine<u16>,
    /// Credits on their way back to the input queues.
    pub(super) freed: DelayLine<u16>,
}

impl Rows {
    pub(super) fn new() -> Self {
        Self {
            active: 0,
            slots: boxed(0),
            buffers: boxed(RowBuffer {
                head: 0,
                tail: 0,
                visible: 0,
                target: UNDECIDED,
            }),
            requests: boxed(0),
            holders: boxed(u64::MAX),
            open: boxed(u64::MAX),
            column_credits: boxed([COLUMN_BUFFER_PHITS; 8]),
            lane_turn: boxed(MatrixArbiter::new()),
            vc_turn: boxed(RoundRobin::new()),
            row_turn: boxed(MatrixArbiter::new()),
            inbound: DelayLine::new(ROW_CYCLES),
            freed: DelayLine::new(ROW_CREDIT_CYCLES),
        }
    }

    /// Puts a phit on a row bus.
    #[inline]
    pub(super) fn write(&mut self, now: u64, id: RowBufferId, slot: Slot) {
        let buffer = &mut self.buffers[id.index()];
        self.slots[id.index() * ROW_SLOTS + usize::from(buffer.tail) % ROW_SLOTS] = slot;
        buffer.tail = buffer.tail.wrapping_add(1);
        self.inbound.push(now, id.0);
    }

    /// A phit has come over the row bus into its row buffer.
    #[inline]
    pub(super) fn arrived(&mut self, id: RowBufferId) {
        let buffer = &mut self.buffers[id.index()];
        buffer.visible += 1;
        debug_assert!(
            usize::from(buffer.visible) <= ROW_SLOTS,
            "a row buffer overflowed"
        );
        if buffer.visible == 1 {
            self.request(id);
        }
    }

    /// The output multiplexer read a phit from a column buffer.
    #[inline]
    pub(super) fn column_place_freed(&mut self, id: ColumnBufferId) {
        let (subswitch, vc, row) = (id.subswitch(), id.vc(), id.row());
        let credits = &mut self.column_credits[subswitch * 2 + vc][row];
        *credits += 1;
        debug_assert!(
            *credits <= COLUMN_BUFFER_PHITS,
            "a column credit was returned twice"
        );
        if *credits == 1 {
            let places = 0xff << (8 * row);
            self.open[subswitch * 2 + vc] |= places;
            if self.requests[subswitch * 2 + vc] & places != 0 {
                self.active |= 1 << subswitch;
            }
        }
    }

    /// Places of column buffers that are not free.
    pub(super) fn column_places_taken(&self) -> u64 {
        let taken = |credits: &[u8; 8]| -> u64 {
            credits
                .iter()
                .map(|&c| u64::from(COLUMN_BUFFER_PHITS - c))
                .sum()
        };
        self.column_credits.iter().map(taken).sum()
    }

    /// Asks for an output on behalf of the phit at the front of a row buffer.
    #[inline]
    fn request(&mut self, id: RowBufferId) {
        let subswitch = id.subswitch();
        let index = subswitch * 2 + id.vc();
        let mut target = self.buffers[id.index()].target;
        if target == UNDECIDED {
            target = self.choose_row(id);
            self.buffers[id.index()].target = target;
        }
        self.requests[index] |= 1 << (u32::from(target & 7) * 8 + id.lane() as u32);
        self.active |= 1 << subswitch;
    }

    /// The second stage of the adaptive choice (paper, sections 5.1 and 7.8.3); deterministic packets have one row.
    #[inline]
    fn choose_row(&mut self, id: RowBufferId) -> u8 {
        let head = usize::from(self.buffers[id.index()].head) % ROW_SLOTS;
        let slot = self.slots[id.index() * ROW_SLOTS + head];
        debug_assert!(
            slot & SLOT_KIND_MASK == SLOT_HEAD,
            "a packet begins with its head"
        );
        let rows = (slot >> SLOT_MASK_SHIFT) as u8;
        debug_assert!(rows != 0, "a head comes with its row mask");
        if rows & rows.wrapping_sub(1) == 0 {
            return (rows.trailing_zeros() & 7) as u8;
        }
        let subswitch = id.subswitch();
        let rows = preferred_rows(self.column_credits[subswitch * 2 + id.vc()], rows);
        self.row_turn[subswitch].arbitrate(rows)
    }
}

impl Core {
    /// Lets every subswitch move as many phits as it can: at most one per output and one per row
    /// buffer.
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
        let rows = &self.rows;
        let grantable = |vc: usize| {
            let index = subswitch * 2 + vc;
            rows.requests[index] & rows.holders[index] & rows.open[index]
        };
        let (requests, responses) = (grantable(0), grantable(1));
        if requests | responses == 0 {
            self.rows.active &= !(1 << subswitch);
            return;
        }
        // The two virtual channels of a row buffer share its read port. Which output is served first
        // changes every cycle, so that no output always finds the read port taken.
        let first = (self.cycle & 7) as u32;
        let mut outputs = (requests | responses).rotate_right(8 * first);
        let mut unread = 0xffu8;
        while outputs != 0 {
            let step = outputs.trailing_zeros() / 8;
            outputs &= !(0xff << (8 * step));
            let row = ((step + first) & 7) as usize;
            let lanes = [
                (requests >> (8 * row)) as u8 & unread,
                (responses >> (8 * row)) as u8 & unread,
            ];
            if lanes[0] | lanes[1] == 0 {
                continue;
            }
            let vc =
                self.rows.vc_turn[subswitch].arbitrate(row as u32, lanes[0] != 0, lanes[1] != 0);
            let turn = self.rows.lane_turn[ColumnBufferId::new(subswitch, vc, row).index()];
            let lane = turn.pick(lanes[vc]);
            unread &= !(1 << lane);
            self.switch_phit(subswitch, vc, row, usize::from(lane));
        }
    }

    /// Moves one phit from a row buffer to a column channel.
    #[inline]
    fn switch_phit(&mut self, subswitch: usize, vc: usize, row: usize, lane: usize) {
        let rows = &mut self.rows;
        let index = subswitch * 2 + vc;
        let from = RowBufferId::new(subswitch & 0x38 | lane, vc, subswitch & 7);
        let to = ColumnBufferId::new(subswitch, vc, row);
        let buffer = &mut rows.buffers[from.index()];
        let slot = rows.slots[from.index() * ROW_SLOTS + usize::from(buffer.head) % ROW_SLOTS];
        buffer.head = buffer.head.wrapping_add(1);
        buffer.visible -= 1;
        let visible = buffer.visible;

        let credits = &mut rows.column_credits[index][row];
        *credits -= 1;
        if *credits == 0 {
            rows.open[index] &= !(0xff << (8 * row));
        }
        rows.freed.push(self.cycle, from.0);
        self.columns
            .write(self.cycle, to, slot & !(0xff << SLOT_MASK_SHIFT));

        let request = 1u64 << (8 * row + lane);
        let kind = slot & SLOT_KIND_MASK;
        if kind == SLOT_EOP {
            rows.holders[index] |= 0xff << (8 * row);
            rows.requests[index] &= !request;
            rows.buffers[from.index()].target = UNDECIDED;
            if visible > 0 {
                rows.request(from);
            }
            return;
        }
        if kind == SLOT_HEAD {
            rows.lane_turn[to.index()].grant(lane as u8);
            rows.holders[index] = rows.holders[index] & !(0xff << (8 * row)) | request;
        }
        if visible == 0 {
            rows.requests[index] &= !request;
        }
    }
}

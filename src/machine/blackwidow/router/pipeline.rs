//! Depths and delays of the YARC pipeline, and how the buffers are numbered.
//!
//! The paper gives the sum, 25 stages or 31.25 ns (section 3, figure 4), the blocks (input queue,
//! subswitch, column buffers, each with input and output registers) and that stages were added for
//! the wires of row buses and column channels. The split over the blocks is ours:
//!
//! | stages | what |
//! |---|---|
//! | 8 | input queue: input register, write, read, root detect and table, hash or column mask, column choice, row-bus grant, output register |
//! | 2 | row bus: wire |
//! | 6 | subswitch: input register, row-buffer write, read, row choice, 8-to-1 and 2-to-1 arbitration, switch and output register |
//! | 2 | column channel: wire |
//! | 7 | column buffers: input register, write, read, 8-to-1 arbitration, 2-to-1 arbitration, multiplexer, output register |
//!
//! Contention happens at three places: the grant of the row bus, of a subswitch output and of the
//! output multiplexer. Between two of them a phit cannot be overtaken or held up, so the stages
//! between them are one delay. The four stages behind the multiplexer's grant are a fixed delay
//! that nothing can hold up either; they are counted in front of the row-bus grant, so that a phit
//! is handed to the link in the cycle in which it is granted.

use crate::kit::Pipe;
use crate::kit::below;
use crate::kit::pipe::RING_PLACES;
use crate::machine::blackwidow::route::adaptive::{COLUMN_BUFFER_PHITS, ROW_BUFFER_PHITS};

/// Stages of an idle router from the input queue to the output port (paper, section 3).
pub const ZERO_LOAD_CYCLES: u64 = 25;
/// Picoseconds of a cycle: 800 MHz (paper, section 6).
pub const CYCLE_PS: u64 = 1_250;

/// From a phit's arrival in the input queue to the grant of the row bus (8 stages and the 4 behind
/// the output multiplexer).
pub const INPUT_CYCLES: u64 = 12;
/// From the row-bus grant to the subswitch grant.
pub const ROW_CYCLES: u64 = 6;
/// From the subswitch grant to the grant of the output multiplexer.
pub const COLUMN_CYCLES: u64 = 7;
/// From a row buffer's read to the input queue's knowing that a place is free.
pub const ROW_CREDIT_CYCLES: u64 = 4;
/// From a column buffer's read to the subswitch's knowing that a place is free.
pub const COLUMN_CREDIT_CYCLES: u64 = 3;

const _: () = assert!(INPUT_CYCLES + ROW_CYCLES + COLUMN_CYCLES == ZERO_LOAD_CYCLES);
// The buffers are "large enough to cover the credit latency" (section 7.5): one flow can use every cycle.
const _: () = assert!(ROW_CYCLES + ROW_CREDIT_CYCLES <= ROW_BUFFER_PHITS as u64);
const _: () = assert!(COLUMN_CYCLES + COLUMN_CREDIT_CYCLES <= COLUMN_BUFFER_PHITS as u64);

/// Row and column buffers of one chip, counted per virtual channel: 512 x 2 of each.
pub(super) const BUFFERS: usize = 1024;
/// Ports times virtual channels, and subswitches times virtual channels.
pub(super) const PORT_VCS: usize = 128;
/// A row buffer at the end of its row bus.
pub(super) type RowPipe =
    Pipe<ROW_BUFFER_PHITS, { ROW_CYCLES as u32 }, { ROW_CREDIT_CYCLES as u32 }>;
/// A column buffer at the end of its column channel.
pub(super) type ColumnPipe =
    Pipe<COLUMN_BUFFER_PHITS, { COLUMN_CYCLES as u32 }, { COLUMN_CREDIT_CYCLES as u32 }>;

/// The places of a row or column buffer: one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Ring(pub(super) [u32; RING_PLACES]);

/// What the calendar holds: which side of which buffer has something to do again.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wake {
    /// A phit has come into a row buffer.
    RowReader(RowBufferId),
    /// A row buffer's free place is known at its input tile.
    RowWriter(RowBufferId),
    /// A phit has come into a column buffer.
    ColumnReader(ColumnBufferId),
    /// A column buffer's free place is known at its subswitch.
    ColumnWriter(ColumnBufferId),
}

/// A row buffer of one virtual channel: (input port, virtual channel, column).
///
/// It belongs to the subswitch at the input's row and that column, as its input number `lane`.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowBufferId(pub(super) u16);

impl RowBufferId {
    #[inline]
    pub(super) const fn new(port: usize, vc: usize, column: usize) -> Self {
        Self(((port * 2 + vc) * 8 + column) as u16)
    }
    #[inline]
    pub(super) const fn index(self) -> usize {
        below::<BUFFERS>(self.0 as usize)
    }
    #[inline]
    pub(super) const fn port(self) -> usize {
        self.index() >> 4
    }
    #[inline]
    pub(super) const fn vc(self) -> usize {
        (self.0 as usize >> 3) & 1
    }
    #[inline]
    pub(super) const fn column(self) -> usize {
        self.0 as usize & 7
    }
    #[inline]
    pub(super) const fn subswitch(self) -> usize {
        self.port() & 0x38 | self.column()
    }
    #[inline]
    pub(super) const fn lane(self) -> usize {
        self.port() & 7
    }
}

/// A column buffer of one virtual channel: (subswitch, virtual channel, output row).
///
/// It belongs to the output port at that row and the subswitch's column, as its input number
/// `source_row`.
#[derive(Clone, Copy, Debug)]
pub(super) struct ColumnBufferId(pub(super) u16);

impl ColumnBufferId {
    #[inline]
    pub(super) const fn new(subswitch: usize, vc: usize, row: usize) -> Self {
        Self(((subswitch * 2 + vc) * 8 + row) as u16)
    }
    /// The column buffer at output `port` that holds what comes from `source_row`.
    #[inline]
    pub(super) const fn at_output(port: usize, vc: usize, source_row: usize) -> Self {
        Self::new(source_row << 3 | port & 7, vc, port >> 3)
    }
    #[inline]
    pub(super) const fn index(self) -> usize {
        below::<BUFFERS>(self.0 as usize)
    }
    #[inline]
    pub(super) const fn subswitch(self) -> usize {
        self.index() >> 4
    }
    #[inline]
    pub(super) const fn vc(self) -> usize {
        (self.0 as usize >> 3) & 1
    }
    #[inline]
    pub(super) const fn row(self) -> usize {
        self.0 as usize & 7
    }
    #[inline]
    pub(super) const fn source_row(self) -> usize {
        self.subswitch() >> 3
    }
    #[inline]
    pub(super) const fn output(self) -> usize {
        self.row() << 3 | self.subswitch() & 7
    }
}

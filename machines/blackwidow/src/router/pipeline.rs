//! Depths and delays of the YARC pipeline, and the numbering of the buffers.
//!
//! Published are the sum, 25 stages or 31.25 ns (BlackWidow sec. 3, figure 4), the blocks (input
//! queue, subswitch, column buffers, each with input and output registers), and that row buses and
//! column channels have stages for their wires. The split is phitwire's:
//!
//! | stages | what |
//! |---|---|
//! | 8 | input queue: input register, write, read, root detect and table, hash or column mask, column choice, row-bus grant, output register |
//! | 2 | row bus: wire |
//! | 6 | subswitch: input register, row-buffer write, read, row choice, 8-to-1 and 2-to-1 arbitration, switch and output register |
//! | 2 | column channel: wire |
//! | 7 | column buffers: input register, write, read, 8-to-1 arbitration, 2-to-1 arbitration, multiplexer, output register |
//!
//! Packets compete at three points: the grants of the row bus, of a subswitch output and of the
//! output multiplexer. Between two of these points a phit cannot be overtaken or delayed, so the
//! stages in between are modelled as one delay. Nor can a phit be delayed in the four stages after
//! the multiplexer's grant. They are counted before the row-bus grant, so that a phit is passed to
//! the link in the cycle in which it is granted.

use crate::route::adaptive::{COLUMN_BUFFER_PHITS, ROW_BUFFER_PHITS};
use crate::route::registers::PORTS;
use phitwire::kit::pipe::RING_SLOTS;
use phitwire::kit::{Pipe, tiles};

/// Stages of an idle router from the input queue to the output port (BlackWidow sec. 3).
pub const ZERO_LOAD_CYCLES: u64 = 25;
/// Length of a cycle in picoseconds: 800 MHz (BlackWidow sec. 6).
pub const CYCLE_PS: u64 = 1_250;

/// Cycles from a phit's arrival in the input queue to the row-bus grant (8 stages, plus the 4 after
/// the output multiplexer).
pub const INPUT_CYCLES: u64 = 12;
/// Cycles from the row-bus grant to the subswitch grant.
pub const ROW_CYCLES: u64 = 6;
/// Cycles from the subswitch grant to the grant of the output multiplexer.
pub const COLUMN_CYCLES: u64 = 7;
/// Cycles from the read of a row buffer to the report of the free slot at the input queue.
pub const ROW_CREDIT_CYCLES: u64 = 4;
/// Cycles from the read of a column buffer to the report of the free slot at the subswitch.
pub const COLUMN_CREDIT_CYCLES: u64 = 3;

const _: () = assert!(INPUT_CYCLES + ROW_CYCLES + COLUMN_CYCLES == ZERO_LOAD_CYCLES);
// The buffers are "large enough to cover the credit latency" (BlackWidow sec. 7.5): a single flow
// can use every cycle.
const _: () = assert!(ROW_CYCLES + ROW_CREDIT_CYCLES <= ROW_BUFFER_PHITS as u64);
const _: () = assert!(COLUMN_CYCLES + COLUMN_CREDIT_CYCLES <= COLUMN_BUFFER_PHITS as u64);

/// Number of row buffers, and of column buffers, of one chip: 512 for each of two virtual channels.
pub(super) const BUFFERS: usize = 1024;
/// Ports times virtual channels, which equals subswitches times virtual channels.
pub(super) const PORT_VCS: usize = 128;
/// A row buffer at the end of its row bus.
pub(super) type RowPipe =
    Pipe<ROW_BUFFER_PHITS, { ROW_CYCLES as u32 }, { ROW_CREDIT_CYCLES as u32 }>;
/// A column buffer at the end of its column channel.
pub(super) type ColumnPipe =
    Pipe<COLUMN_BUFFER_PHITS, { COLUMN_CYCLES as u32 }, { COLUMN_CREDIT_CYCLES as u32 }>;

/// The slots of a row or column buffer: one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Ring(pub(super) [u32; RING_SLOTS]);

pub(super) type Wake = tiles::Wake<PORTS, 2>;
pub(super) type RowBufferId = tiles::RowBuffer<PORTS, 2>;
pub(super) type ColumnBufferId = tiles::ColumnBuffer<PORTS, 2>;

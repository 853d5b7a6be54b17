//! Depths and delays of the Aries pipeline, and the numbering of the buffers.
//!
//! Published are the sum, about 100 ns per hop (XC white paper, "Aries Performance"), the clock of
//! 875 MHz, the 6 x 8 tiles with a 64 x 6 subswitch each, and that a tile has an input queue and
//! column buffers ("Aries Router"). The rest is phitwire's (`docs/guide/src/aries.md`): a packet
//! takes [`ZERO_LOAD_CYCLES`] from the input queue to the output port of a router, and
//! [`SHORT_LINK_CYCLES`] from there over a short link into the next input queue. Together these are
//! 87 cycles or 99.4 ns.
//!
//! | cycles | what |
//! |---|---|
//! | 34 | input queue and row-bus grant (see below) |
//! | 6 | row bus, row buffer, subswitch grant |
//! | 7 | column bus, column buffer, output grant |
//!
//! The 34 cycles cover write, read, head decode, table lookup by four candidates, loads and biases,
//! and the choice of the virtual channel. They also cover the stages after the output multiplexer,
//! where packets cannot be delayed.
//!
//! Packets compete at three points: the grant of the row bus, of a subswitch output and of the
//! output multiplexer. Between two of these points a flit cannot be overtaken or delayed, so the
//! stages in between are modelled as one delay.

use crate::route::registers::{FIRST_NIC_PORT, NETWORK_PORTS, NICS, VCS};
use phitwire::kit::{Pipe, tiles};

/// Number of tiles of a chip: 40 network tiles, then 8 processor tiles. Network tile t is port t.
pub const TILES: usize = 48;
/// Rows of tiles; tile t is in row t / 8 and column t % 8.
pub const ROWS: usize = 6;
/// Columns of tiles; see [`ROWS`].
pub const COLUMNS: usize = 8;
pub const FIRST_PROCESSOR_TILE: usize = NETWORK_PORTS;
/// Number of processor tiles that a pair of NICs shares.
pub const PAIR_TILES: usize = 4;

/// Length of a cycle in picoseconds: 1142.86 at 875 MHz (XC white paper, "Aries Performance").
pub const CYCLE_PS: u64 = 1_143;
/// From the input queue to the output port of an idle router.
pub const ZERO_LOAD_CYCLES: u64 = INPUT_CYCLES + ROW_CYCLES + COLUMN_CYCLES;
/// From an output port over a cable of a group into the next input queue: a set of ten flits is
/// gathered (10), checked at the other end (10), and goes through two SerDes and the wire (20).
pub const SHORT_LINK_CYCLES: u64 = 40;

/// From a flit's arrival in the input queue to the grant of the row bus.
pub const INPUT_CYCLES: u64 = 34;
/// From the row-bus grant to the subswitch grant.
pub const ROW_CYCLES: u64 = 6;
/// From the subswitch grant to the grant of the output multiplexer.
pub const COLUMN_CYCLES: u64 = 7;
/// From the read of a row buffer to the report of the free slot at the input queue.
pub const ROW_CREDIT_CYCLES: u64 = 4;
/// From the read of a column buffer to the report of the free slot at the subswitch.
pub const COLUMN_CREDIT_CYCLES: u64 = 3;
/// Through Netlink, between a NIC port and a processor tile, in either direction.
pub const NETLINK_CYCLES: u64 = 6;

/// Size of a row buffer in flits, per input virtual channel and column.
pub const ROW_BUFFER_FLITS: u8 = 16;
/// Size of a column buffer in flits, per output virtual channel and source row: at least a whole
/// packet.
pub const COLUMN_BUFFER_FLITS: u8 = 16;
/// Size of a processor tile's input queue in flits, for requests and for responses each.
pub const NETLINK_INPUT_FLITS: u16 = 64;
/// Size of the queue between a processor tile and the NICs of its pair in flits: two packets.
pub const NETLINK_OUTPUT_FLITS: u16 = 28;
/// Cycles between two computations of the load (XC white paper, "Aries Router"), and flits of a
/// set: in the tenth cycle a network port sends no data.
pub const LOAD_CYCLES: u64 = 10;

const _: () = assert!(ZERO_LOAD_CYCLES + SHORT_LINK_CYCLES == 87);
// A single flow must be able to use every cycle.
const _: () = assert!(ROW_CYCLES + ROW_CREDIT_CYCLES <= ROW_BUFFER_FLITS as u64);
const _: () = assert!(COLUMN_CYCLES + COLUMN_CREDIT_CYCLES <= COLUMN_BUFFER_FLITS as u64);
const _: () = assert!(ROWS * COLUMNS == TILES && FIRST_NIC_PORT == NETWORK_PORTS);
const _: () = assert!(FIRST_PROCESSOR_TILE + NICS / 2 * PAIR_TILES == TILES);
// Column buffers are numbered with a stride of eight rows, of which two are unused.
const _: () = assert!(TILES * VCS * 8 == BUFFERS);

/// Number of row buffers of a chip, and of column buffer numbers, of which three quarters are in
/// use.
pub(super) const BUFFERS: usize = 3_072;
pub(super) const TILE_VCS: usize = TILES * VCS;
pub(super) const NETWORK: u64 = (1 << NETWORK_PORTS) - 1;

/// A row buffer at the end of its row bus.
pub(super) type RowPipe =
    Pipe<ROW_BUFFER_FLITS, { ROW_CYCLES as u32 }, { ROW_CREDIT_CYCLES as u32 }>;
/// A column buffer at the end of its column bus.
pub(super) type ColumnPipe =
    Pipe<COLUMN_BUFFER_FLITS, { COLUMN_CYCLES as u32 }, { COLUMN_CREDIT_CYCLES as u32 }>;

pub(super) type Wake = tiles::Wake<TILES, VCS>;
pub(super) type RowBufferId = tiles::RowBuffer<TILES, VCS>;
pub(super) type ColumnBufferId = tiles::ColumnBuffer<TILES, VCS>;

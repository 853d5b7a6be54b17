//! Numbering of the buffers of a tiled router with eight tiles per row.
//!
//! A tile has an input, a subswitch and an output. The input sends over its row bus to the
//! subswitches of its row; a subswitch sends over its column to the outputs of its column.

/// Tiles in a row, and the stride of numbering by row.
pub const COLUMNS: usize = 8;

/// Allocates an array on the heap without first building it on the stack.
pub fn boxed<T: Copy, const N: usize>(value: T) -> Box<[T; N]> {
    match vec![value; N].into_boxed_slice().try_into() {
        Ok(array) => array,
        Err(_) => unreachable!("the vector has N elements"),
    }
}

/// A calendar entry: which side of which buffer has work again.
#[derive(Clone, Copy, Debug)]
pub enum Wake<const TILES: usize, const VCS: usize> {
    /// An item arrived in a row buffer that its subswitch had drained.
    RowReader(RowBuffer<TILES, VCS>),
    /// The input tile is notified of a free slot in a row buffer.
    RowWriter(RowBuffer<TILES, VCS>),
    /// An item arrived in a column buffer.
    ColumnReader(ColumnBuffer<TILES, VCS>),
    /// The subswitch is notified of a free slot in a column buffer.
    ColumnWriter(ColumnBuffer<TILES, VCS>),
}

/// Whether packets between tiles of `used`, one bit each, cross the subswitch of `tile`: they enter
/// by a tile of its row and leave by one of its column.
pub const fn is_crossed(used: u64, tile: usize) -> bool {
    let row = 0xff << (tile / COLUMNS * COLUMNS);
    let column = 0x0101_0101_0101_0101 << (tile % COLUMNS);
    used & row != 0 && used & column != 0
}

/// Implements the numbering of a buffer: by tile or subswitch, virtual channel, and position among
/// eight.
macro_rules! numbered {
    ($buffer:ident) => {
        impl<const TILES: usize, const VCS: usize> $buffer<TILES, VCS> {
            pub const fn new(of: usize, vc: usize, among: usize) -> Self {
                Self(((of * VCS + vc) * COLUMNS + among) as u16)
            }
            /// The buffer with this [`index`](Self::index).
            pub const fn at(index: usize) -> Self {
                Self(index as u16)
            }
            /// Number of the buffer, below tiles times virtual channels times eight.
            pub const fn index(self) -> usize {
                let index = self.0 as usize;
                assert!(
                    index < TILES * VCS * COLUMNS,
                    "a buffer's number from state is out of range"
                );
                index
            }
            pub const fn vc(self) -> usize {
                self.0 as usize / COLUMNS % VCS
            }
            /// The tile or subswitch that it is numbered by.
            const fn of(self) -> usize {
                self.index() / (COLUMNS * VCS)
            }
            const fn among(self) -> usize {
                self.0 as usize % COLUMNS
            }
        }
    };
}

/// A row buffer of one virtual channel: (input tile, virtual channel, column).
///
/// It is one of the buffers of input `lane` at the subswitch in the input's row and that column.
#[derive(Clone, Copy, Debug)]
pub struct RowBuffer<const TILES: usize, const VCS: usize>(u16);
numbered!(RowBuffer);

impl<const TILES: usize, const VCS: usize> RowBuffer<TILES, VCS> {
    pub const fn tile(self) -> usize {
        self.of()
    }
    pub const fn column(self) -> usize {
        self.among()
    }
    pub const fn subswitch(self) -> usize {
        self.tile() & 0x38 | self.column()
    }
    pub const fn lane(self) -> usize {
        self.tile() % COLUMNS
    }
    /// Number among the inputs of the subswitch, eight per virtual channel.
    pub const fn requester(self) -> u32 {
        (self.vc() * COLUMNS + self.lane()) as u32
    }
    /// The row buffer that is input `requester` of `subswitch`.
    pub const fn of_requester(subswitch: usize, requester: u32) -> Self {
        let (vc, lane) = (
            requester as usize / COLUMNS % VCS,
            requester as usize % COLUMNS,
        );
        Self::new(subswitch & 0x38 | lane, vc, subswitch % COLUMNS)
    }
}

/// A column buffer of one virtual channel: (subswitch, output virtual channel, output row).
///
/// It is input `source_row` of the output at that row and the subswitch's column.
#[derive(Clone, Copy, Debug)]
pub struct ColumnBuffer<const TILES: usize, const VCS: usize>(u16);
numbered!(ColumnBuffer);

impl<const TILES: usize, const VCS: usize> ColumnBuffer<TILES, VCS> {
    /// The column buffer at output `tile` for `source_row`.
    pub const fn at_output(tile: usize, vc: usize, source_row: usize) -> Self {
        Self::new(source_row << 3 | tile & 7, vc, tile >> 3)
    }
    pub const fn subswitch(self) -> usize {
        self.of()
    }
    pub const fn row(self) -> usize {
        self.among()
    }
    pub const fn source_row(self) -> usize {
        self.subswitch() >> 3
    }
    pub const fn output(self) -> usize {
        self.row() << 3 | self.subswitch() & 7
    }
}

//! The buffers of a router of tiles, of which eight are in a row, and how they are numbered.
//!
//! A tile has an input and an output. The input sends over its row bus to the subswitches of the
//! tiles of its row, the subswitch over its column to the outputs of the tiles of its column.

/// Tiles in a row, and the stride of whatever is numbered by row.
pub(crate) const COLUMNS: usize = 8;

/// A boxed array that is never on the stack.
pub(crate) fn boxed<T: Copy, const N: usize>(value: T) -> Box<[T; N]> {
    match vec![value; N].into_boxed_slice().try_into() {
        Ok(array) => array,
        Err(_) => unreachable!("the vector was made with N elements"),
    }
}

/// What the calendar holds: which side of which buffer has something to do again.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wake<const TILES: usize, const VCS: usize> {
    /// Something has come into a row buffer in which the subswitch had nothing more to read.
    RowReader(RowBuffer<TILES, VCS>),
    /// A row buffer's free place is known at its input tile.
    RowWriter(RowBuffer<TILES, VCS>),
    /// Something has come into a column buffer.
    ColumnReader(ColumnBuffer<TILES, VCS>),
    /// A column buffer's free place is known at its subswitch.
    ColumnWriter(ColumnBuffer<TILES, VCS>),
}

/// Whether packets between tiles of `used`, one bit each, pass the subswitch of a tile: they come by
/// a tile of its row and leave by one of its column.
pub(crate) const fn is_crossed(used: u64, tile: usize) -> bool {
    let row = 0xff << (tile / COLUMNS * COLUMNS);
    let column = 0x0101_0101_0101_0101 << (tile % COLUMNS);
    used & row != 0 && used & column != 0
}

/// Number, virtual channel and place in the row of eight of a buffer.
macro_rules! numbered {
    ($buffer:ident) => {
        impl<const TILES: usize, const VCS: usize> $buffer<TILES, VCS> {
            pub(crate) const fn new(of: usize, vc: usize, among: usize) -> Self {
                Self(((of * VCS + vc) * COLUMNS + among) as u16)
            }
            /// The one of that [`index`](Self::index).
            pub(crate) const fn at(index: usize) -> Self {
                Self(index as u16)
            }
            /// Its number; below tiles times virtual channels times eight.
            pub(crate) const fn index(self) -> usize {
                debug_assert!((self.0 as usize) < TILES * VCS * COLUMNS);
                self.0 as usize % (TILES * VCS * COLUMNS)
            }
            pub(crate) const fn vc(self) -> usize {
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
/// It belongs to the subswitch at the input's row and that column, as one of those of its input
/// number `lane`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowBuffer<const TILES: usize, const VCS: usize>(u16);
numbered!(RowBuffer);

impl<const TILES: usize, const VCS: usize> RowBuffer<TILES, VCS> {
    pub(crate) const fn tile(self) -> usize {
        self.of()
    }
    pub(crate) const fn column(self) -> usize {
        self.among()
    }
    pub(crate) const fn subswitch(self) -> usize {
        self.tile() & 0x38 | self.column()
    }
    pub(crate) const fn lane(self) -> usize {
        self.tile() % COLUMNS
    }
    /// Number among the inputs of the subswitch, of which each virtual channel has eight.
    pub(crate) const fn requester(self) -> u32 {
        (self.vc() * COLUMNS + self.lane()) as u32
    }
    /// The row buffer that is input `requester` of `subswitch`.
    pub(crate) const fn of_requester(subswitch: usize, requester: u32) -> Self {
        let (vc, lane) = (
            requester as usize / COLUMNS % VCS,
            requester as usize % COLUMNS,
        );
        Self::new(subswitch & 0x38 | lane, vc, subswitch % COLUMNS)
    }
}

/// A column buffer of one virtual channel: (subswitch, output virtual channel, output row).
///
/// It belongs to the output at that row and the subswitch's column, as its input number
/// `source_row`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ColumnBuffer<const TILES: usize, const VCS: usize>(u16);
numbered!(ColumnBuffer);

impl<const TILES: usize, const VCS: usize> ColumnBuffer<TILES, VCS> {
    /// The column buffer at output `tile` that holds what comes from `source_row`.
    pub(crate) const fn at_output(tile: usize, vc: usize, source_row: usize) -> Self {
        Self::new(source_row << 3 | tile & 7, vc, tile >> 3)
    }
    pub(crate) const fn subswitch(self) -> usize {
        self.of()
    }
    pub(crate) const fn row(self) -> usize {
        self.among()
    }
    pub(crate) const fn source_row(self) -> usize {
        self.subswitch() >> 3
    }
    pub(crate) const fn output(self) -> usize {
        self.row() << 3 | self.subswitch() & 7
    }
}

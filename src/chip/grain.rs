//! What a chip moves at once.

/// What moves through the stages of a chip at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Grain {
    /// Phits or flits, as on the chip.
    #[default]
    Flit,
    /// Whole packets. Not every chip can: see what its core says.
    Packet,
}

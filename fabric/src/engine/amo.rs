//! Atomic operations of NICs, and how libfabric's map to them.

use phitwire_client::door::{AtomicOp, Width};

use super::elements;

/// An atomic operation of the NIC.
#[derive(Clone, Copy, Debug)]
pub struct Amo {
    pub op: AtomicOp,
    pub width: Width,
    pub operands: [u64; 2],
    /// Whether to return the old word.
    pub fetch: bool,
    /// Index of the element within the operation.
    pub element: usize,
}

impl Amo {
    /// Whether the operation leaves the word unchanged.
    pub(super) const fn changes_nothing(&self) -> bool {
        matches!((self.op, self.operands[0]), (AtomicOp::Or, 0))
    }
}

/// The element with this index, of one to eight bytes; 0 beyond the end.
pub(super) fn word_at(bytes: &[u8], element: usize, size: usize) -> u64 {
    debug_assert!(size <= 8, "elements are words");
    let mut word = [0; 8];
    if let Some(found) = bytes.get(element * size..(element + 1) * size) {
        word[..size].copy_from_slice(found);
    }
    u64::from_le_bytes(word)
}

/// The width of elements of this many bytes.
pub(super) const fn width_of(size: usize) -> Width {
    match size {
        4 => Width::Bits32,
        _ => Width::Bits64,
    }
}

/// The NIC's equivalent of a libfabric operation, with its operands.
pub(super) fn amo_of(
    datatype: u8,
    op: u8,
    operand: u64,
    compare: u64,
) -> Option<(AtomicOp, [u64; 2])> {
    let is_float = matches!(datatype, 8 | 9);
    let is_signed = matches!(datatype, 4 | 6);
    let op = match (op, is_float) {
        (0, true) => AtomicOp::FloatMin,
        (1, true) => AtomicOp::FloatMax,
        (2, true) => AtomicOp::FloatAdd,
        (0, false) if is_signed => AtomicOp::SignedMin,
        (1, false) if is_signed => AtomicOp::SignedMax,
        (2, false) => AtomicOp::Add,
        (6, false) => AtomicOp::Or,
        (7, false) => AtomicOp::And,
        (9, false) => AtomicOp::Xor,
        (elements::READ, _) => return Some((AtomicOp::Or, [0, 0])),
        (elements::WRITE, _) => AtomicOp::Swap,
        (elements::CSWAP, false) => return Some((AtomicOp::CompareSwap, [compare, operand])),
        // Replaces the bits that the mask selects.
        (elements::MSWAP, false) => {
            return Some((AtomicOp::AndXor, [!compare, operand & compare]));
        }
        _ => return None,
    };
    Some((op, [operand, 0]))
}

/// Whether the NIC has an equivalent of a libfabric operation, on its words of four and eight
/// bytes.
pub(super) fn is_amo(datatype: u8, op: u8) -> bool {
    let is_word = elements::size_of_type(datatype).is_some_and(|size| size >= 4);
    is_word && amo_of(datatype, op, 0, 0).is_some()
}

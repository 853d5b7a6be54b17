//! Atomic operations on a word.

use phitwire_framing::door::AtomicOp;

use super::transfer::{Kind, Transfer};

/// The result of operation `asked` on the word `old`; `None` if it is not an atomic operation, or
/// lacks its operands.
pub(super) fn apply(asked: &Transfer, old: u64) -> Option<u64> {
    let operands = asked.kind.operands()?;
    if usize::from(asked.len) != operands * size_of::<u64>() {
        return None;
    }
    let (first, second) = (asked.word(0), asked.word(1));
    Some(match asked.kind {
        Kind::Increment => old.wrapping_add(1),
        Kind::Add => old.wrapping_add(first),
        Kind::CompareSwap if old == first => second,
        Kind::MaskedSwap => old & !first | second & first,
        _ => old,
    })
}

/// Maps a program's atomic operation to the packets' operation, its operands and their count;
/// `None` if packets have no such operation.
pub(super) const fn of_program(op: AtomicOp, [a, b]: [u64; 2]) -> Option<(Kind, [u64; 2], usize)> {
    Some(match op {
        AtomicOp::Add => (Kind::Add, [a, 0], 1),
        AtomicOp::CompareSwap => (Kind::CompareSwap, [a, b], 2),
        // The first operand of a masked swap selects the bits to take from the second.
        AtomicOp::Swap => (Kind::MaskedSwap, [!0, a], 2),
        AtomicOp::And => (Kind::MaskedSwap, [!a, 0], 2),
        AtomicOp::Or => (Kind::MaskedSwap, [a, a], 2),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_does_its_own_and_needs_its_operands() {
        let on = |kind, words: &[u64], old| {
            let asked = Transfer::new(0, kind, 0).with_words(words);
            apply(&asked, old)
        };
        for (kind, words, old, new) in [
            (Kind::Increment, &[][..], 6, Some(7)),
            (Kind::Increment, &[], u64::MAX, Some(0)),
            (Kind::Increment, &[1], 6, None),
            (Kind::Add, &[5], 6, Some(11)),
            (Kind::Add, &[u64::MAX], 6, Some(5)),
            (Kind::Add, &[], 6, None),
            (Kind::CompareSwap, &[6, 9], 6, Some(9)),
            (Kind::CompareSwap, &[7, 9], 6, Some(6)),
            (Kind::CompareSwap, &[6], 6, None),
            (Kind::MaskedSwap, &[0xff00, 0x1234], 0xabcd, Some(0x12cd)),
            (Kind::MaskedSwap, &[0, 9], 6, Some(6)),
            (Kind::MaskedSwap, &[1, 2, 3], 6, None),
            (Kind::Put, &[1], 6, None),
            (Kind::Done, &[], 6, None),
        ] {
            assert_eq!(on(kind, words, old), new, "{kind:?} {words:?}");
        }
    }
}

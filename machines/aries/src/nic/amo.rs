//! Atomic operations on a word.
//!
//! The XC white paper names atomic add and conditional swap ("Remote Memory Access"), and for
//! reductions logical, integer and floating point operations ("Reductions and Barriers"). The list
//! of operations is that of the GNI interface. Floating point minimum and maximum are IEEE 754's
//! `minimumNumber` and `maximumNumber`: they prefer a number to a NaN, and -0 is smaller than +0.

use core::cmp::Ordering;

use phitwire_framing::aries::packet::{AmoOp, Operands, Width};

macro_rules! apply {
    ($name:ident, $word:ty, $float:ty) => {
        #[inline]
        fn $name(op: AmoOp, old: $word, first: $word, second: $word) -> $word {
            let (x, y) = (<$float>::from_bits(old), <$float>::from_bits(first));
            let pick = |least: bool| match (x.is_nan(), y.is_nan()) {
                (true, false) => first,
                (_, true) => old,
                _ if (x.total_cmp(&y) == Ordering::Less) == least => old,
                _ => first,
            };
            match op {
                AmoOp::And => old & first,
                AmoOp::Or => old | first,
                AmoOp::Xor => old ^ first,
                AmoOp::Add => old.wrapping_add(first),
                AmoOp::AndXor => old & first ^ second,
                AmoOp::Swap => first,
                AmoOp::CompareSwap if old == first => second,
                AmoOp::CompareSwap => old,
                AmoOp::IntMin if old.cast_signed() <= first.cast_signed() => old,
                AmoOp::IntMin => first,
                AmoOp::IntMax if old.cast_signed() >= first.cast_signed() => old,
                AmoOp::IntMax => first,
                AmoOp::FloatAdd => (x + y).to_bits(),
                AmoOp::FloatMin => pick(true),
                AmoOp::FloatMax => pick(false),
            }
        }
    };
}

apply!(apply_64, u64, f64);
apply!(apply_32, u32, f32);

/// The result of `op` on the word `old`. With 32 bits, the upper half of the operands is ignored,
/// and that of the result is zero.
#[inline]
pub(crate) fn apply(op: AmoOp, width: Width, old: u64, operands: Operands) -> u64 {
    let Operands { first, second } = operands;
    match width {
        Width::Bits64 => apply_64(op, old, first, second),
        Width::Bits32 => apply_32(op, old as u32, first as u32, second as u32).into(),
    }
}

/// Whether the operation leaves every word unchanged, and so only reads it.
pub(crate) fn is_read(op: AmoOp, operands: Operands) -> bool {
    matches!((op, operands.first), (AmoOp::Or, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(op: AmoOp, width: Width, old: u64, first: u64, second: u64) -> u64 {
        apply(op, width, old, Operands { first, second })
    }

    #[test]
    fn integers() {
        let minus = |n: i64| n.cast_unsigned();
        for (op, old, first, second, new) in [
            (AmoOp::And, 0b1100, 0b1010, 0, 0b1000),
            (AmoOp::Or, 0b1100, 0b1010, 0, 0b1110),
            (AmoOp::Xor, 0b1100, 0b1010, 0, 0b0110),
            (AmoOp::Add, u64::MAX, 3, 0, 2),
            (AmoOp::AndXor, 0b1100, 0b0110, 0b0011, 0b0111),
            (AmoOp::Swap, 5, 6, 0, 6),
            (AmoOp::CompareSwap, 5, 5, 9, 9),
            (AmoOp::CompareSwap, 5, 6, 9, 5),
            (AmoOp::IntMin, 5, minus(-6), 0, minus(-6)),
            (AmoOp::IntMax, 5, minus(-6), 0, 5),
        ] {
            assert_eq!(on(op, Width::Bits64, old, first, second), new, "{op:?}");
            // The sign of 32 bits is bit 31, and no carry goes beyond it.
            let short = on(op, Width::Bits32, old, first, second);
            assert_eq!(short, new & 0xffff_ffff, "{op:?}");
        }
    }

    #[test]
    fn floats() {
        let f = |x: f64| x.to_bits();
        let nan = f64::NAN.to_bits();
        for (op, old, first, new) in [
            (AmoOp::FloatAdd, f(1.5), f(-4.0), f(-2.5)),
            (AmoOp::FloatMin, f(1.5), f(-4.0), f(-4.0)),
            (AmoOp::FloatMax, f(1.5), f(-4.0), f(1.5)),
            (AmoOp::FloatMin, f(0.0), f(-0.0), f(-0.0)),
            (AmoOp::FloatMax, f(-0.0), f(0.0), f(0.0)),
            (AmoOp::FloatMin, nan, f(2.0), f(2.0)),
            (AmoOp::FloatMax, f(2.0), nan, f(2.0)),
            (
                AmoOp::FloatMin,
                f(f64::NEG_INFINITY),
                f(2.0),
                f(f64::NEG_INFINITY),
            ),
        ] {
            assert_eq!(on(op, Width::Bits64, old, first, 0), new, "{op:?}");
        }
        let g = |x: f32| u64::from(x.to_bits());
        let sum = on(AmoOp::FloatAdd, Width::Bits32, g(0.5), g(0.25), 0);
        assert_eq!(sum, g(0.75));
        assert_eq!(
            on(AmoOp::FloatMax, Width::Bits32, g(-1.0), g(-2.0), 0),
            g(-1.0)
        );
    }
}

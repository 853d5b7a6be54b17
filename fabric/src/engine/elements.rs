//! Atomic operations on registered memory, with elements of one to eight bytes.

use crate::memory::Bytes;

/// Bytes per element of a libfabric type; `None` if atomic operations do not support the type.
pub const fn size_of_type(datatype: u8) -> Option<usize> {
    match datatype {
        0 | 1 => Some(1),
        2 | 3 => Some(2),
        4 | 5 | 8 => Some(4),
        6 | 7 | 9 => Some(8),
        _ => None,
    }
}

/// The libfabric call for an atomic operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `fi_atomic`.
    Write,
    /// `fi_fetch_atomic`.
    Fetch,
    /// `fi_compare_atomic`.
    Compare,
}

/// The number of `FI_ATOMIC_READ`.
pub const READ: u8 = 10;
/// The number of `FI_ATOMIC_WRITE`.
pub const WRITE: u8 = 11;
/// The number of `FI_CSWAP`.
pub const CSWAP: u8 = 12;
/// The number of `FI_MSWAP`.
pub const MSWAP: u8 = 18;

/// Whether libfabric defines the operation for the type and the call.
pub const fn is_valid(datatype: u8, op: u8, form: Form) -> bool {
    let is_float = matches!(datatype, 8 | 9);
    let is_op = match form {
        Form::Write => op < READ || op == WRITE,
        Form::Fetch => op <= WRITE,
        Form::Compare => op >= CSWAP && op <= MSWAP,
    };
    let is_bitwise = matches!(op, 6 | 7 | 9 | MSWAP);
    size_of_type(datatype).is_some() && is_op && !(is_float && is_bitwise)
}

macro_rules! element {
    ($old:ident, $new:ident, $compare:ident, $op:ident, $type:ty, $one:expr, $bits:expr) => {{
        let (zero, one) = (<$type>::default(), $one);
        let truth = |is: bool| if is { one } else { zero };
        let swap = |is: bool| if is { $new } else { $old };
        match $op {
            0 => {
                if $new < $old {
                    $new
                } else {
                    $old
                }
            }
            1 => {
                if $new > $old {
                    $new
                } else {
                    $old
                }
            }
            4 => truth($old != zero || $new != zero),
            5 => truth($old != zero && $new != zero),
            8 => truth(($old != zero) != ($new != zero)),
            WRITE => $new,
            READ => $old,
            CSWAP => swap($compare == $old),
            13 => swap($compare != $old),
            14 => swap($compare <= $old),
            15 => swap($compare < $old),
            16 => swap($compare >= $old),
            17 => swap($compare > $old),
            op => $bits(op, $old, $new, $compare),
        }
    }};
}

macro_rules! integer {
    ($name:ident, $type:ty) => {
        fn $name(old: $type, new: $type, compare: $type, op: u8) -> $type {
            let bits = |op, old: $type, new: $type, mask: $type| match op {
                2 => old.wrapping_add(new),
                3 => old.wrapping_mul(new),
                6 => old | new,
                7 => old & new,
                9 => old ^ new,
                MSWAP => (new & mask) | (old & !mask),
                _ => old,
            };
            element!(old, new, compare, op, $type, 1, bits)
        }
    };
}

macro_rules! float {
    ($name:ident, $type:ty) => {
        fn $name(old: $type, new: $type, compare: $type, op: u8) -> $type {
            let sums = |op, old: $type, new: $type, _| match op {
                2 => old + new,
                3 => old * new,
                _ => old,
            };
            element!(old, new, compare, op, $type, 1.0, sums)
        }
    };
}

integer!(of_i8, i8);
integer!(of_u8, u8);
integer!(of_i16, i16);
integer!(of_u16, u16);
integer!(of_i32, i32);
integer!(of_u32, u32);
integer!(of_i64, i64);
integer!(of_u64, u64);
float!(of_f32, f32);
float!(of_f64, f64);

/// Applies `op` to `old`, `operand` and `compare`, each in the lower bytes of a word.
pub fn one(datatype: u8, op: u8, [old, operand, compare]: [u64; 3]) -> u64 {
    macro_rules! narrow {
        ($one:ident, $word:ty, $of:expr, $bits:expr) => {
            $bits($one(
                $of(old as $word),
                $of(operand as $word),
                $of(compare as $word),
                op,
            ))
            .into()
        };
    }
    match datatype {
        0 => narrow!(of_i8, u8, u8::cast_signed, i8::cast_unsigned),
        1 => of_u8(old as u8, operand as u8, compare as u8, op).into(),
        2 => narrow!(of_i16, u16, u16::cast_signed, i16::cast_unsigned),
        3 => of_u16(old as u16, operand as u16, compare as u16, op).into(),
        4 => narrow!(of_i32, u32, u32::cast_signed, i32::cast_unsigned),
        5 => of_u32(old as u32, operand as u32, compare as u32, op).into(),
        6 => of_i64(
            old.cast_signed(),
            operand.cast_signed(),
            compare.cast_signed(),
            op,
        )
        .cast_unsigned(),
        7 => of_u64(old, operand, compare, op),
        8 => narrow!(of_f32, u32, f32::from_bits, f32::to_bits),
        9 => of_f64(
            f64::from_bits(old),
            f64::from_bits(operand),
            f64::from_bits(compare),
            op,
        )
        .to_bits(),
        _ => old,
    }
}

/// Applies the operation to the elements of `target`, with those of `operands` and `compare`;
/// returns the old values. Elements without an operand (of reads) stay unchanged.
pub fn change(target: &Bytes, datatype: u8, op: u8, operands: &[u8], compare: &[u8]) -> Vec<u8> {
    macro_rules! all {
        ($type:ty, $one:ident) => {
            target.with_mut(|target| {
                const SIZE: usize = size_of::<$type>();
                let before = target.to_vec();
                let at = |from: &[u8], n: usize| {
                    let found = from.as_chunks::<SIZE>().0.get(n);
                    <$type>::from_ne_bytes(found.copied().unwrap_or_default())
                };
                for (n, element) in target.as_chunks_mut::<SIZE>().0.iter_mut().enumerate() {
                    let old = <$type>::from_ne_bytes(*element);
                    let new = $one(old, at(operands, n), at(compare, n), op);
                    *element = new.to_ne_bytes();
                }
                before
            })
        };
    }
    match datatype {
        0 => all!(i8, of_i8),
        1 => all!(u8, of_u8),
        2 => all!(i16, of_i16),
        3 => all!(u16, of_u16),
        4 => all!(i32, of_i32),
        5 => all!(u32, of_u32),
        6 => all!(i64, of_i64),
        7 => all!(u64, of_u64),
        8 => all!(f32, of_f32),
        9 => all!(f64, of_f64),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_those_of_the_manual() {
        assert_eq!(of_i32(-3, 2, 0, 0), -3);
        assert_eq!(of_u32(3, 2, 0, 1), 3);
        assert_eq!(of_u64(u64::MAX, 2, 0, 2), 1);
        assert_eq!(of_f64(1.5, 2.0, 0.0, 3), 3.0);
        assert_eq!(of_i64(0, 7, 0, 4), 1);
        assert_eq!(of_i64(0, 7, 0, 5), 0);
        assert_eq!(of_i64(6, 7, 0, 8), 0);
        assert_eq!(of_u32(6, 9, 0, 6), 15);
        assert_eq!(of_u64(5, 9, 5, CSWAP), 9);
        assert_eq!(of_u64(5, 9, 6, CSWAP), 5);
        assert_eq!(of_u64(5, 9, 4, 15), 9);
        assert_eq!(of_u64(0xff00, 0x00ff, 0x0f0f, MSWAP), 0xf00f);
        assert_eq!(
            one(4, 3, [u64::from(u32::MAX), 2, 0]),
            0xffff_fffe,
            "-1 * 2"
        );
        assert_eq!(
            one(9, 3, [1.5_f64.to_bits(), 2_f64.to_bits(), 0]),
            3_f64.to_bits()
        );
    }

    #[test]
    fn floats_have_no_bitwise_operations() {
        assert!(is_valid(9, 2, Form::Write));
        assert!(!is_valid(9, 7, Form::Write));
        assert!(!is_valid(7, READ, Form::Write));
        assert!(is_valid(7, READ, Form::Fetch));
        assert!(is_valid(7, CSWAP, Form::Compare));
        assert!(!is_valid(10, 2, Form::Write), "complex");
        assert!(!is_valid(7, 19, Form::Compare), "FI_DIFF");
    }
}

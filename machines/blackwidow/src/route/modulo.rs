//! The exact modulus of the deterministic hash (BlackWidow sec. 7.8.2).
//!
//! The divisor is factored into a power of two and an optional 3, 5 or 7. The power of two is a
//! mask. The remainder for the odd factor is found by "casting out": 16 is 1 modulo 3 and 5, and 8
//! is 1 modulo 7, so a number and the sum of its hexadecimal (or octal) digits have the same
//! remainder.

/// Largest number of ports in a route set.
pub const MAX_COUNT: u32 = 32;

/// Whether the hash can spread packets over exactly `count` ports: 1 to 8, 10, 12, 14, 16, 20, 24,
/// 28 or 32. Route sets of other sizes must be rejected where they are configured.
pub const fn is_supported_count(count: u32) -> bool {
    matches!(count, 1..=8 | 10 | 12 | 14 | 16 | 20 | 24 | 28 | 32)
}

/// The largest supported count up to `count`, which a tile uses if software configured an
/// unsupported one. Zero for zero.
pub const fn supported_at_most(count: u32) -> u32 {
    let mut n = if count > MAX_COUNT { MAX_COUNT } else { count };
    while n > 0 && !is_supported_count(n) {
        n -= 1;
    }
    n
}

const fn modulo_3(value: u32) -> u32 {
    const TABLE: u64 = table(3);
    (TABLE >> (2 * hex_digits(value)) & 3) as u32
}

const fn modulo_5(value: u32) -> u32 {
    // The digit sum of a 15-bit number is at most 52, so one more division by 16 suffices.
    let sum = hex_digits(value);
    let sum = (sum >> 4) + (sum & 15);
    let sum = if sum >= 10 { sum - 10 } else { sum };
    if sum >= 5 { sum - 5 } else { sum }
}

const fn modulo_7(value: u32) -> u32 {
    let sum =
        (value & 7) + (value >> 3 & 7) + (value >> 6 & 7) + (value >> 9 & 7) + (value >> 12 & 7);
    let sum = (sum & 7) + (sum >> 3);
    if sum >= 7 { sum - 7 } else { sum }
}

/// The sum of the hexadecimal digits of a 15-bit number, cast out once; at most 18.
const fn hex_digits(value: u32) -> u32 {
    let sum = (value & 15) + (value >> 4 & 15) + (value >> 8 & 15) + (value >> 12 & 15);
    (sum & 15) + (sum >> 4)
}

/// Remainders of 0..32 by 3, two bits each.
const fn table(divisor: u64) -> u64 {
    let mut table = 0;
    let mut n = 0;
    while n < 32 {
        table |= (n % divisor) << (2 * n);
        n += 1;
    }
    table
}

/// The remainder of the 15-bit `hash` divided by `count`.
///
/// `count` must be one of the supported counts ([`is_supported_count`]).
#[inline]
pub const fn modulo(hash: u32, count: u32) -> u32 {
    debug_assert!(is_supported_count(count));
    let hash = hash & 0x7fff;
    let power = count.trailing_zeros() & 31;
    let quotient = hash >> power;
    let rest = match count >> power {
        3 => modulo_3(quotient),
        5 => modulo_5(quotient),
        7 => modulo_7(quotient),
        _ => 0,
    };
    rest << power | hash & ((1 << power) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modulo_is_exact_for_every_hash_and_count() {
        let counts: Vec<u32> = (0..=64).filter(|&n| is_supported_count(n)).collect();
        assert_eq!(
            counts,
            [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32]
        );
        for count in counts {
            for hash in 0..1 << 15 {
                assert_eq!(modulo(hash, count), hash % count, "{hash} modulo {count}");
            }
        }
    }

    #[test]
    fn other_counts_fall_back_to_the_next_smaller_supported_one() {
        assert_eq!(
            [0, 9, 11, 13, 15, 19, 31, 33, 64].map(supported_at_most),
            [0, 8, 10, 12, 14, 16, 28, 32, 32]
        );
    }
}

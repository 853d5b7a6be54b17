//! The check of a set: a 20-bit CRC over 460 bits (Cray XC white paper, "Aries Router", "RAS";
//! polynomial ours).
//!
//! The white paper gives the width and the covered bits, but not the polynomial. [`POLYNOMIAL`] is
//! CRC-20K/6 of P. Koopman's tables ("Best CRC Polynomials"): Hamming distance 6 for up to 494 bits
//! of data; a set has 460. No 20-bit check has distance 7 there: the spheres of three errors around
//! 2^460 words would overfill 2^480. x + 1 divides the polynomial, so every odd number of flipped
//! bits is detected, and all bursts up to 20 bits are. `tests/aries/crc_distance.rs` proves the
//! distance and counts the undetected patterns.
//!
//! The bits of a set are processed in order, first bit of the first byte first. Start value all
//! ones, so that silence is not a set; no reflection, no final inversion.

#[cfg(feature = "processor-crc")]
use multiversion::{multiversion, target::match_target};

use super::pattern::Pattern;
use super::set::{SET_BYTES, SET_FLITS};
#[cfg(all(feature = "processor-crc", target_arch = "x86_64"))]
use crate::carrier::folding::{add, word};

/// x^20 + x^19 + x^18 + x^14 + x^6 + x^2 + x + 1, without its highest term.
pub const POLYNOMIAL: u32 = 0xc_4047;
/// State before the first bit.
pub const INITIAL: u32 = MASK;
/// Width of the check in bits.
pub const BITS: u32 = 20;
/// Mask of the check, which is in the low bits of a word.
pub const MASK: u32 = (1 << BITS) - 1;

/// Bytes of a set that are processed together.
const BLOCK: usize = 12;

const _: () = assert!(SET_BYTES.is_multiple_of(BLOCK));

/// `state` times x^`bits`, modulo the polynomial.
const fn advance(mut state: u32, bits: u32) -> u32 {
    let mut i = 0;
    while i < bits {
        state <<= 1;
        if state >> BITS != 0 {
            state ^= POLYNOMIAL | 1 << BITS;
        }
        i += 1;
    }
    state
}

/// `table[k][b]` is the contribution of byte `b` when `k` bytes follow it in its block; the last
/// three rows are for the remainder of earlier blocks.
const fn tables() -> [[u32; 256]; BLOCK + 3] {
    let mut table = [[0; 256]; BLOCK + 3];
    let mut byte = 0;
    while byte < 256 {
        let mut state = byte as u32;
        let mut k = 0;
        while k < table.len() {
            table[k][byte] = state;
            state = advance(state, 8);
            k += 1;
        }
        byte += 1;
    }
    table
}

static TABLES: [[u32; 256]; BLOCK + 3] = tables();

/// The remainder of every intact set: the contribution of the start value over the whole set.
const GOOD: u32 = advance(INITIAL, SET_BYTES as u32 * 8 - BITS);

/// The remainder of the 480 bits.
#[cfg(feature = "processor-crc")]
#[multiversion(targets("x86_64+pclmulqdq+sse4.1"))]
pub(super) fn remainder(set: &[u8; SET_BYTES]) -> u32 {
    match_target!(
        "x86_64+pclmulqdq+sse4.1" => folded(set),
        _ => by_tables(set),
    )
}

/// The remainder of the 480 bits.
#[cfg(not(feature = "processor-crc"))]
pub(super) fn remainder(set: &[u8; SET_BYTES]) -> u32 {
    by_tables(set)
}

/// The remainder by carry-less multiplication: twice as fast as tables, without their cache lines.
#[cfg(all(feature = "processor-crc", target_arch = "x86_64"))]
#[inline]
#[target_feature(enable = "pclmulqdq,sse4.1")]
fn folded(set: &[u8; SET_BYTES]) -> u32 {
    let (rest, words) = set.as_rchunks::<8>();
    let [a, b, c, d] = *rest.first_chunk().expect("seven words leave four bytes");
    let at = |index: usize| u64::from_be_bytes(words[index]);
    let first = u32::from_be_bytes([a, b, c, d]).into();
    remainder_of_words(&[first, at(0), at(1), at(2), at(3), at(4), at(5), at(6)])
}

/// The remainder of a set in words, the first of which has 32 bits.
#[cfg(all(feature = "processor-crc", target_arch = "x86_64"))]
#[inline]
#[target_feature(enable = "pclmulqdq,sse4.1")]
fn remainder_of_words(&[a, b, c, d, e, f, g, h]: &[u64; 8]) -> u32 {
    let begun = add(
        Divisor::moved::<384>(word(a, b)),
        Divisor::moved::<256>(word(c, d)),
    );
    let ended = add(Divisor::moved::<128>(word(e, f)), word(g, h));
    Divisor::remainder(add(begun, ended))
}

/// [`check_of_blank`] of a set in words, the first of which has 32 bits.
#[cfg(all(feature = "processor-crc", target_arch = "x86_64"))]
#[inline]
#[target_feature(enable = "pclmulqdq,sse4.1")]
pub(super) fn check_of_words(words: &[u64; 8], pattern: &Pattern) -> u32 {
    remainder_of_words(words) ^ pattern.remainder() ^ GOOD
}

#[cfg(all(feature = "processor-crc", target_arch = "x86_64"))]
type Divisor = crate::carrier::folding::Divisor<POLYNOMIAL, BITS>;

/// The remainder of the 480 bits, by tables. Not inlined, so that it reads bytes from memory:
/// inlined after the code that wrote the set, it would shift every byte out of the written words.
#[inline(never)]
fn by_tables(set: &[u8; SET_BYTES]) -> u32 {
    let mut state = 0_u32;
    for block in set.as_chunks::<BLOCK>().0 {
        // A block's contribution does not depend on earlier blocks.
        let mut own = u32::from(block[BLOCK - 1]) | u32::from(block[BLOCK - 2]) << 8;
        for (k, table) in TABLES.iter().enumerate().take(BLOCK).skip(2) {
            own ^= table[usize::from(block[BLOCK - 1 - k])];
        }
        let before = TABLES[BLOCK][usize::from(state as u8)]
            ^ TABLES[BLOCK + 1][usize::from((state >> 8) as u8)]
            ^ TABLES[BLOCK + 2][usize::from((state >> 16) as u8)];
        state = own ^ before;
    }
    state
}

/// The check for the first 460 bits of `set`; its last 20 are ignored.
#[inline]
pub fn check(set: &[u8; SET_BYTES]) -> u32 {
    remainder(set) ^ last_word(set) & MASK ^ GOOD
}

/// The last 32 bits of a set.
#[inline]
fn last_word(set: &[u8; SET_BYTES]) -> u32 {
    let [.., a, b, c, d] = *set;
    u32::from_be_bytes([a, b, c, d])
}

/// The check for a set stored in `set` under `pattern`. Its last 20 bits hold only the pattern.
#[inline]
pub(super) fn check_of_blank(set: &[u8; SET_BYTES], pattern: &Pattern) -> u32 {
    debug_assert!((pattern.flit(SET_FLITS - 1) as u32 ^ last_word(set)) & MASK == 0);
    remainder(set) ^ pattern.remainder() ^ GOOD
}

/// Whether the last 20 bits of `set` are a valid check of the others.
#[inline]
pub fn is_good(set: &[u8; SET_BYTES]) -> bool {
    remainder(set) == GOOD
}

/// Whether a set stored in `set` under `pattern` has a valid check.
#[inline]
pub(super) fn is_good_under(set: &[u8; SET_BYTES], pattern: &Pattern) -> bool {
    remainder(set) == pattern.remainder() ^ GOOD
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference implementation: a shift register, bit by bit.
    fn serial(set: &[u8; SET_BYTES]) -> u32 {
        (0..SET_BYTES * 8 - BITS as usize).fold(INITIAL, |state, i| {
            let bit = u32::from(set[i / 8] >> (7 - i % 8) & 1);
            let top = state >> (BITS - 1) & 1;
            (state << 1 & MASK) ^ if top ^ bit != 0 { POLYNOMIAL } else { 0 }
        })
    }

    #[test]
    fn blocks_give_what_a_shift_register_gives() {
        let mut x = 1_u32;
        for round in 0..200 {
            let mut set = [0; SET_BYTES];
            for byte in &mut set[..round.min(SET_BYTES)] {
                x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                *byte = (x >> 24) as u8;
            }
            let check = check(&set);
            assert_eq!(check, serial(&set));
            assert_eq!(by_tables(&set), remainder(&set));
            set[57] &= 0xf0;
            set[58..].fill(0);
            assert_eq!(check_of_blank(&set, &Pattern::NONE), check);
            set[57] = set[57] & 0xf0 | (check >> 16) as u8;
            set[58..].copy_from_slice(&(check as u16).to_be_bytes());
            assert!(is_good(&set));
            for bit in 0..SET_BYTES * 8 {
                set[bit / 8] ^= 1 << (bit % 8);
                assert!(!is_good(&set), "bit {bit}");
                set[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }

    #[test]
    fn silence_is_no_set() {
        assert!(!is_good(&[0; SET_BYTES]));
        assert!(!is_good(&[0xff; SET_BYTES]));
    }
}

//! The check of a set: a 20-bit CRC over 460 bits (Cray XC white paper, "Aries Router", "RAS";
//! polynomial ours).
//!
//! The white paper gives the width and what is covered, not the polynomial. [`POLYNOMIAL`] is
//! CRC-20K/6 of P. Koopman's tables ("Best CRC Polynomials"): Hamming distance 6 for up to 494 bits
//! of data, and the 460 of a set are within. No 20-bit check has distance 7 there: the spheres of
//! three errors around 2^460 words would overfill 2^480. x + 1 divides the polynomial, so every odd
//! number of flipped bits is detected, and all bursts up to 20 bits are.
//! `tests/aries/crc_distance.rs` proves the distance and counts what goes undetected.
//!
//! The bits of a set are taken in the order in which they stand, first bit of the first byte first.
//! Start value all ones, so that silence is no set; no reflection, no final inversion.

use super::set::SET_BYTES;

/// x^20 + x^19 + x^18 + x^14 + x^6 + x^2 + x + 1, without its highest term.
pub const POLYNOMIAL: u32 = 0xc_4047;
/// State before the first bit.
pub const INITIAL: u32 = MASK;
/// Bits of the check.
pub const BITS: u32 = 20;
/// Mask of the check.
pub const MASK: u32 = (1 << BITS) - 1;

/// Bytes of a set that are taken in together.
const BLOCK: usize = 12;

const _: () = assert!(SET_BYTES.is_multiple_of(BLOCK));

/// `state` times x to the `bits`.
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

/// `table[k][b]` is what byte `b` leaves when `k` more bytes follow it within its block; the last
/// three rows are for the remainder of the blocks before.
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

/// What the start value leaves of a whole set: the remainder of every good one.
const GOOD: u32 = advance(INITIAL, SET_BYTES as u32 * 8 - BITS);

/// The remainder of the 480 bits. A function of its own, so that it reads bytes from memory:
/// inlined behind what wrote the set, it would shift every byte out of the words that were written.
#[inline(never)]
fn remainder(set: &[u8; SET_BYTES]) -> u32 {
    let mut state = 0_u32;
    for block in set.as_chunks::<BLOCK>().0 {
        // What the block leaves does not wait for the blocks before it.
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

/// The check that belongs to the first 460 bits of `set`; its last 20 do not matter.
#[inline]
pub fn check(set: &[u8; SET_BYTES]) -> u32 {
    let [.., a, b, c] = *set;
    let own = u32::from_be_bytes([0, a, b, c]) & MASK;
    remainder(set) ^ own ^ GOOD
}

/// Whether the last 20 bits of `set` are the check of the others.
#[inline]
pub fn is_good(set: &[u8; SET_BYTES]) -> bool {
    remainder(set) == GOOD
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bit by bit, as a shift register does it.
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

//! Tables for 16-bit checks that process several bytes at a time.

/// `state` times x^`bits`, modulo `polynomial` (without its highest term).
const fn advance(mut state: u16, bits: u32, polynomial: u16) -> u16 {
    let mut i = 0;
    while i < bits {
        let carry = state >> 15;
        state = (state << 1) ^ (polynomial * carry);
        i += 1;
    }
    state
}

/// `table[k][b]` is the contribution of byte `b` when `first + k` bytes follow it, including the
/// two of the check. A CRC is linear, so the look-ups of several bytes are independent.
pub(crate) const fn tables<const N: usize>(polynomial: u16, first: u32) -> [[u16; 256]; N] {
    let mut table = [[0; 256]; N];
    let mut byte = 0;
    while byte < 256 {
        let mut state = advance(byte as u16, 8 * first, polynomial);
        let mut k = 0;
        while k < N {
            table[k][byte] = state;
            state = advance(state, 8, polynomial);
            k += 1;
        }
        byte += 1;
    }
    table
}

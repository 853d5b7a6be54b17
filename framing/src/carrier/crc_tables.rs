//! Tables for 16-bit checks that take several bytes at a time.

/// `state` times x to the `bits`, modulo `polynomial` (without its highest term).
const fn advance(mut state: u16, bits: u32, polynomial: u16) -> u16 {
    let mut i = 0;
    while i < bits {
        let carry = state >> 15;
        state = (state << 1) ^ (polynomial * carry);
        i += 1;
    }
    state
}

/// `table[k][b]` is what byte `b` leaves when `first + k` more bytes follow it, the check's own two
/// among them. A CRC is linear: look-ups of several bytes do not wait for each other.
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

//! The checks of a packet. One covers the header flit, so that routers can check it alone; the
//! other covers the words after it, and the destination corrects errors by it (T3E sec. 9, which
//! names no code).
//!
//! Both are extended Hamming codes: one wrong bit is corrected, two are detected.

/// Result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// No error.
    Good,
    /// One bit was wrong, and was corrected.
    Corrected,
    /// More than one bit is wrong, which cannot be corrected.
    Hopeless,
}

/// Bits of a header flit that its check covers.
pub const HEADER_BITS: u32 = 57;
/// Bits of the check over the words after the header.
pub const DATA_CHECK_BITS: u32 = 11;

/// For each bit of a header's syndrome, the bits of the flit in its parity: the bit of the code,
/// and those whose code position contains the syndrome bit. Code positions are the numbers from 3
/// on that are not powers of two.
const HEADER_MASKS: [u64; 6] = {
    let mut masks = [0; 6];
    let mut own = 0;
    while own < 6 {
        masks[own] = 1 << (HEADER_BITS + own as u32);
        own += 1;
    }
    let (mut position, mut bit) = (3_u32, 0);
    while bit < HEADER_BITS {
        if !position.is_power_of_two() {
            let mut syndrome = 0;
            while syndrome < 6 {
                if position >> syndrome & 1 != 0 {
                    masks[syndrome] |= 1 << bit;
                }
                syndrome += 1;
            }
            bit += 1;
        }
        position += 1;
    }
    masks
};

const INFORMATION: u64 = (1 << HEADER_BITS) - 1;

#[inline]
const fn parity(word: u64) -> u64 {
    (word.count_ones() & 1) as u64
}

/// For each byte position and value: a bit for each mask whose parity it changes.
const fn parities(masks: [u64; 6]) -> [[u8; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 8 {
        let mut value = 0;
        while value < 256 {
            let word = (value as u64) << (8 * byte);
            let mut mask = 0;
            while mask < 6 {
                tables[byte][value] |= (parity(word & masks[mask]) as u8) << mask;
                mask += 1;
            }
            tables[byte][value] |= (parity(word) as u8) << 6;
            value += 1;
        }
        byte += 1;
    }
    tables
}

static HEADER_PARITIES: [[u8; 256]; 8] = parities(HEADER_MASKS);
static COLUMN_PARITIES: [[u8; 256]; 8] = parities(COLUMN_MASKS);

/// The parities of a word under all masks; the bit above them is its total parity.
#[inline]
fn look_up(tables: &[[u8; 256]; 8], word: u64) -> u64 {
    let bytes = word.to_le_bytes();
    let found = tables.iter().zip(bytes);
    found
        .fold(0, |all, (table, byte)| all ^ table[usize::from(byte)])
        .into()
}

/// Seals 57 header bits: six bits of Hamming code above them, and the parity of all as the highest
/// bit. The bits above the 57 must be zero.
#[inline]
pub fn seal_header(information: u64) -> u64 {
    debug_assert!(
        information & !INFORMATION == 0,
        "the header exceeds 57 bits"
    );
    let found = look_up(&HEADER_PARITIES, information);
    let (code, odd) = (found & 0x3f, found >> 6 ^ parity(found & 0x3f));
    information | code << HEADER_BITS | odd << 63
}

/// The 57 bits of a header flit, corrected if possible, otherwise as received.
#[inline]
pub fn open_header(word: u64) -> (u64, Repair) {
    let information = word & INFORMATION;
    let found = look_up(&HEADER_PARITIES, word);
    if found == 0 {
        return (information, Repair::Good);
    }
    let (syndrome, odd) = (found & 0x3f, found >> 6 != 0);
    match (syndrome, odd) {
        (_, false) => (information, Repair::Hopeless),
        (syndrome, true) if !syndrome.is_power_of_two() && syndrome != 0 => {
            // Convert the position to a bit index: positions skip the powers of two.
            let bit = syndrome - 1 - u64::from(64 - syndrome.leading_zeros());
            (information ^ 1 << bit, Repair::Corrected)
        }
        // The flipped bit is the parity or a bit of the code: the information is intact.
        (_, true) => (information, Repair::Corrected),
    }
}

/// The check over the words after a header, in order: the positions of all set bits, added without
/// carry, and the parity. Bit b of word n has position 64 (n + 1) + b.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataCheck {
    /// XOR of all words.
    columns: u64,
    /// XOR of the numbers of words with odd parity.
    rows: u16,
    /// Number of words added.
    words: u16,
}

impl DataCheck {
    /// Adds the next word. A check covers at most 15 words; a packet has nine.
    #[inline]
    pub fn add(&mut self, word: u64) {
        self.words += 1;
        self.columns ^= word;
        self.rows ^= self.words * parity(word) as u16;
    }

    /// Number of words added.
    #[inline]
    pub const fn words(&self) -> u16 {
        self.words
    }

    /// The eleven bits: positions, and the parity above them.
    #[inline]
    pub fn bits(&self) -> u16 {
        let columns = look_up(&COLUMN_PARITIES, self.columns) as u16;
        self.rows << 6 | columns & 0x3f | (columns >> 6) << 10
    }

    /// The eleven bits of the check over `words`.
    #[inline]
    pub fn of(words: &[u64]) -> u16 {
        let mut check = Self::default();
        words.iter().for_each(|word| check.add(*word));
        check.bits()
    }

    /// Corrects `words` with `carried`, the 11-bit check received with them. Leaves words with more
    /// than one wrong bit unchanged.
    #[inline]
    pub fn repair(words: &mut [u64], carried: u16) -> Repair {
        let difference = Self::of(words) ^ carried;
        let (position, odd) = (difference & 0x3ff, difference >> 10 != 0);
        if difference == 0 {
            return Repair::Good;
        }
        let word = usize::from(position >> 6).checked_sub(1);
        match word.and_then(|word| words.get_mut(word)) {
            Some(word) if odd => {
                *word ^= 1 << (position & 63);
                Repair::Corrected
            }
            _ => Repair::Hopeless,
        }
    }
}

/// For each bit of a column's number, a mask of the columns whose number has that bit set.
const COLUMN_MASKS: [u64; 6] = [
    0xaaaa_aaaa_aaaa_aaaa,
    0xcccc_cccc_cccc_cccc,
    0xf0f0_f0f0_f0f0_f0f0,
    0xff00_ff00_ff00_ff00,
    0xffff_0000_ffff_0000,
    0xffff_ffff_0000_0000,
];

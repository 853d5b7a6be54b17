//! Payload stamps, which let a target identify the messages of a traffic run.
//!
//! The first eight bytes of a message are one little-endian word. From the lowest bit, it holds the
//! sequence number among this run's messages from this source to this address (28 bits), the tag of
//! the run (18 bits: a hash of the run and the incarnation of the source) and a check over tag,
//! source, target, address and sequence number (18 bits). Bytes 8 to 63 are derived from that word,
//! so that all of them are verified. The stamp distinguishes an undamaged message of *any* other
//! run, however old, from a damaged one, without remembering that run; it mistakes one damaged word
//! in 2^18 for such a message.
//!
//! With 2^28 numbers per address and 64 addresses per target, a number recurs after 17 billion
//! messages: half an hour at ten million messages per second.
//!
//! A message shorter than eight bytes carries the word folded to its length by multiplication. The
//! target, which knows the next number, computes the same value and compares. With one byte, one
//! wrong message in 256 goes undetected. Below four bytes, messages that follow a loss, and late
//! messages of an earlier run, may be reported as another kind of damage.
//!
//! Gets read a [pattern](read_words) that depends on the address alone, so that runs over the same
//! memory agree. None of its bytes is zero, so that even the shortest get recognises unwritten
//! memory.

use super::traffic_spec::MAX_SIZE;
use crate::rng::mix;

const ADDRESS_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
const SEQUENCE_FACTOR: u64 = 0xd6e8_feb8_6659_fd93;

/// Bits of the sequence number in a word, and of the tag above it.
const SEQUENCE_BITS: u32 = 28;
const TAG_BITS: u32 = 18;
const SEQUENCE_MASK: u64 = (1 << SEQUENCE_BITS) - 1;
const TAG_MASK: u64 = ((1 << TAG_BITS) - 1) << SEQUENCE_BITS;
const CHECK_MASK: u64 = !(SEQUENCE_MASK | TAG_MASK);
/// Increment of the generator for the bytes after the word.
const TAIL: u64 = 0x6a09_e667_f3bc_c909;
/// Seed of the pattern that gets read.
const PATTERN: u64 = mix(0x5041_5454_4552_4e00);
/// The lowest bit of every byte.
const ODD: u64 = 0x0101_0101_0101_0101;

/// The words of the pattern that gets read at `address`, a multiple of 64.
#[inline]
fn words_at(address: u64) -> impl Iterator<Item = [u8; 8]> {
    let first = PATTERN ^ address.wrapping_mul(ADDRESS_FACTOR);
    let next = |word: &u64| Some(mix(word.wrapping_add(TAIL)));
    let words = core::iter::successors(next(&first), next);
    words.map(|word| (word | ODD).to_le_bytes())
}

/// Fills the first `len` bytes of `out` with the pattern at `address`, a multiple of 64.
#[inline]
pub(crate) fn read_words(address: u64, out: &mut [u8; LINE], len: usize) {
    let chunks = out[..len.next_multiple_of(8)].as_chunks_mut::<8>().0;
    for (chunk, word) in chunks.iter_mut().zip(words_at(address)) {
        *chunk = word;
    }
}

/// The line of the pattern at `address`, a multiple of 64.
#[inline]
pub fn read_line(address: u64) -> [u8; LINE] {
    let mut line = [0; LINE];
    read_words(address, &mut line, LINE);
    line
}

/// Result of a get, worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Found {
    Whole,
    /// Unwritten memory: all zeros, or whole lines of zeros.
    Blank,
    Wrong,
}

impl Found {
    /// Classifies `data`, at most a line, that was read at `address`, a multiple of 64.
    #[inline]
    pub(crate) fn of(address: u64, data: &[u8]) -> Self {
        // Compare word by word: a wider load would stall on the recent 8-byte stores.
        let (whole, rest) = data.as_chunks::<8>();
        let mut expected = words_at(address);
        let is_same = whole.iter().zip(&mut expected).all(|(a, b)| *a == b);
        let mut is_last_same = || {
            let last = expected.next().unwrap_or_default();
            rest.iter().zip(last).all(|(a, b)| *a == b)
        };
        if is_same && (rest.is_empty() || is_last_same()) {
            return Self::Whole;
        }
        Self::of_others(data)
    }

    #[cold]
    fn of_others(data: &[u8]) -> Self {
        match data.iter().all(|&byte| byte == 0) {
            true => Self::Blank,
            false => Self::Wrong,
        }
    }
}

/// Makes and checks the stamps of one run between one source and one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Hash of source and target.
    pair: u64,
    /// The run's tag, shifted to its position in a word.
    tag: u64,
    /// Hash of `pair` and `tag`.
    base: u64,
}

impl Stamp {
    /// The stamps of a run; `nonce` distinguishes incarnations of the source.
    pub(crate) const fn of_run(run: u64, nonce: u32, source: u32, target: u32) -> Self {
        let pair = mix((source as u64) << 32 | target as u64);
        let hash = mix(mix(run) ^ nonce as u64);
        Self::tagged(pair, hash >> (u64::BITS - TAG_BITS) << SEQUENCE_BITS)
    }

    const fn tagged(pair: u64, tag: u64) -> Self {
        let base = mix(pair ^ tag);
        Self { pair, tag, base }
    }

    /// The word of message number `sequence` to `address`.
    #[inline]
    pub(crate) const fn word(self, address: u64, sequence: u32) -> u64 {
        let sequence = sequence as u64 & SEQUENCE_MASK;
        let at = address.wrapping_mul(ADDRESS_FACTOR);
        let number = (sequence + 1).wrapping_mul(SEQUENCE_FACTOR);
        mix(self.base ^ at ^ number.rotate_left(32)) & CHECK_MASK | self.tag | sequence
    }

    /// Start value of the word at `address` in an atomic run: zero in the low half, a hash of the
    /// run in the high half. The top bit is set, so that no count from this value looks like a
    /// count from zero.
    #[inline]
    pub(crate) const fn first_count(self, address: u64) -> u64 {
        let at = address.wrapping_mul(ADDRESS_FACTOR);
        mix(self.base ^ at) & !0xffff_ffff | 1 << 63
    }

    /// Fills the first `len` of `out` with the payload of message `sequence` to `address`.
    #[inline]
    pub(crate) fn fill(
        self,
        address: u64,
        sequence: u32,
        out: &mut [u8; MAX_SIZE as usize],
        len: usize,
    ) {
        let word = self.word(address, sequence);
        if len < 8 {
            let folded = word.wrapping_mul(SEQUENCE_FACTOR) >> (64 - 8 * len);
            out[..8].copy_from_slice(&folded.to_le_bytes());
            return;
        }
        out[..8].copy_from_slice(&word.to_le_bytes());
        let mut more = word;
        for chunk in out[8..len.next_multiple_of(8)].as_chunks_mut::<8>().0 {
            more = mix(more.wrapping_add(TAIL));
            *chunk = more.to_le_bytes();
        }
    }

    /// The sequence number in an unfolded stamp, extended to the number nearest `next` that has
    /// those bits.
    pub(crate) fn claimed_number(next: u32, data: &[u8]) -> Option<u32> {
        let word = u64::from_le_bytes(*data.first_chunk()?);
        let unused = u32::BITS - SEQUENCE_BITS;
        let ahead = (word as u32).wrapping_sub(next) << unused;
        Some(next.wrapping_add_signed(ahead.cast_signed() >> unused))
    }

    /// Whether `data` is an undamaged message to `address`, from this source to this target, but of
    /// another run. False for data shorter than a word, which is ambiguous.
    #[cold]
    pub(crate) fn is_of_another_run(self, address: u64, data: &[u8]) -> bool {
        let Some(word) = data.first_chunk() else {
            return false;
        };
        let word = u64::from_le_bytes(*word);
        let other = Self::tagged(self.pair, word & TAG_MASK);
        other.tag != self.tag && other.matches(address, word as u32, data)
    }

    /// Whether `data` is an undamaged message of this run to `address`, with any number.
    #[cold]
    pub(crate) fn is_of_any_number(self, address: u64, data: &[u8]) -> bool {
        Self::claimed_number(0, data).is_some_and(|number| self.matches(address, number, data))
    }

    /// The payload of block `sequence` to `address`, line by line.
    pub fn lines(self, address: u64, sequence: u32) -> Lines {
        Lines {
            stamp: self,
            address,
            sequence,
        }
    }

    /// Whether `data` is the payload of message `sequence` to `address`.
    #[inline]
    pub(crate) fn matches(self, address: u64, sequence: u32, data: &[u8]) -> bool {
        // Fast path for the most common message: a single word.
        if let Some((word, [])) = data.split_first_chunk() {
            return u64::from_le_bytes(*word) == self.word(address, sequence);
        }
        let mut expected = [0; MAX_SIZE as usize];
        self.fill(address, sequence, &mut expected, data.len());
        expected[..data.len()] == *data
    }
}

/// The bytes of a block, 64 at a time. Each line equals a message to its address.
#[derive(Clone, Debug)]
pub struct Lines {
    stamp: Stamp,
    /// Address of the next line.
    address: u64,
    sequence: u32,
}

pub const LINE: usize = 64;

impl Lines {
    #[inline]
    pub fn next_line(&mut self) -> [u8; LINE] {
        let mut line = [0; LINE];
        self.stamp
            .fill(self.address, self.sequence, &mut line, LINE);
        self.address = self.address.wrapping_add(LINE as u64);
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: Stamp = Stamp::of_run(1, 2, 3, 4);

    fn filled(stamp: Stamp, address: u64, sequence: u32, len: usize) -> Vec<u8> {
        let mut out = [0xa5; MAX_SIZE as usize];
        stamp.fill(address, sequence, &mut out, len);
        out[..len].to_vec()
    }

    #[test]
    fn a_changed_bit_anywhere_is_seen_at_every_size() {
        for len in 1..=64 {
            let good = filled(STAMP, 0x1240, 77, len);
            assert!(STAMP.matches(0x1240, 77, &good));
            for bit in 0..len * 8 {
                let mut bad = good.clone();
                bad[bit / 8] ^= 1 << (bit % 8);
                assert!(!STAMP.matches(0x1240, 77, &bad), "{len} bytes, bit {bit}");
            }
        }
    }

    #[test]
    fn blocks_begin_as_messages_do_and_go_on() {
        let mut lines = STAMP.lines(0x1240, 77);
        assert_eq!(lines.next_line().as_slice(), filled(STAMP, 0x1240, 77, 64));
        assert_ne!(lines.next_line(), lines.next_line());
    }

    #[test]
    fn another_run_nonce_source_target_address_or_number_is_seen() {
        let good = filled(STAMP, 64, 5, 8);
        for other in [
            Stamp::of_run(2, 2, 3, 4),
            Stamp::of_run(1 << 32 | 1, 2, 3, 4),
            Stamp::of_run(1, 3, 3, 4),
            Stamp::of_run(1, 2, 4, 4),
            Stamp::of_run(1, 2, 3, 5),
        ] {
            assert!(!other.matches(64, 5, &good));
        }
        assert!(!STAMP.matches(128, 5, &good));
        assert!(!STAMP.matches(64, 6, &good));
    }

    /// Regression: when the first 46 bits were zeros, gets of up to five bytes found nothing wrong
    /// anywhere.
    #[test]
    fn stamps_are_distinguished_from_zeros_and_other_addresses_at_every_size() {
        for len in 1..=LINE {
            let wrong = (1..2_000_u64).filter(|n| {
                let line = read_line(0x1240 + 64 * n);
                Found::of(0x1240, &line[..len]) != Found::Wrong
            });
            // Seven bits of a byte are random.
            let allowed = [40, 2][usize::from(len > 1)];
            assert!(wrong.count() <= allowed, "{len} bytes");
            for address in (0..1 << 16).step_by(64) {
                let line = read_line(address);
                assert_eq!(Found::of(address, &line[..len]), Found::Whole);
                assert_eq!(Found::of(address, &[0; LINE][..len]), Found::Blank);
                let mut bad = line;
                bad[len - 1] ^= 0x20;
                assert_eq!(Found::of(address, &bad[..len]), Found::Wrong);
            }
        }
    }

    #[test]
    fn folded_stamps_miss_no_more_than_their_width_allows() {
        for (len, allowed) in [(1, 60_000 / 256 * 2), (2, 10), (3, 1), (7, 0)] {
            let good = filled(STAMP, 64, 0, len);
            let missed = (1..60_000).filter(|&n| STAMP.matches(64, n, &good)).count();
            assert!(missed <= allowed, "{len} bytes: {missed}");
        }
    }

    #[test]
    fn a_message_of_another_run_is_distinguished_from_a_damaged_one() {
        for len in [8, 9, 15, 16, 33, 64] {
            for run in 0..200_u64 {
                let other = Stamp::of_run(run << 20 | 7, 2, 3, 4);
                let late = filled(other, 0x1240, 900_000_000, len);
                assert!(
                    STAMP.is_of_another_run(0x1240, &late),
                    "{len} bytes, run {run}"
                );
                for bit in [0, 13, 29, 45, 46, 63, len * 8 - 1] {
                    let mut bad = late.clone();
                    bad[bit / 8] ^= 1 << (bit % 8);
                    assert!(
                        !STAMP.is_of_another_run(0x1240, &bad),
                        "{len} bytes, bit {bit}"
                    );
                }
                assert!(!STAMP.is_of_another_run(0x1280, &late), "another address");
            }
            let own = filled(STAMP, 0x1240, 5, len);
            assert!(!STAMP.is_of_another_run(0x1240, &own));
            let stranger = filled(Stamp::of_run(9, 2, 5, 4), 0x1240, 5, len);
            assert!(
                !STAMP.is_of_another_run(0x1240, &stranger),
                "another source"
            );
        }
        assert!(!STAMP.is_of_another_run(0x1240, &filled(STAMP, 0x1240, 5, 7)));
    }

    #[test]
    fn numbers_come_round_to_the_nearest() {
        for number in [0, 5, (1 << 28) - 1, 1 << 28, u32::MAX] {
            let data = filled(STAMP, 64, number, 8);
            for off in [0, 1, 77, (1 << 27) - 1] {
                for next in [number.wrapping_add(off), number.wrapping_sub(off)] {
                    assert_eq!(Stamp::claimed_number(next, &data), Some(number), "{next}");
                }
            }
        }
        assert_eq!(Stamp::claimed_number(0, &[0; 7]), None);
    }
}

//! Payload stamps: what a traffic run writes, so that its target can tell what arrived.
//!
//! The first eight bytes of a message are one little-endian word: its sequence number among the
//! messages of this run from this source to this address (low 32 bits), and a check over run,
//! source, target, address and sequence number (high 32 bits). Bytes 8 to 63 are drawn from that
//! word, so that all of them are verified. A message shorter than eight bytes carries the word
//! folded down to its length by multiplication: its target, who knows which number must come next,
//! computes the same and compares. With one byte, one wrong message in 256 goes unseen, and below four
//! bytes the messages that come after a loss may be taken for another kind of damage than they are.

use super::traffic_spec::MAX_SIZE;

/// Mixes all bits of `x` into all bits of the result (the finalizer of SplitMix64).
#[inline]
const fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

const ADDRESS_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
const SEQUENCE_FACTOR: u64 = 0xd6e8_feb8_6659_fd93;

/// Makes and checks the stamps of one run between one source and one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp(u64);

impl Stamp {
    /// The stamps of a run; `nonce` keeps incarnations of the source apart.
    pub(crate) const fn of_run(run: u32, nonce: u32, source: u32, target: u32) -> Self {
        let run = (run as u64) << 32 | nonce as u64;
        Self(mix(mix(run) ^ ((source as u64) << 32 | target as u64)))
    }

    /// The pattern that memory is filled with to be read: the same for every run and source, so
    /// that runs over the same memory agree.
    pub(crate) const fn of_memory() -> Self {
        Self(mix(0x5041_5454_4552_4e00))
    }

    /// The word of message number `sequence` to `address`.
    #[inline]
    pub(crate) const fn word(self, address: u64, sequence: u32) -> u64 {
        let at = address.wrapping_mul(ADDRESS_FACTOR);
        let number = (sequence as u64 + 1).wrapping_mul(SEQUENCE_FACTOR);
        mix(self.0 ^ at ^ number.rotate_left(32)) & !0xffff_ffff | sequence as u64
    }

    /// What the word at `address` counts from in an atomic run: its low half is zero, its high half says
    /// whose it is.
    #[inline]
    pub(crate) const fn first_count(self, address: u64) -> u64 {
        self.word(address, 0)
    }

    /// Fills the first `len` of `out` with what message `sequence` to `address` carries.
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
            more = mix(more.wrapping_add(self.0));
            *chunk = more.to_le_bytes();
        }
    }

    /// What block `sequence` to `address` carries, line by line.
    pub(crate) fn lines(self, address: u64, sequence: u32) -> Lines {
        Lines {
            stamp: self,
            word: self.word(address, sequence),
        }
    }

    /// Whether `data` is what message `sequence` to `address` carries.
    #[inline]
    pub(crate) fn matches(self, address: u64, sequence: u32, data: &[u8]) -> bool {
        // The shortest stamp that is whole, and the commonest: no more than a word.
        if let Some((word, [])) = data.split_first_chunk() {
            return u64::from_le_bytes(*word) == self.word(address, sequence);
        }
        let mut expected = [0; MAX_SIZE as usize];
        self.fill(address, sequence, &mut expected, data.len());
        expected[..data.len()] == *data
    }
}

/// The bytes of a block, 64 at a time.
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    stamp: Stamp,
    /// The next eight bytes.
    word: u64,
}

/// Bytes of a line.
pub(crate) const LINE: usize = 64;

impl Lines {
    /// The next line.
    #[inline]
    pub(crate) fn next(&mut self) -> [u8; LINE] {
        let mut line = [0; LINE];
        for chunk in line.as_chunks_mut::<8>().0 {
            *chunk = self.word.to_le_bytes();
            self.word = mix(self.word.wrapping_add(self.stamp.0));
        }
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
        assert_eq!(lines.next().as_slice(), filled(STAMP, 0x1240, 77, 64));
        assert_ne!(lines.next(), lines.next());
    }

    #[test]
    fn another_run_nonce_source_target_address_or_number_is_seen() {
        let good = filled(STAMP, 64, 5, 8);
        for other in [
            Stamp::of_run(2, 2, 3, 4),
            Stamp::of_run(1, 3, 3, 4),
            Stamp::of_run(1, 2, 4, 4),
            Stamp::of_run(1, 2, 3, 5),
            Stamp::of_memory(),
        ] {
            assert!(!other.matches(64, 5, &good));
        }
        assert!(!STAMP.matches(128, 5, &good));
        assert!(!STAMP.matches(64, 6, &good));
    }

    #[test]
    fn folded_stamps_miss_no_more_than_their_width_allows() {
        for (len, allowed) in [(1, 60_000 / 256 * 2), (2, 10), (3, 1), (7, 0)] {
            let good = filled(STAMP, 64, 0, len);
            let missed = (1..60_000).filter(|&n| STAMP.matches(64, n, &good)).count();
            assert!(missed <= allowed, "{len} bytes: {missed}");
        }
    }
}

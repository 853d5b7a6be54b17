//! Hash of a run.

/// A running 64-bit hash of a sequence of values; equal sequences have equal hashes on every
/// machine.
///
/// It is not cryptographic: it multiplies and folds eight bytes at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceHash(u64);

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

impl Default for TraceHash {
    fn default() -> Self {
        Self(0x243f_6a88_85a3_08d3)
    }
}

impl TraceHash {
    #[inline]
    pub fn add(&mut self, value: u64) {
        let product = u128::from(self.0 ^ value) * u128::from(MULTIPLIER);
        // Without the addition, a zero product would erase everything before it.
        self.0 = (product as u64 ^ (product >> 64) as u64).wrapping_add(self.0.rotate_left(23));
    }

    /// Adds bytes and their number.
    #[inline]
    pub(crate) fn add_bytes(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.add(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.add(u64::from_le_bytes(last));
        self.add(bytes.len() as u64);
    }

    /// The hash of everything added so far.
    pub(crate) const fn value(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(parts: &[&[u8]]) -> u64 {
        let mut hash = TraceHash::default();
        for part in parts {
            hash.add_bytes(part);
        }
        hash.value()
    }

    #[test]
    fn different_inputs_have_different_hashes() {
        let long = [7u8; 100];
        let mut seen = std::collections::BTreeSet::new();
        for bit in 0..800 {
            let mut flipped = long;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(seen.insert(hash(&[&flipped])), "bit {bit}");
        }
        assert!(seen.insert(hash(&[&long])));
        assert!(seen.insert(hash(&[&long, &[]])), "empty frames count");
        assert!(seen.insert(hash(&[&long[..99]])));
        assert_ne!(hash(&[b"a", b"b"]), hash(&[b"b", b"a"]), "order counts");
        assert_ne!(
            hash(&[b"ab", b"c"]),
            hash(&[b"a", b"bc"]),
            "frame borders count"
        );
    }

    #[test]
    fn the_value_is_the_same_on_every_machine() {
        assert_eq!(hash(&[b"phitwire"]), 14_600_648_019_951_148_467);
    }
}

//! Entries of a look-up table: a tag, which travels with the packet, and the hop before it.

use phitwire_framing::t3e::direction::Direction;
use phitwire_framing::t3e::tag::Tag;

/// An entry of the look-up table: "the physical address of the destination node, the deterministic
/// path to that node, and an indication of whether adaptivity is allowed" (T3E sec. 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Entry {
    /// The part that travels with the packet.
    pub tag: Tag,
    /// The hop before all others, in a plus direction. Only the source router uses it (T3E sec.
    /// 2.2).
    pub initial: Option<Direction>,
}

impl Entry {
    /// Encodes the entry as its tag and, above it, 0 for no initial hop or 1, 2, 3 for one in +X,
    /// +Y, +Z.
    pub fn bits(self) -> u32 {
        let initial = self
            .initial
            .map_or(0, |direction| 1 + direction.index() as u32);
        self.tag.bits() | initial << Tag::BITS
    }

    /// Decodes an entry. Returns `None` for unknown initial hops, or if higher bits are set.
    pub fn from_bits(bits: u32) -> Option<Self> {
        let initial = match bits >> Tag::BITS {
            0 => None,
            hop @ 1..=3 => Some(Direction::ALL[hop as usize - 1]),
            _ => return None,
        };
        let tag = Tag::from_bits(bits);
        Some(Self { tag, initial })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use phitwire_framing::t3e::tag::Coordinates;

    #[test]
    fn entries_are_numbers_of_twenty_bits() {
        let tag = Tag {
            to: Coordinates([7, 31, 10]),
            signs: 0b101,
            final_hop: true,
            adaptive: true,
        };
        for initial in [None, Some(Direction::PlusX), Some(Direction::PlusZ)] {
            let entry = Entry { tag, initial };
            assert!(entry.bits() < 1 << 20);
            assert_eq!(Entry::from_bits(entry.bits()), Some(entry));
        }
        assert_eq!(Entry::from_bits(1 << 20), None);
    }
}

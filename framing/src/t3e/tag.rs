//! The route in a packet, and the physical addresses of nodes (T3E sec. 2).

use core::fmt;

use super::direction::DirectionSet;

/// The physical address of a node: its ordinates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Coordinates(pub [u8; 3]);

impl Coordinates {
    /// Bits of the ordinates in X, Y and Z. Z has one more bit than eight nodes need, for partial
    /// planes.
    pub const BITS: [u32; 3] = [4, 5, 4];

    /// The position as a number of 13 bits, X lowest.
    #[inline]
    pub const fn bits(self) -> u16 {
        let [x, y, z] = self.0;
        x as u16 | (y as u16) << 4 | (z as u16) << 9
    }

    /// The position encoded in such a number; higher bits are ignored.
    #[inline]
    pub const fn from_bits(bits: u16) -> Self {
        Self([
            (bits & 0xf) as u8,
            (bits >> 4 & 0x1f) as u8,
            (bits >> 9 & 0xf) as u8,
        ])
    }
}

impl fmt::Display for Coordinates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.0;
        write!(f, "({x},{y},{z})")
    }
}

/// The route in a packet. Only the source router changes it, or a router that resends the packet
/// from its memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tag {
    /// The packet's destination, or the node where its final hop begins.
    pub to: Coordinates,
    /// Dimensions travelled towards smaller ordinates, one bit each: bit 0 is X.
    pub signs: u8,
    /// Whether the packet takes one more hop in -Z at `to` (T3E sec. 2.2).
    pub final_hop: bool,
    /// Whether the packet may use adaptive channels (T3E sec. 5).
    pub adaptive: bool,
}

impl Tag {
    /// Bits of a tag in a packet and in a table.
    pub const BITS: u32 = 18;

    /// The directions that a packet at `position` still has to travel, without its final hop.
    #[inline]
    pub fn unsatisfied(&self, position: Coordinates) -> DirectionSet {
        let mut bits = 0;
        for dimension in 0..3 {
            let lacks = u8::from(position.0[dimension] != self.to.0[dimension]);
            bits |= lacks << (dimension + 3 * usize::from(self.signs >> dimension & 1));
        }
        DirectionSet::from_bits(bits)
    }

    /// The tag as a number: position, signs, final hop, adaptive bit from the lowest bit up.
    #[inline]
    pub const fn bits(self) -> u32 {
        self.to.bits() as u32
            | (self.signs as u32 & 7) << 13
            | (self.final_hop as u32) << 16
            | (self.adaptive as u32) << 17
    }

    /// The tag encoded in such a number; higher bits are ignored.
    #[inline]
    pub const fn from_bits(bits: u32) -> Self {
        Self {
            to: Coordinates::from_bits(bits as u16),
            signs: (bits >> 13 & 7) as u8,
            final_hop: bits >> 16 & 1 != 0,
            adaptive: bits >> 17 & 1 != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::t3e::direction::Direction;
    use std::vec::Vec;

    const TAG: Tag = Tag {
        to: Coordinates([7, 31, 10]),
        signs: 0b101,
        final_hop: true,
        adaptive: true,
    };

    #[test]
    fn a_tag_has_eighteen_bits() {
        let bits = 7 | 31 << 4 | 10 << 9 | 0b101 << 13 | 1 << 16 | 1 << 17;
        assert_eq!(TAG.bits(), bits);
        assert!(bits < 1 << Tag::BITS);
        assert_eq!(Tag::from_bits(bits), TAG);
        assert_eq!(Coordinates::from_bits(TAG.to.bits()), TAG.to);
    }

    #[test]
    fn a_packet_travels_where_its_ordinates_differ() {
        let unsatisfied: Vec<_> = TAG.unsatisfied(Coordinates([3, 31, 0])).iter().collect();
        assert_eq!(unsatisfied, [Direction::MinusX, Direction::MinusZ]);
        assert_eq!(TAG.unsatisfied(TAG.to), DirectionSet::EMPTY);
    }
}

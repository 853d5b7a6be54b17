//! What a router knows of where it is.

use super::direction::Direction;
use super::entry::Place;

/// Registers of a router that packets in the network are routed by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouteRegisters {
    /// The physical "who am I" (paper, section 2).
    pub place: Place,
    /// The Z ordinate of the neighbour in +Z, from where packets come by their final hop.
    pub plus_z: u8,
    /// Directions whose rings have their dateline here, one bit each.
    pub datelines: u8,
    /// Directions in which packets that go straight on leave on VC0, whatever they came on, one bit
    /// each: a way out of a network that wrong tables have jammed, for maintenance. The paper says
    /// that such a network can be cleaned up (section 9), not how.
    pub escapes: u8,
    /// The table of virtual channels, by direction (paper, section 3.2): bit n is the channel, VC0
    /// or VC1, of a packet that enters the direction here and whose destination's ordinate in it is
    /// n modulo 8. The bit of the router's own ordinate is the one of final hops.
    pub vc_tables: [u8; 6],
    /// Ordinates that no node of the lines through here has, by dimension, one bit each: what looks
    /// for one of them would look for ever. The machine has no such registers, see
    /// `docs/guide/src/deviations.md`.
    pub absent: [u32; 3],
}

impl RouteRegisters {
    /// The channel, 0 or 1, on which a packet to `ordinate` enters `direction`.
    #[inline]
    pub const fn entry_vc(&self, direction: Direction, ordinate: u8) -> u8 {
        self.vc_tables[direction.index()] >> (ordinate & 7) & 1
    }

    /// Whether nobody along `direction` has the ordinate of `to`.
    #[inline]
    pub const fn lacks(&self, direction: Direction, to: Place) -> bool {
        let dimension = direction.dimension();
        self.absent[dimension] >> to.0[dimension] & 1 != 0
    }

    /// Whether what goes straight on in `direction` leaves on VC0.
    #[inline]
    pub const fn is_escape(&self, direction: Direction) -> bool {
        self.escapes >> direction.index() & 1 != 0
    }

    /// Whether the ring of `direction` has its dateline here.
    #[inline]
    pub const fn is_dateline(&self, direction: Direction) -> bool {
        self.datelines >> direction.index() & 1 != 0
    }
}

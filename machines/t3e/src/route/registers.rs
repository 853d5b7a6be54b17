//! The routing registers of a router.

use phitwire_framing::t3e::direction::Direction;
use phitwire_framing::t3e::tag::Coordinates;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouteRegisters {
    /// The physical "who am I" (T3E sec. 2).
    pub coordinates: Coordinates,
    /// The Z ordinate of the neighbour in +Z, from which final hops arrive.
    pub plus_z: u8,
    /// Directions whose rings have their dateline here, one bit each.
    pub datelines: u8,
    /// Directions in which straight traffic leaves on VC0, whatever its arrival channel, one bit
    /// each. They let maintenance drain a network that invalid tables have jammed. T3E sec. 9 says
    /// that such a network can be cleaned up, but not how.
    pub escapes: u8,
    /// The virtual channel table, by direction (T3E sec. 3.2): bit n is the channel, VC0 or VC1, of
    /// a packet that enters the direction here and whose destination's ordinate in it is n modulo
    /// 8. The bit of the router's own ordinate is for final hops.
    pub vc_tables: [u8; 6],
    /// Ordinates that no node on the lines through this router has, by dimension, one bit each:
    /// packets for them would circulate forever. The machine has no such registers; see
    /// `docs/guide/src/deviations.md`.
    pub absent: [u32; 3],
}

impl RouteRegisters {
    /// The channel, 0 or 1, on which a packet to `ordinate` enters `direction`.
    #[inline]
    pub const fn entry_vc(&self, direction: Direction, ordinate: u8) -> u8 {
        self.vc_tables[direction.index()] >> (ordinate & 7) & 1
    }

    /// Whether no node along `direction` has the ordinate of `to`.
    #[inline]
    pub const fn lacks(&self, direction: Direction, to: Coordinates) -> bool {
        let dimension = direction.dimension();
        self.absent[dimension] >> to.0[dimension] & 1 != 0
    }

    /// Whether straight traffic in `direction` leaves on VC0.
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

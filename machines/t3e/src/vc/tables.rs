//! Virtual channel tables, and checks of their safety.

use super::ring::{Ring, UnidirectionalRing};

/// Number of entries in a table for one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entries {
    /// One entry per node of the ring: "full tables" (T3E table 1).
    Full,
    /// Eight entries, selected by the lower three bits of the destination's ordinate, as in the
    /// machine. (T3E sec. 4 says "the lower 8 bits", but T3E sec. 3.2 has tables of radix 8.)
    Eight,
}

/// The initial virtual channel of every route in a unidirectional ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingTables {
    ring: UnidirectionalRing,
    /// By position of the source: the channels, one bit per position of the destination.
    channels: Vec<u32>,
}

impl RingTables {
    /// All zeros: packets change to VC1 where they cross the dateline, "the time-of-crossing
    /// assignment" (T3E sec. 4).
    pub fn time_of_crossing(ring: UnidirectionalRing) -> Self {
        let channels = vec![0; ring.nodes()];
        Self { ring, channels }
    }

    /// The channels of routers whose eight-entry tables are `entries`, by position; `None` if their
    /// number differs from that of the ring's nodes. [`Self::crosses_on_vc1`] checks their safety.
    pub fn from_entries(ring: UnidirectionalRing, entries: &[u8]) -> Option<Self> {
        if entries.len() != ring.nodes() {
            return None;
        }
        let of = |entries: u8| {
            let bit = |(position, ordinate): (usize, &u8)| {
                u32::from(entries >> (ordinate & 7) & 1) << position
            };
            ring.ordinates().iter().enumerate().map(bit).sum()
        };
        let channels = entries.iter().map(|&entries| of(entries)).collect();
        Some(Self { ring, channels })
    }

    /// These channels, position by position, in a ring that [is like](UnidirectionalRing::is_like)
    /// this one, such as its mirror image; `None` if `ring` is not.
    pub fn mirrored(&self, ring: UnidirectionalRing) -> Option<Self> {
        let channels = self.channels.clone();
        self.ring.is_like(&ring).then_some(Self { ring, channels })
    }

    pub fn ring(&self) -> &UnidirectionalRing {
        &self.ring
    }

    /// The initial channel, 0 or 1, of the route from one position to another.
    ///
    /// # Panics
    /// If the ring has no such positions.
    #[inline]
    pub fn entry_vc(&self, source: usize, destination: usize) -> u8 {
        assert!(
            destination < self.ring.nodes(),
            "the destination is outside the ring"
        );
        (self.channels[source] >> destination & 1) as u8
    }

    /// The eight-entry table of the router at a position: bit n is the channel to ordinates that
    /// are n modulo 8. Meaningless for full tables of more than eight nodes, which do not fit.
    ///
    /// # Panics
    /// If the ring has no such position.
    pub fn entries(&self, source: usize) -> u8 {
        let ordinates = self.ring.ordinates().iter().enumerate();
        ordinates.fold(0, |entries, (position, ordinate)| {
            entries | self.entry_vc(source, position) << (ordinate & 7)
        })
    }

    /// Sets the entry for `destination` in the router at `source` to VC1, and with it all
    /// destinations that share it in tables of this size.
    pub(super) fn set_vc1(&mut self, entries: Entries, source: usize, destination: usize) {
        for other in 0..self.ring.nodes() {
            let shared = entries.shared(&self.ring, destination, other);
            self.channels[source] |= u32::from(shared) << other;
        }
    }

    /// Follows the route from one position to another, and calls `hop` with the number and the
    /// channel of every link. Returns whether the route obeys the rule: "A packet is not allowed to
    /// cross the dateline on VC1" (T3E sec. 3.2).
    ///
    /// # Panics
    /// If the ring has no such positions.
    pub fn follow(
        &self,
        source: usize,
        destination: usize,
        mut hop: impl FnMut(usize, u8),
    ) -> bool {
        let mut vc = self.entry_vc(source, destination);
        let mut allowed = true;
        let mut here = source;
        while here != destination {
            // "Any packet that crosses the dateline on VC0 is switched by the hardware to VC1
            // leaving the dateline node."
            if here == 0 && here != source {
                allowed &= vc == 0;
                vc = 1;
            }
            hop(here, vc);
            here = (here + 1) % self.ring.nodes();
        }
        allowed
    }

    /// Whether a packet may go in this direction from one position to another, at any distance,
    /// without crossing the dateline on VC1. In rings of more than eight nodes, a non-minimal path
    /// may share its entry with a minimal one.
    ///
    /// # Panics
    /// If the ring has no such positions.
    pub fn may_go(&self, source: usize, destination: usize) -> bool {
        self.follow(source, destination, |_, _| ())
    }

    /// A minimal route that would cross the dateline on VC1, as ordinates of source and
    /// destination; `None` if the tables are safe for all minimal routes.
    pub fn crosses_on_vc1(&self) -> Option<(u8, u8)> {
        let mut routes = self.ring.routes();
        let (source, destination) = routes.find(|&(from, to)| !self.may_go(from, to))?;
        let ordinates = self.ring.ordinates();
        Some((ordinates[source], ordinates[destination]))
    }
}

impl Entries {
    /// Whether two destinations, given as positions, share an entry.
    pub(super) fn shared(self, ring: &UnidirectionalRing, a: usize, b: usize) -> bool {
        let ordinates = ring.ordinates();
        a == b || self == Self::Eight && ordinates[a] & 7 == ordinates[b] & 7
    }
}

/// Tables of eight entries for both directions of a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VcTables {
    ring: Ring,
    ways: [RingTables; 2],
}

impl VcTables {
    /// The tables that `assign` makes for both directions of `ring`. If - is the mirror image of +,
    /// so are its tables.
    pub fn new(ring: Ring, mut assign: impl FnMut(UnidirectionalRing) -> RingTables) -> Self {
        let plus = assign(ring.one_way(false));
        let minus = ring.one_way(true);
        let minus = match plus.mirrored(minus.clone()) {
            Some(mirrored) => mirrored,
            None => assign(minus),
        };
        let ways = [plus, minus];
        Self { ring, ways }
    }

    /// The channels of routers whose tables for + and - are `entries`, by ordinate; `None` if their
    /// number differs from that of the ring's nodes. [`Self::crosses_on_vc1`] checks their safety.
    pub fn from_entries(ring: Ring, entries: &[[u8; 2]]) -> Option<Self> {
        let way = |minus: bool| {
            let way = ring.one_way(minus);
            let of = |ordinate: &u8| {
                let position = ring
                    .ordinates()
                    .iter()
                    .position(|other| other == ordinate)?;
                Some(entries.get(position)?[usize::from(minus)])
            };
            let by_position: Option<Vec<u8>> = way.ordinates().iter().map(of).collect();
            RingTables::from_entries(way, &by_position?)
        };
        let fits = entries.len() == ring.ordinates().len();
        let ways = [way(false)?, way(true)?];
        fits.then_some(Self { ring, ways })
    }

    /// All zeros: see [`RingTables::time_of_crossing`].
    pub fn time_of_crossing(ring: Ring) -> Self {
        Self::new(ring, RingTables::time_of_crossing)
    }

    pub fn ring(&self) -> &Ring {
        &self.ring
    }

    /// The tables of +, or of - if `minus`.
    pub fn one_way(&self, minus: bool) -> &RingTables {
        &self.ways[usize::from(minus)]
    }

    /// The tables of the router at `ordinate` for + and -, in the format of
    /// [`RouteRegisters::vc_tables`](crate::route::RouteRegisters::vc_tables); `None` if the ring
    /// lacks the ordinate.
    pub fn entries(&self, ordinate: u8) -> Option<[u8; 2]> {
        let [plus, minus] = &self.ways;
        let of = |way: &RingTables| Some(way.entries(way.ring().position(ordinate)?));
        Some([of(plus)?, of(minus)?])
    }

    /// All ordinates of the ring, with the tables of their routers for + and -.
    pub fn routers(&self) -> impl Iterator<Item = (u8, [u8; 2])> {
        let ordinates = self.ring.ordinates().iter();
        ordinates.filter_map(|&ordinate| Some((ordinate, self.entries(ordinate)?)))
    }

    /// [`RingTables::may_go`] by ordinate, in direction - if `minus`. Adaptive packets can return
    /// to the deterministic channels at every node of their path, so check from each of them.
    /// `None` if the ring lacks an ordinate.
    pub fn may_go(&self, source: u8, destination: u8, minus: bool) -> Option<bool> {
        let way = self.one_way(minus);
        let (source, destination) = (
            way.ring().position(source)?,
            way.ring().position(destination)?,
        );
        Some(way.may_go(source, destination))
    }

    /// A minimal route that would cross a dateline on VC1, as ordinates of source and destination;
    /// `None` if the tables are safe for all minimal routes.
    pub fn crosses_on_vc1(&self) -> Option<(u8, u8)> {
        self.ways.iter().find_map(RingTables::crosses_on_vc1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::RouteRegisters;
    use phitwire_framing::t3e::direction::Direction;

    fn whole(nodes: usize) -> Ring {
        Ring::whole(nodes).expect("a valid ring size")
    }

    #[test]
    fn a_table_that_crosses_on_vc1_is_noticed() {
        for minus in [false, true] {
            let ring = whole(8).one_way(minus);
            let mut entries = [0; 8];
            let safe = RingTables::from_entries(ring.clone(), &entries).expect("eight");
            assert_eq!(safe, RingTables::time_of_crossing(ring.clone()));
            assert_eq!(safe.crosses_on_vc1(), None);
            // From position 6, position 1 is beyond the dateline; position 0 is not.
            let ordinates = ring.ordinates().to_vec();
            entries[6] = 1 << ordinates[0];
            let to_it = RingTables::from_entries(ring.clone(), &entries).expect("eight");
            assert_eq!(to_it.crosses_on_vc1(), None);
            assert_eq!(to_it.entry_vc(6, 0), 1);
            entries[6] |= 1 << ordinates[1];
            let wrong = RingTables::from_entries(ring.clone(), &entries).expect("eight");
            assert_eq!(wrong.crosses_on_vc1(), Some((ordinates[6], ordinates[1])));
            assert_eq!(RingTables::from_entries(ring, &entries[1..]), None);
        }
    }

    #[test]
    fn shared_entries_reach_ways_that_are_not_minimal() {
        // In a ring of 16, ordinates 9 and 1 share an entry. From 3, the path + to 1 is the longer
        // one.
        let mut entries = [0; 16];
        entries[3] = 1 << 1;
        let tables = VcTables::new(whole(16), |ring| {
            RingTables::from_entries(ring, &entries).expect("sixteen")
        });
        assert_eq!(tables.crosses_on_vc1(), None, "routes to 9 are free");
        assert_eq!(tables.may_go(3, 9, false), Some(true));
        assert_eq!(tables.may_go(3, 1, false), Some(false));
        assert_eq!(tables.may_go(3, 16, false), None);
    }

    #[test]
    fn routes_change_to_vc1_where_they_leave_the_dateline() {
        let tables = RingTables::time_of_crossing(whole(8).one_way(false));
        let hops = |source, destination| {
            let mut hops = Vec::new();
            tables.follow(source, destination, |link, vc| hops.push((link, vc)));
            hops
        };
        assert_eq!(hops(6, 2), [(6, 0), (7, 0), (0, 1), (1, 1)]);
        assert_eq!(hops(0, 2), [(0, 0), (1, 0)]);
        assert_eq!(hops(6, 0), [(6, 0), (7, 0)]);
    }

    #[test]
    fn routers_follow_the_tables() {
        for nodes in [2, 3, 5, 8, 12, 16, 32] {
            let tables = super::super::optimised(whole(nodes), false);
            assert_eq!(tables.crosses_on_vc1(), None);
            for (ordinate, entries) in tables.routers() {
                let mut registers = RouteRegisters::default();
                for minus in [false, true] {
                    let direction = Direction::of(1, minus);
                    registers.vc_tables[direction.index()] = entries[usize::from(minus)];
                    let way = tables.one_way(minus);
                    let source = way
                        .ring()
                        .position(ordinate)
                        .expect("an ordinate of the ring");
                    for (position, &destination) in way.ring().ordinates().iter().enumerate() {
                        let vc = way.entry_vc(source, position);
                        assert_eq!(registers.entry_vc(direction, destination), vc);
                    }
                }
                // The mirror image has the same channels.
                let opposite = nodes as u8 - 1 - ordinate;
                let mirror = tables.entries(opposite).expect("an ordinate of the ring")[1];
                for destination in 0..nodes as u8 {
                    let across = nodes as u8 - 1 - destination;
                    assert_eq!(
                        entries[0] >> (destination & 7) & 1,
                        mirror >> (across & 7) & 1
                    );
                }
            }
            assert_eq!(tables.entries(nodes as u8), None);
        }
    }
}

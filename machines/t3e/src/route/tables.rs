//! The look-up tables of all routers.

use super::entry::Entry;

/// Number of entries in the look-up table of a router (T3E sec. 2).
pub const TABLE_ENTRIES: usize = 544;

/// Number of processors that share an entry in machines of more than [`TABLE_ENTRIES`] processors.
pub const GROUP: usize = 4;

/// Encoding of an empty entry, which means that there is no path.
pub const NO_ROUTE: u32 = u32::MAX;

/// The table entry for logical processor `pe`; `None` if there is no path.
///
/// With groups of four, "the two low bits of the logical node address are untranslated" (T3E sec.
/// 2): bit 0 is the lowest bit of the X ordinate, and bit 1 that of Y.
pub fn look_up(table: &[u32], in_fours: bool, pe: u32) -> Option<Entry> {
    let group = pe as usize / GROUP;
    let index = if in_fours { group } else { pe as usize };
    let mut entry = Entry::from_bits(*table.get(index)?)?;
    if in_fours {
        let [x, y, _] = &mut entry.tag.to.0;
        *x = *x & !1 | (pe & 1) as u8;
        *y = *y & !1 | (pe >> 1 & 1) as u8;
    }
    Some(entry)
}

/// The look-up tables of a machine, with routes from each node to each logical processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tables {
    pub(super) entries: Vec<Box<[u32]>>,
    pub(super) destinations: Vec<u32>,
    pub(super) unreachable: Vec<(u32, u32)>,
}

impl Tables {
    /// The table of a node's router: [`Entry::bits`], or [`NO_ROUTE`]. Empty for an isolated node.
    ///
    /// # Panics
    /// If the node does not exist.
    pub fn of(&self, node: u32) -> &[u32] {
        &self.entries[node as usize]
    }

    pub fn in_fours(&self) -> bool {
        self.destinations.len() > TABLE_ENTRIES
    }

    pub fn destinations(&self) -> &[u32] {
        &self.destinations
    }

    /// The route from a node to a logical processor, if there is one.
    ///
    /// # Panics
    /// If the node does not exist.
    pub fn route(&self, node: u32, pe: u32) -> Option<Entry> {
        look_up(self.of(node), self.in_fours(), pe)
    }

    /// Pairs of a node that is not isolated and a logical processor to which it has no route. Of
    /// four processors that share an entry all are listed, unless one route serves all that are not
    /// isolated.
    pub fn unreachable(&self) -> &[(u32, u32)] {
        &self.unreachable
    }

    /// All routes: node, logical processor, entry.
    pub fn routes(&self) -> impl Iterator<Item = (u32, u32, Entry)> {
        (0..self.entries.len() as u32).flat_map(move |node| {
            (0..self.destinations.len() as u32)
                .filter_map(move |pe| Some((node, pe, self.route(node, pe)?)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use phitwire_framing::t3e::tag::{Coordinates, Tag};

    #[test]
    fn low_bits_are_not_translated_in_fours() {
        let tag = Tag {
            to: Coordinates([4, 6, 2]),
            ..Tag::default()
        };
        let initial = None;
        let table = [NO_ROUTE, Entry { tag, initial }.bits()];
        let to = |in_fours, pe| look_up(&table, in_fours, pe).map(|entry| entry.tag.to.0);
        assert_eq!(to(true, 4), Some([4, 6, 2]));
        assert_eq!(to(true, 5), Some([5, 6, 2]));
        assert_eq!(to(true, 7), Some([5, 7, 2]));
        assert_eq!(to(true, 3), None);
        assert_eq!(to(true, 8), None, "beyond the end");
        assert_eq!(to(false, 1), Some([4, 6, 2]));
    }
}

//! The look-up table of a router, which routes packets of its processor (T3E sec. 2).

use phitwire_framing::t3e::tag::Coordinates;
use prefetch_index::prefetch_index;

use crate::route::Entry;

pub const ENTRIES: usize = 544;
/// Maximum number of processors. Above [`ENTRIES`] of them an entry serves four.
pub const MAX_PROCESSORS: usize = 4 * ENTRIES;

/// A look-up table with the position of every processor and the route to it, if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookUpTable {
    entries: Box<[Option<Entry>]>,
    /// Whether an entry serves four processors, and the two low bits of a number are not
    /// translated.
    in_fours: bool,
}

impl LookUpTable {
    /// Creates an empty table for this number of processors.
    pub fn new(processors: usize) -> Self {
        let in_fours = processors > ENTRIES;
        let entries = if in_fours {
            processors.div_ceil(4)
        } else {
            processors
        };
        Self {
            entries: vec![None; entries.min(ENTRIES)].into_boxed_slice(),
            in_fours,
        }
    }

    pub const fn is_in_fours(&self) -> bool {
        self.in_fours
    }

    pub fn entries(&self) -> &[Option<Entry>] {
        &self.entries
    }

    /// Writes an entry. Returns false if the index is out of range.
    pub fn set(&mut self, index: usize, entry: Option<Entry>) -> bool {
        let slot = self.entries.get_mut(index);
        slot.map(|slot| *slot = entry).is_some()
    }

    /// Prefetches the entry of a processor.
    #[inline]
    pub fn fetch(&self, processor: u16) {
        let entry = processor >> (2 * u16::from(self.in_fours));
        prefetch_index(&self.entries, entry.into());
    }

    /// The entry of a processor. Above 544 processors the two low bits of the number are those of
    /// the X and Y ordinates.
    #[inline]
    pub fn look_up(&self, processor: u16) -> Option<Entry> {
        if !self.in_fours {
            return *self.entries.get(usize::from(processor))?;
        }
        let mut entry = (*self.entries.get(usize::from(processor >> 2))?)?;
        let [x, y, z] = entry.tag.to.0;
        let low = processor as u8;
        entry.tag.to = Coordinates([x & !1 | low & 1, y & !1 | low >> 1 & 1, z]);
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use phitwire_framing::t3e::tag::Tag;

    #[test]
    fn an_entry_serves_one_processor_or_four() {
        let to = Coordinates([4, 6, 2]);
        let entry = Entry {
            tag: Tag {
                to,
                ..Tag::default()
            },
            initial: None,
        };
        let mut small = LookUpTable::new(544);
        assert!(small.set(543, Some(entry)) && !small.set(544, None));
        assert_eq!(small.look_up(543), Some(entry));
        assert_eq!((small.look_up(0), small.look_up(544)), (None, None));
        let mut large = LookUpTable::new(2_176);
        assert_eq!(large.entries().len(), ENTRIES);
        large.set(543, Some(entry));
        let positions = [0, 1, 2, 3].map(|low| large.look_up(2_172 + low).unwrap().tag.to.0);
        assert_eq!(positions, [[4, 6, 2], [5, 6, 2], [4, 7, 2], [5, 7, 2]]);
        assert_eq!(large.look_up(2_176), None);
    }
}

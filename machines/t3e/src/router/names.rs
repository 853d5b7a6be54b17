//! Finds the processor to which a packet in the network goes.

use std::collections::BTreeMap;
use std::sync::Arc;

use phitwire_framing::t3e::tag::{Coordinates, Tag};

/// The logical number of each processor, by the position to which its packets go or where their
/// final hops begin. This is the inverse of the look-up tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names(BTreeMap<u16, u16>);

const fn key(to: Coordinates, final_hop: bool) -> u16 {
    to.bits() | (final_hop as u16) << 13
}

impl Names {
    /// Numbers of processors at the given positions, each with the position where its final hops
    /// begin, if there is one.
    pub fn new(
        all_coordinates: impl IntoIterator<Item = (Coordinates, Option<Coordinates>)>,
    ) -> Self {
        let mut names = BTreeMap::new();
        for ((coordinates, above), number) in all_coordinates.into_iter().zip(0..) {
            names.insert(key(coordinates, false), number);
            if let Some(above) = above {
                names.insert(key(above, true), number);
            }
        }
        Self(names)
    }

    /// Rebuilds names from [`pairs`](Self::pairs).
    pub fn from_pairs(pairs: impl IntoIterator<Item = (u16, u16)>) -> Self {
        Self(pairs.into_iter().collect())
    }

    /// All pairs of an encoded path end and its processor number.
    pub fn pairs(&self) -> impl Iterator<Item = (u16, u16)> {
        self.0.iter().map(|(key, number)| (*key, *number))
    }

    fn of(&self, tag: &Tag) -> Option<u16> {
        self.0.get(&key(tag.to, tag.final_hop)).copied()
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct KnownNames {
    current: Arc<Names>,
    former: Names,
}

impl KnownNames {
    pub fn new(names: Arc<Names>) -> Self {
        Self {
            current: names,
            former: Names::default(),
        }
    }

    pub fn current(&self) -> &Arc<Names> {
        &self.current
    }

    /// Replaces the names after processors have moved, and keeps the former ones.
    pub fn replace(&mut self, names: Arc<Names>) {
        let before = core::mem::replace(&mut self.current, names);
        for (key, number) in before.pairs() {
            self.former.0.insert(key, number);
        }
    }

    /// The number of a packet's destination processor. A request follows a processor that has
    /// moved; a response does not, since the number's new owner did not send the request.
    pub fn of(&self, tag: &Tag, is_response: bool) -> Option<u16> {
        let current = self.current.of(tag);
        match is_response {
            true => current,
            false => current.or_else(|| self.former.of(tag)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_follow_a_processor_and_responses_do_not() {
        let [a, b, above] = [[1, 0, 0], [2, 0, 0], [1, 0, 1]].map(Coordinates);
        let mut known = KnownNames::new(Arc::new(Names::new([(a, Some(above))])));
        let to = |to, final_hop| Tag {
            to,
            final_hop,
            ..Tag::default()
        };
        assert_eq!(known.of(&to(a, false), true), Some(0));
        assert_eq!(known.of(&to(above, true), true), Some(0));
        assert_eq!(known.of(&to(above, false), false), None);
        known.replace(Arc::new(Names::new([(b, None)])));
        for (coordinates, is_response, number) in [
            (a, false, Some(0)),
            (a, true, None),
            (b, false, Some(0)),
            (b, true, Some(0)),
        ] {
            assert_eq!(known.of(&to(coordinates, false), is_response), number);
        }
        let pairs: Vec<_> = known.current().pairs().collect();
        assert_eq!(Names::from_pairs(pairs), **known.current());
    }
}

//! Credits by the flit: those for the other end's buffers, and those that it is owed.

use crate::machine::t3e::format::VCS;

/// Bits of each channel in a word that tells of all of them.
pub const COUNT_BITS: u32 = 12;
/// The most that such a word says of a channel.
pub const MAX_COUNT: u32 = (1 << COUNT_BITS) - 1;

/// A word that says a count for each channel, from the lowest bits on.
///
/// # Panics
/// In debug builds if one is greater than [`MAX_COUNT`].
pub fn counts_word(counts: [u32; VCS]) -> u64 {
    counts.iter().rev().fold(0, |word, &count| {
        debug_assert!(count <= MAX_COUNT, "a count has its bits");
        word << COUNT_BITS | u64::from(count)
    })
}

/// The counts of such a word.
pub fn counts_of(word: u64) -> [u32; VCS] {
    core::array::from_fn(|vc| (word >> (COUNT_BITS as usize * vc)) as u32 & MAX_COUNT)
}

/// What may be sent: a place of the other end for each flit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Credits([u32; VCS]);

impl Credits {
    /// That many.
    pub const fn new(places: [u32; VCS]) -> Self {
        Self(places)
    }

    /// Those of a channel.
    #[inline]
    pub const fn left(&self, vc: usize) -> u32 {
        self.0[vc]
    }

    /// Those of all channels.
    pub const fn all(&self) -> [u32; VCS] {
        self.0
    }

    /// A flit is sent.
    ///
    /// # Panics
    /// If there is no credit for it.
    #[inline]
    pub fn take(&mut self, vc: usize) {
        self.take_many(vc, 1);
    }

    /// Flits are sent.
    ///
    /// # Panics
    /// If there are fewer credits.
    #[inline]
    pub fn take_many(&mut self, vc: usize, flits: u32) {
        assert!(self.0[vc] >= flits, "a flit is sent where there is a place");
        self.0[vc] -= flits;
    }

    /// A place has become free.
    #[inline]
    pub fn give(&mut self, vc: usize) {
        self.0[vc] += 1;
    }

    /// Places have become free, as the wire says. False, and nothing given, if these are more than
    /// a grant can give.
    #[inline]
    #[must_use]
    pub fn give_many(&mut self, vc: usize, places: u32) -> bool {
        let left = self.0[vc] + places;
        let is_possible = left <= MAX_COUNT;
        if is_possible {
            self.0[vc] = left;
        }
        is_possible
    }
}

/// Places that have become free and of which the other end has not been told. A flit tells of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owed {
    places: [u32; VCS],
    /// Channels with any, one bit each.
    channels: u8,
    /// The channel whose turn it is.
    turn: u8,
}

impl Owed {
    /// None.
    pub const NONE: Self = Self {
        places: [0; VCS],
        channels: 0,
        turn: 0,
    };

    /// Places of a channel that have become free.
    #[inline]
    pub fn add(&mut self, vc: usize, places: u32) {
        self.places[vc] += places;
        self.channels |= u8::from(places > 0) << vc;
    }

    /// Whether there are any.
    #[inline]
    pub const fn any(&self) -> bool {
        self.channels != 0
    }

    /// Those of a channel.
    #[inline]
    pub const fn of(&self, vc: usize) -> u32 {
        self.places[vc]
    }

    /// The channel that the next flit tells of, in turn.
    #[inline]
    pub fn tell(&mut self) -> Option<usize> {
        if self.channels == 0 {
            return None;
        }
        let after = self.channels & (u8::MAX << self.turn);
        let from = if after != 0 { after } else { self.channels };
        let vc = from.trailing_zeros() as usize;
        self.places[vc] -= 1;
        self.channels &= !(u8::from(self.places[vc] == 0) << vc);
        self.turn = vc as u8 + 1;
        Some(vc)
    }

    /// As many of each channel as a word tells of.
    pub fn tell_many(&mut self) -> [u32; VCS] {
        let told = self.places.map(|places| places.min(MAX_COUNT));
        self.channels = 0;
        for (vc, told) in told.iter().enumerate() {
            self.places[vc] -= told;
            self.channels |= u8::from(self.places[vc] > 0) << vc;
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flit_tells_of_one_place_in_turn() {
        let mut owed = Owed::NONE;
        assert_eq!(owed.tell(), None);
        owed.add(4, 2);
        owed.add(0, 1);
        owed.add(2, 0);
        let told: Vec<_> = core::iter::from_fn(|| owed.tell()).collect();
        assert_eq!(told, [0, 4, 4]);
        assert_eq!(owed.places, [0; VCS]);
        assert!(!owed.any());
    }

    #[test]
    fn a_word_tells_of_as_many_as_it_has_room_for() {
        let mut owed = Owed::NONE;
        owed.add(1, MAX_COUNT + 3);
        owed.add(4, 7);
        let told = owed.tell_many();
        assert_eq!(told, [0, MAX_COUNT, 0, 0, 7]);
        assert_eq!(counts_of(counts_word(told) | 1 << 63), told);
        assert_eq!(owed.tell_many(), [0, 3, 0, 0, 0]);
        assert!(!owed.any());
        assert_eq!(owed.tell(), None);
    }

    #[test]
    fn more_credits_than_places_are_refused() {
        let mut credits = Credits::new([0, MAX_COUNT - 1, 0, 0, 0]);
        assert!(!credits.give_many(1, 2));
        assert!(credits.give_many(1, 1));
        assert_eq!(credits.left(1), MAX_COUNT);
    }
}

//! Credits by the flit: those for the other end's buffers, and those that it is owed.

use crate::machine::t3e::format::VCS;

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
        assert!(self.0[vc] > 0, "a flit is sent where there is a place");
        self.0[vc] -= 1;
    }

    /// A place has become free.
    #[inline]
    pub fn give(&mut self, vc: usize) {
        self.0[vc] += 1;
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
}

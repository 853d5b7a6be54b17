//! The six directions of a torus, in routing order.

use core::fmt;

/// A direction: +X, +Y, +Z, -X, -Y, -Z, in routing order (T3E sec. 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Direction {
    /// Towards larger ordinates in X.
    PlusX,
    /// Towards larger ordinates in Y.
    PlusY,
    /// Towards larger ordinates in Z.
    PlusZ,
    /// Towards smaller ordinates in X.
    MinusX,
    /// Towards smaller ordinates in Y.
    MinusY,
    /// Towards smaller ordinates in Z.
    MinusZ,
}

impl Direction {
    /// All directions, in routing order.
    pub const ALL: [Self; 6] = [
        Self::PlusX,
        Self::PlusY,
        Self::PlusZ,
        Self::MinusX,
        Self::MinusY,
        Self::MinusZ,
    ];

    /// The direction in `dimension` (0 is X), towards larger ordinates or smaller ones.
    ///
    /// # Panics
    /// If the dimension does not exist.
    #[inline]
    pub const fn of(dimension: usize, minus: bool) -> Self {
        assert!(dimension < 3, "the dimension is 0 to 2");
        Self::ALL[dimension + 3 * minus as usize]
    }

    /// The direction's index in the order, which is also the number of its port.
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Dimension of the direction: 0 is X.
    #[inline]
    pub const fn dimension(self) -> usize {
        self as usize % 3
    }

    /// Whether the direction leads towards smaller ordinates.
    #[inline]
    pub const fn is_minus(self) -> bool {
        self as usize >= 3
    }

    /// The opposite direction.
    #[inline]
    pub const fn opposite(self) -> Self {
        Self::ALL[(self as usize + 3) % 6]
    }

    /// The direction in T3E notation: `+X`.
    #[inline]
    pub const fn name(self) -> &'static str {
        ["+X", "+Y", "+Z", "-X", "-Y", "-Z"][self as usize]
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Directions, one bit each by [`Direction::index`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DirectionSet(u8);

impl DirectionSet {
    /// The empty set.
    pub const EMPTY: Self = Self(0);

    /// The set with these bits; those above the sixth are ignored.
    #[inline]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 0x3f)
    }

    /// One bit per direction.
    #[inline]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Adds a direction to the set.
    #[inline]
    pub const fn insert(&mut self, direction: Direction) {
        self.0 |= 1 << direction as u8;
    }

    /// Whether the direction is in the set.
    #[inline]
    pub const fn contains(self, direction: Direction) -> bool {
        self.0 >> direction as u8 & 1 != 0
    }

    /// The direction travelled first.
    #[inline]
    pub fn lowest(self) -> Option<Direction> {
        Direction::ALL
            .get(self.0.trailing_zeros() as usize)
            .copied()
    }

    /// The direction travelled last.
    #[inline]
    pub fn highest(self) -> Option<Direction> {
        let above = self.0.leading_zeros() as usize;
        7_usize
            .checked_sub(above)
            .map(|index| Direction::ALL[index])
    }

    /// The directions in the set, in routing order.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = Direction> {
        Direction::ALL
            .into_iter()
            .filter(move |direction| self.contains(*direction))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_know_their_ends() {
        let mut set = DirectionSet::EMPTY;
        assert_eq!((set.lowest(), set.highest()), (None, None));
        // The example of T3E sec. 7: -x, +y, +z.
        for direction in [Direction::MinusX, Direction::PlusY, Direction::PlusZ] {
            set.insert(direction);
        }
        assert_eq!(set.lowest(), Some(Direction::PlusY));
        assert_eq!(set.highest(), Some(Direction::MinusX));
        for direction in Direction::ALL {
            assert_eq!(direction.opposite().opposite(), direction);
            let again = Direction::of(direction.dimension(), direction.is_minus());
            assert_eq!(again, direction);
        }
    }
}

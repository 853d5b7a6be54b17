//! Patterns by coordinates, for networks whose processors form a grid.

use super::pattern::{PatternError, Rule};

/// A mapping of senders to partners in a grid of `d` dimensions. `a[0]` to `a[d-1]` are the
/// coordinates of the sender, `b` those of its partner, `k` the sizes of the grid. A position has
/// the *number* `a[0] + k[0] (a[1] + k[1] (a[2] + ...))`, the first coordinate counting fastest.
///
/// Each is a permutation of the positions. A processor stays silent if it is its own partner, or if
/// its partner's position is empty or takes no part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GridPattern {
    /// Swaps the first two coordinates: `b = (a[1], a[0], a[2], ...)`. The first two sizes must be
    /// equal.
    Transpose,
    /// Reverses the order of the coordinates: `b[i] = a[d-1-i]`. The sizes must be the same from
    /// both ends.
    Reversal,
    /// Shifts every coordinate to the dimension before it, the first to the last: `b = (a[1], a[2],
    /// ..., a[0])`. All sizes must be equal.
    Rotation,
    /// The mirror image: `b[i] = k[i] - 1 - a[i]`.
    Complement,
    /// Just under half-way around every ring: `b[i] = a[i] + ceil(k[i]/2) - 1` modulo `k[i]`
    /// (BookSim's tornado).
    Tornado,
    /// Half-way around every ring: `b[i] = a[i] + floor(k[i]/2)` modulo `k[i]`.
    Opposite,
    /// Reverses the bits of the position's number. Needs a power of two of positions.
    BitReverse,
    /// Rotates the bits of the position's number by one towards the higher ones. Needs a power of
    /// two of positions.
    Shuffle,
}

impl GridPattern {
    /// All patterns, in the order shown to users.
    pub(crate) const ALL: [Self; 8] = [
        Self::Transpose,
        Self::Reversal,
        Self::Rotation,
        Self::Complement,
        Self::Tornado,
        Self::Opposite,
        Self::BitReverse,
        Self::Shuffle,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Transpose => "grid-transpose",
            Self::Reversal => "grid-reversal",
            Self::Rotation => "grid-rotation",
            Self::Complement => "grid-complement",
            Self::Tornado => "grid-tornado",
            Self::Opposite => "grid-opposite",
            Self::BitReverse => "grid-bit-reverse",
            Self::Shuffle => "grid-shuffle",
        }
    }

    /// The requirement of the pattern that a grid of this size does not meet, if any.
    fn lacks(self, size: &[u16]) -> Option<&'static str> {
        let mirrored = || size.iter().eq(size.iter().rev());
        let alike = || size.windows(2).all(|pair| pair[0] == pair[1]);
        let (fits, need) = match self {
            Self::Transpose => (
                size.len() > 1 && size[0] == size[1],
                "equal sizes in the first two dimensions",
            ),
            Self::Reversal => (mirrored(), "sizes that read the same in both directions"),
            Self::Rotation => (alike(), "the same size in all dimensions"),
            Self::BitReverse | Self::Shuffle => {
                let positions: u64 = size.iter().map(|&size| u64::from(size)).product();
                (
                    positions.is_power_of_two(),
                    "a number of nodes that is a power of two",
                )
            }
            Self::Complement | Self::Tornado | Self::Opposite => (true, ""),
        };
        (!fits).then_some(need)
    }

    /// The coordinates that the processor at `from` sends to, in a grid of this size that
    /// [supports](Self::lacks) the pattern.
    fn image(self, from: &[u16], size: &[u16]) -> Vec<u16> {
        let dimensions = size.len();
        let shifted = |by: fn(u16) -> u16| {
            let around = from.iter().zip(size);
            around
                .map(|(&a, &k)| ((u32::from(a) + u32::from(by(k))) % u32::from(k)) as u16)
                .collect()
        };
        match self {
            Self::Transpose => {
                let mut to = from.to_vec();
                to.swap(0, 1);
                to
            }
            Self::Reversal => from.iter().rev().copied().collect(),
            Self::Rotation => (0..dimensions)
                .map(|i| from[(i + 1) % dimensions])
                .collect(),
            Self::Complement => from.iter().zip(size).map(|(&a, &k)| k - 1 - a).collect(),
            Self::Tornado => shifted(|k| k.div_ceil(2) - 1),
            Self::Opposite => shifted(|k| k / 2),
            Self::BitReverse | Self::Shuffle => {
                let positions: usize = size.iter().map(|&k| usize::from(k)).product();
                let bits = positions.ilog2();
                let number = number(from, size);
                ordinates(
                    match self {
                        Self::Shuffle => {
                            (number << 1 | number >> bits.saturating_sub(1)) & (positions - 1)
                        }
                        _ => (0..bits).fold(0, |to, b| to | (number >> b & 1) << (bits - 1 - b)),
                    },
                    size,
                )
            }
        }
    }
}

/// The number of a position.
fn number(at: &[u16], size: &[u16]) -> usize {
    let ordinates = at.iter().zip(size).rev();
    ordinates.fold(0, |number, (&a, &k)| {
        number * usize::from(k) + usize::from(a)
    })
}

/// The position with a number.
fn ordinates(mut number: usize, size: &[u16]) -> Vec<u16> {
    let ordinate = |&k: &u16| {
        let a = number % usize::from(k);
        number /= usize::from(k);
        a as u16
    };
    size.iter().map(ordinate).collect()
}

/// Positions of processors in a grid. Positions may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    size: Vec<u16>,
    /// The number of each processor's position.
    positions: Vec<usize>,
}

impl Grid {
    /// A grid of this size; `processors` gives their coordinates in the order of the population.
    ///
    /// # Panics
    /// If a processor is outside the grid, or the grid has no positions.
    pub fn new<const D: usize>(
        size: [u16; D],
        processors: impl IntoIterator<Item = [u16; D]>,
    ) -> Self {
        assert!(
            D > 0 && size.iter().all(|&k| k > 0),
            "the grid has no positions"
        );
        let position = |at: [u16; D]| {
            assert!(
                at.iter().zip(&size).all(|(a, k)| a < k),
                "the processor is outside the grid"
            );
            number(&at, &size)
        };
        Self {
            positions: processors.into_iter().map(position).collect(),
            size: size.to_vec(),
        }
    }

    /// The pattern among the first `participants` processors, with `slices` terminals each.
    pub(crate) fn rule(
        &self,
        pattern: GridPattern,
        participants: usize,
        slices: u32,
    ) -> Result<Rule, PatternError> {
        if let Some(need) = pattern.lacks(&self.size) {
            let size: Vec<String> = self.size.iter().map(u16::to_string).collect();
            return Err(PatternError::Grid {
                pattern: pattern.name(),
                need,
                size: size.join("x"),
            });
        }
        let all: usize = self.size.iter().map(|&k| usize::from(k)).product();
        let mut standing = vec![None; all];
        for (processor, &position) in (0..participants as u32).zip(&self.positions) {
            standing[position] = Some(processor);
        }
        let (mut starts, mut list) = (vec![0], Vec::new());
        for _ in 0..slices {
            for (processor, &position) in (0..).zip(&self.positions) {
                let to = pattern.image(&ordinates(position, &self.size), &self.size);
                let to = standing[number(&to, &self.size)];
                list.extend(to.filter(|&to| to != processor));
                starts.push(list.len() as u32);
            }
        }
        Ok(Rule::Lists { starts, list })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The partners of all positions of a full grid, as coordinates.
    fn partners<const D: usize>(pattern: GridPattern, size: [u16; D]) -> Vec<([u16; D], Vec<u16>)> {
        let all: usize = size.iter().map(|&k| usize::from(k)).product();
        let positions = (0..all).map(|position| ordinates(position, &size));
        let pairs = positions.map(|from| {
            let to = pattern.image(&from, &size);
            (
                from.try_into().expect("as many ordinates as dimensions"),
                to,
            )
        });
        pairs.collect()
    }

    const SIZES: [[u16; 3]; 6] = [
        [8, 8, 8],
        [4, 4, 2],
        [2, 8, 2],
        [3, 3, 3],
        [5, 1, 5],
        [6, 4, 3],
    ];

    #[test]
    fn numbers_count_the_first_ordinate_fastest() {
        assert_eq!(number(&[3, 2, 1], &[4, 8, 2]), 3 + 4 * (2 + 8));
        for size in SIZES {
            let all: usize = size.iter().map(|&k| usize::from(k)).product();
            for position in 0..all {
                assert_eq!(number(&ordinates(position, &size), &size), position);
            }
        }
    }

    #[test]
    fn every_pattern_is_a_permutation_of_the_positions() {
        let mut had = [0; GridPattern::ALL.len()];
        for size in SIZES {
            for (pattern, had) in GridPattern::ALL.into_iter().zip(&mut had) {
                if pattern.lacks(&size).is_some() {
                    continue;
                }
                *had += 1;
                let pairs = partners(pattern, size);
                let mut to: Vec<&Vec<u16>> = pairs.iter().map(|(_, to)| to).collect();
                assert!(to.iter().all(|to| to.iter().zip(size).all(|(&a, k)| a < k)));
                to.sort();
                to.dedup();
                assert_eq!(to.len(), pairs.len(), "{pattern:?} {size:?}");
            }
        }
        // How many of the sizes support each pattern.
        assert_eq!(had, [3, 4, 2, 6, 6, 6, 3, 3]);
    }

    #[test]
    fn partners_match_the_names() {
        use GridPattern as P;
        for (pattern, from, to) in [
            (P::Transpose, [1, 2, 3], [2, 1, 3]),
            (P::Reversal, [1, 2, 3], [3, 2, 1]),
            (P::Rotation, [1, 2, 3], [2, 3, 1]),
            (P::Complement, [1, 2, 3], [6, 5, 4]),
            (P::Tornado, [1, 2, 6], [4, 5, 1]),
            (P::Opposite, [1, 2, 6], [5, 6, 2]),
            // 011 010 001 backwards is 100 010 110.
            (P::BitReverse, [1, 2, 3], [6, 2, 4]),
            // Rotated left by one: 110 100 010.
            (P::Shuffle, [1, 2, 3], [2, 4, 6]),
            (P::Shuffle, [0, 0, 4], [1, 0, 0]),
        ] {
            assert_eq!(pattern.image(&from, &[8, 8, 8]), to, "{pattern:?}");
        }
        // An odd ring has no opposite: its two halfway positions are one hop apart.
        assert_eq!(P::Tornado.image(&[4, 0], &[5, 2]), [1, 0]);
        assert_eq!(P::Opposite.image(&[4, 0], &[5, 2]), [1, 1]);
    }

    #[test]
    fn senders_to_themselves_are_silent() {
        let silent = |pattern: GridPattern| {
            let size = [8; 3];
            let all = (0..512).map(|position| {
                let at = ordinates(position, &size);
                [at[0], at[1], at[2]]
            });
            let rule = Grid::new(size, all).rule(pattern, 512, 1).unwrap();
            let Rule::Lists { starts, list } = rule else {
                panic!("a destination list per processor")
            };
            let pairs = starts.windows(2);
            let silent = pairs.filter(|pair| pair[0] == pair[1]).count();
            assert_eq!(silent + list.len(), 512);
            silent
        };
        // Silent if two or all three coordinates are equal, or the bits are a palindrome or all
        // equal.
        assert_eq!(
            GridPattern::ALL.map(silent),
            [64, 64, 8, 0, 0, 0, 32, 2],
            "of 512"
        );
    }

    #[test]
    fn positions_without_a_participant_get_and_send_nothing() {
        // Three processors in a row of four positions, not in the order of their coordinates.
        let grid = Grid::new([4], [[2], [0], [1]]);
        let rule = |participants, slices| {
            let rule = grid.rule(GridPattern::Complement, participants, slices);
            match rule.unwrap() {
                Rule::Lists { starts, list } => (starts, list),
                _ => panic!("a destination list per processor"),
            }
        };
        // Position 2 sends to 1 and 1 to 2; 3, the partner of 0, is empty.
        assert_eq!(rule(3, 1), (vec![0, 1, 1, 2], vec![2, 0]));
        // Position 1 takes no part but still has a list: the caller decides whether it sends.
        assert_eq!(rule(2, 1), (vec![0, 0, 0, 1], vec![0]));
        assert_eq!(rule(3, 2).0, [0, 1, 1, 2, 3, 3, 4]);
        let wrong = grid.rule(GridPattern::Transpose, 3, 1).unwrap_err();
        assert!(
            wrong.to_string().contains("first two dimensions"),
            "{wrong}"
        );
    }
}

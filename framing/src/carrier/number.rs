//! Packet numbers on a link.
//!
//! An end counts packets without limit; the wire carries the lowest 48 bits of the count. The
//! network between the ends may delay a frame for any time, so a number must be unique among all
//! packets of frames still in flight, not only within a window. At 10 million packets a second, 48
//! bits wrap after 325 days, so only a frame 162 days late could be mistaken for a new one.

/// The number of a packet modulo 2^48.
///
/// Numbers modulo 2^48 have no order, only a distance from a full count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PacketNumber(u64);

impl PacketNumber {
    /// Width on the wire in bits.
    pub const BITS: u32 = 48;
    /// The largest number, after which numbers wrap to 0.
    pub const MAX: u64 = (1 << Self::BITS) - 1;
    /// Bits of [`Self::low`]: enough for frames that arrive in order.
    pub const LOW_BITS: u32 = 16;

    /// The number of the `count`-th packet, counted from 0.
    #[inline]
    pub const fn new(count: u64) -> Self {
        Self(count & Self::MAX)
    }

    /// The number with these upper 32 and lower 16 bits.
    #[inline]
    pub const fn from_parts(high: u32, low: u16) -> Self {
        Self((high as u64) << Self::LOW_BITS | low as u64)
    }

    /// The upper 32 bits.
    #[inline]
    pub const fn high(self) -> u32 {
        (self.0 >> Self::LOW_BITS) as u32
    }

    /// The lower 16 bits.
    #[inline]
    pub const fn low(self) -> u16 {
        self.0 as u16
    }

    /// The number as an integer below 2^48.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Distance of this packet from `count`: at least -2^47, less than 2^47, negative when it comes
    /// before.
    #[inline]
    pub const fn distance_from(self, count: u64) -> i64 {
        const UNUSED: u32 = u64::BITS - PacketNumber::BITS;
        (self.0.wrapping_sub(count) << UNUSED) as i64 >> UNUSED
    }

    /// The count nearest to `count` that has this number; `None` if it would be negative.
    #[inline]
    pub const fn near(self, count: u64) -> Option<u64> {
        count.checked_add_signed(self.distance_from(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACE: u64 = 1 << PacketNumber::BITS;

    #[test]
    fn parts_make_the_whole() {
        let number = PacketNumber::new(0xffff_0123_4567_beef);
        assert_eq!(number.get(), 0x0123_4567_beef);
        assert_eq!((number.high(), number.low()), (0x0123_4567, 0xbeef));
        assert_eq!(PacketNumber::from_parts(0x0123_4567, 0xbeef), number);
    }

    #[test]
    fn distances_are_right_across_every_wrap() {
        // Counts where 16, 32 and 48 bits wrap, and one far from any wrap.
        let bases = [1 << 16, 1 << 32, SPACE, 3 * SPACE, 0x1234_5678_9abc];
        let steps = [
            0,
            1,
            8_191,
            (1 << 15) - 1,
            1 << 15,
            (1 << 16) - 8_191,
            1 << 16,
            (1 << 16) + 1,
            1 << 17,
            (1 << 31) + 5,
            (1 << 32) - 1,
            1 << 32,
            (1 << 47) - 1,
        ];
        for base in bases.map(|base: u64| base + (1 << 50)) {
            for near in [-2_i64, -1, 0, 1, 2] {
                let here = base.checked_add_signed(near).unwrap();
                for step in steps {
                    let (ahead, behind) = (here + step, here - step);
                    assert_eq!(PacketNumber::new(ahead).distance_from(here), step as i64);
                    assert_eq!(
                        PacketNumber::new(behind).distance_from(here),
                        -(step as i64)
                    );
                    assert_eq!(PacketNumber::new(ahead).near(here), Some(ahead));
                    assert_eq!(PacketNumber::new(behind).near(here), Some(behind));
                }
            }
        }
    }

    #[test]
    fn half_the_space_away_counts_as_before() {
        let half = SPACE / 2;
        assert_eq!(PacketNumber::new(half).distance_from(0), -(half as i64));
        assert_eq!(
            PacketNumber::new(half - 1).distance_from(0),
            half as i64 - 1
        );
        assert_eq!(
            PacketNumber::new(half).near(0),
            None,
            "a number before the first"
        );
        assert_eq!(PacketNumber::new(SPACE - 1).near(0), None);
        assert_eq!(PacketNumber::new(SPACE - 1).near(1), None);
        assert_eq!(PacketNumber::new(0).near(SPACE - 1), Some(SPACE));
    }
}

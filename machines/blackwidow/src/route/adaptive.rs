//! The depth comparisons of the two-stage adaptive choice (BlackWidow sec. 5.1 and 7.8.3).
//!
//! Both use the sender's credits (free slots) of eight buffers side by side, one byte each.

use phitwire::kit::arbiter::high_bits_of_bytes;
use phitwire::kit::below;

/// Depth of a row buffer in phits (BlackWidow sec. 7.5), which phitwire reads as a depth per
/// virtual channel.
pub const ROW_BUFFER_PHITS: u8 = 16;
/// Depth of a column buffer in phits (BlackWidow sec. 7.5), which phitwire reads as a depth per
/// virtual channel.
pub const COLUMN_BUFFER_PHITS: u8 = 10;

/// The columns among `columns` whose row buffer has a free slot.
#[inline]
pub const fn open_columns(row_credits: [u8; 8], columns: u8) -> u8 {
    let credits = u64::from_le_bytes(row_credits);
    high_bits_of_bytes(credits + 0x7f7f_7f7f_7f7f_7f7f) & columns
}

/// The columns of `columns` to choose from: those whose row buffer is less than half full, or all
/// of them if there is none. Only the most significant bit of the depth matters.
#[inline]
pub const fn preferred_columns(row_credits: [u8; 8], columns: u8) -> u8 {
    // Depth < 8 means more than 8 of 16 slots are free, and then bit 4 of (credits + 7) is set.
    let credits = u64::from_le_bytes(row_credits);
    let roomy = high_bits_of_bytes((credits + 0x0707_0707_0707_0707) << 3) & columns;
    if roomy != 0 { roomy } else { columns }
}

/// The rows of `rows` to choose from: those whose column buffer is almost empty (depth below 4), or
/// else half full (4 to 7), or else all (almost full, 8 or more of 10).
#[inline]
pub const fn preferred_rows(column_credits: [u8; 8], rows: u8) -> u8 {
    let credits = u64::from_le_bytes(column_credits);
    let almost_empty = high_bits_of_bytes((credits + 0x0101_0101_0101_0101) << 4) & rows;
    if almost_empty != 0 {
        return almost_empty;
    }
    let half_full = high_bits_of_bytes((credits + 0x0505_0505_0505_0505) << 4) & rows;
    if half_full != 0 { half_full } else { rows }
}

/// The columns with at least one port in `ports` (the column mask of BlackWidow sec. 5.1). Port `p`
/// is the tile in row `p / 8`, column `p % 8`.
#[inline]
pub const fn column_mask(ports: u64) -> u8 {
    let folded = ports | ports >> 32;
    let folded = folded | folded >> 16;
    (folded | folded >> 8) as u8
}

/// The rows of `column` with a port in `ports` (the row mask of BlackWidow sec. 5.1).
#[inline]
pub const fn row_mask(ports: u64, column: u8) -> u8 {
    high_bits_of_bytes((ports >> below::<8>(column as usize)) << 7)
}

#[cfg(test)]
mod tests {
    use super::*;
    use phitwire::rng::Rng;

    #[test]
    fn column_preference_follows_the_most_significant_depth_bit() {
        for credits in 0..=ROW_BUFFER_PHITS {
            let depth = ROW_BUFFER_PHITS - credits;
            // Column 3 has the depth under test, and the others are full.
            let mut row = [0; 8];
            row[3] = credits;
            let expected = if depth < 8 { 1 << 3 } else { 0xff };
            assert_eq!(preferred_columns(row, 0xff), expected, "depth {depth}");
            assert_eq!(preferred_columns(row, 0b10), 0b10);
        }
        assert_eq!(preferred_columns([16; 8], 0xa5), 0xa5);
    }

    #[test]
    fn a_column_is_open_from_the_first_free_slot_on() {
        for credits in 0..=ROW_BUFFER_PHITS {
            let mut row = [0, 16, 1, 0, 8, 0, 16, 0];
            row[5] = credits;
            let open = 0b0101_0110 | u8::from(credits > 0) << 5;
            assert_eq!(open_columns(row, 0xff), open, "{credits} credits");
            assert_eq!(open_columns(row, 0xf0), open & 0xf0);
        }
    }

    #[test]
    fn row_preference_has_three_classes() {
        let class = |depth: u8| match depth {
            0..=3 => 0,
            4..=7 => 1,
            _ => 2,
        };
        let mut rng = Rng::new(2, 2);
        for _ in 0..20_000 {
            let depths: [u8; 8] = core::array::from_fn(|_| rng.below(11) as u8);
            let rows = (rng.below(255) + 1) as u8;
            let best = (0..8)
                .filter(|i| rows >> i & 1 != 0)
                .map(|i| class(depths[i]))
                .min();
            let expected = (0..8)
                .filter(|&i| rows >> i & 1 != 0 && Some(class(depths[i])) == best)
                .fold(0u8, |m, i| m | 1 << i);
            assert_eq!(
                preferred_rows(depths.map(|d| COLUMN_BUFFER_PHITS - d), rows),
                expected
            );
        }
    }

    #[test]
    fn masks_of_columns_and_rows_cover_exactly_the_ports() {
        let mut rng = Rng::new(3, 3);
        for _ in 0..10_000 {
            let ports = rng.next_u64() & rng.next_u64() & rng.next_u64();
            let mut rebuilt = 0u64;
            for column in 0..8u8 {
                let rows = row_mask(ports, column);
                assert_eq!(rows != 0, column_mask(ports) >> column & 1 != 0);
                for row in (0..8).filter(|row| rows >> row & 1 != 0) {
                    rebuilt |= 1 << (row * 8 + column);
                }
            }
            assert_eq!(rebuilt, ports);
        }
    }
}

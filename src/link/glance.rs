//! What frames carry, for those who look on from outside and know no machine.

use core::ops::Range;

/// What a frame carries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Glance {
    /// Whether it carries packets, or parts of them; else it is link control alone.
    pub carries: bool,
    /// Numbers of what it carries, packets or whatever a link of the machine sends again; an empty
    /// range says that all below has left.
    pub units: Vec<Range<u64>>,
    /// How often the sender has gone back, where the machine's frames say so.
    pub pass: Option<u16>,
}

/// What has left by one direction of a link in one session, as far as it was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repeats {
    /// What had left before the sender went back last.
    base: Option<u64>,
    /// What has left.
    high: Option<u64>,
    pass: Option<u16>,
}

impl Repeats {
    /// How many of what the next frame carries have left before, as the sender counts them. Of a
    /// session that was not seen from its beginning, what is first seen is taken for new.
    pub fn count(&mut self, glance: &Glance) -> u64 {
        if let Some(pass) = glance.pass
            && self.pass != Some(pass)
        {
            let ahead = self.pass.map_or(1, |own| pass.wrapping_sub(own));
            if ahead >= 1 << 15 {
                // It left before the sender went back, and comes late.
                return 0;
            }
            (self.base, self.pass) = (self.high, Some(pass));
        }
        let mut again = 0;
        for units in &glance.units {
            let before = match glance.pass {
                Some(_) => self.base,
                None => self.high,
            };
            let end = before.map_or(units.start, |before| before.min(units.end));
            again += end.saturating_sub(units.start);
            self.high = self.high.max(Some(units.end));
        }
        again
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(units: Range<u64>, pass: Option<u16>) -> Glance {
        Glance {
            carries: true,
            units: vec![units],
            pass,
        }
    }

    #[test]
    fn without_a_pass_numbers_tell() {
        let mut seen = Repeats::default();
        let counts =
            [7..7, 7..9, 7..10, 10..12, 8..8, 9..13].map(|units| seen.count(&frame(units, None)));
        assert_eq!(counts, [0, 0, 2, 0, 0, 3]);
    }

    #[test]
    fn a_pass_tells_late_frames_and_copies_from_retries() {
        let mut seen = Repeats::default();
        let frames = [
            (5..8, 3),
            (6..7, 3),
            (5..9, 4),
            (8..9, 3),
            (9..10, 4),
            (7..11, 5),
        ];
        let counts = frames.map(|(units, pass)| seen.count(&frame(units, Some(pass))));
        assert_eq!(counts, [0, 0, 3, 0, 0, 3]);
    }
}

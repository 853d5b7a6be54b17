//! A machine-independent view of the contents of frames, for observers.

use core::ops::Range;

/// Contents of a frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrameContents {
    /// Whether the frame carries packets or parts of them, not link control alone.
    pub carries: bool,
    /// Numbers of the units it carries, a unit being what the link resends; an empty range says
    /// that all units below were sent.
    pub units: Vec<Range<u64>>,
    /// Number of the sender's rewinds so far, where the machine's frames carry it.
    pub pass: Option<u16>,
}

/// Frames observed in one direction of a link in one session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repeats {
    /// End of the units sent before the last rewind.
    base: Option<u64>,
    /// End of the units sent so far.
    high: Option<u64>,
    pass: Option<u16>,
}

impl Repeats {
    /// Number of resent units in the next frame, as the sender counts them. If the start of the
    /// session was not seen, the first units seen count as new.
    pub fn count(&mut self, frame_contents: &FrameContents) -> u64 {
        if let Some(pass) = frame_contents.pass
            && self.pass != Some(pass)
        {
            let ahead = self.pass.map_or(1, |own| pass.wrapping_sub(own));
            if ahead >= 1 << 15 {
                // Ignore a late frame from before the rewind.
                return 0;
            }
            (self.base, self.pass) = (self.high, Some(pass));
        }
        let mut again = 0;
        for units in &frame_contents.units {
            let before = match frame_contents.pass {
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

    fn frame(units: Range<u64>, pass: Option<u16>) -> FrameContents {
        FrameContents {
            carries: true,
            units: vec![units],
            pass,
        }
    }

    #[test]
    fn without_a_pass_numbers_identify_resends() {
        let mut seen = Repeats::default();
        let counts =
            [7..7, 7..9, 7..10, 10..12, 8..8, 9..13].map(|units| seen.count(&frame(units, None)));
        assert_eq!(counts, [0, 0, 2, 0, 0, 3]);
    }

    #[test]
    fn a_pass_distinguishes_late_frames_and_copies_from_retries() {
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

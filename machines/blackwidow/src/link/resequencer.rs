//! Frames that arrived early.

use std::collections::VecDeque;

use phitwire_framing::yarc::phit::{Phit, PhitKind};

/// A position in the packet stream of a link: packet number, and phits of that packet before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    pub packet: u64,
    pub offset: u32,
}

impl Position {
    pub const fn head_of(packet: u64) -> Self {
        Self { packet, offset: 0 }
    }

    #[inline]
    pub fn after(self, phit: Phit) -> Self {
        match phit.kind() {
            PhitKind::Idle => self,
            PhitKind::Eop => Self::head_of(self.packet + 1),
            PhitKind::Head | PhitKind::Body => Self {
                offset: self.offset + 1,
                ..self
            },
        }
    }
}

/// The outcome of holding an early frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// Kept for later.
    Stored,
    /// The whole frame was held already.
    Duplicate,
    /// Rejected: the buffer is full.
    Full,
}

/// A run of phits held for later.
#[derive(Debug)]
pub(super) struct HeldRun {
    pub at: Position,
    pub phits: Vec<Phit>,
}

/// Maximum number of runs held at once; each may be as short as one phit.
const MAX_RUNS: usize = 1_024;
/// Phits of spare buffers kept for reuse: those of about twenty frames of the usual length. A link
/// that loses a frame now and then must not keep its peak memory forever.
const MAX_SPARE_PHITS: usize = 8_192;

/// Holds early frames in order, bounded in phits.
///
/// A sender that rewinds resends everything; held frames need not be received again, and the
/// cumulative acknowledgement then makes the sender skip them.
#[derive(Debug)]
pub(super) struct Resequencer {
    runs: VecDeque<HeldRun>,
    spare: Vec<Vec<Phit>>,
    spare_phits: usize,
    phits: usize,
    limit: usize,
}

impl Resequencer {
    pub fn new(limit_phits: u32) -> Self {
        Self {
            runs: VecDeque::new(),
            spare: Vec::new(),
            spare_phits: 0,
            phits: 0,
            limit: limit_phits as usize,
        }
    }

    /// Holds the phits in `phits`, except idle ones, from position `at` on.
    pub fn hold(&mut self, at: Position, phits: &[Phit]) -> Held {
        let index = self.runs.partition_point(|run| run.at < at);
        if let Some(run) = self.runs.get(index)
            && run.at == at
            && run.phits.len() >= phits.iter().filter(|phit| !is_idle(**phit)).count()
        {
            return Held::Duplicate;
        }
        if self.phits + phits.len() > self.limit || self.runs.len() == MAX_RUNS {
            return Held::Full;
        }
        let mut kept = self.spare.pop().unwrap_or_default();
        self.spare_phits -= kept.capacity();
        kept.clear();
        kept.extend(phits.iter().filter(|phit| !is_idle(**phit)));
        self.phits += kept.len();
        debug_assert!(self.phits <= self.limit, "the hold is bounded");
        self.runs.insert(index, HeldRun { at, phits: kept });
        Held::Stored
    }

    /// Takes the first run if it starts at or before `position`.
    #[inline]
    pub fn pop_ready(&mut self, position: Position) -> Option<HeldRun> {
        if self.runs.front()?.at > position {
            return None;
        }
        let run = self.runs.pop_front()?;
        self.phits -= run.phits.len();
        debug_assert!(!self.runs.is_empty() || self.phits == 0, "nothing is held");
        Some(run)
    }

    /// Takes back the memory of a run for reuse.
    pub fn recycle(&mut self, run: HeldRun) {
        let phits = run.phits.capacity();
        if self.spare_phits + phits <= MAX_SPARE_PHITS {
            self.spare_phits += phits;
            self.spare.push(run.phits);
        }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub fn clear(&mut self) {
        while let Some(run) = self.runs.pop_front() {
            self.recycle(run);
        }
        self.phits = 0;
    }
}

#[inline]
fn is_idle(phit: Phit) -> bool {
    phit.kind() == PhitKind::Idle
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(kinds: &str) -> Vec<Phit> {
        kinds
            .chars()
            .enumerate()
            .map(|(i, kind)| {
                let kind = match kind {
                    'h' => PhitKind::Head,
                    'b' => PhitKind::Body,
                    'e' => PhitKind::Eop,
                    _ => PhitKind::Idle,
                };
                Phit::new(kind, i as u32)
            })
            .collect()
    }

    fn at(packet: u64, offset: u32) -> Position {
        Position { packet, offset }
    }

    #[test]
    fn runs_come_out_in_order_when_their_turn_has_come() {
        let mut held = Resequencer::new(100);
        assert_eq!(held.hold(at(7, 0), &run("hbe..")), Held::Stored);
        assert_eq!(held.hold(at(5, 2), &run("be")), Held::Stored);
        assert_eq!(held.hold(at(6, 0), &run("hbe")), Held::Stored);
        assert!(held.pop_ready(at(5, 1)).is_none());
        assert_eq!(held.pop_ready(at(5, 2)).unwrap().at, at(5, 2));
        assert!(held.pop_ready(at(5, 3)).is_none());
        assert_eq!(held.pop_ready(at(9, 0)).unwrap().at, at(6, 0));
        let last = held.pop_ready(at(9, 0)).unwrap();
        assert_eq!(last.phits.len(), 3, "idle phits are not held");
        assert!(held.is_empty());
    }

    #[test]
    fn bounded_and_without_copies() {
        let mut held = Resequencer::new(8);
        assert_eq!(held.hold(at(1, 0), &run("hbe")), Held::Stored);
        assert_eq!(held.hold(at(1, 0), &run("hb")), Held::Duplicate);
        assert_eq!(
            held.hold(at(1, 0), &run("hbeh")),
            Held::Stored,
            "longer than the held frame"
        );
        assert_eq!(held.hold(at(9, 0), &run("hb")), Held::Full);
        held.clear();
        assert_eq!(held.hold(at(9, 0), &run("hb")), Held::Stored);
    }

    #[test]
    fn spare_buffers_are_bounded_by_what_they_hold() {
        let mut held = Resequencer::new(1 << 20);
        let long = vec![Phit::new(PhitKind::Body, 0); 1_000];
        for packet in 1..=100 {
            assert_eq!(held.hold(at(packet, 1), &long), Held::Stored);
        }
        held.clear();
        let spare = held.spare.iter().map(Vec::capacity).sum::<usize>();
        assert_eq!(spare, held.spare_phits);
        assert!(spare > 0 && spare <= MAX_SPARE_PHITS, "{spare}");
        held.hold(at(1, 1), &long);
        assert!(
            held.spare_phits < spare,
            "one of the buffers is in use again"
        );
    }
}

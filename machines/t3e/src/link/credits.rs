//! Credits per flit: those for the peer's buffers, and those owed to it.

use phitwire_framing::t3e::flit::VCS;

/// Bits per channel in a word with counts for all channels.
const COUNT_BITS: u32 = 12;
const COUNTS: u64 = (1 << (COUNT_BITS * VCS as u32)) - 1;
/// Flag of the first idle word of a session, which grants all free slots.
const GRANT: u64 = 1 << 63;
/// Flag of later idle words, which return freed slots.
const CREDITS: u64 = 1 << 62;
/// Maximum count per channel in an idle word.
pub const MAX_COUNT: u32 = (1 << COUNT_BITS) - 1;

const _: () = assert!(COUNTS < CREDITS);

/// The content of an idle flit's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IdleWord {
    Nothing,
    /// Slots of the sender's input, at the start of a session.
    Grant([u32; VCS]),
    /// Slots of the sender's input that have become free.
    Credits([u32; VCS]),
}

impl IdleWord {
    /// Decodes the word; `None` if unknown bits are set.
    #[inline]
    pub fn parse(word: u64) -> Option<Self> {
        match word & !COUNTS {
            0 if word == 0 => Some(Self::Nothing),
            GRANT => Some(Self::Grant(counts_of(word))),
            CREDITS => Some(Self::Credits(counts_of(word))),
            _ => None,
        }
    }

    /// Encodes the word.
    ///
    /// # Panics
    /// In debug builds if a count is greater than [`MAX_COUNT`].
    #[inline]
    pub fn emit(self) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Grant(counts) => GRANT | counts_word(counts),
            Self::Credits(counts) => CREDITS | counts_word(counts),
        }
    }
}

/// A word with a count per channel, from the lowest bits up.
fn counts_word(counts: [u32; VCS]) -> u64 {
    counts.iter().rev().fold(0, |word, &count| {
        debug_assert!(count <= MAX_COUNT, "the count exceeds its field");
        word << COUNT_BITS | u64::from(count)
    })
}

/// The counts per channel in a word; the inverse of [`counts_word`].
fn counts_of(word: u64) -> [u32; VCS] {
    core::array::from_fn(|vc| (word >> (COUNT_BITS as usize * vc)) as u32 & MAX_COUNT)
}

/// Credits for sending: one per free slot of the peer, at most 4,095 on a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Credits([u16; VCS]);

impl Credits {
    pub fn new(slots: [u32; VCS]) -> Self {
        debug_assert!(slots.iter().all(|&slots| slots <= MAX_COUNT));
        Self(slots.map(|slots| slots as u16))
    }

    #[inline]
    pub const fn left(&self, vc: usize) -> u32 {
        self.0[vc] as u32
    }

    pub fn all(&self) -> [u32; VCS] {
        self.0.map(u32::from)
    }

    /// Uses a credit for a flit.
    ///
    /// # Panics
    /// If the channel has no credit.
    #[inline]
    pub fn take(&mut self, vc: usize) {
        self.take_many(vc, 1);
    }

    /// Uses credits for flits.
    ///
    /// # Panics
    /// If there are fewer credits.
    #[inline]
    pub fn take_many(&mut self, vc: usize, flits: u32) {
        assert!(self.left(vc) >= flits, "flit sent without a credit");
        self.0[vc] -= flits as u16;
    }

    #[inline]
    pub fn give(&mut self, vc: usize) {
        debug_assert!(
            self.left(vc) < MAX_COUNT,
            "more credits returned than taken"
        );
        self.0[vc] += 1;
    }

    /// Returns credits received from the wire. Returns false, and adds none, if they exceed the
    /// largest grant.
    #[inline]
    #[must_use]
    pub fn give_many(&mut self, vc: usize, slots: u32) -> bool {
        let left = self.left(vc) + slots;
        let is_possible = left <= MAX_COUNT;
        if is_possible {
            self.0[vc] = left as u16;
        }
        is_possible
    }
}

/// Freed slots whose credits have not been returned yet. Each flit returns one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owed {
    slots: [u32; VCS],
    /// Channels with owed slots, one bit each.
    channels: u8,
    /// The channel next in turn.
    turn: u8,
}

impl Owed {
    pub const NONE: Self = Self {
        slots: [0; VCS],
        channels: 0,
        turn: 0,
    };

    /// Adds freed slots of a channel.
    #[inline]
    pub fn add(&mut self, vc: usize, slots: u32) {
        self.slots[vc] += slots;
        self.channels |= u8::from(slots > 0) << vc;
        debug_assert_eq!(self.channels >> vc & 1 != 0, self.slots[vc] > 0);
    }

    #[inline]
    pub const fn any(&self) -> bool {
        self.channels != 0
    }

    #[inline]
    pub const fn of(&self, vc: usize) -> u32 {
        self.slots[vc]
    }

    /// The channel of the credit in the next flit, round robin.
    #[inline]
    pub fn next_credit(&mut self) -> Option<usize> {
        if self.channels == 0 {
            return None;
        }
        let after = self.channels & (u8::MAX << self.turn);
        let from = if after != 0 { after } else { self.channels };
        let vc = from.trailing_zeros() as usize;
        debug_assert!(self.slots[vc] > 0, "a marked channel is owed slots");
        self.slots[vc] -= 1;
        self.channels &= !(u8::from(self.slots[vc] == 0) << vc);
        self.turn = vc as u8 + 1;
        Some(vc)
    }

    /// Takes owed slots of all channels, as many of each as fit into a word.
    pub fn take_all_credits(&mut self) -> [u32; VCS] {
        let credits = self.slots.map(|slots| slots.min(MAX_COUNT));
        self.channels = 0;
        for (vc, credits) in credits.iter().enumerate() {
            self.slots[vc] -= credits;
            self.channels |= u8::from(self.slots[vc] > 0) << vc;
        }
        credits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flit_returns_one_credit_in_turn() {
        let mut owed = Owed::NONE;
        assert_eq!(owed.next_credit(), None);
        owed.add(4, 2);
        owed.add(0, 1);
        owed.add(2, 0);
        let credits: Vec<_> = core::iter::from_fn(|| owed.next_credit()).collect();
        assert_eq!(credits, [0, 4, 4]);
        assert_eq!(owed.slots, [0; VCS]);
        assert!(!owed.any());
    }

    #[test]
    fn a_word_returns_as_many_credits_as_fit() {
        let mut owed = Owed::NONE;
        owed.add(1, MAX_COUNT + 3);
        owed.add(4, 7);
        let credits = owed.take_all_credits();
        assert_eq!(credits, [0, MAX_COUNT, 0, 0, 7]);
        let word = IdleWord::Credits(credits);
        assert_eq!(IdleWord::parse(word.emit()), Some(word));
        assert_eq!(owed.take_all_credits(), [0, 3, 0, 0, 0]);
        assert!(!owed.any());
        assert_eq!(owed.next_credit(), None);
    }

    #[test]
    fn idle_words_are_read_as_written_and_have_no_other_bits() {
        let counts = [0, 1, 0xabc, MAX_COUNT, 7];
        for (said, flag) in [
            (IdleWord::Nothing, 0),
            (IdleWord::Grant(counts), 1 << 63),
            (IdleWord::Credits(counts), 1 << 62),
        ] {
            let word = said.emit();
            assert_eq!(word >> 60 << 60, flag);
            assert_eq!(IdleWord::parse(word), Some(said));
            for bit in 60..64 {
                let changed = word ^ 1 << bit;
                let read = IdleWord::parse(changed);
                assert!(read.is_none_or(|read| read.emit() == changed && changed >> 62 != 0));
                assert!(bit >= 62 || read.is_none(), "bit {bit} of {word:#x}");
            }
        }
        assert_eq!(IdleWord::parse(1), None);
        assert_eq!(IdleWord::parse(3 << 62), None);
    }

    #[test]
    fn more_credits_than_slots_are_refused() {
        let mut credits = Credits::new([0, MAX_COUNT - 1, 0, 0, 0]);
        assert!(!credits.give_many(1, 2));
        assert!(credits.give_many(1, 1));
        assert_eq!(credits.left(1), MAX_COUNT);
    }
}

//! Barrier and eureka messages: the word of the single flit that carries one.
//!
//! T3E sec. 6 mentions "a single-flit barrier/eureka packet" without its content, which must be a
//! unit and one of four messages. The layout is ours:
//!
//! | bits | field |
//! |---|---|
//! | 1:0 | message: 0 arrive, 1 eureka (up); 2 barrier done, 3 eureka done (down) |
//! | 6:2 | unit, 0 to 31 |
//! | 47:7 | reserved, zero |
//! | 63:48 | check: a CRC-16 of bits 47:0, the highest first |
//!
//! Any two valid words differ in at least eight bits. So up to seven wrong bits are detected, or
//! one is corrected ([`Message::correct`]) and up to six are still detected. A bad wire affects up
//! to five bits of a flit.

use core::fmt;

/// Barrier/eureka units of a processor shell, and registers for them in a router (T3E sec. 6).
pub const UNITS: usize = 32;

/// The lowest bit of the unit in a word.
const UNIT_SHIFT: u32 = 2;
/// Bits of message code and unit together.
const CONTENT_BITS: u32 = 7;
/// The lowest bit of the check.
const CHECK_SHIFT: u32 = 48;
/// Bits that must be zero.
const RESERVED: u64 = (1 << CHECK_SHIFT) - (1 << CONTENT_BITS);
/// Generator of the check without its highest term (Koopman notation 0xac9a). Its distance on these
/// words is 8, the maximum for its length (verified over all generators).
const POLYNOMIAL: u16 = 0x5935;
/// Initial value of the check. It is not zero, so that dead wires never form a valid word.
const INITIAL: u16 = 0xffff;

const _: () = assert!(UNITS == 1 << (CONTENT_BITS - UNIT_SHIFT));

/// The check of the low 48 bits of a word.
const fn check(word: u64) -> u16 {
    let mut register = INITIAL;
    let mut bit = CHECK_SHIFT;
    while bit > 0 {
        bit -= 1;
        let carry = register >> 15 ^ (word >> bit & 1) as u16;
        register = (register << 1) ^ (carry * POLYNOMIAL);
    }
    register
}

/// The words of all messages, indexed by their low seven bits.
const WORDS: [u64; 1 << CONTENT_BITS] = {
    let mut words = [0; 1 << CONTENT_BITS];
    let mut content = 0;
    while content < words.len() {
        words[content] = content as u64 | (check(content as u64) as u64) << CHECK_SHIFT;
        content += 1;
    }
    words
};

/// Kind of a message, with its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Up: all processors below have joined the barrier.
    Arrive,
    /// Up: a processor below has signalled the eureka.
    Eureka,
    /// Down: all processors have joined the barrier.
    BarrierDone,
    /// Down: a processor has signalled the eureka.
    EurekaDone,
}

impl Kind {
    /// All kinds, by their codes.
    pub const ALL: [Self; 4] = [
        Self::Arrive,
        Self::Eureka,
        Self::BarrierDone,
        Self::EurekaDone,
    ];

    /// Whether the message goes towards the root.
    #[inline]
    pub const fn is_up(self) -> bool {
        matches!(self, Self::Arrive | Self::Eureka)
    }
}

/// Number of a unit, 0 to 31.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitNumber(u8);

impl UnitNumber {
    /// The unit with this number; `None` above 31.
    #[inline]
    pub const fn new(number: u8) -> Option<Self> {
        if (number as usize) < UNITS {
            Some(Self(number))
        } else {
            None
        }
    }

    /// All units, in ascending order.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..UNITS as u8).map(Self)
    }

    /// The number, less than [`UNITS`].
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The unit's bit in a mask of all units.
    #[inline]
    pub const fn bit(self) -> u32 {
        1 << self.0
    }
}

/// A message of one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Message {
    /// Kind of the message.
    pub kind: Kind,
    /// Number of the unit.
    pub unit: UnitNumber,
}

/// Why a word is not a valid message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageError {
    /// The reserved bits that are set.
    Reserved(u64),
    /// The check does not match the other bits.
    Check {
        /// The check in the word.
        found: u16,
        /// The check computed from the other bits.
        expected: u16,
    },
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reserved(bits) => {
                write!(f, "reserved bits of a barrier message are set: {bits:#x}")
            }
            Self::Check { found, expected } => write!(
                f,
                "the check of a barrier message is {found:#06x}, not {expected:#06x}"
            ),
        }
    }
}

impl core::error::Error for MessageError {}

impl Message {
    /// Encodes the message as the word of a flit.
    #[inline]
    pub const fn encode(self) -> u64 {
        WORDS[self.kind as usize | self.unit.index() << UNIT_SHIFT]
    }

    /// Decodes the message in a word.
    ///
    /// # Errors
    /// The invalid field of the word.
    #[inline]
    pub fn decode(word: u64) -> Result<Self, MessageError> {
        let content = word as usize % WORDS.len();
        if word == WORDS[content] {
            return Ok(Self {
                kind: Kind::ALL[content % Kind::ALL.len()],
                unit: UnitNumber((content >> UNIT_SHIFT) as u8),
            });
        }
        if word & RESERVED != 0 {
            return Err(MessageError::Reserved(word & RESERVED));
        }
        Err(MessageError::Check {
            found: (word >> CHECK_SHIFT) as u16,
            expected: (WORDS[content] >> CHECK_SHIFT) as u16,
        })
    }

    /// The message in a word with one wrong bit, and that bit's number; `None` if the word cannot
    /// be corrected.
    ///
    /// Routers at the destination correct errors (T3E sec. 9), and each router is the destination
    /// of the barrier packets it receives. Correction matters because messages are never repeated.
    pub fn correct(word: u64) -> Option<(Self, u32)> {
        (0..u64::BITS).find_map(|bit| {
            let message = Self::decode(word ^ 1 << bit).ok()?;
            Some((message, bit))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: Kind, unit: u8) -> Message {
        let unit = UnitNumber::new(unit).expect("a unit");
        Message { kind, unit }
    }

    /// Self-made, since T3E sec. 6 does not show the packet. Another program computed the checks.
    const GOLDEN: [(Kind, u8, u64); 5] = [
        (Kind::Arrive, 0, 0x33c5_0000_0000_0000),
        (Kind::Eureka, 0, 0x6af0_0000_0000_0001),
        (Kind::BarrierDone, 5, 0x4bca_0000_0000_0016),
        (Kind::EurekaDone, 17, 0xd034_0000_0000_0047),
        (Kind::EurekaDone, 31, 0xea4f_0000_0000_007f),
    ];

    #[test]
    fn words_are_as_documented() {
        for (kind, unit, word) in GOLDEN {
            let message = message(kind, unit);
            assert_eq!(
                message.encode(),
                word,
                "{message:?} {:#018x}",
                message.encode()
            );
            assert_eq!(Message::decode(word), Ok(message));
        }
    }

    #[test]
    fn all_messages_come_back() {
        for kind in Kind::ALL {
            for unit in UnitNumber::all() {
                let message = Message { kind, unit };
                assert_eq!(Message::decode(message.encode()), Ok(message));
            }
        }
        assert_eq!(UnitNumber::new(32), None);
        assert_eq!(UnitNumber::all().count(), UNITS);
    }

    #[test]
    fn words_differ_in_eight_bits() {
        let pairs = || {
            let later = |i: usize| WORDS[i + 1..].iter().map(move |&word| (WORDS[i], word));
            (0..WORDS.len()).flat_map(later)
        };
        let distance = |(one, other): (u64, u64)| (one ^ other).count_ones();
        assert_eq!(pairs().map(distance).min(), Some(8));
        assert_eq!(
            Message::decode(0),
            Err(MessageError::Check {
                found: 0,
                expected: check(0)
            })
        );
        assert!(Message::decode(u64::MAX).is_err());
    }

    #[test]
    fn refusals_name_the_field() {
        let word = message(Kind::Arrive, 3).encode();
        for bit in 0..64 {
            let reserved = (CONTENT_BITS..CHECK_SHIFT).contains(&bit);
            let error = Message::decode(word ^ 1 << bit).expect_err("one wrong bit");
            assert_eq!(matches!(error, MessageError::Reserved(_)), reserved);
        }
    }

    #[test]
    fn one_wrong_bit_is_corrected_and_a_bad_wire_is_noticed() {
        let right = message(Kind::EurekaDone, 22);
        let word = right.encode();
        assert_eq!(Message::correct(word ^ 1 << 9), Some((right, 9)));
        for first in 0..64 {
            assert_eq!(Message::correct(word ^ 1 << first), Some((right, first)));
            for second in 0..first {
                let damaged = word ^ 1 << first ^ 1 << second;
                assert!(Message::decode(damaged).is_err());
                assert_eq!(Message::correct(damaged), None);
            }
        }
        // Bit b of a flit is on wire b modulo 14.
        for wire in 0..14 {
            for errors in 1..1u64 << 5 {
                let flips = (0..5).filter(|bit| errors >> bit & 1 != 0);
                let flips = flips.map(|bit| bit * 14 + wire).filter(|&bit| bit < 64);
                let damage = flips.fold(0u64, |damage, bit| damage | 1 << bit);
                assert_eq!(Message::decode(word ^ damage).is_err(), damage != 0);
            }
        }
    }
}

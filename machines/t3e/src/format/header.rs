//! The header flit of a packet. It alone is enough to steer by, since the response of a get of one
//! word has no other (paper, section 11).
//!
//! ```text
//! bits   0..6     6..24   24..36   36..46   46..57       57..64
//!        command  tag     origin   id       data check   check of this flit
//! ```
//!
//! A processor hands packets over with the number of the processor that they go to in the tag; its
//! router puts the entry of its look-up table there, and its own number as the origin of requests.

use thiserror::Error;

use super::check::{Repair, open_header, seal_header};
use super::flit::vc;
use crate::route::Tag;

/// What a packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Reads up to one word.
    Get1,
    /// Reads up to eight words.
    Get8,
    /// Writes up to one word.
    Put1,
    /// Writes up to eight words.
    Put8,
    /// Eight words for a queue.
    Message,
    /// Adds one to a word and answers what it was.
    FetchIncrement,
    /// Adds its operand to a word and answers what it was.
    FetchAdd,
    /// Writes the second operand if the word is the first, and answers what it was.
    CompareSwap,
    /// Writes the bits of the second operand that the first selects, and answers what the word was.
    MaskedSwap,
    /// Answers a get of one word.
    Get1Data,
    /// Answers a get of eight words.
    Get8Data,
    /// Answers what wrote: it was carried out.
    Done,
    /// Answers an atomic operation.
    Fetched,
    /// Answers: it was not carried out.
    Refused,
    /// Answers: it came with more wrong bits than can be corrected, and was not carried out.
    Damaged,
}

impl Command {
    /// All of them with their codes and lengths in flits. Bit 5 of a code is that of responses. The
    /// lengths of gets and puts are the paper's (table 3), the others this project's.
    pub const ALL: [(Self, u8, u8); 15] = [
        (Self::Get1, 0x01, 2),
        (Self::Get8, 0x02, 2),
        (Self::Put1, 0x03, 4),
        (Self::Put8, 0x04, 10),
        (Self::Message, 0x05, 10),
        (Self::FetchIncrement, 0x06, 2),
        (Self::FetchAdd, 0x07, 4),
        (Self::CompareSwap, 0x08, 5),
        (Self::MaskedSwap, 0x09, 5),
        (Self::Get1Data, 0x21, 2),
        (Self::Get8Data, 0x22, 10),
        (Self::Done, 0x23, 2),
        (Self::Fetched, 0x24, 2),
        (Self::Refused, 0x25, 2),
        (Self::Damaged, 0x26, 2),
    ];

    /// The commands by their codes.
    const BY_CODE: [Option<Self>; 64] = {
        let mut table = [None; 64];
        let mut next = 0;
        while next < Self::ALL.len() {
            let (command, code, _) = Self::ALL[next];
            table[code as usize] = Some(command);
            next += 1;
        }
        table
    };

    /// Its code, of six bits.
    #[inline]
    pub const fn code(self) -> u8 {
        Self::ALL[self as usize].1
    }

    /// The command of a code.
    #[inline]
    pub const fn from_code(code: u8) -> Option<Self> {
        Self::BY_CODE[code as usize & 0x3f]
    }

    /// Flits of its packets, header flits included.
    #[inline]
    pub const fn flits(self) -> usize {
        Self::ALL[self as usize].2 as usize
    }

    /// Header flits of its packets: two, but one in the answer to a get of one word and three in a
    /// put of one word (T3E sec. 11); those of atomic operations are ours.
    #[inline]
    pub const fn header_flits(self) -> usize {
        match self {
            Self::Get1Data | Self::Fetched => 1,
            Self::Put1 | Self::FetchAdd | Self::CompareSwap | Self::MaskedSwap => 3,
            _ => 2,
        }
    }

    /// Words that its packets carry behind their headers.
    #[inline]
    pub const fn words(self) -> usize {
        self.flits() - self.header_flits()
    }

    /// Bytes that it moves at most, in its own packet or in the answer.
    pub const fn message_bytes(self) -> u8 {
        match self {
            Self::Get8 | Self::Put8 | Self::Message | Self::Get8Data => 64,
            _ => 8,
        }
    }

    /// Whether it answers another one.
    #[inline]
    pub const fn is_response(self) -> bool {
        self.code() & 0x20 != 0
    }
}

/// What names a request among those of its processor; the response has it as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Name(u32);

impl Name {
    /// Bits that the header flit has room for in requests and responses.
    pub const ID_BITS: u32 = 10;
    /// Bits of a name.
    pub const BITS: u32 = 20;

    /// The name of these bits; higher ones are ignored.
    #[inline]
    pub const fn new(bits: u32) -> Self {
        Self(bits & ((1 << Self::BITS) - 1))
    }

    /// Its bits.
    #[inline]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The bits in the field for the id.
    const fn low(self) -> u64 {
        self.0 as u64 & 0x3ff
    }

    /// The others: in responses in the field of the origin, in requests in their second flit.
    #[inline]
    pub const fn high(self) -> u16 {
        (self.0 >> Self::ID_BITS) as u16
    }
}

/// A header flit, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What the packet is for.
    pub command: Command,
    /// Where it goes; from a processor to its router, the number of the processor there.
    pub tag: Tag,
    /// In a request the number of the processor that it comes from, in a response the high bits of
    /// the name.
    pub origin: u16,
    /// The low bits of the name.
    pub id: u16,
    /// The check over the words behind it.
    pub data_check: u16,
}

/// What is wrong with a header flit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HeaderError {
    /// More than one bit of it.
    #[error("a header flit has more wrong bits than its check corrects")]
    Check,
    /// Its command.
    #[error("no packet has command {0:#04x}")]
    Command(u8),
}

impl Header {
    const TAG_AT: u32 = 6;
    const ORIGIN_AT: u32 = 24;
    const ID_AT: u32 = 36;
    const CHECK_AT: u32 = 46;

    /// The header of a packet of `command` to `tag` with that name, which comes from `origin`; a
    /// response says no origin.
    pub fn new(command: Command, tag: Tag, name: Name, origin: u16) -> Self {
        let origin = match command.is_response() {
            true => name.high(),
            false => origin,
        };
        let id = name.low() as u16;
        Self {
            command,
            tag,
            origin,
            id,
            data_check: 0,
        }
    }

    /// The flit.
    #[inline]
    pub fn emit(&self) -> u64 {
        let information = u64::from(self.command.code())
            | u64::from(self.tag.bits()) << Self::TAG_AT
            | (u64::from(self.origin) & 0xfff) << Self::ORIGIN_AT
            | (u64::from(self.id) & 0x3ff) << Self::ID_AT
            | (u64::from(self.data_check) & 0x7ff) << Self::CHECK_AT;
        seal_header(information)
    }

    /// The header of a flit, of which one wrong bit is corrected, and whether one was.
    ///
    /// # Errors
    /// See [`HeaderError`].
    #[inline(always)]
    pub fn parse(word: u64) -> Result<(Self, Repair), HeaderError> {
        let (information, repair) = open_header(word);
        if repair == Repair::Hopeless {
            return Err(HeaderError::Check);
        }
        let code = information as u8 & 0x3f;
        let header = Self {
            command: Command::from_code(code).ok_or(HeaderError::Command(code))?,
            tag: Tag::from_bits((information >> Self::TAG_AT) as u32 & ((1 << Tag::BITS) - 1)),
            origin: (information >> Self::ORIGIN_AT) as u16 & 0xfff,
            id: (information >> Self::ID_AT) as u16 & 0x3ff,
            data_check: (information >> Self::CHECK_AT) as u16 & 0x7ff,
        };
        Ok((header, repair))
    }

    /// The deterministic channel of the packet: requests and responses have their own (paper,
    /// section 3.3).
    #[inline]
    pub const fn vc(&self, vc: u8) -> usize {
        vc::of(self.command.is_response(), vc)
    }

    /// The [`destination`](Self::destination) that a header flit says, with whatever bits are wrong.
    #[inline]
    pub const fn destination_in(word: u64) -> u16 {
        (word >> 6) as u16 & 0xfff
    }

    /// The number of the processor that a packet from a processor goes to.
    #[inline]
    pub const fn destination(&self) -> u16 {
        self.tag.to.bits() & 0xfff
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::Place;

    fn tag() -> Tag {
        Tag {
            to: Place([5, 17, 9]),
            signs: 0b110,
            final_hop: true,
            adaptive: true,
        }
    }

    #[test]
    fn lengths_are_those_of_table_3() {
        let lengths = [
            (Command::Get1, Command::Get1Data, 2, 2),
            (Command::Get8, Command::Get8Data, 2, 10),
            (Command::Put1, Command::Done, 4, 2),
            (Command::Put8, Command::Done, 10, 2),
        ];
        for (request, response, sent, answered) in lengths {
            assert_eq!((request.flits(), response.flits()), (sent, answered));
            assert!(!request.is_response() && response.is_response());
        }
        // "most packets contain two header flits, except for the single-word Get response, which
        // contains one, and the single-word Put request, which contains three" (section 11).
        let headers = [
            Command::Get8,
            Command::Get1Data,
            Command::Put1,
            Command::Put8,
        ];
        assert_eq!(headers.map(Command::header_flits), [2, 1, 3, 2]);
        assert_eq!(headers.map(Command::words), [0, 1, 1, 8]);
    }

    #[test]
    fn codes_are_in_the_order_of_the_commands() {
        for (index, (command, code, flits)) in Command::ALL.into_iter().enumerate() {
            assert_eq!(command as usize, index);
            assert_eq!((command.code(), command.flits()), (code, flits as usize));
            assert_eq!(Command::from_code(code), Some(command));
        }
        let known = (0..64).filter(|code| Command::from_code(*code).is_some());
        assert_eq!(known.count(), Command::ALL.len());
    }

    #[test]
    fn a_golden_header() {
        let mut header = Header::new(Command::Put8, tag(), Name::new(0xa_5a5a), 0x9bc);
        header.data_check = 0x4d2;
        let word = header.emit();
        let place = 5 | 17 << 4 | 9 << 9;
        let tag_bits = place | 6 << 13 | 1 << 16 | 1 << 17;
        let information = 4 | tag_bits << 6 | 0x9bc << 24 | 0x25a << 36 | 0x4d2 << 46;
        assert_eq!(word & ((1 << 57) - 1), information);
        assert_eq!(Header::parse(word), Ok((header, Repair::Good)));
        assert_eq!(
            Header::parse(word ^ 1 << 40),
            Ok((header, Repair::Corrected))
        );
        assert_eq!(Header::parse(word ^ 5), Err(HeaderError::Check));
        assert_eq!(Header::parse(0), Err(HeaderError::Command(0)));
    }

    #[test]
    fn responses_carry_the_whole_name() {
        let name = Name::new(0xa_5a5a);
        let header = Header::new(Command::Get1Data, tag(), name, 7);
        let (again, _) = Header::parse(header.emit()).unwrap();
        assert_eq!(
            u32::from(again.id) | u32::from(again.origin) << 10,
            name.bits()
        );
    }
}

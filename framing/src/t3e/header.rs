//! The header flit of a packet. It is sufficient for routing, since the response of a single-word
//! get has no other header flit (T3E sec. 11).
//!
//! ```text
//! bits   0..6     6..24   24..36   36..46   46..57       57..64
//!        command  tag     origin   id       data check   check of this flit
//! ```
//!
//! A processor puts the number of the destination processor into the tag. Its router replaces it
//! with the entry of the look-up table, and sets its own number as the origin of requests.

use core::fmt;

use super::check::{Repair, open_header, seal_header};
use super::flit::vc;
use super::tag::Tag;

/// The command of a packet.
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
    /// Sends eight words to a queue.
    Message,
    /// Adds one to a word and returns its old value.
    FetchIncrement,
    /// Adds the operand to a word and returns its old value.
    FetchAdd,
    /// Writes the second operand if the word equals the first, and returns its old value.
    CompareSwap,
    /// Writes the bits of the second operand selected by the first, and returns the word's old
    /// value.
    MaskedSwap,
    /// Response to a get of one word.
    Get1Data,
    /// Response to a get of eight words.
    Get8Data,
    /// Response to a write: it was executed.
    Done,
    /// Response to an atomic operation.
    Fetched,
    /// Response: the request was not executed.
    Refused,
    /// Response: the request arrived damaged beyond correction, and was not executed.
    Damaged,
}

impl Command {
    /// All commands with their codes and lengths in flits. Bit 5 of a code marks responses. The
    /// lengths of gets and puts are from T3E table 3, the others are ours.
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

    /// Six-bit code of the command.
    #[inline]
    pub const fn code(self) -> u8 {
        Self::ALL[self as usize].1
    }

    /// The command with a code, of which only the lowest six bits count; `None` if it is reserved.
    #[inline]
    pub const fn from_code(code: u8) -> Option<Self> {
        Self::BY_CODE[code as usize & 0x3f]
    }

    /// Length of the command's packets in flits, including header flits.
    #[inline]
    pub const fn flits(self) -> usize {
        Self::ALL[self as usize].2 as usize
    }

    /// Header flits of the command's packets: two, but one in the response to a get of one word and
    /// three in a put of one word (T3E sec. 11); those of atomic operations are ours.
    #[inline]
    pub const fn header_flits(self) -> usize {
        match self {
            Self::Get1Data | Self::Fetched => 1,
            Self::Put1 | Self::FetchAdd | Self::CompareSwap | Self::MaskedSwap => 3,
            _ => 2,
        }
    }

    /// Data words of the command's packets, after the headers.
    #[inline]
    pub const fn words(self) -> usize {
        self.flits() - self.header_flits()
    }

    /// Maximum number of bytes moved, in the packet or in the response.
    #[inline]
    pub const fn message_bytes(self) -> u8 {
        match self {
            Self::Get8 | Self::Put8 | Self::Message | Self::Get8Data => 64,
            _ => 8,
        }
    }

    /// Whether packets of the command answer a request: bit 5 of the code.
    #[inline]
    pub const fn is_response(self) -> bool {
        self.code() & 0x20 != 0
    }
}

/// Name of a request, unique at its processor and repeated in the response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Name(u32);

impl Name {
    /// Low bits of a name, which are in the header flit of requests and responses.
    pub const ID_BITS: u32 = 10;
    /// Bits of a name.
    pub const BITS: u32 = 20;

    /// The name with these bits; higher bits are ignored.
    #[inline]
    pub const fn new(bits: u32) -> Self {
        Self(bits & ((1 << Self::BITS) - 1))
    }

    /// The name as an integer of 20 bits.
    #[inline]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The bits in the id field.
    const fn low(self) -> u64 {
        self.0 as u64 & 0x3ff
    }

    /// The ten high bits: in the origin field of responses, in the second flit of requests.
    #[inline]
    pub const fn high(self) -> u16 {
        (self.0 >> Self::ID_BITS) as u16
    }
}

/// A decoded header flit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The command, which also gives the packet's length.
    pub command: Command,
    /// The route; from a processor to its router, the number of the destination processor.
    pub tag: Tag,
    /// In a request the number of the source processor, in a response the high bits of the name;
    /// 12 bits.
    pub origin: u16,
    /// The low bits of the name, [`Name::ID_BITS`].
    pub id: u16,
    /// The check over the words after this flit, 11 bits.
    pub data_check: u16,
}

/// Why a header flit is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderError {
    /// More wrong bits than the check corrects.
    Check,
    /// A reserved code of a command.
    Command(u8),
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Check => {
                f.write_str("the header flit has more wrong bits than its check can correct")
            }
            Self::Command(code) => write!(f, "unknown packet command {code:#04x}"),
        }
    }
}

impl core::error::Error for HeaderError {}

impl Header {
    const TAG_AT: u32 = 6;
    const ORIGIN_AT: u32 = 24;
    const ID_AT: u32 = 36;
    const CHECK_AT: u32 = 46;

    /// The header of a packet of `command` to `tag` with that name, from `origin`; responses have
    /// no origin. The check over the words after it is zero until the caller sets it.
    #[inline]
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

    /// Encodes the flit; fields are truncated to their bits.
    #[inline]
    pub fn emit(&self) -> u64 {
        let information = u64::from(self.command.code())
            | u64::from(self.tag.bits()) << Self::TAG_AT
            | (u64::from(self.origin) & 0xfff) << Self::ORIGIN_AT
            | (u64::from(self.id) & 0x3ff) << Self::ID_AT
            | (u64::from(self.data_check) & 0x7ff) << Self::CHECK_AT;
        seal_header(information)
    }

    /// Decodes a header flit, and corrects one wrong bit. Returns whether one was corrected.
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

    /// The deterministic channel of the packet on VC0 or VC1: requests and responses have separate
    /// ones (T3E sec. 3.3).
    #[inline]
    pub const fn vc(&self, vc: u8) -> usize {
        vc::of(self.command.is_response(), vc)
    }

    /// The [`destination`](Self::destination) in a header flit that has not been checked.
    #[inline]
    pub const fn destination_in(word: u64) -> u16 {
        (word >> 6) as u16 & 0xfff
    }

    /// The number of the destination processor, in a packet from a processor.
    #[inline]
    pub const fn destination(&self) -> u16 {
        self.tag.to.bits() & 0xfff
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::t3e::tag::Coordinates;

    fn tag() -> Tag {
        Tag {
            to: Coordinates([5, 17, 9]),
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
        // contains one, and the single-word Put request, which contains three" (T3E sec. 11).
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
        let coordinates = 5 | 17 << 4 | 9 << 9;
        let tag_bits = coordinates | 6 << 13 | 1 << 16 | 1 << 17;
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

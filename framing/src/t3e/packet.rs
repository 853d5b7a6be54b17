//! A packet as processors handle it: a sequence of flits.
//!
//! The header flit of requests is followed by one with the address:
//!
//! ```text
//! bits   0..48     48..54        54..64
//!        address   bytes less 1  name, high bits
//! ```
//!
//! In responses, the second of two header flits is the number of data bytes.
//!
//! The third header flit is zero. T3E sec. 11 mentions it for puts of one word, without a reason;
//! for atomic operations it is ours.

use super::check::{DataCheck, Repair};
use super::header::{Command, Header, HeaderError, Name};
use super::tag::{Coordinates, Tag};

/// Flits of the longest packet (T3E sec. 1).
pub const MAX_PACKET_FLITS: usize = 10;

/// A packet of 1 to [`MAX_PACKET_FLITS`] flits, without their control bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketBuf {
    words: [u64; MAX_PACKET_FLITS],
    flits: u8,
}

/// The fields of a request, except those of its header flit and its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The 48-bit address.
    pub address: u64,
    /// Bytes to read or write, 1 to 64.
    pub bytes: u8,
    /// Whether the request must not be overtaken by others of its kind to the same processor. It
    /// then routes deterministically (T3E sec. 5).
    pub ordered: bool,
    /// Name of the request, which the response repeats.
    pub name: Name,
}

impl Request {
    /// Bits of an address.
    pub const ADDRESS_BITS: u32 = 48;

    #[inline]
    fn emit(&self) -> u64 {
        let bytes = u64::from(self.bytes.wrapping_sub(1)) & 0x3f;
        self.address & ((1 << Self::ADDRESS_BITS) - 1)
            | bytes << 48
            | u64::from(self.name.high()) << 54
    }

    /// The request in a packet with correct words; `word` is the flit after the header.
    #[inline]
    pub fn parse(header: &Header, word: u64) -> Self {
        let high = (word >> 54) as u32;
        Self {
            address: word & ((1 << Self::ADDRESS_BITS) - 1),
            bytes: (word >> 48 & 0x3f) as u8 + 1,
            ordered: !header.tag.adaptive,
            name: Name::new(u32::from(header.id) | high << Name::ID_BITS),
        }
    }
}

impl PacketBuf {
    /// The request `command` of processor `from` to processor `to`; the length of `data` must match
    /// the command.
    pub fn request(
        command: Command,
        (from, to): (u16, u16),
        request: &Request,
        data: &[u64],
    ) -> Self {
        debug_assert!(!command.is_response());
        let header = Header::new(
            command,
            to_processor(to, !request.ordered),
            request.name,
            from,
        );
        let mut words = [0; MAX_PACKET_FLITS];
        words[1] = request.emit();
        Self::sealed(header, words, data)
    }

    /// The response `command` to processor `to`, with `bytes` bytes in `data`, whose length must
    /// match the command.
    pub fn response(command: Command, to: u16, name: Name, bytes: u8, data: &[u64]) -> Self {
        debug_assert!(command.is_response());
        let header = Header::new(command, to_processor(to, true), name, 0);
        let mut words = [0; MAX_PACKET_FLITS];
        if command.header_flits() > 1 {
            words[1] = bytes.into();
        }
        Self::sealed(header, words, data)
    }

    /// Bytes of data in a response with this `header`, whose second flit is `word`.
    #[inline]
    pub const fn response_bytes(header: &Header, word: u64) -> u8 {
        match header.command.header_flits() {
            1 => 8,
            _ if word <= 64 => word as u8,
            _ => 64,
        }
    }

    fn sealed(mut header: Header, mut words: [u64; MAX_PACKET_FLITS], data: &[u64]) -> Self {
        let command = header.command;
        let flits = command.flits();
        debug_assert_eq!(data.len(), command.words());
        for (word, at) in data.iter().zip(&mut words[command.header_flits()..flits]) {
            *at = *word;
        }
        header.data_check = DataCheck::of(&words[1..flits]);
        words[0] = header.emit();
        Self {
            words,
            flits: flits as u8,
        }
    }

    /// The packet with these flits; `None` if their number is invalid.
    #[inline]
    pub fn from_flits(flits: &[u64]) -> Option<Self> {
        let mut words = [0; MAX_PACKET_FLITS];
        words.get_mut(..flits.len())?.copy_from_slice(flits);
        (!flits.is_empty()).then_some(Self {
            words,
            flits: flits.len() as u8,
        })
    }

    /// The words of the flits, header first.
    #[inline]
    pub fn flits(&self) -> &[u64] {
        &self.words[..usize::from(self.flits)]
    }

    /// Whether the packet is a response; false if the header is unreadable.
    #[inline]
    pub fn is_response(&self) -> bool {
        let header = Header::parse(self.words[0]);
        header.is_ok_and(|(header, _)| header.command.is_response())
    }

    /// Checks the packet and corrects its words where possible. Returns the header, and the results
    /// of checking header and words.
    ///
    /// # Errors
    /// See [`HeaderError`].
    #[inline]
    pub fn open(&mut self) -> Result<(Header, [Repair; 2]), HeaderError> {
        let (header, found) = Header::parse(self.words[0])?;
        let behind = &mut self.words[1..usize::from(self.flits)];
        let data = DataCheck::repair(behind, header.data_check);
        Ok((header, [found, data]))
    }
}

/// The tag in a packet from a processor: the destination's number, and whether the packet may
/// adapt.
const fn to_processor(to: u16, adaptive: bool) -> Tag {
    Tag {
        to: Coordinates::from_bits(to),
        signs: 0,
        final_hop: false,
        adaptive,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    const REQUEST: Request = Request {
        address: 0x8abc_1234_5678,
        bytes: 64,
        ordered: true,
        name: Name::new(0xd_3456),
    };

    #[test]
    fn requests_parse_to_the_values_they_were_made_of() {
        for (command, _, flits) in Command::ALL {
            if command.is_response() {
                continue;
            }
            let data: Vec<u64> = (0..command.words() as u64).map(|word| !word).collect();
            let mut packet = PacketBuf::request(command, (7, 2_175), &REQUEST, &data);
            assert_eq!(packet.flits().len(), usize::from(flits));
            let (header, found) = packet.open().unwrap();
            assert_eq!(found, [Repair::Good; 2]);
            assert_eq!((header.command, header.origin), (command, 7));
            assert_eq!(header.destination(), 2_175);
            assert!(!header.tag.adaptive, "the packet is ordered");
            assert_eq!(Request::parse(&header, packet.flits()[1]), REQUEST);
            assert_eq!(packet.flits()[command.header_flits()..], data);
        }
    }

    #[test]
    fn a_wrong_bit_anywhere_is_corrected() {
        let data = [1, 2, 3, 4, 5, 6, 7, 8];
        let good = PacketBuf::response(Command::Get8Data, 3, REQUEST.name, 64, &data);
        for flit in 0..10 {
            let mut flits = good.flits().to_vec();
            flits[flit] ^= 1 << (7 * flit);
            let mut packet = PacketBuf::from_flits(&flits).unwrap();
            let (_, found) = packet.open().unwrap();
            let corrected = usize::from(flit > 0);
            assert_eq!(found[corrected], Repair::Corrected);
            assert_eq!(packet.flits()[2..], data);
        }
        let mut flits = good.flits().to_vec();
        (flits[2], flits[9]) = (flits[2] ^ 1, flits[9] ^ 1 << 60);
        let mut packet = PacketBuf::from_flits(&flits).unwrap();
        assert_eq!(packet.open().unwrap().1, [Repair::Good, Repair::Hopeless]);
        assert_eq!(PacketBuf::from_flits(&[]), None);
        assert_eq!(PacketBuf::from_flits(&[0; 11]), None);
    }
}

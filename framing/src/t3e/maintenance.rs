//! Maintenance packets: three flits by which one router reads or writes a register of another.
//!
//! T3E sec. 8 gives only "delta addressing with routes in the following order: ±X, then ±Y, then
//! ±Z, then ±X, then ±Y, and finally ±Z". The layout is ours. The first two flits have 57 bits
//! below a check that corrects one wrong bit (`seal_header`):
//!
//! | flit | bits | field |
//! |---|---|---|
//! | 0 | 35:0 | six signed counts of hops to go, six bits each, X of the first round lowest |
//! | 0 | 38:36 | command: 0 read, 1 write; of replies 4 done, 5 no such register, 6 read only, 7 no such value |
//! | 0 | 49:39 | check of flit 2, as for the words of a packet |
//! | 0 | 56:50 | tag, repeated in the reply |
//! | 1 | 35:0 | six signed counts of hops gone |
//! | 1 | 51:36 | register |
//! | 1 | 56:52 | reserved, zero; nonzero if the flit became unreadable on the way |
//! | 2 | 63:0 | value: to write, or that was read or written |
//!
//! A router subtracts a hop from the counts of flit 0 and adds it to those of flit 1. A reply takes
//! the same path back: its counts are the request's hops gone, negated and used from the last to
//! the first.

use super::check::{DataCheck, Repair, open_header, seal_header};
use super::direction::Direction;

/// Flits of a maintenance packet.
pub const MAINTENANCE_FLITS: usize = 3;
/// Legs of a path: two rounds of X, Y, Z.
pub const LEGS: usize = 6;
/// Bits per hop count.
const COUNT_BITS: u32 = 6;
/// Bits of the counts of a path.
const SOURCE_ROUTE_BITS: u32 = COUNT_BITS * LEGS as u32;
const COMMAND_SHIFT: u32 = SOURCE_ROUTE_BITS;
const CHECK_SHIFT: u32 = COMMAND_SHIFT + 3;
const TAG_SHIFT: u32 = CHECK_SHIFT + 11;
const REGISTER_SHIFT: u32 = SOURCE_ROUTE_BITS;
const RESERVED_SHIFT: u32 = REGISTER_SHIFT + 16;

const _: () = assert!(TAG_SHIFT + 7 == super::check::HEADER_BITS);

/// Signed hops, leg by leg: X, Y, Z, X, Y, Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceRoute(pub [i8; LEGS]);

impl SourceRoute {
    /// Maximum number of hops in a leg, in either direction.
    pub const MOST: i8 = 31;

    /// Whether all counts, and their negations, fit into six bits.
    pub fn fits(&self) -> bool {
        self.0
            .iter()
            .all(|hops| (-Self::MOST..=Self::MOST).contains(hops))
    }

    fn bits(self) -> u64 {
        let fields = self.0.iter().rev();
        fields.fold(0, |bits, &hops| {
            bits << COUNT_BITS | u64::from(hops as u8 & 0x3f)
        })
    }

    fn from_bits(bits: u64) -> Self {
        Self(core::array::from_fn(|leg| {
            let field = bits >> (COUNT_BITS * leg as u32) & 0x3f;
            // Sign-extends six bits.
            (field as i8) << 2 >> 2
        }))
    }

    /// The next leg, if any. Replies start with the last.
    fn next(&self, is_reply: bool) -> Option<usize> {
        let has_hops = |&leg: &usize| self.0[leg] != 0;
        match is_reply {
            false => (0..LEGS).find(has_hops),
            true => (0..LEGS).rev().find(has_hops),
        }
    }

    /// The path back.
    fn back(self) -> Self {
        Self(self.0.map(|hops| hops.wrapping_neg()))
    }
}

/// The kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum MaintenanceCommand {
    /// Reads a register.
    Read = 0,
    /// Writes a register.
    Write = 1,
    /// Reply: the request was executed.
    Done = 4,
    /// Reply: the register does not exist.
    Unknown = 5,
    /// Reply: the register is read only.
    ReadOnly = 6,
    /// Reply: the register does not take the value.
    BadValue = 7,
}

impl MaintenanceCommand {
    const fn from_bits(bits: u64) -> Option<Self> {
        Some(match bits & 7 {
            0 => Self::Read,
            1 => Self::Write,
            4 => Self::Done,
            5 => Self::Unknown,
            6 => Self::ReadOnly,
            7 => Self::BadValue,
            _ => return None,
        })
    }

    /// Whether the packet answers a request: bit 2 of the code.
    #[inline]
    pub const fn is_reply(self) -> bool {
        self as u8 & 4 != 0
    }
}

/// Fields of the first flit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaintenanceHeader {
    /// Hops that remain.
    pub way: SourceRoute,
    /// The kind of the packet.
    pub command: MaintenanceCommand,
    /// The check of the third flit.
    pub check: u16,
    /// Number repeated by the reply, 0 to 127.
    pub tag: u8,
}

/// Fields of the second flit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaintenanceTrail {
    /// Hops taken so far.
    pub gone: SourceRoute,
    /// Address of the register.
    pub register: u16,
}

/// A hop: its leg, and whether it goes towards smaller ordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    leg: u8,
    minus: bool,
}

impl Hop {
    /// The direction of the hop.
    #[inline]
    pub const fn direction(self) -> Direction {
        Direction::of(self.leg as usize % 3, self.minus)
    }
}

impl MaintenanceHeader {
    /// Parses the word of a header flit. Returns the header, and whether a bit was corrected;
    /// `None` if it is not a valid header.
    pub fn parse(word: u64) -> Option<(Self, bool)> {
        let (bits, repair) = open_header(word);
        if repair == Repair::Hopeless {
            return None;
        }
        let header = Self {
            way: SourceRoute::from_bits(bits),
            command: MaintenanceCommand::from_bits(bits >> COMMAND_SHIFT)?,
            check: (bits >> CHECK_SHIFT & 0x7ff) as u16,
            tag: (bits >> TAG_SHIFT & 0x7f) as u8,
        };
        Some((header, repair == Repair::Corrected))
    }

    /// Encodes the flit; check and tag are truncated to their bits.
    pub fn emit(&self) -> u64 {
        let bits = self.way.bits()
            | (self.command as u64) << COMMAND_SHIFT
            | u64::from(self.check & 0x7ff) << CHECK_SHIFT
            | u64::from(self.tag & 0x7f) << TAG_SHIFT;
        seal_header(bits)
    }

    /// Takes the next hop from the hops to go; `None` if the packet has arrived.
    pub fn step(&mut self) -> Option<Hop> {
        let leg = self.way.next(self.command.is_reply())?;
        let minus = self.way.0[leg] < 0;
        self.way.0[leg] += if minus { 1 } else { -1 };
        let leg = leg as u8;
        Some(Hop { leg, minus })
    }
}

impl MaintenanceTrail {
    /// Parses the word of a trail flit. Returns the trail, and whether a bit was corrected; `None`
    /// if it is not a valid trail.
    pub fn parse(word: u64) -> Option<(Self, bool)> {
        let (bits, repair) = open_header(word);
        if repair == Repair::Hopeless || bits >> RESERVED_SHIFT != 0 {
            return None;
        }
        let trail = Self {
            gone: SourceRoute::from_bits(bits),
            register: (bits >> REGISTER_SHIFT) as u16,
        };
        Some((trail, repair == Repair::Corrected))
    }

    /// Encodes the trail as the word of a flit.
    pub fn emit(&self) -> u64 {
        seal_header(self.gone.bits() | u64::from(self.register) << REGISTER_SHIFT)
    }

    /// A replacement for a flit that became unreadable on the way. No router accepts it as a trail.
    pub fn spoiled() -> u64 {
        seal_header(1 << RESERVED_SHIFT)
    }

    /// Adds a hop to those gone. Excessive counts of a damaged packet saturate.
    pub fn step(&mut self, hop: Hop) {
        let gone = &mut self.gone.0[usize::from(hop.leg)];
        let next = *gone + if hop.minus { -1 } else { 1 };
        *gone = next.clamp(-SourceRoute::MOST, SourceRoute::MOST);
    }
}

/// A maintenance packet with all its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaintenancePacket {
    /// Hops that remain.
    pub way: SourceRoute,
    /// Hops taken so far.
    pub gone: SourceRoute,
    /// The kind of the packet.
    pub command: MaintenanceCommand,
    /// Number repeated by the reply, 0 to 127.
    pub tag: u8,
    /// Address of the register.
    pub register: u16,
    /// The value to write, or that was read or written.
    pub value: u64,
}

impl MaintenancePacket {
    /// A new request on `way`, which must [fit](SourceRoute::fits): a write of `write`, or a read.
    /// `tag` is 0 to 127.
    pub fn request(way: SourceRoute, tag: u8, register: u16, write: Option<u64>) -> Self {
        Self {
            way,
            gone: SourceRoute::default(),
            command: match write {
                Some(_) => MaintenanceCommand::Write,
                None => MaintenanceCommand::Read,
            },
            tag,
            register,
            value: write.unwrap_or(0),
        }
    }

    /// The words of the three flits.
    pub fn words(&self) -> [u64; MAINTENANCE_FLITS] {
        let header = MaintenanceHeader {
            way: self.way,
            command: self.command,
            check: DataCheck::of(&[self.value]),
            tag: self.tag,
        };
        let trail = MaintenanceTrail {
            gone: self.gone,
            register: self.register,
        };
        [header.emit(), trail.emit(), self.value]
    }

    /// Assembles a packet from two flits and the word of the third. Returns whether a bit of the
    /// word was corrected; `None` if it has more errors.
    pub fn assemble(
        header: MaintenanceHeader,
        trail: MaintenanceTrail,
        value: u64,
    ) -> Option<(Self, bool)> {
        let mut words = [value];
        let repair = DataCheck::repair(&mut words, header.check);
        let packet = Self {
            way: header.way,
            gone: trail.gone,
            command: header.command,
            tag: header.tag,
            register: trail.register,
            value: words[0],
        };
        (repair != Repair::Hopeless).then_some((packet, repair == Repair::Corrected))
    }

    /// A replacement for the missing third flit of a packet with this `check`. No router accepts it
    /// as the value.
    pub fn spoiled_value(check: u16) -> u64 {
        // Two of these words have the right parity, and at most one of them matches the check.
        let is_hopeless = |word: &u64| {
            let difference = DataCheck::of(&[*word]) ^ check;
            difference != 0 && difference >> 10 == 0
        };
        (0..4).find(is_hopeless).unwrap_or(0)
    }

    /// The reply `command` to a request that has arrived.
    pub fn reply(&self, command: MaintenanceCommand, value: u64) -> Self {
        Self {
            way: self.gone.back(),
            gone: SourceRoute::default(),
            command,
            value,
            ..*self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// Self-made: T3E sec. 8 does not show the packet.
    #[test]
    fn words_are_as_documented() {
        let packet = MaintenancePacket {
            way: SourceRoute([1, -1, 0, 31, -31, 2]),
            gone: SourceRoute([-2, 0, 3, 0, 0, 0]),
            command: MaintenanceCommand::Write,
            tag: 0x55,
            register: 0x1234,
            value: 0x0123_4567_89ab_cdef,
        };
        let words = packet.words();
        let header = words[0] & ((1 << 57) - 1);
        let counts = 1 | 0x3f << 6 | 31 << 18 | 33 << 24 | 2 << 30;
        assert_eq!(header & ((1 << 36) - 1), counts);
        assert_eq!(header >> 36 & 7, 1);
        assert_eq!(header >> 50, 0x55);
        let trail = words[1] & ((1 << 57) - 1);
        assert_eq!(trail, 0x3e | 3 << 12 | 0x1234 << 36);
        assert_eq!(words[2], packet.value);
        let (header, _) = MaintenanceHeader::parse(words[0]).unwrap();
        let (trail, _) = MaintenanceTrail::parse(words[1]).unwrap();
        let read = MaintenancePacket::assemble(header, trail, words[2]);
        assert_eq!(read, Some((packet, false)));
    }

    #[test]
    fn a_reply_takes_the_same_path_back() {
        let way = SourceRoute([2, -1, 0, -1, 0, 1]);
        let request = MaintenancePacket::request(way, 1, 7, None);
        let words = request.words();
        let (mut header, _) = MaintenanceHeader::parse(words[0]).unwrap();
        let (mut trail, _) = MaintenanceTrail::parse(words[1]).unwrap();
        let mut hops = Vec::new();
        while let Some(hop) = header.step() {
            trail.step(hop);
            hops.push(hop.direction());
        }
        assert_eq!(trail.gone, way);
        let (arrived, _) = MaintenancePacket::assemble(header, trail, 0).unwrap();
        let reply = arrived.reply(MaintenanceCommand::Done, 9);
        let (mut header, _) = MaintenanceHeader::parse(reply.words()[0]).unwrap();
        for there in hops.iter().rev() {
            let back = header.step().expect("the reply takes as many hops");
            assert_eq!(back.direction(), there.opposite());
        }
        assert_eq!(header.step(), None);
    }

    #[test]
    fn one_wrong_bit_of_each_flit_is_corrected() {
        let packet = MaintenancePacket::request(SourceRoute([1, 2, 3, 0, 0, 0]), 3, 9, Some(77));
        let words = packet.words();
        for bit in 0..64 {
            let (header, fixed) = MaintenanceHeader::parse(words[0] ^ 1 << bit).unwrap();
            assert!(fixed);
            let (trail, fixed) = MaintenanceTrail::parse(words[1] ^ 1 << bit).unwrap();
            assert!(fixed);
            let read = MaintenancePacket::assemble(header, trail, words[2] ^ 1 << bit);
            assert_eq!(read, Some((packet, true)));
        }
        assert_eq!(MaintenanceHeader::parse(words[0] ^ 3), None);
        assert_eq!(MaintenanceTrail::parse(words[1] ^ 3), None);
        let spoiled = (0..64).map(|bit| MaintenanceTrail::spoiled() ^ 1 << bit);
        assert!(
            spoiled
                .map(MaintenanceTrail::parse)
                .all(|read| read.is_none())
        );
        let (header, _) = MaintenanceHeader::parse(words[0]).unwrap();
        let (trail, _) = MaintenanceTrail::parse(words[1]).unwrap();
        assert_eq!(MaintenancePacket::assemble(header, trail, 77 ^ 3), None);
        for check in 0..1 << 11 {
            let header = MaintenanceHeader { check, ..header };
            let value = MaintenancePacket::spoiled_value(check);
            assert_eq!(MaintenancePacket::assemble(header, trail, value), None);
        }
    }
}

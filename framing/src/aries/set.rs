//! Sets of ten flits, the unit of the Aries link protocol (Cray XC white paper, "Aries Router":
//! "The LCB transfers data in sets of ten 48-bit flits, adding a 20-bit cyclic redundancy check
//! (CRC) to the last flit in each set - the tenth flit is also used to carry global clock and
//! network load information").
//!
//! A set has 60 bytes: nine flits of data or of link control, then the tenth. The CRC follows the
//! white paper. The six-bit number with its odd bit, acks, nacks and the VC acks of eight channels
//! are publicly known. The layout is ours:
//!
//! ```text
//!   47     46      41  40    39   38   33 32  29   28   27      20 19        0
//! |control| number |odd|nack|  ack   | load |clock| VC ack   |  CRC-20   |
//! ```
//!
//! - *number*, *odd*: seven bits of the count of data sets sent on the link. A control set, which
//!   is not counted, has the number of the next data set.
//! - *ack*: the next data set that the sender of this set expects; everything before it has
//!   arrived. With six bits, at most [`MAX_UNACKNOWLEDGED`] sets may be in flight. *nack*: a
//!   request to go back to `ack`.
//! - *VC ack*: flits freed so far in the input buffer of the sender of this set, in blocks of
//!   eight, modulo 256 ([`vc_ack`], [`widen_vc_ack`]), of the virtual channel in the lowest three
//!   bits of *number*.
//! - *load*: congestion behind the sender, 4 bits. *clock*: a pulse of the global clock.
//!
//! A control set has the same fields in full width ([`ControlSet`]), for idle links and for links
//! that can lose more sets than six bits can count.

mod control;

use super::crc20;
use super::flit::{Flit, VCS};
use super::pattern::Pattern;
use crate::carrier::lanes::Lanes;
use crate::carrier::names::reasons;
pub use control::{
    CLOCK_AT, CONTROL_ACK_AT, ControlSet, FLAGS_AT, MISSING_AT, MISSING_FROM_AT, NEXT_AT,
    VC_ACKS_AT,
};
use core::ops::Range;
#[cfg(feature = "processor-crc")]
use multiversion::{multiversion, target::match_target};

/// Flits of a set.
pub const SET_FLITS: usize = 10;
/// Three lanes carry a set (XC white paper, "Aries Performance"), in words of half a flit (ours).
pub const LANES: Lanes = Lanes::new(3, 24);
/// Flits of a set before the tenth.
pub const DATA_FLITS: usize = SET_FLITS - 1;
/// Bytes of a set.
pub const SET_BYTES: usize = SET_FLITS * FLIT_BYTES;
/// Bytes of a flit.
pub const FLIT_BYTES: usize = 6;
/// Length in bytes of the word that holds a flit in memory.
const WORD_BYTES: usize = 8;
/// Unused bits of that word.
const SPARE_BITS: usize = 8 * (WORD_BYTES - FLIT_BYTES);
/// Bytes of the tenth flit.
pub const TENTH_AT: Range<usize> = DATA_FLITS * FLIT_BYTES..SET_BYTES;

/// Bits of a set's number, without its odd bit.
pub const NUMBER_BITS: u32 = 6;
/// Sets of the replay buffer (publicly known of Aries).
pub const REPLAY_SETS: usize = 64;
/// Limit on unacknowledged data sets while only the tenth flit carries acks. It is one less than
/// the 64 values of six bits, so that an ack of all sets differs from an ack of none.
pub const MAX_UNACKNOWLEDGED: usize = (1 << NUMBER_BITS) - 1;
/// Flits per unit of the VC ack in the tenth flit.
pub const VC_ACK_UNIT: u32 = 8;
/// Largest load that the field can hold.
pub const MAX_LOAD: u8 = 15;
/// Bits of the clock in a control set.
pub const CLOCK_BITS: u32 = 48;

const CONTROL_SHIFT: u32 = 47;
const NUMBER_SHIFT: u32 = 41;
const ODD_SHIFT: u32 = 40;
const NACK_SHIFT: u32 = 39;
const ACK_SHIFT: u32 = 33;
const LOAD_SHIFT: u32 = 29;
const CLOCK_SHIFT: u32 = 28;
const VC_ACK_SHIFT: u32 = 20;

const _: () = assert!(SET_BYTES == 60 && TENTH_AT.start == 54);
const _: () = assert!(SET_BYTES.is_multiple_of(LANES.word_bytes()));
const _: () = assert!(CONTROL_SHIFT + 1 == super::flit::FLIT_BITS);
const _: () = assert!(NUMBER_SHIFT + NUMBER_BITS == CONTROL_SHIFT && ODD_SHIFT + 1 == NUMBER_SHIFT);
const _: () = assert!(NACK_SHIFT + 1 == ODD_SHIFT && ACK_SHIFT + NUMBER_BITS == NACK_SHIFT);
const _: () = assert!(LOAD_SHIFT + 4 == ACK_SHIFT && CLOCK_SHIFT + 1 == LOAD_SHIFT);
const _: () = assert!(VC_ACK_SHIFT + 8 == CLOCK_SHIFT && VC_ACK_SHIFT == crc20::BITS);
const _: () = assert!(MAX_UNACKNOWLEDGED < REPLAY_SETS);

/// The encoded bytes of a set.
pub type SetBytes = [u8; SET_BYTES];

/// The tenth flit's VC ack for `freed` flits: whole blocks, modulo 256.
#[inline]
pub const fn vc_ack(freed: u32) -> u8 {
    (freed / VC_ACK_UNIT) as u8
}

/// The number of freed flits for a VC ack when `known` freed flits, modulo 2^32, are known: the
/// smallest not below `known`. Up to seven flits stay unreported until a control set reports them.
#[inline]
pub const fn widen_vc_ack(known: u32, ack: u8) -> u32 {
    let blocks = ack.wrapping_sub(vc_ack(known));
    if blocks == 0 {
        known
    } else {
        (known / VC_ACK_UNIT)
            .wrapping_add(blocks as u32)
            .wrapping_mul(VC_ACK_UNIT)
    }
}

/// The full ack, modulo 2^32, for its low six bits: the smallest not below `known`.
#[inline]
pub const fn widen_ack(known: u32, ack: u8) -> u32 {
    known.wrapping_add((ack as u32).wrapping_sub(known) & ((1 << NUMBER_BITS) - 1))
}

/// Distance of a set's seven-bit number from the expected one, -64 to 63; negative for a set that
/// arrived before.
#[inline]
pub const fn number_distance(expected: u32, number: u8) -> i8 {
    (number.wrapping_sub(expected as u8) << 1) as i8 >> 1
}

reasons! {
    /// Why 60 bytes are not a valid set. Each value is a counter named by [`Self::name`].
    SetError {
        Crc = "set_bad_crc": "wrong CRC-20",
        ReservedControl = "set_reserved_control":
            "nonzero reserved bits in the control set",
        Contradiction = "set_contradiction":
            "tenth flit of the control set contradicts the other nine",
    }
}

/// The raw bytes of a set: getters and setters without validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetView<T>(T);

impl<T: core::borrow::Borrow<SetBytes>> SetView<T> {
    /// A view of a set.
    #[inline]
    pub const fn new(bytes: T) -> Self {
        Self(bytes)
    }

    /// Returns the bytes.
    #[inline]
    pub fn into_inner(self) -> T {
        self.0
    }

    /// Flit `index` of the set, 0 to 9.
    ///
    /// # Panics
    /// If there is no such flit.
    #[inline]
    pub fn flit(&self, index: usize) -> Flit {
        read_flit(self.0.borrow(), index)
    }

    #[inline]
    fn tenth(&self) -> u64 {
        self.flit(DATA_FLITS).bits()
    }

    /// Whether the nine flits are link control.
    #[inline]
    pub fn is_control(&self) -> bool {
        self.tenth() >> CONTROL_SHIFT != 0
    }

    /// The number, with the odd bit above the six: 7 bits.
    #[inline]
    pub fn number(&self) -> u8 {
        number_in(self.tenth())
    }

    /// Whether the sender requests a replay from [`ack`](Self::ack) on.
    #[inline]
    pub fn nack(&self) -> bool {
        self.tenth() >> NACK_SHIFT & 1 != 0
    }

    /// The next set expected, 6 bits.
    #[inline]
    pub fn ack(&self) -> u8 {
        (self.tenth() >> ACK_SHIFT & 0x3f) as u8
    }

    /// The load behind the sender, 4 bits.
    #[inline]
    pub fn load(&self) -> u8 {
        (self.tenth() >> LOAD_SHIFT & 0xf) as u8
    }

    /// The pulse of the global clock.
    #[inline]
    pub fn clock(&self) -> bool {
        self.tenth() >> CLOCK_SHIFT & 1 != 0
    }

    /// The VC ack of virtual channel `number & 7`; see [`vc_ack`].
    #[inline]
    pub fn vc_ack(&self) -> u8 {
        (self.tenth() >> VC_ACK_SHIFT) as u8
    }

    /// The CRC in the low 20 bits of the tenth flit.
    #[inline]
    pub fn crc(&self) -> u32 {
        self.tenth() as u32 & crc20::MASK
    }
}

impl<T: core::borrow::BorrowMut<SetBytes>> SetView<T> {
    /// Sets flit `index`, 0 to 9.
    ///
    /// # Panics
    /// If there is no such flit.
    #[inline]
    pub fn set_flit(&mut self, index: usize, flit: Flit) {
        let at = index * FLIT_BYTES;
        self.0.borrow_mut()[at..at + FLIT_BYTES].copy_from_slice(&flit.to_bytes());
    }

    /// Sets the tenth flit, with the check over the whole set. Set the other nine flits first.
    #[inline]
    pub fn set_tail(&mut self, control: bool, tail: Tail) {
        let tenth = Flit::new(u64::from(control) << CONTROL_SHIFT | tail.bits());
        self.set_flit(DATA_FLITS, tenth);
        let bytes = self.0.borrow_mut();
        let crc = crc20::check_of_blank(bytes, &Pattern::NONE);
        let checked = Flit::new(tenth.bits() | u64::from(crc));
        self.set_flit(DATA_FLITS, checked);
    }
}

/// The number in a tenth flit: 7 bits.
#[inline]
const fn number_in(tenth: u64) -> u8 {
    (tenth >> NUMBER_SHIFT & 0x3f | (tenth >> ODD_SHIFT & 1) << NUMBER_BITS) as u8
}

/// Flit `index` of a set. One load reads it as the 8-byte word that ends with it; the first flit is
/// read as the word that starts with it.
#[inline]
fn read_flit(bytes: &SetBytes, index: usize) -> Flit {
    let at = (index * FLIT_BYTES).saturating_sub(WORD_BYTES - FLIT_BYTES);
    let word = bytes[at..]
        .first_chunk()
        .expect("the set has a word at this offset");
    let word = u64::from_be_bytes(*word);
    Flit::new(if index == 0 { word >> SPARE_BITS } else { word })
}

/// A set as eight words; the first word holds only four bytes.
type Words = [u64; 8];

/// The nine flits and the tenth as words, under `pattern`.
#[inline(always)]
fn words_of(flits: &[Flit; DATA_FLITS], tenth: u64, pattern: &Pattern) -> Words {
    let flit = |index: usize| flits[index].bits() ^ pattern.flit(index);
    let [a, b, c, d, e] = [flit(0), flit(1), flit(2), flit(3), flit(4)];
    let [f, g, h, i] = [flit(5), flit(6), flit(7), flit(8)];
    [
        a >> 16,
        a << 48 | b,
        c << 16 | d >> 32,
        d << 32 | e >> 16,
        e << 48 | f,
        g << 16 | h >> 32,
        h << 32 | i >> 16,
        i << 48 | tenth ^ pattern.flit(DATA_FLITS),
    ]
}

/// Writes a set word by word, so that none is written twice.
#[inline(always)]
fn store(words: &Words, bytes: &mut SetBytes) {
    let (first, rest) = bytes.as_rchunks_mut();
    first.copy_from_slice(&(words[0] as u32).to_be_bytes());
    for (i, slot) in rest.iter_mut().enumerate() {
        *slot = words[i + 1].to_be_bytes();
    }
}

/// Writes a set under `pattern` and adds the check, which `tenth` lacks. Where the processor
/// allows, the check is computed from registers: reading back the bytes just written would stall.
#[cfg(feature = "processor-crc")]
#[multiversion(targets("x86_64+pclmulqdq+sse4.1"))]
fn write(flits: &[Flit; DATA_FLITS], tenth: u64, pattern: &Pattern, bytes: &mut SetBytes) {
    let mut words = words_of(flits, tenth, pattern);
    words[7] ^= match_target!(
        "x86_64+pclmulqdq+sse4.1" => crc20::check_of_words(&words, pattern),
        _ => {
            store(&words, bytes);
            crc20::check_of_blank(bytes, pattern)
        },
    ) as u64;
    store(&words, bytes);
}

/// Writes a set under `pattern` and adds the check, which `tenth` lacks.
#[cfg(not(feature = "processor-crc"))]
fn write(flits: &[Flit; DATA_FLITS], tenth: u64, pattern: &Pattern, bytes: &mut SetBytes) {
    let mut words = words_of(flits, tenth, pattern);
    store(&words, bytes);
    words[7] ^= u64::from(crc20::check_of_blank(bytes, pattern));
    store(&words, bytes);
}

/// The fields of the tenth flit except the check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tail {
    /// Number of the set modulo 128: six bits, and the odd bit above them.
    pub number: u8,
    /// Next set expected, modulo 64.
    pub ack: u8,
    /// Requests a replay from `ack` on.
    pub nack: bool,
    /// Congestion behind the sender, 0 to 15.
    pub load: u8,
    /// A pulse of the global clock.
    pub clock: bool,
    /// Freed flits of virtual channel `number & 7`; see [`vc_ack`].
    pub vc_ack: u8,
}

impl Tail {
    /// The virtual channel of [`vc_ack`](Self::vc_ack).
    #[inline]
    pub const fn vc(&self) -> usize {
        self.number as usize % VCS
    }

    /// The 28 bits at their positions; each field is truncated to its width.
    #[inline]
    const fn bits(&self) -> u64 {
        let number = self.number as u64;
        (number & 0x3f) << NUMBER_SHIFT
            | (number >> NUMBER_BITS & 1) << ODD_SHIFT
            | (self.nack as u64) << NACK_SHIFT
            | (self.ack as u64 & 0x3f) << ACK_SHIFT
            | (self.load as u64 & 0xf) << LOAD_SHIFT
            | (self.clock as u64) << CLOCK_SHIFT
            | (self.vc_ack as u64) << VC_ACK_SHIFT
    }

    /// The fields of a tenth flit.
    #[inline]
    pub const fn of(tenth: Flit) -> Self {
        let tenth = tenth.bits();
        Self {
            number: number_in(tenth),
            ack: (tenth >> ACK_SHIFT & 0x3f) as u8,
            nack: tenth >> NACK_SHIFT & 1 != 0,
            load: (tenth >> LOAD_SHIFT & 0xf) as u8,
            clock: tenth >> CLOCK_SHIFT & 1 != 0,
            vc_ack: (tenth >> VC_ACK_SHIFT) as u8,
        }
    }
}

/// Nine flits of packets. Idle flits ([`Flit::IDLE`]) may stand between packets, never inside one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DataSet {
    /// Flits of packets, in order of transmission.
    pub flits: [Flit; DATA_FLITS],
    /// Fields of the tenth flit.
    pub tail: Tail,
}

impl DataSet {
    /// Length of an encoded set in bytes.
    pub const fn buffer_len(&self) -> usize {
        SET_BYTES
    }

    /// Writes the set; every field is truncated to its width.
    #[inline]
    pub fn emit(&self, bytes: &mut SetBytes) {
        Self::emit_flits(&self.flits, self.tail, bytes);
    }

    /// Writes a set of `flits` without copying them first.
    #[inline]
    pub fn emit_flits(flits: &[Flit; DATA_FLITS], tail: Tail, bytes: &mut SetBytes) {
        Self::emit_under(&Pattern::NONE, flits, tail, bytes);
    }

    /// Like [`emit_flits`](Self::emit_flits), under `pattern`.
    #[inline]
    pub fn emit_under(
        pattern: &Pattern,
        flits: &[Flit; DATA_FLITS],
        tail: Tail,
        bytes: &mut SetBytes,
    ) {
        write(flits, tail.bits(), pattern, bytes);
    }
}

/// The nine data flits of a received set, still scrambled. The input buffer reads them one by one
/// from the frame; an intermediate copy would stall on its own stores.
#[derive(Clone, Copy, Debug)]
pub struct DataFlits<'a> {
    /// The set as received.
    pub bytes: &'a SetBytes,
    /// Scrambling pattern of the set.
    pub pattern: &'a Pattern,
}

impl DataFlits<'_> {
    /// Flit `index`.
    ///
    /// # Panics
    /// If there is no such flit.
    #[inline]
    pub fn flit(self, index: usize) -> Flit {
        Flit::new(read_flit(self.bytes, index).bits() ^ self.pattern.flit(index))
    }

    /// All nine data flits.
    #[inline]
    pub fn to_array(self) -> [Flit; DATA_FLITS] {
        core::array::from_fn(|index| self.flit(index))
    }
}

/// A set with a valid check. Its data flits are read separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetKind {
    /// Nine [`DataFlits`] and this tenth flit; see [`Tail::of`].
    Data(Flit),
    /// A set of link control.
    Control(ControlSet),
}

impl SetKind {
    /// Checks and classifies a set stored in `bytes` under `pattern`.
    ///
    /// # Errors
    /// See [`SetError`]; the CRC is checked first.
    #[inline]
    pub fn of(bytes: &SetBytes, pattern: &Pattern) -> Result<Self, SetError> {
        if !crc20::is_good_under(bytes, pattern) {
            return Err(SetError::Crc);
        }
        let tenth = read_flit(bytes, DATA_FLITS).bits() ^ pattern.flit(DATA_FLITS);
        if tenth >> CONTROL_SHIFT == 0 {
            return Ok(Self::Data(Flit::new(tenth)));
        }
        let mut plain = *bytes;
        pattern.apply(&mut plain);
        ControlSet::parse(&plain, &Tail::of(Flit::new(tenth))).map(Self::Control)
    }
}

/// A set with a valid check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Set {
    /// Nine flits of packets.
    Data(DataSet),
    /// A set of link control.
    Control(ControlSet),
}

impl Set {
    /// Reads a set.
    ///
    /// # Errors
    /// See [`SetError`]; the CRC is checked first.
    #[inline]
    pub fn parse(bytes: &SetBytes) -> Result<Self, SetError> {
        Self::parse_under(&Pattern::NONE, bytes)
    }

    /// Reads a set stored in `bytes` under `pattern`.
    ///
    /// # Errors
    /// See [`SetError`]; the CRC is checked first.
    #[inline]
    pub fn parse_under(pattern: &Pattern, bytes: &SetBytes) -> Result<Self, SetError> {
        Ok(match SetKind::of(bytes, pattern)? {
            SetKind::Data(tenth) => Self::Data(DataSet {
                flits: DataFlits { bytes, pattern }.to_array(),
                tail: Tail::of(tenth),
            }),
            SetKind::Control(set) => Self::Control(set),
        })
    }

    /// Encodes the set into `bytes`.
    #[inline]
    pub fn emit(&self, bytes: &mut SetBytes) {
        match self {
            Self::Data(set) => set.emit(bytes),
            Self::Control(set) => set.emit(bytes),
        }
    }
}

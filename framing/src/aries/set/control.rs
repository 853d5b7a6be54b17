//! Sets of link control.

use core::ops::Range;

use super::{FLIT_BYTES, MAX_LOAD, SET_BYTES, SetBytes, SetError, SetView, TENTH_AT, Tail, vc_ack};
use crate::aries::flit::{Flit, VCS};

/// Byte of the flags of a control set: `probe` in bit 0, the others reserved.
pub const FLAGS_AT: usize = 0;
/// Bytes of the next set number in a control set.
pub const NEXT_AT: Range<usize> = 2..6;
/// Bytes of the ack in a control set.
pub const CONTROL_ACK_AT: Range<usize> = 8..12;
/// First byte of the eight VC acks in a control set, four bytes each.
pub const VC_ACKS_AT: usize = 12;
/// Bytes of the clock in a control set: its ninth flit.
pub const CLOCK_AT: Range<usize> = 48..54;
/// Bytes of a control set that must be zero.
const RESERVED: [Range<usize>; 2] = [1..2, 6..8];
const PROBE: u8 = 1;
/// Bytes of the distance from the ack to the sets that a nack requests.
pub const MISSING_FROM_AT: Range<usize> = 44..46;
/// Bytes of the number of sets that a nack requests.
pub const MISSING_AT: Range<usize> = 46..48;

const _: () = assert!(VC_ACKS_AT + 4 * VCS == MISSING_FROM_AT.start);
const _: () = assert!(MISSING_AT.end == CLOCK_AT.start && CLOCK_AT.end == TENTH_AT.start);

/// A set of link control in full width instead of data. It has no number and is neither
/// acknowledged nor replayed: its numbers are totals, so the next control set supersedes it.
///
/// ```text
/// flit 0   flags 8 (bit 0: probe) | 0 (8) | next 32
/// flit 1   0 (16) | ack 32
/// flits 2 to 7   eight VC acks of 32 bits | missing from 16 | missing 16
/// flit 8   clock 48
/// flit 9   the tenth of every set, its number, ack and VC ack agreeing with the above
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ControlSet {
    /// Requests an acknowledgement at once.
    pub probe: bool,
    /// Requests a replay from `ack` on.
    pub nack: bool,
    /// Number, modulo 2^32, of the next data set: in a frame, of the first one after this set.
    pub next: u32,
    /// Next data set expected, modulo 2^32.
    pub ack: u32,
    /// With a nack: distance from `ack` to the first missing set. Receivers that keep sets after a
    /// gap request only the gap (ours).
    pub missing_from: u16,
    /// With a nack: number of missing sets there; 0: everything from `ack` on.
    pub missing: u16,
    /// Flits freed in the input buffer of the sender since the link came up, per virtual channel,
    /// modulo 2^32.
    pub vc_acks: [u32; VCS],
    /// The sender's global clock in emulated nanoseconds, modulo 2^48.
    pub clock: u64,
    /// A pulse of the global clock.
    pub pulse: bool,
    /// Congestion behind the sender, 0 to 15.
    pub load: u8,
}

impl ControlSet {
    /// Length of an encoded set in bytes.
    pub const fn buffer_len(&self) -> usize {
        SET_BYTES
    }

    /// The tenth flit of this set.
    #[inline]
    pub const fn tail(&self) -> Tail {
        Tail {
            number: (self.next & 0x7f) as u8,
            ack: (self.ack & 0x3f) as u8,
            nack: self.nack,
            load: self.load & MAX_LOAD,
            clock: self.pulse,
            vc_ack: vc_ack(self.vc_acks[self.next as usize % VCS]),
        }
    }

    /// Writes the set; load and clock are truncated to their width.
    pub fn emit(&self, bytes: &mut SetBytes) {
        bytes[..TENTH_AT.start].fill(0);
        bytes[FLAGS_AT] = u8::from(self.probe) * PROBE;
        bytes[NEXT_AT].copy_from_slice(&self.next.to_be_bytes());
        bytes[CONTROL_ACK_AT].copy_from_slice(&self.ack.to_be_bytes());
        let acks = bytes[VC_ACKS_AT..].as_chunks_mut::<4>().0;
        for (bytes, ack) in acks.iter_mut().zip(self.vc_acks) {
            *bytes = ack.to_be_bytes();
        }
        bytes[MISSING_FROM_AT].copy_from_slice(&self.missing_from.to_be_bytes());
        bytes[MISSING_AT].copy_from_slice(&self.missing.to_be_bytes());
        bytes[CLOCK_AT].copy_from_slice(&Flit::new(self.clock).to_bytes());
        SetView::new(bytes).set_tail(true, self.tail());
    }

    pub(super) fn parse(bytes: &SetBytes, tail: &Tail) -> Result<Self, SetError> {
        let reserved = RESERVED.iter().flat_map(|range| &bytes[range.clone()]);
        if bytes[FLAGS_AT] & !PROBE != 0 || reserved.into_iter().any(|byte| *byte != 0) {
            return Err(SetError::ReservedControl);
        }
        let word = |at: usize| {
            u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let half = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let set = Self {
            probe: bytes[FLAGS_AT] & PROBE != 0,
            nack: tail.nack,
            next: word(NEXT_AT.start),
            ack: word(CONTROL_ACK_AT.start),
            missing_from: half(MISSING_FROM_AT.start),
            missing: half(MISSING_AT.start),
            vc_acks: core::array::from_fn(|vc| word(VC_ACKS_AT + 4 * vc)),
            clock: SetView::new(bytes).flit(CLOCK_AT.start / FLIT_BYTES).bits(),
            pulse: tail.clock,
            load: tail.load,
        };
        if set.tail() == *tail {
            Ok(set)
        } else {
            Err(SetError::Contradiction)
        }
    }
}

//! The check of a packet, end to end (white paper, "RAS": "Packet level CRC checks in the network
//! transport layer provide immediate indication of corrupt data from end to end"; width inferred,
//! polynomial ours).
//!
//! 64 bytes of data leave 16 bits of 11 flits: the check has 16. It covers all bits of the packet
//! before it, with zeros where routers write on the way. Start value all ones, first bit first, no
//! reflection, no final inversion.
//!
//! [`POLYNOMIAL`] comes from an exhaustive search over all 32,768 polynomials of degree 16 with a
//! constant term: Hamming distance 4 for packets of up to 14 flits (16 check bits cannot reach 5
//! there), and of all of them the fewest undetected patterns of four flipped bits at 14 flits,
//! 118,383. CRC-16/CCITT has 254,844. `tests/aries/crc_distance.rs` proves these numbers.

use crate::aries::flit::{Flit, Head};
use crate::carrier::crc_tables::tables;

/// x^16 + x^14 + x^13 + x^7 + x^2 + x + 1, without its highest term.
pub const POLYNOMIAL: u16 = 0x6087;
/// State before the head.
pub const INITIAL: u16 = 0xffff;
const MASK: u64 = 0xffff;

/// Bits of a head that stay the same from source to destination.
const INVARIANT: u64 = {
    let all = Head::new(
        true,
        0xf,
        crate::aries::flit::NodeId::from_bits(0x3_ffff),
        crate::aries::flit::Routing::Valiant,
        0xfff,
        0x3f,
    );
    all.with_vc(0).flit().bits()
};

/// By the number of bytes that follow.
static TABLES: [[u16; 256]; 8] = tables(POLYNOMIAL, 0);

/// The state after a flit, as a remainder: the flit's last 16 bits are added as they are.
#[inline(always)]
fn step(state: u16, flit: u64) -> u16 {
    let own = (2..6).fold(flit as u16, |own, k| {
        own ^ TABLES[k][usize::from((flit >> (8 * k)) as u8)]
    });
    own ^ TABLES[6][usize::from(state as u8)] ^ TABLES[7][usize::from((state >> 8) as u8)]
}

/// The check that a packet should have and the one it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketCheck {
    /// Computed from all bits but the last 16.
    pub computed: u16,
    /// The last 16 bits.
    pub found: u16,
}

impl PacketCheck {
    /// Whether both are the same.
    #[inline]
    pub const fn is_good(self) -> bool {
        self.computed == self.found
    }
}

/// The check of a packet with a data area. Virtual channel, non-minimal and poison of its head are
/// taken as zero, so that no router has to change the check.
#[inline]
pub fn packet_check(packet: &[Flit]) -> PacketCheck {
    let (Some((head, rest)), Some(last)) = (packet.split_first(), packet.last()) else {
        return PacketCheck {
            computed: INITIAL,
            found: 0,
        };
    };
    // The start value is as good as two bytes added to the first two.
    let head = head.bits() & INVARIANT ^ u64::from(INITIAL) << 32;
    let state = rest
        .iter()
        .fold(step(0, head), |state, flit| step(state, flit.bits()));
    let found = (last.bits() & MASK) as u16;
    PacketCheck {
        // What stands in the place of the check went into the state as it is.
        computed: state ^ found,
        found,
    }
}

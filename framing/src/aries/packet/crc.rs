//! The end-to-end check of a packet (Cray XC white paper, "RAS": "Packet level CRC checks in the
//! network transport layer provide immediate indication of corrupt data from end to end"; width
//! inferred, polynomial ours).
//!
//! A packet with 64 bytes of data has 16 bits left for the check in its 11 flits of data. The check
//! covers all bits of the packet before it, with zeros in the fields that routers write. Start
//! value all ones, first bit first, no reflection, no final inversion.
//!
//! [`POLYNOMIAL`] comes from an exhaustive search over all 32,768 polynomials of degree 16 with a
//! constant term: Hamming distance 4 for packets of up to 14 flits (16 check bits cannot reach 5
//! there), and the fewest undetected patterns of four flipped bits at 14 flits, 118,383.
//! CRC-16/CCITT has 254,844. `tests/aries/crc_distance.rs` proves these numbers.

#[cfg(feature = "processor-crc")]
use multiversion::{multiversion, target::match_target};

#[cfg(all(feature = "processor-crc", target_arch = "x86_64"))]
use crate::aries::flit::{FLIT_BITS, MAX_PACKET_FLITS};
use crate::aries::flit::{Flit, Head};
use crate::carrier::crc_tables::tables;
#[cfg(all(feature = "processor-crc", target_arch = "x86_64"))]
use crate::carrier::folding::{add, product};

/// x^16 + x^14 + x^13 + x^7 + x^2 + x + 1, without its highest term.
pub const POLYNOMIAL: u16 = 0x6087;
/// State before the head.
pub const INITIAL: u16 = 0xffff;
const MASK: u64 = 0xffff;

/// Bits of a head that do not change between source and destination.
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

/// CRC tables, by the number of following bytes.
static TABLES: [[u16; 256]; 14] = tables(POLYNOMIAL, 0);

/// The contribution of bytes `from` to 5 of a flit that `after` bytes follow. Byte 0 is the last
/// byte of the flit.
#[inline(always)]
fn effect(flit: u64, from: usize, after: usize) -> u16 {
    let mut left = 0;
    for byte in from..6 {
        left ^= TABLES[after + byte][usize::from((flit >> (8 * byte)) as u8)];
    }
    left
}

/// The state after a flit, as a remainder: the flit's last 16 bits are added unchanged.
#[inline(always)]
fn step(state: u16, flit: u64) -> u16 {
    let own = flit as u16 ^ effect(flit, 2, 0);
    own ^ TABLES[6][usize::from(state as u8)] ^ TABLES[7][usize::from((state >> 8) as u8)]
}

/// The state after two flits. Their look-ups are independent, which halves the time per packet.
#[inline(always)]
fn step_two(state: u16, first: u64, second: u64) -> u16 {
    let own = effect(first, 0, 6) ^ second as u16 ^ effect(second, 2, 0);
    own ^ TABLES[12][usize::from(state as u8)] ^ TABLES[13][usize::from((state >> 8) as u8)]
}

/// The remainder of a packet whose first flit is `head`.
#[cfg(feature = "processor-crc")]
#[multiversion(targets("x86_64+pclmulqdq+sse4.1"))]
fn remainder(head: u64, rest: &[Flit]) -> u16 {
    match_target!(
        "x86_64+pclmulqdq+sse4.1" => folded(head, rest),
        _ => by_tables(head, rest),
    )
}

#[cfg(not(feature = "processor-crc"))]
use by_tables as remainder;

/// The remainder by tables.
fn by_tables(head: u64, rest: &[Flit]) -> u16 {
    let (pairs, odd) = rest.as_chunks::<2>();
    let mut state = step(0, head);
    for [first, second] in pairs {
        state = step_two(state, first.bits(), second.bits());
    }
    for flit in odd {
        state = step(state, flit.bits());
    }
    state
}

/// The remainder by carry-less multiplication, one per flit.
#[cfg(all(feature = "processor-crc", target_arch = "x86_64"))]
#[inline]
#[target_feature(enable = "pclmulqdq,sse4.1")]
fn folded(head: u64, rest: &[Flit]) -> u16 {
    let Some(position) = MAX_PACKET_FLITS.checked_sub(rest.len() + 1) else {
        return by_tables(head, rest);
    };
    let powers = &POWERS[position..];
    let mut sum = product(head, powers[0]);
    for (flit, power) in rest.iter().zip(&powers[1..]) {
        sum = add(sum, product(flit.bits(), *power));
    }
    Divisor::remainder_of_short(sum) as u16
}

#[cfg(all(feature = "processor-crc", target_arch = "x86_64"))]
type Divisor = crate::carrier::folding::Divisor<{ POLYNOMIAL as u32 }, 16>;

/// The power of x for the position of each flit in the longest packet.
#[cfg(all(feature = "processor-crc", target_arch = "x86_64"))]
const POWERS: [u64; MAX_PACKET_FLITS] = {
    let mut powers = [1; MAX_PACKET_FLITS];
    let mut behind = 1;
    while behind < MAX_PACKET_FLITS {
        powers[MAX_PACKET_FLITS - 1 - behind] = Divisor::power(FLIT_BITS * behind as u32);
        behind += 1;
    }
    powers
};

/// The expected and the actual check of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketCheck {
    /// Computed from all bits but the last 16.
    pub computed: u16,
    /// The last 16 bits.
    pub found: u16,
}

impl PacketCheck {
    /// Whether the computed and the found check are equal.
    #[inline]
    pub const fn is_good(self) -> bool {
        self.computed == self.found
    }
}

/// The check of a packet with a data area. The head's virtual channel, non-minimal and poison
/// fields count as zero, so that routers can change them without updating the check.
#[inline]
pub fn packet_check(packet: &[Flit]) -> PacketCheck {
    let (Some((head, rest)), Some(last)) = (packet.split_first(), packet.last()) else {
        return PacketCheck {
            computed: INITIAL,
            found: 0,
        };
    };
    // An initial value is equivalent to XORing it into the first two bytes.
    let head = head.bits() & INVARIANT ^ u64::from(INITIAL) << 32;
    let state = remainder(head, rest);
    let found = (last.bits() & MASK) as u16;
    PacketCheck {
        // Undo the check's own contribution: it was XORed into the state unchanged.
        computed: state ^ found,
        found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_multiplication_agree_whatever_the_length() {
        let mut x = 1_u64;
        for round in 0..2_000 {
            let flits: [Flit; 20] = core::array::from_fn(|_| {
                x = x
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                Flit::new(x >> 13)
            });
            let (head, rest) = (flits[0].bits(), &flits[1..1 + round % 19]);
            assert_eq!(remainder(head, rest), by_tables(head, rest));
        }
    }
}

//! The burst: the carrier's unit of eight flits, padded with idle flits.
//!
//! A link sends its flits one after the other, four phits in seven bytes: bit b of a flit is on
//! lane b mod 14 of its phit b / 14, and eight flits are 70 bytes. A byte of the line code follows,
//! which does not exist on the machine's wires. Its bit n marks flit n as the first of its packet,
//! so that a receiver can find the next packet after an unreadable header.

use super::flit::{Control, Flit};
use crate::carrier::frame::FrameKind;

/// Flits of a burst.
pub const BURST_FLITS: usize = 8;
/// Bytes of the flits, before the byte of the line code.
const FLIT_BYTES: usize = 70;

const _: () = assert!(FLIT_BYTES * 8 == BURST_FLITS * Flit::BITS as usize);
const _: () = assert!(Flit::BITS.is_multiple_of(Burst::LANES));

/// Eight flits. The default is idle flits only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Burst {
    /// The words of the flits.
    pub words: [u64; BURST_FLITS],
    /// The control bits of the flits. Unreadable ones become an idle flit without a credit.
    pub controls: [Control; BURST_FLITS],
}

impl Burst {
    /// The kind of frames that carry bursts.
    pub const KIND: FrameKind = FrameKind::new(4);
    /// Length of a burst in bytes.
    pub const BYTES: usize = FLIT_BYTES + 1;
    /// Lanes of a link: the bits of a phit (T3E sec. 1).
    pub const LANES: u32 = 14;
    /// Phits per flit.
    pub const FLIT_PHITS: u32 = Flit::BITS / Self::LANES;

    /// Builds a burst from the next eight flits.
    #[inline]
    pub fn of(mut next: impl FnMut() -> Flit) -> Self {
        let mut burst = Self::default();
        for (word, control) in burst.words.iter_mut().zip(&mut burst.controls) {
            Flit {
                word: *word,
                control: *control,
            } = next();
        }
        burst
    }

    /// The flits that are not idle, or whose word is not zero, in order.
    #[inline]
    pub fn flits(&self) -> impl Iterator<Item = Flit> {
        let flits = self.words.iter().zip(&self.controls);
        flits
            .filter(|(word, control)| **control != Control::IDLE || **word != 0)
            .map(|(&word, &control)| Flit { word, control })
    }

    /// Writes all bytes of the burst.
    #[inline]
    pub fn emit(&self, bytes: &mut [u8; Self::BYTES]) {
        // Flits are packed from the lowest bit up into one long number.
        let (mut high, mut held) = (0_u64, 0_u32);
        let (words, rest) = bytes[..FLIT_BYTES].as_chunks_mut::<8>();
        let mut slots = words.iter_mut();
        let mut marks = 0;
        let mut put = |word: u64| {
            if let Some(slot) = slots.next() {
                *slot = word.to_le_bytes();
            }
        };
        for (flit, (&word, control)) in self.words.iter().zip(&self.controls).enumerate() {
            marks |= u8::from(control.is_head()) << flit;
            // 64 bits of word, then 6 of control, after the `held` bits of earlier flits.
            let flit = u128::from(word) | u128::from(control.bits()) << 64;
            let joined = u128::from(high) | flit << held;
            put(joined as u64);
            high = (joined >> 64) as u64;
            held += Flit::BITS - 64;
        }
        // The last bytes hold the remaining 8 x 6 bits.
        rest.copy_from_slice(&high.to_le_bytes()[..rest.len()]);
        bytes[FLIT_BYTES] = marks;
    }

    /// Reads a burst. Invalid control bits make an idle flit without a credit.
    #[inline]
    pub fn parse(bytes: &[u8; Self::BYTES]) -> Self {
        let (words, rest) = bytes[..FLIT_BYTES].as_chunks::<8>();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        let marks = bytes[FLIT_BYTES];
        let mut burst = Self::default();
        let mut next = words.iter().map(|word| u64::from_le_bytes(*word));
        let mut low = next.next().unwrap_or(0);
        for flit in 0..BURST_FLITS {
            let above = next.next().unwrap_or(u64::from_le_bytes(last));
            let held = 6 * flit as u32;
            // The first `held` bits of `low` belong to the previous flit.
            let joined = (u128::from(low) | u128::from(above) << 64) >> held;
            burst.words[flit] = joined as u64;
            let bits = (joined >> 64) as u8 & 0x3f;
            let is_head = marks >> flit & 1 != 0;
            match Control::parse(bits, is_head) {
                Some(control) => burst.controls[flit] = control,
                None => burst.words[flit] = 0,
            }
            low = above;
        }
        burst
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn every_bit_of_a_flit_is_on_its_lane() {
        // Bit n of the bytes, from the lowest bit of the first up, is bit n mod 70 of flit n / 70.
        for flit in 0..BURST_FLITS {
            for bit in 0..64 {
                let mut burst = Burst {
                    controls: [Control::data(0, false); BURST_FLITS],
                    ..Burst::default()
                };
                let mut zero = [0; Burst::BYTES];
                burst.emit(&mut zero);
                burst.words[flit] = 1 << bit;
                let mut bytes = [0; Burst::BYTES];
                burst.emit(&mut bytes);
                let differs: Vec<_> = (0..Burst::BYTES * 8)
                    .filter(|n| (bytes[n / 8] ^ zero[n / 8]) >> (n % 8) & 1 != 0)
                    .collect();
                assert_eq!(differs, [70 * flit + bit]);
            }
        }
    }

    #[test]
    fn unreadable_bursts_are_idle() {
        let burst = Burst::parse(&[0xff; Burst::BYTES]);
        assert_eq!(burst, Burst::default(), "credit 7 does not exist");
        assert_eq!(burst.flits().count(), 0);
    }
}

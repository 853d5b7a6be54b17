//! Memory layout of datagrams, bells and receipts.

use phitwire_framing::carrier::frame::checksum;

use crate::nic::memory::Memory;

/// Longest datagram, in bytes.
pub const MOST_DATAGRAM_BYTES: usize = 1 << 16;
/// Number of slots that a target has for each source.
pub(super) const SLOTS: usize = 8;
/// Bytes of a source's bells at its target, and of a target's receipts at the source: one word per
/// slot.
pub(super) const LINE: usize = SLOTS * size_of::<u64>();

/// Describes a datagram: number, length and check. Zero means no datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bell(pub(super) u64);

impl Bell {
    const NUMBER_BITS: u32 = 15;
    const LENGTH_BITS: u32 = 17;
    const _FIT: () = assert!(Self::NUMBER_BITS + Self::LENGTH_BITS == u32::BITS);
    const _LONGEST: () = assert!(
        MOST_DATAGRAM_BYTES < 1 << Self::LENGTH_BITS,
        "the field holds the longest length"
    );

    pub(super) fn new(number: u16, data: &[u8]) -> Self {
        debug_assert!(
            data.len() <= MOST_DATAGRAM_BYTES,
            "the sender checked the length"
        );
        let check = u64::from(checksum(data));
        let number = u64::from(number) & ((1 << Self::NUMBER_BITS) - 1);
        Self(check << u32::BITS | number << Self::LENGTH_BITS | data.len() as u64)
    }

    pub(super) const fn length(self) -> usize {
        self.0 as usize & ((1 << Self::LENGTH_BITS) - 1)
    }

    /// Distance from `number` to the bell's number, modulo their range.
    pub(super) const fn behind(self, number: u16) -> u16 {
        let own = (self.0 >> Self::LENGTH_BITS) as u16;
        own.wrapping_sub(number) & ((1 << Self::NUMBER_BITS) - 1)
    }

    /// Whether the bell's check matches `data`.
    pub(super) fn describes(self, data: &[u8]) -> bool {
        (self.0 >> u32::BITS) as u32 == checksum(data)
    }
}

/// Locates the bells, receipts and slots in a NIC's memory. All NICs use the same layout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) base: u64,
    pub(super) processors: u64,
}

impl Layout {
    const PER_PROCESSOR: u64 = 2 * LINE as u64 + (SLOTS * MOST_DATAGRAM_BYTES) as u64;

    pub(super) fn bytes(processors: u16) -> u64 {
        u64::from(processors) * Self::PER_PROCESSOR
    }

    pub(super) fn bells(self, source: u16) -> u64 {
        self.base + u64::from(source) * LINE as u64
    }

    pub(super) fn receipts(self, target: u16) -> u64 {
        self.bells(target) + self.processors * LINE as u64
    }

    /// Address of slot `slot` of `source`.
    pub(super) fn slot(self, source: u16, slot: usize) -> u64 {
        let first = self.base + 2 * self.processors * LINE as u64;
        first + (u64::from(source) * SLOTS as u64 + slot as u64) * MOST_DATAGRAM_BYTES as u64
    }
}

pub(super) fn word(slot: usize) -> u64 {
    (slot * size_of::<u64>()) as u64
}

pub(super) fn line(memory: &Memory, address: u64) -> Option<[u64; SLOTS]> {
    let mut bytes = [0; LINE];
    memory.read(address, &mut bytes).ok()?;
    let words = bytes.as_chunks().0;
    Some(core::array::from_fn(|slot| u64::from_le_bytes(words[slot])))
}

//! Lanes: the assignment of a frame's bits to the three differential pairs (BlackWidow sec. 4.4 and
//! 7.7).
//!
//! The lanes carry a sequence of wire words of [`WORD_BITS`]. With n lanes in use, bit i of a word
//! travels on the (i mod n)-th of them, counted from the lowest lane number (the assignment of bits
//! is ours). A cable may swap lanes and exchange the two wires of a pair; [`Permutation`] describes
//! that, and [`training`](super::training) detects it.
//!
//! Since 24 is a multiple of 3, 2 and 1, the rule also holds for a unit of several words: its bit
//! i, counted from its last, travels on the (i mod n)-th lane.

/// Bits of a wire word: one lane carries a third, half, or all of them.
pub const WORD_BITS: u32 = 24;
/// Bytes of a wire word.
pub const WORD_BYTES: usize = WORD_BITS as usize / 8;
/// Mask of the bits of a wire word.
pub const WORD_MASK: u32 = (1 << WORD_BITS) - 1;

/// Lanes of a port.
pub const LANES: usize = 3;
/// Mask with all lanes in use.
pub const ALL_LANES: u8 = (1 << LANES) - 1;

const _: () = assert!((WORD_BITS as usize).is_multiple_of(LANES));
const _: () = assert!(
    (WORD_BITS as usize).is_multiple_of(2),
    "two lanes carry 12 bits each"
);

/// Bits i of a wire word with i mod `lanes` = `index`.
const fn stream_mask(lanes: u32, index: u32) -> u32 {
    (match lanes {
        1 => 0xff_ffff,
        2 => 0x55_5555,
        _ => 0x24_9249,
    }) << index
        & WORD_MASK
}

/// The bits of a wire word that travel on `lane` while the lanes in `active` are in use; 0 when
/// `lane` is not one of them.
#[inline]
pub const fn bits_of_lane(active: u8, lane: u8) -> u32 {
    let active = active & ALL_LANES;
    if lane as usize >= LANES || active & (1 << lane) == 0 {
        return 0;
    }
    let below = (active & ((1 << lane) - 1)).count_ones();
    stream_mask(active.count_ones(), below)
}

/// A cable's effect on the lanes: physical lane k of the receiver carries the sender's lane
/// `order[k]`, with inverted polarity if `invert[k]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Permutation {
    order: [u8; LANES],
    invert: [bool; LANES],
}

impl Default for Permutation {
    fn default() -> Self {
        Self::IDENTITY
    }
}

impl Permutation {
    /// A straight cable, which neither permutes nor inverts lanes.
    pub const IDENTITY: Self = Self {
        order: [0, 1, 2],
        invert: [false; LANES],
    };

    /// A cable; `None` unless `order` names each lane once.
    pub const fn new(order: [u8; LANES], invert: [bool; LANES]) -> Option<Self> {
        let mut seen = 0;
        let mut k = 0;
        while k < LANES {
            if order[k] as usize >= LANES {
                return None;
            }
            seen |= 1 << order[k];
            k += 1;
        }
        if seen == ALL_LANES {
            Some(Self { order, invert })
        } else {
            None
        }
    }

    /// The sender's lane on each physical lane of the receiver.
    pub const fn order(&self) -> [u8; LANES] {
        self.order
    }

    /// For each physical lane of the receiver, whether it is inverted.
    pub const fn invert(&self) -> [bool; LANES] {
        self.invert
    }

    /// Whether the cable neither permutes nor inverts lanes.
    #[inline]
    pub const fn is_identity(&self) -> bool {
        self.order[0] == 0
            && self.order[1] == 1
            && self.order[2] == 2
            && !self.invert[0]
            && !self.invert[1]
            && !self.invert[2]
    }
}

/// The path of each active lane: (stream at the sender, stream at the receiver, inverted).
fn streams(active: u8, cable: &Permutation) -> impl Iterator<Item = (u32, u32, bool)> {
    let active = active & ALL_LANES;
    let cable = *cable;
    let mut at_receiver = 0;
    (0..LANES).filter_map(move |k| {
        let lane = cable.order[k];
        if active & (1 << lane) == 0 {
            return None;
        }
        let at_sender = (active & ((1 << lane) - 1)).count_ones();
        at_receiver += 1;
        Some((at_sender, at_receiver - 1, cable.invert[k]))
    })
}

/// Moves the bits of stream `from` to stream `to`.
fn shift(bits: u32, from: u32, to: u32) -> u32 {
    if to >= from {
        bits << (to - from)
    } else {
        bits >> (from - to)
    }
}

/// The wire word received when the sender transmits `wire` on its lanes `active`. Without a lane in
/// use, nothing changes.
pub fn swizzle(wire: u32, active: u8, cable: &Permutation) -> u32 {
    let lanes = u32::from(active & ALL_LANES).count_ones();
    if lanes == 0 {
        return wire & WORD_MASK;
    }
    streams(active, cable).fold(0, |out, (from, to, invert)| {
        let bits = shift(wire & stream_mask(lanes, from), from, to);
        out | if invert {
            bits ^ stream_mask(lanes, to)
        } else {
            bits
        }
    })
}

/// The inverse of [`swizzle`]: the sender's wire word.
pub fn unswizzle(wire: u32, active: u8, cable: &Permutation) -> u32 {
    let lanes = u32::from(active & ALL_LANES).count_ones();
    if lanes == 0 {
        return wire & WORD_MASK;
    }
    streams(active, cable).fold(0, |out, (from, to, invert)| {
        let flip = if invert { stream_mask(lanes, to) } else { 0 };
        out | shift((wire ^ flip) & stream_mask(lanes, to), to, from)
    })
}

/// Applies `change` to each wire word (three bytes, big-endian); a remainder of fewer than three
/// bytes is left alone.
pub fn map_area(area: &mut [u8], mut change: impl FnMut(u32) -> u32) {
    for bytes in area.as_chunks_mut::<WORD_BYTES>().0 {
        let wire = change(u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]));
        bytes.copy_from_slice(&wire.to_be_bytes()[1..]);
    }
}

/// Passes `area` through `cable`; see [`swizzle`].
pub fn swizzle_area(area: &mut [u8], active: u8, cable: &Permutation) {
    if !cable.is_identity() {
        map_area(area, |wire| swizzle(wire, active, cable));
    }
}

/// The inverse of [`swizzle_area`]: undoes the effect of `cable`.
#[inline]
pub fn swizzle_area_back(area: &mut [u8], active: u8, cable: &Permutation) {
    if !cable.is_identity() {
        map_area(area, |wire| unswizzle(wire, active, cable));
    }
}

/// Flips the bits of `mask` in wire word number `word`; does nothing past the end.
pub fn flip(area: &mut [u8], word: usize, mask: u32) {
    if let Some(bytes) = area.as_chunks_mut::<WORD_BYTES>().0.get_mut(word) {
        let mask = (mask & WORD_MASK).to_be_bytes();
        for (byte, mask) in bytes.iter_mut().zip(&mask[1..]) {
            *byte ^= mask;
        }
    }
}

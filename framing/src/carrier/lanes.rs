//! Lanes: the assignment of a frame's bits to the differential pairs of a link.
//!
//! The lanes carry a sequence of wire words. With n lanes in use, bit i of a word travels on the
//! (i mod n)-th of them, counted from the lowest lane number (the assignment of bits is ours). How
//! many lanes a link has and how long its words are is the machine's choice: its [`Lanes`]. A cable
//! may swap lanes and exchange the two wires of a pair; [`Permutation`] describes that, and
//! [`training`](super::training) detects it.
//!
//! A word divides evenly among any number of the link's lanes, so the rule also holds for a unit of
//! several words: bit i of the unit, counted from its last, travels on the (i mod n)-th lane.

/// Maximum number of lanes of a link. No word of 8, 16, 24 or 32 bits divides among one to five.
pub const MAX_LANES: usize = 4;

/// Masks of the bits i with i mod n = 0, by n.
const EVERY: [u32; MAX_LANES + 1] = {
    let mut masks = [0; MAX_LANES + 1];
    let mut lanes = 1;
    while lanes <= MAX_LANES {
        let mut bit = 0;
        while bit < u32::BITS as usize {
            masks[lanes] |= 1 << bit;
            bit += lanes;
        }
        lanes += 1;
    }
    masks
};

/// The lanes of a machine's links, and the wire words that they carry.
///
/// ```
/// use phitwire_framing::carrier::lanes::Lanes;
///
/// const FOUR: Lanes = Lanes::new(4, 24);
/// assert_eq!(FOUR.bits_of(0b1111, 1), 0x222222);
/// assert_eq!(FOUR.bits_of(0b1010, 1), 0x555555);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lanes {
    count: u8,
    word_bytes: u8,
}

impl Lanes {
    /// `count` lanes that carry words of `word_bits`.
    ///
    /// # Panics
    /// If there are no lanes, or more than [`MAX_LANES`]; if a word is not one to four whole bytes;
    /// or if the bits of a word do not divide evenly among every number of lanes up to `count`.
    pub const fn new(count: usize, word_bits: u32) -> Self {
        assert!(0 < count && count <= MAX_LANES, "a link has 1 to 4 lanes");
        assert!(
            word_bits.is_multiple_of(8) && 0 < word_bits && word_bits <= u32::BITS,
            "a wire word has 8, 16, 24 or 32 bits"
        );
        let mut in_use = 1;
        while in_use <= count {
            assert!(
                word_bits.is_multiple_of(in_use as u32),
                "a wire word divides evenly among any number of the lanes"
            );
            in_use += 1;
        }
        Self {
            count: count as u8,
            word_bytes: (word_bits / 8) as u8,
        }
    }

    /// Number of lanes, at least 1.
    #[inline]
    pub const fn count(self) -> usize {
        self.count as usize
    }

    /// Mask with all lanes in use.
    #[inline]
    pub const fn all(self) -> u8 {
        (1 << self.count) - 1
    }

    /// Bits of a wire word.
    #[inline]
    pub const fn word_bits(self) -> u32 {
        8 * self.word_bytes as u32
    }

    /// Bytes of a wire word.
    #[inline]
    pub const fn word_bytes(self) -> usize {
        self.word_bytes as usize
    }

    /// Mask of the bits of a wire word.
    #[inline]
    pub const fn word_mask(self) -> u32 {
        u32::MAX >> (u32::BITS - self.word_bits())
    }

    /// Bits i of a wire word with i mod `in_use` = `index`.
    #[inline]
    pub(super) const fn stream_mask(self, in_use: u32, index: u32) -> u32 {
        EVERY[in_use as usize] << index & self.word_mask()
    }

    /// The bits of a wire word that travel on `lane` while the lanes in `active` are in use; 0 when
    /// `lane` is not one of them.
    #[inline]
    pub const fn bits_of(self, active: u8, lane: u8) -> u32 {
        let active = active & self.all();
        if lane >= self.count || active & (1 << lane) == 0 {
            return 0;
        }
        let below = (active & ((1 << lane) - 1)).count_ones();
        self.stream_mask(active.count_ones(), below)
    }

    /// The path of each active lane: (stream at the sender, stream at the receiver, inverted).
    fn streams(self, active: u8, cable: &Permutation) -> impl Iterator<Item = (u32, u32, bool)> {
        let active = active & self.all();
        let cable = *cable;
        let mut at_receiver = 0;
        (0..self.count()).filter_map(move |k| {
            let lane = cable.order[k];
            if active & (1 << lane) == 0 {
                return None;
            }
            let at_sender = (active & ((1 << lane) - 1)).count_ones();
            at_receiver += 1;
            Some((at_sender, at_receiver - 1, cable.invert[k]))
        })
    }

    /// The wire word received when the sender transmits `wire` on its lanes `active`. Without a
    /// lane in use, nothing changes.
    pub fn swizzle(self, wire: u32, active: u8, cable: &Permutation) -> u32 {
        let in_use = (active & self.all()).count_ones();
        if in_use == 0 {
            return wire & self.word_mask();
        }
        let streams = self.streams(active, cable);
        streams.fold(0, |out, (from, to, invert)| {
            let bits = shift(wire & self.stream_mask(in_use, from), from, to);
            out | if invert {
                bits ^ self.stream_mask(in_use, to)
            } else {
                bits
            }
        })
    }

    /// The inverse of [`swizzle`](Self::swizzle): the sender's wire word.
    pub fn unswizzle(self, wire: u32, active: u8, cable: &Permutation) -> u32 {
        let in_use = (active & self.all()).count_ones();
        if in_use == 0 {
            return wire & self.word_mask();
        }
        let streams = self.streams(active, cable);
        streams.fold(0, |out, (from, to, invert)| {
            let flip = if invert {
                self.stream_mask(in_use, to)
            } else {
                0
            };
            out | shift((wire ^ flip) & self.stream_mask(in_use, to), to, from)
        })
    }

    /// The wire words of `area`, big-endian; the bytes after the last whole word are left out.
    #[inline]
    pub fn words(self, area: &[u8]) -> impl Iterator<Item = u32> + Clone + use<'_> {
        area.chunks_exact(self.word_bytes()).map(word)
    }

    /// Applies `change` to each wire word; the bytes after the last whole word are left alone.
    pub fn map_area(self, area: &mut [u8], mut change: impl FnMut(u32) -> u32) {
        for bytes in area.chunks_exact_mut(self.word_bytes()) {
            let changed = change(word(bytes)).to_be_bytes();
            bytes.copy_from_slice(&changed[changed.len() - bytes.len()..]);
        }
    }

    /// Passes `area` through `cable`; see [`swizzle`](Self::swizzle).
    #[inline]
    pub fn swizzle_area(self, area: &mut [u8], active: u8, cable: &Permutation) {
        if !cable.is_identity() {
            self.map_area(area, |wire| self.swizzle(wire, active, cable));
        }
    }

    /// The inverse of [`swizzle_area`](Self::swizzle_area): undoes the effect of `cable`.
    #[inline]
    pub fn swizzle_area_back(self, area: &mut [u8], active: u8, cable: &Permutation) {
        if !cable.is_identity() {
            self.map_area(area, |wire| self.unswizzle(wire, active, cable));
        }
    }

    /// Flips the bits of `mask` in wire word number `index`; does nothing past the end.
    pub fn flip(self, area: &mut [u8], index: usize, mask: u32) {
        if let Some(bytes) = area.chunks_exact_mut(self.word_bytes()).nth(index) {
            self.map_area(bytes, |wire| wire ^ mask);
        }
    }
}

/// A wire word from its bytes.
#[inline]
fn word(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .fold(0, |word, byte| word << 8 | u32::from(*byte))
}

/// Moves the bits of stream `from` to stream `to`.
fn shift(bits: u32, from: u32, to: u32) -> u32 {
    if to >= from {
        bits << (to - from)
    } else {
        bits >> (from - to)
    }
}

/// A cable's effect on the lanes: physical lane k of the receiver carries the sender's lane
/// `order[k]`, with inverted polarity if `invert[k]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Permutation {
    order: [u8; MAX_LANES],
    invert: [bool; MAX_LANES],
}

impl Default for Permutation {
    fn default() -> Self {
        Self::IDENTITY
    }
}

impl Permutation {
    /// A straight cable, which neither permutes nor inverts lanes.
    pub const IDENTITY: Self = Self {
        order: [0, 1, 2, 3],
        invert: [false; MAX_LANES],
    };

    /// A cable of as many lanes as `order` and `invert` have, at most [`MAX_LANES`]; `None` unless
    /// `order` names each of them once.
    pub fn new(order: impl AsRef<[u8]>, invert: impl AsRef<[bool]>) -> Option<Self> {
        let (order, invert) = (order.as_ref(), invert.as_ref());
        let mut cable = Self::IDENTITY;
        cable.order.get_mut(..order.len())?.copy_from_slice(order);
        if invert.len() != order.len() {
            return None;
        }
        cable.invert[..invert.len()].copy_from_slice(invert);
        let each_once = (0..order.len() as u8).all(|lane| order.contains(&lane));
        each_once.then_some(cable)
    }

    /// The sender's lane on each physical lane of the receiver. Lanes that the link does not have
    /// are straight.
    pub const fn order(&self) -> [u8; MAX_LANES] {
        self.order
    }

    /// For each physical lane of the receiver, whether it is inverted.
    pub const fn invert(&self) -> [bool; MAX_LANES] {
        self.invert
    }

    /// Whether the cable neither permutes nor inverts lanes.
    #[inline]
    pub const fn is_identity(&self) -> bool {
        const STRAIGHT: u32 = u32::from_be_bytes(Permutation::IDENTITY.order);
        let [a, b, c, d] = self.invert;
        u32::from_be_bytes(self.order) == STRAIGHT && !(a | b | c | d)
    }
}

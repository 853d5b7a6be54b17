//! The flit: five phits of 14 bits, 64 bits of word and six of control (T3E sec. 1).
//!
//! Three control bits give the kind of flit, three the channel of a returned credit. T3E sec. 1
//! gives their number; the code is ours.

/// Virtual channels with buffers: two for requests, two for responses, one adaptive (T3E sec. 5).
pub const VCS: usize = 5;

/// Numbers and names of the virtual channels.
pub mod vc {
    /// Requests on VC0.
    pub const REQUEST: usize = 0;
    /// Responses on VC0.
    pub const RESPONSE: usize = 2;
    /// Adaptive requests and responses.
    pub const ADAPTIVE: usize = 4;
    /// Deterministic channels.
    pub const DETERMINISTIC: core::ops::Range<usize> = 0..4;

    /// Names of the channels, by number (T3E sec. 5).
    pub const NAMES: [&str; super::VCS] = [
        "request VC0",
        "request VC1",
        "response VC0",
        "response VC1",
        "adaptive",
    ];

    /// The deterministic channel of requests or responses on VC0 or VC1.
    #[inline]
    pub const fn of(response: bool, vc: u8) -> usize {
        response as usize * RESPONSE + vc as usize
    }
}

/// The kind of a flit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlitKind {
    /// Empty, except for an optional credit.
    Idle,
    /// Part of a packet on a virtual channel, below [`VCS`].
    Data(u8),
    /// A barrier or eureka packet.
    Barrier,
    /// Part of a maintenance packet.
    Maintenance,
}

/// The six control bits: the kind of flit in the lowest three, the channel of a returned credit in
/// the others. The bit above them is not a control bit but the line code's mark of a packet's first
/// flit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Control(u8);

impl Control {
    /// An idle flit without a credit.
    pub const IDLE: Self = Self(0);
    const BARRIER: u8 = 6;
    const MAINTENANCE: u8 = 7;
    const HEAD: u8 = 0x40;

    /// Control bits of a flit of a packet on `vc`, below [`VCS`].
    #[inline]
    pub const fn data(vc: usize, is_head: bool) -> Self {
        Self((1 + vc as u8) | if is_head { Self::HEAD } else { 0 })
    }

    /// Control bits of a barrier packet, which is a single flit.
    #[inline]
    pub const fn barrier() -> Self {
        Self(Self::BARRIER | Self::HEAD)
    }

    /// Control bits of a flit of a maintenance packet.
    #[inline]
    pub const fn maintenance(is_head: bool) -> Self {
        Self(Self::MAINTENANCE | if is_head { Self::HEAD } else { 0 })
    }

    /// Adds a credit of `vc`, below [`VCS`]; it replaces an earlier one.
    #[inline]
    #[must_use]
    pub const fn with_credit(self, vc: usize) -> Self {
        Self(self.0 & !0x38 | (1 + vc as u8) << 3)
    }

    /// The kind of flit.
    #[inline]
    pub const fn kind(self) -> FlitKind {
        match self.0 & 7 {
            0 => FlitKind::Idle,
            Self::BARRIER => FlitKind::Barrier,
            Self::MAINTENANCE => FlitKind::Maintenance,
            vc => FlitKind::Data(vc - 1),
        }
    }

    /// The virtual channel of the returned credit, if any.
    #[inline]
    pub const fn credit(self) -> Option<usize> {
        match self.0 >> 3 & 7 {
            0 => None,
            vc => Some(vc as usize - 1),
        }
    }

    /// Whether this is the first flit of a packet.
    #[inline]
    pub const fn is_head(self) -> bool {
        self.0 & Self::HEAD != 0
    }

    /// The six control bits, without the mark.
    #[inline]
    pub const fn bits(self) -> u8 {
        self.0 & 0x3f
    }

    /// The control bits and the mark; `None` for invalid credit codes (6, 7), or an idle flit with
    /// a mark.
    #[inline]
    pub const fn parse(bits: u8, is_head: bool) -> Option<Self> {
        let bad_credit = bits >> 3 & 7 > VCS as u8;
        let bad_mark = is_head && bits & 7 == 0;
        if bits > 0x3f || bad_credit || bad_mark {
            return None;
        }
        Some(Self(bits | if is_head { Self::HEAD } else { 0 }))
    }
}

/// A flit. The default is an idle one with a word of zeros.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flit {
    /// The 64 bits that a packet's check covers.
    pub word: u64,
    /// The control bits, and the mark of a packet's first flit.
    pub control: Control,
}

impl Flit {
    /// Bits on the wire: the word and six control bits.
    pub const BITS: u32 = 70;

    /// A flit of a packet on `vc`, below [`VCS`].
    #[inline]
    pub const fn data(word: u64, vc: usize, is_head: bool) -> Self {
        let control = Control::data(vc, is_head);
        Self { word, control }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_kinds_and_six_credits_are_the_codes() {
        let mut kinds = 0;
        for bits in 0..=u8::MAX {
            let Some(control) = Control::parse(bits, false) else {
                continue;
            };
            kinds += 1;
            assert_eq!(control.bits(), bits);
            let made = match control.kind() {
                FlitKind::Idle => Control::IDLE,
                FlitKind::Data(vc) => Control::data(vc.into(), false),
                FlitKind::Barrier => Control(Control::BARRIER),
                FlitKind::Maintenance => Control::maintenance(false),
            };
            let again = control.credit().map_or(made, |vc| made.with_credit(vc));
            assert_eq!(again, control);
        }
        assert_eq!(kinds, 8 * 6);
        assert_eq!(Control::parse(0, true), None, "an idle flit begins nothing");
        assert!(Control::data(4, true).with_credit(2).is_head());
    }
}

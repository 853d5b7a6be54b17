//! How much a description may be, so that there is an answer at once, no matter who wrote it.

/// Bytes of a description at most. The largest network of one slice, 32,768 processors and 113,664
/// links, takes 5.5 MB; as many bytes of the worst TOML are read in less than a second.
pub const MAX_DESCRIPTION_BYTES: usize = 8 << 20;

/// Mistakes told of one description; the others are counted. A thousand consequences of one slip
/// help nobody.
pub const MAX_MISTAKES: usize = 50;

/// Chips of a network at most. The generator makes no more than 40,000 of them, and every chip has
/// a link, whose ids end there too.
pub const MAX_CHIPS: usize = 1 << 16;

/// Real nanoseconds per emulated one at most, of a paced clock.
pub(crate) const MAX_DILATION: u32 = 1_000_000_000;

/// Bytes up to which all mistakes of the syntax are collected; of a longer text, the first.
pub(crate) const MAX_RECOVERED_BYTES: usize = 1 << 18;

/// How far packets are followed through the registers of a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// As far as [`MAX_STEPS`] steps take: the whole way but in the largest networks.
    #[default]
    Bounded,
    /// To the end, however long that takes: half a minute in the largest network.
    Exact,
}

/// Steps of a bounded check: looks at a packet in a router, and ports that it may go on by.
pub(crate) const MAX_STEPS: u64 = 150_000_000;

impl Effort {
    /// Steps that may be taken.
    pub const fn steps(self) -> u64 {
        match self {
            Self::Bounded => MAX_STEPS,
            Self::Exact => u64::MAX,
        }
    }
}

//! Limits of descriptions, so that reading one never takes long, whatever its source.

/// Largest description, in bytes. The largest network of one slice, 32,768 processors and 113,664
/// links, takes 5.5 MB; that many bytes of the worst TOML are read in less than a second.
pub const MAX_DESCRIPTION_BYTES: usize = 8 << 20;

/// Maximum number of mistakes reported of one description, which may all have one cause; further
/// ones are only counted.
pub const MAX_MISTAKES: usize = 50;

/// Maximum number of chips in a network. The generator makes at most 40,000; every chip has a link,
/// and link ids end here too.
pub const MAX_CHIPS: usize = 1 << 16;

/// Largest dilation of a paced clock, in real nanoseconds per emulated one.
pub(crate) const MAX_DILATION: u32 = 1_000_000_000;

/// Longest text, in bytes, for which all syntax errors are collected; beyond, only the first.
pub(crate) const MAX_RECOVERED_BYTES: usize = 1 << 18;

/// How far to follow packets through the registers of a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// Up to [`MAX_STEPS`] steps: to the end, except in the largest networks.
    #[default]
    Bounded,
    /// To the end, however long that takes: half a minute in the largest network.
    Exact,
}

/// Steps of a bounded check. A step inspects a packet in a router, or a port that it may leave by.
pub(crate) const MAX_STEPS: u64 = 150_000_000;

impl Effort {
    /// Maximum number of steps.
    pub const fn steps(self) -> u64 {
        match self {
            Self::Bounded => MAX_STEPS,
            Self::Exact => u64::MAX,
        }
    }
}

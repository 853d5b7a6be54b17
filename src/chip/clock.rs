//! The clock of a chip, and what it moves at once.

/// What moves through the stages of a chip at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Grain {
    /// Phits or flits, as on the chip.
    #[default]
    Flit,
    /// Whole packets. Not every chip can: see what its core says.
    Packet,
}

/// Which clock drives the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouterClock {
    /// The pipeline runs until nothing can move; cycles are counted but take no time.
    FreeRunning,
    /// A cycle takes as long as on the chip, times `dilation`, in the driver's time. With 1 that is
    /// virtual time, or real speed.
    Paced {
        /// Nanoseconds of the driver per emulated nanosecond; 0 counts as 1.
        dilation: u32,
    },
}

impl RouterClock {
    /// Picoseconds of the driver that a cycle of `cycle_ps` takes; `None` when free-running.
    pub fn cycle_ps(self, cycle_ps: u64) -> Option<u64> {
        match self {
            Self::FreeRunning => None,
            Self::Paced { dilation } => Some(cycle_ps * u64::from(dilation.max(1))),
        }
    }
}

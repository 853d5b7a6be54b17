//! The clock of a chip.

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

//! Integer time: picoseconds since an arbitrary start, passed in by the driver of a node.

use core::ops::{Add, AddAssign, Sub};

/// A point in time, in picoseconds since the driver's start. A `u64` lasts 213 days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

/// A span of time in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

impl Time {
    /// The driver's start.
    pub const ZERO: Self = Self(0);
    /// Later than any time a driver can reach.
    pub const NEVER: Self = Self(u64::MAX);

    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    pub const fn from_ns(ns: u64) -> Self {
        Self(ns.saturating_mul(1_000))
    }

    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Whole nanoseconds since the start.
    pub const fn as_ns(self) -> u64 {
        self.0 / 1_000
    }

    /// The span since `earlier`.
    ///
    /// # Panics
    /// If `earlier` is later than `self`: time never runs backwards.
    pub const fn since(self, earlier: Self) -> Duration {
        assert!(self.0 >= earlier.0, "time ran backwards");
        Duration(self.0 - earlier.0)
    }
}

impl Duration {
    pub const ZERO: Self = Self(0);

    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    pub const fn from_ns(ns: u64) -> Self {
        Self(ns.saturating_mul(1_000))
    }

    pub const fn from_us(us: u64) -> Self {
        Self(us.saturating_mul(1_000_000))
    }

    pub const fn from_ms(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000_000_000))
    }

    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Whole nanoseconds in the span.
    pub const fn as_ns(self) -> u64 {
        self.0 / 1_000
    }

    /// The span times a whole number, saturating.
    pub const fn times(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Add<Duration> for Time {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Duration {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

/// Whether pipelines and links are paced, and how fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Clock {
    /// Everything moves as soon as it can; cycles are counted but take no time.
    FreeRunning,
    /// Everything takes as long as on the chip, times `dilation`, in driver time. With a dilation
    /// of 1, virtual time is the chip's time, and processes run at the chip's speed.
    Paced {
        /// Driver nanoseconds per emulated nanosecond; 0 counts as 1.
        dilation: u32,
    },
}

impl Clock {
    /// The factor from emulated time to driver time.
    pub fn dilation(self) -> u64 {
        match self {
            Self::FreeRunning => 1,
            Self::Paced { dilation } => dilation.max(1).into(),
        }
    }

    /// Driver picoseconds of a cycle of `cycle_ps`; `None` when free-running.
    pub(crate) fn cycle_ps(self, cycle_ps: u64) -> Option<u64> {
        (self != Self::FreeRunning).then(|| cycle_ps * self.dilation())
    }

    /// `ms` milliseconds of driver time in emulated nanoseconds: fewer under a paced clock, but at
    /// least one. A network's timeouts are in driver time, so that no clock reverses their order;
    /// chip registers are in emulated time.
    pub fn emulated_ns(self, ms: u64) -> u64 {
        let ns = ms.saturating_mul(1_000_000);
        match self {
            Self::FreeRunning => ns,
            Self::Paced { .. } => (ns / self.dilation()).max(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "time ran backwards")]
    fn time_never_runs_backwards() {
        let _ = Time::from_ns(1).since(Time::from_ns(2));
    }

    #[test]
    fn units_agree() {
        assert_eq!(Time::ZERO + Duration::from_us(3), Time::from_ns(3_000));
        assert_eq!(Duration::from_ms(2).as_ns(), 2_000_000);
    }
}

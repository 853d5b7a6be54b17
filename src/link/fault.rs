//! Faults and repairs of a link, by command.

use super::impair::Probability;
use super::injection::ErrorInjection;
use crate::time::Duration;

/// A fault or repair of a link. No machine's links support all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkFault {
    /// Damages the next packet before its check.
    SoftError,
    /// Takes the link down until [`Self::Up`].
    Down,
    /// Brings the link up again.
    Up,
    /// Resends everything unacknowledged.
    ForceRetry,
    /// Corrupts the CRC of the next unit that has one.
    BadCrc,
    /// Reinitialises the lanes.
    Reinit,
    /// Loses the receive clock for this long.
    LoseClock(Duration),
    /// Injects bit errors from now on.
    Inject(ErrorInjection),
    /// Flips each bit of a transmit lane with this probability from now on, above the layer that
    /// resends: resends do not repair it.
    LaneNoise { lane: u8, per_bit: Probability },
}

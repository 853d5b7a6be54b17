//! Link profiles as adapted to their use: between processes, or behind a dilated clock.

use super::config::{LinkClock, LinkProfile};
use crate::time::Duration;

/// Time that an acknowledgement between processes waits to be piggybacked: a separate frame wakes
/// both processes, and in large labs an operation takes most of a millisecond. Shorter than the
/// peer's probe timeout, a quarter of the shortest retry timeout.
const ACK_DELAY: Duration = Duration::from_us(900);

impl LinkProfile {
    /// The profile for links between processes: times in driver time, none shorter than in
    /// [`Self::live`].
    ///
    /// The chip's times are for round trips of 100 ns. Two ends that expect a reply within
    /// microseconds over a wire that takes a hundred of them probe again long before it can arrive,
    /// and their resends crowd out everything else.
    #[must_use]
    pub fn over_real_wires(&self, clock: LinkClock) -> Self {
        let live = Self::live();
        let own = self.dilated(clock.dilation());
        Self {
            emulated_time: false,
            ack_delay: own.ack_delay.max(live.ack_delay),
            min_retry_timeout: own.min_retry_timeout.max(live.min_retry_timeout),
            max_retry_timeout: own.max_retry_timeout.max(live.max_retry_timeout),
            max_probes: live.max_probes,
            min_reorder_hold: own.min_reorder_hold.max(live.min_reorder_hold),
            max_reorder_hold: own.max_reorder_hold.max(live.max_reorder_hold),
            packet_silence: own.packet_silence.max(live.packet_silence),
            min_training_interval: own.min_training_interval.max(live.min_training_interval),
            max_training_interval: own.max_training_interval.max(live.max_training_interval),
            heal: own.heal.max(live.heal),
            ..own
        }
    }

    /// The profile with a topology's `give_up_ms` and `silence_ms` (0: never), if peers are behind
    /// real wires; these are wire times, which no dilation stretches. In virtual time both are off:
    /// only commands silence a link, and idle links sleep.
    #[must_use]
    pub(crate) fn patient(self, real_wires: bool, give_up_ms: u64, silence_ms: u64) -> Self {
        let time = |ms: u64| (real_wires && ms > 0).then_some(Duration::from_ms(ms));
        let ack_delay = match real_wires {
            true => self.ack_delay.max(ACK_DELAY),
            false => self.ack_delay,
        };
        Self {
            ack_delay,
            give_up: time(give_up_ms),
            silence: time(silence_ms),
            ..self
        }
    }

    /// The profile in driver time: emulated times multiplied by `factor`.
    #[must_use]
    pub(crate) fn dilated(&self, factor: u64) -> Self {
        if !self.emulated_time {
            return self.clone();
        }
        Self {
            ack_delay: self.ack_delay.times(factor),
            min_retry_timeout: self.min_retry_timeout.times(factor),
            max_retry_timeout: self.max_retry_timeout.times(factor),
            min_reorder_hold: self.min_reorder_hold.times(factor),
            max_reorder_hold: self.max_reorder_hold.times(factor),
            packet_silence: self.packet_silence.times(factor),
            min_training_interval: self.min_training_interval.times(factor),
            max_training_interval: self.max_training_interval.times(factor),
            give_up: self.give_up.map(|time| time.times(factor)),
            silence: self.silence.map(|time| time.times(factor)),
            heal: self.heal.map(|time| time.times(factor)),
            ..self.clone()
        }
    }
}

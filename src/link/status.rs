//! Status of a link end.

use super::common::Common;
use super::config::LinkConfig;
use super::counters::LinkCounters;
use super::event::LinkState;
use super::lanes::LaneWatch;
use super::outgoing::Outgoing;
use crate::time::{Duration, Time};

/// The status that every link end reports.
pub trait EndStatus {
    /// The common parts of a link end, of its sending half and of its receiving half.
    fn parts(&self) -> (&Common, &Outgoing, &LaneWatch);
    /// Packets taken from the core that the peer has not acknowledged.
    fn unacknowledged_packets(&self) -> u64;

    /// The part that all link control blocks share.
    #[inline]
    fn link(&self) -> &Common {
        self.parts().0
    }

    /// The part that all sending halves share.
    #[inline]
    fn sending(&self) -> &Outgoing {
        self.parts().1
    }

    /// Current time by which a missing frame may be late before it counts as lost.
    fn reorder_hold(&self) -> Duration {
        Duration::ZERO
    }

    /// Whether data flows: `link_active` of BlackWidow sec. 7.7.
    #[inline]
    fn is_active(&self) -> bool {
        self.link().state == LinkState::Active
    }

    /// Current link state.
    fn state(&self) -> LinkState {
        self.link().state
    }

    /// Counters so far; those that this kind of link does not have stay zero.
    fn counters(&self) -> &LinkCounters {
        &self.link().counters
    }

    /// Names, times, clock, rate, cable.
    fn config(&self) -> &LinkConfig {
        &self.link().config
    }

    /// When a data frame of the peer was last accepted, in any session; `None` before the first.
    fn last_accepted(&self) -> Option<Time> {
        self.link().liveness.last_accepted()
    }

    /// Whether [`LinkEvent::Silent`](super::LinkEvent::Silent) was reported and nothing has been
    /// heard since.
    fn is_silent(&self) -> bool {
        self.link().liveness.is_silent()
    }

    /// Whether [`LinkEvent::Stalled`](super::LinkEvent::Stalled) was reported, or a session ended
    /// for a stall recently, and nothing has been acknowledged since.
    fn is_stalled(&self) -> bool {
        self.link().liveness.is_stalled()
    }

    /// Smoothed round trip of the link, once one was measured.
    fn round_trip(&self) -> Option<Duration> {
        self.sending().round_trip.smoothed()
    }

    /// Current retry timeout.
    fn retry_timeout(&self) -> Duration {
        self.sending().round_trip.timeout()
    }

    /// Transmit lanes, one bit per lane; 0 until the link was active.
    fn tx_lanes(&self) -> u8 {
        self.sending().lanes
    }

    /// Receive lanes, one bit per lane by the sender's numbers; 0 until the link was active.
    fn rx_lanes(&self) -> u8 {
        self.parts().2.active()
    }

    /// Epochs of this end and, as far as it knows, of the peer; 0 while unknown.
    fn epochs(&self) -> (u32, u32) {
        let handshake = &self.link().handshake;
        (handshake.epoch, handshake.peer_epoch)
    }
}

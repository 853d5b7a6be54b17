//! States of a link end, and its events for the maintenance controller.

use super::config::EndName;
use crate::time::Duration;

/// State of a link end. [`LinkState::Active`] is `link_active` of BlackWidow sec. 7.7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkState {
    /// Taken down by command; replies only that it is down.
    Disabled,
    /// Channel initialisation: training frames are sent, the peer has not agreed yet.
    Training,
    /// The other end is not the one that the topology names; training continues.
    Refused,
    /// Data flows.
    Active,
    /// No lane is left in one of the two directions.
    Dead,
}

phitwire_framing::listed!(LinkState {
    Disabled = "disabled",
    Training = "training",
    Refused = "refused",
    Active = "active",
    Dead = "dead",
});

/// Why `link_active` was deasserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DownReason {
    /// A command at this end took the link down.
    Command,
    /// The peer reports that it was taken down by command.
    PeerDown,
    /// Every lane of one direction is decommissioned (BlackWidow sec. 7.7; per direction is our
    /// reading).
    NoLanes,
    /// The peer is another incarnation; the link comes up again automatically.
    PeerRestarted,
    /// No frame was accepted for the profile's `give_up`.
    Silence,
    /// The peer was heard, but acknowledged nothing for the profile's `give_up`; a new session
    /// follows automatically.
    Stalled,
    /// Frames arrived for the profile's `heal` and none was usable, although the peer was probed; a
    /// new session follows automatically.
    Unusable,
    /// A packet or set was requested for 60 times the profile's `heal` and did not arrive, although
    /// others did; a new session follows automatically.
    Missing,
}

/// An event of a link end, from
/// [`NodeLink::poll_event`](super::NodeLink::poll_event).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// Channel initialisation succeeded: `link_active` is asserted.
    Up {
        peer: EndName,
        /// Transmit lanes, one bit per lane.
        tx_lanes: u8,
        /// Receive lanes, one bit per lane.
        rx_lanes: u8,
    },
    /// `link_active` was deasserted.
    Down {
        why: DownReason,
        /// Packets discarded from the retry buffer; some may have arrived.
        discarded_packets: u64,
    },
    /// The peer's process was replaced. Everything inside the old one is lost; endpoints time out.
    PeerRestarted {
        /// Our packets that the old incarnation had not acknowledged, discarded here.
        discarded_packets: u64,
    },
    /// No frame was accepted for the profile's `silence`, although the peer was probed. Nothing is
    /// discarded, and `link_active` stays.
    Silent,
    /// A frame was accepted in the same session after [`Self::Silent`].
    Heard {
        /// Driver time from the last frame accepted before the silence to this one.
        after: Duration,
    },
    /// The peer is heard, but acknowledged nothing for the profile's `silence`: the path may
    /// swallow long frames. This end discards nothing; the peer, which keeps missing the same
    /// packet, begins a new session after 60 times its `heal` ([`DownReason::Missing`]). Also
    /// reported before a session is given up because of a stall.
    Stalled,
    /// The peer acknowledges again after [`Self::Stalled`]. If nothing more is sent, a stall is
    /// forgotten without an event after 30 times the profile's `silence`.
    Resumed,
    /// Too many retries on a lane: this end stopped receiving on it.
    LaneDegraded {
        /// The decommissioned lane.
        lane: u8,
        /// The remaining receive lanes, one bit per lane.
        left: u8,
    },
    /// The peer receives on fewer lanes, or on more after a false request was undone.
    PeerDegraded {
        /// The lanes that this end now transmits on, one bit per lane.
        left: u8,
    },
    /// The link does not come up because the other end does not match the topology.
    Refused {
        /// Expected and found values, human-readable.
        message: String,
    },
    /// The lanes were reinitialised after too many consecutive sets with a bad CRC.
    Reinitialised,
    /// A packet was damaged inside this node and sent marked as poisoned.
    Poisoned {
        /// Virtual channel of the packet, 0 to 7.
        vc: u8,
    },
    /// A packet failed its check before transmission and was sent marked `soft_error`.
    SoftError {
        /// Virtual channel of the packet.
        vc: u8,
    },
}

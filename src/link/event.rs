//! States of a link end and what it reports to the maintenance controller.

use super::config::EndName;
use crate::time::Duration;

/// Where a link end stands. [`LinkState::Active`] is the paper's `link_active` (section 7.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkState {
    /// Taken down by command; sends nothing but the answer that it is down.
    Disabled,
    /// Channel initialisation: training frames go out, the peer has not agreed yet.
    Training,
    /// The other end of the cable is not the one that the topology names; training goes on.
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
    /// The peer says that it was taken down by command.
    PeerDown,
    /// Every lane of one direction is decommissioned (paper, section 7.7; per direction is our
    /// reading).
    NoLanes,
    /// The peer is another incarnation; the link comes up again by itself.
    PeerRestarted,
    /// Nothing was heard for as long as the profile's `give_up` allows.
    Silence,
    /// The peer was heard, but for as long as the profile's `give_up` allows it acknowledged
    /// nothing of what it was sent; the link comes up again by itself, as a new session.
    Stalled,
    /// For as long as the profile's `heal` allows, frames came and none could be used, although the
    /// peer was asked for one; the link comes up again by itself, as a new session.
    Unusable,
    /// For 60 times the profile's `heal` the same packet or set was asked for and did not come,
    /// although others came; the link comes up again by itself, as a new session.
    Missing,
}

/// What a link end reports, oldest first by
/// [`LinkControlBlock::poll_event`](super::LinkControlBlock::poll_event).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// Channel initialisation succeeded: `link_active` is asserted.
    Up {
        /// Who is at the other end.
        peer: EndName,
        /// Lanes that this end transmits on, one bit per lane.
        tx_lanes: u8,
        /// Lanes that this end receives on, one bit per lane.
        rx_lanes: u8,
    },
    /// `link_active` is deasserted.
    Down {
        /// Why.
        why: DownReason,
        /// Packets that were in the retry buffer and are discarded: they may or may not have
        /// arrived.
        discarded_packets: u64,
    },
    /// The peer's process is a new one. What was inside the old one is lost; end points time out.
    PeerRestarted {
        /// Packets of ours that the old incarnation had not acknowledged, discarded here.
        discarded_packets: u64,
    },
    /// Nothing was accepted from the peer for as long as the profile's `silence` allows, although
    /// it was asked. Nothing is discarded, and `link_active` stays.
    Silent,
    /// A frame of a peer that had been [`Self::Silent`] was accepted in the same session.
    Heard {
        /// Driver's time between the last frame accepted before the silence and this one.
        after: Duration,
    },
    /// The peer can be heard, but for as long as the profile's `silence` allows it has acknowledged
    /// nothing of what it was sent: frames that are not short may be swallowed on the way. This end
    /// discards nothing; the other, which misses the same packet all the while, begins a new
    /// session after 60 times its `heal` ([`DownReason::Missing`]). Reported also before a session
    /// is given up for it.
    Stalled,
    /// A peer acknowledges again after [`Self::Stalled`]. Where nothing more is sent, a stall is
    /// forgotten without an event, after 30 times the profile's `silence`.
    Moves,
    /// Too many retries on a lane: this end stopped receiving on it.
    LaneDegraded {
        /// The decommissioned lane, 0 to 2.
        lane: u8,
        /// The lanes still received on, one bit per lane.
        left: u8,
    },
    /// The peer receives on fewer lanes from now on.
    PeerDegraded {
        /// The lanes that this end still transmits on, one bit per lane.
        left: u8,
    },
    /// The link does not come up because the other end is not what the topology says.
    Refused {
        /// What was expected and what was found, for a person to read.
        message: String,
    },
    /// So many sets in a row had a bad CRC that the lanes were initialised again.
    Reinitialised,
    /// A packet was found damaged inside this node and left marked as poisoned.
    Poisoned {
        /// Its virtual channel, 0 to 7.
        vc: u8,
    },
    /// A packet failed its check before transmission and left marked `soft_error`.
    SoftError {
        /// Its virtual channel.
        vc: u8,
    },
}

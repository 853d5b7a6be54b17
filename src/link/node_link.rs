//! A link end as its node uses it.

use core::fmt::Debug;

use phitwire_framing::carrier::lane_layout::LaneLayout;

use super::account::EndAccount;
use super::common::Common;
use super::config::LinkConfig;
use super::counters::LinkCounters;
use super::event::{LinkEvent, LinkState};
use super::fault::LinkFault;
use super::receive_buffer::{Change, ReceiveBuffer};
use crate::time::{Duration, Time};

/// Maximum number of virtual channels of a link: receivers and simulations keep per-channel values
/// in arrays of this length.
pub const MAX_VCS: usize = 8;

/// One end of a link of any machine, as seen from outside its node.
pub trait LinkView {
    /// The state that all link ends have.
    fn common(&self) -> &Common;
    /// Packets taken from the core that the peer has not acknowledged.
    fn unacknowledged_packets(&self) -> u64;
    /// Lanes of the link, and the bytes of its frames that they carry.
    fn lane_layout(&self) -> LaneLayout;
    /// Remaining credit towards the peer and everything in flight, for checks.
    fn account(&self) -> EndAccount;
    /// Calls `visit` with every counter, including those that only this machine's links have.
    fn for_each_counter(&self, visit: &mut dyn FnMut(&'static str, u64));
    /// Units sent for the first time, in the unit of [`resent`](Self::resent).
    fn sent(&self) -> u64;
    /// Units resent: packets, or other units that a link of this machine resends.
    fn resent(&self) -> u64;
    /// Units received with an invalid check: packets, or other units that a link of this machine
    /// checks.
    fn bad_checks(&self) -> u64;
    /// Frame bytes that the node takes in from this link before it sends the resulting frames.
    fn bytes_per_turn(&self) -> usize;
    /// How late a missing frame may currently be before it counts as lost.
    fn reorder_hold(&self) -> Duration;

    /// Whether data flows: `link_active` of BlackWidow sec. 7.7.
    #[inline]
    fn is_active(&self) -> bool {
        self.common().is_active()
    }

    fn state(&self) -> LinkState {
        self.common().state
    }

    /// Counters so far; those that this kind of link does not have stay zero.
    fn counters(&self) -> &LinkCounters {
        &self.common().counters
    }

    /// Retries charged to each lane.
    fn lane_retries(&self) -> &[u64] {
        &self.counters().lane_retries[..self.lane_layout().lanes().count()]
    }

    /// Names, times, clock, rate and cable.
    fn config(&self) -> &LinkConfig {
        &self.common().config
    }

    /// When a data frame of the peer was last accepted, in any session; `None` before the first.
    fn last_accepted(&self) -> Option<Time> {
        self.common().liveness.last_accepted()
    }

    /// Whether [`LinkEvent::Silent`] was reported and nothing has been heard since.
    fn is_silent(&self) -> bool {
        self.common().liveness.is_silent()
    }

    /// Whether [`LinkEvent::Stalled`] was reported, or a session ended for a stall recently, and
    /// nothing has been acknowledged since.
    fn is_stalled(&self) -> bool {
        self.common().liveness.is_stalled()
    }

    /// Smoothed round trip of the link, once one was measured.
    fn round_trip(&self) -> Option<Duration> {
        self.common().out.round_trip.smoothed()
    }

    fn retry_timeout(&self) -> Duration {
        self.common().out.round_trip.timeout()
    }

    /// Transmit lanes, one bit per lane; 0 until the link was active.
    fn tx_lanes(&self) -> u8 {
        self.common().out.lanes
    }

    /// Receive lanes, one bit per lane by the sender's numbers; 0 until the link was active.
    fn rx_lanes(&self) -> u8 {
        self.common().lanes.active()
    }

    /// Epochs of this end and, as far as it knows, of the peer; 0 while unknown.
    fn epochs(&self) -> (u32, u32) {
        let handshake = &self.common().handshake;
        (handshake.epoch, handshake.peer_epoch)
    }
}

/// A link end as its node owns it: a [`LinkEnd`](super::LinkEnd), or one that a machine builds on
/// top of it.
///
/// Call order: [`handle_frame`](Self::handle_frame), [`handle_timers`](Self::handle_timers) and
/// commands as things happen, each followed by [`take_changes`](Self::take_changes) for what
/// arrived; after reading from [`input_mut`](Self::input_mut), [`give_back`](Self::give_back) to
/// return the space; then [`poll_frame`](Self::poll_frame) and [`poll_event`](Self::poll_event)
/// until each returns `None`. Each machine's end documents how to send.
pub trait NodeLink: LinkView + Debug + Send + Sized + 'static {
    type Config;
    /// Buffer for received packets.
    type Input: ReceiveBuffer;

    /// Name of this kind of link.
    const LINK: &'static str;
    /// Names of its virtual channels, by number.
    const VC_NAMES: &'static [&'static str];

    /// Makes an end in training, with an empty receive buffer.
    fn new(config: Self::Config, now: Time) -> Self;
    fn input(&self) -> &Self::Input;
    /// The receive buffer, for reading.
    fn input_mut(&mut self) -> &mut Self::Input;
    /// Takes the bytes of one link frame, valid or not. Its payload goes into the receive buffer;
    /// an unusable frame is dropped and counted by reason.
    ///
    /// # Panics
    /// If `now` is earlier than in an earlier call.
    fn handle_frame(&mut self, now: Time, bytes: &[u8]);
    /// Whether the last frame has another piece, to be taken once the owner has processed the
    /// pieces so far.
    #[inline]
    fn has_more(&self) -> bool {
        false
    }
    /// Takes the next piece of the last frame.
    #[inline]
    fn take_more(&mut self, now: Time) {
        let _ = now;
    }
    /// Expires the deadlines that [`next_wakeup`](Self::next_wakeup) names. An early call does
    /// nothing.
    ///
    /// # Panics
    /// If `now` is earlier than in an earlier call.
    fn handle_timers(&mut self, now: Time);
    /// The process was suspended for `span`, which ended at `now` but is not counted in it. The
    /// peer may have been suspended too, and may resume later.
    fn handle_suspension(&mut self, now: Time, span: Duration);
    /// When to call [`handle_timers`](Self::handle_timers) or [`poll_frame`](Self::poll_frame) if
    /// nothing happens before; [`Time::NEVER`] if never. May be in the past.
    fn next_wakeup(&self) -> Time;
    /// Whether [`poll_frame`](Self::poll_frame) has something to send.
    fn wants_to_send(&self, now: Time) -> bool;
    /// Writes the next frame into `buf`, whose length is the link's limit, and returns its length.
    /// A buffer too small for any frame gets nothing.
    ///
    /// # Panics
    /// If `now` is earlier than in an earlier call.
    fn poll_frame(&mut self, now: Time, buf: &mut [u8]) -> Option<usize>;
    /// The next event, oldest first.
    fn poll_event(&mut self) -> Option<LinkEvent>;
    /// Calls `report` with the changes of each virtual channel of the receive buffer since the last
    /// call. An owner that inspects the buffer need not call it.
    #[inline]
    fn take_changes(&mut self, report: impl FnMut(usize, Change)) {
        self.input_mut().take_changes(report);
    }
    /// Returns to the peer the space of everything read from the receive buffer.
    ///
    /// # Panics
    /// If more was read than received, on ends that count this.
    fn give_back(&mut self);
    /// Takes the link down until [`link_up`](Self::link_up) and notifies the peer.
    fn link_down(&mut self, now: Time);
    /// Brings up a link that was taken down by command or lost its last lane: channel
    /// initialisation with all lanes, under a new epoch.
    fn link_up(&mut self, now: Time);
    /// Applies `fault`; returns false if links of this kind do not support it.
    fn apply_fault(&mut self, now: Time, fault: LinkFault) -> bool;
}

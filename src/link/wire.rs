//! The machine-specific protocol of a link end.

use core::fmt::Debug;

use phitwire_framing::carrier::frame::{Frame, FrameError};
use phitwire_framing::carrier::lane_layout::LaneLayout;
use phitwire_framing::carrier::training::Training;

use super::account::EndAccount;
use super::common::Common;
use super::end::LinkEnd;
use super::fault::LinkFault;
use super::receive_buffer::ReceiveBuffer;
use super::training::Offer;
use crate::time::{Duration, Time};

/// The protocol of a machine's links: how units travel in frames, are acknowledged and resent.
///
/// A [`LinkEnd`] owns it and calls it while data flows, unless a method says otherwise. Each call
/// gets the state common to all links, in which the protocol counts, reports events, and keeps its
/// retry timer.
pub trait Wire: Debug + Send + Sized + 'static {
    type Config;
    /// Buffer for received packets.
    type Input: ReceiveBuffer;
    /// What the core pushes: a phit, a flit or a whole packet.
    type Unit: Copy;

    /// Name of this kind of link.
    const LINK: &'static str;
    /// Names of its virtual channels, by number.
    const VC_NAMES: &'static [&'static str];
    /// Lanes of the link, and the bytes of its frames that they carry.
    const LAYOUT: LaneLayout;
    /// Length of the shortest frame, in bytes.
    const MIN_FRAME_BYTES: usize;
    /// Frame bytes that a node takes in from one link before it sends the resulting frames: five or
    /// six Ethernet frames.
    const BYTES_PER_TURN: usize = 8_000;

    /// Makes the parts of an end, which begins in training.
    fn made(config: Self::Config, now: Time) -> (Common, Self, Self::Input);

    // Sessions.

    /// Starts a session on the terms that both ends offered. Lanes and retry timer are set.
    fn begin(&mut self, link: &mut Common, offer: &Offer, now: Time, input: &mut Self::Input);
    /// Ends the session: closes open packets, discards unacknowledged ones and returns their
    /// number.
    fn end(&mut self, link: &mut Common, input: &mut Self::Input) -> u64;
    /// Transmits on `lanes` only: resends what is in flight, and soon sends a frame that shows the
    /// peer the new lanes.
    fn send_on(&mut self, link: &mut Common, lanes: u8, now: Time);
    /// A receive lane was given up: data sent on the old lanes is no longer usable.
    fn lanes_changed(&mut self, link: &mut Common, input: &mut Self::Input);
    /// A requested training frame arrived.
    fn was_trained(&mut self, link: &mut Common, training: &Training) {
        let _ = (link, training);
    }
    /// Number of lanes that a direction may lose before the link fails: by default all but one.
    fn max_degrades(&self) -> u32 {
        Self::LAYOUT.lanes().count() as u32 - 1
    }

    // Receiving.

    /// Whether the end receives frames now, in any state of the link.
    #[inline]
    fn can_receive(&mut self, link: &mut Common, now: Time) -> bool {
        let _ = (link, now);
        true
    }
    /// Handles a frame other than a training frame, in any state of the link. It gets the whole
    /// end, because the frame may begin a session ([`LinkEnd::belongs`]).
    ///
    /// # Errors
    /// If it is not a frame of this kind of link.
    fn on_frame(end: &mut LinkEnd<Self>, now: Time, frame: &Frame<'_>) -> Result<(), FrameError>;
    /// Whether the last frame has another piece: see
    /// [`NodeLink::has_more`](super::NodeLink::has_more).
    #[inline]
    fn has_more(&self) -> bool {
        false
    }
    /// Takes the next piece of the last frame.
    #[inline]
    fn take_more(&mut self, link: &mut Common, now: Time, input: &mut Self::Input) {
        let _ = (link, now, input);
    }
    /// Expires deadlines of the receiving half.
    fn receive_timers(&mut self, link: &mut Common, now: Time, input: &mut Self::Input) {
        let _ = (link, now, input);
    }
    /// `freed` phits or flits of `vc`, at least one, left the receive buffer, in any state of the
    /// link.
    fn freed(&mut self, link: &mut Common, vc: usize, freed: u32);

    // Sending.

    /// Takes a unit from the core, in any state of the link.
    ///
    /// # Panics
    /// If the link is active but has no room for it, which the caller must check.
    fn push(&mut self, link: &mut Common, unit: Self::Unit);
    /// Takes a whole packet, like [`push`](Self::push) for each of its units.
    ///
    /// # Panics
    /// Like [`push`](Self::push).
    #[inline]
    fn push_packet(&mut self, link: &mut Common, packet: &[Self::Unit]) {
        for &unit in packet {
            self.push(link, unit);
        }
    }
    /// Expires deadlines of the sending half.
    fn transmit_timers(&mut self, link: &mut Common, now: Time);
    fn has_to_send(&self, link: &Common, now: Time) -> bool;
    /// Writes the next frame, if any. Returns its length, and whether it carries data.
    fn emit(&mut self, link: &mut Common, now: Time, buf: &mut [u8]) -> Option<(usize, bool)>;
    /// The next deadline of either half.
    fn deadline(&self, link: &Common) -> Time;
    /// Resends everything unacknowledged, by command, in any state of the link.
    fn resend(&mut self, link: &mut Common, now: Time);
    /// Applies a fault other than those that all links have; returns false if links of this kind do
    /// not support it.
    fn apply_fault(&mut self, link: &mut Common, now: Time, fault: LinkFault) -> bool {
        let _ = (link, now, fault);
        false
    }

    // What the end reports, in any state of the link.

    /// Packets taken from the core that the peer has not acknowledged.
    fn unacknowledged_packets(&self) -> u64;
    /// Remaining credit towards the peer and everything in flight, for checks.
    fn account(&self, link: &Common) -> EndAccount;
    /// How late a missing frame may currently be before it counts as lost.
    fn reorder_hold(&self) -> Duration {
        Duration::ZERO
    }
    /// Calls `visit` with the counters that only this machine's links have.
    fn for_each_counter(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        let _ = visit;
    }
    /// Units sent for the first time, in the unit of [`resent`](Self::resent).
    fn sent(&self, link: &Common) -> u64 {
        link.counters.tx_packets
    }
    /// Units resent: packets, or other units that a link of this machine resends.
    fn resent(&self, link: &Common) -> u64 {
        link.counters.tx_retransmitted_packets
    }
    /// Units received with an invalid check: packets, or other units that a link of this machine
    /// checks.
    fn bad_checks(&self, link: &Common) -> u64 {
        link.counters.rx_crc_errors
    }
}

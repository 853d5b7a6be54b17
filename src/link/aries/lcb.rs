//! The link control block of Aries: one end of a link.

use phitwire_framing::flit48::{Flit, VCS};

use super::config::{AriesLinkConfig, ErrorInjection};
use super::counters::SetCounters;
use super::input::AriesInput;
use crate::link::config::LinkConfig;
use crate::link::counters::LinkCounters;
use crate::link::event::{LinkEvent, LinkState};
use crate::time::{Duration, Time};

/// One end of an Aries link (white paper, "Aries Router").
///
/// Call order: any number of [`handle_frame`](Self::handle_frame), [`push`](Self::push) and
/// [`vc_freed`](Self::vc_freed), and [`handle_timers`](Self::handle_timers) when
/// [`next_wakeup`](Self::next_wakeup) has come; then [`poll_frame`](Self::poll_frame) until it answers
/// `None`, and [`poll_event`](Self::poll_event) until `None`. The same [`AriesInput`] is handed in every
/// time.
#[derive(Debug)]
pub struct AriesLcb {
    config: AriesLinkConfig,
    counters: LinkCounters,
    sets: SetCounters,
    load: u8,
}

// Skeleton: the names are as they will be, the link does not come up yet.
impl AriesLcb {
    /// One end as `config` says, in training.
    pub fn new(config: AriesLinkConfig, _now: Time) -> Self {
        Self {
            config,
            counters: LinkCounters::default(),
            sets: SetCounters::default(),
            load: 0,
        }
    }

    /// Takes in the bytes of one link frame, whatever they are.
    pub fn handle_frame(&mut self, _now: Time, _bytes: &[u8], _input: &mut AriesInput) {}

    /// Expires the deadlines that [`Self::next_wakeup`] names. Calling it early does nothing.
    pub fn handle_timers(&mut self, _now: Time, _input: &mut AriesInput) {}

    /// When [`Self::handle_timers`] should be called, or [`Self::poll_frame`] will have something to say.
    pub fn next_wakeup(&self) -> Option<Time> {
        None
    }

    /// Whether [`Self::poll_frame`] has something to send.
    pub fn wants_to_send(&self, _now: Time) -> bool {
        false
    }

    /// Writes the next frame into `buf`, whose length is the limit of the link, and returns its length.
    pub fn poll_frame(&mut self, _now: Time, _buf: &mut [u8]) -> Option<usize> {
        None
    }

    /// Whether a packet of `flits` flits on `vc` may begin: the link is active, no packet is open, and
    /// credits and replay buffer have room for all of it.
    pub fn can_begin(&self, _vc: usize, _flits: usize) -> bool {
        false
    }

    /// Takes the next flit of a packet; its head says how many follow.
    pub fn push(&mut self, _flit: Flit) {}

    /// `flits` of `vc` have left the input buffer: what [`AriesInput::take_acks`] gave.
    pub fn vc_freed(&mut self, _vc: usize, _flits: u32) {}

    /// Whether data flows.
    pub fn is_active(&self) -> bool {
        false
    }

    /// Where this end stands.
    pub fn state(&self) -> LinkState {
        LinkState::Training
    }

    /// The next event, oldest first.
    pub fn poll_event(&mut self) -> Option<LinkEvent> {
        None
    }

    /// Frames and sessions so far.
    pub fn counters(&self) -> &LinkCounters {
        &self.counters
    }

    /// Sets and flits so far.
    pub fn set_counters(&self) -> &SetCounters {
        &self.sets
    }

    /// Names, times, clock, rate, cable.
    pub fn config(&self) -> &LinkConfig {
        self.config.link()
    }

    /// The whole configuration.
    pub fn aries_config(&self) -> &AriesLinkConfig {
        &self.config
    }

    /// Near-end load: flits taken from the core and not sent.
    pub fn backlog_flits(&self) -> u32 {
        0
    }

    /// Far-end estimate: flits of the peer's input buffer in use as far as this end knows.
    pub fn far_flits(&self) -> u32 {
        0
    }

    /// The same of one virtual channel.
    pub fn far_flits_of(&self, _vc: usize) -> u32 {
        0
    }

    /// Downstream load: the 4 bits that the peer last sent.
    pub fn peer_load(&self) -> u8 {
        0
    }

    /// Sets the 4 bits of load that every set tells the peer.
    pub fn set_load(&mut self, load: u8) {
        self.load = load & 0xf;
    }

    /// The peer's global clock as last received, in bits; see [`Self::set_clock`].
    pub fn peer_clock(&self) -> u8 {
        0
    }

    /// Sets the global clock bits that every set carries.
    pub fn set_clock(&mut self, _clock: u8) {}

    /// Flits that may be sent now on each virtual channel.
    pub fn credits(&self) -> [u32; VCS] {
        [0; VCS]
    }

    /// Data sets sent that the peer has not acknowledged.
    pub fn unacknowledged_sets(&self) -> u64 {
        0
    }

    /// Packets of which the peer has not acknowledged every flit.
    pub fn unacknowledged_packets(&self) -> u64 {
        0
    }

    /// Smoothed round trip of the link, once one was measured.
    pub fn round_trip(&self) -> Option<Duration> {
        None
    }

    /// The retry time-out as it stands.
    pub fn retry_timeout(&self) -> Duration {
        Duration::ZERO
    }

    /// Lanes transmitted on, one bit per lane; 0 until the link was active.
    pub fn tx_lanes(&self) -> u8 {
        0
    }

    /// Lanes received on, one bit per lane by the sender's numbers; 0 until the link was active.
    pub fn rx_lanes(&self) -> u8 {
        0
    }

    /// Epochs of this end and of the peer, 0 while unknown.
    pub fn epochs(&self) -> (u32, u32) {
        (0, 0)
    }

    // Commands.

    /// Replays everything unacknowledged.
    pub fn force_retry(&mut self, _now: Time) {}

    /// Sends the next set with a bad CRC.
    pub fn force_bad_crc(&mut self) {}

    /// Initialises the lanes again.
    pub fn force_reinit(&mut self, _now: Time) {}

    /// Sends and hears nothing for `span`: the receive clock is lost.
    pub fn lose_clock(&mut self, _now: Time, _span: Duration) {}

    /// Makes errors on purpose from now on.
    pub fn inject(&mut self, _injection: ErrorInjection) {}

    /// Marks the next packet as damaged inside this router: a soft error.
    pub fn soft_error_next(&mut self) {}

    /// Takes the link down until [`Self::link_up`]; the peer is told.
    pub fn link_down(&mut self, _now: Time, _input: &mut AriesInput) {}

    /// Brings a link up again that was taken down by command or lost its last lane.
    pub fn link_up(&mut self, _now: Time) {}
}

//! The link control block: one end of a link.

use phitwire_framing::packet24::Vc;
use phitwire_framing::phit24::Phit;

use super::config::LinkConfig;
use super::counters::LinkCounters;
use super::event::{LinkEvent, LinkState};
use super::input_queue::InputQueue;
use crate::time::{Duration, Time};

/// One end of a link (paper, sections 4.3 and 7.7).
///
/// Call order: any number of [`handle_frame`](Self::handle_frame), [`push`](Self::push) and
/// [`vc_freed`](Self::vc_freed), [`handle_timers`](Self::handle_timers) when
/// [`next_wakeup`](Self::next_wakeup) has come; then [`poll_frame`](Self::poll_frame) until it answers
/// `None`, and [`poll_event`](Self::poll_event) until `None`.
#[derive(Debug)]
pub struct Lcb {
    config: LinkConfig,
    state: LinkState,
    counters: LinkCounters,
}

#[allow(missing_docs, unused_variables)]
impl Lcb {
    pub fn new(config: LinkConfig, now: Time) -> Self {
        Self {
            config,
            state: LinkState::Training,
            counters: LinkCounters::default(),
        }
    }
    pub fn handle_frame(&mut self, now: Time, bytes: &[u8], input: &mut InputQueue) {}
    pub fn poll_frame(&mut self, now: Time, buf: &mut [u8]) -> Option<usize> {
        None
    }
    pub fn wants_to_send(&self, now: Time) -> bool {
        false
    }
    pub fn handle_timers(&mut self, now: Time, input: &mut InputQueue) {}
    pub fn next_wakeup(&self) -> Option<Time> {
        None
    }
    pub fn can_begin(&self, vc: Vc) -> bool {
        false
    }
    pub fn push(&mut self, phit: Phit) {}
    pub fn is_active(&self) -> bool {
        self.state == LinkState::Active
    }
    pub fn state(&self) -> LinkState {
        self.state
    }
    pub fn vc_freed(&mut self, vc: Vc, phits: u32) {}
    pub fn poll_event(&mut self) -> Option<LinkEvent> {
        None
    }
    pub fn counters(&self) -> &LinkCounters {
        &self.counters
    }
    pub fn config(&self) -> &LinkConfig {
        &self.config
    }
    /// Smoothed round trip of the link, once one was measured.
    pub fn round_trip(&self) -> Option<Duration> {
        None
    }
    /// Lanes transmitted on, one bit per lane.
    pub fn tx_lanes(&self) -> u8 {
        7
    }
    /// Lanes received on, one bit per lane.
    pub fn rx_lanes(&self) -> u8 {
        7
    }
    /// Credits left towards the peer, in phits.
    pub fn credits(&self, vc: Vc) -> u32 {
        0
    }
    /// Packets sent or waiting that the peer has not acknowledged.
    pub fn unacknowledged_packets(&self) -> u32 {
        0
    }
    // Commands.
    pub fn force_retry(&mut self, now: Time) {}
    pub fn soft_error_next(&mut self) {}
    pub fn link_down(&mut self, now: Time, input: &mut InputQueue) {}
    pub fn link_up(&mut self, now: Time) {}
    pub fn set_lane_retry_threshold(&mut self, retries: u32) {}
}

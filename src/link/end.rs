use core::mem::take;

use phitwire_framing::carrier::frame::{self, FrameHeader};
use phitwire_framing::carrier::lane_layout::LaneLayout;
use phitwire_framing::carrier::training::Training;

use super::account::EndAccount;
use super::common::Common;
use super::event::{DownReason, LinkEvent, LinkState};
use super::fault::LinkFault;
use super::node_link::{LinkView, MAX_VCS, NodeLink};
use super::receive_buffer::ReceiveBuffer;
use super::wire::Wire;
use crate::time::{Duration, Time};

/// One end of a link: the session with its peer, the receive buffer, and the machine's protocol.
///
/// Owners use it as a [`NodeLink`], which documents the call order, and send with any number of
/// [`push`](Self::push) or [`push_packet`](Self::push_packet) in between.
#[derive(Debug)]
pub struct LinkEnd<W: Wire> {
    pub(super) common: Common,
    pub(super) input: W::Input,
    pub(super) wire: W,
}

impl<W: Wire> LinkEnd<W> {
    /// The machine's protocol, for reports that only its links have.
    #[inline]
    pub fn wire(&self) -> &W {
        &self.wire
    }

    /// The machine's protocol, the state common to all links, and the receive buffer.
    #[inline]
    pub fn parts_mut(&mut self) -> (&mut W, &mut Common, &mut W::Input) {
        (&mut self.wire, &mut self.common, &mut self.input)
    }

    /// Takes the next unit of a packet from the core. While the link is not active, packets are
    /// dropped and counted.
    ///
    /// # Panics
    /// See [`Wire::push`].
    #[inline]
    pub fn push(&mut self, unit: W::Unit) {
        self.wire.push(&mut self.common, unit);
    }

    /// Takes a whole packet: like [`Self::push`] for each of its units.
    ///
    /// # Panics
    /// See [`Wire::push_packet`].
    // Measured: without forced inlining, this function and two others cost 1 to 4 % of Aries'
    // message rate.
    #[inline(always)]
    pub fn push_packet(&mut self, packet: &[W::Unit]) {
        self.wire.push_packet(&mut self.common, packet);
    }

    /// Resends everything unacknowledged.
    pub fn force_retry(&mut self, now: Time) {
        self.common.see(now);
        self.wire.resend(&mut self.common, now);
    }

    /// Whether a data frame comes from the peer, in this session and on its lanes.
    pub fn belongs(&mut self, now: Time, header: &FrameHeader) -> bool {
        if !self.common.is_ours(header) || !self.is_of_session(now, header) {
            return false;
        }
        let may_come = self.common.lanes.may_come_on(header.lanes);
        if !may_come {
            self.common.on_wrong_lanes(header.lanes, now);
        }
        may_come
    }

    /// The lanes on which we want the peer to transmit.
    fn wanted_lanes(&self) -> u8 {
        match self.common.state {
            LinkState::Active | LinkState::Dead => self.common.lanes.active(),
            _ => self.common.handshake.lanes,
        }
    }

    /// Judges the lanes if retries were charged since the last call.
    #[inline]
    fn judge_charged_lanes(&mut self, now: Time) {
        if take(&mut self.common.lanes.charged) {
            self.judge_lanes(now);
        }
    }
}

impl<W: Wire> NodeLink for LinkEnd<W> {
    type Config = W::Config;
    type Input = W::Input;

    const LINK: &'static str = W::LINK;
    const VC_NAMES: &'static [&'static str] = W::VC_NAMES;

    fn new(config: W::Config, now: Time) -> Self {
        const {
            assert!(
                W::VC_NAMES.len() <= MAX_VCS,
                "arrays have no room for more channels: see `link::MAX_VCS`"
            );
        }
        let (common, wire, input) = W::made(config, now);
        assert!(!common.is_active(), "an end begins in training");
        assert_eq!(
            common.config.standard.lanes,
            W::LAYOUT.lanes(),
            "the standard and the frames of {} links have the same lanes",
            W::LINK
        );
        Self {
            common,
            input,
            wire,
        }
    }

    #[inline]
    fn input(&self) -> &W::Input {
        &self.input
    }

    #[inline]
    fn input_mut(&mut self) -> &mut W::Input {
        &mut self.input
    }

    fn handle_frame(&mut self, now: Time, bytes: &[u8]) {
        self.common.see(now);
        self.common.counters.rx_frames += 1;
        if !self.wire.can_receive(&mut self.common, now) {
            return;
        }
        let frame = frame::parse(bytes).and_then(|frame| frame.of_lanes(W::LAYOUT.lanes()));
        let taken = frame.and_then(|frame| match frame.kind() {
            Training::KIND => {
                self.on_training(now, &Training::of(&frame)?.of_lanes(W::LAYOUT.lanes())?);
                Ok(())
            }
            _ => W::on_frame(self, now, &frame),
        });
        if let Err(error) = taken {
            self.common.counters.dropped(error);
        }
        self.judge_charged_lanes(now);
    }

    #[inline]
    fn has_more(&self) -> bool {
        self.wire.has_more()
    }

    #[inline]
    fn take_more(&mut self, now: Time) {
        self.wire.take_more(&mut self.common, now, &mut self.input);
        self.judge_charged_lanes(now);
    }

    fn handle_timers(&mut self, now: Time) {
        self.common.see(now);
        if !self.common.is_active() {
            return;
        }
        self.wire
            .receive_timers(&mut self.common, now, &mut self.input);
        if self.expire(now) {
            self.wire.transmit_timers(&mut self.common, now);
        }
    }

    fn handle_suspension(&mut self, now: Time, span: Duration) {
        self.common.see(now);
        self.common.liveness.handle_suspension(now, span);
    }

    fn next_wakeup(&self) -> Time {
        let link = &self.common;
        let at = link.handshake.deadline();
        if !link.is_active() {
            return at;
        }
        let owed_since = link.out.owed_since;
        at.min(self.wire.deadline(link))
            .min(link.liveness.deadline())
            .min(link.liveness.stall_deadline(owed_since))
            .min(link.liveness.gives_up_at(owed_since))
    }

    #[inline]
    fn wants_to_send(&self, now: Time) -> bool {
        let link = &self.common;
        link.handshake.is_due(now) || link.is_active() && self.wire.has_to_send(link, now)
    }

    fn poll_frame(&mut self, now: Time, buf: &mut [u8]) -> Option<usize> {
        self.common.see(now);
        if buf.len() < W::MIN_FRAME_BYTES {
            return None;
        }
        let lanes = self.wanted_lanes();
        let link = &mut self.common;
        if link.handshake.is_due(now)
            && let Some(length) = link.emit_training(lanes, now, buf)
        {
            return Some(length);
        }
        if !link.is_active() {
            return None;
        }
        let (length, has_data) = self.wire.emit(link, now, buf)?;
        debug_assert!(length <= buf.len(), "the frame was written into the buffer");
        let counters = &mut link.counters;
        if has_data {
            counters.tx_data_frames += 1;
        } else {
            counters.tx_idle_frames += 1;
        }
        counters.tx_frames += 1;
        Some(length)
    }

    fn poll_event(&mut self) -> Option<LinkEvent> {
        self.common.poll_event()
    }

    #[inline]
    fn give_back(&mut self) {
        let Self {
            common,
            input,
            wire,
        } = self;
        input.take_freed(|vc, freed| {
            if freed > 0 {
                wire.freed(common, vc, freed);
            }
        });
    }

    fn link_down(&mut self, now: Time) {
        let link = &mut self.common;
        link.see(now);
        match link.state {
            LinkState::Disabled => return,
            LinkState::Active => {
                link.handshake.answer(false);
                self.leave_active(LinkState::Disabled, DownReason::Command, now);
            }
            _ => link.state.go(LinkState::Disabled),
        }
        self.common.handshake.rest();
    }

    fn link_up(&mut self, now: Time) {
        let link = &mut self.common;
        link.see(now);
        if matches!(link.state, LinkState::Disabled | LinkState::Dead) {
            link.state.go(LinkState::Training);
            link.handshake.restart(now);
        }
    }

    fn apply_fault(&mut self, now: Time, fault: LinkFault) -> bool {
        match fault {
            LinkFault::Down => self.link_down(now),
            LinkFault::Up => self.link_up(now),
            LinkFault::ForceRetry => self.force_retry(now),
            fault => return self.wire.apply_fault(&mut self.common, now, fault),
        }
        true
    }
}

impl<W: Wire> LinkView for LinkEnd<W> {
    #[inline]
    fn common(&self) -> &Common {
        &self.common
    }

    fn unacknowledged_packets(&self) -> u64 {
        self.wire.unacknowledged_packets()
    }

    fn lane_layout(&self) -> LaneLayout {
        W::LAYOUT
    }

    fn account(&self) -> EndAccount {
        self.wire.account(&self.common)
    }

    fn for_each_counter(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        let counters = &self.common.counters;
        counters.for_each(&mut *visit);
        counters.for_each_part(W::LAYOUT.lanes().count(), &mut *visit);
        self.wire.for_each_counter(visit);
    }

    fn sent(&self) -> u64 {
        self.wire.sent(&self.common)
    }

    fn resent(&self) -> u64 {
        self.wire.resent(&self.common)
    }

    fn bad_checks(&self) -> u64 {
        self.wire.bad_checks(&self.common)
    }

    fn bytes_per_turn(&self) -> usize {
        W::BYTES_PER_TURN
    }

    fn reorder_hold(&self) -> Duration {
        self.wire.reorder_hold()
    }
}

//! Implements `LinkControlBlock` for every `Session`.

use phitwire_framing::carrier::frame;
use phitwire_framing::carrier::training::Training;

use super::event::{DownReason, LinkEvent, LinkState};
use super::port::LinkControlBlock;
use super::session::Session;
use crate::time::{Duration, Time};

impl<E: Session> LinkControlBlock for E {
    type Config = E::Config;
    type Input = E::Input;

    fn new(config: E::Config, now: Time) -> (Self, E::Input) {
        Self::made(config, now)
    }

    fn handle_frame(&mut self, now: Time, bytes: &[u8], input: &mut E::Input) {
        self.common().see(now);
        self.common().counters.rx_frames += 1;
        if !self.hears(now) {
            return;
        }
        let taken = frame::parse(bytes).and_then(|frame| match frame.kind() {
            Training::KIND => {
                self.on_training(now, &Training::of(&frame)?, input);
                Ok(())
            }
            _ => self.on_frame(now, &frame, input),
        });
        if let Err(error) = taken {
            self.common().counters.dropped(error);
        }
        if core::mem::take(&mut self.lane_watch().charged) {
            self.judge_lanes(now, input);
        }
    }

    #[inline]
    fn has_more(&self) -> bool {
        self.has_more_data()
    }

    fn take_more(&mut self, now: Time, input: &mut E::Input) {
        self.take_more_data(now, input);
        if core::mem::take(&mut self.lane_watch().charged) {
            self.judge_lanes(now, input);
        }
    }

    fn handle_timers(&mut self, now: Time, input: &mut E::Input) {
        self.common().see(now);
        if !self.is_active() {
            return;
        }
        self.receive_timers(now, input);
        if self.expire(now, input) {
            self.transmit_timers(now);
        }
    }

    fn stood_still(&mut self, now: Time, span: Duration) {
        let link = self.common();
        link.see(now);
        link.liveness.stood_still(now, span);
    }

    fn next_wakeup(&self) -> Time {
        let link = self.link();
        let at = link.handshake.deadline();
        if !self.is_active() {
            return at;
        }
        let owed_since = self.sending().owed_since;
        at.min(self.own_deadline())
            .min(link.liveness.deadline())
            .min(link.liveness.stall_deadline(owed_since))
            .min(link.liveness.gives_up_at(owed_since))
    }

    #[inline]
    fn wants_to_send(&self, now: Time) -> bool {
        self.link().handshake.is_due(now) || self.is_active() && self.has_to_send(now)
    }

    fn poll_frame(&mut self, now: Time, buf: &mut [u8]) -> Option<usize> {
        self.common().see(now);
        if buf.len() < E::MIN_FRAME_BYTES {
            return None;
        }
        let lanes = self.wanted_lanes();
        let link = self.common();
        if link.handshake.is_due(now)
            && let Some(length) = link.emit_training(lanes, now, buf)
        {
            return Some(length);
        }
        if !self.is_active() {
            return None;
        }
        let (length, has_data) = self.emit(now, buf)?;
        let counters = &mut self.common().counters;
        if has_data {
            counters.tx_data_frames += 1;
        } else {
            counters.tx_idle_frames += 1;
        }
        counters.tx_frames += 1;
        Some(length)
    }

    fn poll_event(&mut self) -> Option<LinkEvent> {
        self.common().poll_event()
    }

    fn link_down(&mut self, now: Time, input: &mut E::Input) {
        let link = self.common();
        link.see(now);
        match link.state {
            LinkState::Disabled => return,
            LinkState::Active => {
                link.handshake.answer(false);
                self.leave_active(LinkState::Disabled, DownReason::Command, now, input);
            }
            _ => link.state.go(LinkState::Disabled),
        }
        self.common().handshake.rest();
    }

    fn link_up(&mut self, now: Time) {
        let link = self.common();
        link.see(now);
        if matches!(link.state, LinkState::Disabled | LinkState::Dead) {
            link.state.go(LinkState::Training);
            link.handshake.restart(now);
        }
    }

    #[inline]
    fn vc_freed(&mut self, vc: usize, freed: u32) {
        if freed > 0 {
            self.freed(vc, freed);
        }
    }
}

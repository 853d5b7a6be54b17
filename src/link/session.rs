//! What a frame means for the session of a link end: whose it is, and what follows.

use phitwire_framing::frame::{DataFrame, FrameHeader};
use phitwire_framing::lanes::ALL_LANES;
use phitwire_framing::phit24::Phit;
use phitwire_framing::training::Training;

use super::event::{DownReason, LinkEvent, LinkState};
use super::input_queue::InputQueue;
use super::lcb::{BAD_WORDS_UNTIL_DOUBT, Lcb};
use super::training::{Refusal, judge};
use super::transmit::BadWord;
use crate::time::Time;

impl Lcb {
    /// A data frame whose header is well formed.
    pub(super) fn on_data(&mut self, now: Time, data: DataFrame<'_>, input: &mut InputQueue) {
        let header = data.header();
        if !self.is_ours(header) || !self.is_of_session(now, header, input) {
            return;
        }
        if header.lanes != self.rx.lanes.active() && !self.rx.lanes.follow(header.lanes) {
            self.counters.drop_wrong_lanes += 1;
            self.ask_for_lanes(now);
            return;
        }
        if self.asks_for_lanes {
            self.asks_for_lanes = false;
            self.handshake.rest();
        }
        let data = data.behind(self.handshake.cable);
        let Ok(word) = data.control_word() else {
            self.counters.drop_bad_sideband += 1;
            self.bad_words += 1;
            if self.bad_words >= BAD_WORDS_UNTIL_DOUBT {
                self.handshake.answer(false);
            }
            return;
        };
        self.bad_words = 0;
        let Ok(at) = self.rx.place(&word) else {
            self.counters.drop_impossible_position += 1;
            return;
        };
        match self.tx.check(&word) {
            Ok(()) => {}
            Err(BadWord::Ack) => return self.counters.drop_impossible_ack += 1,
            Err(BadWord::VcAck) => return self.counters.drop_impossible_vc_ack += 1,
        }
        self.counters.rx_data_frames += 1;
        self.tx
            .word(&word, now, &mut self.counters)
            .expect("the word was checked");
        if word.status == phitwire_framing::control::LinkStatus::Probe {
            self.rx.acks.urge();
        }
        let mut scratch = core::mem::take(&mut self.scratch);
        if scratch.len() < data.phits() {
            scratch.resize(data.phits(), Phit::IDLE);
        }
        let count = data.decode(&mut scratch);
        self.rx
            .data(now, at, &scratch[..count], input, &mut self.counters);
        self.scratch = scratch;
        if self.rx.doubts_lanes() {
            self.handshake.answer(false);
        }
    }

    /// Whether a data frame belongs to this end of this link.
    fn is_ours(&mut self, header: &FrameHeader) -> bool {
        let counters = &mut self.counters;
        if header.fabric != self.config.fabric {
            counters.drop_wrong_fabric += 1;
        } else if header.link != self.config.link {
            counters.drop_wrong_link += 1;
        } else if header.end == self.config.end {
            counters.drop_wrong_end += 1;
        } else {
            return true;
        }
        false
    }

    /// Whether a data frame belongs to this session; the first one may begin it.
    fn is_of_session(&mut self, now: Time, header: &FrameHeader, input: &mut InputQueue) -> bool {
        let same =
            header.tx_epoch == self.handshake.peer_epoch && header.rx_epoch == self.handshake.epoch;
        match self.state {
            LinkState::Active if same => true,
            LinkState::Active => {
                self.counters.drop_wrong_epoch += 1;
                let (ours, next) = (self.handshake.epoch, self.handshake.next_epoch());
                if header.tx_epoch != self.handshake.peer_epoch
                    && (header.rx_epoch == ours || header.rx_epoch == next)
                {
                    self.handshake.challenge(header.tx_epoch);
                }
                false
            }
            LinkState::Training if same && self.handshake.agreed() => {
                // Our last word to the peer arrived; its answer was lost or overtaken.
                self.become_active(now, input);
                true
            }
            LinkState::Training | LinkState::Refused => {
                self.counters.drop_not_active += 1;
                false
            }
            LinkState::Disabled | LinkState::Dead => {
                self.counters.drop_not_active += 1;
                if same {
                    self.handshake.answer(false);
                }
                false
            }
        }
    }

    /// A training frame whose form is right.
    pub(super) fn on_training(&mut self, now: Time, training: &Training, input: &mut InputQueue) {
        if let Err(refusal) = judge(&self.config, training) {
            self.refuse(refusal);
            return;
        }
        let header = &training.header;
        let known = [0, self.handshake.epoch, self.handshake.next_epoch()];
        if header.tx_epoch == 0 || !known.contains(&header.rx_epoch) {
            self.counters.drop_wrong_epoch += 1;
            return;
        }
        self.counters.rx_training_frames += 1;
        match self.state {
            LinkState::Disabled => {
                if LinkState::from_code(training.state) != LinkState::Disabled {
                    self.handshake.answer(false);
                }
            }
            LinkState::Dead => self.train_while_dead(now, training),
            LinkState::Active => self.train_while_active(now, training, input),
            LinkState::Training | LinkState::Refused => self.train(now, training, input),
        }
    }

    /// The frame of a peer that cannot be right. While data flows, a stray frame changes nothing.
    fn refuse(&mut self, refusal: Refusal) {
        let counters = &mut self.counters;
        match &refusal {
            Refusal::End(_) => counters.drop_wrong_end += 1,
            Refusal::Fabric(_) => counters.drop_wrong_fabric += 1,
            Refusal::Link(_) => counters.drop_wrong_link += 1,
            Refusal::Peer(_) => counters.drop_wrong_peer += 1,
        }
        match self.state {
            LinkState::Training => self.state.go(LinkState::Refused),
            LinkState::Refused => {}
            _ => return,
        }
        let message = refusal.message();
        if self.handshake.complaint.as_deref() != Some(message) {
            self.handshake.complaint = Some(message.to_owned());
            self.report(LinkEvent::Refused {
                message: message.to_owned(),
            });
        }
    }

    fn train(&mut self, now: Time, training: &Training, input: &mut InputQueue) {
        let peer_state = LinkState::from_code(training.state);
        if peer_state == LinkState::Disabled || peer_state == LinkState::Dead {
            return; // It will come again under another epoch.
        }
        let header = &training.header;
        self.handshake.accept(training);
        if self.state == LinkState::Refused {
            self.state.go(LinkState::Training);
        }
        let heard = self.handshake.heard();
        if heard && training.heard && header.rx_epoch == self.handshake.epoch {
            self.become_active(now, input);
        }
        if !(training.heard && peer_state == LinkState::Active && heard) {
            self.handshake.answer(heard);
        }
    }

    fn train_while_active(&mut self, now: Time, training: &Training, input: &mut InputQueue) {
        let header = &training.header;
        let peer_state = LinkState::from_code(training.state);
        if header.tx_epoch != self.handshake.peer_epoch {
            if header.rx_epoch == self.handshake.next_epoch() {
                // It answered our challenge, so it is alive and the old incarnation is not.
                self.leave_active(LinkState::Training, DownReason::PeerRestarted, now, input);
                self.train(now, training, input);
            } else if peer_state != LinkState::Disabled {
                self.handshake.challenge(header.tx_epoch);
            }
            return;
        }
        if header.rx_epoch != self.handshake.epoch {
            // The peer is not sure of us.
            self.handshake.answer(true);
            return;
        }
        match peer_state {
            LinkState::Disabled => {
                self.leave_active(LinkState::Training, DownReason::PeerDown, now, input);
            }
            LinkState::Dead => self.die(now, input),
            _ => {
                let frames = core::mem::take(&mut self.bad_words).max(1);
                let (pattern, cable) = (&training.pattern, &self.handshake.cable);
                self.rx
                    .inspect_lanes(pattern, cable, frames, &mut self.counters);
                self.obey_lanes(training.rx_lanes, peer_state, now, input);
                let wants_answer = !training.heard || peer_state != LinkState::Active;
                if wants_answer && self.state == LinkState::Active {
                    self.handshake.answer(true);
                }
            }
        }
    }

    /// The peer of a session that lost its last lane.
    fn train_while_dead(&mut self, now: Time, training: &Training) {
        let peer_state = LinkState::from_code(training.state);
        if training.header.tx_epoch == self.handshake.peer_epoch {
            if peer_state == LinkState::Active {
                self.handshake.answer(false);
            }
        } else if peer_state == LinkState::Training {
            // Another incarnation trains all lanes anew.
            self.state.go(LinkState::Training);
            self.handshake.restart(now);
        }
    }

    /// The peer receives on `wanted` only. Lanes only ever leave a session, so that an old frame
    /// cannot bring one back.
    fn obey_lanes(&mut self, wanted: u8, peer_state: LinkState, now: Time, input: &mut InputQueue) {
        let left = self.tx.lanes() & wanted;
        if left == self.tx.lanes() || peer_state != LinkState::Active {
            return;
        }
        if left == 0 {
            self.die(now, input);
            return;
        }
        self.tx.set_lanes(left, now);
        // An idle frame shows the peer the new lanes even when there is nothing to send.
        self.rx.acks.urge();
        self.report(LinkEvent::PeerDegraded { left });
    }

    /// Retries were charged: does a lane have to go (paper, section 7.7)?
    pub(super) fn judge_lanes(&mut self, now: Time, input: &mut InputQueue) {
        if self.state != LinkState::Active {
            return;
        }
        let Some(lane) = self.rx.lanes.decommission() else {
            return;
        };
        let left = self.rx.lanes.active();
        self.counters.rx_lanes_decommissioned += 1;
        self.report(LinkEvent::LaneDegraded { lane, left });
        if left == 0 {
            self.die(now, input);
            return;
        }
        self.rx.lanes_changed(input, &mut self.counters);
        self.ask_for_lanes(now);
    }

    fn ask_for_lanes(&mut self, now: Time) {
        self.asks_for_lanes = true;
        self.handshake.ask(now);
    }

    /// No lane is left in one direction: `link_active` is deasserted (paper, section 7.7).
    fn die(&mut self, now: Time, input: &mut InputQueue) {
        self.leave_active(LinkState::Dead, DownReason::NoLanes, now, input);
        self.handshake.rest();
        self.handshake.answer(false);
    }
}

const _: () = assert!(
    ALL_LANES.count_ones() == 3,
    "degrade goes 3 -> 2 -> 1 -> none"
);

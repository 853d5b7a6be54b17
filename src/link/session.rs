//! Sessions of a link end: which frames belong to one, and what follows from them.

use core::fmt::Debug;

use phitwire_framing::carrier::frame::{Frame, FrameError, FrameHeader};
use phitwire_framing::carrier::lanes::{ALL_LANES, LANES};
use phitwire_framing::carrier::training::Training;

use super::common::Common;
use super::event::{DownReason, LinkEvent, LinkState};
use super::lanes::LaneWatch;
use super::liveness::Due;
use super::outgoing::Outgoing;
use super::port::ReceiveBuffer;
use super::round_trip::Seen;
use super::status::EndStatus;
use super::training::{Offer, Refusal, judge};
use crate::time::Time;

/// The session of a link end. Each kind of link control block says what its halves do when a
/// session begins or ends and when lanes change; the rest is provided.
///
/// Whatever implements this is a [`LinkControlBlock`](super::LinkControlBlock).
pub trait Session: EndStatus + Debug + Sized {
    /// Configuration of an end.
    type Config;
    /// Buffer for received packets.
    type Input: ReceiveBuffer;

    /// Length of the shortest frame, in bytes.
    const MIN_FRAME_BYTES: usize;

    /// One end in training and its empty receive buffer.
    fn made(config: Self::Config, now: Time) -> (Self, Self::Input);
    /// [`EndStatus::parts`], mutable.
    fn parts_mut(&mut self) -> (&mut Common, &mut Outgoing, &mut LaneWatch);
    /// Whether the end receives frames now.
    fn hears(&mut self, now: Time) -> bool {
        let _ = now;
        true
    }
    /// Handles a frame other than a training frame.
    ///
    /// # Errors
    /// If it is not a frame of this kind of link.
    fn on_frame(
        &mut self,
        now: Time,
        frame: &Frame<'_>,
        input: &mut Self::Input,
    ) -> Result<(), FrameError>;
    /// See [`LinkControlBlock::has_more`](super::LinkControlBlock::has_more).
    #[inline]
    fn has_more_data(&self) -> bool {
        false
    }
    /// See [`LinkControlBlock::take_more`](super::LinkControlBlock::take_more).
    #[inline]
    fn take_more_data(&mut self, now: Time, input: &mut Self::Input) {
        let _ = (now, input);
    }
    /// Expires deadlines of the receiving half while data flows.
    fn receive_timers(&mut self, now: Time, input: &mut Self::Input) {
        let _ = (now, input);
    }
    /// Expires deadlines of the sending half while data flows.
    fn transmit_timers(&mut self, now: Time);
    /// Whether there is something to send while data flows.
    fn has_to_send(&self, now: Time) -> bool;
    /// Writes the next frame while data flows, if any. Returns its length, and whether it carries
    /// data.
    fn emit(&mut self, now: Time, buf: &mut [u8]) -> Option<(usize, bool)>;
    /// `freed` phits or flits of `vc`, at least one, left the receive buffer.
    fn freed(&mut self, vc: usize, freed: u32);
    /// Transmits on `lanes` only: resends what is in flight, and soon sends a frame to show them.
    fn send_on(&mut self, lanes: u8, now: Time);
    /// A requested training frame arrived while data flows.
    fn was_trained(&mut self, training: &Training) {
        let _ = training;
    }
    /// A receive lane was given up: what was sent on the old lanes is worthless.
    fn lanes_changed(&mut self, input: &mut Self::Input);
    /// Starts a session on the terms that both ends offered.
    fn begin(&mut self, offer: &Offer, now: Time, input: &mut Self::Input);
    /// The next deadline of this kind of link while data flows.
    fn own_deadline(&self) -> Time;
    /// Ends the session: closes open packets, discards unacknowledged ones and returns their
    /// number.
    fn end(&mut self, input: &mut Self::Input) -> u64;

    /// [`EndStatus::link`], mutable.
    #[inline]
    fn common(&mut self) -> &mut Common {
        self.parts_mut().0
    }

    /// [`EndStatus::sending`], mutable.
    #[inline]
    fn outgoing(&mut self) -> &mut Outgoing {
        self.parts_mut().1
    }

    /// The watch over the receive lanes.
    #[inline]
    fn lane_watch(&mut self) -> &mut LaneWatch {
        self.parts_mut().2
    }

    /// The measured round trip.
    fn round_trip_seen(&self) -> Seen {
        self.sending().round_trip.seen()
    }

    /// The lanes on which we want the peer to transmit.
    fn wanted_lanes(&self) -> u8 {
        match self.link().state {
            LinkState::Active | LinkState::Dead => self.rx_lanes(),
            _ => self.link().handshake.lanes,
        }
    }

    /// Number of lanes that a direction may lose before the link fails.
    fn max_degrades(&self) -> u32 {
        LANES as u32 - 1
    }

    /// Inspects the lanes in a training frame that arrived after `frames` unreadable ones.
    fn inspect_lanes(&mut self, training: &Training, frames: u32) {
        self.was_trained(training);
        let (link, _, lanes) = self.parts_mut();
        let charged = lanes.inspect(&training.pattern, &link.handshake.cable, frames);
        lanes.note(charged, frames, &mut link.counters);
        lanes.charged = true; // A lane may also have been lost without a charge.
    }

    /// Whether a data frame belongs to this session; the first one may begin it.
    fn is_of_session(&mut self, now: Time, header: &FrameHeader, input: &mut Self::Input) -> bool {
        let link = self.common();
        let (ours, theirs) = (link.handshake.epoch, link.handshake.peer_epoch);
        let same = header.tx_epoch == theirs && header.rx_epoch == ours;
        match link.state {
            LinkState::Active if same => true,
            LinkState::Active => {
                link.counters.drop_wrong_epoch += 1;
                let next = link.handshake.next_epoch();
                if header.tx_epoch == theirs {
                    // The peer addresses another incarnation of us: send a training frame, which
                    // carries our epoch.
                    link.handshake.answer(true);
                } else if header.rx_epoch == ours || header.rx_epoch == next {
                    link.handshake.challenge(header.tx_epoch);
                } else {
                    return false; // Unrelated to this session.
                }
                self.unusable(now);
                false
            }
            LinkState::Training if same && link.handshake.agreed() => {
                // Our last training frame arrived, so become active: the peer's reply was lost or
                // overtaken.
                self.become_active(now, input);
                true
            }
            LinkState::Training | LinkState::Refused => {
                link.counters.drop_not_active += 1;
                false
            }
            LinkState::Disabled => {
                link.counters.drop_not_active += 1;
                // Report to a peer that still believes in a session that this end is down.
                link.handshake.answer_to(header.tx_epoch, false);
                false
            }
            LinkState::Dead => {
                link.counters.drop_not_active += 1;
                let next = link.handshake.next_epoch();
                let means_us = header.rx_epoch == ours || header.rx_epoch == next;
                if header.tx_epoch != theirs && means_us {
                    self.revive(now);
                } else {
                    link.handshake.answer_to(header.tx_epoch, false);
                }
                false
            }
        }
    }

    /// Whether a data frame is the peer's, of this session and on its lanes.
    fn belongs(&mut self, now: Time, header: &FrameHeader, input: &mut Self::Input) -> bool {
        if !self.common().is_ours(header) || !self.is_of_session(now, header, input) {
            return false;
        }
        let may_come = self.lane_watch().may_come_on(header.lanes);
        if !may_come {
            self.on_wrong_lanes(header.lanes, now);
        }
        may_come
    }

    /// A data frame on `lanes` is plausible: settles on these lanes.
    fn believes(&mut self, lanes: u8) {
        self.lane_watch().settle(lanes);
        if self.common().asks_for_lanes {
            self.common().lanes_are_right();
        }
    }

    /// Expires the deadlines that all links share. Returns whether the session continues.
    fn expire(&mut self, now: Time, input: &mut Self::Input) -> bool {
        let owed_since = self.sending().owed_since;
        let link = self.common();
        link.see(now);
        if link.state != LinkState::Active {
            return false;
        }
        if link.liveness.gives_up_at(owed_since) <= now {
            self.give_up(owed_since, now, input);
            return false;
        }
        self.watch_progress(owed_since, now);
        self.watch_peer(now, input);
        self.common().state == LinkState::Active
    }

    /// A data frame was accepted; `missing`, if any, was requested again and has not arrived.
    #[inline]
    fn accepted(&mut self, missing: Option<u64>, now: Time) {
        let owed_since = self.sending().owed_since;
        let link = self.common();
        link.liveness.missing(missing, now);
        if let Some(after) = link.liveness.accepted(now, owed_since) {
            link.report(LinkEvent::Heard { after });
        }
    }

    /// An unusable frame arrived that may be the peer's.
    fn unusable(&mut self, now: Time) {
        let round_trip = self.round_trip_seen();
        self.common().liveness.unusable(now, round_trip);
    }

    /// A frame arrived that is old, or counts as old.
    fn stale(&mut self, now: Time) {
        let round_trip = self.round_trip_seen();
        let link = self.common();
        link.counters.rx_stale_frames += 1;
        link.liveness.stale(now, round_trip);
    }

    /// A frame arrived on other lanes than our receive lanes.
    fn on_wrong_lanes(&mut self, lanes: u8, now: Time) {
        let round_trip = self.round_trip_seen();
        let is_old = self.lane_watch().may_be_old(lanes);
        let link = self.common();
        link.counters.drop_wrong_lanes += 1;
        link.ask_for_lanes(now);
        if is_old {
            link.liveness.stale(now, round_trip);
        } else {
            link.liveness.unusable(now, round_trip);
        }
    }

    /// Probes a quiet peer, reports its silence, and ends a session in which no frame is usable.
    fn watch_peer(&mut self, now: Time, input: &mut Self::Input) {
        while self.common().state == LinkState::Active
            && let Some(due) = self.common().liveness.expire(now)
        {
            let unreadable = self.common().bad_words > 0;
            match due {
                Due::Question => {
                    let round_trip = self.round_trip_seen();
                    self.common().liveness.measured(round_trip);
                    if unreadable {
                        self.common().doubt_lanes(); // A lane may have failed.
                    }
                    let out = self.outgoing();
                    out.wants_probe = true;
                    out.owed_since = out.owed_since.min(now);
                }
                Due::Silence => {
                    let link = self.common();
                    link.counters.silences += 1;
                    link.report(LinkEvent::Silent);
                }
                Due::Heal if unreadable && self.lane_watch().condemn() => {
                    self.judge_lanes(now, input);
                }
                Due::Heal => {
                    self.common().counters.unusable_sessions += 1;
                    self.leave_active(LinkState::Training, DownReason::Unusable, now, input);
                }
                Due::Missing => {
                    self.common().counters.unusable_sessions += 1;
                    self.leave_active(LinkState::Training, DownReason::Missing, now, input);
                }
            }
        }
    }

    /// Reports a stall: the peer is heard, but has acknowledged nothing since `owed_since`.
    fn watch_progress(&mut self, owed_since: Time, now: Time) {
        let link = self.common();
        if link.liveness.look_for_stall(owed_since, now) {
            link.counters.stalls += 1;
            link.report(LinkEvent::Stalled);
        }
    }

    /// Something was acknowledged.
    #[inline]
    fn moves(&mut self) {
        let link = self.common();
        if link.liveness.acknowledged() {
            link.report(LinkEvent::Moves);
        }
    }

    /// Ends the session: nothing has been acknowledged since `owed_since`, for too long.
    fn give_up(&mut self, owed_since: Time, now: Time, input: &mut Self::Input) {
        let link = self.common();
        let told = link.liveness.is_stalled();
        let heard = link.liveness.gave_up(owed_since, now);
        if heard && !told {
            link.counters.stalls += 1;
            link.report(LinkEvent::Stalled);
        }
        let why = if heard {
            DownReason::Stalled
        } else {
            DownReason::Silence
        };
        self.common().counters.given_up_sessions += 1;
        self.leave_active(LinkState::Training, why, now, input);
    }

    /// Handles a well-formed training frame.
    fn on_training(&mut self, now: Time, training: &Training, input: &mut Self::Input) {
        let link = self.common();
        if let Err(refusal) = judge(&link.config, link.handshake.terms(), training) {
            self.refuse(refusal);
            return;
        }
        let header = &training.header;
        let known = [0, link.handshake.epoch, link.handshake.next_epoch()];
        if header.tx_epoch == 0 || !known.contains(&header.rx_epoch) {
            link.counters.drop_wrong_epoch += 1;
            return;
        }
        link.counters.rx_training_frames += 1;
        match link.state {
            LinkState::Disabled => {
                if LinkState::from_code(training.state) != LinkState::Disabled {
                    link.handshake.answer_to(header.tx_epoch, false);
                }
            }
            LinkState::Dead => self.train_while_dead(now, training),
            LinkState::Active => self.train_while_active(now, training, input),
            LinkState::Training | LinkState::Refused => self.train(now, training, input),
        }
    }

    /// Refuses a frame from the wrong peer. While data flows, a stray frame changes nothing.
    fn refuse(&mut self, refusal: Refusal) {
        let link = self.common();
        let counters = &mut link.counters;
        match &refusal {
            Refusal::End(_) => counters.drop_wrong_end += 1,
            Refusal::Fabric(_) => counters.drop_wrong_fabric += 1,
            Refusal::Link(_) => counters.drop_wrong_link += 1,
            Refusal::Peer(_) => counters.drop_wrong_peer += 1,
        }
        match link.state {
            LinkState::Training => link.state.go(LinkState::Refused),
            LinkState::Refused => {}
            _ => return,
        }
        let message = refusal.message();
        if link.handshake.complaint.as_deref() != Some(message) {
            link.handshake.complaint = Some(message.to_owned());
            link.report(LinkEvent::Refused {
                message: message.to_owned(),
            });
        }
    }

    fn train(&mut self, now: Time, training: &Training, input: &mut Self::Input) {
        let peer_state = LinkState::from_code(training.state);
        if peer_state == LinkState::Disabled || peer_state == LinkState::Dead {
            return; // The peer will return under another epoch.
        }
        let header = &training.header;
        let link = self.common();
        // A peer that has heard us receives on some lane.
        if training.heard && training.rx_lanes & ALL_LANES == 0 {
            link.counters.drop_wrong_lanes += 1;
            return;
        }
        link.handshake.accept(training);
        if link.state == LinkState::Refused {
            link.state.go(LinkState::Training);
        }
        let heard = link.handshake.heard();
        if heard && training.heard && header.rx_epoch == link.handshake.epoch {
            self.become_active(now, input);
        }
        if !(training.heard && peer_state == LinkState::Active && heard) {
            self.common().handshake.answer(heard);
        }
    }

    fn train_while_active(&mut self, now: Time, training: &Training, input: &mut Self::Input) {
        let header = &training.header;
        let peer_state = LinkState::from_code(training.state);
        let link = self.common();
        if header.tx_epoch != link.handshake.peer_epoch {
            if header.rx_epoch == link.handshake.next_epoch() {
                // The peer replied to our challenge: it is live, and the old incarnation is not.
                let why = match peer_state {
                    LinkState::Disabled => DownReason::PeerDown,
                    _ => DownReason::PeerRestarted,
                };
                self.leave_active(LinkState::Training, why, now, input);
                self.train(now, training, input);
            } else {
                link.handshake.challenge(header.tx_epoch);
            }
            return;
        }
        if header.rx_epoch != link.handshake.epoch {
            // The peer does not know our epoch: send it.
            link.handshake.answer(true);
            return;
        }
        match peer_state {
            LinkState::Disabled => {
                self.leave_active(LinkState::Training, DownReason::PeerDown, now, input);
            }
            LinkState::Dead => self.die(now, input),
            _ => {
                let frames = core::mem::take(&mut link.bad_words).max(1);
                if core::mem::take(&mut link.doubts_lanes) {
                    self.inspect_lanes(training, frames);
                }
                self.obey_lanes(training.rx_lanes, peer_state, now);
                let wants_answer = !training.heard || peer_state != LinkState::Active;
                if wants_answer && self.common().state == LinkState::Active {
                    self.common().handshake.answer(true);
                }
            }
        }
    }

    /// Handles a training frame after the last lane was lost.
    fn train_while_dead(&mut self, now: Time, training: &Training) {
        let header = &training.header;
        let link = self.common();
        let same_peer = header.tx_epoch == link.handshake.peer_epoch;
        match LinkState::from_code(training.state) {
            LinkState::Active if same_peer || header.rx_epoch == 0 => {
                link.handshake.answer_to(header.tx_epoch, false);
            }
            // Another incarnation trains all lanes, or believes that it has.
            LinkState::Training | LinkState::Refused | LinkState::Active if !same_peer => {
                self.revive(now);
            }
            _ => {}
        }
    }

    /// Retrains all lanes of an end that lost them.
    fn revive(&mut self, now: Time) {
        let link = self.common();
        link.state.go(LinkState::Training);
        link.handshake.restart(now);
    }

    /// The peer receives on `wanted` only. The receiver alone decides which lanes to use, and only
    /// gives lanes up, so an old frame never requests fewer lanes than a new one. A request for
    /// more lanes than we use is also stale, unless we accepted a forged frame.
    fn obey_lanes(&mut self, wanted: u8, peer_state: LinkState, now: Time) {
        if peer_state != LinkState::Active {
            return;
        }
        let ours = self.tx_lanes();
        let wanted = wanted & self.common().session_lanes;
        if wanted == 0 {
            // Ignore a request for no lanes: an end that receives on none of ours is dead and
            // reports that itself.
            self.common().counters.drop_wrong_lanes += 1;
            return;
        }
        let left = ours & wanted;
        if wanted == ours {
            return;
        }
        let lanes = if left == 0 || left == ours {
            if !self.common().may_regain_lanes(now) {
                return;
            }
            wanted
        } else {
            left
        };
        let open = self.unacknowledged_packets();
        self.common().concede_lanes(open, now);
        self.send_on(lanes, now);
        self.common()
            .report(LinkEvent::PeerDegraded { left: lanes });
    }

    /// Retries were charged: gives up a lane above the threshold (BlackWidow sec. 7.7).
    fn judge_lanes(&mut self, now: Time, input: &mut Self::Input) {
        if self.common().state != LinkState::Active {
            return;
        }
        let Some(lane) = self.lane_watch().decommission() else {
            return;
        };
        let left = self.rx_lanes();
        let degrades = ALL_LANES.count_ones() - left.count_ones();
        let dies = left == 0 || degrades > self.max_degrades();
        let link = self.common();
        link.counters.rx_lanes_decommissioned += 1;
        link.report(LinkEvent::LaneDegraded { lane, left });
        if dies {
            self.die(now, input);
            return;
        }
        self.lanes_changed(input);
        self.common().ask_for_lanes(now);
    }

    /// No lane is left in one direction: deasserts `link_active`. BlackWidow sec. 7.7 says "all the
    /// lanes in the link"; one direction is our reading.
    fn die(&mut self, now: Time, input: &mut Self::Input) {
        self.leave_active(LinkState::Dead, DownReason::NoLanes, now, input);
        let handshake = &mut self.common().handshake;
        handshake.rest();
        handshake.answer(false);
    }

    fn become_active(&mut self, now: Time, input: &mut Self::Input) {
        let link = self.common();
        let Some(offer) = link.handshake.offer.clone() else {
            return;
        };
        if link.state == LinkState::Refused {
            link.state.go(LinkState::Training);
        }
        link.state.go(LinkState::Active);
        link.begin_session(offer.lanes, now);
        self.begin(&offer, now, input);
        let link = self.common();
        link.handshake.rest();
        link.report(LinkEvent::Up {
            peer: link.config.peer.clone(),
            tx_lanes: offer.lanes,
            rx_lanes: link.handshake.lanes,
        });
    }

    /// Deasserts `link_active`: closes open packets and discards unacknowledged ones.
    fn leave_active(&mut self, to: LinkState, why: DownReason, now: Time, input: &mut Self::Input) {
        let discarded_packets = self.end(input);
        let link = self.common();
        link.state.go(to);
        link.liveness.restart(now);
        if to == LinkState::Training {
            link.handshake.restart(now);
        }
        if why == DownReason::PeerRestarted {
            link.report(LinkEvent::PeerRestarted { discarded_packets });
        }
        link.report(LinkEvent::Down {
            why,
            discarded_packets,
        });
    }
}

const _: () = assert!(
    ALL_LANES.count_ones() == 3,
    "the degrade register falls 3 -> 2 -> 1 -> none"
);

//! Sessions of a link end: which frames belong to one, and which begin or end it.

use phitwire_framing::carrier::frame::FrameHeader;
use phitwire_framing::carrier::training::Training;

use super::end::LinkEnd;
use super::event::{DownReason, LinkEvent, LinkState};
use super::liveness::Due;
use super::training::judge;
use super::wire::Wire;
use crate::time::Time;

impl<W: Wire> LinkEnd<W> {
    /// Inspects the lane pattern of a training frame that arrived after `frames` unreadable frames.
    fn inspect_lanes(&mut self, training: &Training, frames: u32) {
        let link = &mut self.common;
        self.wire.was_trained(link, training);
        let lanes = &mut link.lanes;
        let charged = lanes.inspect(&training.pattern, &link.handshake.cable, frames);
        lanes.note(charged, frames, &mut link.counters);
        lanes.charged = true; // A lane may also have been lost without a charge.
    }

    /// Whether a data frame belongs to this session; the first one may begin it.
    pub(super) fn is_of_session(&mut self, now: Time, header: &FrameHeader) -> bool {
        let link = &mut self.common;
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
                self.common.unusable(now);
                false
            }
            LinkState::Training if same && link.handshake.agreed() => {
                // Our last training frame arrived, so become active: the peer's reply was lost or
                // overtaken.
                self.become_active(now);
                true
            }
            LinkState::Training | LinkState::Refused => {
                link.counters.drop_not_active += 1;
                false
            }
            LinkState::Disabled => {
                link.counters.drop_not_active += 1;
                // If the peer still believes in a session, report that this end is down.
                link.handshake.answer_to(header.tx_epoch, false);
                false
            }
            LinkState::Dead => {
                link.counters.drop_not_active += 1;
                let next = link.handshake.next_epoch();
                let means_us = header.rx_epoch == ours || header.rx_epoch == next;
                if header.tx_epoch != theirs && means_us {
                    self.common.revive(now);
                } else {
                    link.handshake.answer_to(header.tx_epoch, false);
                }
                false
            }
        }
    }

    /// Expires the deadlines that all links share. Returns whether the session continues.
    pub(super) fn expire(&mut self, now: Time) -> bool {
        let owed_since = self.common.out.owed_since;
        let link = &mut self.common;
        link.see(now);
        if link.state != LinkState::Active {
            return false;
        }
        if link.liveness.gives_up_at(owed_since) <= now {
            self.give_up(owed_since, now);
            return false;
        }
        self.common.watch_progress(owed_since, now);
        self.watch_peer(now);
        self.common.state == LinkState::Active
    }

    /// Probes a quiet peer, reports its silence, and ends a session in which no frame is usable.
    fn watch_peer(&mut self, now: Time) {
        while self.common.state == LinkState::Active
            && let Some(due) = self.common.liveness.expire(now)
        {
            let unreadable = self.common.bad_words > 0;
            match due {
                Due::Question => {
                    let round_trip = self.common.out.round_trip.seen();
                    self.common.liveness.measured(round_trip);
                    if unreadable {
                        self.common.doubt_lanes(); // A lane may have failed.
                    }
                    let out = &mut self.common.out;
                    out.wants_probe = true;
                    out.owed_since = out.owed_since.min(now);
                }
                Due::Silence => {
                    let link = &mut self.common;
                    link.counters.silences += 1;
                    link.report(LinkEvent::Silent);
                }
                Due::Heal if unreadable && self.common.lanes.condemn() => {
                    self.judge_lanes(now);
                }
                Due::Heal => {
                    self.common.counters.unusable_sessions += 1;
                    self.leave_active(LinkState::Training, DownReason::Unusable, now);
                }
                Due::Missing => {
                    self.common.counters.unusable_sessions += 1;
                    self.leave_active(LinkState::Training, DownReason::Missing, now);
                }
            }
        }
    }

    /// Ends the session because nothing has been acknowledged for too long, since `owed_since`.
    fn give_up(&mut self, owed_since: Time, now: Time) {
        let link = &mut self.common;
        let was_stalled = link.liveness.is_stalled();
        let heard = link.liveness.gave_up(owed_since, now);
        if heard && !was_stalled {
            link.counters.stalls += 1;
            link.report(LinkEvent::Stalled);
        }
        let why = if heard {
            DownReason::Stalled
        } else {
            DownReason::Silence
        };
        self.common.counters.given_up_sessions += 1;
        self.leave_active(LinkState::Training, why, now);
    }

    /// Handles a well-formed training frame.
    pub(super) fn on_training(&mut self, now: Time, training: &Training) {
        let link = &mut self.common;
        if let Err(refusal) = judge(&link.config, link.handshake.terms(), training) {
            self.common.refuse(refusal);
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
            LinkState::Active => self.train_while_active(now, training),
            LinkState::Training | LinkState::Refused => self.train(now, training),
        }
    }

    fn train(&mut self, now: Time, training: &Training) {
        let peer_state = LinkState::from_code(training.state);
        if peer_state == LinkState::Disabled || peer_state == LinkState::Dead {
            return; // The peer will return under another epoch.
        }
        let header = &training.header;
        let link = &mut self.common;
        // A peer that has received our frames uses some receive lane.
        if training.heard && training.rx_lanes == 0 {
            link.counters.drop_wrong_lanes += 1;
            return;
        }
        link.handshake.accept(training);
        if link.state == LinkState::Refused {
            link.state.go(LinkState::Training);
        }
        let heard = link.handshake.heard();
        if heard && training.heard && header.rx_epoch == link.handshake.epoch {
            self.become_active(now);
        }
        if !(training.heard && peer_state == LinkState::Active && heard) {
            self.common.handshake.answer(heard);
        }
    }

    fn train_while_active(&mut self, now: Time, training: &Training) {
        let header = &training.header;
        let peer_state = LinkState::from_code(training.state);
        let link = &mut self.common;
        if header.tx_epoch != link.handshake.peer_epoch {
            if header.rx_epoch == link.handshake.next_epoch() {
                // The peer replied to our challenge: it is live, and the old incarnation is not.
                let why = match peer_state {
                    LinkState::Disabled => DownReason::PeerDown,
                    _ => DownReason::PeerRestarted,
                };
                self.leave_active(LinkState::Training, why, now);
                self.train(now, training);
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
                self.leave_active(LinkState::Training, DownReason::PeerDown, now);
            }
            LinkState::Dead => self.die(now),
            _ => {
                let frames = core::mem::take(&mut link.bad_words).max(1);
                if core::mem::take(&mut link.doubts_lanes) {
                    self.inspect_lanes(training, frames);
                }
                self.obey_lanes(training.rx_lanes, peer_state, now);
                let wants_answer = !training.heard || peer_state != LinkState::Active;
                if wants_answer && self.common.state == LinkState::Active {
                    self.common.handshake.answer(true);
                }
            }
        }
    }

    /// Handles a training frame after the last lane was lost.
    fn train_while_dead(&mut self, now: Time, training: &Training) {
        let header = &training.header;
        let link = &mut self.common;
        let same_peer = header.tx_epoch == link.handshake.peer_epoch;
        match LinkState::from_code(training.state) {
            LinkState::Active if same_peer || header.rx_epoch == 0 => {
                link.handshake.answer_to(header.tx_epoch, false);
            }
            // Another incarnation trains all lanes, or believes that it has.
            LinkState::Training | LinkState::Refused | LinkState::Active if !same_peer => {
                self.common.revive(now);
            }
            _ => {}
        }
    }

    /// The peer receives on `wanted` only. The receiver alone decides which lanes to use, and only
    /// gives lanes up, so an old frame never requests fewer lanes than a new one. A request for
    /// more lanes than we use is therefore stale, unless we accepted a forged frame.
    fn obey_lanes(&mut self, wanted: u8, peer_state: LinkState, now: Time) {
        if peer_state != LinkState::Active {
            return;
        }
        let ours = self.common.out.lanes;
        let wanted = wanted & self.common.session_lanes;
        if wanted == 0 {
            // Ignore a request for no lanes: an end that receives on none of ours is dead and
            // reports that itself.
            self.common.counters.drop_wrong_lanes += 1;
            return;
        }
        let left = ours & wanted;
        if wanted == ours {
            return;
        }
        let lanes = if left == 0 || left == ours {
            if !self.common.may_regain_lanes(now) {
                return;
            }
            wanted
        } else {
            left
        };
        debug_assert!(
            lanes != 0 && lanes & !self.common.session_lanes == 0,
            "a direction keeps a lane that its session began with"
        );
        let open = self.wire.unacknowledged_packets();
        self.common.concede_lanes(open, now);
        self.wire.send_on(&mut self.common, lanes, now);
        self.common.report(LinkEvent::PeerDegraded { left: lanes });
    }

    /// Retries were charged: gives up a lane above the threshold (BlackWidow sec. 7.7).
    pub(super) fn judge_lanes(&mut self, now: Time) {
        if self.common.state != LinkState::Active {
            return;
        }
        let Some(lane) = self.common.lanes.decommission() else {
            return;
        };
        let left = self.common.lanes.active();
        debug_assert!(left & 1 << lane == 0, "the lane was given up");
        let degrades = W::LAYOUT.lanes().count() as u32 - left.count_ones();
        let dies = left == 0 || degrades > self.wire.max_degrades();
        let link = &mut self.common;
        link.counters.rx_lanes_decommissioned += 1;
        link.report(LinkEvent::LaneDegraded { lane, left });
        if dies {
            self.die(now);
            return;
        }
        self.wire.lanes_changed(link, &mut self.input);
        self.common.ask_for_lanes(now);
    }

    /// No lane is left in one direction: deasserts `link_active`. BlackWidow sec. 7.7 says "all the
    /// lanes in the link"; one direction is our reading.
    pub fn die(&mut self, now: Time) {
        self.leave_active(LinkState::Dead, DownReason::NoLanes, now);
        let handshake = &mut self.common.handshake;
        handshake.rest();
        handshake.answer(false);
    }

    fn become_active(&mut self, now: Time) {
        let link = &mut self.common;
        let Some(offer) = link.handshake.offer.clone() else {
            return;
        };
        if link.state == LinkState::Refused {
            link.state.go(LinkState::Training);
        }
        link.state.go(LinkState::Active);
        link.begin_session(offer.lanes, now);
        self.wire.begin(link, &offer, now, &mut self.input);
        debug_assert_eq!(
            self.wire.unacknowledged_packets(),
            0,
            "a session begins empty"
        );
        let link = &mut self.common;
        link.handshake.rest();
        link.report(LinkEvent::Up {
            peer: link.config.peer.clone(),
            tx_lanes: offer.lanes,
            rx_lanes: link.handshake.lanes,
        });
    }

    /// Deasserts `link_active`: closes open packets and discards unacknowledged ones.
    pub(super) fn leave_active(&mut self, to: LinkState, why: DownReason, now: Time) {
        debug_assert!(self.common.is_active(), "only a session can end");
        let discarded_packets = self.wire.end(&mut self.common, &mut self.input);
        debug_assert_eq!(
            self.wire.unacknowledged_packets(),
            0,
            "units that the peer may have are not resent"
        );
        let link = &mut self.common;
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

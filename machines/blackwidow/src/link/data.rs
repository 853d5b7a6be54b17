//! Handling of a data frame by a YARC link end.

use core::ops::Range;

use phitwire_framing::yarc::control::{ControlWord, LinkStatus};
use phitwire_framing::yarc::frame::DataFrame;
use phitwire_framing::yarc::phit::Phit;

use super::input_queue::InputQueue;
use super::lcb::Lcb;
use super::receive::Place;
use super::resequencer::Position;
use super::transmit::BadWord;
use phitwire::link::CutThrough;
use phitwire::link::common::BAD_WORDS_UNTIL_DOUBT;
use phitwire::link::session::Session;
use phitwire::time::{Duration, Time};

/// A frame that no correct peer can have sent, or that cannot be decoded.
struct Unusable;

/// The rest of a frame, still to be handed up; `Lcb::scratch` holds its phits.
#[derive(Clone, Debug)]
pub(super) struct Coming {
    at: Position,
    pass: u16,
    phits: Range<usize>,
    /// When the next piece is due at the line rate; in the past behind a free-running clock.
    pub due: Time,
}

impl Lcb {
    /// Handles a data frame with a well-formed header.
    pub(super) fn on_data(&mut self, now: Time, data: DataFrame<'_>, input: &mut InputQueue) {
        // Frames are handed up in order.
        self.hand_up(now, usize::MAX, input);
        let header = data.header();
        if !self.belongs(now, header, input) {
            return;
        }
        let data = data.behind(self.common.handshake.cable);
        let Some((word, at)) = self.believe(now, &data) else {
            return;
        };
        self.believes(data.header().lanes);
        self.tx.heard();
        self.common.counters.rx_data_frames += 1;
        let owed_since = self.tx.out.owed_since;
        self.tx
            .word(&word, now, &mut self.common.counters)
            .expect("the word was checked before");
        if self.tx.out.owed_since != owed_since {
            self.moves();
        }
        if word.status == LinkStatus::Probe {
            self.rx.acks.remind();
        }
        let mut scratch = core::mem::take(&mut self.scratch);
        if scratch.len() < data.phits() {
            scratch.resize(data.phits(), Phit::IDLE);
        }
        let count = data.decode(&mut scratch);
        self.scratch = scratch;
        self.coming = Some(Coming {
            at,
            pass: word.pass,
            phits: 0..count,
            due: now,
        });
        match self.common.config.cut_through {
            CutThrough::Frames => self.hand_up(now, usize::MAX, input),
            CutThrough::Phits => self.hand_up_next(now, input),
        }
    }

    /// Hands up the next piece of a frame: up to the next end of packet behind a free-running
    /// clock, a burst behind a paced one.
    pub(super) fn hand_up_next(&mut self, now: Time, input: &mut InputQueue) {
        let Some(coming) = &self.coming else {
            return;
        };
        let left = &self.scratch[coming.phits.clone()];
        let most = match self.tx.burst_time() {
            Some(_) => self.common.profile.burst_phits as usize,
            None => {
                let end = left.iter().skip(1).position(|phit| phit.is_eop());
                end.map_or(left.len(), |end| end + 1)
            }
        };
        self.hand_up(now, most, input);
    }

    /// Hands up to `most` phits of the current frame.
    fn hand_up(&mut self, now: Time, most: usize, input: &mut InputQueue) {
        let Some(mut coming) = self.coming.take() else {
            return;
        };
        let piece = coming.phits.start
            ..coming
                .phits
                .end
                .min(coming.phits.start.saturating_add(most));
        coming.phits.start = piece.end;
        let scratch = core::mem::take(&mut self.scratch);
        let phits = &scratch[piece];
        let counters = &mut self.common.counters;
        let at = coming.at;
        self.rx.data(now, (at, coming.pass), phits, input, counters);
        if !coming.phits.is_empty() {
            coming.at = phits.iter().fold(at, |at, phit| at.after(*phit));
            coming.due += self.tx.burst_time().unwrap_or(Duration::ZERO);
            self.coming = Some(coming);
        }
        self.scratch = scratch;
        self.accepted(self.rx.waits_for(), now);
        if self.rx.doubts_lanes() {
            self.common.doubt_lanes();
        }
    }

    /// The control word and start of a frame, if everything in it can be the peer's current state.
    /// Otherwise counts it and notes it against the session.
    #[inline]
    fn believe(&mut self, now: Time, data: &DataFrame<'_>) -> Option<(ControlWord, Position)> {
        let judged = self.judge_word(data);
        match judged {
            Ok((word, Place::At(at))) => return Some((word, at)),
            Ok((_, Place::Stale)) => self.stale(now),
            Err(Unusable) => self.unusable(now),
        }
        None
    }

    #[inline]
    fn judge_word(&mut self, data: &DataFrame<'_>) -> Result<(ControlWord, Place), Unusable> {
        let Ok(word) = data.control_word() else {
            self.common.counters.drop_bad_sideband += 1;
            self.common.bad_words += 1;
            if self.common.bad_words >= BAD_WORDS_UNTIL_DOUBT {
                self.common.doubt_lanes();
            }
            return Err(Unusable);
        };
        self.common.bad_words = 0;
        let Ok(place) = self.rx.place(&word) else {
            self.common.counters.drop_impossible_position += 1;
            return Err(Unusable);
        };
        if let Place::At(_) = place {
            match self.tx.check(&word) {
                Ok(()) => {}
                Err(BadWord::Ack) => {
                    self.common.counters.drop_impossible_ack += 1;
                    return Err(Unusable);
                }
                Err(BadWord::VcAck) => {
                    self.common.counters.drop_impossible_vc_ack += 1;
                    return Err(Unusable);
                }
            }
        }
        Ok((word, place))
    }
}

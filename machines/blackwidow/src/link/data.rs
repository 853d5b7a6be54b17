//! Handling of a data frame by a YARC link end.

use core::ops::Range;

use phitwire_framing::yarc::control::{ControlWord, LinkStatus};
use phitwire_framing::yarc::frame::DataFrame;
use phitwire_framing::yarc::phit::Phit;

use super::input_queue::InputQueue;
use super::lcb::{Lcb, PhitWire};
use super::receive::FramePosition;
use super::resequencer::Position;
use super::transmit::BadWord;
use phitwire::link::CutThrough;
use phitwire::link::common::{BAD_WORDS_UNTIL_DOUBT, Common};
use phitwire::time::{Duration, Time};

/// A frame that no correct peer can have sent, or that cannot be decoded.
struct Unusable;

/// The rest of a frame, still to be handed up; `PhitWire::scratch` holds its phits.
#[derive(Clone, Debug)]
pub(super) struct PendingPhits {
    at: Position,
    pass: u16,
    phits: Range<usize>,
    /// When the next piece is due at the line rate; in the past under a free-running clock.
    pub due: Time,
}

/// Handles a data frame with a well-formed header.
pub(super) fn on_data(end: &mut Lcb, now: Time, data: DataFrame<'_>) {
    // First hand up the rest of the previous frame, to keep frames in order.
    let (wire, link, input) = end.parts_mut();
    wire.hand_up(link, now, usize::MAX, input);
    if !end.belongs(now, data.header()) {
        return;
    }
    let (wire, link, input) = end.parts_mut();
    wire.take(link, now, data, input);
}

impl PhitWire {
    /// Handles a data frame of this session.
    fn take(&mut self, link: &mut Common, now: Time, data: DataFrame<'_>, input: &mut InputQueue) {
        let data = data.behind(link.handshake.cable);
        let Some((word, at)) = self.current_word(link, now, &data) else {
            return;
        };
        link.settle_lanes(data.header().lanes);
        self.tx.heard(&mut link.out);
        link.counters.rx_data_frames += 1;
        let owed_since = link.out.owed_since;
        self.tx
            .word(&word, now, link)
            .expect("the word was checked before");
        if link.out.owed_since != owed_since {
            link.moves();
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
        self.pending_phits = Some(PendingPhits {
            at,
            pass: word.pass,
            phits: 0..count,
            due: now,
        });
        match link.config.cut_through {
            CutThrough::Frames => self.hand_up(link, now, usize::MAX, input),
            CutThrough::Phits => self.hand_up_next(link, now, input),
        }
    }

    /// Hands up the next piece of a frame: up to the next end of packet under a free-running clock,
    /// a burst under a paced one.
    pub(super) fn hand_up_next(&mut self, link: &mut Common, now: Time, input: &mut InputQueue) {
        let Some(pending_phits) = &self.pending_phits else {
            return;
        };
        let left = &self.scratch[pending_phits.phits.clone()];
        let most = match self.tx.burst_time() {
            Some(_) => self.config.phits.burst_phits as usize,
            None => {
                let end = left.iter().skip(1).position(|phit| phit.is_eop());
                end.map_or(left.len(), |end| end + 1)
            }
        };
        self.hand_up(link, now, most, input);
    }

    /// Hands up to `most` phits of the current frame.
    fn hand_up(&mut self, link: &mut Common, now: Time, most: usize, input: &mut InputQueue) {
        let Some(mut pending_phits) = self.pending_phits.take() else {
            return;
        };
        let piece = pending_phits.phits.start
            ..pending_phits
                .phits
                .end
                .min(pending_phits.phits.start.saturating_add(most));
        pending_phits.phits.start = piece.end;
        let scratch = core::mem::take(&mut self.scratch);
        let phits = &scratch[piece];
        let at = pending_phits.at;
        self.rx
            .data(now, (at, pending_phits.pass), phits, input, link);
        if !pending_phits.phits.is_empty() {
            pending_phits.at = phits.iter().fold(at, |at, phit| at.after(*phit));
            pending_phits.due += self.tx.burst_time().unwrap_or(Duration::ZERO);
            self.pending_phits = Some(pending_phits);
        }
        self.scratch = scratch;
        link.accepted(self.rx.waits_for(), now);
        if self.rx.doubts_lanes() {
            link.doubt_lanes();
        }
    }

    /// The control word of a frame and its position in the stream, if both can be the peer's
    /// current state. Otherwise counts the frame, and reports it to the link as stale or unusable.
    #[inline]
    fn current_word(
        &mut self,
        link: &mut Common,
        now: Time,
        data: &DataFrame<'_>,
    ) -> Option<(ControlWord, Position)> {
        let judged = self.judge_word(link, data);
        match judged {
            Ok((word, FramePosition::At(at))) => return Some((word, at)),
            Ok((_, FramePosition::Stale)) => link.stale(now),
            Err(Unusable) => link.unusable(now),
        }
        None
    }

    #[inline]
    fn judge_word(
        &mut self,
        link: &mut Common,
        data: &DataFrame<'_>,
    ) -> Result<(ControlWord, FramePosition), Unusable> {
        let Ok(word) = data.control_word() else {
            link.counters.drop_bad_sideband += 1;
            link.bad_words += 1;
            if link.bad_words >= BAD_WORDS_UNTIL_DOUBT {
                link.doubt_lanes();
            }
            return Err(Unusable);
        };
        link.bad_words = 0;
        let Ok(position) = self.rx.position(&word) else {
            link.counters.drop_impossible_position += 1;
            return Err(Unusable);
        };
        if let FramePosition::At(_) = position {
            match self.tx.check(&word) {
                Ok(()) => {}
                Err(BadWord::Ack) => {
                    link.counters.drop_impossible_ack += 1;
                    return Err(Unusable);
                }
                Err(BadWord::VcAck) => {
                    link.counters.drop_impossible_vc_ack += 1;
                    return Err(Unusable);
                }
            }
        }
        Ok((word, position))
    }
}

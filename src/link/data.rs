//! What a data frame does to a link end of YARC.

use phitwire_framing::control::{ControlWord, LinkStatus};
use phitwire_framing::frame::DataFrame;
use phitwire_framing::phit24::Phit;

use super::input_queue::InputQueue;
use super::lcb::{BAD_WORDS_UNTIL_DOUBT, Lcb};
use super::resequencer::Position;
use super::session::Session;
use super::transmit::BadWord;
use crate::time::Time;

impl Lcb {
    /// A data frame whose header is well formed.
    pub(super) fn on_data(&mut self, now: Time, data: DataFrame<'_>, input: &mut InputQueue) {
        let header = data.header();
        if !self.common.is_ours(header) || !self.is_of_session(now, header, input) {
            return;
        }
        let lanes = header.lanes;
        let data = data.behind(self.common.handshake.cable);
        let Some((word, at)) = self.believe(now, &data) else {
            self.unusable(now);
            return;
        };
        self.rx.lanes.settle(lanes);
        if self.common.asks_for_lanes {
            self.common.lanes_are_right();
        }
        self.accepted(now);
        self.tx.heard();
        self.common.counters.rx_data_frames += 1;
        self.tx
            .word(&word, now, &mut self.common.counters)
            .expect("the word was checked");
        if word.status == LinkStatus::Probe {
            self.rx.acks.urge();
        }
        let mut scratch = core::mem::take(&mut self.scratch);
        if scratch.len() < data.phits() {
            scratch.resize(data.phits(), Phit::IDLE);
        }
        let count = data.decode(&mut scratch);
        self.rx
            .data(now, at, &scratch[..count], input, &mut self.common.counters);
        self.scratch = scratch;
        if self.rx.doubts_lanes() {
            self.common.doubt_lanes();
        }
    }

    /// The control word of a frame, and where the frame starts, if all that it says can be the peer's.
    #[inline]
    fn believe(&mut self, now: Time, data: &DataFrame<'_>) -> Option<(ControlWord, Position)> {
        if !self.rx.lanes.may_come_on(data.header().lanes) {
            self.common.counters.drop_wrong_lanes += 1;
            self.common.ask_for_lanes(now);
            return None;
        }
        let Ok(word) = data.control_word() else {
            self.common.counters.drop_bad_sideband += 1;
            self.common.bad_words += 1;
            if self.common.bad_words >= BAD_WORDS_UNTIL_DOUBT {
                self.common.doubt_lanes();
            }
            return None;
        };
        self.common.bad_words = 0;
        let Ok(at) = self.rx.place(&word) else {
            self.common.counters.drop_impossible_position += 1;
            return None;
        };
        match self.tx.check(&word) {
            Ok(()) => return Some((word, at)),
            Err(BadWord::Ack) => self.common.counters.drop_impossible_ack += 1,
            Err(BadWord::VcAck) => self.common.counters.drop_impossible_vc_ack += 1,
        }
        None
    }
}

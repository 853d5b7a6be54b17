//! What a data frame does to a link end of YARC.

use phitwire_framing::control::LinkStatus;
use phitwire_framing::frame::DataFrame;
use phitwire_framing::phit24::Phit;

use super::credits::Impossible;
use super::input_queue::InputQueue;
use super::lcb::{BAD_WORDS_UNTIL_DOUBT, Lcb};
use super::receive::Place;
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
        if header.lanes != self.rx.lanes.active() && !self.rx.lanes.follow(header.lanes) {
            self.common.counters.drop_wrong_lanes += 1;
            self.common.ask_for_lanes(now);
            return;
        }
        if self.common.asks_for_lanes {
            self.common.lanes_are_right();
        }
        let data = data.behind(self.common.handshake.cable);
        let Ok(word) = data.control_word() else {
            self.common.counters.drop_bad_sideband += 1;
            self.common.bad_words += 1;
            if self.common.bad_words >= BAD_WORDS_UNTIL_DOUBT {
                self.common.handshake.answer(false);
            }
            return;
        };
        self.common.bad_words = 0;
        let at = match self.rx.place(&word) {
            Ok(Place::At(at)) => at,
            Ok(Place::Stale) => return self.common.counters.rx_stale_frames += 1,
            Err(Impossible) => return self.common.counters.drop_impossible_position += 1,
        };
        match self.tx.check(&word) {
            Ok(()) => {}
            Err(BadWord::Ack) => return self.common.counters.drop_impossible_ack += 1,
            Err(BadWord::VcAck) => return self.common.counters.drop_impossible_vc_ack += 1,
        }
        self.common.counters.rx_data_frames += 1;
        self.tx
            .word(&word, now, &mut self.common.counters)
            .expect("the word was checked");
        if word.status == LinkStatus::Probe {
            self.rx.acks.remind();
        }
        let mut scratch = core::mem::take(&mut self.scratch);
        if scratch.len() < data.phits() {
            scratch.resize(data.phits(), Phit::IDLE);
        }
        let count = data.decode(&mut scratch);
        self.rx.data(
            now,
            (at, word.pass),
            &scratch[..count],
            input,
            &mut self.common.counters,
        );
        self.scratch = scratch;
        if self.rx.doubts_lanes() {
            self.common.handshake.answer(false);
        }
    }
}

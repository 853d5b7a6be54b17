//! Frames of sets: receiving and sending.

use phitwire_framing::aries::flit::Flit;
use phitwire_framing::aries::frame::{SETS_AT, SetFrame, SetFrameWriter, max_sets};
use phitwire_framing::aries::set::{
    ControlSet, DATA_FLITS, DataFlits, DataSet, LANES, SetBytes, SetError, SetKind, SetView, Tail,
};

use super::input::AriesInput;
use super::lcb::{AriesLcb, IN, OUT, SetWire, reinitialise};
use super::transmit::{BadAck, Run};
use phitwire::link::common::{BAD_WORDS_UNTIL_DOUBT, Common};
use phitwire::time::Time;

/// Emulated time between pulses of the global clock in ns (ours).
const PULSE_NS: u64 = 1_000;

/// Contents of a frame of sets so far.
#[derive(Debug, Default)]
struct FrameSummary {
    /// Number of the next data set, if a control set named it.
    at: Option<u64>,
    /// Whether a set can have come from the peer: a control set, or a data set with a number.
    accepted: bool,
    /// Whether there was a new data set or a control set.
    news: bool,
    /// Whether data sets arrived that were received before.
    repeated: bool,
    /// Whether a control set is more than a window late.
    stale: bool,
    readable: bool,
    /// Number of unreadable sets.
    bad: u32,
}

/// Handles a frame of sets with a well-formed header.
pub(super) fn on_sets(end: &mut AriesLcb, now: Time, frame: &SetFrame<'_>) {
    if end.belongs(now, frame.header()) {
        let (wire, link, input) = end.parts_mut();
        wire.take(link, now, frame, input);
    }
}

impl SetWire {
    /// Handles a frame of this session.
    fn take(&mut self, link: &mut Common, now: Time, frame: &SetFrame<'_>, input: &mut AriesInput) {
        let header = frame.header();
        self.scrambler[IN].set_lanes(header.lanes);
        let mut summary = FrameSummary::default();
        let owed_since = link.out.owed_since;
        let cable = link.handshake.cable;
        for set in frame.as_they_came() {
            let taken = if cable.is_identity() {
                self.on_set(link, now, set, &mut summary, input)
            } else {
                let mut set = *set;
                LANES.swizzle_area_back(&mut set, header.lanes, &cable);
                self.on_set(link, now, &set, &mut summary, input)
            };
            if taken.is_err() {
                break;
            }
        }
        if link.out.owed_since != owed_since {
            link.moves();
        }
        if summary.stale {
            link.stale(now);
            return;
        }
        if summary.readable {
            link.bad_words = 0;
        }
        if summary.accepted {
            link.settle_lanes(header.lanes);
            link.accepted(self.rx.waits_for(), now);
            self.tx.heard(&mut link.out);
            link.counters.rx_data_frames += 1;
        } else {
            link.unusable(now);
        }
        if !summary.readable {
            // Count each set like a frame, since the sender chooses the length of frames.
            link.bad_words += summary.bad;
            link.counters.drop_bad_sideband += 1;
            if link.bad_words >= BAD_WORDS_UNTIL_DOUBT {
                link.doubt_lanes();
            }
        }
        if summary.repeated && !summary.news {
            // The peer does not know that it arrived, so an acknowledgement was lost.
            self.rx.acks.urge();
        }
        self.rx.look_for_gaps(now, &mut self.sets);
    }

    /// Handles one set of a frame, still scrambled. An error means that no correct peer sent it;
    /// the rest of the frame is then dropped.
    #[inline]
    fn on_set(
        &mut self,
        link: &mut Common,
        now: Time,
        bytes: &SetBytes,
        summary: &mut FrameSummary,
        input: &mut AriesInput,
    ) -> Result<(), ()> {
        match &SetKind::of(bytes, self.scrambler[IN].pattern()) {
            Ok(SetKind::Data(tenth)) => {
                summary.readable = true;
                self.rx.bad_run = 0;
                self.on_data_set(link, now, bytes, Tail::of(*tenth), summary, input)
            }
            Ok(SetKind::Control(set)) => {
                summary.readable = true;
                self.rx.bad_run = 0;
                self.sets.rx_control_sets += 1;
                self.on_control_set(link, now, set, summary)
            }
            Err(SetError::Crc) => {
                let bytes = self.scrambler[IN].descrambled(*bytes);
                self.on_bad_set(link, &bytes, summary);
                Ok(())
            }
            Err(SetError::ReservedControl | SetError::Contradiction) => {
                self.sets.rx_bad_sets += 1;
                Err(())
            }
        }
    }

    #[inline]
    fn on_data_set(
        &mut self,
        link: &mut Common,
        now: Time,
        bytes: &SetBytes,
        tail: Tail,
        summary: &mut FrameSummary,
        input: &mut AriesInput,
    ) -> Result<(), ()> {
        let number = if self.config.sets.full_numbers {
            let Some(number) = summary.at else {
                self.sets.rx_unplaced_sets += 1;
                return Ok(());
            };
            if tail.number != number as u8 & 0x7f {
                self.sets.rx_bad_sets += 1;
                return Err(());
            }
            summary.at = Some(number + 1);
            number
        } else {
            let Ok(number) = self.rx.place_short(tail.number) else {
                link.counters.drop_impossible_position += 1;
                return Err(());
            };
            if number == self.rx.expected() {
                // A repeated set may carry old acknowledgements, which six bits cannot distinguish
                // from new ones.
                self.on_tail(link, now, &tail);
            }
            number
        };
        summary.accepted = true;
        self.peer_load = tail.load;
        if link.lanes.waits() {
            let bytes = self.scrambler[IN].descrambled(*bytes);
            self.rx.good(number, &bytes, link);
        }
        let counters = (&mut self.sets, &mut link.counters);
        let pattern = self.scrambler[IN].pattern();
        let flits = DataFlits { bytes, pattern };
        let new = self.rx.data(now, number, flits, input, counters);
        summary.news |= new;
        summary.repeated |= !new;
        Ok(())
    }

    fn on_tail(&mut self, link: &mut Common, now: Time, tail: &Tail) {
        match self.tx.tail(tail, now, link, &mut self.sets) {
            Ok(()) => {}
            Err(BadAck::Ack) => link.counters.drop_impossible_ack += 1,
            Err(BadAck::VcAck) => link.counters.drop_impossible_vc_ack += 1,
        }
    }

    fn on_control_set(
        &mut self,
        link: &mut Common,
        now: Time,
        set: &ControlSet,
        summary: &mut FrameSummary,
    ) -> Result<(), ()> {
        let Ok(next) = self.rx.full_number(set.next) else {
            link.counters.drop_impossible_position += 1;
            return Err(());
        };
        if self.rx.is_stale(next) {
            summary.stale = true;
            return Err(());
        }
        match self.tx.control(set, now, link, &mut self.sets) {
            Ok(()) => {}
            Err(BadAck::Ack) => {
                link.counters.drop_impossible_ack += 1;
                return Err(());
            }
            Err(BadAck::VcAck) => {
                link.counters.drop_impossible_vc_ack += 1;
                return Err(());
            }
        }
        summary.accepted = true;
        self.peer_load = set.load;
        self.peer_clock = Some((set.clock, now));
        self.rx.hint(next);
        if set.probe {
            self.rx.acks.urge();
        }
        summary.at = Some(next);
        Ok(())
    }

    /// Handles a set that failed its CRC. Its number follows from its position in the frame or,
    /// with short numbers, is assumed to be the expected one.
    fn on_bad_set(&mut self, link: &mut Common, bytes: &SetBytes, summary: &mut FrameSummary) {
        summary.bad += 1;
        let number = if self.config.sets.full_numbers {
            let number = summary.at;
            summary.at = number.map(|number| number + 1);
            number
        } else {
            // Assume the expected set only if the damaged one carries its number.
            let expected = self.rx.expected();
            let view = SetView::new(bytes);
            let agrees = !view.is_control() && view.number() == expected as u8 & 0x7f;
            agrees.then_some(expected)
        };
        let limit = self.config.registers.reinit_after_bad_sets;
        if self.rx.bad(number, bytes, limit, link, &mut self.sets) {
            reinitialise(link);
        }
    }

    // Sending.

    #[inline]
    pub(super) fn wants_control_frame(&self, link: &Common, now: Time) -> bool {
        self.rx.wants_nack() || link.out.wants_probe || self.rx.acks.is_due(now)
    }

    /// Writes the next frame to `buf`, if there is something to send. Returns its length and
    /// whether it carries data.
    pub(super) fn emit_frame(
        &mut self,
        link: &mut Common,
        now: Time,
        buf: &mut [u8],
    ) -> Option<(usize, bool)> {
        let sets = self
            .tx
            .allowance(&link.out, now, max_sets(buf.len()) as u64);
        if sets == 0 && !self.wants_control_frame(link, now) {
            return None;
        }
        let lanes = link.out.lanes;
        let header = link.header(SetFrame::KIND, lanes);
        let mut writer = SetFrameWriter::new(&header, buf).expect("the buffer holds a frame");
        self.scrambler[OUT].set_lanes(lanes);
        let sent = self.emit_sets(link, now, sets, &mut writer);
        let length = writer.finish().expect("the frame has at least one set");
        link.send_through_cable(&mut buf[SETS_AT..length], lanes);
        Some((length, sent > 0))
    }

    /// Fills a frame with the control sets due and up to `most` data sets. Returns the number of
    /// data sets.
    fn emit_sets(
        &mut self,
        link: &mut Common,
        now: Time,
        most: u64,
        writer: &mut SetFrameWriter<'_>,
    ) -> u64 {
        let full_numbers = self.config.sets.full_numbers;
        let mut left = most;
        let mut pulse = self.pulse(link, now);
        // With short numbers, as on the chip, a nack rides on data.
        let rides = !full_numbers && left > 0 && self.rx.may_ride();
        if !rides {
            self.emit_nacks(link, now, left > 0, writer, &mut pulse);
        }
        if !full_numbers && (link.out.wants_probe || left == 0 || self.rx.acks.wants_control(now)) {
            let next = self.tx.sent_up_to();
            if writer.room() > usize::from(left > 0) && writer.sets() == 0 {
                self.emit_control(link, now, next, None, writer, &mut pulse);
            }
        }
        while left > 0 {
            let overhead = usize::from(full_numbers);
            let room = writer.room().saturating_sub(overhead) as u64;
            let Some(run) = self.tx.next_run(left.min(room)) else {
                break;
            };
            if full_numbers {
                self.emit_control(link, now, run.first, None, writer, &mut pulse);
            }
            self.emit_run(link, now, run, writer, &mut pulse);
            left -= run.sets;
        }
        if writer.sets() == 0 {
            let next = self.tx.sent_up_to();
            self.emit_control(link, now, next, None, writer, &mut pulse);
        }
        most - left
    }

    /// Writes a control set for each gap to request, leaving room for one control set and one data
    /// set if there is data.
    fn emit_nacks(
        &mut self,
        link: &mut Common,
        now: Time,
        has_data: bool,
        writer: &mut SetFrameWriter<'_>,
        pulse: &mut bool,
    ) {
        let reserve = if has_data { 2 } else { 0 };
        while self.rx.wants_nack() && writer.room() > reserve {
            let last = writer.room() == reserve + 1;
            let Some(gap) = self.rx.next_nack(last) else {
                break;
            };
            let next = self.tx.sent_up_to();
            self.emit_control(link, now, next, Some(gap), writer, pulse);
        }
    }

    fn emit_control(
        &mut self,
        link: &mut Common,
        now: Time,
        next: u64,
        gap: Option<(u16, u16)>,
        writer: &mut SetFrameWriter<'_>,
        pulse: &mut bool,
    ) {
        let Some(slot) = writer.slot() else {
            return;
        };
        let expected = self.rx.expected();
        let probe = core::mem::take(&mut link.out.wants_probe);
        link.counters.tx_probes += u64::from(probe);
        let (missing_from, missing) = gap.unwrap_or_default();
        self.reported_load = self.load;
        let set = ControlSet {
            probe,
            nack: gap.is_some(),
            next: next as u32,
            ack: expected as u32,
            missing_from,
            missing,
            vc_acks: self.rx.acks.take_vc_acks(expected),
            clock: now.as_ns() / link.config.clock.dilation(),
            pulse: core::mem::take(pulse),
            load: self.load,
        };
        set.emit(slot);
        self.sets.tx_control_sets += 1;
        self.scrambler[OUT].apply(slot);
    }

    fn emit_run(
        &mut self,
        link: &mut Common,
        now: Time,
        run: Run,
        writer: &mut SetFrameWriter<'_>,
        pulse: &mut bool,
    ) {
        let expected = self.rx.expected();
        for number in run.first..run.first + run.sets {
            let slot = writer.slot().expect("the caller checked that the run fits");
            let tail = Tail {
                number: (number & 0x7f) as u8,
                ack: (expected & 0x3f) as u8,
                nack: self.rx.wants_nack() && self.rx.next_nack(true).is_some(),
                load: self.load,
                clock: core::mem::take(pulse),
                vc_ack: self.rx.acks.take_vc_ack((number % 8) as usize, expected),
            };
            let pattern = self.scrambler[OUT].pattern();
            let mut buffer = [Flit::IDLE; DATA_FLITS];
            let flits = self.tx.flits_of(number, &mut buffer);
            DataSet::emit_under(pattern, flits, tail, slot);
            if self.injector.is_on() && self.injector.apply(slot, link.out.lanes) {
                self.sets.tx_injected_errors += 1;
            }
        }
        self.reported_load = self.load;
        self.tx.sent(run, now, &mut link.out, &mut self.sets);
    }

    /// Whether the global clock has pulsed since a set last reported it.
    #[inline]
    fn pulse(&mut self, link: &Common, now: Time) -> bool {
        let pulse = now.as_ns() / (PULSE_NS * link.config.clock.dilation());
        core::mem::replace(&mut self.pulse, pulse) != pulse
    }
}

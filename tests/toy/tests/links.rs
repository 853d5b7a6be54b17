//! The link of the toy in the cases of all links.

use std::ops::Range;

use phitwire_framing::carrier::frame::{self, CHECK_BYTES, FrameHeader, HEADER_BYTES};
use proptest::prelude::*;

use super::super::Packet;
use super::super::link::{Input, KIND, RingEnd, STANDARD, frame_len};
use crate::link::common::Common;
use crate::link::tests::rig::{self, A, B, Link, Pair, config, forward, lcb_methods};
use crate::link::{
    LaneRate, LinkClock, LinkConfig, LinkConfigBuilder, LinkControlBlock, LinkCounters, LinkEvent,
    LinkProfile, LinkStandard, LinkState, ReceiveBuffer,
};
use crate::time::{Duration, Time};

pub struct Toy;

lcb_methods! { forward RingEnd, Input; }

impl Link for Toy {
    type Lcb = RingEnd;
    type Input = Input;
    type Config = LinkConfig;
    type Word = Packet;
    type Command = std::convert::Infallible;

    const VCS: usize = 1;
    const PACKET_WORDS: Range<usize> = 1..2;
    const IDLE_FRAME_BYTES: usize = frame_len(0);
    const SMALL_FRAME_BYTES: usize = frame_len(2);
    const ID_BITS: u32 = 24;
    const PROCESSES: u32 = 1 << 6;
    const STANDARD: LinkStandard = STANDARD;
    const OTHER_RATE: LaneRate = STANDARD.rates[1];
    const LOSES_TAILS: bool = false;
    const NUMBERS_SOFT_ERRORS: bool = true;
    const CHARGES_OF_20: Range<u64> = 21..22;

    fn built(builder: LinkConfigBuilder) -> LinkConfig {
        builder.build().unwrap()
    }

    fn cramped(builder: LinkConfigBuilder) -> LinkConfig {
        let profile = LinkProfile {
            input_phits_per_vc: 48,
            retry_phits: 64,
            window_packets: 4,
            reorder_phits: 100,
            ..LinkProfile::live()
        };
        builder.profile(profile).build().unwrap()
    }

    fn paper(seed: u64) -> Pair<Self> {
        let end = |end| {
            let builder = config::<Self>(end).profile(LinkProfile::paper());
            builder
                .clock(LinkClock::Paced { dilation: 50 })
                .build()
                .unwrap()
        };
        Pair::with(seed, end(A), end(B), rig::FRAME_BYTES)
    }

    fn made(config: LinkConfig, now: Time) -> (RingEnd, Input) {
        LinkControlBlock::new(config, now)
    }

    fn packet(_: usize, id: u32, _: usize) -> Vec<Packet> {
        let id = u64::from(id);
        vec![core::array::from_fn(|i| id << (7 * i) | i as u64)]
    }

    fn can_begin(end: &RingEnd, _: usize, _: usize) -> bool {
        end.room() > 0
    }

    fn push(end: &mut RingEnd, packet: Packet) {
        end.push(packet);
    }

    fn credits(end: &RingEnd, _: usize) -> u32 {
        end.room() as u32
    }

    fn offered(end: &RingEnd) -> u32 {
        end.config().profile().input_phits_per_vc / 16
    }

    fn vc_freed(end: &mut RingEnd, vc: usize, packets: u32) {
        LinkControlBlock::vc_freed(end, vc, packets);
    }

    fn len(input: &Input, _: usize) -> u32 {
        input.queued() as u32
    }

    fn pop(input: &mut Input, _: usize) -> Packet {
        input.pop().unwrap()
    }

    fn take_acks(input: &mut Input, _: usize) -> u32 {
        let mut acks = 0;
        input.take_freed(|_, freed| acks = freed);
        acks
    }

    fn is_whole(_: &[Packet]) -> bool {
        true
    }

    fn check(end: &mut rig::End<Self>, vc: usize, got: &[Packet]) {
        let id = got[0][0] as u32;
        end.arrived(vc, id);
        assert_eq!(got, Self::packet(vc, id, 1), "contents");
    }

    fn assert_conserved(pair: &Pair<Self>, end: usize) {
        let (sent, got) = (
            pair.count(end, |c| c.tx_packets),
            pair.count(1 - end, |c| c.rx_packets),
        );
        assert_eq!(sent, got, "each packet accepted once");
    }

    fn check_failures(end: &RingEnd) -> u64 {
        end.counters().drop_bad_sideband
    }

    fn requests(end: &RingEnd) -> u64 {
        end.counters().rx_retry_requests
    }

    fn described(end: &rig::End<Self>) -> String {
        format!("queued {}", end.input.queued())
    }

    fn forge(pair: &Pair<Self>, to: usize, lanes: u8, more: u64, packets: &[Packet]) -> Vec<u8> {
        let from = &pair.ends[1 - to].lcb;
        let mut bytes = vec![0; frame_len(packets.len())];
        let header = FrameHeader {
            units: packets.len() as u16,
            ..from.common.header(KIND, lanes)
        };
        header.emit(&mut bytes).unwrap();
        let (seq, rx) = (pair.ends[to].lcb.rx.expected, &from.rx);
        let words = [seq, rx.expected + more, rx.limit, 0];
        let words = words.iter().chain(packets.as_flattened());
        for (word, at) in words.zip(bytes[HEADER_BYTES..].as_chunks_mut().0) {
            *at = word.to_be_bytes();
        }
        let checked = bytes.len() - CHECK_BYTES;
        frame::seal(&mut bytes, checked);
        bytes
    }

    fn command(_: &mut RingEnd, command: std::convert::Infallible, _: Time) {
        match command {}
    }

    fn frame_bytes() -> BoxedStrategy<usize> {
        (3..20_usize).prop_map(frame_len).boxed()
    }
}

impl RingEnd {
    fn force_retry(&mut self, now: Time) {
        self.tx.rewind(now);
    }

    /// Nothing checks a packet before its frame.
    fn soft_error_next(&mut self) {}
}

/// All that holds for links that never give up a lane, which would take a quarter of the toy. Left
/// out with those is that an end which misses a packet for a minute says why it begins anew.
mod shared {
    crate::link::tests::shared_cases! { crate::machine::toy::tests::links::Toy:
        chaos {
            every_packet_arrives_once_whatever_happens
            no_packet_arrives_twice_whoever_dies
            every_packet_arrives_once_at_the_chip_s_own_depths
            all_of_netem_at_once
            the_same_seed_gives_the_same_run
            the_checker_can_fail
        }
        forged {
            a_hundred_thousand_headers_with_fewer_lanes_take_none
            a_request_that_was_not_the_peer_s_is_taken_back
            a_request_for_no_lane_kills_nobody
            a_new_process_begins_no_session_without_lanes
            a_pattern_that_nobody_asked_for_takes_no_lane
        }
        liveness {
            a_session_in_which_nothing_can_be_used_begins_anew_within_its_time
            a_link_that_may_not_heal_stays_as_it_is
            a_stranger_s_frames_do_not_end_a_session_whose_peer_answers
            the_same_frames_end_a_session_whose_peer_does_not_answer
            one_bad_frame_before_a_cut_ends_nothing
            answers_that_take_longer_than_a_session_may_be_unusable_are_waited_for
            what_the_peer_takes_for_acknowledged_is_not_waited_for_for_ever
            silence_is_told_and_untold_and_nothing_else_happens
            a_process_that_stood_still_does_not_call_its_peer_silent
            nobody_is_asked_where_silence_is_not_told
            giving_up_ends_an_idle_session_too
            a_peer_that_is_far_away_is_called_silent_once_and_then_waited_for
            a_cable_that_was_out_does_not_make_its_ends_more_patient
            a_session_heals_as_soon_after_a_cable_was_out_as_before
            frames_on_wrong_lanes_draw_training_frames_at_their_own_pace
            a_way_that_swallows_long_frames_is_told_although_short_ones_pass
            a_way_that_swallows_long_frames_is_told_also_while_the_peer_sends
            a_session_given_up_over_a_way_that_swallows_long_frames_says_so_and_the_next_one_knows
            a_silent_peer_and_an_end_that_stood_still_are_not_called_stalled
        }
        sessions {
            initialisation_takes_few_round_trips_and_says_who_is_there
            initialisation_survives_a_bad_wire
            lane_order_and_polarity_are_found_for_every_cable
            a_wrong_peer_is_refused_with_its_name
            the_right_peer_is_taken_after_a_wrong_one
            a_restarted_peer_is_noticed_and_traffic_goes_on
            a_peer_restarted_behind_a_cut_is_noticed_when_the_cut_ends
            both_ends_restart_at_once
            old_frames_of_a_dead_incarnation_change_nothing
            a_link_taken_down_by_command_is_down_at_both_ends_until_it_is_taken_up
            the_news_of_a_command_may_be_lost
            giving_up_is_for_those_who_ask_for_it
        }
        stranger {
            nothing_that_was_ever_sent_does_lasting_harm_when_it_is_sent_again
        }
        ways_out {
            an_end_that_hears_too_late_that_its_peer_died_comes_back
            an_end_whose_peer_is_down_under_another_name_hears_of_it
            an_end_without_lanes_answers_a_peer_that_was_spoken_to_by_a_stranger
            ends_that_believe_in_different_sessions_find_each_other
            an_end_that_died_in_a_session_unknown_to_its_peer_is_found
            frames_of_a_session_kept_for_forty_seconds_end_none
        }
    }
}

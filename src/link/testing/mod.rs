//! Two link ends over a controllable wire, and a checker behind each.
//!
//! Cases that hold for every machine's links are here once, for any [`Link`](rig::Link); a
//! machine's tests include them all with [`shared_link_cases`].

pub mod chaos;
pub mod end;
pub mod forged;
pub mod hostile;
pub mod joined;
pub mod lane_faults;
pub mod lane_noise;
pub mod liveness;
pub mod pair;
pub mod rig;
pub mod sessions;
pub mod standstill;
pub mod stranger;
pub mod ways_out;

/// Expands every shared case into a test of the links `$link`, whose path is absolute.
#[doc(hidden)]
#[macro_export]
macro_rules! shared_link_cases {
    ($link:ty) => {
        $crate::shared_link_cases! { $link:
            chaos {
                every_packet_arrives_once_whatever_happens
                no_packet_arrives_twice_across_restarts
                every_packet_arrives_once_at_the_chip_s_own_depths
                all_of_netem_at_once
                the_same_seed_gives_the_same_run
                the_checker_can_fail
            }
            forged {
                a_hundred_thousand_headers_with_fewer_lanes_take_none
                a_request_that_was_not_the_peer_s_is_taken_back
                requests_for_no_lane_are_dropped
                a_new_process_begins_no_session_without_lanes
                an_unrequested_pattern_removes_no_lane
            }
            lane_faults {
                a_noisy_lane_is_charged_and_given_up_at_the_threshold
                frames_from_before_a_lane_loss_end_no_session_of_a_suspended_peer
                lanes_go_one_by_one_and_with_the_last_the_link
                a_lane_too_noisy_for_any_frame_is_given_up_all_the_same
                a_lane_too_noisy_for_any_frame_is_given_up_by_the_first_packet_that_cannot_pass
                a_restarted_peer_gets_all_lanes_again
                a_link_at_rest_stays_at_rest_when_a_lane_has_gone
                a_lane_that_comes_late_leaves_both_ends_agreed
                the_request_for_fewer_lanes_may_be_lost
            }
            liveness {
                a_session_without_usable_frames_restarts_in_time
                a_link_that_may_not_heal_stays_as_it_is
                a_stranger_s_frames_do_not_end_a_session_whose_peer_answers
                the_same_frames_end_a_session_whose_peer_does_not_answer
                one_bad_frame_before_a_cut_ends_nothing
                answers_that_take_longer_than_a_session_may_be_unusable_are_waited_for
                a_falsely_acknowledged_packet_is_not_awaited_for_ever
                silence_is_reported_and_cleared_and_nothing_else_happens
                a_resumed_process_does_not_call_its_peer_silent
                no_peer_is_probed_if_silence_is_not_reported
                giving_up_ends_an_idle_session_too
                a_peer_that_is_far_away_is_called_silent_once_and_then_waited_for
                a_cable_that_was_out_does_not_make_its_ends_more_patient
                a_session_heals_as_soon_after_a_cable_was_out_as_before
                frames_on_wrong_lanes_draw_training_frames_at_their_own_pace
                a_path_that_drops_long_frames_is_reported_although_short_ones_pass
                an_end_that_misses_a_packet_for_a_minute_restarts_with_a_reason
                a_path_that_drops_long_frames_is_reported_while_the_peer_sends
                a_session_given_up_for_dropped_long_frames_passes_its_stall_to_the_next
                a_silent_peer_and_an_end_that_stood_still_are_not_called_stalled
                a_cable_restored_in_one_direction_first_is_not_called_stalled
                a_path_that_drops_long_frames_is_reported_although_many_frames_are_lost
                a_peer_that_is_heard_with_long_pauses_and_acknowledges_nothing_is_called_stalled
                a_peer_that_has_no_room_is_asked_for_some_and_has_lost_nothing
                packets_after_an_idle_time_are_sent_once
            }
            sessions {
                initialisation_takes_few_round_trips_and_names_the_peer
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
                only_ends_with_give_up_end_the_session
            }
            standstill {
                ends_that_stand_still_for_any_time_lose_nothing
                by_the_clock_alone_the_same_standstills_end_sessions
                a_half_frozen_link_is_given_up_in_its_time_and_comes_back
                a_peer_that_resumes_late_may_still_acknowledge
                nothing_is_resent_to_a_starved_peer
                a_starved_peer_is_resent_what_it_has_by_a_limit_of_probes
                a_cut_link_between_starved_ends_is_given_up_all_the_same
            }
            stranger {
                nothing_that_was_ever_sent_does_lasting_harm_when_it_is_sent_again
            }
            ways_out {
                an_end_that_learns_late_of_its_peer_s_death_recovers
                an_end_learns_that_its_peer_is_down_under_another_epoch
                an_end_without_lanes_answers_a_peer_that_was_spoken_to_by_a_stranger
                ends_that_believe_in_different_sessions_find_each_other
                an_end_that_died_in_a_session_unknown_to_its_peer_is_found
                frames_of_a_session_kept_for_forty_seconds_end_none
            }
        }
    };
    ($link:ty: $($module:ident { $($case:ident)+ })+) => {
        $(mod $module {
            $(#[test]
            fn $case() {
                $crate::link::testing::$module::$case::<$link>();
            })+
        })+
    };
}

pub use shared_link_cases;

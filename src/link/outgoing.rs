//! State of every sending half: its lanes, the round trip, and the acknowledgements and credits
//! that the peer owes it.

use super::config::LinkProfile;
use super::round_trip::RoundTrip;
use crate::time::{Duration, Time};

/// After more unanswered probes than this, an acknowledgement shows how long the peer was
/// suspended, not how long the path is. Paths with round trips of up to about four times the
/// longest timeout are measured later, once the timeout has doubled.
const MEASURED_PROBES: u32 = 4;

/// Transmit lanes and retry timers of a sending half.
#[derive(Debug)]
pub struct Outgoing {
    /// Transmit lanes, one bit per lane.
    pub lanes: u8,
    pub round_trip: RoundTrip,
    /// When the retry timer was last restarted.
    pub timer_from: Time,
    /// Number of probes since the last acknowledgement or credits.
    asked: u32,
    /// Limit of `asked` before everything is resent although the peer is silent.
    max_probes: Option<u32>,
    /// When the timer last expired after more than [`MEASURED_PROBES`] unanswered probes.
    suspended_until: Time,
    /// The peer was heard after the last probe: it is running and has not received the data.
    answers: bool,
    /// Number of probes for credits alone.
    credit_tries: u32,
    /// After a timeout, little is sent until something is acknowledged.
    pub probation: bool,
    /// Oldest unacknowledged unit at the last rewind on request, and when that was.
    answered: Option<(u64, Time)>,
    /// The next frame requests an immediate acknowledgement.
    pub wants_probe: bool,
    /// Since when the peer owes an acknowledgement or the reply to a probe, for
    /// [`LinkProfile::give_up`]; [`Time::NEVER`] while it owes nothing.
    pub owed_since: Time,
}

impl Outgoing {
    /// A sending half on `lanes` that has sent nothing.
    pub fn new(lanes: u8, profile: &LinkProfile, now: Time) -> Self {
        Self {
            lanes,
            round_trip: RoundTrip::new(profile.min_retry_timeout, profile.max_retry_timeout),
            timer_from: now,
            asked: 0,
            max_probes: profile.max_probes,
            suspended_until: Time::ZERO,
            answers: false,
            credit_tries: 0,
            probation: false,
            answered: None,
            wants_probe: false,
            owed_since: Time::NEVER,
        }
    }

    /// Starts a session on `lanes`; keeps the measured round trip.
    pub fn restart(&mut self, lanes: u8, now: Time) {
        self.lanes = lanes;
        self.timer_from = now;
        self.asked = 0;
        self.credit_tries = 0;
        self.probation = false;
        self.answered = None;
        self.wants_probe = false;
        self.owed_since = Time::NEVER;
    }

    /// An acknowledgement or credits arrived. `owes`: more acknowledgements are outstanding.
    #[inline]
    pub fn acknowledged(&mut self, owes: bool, now: Time) {
        debug_assert!(self.timer_from <= now, "the timer was started");
        self.timer_from = now;
        self.owed_since = if owes { now } else { Time::NEVER };
        self.asked = 0;
        self.credit_tries = 0;
        self.wants_probe = false;
    }

    /// Records that something is sent; `waited` if other units were already unacknowledged.
    #[inline]
    pub fn sent(&mut self, waited: bool, now: Time) {
        if !waited {
            self.timer_from = now;
        }
        if self.owed_since == Time::NEVER {
            self.owed_since = now;
        }
        debug_assert!(
            self.owed_since <= now && self.timer_from <= now,
            "both times are in the past"
        );
    }

    /// A unit that was sent once is acknowledged after `round_trip`.
    #[inline]
    pub fn measured(&mut self, round_trip: Duration, now: Time) {
        if round_trip <= now.since(self.suspended_until) {
            self.round_trip.sample(round_trip);
        }
    }

    /// The peer was heard: unless it `owes` acknowledgements, it owes nothing.
    #[inline]
    pub fn heard(&mut self, owes: bool) {
        self.answers = true;
        if !owes {
            self.owed_since = Time::NEVER;
        }
    }

    /// Whether the resend from `oldest` that the peer requests has already begun.
    pub fn is_answered(&self, oldest: u64, now: Time) -> bool {
        self.answered
            .is_some_and(|(to, at)| to == oldest && now.since(at) < self.round_trip.shortest())
    }

    /// Rewinds to `oldest` at the peer's request.
    pub fn answer(&mut self, oldest: u64, now: Time) {
        debug_assert!(
            self.answered
                .is_none_or(|(before, at)| before <= oldest && at <= now),
            "the oldest unacknowledged unit never goes back"
        );
        self.answered = Some((oldest, now));
        self.again(now);
    }

    /// Records that something is resent, but not because of a timeout.
    pub fn again(&mut self, now: Time) {
        self.probation = false;
        self.timer_from = now;
    }

    /// When to request again what the peer owes: acknowledgements (`outstanding`), or only
    /// `credits`.
    #[inline]
    pub fn retry_deadline(&self, outstanding: bool, credits: bool) -> Time {
        let patience = if outstanding {
            match self.asked {
                0 => self.round_trip.probe_timeout(),
                _ => self.round_trip.timeout(),
            }
        } else if credits {
            self.round_trip.credit_timeout(self.credit_tries)
        } else {
            return Time::NEVER;
        };
        self.timer_from + patience
    }

    /// The retry timer expired. First the peer is probed: a frame without data is cheap and also
    /// reveals a lost tail. Then everything is resent (true), unless the peer is silent: a
    /// descheduled process replies late, and is probed up to `max_probes` times, if that is
    /// limited.
    pub fn expire(&mut self, outstanding: bool, now: Time) -> bool {
        debug_assert!(self.timer_from <= now, "the timer was started");
        self.wants_probe = true;
        self.timer_from = now;
        if !outstanding {
            self.credit_tries += 1;
            return false;
        }
        let answers = core::mem::take(&mut self.answers);
        let gives_up = self.max_probes.is_some_and(|most| self.asked >= most);
        let again = gives_up || self.asked > 0 && answers;
        if self.asked > 0 {
            self.round_trip.back_off();
        }
        self.asked = self.asked.saturating_add(1);
        if self.asked > MEASURED_PROBES {
            self.suspended_until = now;
        }
        self.probation |= again;
        again
    }
}

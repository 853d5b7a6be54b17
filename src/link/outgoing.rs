//! What every sending half of a link has, whatever it sends: its lanes, the round trip, and what
//! the peer owes it.

use super::config::LinkProfile;
use super::round_trip::RoundTrip;
use crate::time::Time;

/// Lanes, and when the peer is asked for what it owes.
#[derive(Debug)]
pub struct Outgoing {
    /// Lanes transmitted on, one bit per lane.
    pub lanes: u8,
    pub round_trip: RoundTrip,
    /// When something was last sent into silence or acknowledged.
    pub timer_from: Time,
    /// How often the peer was asked since then, and the limit before everything is resent.
    asked: u32,
    questions: u32,
    /// The peer was heard after the last question: it runs and has not received the data.
    answers: bool,
    /// How often it was asked for credits alone.
    credit_tries: u32,
    /// After a time-out only a little goes out until something is acknowledged.
    pub probation: bool,
    /// The oldest of what is unacknowledged when the cursor last went back because the peer asked,
    /// and when.
    answered: Option<(u64, Time)>,
    /// The next frame out asks for an acknowledgement at once.
    pub wants_probe: bool,
    /// Since when the peer has acknowledged nothing of what it was sent or not answered a question,
    /// for [`LinkProfile::give_up`]; never while it owes nothing.
    pub owed_since: Time,
}

impl Outgoing {
    /// Nothing sent, on `lanes`.
    pub fn new(lanes: u8, profile: &LinkProfile, now: Time) -> Self {
        Self {
            lanes,
            round_trip: RoundTrip::new(profile.min_retry_timeout, profile.max_retry_timeout),
            timer_from: now,
            asked: 0,
            questions: profile.questions,
            answers: false,
            credit_tries: 0,
            probation: false,
            answered: None,
            wants_probe: false,
            owed_since: Time::NEVER,
        }
    }

    /// A session begins, on `lanes`. What was measured of the round trip stays.
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

    /// Something was acknowledged, or credits came; whether the peer still `owes` acknowledgements.
    #[inline]
    pub fn paid(&mut self, owes: bool, now: Time) {
        self.timer_from = now;
        self.owed_since = if owes { now } else { Time::NEVER };
        self.asked = 0;
        self.credit_tries = 0;
        self.wants_probe = false;
    }

    /// Something leaves, while other things were under way (`waited`) or not.
    #[inline]
    pub fn sent(&mut self, waited: bool, now: Time) {
        if !waited {
            self.timer_from = now;
        }
        if self.owed_since == Time::NEVER {
            self.owed_since = now;
        }
    }

    /// The peer is there: it owes nothing but what it was sent.
    #[inline]
    pub fn heard(&mut self, owes: bool) {
        self.answers = true;
        if !owes {
            self.owed_since = Time::NEVER;
        }
    }

    /// Whether a request to go back to `oldest` is being answered already.
    pub fn is_answered(&self, oldest: u64, now: Time) -> bool {
        self.answered
            .is_some_and(|(to, at)| to == oldest && now.since(at) < self.round_trip.shortest())
    }

    /// Goes back to `oldest` because the peer asked.
    pub fn answer(&mut self, oldest: u64, now: Time) {
        self.answered = Some((oldest, now));
        self.again(now);
    }

    /// Sends something again, not because of a time-out.
    pub fn again(&mut self, now: Time) {
        self.probation = false;
        self.timer_from = now;
    }

    /// When to ask again for what the peer owes: acknowledgements of what is `outstanding`, or
    /// nothing but `credits`.
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

    /// The retry timer expired. The peer is first asked for its state: a frame without data costs
    /// little and also reveals a lost tail. Then everything is resent (true), unless the peer is
    /// silent: one that is not scheduled answers late, and is asked again up to `questions` times.
    pub fn expire(&mut self, outstanding: bool, now: Time) -> bool {
        self.wants_probe = true;
        self.timer_from = now;
        if !outstanding {
            self.credit_tries += 1;
            return false;
        }
        let answers = core::mem::take(&mut self.answers);
        let again = self.asked >= self.questions || self.asked > 0 && answers;
        if self.asked > 0 {
            self.round_trip.back_off();
        }
        self.asked = self.asked.saturating_add(1);
        self.probation |= again;
        again
    }
}

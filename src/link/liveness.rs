//! When the peer was last heard, and what follows when it is not, or when nothing of it can be
//! used.

use super::config::LinkProfile;
use super::round_trip::Seen;
use crate::kit::Grace;
use crate::time::{Duration, Time};

/// Parts of a patience: when the peer is asked first, and how often then.
const FIRST_QUESTION: u64 = 4;
const NEXT_QUESTION: u64 = 16;
/// Times `heal` for which the same packet or set may be missing while the peer can be heard. Wires
/// that lose nine frames of ten deliver one of sixty copies.
const STALL: u64 = 60;
/// Limit of the extension after standstills of this end, as a multiple of `give_up`.
const GRACE: u64 = 8;

/// What has to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Ask the peer for a sign of life.
    Question,
    /// Report that it is silent.
    Silence,
    /// End the session: frames come, and none can be used.
    Heal,
    /// End the session: frames come, but never the one that is missing.
    Missing,
}

/// Frames in a row of which none could be used.
#[derive(Clone, Copy, Debug)]
struct Unusable {
    since: Time,
    last: Time,
}

/// Watches over the peer of an active link.
///
/// A link at rest sends nothing, so that silence alone means nothing: the peer is asked before it
/// counts. The same holds for frames that cannot be used. A stranger may send them, and an honest
/// peer answers a question with a frame that can; only who asked and got nothing but such frames in
/// return no longer has a session.
#[derive(Debug)]
pub(crate) struct Liveness {
    silence: Option<Duration>,
    give_up: Option<Duration>,
    heal: Option<Duration>,
    last_accepted: Option<Time>,
    /// When a frame of this session was last accepted, or it began.
    heard: Time,
    /// Since when the peer owes something, as far as is known, and for how much of that time it was
    /// heard; whether there was a pause in it.
    owed_since: Time,
    heard_for: Duration,
    paused: bool,
    /// Extra patience with the peer after this end stood still.
    grace: Grace,
    /// The first and the last question since the peer was heard.
    asked: Option<(Time, Time)>,
    unusable: Option<Unusable>,
    /// Frames that are more than a window old.
    stale: Option<Unusable>,
    /// The number that has been missing since the time, however often it was asked for.
    stalled: Option<(u64, Time)>,
    silent: bool,
    /// Since when something has been unacknowledged, and when that was first found to be long.
    unacknowledged: Option<(Time, Time)>,
    /// That the peer acknowledges nothing has been told, the last time then. It is not forgotten
    /// when a session ends for it.
    moveless: Option<Time>,
    /// The round trip of acknowledged packets: nobody answers earlier.
    round_trip: Seen,
    /// How long questions waited for something to come: all that is known of a way so long that
    /// everything is sent again before it can be acknowledged.
    answered: Duration,
}

fn part(of: Duration, parts: u64) -> Duration {
    Duration::from_ps(of.as_ps() / parts)
}

impl Liveness {
    pub fn new(profile: &LinkProfile, now: Time) -> Self {
        Self {
            silence: profile.silence,
            give_up: profile.give_up,
            heal: profile.heal,
            last_accepted: None,
            heard: now,
            owed_since: Time::NEVER,
            heard_for: Duration::ZERO,
            paused: false,
            grace: Grace::default(),
            asked: None,
            unusable: None,
            stale: None,
            stalled: None,
            silent: false,
            unacknowledged: None,
            moveless: None,
            round_trip: Seen::default(),
            answered: Duration::ZERO,
        }
    }

    pub fn last_accepted(&self) -> Option<Time> {
        self.last_accepted
    }

    pub fn is_silent(&self) -> bool {
        self.silent
    }

    /// Whether what is sent has been told to be unacknowledged although the peer is heard.
    pub fn is_stalled(&self) -> bool {
        self.moveless.is_some()
    }

    /// A session begins or ends.
    pub fn restart(&mut self, now: Time) {
        self.heard = now;
        self.owed_since = Time::NEVER;
        self.asked = None;
        self.unusable = None;
        self.stale = None;
        self.stalled = None;
        self.silent = false;
        self.unacknowledged = None;
        self.round_trip = Seen::default();
        self.answered = Duration::ZERO;
    }

    /// A frame of this session was accepted, and the peer owes something since `owed_since`. Returns
    /// for how long there was none if that was reported as silence.
    #[inline]
    pub fn accepted(&mut self, now: Time, owed_since: Time) -> Option<Duration> {
        let before = core::mem::replace(&mut self.heard, now);
        self.last_accepted = Some(now);
        if let Some(patience) = self.give_up {
            // Frames that the peer sent before it stood still have been read by then.
            self.grace.end(now, part(patience, FIRST_QUESTION));
        }
        if self.owed_since != owed_since {
            (self.owed_since, self.heard_for, self.paused) = (owed_since, Duration::ZERO, false);
        }
        if owed_since < now {
            let quiet = now.since(before.max(owed_since));
            self.heard_for = self.heard_for + self.heard_of(quiet);
        }
        if let Some((first, _)) = self.asked.take() {
            // An answer to an earlier question comes sooner than one to this.
            let before = Duration::from_ps(self.answered.as_ps() / 4 * 3);
            self.answered = now.since(first).max(before);
        }
        self.unusable = None;
        self.stale = None;
        if core::mem::take(&mut self.silent) {
            return Some(now.since(before));
        }
        None
    }

    /// For how much of a time before a frame its sender counts as heard: for all of it, but of a
    /// pause for no more than passes until it is asked, since wires that lose frames make pauses,
    /// and of the first for nothing, since that may have been a cut.
    #[inline]
    fn heard_of(&mut self, quiet: Duration) -> Duration {
        let is_pause = |patience| quiet >= part(patience, 2);
        match self.least_patience() {
            Some(patience) if is_pause(patience) && is_pause(self.patience(patience)) => {
                match core::mem::replace(&mut self.paused, true) {
                    true => part(patience, FIRST_QUESTION),
                    false => Duration::ZERO,
                }
            }
            _ => quiet,
        }
    }

    /// Whether the peer was heard for long after `since`, so that what it has owed since then is not
    /// for its silence. A cable that is plugged in again may be whole one way a little earlier than
    /// the other.
    fn was_heard_after(&self, since: Time, patience: Duration) -> bool {
        self.owed_since == since && self.heard_for >= part(patience, 2)
    }

    /// See [`LinkControlBlock::stood_still`](super::LinkControlBlock::stood_still).
    pub fn stood_still(&mut self, now: Time, span: Duration) {
        if let Some(patience) = self.give_up {
            self.grace.stood_still(now, span, patience.times(GRACE));
        }
    }

    /// When the session ends if nothing sent at or after `since` is acknowledged: after the
    /// time-out if the peer has been heard for long enough, else after as long without hearing it.
    /// A peer that wakes from a standstill is heard before it acknowledges what waited there.
    #[inline]
    pub fn gives_up_at(&self, since: Time) -> Time {
        match self.give_up {
            Some(patience) if since != Time::NEVER => {
                if self.was_heard_after(since, patience) {
                    since + patience
                } else {
                    since.max(self.heard) + patience + self.grace.span()
                }
            }
            _ => Time::NEVER,
        }
    }

    /// A session ends because the peer has acknowledged nothing since `since`. Returns whether it
    /// was heard all the same.
    pub fn gave_up(&mut self, since: Time, now: Time) -> bool {
        let heard = self
            .give_up
            .is_some_and(|patience| self.was_heard_after(since, patience));
        if heard {
            self.moveless = Some(now);
        }
        heard
    }

    /// Something was acknowledged. True when it had been told that nothing is.
    #[inline]
    pub fn acknowledged(&mut self) -> bool {
        self.moveless.take().is_some()
    }

    /// When to look at what has been unacknowledged since `since`: after half of the patience, and
    /// after as much again, since an end that stood still has not read yet what the peer says.
    #[inline]
    pub fn stall_deadline(&self, since: Time) -> Time {
        let Some(silence) = self.silence else {
            return Time::NEVER;
        };
        let half = part(self.patience(silence), 2);
        match self.unacknowledged {
            Some((known, noticed)) if known == since => noticed + half,
            _ if since == Time::NEVER => self.forgets_at(half),
            _ => since + half,
        }
    }

    /// A stall that ended a session is remembered for a while, for it will show itself again as
    /// soon as there is something to send.
    fn forgets_at(&self, half: Duration) -> Time {
        self.moveless
            .map_or(Time::NEVER, |at| at + half.times(STALL))
    }

    /// Looks at what has been unacknowledged since `since`. True when it has to be told now.
    pub fn look_for_stall(&mut self, since: Time, now: Time) -> bool {
        if self.stall_deadline(since) > now {
            return false;
        }
        let Some(silence) = self.silence else {
            return false;
        };
        let patience = self.patience(silence);
        if since == Time::NEVER {
            self.moveless = None;
            return false;
        }
        let noticed = self.unacknowledged.replace((since, now));
        let again = noticed.is_some_and(|(known, _)| known == since);
        if !again || !self.was_heard_after(since, patience) {
            return false;
        }
        self.moveless.replace(now).is_none()
    }

    /// After a frame was accepted: `number` was asked for again and has not come, if any. A peer
    /// that takes it for acknowledged never sends it.
    #[inline]
    pub fn missing(&mut self, number: Option<u64>, now: Time) {
        match (number, self.stalled) {
            (None, None) => {}
            (None, Some(_)) => self.stalled = None,
            (Some(number), Some((stalled, _))) if number == stalled => {}
            (Some(number), _) => self.stalled = Some((number, now)),
        }
    }

    /// What is known of the round trip. A packet that was acknowledged since the last question was
    /// answered tells more than that answer, which may have waited for a cable.
    pub fn measured(&mut self, round_trip: Seen) {
        if round_trip.samples != self.round_trip.samples {
            self.answered = Duration::ZERO;
        }
        self.round_trip = round_trip;
    }

    /// A frame came that may be the peer's, and cannot be used.
    pub fn unusable(&mut self, now: Time, round_trip: Seen) {
        let Some(heal) = self.heal else { return };
        self.measured(round_trip);
        self.unusable = Some(self.row(self.unusable, heal, now));
    }

    /// A frame came that the peer sent long ago, or counts as such. Copies come late from an honest
    /// peer, too, also while its process stands still: they alone say nothing for as long as a
    /// packet may be missing. An end whose own position ran ahead takes all that its peer sends for
    /// old, and needs a way out.
    pub fn stale(&mut self, now: Time, round_trip: Seen) {
        let Some(heal) = self.heal else { return };
        self.measured(round_trip);
        self.stale = Some(self.row(self.stale, heal, now));
    }

    /// A row of frames that goes on, or begins. Between single frames, however many, there was
    /// nothing: that is silence.
    fn row(&self, row: Option<Unusable>, heal: Duration, now: Time) -> Unusable {
        let pause = part(self.patience(heal), FIRST_QUESTION);
        match row {
            Some(row) if row.last + pause >= now => Unusable { last: now, ..row },
            _ => Unusable {
                since: now,
                last: now,
            },
        }
    }

    /// A question asked over a long way cannot be answered earlier than it takes.
    fn patience(&self, configured: Duration) -> Duration {
        // A cut cable answers late, too, and says nothing of how long the way is.
        let answered = self.answered.min(configured.times(8));
        configured
            .max(self.round_trip.smoothed.times(4))
            .max(answered.times(2))
    }

    /// For how long the peer may say nothing, whatever follows; it is asked in this time however
    /// long the way is.
    fn least_patience(&self) -> Option<Duration> {
        match (self.silence, self.give_up) {
            (Some(silence), Some(give_up)) => Some(silence.min(give_up)),
            (silence, give_up) => silence.or(give_up),
        }
    }

    /// When to ask next: after a quarter of what is waited for, and then every sixteenth.
    fn question(&self) -> Time {
        let next = |begin: Time, patience: Duration, pace: u64| {
            let first = begin + part(patience, FIRST_QUESTION);
            match self.asked {
                Some((_, last)) => first.max(last + part(patience, pace)),
                None => first,
            }
        };
        let pace = if self.silent {
            FIRST_QUESTION // It has been told; no need to hurry.
        } else {
            NEXT_QUESTION
        };
        let silence = self.least_patience();
        let silence = silence.map(|patience| next(self.heard, patience, pace));
        let row = self.unusable.zip(self.heal);
        let heal = row.map(|(row, heal)| next(row.since, self.patience(heal), NEXT_QUESTION));
        let row = self.stale.zip(self.heal);
        let stale = row.map(|(row, heal)| next(row.since, self.patience(heal).times(STALL), STALL));
        let due = [silence, heal, stale].into_iter().flatten();
        due.min().unwrap_or(Time::NEVER)
    }

    /// When so much time has passed since `begin`, and at least half of it since the peer was first
    /// asked: who was not there to ask, because his process stood still, may not say that nobody
    /// answered.
    fn end_of(&self, begin: Time, patience: Duration) -> Time {
        match self.asked {
            Some((first, _)) => (begin + patience).max(first + part(patience, 2)),
            None => Time::NEVER,
        }
    }

    fn silence_is_due(&self) -> Time {
        match self.silence {
            Some(silence) if !self.silent => self.end_of(self.heard, self.patience(silence)),
            _ => Time::NEVER,
        }
    }

    fn heal_is_due(&self) -> Time {
        match (self.unusable, self.heal) {
            (Some(row), Some(heal)) => self.end_of(row.since, self.patience(heal)),
            _ => Time::NEVER,
        }
    }

    fn staleness_is_over(&self) -> Time {
        match (self.stale, self.heal) {
            (Some(row), Some(heal)) => self.end_of(row.since, self.patience(heal).times(STALL)),
            _ => Time::NEVER,
        }
    }

    fn stall_is_over(&self) -> Time {
        match (self.stalled, self.heal) {
            (Some((_, since)), Some(heal)) => since + self.patience(heal).times(STALL),
            _ => Time::NEVER,
        }
    }

    /// The next deadline of an active link.
    #[inline]
    pub fn deadline(&self) -> Time {
        self.question()
            .min(self.silence_is_due())
            .min(self.heal_is_due())
            .min(self.staleness_is_over())
            .min(self.stall_is_over())
    }

    /// What is due at `now` on an active link. To be called until there is nothing.
    pub fn expire(&mut self, now: Time) -> Option<Due> {
        if let Some(heal) = self.heal
            && let Some(row) = self.unusable
            && self.heal_is_due() <= now
        {
            self.unusable = None;
            if now.since(row.last) <= part(self.patience(heal), FIRST_QUESTION) {
                return Some(Due::Heal);
            }
        }
        if let Some(heal) = self.heal
            && let Some(row) = self.stale
            && self.staleness_is_over() <= now
        {
            self.stale = None;
            if now.since(row.last) <= part(self.patience(heal), FIRST_QUESTION) {
                return Some(Due::Heal);
            }
        }
        if let Some(heal) = self.heal
            && self.stall_is_over() <= now
        {
            self.stalled = None;
            if now.since(self.heard) <= self.patience(heal) {
                return Some(Due::Missing);
            }
        }
        if let Some(silence) = self.silence
            && let Some((_, last)) = self.asked
            && self.silence_is_due() <= now
        {
            if last + part(silence, FIRST_QUESTION) >= now {
                self.silent = true;
                return Some(Due::Silence);
            }
            // An end that asked no more stood still itself; what was answered may wait to be read.
            self.asked = None;
        }
        if self.question() <= now {
            let first = self.asked.map_or(now, |(first, _)| first);
            self.asked = Some((first, now));
            return Some(Due::Question);
        }
        None
    }
}

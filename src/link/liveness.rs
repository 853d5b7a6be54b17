//! Peer liveness: when the peer was last heard, and the reaction to silence and to unusable frames.

use super::config::LinkProfile;
use super::round_trip::Seen;
use crate::kit::Grace;
use crate::time::{Duration, Time};

/// Divisors of the patience: the time until the first probe, and between later ones.
const FIRST_QUESTION: u64 = 4;
const NEXT_QUESTION: u64 = 16;
/// Multiple of `heal` for which a packet or set may be missing while the peer is heard. Even a wire
/// that loses nine frames of ten almost certainly delivers one of sixty copies.
const STALL: u64 = 60;
/// Limit of the extension after suspensions, as a multiple of `give_up`.
const GRACE: u64 = 8;

/// An action that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Probe the peer.
    Question,
    /// Report that the peer is silent.
    Silence,
    /// End the session: frames arrive, but none is usable.
    Heal,
    /// End the session: frames arrive, but never the missing one.
    Missing,
}

/// A run of unusable frames.
#[derive(Clone, Copy, Debug)]
struct Unusable {
    since: Time,
    last: Time,
}

/// Monitors the peer of an active link.
///
/// An idle link sends nothing, so silence alone proves nothing: the peer is probed before its
/// silence counts. The same holds for unusable frames: a stranger may send them, and an honest peer
/// replies to a probe with a usable one. Only an end whose probes bring nothing but unusable frames
/// has lost its session.
#[derive(Debug)]
pub(crate) struct Liveness {
    silence: Option<Duration>,
    give_up: Option<Duration>,
    heal: Option<Duration>,
    last_accepted: Option<Time>,
    /// When a frame was last accepted in this session, or its start.
    heard: Time,
    /// Since when the peer owes something, as of the last accepted frame.
    owed_since: Time,
    /// Part of the time since then in which the peer was heard.
    heard_for: Duration,
    /// Whether there was a pause since then.
    paused: bool,
    /// Extra patience with the peer after this end was suspended.
    grace: Grace,
    /// The first and the last probe since the peer was heard.
    asked: Option<(Time, Time)>,
    unusable: Option<Unusable>,
    /// A run of frames that are more than a window old.
    stale: Option<Unusable>,
    /// The number of a unit that is still missing although it was requested, and since when.
    stalled: Option<(u64, Time)>,
    silent: bool,
    /// Since when something is unacknowledged, and when that was last noticed.
    unacknowledged: Option<(Time, Time)>,
    /// When the peer was last found stalled; kept when a session ends for it.
    stalled_at: Option<Time>,
    /// The round trip of acknowledged packets: no reply can arrive sooner.
    round_trip: Seen,
    /// Time that probes waited for a reply: the only measurement on a path so long that everything
    /// is resent before it can be acknowledged.
    answered: Duration,
}

fn part(of: Duration, parts: u64) -> Duration {
    Duration::from_ps(of.as_ps() / parts)
}

impl Liveness {
    pub(crate) fn new(profile: &LinkProfile, now: Time) -> Self {
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
            stalled_at: None,
            round_trip: Seen::default(),
            answered: Duration::ZERO,
        }
    }

    pub(crate) fn last_accepted(&self) -> Option<Time> {
        self.last_accepted
    }

    pub(crate) fn is_silent(&self) -> bool {
        self.silent
    }

    /// Whether a stall was found: the peer is heard but acknowledges nothing.
    pub(crate) fn is_stalled(&self) -> bool {
        self.stalled_at.is_some()
    }

    /// A session begins or ends.
    pub(crate) fn restart(&mut self, now: Time) {
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

    /// A frame of this session was accepted; the peer has owed something since `owed_since`.
    /// Returns the length of a reported silence that this frame ends.
    #[inline]
    pub(crate) fn accepted(&mut self, now: Time, owed_since: Time) -> Option<Duration> {
        let before = core::mem::replace(&mut self.heard, now);
        debug_assert!(before <= now, "the peer was heard before");
        self.last_accepted = Some(now);
        if let Some(patience) = self.give_up {
            // End the extension only a while after waking: by then, the frames that the peer sent
            // before its own suspension have been read.
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
            // The frame may reply to an earlier probe and so seem too fast: let the estimate fall
            // by a quarter at most.
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

    /// Part of the time before a frame that counts as heard: all of it, unless it was a pause. The
    /// first pause does not count, since it may have been a cut. A later one counts up to its first
    /// probe, since lossy wires cause pauses.
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

    /// Whether the peer was heard long enough after `since` that its silence does not explain what
    /// it owes. A cable that is plugged in again may work in one direction a little before the
    /// other.
    fn was_heard_after(&self, since: Time, patience: Duration) -> bool {
        self.owed_since == since && self.heard_for >= part(patience, 2)
    }

    /// See [`NodeLink::handle_suspension`](super::NodeLink::handle_suspension).
    pub(crate) fn handle_suspension(&mut self, now: Time, span: Duration) {
        if let Some(patience) = self.give_up {
            self.grace
                .handle_suspension(now, span, patience.times(GRACE));
        }
    }

    /// When the session ends if nothing sent at or after `since` is acknowledged: after the timeout
    /// if the peer was heard long enough, else after as long without hearing it. A peer that
    /// resumes after a suspension is heard before it acknowledges the frames that waited there.
    #[inline]
    pub(crate) fn gives_up_at(&self, since: Time) -> Time {
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

    /// A session ends because the peer has acknowledged nothing since `since`. Returns whether the
    /// peer was heard.
    pub(crate) fn gave_up(&mut self, since: Time, now: Time) -> bool {
        let heard = self
            .give_up
            .is_some_and(|patience| self.was_heard_after(since, patience));
        if heard {
            self.stalled_at = Some(now);
        }
        heard
    }

    /// Something was acknowledged. Returns whether that ends a stall.
    #[inline]
    pub(crate) fn acknowledged(&mut self) -> bool {
        self.stalled_at.take().is_some()
    }

    /// When to check for a stall since `since`: after half the patience, and again after another
    /// half, since an end that was suspended has not yet read the peer's frames.
    #[inline]
    pub(crate) fn stall_deadline(&self, since: Time) -> Time {
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

    /// A stall that ended a session is remembered for a while, since it recurs as soon as there is
    /// something to send.
    fn forgets_at(&self, half: Duration) -> Time {
        self.stalled_at
            .map_or(Time::NEVER, |at| at + half.times(STALL))
    }

    /// Looks for a stall since `since`. Returns whether to report it now.
    pub(crate) fn look_for_stall(&mut self, since: Time, now: Time) -> bool {
        if self.stall_deadline(since) > now {
            return false;
        }
        let Some(silence) = self.silence else {
            return false;
        };
        let patience = self.patience(silence);
        if since == Time::NEVER {
            self.stalled_at = None;
            return false;
        }
        let noticed = self.unacknowledged.replace((since, now));
        let again = noticed.is_some_and(|(known, _)| known == since);
        if !again || !self.was_heard_after(since, patience) {
            return false;
        }
        self.stalled_at.replace(now).is_none()
    }

    /// Called after an accepted frame with the number, if any, that was requested again and is
    /// still missing. A peer that believes it acknowledged never resends it.
    #[inline]
    pub(crate) fn missing(&mut self, number: Option<u64>, now: Time) {
        match (number, self.stalled) {
            (None, None) => {}
            (None, Some(_)) => self.stalled = None,
            (Some(number), Some((stalled, _))) if number == stalled => {}
            (Some(number), _) => self.stalled = Some((number, now)),
        }
    }

    /// Records the round trip measured so far. A packet acknowledged since the last reply to a
    /// probe is better evidence than that reply, which may have been delayed while a cable was
    /// unplugged.
    pub(crate) fn measured(&mut self, round_trip: Seen) {
        if round_trip.samples != self.round_trip.samples {
            self.answered = Duration::ZERO;
        }
        self.round_trip = round_trip;
    }

    /// An unusable frame arrived that the peer may have sent.
    pub(crate) fn unusable(&mut self, now: Time, round_trip: Seen) {
        let Some(heal) = self.heal else { return };
        self.measured(round_trip);
        self.unusable = Some(self.extend_run(self.unusable, heal, now));
    }

    /// A frame arrived that the peer sent long ago, or seems to have. Late copies come from honest
    /// peers too, even while their process is stopped, so they prove nothing until they have kept
    /// arriving for as long as a packet may be missing. An end whose own position ran ahead treats
    /// every frame as old, and recovers only by a new session.
    pub(crate) fn stale(&mut self, now: Time, round_trip: Seen) {
        let Some(heal) = self.heal else { return };
        self.measured(round_trip);
        self.stale = Some(self.extend_run(self.stale, heal, now));
    }

    /// Extends the run `run` or begins a new one. Isolated frames with gaps between them, however
    /// many, count as silence.
    fn extend_run(&self, run: Option<Unusable>, heal: Duration, now: Time) -> Unusable {
        let pause = part(self.patience(heal), FIRST_QUESTION);
        debug_assert!(run.is_none_or(|run| run.since <= run.last && run.last <= now));
        match run {
            Some(run) if run.last + pause >= now => Unusable { last: now, ..run },
            _ => Unusable {
                since: now,
                last: now,
            },
        }
    }

    /// `configured`, or longer where the path delays replies.
    fn patience(&self, configured: Duration) -> Duration {
        // Limit the measured time: replies are also late after a cut, which says nothing about the
        // path.
        let answered = self.answered.min(configured.times(8));
        configured
            .max(self.round_trip.smoothed.times(4))
            .max(answered.times(2))
    }

    /// Longest silence of the peer that has no consequence; it is probed within this time, however
    /// long the path.
    fn least_patience(&self) -> Option<Duration> {
        match (self.silence, self.give_up) {
            (Some(silence), Some(give_up)) => Some(silence.min(give_up)),
            (silence, give_up) => silence.or(give_up),
        }
    }

    /// When to probe next: after a quarter of the patience, then every sixteenth of it.
    fn question(&self) -> Time {
        let next = |begin: Time, patience: Duration, pace: u64| {
            let first = begin + part(patience, FIRST_QUESTION);
            match self.asked {
                Some((_, last)) => first.max(last + part(patience, pace)),
                None => first,
            }
        };
        let pace = if self.silent {
            FIRST_QUESTION // Already reported: no hurry.
        } else {
            NEXT_QUESTION
        };
        let silence = self.least_patience();
        let silence = silence.map(|patience| next(self.heard, patience, pace));
        let run = self.unusable.zip(self.heal);
        let heal = run.map(|(run, heal)| next(run.since, self.patience(heal), NEXT_QUESTION));
        let run = self.stale.zip(self.heal);
        let stale = run.map(|(run, heal)| next(run.since, self.patience(heal).times(STALL), STALL));
        let due = [silence, heal, stale].into_iter().flatten();
        due.min().unwrap_or(Time::NEVER)
    }

    /// When `patience` has passed since `begin`, and at least half of it since the first probe: an
    /// end that did not probe because it was suspended cannot conclude that the peer is silent.
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
            (Some(run), Some(heal)) => self.end_of(run.since, self.patience(heal)),
            _ => Time::NEVER,
        }
    }

    fn staleness_is_over(&self) -> Time {
        match (self.stale, self.heal) {
            (Some(run), Some(heal)) => self.end_of(run.since, self.patience(heal).times(STALL)),
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
    pub(crate) fn deadline(&self) -> Time {
        self.question()
            .min(self.silence_is_due())
            .min(self.heal_is_due())
            .min(self.staleness_is_over())
            .min(self.stall_is_over())
    }

    /// The next action due at `now` on an active link. Call until `None`.
    pub(crate) fn expire(&mut self, now: Time) -> Option<Due> {
        if let Some(heal) = self.heal
            && let Some(run) = self.unusable
            && self.heal_is_due() <= now
        {
            self.unusable = None;
            if now.since(run.last) <= part(self.patience(heal), FIRST_QUESTION) {
                return Some(Due::Heal);
            }
        }
        if let Some(heal) = self.heal
            && let Some(run) = self.stale
            && self.staleness_is_over() <= now
        {
            self.stale = None;
            if now.since(run.last) <= part(self.patience(heal), FIRST_QUESTION) {
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
            // Without a recent probe this end was suspended, and a reply may wait to be read: probe
            // again first.
            self.asked = None;
        }
        if self.question() <= now {
            let first = self.asked.map_or(now, |(first, _)| first);
            debug_assert!(first <= now, "the first probe is not in the future");
            self.asked = Some((first, now));
            return Some(Due::Question);
        }
        None
    }
}

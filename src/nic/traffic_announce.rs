//! Announces a run to its targets before the first message.

use super::{Answered, Driver, Issuer, Message, Purpose, RunPhase, RunRequest, State, Target};
use crate::time::{Duration, Time};

/// Number of announcements to a target that are spread evenly over the timeout of the first,
/// besides the quick repetitions. One lost announcement does no harm, and an unreachable target is
/// known as soon as one request has timed out.
pub(super) const ATTEMPTS: u8 = 3;
/// Number of quick repetitions after the first announcement. While a run opens, the network is
/// otherwise idle, so a fault that hits the next packet (such as a bit error in a buffer) always
/// hits an announcement. A path has about this many buffers.
///
/// The first repetition follows after a `QUICK_PART`th of the timeout. Until a target has
/// responded, intervals double up to `MOST_PARTS` times the first; then they are at least twice the
/// slowest response so far. Shorter intervals would fill a paced network, where responses take
/// longer.
pub(super) const QUICK: u8 = 8;
const MOST_PARTS: u64 = 8;
pub(super) const QUICK_PART: u64 = 512;
pub(super) const QUICK_LEAST: Duration = Duration::from_ms(1);
/// Number of times that an announcement damaged in flight is resent at once.
pub(super) const REPEATS: u8 = 8;

impl Driver {
    pub(super) fn announce(&mut self, now: Time, nic: &mut impl Issuer) {
        while let Some(&(at, index)) = self.repeats.first()
            && at <= now
        {
            self.repeats.pop_first();
            let earliest = self.targets[index as usize].announced + self.answers_come_within();
            if earliest > now {
                self.repeats.insert((earliest, index));
            } else {
                self.to_repeat.push_back(index);
            }
        }
        let data = self.announcement.emit(Purpose::Begin);
        // Repetitions do not count against the window, because the run does not wait for them.
        while let Some(&index) = self.to_repeat.front() {
            let request = RunRequest::Repetition {
                index: u16::try_from(index).expect("targets are distinct processors"),
                serial: self.serial,
            };
            let Target {
                processor, state, ..
            } = self.targets[index as usize];
            if matches!(state, State::Unknown { .. }) {
                if !nic.issue(processor, request, &Message::Announce(&data)) {
                    break;
                }
                self.announced(now, index);
            }
            self.to_repeat.pop_front();
        }
        while self.outstanding < self.spec.window
            && let Some(&index) = self.to_announce.front()
        {
            let processor = self.targets[index as usize].processor;
            let request = RunRequest::Announcement(index);
            if !nic.issue(processor, request, &Message::Announce(&data)) {
                break;
            }
            self.to_announce.pop_front();
            self.outstanding += 1;
            self.announced(now, index);
        }
        let undecided = |target: &Target| matches!(target.state, State::Unknown { .. });
        if !self.targets.iter().any(undecided) {
            self.open(now);
        }
    }

    /// Records an announcement to target `index`, and schedules the next repetition, if any.
    fn announced(&mut self, now: Time, index: u32) {
        let [quick, even] = self.intervals;
        let longer = |times: u64| Duration::from_ps(quick.as_ps() * times);
        let target = &mut self.targets[index as usize];
        debug_assert!(target.announced <= now, "announcements follow each other");
        target.announced = now;
        if target.repeats > 0 {
            target.repeats -= 1;
            let interval = match target.repeats.checked_sub(ATTEMPTS - 1) {
                None => even,
                Some(_) if self.slowest_answer.is_some() => quick,
                Some(left) => longer(MOST_PARTS.min(1 << (QUICK - 1 - left))).min(even),
            };
            self.repeats.insert((now + interval, index));
        }
    }

    /// Minimum time to wait for a target's response before the next announcement.
    fn answers_come_within(&self) -> Duration {
        let slowest = self.slowest_answer.unwrap_or(Duration::ZERO);
        Duration::from_ps(2 * slowest.as_ps()).min(self.intervals[1])
    }

    /// Accounts for the response to a repeated announcement of run `serial`; ignores it if that is
    /// another run.
    pub(crate) fn repetition_answered(
        &mut self,
        (index, serial): (u16, u32),
        after: Duration,
        answered: Answered<'_>,
    ) {
        if serial == self.serial {
            self.announcement_answered((index.into(), true), after, answered);
        }
    }

    /// Accounts for the response to an announcement to target `index`, after the given time.
    /// `again` marks a repetition.
    pub(crate) fn announcement_answered(
        &mut self,
        (index, again): (u32, bool),
        after: Duration,
        answered: Answered<'_>,
    ) {
        debug_assert!(
            again || self.outstanding > 0,
            "each first announcement is answered once"
        );
        self.outstanding -= u32::from(!again);
        if !matches!(answered, Answered::Unknown) {
            self.slowest_answer = self.slowest_answer.max(Some(after));
        }
        if self.phase != RunPhase::Opening {
            // After opening, the outcome is decided or no longer matters.
            return;
        }
        let target = &mut self.targets[index as usize];
        target.state = match (target.state, answered) {
            (State::Open, _) | (_, Answered::Written) => State::Open,
            (State::Unknown { damaged }, Answered::Damaged) if damaged < REPEATS => {
                match again {
                    true => self.to_repeat.push_back(index),
                    false => self.to_announce.push_back(index),
                }
                State::Unknown {
                    damaged: damaged + 1,
                }
            }
            (_, Answered::Refused) => State::Refused,
            // Only the timeout of the first announcement counts.
            (state, Answered::Unknown) if again => state,
            (State::Refused, _) => State::Refused,
            _ => State::Unreachable,
        };
    }
}

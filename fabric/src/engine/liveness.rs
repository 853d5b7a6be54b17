//! Liveness of the peers that pending operations depend on.
//!
//! A NIC replies to a get as long as it works and can be reached, whatever its program does, and
//! rejects it once that program has ended. So a peer that is awaited and has been silent for two
//! seconds is probed repeatedly with a get of one word of its memory. After
//! [`PATIENCE`](super::clock::PATIENCE) more without a reply it is lost, and all operations that
//! await it fail. If patience has no limit, silence alone loses no peer. A program that has ended
//! is always lost, and so is a peer that has given up this endpoint. Operations on all others are
//! repeated until they end.
//!
//! Time is counted in checks for arrivals ([`TICK`]), not by the clock: a machine that was
//! suspended, or a program that was computing, has not waited.
//!
//! A receive from any source awaits the whole address vector. While no message arrives, its members
//! are probed in turn, a few at each check.

use std::collections::BTreeSet;
use std::time::Duration;

use phitwire_client::door::{Local, Remote, Request, Status};

use super::action::Action;
use super::clock::TICK;
use super::core::Core;
use super::outbox::Outgoing;
use super::peers::{Peer, PerPeer};
use super::shared::{Failure, Shared, Why};
use super::slots::PROBES_AT;
use super::wire::Address;

/// Silent checks before the first probe, and between probes.
const ASK_EVERY: u32 = 4;
/// Maximum number of probes in flight to one peer.
const MOST_ASKED: u32 = 8;
/// Minimum number of probes without a reply before a peer is given up.
const LEAST_ASKED: u32 = 2;
/// Maximum number of peers that one check adds because a receive is from any source.
const PATROL: usize = 4;
/// Maximum total number of peers probed for that reason.
const MOST_PATROLLED: usize = 64;

/// Maximum number of checks between two probes of a lost peer.
const NOTIFY_EVERY: u32 = 60;

/// Silence of a peer, and probes.
#[derive(Clone, Copy, Debug, Default)]
struct Pulse {
    /// Checks at which the peer was awaited and had given no sign of life.
    silent: u32,
    /// Probes since the last sign of life.
    unanswered: u32,
    /// Probes without a completion yet.
    under_way: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Nothing,
    Ask,
    GiveUp,
}

impl Pulse {
    /// Checks an awaited peer, which may have given a sign of life since the last check; with
    /// `at_once` it is probed now unless a probe is in flight. Silence of separate waits adds up.
    /// Without `patience` no silence is long enough to give it up.
    const fn check(&mut self, is_heard: bool, patience: Option<u32>, at_once: bool) -> Step {
        if is_heard {
            self.silent = 0;
            self.unanswered = 0;
            if !at_once {
                return Step::Nothing;
            }
        }
        self.silent = self.silent.saturating_add(1);
        if at_once && self.under_way == 0 {
            return Step::Ask;
        }
        if let Some(patience) = patience
            && self.silent >= patience.saturating_add(ASK_EVERY)
            && self.unanswered >= LEAST_ASKED
        {
            return Step::GiveUp;
        }
        match self.silent.is_multiple_of(ASK_EVERY) && self.under_way < MOST_ASKED {
            true => Step::Ask,
            false => Step::Nothing,
        }
    }

    const fn asked(&mut self) {
        self.unanswered = self.unanswered.saturating_add(1);
        self.under_way += 1;
        debug_assert!(self.under_way <= MOST_ASKED, "probes do not accumulate");
    }
}

/// When to probe a lost peer, until it has been notified that it is lost.
#[derive(Clone, Copy, Debug, Default)]
struct Notice {
    /// The check at which the peer is probed next.
    at: u32,
    /// Checks between the last two probes.
    every: u32,
}

/// Decides which peers to probe, and which to give up.
#[derive(Debug, Default)]
pub struct Liveness {
    /// When the last check was due.
    checked: Duration,
    /// The peers awaited at the last check.
    watched: BTreeSet<usize>,
    /// Peers probed because a receive is from any source.
    patrolled: BTreeSet<usize>,
    /// The next peer to patrol, by its number in the address vector.
    next: u64,
    /// Checks at which a receive from any source had no message.
    quiet: u32,
    pulses: PerPeer<(Pulse, Notice)>,
    /// A peer whose NIC has rejected the key of this job, for a message to the user.
    pub(super) foreign: Option<Address>,
    #[cfg(test)]
    pub(super) probes: u64,
}

impl Liveness {
    /// When the next check is due.
    pub(super) fn deadline(&self) -> Duration {
        self.checked + TICK
    }

    /// Begins a check, which must be due.
    pub(super) fn begin_check(&mut self, core: &mut Core, now: Duration) {
        debug_assert!(now >= self.deadline(), "checks are no more frequent");
        self.checked = now;
        core.clock.tick();
    }

    /// Checks the awaited peers: probes those that are silent, and gives up those that stay so.
    pub(super) fn check(&mut self, core: &mut Core, mut awaited: BTreeSet<usize>) {
        let patience = core.clock.patience();
        awaited.retain(|&peer| {
            let peer = &core.peers[peer];
            !peer.is_self && peer.failed.is_none()
        });
        for &peer in &awaited {
            let is_new = !self.watched.contains(&peer);
            let at_once = is_new && self.patrolled.contains(&peer);
            let is_heard = core.peers.take_heard(peer);
            let (pulse, _) = self.pulses.of(peer);
            match pulse.check(is_heard, patience, at_once) {
                Step::Nothing => {}
                Step::Ask => self.probe(core, peer),
                Step::GiveUp => {
                    let failure = Failure {
                        errno: libc::ETIMEDOUT,
                        why: Why::Unknown,
                    };
                    core.actions.push_back(Action::Lose(peer, failure));
                }
            }
        }
        debug_assert!(
            awaited.iter().all(|&peer| !core.peers[peer].is_self),
            "an endpoint does not await itself"
        );
        self.watched = awaited;
    }

    /// While a receive accepts any source, adds the peers to probe for it. The waits of several
    /// such receives add up until a message arrives.
    pub(super) fn patrol(
        &mut self,
        core: &mut Core,
        shared: &Shared,
        (is_for_anyone, has_received): (bool, bool),
        awaited: &mut BTreeSet<usize>,
    ) {
        if has_received {
            self.quiet = 0;
            return self.patrolled.clear();
        }
        if !is_for_anyone {
            return;
        }
        self.quiet = self.quiet.saturating_add(1);
        let peers = &core.peers;
        let of_use = |&peer: &usize| peers[peer].failed.is_none() && !peers[peer].is_heard;
        self.patrolled.retain(of_use);
        let vector = core.binds.vector.and_then(|slot| shared.vectors.get(slot));
        if let Some(vector) = vector.filter(|_| self.quiet >= ASK_EVERY) {
            let room = MOST_PATROLLED - self.patrolled.len();
            for _ in 0..vector.numbers().min(PATROL as u64).min(room as u64) {
                let number = self.next % vector.numbers();
                self.next = number + 1;
                if let Some(address) = vector.get(number) {
                    self.patrolled.insert(core.peers.number(address));
                }
            }
        }
        debug_assert!(self.patrolled.len() <= MOST_PATROLLED);
        awaited.extend(&self.patrolled);
    }

    /// Probes, at growing intervals, the lost peers that may be alive and have not been notified:
    /// they may still wait for this endpoint.
    pub(super) fn probe_lost(&mut self, core: &mut Core) {
        let checks = core.clock.checks();
        for peer in 0..core.peers.len() {
            let Peer {
                failed,
                is_notified,
                ..
            } = core.peers[peer];
            if is_notified || failed.is_none_or(|failure| failure.why == Why::Departed) {
                continue;
            }
            let (pulse, notice) = self.pulses.of(peer);
            if checks >= notice.at {
                notice.every = (2 * notice.every).clamp(ASK_EVERY, NOTIFY_EVERY);
                notice.at = checks.saturating_add(notice.every);
                if pulse.under_way == 0 {
                    self.probe(core, peer);
                }
            }
        }
    }

    /// A lost peer is alive: notify it, so that its operations that wait for this endpoint fail.
    pub(super) fn lost_lives(&self, core: &mut Core, peer: usize) {
        debug_assert!(
            core.peers[peer].failed.is_some(),
            "only lost peers are notified"
        );
        if !core.peers[peer].is_notified {
            core.actions.push_back(Action::Notify(peer));
        }
    }

    /// Handles the message of a peer that has given up this endpoint.
    pub(super) fn lost_by(&self, core: &mut Core, peer: usize) {
        core.actions.push_back(Action::Notified(peer));
        let failure = Failure {
            errno: libc::EHOSTUNREACH,
            why: Why::Unreachable,
        };
        core.actions.push_back(Action::Lose(peer, failure));
    }

    fn probe(&mut self, core: &mut Core, peer: usize) {
        #[cfg(test)]
        {
            self.probes += 1;
        }
        core.outbox.push(Outgoing::Probe(peer));
        self.pulses.of(peer).0.asked();
    }

    /// Probes `peers` now, except those with a probe in flight. The reply shows whether the peer's
    /// program still runs: then it stays awaited, otherwise it is lost.
    pub(super) fn probe_all(&mut self, core: &mut Core, peers: BTreeSet<usize>) {
        for peer in peers {
            let to = &core.peers[peer];
            if !to.is_self && to.failed.is_none() && self.pulses.of(peer).0.under_way == 0 {
                self.probe(core, peer);
            }
        }
    }

    /// Handles the completion of a probe.
    pub(super) fn answered(&mut self, core: &mut Core, peer: usize, status: Status) {
        let Some(failed) = core.peers.get(peer).map(|peer| peer.failed) else {
            return;
        };
        let (pulse, _) = self.pulses.of(peer);
        pulse.under_way = pulse.under_way.saturating_sub(1);
        if failed.is_some() && status == Status::Done {
            return self.lost_lives(core, peer);
        }
        match status {
            Status::Done | Status::Damaged | Status::Busy => core.peers.heard(peer),
            // A lost peer has ended: no operation there waits for this endpoint any more.
            Status::NoHandle | Status::WrongKey | Status::OutOfBounds | Status::Forbidden
                if failed.is_some() =>
            {
                core.actions.push_back(Action::Notified(peer));
            }
            Status::NoHandle | Status::WrongKey | Status::OutOfBounds | Status::Forbidden => {
                if status == Status::WrongKey {
                    self.foreign = Some(core.peers[peer].address);
                }
                let failure = Failure {
                    errno: libc::EHOSTUNREACH,
                    why: Why::Departed,
                };
                core.actions.push_back(Action::Lose(peer, failure));
            }
            // Ignore timeouts, and replies of unknown origin.
            _ => {}
        }
    }
}

/// A probe gets one word of the memory that the peer's program has opened.
pub(super) fn probe_request(core: &Core, peer: usize) -> Request<'static> {
    let to = core.peers[peer].address;
    let from = Remote {
        processor: to.processor,
        handle: to.handle(),
        offset: 0,
    };
    let into = Local {
        offset: PROBES_AT,
        bytes: 4,
    };
    Request::Get {
        from,
        into,
        ordered: false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::clock::{PATIENCE, in_ticks};
    use super::*;

    const LOOKS: u32 = in_ticks(PATIENCE);

    /// Checks a peer until it is given up, or `most` times. Returns the checks at which it was
    /// probed, and the one that gave it up. Replies arrive `answer_after` checks after their probe.
    fn asked(most: u32, answer_after: Option<u32>) -> (Vec<u32>, Option<u32>) {
        let (mut pulse, mut is_heard) = (Pulse::default(), false);
        let (mut asks, mut due) = (Vec::new(), std::collections::VecDeque::new());
        for look in 1..=most {
            if due.front() == Some(&look) {
                due.pop_front();
                pulse.under_way -= 1;
                is_heard = true;
            }
            assert!(pulse.under_way <= MOST_ASKED);
            match pulse.check(std::mem::take(&mut is_heard), Some(LOOKS), false) {
                Step::Nothing => {}
                Step::Ask => {
                    pulse.asked();
                    asks.push(look);
                    due.extend(answer_after.map(|after| look + after));
                }
                Step::GiveUp => return (asks, Some(look)),
            }
        }
        (asks, None)
    }

    #[test]
    fn a_peer_that_never_answers_is_given_up_after_the_patience() {
        let (asks, given_up) = asked(100, None);
        assert_eq!(asks, [4, 8, 12, 16, 20]);
        assert_eq!(given_up, Some(LOOKS + ASK_EVERY));
    }

    #[test]
    fn a_slow_peer_is_never_given_up() {
        for after in 1..=LOOKS {
            let (asks, given_up) = asked(100_000, Some(after));
            assert_eq!(given_up, None, "answers after {after} looks");
            // At most one probe in four checks, two seconds.
            assert!(asks.len() <= 25_000, "{} questions", asks.len());
        }
        // Slower replies do lose the peer, so the loop above can fail.
        assert!(asked(100_000, Some(LOOKS + ASK_EVERY)).1.is_some());
    }
}

//! Liveness of the peers that pending operations depend on.
//!
//! A NIC replies to a get as long as it works and can be reached, whatever its program does, and
//! rejects it once that program has ended. So a peer that is awaited and has been silent for two
//! seconds is probed repeatedly with a get of one word of its memory. After [`PATIENCE`](super::clock::PATIENCE) more
//! without a reply it is lost, and all operations that await it fail.
//!
//! Time is counted in checks ([`TICK`]) of what has arrived, not by the clock: a machine that was
//! suspended, or a program that was computing, has not waited.
//!
//! A receive from any source awaits the whole address vector. While no message arrives, its members
//! are probed in turn, a few at each check.

use std::collections::BTreeSet;
use std::time::Duration;

use phitwire_client::door::Status;

use super::clock::TICK;
use super::endpoint::Endpoint;
use super::outbox::Outgoing;
use super::peers::End;
use super::shared::{Failure, Shared, Why};
use super::wire::{Head, Kind};

/// Silent checks before the first probe, and between probes.
const ASK_EVERY: u32 = 4;
/// Maximum number of probes in flight to one peer.
const MOST_ASKED: u32 = 8;
/// Minimum number of probes without a reply before a peer is given up.
const LEAST_ASKED: u32 = 2;
/// Maximum number of peers that one check adds because a receive is from any source.
const PATROL: usize = 4;
/// Maximum number of peers so probed in all.
const MOST_PATROLLED: usize = 64;

/// Most checks between two probes of a lost peer.
const NOTIFY_EVERY: u32 = 60;

/// Signs of life of a peer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pulse {
    /// Heard since the last check.
    is_heard: bool,
    /// Checks at which the peer was awaited and had given no sign of life.
    silent: u32,
    /// Probes since the last sign of life.
    in_vain: u32,
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
    /// The peer gave a sign of life.
    pub const fn heard(&mut self) {
        self.is_heard = true;
    }

    /// Checks an awaited peer; with `at_once` it is probed now unless a probe is in flight. Silence
    /// of separate waits adds up.
    const fn look(&mut self, patience: u32, at_once: bool) -> Step {
        if self.is_heard {
            self.is_heard = false;
            self.silent = 0;
            self.in_vain = 0;
            if !at_once {
                return Step::Nothing;
            }
        }
        self.silent = self.silent.saturating_add(1);
        if at_once && self.under_way == 0 {
            return Step::Ask;
        }
        if self.silent >= patience.saturating_add(ASK_EVERY) && self.in_vain >= LEAST_ASKED {
            return Step::GiveUp;
        }
        match self.silent.is_multiple_of(ASK_EVERY) && self.under_way < MOST_ASKED {
            true => Step::Ask,
            false => Step::Nothing,
        }
    }

    const fn asked(&mut self) {
        self.in_vain += 1;
        self.under_way += 1;
    }
}

/// Monitors the awaited peers.
#[derive(Debug)]
pub struct Lookout {
    /// When the last check was due.
    looked: Duration,
    /// The peers awaited at the last check.
    watched: BTreeSet<usize>,
    /// Peers probed because a receive is from any source.
    patrolled: BTreeSet<usize>,
    /// The next peer to patrol, by its number in the address vector.
    next: u64,
    /// Checks at which a receive from any source had no message.
    quiet: u32,
}

impl Default for Lookout {
    fn default() -> Self {
        Self {
            looked: Duration::ZERO,
            watched: BTreeSet::new(),
            patrolled: BTreeSet::new(),
            next: 0,
            quiet: 0,
        }
    }
}

impl Endpoint {
    /// When [`Self::handle_timeout`] is due.
    pub fn deadline(&self) -> Duration {
        self.lookout.looked + TICK
    }

    /// Checks the awaited peers, if that is due; `now` is the time since any fixed moment. Call it
    /// only when all completions so far have been handled: they may be signs of life.
    pub fn handle_timeout(&mut self, shared: &mut Shared, now: Duration) {
        if now < self.deadline() {
            return;
        }
        self.lookout.looked = now;
        self.core.clock.tick();
        self.post_refused();
        let Some(patience) = self.core.clock.patience() else {
            return;
        };
        let awaited = self.awaited(shared);
        for &peer in &awaited {
            let is_new = !self.lookout.watched.contains(&peer);
            let at_once = is_new && self.lookout.patrolled.contains(&peer);
            let pulse = &mut self.core.peers.all[peer].pulse;
            match pulse.look(patience, at_once) {
                Step::Nothing => {}
                Step::Ask => self.ask_for_life(peer),
                Step::GiveUp => self.give_up(shared, peer),
            }
        }
        self.lookout.watched = awaited;
        self.notify_lost();
        self.route(shared);
    }

    /// The peers that anything waits for, except those already lost.
    fn awaited(&mut self, shared: &Shared) -> BTreeSet<usize> {
        let mut awaited = BTreeSet::new();
        let for_anyone = self.matching.await_peers(&mut self.core, &mut awaited);
        self.patrol(shared, for_anyone);
        awaited.extend(&self.lookout.patrolled);
        awaited.extend(self.requests.values().map(|request| request.peer));
        awaited.extend(self.direct.wholes.iter().map(|whole| whole.peer));
        awaited.extend(self.offers.values().map(|offer| offer.peer));
        awaited.extend(self.pulls.keys().map(|(peer, _)| *peer));
        awaited.extend(self.sends.iter().map(|sending| sending.peer));
        awaited.extend(&self.waiting);
        awaited.retain(|&peer| {
            let peer = &self.core.peers.all[peer];
            !peer.is_self && peer.failed.is_none()
        });
        awaited
    }

    /// Picks the peers to probe because a receive is from any source, if any is and had no message
    /// since the last check.
    fn patrol(&mut self, shared: &Shared, for_anyone: bool) {
        let lookout = &mut self.lookout;
        if !for_anyone {
            lookout.quiet = 0;
            return lookout.patrolled.clear();
        }
        lookout.quiet = lookout.quiet.saturating_add(1);
        let peers = &self.core.peers.all;
        let of_use = |&peer: &usize| peers[peer].failed.is_none() && !peers[peer].pulse.is_heard;
        lookout.patrolled.retain(of_use);
        let vector = self
            .core
            .binds
            .vector
            .and_then(|slot| shared.vectors.get(slot));
        let Some(vector) = vector.filter(|_| lookout.quiet >= ASK_EVERY) else {
            return;
        };
        let room = MOST_PATROLLED - lookout.patrolled.len();
        for _ in 0..vector.numbers().min(PATROL as u64).min(room as u64) {
            let number = lookout.next % vector.numbers();
            lookout.next = number + 1;
            if let Some(address) = vector.get(number) {
                let peer = self.core.peers.number(address);
                lookout.patrolled.insert(peer);
            }
        }
    }

    /// Probes the lost peers that may live and do not know that they are lost, ever more rarely:
    /// they may wait for what will not come.
    fn notify_lost(&mut self) {
        let looks = self.core.clock.checks();
        let mut due = Vec::new();
        for (number, peer) in self.core.peers.all.iter_mut().enumerate() {
            let may_live = peer
                .failed
                .is_some_and(|failure| failure.why != Why::Departed);
            if may_live && !peer.is_notified && looks >= peer.notify_at {
                peer.notify_every = (2 * peer.notify_every).clamp(ASK_EVERY, NOTIFY_EVERY);
                peer.notify_at = looks.saturating_add(peer.notify_every);
                if peer.pulse.under_way == 0 {
                    due.push(number);
                }
            }
        }
        for peer in due {
            self.ask_for_life(peer);
        }
    }

    /// Tells a lost peer that lives, so that it fails what waits for this endpoint.
    pub(super) fn notify(&mut self, peer: usize) {
        if !self.core.peers.all[peer].is_notified && self.sends.room() > 0 {
            let head = Head {
                kind: Kind::Lost,
                ..Head::default()
            };
            self.launch(peer, head, &[], End::Notice(peer));
        }
    }

    /// A peer has given this endpoint up.
    pub(super) fn lost_by(&mut self, shared: &mut Shared, peer: usize) {
        self.core.peers.all[peer].is_notified = true;
        let failure = Failure {
            errno: libc::EHOSTUNREACH,
            why: Why::Unreachable,
        };
        self.lose(shared, peer, failure);
    }

    /// Probes a peer.
    fn ask_for_life(&mut self, peer: usize) {
        self.core.outbox.push(Outgoing::Probe(peer));
        self.core.peers.all[peer].pulse.asked();
    }

    /// Probes at once the peers that messages have not reached, unless a probe is in flight. A live
    /// peer stays awaited; one that has ended is lost when the reply arrives.
    pub fn probe_unreached(&mut self) {
        let sending = self.sends.iter().map(|sending| sending.peer);
        let unreached: BTreeSet<_> = sending.chain(self.waiting.iter().copied()).collect();
        for peer in unreached {
            let to = &self.core.peers.all[peer];
            if !to.is_self && to.failed.is_none() && to.pulse.under_way == 0 {
                self.ask_for_life(peer);
            }
        }
    }

    /// Handles the completion of a probe.
    pub(super) fn answered(&mut self, shared: &mut Shared, peer: usize, status: Status) {
        let Some(to) = self.core.peers.all.get_mut(peer) else {
            return;
        };
        to.pulse.under_way = to.pulse.under_way.saturating_sub(1);
        if to.failed.is_some() && status == Status::Done {
            return self.notify(peer);
        }
        match status {
            Status::Done | Status::Damaged | Status::Busy => to.pulse.heard(),
            Status::NoHandle | Status::WrongKey | Status::OutOfBounds | Status::Forbidden => {
                let failure = Failure {
                    errno: libc::EHOSTUNREACH,
                    why: Why::Departed,
                };
                self.lose(shared, peer, failure);
            }
            // Ignore timeouts, and replies of unknown origin.
            _ => {}
        }
    }

    fn give_up(&mut self, shared: &mut Shared, peer: usize) {
        let failure = Failure {
            errno: libc::ETIMEDOUT,
            why: Why::Unknown,
        };
        self.lose(shared, peer, failure);
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
        let mut pulse = Pulse::default();
        let (mut asks, mut due) = (Vec::new(), std::collections::VecDeque::new());
        for look in 1..=most {
            if due.front() == Some(&look) {
                due.pop_front();
                pulse.under_way -= 1;
                pulse.heard();
            }
            assert!(pulse.under_way <= MOST_ASKED);
            match pulse.look(LOOKS, false) {
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
    fn who_never_answers_is_given_up_after_patience() {
        let (asks, given_up) = asked(100, None);
        assert_eq!(asks, [4, 8, 12, 16, 20]);
        assert_eq!(given_up, Some(LOOKS + ASK_EVERY));
    }

    #[test]
    fn who_answers_slowly_is_never_given_up() {
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

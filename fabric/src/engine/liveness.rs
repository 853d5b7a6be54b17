//! Whether those still live for whom something waits.
//!
//! A network interface answers a get as long as it lives and there is a way to it, whatever its
//! program does, or refuses it when that program has ended. So whoever is waited for and has not been
//! heard for two seconds is asked for a word of its memory, again and again. No answer for
//! [`PATIENCE`] more, and it is lost: what waits for it fails.
//!
//! Time is counted in looks ([`TICK`]) at what has come, not by the clock: a machine that stood
//! still, or a program that computed meanwhile, has not waited in vain.
//!
//! A receive from anywhere waits for all of the address vector. While no message comes at all they
//! are asked in turn, a few at each look.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use phitwire_client::door::{Local, Remote, Status};

use super::endpoint::{Endpoint, PROBE};
use super::matching::Posted;
use super::shared::{Failure, Shared, Why};
use super::slots::PROBES_AT;

/// Looks are at least so far apart.
pub const TICK: Duration = Duration::from_millis(500);
/// How long one may leave questions unanswered: a way that is cut for seven seconds loses nobody, and
/// that is several times what the routers of a lab take to
/// notice a cut (`give_up_ms`, two seconds) and `phitwire manage --watch` to lead around it (one).
pub const PATIENCE: Duration = Duration::from_secs(10);
/// Silent looks before one is asked, and between questions.
const ASK_EVERY: u32 = 4;
/// Most questions to one that are under way.
const MOST_ASKED: u32 = 8;
/// Questions without an answer before one is given up.
const LEAST_ASKED: u32 = 2;
/// Most that are asked anew at one look because a receive waits for anyone, and that are asked so.
const PATROL: usize = 4;
const MOST_PATROLLED: usize = 64;

/// Looks at which one whose message was looked for is waited for: programs do that again and again.
const PEEK_LOOKS: u32 = 8;

/// Signs of life of another end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pulse {
    /// Since the last look.
    is_heard: bool,
    /// Looks at which it was waited for and had given no sign.
    silent: u32,
    /// Questions since its last sign.
    in_vain: u32,
    /// Questions whose end is still to come.
    under_way: u32,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Nothing,
    Ask,
    GiveUp,
}

impl Pulse {
    /// It has given a sign of life.
    pub const fn heard(&mut self) {
        self.is_heard = true;
    }

    /// It is waited for from now on; `at_once`: it will be asked at this look.
    const fn begin(&mut self, at_once: bool) {
        self.is_heard = false;
        self.silent = if at_once { ASK_EVERY - 1 } else { 0 };
        self.in_vain = 0;
    }

    /// A look at one who is waited for.
    const fn look(&mut self, patience: u32) -> Step {
        if self.is_heard {
            self.begin(false);
            return Step::Nothing;
        }
        self.silent = self.silent.saturating_add(1);
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

/// Who is looked at.
#[derive(Debug)]
pub struct Lookout {
    /// Looks without an answer before one is given up; none: nobody ever is.
    patience: u32,
    /// Looks so far. They measure time that stops while the program does not run.
    looks: u32,
    /// At the last look.
    watched: BTreeSet<usize>,
    /// Whose messages were looked for, and those of anyone: for so many looks they are waited for.
    peeked: BTreeMap<usize, u32>,
    peeked_anyone: u32,
    /// Asked because a receive waits for anyone.
    patrolled: BTreeSet<usize>,
    /// Whose turn is next, by number of the address vector.
    next: u64,
    /// Whether a message came since the last look, and looks at which a receive for anyone had none.
    has_received: bool,
    quiet: u32,
    /// Somebody was lost, and no receive for anyone has failed for that.
    is_untold: bool,
}

impl Default for Lookout {
    fn default() -> Self {
        Self {
            patience: in_ticks(PATIENCE),
            looks: 0,
            watched: BTreeSet::new(),
            peeked: BTreeMap::new(),
            peeked_anyone: 0,
            patrolled: BTreeSet::new(),
            next: 0,
            has_received: false,
            quiet: 0,
            is_untold: false,
        }
    }
}

const fn in_ticks(time: Duration) -> u32 {
    (time.as_millis() / TICK.as_millis()) as u32
}

impl Lookout {
    /// How long one may leave questions unanswered; no time: for ever.
    pub const fn wait_for(&mut self, patience: Duration) {
        self.patience = in_ticks(patience);
    }

    #[cfg(test)]
    pub(super) const fn has_looked(&mut self) {
        self.looks += 1;
    }

    /// Time by looks: it stops while the program does not run.
    pub(super) const fn now(&self) -> Duration {
        Duration::from_millis(TICK.as_millis() as u64 * self.looks as u64)
    }

    /// Whether what has been tried for so long is tried again.
    pub(super) fn is_patient(&self, since: Duration) -> bool {
        self.patience == 0 || since < TICK * self.patience
    }

    /// A message has come.
    pub(super) const fn received(&mut self) {
        self.has_received = true;
    }
}

impl Endpoint {
    /// A look at those for whom something waits.
    pub(super) fn tick(&mut self, shared: &mut Shared) {
        self.looked = Instant::now();
        self.lookout.looks = self.lookout.looks.saturating_add(1);
        self.post_refused();
        if self.lookout.patience == 0 {
            return self.nic.flush();
        }
        let awaited = self.awaited(shared);
        for &peer in &awaited {
            let is_new = !self.lookout.watched.contains(&peer);
            let at_once = self.lookout.patrolled.contains(&peer);
            let pulse = &mut self.peers.all[peer].pulse;
            if is_new {
                pulse.begin(at_once);
            }
            match pulse.look(self.lookout.patience) {
                Step::Nothing => {}
                Step::Ask => self.ask_for_life(peer),
                Step::GiveUp => self.give_up(shared, peer),
            }
        }
        self.lookout.watched = awaited;
        self.nic.flush();
    }

    /// Others for whom something waits, as far as they are not lost already.
    fn awaited(&mut self, shared: &Shared) -> BTreeSet<usize> {
        let (from, for_anyone) = self.receives.wanted();
        let lookout = &mut self.lookout;
        let for_anyone = for_anyone || lookout.peeked_anyone > 0;
        lookout.peeked_anyone = lookout.peeked_anyone.saturating_sub(1);
        let mut awaited: BTreeSet<_> = lookout.peeked.keys().copied().collect();
        lookout.peeked.retain(|_, looks| {
            *looks -= 1;
            *looks > 0
        });
        self.patrol(shared, for_anyone);
        awaited.extend(&self.lookout.patrolled);
        for address in from {
            awaited.insert(self.peers.number(address, self.address));
        }
        awaited.extend(self.requests.values().map(|request| request.peer));
        awaited.extend(self.direct.wholes.iter().map(|whole| whole.peer));
        awaited.extend(self.offers.values().map(|offer| offer.peer));
        awaited.extend(self.pulls.keys().map(|(peer, _)| *peer));
        awaited.extend(self.sends.iter().map(|sending| sending.peer));
        awaited.extend(&self.waiting);
        awaited.retain(|&peer| {
            let peer = &self.peers.all[peer];
            !peer.is_self && peer.failed.is_none()
        });
        awaited
    }

    /// Picks those who are asked because a receive waits for anyone.
    fn patrol(&mut self, shared: &Shared, for_anyone: bool) {
        let lookout = &mut self.lookout;
        let has_received = std::mem::take(&mut lookout.has_received);
        if !for_anyone || has_received {
            lookout.quiet = 0;
            return lookout.patrolled.clear();
        }
        lookout.quiet = lookout.quiet.saturating_add(1);
        let peers = &self.peers.all;
        let of_use = |&peer: &usize| peers[peer].failed.is_none() && !peers[peer].pulse.is_heard;
        lookout.patrolled.retain(of_use);
        let vector = self.binds.vector.and_then(|slot| shared.vectors.get(slot));
        let Some(vector) = vector.filter(|_| lookout.quiet >= ASK_EVERY) else {
            return;
        };
        let room = MOST_PATROLLED - lookout.patrolled.len();
        for _ in 0..vector.numbers().min(PATROL as u64).min(room as u64) {
            let number = lookout.next % vector.numbers();
            lookout.next = number + 1;
            if let Some(address) = vector.get(number) {
                let peer = self.peers.number(address, self.address);
                lookout.patrolled.insert(peer);
            }
        }
    }

    /// Asks the network interface of another end for a word of its program's memory.
    fn ask_for_life(&mut self, peer: usize) {
        let to = &mut self.peers.all[peer];
        let from = Remote {
            processor: to.address.processor,
            handle: to.address.handle(),
            offset: 0,
        };
        let into = Local {
            offset: PROBES_AT,
            bytes: 4,
        };
        // Without room for it there will be a further look.
        if self.nic.get(PROBE | peer as u64, from, into).is_ok() {
            to.pulse.asked();
        }
    }

    /// Asks those at once whom messages have not reached, but for those who are being asked. One that
    /// lives is waited for as before; one that has ended is lost when the answer comes.
    pub(super) fn ask_the_unreached(&mut self) {
        let sending = self.sends.iter().map(|sending| sending.peer);
        let unreached: BTreeSet<_> = sending.chain(self.waiting.iter().copied()).collect();
        for peer in unreached {
            let to = &self.peers.all[peer];
            if !to.is_self && to.failed.is_none() && to.pulse.under_way == 0 {
                self.ask_for_life(peer);
            }
        }
        self.nic.flush();
    }

    /// What has become of a question.
    pub(super) fn answered(&mut self, shared: &mut Shared, peer: usize, status: Status) {
        let Some(to) = self.peers.all.get_mut(peer) else {
            return;
        };
        to.pulse.under_way = to.pulse.under_way.saturating_sub(1);
        match status {
            Status::Done | Status::Damaged | Status::Busy => to.pulse.heard(),
            Status::NoHandle | Status::WrongKey | Status::OutOfBounds | Status::Forbidden => {
                let failure = Failure {
                    errno: libc::EHOSTUNREACH,
                    why: Why::Departed,
                };
                self.lose(shared, peer, failure);
            }
            // No answer, or nobody knows whose.
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

    /// Another end is lost: receives fail that wait for it, and, unless its program may have ended in
    /// order, those that wait for anyone.
    pub(super) fn lose_receives(&mut self, shared: &mut Shared, peer: usize, lost: Failure) {
        if self.is_gone {
            // All of them fail for that.
            return;
        }
        let address = self.peers.all[peer].address;
        self.fail_receives(shared, lost, |posted| posted.from == Some(address));
        if lost.why != Why::Departed {
            let told = self.fail_receives(shared, SOMEONE_LOST, Posted::is_for_anyone);
            self.lookout.is_untold |= told == 0;
        }
    }

    /// Why a receive will have no message. One for anyone is told of the lost only once: who posts it
    /// again knows of them.
    pub(super) fn hopeless(&mut self, posted: &Posted) -> Option<Failure> {
        match posted.from {
            Some(address) => self.peers.failure(&address),
            None if posted.is_for_anyone() && self.lookout.is_untold => {
                self.lookout.is_untold = false;
                Some(SOMEONE_LOST)
            }
            None => None,
        }
    }

    /// A message was looked for that is not there: its sender is waited for. Why it will not come.
    pub(super) fn peeked_in_vain(&mut self, wanted: &Posted) -> Option<Failure> {
        match wanted.from {
            Some(address) => {
                let peer = self.peers.number(address, self.address);
                self.lookout.peeked.insert(peer, PEEK_LOOKS);
            }
            None => self.lookout.peeked_anyone = PEEK_LOOKS,
        }
        self.hopeless(wanted)
    }
}

const SOMEONE_LOST: Failure = Failure {
    errno: libc::EHOSTUNREACH,
    why: Why::SomeoneLost,
};

#[cfg(test)]
mod tests {
    use super::*;

    const LOOKS: u32 = in_ticks(PATIENCE);

    /// Looks at one until it is given up, or `most` times; at which looks it was asked. Its answers
    /// come so many looks after a question.
    fn asked(most: u32, answer_after: Option<u32>) -> (Vec<u32>, Option<u32>) {
        let mut pulse = Pulse::default();
        pulse.begin(false);
        let (mut asks, mut due) = (Vec::new(), std::collections::VecDeque::new());
        for look in 1..=most {
            if due.front() == Some(&look) {
                due.pop_front();
                pulse.under_way -= 1;
                pulse.heard();
            }
            assert!(pulse.under_way <= MOST_ASKED);
            match pulse.look(LOOKS) {
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
            // At most one question in two seconds.
            assert!(asks.len() <= 25_000, "{} questions", asks.len());
        }
        // It could be told otherwise.
        assert!(asked(100_000, Some(LOOKS + ASK_EVERY)).1.is_some());
    }
}

//! Endpoints on NICs without a network: closing, which waits up to five seconds for peers, and
//! access to the program's memory.

use std::time::Instant;

use super::*;
use crate::engine::shared::{Entry, Why};
use crate::engine::slots::{LEAST_RECEIVES, RECEIVES};
use crate::engine::tests::program::{self, pattern};
use crate::fake::Fake;
use crate::memory::Pieces;

const LOST: i32 = libc::EHOSTUNREACH;
const TAG: u64 = 1;

/// An endpoint with a queue and an address vector of all endpoints.
struct One {
    shared: Shared,
    driver: Driver,
}

fn all_at(doors: &[PathBuf]) -> Vec<One> {
    all_with(doors, RECEIVES)
}

fn all_with(doors: &[PathBuf], receives: usize) -> Vec<One> {
    let attach = |door: &PathBuf| {
        let target = AttachTarget {
            door: door.clone(),
            job: 7,
            reach: false,
            receives,
        };
        let mut driver = Driver::attach(&target).expect("there is a door");
        let shared = program::bind(&mut driver.endpoint);
        One { shared, driver }
    };
    let mut all: Vec<_> = doors.iter().map(attach).collect();
    let addresses: Vec<_> = all
        .iter()
        .map(|one| one.driver.endpoint.address())
        .collect();
    program::introduce(all.iter_mut().map(|one| &mut one.shared), &addresses);
    all
}

/// Makes progress on all endpoints until `who` has a completion.
fn wait(all: &mut [One], who: usize) -> Entry {
    let end = Instant::now() + Duration::from_secs(10);
    while Instant::now() < end {
        for one in all.iter_mut() {
            one.driver.progress(&mut one.shared);
        }
        let queue = all[who].shared.queues.get_mut(0).expect("it is there");
        assert_eq!(queue.errors.front(), None);
        if let Some((entry, _)) = queue.entries.pop_front() {
            return entry;
        }
        std::thread::yield_now();
    }
    panic!("nothing completes at {who}");
}

/// Shorter than the two seconds after which `tick` probes awaited peers.
const SOON: Duration = Duration::from_secs(1);

/// Five endpoints on one NIC. The last one found no room for receives, so messages to it wait, like
/// those to a program that has ended.
fn with_one_that_receives_nothing(fake: &Fake) -> Vec<One> {
    all_at(&vec![fake.doors[0].clone(); 5])
}

impl One {
    fn send(&mut self, to: u64, context: usize, bytes: Vec<u8>) {
        let (endpoint, shared) = (&mut self.driver.endpoint, &mut self.shared);
        program::send(endpoint, shared, to, TAG, (context, bytes));
        self.driver.issue(&mut self.shared);
    }

    fn receive(&mut self, context: usize, bytes: usize) -> Pieces {
        let (posted, into) = program::posted(context, TAG, bytes);
        let endpoint = &mut self.driver.endpoint;
        endpoint.receive(&mut self.shared, true, posted, false);
        into
    }

    fn take_all_in(&mut self, fake: &Fake) {
        loop {
            fake.settle();
            if !self.driver.progress(&mut self.shared) {
                return;
            }
        }
    }

    fn errors(&mut self) -> Vec<(usize, i32, Why)> {
        program::errors(&mut self.shared)
    }

    /// Commands in flight, except posted receives.
    fn under_way(&self) -> u64 {
        self.driver.nic.under_way() - RECEIVES as u64
    }

    /// Closes the endpoint. Returns how long that took.
    fn drain(&mut self) -> Duration {
        let begin = Instant::now();
        self.driver.drain(&mut self.shared);
        begin.elapsed()
    }
}

/// Ranks that end together owe each other acknowledgements.
#[test]
fn an_acknowledgement_to_an_ended_program_keeps_nobody() {
    let fake = Fake::start(1);
    let mut all = with_one_that_receives_nothing(&fake);
    // When more than half of its window is in use, it requests an acknowledgement.
    (0..10).for_each(|n| all[4].send(0, n, pattern(8, n)));
    all[4].take_all_in(&fake);
    all[0].take_all_in(&fake);
    assert_eq!(all[0].under_way(), 1, "it is owed, and finds no receive");
    all.pop();
    fake.settle();
    let took = all[0].drain();
    assert!(took < SOON, "{took:?}");
    // Earlier messages have arrived.
    for n in 0..10 {
        let into = all[0].receive(20 + n, 8);
        assert_eq!(wait(&mut all, 0).context, 20 + n);
        assert_eq!(into.now(), pattern(8, n));
    }
}

#[test]
fn a_message_to_an_ended_program_fails_at_once() {
    let fake = Fake::start(1);
    let mut all = with_one_that_receives_nothing(&fake);
    // More than its window, so some messages wait for acknowledgements.
    (0..20).for_each(|n| all[0].send(4, n, pattern(8, 0)));
    fake.settle();
    assert!(!all[0].driver.endpoint.is_drained());
    all.pop();
    fake.settle();
    let took = all[0].drain();
    assert!(took < SOON, "{took:?}");
    let mut errors = all[0].errors();
    errors.sort_unstable_by_key(|error| error.0);
    let contexts: Vec<_> = errors.iter().map(|error| error.0).collect();
    assert_eq!(contexts, (0..20).collect::<Vec<_>>());
    // The fate of the messages sent is unknown; the rest was not sent.
    let is_lost = |&(_, errno, why): &(usize, i32, Why)| {
        errno == LOST && matches!(why, Why::Unknown | Why::Departed)
    };
    assert!(errors.iter().all(is_lost), "{errors:?}");
}

/// A live peer that is unreachable for a while receives everything in the end.
#[test]
fn a_running_peer_is_waited_for() {
    let fake = Fake::start(2);
    let mut all = all_at(&fake.doors);
    fake.silence(1);
    all[0].send(1, 1, pattern(8, 3));
    let pause = Duration::from_millis(600);
    let took = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(pause);
            fake.rejoin();
        });
        all[0].drain()
    });
    assert!(took > pause / 2, "{took:?}");
    assert_eq!(all[0].errors(), []);
    all.remove(0);
    let into = all[0].receive(2, 8);
    assert_eq!(wait(&mut all, 0).context, 2);
    assert_eq!(into.now(), pattern(8, 3));
}

/// A live peer without receives replies to each probe, so nothing is given up.
#[test]
fn a_running_peer_without_receives_is_waited_for() {
    let fake = Fake::start(1);
    let mut all = with_one_that_receives_nothing(&fake);
    all[0].send(4, 1, pattern(8, 0));
    let took = all[0].drain();
    assert!(took > SOON, "{took:?}");
    assert_eq!(all[0].errors(), []);
}

#[test]
fn a_silent_peer_has_not_ended() {
    let fake = Fake::start(2);
    let mut all = all_at(&fake.doors);
    fake.silence(1);
    all[0].send(1, 1, pattern(8, 0));
    let took = all[0].drain();
    assert!(took > SOON, "{took:?}");
    assert_eq!(all[0].errors(), []);
    // The message, one probe while closing, and the probes of the checks, one every two seconds.
    assert!(all[0].under_way() <= 4, "questions accumulate");
}

#[test]
fn a_door_that_is_killed_ends_it() {
    let mut fake = Fake::start(2);
    let mut all = all_at(&fake.doors);
    fake.silence(1);
    all[0].send(1, 1, pattern(8, 0));
    fake.settle();
    fake.stop();
    let took = all[0].drain();
    assert!(took < SOON, "{took:?}");
    assert_eq!(all[0].errors(), [(1, libc::ENETDOWN, Why::Unknown)]);
}

/// Each program has its share of the NIC's receives.
#[test]
fn sixteen_programs_share_a_nic() {
    let fake = Fake::start(1);
    let mut all = all_with(&vec![fake.doors[0].clone(); 16], LEAST_RECEIVES);
    for to in 0..16 {
        let into = all[to].receive(1, 8);
        let from = (to + 1) % 16;
        all[from].send(to as u64, 2, pattern(8, to));
        assert_eq!(wait(&mut all, to).context, 1);
        assert_eq!(wait(&mut all, from).context, 2);
        assert_eq!(into.now(), pattern(8, to));
    }
}

#[test]
fn an_endpoint_without_receives_is_refused_until_others_end() {
    let fake = Fake::start(1);
    let mut all = with_one_that_receives_nothing(&fake);
    let can_receive = |one: &mut One, most| one.driver.can_receive(&mut one.shared, most);
    assert!(can_receive(&mut all[3], ROOM));
    assert!(!can_receive(&mut all[4], SOON), "others hold all receives");
    all.remove(0);
    fake.settle();
    assert!(can_receive(&mut all[3], ROOM), "one has ended");
}

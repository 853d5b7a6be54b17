//! Waiters, and the thread of automatic progress, over NICs without a network.

use std::os::fd::AsFd;
use std::time::Instant;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::*;
use crate::attach_target::AttachTarget;
use crate::engine::shared::Entry;
use crate::engine::slots::RECEIVES;
use crate::engine::tests::program::{self, pattern};
use crate::fake::Fake;
use crate::memory::Pieces;
use crate::progress::Progress;

const TAG: u64 = 1;
const BYTES: usize = 8;
/// A generous limit for what should happen immediately.
const SOON: Duration = Duration::from_secs(20);

/// A domain with one endpoint, its queue, and an address vector of all endpoints.
struct One {
    domain: Arc<Domain>,
    object: Arc<WaitObject>,
}

const QUEUE: Awaited = Awaited::Queue(0);

fn two(fake: &Fake) -> [One; 2] {
    let mut addresses = Vec::new();
    let all = [0, 1].map(|at: usize| {
        let target = AttachTarget {
            door: fake.doors[at].clone(),
            job: 7,
            reach: false,
            receives: RECEIVES,
        };
        let domain = Arc::new(Domain::new().expect("there are descriptors"));
        let mut driver = Driver::attach(&target).expect("there is a door");
        addresses.push(driver.endpoint.address());
        let mut state = domain.lock().expect("no panic");
        state.shared = program::bind(&mut driver.endpoint);
        assert_eq!(state.insert(driver), Some(0));
        drop(state);
        let object = domain.wait_object().expect("there are descriptors");
        let object = Arc::new(object);
        One { domain, object }
    });
    for one in &all {
        let shared = &mut one.state().shared;
        program::introduce(std::iter::once(shared), &addresses);
    }
    all
}

impl One {
    fn state(&self) -> MutexGuard<'_, State> {
        self.domain.lock().expect("no panic")
    }

    fn call(&self, call: impl FnOnce(&mut Driver, &mut Shared)) {
        let mut state = self.state();
        let (driver, shared) = state.endpoint(0).expect("it is there");
        call(driver, shared);
        driver.issue(shared);
        state.called();
    }

    fn send(&self, to: u64, context: usize) {
        self.call(|driver, shared| {
            let message = (context, pattern(BYTES, context));
            program::send(&mut driver.endpoint, shared, to, TAG, message);
        });
    }

    fn receive(&self, context: usize) -> Pieces {
        let (posted, into) = program::posted(context, TAG, BYTES);
        self.call(|driver, shared| driver.endpoint.receive(shared, true, posted, false));
        into
    }

    /// Takes the completions so far, without making progress.
    fn taken(&self) -> Vec<Entry> {
        let mut state = self.state();
        let queue = state.shared.queues.get_mut(0).expect("it is there");
        queue.entries.drain(..).map(|(entry, _)| entry).collect()
    }

    /// Prepares to sleep as soon as there is nothing to do.
    fn prepare(&self) {
        let end = Instant::now() + SOON;
        while !self.state().prepare(QUEUE, &self.object) {
            assert!(Instant::now() < end, "there is always something");
            std::thread::yield_now();
        }
    }

    fn is_readable(&self) -> bool {
        let mut all = [PollFd::new(self.object.as_fd(), PollFlags::POLLIN)];
        poll(&mut all, PollTimeout::ZERO) == Ok(1)
    }

    /// Waits like a program that sleeps on the descriptor.
    fn wait(&self) -> Entry {
        let end = Instant::now() + SOON;
        loop {
            assert!(Instant::now() < end, "nothing completes");
            if let Some(entry) = self.taken().pop() {
                return entry;
            }
            if self.state().prepare(QUEUE, &self.object) {
                self.object.sleep(SOON);
            }
        }
    }
}

#[test]
fn a_descriptor_wakes_for_a_message() {
    let fake = Fake::start(2);
    let [one, two] = two(&fake);
    let into = two.receive(1);
    two.prepare();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| two.wait());
        one.send(1, 2);
        assert_eq!(waits.join().expect("no panic").context, 1);
    });
    assert_eq!(into.now(), pattern(BYTES, 2));
    assert_eq!(one.wait().context, 2);
}

#[test]
fn a_signal_wakes() {
    let fake = Fake::start(2);
    let [one, _two] = two(&fake);
    one.prepare();
    let mut state = one.state();
    let queue = state.shared.queues.get_mut(0).expect("it is there");
    queue.is_signalled = true;
    state.called();
    drop(state);
    assert!(one.is_readable());
    assert!(!one.state().prepare(QUEUE, &one.object), "it has news");
}

/// Another thread waits for the same queue on a separate wait object: it prepares to sleep, and
/// leaves.
#[test]
fn a_waiter_that_comes_or_leaves_lets_the_others_sleep() {
    let fake = Fake::start(2);
    let [one, two] = two(&fake);
    one.prepare();
    fake.settle();
    let other = One {
        domain: one.domain.clone(),
        object: Arc::new(one.domain.wait_object().expect("there are descriptors")),
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            other.prepare();
            assert!(!one.is_readable(), "nothing has happened");
            one.state().leave(QUEUE);
        });
    });
    assert!(!one.is_readable(), "nothing has happened");
    assert_eq!(one.state().waiters.len(), 1);
    // It is still woken for a message.
    one.receive(1);
    two.send(0, 2);
    fake.settle();
    assert!(one.is_readable());
    assert_eq!(one.wait().context, 1);
}

/// A completion that another waiter has already handled does not keep this one awake.
#[test]
fn a_waiter_sleeps_though_a_nic_has_woken_another_one() {
    let fake = Fake::start(2);
    let [one, two] = two(&fake);
    one.receive(1);
    one.prepare();
    two.send(0, 2);
    fake.settle();
    let other = one.domain.wait_object().expect("there are descriptors");
    let other = One {
        domain: one.domain.clone(),
        object: Arc::new(other),
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let end = Instant::now() + SOON;
            while !other.state().prepare(Awaited::Work, &other.object) {
                assert!(Instant::now() < end, "there is always work");
                fake.settle();
            }
            assert!(!other.is_readable(), "nothing is left to do");
        });
    });
    assert!(one.is_readable(), "it has a message");
}

/// A waiter that clears a shared wait object does not lose the wake of another one.
#[test]
fn waiters_that_share_an_object_are_woken() {
    let fake = Fake::start(2);
    let [one, two] = two(&fake);
    one.prepare();
    one.state().wake_all();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            one.prepare();
            one.state().leave(QUEUE);
        });
    });
    one.receive(1);
    two.send(0, 2);
    fake.settle();
    assert!(one.is_readable());
}

/// Threads that end without a further call leave no waiters behind, however many there are.
#[test]
fn waiters_of_threads_that_ended_are_removed() {
    let fake = Fake::start(2);
    let [one, _two] = two(&fake);
    for _ in 0..3 {
        std::thread::scope(|scope| scope.spawn(|| one.prepare()).join().expect("no panic"));
        assert_eq!(one.state().waiters.len(), 1);
    }
    let waiter = one.state().waiters[0].object.clone();
    waiter.clear();
    one.state().leave(Awaited::Work);
    assert!(one.state().waiters.is_empty());
    assert!(one.is_readable(), "another thread may sleep on it");
}

/// The NIC's process also holds an endpoint's descriptors, so closing them here would not end the
/// watch.
#[test]
fn a_full_domain_watches_no_endpoint_that_it_refuses() {
    let fake = Fake::start(2);
    let [one, two] = two(&fake);
    let driver = two.state().remove(0).expect("it is there");
    let mut state = one.state();
    let others = std::mem::replace(&mut state.endpoints, Slab::new(0));
    let watched = state.alarm.watched();
    let held = driver.nic().fd().try_clone_to_owned();
    assert!(state.insert(driver).is_none());
    assert_eq!(state.alarm.watched(), watched);
    drop((held, others));
}

/// A message to the program itself completes without its NIC.
#[test]
fn completions_by_another_thread_wake_the_waiter() {
    let fake = Fake::start(2);
    let [one, _two] = two(&fake);
    one.receive(1);
    one.prepare();
    one.send(0, 2);
    assert!(one.is_readable());
    let mut contexts: Vec<_> = one.taken().iter().map(|entry| entry.context).collect();
    contexts.sort_unstable();
    assert_eq!(contexts, [1, 2]);
}

#[test]
fn automatic_progress_needs_no_call() {
    let fake = Fake::start(2);
    let [one, two] = two(&fake);
    let into = two.receive(1);
    let progress = Progress::start(&two.domain).expect("there are threads");
    one.send(1, 2);
    let end = Instant::now() + SOON;
    let received = loop {
        assert!(Instant::now() < end, "nothing is received");
        match two.taken().pop() {
            Some(entry) => break entry,
            None => std::thread::yield_now(),
        }
    };
    assert_eq!(received.context, 1);
    assert_eq!(into.now(), pattern(BYTES, 2));
    let begin = Instant::now();
    drop(progress);
    assert!(begin.elapsed() < SOON);
    assert_eq!(one.wait().context, 2);
}

/// The thread wakes twice a second for the periodic checks, and no more often.
#[test]
fn automatic_progress_sleeps_while_idle() {
    let fake = Fake::start(2);
    let [one, _two] = two(&fake);
    let _progress = Progress::start(&one.domain).expect("there are threads");
    let is_asleep = || one.state().waiters.len() == 1;
    let end = Instant::now() + SOON;
    while !is_asleep() {
        assert!(Instant::now() < end, "it never sleeps");
        std::thread::yield_now();
    }
    fake.settle();
    let looks = || one.state().idle;
    let before = looks();
    std::thread::sleep(TICK);
    assert!(looks().saturating_sub(before) <= 4, "it polls");
}

//! Domains: endpoints and the state that they share, behind one lock, and callers that sleep until
//! there is progress.
//!
//! # Sleep
//!
//! A caller that finds nothing to do becomes a *waiter* ([`State::prepare`]): it requests wakes
//! from all NICs, and sleeps on a wait object without the lock. As long as there are waiters, NICs
//! wake them for every completion, even one that another caller handles. Other threads may complete
//! operations without a NIC; their calls wake the waiters that then have something to read. A
//! waiter is identified by its thread and what it awaits. Only that thread ends its wait
//! ([`State::leave`]), so the others sleep on; the last one cancels the requests. All waiters also
//! wake twice a second, because silent peers are detected only when callers make progress.
//!
//! Threads may share a wait object. A thread that prepares to sleep clears it, possibly after it
//! was set for another thread. No wake is lost: the other thread is still a waiter, and the reason
//! for its wake has either been handled by then or causes another wake.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::thread::{ThreadId, current, yield_now};
use std::time::Duration;

use crate::driver::Driver;
use crate::engine::clock::TICK;
use crate::engine::shared::{Object, Shared};
use crate::engine::slots::Slab;
use crate::wait::{Alarm, WaitObject};

/// Maximum number of endpoints of a domain.
pub const MOST_ENDPOINTS: usize = 64;
const MOST_WAITERS: usize = 4096;
/// Maximum number of rounds of progress that a caller makes before it sleeps.
const MOST_TURNS: usize = 8;

/// A domain: the state that its objects share, behind one lock.
#[derive(Debug)]
pub struct Domain {
    state: Mutex<State>,
    alarm: Arc<Alarm>,
}

/// What a waiter waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// A completion in the queue of this slot.
    Queue(usize),
    /// A change of the counter of this slot.
    Counter(usize),
    /// Any work, for the thread of automatic progress.
    Work,
}

thread_local! {
    /// Dropped when its thread ends.
    static LIFE: Arc<()> = Arc::default();
}

#[derive(Debug)]
struct Waiter {
    thread: ThreadId,
    /// Dangles once the thread has ended and can no longer end its wait.
    life: Weak<()>,
    awaits: Awaited,
    object: Arc<WaitObject>,
}

/// The state of a domain, behind its lock.
#[derive(Debug)]
pub struct State {
    pub shared: Shared,
    endpoints: Slab<Driver>,
    /// Consecutive calls without progress.
    pub idle: u32,
    waiters: Vec<Waiter>,
    alarm: Arc<Alarm>,
}

impl Domain {
    /// A domain without endpoints.
    ///
    /// # Errors
    /// Fails if no descriptor is free.
    pub fn new() -> io::Result<Self> {
        let alarm = Arc::new(Alarm::new()?);
        let state = State {
            shared: Shared::default(),
            endpoints: Slab::new(MOST_ENDPOINTS),
            idle: 0,
            waiters: Vec::new(),
            alarm: alarm.clone(),
        };
        let state = Mutex::new(state);
        Ok(Self { state, alarm })
    }

    /// Takes the lock; `None` if it is poisoned by a panic.
    pub fn lock(&self) -> Option<MutexGuard<'_, State>> {
        self.state.lock().ok()
    }

    /// Creates a wait object.
    ///
    /// # Errors
    /// Fails if no descriptor is free.
    pub fn wait_object(&self) -> io::Result<WaitObject> {
        WaitObject::new(&self.alarm)
    }

    /// Sleeps without the lock until a NIC has work for the program, or for `most`. Only for short
    /// naps: another caller may cancel the NICs' wakes.
    pub fn nap(&self, mut state: MutexGuard<'_, State>, most: Duration) {
        let is_quiet = state.arm();
        drop(state);
        if is_quiet {
            self.alarm.sleep(most);
        }
        let Some(mut state) = self.lock() else {
            return;
        };
        if state.waiters.is_empty() {
            state.disarm();
        } else {
            // The alarm rings until a waiter has looked: let that waiter run.
            drop(state);
            yield_now();
        }
    }
}

impl State {
    /// Adds an endpoint and returns its slot, or `None` if all are in use.
    pub fn insert(&mut self, driver: Driver) -> Option<usize> {
        if self.endpoints.room() == 0 {
            return None;
        }
        self.alarm.watch(driver.nic()).ok()?;
        // Waiters have not requested wakes from this NIC.
        self.wake_all();
        self.endpoints.insert(driver)
    }

    pub fn remove(&mut self, slot: usize) -> Option<Driver> {
        self.wake_all();
        let driver = self.endpoints.remove(slot)?;
        self.alarm.forget(driver.nic());
        Some(driver)
    }

    /// Whether endpoints or registered memory are bound to an object.
    pub fn is_bound(&self, object: Object) -> bool {
        let mut endpoints = self.endpoints.iter();
        endpoints.any(|driver| driver.endpoint.binds().has(object)) || self.shared.counts_by(object)
    }

    /// The endpoint of a slot, and the shared state.
    pub fn endpoint(&mut self, slot: usize) -> Option<(&mut Driver, &mut Shared)> {
        Some((self.endpoints.get_mut(slot)?, &mut self.shared))
    }

    /// All endpoints, and the shared state, for calls that wait for NICs: such calls cancel the
    /// waiters' requests, so waiters are woken to look again.
    pub fn all(&mut self) -> (impl Iterator<Item = &mut Driver>, &mut Shared) {
        self.wake_all();
        (self.endpoints.iter_mut(), &mut self.shared)
    }

    /// Makes progress on everything in flight. Returns whether anything moved.
    pub fn progress(&mut self) -> bool {
        let mut moved = false;
        for driver in self.endpoints.iter_mut() {
            moved |= driver.progress(&mut self.shared);
        }
        self.idle = if moved {
            0
        } else {
            self.idle.saturating_add(1)
        };
        if !self.waiters.is_empty() {
            self.notify();
        }
        moved
    }

    /// The virtual time, if the endpoints are in a virtual lab.
    pub fn virtual_time(&self) -> Option<Duration> {
        self.endpoints.iter().next()?.nic().virtual_time()
    }

    /// In a virtual lab, waits until a NIC of the domain has a completion, for `most` at most.
    pub fn pause(&mut self, most: Duration) {
        if let Some(driver) = self.endpoints.iter_mut().next() {
            driver.pause(most);
        }
    }

    /// Makes progress until nothing moves, or `MOST_TURNS` rounds are over. Returns whether there
    /// may be more.
    fn progress_all(&mut self) -> bool {
        (0..MOST_TURNS).all(|_| self.progress())
    }

    /// Must run after every call that may have completed something or left work, which the waiters
    /// would not notice otherwise.
    pub fn called(&mut self) {
        if !self.waiters.is_empty() && self.progress_all() {
            self.wake_all();
        }
    }

    /// Prepares to sleep on a wait object. Returns whether there is nothing to read and nothing to
    /// do.
    pub fn prepare(&mut self, awaits: Awaited, object: &Arc<WaitObject>) -> bool {
        self.leave(awaits);
        let is_full = self.waiters.len() >= MOST_WAITERS;
        if self.progress_all() || self.has_news(awaits) || is_full {
            return false;
        }
        object.clear();
        if !self.waiters.is_empty() {
            // Cancel first: a NIC that has already woken other waiters would wake this one
            // immediately.
            self.disarm();
        }
        if !self.arm() {
            self.wake_all();
            return false;
        }
        let object = object.clone();
        self.waiters.push(Waiter {
            thread: current().id(),
            life: LIFE.try_with(Arc::downgrade).unwrap_or_default(),
            awaits,
            object,
        });
        self.alarm.ring_after(TICK);
        true
    }

    /// Ends the wait of this thread for `awaits`, if any, and the waits of threads that have ended.
    pub fn leave(&mut self, awaits: Awaited) {
        if self.waiters.is_empty() {
            return;
        }
        let thread = current().id();
        self.end_some(|waiter| {
            let has_ended = waiter.life.strong_count() == 0;
            if has_ended {
                // Another thread may sleep on the same descriptor.
                waiter.object.wake();
            }
            has_ended || (waiter.thread, waiter.awaits) == (thread, awaits)
        });
    }

    /// Ends all threads' waits for `awaits`, and wakes these threads.
    pub fn end_waits(&mut self, awaits: Awaited) {
        self.end_some(|waiter| {
            let is_over = waiter.awaits == awaits;
            if is_over {
                waiter.object.wake();
            }
            is_over
        });
    }

    fn end_some(&mut self, is_over: impl Fn(&Waiter) -> bool) {
        let before = self.waiters.len();
        self.waiters.retain(|waiter| !is_over(waiter));
        if self.waiters.len() == before {
            return;
        }
        if self.waiters.is_empty() {
            self.alarm.ring_no_more();
            self.disarm();
        }
        // The waiters may have slept for a long time.
        self.endpoints.iter_mut().for_each(Driver::read_clock);
    }

    /// Wakes all waiters, so that they look again, and cancels the NICs' wakes.
    fn wake_all(&mut self) {
        if self.waiters.is_empty() {
            return;
        }
        self.waiters.iter().for_each(|waiter| waiter.object.wake());
        self.disarm();
    }

    /// Takes the signal of a queue, if it has one.
    pub fn take_signal(&mut self, awaits: Awaited) -> bool {
        let Awaited::Queue(slot) = awaits else {
            return false;
        };
        let queue = self.shared.queues.get_mut(slot);
        queue.is_some_and(|queue| std::mem::take(&mut queue.is_signalled))
    }

    /// Wakes the waiters that have something to read.
    fn notify(&self) {
        let with_news = |waiter: &&Waiter| self.has_news(waiter.awaits);
        self.waiters
            .iter()
            .filter(with_news)
            .for_each(|waiter| waiter.object.wake());
    }

    fn has_news(&self, awaits: Awaited) -> bool {
        let shared = &self.shared;
        match awaits {
            Awaited::Queue(slot) => shared.queues.get(slot).is_none_or(|queue| queue.has_news()),
            Awaited::Counter(slot) => {
                let counter = shared.counters.get(slot);
                counter.is_none_or(|counter| counter.has_news())
            }
            Awaited::Work => false,
        }
    }

    /// Requests wakes from all NICs. Returns whether none of them has anything yet.
    fn arm(&mut self) -> bool {
        let mut is_quiet = true;
        for driver in self.endpoints.iter_mut() {
            if driver.endpoint.is_gone() {
                // The descriptor of a NIC that has ended stays readable.
                self.alarm.forget(driver.nic());
            } else {
                is_quiet &= driver.arm();
            }
        }
        if !is_quiet && self.waiters.is_empty() {
            self.disarm();
        }
        is_quiet
    }

    fn disarm(&mut self) {
        self.endpoints.iter_mut().for_each(Driver::disarm);
    }
}

#[cfg(test)]
mod tests;

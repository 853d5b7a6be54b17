//! Partitions in parallel, one thread each.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use phitwire::sim::direct::{Executor, Serial, Worker};

/// Number of spins before a waiting thread yields its core.
const SPINS: u32 = 2_000;

/// Runs every partition in its own thread.
///
/// After each window a partition posts its mail, waits until all others have posted theirs, then
/// collects the mail for it. One barrier per window suffices, because no partition can be two
/// windows ahead.
#[derive(Clone, Copy, Debug, Default)]
pub struct Threads;

impl Executor for Threads {
    fn run(&mut self, workers: Vec<Box<dyn Worker + '_>>, windows: u64) {
        if workers.len() < 2 {
            return Serial.run(workers, windows);
        }
        let barrier = SpinBarrier::new(workers.len());
        let mut workers = workers.into_iter();
        let own = workers.next();
        std::thread::scope(|scope| {
            for worker in workers {
                let barrier = &barrier;
                scope.spawn(move || work(worker, windows, barrier));
            }
            if let Some(worker) = own {
                work(worker, windows, &barrier);
            }
        });
    }
}

fn work(mut worker: Box<dyn Worker + '_>, windows: u64, barrier: &SpinBarrier) {
    let _alarm = BreakOnPanic(barrier);
    for window in 0..windows {
        worker.run_window(window);
        barrier.wait();
        worker.take_mail(window);
    }
}

/// A spinning barrier, since a window takes less time than a wake-up.
struct SpinBarrier {
    members: usize,
    arrived: AtomicUsize,
    round: AtomicUsize,
    /// Whether a member has panicked and will never arrive.
    broken: AtomicBool,
}

/// Breaks the barrier when its owner panics.
struct BreakOnPanic<'a>(&'a SpinBarrier);

impl Drop for BreakOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.broken.store(true, Ordering::Release);
        }
    }
}

impl SpinBarrier {
    const fn new(members: usize) -> Self {
        Self {
            members,
            arrived: AtomicUsize::new(0),
            round: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
        }
    }

    fn wait(&self) {
        let round = self.round.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.members {
            self.arrived.store(0, Ordering::Relaxed);
            self.round.store(round.wrapping_add(1), Ordering::Release);
            return;
        }
        let mut spins = 0;
        while self.round.load(Ordering::Acquire) == round {
            assert!(
                !self.broken.load(Ordering::Acquire),
                "another thread of the simulation has panicked"
            );
            spins += 1;
            if spins < SPINS {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
    }
}

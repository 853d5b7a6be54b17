//! Partitions side by side, one thread each.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use phitwire::sim::direct::{Executor, Family, Mail, Partition, Serial};

/// Turns of waiting for the others before the processor is offered to somebody else.
const SPINS: u32 = 2_000;

/// Runs every partition in a thread of its own.
///
/// After each window a partition lays its mail out and waits until all have done so; then it takes
/// what the others have for it. There are two sets of pigeonholes that are used in turn, so that one meeting
/// per window is enough: who is in the next window writes into the other set, and nobody is
/// two windows ahead.
#[derive(Clone, Copy, Debug, Default)]
pub struct Threads;

impl Executor for Threads {
    fn run<F: Family>(&mut self, partitions: &mut [Partition<F>], windows: u64) {
        let count = partitions.len();
        if count < 2 {
            return Serial.run(partitions, windows);
        }
        let holes: Vec<[Mutex<Mail<F>>; 2]> =
            (0..count * count).map(|_| Default::default()).collect();
        let meeting = Meeting::new(count);
        std::thread::scope(|scope| {
            let mut own = None;
            for (number, partition) in partitions.iter_mut().enumerate() {
                let (holes, meeting) = (&holes, &meeting);
                let work = move || work(number, count, partition, windows, holes, meeting);
                if number == 0 {
                    own = Some(work);
                } else {
                    scope.spawn(work);
                }
            }
            if let Some(mut work) = own {
                work();
            }
        });
    }
}

fn work<F: Family>(
    number: usize,
    count: usize,
    partition: &mut Partition<F>,
    windows: u64,
    holes: &[[Mutex<Mail<F>>; 2]],
    meeting: &Meeting,
) {
    let _alarm = Alarm(meeting);
    let others = || (0..count).filter(|&other| other != number);
    let hole = |from: usize, to: usize, window: u64| {
        holes[from * count + to][(window % 2) as usize]
            .lock()
            .expect("nobody panics with mail in his hands")
    };
    for window in 0..windows {
        partition.run_window();
        for to in others() {
            std::mem::swap(partition.outbox(to), &mut *hole(number, to, window));
        }
        meeting.wait();
        for from in others() {
            partition.receive(&mut hole(from, number, window));
        }
    }
}

/// A barrier that waits without going to sleep, since windows take less time than waking up.
struct Meeting {
    members: usize,
    arrived: AtomicUsize,
    round: AtomicUsize,
    /// A member has panicked and will never arrive.
    broken: AtomicBool,
}

/// Tells the others when its owner panics.
struct Alarm<'a>(&'a Meeting);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.broken.store(true, Ordering::Release);
        }
    }
}

impl Meeting {
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

#[cfg(test)]
mod tests {
    use super::*;
    use phitwire::machine::blackwidow::topology::BlackwidowSpec;
    use phitwire::sim::direct::{Config, Simulation, Warmup};

    #[test]
    fn threads_change_nothing() {
        let spec = BlackwidowSpec {
            processors: 96,
            ..BlackwidowSpec::default()
        };
        let topology = spec.generate().expect("a network");
        let config = Config {
            warmup: Warmup::Cycles(500),
            measure_cycles: 1_000,
            ..Config::default()
        };
        let mut simulation = Simulation::new(&topology, &config, 1).expect("a network");
        let alone = simulation.run(&mut Serial, |_| {});
        assert!(alone.packets > 1_000 && alone.violations.is_empty());
        for threads in [2, 3] {
            let mut simulation = Simulation::new(&topology, &config, threads).expect("a network");
            assert_eq!(simulation.run(&mut Threads, |_| {}), alone);
        }
    }
}

//! Runs the partitions of a network, in any order or in parallel.

use std::sync::{Mutex, MutexGuard};

use super::exchange::Mail;
use super::model::CycleModel;
use super::partition::Partition;

/// A running partition. Its executor knows neither its machine nor its mail.
pub trait Worker: Send {
    /// Runs the windows up to mail exchange number `window`, and publishes mail for the others.
    fn run_window(&mut self, window: u64);

    /// Takes the mail that the others published. All must have run `window`, and none may be two
    /// windows ahead.
    fn take_mail(&mut self, window: u64);
}

/// Runs all partitions in step.
pub trait Executor {
    /// Runs `windows` windows of every worker, from number 0: each runs its window, and takes its
    /// mail once all have.
    fn run(&mut self, workers: Vec<Box<dyn Worker + '_>>, windows: u64);
}

/// One partition after the other, without threads.
#[derive(Clone, Copy, Debug, Default)]
pub struct Serial;

impl Executor for Serial {
    fn run(&mut self, mut workers: Vec<Box<dyn Worker + '_>>, windows: u64) {
        for window in 0..windows {
            workers
                .iter_mut()
                .for_each(|worker| worker.run_window(window));
            workers
                .iter_mut()
                .for_each(|worker| worker.take_mail(window));
        }
    }
}

/// Mail from one partition to another. Two boxes alternate, so that one barrier per window is
/// enough: a partition already in the next window writes into the other box.
type Pigeonhole<M> = [Mutex<Mail<<M as CycleModel>::Direct>>; 2];

struct Member<'a, M: CycleModel> {
    number: usize,
    partition: &'a mut Partition<M>,
    /// For all pairs of partitions, by sender and receiver.
    holes: &'a [Pigeonhole<M>],
    partitions: usize,
}

impl<M: CycleModel> Member<'_, M> {
    fn hole(&self, from: usize, to: usize, window: u64) -> MutexGuard<'_, Mail<M::Direct>> {
        self.holes[from * self.partitions + to][(window % 2) as usize]
            .lock()
            .expect("no thread panics while holding the lock")
    }

    fn others(&self) -> impl Iterator<Item = usize> + use<M> {
        let own = self.number;
        (0..self.partitions).filter(move |&other| other != own)
    }
}

impl<M: CycleModel> Worker for Member<'_, M> {
    fn run_window(&mut self, window: u64) {
        self.partition.run_window();
        for to in self.others() {
            let mut mail = core::mem::take(self.partition.outbox(to));
            core::mem::swap(&mut mail, &mut *self.hole(self.number, to, window));
            *self.partition.outbox(to) = mail;
        }
    }

    fn take_mail(&mut self, window: u64) {
        for from in self.others() {
            let mut mail = core::mem::take(&mut *self.hole(from, self.number, window));
            self.partition.receive(&mut mail);
            *self.hole(from, self.number, window) = mail;
        }
    }
}

/// Runs `windows` windows of all partitions, exchanging mail between them.
pub(crate) fn run_windows<M: CycleModel>(
    executor: &mut dyn Executor,
    partitions: &mut [Partition<M>],
    windows: u64,
) {
    let count = partitions.len();
    let holes: Vec<Pigeonhole<M>> = (0..count * count).map(|_| Default::default()).collect();
    let member = |(number, partition)| -> Box<dyn Worker + '_> {
        Box::new(Member {
            number,
            partition,
            holes: &holes,
            partitions: count,
        })
    };
    let workers = partitions.iter_mut().enumerate().map(member).collect();
    executor.run(workers, windows);
}

//! Runs the parts of a network, in any order or in parallel.

use super::mailboxes::Mailboxes;
use super::part::LocalPart;

/// A running part, for executors that know neither the machine nor the form of the mail.
pub trait Worker: Send {
    /// Runs the windows up to mail exchange number `window`, and publishes mail for the others.
    fn run_window(&mut self, window: u64);

    /// Takes the mail that the others published. All must have run `window`, and none may be two
    /// windows ahead.
    fn take_mail(&mut self, window: u64);
}

/// Runs all parts in step.
pub trait Executor {
    /// Runs `windows` windows of every worker, from number 0: each runs its window, and takes its
    /// mail once all have.
    fn run(&mut self, workers: Vec<Box<dyn Worker + '_>>, windows: u64);
}

/// Runs one part after the other, without threads.
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

struct Member<'a, P: LocalPart> {
    number: usize,
    part: &'a mut P,
    mailboxes: &'a Mailboxes<P::Mail>,
}

impl<P: LocalPart> Worker for Member<'_, P> {
    fn run_window(&mut self, window: u64) {
        self.part.run_window();
        for to in self.mailboxes.others(self.number) {
            let mut mail = core::mem::take(self.part.outbox(to));
            core::mem::swap(&mut mail, &mut *self.mailboxes.at(self.number, to, window));
            *self.part.outbox(to) = mail;
        }
    }

    fn take_mail(&mut self, window: u64) {
        for from in self.mailboxes.others(self.number) {
            let mut mail = core::mem::take(&mut *self.mailboxes.at(from, self.number, window));
            self.part.receive(&mut mail);
            *self.mailboxes.at(from, self.number, window) = mail;
        }
    }
}

/// Runs all parts up to mail exchange number `windows` from now.
pub(crate) fn run_windows<P: LocalPart>(
    executor: &mut dyn Executor,
    parts: &mut [P],
    windows: u64,
) {
    let mailboxes = Mailboxes::new(parts.len());
    let member = |(number, part)| -> Box<dyn Worker + '_> {
        Box::new(Member {
            number,
            part,
            mailboxes: &mailboxes,
        })
    };
    let workers = parts.iter_mut().enumerate().map(member).collect();
    executor.run(workers, windows);
}

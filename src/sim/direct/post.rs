//! Parts that share no memory: they exchange [mail](super::mail) as bytes.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::executor::{Executor, Worker};
use super::mail::MailError;
use super::part::{Command, LocalPart, Part};
use super::parts::{Assembly, Parts};
use super::summary::{Section, Summary};

/// Parts that exchange bytes.
pub struct Post {
    parts: Vec<Box<dyn Part>>,
    /// Why the parts no longer run.
    failure: Option<MailError>,
}

/// Makes a [`Post`].
#[derive(Clone, Copy, Debug, Default)]
pub struct ByPost;

impl Assembly for ByPost {
    fn assemble<P: LocalPart>(&self, parts: Vec<P>) -> Box<dyn Parts> {
        let parts = parts
            .into_iter()
            .map(|part| Box::new(part) as Box<dyn Part>);
        Box::new(Post::new(parts.collect()))
    }
}

impl Post {
    /// All parts of a network, by number.
    pub fn new(parts: Vec<Box<dyn Part>>) -> Self {
        Self {
            parts,
            failure: None,
        }
    }
}

impl Parts for Post {
    fn run(&mut self, executor: &mut dyn Executor, exchanges: u64) -> Result<(), MailError> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let count = self.parts.len();
        let holes: Vec<Pigeonhole> = (0..count * count).map(|_| Pigeonhole::default()).collect();
        let failure = Mutex::new(None);
        let mut workers: Vec<Box<dyn Worker + '_>> = Vec::new();
        for (number, part) in self.parts.iter_mut().enumerate() {
            workers.push(Box::new(Member {
                number,
                part: &mut **part,
                letter: Vec::new(),
                holes: &holes,
                parts: count,
                failure: &failure,
            }));
        }
        executor.run(workers, exchanges);
        self.failure = failure.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.failure.map_or(Ok(()), Err)
    }

    fn command(&mut self, command: &Command) {
        self.parts.iter_mut().for_each(|part| part.command(command));
    }

    fn summary(&self, section: Section) -> Summary {
        Summary::of(self.parts.iter().map(|part| part.summary(section)))
    }
}

/// Mail from one part to another. Two boxes alternate, as for parts [in memory](super::parts::Local).
type Pigeonhole = [Mutex<Vec<u8>>; 2];

struct Member<'a> {
    number: usize,
    part: &'a mut dyn Part,
    /// A buffer.
    letter: Vec<u8>,
    /// For all pairs of parts, by sender and receiver.
    holes: &'a [Pigeonhole],
    parts: usize,
    /// The first mail that was not accepted. No part runs on: it would not do what was asked for.
    failure: &'a Mutex<Option<MailError>>,
}

impl<'a> Member<'a> {
    fn hole(&self, from: usize, to: usize, window: u64) -> MutexGuard<'a, Vec<u8>> {
        locked(&self.holes[from * self.parts + to][(window % 2) as usize])
    }

    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let own = self.number;
        (0..self.parts).filter(move |&other| other != own)
    }
}

impl Worker for Member<'_> {
    fn run_window(&mut self, window: u64) {
        if locked(self.failure).is_some() {
            return;
        }
        self.part.run_window();
        for to in self.others() {
            self.part.give(to, &mut self.letter);
            let mut hole = self.hole(self.number, to, window);
            core::mem::swap(&mut self.letter, &mut hole);
        }
    }

    fn take_mail(&mut self, window: u64) {
        if locked(self.failure).is_some() {
            return;
        }
        for from in self.others() {
            let mail = self.hole(from, self.number, window);
            if let Err(error) = self.part.take(from, &mail) {
                locked(self.failure).get_or_insert(error);
            }
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! Parts that share no memory: they exchange [mail](super::mail) as bytes.

use std::sync::OnceLock;

use super::executor::{Executor, Worker};
use super::mail::MailError;
use super::mailboxes::Mailboxes;
use super::part::{Command, LocalPart, Part};
use super::parts::{Assembly, Parts};
use super::summary::{Section, Summary};

pub struct ByteParts {
    parts: Vec<Box<dyn Part>>,
    /// Why the parts have stopped.
    failure: Option<MailError>,
}

/// Makes a [`ByteParts`].
#[derive(Clone, Copy, Debug, Default)]
pub struct ExchangingBytes;

impl Assembly for ExchangingBytes {
    fn assemble<P: LocalPart>(&self, parts: Vec<P>) -> Box<dyn Parts> {
        let parts = parts
            .into_iter()
            .map(|part| Box::new(part) as Box<dyn Part>);
        Box::new(ByteParts::new(parts.collect()))
    }
}

impl ByteParts {
    /// All parts of a network, by number.
    pub fn new(parts: Vec<Box<dyn Part>>) -> Self {
        Self {
            parts,
            failure: None,
        }
    }
}

impl Parts for ByteParts {
    fn run(&mut self, executor: &mut dyn Executor, exchanges: u64) -> Result<(), MailError> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let mailboxes = Mailboxes::new(self.parts.len());
        let failure = OnceLock::new();
        let mut workers: Vec<Box<dyn Worker + '_>> = Vec::new();
        for (number, part) in self.parts.iter_mut().enumerate() {
            workers.push(Box::new(Member {
                number,
                part: &mut **part,
                buffer: Vec::new(),
                mailboxes: &mailboxes,
                failure: &failure,
            }));
        }
        executor.run(workers, exchanges);
        self.failure = failure.into_inner();
        self.failure.map_or(Ok(()), Err)
    }

    fn command(&mut self, command: &Command) {
        self.parts.iter_mut().for_each(|part| part.command(command));
    }

    fn summary(&self, section: Section) -> Summary {
        Summary::of(self.parts.iter().map(|part| part.summary(section)))
    }
}

struct Member<'a> {
    number: usize,
    part: &'a mut dyn Part,
    /// Buffer for the part's next mail; swapped with the one in the mailbox.
    buffer: Vec<u8>,
    mailboxes: &'a Mailboxes<Vec<u8>>,
    /// The error of the first rejected mail. All parts stop then, because the results would be
    /// wrong.
    failure: &'a OnceLock<MailError>,
}

impl Worker for Member<'_> {
    fn run_window(&mut self, window: u64) {
        if self.failure.get().is_some() {
            return;
        }
        self.part.run_window();
        for to in self.mailboxes.others(self.number) {
            self.part.give(to, &mut self.buffer);
            let mut mailbox = self.mailboxes.at(self.number, to, window);
            core::mem::swap(&mut self.buffer, &mut mailbox);
        }
    }

    fn take_mail(&mut self, window: u64) {
        if self.failure.get().is_some() {
            return;
        }
        for from in self.mailboxes.others(self.number) {
            let mail = self.mailboxes.at(from, self.number, window);
            if let Err(error) = self.part.take(from, &mail) {
                self.failure.get_or_init(|| error);
            }
        }
    }
}

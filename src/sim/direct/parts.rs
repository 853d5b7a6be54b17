//! All parts of a network. Only this module depends on where they run.

use core::any::Any;

use super::executor::{Executor, run_windows};
use super::mail::MailError;
use super::part::{Command, LocalPart};
use super::summary::{Section, Summary};

/// All parts of a network, which run in step.
pub trait Parts: Any {
    /// Runs all parts up to mail exchange number `exchanges` from now.
    ///
    /// # Errors
    /// If a mail between them was damaged; the parts then stop.
    fn run(&mut self, executor: &mut dyn Executor, exchanges: u64) -> Result<(), MailError>;

    fn command(&mut self, command: &Command);

    /// A summary of the network in which only this section is filled.
    fn summary(&self, section: Section) -> Summary;
}

/// Places the parts of a network in this process or elsewhere.
pub trait Assembly {
    /// Places `parts`, which are all parts of the network, by number.
    fn assemble<P: LocalPart>(&self, parts: Vec<P>) -> Box<dyn Parts>;
}

/// Makes [`Local`] parts.
#[derive(Clone, Copy, Debug, Default)]
pub struct InMemory;

impl Assembly for InMemory {
    fn assemble<P: LocalPart>(&self, parts: Vec<P>) -> Box<dyn Parts> {
        Box::new(Local(parts))
    }
}

/// Parts in this process, which pass mail in memory.
#[derive(Debug)]
pub struct Local<P>(pub(super) Vec<P>);

impl<P: LocalPart> Parts for Local<P> {
    fn run(&mut self, executor: &mut dyn Executor, exchanges: u64) -> Result<(), MailError> {
        run_windows(executor, &mut self.0, exchanges);
        Ok(())
    }

    fn command(&mut self, command: &Command) {
        self.0.iter_mut().for_each(|part| part.command(command));
    }

    fn summary(&self, section: Section) -> Summary {
        Summary::of(self.0.iter().map(|part| part.summary(section)))
    }
}

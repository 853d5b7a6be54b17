//! The interface of a part of a network, for parts in this process or elsewhere.
//!
//! A part runs windows independently. Between windows it exchanges mail with the other parts,
//! carries out [`Command`]s, and reports a [`Summary`]: plain data, which is
//! [merged](Summary::merge) into the summary of the network. Commands change a part and return
//! nothing; summaries change nothing.

use core::ops::Range;

use super::mail::MailError;
use super::message_trace::MessageTrace;
use super::summary::{EndName, Section, Summary};
use crate::sim::tap::Tap;

/// A change to the course of a part. All parts of a network get all commands, between the same
/// windows.
#[derive(Clone)]
pub enum Command {
    /// Sources held back until now start in this cycle.
    Begin(u64),
    /// Only messages born in these cycles, which begin now, are measured.
    Measure(Range<u64>),
    /// [Births](Section::Births) are counted up to the current cycle.
    CountBirths,
    /// Routers and terminals record the packets of a flow.
    Trace(MessageTrace),
    /// Recording ends; the records are in [`Section::Records`] from now on.
    EndTrace,
    /// Sources create no more packets.
    Stop,
    /// A link goes down or is restored.
    SetLink {
        /// Its number in the topology.
        link: u32,
        ends: [EndName; 2],
        /// Whether it accepts packets from now on.
        up: bool,
    },
    /// Frames that link ends send from now on are passed to an observer in this process. Direct
    /// links send no frames.
    Tap(Tap),
}

/// Chips and terminals with the links between them.
///
/// A window is as long as the shortest link, so nothing sent in a window arrives in it, and parts
/// of one network can run a window concurrently.
pub trait Part: Send {
    /// Runs the windows until mail must be exchanged.
    fn run_window(&mut self);

    /// Overwrites `mail` with the mail for part number `to`, once after each
    /// [`run_window`](Self::run_window). [Parts that share memory](LocalPart) need not write bytes.
    fn give(&mut self, to: usize, mail: &mut Vec<u8>);

    /// Takes the mail of part number `from`, after all parts have run as far as this one.
    ///
    /// # Errors
    /// If the mail is not the one that the part wrote; nothing of it is then taken.
    fn take(&mut self, from: usize, mail: &[u8]) -> Result<(), MailError>;

    fn command(&mut self, command: &Command);

    /// A summary in which only this section is filled.
    fn summary(&self, section: Section) -> Summary;
}

/// A part whose mail can also be handed over in memory. Between windows each part's mail must reach
/// the others: call [`run_window`](Part::run_window) on all, then hand every
/// [`outbox`](Self::outbox) to [`receive`](Self::receive).
pub trait LocalPart: Part + 'static {
    /// The data that one part sends to another between two exchanges.
    type Mail: Default + Send;

    /// Mail for part number `to`, after a window.
    fn outbox(&mut self, to: usize) -> &mut Self::Mail;

    /// Takes the mail of another part for the windows that have just run, and empties it.
    fn receive(&mut self, mail: &mut Self::Mail);
}

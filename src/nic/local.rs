//! What a network interface does for programs on its own node, whatever the machine: the other side
//! of the [door](phitwire_framing::door).
//!
//! A program is a [`Client`] with a [`Window`] of memory that it shares with the network interface.
//! Whatever it asks for is checked here, not by who passes it on: a client reaches its own window
//! and what programs of its own job have registered, and nothing else.

use phitwire_framing::door::hello::{ANY_MEMBER, Entry, Operations};
use phitwire_framing::door::{Command, Completion, Status};

use super::memory::Window;
use crate::rng::Rng;
use crate::time::Time;

/// Names a client of one network interface: 1 to 64. The number serves again when nothing of its
/// last bearer is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Client(pub u8);

/// What became of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Not taken now: offer it again when something else has ended.
    Later,
    /// Its completion will come.
    UnderWay,
    /// It has ended: how, and the word of its completion.
    Ended(Status, u64),
}

impl Taken {
    /// It was refused.
    pub const fn refused(status: Status) -> Self {
        Self::Ended(status, 0)
    }
}

/// The programs of one network interface.
pub trait LocalPort {
    /// The number of the network interface, if it has one.
    fn processor(&self) -> Option<u16>;

    /// Bytes of the longest put.
    fn longest_put(&self) -> u16;

    /// What it can do beside puts and gets of so many bytes.
    fn operations(&self) -> Operations;

    /// Lets a program of `job` in, and answers which client and which of the job's members here it
    /// is.
    ///
    /// # Errors
    /// Every [`Entry`] but [`Entry::Welcome`].
    fn let_in(
        &mut self,
        job: u64,
        member: u8,
        window: Box<dyn Window>,
    ) -> Result<(Client, u8), Entry>;

    /// The program has gone: what it registered and received is taken away, what it asked for runs
    /// out, and its window is kept until then.
    fn let_go(&mut self, now: Time, client: Client);

    /// Takes a command of a client.
    fn command(&mut self, now: Time, client: Client, command: &Command<'_>) -> Taken;

    /// What was written to programs' own memory is there when this returns. To be called before
    /// anybody is told so: before frames are sent, and before [`next_completion`](Self::next_completion).
    fn settle(&mut self) {}

    /// The next completion for a client that is here.
    fn next_completion(&mut self) -> Option<(Client, Completion)>;
}

/// The key that opens what programs of `job` have registered ([`ANY_MEMBER`]), or that messages to
/// one of its members bear: the same at every network interface, and never zero.
///
/// Keys have 16 bits, so that two jobs in 65,536 have the same; at one network interface they are
/// told apart ([`Entry::KeyTaken`]), between two of them they are not.
pub fn key_of(job: u64, member: u8) -> u16 {
    let word = Rng::new(job, member.into()).next_u64();
    ((word >> 48) as u16).max(1)
}

/// The members that a job may have at one network interface.
pub const MEMBERS: u8 = ANY_MEMBER;

/// Which member of its job a program will be that wants to be `member`.
///
/// # Errors
/// [`Entry::MemberTaken`].
pub fn member_of(member: u8, is_taken: impl Fn(u8) -> bool) -> Result<u8, Entry> {
    let member = match member {
        ANY_MEMBER => (0..MEMBERS).find(|&member| !is_taken(member)),
        member => Some(member).filter(|&member| !is_taken(member)),
    };
    member.ok_or(Entry::MemberTaken)
}

//! What a NIC of any machine does for programs on its own node: the other side of the
//! [door](phitwire_framing::door).
//!
//! A program is a [`Client`] with a [`Window`] of memory that it shares with the NIC. Its requests
//! are checked here, not by the process that forwards them: a client can access its own window and
//! what programs of its own job have registered, nothing else.

use phitwire_framing::door::hello::{ANY_MEMBER, Entry, Operations};
use phitwire_framing::door::{Command, Completion, Status};

use super::memory::Window;
use crate::rng::Rng;
use crate::time::Time;

/// Names a client of one NIC: 1 to 64. The number is reused when its last owner has nothing in
/// flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Client(pub u8);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Not accepted now: offer the request again when another one has ended.
    Later,
    /// Accepted: a completion will follow.
    UnderWay,
    /// Ended, with this status and completion word.
    Ended(Status, u64),
}

impl Taken {
    pub const fn refused(status: Status) -> Self {
        Self::Ended(status, 0)
    }
}

/// The programs of one NIC.
pub trait LocalPort {
    /// The NIC's number, if it has one.
    fn processor(&self) -> Option<u16>;

    /// Bytes of the longest put.
    fn longest_put(&self) -> u16;

    /// Operations that the NIC supports besides puts and gets.
    fn operations(&self) -> Operations;

    /// Admits a program of `job`, and returns its client name and its member number within the job
    /// here.
    ///
    /// # Errors
    /// Every [`Entry`] but [`Entry::Welcome`].
    fn let_in(
        &mut self,
        job: u64,
        member: u8,
        window: Box<dyn Window>,
    ) -> Result<(Client, u8), Entry>;

    /// The program has gone: drop what it registered and received; its requests finish, and its
    /// window is kept until then.
    fn let_go(&mut self, now: Time, client: Client);

    /// Handles a command of a client.
    fn command(&mut self, now: Time, client: Client, command: &Command<'_>) -> Taken;

    /// Completes writes to programs' own memory. Call it before anything reveals them: before
    /// sending frames, and before [`next_completion`](Self::next_completion).
    fn settle(&mut self) {}

    /// The next completion for a present client.
    fn next_completion(&mut self) -> Option<(Client, Completion)>;
}

/// The key of what programs of `job` have registered ([`ANY_MEMBER`]), or of messages to one of its
/// members: the same at every NIC, and never zero.
///
/// Keys have 16 bits, so two jobs in 65,536 share one; one NIC keeps them apart
/// ([`Entry::KeyTaken`]), two NICs do not.
pub fn key_of(job: u64, member: u8) -> u16 {
    let word = Rng::new(job, member.into()).next_u64();
    ((word >> 48) as u16).max(1)
}

/// Maximum number of members of a job at one NIC.
pub const MEMBERS: u8 = ANY_MEMBER;

/// Assigns a member number of its job to a program that requests `member`.
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

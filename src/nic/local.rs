//! Services of a NIC of any machine for programs on its node, through the client
//! [rings](phitwire_framing::door).
//!
//! A program is a [`Client`] with a [`Window`] of memory that it shares with the NIC. The NIC
//! checks its requests here, not in the process that forwards them: a client can access only its
//! own window and memory registered by programs of its own job.

use phitwire_framing::door::hello::{ANY_MEMBER, Entry, Operations};
use phitwire_framing::door::{Command, Completion, Status};

use super::memory::Window;
use crate::rng::Rng;
use crate::time::Time;

/// Identifies a client of one NIC, 1 to 64. A number is reused only after its last owner's requests
/// have finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Client(pub u8);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Rejected for now: offer the request again when another one has ended.
    Later,
    /// Accepted; a completion will follow.
    UnderWay,
    /// Completed at once, with this status and completion word.
    Ended(Status, u64),
}

impl Taken {
    pub const fn refused(status: Status) -> Self {
        Self::Ended(status, 0)
    }
}

pub trait LocalPort {
    /// The NIC's number, if it has one.
    fn processor(&self) -> Option<u16>;

    /// Maximum bytes of a put.
    fn longest_put(&self) -> u16;

    /// Supported operations besides puts and gets.
    fn operations(&self) -> Operations;

    /// Admits a program of `job`, and returns its client number and its member number in the job.
    ///
    /// # Errors
    /// Every [`Entry`] but [`Entry::Welcome`].
    fn attach(
        &mut self,
        job: u64,
        member: u8,
        window: Box<dyn Window>,
    ) -> Result<(Client, u8), Entry>;

    /// Removes a program that has exited: drops its registrations and received messages, lets its
    /// requests finish, and keeps its window until they have.
    fn detach(&mut self, now: Time, client: Client);

    fn command(&mut self, now: Time, client: Client, command: &Command<'_>) -> Taken;

    /// Completes writes to programs' address spaces. Call it before anything makes them observable:
    /// before sending frames, and before [`next_completion`](Self::next_completion).
    fn flush(&mut self) {}

    /// Returns the next completion for a client that has not exited.
    fn next_completion(&mut self) -> Option<(Client, Completion)>;
}

/// The key of memory that programs of `job` have registered ([`ANY_MEMBER`]), or of messages to one
/// member of the job. It is the same at every NIC, and never zero.
///
/// Keys have 16 bits, so two jobs have the same key with a probability of 1 in 65,536. One NIC
/// rejects such a second job ([`Entry::KeyTaken`]); two NICs do not notice.
pub fn key_of(job: u64, member: u8) -> u16 {
    let word = Rng::new(job, member.into()).next_u64();
    ((word >> 48) as u16).max(1)
}

/// Maximum number of members of a job at one NIC.
pub const MEMBERS: u8 = ANY_MEMBER;

/// Assigns a member number of its job to a program that requests `member`.
///
/// # Errors
/// [`Entry::MemberTaken`] if another program has the number.
pub fn member_of(member: u8, is_taken: impl Fn(u8) -> bool) -> Result<u8, Entry> {
    let member = match member {
        ANY_MEMBER => (0..MEMBERS).find(|&member| !is_taken(member)),
        member => Some(member).filter(|&member| !is_taken(member)),
    };
    member.ok_or(Entry::MemberTaken)
}

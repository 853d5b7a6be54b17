//! Puts of a local program into the memories of other network interfaces, whatever the machine.

use super::memory::Memory;
use crate::time::Time;

/// Why a put was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PutError {
    /// As many requests as may be are outstanding, or wait for the link: later it may be taken.
    #[error("too many requests are outstanding")]
    Full,
    /// Nobody has that number, or no put has that length.
    #[error("there is no such put")]
    Impossible,
}

/// How a put ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutEnd {
    /// The bytes are in the target's memory.
    Done,
    /// It, or the answer, came damaged: the same put may succeed.
    Damaged,
    /// It was refused, or no answer came; then it may yet be carried out.
    Lost,
}

/// Puts that a network interface makes for a local program, beside its own traffic.
pub trait RemotePuts {
    /// By which number others know it, if it has one.
    fn number(&self) -> Option<u16>;

    /// Requests that may be outstanding at once, its own traffic's among them.
    fn most_outstanding(&self) -> usize;

    /// Bytes of the longest put.
    fn longest_put(&self) -> usize;

    /// Puts `data` at `address` of the memory of processor `to`, and answers the name that
    /// [`put_ended`](Self::put_ended) repeats. Ordered puts to one processor are carried out in the
    /// order in which they were posted, within 64 bytes at least.
    ///
    /// # Errors
    /// See [`PutError`].
    fn put(
        &mut self,
        now: Time,
        to: u16,
        address: u64,
        data: &[u8],
        ordered: bool,
    ) -> Result<u64, PutError>;

    /// The next put that has ended.
    fn put_ended(&mut self) -> Option<(u64, PutEnd)>;

    /// Puts of others carried out here so far.
    fn puts_served(&self) -> u64;

    /// The memory that others put into.
    fn own_memory(&self) -> &Memory;

    /// Keeps traffic runs that start from now on out of the last `bytes` of the memories.
    fn reserve(&mut self, bytes: u64);
}

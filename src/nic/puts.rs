//! Puts of a local program into the memories of other NICs, on any machine.

use super::memory::Memory;
use crate::time::Time;

/// Why a put was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PutError {
    /// The maximum of requests is outstanding or waiting for the link; it may be accepted later.
    #[error("too many requests are outstanding")]
    Full,
    /// No processor has that number, or the length is not possible.
    #[error("puts of this form are not supported")]
    Impossible,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutEnd {
    /// The bytes are in the target's memory.
    Done,
    /// The put or its response arrived damaged: the same put may succeed.
    Damaged,
    /// The put was rejected, or timed out and may yet be carried out.
    Lost,
}

/// Puts that a NIC makes for a local program, in addition to its own traffic.
pub trait RemotePuts {
    /// The NIC's processor number, if it has one.
    fn number(&self) -> Option<u16>;

    /// Maximum number of outstanding requests, including those of the NIC's own traffic.
    fn most_outstanding(&self) -> usize;

    /// Bytes of the longest put.
    fn longest_put(&self) -> usize;

    /// Puts `data` at `address` of processor `to`'s memory, and returns the name that
    /// [`put_ended`](Self::put_ended) repeats. Ordered puts to one processor are carried out in the
    /// order of posting, at least within 64 bytes.
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

    /// The next ended put, and how it ended.
    fn put_ended(&mut self) -> Option<(u64, PutEnd)>;

    /// Puts of other NICs carried out here so far.
    fn puts_served(&self) -> u64;

    /// The memory that other NICs put into.
    fn own_memory(&self) -> &Memory;

    /// Keeps later traffic runs out of the last `bytes` of the memories.
    fn reserve(&mut self, bytes: u64);
}

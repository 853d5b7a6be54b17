//! Puts of a local program to other NICs, on any machine.

use super::memory::Memory;
use crate::time::Time;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PutError {
    /// Too many requests are outstanding or waiting for the link; try again later.
    #[error("too many requests are outstanding")]
    Full,
    /// No processor has that number, or the length is invalid.
    #[error("puts of this form are not supported")]
    Impossible,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutEnd {
    Done,
    /// The put or its response arrived damaged; the same put may succeed when repeated.
    Damaged,
    /// The put was rejected, or timed out and may yet be carried out.
    Lost,
}

/// Puts that a NIC makes for a local program, besides its own traffic.
pub trait RemotePuts {
    /// The NIC's processor number, if it has one.
    fn number(&self) -> Option<u16>;

    /// Maximum number of outstanding requests, including the NIC's own traffic.
    fn most_outstanding(&self) -> usize;

    fn longest_put(&self) -> usize;

    /// Puts `data` at `address` in the memory of processor `to`, and returns the number that
    /// [`put_ended`](Self::put_ended) reports. Ordered puts to one processor are carried out in the
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

    /// Returns the next completed put and its outcome.
    fn put_ended(&mut self) -> Option<(u64, PutEnd)>;

    /// Number of puts of other NICs carried out here.
    fn puts_served(&self) -> u64;

    /// The memory that other NICs put into.
    fn own_memory(&self) -> &Memory;

    /// Excludes the last `bytes` of every memory from later traffic runs.
    fn reserve(&mut self, bytes: u64);
}

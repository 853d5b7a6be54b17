use core::fmt::Debug;

/// A change to a virtual channel of a receive buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// This many phits or flits were added, perhaps after others had been withdrawn.
    Arrived(u32),
    /// Only the front was withdrawn or replaced.
    Front,
}

/// The receive buffer of a link end: written by the end, read by its owner. Virtual channels are
/// numbered from 0.
pub trait ReceiveBuffer: Debug + Send + 'static {
    /// Calls `report` with the changes of each virtual channel since the last call. Owners need not
    /// call it, and buffers of whole packets need not implement it.
    fn take_changes(&mut self, report: impl FnMut(usize, Change)) {
        let _ = report;
    }

    /// Calls `report` with the number of phits or flits read from each virtual channel since the
    /// last call, as far as their space may be returned to the peer.
    fn take_freed(&mut self, report: impl FnMut(usize, u32));

    /// Phits or flits in the buffer, of all virtual channels.
    fn queued(&self) -> u64;

    /// Phits or flits of one virtual channel in the buffer.
    fn queued_of(&self, vc: usize) -> u64;
}

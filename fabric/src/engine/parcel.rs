//! Messages waiting to be sent.

use super::shared::Op;
use super::wire::Head;

/// What to do when a message has arrived, or never will.
#[derive(Clone, Copy, Debug)]
pub enum End {
    Nothing,
    /// Complete the operation, which had this many bytes.
    Op(Op, usize),
    /// Continue the request; if the message never arrives, fail it.
    Request(u64),
    /// Continue the announced transfer; if the message never arrives, fail it.
    Offer(u64),
    /// The lost peer with this number has been notified.
    Notice(usize),
}

impl End {
    /// Whether it must wait until the peer has acknowledged the message.
    pub(super) const fn awaits_delivery(&self) -> bool {
        matches!(self, Self::Op(op, _) if op.is_delivery)
    }
}

/// A message waiting to be sent.
#[derive(Debug)]
pub struct Parcel {
    /// Head of the message, without sequence numbers.
    pub head: Head,
    pub payload: Vec<u8>,
    /// What to do at the end of the message.
    pub end: End,
    /// Whether the head is complete. An announcement may have to wait until the NIC has opened the
    /// memory; later messages to the same peer then wait too, which keeps the order.
    pub is_ready: bool,
}

impl Parcel {
    /// A message that can be sent.
    pub(super) const fn new(head: Head, payload: Vec<u8>, end: End) -> Self {
        Self {
            head,
            payload,
            end,
            is_ready: true,
        }
    }

    /// A message without data whose end needs no action.
    pub(super) const fn bare(head: Head) -> Self {
        Self::new(head, Vec::new(), End::Nothing)
    }
}

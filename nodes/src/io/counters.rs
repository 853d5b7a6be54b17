//! What the backends count.

use nix::errno::Errno;

use super::send_trouble::SendFailure;

/// Frames and system-call level messages moved and dropped, by reason, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoCounters {
    /// Link frames handed to the kernel.
    pub frames_sent: u64,
    /// Bytes of those frames, without Ethernet, IP and UDP headers.
    pub bytes_sent: u64,
    /// Messages those frames went in: one message holds several frames with segmentation offload.
    pub messages_sent: u64,
    /// Link frames received.
    pub frames_received: u64,
    /// Bytes of those frames, without headers.
    pub bytes_received: u64,
    /// Messages those frames came in.
    pub messages_received: u64,
    /// Frames not sent: the socket's or the device's queue was full (`EAGAIN`, `ENOBUFS`).
    pub tx_dropped_queue_full: u64,
    /// Frames not sent: the interface was down, unreachable or gone.
    pub tx_dropped_link_down: u64,
    /// Frames not sent: nobody listens at the other end of a UDP link yet, or any more.
    pub tx_dropped_refused: u64,
    /// Frames not sent: longer than the interface takes (its MTU was lowered).
    pub tx_dropped_too_long: u64,
    /// Frames not sent: a filter of the kernel forbids them (`EPERM`).
    pub tx_dropped_forbidden: u64,
    /// Frames not sent for another reason.
    pub tx_dropped_other: u64,
    /// Messages that came while a socket's receive buffer was full, as the kernel counts them: a
    /// train of frames that came in one piece is one message.
    pub rx_dropped_socket_full: u64,
    /// Frames that interfaces dropped before a socket saw them.
    pub rx_dropped_interface: u64,
    /// Messages received that were longer than any frame of ours can be.
    pub rx_dropped_truncated: u64,
    /// Ethernet frames received that are shorter than a header or of another EtherType.
    pub rx_dropped_foreign: u64,
    /// Receive calls that failed (`ENETDOWN`, `ECONNREFUSED`, ...).
    pub rx_errors: u64,
    /// Receives that had to be armed again because all shared buffers were in use (io_uring).
    pub rx_buffers_exhausted: u64,
    /// System calls made to wait, receive and send.
    pub system_calls: u64,
}

impl IoCounters {
    /// Calls `each` with every counter's name and value.
    pub fn for_each(&self, mut each: impl FnMut(&'static str, u64)) {
        each("frames_sent", self.frames_sent);
        each("bytes_sent", self.bytes_sent);
        each("messages_sent", self.messages_sent);
        each("frames_received", self.frames_received);
        each("bytes_received", self.bytes_received);
        each("messages_received", self.messages_received);
        each("tx_dropped_queue_full", self.tx_dropped_queue_full);
        each("tx_dropped_link_down", self.tx_dropped_link_down);
        each("tx_dropped_refused", self.tx_dropped_refused);
        each("tx_dropped_too_long", self.tx_dropped_too_long);
        each("tx_dropped_forbidden", self.tx_dropped_forbidden);
        each("tx_dropped_other", self.tx_dropped_other);
        each("rx_dropped_socket_full", self.rx_dropped_socket_full);
        each("rx_dropped_interface", self.rx_dropped_interface);
        each("rx_dropped_truncated", self.rx_dropped_truncated);
        each("rx_dropped_foreign", self.rx_dropped_foreign);
        each("rx_errors", self.rx_errors);
        each("rx_buffers_exhausted", self.rx_buffers_exhausted);
        each("system_calls", self.system_calls);
    }

    /// Frames that the kernel did not take or did not hand up, for whatever reason. What came in
    /// one piece and was not handed up counts as one.
    pub fn frames_dropped(&self) -> u64 {
        self.tx_dropped_queue_full
            + self.tx_dropped_link_down
            + self.tx_dropped_refused
            + self.tx_dropped_too_long
            + self.tx_dropped_forbidden
            + self.tx_dropped_other
            + self.rx_dropped_socket_full
            + self.rx_dropped_interface
    }

    /// Counts a message of `frames` frames and `bytes` bytes that was sent.
    pub(crate) fn sent(&mut self, frames: u64, bytes: u64) {
        self.messages_sent += 1;
        self.frames_sent += frames;
        self.bytes_sent += bytes;
    }

    /// Counts `frames` frames that were not sent because of `errno`.
    pub(crate) fn not_sent(&mut self, frames: u64, errno: Errno) {
        let counter = match SendFailure::from(errno) {
            SendFailure::QueueFull => &mut self.tx_dropped_queue_full,
            SendFailure::LinkDown => &mut self.tx_dropped_link_down,
            SendFailure::Refused => &mut self.tx_dropped_refused,
            SendFailure::TooLong => &mut self.tx_dropped_too_long,
            SendFailure::Forbidden => &mut self.tx_dropped_forbidden,
            SendFailure::Other => &mut self.tx_dropped_other,
        };
        *counter += frames;
    }
}

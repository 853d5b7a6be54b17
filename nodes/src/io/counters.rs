//! Counters of the backends.

use nix::errno::Errno;
use phitwire::counters;

use super::send_trouble::SendFailure;

counters! {
    /// Frames and system-call level messages moved and dropped, by reason, since the start.
    #[derive(Copy)]
    pub struct IoCounters {
        /// Link frames handed to the kernel.
        frames_sent,
        /// Bytes of those frames, without Ethernet, IP and UDP headers.
        bytes_sent,
        /// Messages that carried those frames: with segmentation offload, one holds several frames.
        messages_sent,
        /// Link frames received.
        frames_received,
        /// Bytes of those frames, without headers.
        bytes_received,
        /// Messages that carried those frames.
        messages_received,
        /// Frames not sent: the socket's or the device's queue was full (`EAGAIN`, `ENOBUFS`).
        tx_dropped_queue_full,
        /// Frames not sent: the interface was down, unreachable or gone.
        tx_dropped_link_down,
        /// Frames not sent: no socket listens at the other end of a UDP link.
        tx_dropped_refused,
        /// Frames not sent: longer than the interface takes (its MTU was lowered).
        tx_dropped_too_long,
        /// Frames not sent: a filter of the kernel forbids them (`EPERM`).
        tx_dropped_forbidden,
        /// Frames not sent for another reason.
        tx_dropped_other,
        /// Messages dropped because a socket's receive buffer was full, as counted by the kernel: a
        /// train of frames received in one piece is one message.
        rx_dropped_socket_full,
        /// Frames that interfaces dropped before a socket saw them.
        rx_dropped_interface,
        /// Received messages that were longer than any of our frames.
        rx_dropped_truncated,
        /// Received Ethernet frames that are shorter than a header or of another EtherType.
        rx_dropped_foreign,
        /// Receive calls that failed (`ENETDOWN`, `ECONNREFUSED`, ...).
        rx_errors,
        /// Receives that were armed again because all shared buffers were in use (io_uring).
        rx_buffers_exhausted,
        /// System calls made to wait, receive and send.
        system_calls,
    }
}

impl IoCounters {
    /// Frames that the kernel rejected or did not deliver, for any reason. A train of frames that
    /// was dropped in one piece counts as one.
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

    /// Counts a sent message of `frames` frames and `bytes` bytes.
    pub(crate) fn sent(&mut self, frames: u64, bytes: u64) {
        self.messages_sent += 1;
        self.frames_sent += frames;
        self.bytes_sent += bytes;
    }

    /// Counts `frames` frames not sent because of `errno`.
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

//! `recvmmsg` and `sendmmsg` with the control messages of UDP segmentation offload.
//!
//! The safe wrappers of `nix` allocate per call and use the same control messages for all messages
//! of a batch. Here each message has its own segment length.

use std::mem::size_of;
use std::os::fd::RawFd;

use nix::errno::Errno;

use super::send_batch::{Message, SendBatch};

/// Messages per system call.
pub(super) const BATCH: usize = 16;

/// Buffer for the one control message used, `UDP_SEGMENT` (u16) or `UDP_GRO` (int), aligned as the
/// kernel and the `CMSG_*` macros require.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug)]
pub(super) struct Control([u8; 32]);

impl Control {
    pub const EMPTY: Self = Self([0; 32]);

    /// The control message that makes the kernel cut a send into frames of `segment` bytes, and its
    /// length.
    pub fn segment(segment: u16) -> (Self, usize) {
        let mut control = Self::EMPTY;
        let header = libc::cmsghdr {
            // SAFETY: CMSG_LEN only computes a length.
            cmsg_len: unsafe { libc::CMSG_LEN(size_of::<u16>() as u32) } as _,
            cmsg_level: libc::SOL_UDP,
            cmsg_type: libc::UDP_SEGMENT,
        };
        // SAFETY: the array is aligned for a `cmsghdr` (8 bytes) and longer (32) than the header
        // (16) plus the u16 after it.
        unsafe {
            let base = control.0.as_mut_ptr();
            base.cast::<libc::cmsghdr>().write(header);
            base.add(size_of::<libc::cmsghdr>())
                .cast::<u16>()
                .write(segment);
        }
        // SAFETY: CMSG_SPACE only computes a length.
        (
            control,
            unsafe { libc::CMSG_SPACE(size_of::<u16>() as u32) } as usize,
        )
    }
}

/// The segment length in the control data of a received message; `None` when the message is a
/// single frame.
pub(super) fn gro_segment(mut control: &[u8]) -> Option<usize> {
    const HEADER: usize = size_of::<libc::cmsghdr>();
    while control.len() >= HEADER {
        // SAFETY: `control` has at least the bytes of a `cmsghdr`, which is plain data; read
        // unaligned.
        let header = unsafe { control.as_ptr().cast::<libc::cmsghdr>().read_unaligned() };
        let length = header.cmsg_len;
        if length < HEADER || length > control.len() {
            return None;
        }
        if header.cmsg_level == libc::SOL_UDP && header.cmsg_type == libc::UDP_GRO {
            let value = control[HEADER..length].first_chunk::<4>()?;
            return usize::try_from(i32::from_ne_bytes(*value))
                .ok()
                .filter(|&n| n > 0);
        }
        control = control.get(length.next_multiple_of(8)..)?;
    }
    None
}

/// Sends up to [`BATCH`] messages on `fd`. Returns how many the kernel took.
///
/// # Errors
/// The kernel's error for the first message.
pub(super) fn send(fd: RawFd, batch: &SendBatch, messages: &[Message]) -> Result<usize, Errno> {
    let count = messages.len().min(BATCH);
    // SAFETY: the three types are plain data (integers and raw pointers), for which zero is valid.
    let (mut headers, mut vectors): ([libc::mmsghdr; BATCH], [libc::iovec; BATCH]) =
        unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    let mut controls = [Control::EMPTY; BATCH];
    for (i, message) in messages[..count].iter().enumerate() {
        let bytes = batch.bytes(message);
        vectors[i].iov_base = bytes.as_ptr().cast_mut().cast();
        vectors[i].iov_len = bytes.len();
        let header = &mut headers[i].msg_hdr;
        header.msg_iov = &raw mut vectors[i];
        header.msg_iovlen = 1;
        if message.frames > 1 {
            let (control, length) = Control::segment(message.segment as u16);
            controls[i] = control;
            header.msg_control = (&raw mut controls[i]).cast();
            header.msg_controllen = length as _;
        }
    }
    // SAFETY: the headers point to vectors, control messages and arena bytes that all live,
    // unmoved, until the call returns; the kernel only reads what `iov_base` points to.
    let sent =
        unsafe { libc::sendmmsg(fd, headers.as_mut_ptr(), count as u32, libc::MSG_DONTWAIT) };
    Errno::result(sent).map(|n| n as usize)
}

/// Sends one frame on `fd`.
///
/// # Errors
/// The kernel's error.
pub(super) fn send_one(fd: RawFd, frame: &[u8]) -> Result<(), Errno> {
    // SAFETY: the pointer and the length are those of a slice that lives through the call.
    let sent = unsafe { libc::send(fd, frame.as_ptr().cast(), frame.len(), libc::MSG_DONTWAIT) };
    Errno::result(sent).map(|_| ())
}

/// A message received into a [`ReceiveBatch`].
#[derive(Clone, Copy, Debug, Default)]
struct Received {
    bytes: usize,
    /// Length of each frame but the last, in bytes.
    segment: usize,
    truncated: bool,
}

/// Buffers for [`BATCH`] messages of up to `stride` bytes, shared by all ports.
#[derive(Debug)]
pub(super) struct ReceiveBatch {
    buffers: Box<[u8]>,
    stride: usize,
    received: [Received; BATCH],
}

impl ReceiveBatch {
    pub fn new(stride: usize) -> Self {
        let buffers = vec![0; BATCH * stride].into_boxed_slice();
        Self {
            buffers,
            stride,
            received: [Received::default(); BATCH],
        }
    }

    /// Receives up to [`BATCH`] messages from `fd`. Returns their number.
    ///
    /// # Errors
    /// Errors of the kernel; `EAGAIN` when there is nothing.
    pub fn receive(&mut self, fd: RawFd) -> Result<usize, Errno> {
        // SAFETY: as in `send`.
        let (mut headers, mut vectors): ([libc::mmsghdr; BATCH], [libc::iovec; BATCH]) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        let mut controls = [Control::EMPTY; BATCH];
        for (i, buffer) in self.buffers.chunks_exact_mut(self.stride).enumerate() {
            vectors[i].iov_base = buffer.as_mut_ptr().cast();
            vectors[i].iov_len = buffer.len();
            let header = &mut headers[i].msg_hdr;
            header.msg_iov = &raw mut vectors[i];
            header.msg_iovlen = 1;
            header.msg_control = (&raw mut controls[i]).cast();
            header.msg_controllen = size_of::<Control>() as _;
        }
        // SAFETY: each header points to a vector, a control buffer and a part of `buffers` of the
        // stated lengths; no two overlap, all live until the call returns, and nothing else refers
        // to them because `self` is borrowed mutably.
        let count = unsafe {
            libc::recvmmsg(
                fd,
                headers.as_mut_ptr(),
                BATCH as u32,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        let count = Errno::result(count)? as usize;
        for (i, header) in headers[..count].iter().enumerate() {
            let bytes = header.msg_len as usize;
            let control = &controls[i].0[..header.msg_hdr.msg_controllen];
            self.received[i] = Received {
                bytes,
                segment: gro_segment(control).unwrap_or(bytes),
                truncated: header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
            };
        }
        Ok(count)
    }

    /// The `index`-th message of the last receive and the length of its segments; `None` if it
    /// was longer than the buffer.
    pub fn message(&self, index: usize) -> Option<(&[u8], usize)> {
        let Received {
            bytes,
            segment,
            truncated,
        } = self.received[index];
        let start = index * self.stride;
        (!truncated).then(|| (&self.buffers[start..start + bytes], segment.max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gro_control_message_is_found_and_a_malformed_one_is_not() {
        let (control, length) = Control::segment(700);
        assert_eq!(
            gro_segment(&control.0[..length]),
            None,
            "UDP_SEGMENT is not UDP_GRO"
        );
        let mut bytes = control.0;
        bytes[12..16].copy_from_slice(&libc::UDP_GRO.to_ne_bytes());
        bytes[..8].copy_from_slice(&20usize.to_ne_bytes());
        bytes[16..20].copy_from_slice(&700i32.to_ne_bytes());
        assert_eq!(gro_segment(&bytes[..24]), Some(700));
        for length in [0usize, 15, 17, 100, usize::MAX] {
            bytes[..8].copy_from_slice(&length.to_ne_bytes());
            assert_eq!(gro_segment(&bytes[..24]), None);
        }
    }
}

//! Passing descriptors over a socket, and events that wake another process.
#![expect(
    unsafe_code,
    reason = "takes ownership of descriptors received from the kernel"
)]

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, UnixAddr, recvmsg, sendmsg};
use nix::unistd::{read, write};
use phitwire_framing::door::hello::DESCRIPTORS;

/// Maximum number of descriptors in one message (Linux's `SCM_MAX_FD`). With a buffer for all of
/// them, none leaks.
const MOST_DESCRIPTORS: usize = 253;

/// Sends all of `bytes` and, with the first of them, `descriptors`.
///
/// # Errors
/// Those of the socket; `WriteZero` if it took only some of the bytes.
pub fn send(socket: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let raw: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
    let with = [ControlMessage::ScmRights(&raw)];
    let with = if raw.is_empty() { &[] } else { &with[..] };
    let flags = MsgFlags::MSG_NOSIGNAL;
    let socket = socket.as_fd().as_raw_fd();
    let sent = sendmsg::<UnixAddr>(socket, &[IoSlice::new(bytes)], with, flags, None)?;
    match sent == bytes.len() {
        true => Ok(()),
        false => Err(io::ErrorKind::WriteZero.into()),
    }
}

/// Receives all of `out` and the descriptors that accompany it, at most [`DESCRIPTORS`].
///
/// # Errors
/// Those of the socket; `UnexpectedEof` if it ends early; `InvalidData` if there are more
/// descriptors.
pub fn receive(socket: impl AsFd, out: &mut [u8]) -> io::Result<Vec<OwnedFd>> {
    let mut descriptors = Vec::new();
    let mut room = nix::cmsg_space!([RawFd; MOST_DESCRIPTORS]);
    let mut filled = 0;
    while filled < out.len() {
        let mut part = [IoSliceMut::new(&mut out[filled..])];
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        let socket = socket.as_fd().as_raw_fd();
        let received = match recvmsg::<UnixAddr>(socket, &mut part, Some(&mut room), flags) {
            Err(Errno::EINTR) => continue,
            other => other?,
        };
        for message in received.cmsgs()? {
            if let ControlMessageOwned::ScmRights(raw) = message {
                // SAFETY: the kernel has just opened these descriptors for this process, so we are
                // their only owner.
                descriptors.extend(
                    raw.into_iter()
                        .map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }),
                );
            }
        }
        if descriptors.len() > DESCRIPTORS {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if received.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        filled += received.bytes;
    }
    Ok(descriptors)
}

/// Wakes a process that sleeps in `poll`. An eventfd, or one end of a socket; readable from
/// [`wake`](Self::wake) to [`clear`](Self::clear), however often it was woken.
#[derive(Debug)]
pub struct Event(OwnedFd);

impl Event {
    /// A new event.
    ///
    /// # Errors
    /// The process or the system has no descriptors left.
    pub fn new() -> io::Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let event = EventFd::from_value_and_flags(0, flags)?;
        Ok(Self(event.as_fd().try_clone_to_owned()?))
    }

    /// An event of another process.
    ///
    /// # Errors
    /// The descriptor cannot be made non-blocking.
    pub fn of_another(descriptor: OwnedFd) -> io::Result<Self> {
        let flags = OFlag::from_bits_retain(fcntl(&descriptor, FcntlArg::F_GETFL)?);
        fcntl(&descriptor, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
        Ok(Self(descriptor))
    }

    /// Wakes the process that waits for it.
    pub fn wake(&self) {
        // This fails only when the counter is full, and the event is then readable as well.
        let _ = write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Makes the event unreadable again.
    pub fn clear(&self) {
        // The read fails when nothing is left.
        while read(&self.0, &mut [0; 64]).is_ok_and(|bytes| bytes == 64) {}
    }
}

impl AsFd for Event {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

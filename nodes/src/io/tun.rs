//! A TUN device: IP packets from and to the kernel's network stack.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

const CLONE_DEVICE: &str = "/dev/net/tun";

/// An open TUN device, without the optional four-byte header of packets.
#[derive(Debug)]
pub struct Tun {
    file: File,
}

impl Tun {
    /// Opens the device `name` of this network namespace, creating it if missing.
    ///
    /// # Errors
    /// Errors of the kernel; names have at most 15 bytes.
    pub fn open(name: &str) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(CLONE_DEVICE)?;
        // SAFETY: `ifreq` is plain data, for which zero is valid.
        let mut request: libc::ifreq = unsafe { mem::zeroed() };
        let room = &mut request.ifr_name;
        if name.len() >= room.len() {
            return Err(io::Error::from(ErrorKind::InvalidInput));
        }
        for (to, from) in room.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
        // SAFETY: the descriptor is open, and the kernel reads and writes one `ifreq`.
        let done = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &mut request) };
        match done {
            0 => Ok(Self { file }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Copies the kernel's next packet for this device into `room`. Returns its length, or `None`
    /// if no packet waits.
    ///
    /// # Errors
    /// Other errors of the kernel.
    pub fn receive(&mut self, room: &mut [u8]) -> io::Result<Option<usize>> {
        match self.file.read(room) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Passes a packet that arrived over the fabric to the kernel.
    ///
    /// # Errors
    /// Errors of the kernel, which may reject the packet.
    pub fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        self.file.write(packet).map(|_| ())
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

//! The address space of a program, as accessed by its NIC.
//!
//! All accesses use `process_vm_readv` and `process_vm_writev`, which need the rights of a
//! debugger: the same user, or `CAP_SYS_PTRACE`. A call costs as much as copying some kilobytes, so
//! accesses are combined. Pieces of a transfer that arrive in one turn of the event loop are
//! written together at the end of the turn ([`OwnMemory::flush`]), before their completions are
//! reported. Adjacent pieces are read together, and dropped at the end of the turn.
//!
//! A writer must learn whether its write succeeded. So in each turn, the first write to a page is
//! made at once, and only later ones to the same page are deferred. If the program unmaps the page
//! in between, the result is the same as if it had unmapped it a moment after the write.

use std::cell::RefCell;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{getsockopt, sockopt};
use nix::sys::uio::{RemoteIoVec, process_vm_readv, process_vm_writev};
use nix::unistd::Pid;
use phitwire::nic::{OwnMemory, Unreachable};

/// Granularity of accesses: the smallest page size of all processors.
const PAGE: u64 = 4096;
/// Length of a transfer's pieces. Reading one reads the rest of its page too.
const PIECE: usize = 64;
/// Pages of read data kept, so that concurrent transfers do not evict each other's.
const PAGES_READ: usize = 4;
/// Maximum number of bytes waiting to be written.
const MOST_WAITING: usize = 1 << 16;
/// Maximum number of parts waiting to be written: interleaved transfers have one each.
const MOST_PARTS: usize = 16;
/// Maximum number of pages of one turn remembered as written.
const PAGES_WRITTEN: usize = 32;

/// A program's address space. A pidfd identifies the process, so that a later process with the same
/// id is not mistaken for it.
#[derive(Debug)]
pub(super) struct AddressSpace {
    pid: Pid,
    process: OwnedFd,
    /// The connection, which ends when the program exits or executes another program.
    socket: UnixStream,
    /// Set by each write, in a virtual lab.
    written: Option<Arc<AtomicBool>>,
    turn: RefCell<Turn>,
}

/// State that is discarded at the end of the turn.
#[derive(Debug, Default)]
struct Turn {
    /// Whether the process was alive when last checked.
    lives: Option<bool>,
    /// Parts to be written: address and bytes.
    parts: Vec<(u64, Vec<u8>)>,
    /// Total bytes of `parts`.
    waiting: usize,
    /// Pages written to in this turn.
    written: Vec<u64>,
    read: [Page; PAGES_READ],
    oldest: usize,
}

/// Bytes from an address to the end of its page.
#[derive(Debug, Default)]
struct Page {
    at: u64,
    bytes: Vec<u8>,
}

impl Page {
    fn part(&self, address: u64, len: usize) -> Option<&[u8]> {
        let from = usize::try_from(address.checked_sub(self.at)?).ok()?;
        self.bytes.get(from..from.checked_add(len)?)
    }
}

impl AddressSpace {
    /// The address space of the connected process; `None` if the kernel does not identify the
    /// process, because it is in another PID namespace or the kernel is older than 6.5.
    pub(super) fn of_peer(stream: &UnixStream, written: Option<Arc<AtomicBool>>) -> Option<Self> {
        let pid = getsockopt(stream, sockopt::PeerCredentials).ok()?.pid();
        let process = getsockopt(stream, sockopt::PeerPidfd).ok()?;
        (pid > 0).then_some(())?;
        Some(Self {
            pid: Pid::from_raw(pid),
            process,
            socket: stream.try_clone().ok()?,
            written,
            turn: RefCell::default(),
        })
    }

    /// Checks that the process still exists and runs the same program.
    fn is_there(&self, turn: &mut Turn) -> Result<(), Unreachable> {
        let lives = *turn.lives.get_or_insert_with(|| {
            let mut looked = [
                PollFd::new(self.process.as_fd(), PollFlags::POLLIN),
                // Even without events, `poll` reports the end of a connection.
                PollFd::new(self.socket.as_fd(), PollFlags::empty()),
            ];
            poll(&mut looked, PollTimeout::ZERO) == Ok(0)
        });
        if lives { Ok(()) } else { Err(Unreachable) }
    }

    /// Writes all of `data`, or fails.
    fn store(&self, address: u64, data: &[u8]) -> Result<(), Unreachable> {
        let there = [remote(address, data.len())];
        match process_vm_writev(self.pid, &[IoSlice::new(data)], &there) {
            Ok(written) if written == data.len() => Ok(()),
            _ => Err(Unreachable),
        }
    }

    /// Writes the waiting parts before any other write.
    pub(super) fn write_out(&self) {
        self.flush_turn(&mut self.turn.borrow_mut());
    }

    fn load(&self, address: u64, out: &mut [u8]) -> Result<usize, Errno> {
        let part = [remote(address, out.len())];
        process_vm_readv(self.pid, &mut [IoSliceMut::new(out)], &part)
    }

    /// Writes the waiting parts. Failures are not reported: the page was mapped in this turn.
    fn flush_turn(&self, turn: &mut Turn) {
        if turn.parts.is_empty() {
            return;
        }
        let parts = turn.parts.iter();
        let here: Vec<_> = parts.clone().map(|(_, data)| IoSlice::new(data)).collect();
        let there: Vec<_> = parts.map(|(at, data)| remote(*at, data.len())).collect();
        if process_vm_writev(self.pid, &here, &there) != Ok(turn.waiting) {
            tracing::debug!(pid = %self.pid,
                "a program unmapped memory before data was written to it");
            for (at, data) in &turn.parts {
                let _ = self.store(*at, data);
            }
        }
        turn.parts.clear();
        turn.waiting = 0;
    }
}

const fn remote(address: u64, len: usize) -> RemoteIoVec {
    RemoteIoVec {
        base: address as usize,
        len,
    }
}

impl OwnMemory for AddressSpace {
    fn read(&self, address: u64, out: &mut [u8]) -> Result<(), Unreachable> {
        let turn = &mut *self.turn.borrow_mut();
        self.is_there(turn)?;
        self.flush_turn(turn);
        if out.len() == PIECE {
            let found = turn.read.iter().find_map(|page| page.part(address, PIECE));
            if let Some(found) = found {
                out.copy_from_slice(found);
                return Ok(());
            }
            let len = (PAGE - address % PAGE) as usize;
            if len > PIECE {
                turn.oldest = (turn.oldest + 1) % PAGES_READ;
                let page = &mut turn.read[turn.oldest];
                page.at = address;
                page.bytes.resize(len, 0);
                let read = self.load(address, &mut page.bytes);
                page.bytes.truncate(read.unwrap_or(0));
                let found = page.part(address, PIECE).ok_or(Unreachable)?;
                out.copy_from_slice(found);
                return Ok(());
            }
        }
        match self.load(address, out) {
            Ok(read) if read == out.len() => Ok(()),
            _ => Err(Unreachable),
        }
    }

    fn write(&self, address: u64, data: &[u8]) -> Result<(), Unreachable> {
        if let Some(written) = &self.written {
            written.store(true, Ordering::Relaxed);
        }
        let turn = &mut *self.turn.borrow_mut();
        self.is_there(turn)?;
        // Drop data read earlier, which may be stale now.
        turn.read.iter_mut().for_each(|page| page.bytes.clear());
        let last = address.saturating_add(data.len() as u64).saturating_sub(1);
        let (first, last) = (address / PAGE, last / PAGE);
        // Write shorter data at once: it is not a piece of a transfer, and a program may be waiting
        // for it.
        if first != last || data.len() != PIECE || !turn.written.contains(&first) {
            self.flush_turn(turn);
            self.store(address, data)?;
            if turn.written.len() == PAGES_WRITTEN {
                turn.written.clear();
            }
            turn.written.push(last);
            return Ok(());
        }
        let end = address + data.len() as u64;
        let overlaps =
            |(at, before): &(u64, Vec<u8>)| *at < end && address < *at + before.len() as u64;
        if turn.parts.iter().any(overlaps) {
            // Flush first, so that an older part is not written after data that must overwrite it.
            self.flush_turn(turn);
        }
        let follows = |(at, before): &&mut (u64, Vec<u8>)| *at + before.len() as u64 == address;
        match turn.parts.iter_mut().rev().find(follows) {
            Some((_, before)) => before.extend_from_slice(data),
            None => turn.parts.push((address, data.to_vec())),
        }
        turn.waiting += data.len();
        if turn.waiting >= MOST_WAITING || turn.parts.len() >= MOST_PARTS {
            self.flush_turn(turn);
        }
        Ok(())
    }

    fn flush(&self) {
        let turn = &mut *self.turn.borrow_mut();
        self.flush_turn(turn);
        turn.lives = None;
        turn.written.clear();
        turn.read.iter_mut().for_each(|page| page.bytes.clear());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This process's address space: the test acts as its own peer.
    fn own() -> (AddressSpace, UnixStream) {
        let (here, there) = UnixStream::pair().expect("a socket pair");
        let own = AddressSpace::of_peer(&here, None).expect("the kernel identifies the peer");
        (own, there)
    }

    #[test]
    fn the_last_of_several_writes_to_one_address_stays() {
        let (own, _there) = own();
        let mut page = vec![0_u8; 2 * PAGE as usize];
        let base = (page.as_mut_ptr().expose_provenance() as u64).next_multiple_of(PAGE);
        let put = |line: u64, value: u8| {
            let written = own.write(base + line * PIECE as u64, &[value; PIECE]);
            written.expect("the memory is mapped");
        };
        // Pieces in any order; the first one of a turn is written at once.
        for lines in [
            &[0, 1, 3, 2, 3][..],
            &[0, 5, 7, 6, 7, 6, 5],
            &[9, 2, 2, 3, 2, 3],
        ] {
            let mut expected = [0; 16];
            for (n, &line) in lines.iter().enumerate() {
                let value = n as u8 + 1;
                put(line, value);
                expected[line as usize] = value;
            }
            own.flush();
            for &line in lines {
                let mut found = [0; PIECE];
                own.read(base + line * PIECE as u64, &mut found)
                    .expect("the memory is mapped");
                own.flush();
                assert_eq!(
                    found, [expected[line as usize]; PIECE],
                    "{line} of {lines:?}"
                );
            }
        }
        drop(page);
    }
}

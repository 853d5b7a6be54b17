//! A NIC as seen by an attached program.

mod virtual_time;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll, ppoll};
use nix::sched::sched_yield;
use nix::sys::time::TimeSpec;
use phitwire_framing::door::hello::{Operations, Welcome};
use phitwire_framing::door::segment::WaitKind;
use phitwire_framing::door::{
    Access, AtomicOp, CollectiveRequest, Command, Completion, EntryError, Local, Remote, Request,
    Width,
};

use crate::descriptors::Event;
use crate::ring::{Broken, ClientEnd, PostError};
use crate::turns::Turns;
use crate::{Mapping, OutOfRange};

/// Number of polls without a pause before a wait yields the processor, and number of yields before
/// it sleeps.
const SPINS: u32 = 50;
const YIELDS: u32 = 20;
/// Empty polls after which to check whether the NIC still exists.
const LOOK_EVERY: u32 = 4096;
/// Completions after which [`Nic::poll`] returns their slots even if it is never empty.
const GIVE_BACK_EVERY: u64 = 256;

/// A failure between a program and its NIC. Completions report the outcome of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Too many commands are in flight: take completions, then post again.
    #[error("too many commands in flight: take completions first")]
    Full,
    /// The command cannot be encoded: a put has 1 to 64 bytes.
    #[error("invalid command: {0}")]
    Entry(EntryError),
    /// Some of the bytes are outside of the program's data.
    #[error("{0}")]
    OutOfRange(#[from] OutOfRange),
    /// The NIC's process has ended, or has disconnected the program.
    #[error("the NIC is gone: attach again once it runs")]
    Gone,
    /// The NIC has violated the protocol.
    #[error("the NIC violated the protocol: {0}; detach from it")]
    Broken(#[from] Broken),
    /// The system call for waiting failed.
    #[error("wait failed: {0}")]
    Wait(Errno),
}

impl From<PostError> for Error {
    fn from(error: PostError) -> Self {
        match error {
            PostError::Full => Self::Full,
            PostError::Entry(error) => Self::Entry(error),
            PostError::Broken(broken) => Self::Broken(broken),
        }
    }
}

/// A NIC that the program is attached to. Dropping it detaches the program, which ends its
/// registrations and its commands in flight.
///
/// Every command has a name of 48 bits, which its completion repeats. It should differ from those
/// in flight, except that a [`take_back`](Self::take_back) has the name of its receive. Commands
/// wait until [`flush`](Self::flush), which [`wait`](Self::wait) and an empty [`poll`](Self::poll)
/// also call.
#[derive(Debug)]
pub struct Nic {
    end: ClientEnd,
    welcome: Welcome,
    socket: OwnedFd,
    wakes_nic: Event,
    wakes_us: Event,
    empty_polls: u32,
    /// The program's turns, in a virtual lab.
    turns: Option<Turns>,
}

impl Nic {
    pub(crate) fn new(
        end: ClientEnd,
        welcome: Welcome,
        socket: OwnedFd,
        [wakes_nic, wakes_us]: [Event; 2],
    ) -> Self {
        let is_virtual = welcome.is_virtual;
        Self {
            turns: is_virtual.then(|| Turns::new(end.mapping().clone())),
            end,
            welcome,
            socket,
            wakes_nic,
            wakes_us,
            empty_polls: 0,
        }
    }

    /// The NIC's processor number.
    pub const fn processor(&self) -> u16 {
        self.welcome.processor
    }

    /// The program's member number in the job on this NIC.
    pub const fn member(&self) -> u8 {
        self.welcome.member
    }

    /// Longest put or get, in bytes.
    pub fn longest_put(&self) -> usize {
        usize::from(self.welcome.longest_put)
    }

    /// Operations of the NIC besides puts and gets. Other commands end as
    /// [`Unsupported`](phitwire_framing::door::Status::Unsupported).
    pub const fn operations(&self) -> Operations {
        self.welcome.operations
    }

    /// Size of the program's data in bytes: as requested, rounded up.
    pub fn data_bytes(&self) -> u64 {
        self.end.mapping().data_bytes()
    }

    /// Copies data at byte `offset` into `out`.
    ///
    /// # Errors
    /// [`OutOfRange`].
    pub fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), OutOfRange> {
        self.end.mapping().read_data(offset, out)
    }

    /// Copies `data` to byte `offset` of the program's data.
    ///
    /// # Errors
    /// [`OutOfRange`].
    pub fn write(&self, offset: u64, data: &[u8]) -> Result<(), OutOfRange> {
        self.end.mapping().write_data(offset, data)
    }

    /// The memory that holds the data, for copies that must not borrow the NIC.
    pub fn mapping(&self) -> &Arc<Mapping> {
        self.end.mapping()
    }

    /// The word of the data at byte `offset`, a multiple of eight, such as a flag that others put.
    /// A load with `Acquire` that sees a put's data also sees everything that the NIC wrote before.
    ///
    /// # Errors
    /// [`OutOfRange`], also if `offset` is not a multiple of eight.
    pub fn word(&self, offset: u64) -> Result<&AtomicU64, OutOfRange> {
        let word = self.end.mapping().data_word(offset);
        word.ok_or(OutOfRange {
            offset,
            bytes: 8,
            size: self.data_bytes(),
        })
    }

    /// Commands and posted receives whose completions have not been taken yet.
    pub const fn under_way(&self) -> u64 {
        self.end.under_way()
    }

    /// Posts a command, which waits until [`flush`](Self::flush).
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::Entry`] or [`Error::Broken`]; the command is then not posted.
    pub fn post(&mut self, command: &Command<'_>) -> Result<(), Error> {
        Ok(self.end.post(command)?)
    }

    fn ask(&mut self, name: u64, request: Request<'_>) -> Result<(), Error> {
        self.post(&Command { name, request })
    }

    /// Writes up to [`longest_put`](Self::longest_put) bytes to `to`. With `event`, the target
    /// program gets a [`Completion::PutEvent`].
    ///
    /// # Errors
    /// As for [`post`](Self::post); the same holds for the other methods that post one command.
    pub fn put(&mut self, name: u64, to: Remote, data: &[u8], event: bool) -> Result<(), Error> {
        let request = Request::Put {
            to,
            data,
            event,
            ordered: false,
        };
        self.ask(name, request)
    }

    /// Reads up to [`longest_put`](Self::longest_put) bytes into the program's data: whole words at
    /// a word's address, of four or eight bytes depending on the machine.
    pub fn get(&mut self, name: u64, from: Remote, into: Local) -> Result<(), Error> {
        let request = Request::Get {
            from,
            into,
            ordered: false,
        };
        self.ask(name, request)
    }

    /// Changes a 64-bit word at `at`; with `fetch`, the completion returns its old value.
    pub fn atomic(
        &mut self,
        name: u64,
        at: Remote,
        op: AtomicOp,
        operands: [u64; 2],
        fetch: bool,
    ) -> Result<(), Error> {
        let request = Request::Atomic {
            at,
            op,
            width: Width::Bits64,
            operands,
            fetch,
            ordered: false,
        };
        self.ask(name, request)
    }

    /// Writes data of the program to `to`. With `event`, the target program gets a
    /// [`Completion::BlockEvent`] when all of them are in its memory.
    pub fn block_put(
        &mut self,
        name: u64,
        to: Remote,
        from: Local,
        event: Option<u64>,
    ) -> Result<(), Error> {
        let request = Request::BlockPut {
            to,
            from,
            event,
            fence: false,
        };
        self.ask(name, request)
    }

    /// Reads remote bytes into the program's data.
    pub fn block_get(&mut self, name: u64, from: Remote, into: Local) -> Result<(), Error> {
        let request = Request::BlockGet {
            from,
            into,
            fence: false,
        };
        self.ask(name, request)
    }

    /// Sends data of the program to a receive of another program of the job.
    pub fn send(
        &mut self,
        name: u64,
        processor: u16,
        member: u8,
        from: Local,
    ) -> Result<(), Error> {
        let request = Request::Send {
            processor,
            member,
            from,
        };
        self.ask(name, request)
    }

    /// Posts a buffer for a message; a [`Completion::Received`] reports its arrival.
    pub fn receive(&mut self, name: u64, into: Local) -> Result<(), Error> {
        self.ask(name, Request::Receive { into })
    }

    /// Cancels the receive called `name`. The word of this command's completion is 1 if that
    /// succeeded, 0 if the receive already has a message.
    pub fn take_back(&mut self, name: u64) -> Result<(), Error> {
        self.ask(name, Request::CancelReceive)
    }

    /// Lets programs of the job access a part of the data, which starts at a multiple of 64. The
    /// completion's word is the handle.
    pub fn register(&mut self, name: u64, part: Local, access: Access) -> Result<(), Error> {
        self.ask(name, Request::Register { part, access })
    }

    /// Ends a registration.
    pub fn deregister(&mut self, name: u64, handle: u16) -> Result<(), Error> {
        self.ask(name, Request::Deregister { handle })
    }

    /// Takes part in collective operations, with one program at each of several NICs.
    ///
    /// All programs set up the same engine with the same list of NICs, and then join the same
    /// operations in the same order, one at a time. The completion's word is the result.
    pub fn collective(&mut self, name: u64, request: CollectiveRequest) -> Result<(), Error> {
        self.ask(name, Request::Collective(request))
    }

    /// Makes posted commands and taken completions visible to the NIC, and wakes it if it sleeps.
    pub fn flush(&mut self) {
        if self.end.publish() {
            self.wakes_nic.wake();
        }
    }

    /// The oldest completion, if any.
    ///
    /// In a virtual lab, a poll without result after another one waits until something arrives, or
    /// for a short virtual time: [`pause_after`](crate::pause_after).
    ///
    /// # Errors
    /// [`Error::Broken`]; [`Error::Gone`], noticed only after thousands of empty polls.
    pub fn poll(&mut self) -> Result<Option<Completion>, Error> {
        let found = self.poll_at_once()?;
        if let Some(turns) = &mut self.turns {
            turns.polled(found.is_some());
            if found.is_none()
                && let Some(pause) = turns.pause()
            {
                self.pause_polling(pause)?;
                return self.poll_at_once();
            }
        }
        Ok(found)
    }

    /// Like [`poll`](Self::poll), but takes no time in a virtual lab either. A program that polls
    /// so must [`pause_polling`](Self::pause_polling) if it finds nothing, or time stands still.
    ///
    /// # Errors
    /// As for [`poll`](Self::poll).
    pub fn poll_at_once(&mut self) -> Result<Option<Completion>, Error> {
        let found = self.end.poll()?;
        if found.is_none() || self.end.unpublished() >= GIVE_BACK_EVERY {
            self.flush();
        }
        self.empty_polls = match found {
            Some(_) => 0,
            None => self.empty_polls + 1,
        };
        if self.empty_polls == LOOK_EVERY {
            self.empty_polls = 0;
            if self.is_gone() {
                // The NIC may have completed something before it ended.
                return self.end.poll()?.ok_or(Error::Gone).map(Some);
            }
        }
        Ok(found)
    }

    fn is_gone(&self) -> bool {
        let mut socket = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        // The NIC sends nothing after the welcome, so readable means closed.
        matches!(poll(&mut socket, PollTimeout::ZERO), Ok(1))
    }

    /// The oldest completion; sleeps until there is one.
    ///
    /// Returns `None` after `timeout`, and, if the last command was refused for lack of room, as
    /// soon as there is room again.
    ///
    /// # Errors
    /// [`Error::Gone`] if the NIC ends, [`Error::Broken`], [`Error::Wait`].
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<Option<Completion>, Error> {
        if self.is_virtual() {
            return self.wait_in_virtual_time(timeout);
        }
        for round in 0..SPINS + YIELDS {
            if let Some(completion) = self.poll()? {
                return Ok(Some(completion));
            }
            match round < SPINS {
                true => std::hint::spin_loop(),
                // The NIC may be waiting for this core.
                false => sched_yield().map_err(Error::Wait)?,
            }
        }
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
            let is_gone = self.arm() && self.sleep(left)?;
            let has_room = self.end.has_more_room();
            self.disarm();
            if let Some(completion) = self.poll()? {
                return Ok(Some(completion));
            }
            if is_gone {
                return Err(Error::Gone);
            }
            if has_room || left.is_some_and(|left| left.is_zero()) {
                return Ok(None);
            }
        }
    }

    /// Sleeps until woken, at most for `timeout`. Returns whether the NIC is gone.
    fn sleep(&self, timeout: Option<Duration>) -> Result<bool, Error> {
        let wanted = [self.fd(), self.socket()];
        let mut wanted = wanted.map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        match ppoll(&mut wanted, timeout.map(TimeSpec::from_duration), None) {
            Ok(_) => Ok(wanted[1].any() == Some(true)),
            Err(Errno::EINTR) => Ok(false),
            Err(error) => Err(Error::Wait(error)),
        }
    }

    /// For programs with their own event loop: requests a wake. If this returns `true`, the program
    /// may sleep until [`fd`](Self::fd) or [`socket`](Self::socket) is readable; otherwise there is
    /// something to [`poll`](Self::poll). In both cases call [`disarm`](Self::disarm) afterwards.
    ///
    /// In a virtual lab, time then passes until the program disarms.
    pub fn arm(&mut self) -> bool {
        self.flush();
        self.end.sleeps(true);
        let is_quiet = !self.end.has_completions() && !self.end.has_more_room();
        if is_quiet && let Some(turns) = &self.turns {
            turns.end(WaitKind::Completion, Duration::MAX);
            self.wakes_nic.wake();
        }
        is_quiet
    }

    /// Ends the request of [`arm`](Self::arm): the program is awake.
    pub fn disarm(&mut self) {
        self.end.sleeps(false);
        // Before the look at the turn, which a later wake announces.
        self.wakes_us.clear();
        if let Some(turns) = &mut self.turns {
            turns.resume();
        }
    }

    /// A descriptor that is readable when the NIC has woken the program: see [`arm`](Self::arm).
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.wakes_us.as_fd()
    }

    /// A descriptor that is readable when the NIC is gone.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

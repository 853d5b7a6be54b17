//! A network interface, as a program has it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll, ppoll};
use nix::sched::sched_yield;
use nix::sys::time::TimeSpec;
use phitwire_framing::door::hello::{Operations, Welcome};
use phitwire_framing::door::{
    Access, AtomicOp, CollectiveRequest, Command, Completion, EntryError, Local, Remote, Request,
    Width,
};

use crate::OutOfRange;
use crate::descriptors::Event;
use crate::ring::{Broken, ClientEnd, PostError};

/// Polls without a pause before a wait yields the processor, and yields before it sleeps.
const SPINS: u32 = 50;
const YIELDS: u32 = 20;
/// Empty polls after which it is looked whether the network interface is still there.
const LOOK_EVERY: u32 = 4096;
/// Completions after which their places are given back without being asked to.
const GIVE_BACK_EVERY: u64 = 256;

/// What went wrong between a program and its network interface. What becomes of commands is told
/// by completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// As many commands are under way as can be: take completions, then post again.
    #[error("as many commands are under way as can be: take completions first")]
    Full,
    /// The command cannot be written: a put has 1 to 64 bytes.
    #[error("no such command: {0}")]
    Entry(EntryError),
    /// Some of the bytes are not in the program's data.
    #[error("{0}")]
    OutOfRange(#[from] OutOfRange),
    /// The network interface's process has ended, or has thrown the program out.
    #[error("the network interface is gone: attach anew once it runs again")]
    Gone,
    /// The network interface has done what it must not.
    #[error("the network interface cannot be relied on: {0}; leave it")]
    Broken(#[from] Broken),
    /// The system does not let the program wait.
    #[error("waiting failed: {0}")]
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

/// A network interface that the program is attached to. Dropping it is how a program leaves: what
/// it has registered, and what is under way, ends.
///
/// Every command has a name, which its completion repeats: of 48 bits, and best not that of
/// another one under way (a [`take_back`](Self::take_back) has that of its receive). Commands wait
/// until [`flush`](Self::flush), which [`wait`](Self::wait) and an empty [`poll`](Self::poll) do
/// too.
#[derive(Debug)]
pub struct Nic {
    end: ClientEnd,
    welcome: Welcome,
    socket: OwnedFd,
    wakes_nic: Event,
    wakes_us: Event,
    empty_polls: u32,
}

impl Nic {
    pub(crate) fn new(
        end: ClientEnd,
        welcome: Welcome,
        socket: OwnedFd,
        [wakes_nic, wakes_us]: [Event; 2],
    ) -> Self {
        Self {
            end,
            welcome,
            socket,
            wakes_nic,
            wakes_us,
            empty_polls: 0,
        }
    }

    /// The number of the network interface.
    pub const fn processor(&self) -> u16 {
        self.welcome.processor
    }

    /// Which of the job's programs at this network interface this one is.
    pub const fn member(&self) -> u8 {
        self.welcome.member
    }

    /// Most bytes of a put or a get.
    pub fn longest_put(&self) -> usize {
        usize::from(self.welcome.longest_put)
    }

    /// What the network interface can do beside puts and gets; what it cannot ends as
    /// [`Unsupported`](phitwire_framing::door::Status::Unsupported).
    pub const fn operations(&self) -> Operations {
        self.welcome.operations
    }

    /// Bytes of the program's data: what was asked for, rounded up.
    pub fn data_bytes(&self) -> u64 {
        self.end.mapping().data_bytes()
    }

    /// Copies data from byte `offset` on.
    ///
    /// # Errors
    /// [`OutOfRange`].
    pub fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), OutOfRange> {
        self.end.mapping().read_data(offset, out)
    }

    /// Changes data from byte `offset` on.
    ///
    /// # Errors
    /// [`OutOfRange`].
    pub fn write(&self, offset: u64, data: &[u8]) -> Result<(), OutOfRange> {
        self.end.mapping().write_data(offset, data)
    }

    /// The word of the data at byte `offset`, a multiple of eight: a flag that others put, say. Who
    /// sees by `Acquire` what a put has brought sees all that the network interface wrote before.
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

    /// Commands and posted receives whose ends were not taken yet.
    pub const fn under_way(&self) -> u64 {
        self.end.under_way()
    }

    /// Writes a command, which waits until [`flush`](Self::flush).
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::Entry`] or [`Error::Broken`]; it is not posted then.
    pub fn post(&mut self, command: &Command<'_>) -> Result<(), Error> {
        Ok(self.end.post(command)?)
    }

    fn ask(&mut self, name: u64, request: Request<'_>) -> Result<(), Error> {
        self.post(&Command { name, request })
    }

    /// Writes up to [`longest_put`](Self::longest_put) bytes there. With `event`, the program there
    /// is told by a [`Completion::Landed`].
    ///
    /// # Errors
    /// As for [`post`](Self::post), here and below.
    pub fn put(&mut self, name: u64, to: Remote, data: &[u8], event: bool) -> Result<(), Error> {
        let request = Request::Put {
            to,
            data,
            event,
            ordered: false,
        };
        self.ask(name, request)
    }

    /// Reads up to [`longest_put`](Self::longest_put) bytes into one's own data: whole words at a
    /// word's address, of four or eight bytes as the machine has them.
    pub fn get(&mut self, name: u64, from: Remote, into: Local) -> Result<(), Error> {
        let request = Request::Get {
            from,
            into,
            ordered: false,
        };
        self.ask(name, request)
    }

    /// Changes a word of 64 bits there; with `fetch`, the completion tells it as it was.
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

    /// Writes bytes of one's own data there. With an event, the program there is told that by a
    /// [`Completion::Told`] when all of them are in its memory.
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

    /// Reads bytes there into one's own data.
    pub fn block_get(&mut self, name: u64, from: Remote, into: Local) -> Result<(), Error> {
        let request = Request::BlockGet {
            from,
            into,
            fence: false,
        };
        self.ask(name, request)
    }

    /// Sends bytes of one's own data to a receive of a program of the job.
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

    /// Posts a place for a message, which is told by a [`Completion::Received`].
    pub fn receive(&mut self, name: u64, into: Local) -> Result<(), Error> {
        self.ask(name, Request::Receive { into })
    }

    /// Takes the receive of that name back, if it has no message yet; the word of the completion
    /// is 1 if so.
    pub fn take_back(&mut self, name: u64) -> Result<(), Error> {
        self.ask(name, Request::TakeBack)
    }

    /// Lets the programs of the job reach a part of the data, at a multiple of 64; the word of the
    /// completion is its handle.
    pub fn register(&mut self, name: u64, part: Local, access: Access) -> Result<(), Error> {
        self.ask(name, Request::Register { part, access })
    }

    /// Ends that.
    pub fn deregister(&mut self, name: u64, handle: u16) -> Result<(), Error> {
        self.ask(name, Request::Deregister { handle })
    }

    /// Takes part in what one program at each of several network interfaces do together.
    ///
    /// All set up the same engine with the same list of network interfaces, and then join the same
    /// operations in the same order, one at a time each: the word of the completion is the result.
    pub fn collective(&mut self, name: u64, request: CollectiveRequest) -> Result<(), Error> {
        self.ask(name, Request::Collective(request))
    }

    /// Shows the network interface what was posted and taken, and wakes it if it sleeps.
    pub fn flush(&mut self) {
        if self.end.publish() {
            self.wakes_nic.wake();
        }
    }

    /// The oldest completion, if there is one now.
    ///
    /// # Errors
    /// [`Error::Broken`]; [`Error::Gone`] after thousands of calls in vain.
    pub fn poll(&mut self) -> Result<Option<Completion>, Error> {
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
                // It may have said something before it went.
                return self.end.poll()?.ok_or(Error::Gone).map(Some);
            }
        }
        Ok(found)
    }

    fn is_gone(&self) -> bool {
        let mut socket = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        // Nothing is ever sent behind the welcome: what can be read is the end.
        matches!(poll(&mut socket, PollTimeout::ZERO), Ok(1))
    }

    /// The oldest completion; if there is none, sleeps until there is.
    ///
    /// `None` after `timeout`; also as soon as there is room again for a command, if the last one
    /// was refused for want of it.
    ///
    /// # Errors
    /// [`Error::Gone`] if the network interface ends, [`Error::Broken`], [`Error::Wait`].
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<Option<Completion>, Error> {
        for round in 0..SPINS + YIELDS {
            if let Some(completion) = self.poll()? {
                return Ok(Some(completion));
            }
            match round < SPINS {
                true => std::hint::spin_loop(),
                // Whoever else has something to do here may be the network interface.
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

    /// Sleeps until it is woken, at most for `timeout`; whether the other side is gone.
    fn sleep(&self, timeout: Option<Duration>) -> Result<bool, Error> {
        let wanted = [self.fd(), self.socket()];
        let mut wanted = wanted.map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        match ppoll(&mut wanted, timeout.map(TimeSpec::from_duration), None) {
            Ok(_) => Ok(wanted[1].any() == Some(true)),
            Err(Errno::EINTR) => Ok(false),
            Err(error) => Err(Error::Wait(error)),
        }
    }

    /// For programs that sleep in an event loop of their own: asks to be woken. Only if it answers
    /// `true` may one sleep, until [`fd`](Self::fd) or [`socket`](Self::socket) is readable; else
    /// there is something to [`poll`](Self::poll). Either way, [`disarm`](Self::disarm) then.
    pub fn arm(&mut self) -> bool {
        self.flush();
        self.end.sleeps(true);
        !self.end.has_completions() && !self.end.has_more_room()
    }

    /// Says that the program is awake: see [`arm`](Self::arm).
    pub fn disarm(&mut self) {
        self.end.sleeps(false);
        self.wakes_us.clear();
    }

    /// Readable when the network interface has woken the program: see [`arm`](Self::arm).
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.wakes_us.as_fd()
    }

    /// Readable when the network interface is gone.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

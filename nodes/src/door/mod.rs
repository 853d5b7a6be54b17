//! The door of a NIC, through which local programs attach and exchange commands and completions.
//!
//! A program sends its hello on the socket and gets a memory segment with two rings
//! ([`phitwire_client`]). From then on nothing passes through the socket; its end means that the
//! program has ended. The NIC decides what a program may do ([`LocalPort`]). The door ensures that
//! no program blocks this process, takes more than its turn, or leaves anything behind.

mod client;
mod own;
mod pending_hello;
mod turns;

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use phitwire::counters;
use phitwire::nic::MAX_WINDOWS;
use phitwire::nic::local::{Client, LocalPort};
use phitwire::time::Time;
use phitwire_framing::door::hello::{Entry, Hello, Welcome};

use client::Attached;
use pending_hello::{HelloProgress, PendingHello};
pub use turns::{Program, State};

/// Maximum number of connections without a hello; beyond that, the oldest is closed.
const MAX_GUESTS: usize = 16;
/// Pause in accepting after running out of descriptors.
const PAUSE: Duration = Duration::from_millis(100);
/// Descriptors handled in one turn.
const EVENTS: usize = 32;
/// Connections accepted in one turn.
const ACCEPTED: usize = 16;

/// `epoll` data of the listening socket. Others are a kind of descriptor and a slot.
const LISTENER: u64 = u64::MAX;
const GUEST: u64 = 1 << 32;
const SOCKET: u64 = 2 << 32;
const EVENT: u64 = 3 << 32;
const KIND: u64 = !0 << 32;

counters! {
    /// Local programs of one NIC.
    #[derive(Copy)]
    pub struct DoorCounters {
        /// Programs admitted.
        attached,
        /// Programs refused.
        refused,
        /// Connections that ended, or were closed, before their hello.
        said_nothing,
        /// Programs that disconnected.
        gone,
        /// Programs disconnected by us: invalid ring indices, or unexpected bytes on the socket.
        dismissed,
        /// Commands taken.
        commands,
        /// Of these commands, entries that were not valid.
        malformed,
        /// Completions posted.
        completions,
        /// Events dropped because the program had no room for them.
        events_dropped,
    }
}

/// The door of one NIC.
#[derive(Debug)]
pub struct Door {
    epoll: Epoll,
    listener: UnixListener,
    /// End of the pause in accepting.
    paused: Option<Instant>,
    guests: [Option<PendingHello>; MAX_GUESTS],
    /// Slot of the connection closed last to make room; the next one to close follows it.
    oldest: usize,
    /// Clients, by client number minus one.
    clients: Vec<Option<Attached>>,
    /// Index of the client whose commands are taken first.
    turn: usize,
    /// Whether the NIC runs in virtual time.
    is_virtual: bool,
    counters: DoorCounters,
}

impl Door {
    /// Listens at `path`, which must not exist.
    ///
    /// # Errors
    /// When the socket cannot be made.
    pub fn bind(path: &Path) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        listener.set_nonblocking(true)?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        epoll.add(&listener, EpollEvent::new(EpollFlags::EPOLLIN, LISTENER))?;
        Ok(Self {
            epoll,
            listener,
            paused: None,
            guests: Default::default(),
            oldest: 0,
            clients: (0..MAX_WINDOWS).map(|_| None).collect(),
            turn: 0,
            is_virtual: false,
            counters: DoorCounters::default(),
        })
    }

    /// Like [`bind`](Self::bind), for a NIC in virtual time: programs take [turns](turns).
    ///
    /// # Errors
    /// As for [`bind`](Self::bind).
    pub fn bind_virtual(path: &Path) -> io::Result<Self> {
        Ok(Self {
            is_virtual: true,
            ..Self::bind(path)?
        })
    }

    /// Readable when [`serve`](Self::serve) has something to do.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }

    pub fn for_each_counter(&self, mut visit: impl FnMut(&'static str, u64)) {
        self.counters.for_each(&mut visit);
        visit("clients", self.clients.iter().flatten().count() as u64);
    }

    /// During a pause in accepting: the time until [`serve`](Self::serve) should be called even if
    /// nothing is readable.
    pub fn pause(&self) -> Option<Duration> {
        let until = self.paused?;
        Some(until.saturating_duration_since(Instant::now()))
    }

    /// Accepts programs and removes those that have disconnected, without blocking. Returns whether
    /// any have disconnected: the NIC must then end their operations.
    ///
    /// # Errors
    /// Errors of the door; the error of a program only ends that program.
    pub fn serve(&mut self, now: Time, port: &mut dyn LocalPort) -> io::Result<bool> {
        let before = self.counters.gone + self.counters.dismissed;
        if self.paused.is_some_and(|until| Instant::now() >= until) {
            self.paused = None;
            self.listen(true)?;
        }
        let mut events = [EpollEvent::empty(); EVENTS];
        let count = match self.epoll.wait(&mut events, EpollTimeout::ZERO) {
            Err(nix::errno::Errno::EINTR) => 0,
            result => result?,
        };
        for event in &events[..count] {
            let (kind, slot) = (event.data() & KIND, (event.data() & !KIND) as usize);
            match (event.data(), kind) {
                (LISTENER, _) => self.accept()?,
                (_, GUEST) => self.serve_guest(slot, now, port),
                (_, SOCKET) => self.handle_socket(slot, now, port),
                // Ignore a client's wake-up: its commands are taken in each turn anyway.
                _ => {}
            }
        }
        Ok(self.counters.gone + self.counters.dismissed > before)
    }

    fn listen(&mut self, on: bool) -> io::Result<()> {
        let flags = match on {
            true => EpollFlags::EPOLLIN,
            false => EpollFlags::empty(),
        };
        let mut event = EpollEvent::new(flags, LISTENER);
        Ok(self.epoll.modify(self.listener.as_fd(), &mut event)?)
    }

    fn accept(&mut self) -> io::Result<()> {
        for _ in 0..ACCEPTED {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => return Ok(()),
                    ErrorKind::ConnectionAborted | ErrorKind::Interrupted => continue,
                    // Descriptors or memory are short. Pause watching the listening socket, which
                    // stays readable.
                    _ => {
                        tracing::debug!(%error, "cannot accept a local program");
                        self.paused = Some(Instant::now() + PAUSE);
                        return self.listen(false);
                    }
                },
            };
            let free = self.guests.iter().position(Option::is_none);
            let slot = free.unwrap_or_else(|| {
                self.oldest = (self.oldest + 1) % MAX_GUESTS;
                self.counters.said_nothing += 1;
                self.oldest
            });
            self.guests[slot] = None;
            let event = EpollEvent::new(EpollFlags::EPOLLIN, GUEST | slot as u64);
            if stream.set_nonblocking(true).is_ok() && self.epoll.add(&stream, event).is_ok() {
                self.guests[slot] = Some(PendingHello::new(stream));
            }
        }
        Ok(())
    }

    fn serve_guest(&mut self, slot: usize, now: Time, port: &mut dyn LocalPort) {
        let Some(pending_hello) = &mut self.guests[slot] else {
            return;
        };
        let hello = match pending_hello.read_hello() {
            HelloProgress::Incomplete => return,
            HelloProgress::Gone => {
                self.counters.said_nothing += 1;
                self.guests[slot] = None;
                return;
            }
            HelloProgress::Hello(hello) => hello,
        };
        let Some(pending_hello) = self.guests[slot].take() else {
            return;
        };
        let stream = pending_hello.into_stream();
        // Remove the socket, which is registered again under another kind below.
        let _ = self.epoll.delete(&stream);
        let entry = match hello {
            Some(hello) => self.admit(hello, &stream, now, port),
            None => Err(Entry::NotUnderstood),
        };
        match entry {
            Ok(mut attached) => {
                self.counters.attached += 1;
                let index = usize::from(attached.client().0) - 1;
                match attached.watch(
                    &self.epoll,
                    stream,
                    SOCKET | index as u64,
                    EVENT | index as u64,
                ) {
                    Ok(()) => self.clients[index] = Some(attached),
                    Err(error) => {
                        tracing::debug!(%error, "cannot watch the socket of a local program");
                        self.counters.gone += 1;
                        port.detach(now, attached.client());
                    }
                }
            }
            Err(entry) => {
                self.counters.refused += 1;
                pending_hello::answer(&stream, &Welcome::refused(entry));
            }
        }
    }

    /// Admits a program, if there is room, and sends the welcome.
    fn admit(
        &self,
        hello: Hello,
        stream: &std::os::unix::net::UnixStream,
        now: Time,
        port: &mut dyn LocalPort,
    ) -> Result<Attached, Entry> {
        let processor = port.processor().ok_or(Entry::NoNumber)?;
        let attachment = self.is_virtual.then_some(self.counters.attached + 1);
        let (mut attached, window, descriptors) =
            Attached::new(stream, hello.data_bytes, attachment).map_err(|error| {
                tracing::debug!(%error, "cannot allocate memory for a local program");
                Entry::NoMemory
            })?;
        let (client, member) = port.attach(hello.job, hello.member, window)?;
        attached.set_client(client);
        if let Some(turns) = &mut attached.turns {
            turns.begin(member, now);
        }
        let welcome = Welcome {
            entry: Entry::Welcome,
            member,
            processor,
            longest_put: port.longest_put(),
            operations: port.operations(),
            is_virtual: self.is_virtual,
            data_bytes: attached.data_bytes(),
        };
        if let Err(error) = attached.welcome(stream, &welcome, &descriptors) {
            tracing::debug!(%error, "cannot welcome a local program");
            port.detach(now, client);
            return Err(Entry::NoMemory);
        }
        Ok(attached)
    }

    /// Handles a readable client socket: the program has disconnected, or sent unexpected data.
    fn handle_socket(&mut self, slot: usize, now: Time, port: &mut dyn LocalPort) {
        let Some(client) = &self.clients[slot] else {
            return;
        };
        match client.read_socket() {
            Ok(None) => {}
            Ok(Some(0)) | Err(_) => {
                self.counters.gone += 1;
                self.detach(slot, now, port);
            }
            Ok(Some(_)) => {
                self.counters.dismissed += 1;
                self.detach(slot, now, port);
            }
        }
    }

    fn detach(&mut self, slot: usize, now: Time, port: &mut dyn LocalPort) {
        if let Some(attached) = self.clients[slot].take() {
            attached.unwatch(&self.epoll);
            port.detach(now, attached.client());
        }
    }

    /// Delivers completions and, unless draining, accepts commands. Returns whether the NIC got
    /// work.
    pub fn pass(&mut self, now: Time, port: &mut dyn LocalPort, is_draining: bool) -> bool {
        self.deliver(port);
        let count = self.used_slots();
        if count == 0 {
            return false;
        }
        self.turn = (self.turn + 1) % count;
        let mut any = false;
        for slot in (self.turn..count).chain(0..self.turn) {
            any |= self.take(slot, now, port, is_draining);
        }
        // Drop data read for a command: after a sleep it may be stale.
        port.flush();
        any
    }

    /// Number of slots up to the last client.
    fn used_slots(&self) -> usize {
        let last = self.clients.iter().rposition(Option::is_some);
        last.map_or(0, |last| last + 1)
    }

    fn deliver(&mut self, port: &mut dyn LocalPort) {
        port.flush();
        while let Some((Client(number), completion)) = port.next_completion() {
            if let Some(client) = &mut self.clients[usize::from(number) - 1] {
                match client.complete(&completion) {
                    true => self.counters.completions += 1,
                    false => self.counters.events_dropped += 1,
                }
            }
        }
    }

    /// Takes commands of the client in `slot`, if there is one. Returns whether the NIC got work.
    fn take(
        &mut self,
        slot: usize,
        now: Time,
        port: &mut dyn LocalPort,
        is_draining: bool,
    ) -> bool {
        let Some(client) = &mut self.clients[slot] else {
            return false;
        };
        match client.pass(now, port, &mut self.counters, is_draining) {
            Ok(given) => given,
            Err(broken) => {
                tracing::info!(client = slot + 1, %broken,
                    "disconnected a local program that broke the protocol");
                self.counters.dismissed += 1;
                self.detach(slot, now, port);
                true
            }
        }
    }

    /// Requests wakes from the programs. Returns whether one of them already has work for the NIC.
    pub fn before_sleep(&self) -> bool {
        let mut any = false;
        for client in self.clients.iter().flatten() {
            any |= client.before_sleep();
        }
        any
    }

    /// Cancels the requests for wakes from the programs.
    pub fn after_sleep(&self) {
        for client in self.clients.iter().flatten() {
            client.after_sleep();
        }
    }
}

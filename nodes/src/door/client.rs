//! A program attached to the door of a NIC.

use std::io::{self, ErrorKind, IoSlice, Read};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::socket::{ControlMessage, MsgFlags, send, sendmsg};
use phitwire::nic::local::{Client, LocalPort, Taken};
use phitwire::nic::{OwnMemory, Window};
use phitwire::time::Time;
use phitwire_client::mapping::Mapping;
use phitwire_client::ring::{Broken, NicEnd};
use phitwire_framing::door::hello::{DESCRIPTORS, HELLO_BYTES, Welcome};
use phitwire_framing::door::{COMMAND_BYTES, Command, Completion, Request, Status};

use super::DoorCounters;
use super::own::AddressSpace;
use super::turns::TurnKeeper;

/// Commands taken from one program per turn.
const COMMANDS_PER_TURN: usize = 64;

/// A program's shared memory as accessed by its NIC, and the program's address space. In a virtual
/// lab, each write sets the flag.
#[derive(Debug)]
struct Shared(Arc<Mapping>, Option<AddressSpace>, Option<Arc<AtomicBool>>);

impl Window for Shared {
    fn size(&self) -> u64 {
        self.0.data_bytes()
    }

    fn read(&self, offset: u64, out: &mut [u8]) {
        let read = self.0.read_data(offset, out);
        debug_assert!(read.is_ok(), "the range is within the window");
    }

    fn write(&mut self, offset: u64, data: &[u8]) {
        self.settle_own();
        let written = self.0.write_data(offset, data);
        debug_assert!(written.is_ok(), "the range is within the window");
    }

    fn own(&self) -> Option<&dyn OwnMemory> {
        self.1.as_ref().map(|own| own as &dyn OwnMemory)
    }

    fn update(&mut self, offset: u64, change: &dyn Fn(u64) -> u64) -> u64 {
        self.settle_own();
        let Some(word) = self.0.data_word(offset) else {
            debug_assert!(false, "the word is aligned and within the window");
            return 0;
        };
        let mut old = word.load(Ordering::Relaxed);
        while let Err(other) =
            word.compare_exchange_weak(old, change(old), Ordering::AcqRel, Ordering::Relaxed)
        {
            old = other;
        }
        old
    }
}

impl Shared {
    /// Makes earlier writes visible to the program before later ones.
    fn settle_own(&self) {
        if let Some(written) = &self.2 {
            written.store(true, Ordering::Relaxed);
        }
        if let Some(own) = &self.1 {
            own.write_out();
        }
    }
}

#[derive(Debug)]
pub(super) struct Attached {
    client: Client,
    end: NicEnd,
    stream: Option<UnixStream>,
    wakes_nic: EventFd,
    wakes_client: UnixStream,
    /// Outstanding completions: a ring slot is reserved for each.
    owed: u64,
    /// Whether a command waits for an event other than this process's next turn.
    is_held_up: bool,
    /// Whether the remaining commands wait for room for completions.
    lacks_room: bool,
    /// The program's turns, in a virtual lab.
    pub(super) turns: Option<TurnKeeper>,
}

impl Attached {
    /// Allocates memory for a program. Returns the program, the NIC's view of the memory, and the
    /// descriptors for the program.
    pub(super) fn new(
        stream: &UnixStream,
        data_bytes: u64,
        virtual_attachment: Option<u64>,
    ) -> io::Result<(Self, Box<dyn Window>, [OwnedFd; DESCRIPTORS])> {
        let (mapping, memory) = Mapping::create(data_bytes)?;
        let mapping = Arc::new(mapping);
        let turns = virtual_attachment
            .map(|attachment| TurnKeeper::new(mapping.clone(), stream, attachment));
        let written = turns.as_ref().map(|turns| turns.written.clone());
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let wakes_nic = EventFd::from_flags(flags)?;
        // Use a socket: an eventfd would be shared with the program, which could make it block its
        // writers. This end of the socket is private.
        let (wakes_client, woken) = UnixStream::pair()?;
        let descriptors = [
            memory,
            wakes_nic.as_fd().try_clone_to_owned()?,
            OwnedFd::from(woken),
        ];
        let own = AddressSpace::of_peer(stream, written.clone());
        let window = Box::new(Shared(mapping.clone(), own, written));
        let attached = Self {
            client: Client(0),
            end: NicEnd::new(mapping),
            stream: None,
            wakes_nic,
            wakes_client,
            owed: 0,
            is_held_up: false,
            lacks_room: false,
            turns,
        };
        Ok((attached, window, descriptors))
    }

    /// Records that the program was admitted as `client`.
    pub(super) fn set_client(&mut self, client: Client) {
        self.client = client;
    }

    pub(super) fn client(&self) -> Client {
        self.client
    }

    pub(super) fn data_bytes(&self) -> u64 {
        self.end.mapping().data_bytes()
    }

    /// Sends the program its welcome and the descriptors.
    pub(super) fn welcome(
        &self,
        stream: &UnixStream,
        welcome: &Welcome,
        descriptors: &[OwnedFd; DESCRIPTORS],
    ) -> io::Result<()> {
        let mut message = [0; HELLO_BYTES];
        welcome.emit(&mut message);
        let raw = descriptors.each_ref().map(AsRawFd::as_raw_fd);
        let rights = [ControlMessage::ScmRights(&raw)];
        let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
        let parts = [IoSlice::new(&message)];
        let sent = sendmsg::<()>(stream.as_raw_fd(), &parts, &rights, flags, None)?;
        match sent == HELLO_BYTES {
            true => Ok(()),
            false => Err(ErrorKind::WriteZero.into()),
        }
    }

    /// Adds the socket and the event to `epoll`.
    pub(super) fn watch(
        &mut self,
        epoll: &Epoll,
        stream: UnixStream,
        socket: u64,
        event: u64,
    ) -> io::Result<()> {
        epoll.add(&stream, EpollEvent::new(EpollFlags::EPOLLIN, socket))?;
        // Edge-triggered: the event is never read, since the program could make a read block.
        let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLET;
        epoll.add(&self.wakes_nic, EpollEvent::new(flags, event))?;
        self.stream = Some(stream);
        Ok(())
    }

    /// Removes both from `epoll`. The event would otherwise stay there until the program closes it.
    pub(super) fn unwatch(&self, epoll: &Epoll) {
        let _ = epoll.delete(&self.wakes_nic);
        if let Some(stream) = &self.stream {
            let _ = epoll.delete(stream);
            // Shut down the connection, since a message in flight may hold another descriptor of
            // the socket.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Reads from the program's socket. Returns the number of bytes, 0 if the program has
    /// disconnected, or `None` if nothing has arrived.
    pub(super) fn read_socket(&self) -> io::Result<Option<usize>> {
        let Some(mut stream) = self.stream.as_ref() else {
            return Ok(Some(0));
        };
        match stream.read(&mut [0; 16]) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(None),
                _ => Err(error),
            },
        }
    }

    /// Wakes the program. Fails only if the program has not read earlier wake-ups, or has closed
    /// its end.
    pub(super) fn wake(&self) {
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        let _ = send(self.wakes_client.as_raw_fd(), &[1], flags);
    }

    /// Posts a completion. Returns false if the ring has no room for an event.
    pub(super) fn complete(&mut self, completion: &Completion) -> bool {
        let is_due = matches!(
            completion,
            Completion::End { .. } | Completion::Received { .. }
        );
        if is_due {
            debug_assert!(self.owed > 0, "more completions than commands");
            self.owed = self.owed.saturating_sub(1);
        } else if !self.end.room().is_ok_and(|room| room > self.owed) {
            return false;
        }
        self.end.complete(completion);
        if let Some(turns) = &mut self.turns {
            turns.has_news = true;
            turns.receives -= u64::from(matches!(completion, Completion::Received { .. }));
        }
        true
    }

    pub(super) fn turns(&self) -> Option<&TurnKeeper> {
        self.turns.as_ref()
    }

    pub(super) fn is_held_up(&self) -> bool {
        self.is_held_up
    }

    pub(super) fn has_commands(&self) -> bool {
        self.end.has_commands()
    }

    /// Whether commands other than receives are posted and have not ended.
    pub(super) fn is_busy(&self) -> bool {
        let receives = self.turns.as_ref().map_or(0, |turns| turns.receives);
        self.owed > receives || self.is_held_up
    }

    /// Takes commands and publishes completions. Returns whether the NIC got work.
    pub(super) fn pass(
        &mut self,
        now: Time,
        port: &mut dyn LocalPort,
        counters: &mut DoorCounters,
        is_draining: bool,
    ) -> Result<bool, Broken> {
        let mut any = false;
        // A draining process begins nothing new.
        (self.is_held_up, self.lacks_room) = (is_draining, false);
        let mut entry = [0; COMMAND_BYTES];
        for _ in 0..COMMANDS_PER_TURN {
            if is_draining || !self.end.command(&mut entry)? {
                break;
            }
            if self.end.room()? <= self.owed {
                self.lacks_room = true;
                break;
            }
            let taken = match Command::parse(&entry) {
                Ok(command) => self.take(now, port, &command),
                Err(error) => {
                    tracing::debug!(client = self.client.0, %error, "malformed command");
                    counters.malformed += 1;
                    self.end.complete(&malformed(&entry));
                    Taken::refused(Status::Malformed)
                }
            };
            if taken == Taken::Later {
                self.is_held_up = true;
                break;
            }
            self.end.taken();
            counters.commands += 1;
            counters.completions += u64::from(matches!(taken, Taken::Ended(..)));
            any |= taken == Taken::UnderWay;
        }
        self.publish();
        Ok(any)
    }

    /// Makes completions and room visible to the program, and wakes it if it sleeps. In a virtual
    /// lab, its turn begins later.
    pub(super) fn publish(&mut self) {
        if self.end.publish() {
            match &mut self.turns {
                None => self.wake(),
                Some(turns) => turns.has_news = true,
            }
        }
    }

    fn take(&mut self, now: Time, port: &mut dyn LocalPort, command: &Command<'_>) -> Taken {
        let taken = port.command(now, self.client, command);
        match taken {
            Taken::Later => {}
            Taken::UnderWay => {
                self.owed += 1;
                let is_receive = matches!(command.request, Request::Receive { .. });
                if is_receive && let Some(turns) = &mut self.turns {
                    turns.receives += 1;
                }
            }
            Taken::Ended(status, word) => {
                let was_taken_back = command.request == Request::CancelReceive && word == 1;
                self.owed -= u64::from(was_taken_back);
                if was_taken_back && let Some(turns) = &mut self.turns {
                    turns.receives -= 1;
                }
                self.end.complete(&Completion::End {
                    name: command.name,
                    status,
                    word,
                    bytes: 0,
                });
            }
        }
        taken
    }

    /// Requests a wake from the program. Returns whether the program already has work for the NIC.
    pub(super) fn before_sleep(&self) -> bool {
        if self.lacks_room {
            self.end.sleeps_until_room();
            return self.end.has_more_room();
        }
        self.end.sleeps(true);
        // Commands that are held up continue after another event.
        self.end.has_commands() && !self.is_held_up
    }

    pub(super) fn after_sleep(&self) {
        self.end.sleeps(false);
    }
}

/// The completion of an entry that is not a valid command.
fn malformed(entry: &[u8; COMMAND_BYTES]) -> Completion {
    let mut name = [0; 8];
    name.copy_from_slice(&entry[8..16]);
    Completion::End {
        name: u64::from_le_bytes(name),
        status: Status::Malformed,
        word: 0,
        bytes: 0,
    }
}

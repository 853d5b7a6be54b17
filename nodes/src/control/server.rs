//! The server of the control socket, which never blocks.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::{Buf, BytesMut};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{MsgFlags, recv};

use super::protocol::{MAX_LINE_BYTES, Request};
use super::reply::{Code, Refusal, Reply};

/// Maximum number of clients. Further ones wait until a client disconnects, or has been idle long
/// enough to be closed.
const MAX_CLIENTS: usize = 32;
/// Idle time after which a client may be closed to make room for another.
const IDLE: Duration = Duration::from_millis(200);
/// Idle time after which a client with unread replies may be closed: longer than any client waits
/// for a reply.
const DEAF: Duration = Duration::from_secs(10);
/// Longest request in bytes; replies may be longer. Enough for a traffic run with a few thousand
/// participants.
const MAX_REQUEST_BYTES: usize = 256 << 10;
/// Bytes read from a client at once.
const READ_BYTES: usize = 16 << 10;
/// Maximum number of clients served in one turn.
const EVENTS: usize = 16;
/// Maximum number of requests of one client handled in one turn.
const REQUESTS: usize = 16;
/// `epoll` data of the listening socket; clients use their slot numbers.
const LISTENER: u64 = u64::MAX;
/// `epoll` data of the first other descriptor; the others follow.
const WATCHED: u64 = 1 << 32;
/// Pause in accepting clients after running out of descriptors or slots.
const PAUSE: Duration = Duration::from_millis(100);

/// The listening socket and its clients, behind one descriptor that becomes readable when any of
/// them, or any other watched descriptor, is ready.
#[derive(Debug)]
pub struct Server {
    epoll: Epoll,
    listener: UnixListener,
    listening: bool,
    /// End of the pause in accepting, for lack of descriptors or slots.
    paused: Option<Instant>,
    clients: [Option<Client>; MAX_CLIENTS],
    /// Clients accepted so far.
    accepted: u64,
}

/// A client's unique number, never reused.
pub type ClientId = u64;

#[derive(Debug)]
struct Client {
    id: ClientId,
    stream: UnixStream,
    input: BytesMut,
    output: BytesMut,
    /// Whether the client is being closed: it reads no more requests, and ends after the last
    /// reply.
    closing: bool,
    /// Whether replies are unwritten, or requests read but not handled. The client then waits until
    /// its socket is writable, and no further request is read, so that its socket buffer bounds the
    /// backlog.
    unfinished: bool,
    /// The value of `unfinished` last registered with `epoll`.
    waits_to_write: bool,
    /// Time of the last byte read or written.
    active: Instant,
    /// Whether the client has claimed the node, and must not be closed for being idle.
    keeps: bool,
}

/// The results of [`Server::serve`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Served {
    pub requests: usize,
    /// Bit mask of the watched descriptors that are readable, in their order.
    pub readable: u32,
    /// Clients that disconnected, failed, or were closed.
    pub gone: Vec<ClientId>,
}

impl Server {
    /// Listens at `path`, which must not exist, and watches the descriptors `watched`: at most 32,
    /// open at least as long as the server.
    ///
    /// # Errors
    /// When the socket cannot be made.
    pub fn bind(path: &Path, watched: &[BorrowedFd<'_>]) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        listener.set_nonblocking(true)?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        epoll.add(&listener, EpollEvent::new(EpollFlags::EPOLLIN, LISTENER))?;
        for (fd, data) in watched.iter().zip(WATCHED..) {
            epoll.add(fd, EpollEvent::new(EpollFlags::EPOLLIN, data))?;
        }
        Ok(Self {
            epoll,
            listener,
            listening: true,
            paused: None,
            clients: Default::default(),
            accepted: 0,
        })
    }

    /// Readable when [`serve`](Self::serve) has something to do.
    pub fn raw_fd(&self) -> RawFd {
        self.epoll.0.as_raw_fd()
    }

    /// As [`raw_fd`](Self::raw_fd).
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }

    /// Accepts clients, reads requests, has them handled, and writes replies, without blocking.
    ///
    /// # Errors
    /// Errors of the server; the error of a client only closes that client.
    pub fn serve<E: Into<Refusal>>(
        &mut self,
        mut answer: impl FnMut(ClientId, Request) -> Result<serde_json::Value, E>,
    ) -> io::Result<Served> {
        let mut answer = |client, request| answer(client, request).map_err(Into::into);
        if self.paused.is_some_and(|until| Instant::now() >= until) {
            self.paused = None;
            self.listen(true)?;
        }
        let mut events = [EpollEvent::empty(); EVENTS];
        let count = match self.epoll.wait(&mut events, EpollTimeout::ZERO) {
            Err(nix::errno::Errno::EINTR) => 0,
            result => result?,
        };
        let mut served = Served::default();
        for event in &events[..count] {
            match event.data() {
                LISTENER => self.accept_all(&mut served)?,
                data @ WATCHED.. => served.readable |= 1 << (data - WATCHED),
                slot => self.serve_client(slot as usize, &mut answer, &mut served)?,
            }
        }
        Ok(served)
    }

    /// During a pause in accepting: the time until [`serve`] should be called even if nothing is
    /// readable.
    ///
    /// [`serve`]: Self::serve
    pub fn pause(&self) -> Option<Duration> {
        let until = self.paused?;
        Some(until.saturating_duration_since(Instant::now()))
    }

    fn accept_all(&mut self, served: &mut Served) -> io::Result<()> {
        if self.clients.iter().all(Option::is_some) && !self.make_room(served) {
            return self.rest();
        }
        while let Some(slot) = self.clients.iter().position(Option::is_none) {
            match self.accept(slot) {
                Ok(client) => self.clients[slot] = Some(client),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => return Ok(()),
                    // The client is already gone.
                    ErrorKind::ConnectionAborted | ErrorKind::Interrupted => {}
                    // Descriptors or memory are short. Stop watching the listening socket, which
                    // stays readable and would cause a busy loop.
                    _ => {
                        tracing::debug!(%error, "cannot accept a control client");
                        return self.rest();
                    }
                },
            }
        }
        // Clients that are still waiting make the socket readable again.
        Ok(())
    }

    /// Pauses accepting.
    fn rest(&mut self) -> io::Result<()> {
        self.paused = Some(Instant::now() + PAUSE);
        self.listen(false)
    }

    /// Closes the client that has been idle longest, if it may be closed. Otherwise forgotten
    /// connections could make the process look stopped.
    fn make_room(&mut self, served: &mut Served) -> bool {
        let now = Instant::now();
        let clients = self.clients.iter().enumerate();
        let idle = clients.filter_map(|(slot, client)| Some((client.as_ref()?.idle(now)?, slot)));
        let Some((span, slot)) = idle.max() else {
            return false;
        };
        if let Some(client) = self.clients[slot].take() {
            tracing::info!(
                idle_ms = span.as_millis() as u64,
                "closed the longest-idle control client: at most {MAX_CLIENTS} are served at once"
            );
            served.gone.push(client.id);
        }
        true
    }

    fn accept(&mut self, slot: usize) -> io::Result<Client> {
        let (stream, _) = self.listener.accept()?;
        stream.set_nonblocking(true)?;
        let event = EpollEvent::new(EpollFlags::EPOLLIN, slot as u64);
        self.epoll.add(&stream, event)?;
        self.accepted += 1;
        Ok(Client::new(self.accepted, stream))
    }

    fn listen(&mut self, on: bool) -> io::Result<()> {
        self.listening = on;
        let flags = if on {
            EpollFlags::EPOLLIN
        } else {
            EpollFlags::empty()
        };
        Ok(self
            .epoll
            .modify(self.listener.as_fd(), &mut EpollEvent::new(flags, LISTENER))?)
    }

    fn serve_client(
        &mut self,
        slot: usize,
        answer: &mut impl FnMut(ClientId, Request) -> Result<serde_json::Value, Refusal>,
        served: &mut Served,
    ) -> io::Result<()> {
        let Some(client) = self.clients.get_mut(slot).and_then(Option::as_mut) else {
            return Ok(());
        };
        let id = client.id;
        let (requests, alive) = client.serve(answer);
        served.requests += requests;
        if !alive {
            served.gone.push(id);
            self.clients[slot] = None;
            if !self.listening {
                self.paused = None;
                self.listen(true)?;
            }
        } else if client.waits_to_write != client.unfinished {
            client.waits_to_write = client.unfinished;
            let flags = if client.unfinished {
                EpollFlags::EPOLLOUT
            } else {
                EpollFlags::EPOLLIN
            };
            let mut event = EpollEvent::new(flags, slot as u64);
            if self.epoll.modify(&client.stream, &mut event).is_err() {
                served.gone.push(id);
                self.clients[slot] = None;
            }
        }
        Ok(())
    }
}

impl Client {
    fn new(id: ClientId, stream: UnixStream) -> Self {
        let (input, output) = (BytesMut::new(), BytesMut::new());
        Self {
            id,
            stream,
            input,
            output,
            closing: false,
            unfinished: false,
            waits_to_write: false,
            active: Instant::now(),
            keeps: false,
        }
    }

    /// Idle time of the client, if long enough to close it.
    fn idle(&self, now: Instant) -> Option<Duration> {
        let idle = now.saturating_duration_since(self.active);
        let patience = if self.unfinished { DEAF } else { IDLE };
        (!self.keeps && idle >= patience && !self.has_sent()).then_some(idle)
    }

    /// Whether unread bytes have arrived. Then this process may have been suspended instead of the
    /// client being idle.
    fn has_sent(&self) -> bool {
        let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
        let peeked = recv(self.stream.as_raw_fd(), &mut [0], flags);
        !self.unfinished && peeked.is_ok_and(|bytes| bytes > 0)
    }

    /// Reads requests, handles them and writes replies. Returns the number of requests handled, and
    /// whether to keep the client.
    fn serve(
        &mut self,
        answer: &mut impl FnMut(ClientId, Request) -> Result<serde_json::Value, Refusal>,
    ) -> (usize, bool) {
        if !self.unfinished && !self.read() {
            return (0, false);
        }
        let mut requests = 0;
        loop {
            if !self.write() {
                return (requests, false);
            }
            self.unfinished = !self.output.is_empty() || requests == REQUESTS;
            if self.unfinished {
                return (requests, true);
            }
            if self.closing {
                return (requests, false);
            }
            let Some(line) = self.next_line() else {
                return (requests, true);
            };
            requests += 1;
            let result = match line {
                Ok(line) => serde_json::from_slice::<Request>(&line)
                    .map_err(|error| {
                        Refusal::new(Code::NotUnderstood, format!("invalid request: {error}"))
                    })
                    .and_then(|request| {
                        let claims =
                            matches!(request, Request::Claim(_) | Request::ClaimUnit { .. });
                        let result = answer(self.id, request);
                        self.keeps |= claims && result.is_ok();
                        result
                    }),
                Err(error) => {
                    self.closing = true;
                    Err(error)
                }
            };
            self.reply(result);
        }
    }

    /// Reads once from the socket. Returns whether the client is still connected.
    fn read(&mut self) -> bool {
        let old = self.input.len();
        self.input.resize(old + READ_BYTES, 0);
        let result = self.stream.read(&mut self.input[old..]);
        self.input.truncate(old + result.as_ref().map_or(0, |&n| n));
        if result.is_ok() {
            self.active = Instant::now();
        }
        match result {
            Ok(bytes) => bytes > 0,
            Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }

    /// The next complete line, without its end. Skips empty lines.
    fn next_line(&mut self) -> Option<Result<BytesMut, Refusal>> {
        loop {
            let Some(end) = self.input.iter().position(|&byte| byte == b'\n') else {
                if self.input.len() > MAX_REQUEST_BYTES {
                    self.input.clear();
                    let text = format!("the request exceeds {MAX_REQUEST_BYTES} bytes");
                    return Some(Err(Refusal::new(Code::TooLong, text)));
                }
                return None;
            };
            let line = self.input.split_to(end);
            self.input.advance(1);
            if !line.iter().all(u8::is_ascii_whitespace) {
                return Some(Ok(line));
            }
        }
    }

    fn reply(&mut self, result: Result<serde_json::Value, Refusal>) {
        let text = |reply: &Reply| {
            serde_json::to_vec(reply).unwrap_or_else(|_| br#"{"ok":false}"#.to_vec())
        };
        let mut line = text(&Reply::from(result));
        if line.len() >= MAX_LINE_BYTES {
            line = text(&Reply::from(Err(Refusal::new(
                Code::TooLong,
                "the reply is too long",
            ))));
        }
        self.output.extend_from_slice(&line);
        self.output.extend_from_slice(b"\n");
    }

    /// Writes as much as the socket takes. Returns whether the client is still connected.
    fn write(&mut self) -> bool {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(0) => return false,
                Ok(bytes) => {
                    self.output.advance(bytes);
                    self.active = Instant::now();
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    }
}

//! A small HTTP/1.1 server for [`view`](crate::view) and `phitwire metrics`.
//!
//! Clients are untrusted, so everything is limited: connections, bytes of a request, and the time
//! to read a request and to write a response. Each connection has its own thread, so that a slow
//! client delays no other; if there are too many, the one idle longest is closed. `httparse` parses
//! the requests.

mod connection;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use phitwire_nodes::stop::Stop;

/// Maximum number of open connections.
const MOST_CONNECTIONS: usize = 64;
/// Maximum number of threads. It exceeds the connections, because a closed connection's thread may
/// still be running.
const MOST_THREADS: usize = 2 * MOST_CONNECTIONS;
/// Interval of checks whether a thread has ended.
const TURN: Duration = Duration::from_millis(5);
/// Pause after a failed accept, such as with no file descriptor left.
const RECOVER: Duration = Duration::from_millis(100);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// HTTP method, such as `GET`.
    pub method: String,
    /// Path and query as sent.
    pub target: String,
    pub body: Vec<u8>,
    headers: Vec<(String, String)>,
    /// Whether this is the last request of its connection.
    is_last: bool,
}

impl Request {
    /// The value of the first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(own, _)| own.eq_ignore_ascii_case(name))?;
        Some(&found.1)
    }

    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or("")
    }

    /// The first query value of this name, undecoded.
    pub fn given(&self, name: &str) -> Option<&str> {
        let (_, query) = self.target.split_once('?')?;
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    }
}

#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    /// Headers other than those for the length of the body and for keeping the connection open.
    pub headers: Vec<(&'static str, String)>,
    /// The body, shared between connections.
    pub body: Arc<[u8]>,
}

impl Answer {
    /// A response with this content type, such as `text/plain`.
    pub fn new(status: u16, kind: &str, body: impl Into<Arc<[u8]>>) -> Self {
        Self {
            status,
            headers: vec![("Content-Type", kind.to_owned())],
            body: body.into(),
        }
    }

    /// A response with a line of plain text.
    pub fn plain(status: u16, text: &str) -> Self {
        let text = format!("{text}\n").into_bytes();
        Self::new(status, "text/plain; charset=utf-8", text)
    }
}

#[derive(Debug, Default)]
struct Open(Mutex<BTreeMap<u64, Connected>>);

#[derive(Debug)]
struct Connected {
    stream: TcpStream,
    /// Time of its last request, or of its opening.
    asked: Instant,
}

impl Open {
    fn held(&self) -> MutexGuard<'_, BTreeMap<u64, Connected>> {
        // Ignore poisoning: no panic can interrupt an update.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection. If there are too many, closes the one idle longest.
    fn add(&self, number: u64, stream: TcpStream) {
        let mut open = self.held();
        while open.len() >= MOST_CONNECTIONS {
            let Some((&oldest, _)) = open.iter().min_by_key(|(_, one)| one.asked) else {
                break;
            };
            if let Some(one) = open.remove(&oldest) {
                let _ = one.stream.shutdown(Shutdown::Both);
            }
        }
        let asked = Instant::now();
        open.insert(number, Connected { stream, asked });
    }

    fn asks(&self, number: u64) {
        if let Some(one) = self.held().get_mut(&number) {
            one.asked = Instant::now();
        }
    }

    fn remove(&self, number: u64) {
        self.held().remove(&number);
    }

    fn end_all(&self) {
        for one in self.held().values() {
            let _ = one.stream.shutdown(Shutdown::Both);
        }
    }
}

/// Responds to requests until `stop` is requested, then closes all connections.
///
/// # Errors
/// If waiting for connections fails.
pub fn serve(
    listener: &TcpListener,
    stop: &Stop,
    answer: impl Fn(&Request) -> Answer + Sync,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let (open, threads) = (Open::default(), AtomicUsize::new(0));
    thread::scope(|scope| {
        let mut number = 0;
        let ended = loop {
            if stop.requests() > 0 {
                break Ok(());
            }
            let stream = match next(listener, stop) {
                Ok(Some(stream)) => stream,
                Ok(None) => continue,
                Err(error) => break Err(error),
            };
            let Ok(own) = stream.try_clone() else {
                continue;
            };
            // Wait for threads of closed connections, which end soon.
            while threads.load(Ordering::SeqCst) >= MOST_THREADS && stop.requests() == 0 {
                thread::sleep(TURN);
            }
            number += 1;
            open.add(number, stream);
            threads.fetch_add(1, Ordering::SeqCst);
            let (open, threads, answer) = (&open, &threads, &answer);
            let work = move || {
                connection::converse(&own, &|| open.asks(number), answer);
                open.remove(number);
                threads.fetch_sub(1, Ordering::SeqCst);
            };
            let builder = thread::Builder::new().name("reply".to_owned());
            if builder.spawn_scoped(scope, work).is_err() {
                open.remove(number);
                threads.fetch_sub(1, Ordering::SeqCst);
            }
        };
        open.end_all();
        ended
    })
}

/// The next connection; `None` if a signal arrives first.
fn next(listener: &TcpListener, stop: &Stop) -> io::Result<Option<TcpStream>> {
    let mut either = [
        PollFd::new(listener.as_fd(), PollFlags::POLLIN),
        PollFd::new(stop.wake_fd(), PollFlags::POLLIN),
    ];
    match poll(&mut either, PollTimeout::NONE) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => {}
        Err(errno) => return Err(errno.into()),
    }
    match listener.accept() {
        Ok((stream, _)) => Ok(Some(stream)),
        Err(error) => {
            if !matches!(
                error.kind(),
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
            ) {
                // Retry later: the client has disconnected, or resources are exhausted for now.
                thread::sleep(RECOVER);
            }
            Ok(None)
        }
    }
}

//! A small server of HTTP/1.1, for those who look at a lab: [`view`](crate::view) and `phitwire metrics`.
//!
//! Whoever reaches its address may be anybody, so everything has a limit: connections, bytes of a
//! request, and the time that reading one and writing an answer take. Each connection has a thread of
//! its own, so that who is slow keeps nobody else waiting; when there are too many, the one on which
//! nothing has been asked for longest is closed. Requests are parsed by `httparse`.

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

/// Connections at a time.
const MOST_CONNECTIONS: usize = 64;
/// Threads at a time: that of a connection which was closed may still be at work.
const MOST_THREADS: usize = 2 * MOST_CONNECTIONS;
/// Between two looks whether a thread has ended.
const TURN: Duration = Duration::from_millis(5);
/// How long nobody is taken in after that has failed, as with no file descriptor left.
const RECOVER: Duration = Duration::from_millis(100);

/// What somebody asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// `GET` and the like.
    pub method: String,
    /// Path and query, as they were sent.
    pub target: String,
    /// Bytes that came behind the head.
    pub body: Vec<u8>,
    headers: Vec<(String, String)>,
    /// Whether nothing more is asked for on this connection.
    is_last: bool,
}

impl Request {
    /// A header's value: the first of that name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(own, _)| own.eq_ignore_ascii_case(name))?;
        Some(&found.1)
    }

    /// The path, without the query.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or("")
    }

    /// The first value of that name in the query, as it was sent.
    pub fn given(&self, name: &str) -> Option<&str> {
        let (_, query) = self.target.split_once('?')?;
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    }
}

/// What is answered.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Headers beside those that say how long it is and whether more can be asked for.
    pub headers: Vec<(&'static str, String)>,
    /// The body, which many may be sent.
    pub body: Arc<[u8]>,
}

impl Answer {
    /// A body of a kind, such as `text/plain`.
    pub fn new(status: u16, kind: &str, body: impl Into<Arc<[u8]>>) -> Self {
        Self {
            status,
            headers: vec![("Content-Type", kind.to_owned())],
            body: body.into(),
        }
    }

    /// A line of text for people.
    pub fn plain(status: u16, text: &str) -> Self {
        let text = format!("{text}\n").into_bytes();
        Self::new(status, "text/plain; charset=utf-8", text)
    }
}

/// Connections that are open.
#[derive(Debug, Default)]
struct Open(Mutex<BTreeMap<u64, Connected>>);

#[derive(Debug)]
struct Connected {
    stream: TcpStream,
    /// When something was last asked for on it, or it began.
    asked: Instant,
}

impl Open {
    fn held(&self) -> MutexGuard<'_, BTreeMap<u64, Connected>> {
        // Nobody leaves anything half done in there.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a connection in. With too many, the one on which nothing was asked for longest ends.
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

/// Answers until the flag is raised; then all connections are closed.
///
/// # Errors
/// When it cannot be waited for connections.
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
            // Those whose connections were closed end soon.
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

/// The next connection, if one comes before a signal does.
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
                // It has gone already, or there is no room for it: others may have.
                thread::sleep(RECOVER);
            }
            Ok(None)
        }
    }
}

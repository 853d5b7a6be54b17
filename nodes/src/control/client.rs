//! The client end of a control socket.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use phitwire_client::patience::{Patience, overload};
use serde::Serialize;
use serde_json::Value;
use socket2::{Domain, SockAddr, Socket, Type};

use super::protocol::{MAX_LINE_BYTES, Request};
use super::reply::{Refusal, Reply};
use crate::nearest::nearest;
use crate::run_dir::{LabDir, RunDirError};

/// Time limit for a reply, counted only while this process runs. A node replies between two turns
/// of its event loop.
pub const TIMEOUT: Duration = Duration::from_secs(5);

/// Length of one blocking read; the time limit is checked after each.
const SLICE: Duration = Duration::from_millis(100);

/// Why a request got no reply.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The name of the lab or node is invalid.
    #[error(transparent)]
    Name(#[from] RunDirError),
    /// No process listens.
    #[error("node `{node}` of lab `{lab}` does not answer: {source}{hint}")]
    Unreachable {
        lab: String,
        node: String,
        source: io::Error,
        /// Text that lists the nodes of the lab, or says that it is not running.
        hint: String,
    },
    /// The process exists but does not reply: it is stopped, or the machine is overloaded.
    #[error(
        "no answer in time: the process is stopped, or the machine is overloaded{}",
        overload()
    )]
    Silent,
    /// The process has read only part of this or an earlier request: it would read anything sent
    /// later on this connection as the rest of that request.
    #[error("the process stopped in the middle of reading a request; reconnect to continue")]
    HalfSent,
    #[error("the control connection failed: {0}")]
    Io(io::Error),
    #[error("the reply is malformed: {0}")]
    Malformed(#[from] serde_json::Error),
    #[error("{0}")]
    Refused(Box<Refusal>),
}

impl ClientError {
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }
}

impl From<io::Error> for ClientError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Self::Silent,
            _ => Self::Io(error),
        }
    }
}

/// A connection to the control socket of one process.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<UnixStream>,
    /// The part of the next reply that has arrived.
    line: Vec<u8>,
    /// Number of outstanding replies to requests that have timed out.
    owed: usize,
    /// Whether the last request was sent only in part.
    half_sent: bool,
    /// Default time limit.
    limit: Duration,
}

/// Whether a blocking call timed out.
fn is_over(error: &io::Error) -> bool {
    use io::ErrorKind::{TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut)
}

impl Client {
    /// Connects to `node` of `lab`.
    ///
    /// # Errors
    /// When there is no such process.
    pub fn connect(lab: &str, node: &str) -> Result<Self, ClientError> {
        Self::connect_for(lab, node, TIMEOUT)
    }

    /// Connects to `node` of `lab`, with this time limit for connecting and for each reply.
    ///
    /// # Errors
    /// When there is no such process, or it does not accept the connection.
    pub fn connect_for(lab: &str, node: &str, timeout: Duration) -> Result<Self, ClientError> {
        let dir = LabDir::new(lab)?;
        let path = dir.socket(node)?;
        Self::connect_within(&path, timeout).map_err(|source| {
            let hint = match dir.nodes().unwrap_or_default() {
                nodes if nodes.is_empty() => "; the lab is not running".to_owned(),
                nodes => {
                    let meant = nearest(node, &nodes).filter(|other| *other != node);
                    let meant = meant.map(|other| format!("; did you mean `{other}`?"));
                    let meant = meant.unwrap_or_default();
                    format!("{meant}; nodes of this lab: {}", nodes.join(", "))
                }
            };
            ClientError::Unreachable {
                lab: lab.into(),
                node: node.into(),
                source,
                hint,
            }
        })
    }

    /// Connects to the control socket at `path`.
    ///
    /// # Errors
    /// When no process listens there.
    pub fn connect_to(path: &Path) -> io::Result<Self> {
        Self::connect_within(path, TIMEOUT)
    }

    /// Connects to the control socket at `path`, with this time limit for connecting and for each
    /// reply. A stopped process does not accept: once its queue is full, connecting would block
    /// without limit.
    ///
    /// # Errors
    /// When no process listens there, or none accepts in time, or the time is zero.
    pub fn connect_within(path: &Path, timeout: Duration) -> io::Result<Self> {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        let slice = not_zero(timeout)?.min(SLICE);
        socket.set_write_timeout(Some(slice))?;
        let (address, mut patience) = (SockAddr::unix(path)?, Patience::new(timeout));
        while let Err(error) = socket.connect(&address) {
            if !is_over(&error) || patience.left(slice).is_none() {
                return Err(error);
            }
        }
        Ok(Self {
            stream: BufReader::new(socket.into()),
            line: Vec::new(),
            owed: 0,
            half_sent: false,
            limit: timeout,
        })
    }

    /// Sets the time limit for a reply.
    ///
    /// # Errors
    /// When the time is zero.
    pub fn set_timeout(&mut self, timeout: Duration) -> io::Result<()> {
        self.limit = not_zero(timeout)?;
        let slice = timeout.min(SLICE);
        self.stream.get_ref().set_write_timeout(Some(slice))
    }

    /// Id of the process at the other end, if the kernel reports it.
    pub fn process(&self) -> Option<u32> {
        let credentials = getsockopt(self.stream.get_ref(), PeerCredentials).ok()?;
        u32::try_from(credentials.pid()).ok().filter(|&pid| pid > 0)
    }

    /// Sends a request and waits for the reply's data. After [`ClientError::Silent`] the connection
    /// can be used again: the next request is sent once the process has replied to the earlier
    /// ones. After [`ClientError::HalfSent`] it cannot be used.
    ///
    /// # Errors
    /// When the connection fails or the process refuses.
    pub fn ask(&mut self, request: &Request) -> Result<Value, ClientError> {
        while self.owed > 0 {
            self.reply(&mut Patience::new(self.limit))?;
            self.owed -= 1;
        }
        self.send(request)?;
        let answer = self.answer(&mut Patience::new(self.limit));
        self.owed += usize::from(matches!(answer, Err(ClientError::Silent)));
        answer
    }

    /// Sends a request without waiting for the reply; see [`answer_within`](Self::answer_within).
    ///
    /// # Errors
    /// [`ClientError::Silent`] when nothing of the request was sent, [`ClientError::HalfSent`] when
    /// only a part was; or when the connection fails.
    pub fn send(&mut self, request: &impl Serialize) -> Result<(), ClientError> {
        if self.half_sent {
            return Err(ClientError::HalfSent);
        }
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        let mut left = line.as_slice();
        let mut patience = Patience::new(self.limit);
        while !left.is_empty() {
            let error = match self.stream.get_mut().write(left) {
                Ok(0) => io::Error::from(io::ErrorKind::WriteZero).into(),
                Ok(written) => {
                    left = &left[written..];
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if is_over(&error) && patience.left(SLICE).is_some() => continue,
                Err(error) => ClientError::from(error),
            };
            if left.len() == line.len() {
                return Err(error);
            }
            self.half_sent = true;
            return Err(match error {
                ClientError::Silent => ClientError::HalfSent,
                broken => broken,
            });
        }
        Ok(())
    }

    /// Waits up to `timeout` for the reply to the request sent; zero only checks. After
    /// [`ClientError::Silent`] it can be called again.
    ///
    /// # Errors
    /// When the connection fails or the process refuses.
    pub fn answer_within(&mut self, timeout: Duration) -> Result<Value, ClientError> {
        self.answer(&mut Patience::new(timeout))
    }

    /// Like [`answer_within`](Self::answer_within), with the time left of a limit that several
    /// replies share.
    ///
    /// # Errors
    /// When the connection fails or the process refuses.
    pub fn answer(&mut self, patience: &mut Patience) -> Result<Value, ClientError> {
        let result = self.reply(patience)?.into_result();
        result.map_err(|refusal| ClientError::Refused(refusal.into()))
    }

    /// The next reply. A timeout keeps the part that has arrived.
    fn reply(&mut self, patience: &mut Patience) -> Result<Reply, ClientError> {
        let mut asleep = Duration::ZERO;
        loop {
            // Read data that has arrived even after the time limit.
            let left = patience.left(asleep);
            asleep = left.map_or(Duration::ZERO, |left| left.min(SLICE));
            let stream = self.stream.get_ref();
            stream.set_nonblocking(left.is_none())?;
            if left.is_some() {
                stream.set_read_timeout(Some(asleep))?;
            }
            let room = (MAX_LINE_BYTES + 1).saturating_sub(self.line.len());
            let read = (&mut self.stream)
                .take(room as u64)
                .read_until(b'\n', &mut self.line);
            self.stream.get_ref().set_nonblocking(false)?;
            match read {
                Ok(_) => break,
                Err(error) if is_over(&error) && left.is_some() => {}
                Err(error) => return Err(error.into()),
            }
        }
        let line = std::mem::take(&mut self.line);
        if line.last() != Some(&b'\n') {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        Ok(serde_json::from_slice(&line)?)
    }
}

fn not_zero(time: Duration) -> io::Result<Duration> {
    match time.is_zero() {
        true => Err(io::ErrorKind::InvalidInput.into()),
        false => Ok(time),
    }
}

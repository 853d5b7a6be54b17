//! Attaches a program to a NIC.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::socket::sockopt::{ReceiveTimeout, SendTimeout};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, setsockopt, socket};
use nix::sys::time::{TimeVal, TimeValLike};
use phitwire_framing::door::EntryError;
use phitwire_framing::door::hello::{ANY_MEMBER, DESCRIPTORS, Entry, HELLO_BYTES, Hello, Welcome};
use phitwire_framing::door::segment::MOST_DATA;

use crate::descriptors::{self, Event};
use crate::doors;
use crate::patience::{Patience, overload};
use crate::ring::ClientEnd;
use crate::{Mapping, Nic};

/// Time limit for each step of an attachment. It counts only while the program runs: on an
/// overloaded machine, the NIC's process may be scheduled late for each step.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Length of one blocking call; the time limit is checked after each.
const SLICE: Duration = Duration::from_millis(100);

/// The properties that a program requests from its NIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Number of the job, known only to its programs.
    pub job: u64,
    /// Member number of the program in the job at this NIC, 0 to 254; `None`: any free one.
    pub member: Option<u8>,
    /// Bytes of data memory; others can access the parts that are registered. Rounded up to a
    /// multiple of 64 KiB, all of which the program can use.
    pub data_bytes: u64,
}

/// Why a program could not attach.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The options are invalid.
    #[error("{path}: {what}")]
    Options {
        /// Path of the door.
        path: PathBuf,
        /// The invalid option, and the valid values.
        what: String,
    },
    /// The socket at the path is not a door.
    #[error("{path}: {what}; expected the door of a NIC, NODE.door{}", doors::note_of_others(.path))]
    NotADoor {
        /// The path.
        path: PathBuf,
        /// What was found instead of a door.
        what: String,
    },
    /// No NIC listens at the path.
    #[error(
        "{path}: no NIC is listening ({source}); expected the socket of a running NIC in the \
         directory of its lab: start the lab, or specify another door{}",
        doors::note_of_others(.path)
    )]
    Connect {
        /// Path of the door.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// No answer arrived in time.
    #[error(
        "{path}: no answer within {} s of this program's running time{overload}; expected a \
         welcome: check whether the NIC is stopped or starved of processor time{}, and try again",
        .patience.as_secs(),
        doors::note_of_wrong_name(.path)
    )]
    Silent {
        /// Path of the door.
        path: PathBuf,
        /// The time limit, counted only while the program ran.
        patience: Duration,
        /// A note on an overloaded machine; may be empty.
        overload: String,
    },
    /// The connection broke.
    #[error(
        "{path}: the connection broke ({source}); expected a welcome with {DESCRIPTORS} \
         descriptors: check whether the NIC is still running, and the end of its log"
    )]
    Broke {
        /// Path of the door.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The NIC refuses the program.
    #[error("{path}: {}", refusal(*.entry))]
    Refused {
        /// Path of the door.
        path: PathBuf,
        /// Reason of the refusal.
        entry: Entry,
    },
    /// The answer is not a valid welcome.
    #[error(
        "{path}: malformed welcome ({error}); expected a NIC of this client's version: build both \
         from the same source"
    )]
    NotUnderstood {
        /// Path of the door.
        path: PathBuf,
        /// The parse error.
        error: EntryError,
    },
    /// The memory or descriptors sent with the welcome are unusable.
    #[error(
        "{path}: {what}; expected a NIC of this client's version: build both from the same source"
    )]
    Unfit {
        /// Path of the door.
        path: PathBuf,
        /// Description of the fault.
        what: String,
    },
}

/// The meaning of a refusal, and the remedy.
const fn refusal(entry: Entry) -> &'static str {
    match entry {
        Entry::Welcome => "malformed refusal",
        Entry::Full => {
            "the NIC has reached its limit of programs: end one of them, or use another door"
        }
        Entry::MemberTaken => {
            "the job already has this member here, or has no free member: choose another member, \
             or end the other program"
        }
        Entry::KeyTaken => {
            "another job uses the same key here: start all programs of this job with another number"
        }
        Entry::NoMemory => "the NIC cannot share that much memory: request fewer bytes of data",
        Entry::NoNumber => "the NIC is a spare and has no number yet: use another door",
        Entry::NotUnderstood => {
            "the NIC does not understand this client: build both from the same source"
        }
    }
}

impl Nic {
    /// Attaches to the NIC whose door is the socket at `path`. Waits up to [`PATIENCE`] for each
    /// step.
    ///
    /// # Errors
    /// See [`AttachError`]; its text names the door, the expectation and the remedy.
    pub fn attach(path: impl AsRef<Path>, options: &Options) -> Result<Self, AttachError> {
        Self::attach_within(path, options, PATIENCE)
    }

    /// Like `attach`, with a limit other than [`PATIENCE`].
    ///
    /// # Errors
    /// See [`AttachError`].
    pub fn attach_within(
        path: impl AsRef<Path>,
        options: &Options,
        patience: Duration,
    ) -> Result<Self, AttachError> {
        let path = path.as_ref();
        let hello = hello(path, options)?;
        // A control socket would not answer a hello.
        if let Some(what) = doors::control_socket(path) {
            return Err(not_a_door(path, &what));
        }
        let socket =
            connected(path, Patience::new(patience)).map_err(|source| match source.kind() {
                io::ErrorKind::WouldBlock => silent(path, patience),
                _ => AttachError::Connect {
                    path: path.into(),
                    source,
                },
            })?;
        greet(path, socket, &hello, patience)
    }
}

fn hello(path: &Path, options: &Options) -> Result<[u8; HELLO_BYTES], AttachError> {
    let wrong = |what| {
        let path = path.into();
        Err(AttachError::Options { path, what })
    };
    if options.member == Some(ANY_MEMBER) {
        return wrong(format!("invalid member {ANY_MEMBER}: expected 0 to 254"));
    }
    if options.data_bytes > MOST_DATA {
        return wrong(format!(
            "{} bytes of data requested, but the limit is {MOST_DATA}",
            options.data_bytes
        ));
    }
    let hello = Hello {
        member: options.member.unwrap_or(ANY_MEMBER),
        job: options.job,
        data_bytes: options.data_bytes,
    };
    let mut message = [0; HELLO_BYTES];
    hello.emit(&mut message);
    Ok(message)
}

fn not_a_door(path: &Path, what: &str) -> AttachError {
    AttachError::NotADoor {
        path: path.into(),
        what: what.into(),
    }
}

fn silent(path: &Path, patience: Duration) -> AttachError {
    AttachError::Silent {
        path: path.into(),
        patience,
        overload: overload(),
    }
}

/// Repeats a call that blocks for up to [`SLICE`] until it succeeds, fails for another reason, or
/// the limit has passed.
fn patiently<T>(mut patience: Patience, mut act: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match act() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if patience.left(SLICE).is_none() {
                    return Err(error);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Connects a socket to `path`. Its sends and receives block for up to [`SLICE`].
fn connected(path: &Path, patience: Patience) -> io::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    let slice = TimeVal::milliseconds(SLICE.as_millis() as i64);
    setsockopt(&socket, SendTimeout, &slice)?;
    setsockopt(&socket, ReceiveTimeout, &slice)?;
    let address = UnixAddr::new(path)?;
    // Wait while the listen queue is full of programs that a busy NIC has not accepted yet.
    patiently(patience, || Ok(connect(socket.as_raw_fd(), &address)?))?;
    Ok(socket)
}

/// Sends the hello, and builds the NIC from the answer.
fn greet(
    path: &Path,
    socket: OwnedFd,
    hello: &[u8; HELLO_BYTES],
    patience: Duration,
) -> Result<Nic, AttachError> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::WouldBlock => silent(path, patience),
        _ => AttachError::Broke {
            path: path.into(),
            source,
        },
    };
    let send = || descriptors::send(&socket, hello, &[]);
    patiently(Patience::new(patience), send).map_err(failed)?;
    let mut answer = [0; HELLO_BYTES];
    let foreign = || not_a_door(path, "another kind of process answers there");
    // A welcome is sent in one piece, so it arrives whole or not at all: part of an answer is from
    // another kind of process.
    let receive = || match descriptors::receive(&socket, &mut answer) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock && answer[0] != 0 => Ok(None),
        other => other.map(Some),
    };
    let descriptors = patiently(Patience::new(patience), receive).map_err(failed)?;
    let descriptors = descriptors.ok_or_else(foreign)?;
    let welcome = Welcome::parse(&answer).map_err(|error| match error {
        EntryError::Magic => foreign(),
        error => AttachError::NotUnderstood {
            path: path.into(),
            error,
        },
    })?;
    if welcome.entry != Entry::Welcome {
        let (path, entry) = (path.into(), welcome.entry);
        return Err(AttachError::Refused { path, entry });
    }
    let unfit = |what| AttachError::Unfit {
        path: path.into(),
        what,
    };
    let came = descriptors.len();
    let descriptors: [OwnedFd; DESCRIPTORS] = descriptors.try_into().map_err(|_| {
        unfit(format!(
            "received {came} descriptors, expected {DESCRIPTORS}"
        ))
    })?;
    let asked = Hello::parse(hello).map_or(0, |hello| hello.data_bytes);
    if welcome.data_bytes < asked {
        let came = welcome.data_bytes;
        return Err(unfit(format!(
            "received {came} bytes of data, expected {asked}"
        )));
    }
    let [memory, wakes_nic, wakes_us] = descriptors;
    let mapping = Mapping::open(memory, welcome.data_bytes);
    let mapping = mapping.map_err(|error| unfit(format!("cannot use its memory: {error}")))?;
    let event = |descriptor| {
        Event::of_another(descriptor)
            .map_err(|error| unfit(format!("cannot use its events: {error}")))
    };
    let events = [event(wakes_nic)?, event(wakes_us)?];
    let end = ClientEnd::new(Arc::new(mapping));
    Ok(Nic::new(end, welcome, socket, events))
}

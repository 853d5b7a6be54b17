//! How a program gets in.

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
use crate::patience::{Patience, overload};
use crate::ring::ClientEnd;
use crate::{Mapping, Nic};

/// Time limit for each step of an attachment, in time in which the program itself runs. The network
/// interface's process must be scheduled for each step, which takes long on an overloaded machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Length of one blocking call: the remaining time is checked after each.
const SLICE: Duration = Duration::from_millis(100);

/// What a program wants of its network interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Its job: a number that the programs of the job share, and nobody else knows.
    pub job: u64,
    /// Which of the job's programs on this network interface it is, 0 to 254; `None`: whichever is
    /// free.
    pub member: Option<u8>,
    /// Bytes of memory for its data, which others can reach once it is registered.
    pub data_bytes: u64,
}

/// Why a program was not let in.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The options are invalid.
    #[error("{place}: {what}")]
    Options {
        /// The door.
        place: PathBuf,
        /// What is wrong, and what can be.
        what: String,
    },
    /// Nobody listens there.
    #[error(
        "{place}: no network interface listens there ({source}); expected is the socket that a \
         running one has in the directory of its lab: start the lab, or name another door"
    )]
    Connect {
        /// The door.
        place: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// No answer came in time.
    #[error(
        "{place}: no answer within {} s in which this program ran{overload}; expected a welcome: \
         see whether the network interface is stopped or gets no processor, and try again",
        .patience.as_secs()
    )]
    Silent {
        /// The door.
        place: PathBuf,
        /// The limit, in time in which the program ran.
        patience: Duration,
        /// A note on an overloaded machine; may be empty.
        overload: String,
    },
    /// The connection broke.
    #[error(
        "{place}: the connection broke ({source}); expected a welcome with {DESCRIPTORS} \
         descriptors: see whether the network interface still runs, and what it last said"
    )]
    Broke {
        /// The door.
        place: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The network interface refuses the program.
    #[error("{place}: {}", refusal(*.entry))]
    Refused {
        /// The door.
        place: PathBuf,
        /// Why.
        entry: Entry,
    },
    /// The answer is no valid welcome.
    #[error(
        "{place}: the answer is no welcome ({error}); expected is a network interface of this \
         client's version: build both from the same source"
    )]
    NotUnderstood {
        /// The door.
        place: PathBuf,
        /// What is wrong with it.
        error: EntryError,
    },
    /// What came with the welcome is not what it has to be.
    #[error(
        "{place}: {what}; a network interface of this client's version does not do so: build both \
         from the same source"
    )]
    Unfit {
        /// The door.
        place: PathBuf,
        /// What it is.
        what: String,
    },
}

/// What a refusal means, and what helps.
const fn refusal(entry: Entry) -> &'static str {
    match entry {
        Entry::Welcome => "a welcome that is none",
        Entry::Full => {
            "the network interface has as many programs as it can have: end one of them, or use \
             another door"
        }
        Entry::MemberTaken => {
            "the job has such a member here already, or all of them: leave the member free, or end \
             the other"
        }
        Entry::KeyTaken => {
            "another job has the same key here: start all programs of the job with another number"
        }
        Entry::NoMemory => {
            "the network interface cannot share so much memory: ask for fewer bytes of data"
        }
        Entry::Nameless => {
            "the network interface has no number yet, as it is a spare: use another door"
        }
        Entry::NotUnderstood => {
            "the network interface does not understand this client: build both from the same source"
        }
    }
}

impl Nic {
    /// Attaches to the network interface whose door is the socket at `path`. It waits up to
    /// [`PATIENCE`] for each step.
    ///
    /// # Errors
    /// See [`AttachError`]; its text says where, what was expected, and what helps.
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
        let place = path.as_ref();
        let hello = hello(place, options)?;
        let socket =
            connected(place, Patience::new(patience)).map_err(|source| match source.kind() {
                io::ErrorKind::WouldBlock => silent(place, patience),
                _ => AttachError::Connect {
                    place: place.into(),
                    source,
                },
            })?;
        greet(place, socket, &hello, patience)
    }
}

fn hello(place: &Path, options: &Options) -> Result<[u8; HELLO_BYTES], AttachError> {
    let wrong = |what| {
        let place = place.into();
        Err(AttachError::Options { place, what })
    };
    if options.member == Some(ANY_MEMBER) {
        return wrong(format!("member {ANY_MEMBER}, where 0 to 254 are possible"));
    }
    if options.data_bytes > MOST_DATA {
        return wrong(format!(
            "{} bytes of data, where at most {MOST_DATA} are possible",
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

fn silent(place: &Path, patience: Duration) -> AttachError {
    AttachError::Silent {
        place: place.into(),
        patience,
        overload: overload(),
    }
}

/// Repeats a call that blocks for up to [`SLICE`] until it succeeds or the limit has passed.
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

/// Connects a socket to `place`. Its sends and receives block for up to [`SLICE`].
fn connected(place: &Path, patience: Patience) -> io::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    let slice = TimeVal::milliseconds(SLICE.as_millis() as i64);
    setsockopt(&socket, SendTimeout, &slice)?;
    setsockopt(&socket, ReceiveTimeout, &slice)?;
    let address = UnixAddr::new(place)?;
    // The listen queue may be full of programs that a busy network interface has not accepted yet.
    patiently(patience, || Ok(connect(socket.as_raw_fd(), &address)?))?;
    Ok(socket)
}

/// Says hello, and takes in what comes back.
fn greet(
    place: &Path,
    socket: OwnedFd,
    hello: &[u8; HELLO_BYTES],
    patience: Duration,
) -> Result<Nic, AttachError> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::WouldBlock => silent(place, patience),
        _ => AttachError::Broke {
            place: place.into(),
            source,
        },
    };
    let send = || descriptors::send(&socket, hello, &[]);
    patiently(Patience::new(patience), send).map_err(failed)?;
    let mut answer = [0; HELLO_BYTES];
    // The answer is sent in one piece: it arrives whole or not at all.
    let receive = || descriptors::receive(&socket, &mut answer);
    let descriptors = patiently(Patience::new(patience), receive).map_err(failed)?;
    let welcome = Welcome::parse(&answer).map_err(|error| AttachError::NotUnderstood {
        place: place.into(),
        error,
    })?;
    if welcome.entry != Entry::Welcome {
        let (place, entry) = (place.into(), welcome.entry);
        return Err(AttachError::Refused { place, entry });
    }
    let unfit = |what| AttachError::Unfit {
        place: place.into(),
        what,
    };
    let came = descriptors.len();
    let descriptors: [OwnedFd; DESCRIPTORS] = descriptors.try_into().map_err(|_| {
        unfit(format!(
            "{came} descriptors came, where {DESCRIPTORS} are expected"
        ))
    })?;
    let asked = Hello::parse(hello).map_or(0, |hello| hello.data_bytes);
    if welcome.data_bytes < asked {
        let came = welcome.data_bytes;
        return Err(unfit(format!("it gave {came} bytes of data for {asked}")));
    }
    let [memory, wakes_nic, wakes_us] = descriptors;
    let mapping = Mapping::open(memory, welcome.data_bytes);
    let mapping = mapping.map_err(|error| unfit(format!("its memory cannot be used: {error}")))?;
    let event = |descriptor| {
        Event::of_another(descriptor)
            .map_err(|error| unfit(format!("its events cannot be used: {error}")))
    };
    let events = [event(wakes_nic)?, event(wakes_us)?];
    let end = ClientEnd::new(Arc::new(mapping));
    Ok(Nic::new(end, welcome, socket, events))
}

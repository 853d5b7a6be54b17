//! A capture in progress.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use phitwire_nodes::io::{Tap, TapDirection, TapReader, find_interface};
use phitwire_nodes::stop::Stop;

use super::CapturePoint;
use super::filter::{Filter, Known};
use super::links::{LabLink, namespace};
use super::pcapng::{self, FrameDirection, Statistics};
use super::sink::{Room, Sink, SinkError};
use super::train::for_each_datagram;

/// Epoll data of the stop signal.
const STOPPER: u64 = u64::MAX;
/// Interval of checks for deleted namespaces.
const LOOK_FOR_GONE_EVERY: Duration = Duration::from_secs(1);
/// Longest wait while no frames arrive.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Maximum time between a message's timestamp and its arrival in the socket's queue.
const STAMP_TO_QUEUE: Duration = Duration::from_millis(1);
/// Maximum number of messages read from one tap before the others.
const MOST_OF_ONE: usize = 4_096;
/// Number of descriptors needed besides those of taps.
const OTHER_FILES: u64 = 64;

/// Why a capture cannot run.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// A node's namespace cannot be entered.
    #[error("{}: {source}{}", path.display(), if source.kind() == io::ErrorKind::PermissionDenied {
        "; captures need root, or the `rootless.sh` shell in which the lab was brought up"
    } else {
        "; bring the lab down and up again"
    })]
    Namespace {
        /// The namespace's file.
        path: PathBuf,
        source: io::Error,
    },
    #[error("all interfaces to capture have been deleted; bring the lab down and up again")]
    NoInterfaces,
    #[error(
        "{interface} of {node}: {source}; captures need root, or the `rootless.sh` shell in \
         which the lab was brought up"
    )]
    Tap {
        node: String,
        interface: String,
        source: io::Error,
    },
    /// The directions need more descriptors than the limit allows.
    #[error(
        "capturing needs {needed} open files (one per link direction), but the limit is {limit}: \
         select fewer links with --link, or run `ulimit -n {needed}`"
    )]
    TooMany {
        /// Descriptors needed: one per direction, and a few more.
        needed: u64,
        limit: u64,
    },
    /// Epoll failed.
    #[error("cannot wait for frames: {0}")]
    Wait(io::Error),
}

/// Limits that end a capture.
#[derive(Clone, Copy, Debug, Default)]
pub struct Until {
    /// After this time.
    pub time: Option<Duration>,
    /// After this many frames.
    pub frames: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A stop was requested.
    Asked,
    /// The time is over, or the number of frames reached.
    Reached,
    /// The file has reached its largest size.
    Full,
    /// The reader of standard output is gone.
    Unread,
    /// The lab has been taken down.
    Gone,
}

/// Results of a captured direction of a link.
#[derive(Debug)]
pub struct CapturedDirection {
    /// Name of the direction in the file: `LINK:A->B`.
    pub name: String,
    pub description: String,
    /// Frames written.
    pub frames: u64,
    /// Captured resends: packets, or the units that the direction's links resend.
    pub retries: u64,
    /// Messages that the capture missed: the kernel dropped them for lack of room.
    pub missed: u64,
    known: Known,
    way: FrameDirection,
    /// The tap; `None` once the interface is gone.
    tap: Option<Tap>,
    namespace: Namespace,
}

/// An entered namespace. An open tap keeps a deleted namespace alive, including its interfaces, so
/// the capture checks whether the namespace still has its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Namespace {
    path: PathBuf,
    inode: u64,
}

impl Namespace {
    fn is_gone(&self) -> bool {
        !fs::metadata(&self.path).is_ok_and(|found| found.ino() == self.inode)
    }
}

/// Taps of the links of a lab.
pub struct Capture {
    heard: Vec<CapturedDirection>,
    epoll: Epoll,
    from_ns: u64,
}

/// A frame that must wait for older ones.
struct Waiting {
    at: u64,
    interface: u32,
    message: Box<[u8]>,
}

/// A tap to open.
struct Wanted {
    interface: String,
    tap_direction: TapDirection,
    name: String,
    description: String,
}

impl Capture {
    /// Opens the taps of `links` of `lab`. Interfaces that do not exist are skipped, and returned
    /// by name.
    ///
    /// # Errors
    /// See [`CaptureError`].
    pub fn open(
        lab: &str,
        links: &[LabLink],
        point: CapturePoint,
        filter: &Filter,
    ) -> Result<(Self, Vec<String>), CaptureError> {
        let wanted = wanted(links, point, filter);
        let needed = wanted
            .values()
            .map(|of_node| of_node.len() as u64)
            .sum::<u64>()
            + OTHER_FILES;
        allow_files(needed)?;
        // Enter the namespaces in a separate thread, so that this one stays in its own.
        let opened = thread::scope(|scope| {
            let opener = scope.spawn(|| open_taps(lab, wanted));
            opener
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        let (heard, gone) = opened?;
        if heard.is_empty() {
            return Err(CaptureError::NoInterfaces);
        }
        let failed = |errno: Errno| CaptureError::Wait(errno.into());
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(failed)?;
        for (at, heard) in heard.iter().enumerate() {
            if let Some(tap) = &heard.tap {
                let event = EpollEvent::new(EpollFlags::EPOLLIN, at as u64);
                epoll.add(tap, event).map_err(failed)?;
            }
        }
        let from_ns = wall_ns();
        Ok((
            Self {
                heard,
                epoll,
                from_ns,
            },
            gone,
        ))
    }

    /// The directions, in the order of the file.
    pub fn heard(&self) -> &[CapturedDirection] {
        &self.heard
    }

    /// The blocks at the beginning of the file.
    pub fn head(&self) -> Vec<u8> {
        let mut head = Vec::new();
        pcapng::section(&mut head);
        for heard in &self.heard {
            pcapng::interface(&mut head, &heard.name, &heard.description);
        }
        head
    }

    /// Writes frames until `stop` or a limit ends the capture, then the statistics of each
    /// direction.
    ///
    /// # Errors
    /// [`SinkError`] in the inner result if the capture ends because it cannot be written. The file
    /// then contains only whole blocks, and the statistics if there is room for them.
    pub fn run(
        &mut self,
        sink: &mut Sink,
        filter: &Filter,
        until: Until,
        stop: &Stop,
    ) -> Result<Result<End, SinkError>, CaptureError> {
        let event = EpollEvent::new(EpollFlags::EPOLLIN, STOPPER);
        let failed = |errno: Errno| CaptureError::Wait(errno.into());
        self.epoll.add(stop.wake_fd(), event).map_err(failed)?;
        let began = Instant::now();
        let mut looked = began;
        let mut reader = TapReader::default();
        let mut waiting = Vec::new();
        let mut left = until.frames.unwrap_or(u64::MAX);
        let mut end = None;
        while end.is_none() {
            let patience = until.time.map_or(LOOK_EVERY, |time| {
                time.saturating_sub(began.elapsed()).min(LOOK_EVERY)
            });
            if looked.elapsed() >= LOOK_FOR_GONE_EVERY {
                looked = Instant::now();
                self.leave_deleted(&mut reader, &mut waiting);
            }
            if stop.requests() > 0 {
                end = Some(End::Asked);
            } else if self.heard.iter().all(|heard| heard.tap.is_none()) {
                end = Some(End::Gone);
            } else if until.time.is_some_and(|time| began.elapsed() >= time) {
                end = Some(End::Reached);
            }
            let ready = self.wait(if end.is_some() {
                Duration::ZERO
            } else {
                patience
            })?;
            let older = self.listen(&ready, &mut reader, &mut waiting);
            // At the end, write all waiting frames.
            let older = if end.is_some() { u64::MAX } else { older };
            match self.write(&mut waiting, older, sink, filter, &mut left) {
                Ok(None) => {}
                Ok(why) => end = why,
                Err(error) => {
                    let statistics = self.statistics(sink);
                    let _ = sink.finish(&statistics);
                    return Ok(Err(error));
                }
            }
        }
        // Compile the statistics after the flush, which decides which frames are in the file.
        let flushed = sink.flush();
        let statistics = self.statistics(sink);
        let finished = sink.finish(&statistics);
        Ok(flushed.and(finished).map(|()| end.unwrap_or(End::Asked)))
    }

    /// The directions that may have frames to read.
    fn wait(&self, patience: Duration) -> Result<Vec<usize>, CaptureError> {
        // Leave room for all: a direction left out might have an older frame than the others.
        let mut events = vec![EpollEvent::empty(); self.heard.len() + 1];
        // Round up: otherwise the last millisecond would be spent polling.
        let patience = patience.as_micros().div_ceil(1_000) as u16;
        match self.epoll.wait(&mut events, EpollTimeout::from(patience)) {
            Ok(count) => Ok(events[..count]
                .iter()
                .filter(|event| event.data() != STOPPER)
                .map(|event| event.data() as usize)
                .collect()),
            Err(Errno::EINTR) => Ok(Vec::new()),
            Err(errno) => Err(CaptureError::Wait(errno.into())),
        }
    }

    /// Reads the ready taps. On return, all frames older than the returned time have been read.
    fn listen(&mut self, ready: &[usize], reader: &mut TapReader, to: &mut Vec<Waiting>) -> u64 {
        let mut older = wall_ns().saturating_sub(STAMP_TO_QUEUE.as_nanos() as u64);
        for &index in ready {
            let Some(tap) = &self.heard[index].tap else {
                continue;
            };
            let begin = to.len();
            let mut last = 0;
            let has_more = loop {
                let read = reader.read(tap, |at, message| {
                    last = at;
                    to.push(Waiting {
                        at,
                        interface: index as u32,
                        message: message.into(),
                    });
                });
                match read {
                    Ok(true) if to.len() - begin < MOST_OF_ONE => {}
                    Ok(has_more) => break has_more,
                    Err(error) => {
                        // Keep the tap of an interface that is down: only deletion is permanent.
                        if error.raw_os_error() != Some(libc::ENETDOWN) {
                            self.drop_tap(index);
                        }
                        break false;
                    }
                }
            };
            if has_more {
                older = older.min(last);
            }
        }
        older
    }

    /// Closes the taps of deleted namespaces after reading their last frames.
    fn leave_deleted(&mut self, reader: &mut TapReader, to: &mut Vec<Waiting>) {
        let namespaces: BTreeSet<&Namespace> =
            self.heard.iter().map(|heard| &heard.namespace).collect();
        let gone = namespaces
            .into_iter()
            .filter(|namespace| namespace.is_gone());
        let gone: BTreeSet<Namespace> = gone.cloned().collect();
        for index in 0..self.heard.len() {
            if gone.contains(&self.heard[index].namespace) {
                self.listen(&[index], reader, to);
                self.drop_tap(index);
            }
        }
    }

    fn drop_tap(&mut self, index: usize) {
        let heard = &mut self.heard[index];
        heard.missed = heard.tap.take().map_or(heard.missed, |tap| tap.dropped());
    }

    /// Writes the frames older than `older`.
    fn write(
        &mut self,
        waiting: &mut Vec<Waiting>,
        older: u64,
        sink: &mut Sink,
        filter: &Filter,
        left: &mut u64,
    ) -> Result<Option<End>, SinkError> {
        // Sort stably, so that frames of one direction with equal times keep their order.
        waiting.sort_by_key(|frame| frame.at);
        let count = waiting.partition_point(|frame| frame.at < older);
        let mut block = Vec::new();
        let mut result = Ok(Room::Left);
        for frame in waiting.drain(..count) {
            let heard = &mut self.heard[frame.interface as usize];
            for_each_datagram(&frame.message, |headers, bytes| {
                if *left == 0 || !matches!(result, Ok(Room::Left)) {
                    return;
                }
                let seen = heard.known.look(bytes);
                heard.retries += seen.retries;
                if !filter.takes(seen) {
                    return;
                }
                block.clear();
                pcapng::frame(
                    &mut block,
                    frame.interface,
                    frame.at,
                    heard.way,
                    &[headers, bytes],
                );
                result = sink.add(frame.interface, &block);
                if matches!(result, Ok(Room::Left)) {
                    *left -= 1;
                }
            });
        }
        let room = match result? {
            Room::Left => sink.flush()?,
            other => other,
        };
        Ok(match room {
            _ if *left == 0 => Some(End::Reached),
            Room::Left => None,
            Room::Full => Some(End::Full),
            Room::Unread => Some(End::Unread),
        })
    }

    /// Counts frames written and missed; returns the statistics blocks of all directions.
    fn statistics(&mut self, sink: &Sink) -> Vec<u8> {
        let to_ns = wall_ns();
        let mut blocks = Vec::new();
        for (index, heard) in (0..).zip(&mut self.heard) {
            heard.frames = sink.frames(index as usize);
            heard.missed = heard.tap.as_ref().map_or(heard.missed, Tap::dropped);
            let statistics = Statistics {
                from_ns: self.from_ns,
                to_ns,
                frames: heard.frames,
                dropped: heard.missed,
            };
            pcapng::statistics(&mut blocks, index, &statistics);
        }
        blocks
    }
}

/// The taps to open, by node.
fn wanted(
    links: &[LabLink],
    point: CapturePoint,
    filter: &Filter,
) -> BTreeMap<String, Vec<(usize, Wanted)>> {
    let mut wanted: BTreeMap<String, Vec<(usize, Wanted)>> = BTreeMap::new();
    let mut order = 0;
    for link in links {
        for from in [0, 1] {
            if !filter.includes(&link.ends[from].node) {
                continue;
            }
            for &tap_direction in point.directions() {
                let ends = [&link.ends[from], &link.ends[1 - from]];
                let (at, suffix, what) = match tap_direction {
                    TapDirection::Sent => (ends[0], "", "as sent"),
                    // Not "received": nftables may drop the frame above the tap.
                    TapDirection::Received => (ends[1], " arrived", "as arrived, before nftables"),
                };
                let [a, b] = ends.map(|end| format!("{} port {}", end.node, end.port));
                let (node, interface) = (&at.node, &at.interface);
                wanted.entry(node.clone()).or_default().push((
                    order,
                    Wanted {
                        interface: interface.clone(),
                        tap_direction,
                        name: link.direction(from) + suffix,
                        description: format!(
                            "link {} from {a} to {b}, {what}: {interface} of {node}",
                            link.id
                        ),
                    },
                ));
                order += 1;
            }
        }
    }
    wanted
}

type Opened = (Vec<CapturedDirection>, Vec<String>);

/// Opens taps in one namespace after another. The thread stays in the last.
fn open_taps(
    lab: &str,
    wanted: BTreeMap<String, Vec<(usize, Wanted)>>,
) -> Result<Opened, CaptureError> {
    let mut opened = Vec::new();
    let mut gone = Vec::new();
    for (node, of_node) in wanted {
        let path = namespace(lab, &node);
        let failed = |source| CaptureError::Namespace {
            path: path.clone(),
            source,
        };
        let file = File::open(&path).map_err(failed)?;
        let inode = file.metadata().map_err(failed)?.ino();
        setns(&file, CloneFlags::CLONE_NEWNET).map_err(|errno| failed(errno.into()))?;
        for (order, wanted) in of_node {
            let Ok(interface) = find_interface(&wanted.interface) else {
                gone.push(format!("{node}:{}", wanted.interface));
                continue;
            };
            let tap = Tap::open(interface.index, wanted.tap_direction).map_err(|source| {
                CaptureError::Tap {
                    node: node.clone(),
                    interface: wanted.interface.clone(),
                    source,
                }
            })?;
            let heard = CapturedDirection {
                name: wanted.name,
                description: wanted.description,
                frames: 0,
                retries: 0,
                missed: 0,
                known: Known::default(),
                way: match wanted.tap_direction {
                    TapDirection::Sent => FrameDirection::Out,
                    TapDirection::Received => FrameDirection::In,
                },
                tap: Some(tap),
                namespace: Namespace {
                    path: path.clone(),
                    inode,
                },
            };
            opened.push((order, heard));
        }
    }
    opened.sort_by_key(|(order, _)| *order);
    gone.sort();
    gone.dedup();
    Ok((opened.into_iter().map(|(_, heard)| heard).collect(), gone))
}

/// Raises the limit of open files if necessary and allowed.
fn allow_files(needed: u64) -> Result<(), CaptureError> {
    let failed = |errno: Errno| CaptureError::Wait(errno.into());
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(failed)?;
    if soft >= needed {
        return Ok(());
    }
    // Also raise the hard limit, as root may.
    match setrlimit(Resource::RLIMIT_NOFILE, needed, hard.max(needed)) {
        Ok(()) => Ok(()),
        Err(_) if hard >= needed => {
            setrlimit(Resource::RLIMIT_NOFILE, needed, hard).map_err(failed)
        }
        Err(_) => Err(CaptureError::TooMany {
            needed,
            limit: hard,
        }),
    }
}

/// Nanoseconds since 1970, like the kernel's timestamps.
fn wall_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_nanos() as u64)
}

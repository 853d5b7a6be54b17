//! I/O backends: batches of link frames over many ports.
//!
//! Two engines move frames over the same two kinds of socket. [`plain`] uses `recvmmsg`, `sendmmsg`
//! and `epoll`; [`uring`] uses one io_uring for all ports. The sockets are UDP (with segmentation
//! offload in both directions) or raw Ethernet (`AF_PACKET`, EtherType
//! [`ETHERTYPE`](phitwire_framing::carrier::frame::ETHERTYPE)). The event loop only sees
//! [`Backend`].
//!
//! A frame that cannot be sent is *dropped and counted*, which is never an error: links lose
//! frames, and the link protocol recovers. So an interface may go down and come up while a process
//! runs.

mod counters;
mod filter_watch;
mod interface;
mod interface_watch;
mod kernel_drops;
mod mmsg;
mod netlink;
mod open_error;

pub mod plain;
mod ports;
mod send_batch;
mod send_trouble;
mod socket;
mod tap;
pub(crate) mod tun;
pub mod uring;
mod wire;

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

use clap::ValueEnum;
use phitwire::node::PortId;
use serde::{Deserialize, Serialize};

pub use counters::IoCounters;
pub use filter_watch::FilterWatch;
pub use interface::find_interface;
pub use interface_watch::{Found, InterfaceWatch};
pub use open_error::OpenError;
use ports::Ports;
pub(crate) use send_trouble::{SendFailure, SendNotice};
pub use socket::{Attachment, PortConfig};
pub(crate) use socket::{PortSocket, open_port};
pub use tap::{Tap, TapDirection, TapReader};
pub(crate) use wire::{Wire, WireState};

/// Length of the Ethernet header in front of a link frame, in bytes.
pub const ETHERNET_HEADER_BYTES: usize = 14;

/// Length of the IPv4 and UDP headers in front of a link frame, in bytes.
pub const UDP_HEADERS_BYTES: usize = 28;

/// Largest payload of an IPv4 UDP datagram, in bytes.
pub const UDP_MAX_PAYLOAD_BYTES: usize = 65_535 - UDP_HEADERS_BYTES;

/// Smallest frame limit of a port, in bytes. It fits a training frame and a data frame of 48 phits;
/// a shorter data frame could not carry a whole control word.
pub const MIN_FRAME_LIMIT_BYTES: usize = 256;

/// Default budget of received frames per port and turn, in bytes; see
/// [`Ports::set_bytes_per_turn`].
///
/// A node processes a turn's frames and sends the results before it receives more, so that the next
/// node can start on a burst while this one still works on the rest. If a whole window of requests
/// moved as one burst, only one node on its path would be busy at a time. If every frame were a
/// turn, the system calls would cost more than the overlap saves. The budget grows with the number
/// of ports, as does the cost of a turn, which may send on all of them.
const BYTES_PER_TURN: usize = 8_000;

/// Encapsulation of a link's frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkKind {
    /// UDP datagrams: portable, multi-machine; the kernel's checksum turns corruption into loss.
    #[default]
    Udp,
    /// Raw Ethernet frames: corrupt bits reach the link control block.
    Ethernet,
}

/// Engine that moves the frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IoEngine {
    /// io_uring if the kernel supports it, else plain system calls.
    #[default]
    Auto,
    /// io_uring; if unavailable, warns and falls back to plain system calls.
    Uring,
    /// `recvmmsg`, `sendmmsg` and `epoll`.
    Plain,
}

/// The receiver of frames, which also counts those that the links accepted.
pub trait FrameSink {
    fn frame(&mut self, port: PortId, bytes: &[u8]);

    /// Data frames that the link of `port` has accepted so far. Growth shows that the last frame
    /// was accepted; only the source address of an accepted frame is trusted.
    fn accepted(&self, port: PortId) -> u64;
}

/// Moves batches of frames between ports and the kernel.
///
/// Call order in each turn: [`wait`](Self::wait), [`receive`](Self::receive), any number of
/// [`frame_buffer`](Self::frame_buffer) / [`queue`](Self::queue) pairs, [`flush`](Self::flush).
pub trait Backend {
    /// The ports and their state.
    fn ports(&self) -> &Ports;

    fn ports_mut(&mut self) -> &mut Ports;

    /// Name of the engine: `plain` or `uring`.
    fn engine(&self) -> &'static str;

    /// Longest link frame on `port`, in bytes; zero for a port that is not attached.
    fn frame_limit(&self, port: PortId) -> usize {
        self.ports().frame_limit(port)
    }

    /// Waits until a frame can be received, the side descriptor is readable or `timeout` is over
    /// (`None`: without limit; zero: only polls). Returns whether the side descriptor is readable.
    ///
    /// # Errors
    /// Errors after which waiting is pointless; an interrupting signal is not an error.
    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<bool>;

    /// Passes up to one bounded batch of received frames to `sink`. Returns their number. While the
    /// backend holds more, [`wait`](Self::wait) returns at once.
    fn receive(&mut self, sink: &mut dyn FrameSink) -> usize;

    /// The slot for the next frame on `port`, exactly [`frame_limit`](Self::frame_limit) bytes;
    /// sends the queued frames when none is free.
    fn frame_buffer(&mut self, port: PortId) -> &mut [u8];

    /// Queues the first `bytes` bytes of the slot that [`frame_buffer`](Self::frame_buffer)
    /// returned for `port` as a frame of the batch.
    fn queue(&mut self, port: PortId, bytes: usize) {
        self.ports_mut().queue(port, bytes);
    }

    /// Sends the batch. Frames that the kernel does not take are counted as dropped.
    fn flush(&mut self);

    /// Allows several frames per segmentation-offload send on the ports in this bit mask, and
    /// forbids it on all others. Forbid it where a queueing discipline must drop single frames.
    fn set_segmentation(&mut self, ports: u64) {
        self.ports_mut().segmentation = ports;
    }

    /// Frames moved and dropped. Queries the kernel's receive drops: a system call per port.
    fn counters(&self) -> IoCounters {
        self.ports().counters()
    }
}

/// Opens all ports. A port whose interface is missing or unusable waits for the interface, as after
/// losing it at run time. If all ports would wait, the process is in the wrong namespace, which is
/// an error.
fn open_all(ports: &[PortConfig]) -> Result<Vec<PortSocket>, OpenError> {
    let mut sockets = Vec::with_capacity(ports.len());
    let mut waiting = Vec::new();
    for config in ports {
        match open_port(config) {
            Ok(socket) => sockets.push(socket),
            Err(error) if error.is_of_interface() => waiting.push((config, error)),
            Err(error) => return Err(error),
        }
    }
    // Assume that a missing interface has the longest frame limit of the others.
    let limit = sockets.iter().map(PortSocket::frame_limit).max();
    for (config, error) in waiting {
        let limit = limit.ok_or(error)?;
        sockets.push(socket::open_detached(config, limit)?);
    }
    Ok(sockets)
}

/// Opens all `ports` and starts the chosen engine on them. [`Backend::wait`] also watches `side`
/// (the control socket's epoll).
///
/// # Errors
/// When a port cannot be opened; the message names the remedy.
pub fn open(
    engine: IoEngine,
    ports: &[PortConfig],
    side: Option<RawFd>,
) -> Result<Box<dyn Backend>, OpenError> {
    let sockets = open_all(ports)?;
    if engine == IoEngine::Plain {
        return Ok(Box::new(plain::PlainBackend::new(sockets, side)?));
    }
    match uring::UringBackend::new(sockets, side) {
        Ok(backend) => Ok(Box::new(backend)),
        Err(uring::Unavailable { reason, sockets }) => {
            let text = "io_uring is unavailable; using plain system calls";
            if engine == IoEngine::Uring {
                tracing::warn!(%reason, "{text}");
            } else {
                tracing::info!(%reason, "{text}");
            }
            Ok(Box::new(plain::PlainBackend::new(sockets, side)?))
        }
    }
}

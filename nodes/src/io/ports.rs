//! Common parts of both engines: the sockets by port, the send batch, and the frames of received
//! messages.

use std::io;
use std::time::Instant;

use phitwire::node::{MAX_PORTS, PortId};
use pnet::util::MacAddr;

use super::counters::IoCounters;
use super::kernel_drops::InterfaceDrops;
use super::mmsg;
use super::send_batch::{Message, SendBatch};
use super::send_trouble::{SendNotice, Trouble};
use super::socket::{HardwareAddress, PortSocket};
use super::{
    BYTES_PER_TURN, ETHERNET_HEADER_BYTES, FrameSink, LinkKind, MIN_FRAME_LIMIT_BYTES,
    UDP_MAX_PAYLOAD_BYTES,
};

use nix::errno::Errno;

/// Marks a port without a socket in [`Ports::index_of`].
const NONE: u8 = u8::MAX;

/// The sockets of a node, and the batch being filled for them.
#[derive(Debug)]
pub struct Ports {
    pub sockets: Vec<PortSocket>,
    index_of: [u8; MAX_PORTS],
    pub(super) batch: SendBatch,
    /// Ports that may send several frames in one call.
    pub segmentation: u64,
    pub counters: IoCounters,
    /// Number of received bytes after which a turn stops receiving.
    bytes_per_turn: usize,
    /// Bit mask of the ports whose frames the kernel rejects at present.
    troubled: u64,
    interface_drops: InterfaceDrops,
}

impl Ports {
    /// # Panics
    /// If a port is not below [`MAX_PORTS`], or appears twice: the topology's validation excludes
    /// both.
    pub fn new(sockets: Vec<PortSocket>) -> Self {
        let mut index_of = [NONE; MAX_PORTS];
        for (index, socket) in sockets.iter().enumerate() {
            let slot = &mut index_of[usize::from(socket.port())];
            assert_eq!(*slot, NONE, "port {} opened twice", socket.port());
            *slot = index as u8;
        }
        let longest = sockets
            .iter()
            .map(PortSocket::frame_limit)
            .max()
            .unwrap_or(0);
        let batch = SendBatch::new((256 << 10).max(2 * (longest + ETHERNET_HEADER_BYTES)));
        let names = sockets.iter().filter_map(PortSocket::interface);
        let interface_drops = InterfaceDrops::new(names.map(str::to_owned));
        Self {
            bytes_per_turn: sockets.len() * BYTES_PER_TURN,
            sockets,
            index_of,
            batch,
            segmentation: !0,
            counters: IoCounters::default(),
            troubled: 0,
            interface_drops,
        }
    }

    /// Sets the budget of a turn: frames are handed up until they total `bytes` bytes, which the
    /// last one may exceed.
    pub fn set_bytes_per_turn(&mut self, bytes: usize) {
        self.bytes_per_turn = bytes;
    }

    /// Begins a turn.
    pub(super) fn turn(&self) -> Turn {
        Turn::new(self.bytes_per_turn)
    }

    /// The counters of the engine, with the drops that the kernel counts.
    pub fn counters(&self) -> IoCounters {
        IoCounters {
            rx_dropped_socket_full: self.sockets.iter().map(PortSocket::dropped_when_full).sum(),
            rx_dropped_interface: self.interface_drops.read(),
            ..self.counters
        }
    }

    /// Binds a port to its interface, which is usable (again) and has this index and address.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn attach_again(&mut self, port: PortId, index: u32, mac: MacAddr) -> io::Result<()> {
        match self.index(port) {
            Some(at) => self.sockets[at].attach_again(index, mac),
            None => Ok(()),
        }
    }

    /// Whether a port was opened without its interface and needs
    /// [`attach_again`](Self::attach_again).
    pub fn is_detached(&self, port: PortId) -> bool {
        self.socket(port).is_some_and(PortSocket::is_detached)
    }

    /// Makes every port whose link has accepted nothing since the last call broadcast again.
    /// `accepted` is [`FrameSink::accepted`].
    pub fn forget_silent(&mut self, accepted: &dyn Fn(PortId) -> u64) {
        for socket in &mut self.sockets {
            if socket.kind() == LinkKind::Ethernet {
                socket.forget_if_silent(accepted(socket.port()));
            }
        }
    }

    /// Bit mask of the ports whose frames the kernel rejects at present.
    pub const fn troubled(&self) -> u64 {
        self.troubled
    }

    /// The next notice about frames that the kernel rejects.
    pub fn poll_trouble(&mut self, now: Instant) -> Option<(PortId, SendNotice)> {
        let mut left = self.troubled;
        while left != 0 {
            let port = left.trailing_zeros() as PortId;
            left &= left - 1;
            let Some(index) = self.index(port) else {
                continue;
            };
            let socket = &mut self.sockets[index];
            let sent = socket.sent;
            let notice = socket.trouble.as_mut().and_then(|t| t.poll(now, sent));
            if let Some(notice) = notice {
                if matches!(notice, SendNotice::Recovered { .. }) {
                    socket.trouble = None;
                    self.troubled &= !(1 << port);
                }
                return Some((port, notice));
            }
        }
        None
    }

    /// Counts frames that the kernel rejected.
    fn fail(&mut self, port: PortId, frames: u64, errno: Errno) {
        self.counters.not_sent(frames, errno);
        if let Some(index) = self.index(port) {
            let socket = &mut self.sockets[index];
            let (before, sent) = (socket.trouble.take(), socket.sent);
            socket.trouble = Some(Trouble::after(before, Instant::now(), errno, frames, sent));
            self.troubled |= 1 << port;
        }
    }

    pub fn socket(&self, port: PortId) -> Option<&PortSocket> {
        self.sockets.get(self.index(port)?)
    }

    /// Index of a port in `sockets`.
    pub fn index(&self, port: PortId) -> Option<usize> {
        let index = *self.index_of.get(usize::from(port))?;
        (index != NONE).then_some(usize::from(index))
    }

    /// Longest received message, in bytes: a whole train of frames with receive offload.
    pub fn message_limit(&self) -> usize {
        self.sockets
            .iter()
            .map(|socket| match socket.kind() {
                LinkKind::Udp => UDP_MAX_PAYLOAD_BYTES,
                LinkKind::Ethernet => socket.frame_limit() + ETHERNET_HEADER_BYTES,
            })
            .max()
            .unwrap_or(0)
            .next_multiple_of(64)
    }

    pub fn frame_limit(&self, port: PortId) -> usize {
        self.socket(port).map_or(0, PortSocket::frame_limit)
    }

    pub fn has_room(&self, port: PortId) -> bool {
        self.batch
            .has_room(self.frame_limit(port) + ETHERNET_HEADER_BYTES)
    }

    /// The slot for the next frame on `port`; requires [`has_room`](Self::has_room).
    pub fn room(&mut self, port: PortId) -> &mut [u8] {
        let limit = self.frame_limit(port);
        let header = self.socket(port).map_or(0, |socket| socket.header().len());
        self.batch.room(header, limit)
    }

    /// Adds the frame in the slot to the batch. A port without its interface sends nothing: the
    /// kernel would choose an address for its socket, and keep it.
    pub fn queue(&mut self, port: PortId, bytes: usize) {
        if let Some(index) = self.index(port) {
            let socket = &self.sockets[index];
            if socket.is_detached() {
                return self.fail(port, 1, Errno::ENETDOWN);
            }
            let may_segment = self.segmentation & 1 << port != 0 && socket.may_segment();
            self.batch.push(port, socket.header(), bytes, may_segment);
        }
    }

    /// Counts a message as sent.
    pub(super) fn sent(&mut self, message: Message) {
        let Some(index) = self.index(message.port) else {
            return;
        };
        let socket = &mut self.sockets[index];
        socket.sent += 1;
        let headers = socket.header().len();
        self.counters
            .sent(message.frames as u64, (message.bytes - headers) as u64);
    }

    /// Handles a message that the kernel rejected: resends its frames one by one if segmentation
    /// may be the cause, otherwise counts them as dropped.
    pub(super) fn not_sent(&mut self, message: Message, errno: Errno) {
        let segmented = message.frames > 1;
        if segmented && matches!(errno, Errno::EIO | Errno::EINVAL | Errno::EOPNOTSUPP) {
            // A missing address causes the same errors, but then single frames fail too.
            if self.send_singly(message)
                && let Some(index) = self.index(message.port)
            {
                tracing::info!(port = message.port, %errno,
                    "the interface does not support segmentation offload");
                self.sockets[index].forbid_segmentation();
            }
        } else if errno == Errno::ECONNREFUSED {
            // Retry: the error may be that of an earlier datagram, reported once in place of this
            // send, such as when nobody was listening at the other end.
            self.send_singly(message);
        } else {
            self.fail(message.port, message.frames as u64, errno);
        }
    }

    /// Sends the frames of a message one by one. Returns whether the kernel took any.
    fn send_singly(&mut self, message: Message) -> bool {
        let Some(index) = self.index(message.port) else {
            return false;
        };
        let (fd, header) = {
            let socket = &self.sockets[index];
            (socket.raw_fd(), socket.header().len())
        };
        let mut any = false;
        for start in (0..message.bytes).step_by(message.segment) {
            let end = (start + message.segment).min(message.bytes);
            self.counters.system_calls += 1;
            let frame = &self.batch.bytes(&message)[start..end];
            match mmsg::send_one(fd, frame) {
                Ok(()) => {
                    any = true;
                    self.sockets[index].sent += 1;
                    self.counters.sent(1, (end - start - header) as u64);
                }
                Err(errno) => self.fail(message.port, 1, errno),
            }
        }
        any
    }
}

/// Frames handed up in a turn, and the budget that is left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    /// Frames handed up.
    pub frames: usize,
    /// Remaining budget in bytes; the last frame may exceed it.
    bytes_left: usize,
}

impl Turn {
    const fn new(bytes: usize) -> Self {
        Self {
            frames: 0,
            bytes_left: bytes,
        }
    }

    /// Charges a frame of `bytes` bytes, or an empty message. Short ones have a minimum cost.
    pub const fn charge(&mut self, bytes: usize) {
        let cost = if bytes < MIN_FRAME_LIMIT_BYTES {
            MIN_FRAME_LIMIT_BYTES
        } else {
            bytes
        };
        self.bytes_left = self.bytes_left.saturating_sub(cost);
    }

    /// Whether the budget is used up.
    pub const fn is_over(&self) -> bool {
        self.bytes_left == 0
    }
}

/// Passes frames of a received message to `sink`, from frame `done` on, until the turn is over.
/// Returns whether all have been handed up. `message` holds the bytes and the length of each frame
/// but the last; it is `None` if the message was longer than its buffer.
pub(super) fn deliver(
    socket: &mut PortSocket,
    counters: &mut IoCounters,
    message: Option<(&[u8], usize)>,
    done: &mut usize,
    turn: &mut Turn,
    sink: &mut dyn FrameSink,
) -> bool {
    let Some((message, segment)) = message else {
        counters.rx_dropped_truncated += 1;
        turn.charge(0);
        return true;
    };
    let Some(bytes) = socket.accept(message) else {
        counters.rx_dropped_foreign += 1;
        turn.charge(0);
        return true;
    };
    counters.messages_received += u64::from(*done == 0);
    if bytes.is_empty() {
        turn.charge(0);
    }
    let mut left = bytes.chunks(segment).skip(*done);
    while !turn.is_over()
        && let Some(frame) = left.next()
    {
        counters.frames_received += 1;
        counters.bytes_received += frame.len() as u64;
        match socket.newcomer(message) {
            None => sink.frame(socket.port(), frame),
            Some(from) => introduce(socket, from, frame, sink),
        }
        *done += 1;
        turn.frames += 1;
        turn.charge(frame.len());
    }
    left.len() == 0
}

/// Hands up a frame from an address other than the port's destination. If the link accepts the
/// frame, the port learns the address.
#[cold]
fn introduce(
    socket: &mut PortSocket,
    from: HardwareAddress,
    frame: &[u8],
    sink: &mut dyn FrameSink,
) {
    let port = socket.port();
    let before = sink.accepted(port);
    sink.frame(port, frame);
    if sink.accepted(port) != before {
        socket.heard_from(from);
    }
}

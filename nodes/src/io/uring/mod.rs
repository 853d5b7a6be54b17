//! The io_uring engine: one ring for all ports.
//!
//! Every socket has one multishot `recvmsg`, which fills buffers shared by all ports. One system
//! call submits a turn's sends and waits. A busy node with nothing to send polls for received
//! frames without system calls.

mod buffers;

use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

use io_uring::types::{CancelBuilder, Fd, RecvMsgOut, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use nix::errno::Errno;
use phitwire::node::PortId;

use super::mmsg::{Control, gro_segment};
use super::ports::{Ports, deliver};
use super::send_batch::MAX_MESSAGES;
use super::socket::PortSocket;
use super::{Backend, FrameSink};
use buffers::Buffers;

/// Number of submission entries: a full batch of sends, a receive for each of 64 ports, the side
/// poll.
const ENTRIES: u32 = 256;
/// Number of completion entries.
const COMPLETIONS: u32 = 2048;
/// Bytes of receive buffers over all ports.
const BUFFER_BYTES: usize = 2 << 20;
/// Minimum number of receive buffers per port: all ports may have a message at once, and a second
/// one while the first is processed. With 64 ports, twice as many carry no more messages, and half
/// as many lose to retries.
const BUFFERS_PER_PORT: usize = 2;
/// The only group of provided buffers.
const GROUP: u16 = 0;

/// Purpose of a completion, in the upper half of its user data; the lower half is an index.
const RECEIVE: u64 = 1 << 32;
const SEND: u64 = 2 << 32;
const SIDE: u64 = 3 << 32;
const KIND: u64 = !0 << 32;

/// Why io_uring cannot be used, with the sockets for another engine.
#[derive(Debug)]
pub struct Unavailable {
    pub reason: String,
    pub sockets: Vec<PortSocket>,
}

/// The parts of a message that the kernel reads while sending it.
struct SendSlot {
    header: libc::msghdr,
    vector: libc::iovec,
    control: Control,
}

/// A received message that has not been handed up completely.
struct Pending {
    socket: u8,
    buffer: u16,
    bytes: u32,
    /// Number of frames of the message handed up so far.
    done: usize,
}

/// Everything that requests in the kernel point to. Dropped only when no request is left.
struct Shared {
    buffers: Buffers,
    receive_header: Box<libc::msghdr>,
    slots: Box<[SendSlot]>,
}

/// See the module docs.
///
/// The ring serves only the thread that made it.
pub struct UringBackend {
    ring: IoUring,
    ports: Ports,
    /// `None` only while being dropped.
    shared: Option<Shared>,
    pending: VecDeque<Pending>,
    /// Bit mask of the sockets, by index, whose multishot receive must be armed (again).
    to_arm: u64,
    /// The first port that found no buffer when last armed. It is armed first next time; otherwise
    /// ports after busy ones would never get a buffer.
    starved: Option<u32>,
    side: Option<RawFd>,
    side_armed: bool,
    side_ready: bool,
    /// Messages of the batch that are in the submission queue or in the kernel.
    submitted: usize,
    /// Sends that failed, with their error.
    failed: Vec<(usize, Errno)>,
    /// Whether a receive was refused as an unknown operation (before Linux 6.0).
    refused: bool,
}

impl UringBackend {
    /// Starts the engine on open sockets; [`Backend::wait`] watches `side` as well.
    ///
    /// # Errors
    /// When io_uring is missing, forbidden, or older than multishot `recvmsg` (Linux 6.0).
    pub fn new(sockets: Vec<PortSocket>, side: Option<RawFd>) -> Result<Self, Unavailable> {
        let ring = match build_ring() {
            Ok(ring) => ring,
            Err(error) => {
                return Err(Unavailable {
                    reason: format!("io_uring_setup: {error}"),
                    sockets,
                });
            }
        };
        let ports = Ports::new(sockets);
        let shared = match Shared::new(&ring, &ports) {
            Ok(shared) => shared,
            Err(error) => {
                let reason = format!("provided buffers: {error}");
                return Err(Unavailable {
                    reason,
                    sockets: ports.sockets,
                });
            }
        };
        let to_arm = (0..ports.sockets.len()).fold(0, |mask, i| mask | 1 << i);
        let mut this = Self {
            ring,
            ports,
            shared: Some(shared),
            pending: VecDeque::with_capacity(COMPLETIONS as usize),
            to_arm,
            starved: None,
            side,
            side_armed: false,
            side_ready: false,
            submitted: 0,
            failed: Vec::with_capacity(MAX_MESSAGES),
            refused: false,
        };
        let armed = this.wait(Some(Duration::ZERO));
        if this.refused || armed.is_err() {
            let reason = match armed {
                Err(error) => format!("io_uring_enter: {error}"),
                Ok(_) => "no multishot recvmsg (Linux before 6.0)".to_owned(),
            };
            this.quiesce();
            return Err(Unavailable {
                reason,
                sockets: std::mem::take(&mut this.ports.sockets),
            });
        }
        Ok(this)
    }

    /// Ends every request, so that the kernel no longer refers to our memory.
    fn quiesce(&mut self) {
        let cancelled = self
            .ring
            .submitter()
            .register_sync_cancel(None, CancelBuilder::any());
        let gone = match cancelled {
            Ok(()) => true,
            Err(error) => error.raw_os_error() == Some(libc::ENOENT),
        };
        let shared = self.shared.take();
        if !gone {
            // Leak a few megabytes: the kernel must not write to freed memory.
            std::mem::forget(shared);
        }
    }

    /// Queues the receives and the side poll that are not armed.
    fn arm(&mut self) {
        let Some(shared) = &self.shared else { return };
        let mut queue = self.ring.submission();
        let first = self.starved.take().unwrap_or(0);
        let mut to_arm = self.to_arm.rotate_right(first);
        while to_arm != 0 {
            let index = ((to_arm.trailing_zeros() + first) % u64::BITS) as usize;
            to_arm &= to_arm - 1;
            let fd = Fd(self.ports.sockets[index].raw_fd());
            let entry = opcode::RecvMsgMulti::new(fd, &raw const *shared.receive_header, GROUP)
                .build()
                .user_data(RECEIVE | index as u64);
            // SAFETY: the header is boxed in `shared`, which also holds the buffers of the group;
            // `shared` is freed only after every request has ended (`quiesce`).
            if unsafe { queue.push(&entry) }.is_ok() {
                self.to_arm &= !(1 << index);
            }
        }
        if let (Some(fd), false) = (self.side, self.side_armed) {
            let entry = opcode::PollAdd::new(Fd(fd), libc::POLLIN as u32)
                .build()
                .user_data(SIDE);
            // SAFETY: a poll request points to no memory.
            self.side_armed = unsafe { queue.push(&entry) }.is_ok();
        }
    }

    /// Submits the queue and, if no completion is available, waits up to `timeout` for one (`None`:
    /// without limit). Then takes the completions.
    fn enter(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        loop {
            let quiet = self.pending.is_empty() && !self.side_ready;
            let wait = quiet && timeout != Some(Duration::ZERO);
            let (unsent, work) = {
                let queue = self.ring.submission();
                (!queue.is_empty(), queue.taskrun() || queue.cq_overflow())
            };
            if !wait && !unsent && !work {
                break;
            }
            self.ports.counters.system_calls += 1;
            let result = match timeout {
                Some(limit) if wait => {
                    let limit = Timespec::from(limit);
                    self.ring
                        .submitter()
                        .submit_with_args(1, &SubmitArgs::new().timespec(&limit))
                }
                None if wait => self.ring.submit_and_wait(1),
                _ => self.ring.submit(),
            };
            self.take_completions();
            let retry = match result {
                Ok(_) => false,
                Err(error) => match Errno::from_raw(error.raw_os_error().unwrap_or(0)) {
                    Errno::ETIME | Errno::EINTR => false,
                    // Retry later: the kernel first needs completions taken, or free memory.
                    Errno::EBUSY | Errno::EAGAIN => true,
                    _ => return Err(error),
                },
            };
            if !retry && self.ring.submission().is_empty() {
                break;
            }
        }
        self.take_completions();
        self.finish_sends();
        Ok(())
    }

    /// Sorts the completions into sends, receives and the side poll.
    fn take_completions(&mut self) {
        let mut queue = self.ring.completion();
        queue.sync();
        for entry in &mut queue {
            let index = entry.user_data() as u32;
            match entry.user_data() & KIND {
                SIDE => {
                    self.side_armed = false;
                    self.side_ready = true;
                }
                SEND => {
                    let errno = Errno::from_raw(-entry.result());
                    if entry.result() < 0 {
                        self.failed.push((index as usize, errno));
                    }
                }
                _ => {
                    if !cqueue::more(entry.flags()) {
                        self.to_arm |= 1 << index;
                    }
                    match (entry.result(), cqueue::buffer_select(entry.flags())) {
                        (bytes @ 0.., Some(buffer)) => self.pending.push_back(Pending {
                            socket: index as u8,
                            buffer,
                            bytes: bytes as u32,
                            done: 0,
                        }),
                        (error, _) if error == -libc::ENOBUFS => {
                            self.ports.counters.rx_buffers_exhausted += 1;
                            self.starved.get_or_insert(index);
                        }
                        (error, _) => {
                            self.refused |= error == -libc::EINVAL;
                            self.ports.counters.rx_errors += 1;
                        }
                    }
                }
            }
        }
    }

    /// Counts the batch's messages, reports those that failed, and empties the batch. Sends carry
    /// `MSG_DONTWAIT`, so each has succeeded or failed when the submitting call returns.
    fn finish_sends(&mut self) {
        if self.submitted == 0 {
            return;
        }
        for index in 0..self.submitted {
            let message = self.ports.batch.messages()[index];
            match self.failed.iter().find(|(failed, _)| *failed == index) {
                Some(&(_, errno)) => self.ports.not_sent(message, errno),
                None => self.ports.sent(message),
            }
        }
        self.submitted = 0;
        self.failed.clear();
        self.ports.batch.clear();
    }

    /// Queues the messages of the batch that are not yet submitted.
    fn queue_sends(&mut self) {
        let Some(shared) = &mut self.shared else {
            return;
        };
        let mut queue = self.ring.submission();
        for (index, message) in self
            .ports
            .batch
            .messages()
            .iter()
            .enumerate()
            .skip(self.submitted)
        {
            let Some(socket) = self.ports.socket(message.port) else {
                continue;
            };
            let bytes = self.ports.batch.bytes(message);
            let slot = &mut shared.slots[index];
            slot.vector.iov_base = bytes.as_ptr().cast_mut().cast();
            slot.vector.iov_len = bytes.len();
            slot.header.msg_iov = &raw mut slot.vector;
            slot.header.msg_iovlen = 1;
            (slot.header.msg_control, slot.header.msg_controllen) = (std::ptr::null_mut(), 0);
            if message.frames > 1 {
                let (control, length) = Control::segment(message.segment as u16);
                slot.control = control;
                slot.header.msg_control = (&raw mut slot.control).cast();
                slot.header.msg_controllen = length as _;
            }
            let entry = opcode::SendMsg::new(Fd(socket.raw_fd()), &raw const slot.header)
                .flags(libc::MSG_DONTWAIT as u32)
                .build()
                .flags(squeue::Flags::SKIP_SUCCESS)
                .user_data(SEND | index as u64);
            // SAFETY: slot and arena bytes stay valid and unmoved until `finish_sends`, which runs
            // after the call that submits the entry has returned. By then `MSG_DONTWAIT` has ended
            // the send. A batch has at most MAX_MESSAGES messages, and the queue has room for all.
            if unsafe { queue.push(&entry) }.is_err() {
                self.failed.push((index, Errno::ENOBUFS));
            }
        }
        self.submitted = self.ports.batch.messages().len();
    }
}

impl Shared {
    fn new(ring: &IoUring, ports: &Ports) -> io::Result<Self> {
        // SAFETY: `msghdr` and `iovec` are plain data, for which zero is valid.
        let (mut receive_header, slot): (libc::msghdr, _) = unsafe {
            (std::mem::zeroed(), || SendSlot {
                header: std::mem::zeroed(),
                vector: std::mem::zeroed(),
                control: Control::EMPTY,
            })
        };
        receive_header.msg_controllen = size_of::<Control>() as _;
        // The kernel puts its own header and the control data in front of the message.
        let stride = (ports.message_limit() + 128).next_multiple_of(64);
        let entries = (BUFFER_BYTES / stride).max(BUFFERS_PER_PORT * ports.sockets.len());
        let entries = entries.clamp(8, 512).next_power_of_two() as u16;
        // SAFETY: `UringBackend` drops its `Shared` only in `quiesce`.
        let buffers = unsafe { Buffers::new(ring, GROUP, entries, stride)? };
        Ok(Self {
            buffers,
            receive_header: Box::new(receive_header),
            slots: (0..MAX_MESSAGES).map(|_| slot()).collect(),
        })
    }
}

impl Drop for UringBackend {
    fn drop(&mut self) {
        if self.shared.is_some() {
            self.quiesce();
        }
    }
}

impl Backend for UringBackend {
    fn ports(&self) -> &Ports {
        &self.ports
    }

    fn ports_mut(&mut self) -> &mut Ports {
        &mut self.ports
    }

    fn engine(&self) -> &'static str {
        "uring"
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        self.arm();
        self.enter(timeout)?;
        Ok(std::mem::take(&mut self.side_ready))
    }

    fn receive(&mut self, sink: &mut dyn FrameSink) -> usize {
        let Some(shared) = &mut self.shared else {
            return 0;
        };
        let mut turn = self.ports.turn();
        let Ports {
            sockets, counters, ..
        } = &mut self.ports;
        while !turn.is_over() {
            let Some(pending) = self.pending.front_mut() else {
                break;
            };
            let message = shared
                .buffers
                .get(pending.buffer, pending.bytes as usize)
                .and_then(|bytes| RecvMsgOut::parse(bytes, &shared.receive_header).ok());
            let whole = message
                .as_ref()
                .filter(|message| !message.is_payload_truncated());
            let message = whole.map(|message| {
                let bytes = message.payload_data();
                let segment = gro_segment(message.control_data()).unwrap_or(bytes.len());
                (bytes, segment.max(1))
            });
            let socket = &mut sockets[usize::from(pending.socket)];
            let done = &mut pending.done;
            let all = deliver(socket, counters, message, done, &mut turn, sink);
            if all {
                shared.buffers.give_back(pending.buffer);
                self.pending.pop_front();
            }
        }
        shared.buffers.publish();
        turn.frames
    }

    fn frame_buffer(&mut self, port: PortId) -> &mut [u8] {
        if !self.ports.has_room(port) {
            self.flush();
            if let Err(error) = self.enter(Some(Duration::ZERO)) {
                tracing::error!(%error, "io_uring_enter");
                self.finish_sends();
            }
        }
        self.ports.room(port)
    }

    /// Queues the sends: the next [`wait`](Backend::wait) submits them and waits in one call.
    fn flush(&mut self) {
        self.queue_sends();
    }
}

/// A ring whose completions are processed in our own calls, on kernels that support it (Linux 6.1).
fn build_ring() -> io::Result<IoUring> {
    let mut builder = IoUring::builder();
    builder.setup_cqsize(COMPLETIONS).setup_submit_all();
    let mut modern = builder.clone();
    modern
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_taskrun_flag();
    match modern.build(ENTRIES) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => builder.build(ENTRIES),
        result => result,
    }
}

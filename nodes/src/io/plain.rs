//! The plain engine: `recvmmsg`, `sendmmsg`, `epoll`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use phitwire::node::PortId;

use super::mmsg::{self, BATCH, ReceiveBatch};
use super::ports::{Ports, Turn, deliver};
use super::socket::PortSocket;
use super::{Backend, FrameSink};

/// Number of ports up to which a busy node polls each port: one `recvmmsg` costs no more than the
/// `epoll_wait` that would select the ports.
const ASK_DIRECTLY: usize = 2;

/// `epoll` data of the side descriptor.
const SIDE: u64 = u64::MAX;

/// Received messages of one socket that have not been handed up.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    socket: usize,
    next: usize,
    /// End of the range, exclusive.
    end: usize,
    /// Frames of the first message already handed up.
    done: usize,
}

/// See the module docs.
pub struct PlainBackend {
    ports: Ports,
    epoll: Epoll,
    receive: ReceiveBatch,
    /// Received messages not yet handed up.
    pending: Pending,
    /// Bit mask of the sockets, by index, that may have something to receive.
    ready: u64,
    /// The last socket received from; the next batch comes from the next ready one.
    last: u32,
    precise_wait: bool,
}

impl PlainBackend {
    /// Starts the engine on open sockets; [`Backend::wait`] watches `side` as well.
    ///
    /// # Errors
    /// When the kernel refuses an `epoll` descriptor.
    pub fn new(sockets: Vec<PortSocket>, side: Option<RawFd>) -> io::Result<Self> {
        let ports = Ports::new(sockets);
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let watch = |fd: RawFd, data| {
            // SAFETY: the sockets live in `ports` as long as this engine; the side descriptor is
            // borrowed only for the call that registers it.
            let fd = unsafe { BorrowedFd::borrow_raw(fd) };
            epoll.add(fd, EpollEvent::new(EpollFlags::EPOLLIN, data))
        };
        for (index, socket) in ports.sockets.iter().enumerate() {
            watch(socket.raw_fd(), index as u64)?;
        }
        if let Some(fd) = side {
            watch(fd, SIDE)?;
        }
        let receive = ReceiveBatch::new(ports.message_limit().max(64));
        Ok(Self {
            ports,
            epoll,
            receive,
            pending: Pending::default(),
            ready: 0,
            last: 0,
            precise_wait: true,
        })
    }

    /// `epoll_pwait2`, with its timeout in nanoseconds; before Linux 5.11, `epoll_wait` with the
    /// timeout rounded up to milliseconds.
    fn wait_for_events(
        &mut self,
        events: &mut [EpollEvent],
        timeout: Option<Duration>,
    ) -> Result<usize, Errno> {
        self.ports.counters.system_calls += 1;
        if self.precise_wait {
            match epoll_pwait2(&self.epoll, events, timeout) {
                Err(Errno::ENOSYS) => self.precise_wait = false,
                result => return result,
            }
        }
        let milliseconds = timeout.map_or(-1, |t| {
            t.as_nanos().div_ceil(1_000_000).min(i32::MAX as u128) as i32
        });
        let timeout = nix::sys::epoll::EpollTimeout::try_from(milliseconds)
            .expect("the timeout is -1 or not negative");
        self.epoll.wait(events, timeout)
    }

    /// Receives a batch of messages on the next socket that may have some. Returns false when no
    /// socket has any.
    fn refill(&mut self) -> bool {
        let Some(index) = next_ready(self.ready, self.last) else {
            return false;
        };
        self.last = index;
        let counters = &mut self.ports.counters;
        counters.system_calls += 1;
        let messages = match self
            .receive
            .receive(self.ports.sockets[index as usize].raw_fd())
        {
            Ok(count) => count,
            Err(errno) => {
                counters.rx_errors += u64::from(!matches!(errno, Errno::EAGAIN | Errno::EINTR));
                0
            }
        };
        if messages < BATCH {
            self.ready &= !(1 << index);
        }
        self.pending = Pending {
            socket: index as usize,
            next: 0,
            end: messages,
            done: 0,
        };
        true
    }

    /// Passes frames of received messages to `sink` until none are left or the turn is over.
    fn hand_up(&mut self, turn: &mut Turn, sink: &mut dyn FrameSink) {
        let Ports {
            sockets, counters, ..
        } = &mut self.ports;
        let pending = &mut self.pending;
        while !turn.is_over() && pending.next < pending.end {
            let socket = &mut sockets[pending.socket];
            let message = self.receive.message(pending.next);
            let all = deliver(socket, counters, message, &mut pending.done, turn, sink);
            if all {
                pending.next += 1;
                pending.done = 0;
            }
        }
    }
}

impl Backend for PlainBackend {
    fn ports(&self) -> &Ports {
        &self.ports
    }

    fn ports_mut(&mut self) -> &mut Ports {
        &mut self.ports
    }

    fn engine(&self) -> &'static str {
        "plain"
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        let sockets = self.ports.sockets.len();
        let received = self.pending.next < self.pending.end;
        let timeout = if received {
            Some(Duration::ZERO)
        } else {
            timeout
        };
        if timeout == Some(Duration::ZERO) && sockets <= ASK_DIRECTLY {
            self.ready = (1 << sockets) - 1;
            return Ok(false);
        }
        let mut events = [EpollEvent::empty(); 65];
        let count = match self.wait_for_events(&mut events, timeout) {
            Ok(count) => count,
            Err(Errno::EINTR) => return Ok(false),
            Err(errno) => return Err(errno.into()),
        };
        let mut side = false;
        for event in &events[..count] {
            match event.data() {
                SIDE => side = true,
                index => self.ready |= 1 << index,
            }
        }
        Ok(side)
    }

    fn receive(&mut self, sink: &mut dyn FrameSink) -> usize {
        let mut turn = self.ports.turn();
        loop {
            self.hand_up(&mut turn, sink);
            if turn.is_over() || !self.refill() {
                return turn.frames;
            }
        }
    }

    fn frame_buffer(&mut self, port: PortId) -> &mut [u8] {
        if !self.ports.has_room(port) {
            self.flush();
        }
        self.ports.room(port)
    }

    fn flush(&mut self) {
        let mut next = 0;
        while let Some(&first) = self.ports.batch.messages().get(next) {
            let messages = &self.ports.batch.messages()[next..];
            let same_port = messages.iter().take_while(|m| m.port == first.port).count();
            let Some(socket) = self.ports.socket(first.port) else {
                break;
            };
            let result = mmsg::send(socket.raw_fd(), &self.ports.batch, &messages[..same_port]);
            self.ports.counters.system_calls += 1;
            match result {
                Ok(sent) => {
                    for i in next..next + sent {
                        self.ports.sent(self.ports.batch.messages()[i]);
                    }
                    next += sent;
                }
                Err(Errno::EINTR) => {}
                Err(errno) => {
                    self.ports.not_sent(first, errno);
                    next += 1;
                }
            }
        }
        self.ports.batch.clear();
    }
}

/// The first `ready` socket after `last`, cyclically.
const fn next_ready(ready: u64, last: u32) -> Option<u32> {
    if ready == 0 {
        return None;
    }
    let first = last + 1;
    Some((ready.rotate_right(first % u64::BITS).trailing_zeros() + first) % u64::BITS)
}

/// `epoll_pwait2` without a signal mask.
fn epoll_pwait2(
    epoll: &Epoll,
    events: &mut [EpollEvent],
    timeout: Option<Duration>,
) -> Result<usize, Errno> {
    let timeout = timeout.map(|t| libc::timespec {
        tv_sec: t.as_secs() as libc::time_t,
        tv_nsec: t.subsec_nanos().into(),
    });
    let timeout = timeout
        .as_ref()
        .map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: `EpollEvent` is a transparent wrapper of `epoll_event`; pointer and length are those
    // of a slice borrowed mutably through the call; the timeout is null or points to a local that
    // lives through the call. The call is by number because older C libraries lack the function.
    let count = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            epoll.0.as_raw_fd(),
            events.as_mut_ptr(),
            events.len() as libc::c_int,
            timeout,
            std::ptr::null::<libc::sigset_t>(),
            0usize,
        )
    };
    Errno::result(count).map(|n| n as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_take_turns() {
        assert_eq!(next_ready(0, 5), None);
        for only in [0, 1, 62, 63] {
            for last in [0, 1, 62, 63] {
                assert_eq!(next_ready(1 << only, last), Some(only));
            }
        }
        let ready = 1 | 1 << 7 | 1 << 63;
        assert_eq!(next_ready(ready, 0), Some(7));
        assert_eq!(next_ready(ready, 7), Some(63));
        assert_eq!(next_ready(ready, 63), Some(0));
    }
}

//! Taps: passive sockets that receive copies of the frames that pass an interface.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg, setsockopt, sockopt,
};
use nix::sys::time::TimeSpec;
use phitwire_framing::carrier::frame::{ETHERTYPE, UDP_PORT};
use socket2::{Domain, SockFilter, Socket, Type};

use super::kernel_drops::SocketDrops;
use super::socket::bind_packet;

/// Requested buffer size. More than the system's limit is granted only to privileged processes.
const BUFFER_BYTES: usize = 8 << 20;
/// Longest message: a train of datagrams that segmentation offload keeps in one piece.
const MESSAGE_BYTES: usize = 1 << 16;
/// Messages per system call.
const BATCH: usize = 32;
/// All protocols: a socket for a single protocol does not see the machine's outgoing frames.
const ALL_PROTOCOLS: u16 = libc::ETH_P_ALL as u16;

/// The direction of the frames that a tap sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TapDirection {
    /// Outgoing, after the queueing discipline: without frames that netem drops, and with frames
    /// that it damages.
    Sent,
    /// Incoming, before nftables: with frames that it drops.
    Received,
}

#[derive(Debug)]
pub struct Tap {
    socket: Socket,
    drops: SocketDrops,
}

impl Tap {
    /// A tap of the interface with this index, in the namespace of the calling thread.
    ///
    /// # Errors
    /// Errors of the kernel, such as a lack of `CAP_NET_RAW` there.
    pub fn open(index: u32, direction: TapDirection) -> io::Result<Self> {
        // Use protocol 0 until bound, so that the socket does not receive from other interfaces.
        let socket = Socket::new(Domain::PACKET, Type::RAW.nonblocking(), None)?;
        if setsockopt(&socket, sockopt::RcvBufForce, &BUFFER_BYTES).is_err() {
            let _ = socket.set_recv_buffer_size(BUFFER_BYTES);
        }
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
        socket.attach_filter(&link_frames(direction))?;
        bind_packet(&socket, index, ALL_PROTOCOLS)?;
        let drops = SocketDrops::default();
        Ok(Self { socket, drops })
    }

    /// Messages dropped so far for lack of buffer.
    pub fn dropped(&self) -> u64 {
        self.drops.read(self.socket.as_raw_fd())
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

pub struct TapReader {
    headers: MultiHeaders<SockaddrStorage>,
    buffers: Vec<u8>,
}

impl Default for TapReader {
    fn default() -> Self {
        Self {
            headers: MultiHeaders::preallocate(BATCH, Some(cmsg_space!(TimeSpec))),
            buffers: vec![0; BATCH * MESSAGE_BYTES],
        }
    }
}

impl TapReader {
    /// Calls `each` with the time, in nanoseconds since 1970, and the bytes of the next messages of
    /// `tap`. Returns whether there may be more.
    ///
    /// # Errors
    /// Errors of the kernel, such as a missing interface; an empty socket is not an error.
    pub fn read(&mut self, tap: &Tap, mut each: impl FnMut(u64, &[u8])) -> io::Result<bool> {
        let mut slices: Vec<[IoSliceMut<'_>; 1]> = self
            .buffers
            .chunks_exact_mut(MESSAGE_BYTES)
            .map(|buffer| [IoSliceMut::new(buffer)])
            .collect();
        let fd = tap.socket.as_raw_fd();
        let flags = MsgFlags::MSG_DONTWAIT;
        let messages = match recvmmsg(fd, &mut self.headers, slices.iter_mut(), flags, None) {
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(false),
            read => read?,
        };
        let mut count = 0;
        for message in messages {
            count += 1;
            let stamp = message.cmsgs().into_iter().flatten().find_map(|m| match m {
                ControlMessageOwned::ScmTimestampns(at) => Some(at),
                _ => None,
            });
            let at = stamp.map_or(0, |at| {
                at.tv_sec() as u64 * 1_000_000_000 + at.tv_nsec() as u64
            });
            if let Some(bytes) = message.iovs().next() {
                each(at, bytes);
            }
        }
        Ok(count == BATCH)
    }
}

/// A BPF program that passes link frames of one direction: those of the EtherType, and datagrams to
/// the UDP port.
fn link_frames(direction: TapDirection) -> [SockFilter; 14] {
    // Load instructions: a word, a half word or a byte at an offset, or an IP header's length.
    const WORD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const HALF: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_ABS) as u16;
    const BYTE: u16 = (libc::BPF_LD | libc::BPF_B | libc::BPF_ABS) as u16;
    const HALF_BEHIND: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_IND) as u16;
    const IP_LENGTH: u16 = (libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH) as u16;
    const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const HAS: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let op = |code, k| SockFilter::new(code, 0, 0, k);
    let branch = |code, k, yes, no| SockFilter::new(code, yes, no, k);
    let way = (libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE) as u32;
    let outgoing = u32::from(libc::PACKET_OUTGOING);
    // Positions of the last two instructions, which drop a frame or take it whole.
    let (drop, take) = (12, 13);
    let to = |from: u8, target: u8| target - from - 1;
    let (yes, no) = match direction {
        TapDirection::Sent => (0, to(1, drop)),
        TapDirection::Received => (to(1, drop), 0),
    };
    [
        op(WORD, way),
        branch(EQUAL, outgoing, yes, no),
        op(HALF, 12),
        branch(EQUAL, ETHERTYPE.into(), to(3, take), 0),
        branch(EQUAL, libc::ETH_P_IP as u32, 0, to(4, drop)),
        op(BYTE, 14 + 9),
        branch(EQUAL, libc::IPPROTO_UDP as u32, 0, to(6, drop)),
        op(HALF, 14 + 6),
        // Fragments after the first have no UDP header.
        branch(HAS, 0x1fff, to(8, drop), 0),
        op(IP_LENGTH, 14),
        op(HALF_BEHIND, 14 + 2),
        branch(EQUAL, UDP_PORT.into(), to(11, take), 0),
        op(RETURN, 0),
        op(RETURN, u32::MAX),
    ]
}

//! Access to one end of a link: sees every frame that passes and sends any frame.

use std::error::Error;
use std::fs::File;
use std::io;
use std::os::fd::IntoRawFd;
use std::time::Duration;

use nix::sched::{CloneFlags, setns};
use nix::sys::socket::{setsockopt, sockopt};
use phitwire_framing::aries::frame::{SetFrame, set_frame_len};
use phitwire_framing::carrier::frame::{ETHERTYPE, FrameHeader, UDP_PORT};
use phitwire_framing::carrier::training::{TRAINING_BYTES, Training};
use phitwire_framing::yarc::frame::{DataFrame, frame_len};
use pnet::datalink::{self, Channel, Config, DataLinkReceiver, DataLinkSender};
use pnet::packet::Packet;
use pnet::packet::ethernet::{EtherTypes, EthernetPacket};
use pnet::packet::ip::IpNextHeaderProtocols;
use pnet::packet::ipv4::{self, Ipv4Flags, Ipv4Packet, MutableIpv4Packet};
use pnet::packet::udp::{self, MutableUdpPacket, UdpPacket};
use pnet::util::MacAddr;
use socket2::{Domain, SockFilter, Socket, Type};

use crate::plan::End;

const ETHERNET_BYTES: usize = 14;
const IP_BYTES: usize = 20;
const UDP_BYTES: usize = 8;
/// Longest IP packet on a wire of a lab, in bytes.
const MTU: usize = 1_500;
/// Longest message, in bytes: the kernel delivers several frames to a listener before it segments
/// them.
pub const MAX_MESSAGE_BYTES: usize = 1 << 17;
/// Bytes sent and not yet delivered by the kernel before a sender blocks.
const SEND_BUFFER_BYTES: usize = 4 << 20;

/// Options for listening on a link.
pub struct Hearing {
    /// Time limit of [`Wire::listen`].
    pub patience: Duration,
    /// Size of the receive buffer in bytes.
    pub backlog: usize,
    /// Bytes kept of each message.
    pub message: usize,
}

/// Sender of a frame that passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The node at this end of the link.
    Own,
    /// The node at the other end, which is attacked.
    Peer,
}

/// The attacker's sockets at one end of a link.
pub struct Wire {
    tx: Box<dyn DataLinkSender>,
    rx: Box<dyn DataLinkReceiver>,
    mac: MacAddr,
    /// Headers of the node's frames: Ethernet, on UDP links followed by IP and UDP.
    envelope: Vec<u8>,
    message: Vec<u8>,
    datagrams: u16,
}

impl Wire {
    /// Moves this thread to the namespace of `end` and opens its interface.
    pub fn open(end: &End, hearing: &Hearing) -> Result<Self, Box<dyn Error>> {
        let at =
            |error: &dyn std::fmt::Display| format!("{}, {}: {error}", end.node, end.interface);
        let netns = File::open(&end.netns).map_err(|error| at(&error))?;
        setns(netns, CloneFlags::CLONE_NEWNET).map_err(|error| at(&error))?;
        let interface = datalink::interfaces()
            .into_iter()
            .find(|found| found.name == end.interface)
            .ok_or_else(|| at(&"no such interface"))?;
        let socket = Socket::new(Domain::PACKET, Type::RAW, None)?;
        setsockopt(&socket, sockopt::RcvBufForce, &hearing.backlog)
            .or_else(|_| setsockopt(&socket, sockopt::RcvBuf, &hearing.backlog))?;
        setsockopt(&socket, sockopt::SndBufForce, &SEND_BUFFER_BYTES)
            .or_else(|_| setsockopt(&socket, sockopt::SndBuf, &SEND_BUFFER_BYTES))?;
        // The filter returns the number of bytes to deliver of each message.
        socket.attach_filter(&[SockFilter::new(
            (libc::BPF_RET | libc::BPF_K) as u16,
            0,
            0,
            hearing.message as u32,
        )])?;
        let config = Config {
            read_buffer_size: MAX_MESSAGE_BYTES,
            read_timeout: Some(hearing.patience),
            promiscuous: false,
            socket_fd: Some(socket.into_raw_fd()),
            ..Config::default()
        };
        let Channel::Ethernet(tx, rx) =
            datalink::channel(&interface, config).map_err(|error| at(&error))?
        else {
            return Err(at(&"no Ethernet channel").into());
        };
        Ok(Self {
            tx,
            rx,
            mac: interface.mac.unwrap_or_default(),
            envelope: Vec::new(),
            message: Vec::new(),
            datagrams: 0,
        })
    }

    /// Passes the link frames of the next message to `each`. Returns false if none passed in time.
    pub fn listen(&mut self, mut each: impl FnMut(Sender, &[u8])) -> io::Result<bool> {
        let message = match self.rx.next() {
            Ok(message) => message,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::TimedOut
                        | io::ErrorKind::Interrupted
                        | io::ErrorKind::WouldBlock
                ) =>
            {
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        let Some((header_bytes, mut frames)) = link_frames(message) else {
            return Ok(true);
        };
        let own =
            EthernetPacket::new(message).is_some_and(|packet| packet.get_source() == self.mac);
        let sender = if own { Sender::Own } else { Sender::Peer };
        if own && self.envelope.is_empty() {
            self.envelope.extend_from_slice(&message[..header_bytes]);
        }
        while let Some(length) = frame_bytes(frames).filter(|length| *length <= frames.len()) {
            let (frame, rest) = frames.split_at(length);
            each(sender, frame);
            frames = rest;
        }
        Ok(true)
    }

    /// Whether a frame of the node has passed; before that, the addresses are unknown.
    pub fn is_known(&self) -> bool {
        !self.envelope.is_empty()
    }

    /// Whether the link's frames travel in UDP datagrams.
    pub fn is_udp(&self) -> bool {
        self.envelope.len() > ETHERNET_BYTES
    }

    /// Sends `frame` as if it came from the node at this end.
    pub fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        if self.is_udp() {
            return self.send_datagram(frame);
        }
        self.message.clear();
        self.message.extend_from_slice(&self.envelope);
        self.message.extend_from_slice(frame);
        self.put()
    }

    fn put(&mut self) -> io::Result<()> {
        self.tx
            .send_to(&self.message, None)
            .unwrap_or_else(|| Err(io::Error::other("nothing can be sent on this interface")))
    }

    /// Sends a datagram with correct checksums, in as many fragments as needed.
    fn send_datagram(&mut self, frame: &[u8]) -> io::Result<()> {
        let (ip_header, udp_header) = self.envelope[ETHERNET_BYTES..].split_at(IP_BYTES);
        let broken = || io::Error::other("the headers of a UDP link are not whole");
        let ip = Ipv4Packet::new(ip_header).ok_or_else(broken)?;
        let (from, to) = (ip.get_source(), ip.get_destination());
        let mut datagram = [udp_header, frame].concat();
        let length = u16::try_from(datagram.len()).map_err(io::Error::other)?;
        let mut packet = MutableUdpPacket::new(&mut datagram).ok_or_else(broken)?;
        packet.set_length(length);
        packet.set_checksum(0);
        let checksum = udp::ipv4_checksum(&packet.to_immutable(), &from, &to);
        packet.set_checksum(if checksum == 0 { u16::MAX } else { checksum });
        self.datagrams = self.datagrams.wrapping_add(1);
        let most = (MTU - IP_BYTES) / 8 * 8;
        let last = datagram.len().div_ceil(most).max(1) - 1;
        for (index, piece) in datagram.chunks(most).enumerate() {
            self.message.clear();
            self.message
                .extend_from_slice(&self.envelope[..ETHERNET_BYTES + IP_BYTES]);
            let mut packet =
                MutableIpv4Packet::new(&mut self.message[ETHERNET_BYTES..]).ok_or_else(broken)?;
            packet.set_total_length((IP_BYTES + piece.len()) as u16);
            packet.set_identification(self.datagrams);
            packet.set_flags(if index < last {
                Ipv4Flags::MoreFragments
            } else {
                0
            });
            packet.set_fragment_offset((index * most / 8) as u16);
            packet.set_checksum(0);
            let checksum = ipv4::checksum(&packet.to_immutable());
            packet.set_checksum(checksum);
            self.message.extend_from_slice(piece);
            self.put()?;
        }
        Ok(())
    }
}

/// Length of the headers around the link frames of a message, and the frames.
fn link_frames(message: &[u8]) -> Option<(usize, &[u8])> {
    let packet = EthernetPacket::new(message)?;
    let ethertype = packet.get_ethertype();
    if ethertype.0 == ETHERTYPE {
        return Some((ETHERNET_BYTES, &message[ETHERNET_BYTES..]));
    }
    if ethertype != EtherTypes::Ipv4 {
        return None;
    }
    let ip = Ipv4Packet::new(packet.payload())?;
    if ip.get_next_level_protocol() != IpNextHeaderProtocols::Udp || ip.get_fragment_offset() != 0 {
        return None;
    }
    let udp = UdpPacket::new(ip.payload())?;
    let headers = ETHERNET_BYTES + IP_BYTES + UDP_BYTES;
    // A message that the kernel has not yet segmented holds the payloads of several datagrams.
    (udp.get_destination() == UDP_PORT && message.len() > headers)
        .then(|| (headers, &message[headers..]))
}

/// Length of the frame at the start of `bytes` according to its header.
fn frame_bytes(bytes: &[u8]) -> Option<usize> {
    let header = FrameHeader::parse(bytes).ok()?;
    Some(match header.kind {
        DataFrame::KIND => frame_len(usize::from(header.units)),
        Training::KIND => TRAINING_BYTES,
        SetFrame::KIND => set_frame_len(usize::from(header.units)),
        _ => return None,
    })
}

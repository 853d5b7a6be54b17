//! The socket of a port.

use std::io;
use std::mem::size_of;
use std::net::SocketAddrV4;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::sys::socket::{setsockopt, sockopt};
use phitwire::node::PortId;
use phitwire_framing::carrier::frame::ETHERTYPE;
use pnet::packet::ethernet::{EtherType, EthernetPacket, MutableEthernetPacket};
use pnet::util::MacAddr;
use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, Type};

use super::interface::{Interface, find_interface};
use super::kernel_drops::SocketDrops;
use super::open_error::OpenError;
use super::send_trouble::Trouble;
use super::{
    ETHERNET_HEADER_BYTES, LinkKind, MIN_FRAME_LIMIT_BYTES, UDP_HEADERS_BYTES,
    UDP_MAX_PAYLOAD_BYTES,
};

/// Kernel buffer requested per socket and direction, in bytes: several round trips of a link at
/// full speed, so that a process that does not run for some milliseconds loses nothing.
const SOCKET_BUFFER_BYTES: usize = 8 << 20;

/// Default frame limit of ports on the loopback interface, the same as on Ethernet. The interface's
/// MTU of 64 KiB would make links there behave unlike any other.
const LOOPBACK_MTU: usize = 1500;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attachment {
    /// UDP between two addresses, bound to an interface if one is named.
    Udp {
        local: SocketAddrV4,
        peer: SocketAddrV4,
        /// The interface that the link must use; `None` on loopback.
        interface: Option<String>,
    },
    /// Raw Ethernet on an interface.
    Ethernet {
        interface: String,
        /// Whether frames skip the interface's queueing discipline (`PACKET_QDISC_BYPASS`). Faster,
        /// but `tc` then has no effect on the interface.
        qdisc_bypass: bool,
    },
}

/// A port to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortConfig {
    pub port: PortId,
    pub attachment: Attachment,
    /// Largest interface MTU to use, in bytes; `None` takes the interface's own.
    pub mtu: Option<usize>,
}

pub(super) type HardwareAddress = [u8; 6];

const BROADCAST: HardwareAddress = [0xff; 6];

/// Number of silence checks for which two addresses stay disputed after both were heard: 2 s. An
/// end that receives nothing probes its peer after 0.5 s, so frames replayed by a stranger rarely
/// outlast a peer that sends little.
const DISPUTE_LOOKS: u32 = 8;

#[derive(Debug)]
pub struct PortSocket {
    port: PortId,
    fd: OwnedFd,
    kind: LinkKind,
    frame_limit: usize,
    header: [u8; ETHERNET_HEADER_BYTES],
    /// Number of silence checks until the address is no longer disputed; until then frames are
    /// broadcast.
    disputed: u32,
    /// Source of the last accepted frame while the address is disputed.
    last_heard: HardwareAddress,
    /// Frames that the link had accepted at the last report.
    accepted: u64,
    /// Index and name of the interface that the socket is bound to, if any.
    bound_to: Option<(u32, String)>,
    /// Local and remote address of a UDP socket that is not yet connected because its interface had
    /// no route.
    unconnected: Option<(SocketAddrV4, SocketAddrV4)>,
    /// Whether the socket was opened while its interface was missing or unusable.
    is_detached: bool,
    /// Whether the kernel segments on this port: cleared when it refuses, until the port is bound
    /// again.
    segmentation_works: bool,
    pub(super) sent: u64,
    /// The current trouble, while the kernel rejects frames.
    pub(super) trouble: Option<Trouble>,
    drops: SocketDrops,
}

impl PortSocket {
    fn new(
        port: PortId,
        socket: Socket,
        (kind, frame_limit): (LinkKind, usize),
        interface: Option<(u32, String, MacAddr)>,
    ) -> Self {
        let is_udp = kind == LinkKind::Udp;
        let header = match &interface {
            Some((_, _, mac)) if !is_udp => ethernet_header(*mac),
            _ => [0; ETHERNET_HEADER_BYTES],
        };
        Self {
            port,
            fd: socket.into(),
            kind,
            frame_limit,
            header,
            disputed: 0,
            last_heard: BROADCAST,
            accepted: 0,
            bound_to: interface.map(|(index, name, _)| (index, name)),
            unconnected: None,
            is_detached: false,
            segmentation_works: is_udp,
            sent: 0,
            trouble: None,
            drops: SocketDrops::default(),
        }
    }

    pub fn port(&self) -> PortId {
        self.port
    }

    /// The descriptor, open as long as this value lives.
    pub fn raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Longest link frame, in bytes.
    pub fn frame_limit(&self) -> usize {
        self.frame_limit
    }

    pub fn kind(&self) -> LinkKind {
        self.kind
    }

    /// Header of every frame sent: the Ethernet header, or empty.
    pub(super) fn header(&self) -> &[u8] {
        match self.kind {
            LinkKind::Udp => &[],
            LinkKind::Ethernet => &self.header,
        }
    }

    /// Whether several frames may go out in one send.
    pub(super) fn may_segment(&self) -> bool {
        self.kind == LinkKind::Udp && self.segmentation_works
    }

    /// Name of the interface that the socket is bound to.
    pub(super) fn interface(&self) -> Option<&str> {
        self.bound_to.as_ref().map(|(_, name)| name.as_str())
    }

    /// Whether the port needs [`attach_again`](Self::attach_again) before it can send.
    pub(super) const fn is_detached(&self) -> bool {
        self.is_detached
    }

    /// Messages dropped because the receive buffer was full.
    pub(super) fn dropped_when_full(&self) -> u64 {
        self.drops.read(self.raw_fd())
    }

    /// Binds the socket to the port's interface, which has index `index`, is usable (again) and may
    /// be a new one of the same name. The descriptor stays the same, so that waits on it remain
    /// valid.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub(super) fn attach_again(&mut self, index: u32, mac: MacAddr) -> io::Result<()> {
        self.segmentation_works = self.kind == LinkKind::Udp;
        let Some((bound, name)) = &mut self.bound_to else {
            return Ok(());
        };
        let socket = SockRef::from(&self.fd);
        match self.kind {
            LinkKind::Udp => {
                socket.bind_device(Some(name.as_bytes()))?;
                if let Some((local, peer)) = self.unconnected {
                    if socket.local_addr()?.as_socket_ipv4() != Some(local) {
                        socket.bind(&SockAddr::from(local))?;
                    }
                    socket.connect(&SockAddr::from(peer))?;
                    self.unconnected = None;
                }
            }
            LinkKind::Ethernet => {
                bind_packet(&socket, index, ETHERTYPE)?;
                self.header = ethernet_header(mac);
            }
        }
        *bound = index;
        self.is_detached = false;
        Ok(())
    }

    /// Stops trying segmentation on this port, where the kernel or the device cannot segment.
    pub(super) fn forbid_segmentation(&mut self) {
        self.segmentation_works = false;
    }

    /// The link frame in a received message; `None` for foreign messages.
    pub(super) fn accept<'a>(&self, message: &'a [u8]) -> Option<&'a [u8]> {
        if self.kind == LinkKind::Udp {
            return Some(message);
        }
        let packet = EthernetPacket::new(message)?;
        if packet.get_ethertype() != EtherType::new(ETHERTYPE) {
            return None;
        }
        Some(&message[ETHERNET_HEADER_BYTES..])
    }

    /// The source of an [accepted](Self::accept) message, if it differs from this port's
    /// destination and is a unicast address. A group address, marked by the lowest bit of the first
    /// byte, may be the result of corruption on the wire.
    #[inline]
    pub(super) fn newcomer(&self, message: &[u8]) -> Option<HardwareAddress> {
        if self.kind == LinkKind::Udp {
            return None;
        }
        let from = *message.get(6..)?.first_chunk()?;
        (from != self.destination() && from[0] & 1 == 0).then_some(from)
    }

    /// Records that the link accepted a frame from a [newcomer](Self::newcomer), which replaces a
    /// broadcast destination. If another address is known, either may be the peer's: this one may
    /// have been damaged on the wire, or the frame may be a copy that a stranger keeps replaying.
    /// Frames are then broadcast until only one address has been heard for [long
    /// enough](DISPUTE_LOOKS).
    pub(super) fn heard_from(&mut self, from: HardwareAddress) {
        let is_other = if self.disputed > 0 {
            from != self.last_heard
        } else {
            self.destination() != BROADCAST
        };
        if is_other {
            self.disputed = DISPUTE_LOOKS;
        }
        self.last_heard = from;
        let to = if self.disputed > 0 { BROADCAST } else { from };
        self.header[..6].copy_from_slice(&to);
    }

    /// Checks for silence: the link has accepted `accepted` frames so far. If that is unchanged
    /// since the last call, frames to the known address may not arrive, so they are broadcast
    /// again.
    pub(super) fn forget_if_silent(&mut self, accepted: u64) {
        self.disputed = self.disputed.saturating_sub(1);
        if std::mem::replace(&mut self.accepted, accepted) == accepted {
            self.header[..6].copy_from_slice(&BROADCAST);
        }
    }

    fn destination(&self) -> HardwareAddress {
        let [a, b, c, d, e, f, ..] = self.header;
        [a, b, c, d, e, f]
    }
}

/// Opens the socket of a port: non-blocking, bound, connected to its peer, with large buffers.
///
/// # Errors
/// See [`OpenError`].
pub fn open_port(config: &PortConfig) -> Result<PortSocket, OpenError> {
    match &config.attachment {
        Attachment::Udp {
            local,
            peer,
            interface,
        } => open_udp(config, *local, *peer, interface.as_deref()),
        Attachment::Ethernet {
            interface,
            qdisc_bypass,
        } => open_ethernet(config, interface, *qdisc_bypass),
    }
}

/// Sets the path MTU of the link to the MTU of its interface. Otherwise the kernel would trust any
/// ICMP message that names a smaller one, and reject full frames for ten minutes. A narrower hop
/// may fragment datagrams instead.
fn keep_to_interface_mtu(socket: &Socket) -> io::Result<()> {
    let how = libc::IP_PMTUDISC_INTERFACE;
    set_int(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, how)
}

fn open_udp(
    config: &PortConfig,
    local: SocketAddrV4,
    peer: SocketAddrV4,
    interface: Option<&str>,
) -> Result<PortSocket, OpenError> {
    let port = config.port;
    let system = |call| move |source| OpenError::System { port, call, source };
    let found = interface.map(|name| look_up(port, name)).transpose()?;
    let mtu = match &found {
        Some(found) => mtu_of_port(config, found)?,
        None => config.mtu.unwrap_or(LOOPBACK_MTU),
    };
    let limit = mtu
        .saturating_sub(UDP_HEADERS_BYTES)
        .min(UDP_MAX_PAYLOAD_BYTES);
    let frame_limit = checked_limit(port, mtu, limit)?;
    let socket = udp_socket(port)?;
    if let Some(name) = interface {
        socket
            .bind_device(Some(name.as_bytes()))
            .map_err(system("bind to the interface"))?;
    }
    bind_patiently(&socket, &SockAddr::from(local)).map_err(|source| {
        let remedy = if source.kind() == io::ErrorKind::AddrInUse {
            "another process uses it; stop that process, or choose another --loopback base port"
        } else {
            "add this address to the interface with `ip addr add` (`netns-scripts/up.sh` does)"
        };
        OpenError::Bind {
            port,
            local,
            source,
            remedy,
        }
    })?;
    let connected = socket.connect(&SockAddr::from(peer));
    let limit = (LinkKind::Udp, frame_limit);
    let interface = found.map(|found| (found.index, found.name, found.mac));
    let mut opened = PortSocket::new(port, socket, limit, interface);
    match connected {
        Ok(()) => {}
        // An interface that is down has no route to the peer: the port connects when it is up.
        Err(error) if opened.bound_to.is_some() && is_unreachable(&error) => {
            opened.unconnected = Some((local, peer));
            opened.is_detached = true;
        }
        Err(error) => return Err(system("connect the UDP socket")(error)),
    }
    Ok(opened)
}

fn is_unreachable(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENETUNREACH | libc::EHOSTUNREACH | libc::ENETDOWN)
    )
}

fn udp_socket(port: PortId) -> Result<Socket, OpenError> {
    let system = |call| move |source| OpenError::System { port, call, source };
    let socket = Socket::new(Domain::IPV4, Type::DGRAM.nonblocking(), Some(Protocol::UDP))
        .map_err(system("open a UDP socket"))?;
    enlarge_buffers(port, &socket);
    keep_to_interface_mtu(&socket).map_err(system("set IP_MTU_DISCOVER"))?;
    // Continue without receive offload: the kernel then delivers segments one by one, only slower.
    if let Err(error) = setsockopt(&socket, sockopt::UdpGroSegment, &true) {
        tracing::info!(port, %error, "this port has no receive offload");
    }
    Ok(socket)
}

/// Opens the socket of a port whose interface is missing or unusable, for frames of up to
/// `frame_limit` bytes. It is bound when the interface becomes usable.
///
/// # Errors
/// See [`OpenError`].
pub(super) fn open_detached(
    config: &PortConfig,
    frame_limit: usize,
) -> Result<PortSocket, OpenError> {
    let nowhere = |interface: &String| Some((0, interface.clone(), MacAddr::zero()));
    let port = config.port;
    let mut opened = match &config.attachment {
        Attachment::Udp {
            local,
            peer,
            interface,
        } => {
            let limit = (LinkKind::Udp, frame_limit);
            let interface = interface.as_ref().and_then(nowhere);
            let mut opened = PortSocket::new(port, udp_socket(port)?, limit, interface);
            opened.unconnected = Some((*local, *peer));
            opened
        }
        Attachment::Ethernet {
            interface,
            qdisc_bypass,
        } => {
            let limit = (LinkKind::Ethernet, frame_limit);
            let socket = packet_socket(port, *qdisc_bypass)?;
            PortSocket::new(port, socket, limit, nowhere(interface))
        }
    };
    opened.is_detached = true;
    Ok(opened)
}

fn open_ethernet(
    config: &PortConfig,
    name: &str,
    qdisc_bypass: bool,
) -> Result<PortSocket, OpenError> {
    let port = config.port;
    let system = |call| move |source| OpenError::System { port, call, source };
    let interface = look_up(port, name)?;
    let mtu = mtu_of_port(config, &interface)?;
    let frame_limit = checked_limit(port, mtu, mtu)?;
    let socket = packet_socket(port, qdisc_bypass)?;
    bind_packet(&socket, interface.index, ETHERTYPE).map_err(system("bind to the interface"))?;
    let limit = (LinkKind::Ethernet, frame_limit);
    let interface = (interface.index, interface.name, interface.mac);
    Ok(PortSocket::new(port, socket, limit, Some(interface)))
}

fn packet_socket(port: PortId, qdisc_bypass: bool) -> Result<Socket, OpenError> {
    let system = |call| move |source| OpenError::System { port, call, source };
    // Use protocol 0 until bound: otherwise the socket would receive from every interface.
    let socket =
        Socket::new(Domain::PACKET, Type::RAW.nonblocking(), None).map_err(
            |source| match source.raw_os_error() {
                Some(libc::EPERM | libc::EACCES) => OpenError::NotPermitted { port },
                _ => OpenError::System {
                    port,
                    call: "open a raw Ethernet socket",
                    source,
                },
            },
        )?;
    enlarge_buffers(port, &socket);
    if qdisc_bypass {
        set_int(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1)
            .map_err(system("set PACKET_QDISC_BYPASS"))?;
    }
    Ok(socket)
}

/// Header of broadcast frames from the interface with this address.
fn ethernet_header(source: MacAddr) -> [u8; ETHERNET_HEADER_BYTES] {
    let mut header = [0; ETHERNET_HEADER_BYTES];
    let mut packet =
        MutableEthernetPacket::new(&mut header).expect("the array is as long as the header");
    packet.set_destination(MacAddr::broadcast());
    packet.set_source(source);
    packet.set_ethertype(EtherType::new(ETHERTYPE));
    header
}

fn look_up(port: PortId, name: &str) -> Result<Interface, OpenError> {
    find_interface(name).map_err(|known| OpenError::InterfaceMissing {
        port,
        interface: name.to_owned(),
        known: known.join(", "),
    })
}

/// The MTU to use: that of the interface, or less if configured.
fn mtu_of_port(config: &PortConfig, interface: &Interface) -> Result<usize, OpenError> {
    match config.mtu {
        Some(asked) if asked > interface.mtu => Err(OpenError::MtuTooLarge {
            port: config.port,
            asked,
            mtu: interface.mtu,
            interface: interface.name.clone(),
        }),
        Some(asked) => Ok(asked),
        None => Ok(interface.mtu),
    }
}

fn checked_limit(port: PortId, mtu: usize, limit: usize) -> Result<usize, OpenError> {
    if limit < MIN_FRAME_LIMIT_BYTES {
        return Err(OpenError::MtuTooSmall { port, mtu, limit });
    }
    Ok(limit)
}

/// Requests large kernel buffers, by privilege if available, else as large as `net.core.rmem_max`
/// and `wmem_max` allow.
fn enlarge_buffers(port: PortId, socket: &Socket) {
    if setsockopt(socket, sockopt::RcvBufForce, &SOCKET_BUFFER_BYTES).is_err() {
        let _ = socket.set_recv_buffer_size(SOCKET_BUFFER_BYTES);
    }
    if setsockopt(socket, sockopt::SndBufForce, &SOCKET_BUFFER_BYTES).is_err() {
        let _ = socket.set_send_buffer_size(SOCKET_BUFFER_BYTES);
    }
    let got = socket.recv_buffer_size().unwrap_or(0);
    if got < SOCKET_BUFFER_BYTES {
        tracing::debug!(
            port,
            got,
            wanted = SOCKET_BUFFER_BYTES,
            "small receive buffer; raise net.core.rmem_max to drop fewer frames under load"
        );
    }
}

fn set_int(
    socket: &Socket,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: the descriptor is open, and the value's address and length are those of an int
    // that lives through the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    Ok(Errno::result(result).map(drop)?)
}

/// Binds a packet socket to a protocol on one interface.
pub(super) fn bind_packet(socket: &Socket, index: u32, protocol: u16) -> io::Result<()> {
    // SAFETY: `sockaddr_ll` is plain data, for which zero is valid.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = index as libc::c_int;
    // SAFETY: the descriptor is open, and the address and its length describe a `sockaddr_ll`
    // that lives through the call.
    let result = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    Ok(Errno::result(result).map(drop)?)
}

/// Binds, retrying for a while if the address is still in use.
///
/// The kernel closes the io_uring sockets of a killed process some time after the process is gone,
/// so an immediate restart would find its own address in use.
fn bind_patiently(socket: &Socket, local: &SockAddr) -> io::Result<()> {
    const TRIES: u32 = 100;
    const BETWEEN: std::time::Duration = std::time::Duration::from_millis(20);
    for _ in 0..TRIES {
        match socket.bind(local) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => std::thread::sleep(BETWEEN),
            done => return done,
        }
    }
    socket.bind(local)
}

//! Why a port cannot be opened.

use std::io;
use std::net::SocketAddrV4;

use phitwire::node::PortId;

use super::MIN_FRAME_LIMIT_BYTES;

/// Why a port cannot be opened. The messages name the remedy.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no interface of that name.
    #[error(
        "port {port}: there is no interface `{interface}` in this network namespace (there are: \
         {known}); create it (`netns-scripts/up.sh` does) or start the process in the node's \
         namespace with `ip netns exec`"
    )]
    InterfaceMissing {
        /// The port.
        port: PortId,
        /// What was looked for.
        interface: String,
        /// What there is.
        known: String,
    },
    /// The process may not open raw sockets.
    #[error(
        "port {port}: not permitted to open a raw Ethernet socket; run as root, give the binary \
         CAP_NET_RAW (`setcap cap_net_raw+ep`), use `netns-scripts/rootless.sh`, or choose \
         `--link udp`"
    )]
    NotPermitted {
        /// The port.
        port: PortId,
    },
    /// The MTU leaves no room for the shortest link frame.
    #[error(
        "port {port}: an MTU of {mtu} leaves {limit} bytes for a link frame, but {} are needed; \
         raise it with `ip link set dev IF mtu N` or `--mtu N`",
        MIN_FRAME_LIMIT_BYTES
    )]
    MtuTooSmall {
        /// The port.
        port: PortId,
        /// The MTU.
        mtu: usize,
        /// What it leaves.
        limit: usize,
    },
    /// More was asked for than the interface takes.
    #[error(
        "port {port}: --mtu {asked} is more than the MTU {mtu} of interface `{interface}`; raise \
         that first with `ip link set dev {interface} mtu {asked}`"
    )]
    MtuTooLarge {
        /// The port.
        port: PortId,
        /// What was asked for.
        asked: usize,
        /// What the interface takes.
        mtu: usize,
        /// The interface.
        interface: String,
    },
    /// The local address is not there, or is in use.
    #[error("port {port}: cannot bind to UDP address {local}: {source}; {remedy}")]
    Bind {
        /// The port.
        port: PortId,
        /// The address.
        local: SocketAddrV4,
        /// What the kernel said.
        source: io::Error,
        /// What to do.
        remedy: &'static str,
    },
    /// Any other failing system call.
    #[error("port {port}: {call}: {source}")]
    System {
        /// The port.
        port: PortId,
        /// What failed.
        call: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The engine itself could not be set up.
    #[error("setting up the I/O engine: {0}")]
    Engine(#[from] io::Error),
}

impl OpenError {
    /// Whether it is the interface's state that keeps the port from opening, which may change while
    /// the process runs.
    pub(super) fn is_of_interface(&self) -> bool {
        match self {
            Self::InterfaceMissing { .. } | Self::MtuTooSmall { .. } => true,
            Self::Bind { source, .. } => source.kind() == io::ErrorKind::AddrNotAvailable,
            _ => false,
        }
    }
}

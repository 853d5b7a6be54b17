use std::io;
use std::net::SocketAddrV4;

use phitwire::node::PortId;

use super::MIN_FRAME_LIMIT_BYTES;

/// Why a port cannot be opened. The messages name the remedy.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(
        "port {port}: no interface `{interface}` in this network namespace (found: {known}); \
         create it (`netns-scripts/up.sh` does) or start the process in the node's namespace with \
         `ip netns exec`"
    )]
    InterfaceMissing {
        port: PortId,
        interface: String,
        /// The existing interfaces.
        known: String,
    },
    /// The process may not open raw sockets.
    #[error(
        "port {port}: not permitted to open a raw Ethernet socket; run as root, give the binary \
         CAP_NET_RAW (`setcap cap_net_raw+ep`), use `netns-scripts/rootless.sh`, or choose \
         `--link udp`"
    )]
    NotPermitted { port: PortId },
    /// The MTU leaves no room for the shortest link frame.
    #[error(
        "port {port}: an MTU of {mtu} leaves {limit} bytes for a link frame, which needs {}; \
         raise the MTU with `ip link set dev IF mtu N` or `--mtu N`",
        MIN_FRAME_LIMIT_BYTES
    )]
    MtuTooSmall {
        port: PortId,
        mtu: usize,
        /// Bytes left for a link frame.
        limit: usize,
    },
    /// `--mtu` exceeds the interface's MTU.
    #[error(
        "port {port}: --mtu {asked} exceeds the MTU {mtu} of interface `{interface}`; first run \
         `ip link set dev {interface} mtu {asked}`"
    )]
    MtuTooLarge {
        port: PortId,
        /// The value of `--mtu`.
        asked: usize,
        mtu: usize,
        interface: String,
    },
    /// The local address does not exist or is in use.
    #[error("port {port}: cannot bind to UDP address {local}: {source}; {remedy}")]
    Bind {
        port: PortId,
        local: SocketAddrV4,
        source: io::Error,
        remedy: &'static str,
    },
    /// Another failed system call.
    #[error("port {port}: cannot {call}: {source}")]
    System {
        port: PortId,
        call: &'static str,
        source: io::Error,
    },
    /// The engine could not be set up.
    #[error("cannot set up the I/O engine: {0}")]
    Engine(#[from] io::Error),
}

impl OpenError {
    /// Whether the cause is the state of the interface, which may change while the process runs.
    pub(super) fn is_of_interface(&self) -> bool {
        match self {
            Self::InterfaceMissing { .. } | Self::MtuTooSmall { .. } => true,
            Self::Bind { source, .. } => source.kind() == io::ErrorKind::AddrNotAvailable,
            _ => false,
        }
    }
}

//! The state of a port's wire, which follows from its interface.

use std::net::Ipv4Addr;

use super::interface_watch::{Departure, InterfaceWatch};
use super::{Attachment, PortConfig, UDP_HEADERS_BYTES};

/// The requirements that a port's wire places on its interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wire {
    pub interface: String,
    /// The required address; `None` for raw Ethernet.
    address: Option<Ipv4Addr>,
    /// The MTU that the port's longest frame needs, in bytes.
    needed_mtu: usize,
}

/// The state of a wire according to its interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WireState {
    #[default]
    Whole,
    /// No interface of the wire's name exists.
    Missing(Option<Departure>),
    Down,
    /// The other end of the cable is down, or missing.
    NoCarrier,
    /// The interface lacks the address that the peer sends to.
    NoAddress(Ipv4Addr),
    /// The longest frames do not fit.
    ShortMtu {
        /// MTU of the interface, in bytes.
        mtu: usize,
        /// MTU that the frames need, in bytes.
        needed: usize,
    },
    /// The interface is back, but the socket cannot be bound to it, for this reason.
    Unbound(String),
}

impl Wire {
    /// The wire of a port whose longest link frame has `frame_limit` bytes.
    pub fn new(port: &PortConfig, frame_limit: usize) -> Self {
        match &port.attachment {
            Attachment::Udp {
                local, interface, ..
            } => Self {
                interface: interface.clone().unwrap_or_else(|| "lo".to_owned()),
                address: Some(*local.ip()),
                needed_mtu: frame_limit + UDP_HEADERS_BYTES,
            },
            Attachment::Ethernet { interface, .. } => Self {
                interface: interface.clone(),
                address: None,
                needed_mtu: frame_limit,
            },
        }
    }

    /// Whether the peer is addressed by IP, so that the kernel resolves its hardware address.
    pub const fn is_by_address(&self) -> bool {
        self.address.is_some()
    }

    pub fn judge(&self, watch: &InterfaceWatch) -> WireState {
        let Some(found) = watch.find(&self.interface) else {
            return WireState::Missing(watch.departure(&self.interface));
        };
        if !found.is_up {
            return WireState::Down;
        }
        if !found.has_carrier {
            return WireState::NoCarrier;
        }
        match self.address {
            // Skip loopback: all of 127.0.0.0/8 is local where `lo` has its address.
            Some(address) if !address.is_loopback() && !found.addresses.contains(&address) => {
                return WireState::NoAddress(address);
            }
            _ => {}
        }
        if found.mtu < self.needed_mtu {
            return WireState::ShortMtu {
                mtu: found.mtu,
                needed: self.needed_mtu,
            };
        }
        WireState::Whole
    }
}

impl WireState {
    /// Name of the state in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Missing(_) => "no-interface",
            Self::Down => "interface-down",
            Self::NoCarrier => "no-carrier",
            Self::NoAddress(_) => "no-address",
            Self::ShortMtu { .. } => "short-mtu",
            Self::Unbound(_) => "not-bound",
        }
    }

    /// The defect of the wire over `interface`, and the remedy; `None` if it has none.
    pub fn why(&self, interface: &str) -> Option<String> {
        Some(match self {
            Self::Whole => return None,
            Self::Missing(departure) => {
                let what = match departure {
                    Some(Departure::Deleted) => "was deleted",
                    Some(Departure::Moved) => "was moved to another network namespace",
                    Some(Departure::Renamed) => "was renamed",
                    None => "does not exist",
                };
                format!(
                    "interface {interface} {what}; the port attaches when an interface of that \
                     name appears"
                )
            }
            Self::Down => {
                format!("interface {interface} is down; run `ip link set {interface} up`")
            }
            Self::NoCarrier => format!(
                "interface {interface} has no carrier: its other end is down or not connected"
            ),
            Self::NoAddress(address) => format!(
                "interface {interface} lacks address {address}; run `ip addr add {address}/31 dev \
                 {interface}`"
            ),
            Self::ShortMtu { mtu, needed } => format!(
                "interface {interface} has MTU {mtu}, but frames need {needed}; run `ip link set \
                 {interface} mtu {needed}` or restart the process"
            ),
            Self::Unbound(error) => format!(
                "cannot bind the port to the new interface {interface}: {error}; restart the \
                 process"
            ),
        })
    }
}

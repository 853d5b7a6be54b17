//! What a port's wire needs of its interface, and whether it has that.

use std::net::Ipv4Addr;

use super::interface_watch::{Departure, InterfaceWatch};
use super::{Attachment, PortConfig, UDP_HEADERS_BYTES};

/// What the wire of a port goes over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wire {
    /// The interface.
    pub interface: String,
    /// The address that it must have; none for raw Ethernet.
    address: Option<Ipv4Addr>,
    /// The MTU that the port's longest frame needs, in bytes.
    needed_mtu: usize,
}

/// How a wire stands, as far as the interface tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WireState {
    /// Nothing is wrong with it.
    #[default]
    Whole,
    /// There is no interface of its name.
    Missing(Option<Departure>),
    /// The interface was set down.
    Down,
    /// The other end of the cable is down, or there is none.
    NoCarrier,
    /// The address that the link's frames are sent to is not there.
    NoAddress(Ipv4Addr),
    /// The longest frames do not pass.
    ShortMtu {
        /// The MTU of the interface, in bytes.
        mtu: usize,
        /// What the frames need.
        needed: usize,
    },
    /// The interface is there again, and the socket cannot be bound to it. Says why.
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

    /// Whether the kernel looks the peer's hardware address up.
    pub const fn is_by_address(&self) -> bool {
        self.address.is_some()
    }

    /// How it stands.
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
            // All of 127.0.0.0/8 is local where `lo` has its address.
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
    /// Its name in reports.
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

    /// What is wrong with the wire over `interface`, and the remedy; nothing if nothing is.
    pub fn why(&self, interface: &str) -> Option<String> {
        Some(match self {
            Self::Whole => return None,
            Self::Missing(departure) => {
                let what = match departure {
                    Some(Departure::Deleted) => "was deleted",
                    Some(Departure::Moved) => "was moved to another network namespace",
                    Some(Departure::Renamed) => "has been renamed",
                    None => "is not there",
                };
                format!(
                    "interface {interface} {what}; one of that name is used as soon as it is here"
                )
            }
            Self::Down => format!("interface {interface} is down: `ip link set {interface} up`"),
            Self::NoCarrier => format!(
                "interface {interface} has no carrier: its other end is down, or not connected"
            ),
            Self::NoAddress(address) => format!(
                "interface {interface} has no address {address}: `ip addr add {address}/31 dev {interface}`"
            ),
            Self::ShortMtu { mtu, needed } => format!(
                "interface {interface} has an mtu of {mtu}, frames need {needed}: `ip link set {interface} mtu \
                 {needed}`, or start the process again"
            ),
            Self::Unbound(error) => format!(
                "the port cannot be bound to the new interface {interface}: {error}; start the process again"
            ),
        })
    }
}

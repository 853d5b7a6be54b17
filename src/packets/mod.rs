//! Ready parts for machines that move whole packets: a link end, a network interface, and what
//! simulates them.
//!
//! A machine says how links carry its [`Packet`] and gets a [`PacketEnd`]; how a packet holds a
//! [`Transfer`], which is a request or the answer to one, and gets a [`PacketNic`]; where routers
//! and the links of network interfaces are ([`PacketModel`]), and gets a simulation.

pub mod link;
mod model;
mod nic;
mod packet;
pub mod transfer;

pub use link::{PacketEnd, PacketInput};
pub use model::{PacketModel, PacketTerminal};
pub use nic::{PacketNic, PacketNicConfig, PacketNicCounters};
pub use packet::{MAX_VCS, Packet};
pub use transfer::{Transfer, TransferPacket};

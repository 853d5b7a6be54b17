//! Ready parts for machines that move whole packets: a link end, a network interface, and what
//! simulates them.
//!
//! A machine says how links carry its [`Packet`] and gets a [`PacketEnd`]; how a packet holds a
//! [`Letter`], which is a request or the answer to one, and gets a [`PacketNic`]; where routers and
//! the links of network interfaces are ([`PacketModel`]), and gets a simulation.

pub mod letter;
pub mod link;
mod model;
mod nic;
mod packet;

pub use letter::{Letter, Post};
pub use link::{PacketEnd, PacketInput};
pub use model::{PacketModel, PacketTerminal};
pub use nic::{PacketNic, PacketNicConfig};
pub use packet::{MAX_VCS, Packet};

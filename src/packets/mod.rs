//! Ready parts for machines that move whole packets: a link end, a network interface, and what
//! simulates them.
//!
//! A machine says how links carry its [`Packet`] and gets a [`PacketEnd`]; how a packet holds a
//! [`Transfer`], which is a request or the answer to one, and gets a [`PacketNic`]; a machine whose
//! links carry something else says the same of its link end ([`TransferEnd`]), and gets a
//! [`TransferNic`]; where routers and the links of network interfaces are
//! ([`PacketModel`]), and gets a simulation.

mod atomic;
mod counters;
pub mod link;
pub mod message_queues;
mod model;
mod names;
mod nic;
mod packet;
mod post;
pub mod responder;
mod side;
pub mod transfer;
mod transfer_end;

pub use counters::TransferNicCounters;
pub use link::{PacketEnd, PacketInput};
pub use model::{PacketModel, PacketTerminal};
pub use nic::{PacketNic, PacketNicConfig, TransferNic, TransferNicConfig};
pub use packet::Packet;
pub use post::{Completion, Outcome, PostError};
pub use transfer::Transfer;
pub use transfer_end::{Malformed, TransferEnd, TransferPacket};

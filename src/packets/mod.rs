//! Building blocks for machines that move whole packets: a link end, a NIC, and their simulation.
//!
//! A machine that describes how links carry its [`Packet`] gets a [`PacketEnd`]. If it also
//! describes how a packet holds a [`Transfer`] (a request or its reply), it gets a [`PacketNic`]. A
//! machine whose links carry something else describes how they carry transfers ([`TransferEnd`])
//! and gets a [`TransferNic`]. With the routers and the NICs' links ([`PacketModel`]), it gets a
//! simulation.

mod atomic;
mod counters;
pub mod link;
pub mod message_queues;
mod model;
mod names;
mod nic;
mod nic_core;
mod outstanding;
mod packet;
mod port;
mod post;
pub mod responder;
pub mod transfer;
mod transfer_end;

pub use counters::{Count, NicCounting, TransferNicCounters};
pub use link::{PacketDepths, PacketEnd, PacketInput, PacketLinkConfig};
pub use model::{PacketModel, PacketTerminal};
pub use nic::{PacketNic, PacketNicConfig, TransferNic, TransferNicConfig};
pub use packet::Packet;
pub use post::{Completion, Outcome, PostError};
pub use transfer::{Refusal, Transfer};
pub use transfer_end::{Arrival, PacketTransfers, TransferEnd, TransferPacket};

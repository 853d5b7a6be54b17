//! One end of a link: the buffers of its virtual channels, the credits for the peer's buffers, and
//! the transport of flits.
//!
//! T3E sec. 9 mentions no retry on links. Between processes phitwire's own carrier,
//! [`PacketEnd`](phitwire::packets::PacketEnd), transports bursts of flits without loss or
//! reordering; credits, buffers and bit errors are above it. In virtual time an [`IdealEnd`] has
//! the same buffers and credits without a carrier.

mod buffer;
mod burst;
mod config;
mod counters;
mod credits;
mod end;
mod ideal;
mod input;
mod noise;
mod queues;
#[cfg(test)]
pub(crate) mod sabotage;
mod suspect_packets;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;

pub use buffer::FlitBuffer;
pub use burst::BurstPacket;
pub use config::{
    CARRIER_LANES, CARRIER_LIVE, CARRIER_PAPER, Depths, FlitLinkConfig, RATE, STANDARD,
};
pub use counters::FlitCounters;
pub use credits::{Credits, Owed};
pub use end::{FlitEnd, URGENT};
pub use ideal::IdealEnd;
pub use input::FlitInput;

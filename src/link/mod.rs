//! One external link of a router or network interface: the link control block and the input queue.
//!
//! The link control block (LCB) implements the data-link layer of the paper's section 4.3: reliable
//! packet delivery by a sliding-window go-back-N protocol whose sequence numbers, acknowledgements and
//! virtual-channel acknowledgements travel in the two sideband bits of every phit; and of section 7.7:
//! retries counted per lane, noisy lanes decommissioned, `link_active` deasserted when none is left.
//!
//! [`Lcb`] is one end of a link and knows nothing of sockets or clocks: bytes of link frames go in by
//! [`Lcb::handle_frame`] and come out by [`Lcb::poll_frame`]; time is an argument. What it receives it
//! hands up *speculatively*, phit by phit, before a packet's CRC is known, into the [`InputQueue`] of the
//! port, whose write side undoes what turns out bad. A [`LinkPort`] owns both, whatever the link carries.

mod acks;
mod aries;
mod common;
mod config;
mod counters;
mod credits;
mod data;
mod event;
pub mod impair;
mod input_queue;
mod lanes;
mod lcb;
mod liveness;
mod pacing;
mod port;
mod profile;
mod receive;
mod resequencer;
mod retry_buffer;
mod ring;
mod round_trip;
mod session;
mod state;
mod training;
mod transmit;

#[cfg(test)]
pub(crate) use aries::Scrambler;
pub use aries::{
    AriesInput, AriesLcb, AriesLinkConfig, ErrorInjection, IdealEnd, LcbRegisters,
    MIN_SET_FRAME_BYTES, SetCounters, SetProfile,
};
pub use config::{
    EndName, LaneRate, LinkClock, LinkConfig, LinkConfigBuilder, LinkConfigError, LinkProfile,
};
pub use counters::LinkCounters;
pub use event::{DownReason, LinkEvent, LinkState};
pub use input_queue::{InputQueue, Verdict};
pub use lcb::{Lcb, MIN_FRAME_BYTES};
pub use port::{Change, LinkControlBlock, LinkPort, ReceiveBuffer};

#[cfg(test)]
mod tests;

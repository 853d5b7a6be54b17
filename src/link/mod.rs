//! What the links of every machine share: sessions and their training, lanes, liveness, pacing,
//! credits, profiles, and the impairment of wires.
//!
//! A machine's link control block is one end of a link and knows nothing of sockets or clocks:
//! bytes of link frames go in and come out ([`LinkControlBlock`]); time is an argument. A
//! [`LinkPort`] owns such an end and the buffer that it fills, whatever the link carries.

mod calls;
pub(crate) mod common;
pub(crate) mod config;
mod counters;
pub(crate) mod credits;
mod event;
mod glance;
pub mod impair;
mod injection;
pub(crate) mod lane_rate;
pub(crate) mod lanes;
pub(crate) mod liveness;
pub(crate) mod outgoing;
pub(crate) mod pacing;
mod port;
pub(crate) mod profile;
pub(crate) mod reorder_hold;
pub(crate) mod round_trip;
pub(crate) mod session;
pub(crate) mod state;
mod status;
pub(crate) mod training;

pub use config::{
    CutThrough, EndName, LinkClock, LinkConfig, LinkConfigBuilder, LinkConfigError, LinkProfile,
    LinkStandard,
};
pub use counters::LinkCounters;
pub use event::{DownReason, LinkEvent, LinkState};
pub use glance::{Glance, Repeats};
pub use injection::ErrorInjection;
pub use lane_rate::LaneRate;
pub use port::{Change, LinkControlBlock, LinkPort, ReceiveBuffer};
pub use status::EndStatus;

#[cfg(test)]
pub(crate) mod tests;

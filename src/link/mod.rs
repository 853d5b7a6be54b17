//! Shared parts of every machine's links: sessions and their training, lanes, liveness, pacing,
//! credits, profiles, and wire impairment.
//!
//! A link control block ([`LinkControlBlock`]) is one end of a link and has no sockets or clocks:
//! frame bytes go in and out, time is an argument. A [`LinkPort`] owns a link end and the receive
//! buffer that it fills.

mod calls;
pub mod common;
pub mod config;
mod counters;
pub mod credits;
mod event;
mod glance;
pub mod impair;
mod injection;
pub(crate) mod lane_rate;
pub mod lanes;
pub(crate) mod liveness;
pub mod outgoing;
pub mod pacing;
mod port;
pub(crate) mod profile;
pub mod reorder_hold;
pub mod round_trip;
pub mod session;
pub(crate) mod state;
mod status;
pub mod training;

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

#[cfg(any(test, feature = "testing"))]
pub mod testing;

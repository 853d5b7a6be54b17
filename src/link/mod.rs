//! Shared parts of every machine's links: sessions and their training, lanes, liveness, pacing,
//! credits, profiles, and wire impairment.
//!
//! A [`LinkEnd`] is one end of a link and has no sockets or clocks: frame bytes go in and out, time
//! is an argument. It owns the state that all links have ([`common::Common`]), the receive buffer,
//! and the machine's protocol, a [`Wire`]. Nodes use it, or an end that a machine builds on top of
//! it, as a [`NodeLink`].

mod account;
pub mod common;
pub mod config;
mod counters;
pub mod credits;
mod end;
mod event;
mod fault;
mod frame_contents;
pub mod impair;
mod injection;
pub(crate) mod lane_rate;
pub mod lanes;
pub(crate) mod liveness;
mod node_link;
pub mod outgoing;
pub mod pacing;
pub(crate) mod profile;
mod receive_buffer;
pub mod reorder_hold;
pub mod round_trip;
mod session;
pub(crate) mod state;
pub mod training;
mod wire;

pub use account::{EndAccount, Units};
pub use config::{
    CutThrough, EndName, LinkClock, LinkConfig, LinkConfigBuilder, LinkConfigError, LinkProfile,
    LinkStandard,
};
pub use counters::LinkCounters;
pub use end::LinkEnd;
pub use event::{DownReason, LinkEvent, LinkState};
pub use fault::LinkFault;
pub use frame_contents::{FrameContents, Repeats};
pub use injection::ErrorInjection;
pub use lane_rate::LaneRate;
pub use node_link::{LinkView, MAX_VCS, NodeLink};
pub use receive_buffer::{Change, ReceiveBuffer};
pub use wire::Wire;

#[cfg(any(test, feature = "testing"))]
pub mod testing;

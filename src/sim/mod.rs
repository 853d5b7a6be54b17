//! Virtual time: nodes joined by wires and driven by an event queue. The same seed gives the same
//! run.
//!
//! A [`Fabric`] drives [`Node`](crate::node::Node)s through the same contract as the processes:
//! frames in, frames out, wakes. Two ports are joined by a [`Wire`] per direction, with a latency,
//! a limit on frame length and an [impairment](crate::link::impair) seeded from the fabric's seed.
//! A wire can be cut and restored, and a node can be replaced by a new incarnation while frames to
//! it are in flight. Nothing else is random, so seed and commands determine every event;
//! [`Fabric::trace_hash`] is a hash of all frames delivered.
//!
//! The order within an instant is fixed: frames are delivered wire by wire, then every affected
//! node runs once, in numerical order. Since every wire has some latency, frames arrive at a later
//! instant than they are sent, so the order of nodes within an instant does not matter. That lets a
//! network be partitioned over threads.
//!
//! For networks of thousands of routers, [`direct`] connects the routers phit by phit, without
//! frames.
//!
//! A [`World`] is a fabric made from any machine's [network](crate::net::Network), with traffic and
//! the checkers of every simulation: credits and packets are conserved on each link and virtual
//! channel, nothing is left inside a router, and every message is delivered once, whole and in
//! order per address. All this must hold within a bounded time after the last message was sent.

pub mod check;
pub mod direct;
mod fabric;
pub mod soak;
pub mod tap;
mod trace;
mod wire;
mod world;

pub use fabric::{
    ConnectError, Direction, Fabric, FabricEvent, LinkId, LinkSpec, NodeId, NodeTap, SentFrame,
};
pub(crate) use trace::TraceHash;
pub use wire::{Wire, WireCounters};
pub use world::{BarrierError, Measured, MessageOp, World, WorldError};

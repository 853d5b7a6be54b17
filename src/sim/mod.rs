//! Virtual time: nodes joined by wires and driven from an event queue, the same run for the same
//! seed.
//!
//! A [`Fabric`] drives [`Node`](crate::node::Node)s through the one contract that the processes
//! use: frames in, frames out, wake-ups. Between two ports lies a [`Wire`] per direction, with a
//! latency, a limit on the frame's length and an [impairment](crate::link::impair), seeded from the
//! fabric's seed; it can be cut and restored, and a node can be replaced by a new incarnation of
//! itself while its frames are on the way. Nothing else happens by chance, so that seed and
//! commands decide every event; [`Fabric::trace_hash`] is the fingerprint of all frames delivered.
//!
//! Within one instant the order is fixed too: frames are delivered wire by wire, then every node
//! that is concerned runs once, in the order of their numbers. What a node sends arrives at a later
//! instant, because every wire has some latency. The order in which nodes of one instant run
//! therefore changes nothing, which is what will let a network be partitioned over threads.
//!
//! For networks of thousands of routers [`direct`] joins the routers phit to phit, without frames.
//!
//! A [`World`] is a fabric made from a [network](crate::net::Network) of any machine, with traffic
//! and the checkers that run in every simulation: credits and packets conserved on each link and
//! virtual channel, nothing left inside a router, every message delivered once, whole and in order
//! per address, and all of that within a bounded time after the last message was sent.

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
pub use world::{BarrierError, World, WorldError};

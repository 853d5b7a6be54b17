//! Whole dragonflies in virtual time over encoded links: routers and network interfaces in a fabric, traffic, and checks.
//!
//! [`direct`](super::direct) joins routers flit to flit and has no links that could fail; here every link has its two
//! control blocks, its frames, and an impairment, and what flows is the network interfaces' own verified traffic.

pub mod check;
mod machine;
mod network;

pub use machine::{AriesMachine, AriesMachineEvent};
pub use network::AriesNetwork;

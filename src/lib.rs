//! Cray's YARC router and the BlackWidow network as pure state machines.
#![forbid(unsafe_code)]

pub mod link;
pub mod nic;
pub mod node;
pub mod rng;
pub mod route;
pub mod router;
pub mod sim;
pub mod switch;
pub mod time;
pub mod topology;

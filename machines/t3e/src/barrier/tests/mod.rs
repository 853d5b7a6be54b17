//! Barriers and eurekas over tori: a network of routers and processors, what it must show, and
//! proof that what watches it can see.

mod canaries;
mod cost;
mod network;
mod plan;
mod soak;
pub mod torus;

//! Barriers and eurekas on tori: a network of routers and processors, its properties, and canaries
//! of the checkers.

mod canaries;
mod cost;
mod network;
mod plan;
mod soak;
pub mod torus;

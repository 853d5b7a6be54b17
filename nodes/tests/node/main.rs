//! Nodes on real interfaces, their control sockets, and multi-threaded simulations.

mod addresses;
mod backends;
mod common;
mod control;
mod fallback;
mod threads;
mod wires;

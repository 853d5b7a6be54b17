//! Nodes on real interfaces, their control sockets, and simulations on several threads.

mod addresses;
mod backends;
mod common;
mod control;
mod fallback;
mod threads;
mod wires;

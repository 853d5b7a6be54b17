//! Nodes on real interfaces, and their control sockets.

mod addresses;
mod backends;
mod common;
mod control;
mod fallback;
mod virtual_lab;
mod wires;

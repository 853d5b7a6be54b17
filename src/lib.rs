//! Routers and network interfaces of Cray's networks, and the networks, as pure state machines.
//!
//! This crate is what a router chip and a network interface *do*; it has no socket, clock, thread,
//! file or environment (`clippy.toml` bans them). Two kinds of driver bring it to life: the
//! processes of `phitwire-nodes`, one per router and network interface, on real network
//! interfaces; and [`sim`], the same nodes in one process on a virtual clock. Both speak the one
//! contract, [`node::Node`]. The `phitwire` command, `phitwire-tools`, uses both drivers,
//! and neither uses it; the measuring tools, `phitwire-bench`, add their commands to it.
//!
//! A machine is a crate of its own, which a program lists in a [`Catalogue`](catalogue::Catalogue).
//! This crate is what machines share, and knows none of them.
//! `docs/guide/src/adding-a-machine.md` says how to add one.
//!
//! The [guide](../../guide/index.html) is for those who run it: a first lab, how packets cross the
//! routers, recipes, every command, counter and register. `docs/guide/build.sh` puts it next to
//! these pages; its text is in `docs/guide/src`.
//!
//! # Crates
//!
//! | crate | contents | depends on |
//! |---|---|---|
//! | `phitwire-framing` | bit layouts: phits, flits, sets, packets, checks, frames, the client ring's entries | |
//! | `phitwire` | this crate: what machines share | framing |
//! | `phitwire-aries`, `phitwire-blackwidow`, `phitwire-t3e` | a machine each: link ends, router, network interface, topology, simulation, soak cases, its paper's tables | phitwire |
//! | `phitwire-machines` | their list | the machines |
//! | `phitwire-client` | the library of programs that use a network interface | framing |
//! | `phitwire-fabric` | the libfabric provider | client |
//! | `phitwire-nodes` | routers and network interfaces as processes | phitwire, client |
//! | `phitwire-tools` | the commands, for any list of machines | nodes |
//! | `phitwire-bench` | measuring commands, and the `phitwire` binary | tools, machines |
//! | `phitwire-toy` | a machine outside the list, as an example | bench |
//!
//! # Modules
//!
//! They import each other without a cycle (`tests/modules.rs`), from here downwards:
//!
//! | module | contents |
//! |---|---|
//! | [`catalogue`] | what a machine registers: its networks, what makes them, simulation, soak, tables, what its frames carry |
//! | [`packets`] | ready parts for machines that move whole packets: link end, network interface, simulation |
//! | [`sim`] | nodes in virtual time: worlds of frames, the direct mode, soak |
//! | [`manage`] | what the maintenance system decides: rerouting around faults |
//! | [`net`] | a network as passive data: descriptions and their mistakes, wiring, circles, drawings |
//! | [`chip`] | the shell of a router chip: its ports, timers, clock, counters and fault commands; a chip as a device |
//! | [`device`] | a node as processes and worlds see it |
//! | [`nic`] | what network interfaces share: the verified traffic that tests them, memory, outstanding requests |
//! | [`link`] | what links share: sessions, training, lanes, liveness, pacing, credits, profiles; the impairment of wires |
//! | [`kit`] | what chips are made of: arbiters, pipes, the calendar, timers, rings, counters |
//! | [`reproduce`] | what the tables of all papers have in common |
//! | [`trace`] | what routers write down of packets that somebody watches, and which route a packet would take |
//! | [`text_table`] | text tables for people; all output uses it |
//! | [`node`] | the contract of every node |
//! | [`time`] | integer time |
//! | [`rng`] | seeded randomness |
//!
//! Bit layouts (phits, packets, checks, frames) are `phitwire-framing`'s; frames of whole packets,
//! whatever the packet is, are [`packets`]'.
#![forbid(unsafe_code)]

pub mod catalogue;
pub mod chip;
pub mod device;
pub mod kit;
pub mod link;
pub mod manage;
pub mod net;
pub mod nic;
pub mod node;
pub mod packets;
pub mod reproduce;
pub mod rng;
pub mod sim;
pub mod text_table;
pub mod time;
pub mod trace;

//! Cray's routers, network interfaces and networks as pure state machines.
//!
//! This crate models router chips and network interfaces. It has no socket, clock, thread, file or
//! environment (`clippy.toml` bans them). Two kinds of driver run the models: the processes of
//! `phitwire-nodes`, one per router and network interface, on real network interfaces; and [`sim`],
//! the same nodes in one process on a virtual clock. Both use the same contract, [`node::Node`].
//! The `phitwire` command, `phitwire-tools`, uses both drivers, which do not depend on it; the
//! measuring tools, `phitwire-bench`, add their commands to it.
//!
//! Each machine is a separate crate, which a program lists in a
//! [`Catalogue`](catalogue::Catalogue). This crate has the parts common to machines, and knows none
//! of them. `docs/guide/src/adding-a-machine.md` describes how to add one.
//!
//! The [guide](../../guide/index.html) is for users: a first lab, how packets cross the routers,
//! recipes, every command, counter and register. `docs/guide/build.sh` puts it next to these pages;
//! its text is in `docs/guide/src`.
//!
//! # Crates
//!
//! | crate | contents | depends on |
//! |---|---|---|
//! | `phitwire-framing` | bit layouts: phits, flits, sets, packets, checks, frames, the client ring's entries | |
//! | `phitwire` | this crate: the common parts of machines | framing |
//! | `phitwire-aries`, `phitwire-blackwidow`, `phitwire-t3e` | one machine each: link ends, router, network interface, topology, simulation, soak cases, its paper's tables | phitwire |
//! | `phitwire-machines` | the list of the machines | the machines |
//! | `phitwire-client` | the library for programs that use a network interface | framing |
//! | `phitwire-fabric` | the libfabric provider | client |
//! | `phitwire-nodes` | routers and network interfaces as processes | phitwire, client |
//! | `phitwire-tools` | the commands, for any list of machines | nodes |
//! | `phitwire-bench` | measuring commands, and the `phitwire` binary | tools, machines |
//! | `phitwire-lab` | labs on loopback, for tests of commands | |
//! | `phitwire-toy` | a machine outside the list, as an example | bench |
//!
//! # Modules
//!
//! Imports have no cycles (`tests/modules.rs`): a module imports only modules further down.
//!
//! | module | contents |
//! |---|---|
//! | [`catalogue`] | the registration of a machine: its networks and their generators, simulation, soak, tables, contents of its frames |
//! | [`packets`] | ready parts for machines that move whole packets: link end, network interface, simulation |
//! | [`sim`] | nodes in virtual time: worlds of frames, the direct mode, soak |
//! | [`manage`] | decisions of the maintenance system: rerouting around faults |
//! | [`net`] | a network as passive data: descriptions and their mistakes, wiring, deadlock cycles, drawings |
//! | [`chip`] | the shell of a router chip: its ports, timers, clock, counters and fault commands; a chip as a device |
//! | [`device`] | the interface of a node to processes and worlds |
//! | [`nic`] | common parts of network interfaces: verified test traffic, memory, outstanding requests |
//! | [`link`] | common parts of links: sessions, training, lanes, liveness, pacing, credits, profiles; the impairment of wires |
//! | [`kit`] | building blocks of chips: arbiters, pipes, the calendar, timers, rings, counters |
//! | [`reproduce`] | common parts of the tables of all papers |
//! | [`trace`] | records of watched packets in routers, and predictions of routes |
//! | [`text_table`] | text tables for all output |
//! | [`node`] | the contract of every node |
//! | [`time`] | integer time |
//! | [`rng`] | seeded randomness |
//!
//! Bit layouts (phits, packets, checks, frames) are in `phitwire-framing`; frames of whole packets,
//! independent of the packet format, are in [`packets`].
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

//! Routers and network interfaces of Cray's networks, and the networks, as pure state machines.
//!
//! This crate is what a router chip and a network interface *do*; it has no socket, clock, thread,
//! file or environment (`clippy.toml` bans them). Two kinds of driver bring it to life: the
//! processes of `phitwire-nodes`, one per router and network interface, on real network
//! interfaces; and [`sim`], the same nodes in one process on a virtual clock. Both speak the one
//! contract, [`node::Node`]. The `phitwire` command, `phitwire-tools`, uses both drivers,
//! and neither uses it; the measuring tools, `phitwire-bench`, add their commands to it.
//!
//! A machine is a folder below [`machine`], and a line in the list there. Everything else is what
//! machines share, and knows none of them: `tests/walls.sh` holds that, and the table.
//! `docs/guide/src/adding-a-machine.md` says how to add one.
//!
//! The [guide](../../guide/index.html) is for those who run it: a first lab, how packets cross the
//! routers, recipes, every command, counter and register. `docs/guide/build.sh` puts it beside these
//! pages; its text is in `docs/guide/src`.
//!
//! # Folders
//!
//! | folder | what lives there | imports |
//! |---|---|---|
//! | [`machine`] | the list of machines, and each of them: link ends, router, network interface, topology, direct simulation, soak cases, the tables of its paper | all of them |
//! | [`catalogue`] | what a machine registers: its networks, what makes them, simulation, soak, tables, what its frames carry | link net reproduce sim time |
//! | [`sim`] | nodes in virtual time: worlds of frames, the direct mode, soak | device kit link net nic node rng time trace |
//! | [`packets`] | ready parts for machines that move whole packets: link end, network interface, simulation | chip device kit link net nic node sim time |
//! | [`manage`] | what the maintenance system decides: rerouting around faults | net time |
//! | [`net`] | a network as passive data: descriptions and their mistakes, wiring, circles, drawings | chip device kit link nic time trace |
//! | [`device`] | a node as processes and worlds see it | link nic node time trace |
//! | [`chip`] | the shell of a router chip: its ports, timers, clock, counters and fault commands; a chip as a device | device kit link node time trace |
//! | [`nic`] | what network interfaces share: the verified traffic that tests them, memory, outstanding requests | kit rng time |
//! | [`link`] | what links share: sessions, training, lanes, liveness, pacing, credits, profiles; the impairment of wires | kit rng time |
//! | [`kit`] | what chips are made of: arbiters, pipes, the calendar, timers, rings, counters | time |
//! | [`reproduce`] | what the tables of all papers have in common | nothing |
//! | [`trace`] | what routers write down of packets that somebody watches, and which way one would go | time |
//! | [`text_table`] | tables of text for people, the one way of printing them | nothing |
//! | [`node`] | the contract of every node | time |
//! | [`time`] | integer time | nothing |
//! | [`rng`] | seeded randomness | nothing |
//!
//! Bit layouts (phits, packets, checks, frames) are `phitwire-framing`'s; frames of whole packets,
//! whatever the packet is, are [`packets`]'.
#![forbid(unsafe_code)]

pub mod catalogue;
pub mod chip;
pub mod device;
pub mod kit;
pub mod link;
pub mod machine;
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

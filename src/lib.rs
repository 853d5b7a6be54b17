//! Cray's YARC and Aries routers and their networks, BlackWidow and XC, as pure state machines.
//!
//! This crate is what a router chip and a network interface *do*; it has no socket, clock, thread,
//! file or environment (`clippy.toml` bans them). Two kinds of driver bring it to life: the
//! processes of `phitwire-nodes`, one per router and network interface, on real network
//! interfaces; and [`sim`], the same nodes in one process on a virtual clock. Both speak the one
//! contract, [`node::Node`].
//!
//! Two families share what is the same in both (lanes, training and epochs of links, arbiters, traffic runs and their checkers, the
//! simulator's engine), and nothing else. What follows is YARC's; the last section says how Aries differs.
//!
//! # The way of a packet
//!
//! ```text
//!   frame ──► Lcb::handle_frame ──► InputQueue ──► row bus ──► row buffer ──► 8x8 subswitch
//!             parse, place, CRC     per VC, with   route to     16 phits       two-stage
//!             hand up before CRC    excision       a column     per VC         arbitration
//!
//!   frame ◄── Lcb::poll_frame ◄──── retry buffer ◄── output multiplexer ◄── column buffer
//!             cut anywhere          soft-error       whole packets,          10 phits per VC,
//!             sideband laid over    check at EOP     two-stage arbitration   one per input row
//! ```
//!
//! 1. A link frame arrives ([`link::Lcb::handle_frame`]). Its header says what the line code of the
//!    real link would: which phits are heads, bodies, ends or idle, which lanes carry them, which
//!    link and which incarnation of its ends they belong to. The sideband of its phits carries the
//!    control word: sequence number, acknowledgement, VC acks.
//! 2. Phits that continue the link's stream go up *at once* into the [`link::InputQueue`], before
//!    the packet's CRC is known (paper, section 4.3). When the check fails, or half the packet is
//!    lost with a frame, the end of packet that goes up says `transmit_error`; the queue takes the
//!    packet back if it has not begun to flow, and lets it go poisoned if it has.
//! 3. The routing stage of the tile ([`route`]) chooses an output column and, in the subswitch, an
//!    output row: by root detect and down route, by the deterministic hash, or adaptively.
//! 4. The packet moves phit by phit (wormhole) through row bus, row buffer, subswitch, column
//!    channel and column buffer ([`router::yarc`], [`switch`]). A buffer slot carries the cycle in
//!    which its phit may be read, or in which its credit is back: wire delay costs no work.
//! 5. The output multiplexer starts a packet only when the peer has room for all of it (virtual
//!    cut-through) and pushes it into the link's retry buffer, from which frames are cut wherever
//!    the pipeline runs empty or the frame is full.
//!
//! # Aries
//!
//! ```text
//!   frame ──► AriesLcb ──► AriesInput ──► route tables ──► row buffer ──► 64x6 subswitch ──► column buffer
//!             sets of ten  per VC, in     four kinds of    per VC         whole packets      per VC
//!             flits, CRC   shared blocks  candidates
//! ```
//!
//! - A link carries sets of nine flits and a tenth with CRC, numbers, acknowledgements and load ([`link::AriesLcb`]). A set goes up when its CRC
//!   is good, so that no broken packet enters a router; what was lost is replayed set by set.
//! - The router ([`router::aries`]) compares two minimal and two non-minimal ways by load at the packet's source, and keeps to the
//!   kind from there on ([`route::dragonfly`]); the virtual channel grows along the way, so that no cycle of waiting packets exists.
//! - The network interface ([`nic::aries`]) refuses what a request may not do, and reports the end of every request in a completion.
//!   Its block transfer and collective engines go on without anybody's help.
//! - A [`topology::dragonfly::Dragonfly`] has the tables computed, with what has failed left out; [`manage`] decides what a
//!   running network has to be told when that changes.
//!
//! # Rooms
//!
//! | module | what lives there |
//! |---|---|
//! | [`link`] | the link control block: go-back-N, credits, lanes, initialisation; the impairment decorator |
//! | [`kit`] | what chips, links and network interfaces are made of, of no machine in particular |
//! | [`switch`] | what tiles are made of: arbiters and delay-line buffers |
//! | [`chip`] | the shell of a router chip: its ports, timers, clock, counters and fault commands |
//! | [`route`] | the routing decision |
//! | [`router`] | tiles wired into a chip: YARC and Aries, their registers, YARC's maintenance packets |
//! | [`nic`] | the network interfaces of BlackWidow and Aries, their memory, and the verified traffic that tests them |
//! | [`net`] | what the networks of all machines share: descriptions and their mistakes, wiring, circles, drawings |
//! | [`topology`] | the networks of the machines: generators, validation, routes |
//! | [`machine`] | the list of machines |
//! | [`manage`] | what the maintenance system decides: rerouting around faults |
//! | [`sim`] | nodes in virtual time |
//! | [`reproduce`] | tables and figures of both papers, from running models |
//! | [`text_table`] | tables of text for people, the one way of printing them |
//! | [`device`] | what processes and worlds need of a node of any machine |
//! | [`node`], [`time`], [`rng`] | the contract, integer time, seeded randomness |
//!
//! Bit layouts (phits, packets, checks, frames) are `phitwire-framing`'s.
#![forbid(unsafe_code)]

pub mod chip;
pub mod device;
pub mod kit;
pub mod link;
pub mod machine;
pub mod manage;
pub mod net;
pub mod nic;
pub mod node;
pub mod reproduce;
pub mod rng;
pub mod sim;
pub mod text_table;
pub mod time;

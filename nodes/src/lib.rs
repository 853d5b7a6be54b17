//! The processes of phitwire: nodes on real network interfaces.
//!
//! The core crate's routers and NICs are state machines without sockets, clocks or threads. This
//! crate adds all three and makes each of them a process:
//!
//! - [`process`] runs one node from start to end: it opens the ports, drives the node, serves its
//!   sockets and drains it before it exits; [`stop`] turns SIGINT, SIGTERM and SIGHUP into a
//!   request to stop, and [`clock`] supplies the node's time;
//! - [`driver`] is the event loop: receive, work, send, sleep until a frame or a deadline;
//!   [`core_affinity`] keeps the process on one core while it has little to do;
//! - [`live_device`] is a node with the additions of a process: lane [`noise`], the reasons why
//!   links are down, and claims on a NIC for runs;
//! - [`io`] moves batches of link frames between ports and the kernel, by io_uring or by plain
//!   system calls, as UDP datagrams or as raw Ethernet frames;
//! - [`wires`] reports the state of the interfaces, and frames that the kernel rejects and drops;
//! - [`control`] is the control socket, both ends: counters, link states, registers, faults and
//!   traffic runs;
//! - [`door`] lets local programs use a NIC through shared memory, and [`ip`] carries IP datagrams
//!   from and to a TUN device;
//! - [`virtual_lab`] hosts all nodes of a network in one process and in virtual time, for programs at
//!   their doors;
//! - [`run_dir`] defines where labs keep their sockets;
//! - [`throttle`] limits the lines of the log, [`output`] writes to readers that may disappear, and
//!   [`nearest`] suggests names similar to a mistyped one.
//!
//! The commands that start these processes and communicate with them are in `phitwire-tools`, which
//! uses this crate and not the reverse. The code that runs per frame is here and is compiled at
//! opt-level 3; the commands are not. The guide, `docs/guide`, explains their use.
//!
//! One thread runs a node, and nothing is allocated per frame. `unsafe` is only in [`io`], where
//! the kernel gets pointers.
#![deny(unsafe_op_in_unsafe_fn)]

mod claims;
pub mod clock;
pub mod control;
pub mod core_affinity;
mod door;
pub mod driver;
pub mod io;
pub mod ip;
mod live_device;
pub mod nearest;
mod noise;
pub mod output;
pub mod process;
pub mod run_dir;
pub mod stop;
mod throttle;
pub mod virtual_lab;
pub mod wires;

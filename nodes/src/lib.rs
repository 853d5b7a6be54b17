//! The processes of phitwire: nodes on real network interfaces.
//!
//! The core crate's routers and network interfaces are state machines without sockets, clocks or
//! threads. This crate gives one of them all three and makes it a process:
//!
//! - [`io`] moves batches of link frames between ports and the kernel, by io_uring or by plain
//!   system calls, as UDP datagrams or as raw Ethernet frames;
//! - [`driver`] is the event loop: receive, work, send, sleep until a frame or a deadline;
//! - [`live_device`] is a node with what a process adds: noise on its cables, why its links are
//!   down;
//! - [`wires`] says how the interfaces below stand, and what the kernel refuses and drops;
//! - [`control`] serves a Unix socket with counters, link states, registers, faults and traffic
//!   runs;
//! - [`process`] puts these together; [`run_dir`] says where labs keep their sockets; [`throttle`]
//!   keeps the log short, [`output`] bears readers who leave;
//! - [`manage`] routes around what fails in a running network;
//! - [`interchange`] has networks in the formats of other tools;
//! - [`recording`] keeps how a network stood, moment by moment; [`view`] shows it, live or recorded, in
//!   a browser;
//! - `http` answers those who look on, whoever they are;
//! - [`watch`] says how a running network stands, again and again;
//! - [`capture`] hears what passes the links of a lab and writes it down;
//! - [`trace`] puts the way of a packet together from what routers tell of it;
//! - [`chart`] draws figures over figures;
//! - [`whole_file`] writes files that are there wholly or not at all;
//! - [`hgrm`] writes latencies for HdrHistogram's plotters;
//! - [`schema`] says what commands print as JSON;
//! - [`sim`] runs whole networks in virtual time, on any number of threads;
//! - [`cli`] is the `phitwire` command.
//!
//! The guide, `docs/guide`, says how all this is used.
//!
//! One thread does all of a node, and nothing is allocated per frame. `unsafe` is only in [`io`],
//! where the kernel is handed pointers.
#![deny(unsafe_op_in_unsafe_fn)]

pub mod capture;
pub mod chart;
pub mod cli;
pub mod clock;
pub mod control;
pub mod description;
pub mod door;
pub mod driver;
pub mod hgrm;
mod holding;
pub mod home;
mod http;
pub mod input_file;
pub mod interchange;
pub mod io;
pub mod ip;
pub mod live_device;
pub mod manage;
pub mod nearest;
pub mod noise;
pub mod output;
pub mod process;
pub mod recording;
pub mod run_dir;
pub mod schema;
pub mod sim;
pub mod stop;
pub mod throttle;
pub mod trace;
pub mod view;
pub mod watch;
pub mod whole_file;
pub mod wires;

//! The `phitwire` command, and the tools behind it.
//!
//! The runtime of a node is in `phitwire-nodes`, which this crate uses and not the reverse.
//!
//! Tools for running labs:
//!
//! - [`watch`] samples all nodes of a lab, and derives rates and events from two samples;
//! - [`manage`] reroutes a running network around failures;
//! - [`capture`] writes the frames on the links of a lab to a pcapng file;
//! - [`trace`] reconstructs the path of a packet from the records of the routers;
//! - [`recording`] stores the states of a network over time; [`view`] shows them in a browser, live
//!   or recorded; `http` is the server of both `view` and `phitwire metrics`.
//!
//! Tools for simulations and descriptions:
//!
//! - [`sim`] runs whole networks in virtual time, on any number of threads;
//! - [`description`] reads networks from files, standard input or names;
//! - [`interchange`] converts networks from and to the formats of other tools.
//!
//! Common modules:
//!
//! - [`cli`] is the command: a file for each subcommand;
//! - [`machines`] lists the machines of the program;
//! - [`schema`] has the schemas of JSON output;
//! - [`chart`] draws curves over a common scale, [`hgrm`] writes latencies for HdrHistogram's
//!   plotters;
//! - [`input_file`] reads untrusted files; [`whole_file`] writes files that are complete or absent.
//!
//! The guide, `docs/guide`, explains the use of all commands.
#![forbid(unsafe_code)]

mod capture;
pub mod chart;
pub mod cli;
pub mod description;
pub mod hgrm;
mod http;
mod input_file;
mod interchange;
mod machines;
mod manage;
mod recording;
pub mod schema;
pub mod sim;
mod sizes;
mod trace;
mod view;
mod watch;
pub mod whole_file;

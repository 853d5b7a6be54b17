//! `phitwire manage`: the tasks of the XC's Hardware Supervisory System, through the control
//! sockets of a lab.
//!
//! "In the event of lost connectivity, which may occur on blade failures or hardware removal, it is
//! necessary to route around the problem. The HSS performs this task." (Cray XC white paper,
//! "Network Reliability, Availability and Serviceability".) [`phitwire::manage`] makes the
//! decisions; this module adds the sockets, the clock and the texts.
//!
//! - [`channels`] loads virtual channel tables;
//! - [`fleet`] sends requests to the routers of a lab;
//! - [`survey`] finds failures;
//! - [`commanded`] keeps isolated routers and replaced NICs;
//! - [`execute`] executes a reroute, and releases the routers even after errors;
//! - [`report`] reports findings and actions;
//! - [`manager`] runs one reroute, or one after another.
//!
//! Routers are quiesced instead of NICs. A router can stop accepting packets from its NICs without
//! their help, so this works even if their processes are dead or stuck. It resumes automatically
//! after [`execute::HOLD_MS`] if the manager is killed before it can release it.

pub mod channels;
pub mod commanded;
pub mod execute;
pub mod fleet;
pub mod manager;
mod numbers;
pub mod report;
pub mod survey;

#[cfg(test)]
mod channels_tests;
#[cfg(test)]
mod fleet_tests;
#[cfg(test)]
mod manager_tests;

use phitwire::net::{Network, NodeRef};

pub use commanded::{Change, Commanded};
pub use manager::{ManageError, Manager};
pub use report::Report;

/// The routers of a network, by number in the machine.
fn routers(network: &dyn Network) -> impl Iterator<Item = u32> {
    let router = |node| match node {
        NodeRef::Chip(router) => Some(router),
        NodeRef::Processor(_) => None,
    };
    network.nodes().into_iter().filter_map(router)
}

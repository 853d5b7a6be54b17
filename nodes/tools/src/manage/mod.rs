//! `phitwire manage`: what the paper's Hardware Supervisory System does, over the control sockets
//! of a lab.
//!
//! "In the event of lost connectivity, which may occur on blade failures or hardware removal, it is
//! necessary to route around the problem. The HSS performs this task." (Cray XC white paper,
//! "Network Reliability, Availability and Serviceability".) What is decided is
//! [`phitwire::manage`]'s; here are the sockets, the clock and the words.
//!
//! - [`channels`] loads tables of virtual channels;
//! - [`fleet`] asks the routers of a lab;
//! - [`survey`] finds what has failed;
//! - [`commanded`] is what was said to be isolated or replaced;
//! - [`execute`] carries out a reroute, and releases the routers whatever happens;
//! - [`report`] says what was done;
//! - [`manager`] does one after the other, once or for ever.
//!
//! Routers are quiesced, not network interfaces: a router that takes no packets from its network
//! interfaces holds back theirs without their help, also those of processes that are dead or stuck.
//! It goes on by itself after [`execute::HOLD_MS`] if the manager should be killed before it can
//! release it.

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

pub use commanded::{Change, ChangeError, Commanded};
pub use manager::{ManageError, Manager};
pub use report::Report;

/// The routers of a network, by number over the machine.
fn routers(network: &dyn Network) -> impl Iterator<Item = u32> {
    let router = |node| match node {
        NodeRef::Chip(router) => Some(router),
        NodeRef::Processor(_) => None,
    };
    network.nodes().into_iter().filter_map(router)
}

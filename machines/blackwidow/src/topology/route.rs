//! The path of one packet through the registers.

use thiserror::Error;

use super::model::{FoldedClos, RouterRegisters};
use super::wiring::{ClosWiring, Neighbour};
use crate::route::registers::PortKind;
use phitwire::net::{End, Network as _, PortSet};

/// A path with more hops counts as a loop; the largest network needs six routers.
const MOST_HOPS: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The virtual router's number in [`ClosWiring`].
    pub router: u32,
    pub input: u8,
    pub output: u8,
}

/// Why a packet does not arrive. Routers are given by their numbers in [`ClosWiring`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RouteFailure {
    #[error("the source has no link to this slice")]
    NoInjection,
    #[error("no table entry matches")]
    NoEntry(u32),
    #[error("the logical port of the down route is not mapped")]
    NoDownPort(u32),
    #[error("port {1} has no link")]
    NoLink(u32, u8),
    #[error("the exit mask forbids port {1}")]
    Exit(u32, u8),
    /// A packet from above would not continue down (BlackWidow sec. 7.7).
    #[error("a packet from above would not go down")]
    NotDown(u32),
    /// The packet arrives at another processor, whose index is the last field.
    #[error("the packet arrives at the wrong processor")]
    WrongProcessor(u32, u8, u32),
    #[error("the packet loops")]
    Loop,
}

/// The decision of a router's registers for a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Root detect matches: down by this port, if the map has one.
    Down(Option<u8>),
    /// Up or sideways by any port of a table entry.
    Up(usize, PortSet),
    Nowhere,
}

/// The decision of BlackWidow sec. 5: root detect first, then the table.
pub(super) fn step(registers: &RouterRegisters, destination: u16) -> Step {
    if registers.root_detect.contains(destination) {
        return Step::Down(registers.down_port(destination));
    }
    match registers.entry_for(destination) {
        Some((index, entry)) => Step::Up(index, PortSet::from_bits(entry.ports)),
        None => Step::Nowhere,
    }
}

impl FoldedClos {
    /// The routers that a packet passes in a slice, from the processor with index `source` to
    /// processor *number* `destination`. `choose` selects one of several up or side ports, as the
    /// hash or the adaptive decision would.
    ///
    /// # Errors
    /// The first [`RouteFailure`] on the path.
    pub fn route(
        &self,
        wiring: &ClosWiring,
        source: u32,
        destination: u16,
        slice: u8,
        mut choose: impl FnMut(PortSet) -> u8,
    ) -> Result<Vec<Hop>, RouteFailure> {
        let start = wiring
            .injection(self, source, slice)
            .ok_or(RouteFailure::NoInjection)?;
        let (mut router, mut input) = start;
        let mut hops = Vec::new();
        while hops.len() < MOST_HOPS {
            let me = wiring.router(self, router);
            let chip = wiring.chip_of(router);
            let output = match step(&me.registers, destination) {
                Step::Down(port) => port.ok_or(RouteFailure::NoDownPort(router))?,
                Step::Up(..) if wiring.kind(chip, input) == Some(PortKind::Up) => {
                    return Err(RouteFailure::NotDown(router));
                }
                Step::Up(_, ports) => choose(ports),
                Step::Nowhere => return Err(RouteFailure::NoEntry(router)),
            };
            if !me.registers.exit_mask.contains(output) {
                return Err(RouteFailure::Exit(router, output));
            }
            hops.push(Hop {
                router,
                input,
                output,
            });
            match wiring.neighbour(chip, output) {
                None => return Err(RouteFailure::NoLink(router, output)),
                Some(Neighbour::Router(next, port)) => (router, input) = (next, port),
                Some(Neighbour::Processor(p)) => {
                    let arrived = self.processors[p as usize].number == destination;
                    let wrong = RouteFailure::WrongProcessor(router, output, p);
                    return if arrived { Ok(hops) } else { Err(wrong) };
                }
            }
        }
        Err(RouteFailure::Loop)
    }

    /// The name of a router's port in the form of links, `CHIP:PORT`.
    pub(super) fn port_name(&self, wiring: &ClosWiring, router: u32, port: u8) -> String {
        self.end_name(End::chip(wiring.chip_of(router), port))
    }
}

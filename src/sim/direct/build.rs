//! Builds partitions from nodes and direct links.

use super::config::ConfigError;
use super::direct_part::DirectPart;
use super::endpoints::Endpoints;
use super::exchange::Exchange;
use super::model::{CycleModel, DirectModel, Lanes as _, Terminal as _};
use super::placement::{Placement, ends};
use super::shared::Shared;
use crate::net::NodeRef;

/// The router of a machine with direct links.
pub(super) type DirectRouterOf<M> = <<M as CycleModel>::Direct as DirectModel<M>>::Router;

/// The latency and wiring of a machine's links, by link number.
pub trait DirectLinks<M: CycleModel> {
    /// Latency of a link in cycles.
    ///
    /// # Errors
    /// [`ConfigError::Topology`].
    fn cycles(&self, link: usize) -> Result<u32, ConfigError>;
    /// Connects a port of a router to the link end with this slot.
    fn connect(&self, router: &mut DirectRouterOf<M>, port: usize, slot: u32, link: usize);
    /// Connects a terminal, which knows its slot, to a link.
    fn attach(&self, terminal: &mut M::Terminal, link: usize) {
        let _ = (terminal, link);
    }
}

/// Cycles of a window (`window`) and of the longest link (`longest`), and windows between two mail
/// exchanges (`round`).
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    pub window: u32,
    pub longest: u32,
    pub round: u32,
}

/// Builds the partitions of a network from its routers, sorted by chip number, and its terminals.
///
/// # Errors
/// [`ConfigError::Topology`].
pub fn direct<M: CycleModel>(
    network: &M::Topology,
    placement: &Placement,
    links: &impl DirectLinks<M>,
    (routers, mut terminals): (Vec<DirectRouterOf<M>>, Vec<Vec<M::Terminal>>),
    shared: &Shared<M>,
    windows: Windows,
) -> Result<Vec<DirectPart<M>>, ConfigError> {
    let window = windows.window as usize;
    let mut routers = placement.placed(routers);
    let mut exchanges: Vec<Exchange<M::Direct>> = (0..)
        .zip(routers.iter().zip(&terminals))
        .map(|(number, (chips, terminals))| {
            Exchange::new(number, window, chips.len(), terminals.len())
        })
        .collect();
    let mut ends: Vec<_> = ends(network).collect();
    // Sort, so that the slots that one node writes are adjacent.
    ends.sort_unstable();
    for (end, other, link) in ends {
        let cycles = links.cycles(link)?;
        let (here, number) = placement.of(end)?;
        let (there, far) = placement.of(other)?;
        let (slot, lanes) = match other.node {
            NodeRef::Chip(_) => {
                let port = other.port.into();
                let slot = Exchange::<M::Direct>::chip_slot(far as usize, port);
                (slot, M::Direct::lanes(port).1)
            }
            NodeRef::Processor(_) => {
                let slot = exchanges[there as usize].terminal_slot(far as usize);
                (slot, M::Direct::TERMINAL_LANES)
            }
        };
        let exchange = &mut exchanges[here as usize];
        let peer = if there == here && cycles as usize == window {
            slot
        } else {
            let slots = slot..slot + lanes as u32;
            let ghosts = slots.map(|slot| exchange.add_ghost((there, slot), cycles));
            ghosts.min().unwrap_or(slot)
        };
        match end.node {
            NodeRef::Chip(_) => {
                let (_, router) = &mut routers[here as usize][number as usize];
                links.connect(router, end.port.into(), peer, link);
            }
            NodeRef::Processor(_) => {
                let terminal = &mut terminals[here as usize][number as usize];
                terminal.common_mut().peer = peer;
                links.attach(terminal, link);
            }
        }
    }
    let parts = exchanges.into_iter().zip(routers).zip(terminals);
    let partition = |(number, ((mut exchange, routers), terminals)): (_, ((Exchange<_>, _), _))| {
        exchange.finish(windows.longest);
        let (chips, routers) = Vec::into_iter(routers).unzip();
        let endpoints = Endpoints::new(terminals, shared.clone());
        let (round, count) = (windows.round.into(), placement.partitions);
        DirectPart::new(
            number,
            (chips, routers),
            endpoints,
            exchange,
            (round, count),
        )
    };
    Ok((0..).zip(parts).map(partition).collect())
}

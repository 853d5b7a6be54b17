//! An index of the links and virtual routers of a folded Clos.

use super::model::{FoldedClos, MAX_SLICES, VirtualRouter};
use crate::route::registers::{PORTS, PortKind};
use phitwire::net::{End, NodeRef, PortIndex, PortLink, PortSet};

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbour {
    Processor(u32),
    /// A virtual router, by its number in [`ClosWiring`], and its port at the other end of the
    /// link.
    Router(u32, u8),
}

/// Constant-time lookup of link ends. In an inconsistent topology (a port used twice, a link to a
/// missing node) the first claim counts; [`check`](super::check()) reports the others.
#[derive(Clone, Debug)]
pub struct ClosWiring {
    /// Chip and index in the chip of each virtual router.
    routers: Vec<(u32, u32)>,
    /// The virtual router of each port; `PORTS` entries per chip.
    owners: Vec<u32>,
    ports: PortIndex<PortKind>,
}

impl ClosWiring {
    /// Builds the index in time linear in the size of `topology`.
    pub fn new(topology: &FoldedClos) -> Self {
        let (chips, processors) = (topology.chips.len(), topology.processors.len());
        let mut wiring = Self {
            routers: Vec::new(),
            owners: vec![NONE; chips * PORTS],
            ports: PortIndex::new((chips, PORTS), (processors, usize::from(MAX_SLICES))),
        };
        for (c, chip) in topology.chips.iter().enumerate() {
            for (r, router) in chip.routers.iter().enumerate() {
                let number = wiring.routers.len() as u32;
                wiring.routers.push((c as u32, r as u32));
                for port in router.ports.iter() {
                    let owner = &mut wiring.owners[c * PORTS + usize::from(port)];
                    if *owner == NONE {
                        *owner = number;
                    }
                }
            }
        }
        for (link, joined) in (0..).zip(&topology.links) {
            for (end, other) in joined.ends() {
                let kind = topology.kind_of(end, other);
                // Skip a chip port whose peer is missing; such processor ports are reported
                // separately.
                let leads = match other.node {
                    NodeRef::Processor(p) => (p as usize) < processors,
                    NodeRef::Chip(_) => wiring.router_at(other).is_some(),
                };
                if leads || matches!(end.node, NodeRef::Processor(_)) {
                    let joined = PortLink { link, other, kind };
                    wiring.ports.claim(end, joined);
                }
            }
        }
        wiring
    }

    /// Number of virtual routers. They are numbered from 0 in the order of [`FoldedClos::routers`].
    pub fn router_count(&self) -> usize {
        self.routers.len()
    }

    /// Chip of a virtual router.
    ///
    /// # Panics
    /// If no router has that number.
    pub fn chip_of(&self, router: u32) -> u32 {
        self.routers[router as usize].0
    }

    /// A virtual router by its number.
    ///
    /// # Panics
    /// If no router has that number in `topology`.
    pub fn router<'t>(&self, topology: &'t FoldedClos, router: u32) -> &'t VirtualRouter {
        let (chip, index) = self.routers[router as usize];
        &topology.chips[chip as usize].routers[index as usize]
    }

    /// Chip of a virtual router, and its index in the chip.
    ///
    /// # Panics
    /// If no router has that number.
    pub fn place_of(&self, router: u32) -> (u32, u32) {
        self.routers[router as usize]
    }

    /// The virtual router that owns the port at `end`.
    pub fn router_at(&self, end: End) -> Option<u32> {
        let NodeRef::Chip(chip) = end.node else {
            return None;
        };
        let owners = self.owners.get(chip as usize * PORTS..)?;
        let owner = owners[..PORTS.min(owners.len())].get(usize::from(end.port));
        owner.copied().filter(|&router| router != NONE)
    }

    /// The neighbour at a chip's port, if it has a link.
    pub fn neighbour(&self, chip: u32, port: u8) -> Option<Neighbour> {
        let other = self.ports.at(End::chip(chip, port))?.other;
        match other.node {
            NodeRef::Processor(p) => Some(Neighbour::Processor(p)),
            NodeRef::Chip(_) => Some(Neighbour::Router(self.router_at(other)?, other.port)),
        }
    }

    /// Kind of a chip's port, if it has a link.
    pub fn kind(&self, chip: u32, port: u8) -> Option<PortKind> {
        Some(self.ports.at(End::chip(chip, port))?.kind)
    }

    pub fn link(&self, chip: u32, port: u8) -> Option<u32> {
        Some(self.ports.at(End::chip(chip, port))?.link)
    }

    pub fn injection_link(&self, processor: u32, slice: u8) -> Option<u32> {
        Some(self.ports.at(End::processor(processor, slice))?.link)
    }

    /// The router to which a processor is attached in a slice, and its port there.
    pub fn injection(&self, topology: &FoldedClos, processor: u32, slice: u8) -> Option<(u32, u8)> {
        let link = &topology.links[self.injection_link(processor, slice)? as usize];
        let far = link.other(End::processor(processor, slice))?;
        Some((self.router_at(far)?, far.port))
    }

    /// Ports of a virtual router with links of the given kind.
    pub fn ports_of_kind(&self, topology: &FoldedClos, router: u32, kind: PortKind) -> PortSet {
        let chip = self.chip_of(router);
        self.router(topology, router)
            .ports
            .iter()
            .filter(|&port| self.kind(chip, port) == Some(kind))
            .collect()
    }
}

//! Who is at the other end: an index over a topology's links and virtual routers.

use super::model::{End, MAX_SLICES, NodeRef, Topology, VirtualRouter};
use super::ports::PortSet;
use crate::router::yarc::registers::{PORTS, PortKind};

const NONE: u32 = u32::MAX;

/// What a router's port leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbour {
    /// The processor of this index.
    Processor(u32),
    /// A virtual router, by its number in [`Wiring`], and the port of it where the link arrives.
    Router(u32, u8),
}

#[derive(Clone, Copy, Debug)]
struct PortEntry {
    link: u32,
    router: u32,
    neighbour: Neighbour,
    kind: PortKind,
}

const FREE: PortEntry = PortEntry {
    link: NONE,
    router: NONE,
    neighbour: Neighbour::Processor(NONE),
    kind: PortKind::Down,
};

/// Constant-time answers about the ends of links. Where a topology is inconsistent (a port used
/// twice, a link to nowhere), the first claim counts; [`check`](super::check) reports the others.
#[derive(Clone, Debug)]
pub struct Wiring {
    /// (chip, index in the chip) of each virtual router.
    routers: Vec<(u32, u32)>,
    /// `PORTS` entries per chip.
    ports: Vec<PortEntry>,
    /// Link of each processor and slice.
    injection: Vec<[u32; MAX_SLICES as usize]>,
}

impl Wiring {
    /// The index of `topology`, in time linear in its size.
    pub fn new(topology: &Topology) -> Self {
        let mut wiring = Self {
            routers: Vec::new(),
            ports: vec![FREE; topology.chips.len() * PORTS],
            injection: vec![[NONE; MAX_SLICES as usize]; topology.processors.len()],
        };
        for (c, chip) in topology.chips.iter().enumerate() {
            for (r, router) in chip.routers.iter().enumerate() {
                let number = wiring.routers.len() as u32;
                wiring.routers.push((c as u32, r as u32));
                for port in router.ports.iter() {
                    let entry = &mut wiring.ports[c * PORTS + usize::from(port)];
                    if entry.router == NONE {
                        entry.router = number;
                    }
                }
            }
        }
        for (l, link) in topology.links.iter().enumerate() {
            wiring.connect(topology, l as u32, link.a, link.b);
            wiring.connect(topology, l as u32, link.b, link.a);
        }
        wiring
    }

    fn connect(&mut self, topology: &Topology, link: u32, end: End, other: End) {
        let neighbour = match other.node {
            NodeRef::Processor(p) if (p as usize) < topology.processors.len() => {
                Some(Neighbour::Processor(p))
            }
            NodeRef::Processor(_) => None,
            NodeRef::Chip(_) => self
                .router_at(other)
                .map(|router| Neighbour::Router(router, other.port)),
        };
        match end.node {
            NodeRef::Processor(p) => {
                let slot = self
                    .injection
                    .get_mut(p as usize)
                    .and_then(|slices| slices.get_mut(usize::from(end.port)));
                if let Some(slot) = slot.filter(|slot| **slot == NONE) {
                    *slot = link;
                }
            }
            NodeRef::Chip(_) => {
                let kind = topology.kind_of(end, other);
                let Some(slot) = self.slot(end) else { return };
                let entry = &mut self.ports[slot];
                if let Some(neighbour) = neighbour.filter(|_| entry.link == NONE) {
                    (entry.link, entry.neighbour, entry.kind) = (link, neighbour, kind);
                }
            }
        }
    }

    fn slot(&self, end: End) -> Option<usize> {
        let NodeRef::Chip(chip) = end.node else {
            return None;
        };
        let slot = chip as usize * PORTS + usize::from(end.port);
        (usize::from(end.port) < PORTS && slot < self.ports.len()).then_some(slot)
    }

    fn entry(&self, chip: u32, port: u8) -> Option<&PortEntry> {
        let entry = &self.ports[self.slot(End {
            node: NodeRef::Chip(chip),
            port,
        })?];
        (entry.link != NONE).then_some(entry)
    }

    /// Number of virtual routers; they are numbered from 0 in the order of
    /// [`Topology::routers`].
    pub fn router_count(&self) -> usize {
        self.routers.len()
    }

    /// Chip of a virtual router.
    ///
    /// # Panics
    /// If there is no router of that number.
    pub fn chip_of(&self, router: u32) -> u32 {
        self.routers[router as usize].0
    }

    /// A virtual router by its number.
    ///
    /// # Panics
    /// If there is no router of that number in `topology`.
    pub fn router<'t>(&self, topology: &'t Topology, router: u32) -> &'t VirtualRouter {
        let (chip, index) = self.routers[router as usize];
        &topology.chips[chip as usize].routers[index as usize]
    }

    /// Chip, and index within the chip, of a virtual router.
    ///
    /// # Panics
    /// If there is no router of that number.
    pub fn place_of(&self, router: u32) -> (u32, u32) {
        self.routers[router as usize]
    }

    /// The virtual router that owns the port at `end`.
    pub fn router_at(&self, end: End) -> Option<u32> {
        let router = self.ports[self.slot(end)?].router;
        (router != NONE).then_some(router)
    }

    /// What the link of a chip's port leads to, if it has one.
    pub fn neighbour(&self, chip: u32, port: u8) -> Option<Neighbour> {
        self.entry(chip, port).map(|entry| entry.neighbour)
    }

    /// Kind of a chip's port, if it has a link.
    pub fn kind(&self, chip: u32, port: u8) -> Option<PortKind> {
        self.entry(chip, port).map(|entry| entry.kind)
    }

    /// Link of a chip's port.
    pub fn link(&self, chip: u32, port: u8) -> Option<u32> {
        self.entry(chip, port).map(|entry| entry.link)
    }

    /// Link by which a processor is connected to a slice.
    pub fn injection_link(&self, processor: u32, slice: u8) -> Option<u32> {
        let link = *self
            .injection
            .get(processor as usize)?
            .get(usize::from(slice))?;
        (link != NONE).then_some(link)
    }

    /// The router, and its port, on which a processor hangs in a slice.
    pub fn injection(&self, topology: &Topology, processor: u32, slice: u8) -> Option<(u32, u8)> {
        let link = &topology.links[self.injection_link(processor, slice)? as usize];
        let end = End {
            node: NodeRef::Processor(processor),
            port: slice,
        };
        let far = link.other(end)?;
        Some((self.router_at(far)?, far.port))
    }

    /// Ports of a virtual router that have a link of this kind.
    pub fn ports_of_kind(&self, topology: &Topology, router: u32, kind: PortKind) -> PortSet {
        let chip = self.chip_of(router);
        self.router(topology, router)
            .ports
            .iter()
            .filter(|&port| self.kind(chip, port) == Some(kind))
            .fold(PortSet::EMPTY, PortSet::with)
    }
}

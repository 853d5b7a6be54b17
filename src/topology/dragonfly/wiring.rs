//! Who is at the other end: an index over a dragonfly's links.

use super::model::Dragonfly;
use crate::router::aries::registers::{PORTS, PortKind};
use crate::topology::model::{End, NodeRef};

const NONE: u32 = u32::MAX;
/// Set in [`Entry::node`] for a network interface.
const NIC: u32 = 1 << 31;

#[derive(Clone, Copy, Debug)]
struct Entry {
    link: u32,
    node: u32,
    port: u8,
    kind: PortKind,
}

const FREE: Entry = Entry {
    link: NONE,
    node: NONE,
    port: 0,
    kind: PortKind::Processor,
};

/// What a router's port leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Far {
    /// The network interface of this number.
    Nic(u32),
    /// A router and its port where the link arrives.
    Router(u32, u8),
}

/// Constant-time answers about the ends of links. Where a network is inconsistent, the first claim to a port
/// counts; links that cannot be are left out. `check` reports both.
#[derive(Clone, Debug)]
pub struct DragonflyWiring {
    ports: Vec<Entry>,
}

impl DragonflyWiring {
    /// The index of a network, in time linear in its size.
    pub fn new(network: &Dragonfly) -> Self {
        let mut wiring = Self {
            ports: vec![FREE; network.shape.routers() * PORTS],
        };
        for (id, link) in network.links.iter().enumerate() {
            let Some(kind) = network.kind(link) else {
                continue;
            };
            if network.has(link.a.node) && network.has(link.b.node) {
                wiring.add(id as u32, kind, link.a, link.b);
                wiring.add(id as u32, kind, link.b, link.a);
            }
        }
        wiring
    }

    fn add(&mut self, link: u32, kind: PortKind, end: End, other: End) {
        let NodeRef::Chip(router) = end.node else {
            return;
        };
        let port = usize::from(end.port);
        // Network links are on network ports, those of NICs where `kind` has found them.
        if port >= PORTS || (kind != PortKind::Processor && !Dragonfly::is_network_port(end.port)) {
            return;
        }
        let entry = &mut self.ports[router as usize * PORTS + port];
        if entry.link == NONE {
            *entry = Entry {
                link,
                node: match other.node {
                    NodeRef::Processor(n) => n | NIC,
                    NodeRef::Chip(r) => r,
                },
                port: other.port,
                kind,
            };
        }
    }

    fn entry(&self, router: u32, port: u8) -> Option<&Entry> {
        let index = router as usize * PORTS + usize::from(port);
        let entry = self.ports.get(index).filter(|_| usize::from(port) < PORTS);
        entry.filter(|entry| entry.link != NONE)
    }

    /// The other end of a router's port.
    pub fn far(&self, router: u32, port: u8) -> Option<Far> {
        self.entry(router, port)
            .map(|entry| match entry.node & NIC {
                0 => Far::Router(entry.node, entry.port),
                _ => Far::Nic(entry.node & !NIC),
            })
    }

    /// Kind of the link at a router's port.
    pub fn kind(&self, router: u32, port: u8) -> Option<PortKind> {
        self.entry(router, port).map(|entry| entry.kind)
    }

    /// The link at a router's port.
    pub fn link(&self, router: u32, port: u8) -> Option<u32> {
        self.entry(router, port).map(|entry| entry.link)
    }

    /// Kinds of all ports of a router, as its registers have them.
    pub fn kinds(&self, router: u32) -> Vec<Option<PortKind>> {
        (0..PORTS as u8)
            .map(|port| self.kind(router, port))
            .collect()
    }
}

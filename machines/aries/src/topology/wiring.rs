//! An index of the link ends of a dragonfly.

use super::model::Dragonfly;
use crate::route::registers::{PORTS, PortKind};
use phitwire::net::{End, NodeRef, PortIndex, PortLink};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Far {
    Nic(u32),
    /// A router, and the port where the link arrives.
    Router(u32, u8),
}

/// Constant-time lookup of link ends. In an inconsistent network the first claim to a port counts,
/// and impossible links are omitted; `check` reports both.
#[derive(Clone, Debug)]
pub struct DragonflyWiring(PortIndex<PortKind>);

impl DragonflyWiring {
    /// Builds the index in time linear in the network's size.
    pub fn new(network: &Dragonfly) -> Self {
        let mut ports = PortIndex::new((network.shape.routers(), PORTS), (0, 0));
        for (link, joined) in (0..).zip(&network.links) {
            let Some(kind) = network.kind(joined) else {
                continue;
            };
            if !network.has(joined.a.node) || !network.has(joined.b.node) {
                continue;
            }
            for (end, other) in joined.ends() {
                // Links between routers use network ports; those of NICs are where `kind` found
                // them.
                if kind == PortKind::Processor || Dragonfly::is_network_port(end.port) {
                    ports.claim(end, PortLink { link, other, kind });
                }
            }
        }
        Self(ports)
    }

    fn at(&self, router: u32, port: u8) -> Option<&PortLink<PortKind>> {
        self.0.at(End::chip(router, port))
    }

    pub fn far(&self, router: u32, port: u8) -> Option<Far> {
        let other = self.at(router, port)?.other;
        Some(match other.node {
            NodeRef::Chip(router) => Far::Router(router, other.port),
            NodeRef::Processor(nic) => Far::Nic(nic),
        })
    }

    pub fn kind(&self, router: u32, port: u8) -> Option<PortKind> {
        Some(self.at(router, port)?.kind)
    }

    pub fn link(&self, router: u32, port: u8) -> Option<u32> {
        Some(self.at(router, port)?.link)
    }

    /// Kinds of all ports of a router, as in its registers.
    pub fn kinds(&self, router: u32) -> Vec<Option<PortKind>> {
        let ports = 0..PORTS as u8;
        ports.map(|port| self.kind(router, port)).collect()
    }
}

//! The neighbours of each router in a group, and the local tables.

use super::{Faults, Making};
use crate::route::registers::{NETWORK_PORTS, PortKind, PortMask};
use crate::topology::model::Dragonfly;
use crate::topology::wiring::{DragonflyWiring, Far};

/// A blue link, seen from one end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blue {
    pub(super) port: u8,
    /// Group of the other end.
    pub(super) group: u16,
    /// Number of the router at the other end in its group.
    pub(super) local: u8,
}

/// The live links of one group.
#[derive(Clone, Debug)]
pub(super) struct LocalGroup {
    /// Number of slots in a chassis.
    blades: usize,
    chassis: usize,
    /// By router and slot: ports to the router of that slot in the same chassis.
    green: Vec<PortMask>,
    /// By router and chassis: ports to the router of the same slot in that chassis.
    black: Vec<PortMask>,
    pub(super) blue: Vec<Vec<Blue>>,
    /// By router: the routers that it reaches on minimal paths, including itself.
    pub(super) reach: Vec<u128>,
}

impl LocalGroup {
    pub(super) fn new(
        network: &Dragonfly,
        wiring: &DragonflyWiring,
        faults: &Faults,
        group: u16,
    ) -> Self {
        let shape = &network.shape;
        let (chassis, blades) = (usize::from(shape.chassis), usize::from(shape.blades));
        let routers = shape.group_routers();
        let mut all = Self {
            blades,
            chassis,
            green: vec![0; routers * blades],
            black: vec![0; routers * chassis],
            blue: vec![Vec::new(); routers],
            reach: vec![0; routers],
        };
        for local in 0..routers {
            let router = shape.router(group, local as u8);
            if faults.routers.contains(&router) {
                continue;
            }
            for port in 0..NETWORK_PORTS as u8 {
                let Some(Far::Router(peer, _)) = wiring.far(router, port) else {
                    continue;
                };
                let dead = |link| faults.links.contains(&link);
                if faults.routers.contains(&peer) || wiring.link(router, port).is_some_and(dead) {
                    continue;
                }
                let (peer_chassis, peer_blade) = shape.place_of(peer);
                match wiring.kind(router, port) {
                    Some(PortKind::Green) => {
                        all.green[local * blades + usize::from(peer_blade)] |= 1 << port;
                    }
                    Some(PortKind::Black) => {
                        all.black[local * chassis + usize::from(peer_chassis)] |= 1 << port;
                    }
                    Some(PortKind::Blue) => all.blue[local].push(Blue {
                        port,
                        group: shape.group_of(peer),
                        local: shape.local_of(peer),
                    }),
                    Some(PortKind::Processor) | None => {}
                }
            }
        }
        for from in 0..routers {
            let reached = (0..routers).filter(|&to| from == to || all.minimal(from, to) != 0);
            all.reach[from] = reached.fold(0, |set, to| set | 1 << to);
        }
        all
    }

    pub(super) fn routers(&self) -> usize {
        self.reach.len()
    }

    /// Routers one green link away, with the ports to them.
    pub(super) fn green_peers(&self, from: usize) -> impl Iterator<Item = (usize, PortMask)> + '_ {
        let first = from - from % self.blades;
        let ports = &self.green[from * self.blades..][..self.blades];
        let peers = ports.iter().enumerate().filter(|(_, ports)| **ports != 0);
        peers.map(move |(blade, &ports)| (first + blade, ports))
    }

    pub(super) fn black_peers(&self, from: usize) -> impl Iterator<Item = (usize, PortMask)> + '_ {
        let blade = from % self.blades;
        let ports = &self.black[from * self.chassis..][..self.chassis];
        let peers = ports.iter().enumerate().filter(|(_, ports)| **ports != 0);
        peers.map(move |(chassis, &ports)| (chassis * self.blades + blade, ports))
    }

    /// Ports of black links to a router of the same slot.
    fn by_black(&self, from: usize, to: usize) -> PortMask {
        match from % self.blades == to % self.blades {
            true => self.black[from * self.chassis + to / self.blades],
            false => 0,
        }
    }

    /// Ports of minimal paths, which are green, then black.
    fn minimal(&self, from: usize, to: usize) -> PortMask {
        if from % self.blades == to % self.blades {
            return self.by_black(from, to);
        }
        let turn = from - from % self.blades + to % self.blades;
        let goes_on = turn == to || self.by_black(turn, to) != 0;
        match goes_on {
            true => self.green[from * self.blades + to % self.blades],
            false => 0,
        }
    }

    /// Whether packets to `to` may change from up to down at `root`.
    fn is_root(&self, root: usize, to: usize) -> bool {
        root != to && self.reach[root] >> to & 1 != 0
    }

    /// Fills in the local tables of this group's routers.
    pub(super) fn fill(&self, making: &mut [Making]) {
        for to in 0..self.routers() {
            let black_up: Vec<PortMask> = (0..self.routers())
                .map(|from| ports_to(self.black_peers(from), |peer| self.is_root(peer, to)))
                .collect();
            for (from, making) in making
                .iter_mut()
                .enumerate()
                .filter(|(from, _)| *from != to)
            {
                making.processor.local_minimal[to] = self.minimal(from, to);
                making.green.local_minimal[to] = self.by_black(from, to);
                let green_up = ports_to(self.green_peers(from), |peer| {
                    peer != to && (self.is_root(peer, to) || black_up[peer] != 0)
                });
                making.processor.local_non_minimal[to] = green_up | black_up[from];
                making.green.local_non_minimal[to] = black_up[from];
            }
        }
    }
}

/// The ports to all peers that satisfy a condition.
pub(super) fn ports_to(
    peers: impl Iterator<Item = (usize, PortMask)>,
    wanted: impl Fn(usize) -> bool,
) -> PortMask {
    peers
        .filter(|(peer, _)| wanted(*peer))
        .fold(0, |all, (_, ports)| all | ports)
}

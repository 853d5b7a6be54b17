//! Detects channels that wait for each other in a cycle, which means deadlock.

use super::walk::{CLASSES, Walk};
use crate::route::registers::{NETWORK_PORTS, PortMask};
use crate::topology::model::Dragonfly;
use crate::topology::wiring::{DragonflyWiring, Far};
use phitwire::kit::cycles::{Channels, shortest_cycle};
use phitwire::net::{Location, Mistake};

/// The channels into network ports, by [`Walk::channel`]. A channel is one class of one direction
/// of a link. Requests and responses have separate virtual channels and take the same paths, so one
/// graph represents both. A NIC always accepts responses, and accepts requests as long as it can
/// send responses, so requests never block responses permanently.
pub(super) struct Inputs<'a> {
    pub(super) wiring: &'a DragonflyWiring,
    pub(super) walk: &'a Walk,
}

impl Channels for Inputs<'_> {
    fn count(&self) -> usize {
        self.walk.waits.len()
    }

    fn for_each_next(&self, channel: usize, mut each: impl FnMut(usize)) {
        let router = (channel / CLASSES / NETWORK_PORTS) as u32;
        let network: PortMask = (1 << NETWORK_PORTS) - 1;
        for (class, &ports) in self.walk.waits[channel].iter().enumerate() {
            let mut ports = ports & network;
            while ports != 0 {
                let port = ports.trailing_zeros() as u8;
                ports &= ports - 1;
                if let Some(Far::Router(peer, port)) = self.wiring.far(router, port) {
                    each(Walk::channel(peer, port, class as u8));
                }
            }
        }
    }
}

pub(super) fn check(network: &Dragonfly, wiring: &DragonflyWiring, walk: &Walk) -> Option<Mistake> {
    let names: Vec<String> = shortest_cycle(&Inputs { wiring, walk })?
        .iter()
        .map(|&channel| {
            let (port, class) = (channel / CLASSES, channel % CLASSES);
            let (router, port) = (port / NETWORK_PORTS, port % NETWORK_PORTS);
            let name = network.shape.router_name(router as u32);
            format!("{name}:{port} class {class}")
        })
        .collect();
    let circle = Mistake::dependency_cycle(Location::Network, &names);
    Some(circle.help("virtual-channel classes must increase along every path: see [routing]"))
}

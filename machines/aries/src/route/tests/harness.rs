//! A small dragonfly for tests of routing and of the router.

use super::registers::{AriesRegisters, PortKind};
use crate::topology::{
    Classes, Dragonfly, DragonflySpec, DragonflyWiring, Far, Faults, Routed, Shape,
};

/// A router, given by group and number in the group.
pub(crate) type At = (usize, usize);

/// A generated dragonfly with four NICs per router, and its routing.
pub(crate) struct Machine {
    pub network: Dragonfly,
    pub wiring: DragonflyWiring,
    pub routed: Routed,
}

impl Machine {
    /// A machine of the given groups, chassis and blades, with `black_links` between two routers
    /// and `blue_links` between two groups.
    pub(crate) fn new(shape: (u16, u8, u8), black_links: u8, blue_links: u16) -> Self {
        Self::with(shape, black_links, blue_links, |_| {})
    }

    /// A machine with two black and two blue links per router.
    pub(crate) fn small() -> Self {
        Self::small_with(|_| {})
    }

    /// [`small`](Self::small) with changed classes.
    pub(crate) fn small_with(change: impl FnOnce(&mut Classes)) -> Self {
        Self::with((4, 2, 3), 2, 4, change)
    }

    pub(crate) fn with(
        (groups, chassis, blades): (u16, u8, u8),
        black_links: u8,
        blue_links: u16,
        change: impl FnOnce(&mut Classes),
    ) -> Self {
        let spec = DragonflySpec {
            shape: Shape {
                groups,
                chassis,
                blades,
                nics: Shape::MAX_NICS,
            },
            black_links: Some(black_links),
            global_links: Some(blue_links),
            ..DragonflySpec::default()
        };
        let mut network = spec.generate().expect("the links fit on the ports");
        network.settings.forward_progress_ms = 1;
        change(&mut network.classes);
        let wiring = DragonflyWiring::new(&network);
        let routed = network.route_with(&wiring, &Faults::default());
        Self {
            network,
            wiring,
            routed,
        }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = At> + use<> {
        let (groups, routers) = (self.network.shape.groups, self.routers());
        (0..groups.into()).flat_map(move |g| (0..routers).map(move |r| (g, r)))
    }

    pub(crate) fn routers(&self) -> usize {
        self.network.shape.group_routers()
    }

    pub(crate) fn index(&self, (g, r): At) -> usize {
        g * self.routers() + r
    }

    pub(crate) fn peer(&self, at: At, port: usize) -> Option<(At, usize)> {
        match self.wiring.far(self.index(at) as u32, port as u8)? {
            Far::Nic(_) => None,
            Far::Router(to, back) => {
                let (to, routers) = (to as usize, self.routers());
                Some(((to / routers, to % routers), back.into()))
            }
        }
    }

    pub(crate) fn kind(&self, at: At, port: usize) -> Option<PortKind> {
        self.wiring.kind(self.index(at) as u32, port as u8)
    }

    pub(crate) fn registers(&self, at: At) -> AriesRegisters {
        self.routed.registers[self.index(at)].clone()
    }
}

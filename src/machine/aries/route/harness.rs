//! A small dragonfly for tests of routing and of the router: which ports are joined, and its
//! registers.

use std::sync::Arc;

use super::registers::{AriesRegisters, FIRST_NIC_PORT, PORTS, PortKind, PortMask, RouteTables};

/// Groups of chassis of blades, all of the same size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Machine {
    pub groups: usize,
    pub chassis: usize,
    pub blades: usize,
    pub black_links: usize,
    /// Blue links of each router.
    pub blues: usize,
}

const FIRST_BLACK: usize = 15;
const FIRST_BLUE: usize = 30;

/// A router: group and number within it.
pub(crate) type At = (usize, usize);

impl Machine {
    pub(crate) const SMALL: Self = Self {
        groups: 4,
        chassis: 2,
        blades: 3,
        black_links: 2,
        blues: 2,
    };

    pub(crate) fn routers(self) -> usize {
        self.chassis * self.blades
    }

    pub(crate) fn all(self) -> impl Iterator<Item = At> {
        (0..self.groups).flat_map(move |g| (0..self.routers()).map(move |r| (g, r)))
    }

    /// Number of a router among all.
    pub(crate) fn index(self, (g, r): At) -> usize {
        g * self.routers() + r
    }

    /// Group that global link `j` of group `g` goes to.
    fn group_of(self, g: usize, j: usize) -> Option<usize> {
        let others = self.groups.checked_sub(1).filter(|&n| n > 0)?;
        // The same number of links to every other group; what is left over is not connected.
        if j >= self.routers() * self.blues / others * others {
            return None;
        }
        let step = j % others;
        Some(if step < g { step } else { step + 1 })
    }

    /// The other end of a network port.
    pub(crate) fn peer(self, (g, r): At, port: usize) -> Option<(At, usize)> {
        let (c, b) = (r / self.blades, r % self.blades);
        if port < FIRST_BLACK {
            let to = if port < b { port } else { port + 1 };
            let back = if b < to { b } else { b - 1 };
            return (to < self.blades).then(|| ((g, c * self.blades + to), back));
        }
        if port < FIRST_BLUE {
            let (step, link) = (
                (port - FIRST_BLACK) / self.black_links,
                (port - FIRST_BLACK) % self.black_links,
            );
            let to = if step < c { step } else { step + 1 };
            let back = if c < to { c } else { c - 1 };
            let port = FIRST_BLACK + back * self.black_links + link;
            return (to < self.chassis).then(|| ((g, to * self.blades + b), port));
        }
        if port >= FIRST_NIC_PORT || port - FIRST_BLUE >= self.blues {
            return None;
        }
        let j = (port - FIRST_BLUE) * self.routers() + r;
        let (to, turn) = (self.group_of(g, j)?, j / (self.groups - 1));
        let step = if g < to { g } else { g - 1 };
        let back = turn * (self.groups - 1) + step;
        let (router, port) = (back % self.routers(), FIRST_BLUE + back / self.routers());
        Some(((to, router), port))
    }

    pub(crate) fn kind(self, at: At, port: usize) -> Option<PortKind> {
        if (FIRST_NIC_PORT..PORTS).contains(&port) {
            return Some(PortKind::Processor);
        }
        self.peer(at, port)?;
        Some(match port {
            ..FIRST_BLACK => PortKind::Green,
            FIRST_BLACK..FIRST_BLUE => PortKind::Black,
            _ => PortKind::Blue,
        })
    }

    /// Ports whose other end is a router for which `wanted` holds.
    fn ports_to(self, at: At, kind: PortKind, wanted: impl Fn(At) -> bool) -> PortMask {
        (0..FIRST_NIC_PORT)
            .filter(|&port| self.kind(at, port) == Some(kind))
            .filter(|&port| self.peer(at, port).is_some_and(|(to, _)| wanted(to)))
            .fold(0, |mask, port| mask | 1 << port)
    }

    /// Ports that lead on, green before black, to a router of the group with a blue link to a group
    /// of `wanted`, or by such a link.
    fn towards_blue(self, at: At, kind: PortKind, wanted: impl Fn(usize) -> bool) -> PortMask {
        let blue = |at: At| self.ports_to(at, PortKind::Blue, |to| wanted(to.0));
        let black = |at: At| self.ports_to(at, PortKind::Black, |to| blue(to) != 0);
        let green = self.ports_to(at, PortKind::Green, |to| blue(to) | black(to) != 0);
        match kind {
            PortKind::Processor => blue(at) | black(at) | green,
            PortKind::Green => blue(at) | black(at),
            PortKind::Black => blue(at),
            PortKind::Blue => 0,
        }
    }

    fn tables(self, at: At, kind: PortKind) -> RouteTables {
        let (g, r) = at;
        let blade = |r: usize| r % self.blades;
        let (turns_green, turns_black) = match kind {
            PortKind::Processor | PortKind::Blue => (true, true),
            PortKind::Green => (false, true),
            PortKind::Black => (false, false),
        };
        let greens = if turns_green {
            self.ports_to(at, PortKind::Green, |_| true)
        } else {
            0
        };
        let blacks = if turns_black {
            self.ports_to(at, PortKind::Black, |_| true)
        } else {
            0
        };
        let local = |to: usize| {
            if blade(to) != blade(r) {
                greens & self.ports_to(at, PortKind::Green, |(_, by)| blade(by) == blade(to))
            } else {
                blacks & self.ports_to(at, PortKind::Black, |(_, by)| by == to)
            }
        };
        let global = |to: usize, minimal: bool| {
            if to == g {
                0
            } else if minimal {
                self.towards_blue(at, kind, |by| by == to)
            } else if kind == PortKind::Blue {
                greens | blacks
            } else {
                self.towards_blue(at, kind, |by| by != to)
            }
        };
        let in_group = |to: usize, ports: PortMask| if to == r { 0 } else { ports };
        RouteTables {
            local_minimal: (0..self.routers())
                .map(|to| in_group(to, local(to)))
                .collect(),
            local_non_minimal: (0..self.routers())
                .map(|to| in_group(to, greens | blacks))
                .collect(),
            global_minimal: (0..self.groups).map(|to| global(to, true)).collect(),
            global_non_minimal: (0..self.groups)
                .map(|to| match kind {
                    // In the group in the middle every router can be the root.
                    PortKind::Green | PortKind::Black => global(to, false) | blacks,
                    _ => global(to, false),
                })
                .collect(),
        }
    }

    /// The registers of a router.
    pub(crate) fn registers(self, at: At) -> AriesRegisters {
        AriesRegisters {
            group: at.0 as u16,
            router: at.1 as u8,
            ports: (0..PORTS).map(|port| self.kind(at, port)).collect(),
            tables: PortKind::ALL.map(|kind| Arc::new(self.tables(at, kind))),
            black_links: self.black_links as u8,
            bias: AriesRegisters::BIAS,
            blue_classes: AriesRegisters::BLUE_CLASSES,
            root_classes: AriesRegisters::ROOT_CLASSES,
            local_up_class: AriesRegisters::LOCAL_UP_CLASS,
            forward_progress_ns: 1_000_000,
        }
    }
}

//! Every way of every packet, through the very function that routers decide by.

use phitwire_framing::flit48::{Head, NodeId, Routing};

use crate::route::dragonfly::{Routes, Way};
use crate::router::aries::registers::{FIRST_NIC_PORT, NETWORK_PORTS, PortKind, PortMask};
use crate::topology::dragonfly::model::{Dragonfly, Shape};
use crate::topology::dragonfly::tables::{Faults, Routed};
use crate::topology::dragonfly::wiring::{DragonflyWiring, Far};

/// Classes of virtual channels.
pub(super) const CLASSES: usize = 4;
/// States of a packet at one router: kind of the port of arrival, class, on the way up or not.
pub(super) const STATES: usize = 4 * CLASSES * 2;
/// Flaws listed at most.
const MOST_FLAWS: usize = 64;

/// A packet that has nowhere to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// The router that it is at.
    pub router: u32,
    /// Kind of the port by which it came in.
    pub kind: PortKind,
    /// Class on which it came.
    pub class: u8,
    /// Whether it is on its way up.
    pub non_minimal: bool,
    /// The router that it is for.
    pub to: u32,
    /// A port of its entry that leads nowhere; `None` = there is no entry.
    pub port: Option<u8>,
}

impl Flaw {
    pub(super) fn describe(&self, network: &Dragonfly) -> String {
        let name = |router| network.shape.router_name(router);
        let (at, to) = (name(self.router), name(self.to));
        let came = format!(
            "a packet for {to} that comes to {at} by a {:?} port on class {}",
            self.kind, self.class
        );
        match self.port {
            Some(port) => format!("{came} may be sent to port {port}, which leads nowhere"),
            None => format!("{came} has no way"),
        }
    }
}

/// What the ways of all packets are.
#[derive(Clone, Debug)]
pub struct Walk {
    /// By [`channel`](Self::channel) of arrival: the ports for which a packet may wait that holds it, by their class.
    pub waits: Vec<[PortMask; CLASSES]>,
    /// Packets that have nowhere to go once they have left their source; at most 64 of them.
    pub flaws: Vec<Flaw>,
    /// Pairs of routers, from and to, that the tables do not join: the source has no entry, or those for the
    /// group do not cover that router.
    pub unroutable: u64,
    /// States of packets looked at.
    pub states: u64,
}

impl Walk {
    /// The index of the channel into a router's network port, on a class.
    pub fn channel(router: u32, port: u8, class: u8) -> usize {
        (router as usize * NETWORK_PORTS + usize::from(port)) * CLASSES + usize::from(class)
    }
}

/// A packet at a router.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    pub(super) router: u32,
    pub(super) kind: PortKind,
    pub(super) class: u8,
    pub(super) non_minimal: bool,
}

impl State {
    /// A packet at its source.
    pub(super) const fn source(router: u32) -> Self {
        Self {
            router,
            kind: PortKind::Processor,
            class: 0,
            non_minimal: false,
        }
    }

    /// The head of the packet, if it is for router `to`.
    pub(super) fn head(self, shape: &Shape, to: u32) -> Head {
        let to = NodeId::new(shape.group_of(to), shape.local_of(to), 0);
        Head::new(false, 1, to, Routing::Adaptive0, 0, 0)
            .with_vc(self.class)
            .with_non_minimal(self.non_minimal)
    }

    /// The state after a way, and the port of arrival; `None` where no living link is.
    pub(super) fn after(
        self,
        way: Way,
        wiring: &DragonflyWiring,
        faults: &Faults,
    ) -> Option<(Self, u8)> {
        let Some(Far::Router(peer, port)) = wiring.far(self.router, way.port) else {
            return None;
        };
        let link = wiring.link(self.router, way.port)?;
        if faults.links.contains(&link) || faults.routers.contains(&peer) {
            return None;
        }
        let state = Self {
            router: peer,
            kind: wiring.kind(peer, port)?,
            class: way.class & 3,
            non_minimal: way.non_minimal,
        };
        Some((state, port))
    }

    pub(super) fn index(self) -> usize {
        let kind = self.kind as usize;
        self.router as usize * STATES
            + (kind * CLASSES + usize::from(self.class)) * 2
            + usize::from(self.non_minimal)
    }
}

struct Walker<'a> {
    shape: Shape,
    wiring: &'a DragonflyWiring,
    faults: &'a Faults,
    routed: &'a Routed,
    routes: Vec<Routes>,
    /// By state: the number of the walk that last came there.
    seen: Vec<u32>,
    /// By state: the ports by which packets of this walk came.
    ports: Vec<PortMask>,
    round: u32,
    todo: Vec<State>,
    done: Vec<State>,
    walk: Walk,
}

/// Walks all ways between all routers of a network of which `faults` are dead. A way that uses a dead link or
/// a port without link is a flaw.
pub fn walk(
    network: &Dragonfly,
    wiring: &DragonflyWiring,
    faults: &Faults,
    routed: &Routed,
) -> Walk {
    let routers = network.shape.routers();
    let mut walker = Walker {
        shape: network.shape,
        wiring,
        faults,
        routed,
        routes: routed.registers.iter().cloned().map(Routes::new).collect(),
        seen: vec![0; routers * STATES],
        ports: vec![0; routers * STATES],
        round: 0,
        todo: Vec::new(),
        done: Vec::new(),
        walk: Walk {
            waits: vec![[0; CLASSES]; routers * NETWORK_PORTS * CLASSES],
            flaws: Vec::new(),
            unroutable: 0,
            states: 0,
        },
    };
    let living: Vec<u32> = network
        .routers()
        .filter(|r| !faults.routers.contains(r))
        .collect();
    for group in 0..network.shape.groups {
        walker.walk_to(&living, group);
    }
    walker.walk
}

impl Walker<'_> {
    /// Walks to every router of a group: what happens outside of it is the same for all of them.
    fn walk_to(&mut self, living: &[u32], group: u16) {
        let shape = self.shape;
        let inside: Vec<u32> = living
            .iter()
            .copied()
            .filter(|&r| shape.group_of(r) == group)
            .collect();
        let Some(&any) = inside.first() else {
            return;
        };
        self.round += 1;
        for &source in living.iter().filter(|&&r| shape.group_of(r) != group) {
            self.start(source);
        }
        let arrived = self.follow(any, group);
        let outside = (living.len() - inside.len()) as u64;
        let without = self.close(any);
        for &to in &inside {
            self.round += 1;
            for &source in inside.iter().filter(|&&source| source != to) {
                self.start(source);
            }
            // All routers of the group share the entries of sources outside.
            if self.routed.covers(to, &shape) {
                self.walk.unroutable += without;
                for &(state, port) in &arrived {
                    self.come(state, port);
                }
            } else {
                self.walk.unroutable += outside;
            }
            self.follow(to, u16::MAX);
            self.walk.unroutable += self.close(to);
        }
    }

    fn start(&mut self, router: u32) {
        self.come(State::source(router), FIRST_NIC_PORT as u8);
    }

    /// A packet comes to a router by a port.
    fn come(&mut self, state: State, port: u8) {
        let index = state.index();
        if self.seen[index] != self.round {
            self.seen[index] = self.round;
            self.ports[index] = 0;
            self.todo.push(state);
        }
        self.ports[index] |= 1 << port;
    }

    /// Follows all packets for `to` until they come to group `stop`; returns how they come there.
    fn follow(&mut self, to: u32, stop: u16) -> Vec<(State, u8)> {
        let mut arrived = Vec::new();
        while let Some(state) = self.todo.pop() {
            self.done.push(state);
            if state.router == to {
                continue;
            }
            let ways =
                self.routes[state.router as usize].ways(state.kind, state.head(&self.shape, to));
            for way in ways.iter() {
                match state.after(way, self.wiring, self.faults) {
                    Some((next, port)) if self.shape.group_of(next.router) == stop => {
                        arrived.push((next, port));
                    }
                    Some((next, port)) => self.come(next, port),
                    None => self.flaw(state, to, Some(way.port)),
                }
            }
        }
        arrived
    }

    /// Notes what the packets of this walk wait for, once all ports by which they come are known; counts the sources
    /// that have no way.
    fn close(&mut self, to: u32) -> u64 {
        let mut without = 0;
        for state in std::mem::take(&mut self.done) {
            self.walk.states += 1;
            if state.router == to {
                continue;
            }
            let ways =
                self.routes[state.router as usize].ways(state.kind, state.head(&self.shape, to));
            let source = state.kind == PortKind::Processor;
            if ways.is_empty() {
                match source {
                    true => without += 1,
                    false => self.flaw(state, to, None),
                }
            }
            if source {
                continue;
            }
            let mut out = [0; CLASSES];
            for set in ways.sets() {
                out[usize::from(set.class & 3)] |= set.ports;
            }
            let mut ports = self.ports[state.index()];
            while ports != 0 {
                let port = ports.trailing_zeros() as u8;
                ports &= ports - 1;
                let channel = Walk::channel(state.router, port, state.class);
                for (waits, out) in self.walk.waits[channel].iter_mut().zip(out) {
                    *waits |= out;
                }
            }
        }
        without
    }

    fn flaw(&mut self, state: State, to: u32, port: Option<u8>) {
        if self.walk.flaws.len() < MOST_FLAWS {
            self.walk.flaws.push(Flaw {
                router: state.router,
                kind: state.kind,
                class: state.class,
                non_minimal: state.non_minimal,
                to,
                port,
            });
        }
    }
}

//! Follows every path of every packet with the routers' decision function.

use core::ops::Range;
use std::collections::BTreeMap;

use phitwire_framing::aries::flit::{Head, NodeId, Routing};

use crate::route::NextHop;
use crate::route::decision::Routes;
use crate::route::registers::{FIRST_NIC_PORT, NETWORK_PORTS, PortKind, PortMask};
use crate::topology::model::{Dragonfly, Shape};
use crate::topology::tables::{Faults, Routed};
use crate::topology::wiring::{DragonflyWiring, Far};

pub(super) const CLASSES: usize = 4;
/// Number of states of a packet at one router: kind of the arrival port, class, and whether it is
/// on the path up.
pub(super) const STATES: usize = 4 * CLASSES * 2;
const MOST_FLAWS: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flaw {
    pub router: u32,
    pub kind: PortKind,
    /// Class of the packet's arrival channel.
    pub class: u8,
    /// Whether the packet is on its path up.
    pub non_minimal: bool,
    pub to: u32,
    /// A port of the table entry that leads nowhere; `None` if there is no entry.
    pub port: Option<u8>,
}

impl Flaw {
    pub(super) fn describe(&self, network: &Dragonfly) -> String {
        let name = |router| network.shape.router_name(router);
        let (at, to) = (name(self.router), name(self.to));
        let came = format!(
            "a packet for {to} that arrives at {at} by a {:?} port on class {}",
            self.kind, self.class
        );
        match self.port {
            Some(port) => format!("{came} may be sent to port {port}, which is not connected"),
            None => format!("{came} has no route"),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Walk {
    /// By arrival [`channel`](Self::channel): the ports for which a packet that holds it may wait,
    /// by class.
    pub waits: Vec<[PortMask; CLASSES]>,
    /// Packets without a path after they left their source; at most 64.
    pub flaws: Vec<Flaw>,
    /// Number of pairs of routers (source, destination) that the tables do not connect: the source
    /// has no entry, or the group's entries do not cover the destination.
    pub unroutable: u64,
    /// Number of packet states visited.
    pub states: u64,
    pub followed: bool,
}

impl Walk {
    /// Index of a channel: a class into a network port of a router.
    pub fn channel(router: u32, port: u8, class: u8) -> usize {
        (router as usize * NETWORK_PORTS + usize::from(port)) * CLASSES + usize::from(class)
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    pub(super) router: u32,
    pub(super) kind: PortKind,
    pub(super) class: u8,
    pub(super) non_minimal: bool,
}

impl State {
    pub(super) const fn source(router: u32) -> Self {
        Self {
            router,
            kind: PortKind::Processor,
            class: 0,
            non_minimal: false,
        }
    }

    /// The head of a packet in this state, with destination router `to`.
    pub(super) fn head(self, shape: &Shape, to: u32) -> Head {
        let to = NodeId::new(shape.group_of(to), shape.local_of(to), 0);
        Head::new(false, 1, to, Routing::Adaptive0, 0, 0)
            .with_vc(self.class)
            .with_non_minimal(self.non_minimal)
    }

    /// The next state on a path, and the arrival port; `None` without a live link.
    pub(super) fn after(
        self,
        way: NextHop,
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

    /// Adapts a head for the same destination to this state.
    fn on(self, head: Head) -> Head {
        head.with_vc(self.class).with_non_minimal(self.non_minimal)
    }

    /// Inverse of [`Self::index`], given the index among the router's [`STATES`].
    fn of(router: u32, index: usize) -> Self {
        Self {
            router,
            kind: PortKind::ALL[(index / (2 * CLASSES)) & 3],
            class: (index / 2 % CLASSES) as u8,
            non_minimal: index % 2 == 1,
        }
    }

    /// Index of the state, with [`STATES`] per router.
    pub(super) fn index(self) -> usize {
        let kind = self.kind as usize;
        self.router as usize * STATES
            + (kind * CLASSES + usize::from(self.class)) * 2
            + usize::from(self.non_minimal)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    ports: PortMask,
    /// The walk that visited `ports`.
    round: u32,
}

/// Marks a port without a live link.
const NOWHERE: u32 = u32::MAX;

struct Walker<'a> {
    shape: Shape,
    routed: &'a Routed,
    routes: Vec<Routes>,
    /// By router and network port: router, port and kind at the other end of a live link.
    peers: Vec<u32>,
    seen: Vec<Seen>,
    round: u32,
    todo: Vec<State>,
    walk: Walk,
    /// Visits of packets to routers, plus ports tried.
    steps: u64,
}

/// Follows all paths between all routers of a network with the failed parts `faults`. A path over a
/// failed link or by a port without link is a flaw.
pub fn walk(
    network: &Dragonfly,
    wiring: &DragonflyWiring,
    faults: &Faults,
    routed: &Routed,
) -> Walk {
    walk_within(network, wiring, faults, routed, u64::MAX)
}

/// Like [`walk`], but starts no further group after this number of `steps`.
pub(super) fn walk_within(
    network: &Dragonfly,
    wiring: &DragonflyWiring,
    faults: &Faults,
    routed: &Routed,
    steps: u64,
) -> Walk {
    let routers = network.shape.routers();
    let mut walker = Walker {
        shape: network.shape,
        routed,
        routes: routed.registers.iter().cloned().map(Routes::new).collect(),
        peers: peers(network, wiring, faults),
        seen: vec![Seen::default(); routers * STATES],
        round: 0,
        todo: Vec::new(),
        walk: Walk {
            waits: vec![[0; CLASSES]; routers * NETWORK_PORTS * CLASSES],
            flaws: Vec::new(),
            unroutable: 0,
            states: 0,
            followed: true,
        },
        steps: 0,
    };
    let living: Vec<u32> = network
        .routers()
        .filter(|r| !faults.routers.contains(r))
        .collect();
    for group in 0..network.shape.groups {
        if walker.steps > steps {
            walker.walk.followed = false;
            break;
        }
        walker.walk_to(&living, group);
    }
    walker.walk
}

fn peers(network: &Dragonfly, wiring: &DragonflyWiring, faults: &Faults) -> Vec<u32> {
    let mut peers = Vec::with_capacity(network.shape.routers() * NETWORK_PORTS);
    for router in 0..network.shape.routers() as u32 {
        for port in 0..NETWORK_PORTS as u8 {
            let way = NextHop {
                port,
                class: 0,
                non_minimal: false,
            };
            let far = State::source(router).after(way, wiring, faults);
            peers.push(far.map_or(NOWHERE, |(state, port)| {
                state.router << 8 | u32::from(port) << 2 | state.kind as u32
            }));
        }
    }
    peers
}

impl Walker<'_> {
    /// Walks to every router of a group; outside the group, the paths to all of them are the same.
    fn walk_to(&mut self, living: &[u32], group: u16) {
        let shape = self.shape;
        let first = shape.router(group, 0);
        let here = first..first + shape.group_routers() as u32;
        let (inside, outside): (Vec<u32>, Vec<u32>) =
            living.iter().partition(|router| here.contains(router));
        let Some(&any) = inside.first() else {
            return;
        };
        self.round += 1;
        for &source in &outside {
            self.come(State::source(source), FIRST_NIC_PORT as u8);
        }
        let arrived = self.follow(any, here.clone());
        let mut without = self.close(any, 0..first);
        without += self.close(any, here.end..shape.routers() as u32);
        for &to in &inside {
            self.round += 1;
            for &source in inside.iter().filter(|&&source| source != to) {
                self.come(State::source(source), FIRST_NIC_PORT as u8);
            }
            // All routers of the group share the entries of sources outside.
            if self.routed.covers(to, &shape) {
                self.walk.unroutable += without;
                for &(state, port) in &arrived {
                    self.come(state, port);
                }
            } else {
                self.walk.unroutable += outside.len() as u64;
            }
            self.follow(to, 0..0);
            self.walk.unroutable += self.close(to, here.clone());
        }
    }

    /// Records that a packet arrives at a router by a port.
    fn come(&mut self, state: State, port: u8) {
        let seen = &mut self.seen[state.index()];
        if seen.round != self.round {
            *seen = Seen {
                ports: 0,
                round: self.round,
            };
            self.todo.push(state);
        }
        seen.ports |= 1 << port;
    }

    /// Follows all packets for `to` until they reach a router of `stop`. Returns their arrivals
    /// there, each state and port once.
    fn follow(&mut self, to: u32, stop: Range<u32>) -> Vec<(State, u8)> {
        let mut arrived = BTreeMap::new();
        let head = State::source(to).head(&self.shape, to);
        while let Some(state) = self.todo.pop() {
            if state.router == to {
                continue;
            }
            let ways = self.routes[state.router as usize].ways(state.kind, state.on(head));
            for set in ways.sets() {
                self.steps += 1 + u64::from(set.ports.count_ones());
                for port in ports_of(set.ports) {
                    let peer = match usize::from(port) < NETWORK_PORTS {
                        true => {
                            self.peers[state.router as usize * NETWORK_PORTS + usize::from(port)]
                        }
                        false => NOWHERE,
                    };
                    if peer == NOWHERE {
                        self.flaw(state, to, Some(port));
                        continue;
                    }
                    let next = State {
                        router: peer >> 8,
                        kind: PortKind::ALL[(peer & 3) as usize],
                        class: set.class & 3,
                        non_minimal: set.non_minimal,
                    };
                    let arrival = (peer >> 2 & 0x3f) as u8;
                    if stop.contains(&next.router) {
                        arrived.insert((next.index(), arrival), next);
                    } else {
                        self.come(next, arrival);
                    }
                }
            }
        }
        arrived
            .into_iter()
            .map(|((_, port), state)| (state, port))
            .collect()
    }

    /// Records what the packets of this walk wait for at some routers, once all their arrival ports
    /// are known, and counts the sources without a path. Proceeds router by router, for locality.
    fn close(&mut self, to: u32, routers: Range<u32>) -> u64 {
        let mut without = 0;
        let head = State::source(to).head(&self.shape, to);
        for router in routers {
            for index in 0..STATES {
                let seen = self.seen[router as usize * STATES + index];
                if seen.round != self.round {
                    continue;
                }
                self.walk.states += 1;
                if router == to {
                    continue;
                }
                let state = State::of(router, index);
                let ways = self.routes[router as usize].ways(state.kind, state.on(head));
                if state.kind == PortKind::Processor {
                    without += u64::from(ways.is_empty());
                    continue;
                }
                if ways.is_empty() {
                    self.flaw(state, to, None);
                }
                let mut out = [0; CLASSES];
                for set in ways.sets() {
                    out[usize::from(set.class & 3)] |= set.ports;
                }
                for port in ports_of(seen.ports) {
                    let channel = Walk::channel(router, port, state.class);
                    for (waits, out) in self.walk.waits[channel].iter_mut().zip(out) {
                        *waits |= out;
                    }
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

fn ports_of(mut ports: PortMask) -> impl Iterator<Item = u8> {
    core::iter::from_fn(move || {
        let port = (ports != 0).then(|| ports.trailing_zeros() as u8)?;
        ports &= ports - 1;
        Some(port)
    })
}

//! Route decisions of an Aries dragonfly (Cray XC white paper, "Aries Router" and "Cray XC
//! Routing").
//!
//! A path has at most three parts, each minimal within a group, with green links before black ones.
//! A non-minimal path goes *up* to a random intermediate router, the *root*, and down from there.
//! The packet does not carry the root: every router on the path up draws the next step, and a
//! router that draws "stay" twice is the root. An adaptive packet draws no "stay" on its path to a
//! root; there, loads decide.
//!
//! The class of the virtual channel (0 to 3) identifies the part of the path. Classes only grow
//! along a path, and within a class green, black and blue links follow in this order, so channels
//! cannot wait for each other in a cycle.
//!
//! [`Routes::choose`] decides for one packet; [`Routes::ways`] returns every possible decision, for
//! checks.

use phitwire_framing::aries::flit::{Head, Routing};

pub use super::draws::Loads;
pub use super::next_hops::{Arrival, Choice, Decision, NextHop, NextHopSet, NextHops, Refusal};

use super::draws::HashDraws;
use super::registers::{AriesRegisters, FIRST_NIC_PORT, PORTS, PortKind, PortMask, RouteTables};
use phitwire::rng::{Rng, spread};

/// Decision data that the tiles of a router share.
#[derive(Clone, Debug)]
pub struct Routes {
    registers: AriesRegisters,
    green: PortMask,
    black: PortMask,
    blue: PortMask,
    nics: PortMask,
    named: PortMask,
    salt: u64,
}

#[derive(Clone, Copy)]
struct Intent {
    minimal: Part,
    up: Up,
    at_source: bool,
    /// Whether the packet's state requires the path up.
    is_up: bool,
    /// The packet's position: 0 at its source and after a blue link, 1 after a green link, 2 after
    /// a black one, and 3 more in an intermediate group. A bias may grow with it.
    position: u8,
}

/// A minimal part of a path. It has no ports if there is no such part.
#[derive(Clone, Copy)]
struct Part {
    ports: PortMask,
    class: u8,
}

/// The path up to a root. It has no ports if there is no such path.
#[derive(Clone, Copy)]
struct Up {
    /// Ports of the dimensions that are still open, green and black.
    greens: PortMask,
    blacks: PortMask,
    class: u8,
    /// Ports after the green and black steps in a group: the blue links to the intermediate group,
    /// or the minimal paths of the root.
    ends: PortMask,
    /// The class of the root's minimal paths, or `None` if `ends` are blue links.
    root: Option<u8>,
}

/// All paths of a packet that arrived by a port of `kind` at the router with `registers`. For many
/// packets at one router, create [`Routes`] once.
pub fn ways(registers: &AriesRegisters, kind: PortKind, head: Head) -> NextHops {
    Routes::new(registers.clone()).ways(kind, head)
}

impl Routes {
    pub fn new(registers: AriesRegisters) -> Self {
        let of = |kind| {
            (0..PORTS)
                .filter(|&port| registers.ports.get(port).copied().flatten() == Some(kind))
                .fold(0, |mask, port| mask | 1 << port)
        };
        let id = u64::from(registers.group) << 8 | u64::from(registers.router);
        Self {
            green: of(PortKind::Green),
            black: of(PortKind::Black),
            blue: of(PortKind::Blue),
            nics: of(PortKind::Processor),
            salt: spread(id),
            named: registers.named_ports(),
            registers,
        }
    }

    /// The ports that appear in any table.
    pub fn named_ports(&self) -> PortMask {
        self.named
    }

    pub fn registers(&self) -> &AriesRegisters {
        &self.registers
    }

    pub fn ports(&self) -> PortMask {
        self.green | self.black | self.blue | self.nics
    }

    pub fn ports_of(&self, kind: PortKind) -> PortMask {
        match kind {
            PortKind::Processor => self.nics,
            PortKind::Green => self.green,
            PortKind::Black => self.black,
            PortKind::Blue => self.blue,
        }
    }

    fn tables(&self, kind: PortKind) -> &RouteTables {
        &self.registers.tables[kind as usize]
    }

    fn minimal(&self, kind: PortKind, head: Head) -> PortMask {
        let (to, tables) = (head.destination(), self.tables(kind));
        if to.group() == self.registers.group {
            entry(&tables.local_minimal, to.router().into())
        } else {
            entry(&tables.global_minimal, to.group().into())
        }
    }

    fn non_minimal(&self, kind: PortKind, head: Head) -> PortMask {
        let (to, tables) = (head.destination(), self.tables(kind));
        if to.group() == self.registers.group {
            entry(&tables.local_non_minimal, to.router().into())
        } else {
            entry(&tables.global_non_minimal, to.group().into())
        }
    }

    /// The port of the packet's NIC, if it is attached to this router.
    fn nic(&self, head: Head) -> Option<u8> {
        let to = head.destination();
        (to.group() == self.registers.group && to.router() == self.registers.router)
            .then(|| FIRST_NIC_PORT as u8 + to.nic())
    }

    /// The packet's part of the path, restricted to the ports of `live`.
    // Inlined so that the fields stay in registers: a struct stored in narrow pieces would stall
    // the wide load that copies it.
    #[inline(always)]
    fn phase(&self, kind: PortKind, head: Head, live: PortMask) -> Intent {
        let local = head.destination().group() == self.registers.group;
        let mut class = head.vc() & 3;
        let mut is_up = head.non_minimal();
        match kind {
            // At the source, ignore the head's class and state: only this router decides.
            PortKind::Processor => (class, is_up) = (0, false),
            PortKind::Blue => {
                class = self.registers.blue_classes[usize::from(!local)][usize::from(class)] & 3;
                // In an intermediate group the path continues up. A packet that arrives there on
                // its path down has gone astray.
                is_up = !local && class < 2;
                if !local && !is_up {
                    return Intent::NOWHERE;
                }
            }
            PortKind::Green | PortKind::Black => {}
        }
        let at_source = kind == PortKind::Processor;
        let position = match kind {
            PortKind::Processor | PortKind::Blue => 0,
            PortKind::Green => 1,
            PortKind::Black => 2,
        } + if local { 0 } else { 3 * class.min(1) };
        let is_minimal = !is_up || class == 0 && !local;
        let minimal = Part {
            ports: if is_minimal {
                self.minimal(kind, head) & live
            } else {
                0
            },
            class,
        };
        let from = if is_minimal && local {
            PortKind::Processor
        } else {
            kind
        };
        let up = if is_minimal && class != 0 {
            Up::NOWHERE
        } else {
            self.up(from, head, live, class, is_up)
        };
        Intent {
            minimal,
            up,
            at_source,
            is_up,
            position,
        }
    }

    /// The path up, for a packet that is on it (`is_up`) with `class`, or could start it here.
    /// `from` determines the dimensions that are still open.
    #[inline]
    fn up(&self, from: PortKind, head: Head, live: PortMask, class: u8, is_up: bool) -> Up {
        let local = head.destination().group() == self.registers.group;
        let ports = self.non_minimal(from, head) & live;
        let greens = match from {
            PortKind::Processor | PortKind::Blue => ports & self.green,
            PortKind::Green | PortKind::Black => 0,
        };
        let blacks = match from {
            PortKind::Black => 0,
            _ => ports & self.black,
        };
        if !local && class == 0 {
            return Up {
                greens,
                blacks,
                class,
                ends: ports & self.blue,
                root: None,
            };
        }
        let class = if local {
            self.registers.local_up_class & 3
        } else {
            class
        };
        Up {
            greens,
            blacks,
            class,
            // A packet that starts its path up here gains nothing from a root here.
            ends: if is_up {
                self.minimal(PortKind::Processor, head) & live
            } else {
                0
            },
            root: Some(self.registers.root_classes[usize::from(class)] & 3),
        }
    }

    /// Every possible decision of this router for a packet with this head, over all routing modes,
    /// loads, random draws and link failures.
    pub fn ways(&self, kind: PortKind, head: Head) -> NextHops {
        let mut ways = NextHops::default();
        if let Some(port) = self.nic(head) {
            let class = if kind == PortKind::Processor {
                0
            } else {
                head.vc() & 3
            };
            ways.add(1 << port & self.nics, class, false);
            return ways;
        }
        let phase = self.phase(kind, head, PortMask::MAX);
        let Intent { minimal, up, .. } = phase;
        ways.add(minimal.ports, minimal.class, false);
        let steps = up.greens | up.blacks;
        match up.root {
            None => ways.add(steps | up.ends, up.class, true),
            Some(class) => {
                ways.add(steps, up.class, true);
                ways.add(up.ends, class, false);
            }
        }
        ways
    }

    /// Routes a packet. `live` contains the ports whose link is up; `load` returns a port's load.
    ///
    /// Up to two minimal and two non-minimal candidates are drawn per packet and router, within the
    /// limits of its mode and state. The candidate with the least load after the mode's bias wins
    /// (XC white paper, "Aries Router", "Cray XC Routing"). Ties go to the minimal candidate, which
    /// is phitwire's choice.
    ///
    /// # Errors
    /// [`Refusal`] if there is no path.
    pub fn choose(
        &self,
        arrival: Arrival,
        live: PortMask,
        rng: &mut Rng,
        load: impl Loads,
    ) -> Result<Decision, Refusal> {
        let Arrival { port, kind, head } = arrival;
        if let Some(nic) = self.nic(head) {
            let class = if kind == PortKind::Processor {
                0
            } else {
                head.vc() & 3
            };
            return self.eject(nic, class, live);
        }
        let phase = self.phase(kind, head, live);
        let mode = head.routing();
        let decision = if mode.is_deterministic() {
            let mut draws = HashDraws(self.flow_hash(port, head));
            self.pick_hashed(phase, mode, &mut draws)
        } else if let Some(mode) = mode.adaptive_mode() {
            self.pick_adaptive(phase, mode, rng, &load)
        } else {
            self.pick_of_kind(phase, mode == Routing::Valiant, rng, &load)
        };
        decision.ok_or_else(|| {
            if self.ways(kind, head).is_empty() {
                Refusal::Unroutable
            } else {
                Refusal::Dead
            }
        })
    }

    fn eject(&self, port: u8, class: u8, live: PortMask) -> Result<Decision, Refusal> {
        if self.nics >> port & 1 == 0 {
            return Err(Refusal::Unroutable);
        }
        if live >> port & 1 == 0 {
            return Err(Refusal::Dead);
        }
        let way = NextHop {
            port,
            class,
            non_minimal: false,
        };
        Ok(Decision {
            way,
            kind: Choice::Eject,
        })
    }
}

impl Intent {
    const NOWHERE: Self = Self {
        minimal: Part { ports: 0, class: 0 },
        up: Up::NOWHERE,
        at_source: false,
        is_up: false,
        position: 0,
    };

    /// Whether the packet prefers the path up. At the source the mode decides.
    fn wants_up(&self, mode_wants_up: bool) -> bool {
        if self.at_source {
            mode_wants_up
        } else {
            self.is_up
        }
    }

    fn decision(&self, way: NextHop, up: bool, fallback: bool) -> Decision {
        let kind = if fallback {
            Choice::Fallback
        } else if self.at_source {
            if up {
                Choice::NonMinimal
            } else {
                Choice::Minimal
            }
        } else if up && !way.non_minimal {
            Choice::Root
        } else if up && !self.is_up {
            Choice::Diverted
        } else if !up && self.is_up {
            Choice::Returned
        } else {
            Choice::Transit
        };
        Decision { way, kind }
    }
}

impl Up {
    const NOWHERE: Self = Self {
        greens: 0,
        blacks: 0,
        class: 0,
        ends: 0,
        root: None,
    };
}

impl Part {
    #[inline]
    fn way(&self, port: u8) -> NextHop {
        NextHop {
            port,
            class: self.class,
            non_minimal: false,
        }
    }
}

#[inline]
fn entry(table: &[PortMask], index: usize) -> PortMask {
    table.get(index).copied().unwrap_or(0)
}

#[path = "pick.rs"]
mod pick;
#[cfg(test)]
#[path = "tests.rs"]
mod tests;

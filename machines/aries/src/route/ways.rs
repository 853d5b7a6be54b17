//! What a route decision of a dragonfly is about: ways, and the decision among them.

use phitwire_framing::aries::flit::Head;

use super::registers::{PORTS, PortKind, PortMask};

/// Where a packet goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Way {
    /// The output port, below [`PORTS`].
    pub port: u8,
    /// The class of its virtual channel there, 0 to 3. Responses use the virtual channel of four
    /// times more.
    pub class: u8,
    /// Whether it is on its way up to a root from there.
    pub non_minimal: bool,
}

/// Ways that differ in the port only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaySet {
    /// The output ports.
    pub ports: PortMask,
    /// The class there.
    pub class: u8,
    /// Whether they lead up to a root.
    pub non_minimal: bool,
}

/// Every way that a packet could be sent on: see [`Routes::ways`](super::decision::Routes::ways).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ways {
    sets: [WaySet; MAX_SETS],
    len: u8,
}

/// Minimal, non-minimal and from the root.
const MAX_SETS: usize = 3;

impl Ways {
    pub(super) fn add(&mut self, ports: PortMask, class: u8, non_minimal: bool) {
        if ports == 0 {
            return;
        }
        debug_assert!(usize::from(self.len) < MAX_SETS, "three kinds of ways");
        if let Some(set) = self.sets.get_mut(usize::from(self.len)) {
            *set = WaySet {
                ports,
                class,
                non_minimal,
            };
            self.len += 1;
        }
    }

    /// The ways, by class and kind; none of the sets is empty.
    pub fn sets(&self) -> &[WaySet] {
        &self.sets[..usize::from(self.len)]
    }

    /// Whether there is no way at all.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The ways one by one.
    pub fn iter(&self) -> impl Iterator<Item = Way> + '_ {
        self.sets().iter().flat_map(|set| {
            (0..PORTS as u8)
                .filter(|port| set.ports >> port & 1 != 0)
                .map(|port| Way {
                    port,
                    class: set.class,
                    non_minimal: set.non_minimal,
                })
        })
    }
}

/// What a tile decided for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Where it goes.
    pub way: Way,
    /// Whether the packet had a choice of kinds that the loads decided, or had to take the other
    /// kind because none of its own was there.
    pub kind: Choice,
}

/// How the kind of a way came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// To the NIC.
    Eject,
    /// At the source, minimal.
    Minimal,
    /// At the source, non-minimal.
    NonMinimal,
    /// At the root of a non-minimal way.
    Root,
    /// On the way: an adaptive packet on a minimal path is diverted to a non-minimal one.
    Diverted,
    /// On the way: an adaptive packet on a non-minimal path returns to a minimal one.
    Returned,
    /// On the way, without a choice of the kind.
    Transit,
    /// The other kind than the one that the packet would have taken, which has no live port.
    Fallback,
}

/// Why a packet has no way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The tables name no port.
    Unroutable,
    /// The tables name ports, but none whose link is up.
    Dead,
}

/// A packet at a router, as the decision sees it.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// The port by which it came in: part of the hash of ordered packets.
    pub port: u8,
    /// The kind of that port.
    pub kind: PortKind,
    /// Its head, as it came in.
    pub head: Head,
}

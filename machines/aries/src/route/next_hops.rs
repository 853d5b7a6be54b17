//! The next steps of a packet at a dragonfly router, and the decision among them.

use phitwire_framing::aries::flit::Head;

use super::registers::{PORTS, PortKind, PortMask};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NextHop {
    /// The output port, below [`PORTS`].
    pub port: u8,
    /// The class of the virtual channel at that port, 0 to 3. Responses use the virtual channel
    /// four higher.
    pub class: u8,
    /// Whether the packet is on its path up to a root after this step.
    pub non_minimal: bool,
}

/// Paths that differ only in the port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NextHopSet {
    pub ports: PortMask,
    pub class: u8,
    pub non_minimal: bool,
}

/// Every path that a packet could take: see [`Routes::ways`](super::decision::Routes::ways).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NextHops {
    sets: [NextHopSet; MAX_SETS],
    len: u8,
}

/// Minimal paths, non-minimal paths and paths from the root.
const MAX_SETS: usize = 3;

impl NextHops {
    pub(super) fn add(&mut self, ports: PortMask, class: u8, non_minimal: bool) {
        if ports == 0 {
            return;
        }
        debug_assert!(
            usize::from(self.len) < MAX_SETS,
            "at most three sets of ports"
        );
        if let Some(set) = self.sets.get_mut(usize::from(self.len)) {
            *set = NextHopSet {
                ports,
                class,
                non_minimal,
            };
            self.len += 1;
        }
    }

    /// The paths, by class and kind; no set is empty.
    pub fn sets(&self) -> &[NextHopSet] {
        &self.sets[..usize::from(self.len)]
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn iter(&self) -> impl Iterator<Item = NextHop> + '_ {
        self.sets().iter().flat_map(|set| {
            (0..PORTS as u8)
                .filter(|port| set.ports >> port & 1 != 0)
                .map(|port| NextHop {
                    port,
                    class: set.class,
                    non_minimal: set.non_minimal,
                })
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    pub way: NextHop,
    /// The reason for the kind of path: chosen by load, or because the preferred kind had no live
    /// port.
    pub kind: Choice,
}

/// Reason for the kind of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    Eject,
    /// At the source, minimal.
    Minimal,
    /// At the source, non-minimal.
    NonMinimal,
    /// At the root of a non-minimal path.
    Root,
    /// In transit: an adaptive packet on a minimal path is diverted to a non-minimal one.
    Diverted,
    /// In transit: an adaptive packet on a non-minimal path returns to a minimal one.
    Returned,
    /// In transit, without a choice of kind.
    Transit,
    /// The other kind, because the preferred one has no live port.
    Fallback,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The tables have no port for the packet.
    Unroutable,
    /// The tables have ports for the packet, but none whose link is up.
    Dead,
}

/// A packet at a router, as input to the decision.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// The arrival port, which enters the hash of ordered packets.
    pub port: u8,
    pub kind: PortKind,
    pub head: Head,
}

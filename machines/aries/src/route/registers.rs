//! The configuration registers of an Aries chip: the dragonfly as its tiles see it.
//!
//! The XC white paper names four route tables per tile, biases and VC switching ("Aries Router",
//! "Cray XC Routing"); their layout here is phitwire's.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Number of network ports: 40 network tiles with one link each.
pub const NETWORK_PORTS: usize = 40;
/// Number of NICs of a chip. NIC n is on port [`FIRST_NIC_PORT`] + n, and Netlink spreads its
/// packets over the processor tiles of its pair.
pub const NICS: usize = 4;
pub const FIRST_NIC_PORT: usize = NETWORK_PORTS;
/// Number of ports of a chip: 40 network ports, then 4 NIC ports.
pub const PORTS: usize = NETWORK_PORTS + NICS;
pub const VCS: usize = phitwire_framing::aries::flit::VCS;

/// A set of ports; bit n is port n.
pub type PortMask = u64;

/// Kind of a port's link (XC white paper, "Dragonfly Implementation"). Packets within a group take
/// green links before black ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum PortKind {
    Processor = 0,
    /// Rank 1: to another router of the chassis.
    Green = 1,
    /// Rank 2: to the router of the same slot in another chassis of the group.
    Black = 2,
    /// Rank 3: to another group.
    Blue = 3,
}

impl PortKind {
    /// Every kind, indexed by its discriminant.
    pub const ALL: [Self; 4] = [Self::Processor, Self::Green, Self::Black, Self::Blue];
}

/// The four route tables of a tile. A table has one entry per destination: per router of the group
/// (local) or per group (global). An entry is the set of permitted ports, of which the tile draws
/// two at random. An empty entry means that no such path exists from here.
///
/// There is one set of tables for each kind of arrival port ("each tile has four sets of route
/// tables"), which keeps green links before black ones. Minimal entries lead to the destination.
/// Non-minimal entries lead one hop on the path "up" to a random intermediate router, the *root*. A
/// router becomes the root if the entry is empty or "stay" is drawn. An adaptive packet draws no
/// "stay" on its path to a root; its root is the first router whose path down costs no more than
/// the path up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteTables {
    /// Ports of minimal paths, by router of this group. This router's own entry is empty, since the
    /// destination selects the NIC.
    pub local_minimal: Vec<PortMask>,
    /// Ports on the path up to a root from which the router is reachable, by router of this group.
    pub local_non_minimal: Vec<PortMask>,
    /// Ports of minimal paths to a group, by group. This group's own entry is empty.
    pub global_minimal: Vec<PortMask>,
    /// Ports on the path up to an intermediate group from which the group is reachable, by group.
    pub global_non_minimal: Vec<PortMask>,
}

impl RouteTables {
    /// Each table with its register name.
    pub fn by_name(&self) -> [(&'static str, &[PortMask]); 4] {
        [
            ("local_minimal", &self.local_minimal),
            ("local_non_minimal", &self.local_non_minimal),
            ("global_minimal", &self.global_minimal),
            ("global_non_minimal", &self.global_non_minimal),
        ]
    }

    pub fn by_name_mut(&mut self) -> [(&'static str, &mut [PortMask]); 4] {
        [
            ("local_minimal", &mut self.local_minimal),
            ("local_non_minimal", &mut self.local_non_minimal),
            ("global_minimal", &mut self.global_minimal),
            ("global_non_minimal", &mut self.global_non_minimal),
        ]
    }
}

/// The bias of a kind of path: its load becomes `(load << shift) + add`, and the least load wins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bias {
    /// 0 to 3.
    pub shift: u8,
    /// 0 to 63.
    pub add: u8,
}

/// The biases of one adaptive routing mode (XC white paper, "Aries Router": "a programmable bias
/// mechanism").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModeBias {
    pub minimal: Bias,
    pub non_minimal: Bias,
    /// 0 to 63, added to non-minimal loads for each step of the packet's position: 1 after a green
    /// link, 2 after a black one, and 3 more in an intermediate group.
    pub growth: u8,
}

/// The registers of one chip. Values that all tiles have in common are stored once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AriesRegisters {
    pub group: u16,
    /// This router's number in its group: chassis times blades per chassis plus blade.
    pub router: u8,
    /// Kind of each port's link, or `None` without a link; [`PORTS`] entries.
    pub ports: Vec<Option<PortKind>>,
    /// The route tables for packets from ports of each [`PortKind`].
    pub tables: [Arc<RouteTables>; 4],
    /// Number of parallel links to each router of the black dimension (three on a full machine),
    /// used as the weight of "stay" in that dimension.
    pub black_links: u8,
    /// Biases of the adaptive modes 0 to 3.
    pub bias: [ModeBias; 4],
    /// Virtual channel class (0 to 3) of a packet after a blue link, by its class on that link:
    /// first for packets in their destination's group, second for packets in an intermediate group.
    pub blue_classes: [[u8; 4]; 2],
    /// Class that a packet takes at its Valiant root, by its class on arrival.
    pub root_classes: [u8; 4],
    /// Class of non-minimal packets on their path up within their destination's own group.
    pub local_up_class: u8,
    /// Forward-progress timeout of every output virtual channel, in emulated nanoseconds.
    pub forward_progress_ns: u64,
}

impl AriesRegisters {
    /// The ports that appear in any table.
    pub fn named_ports(&self) -> PortMask {
        let tables = self.tables.iter().flat_map(|tables| tables.by_name());
        let entries = tables.flat_map(|(_, entries)| entries);
        entries.fold(0, |all, ports| all | ports)
    }

    /// Deadlock-free [`blue_classes`](Self::blue_classes): 0 in the source group, 1 towards the
    /// root, 2 from the root, 3 in the target group (XC white paper, "Cray XC Routing"; the classes
    /// are inferred).
    pub const BLUE_CLASSES: [[u8; 4]; 2] = [[3, 3, 3, 3], [1, 1, 2, 3]];
    /// Deadlock-free [`root_classes`](Self::root_classes).
    pub const ROOT_CLASSES: [u8; 4] = [2, 2, 2, 3];
    /// Deadlock-free [`local_up_class`](Self::local_up_class).
    pub const LOCAL_UP_CLASS: u8 = 1;
    /// [`bias`](Self::bias) of the four modes: none, growing along the path, small and large. The
    /// modes are published, their numbers are not. Loads of ports are 0 to 15, those of non-minimal
    /// paths 0 to 30. A small bias is worth a few waiting packets; a large one lets a minimal path
    /// fill up before another is used. `docs/guide/src/results.md` gives the accepted load of each
    /// mode.
    pub const BIAS: [ModeBias; 4] = [mode(0, 0, 0), mode(0, 0, 5), mode(0, 4, 0), mode(0, 8, 0)];
}

const fn mode(shift: u8, add: u8, growth: u8) -> ModeBias {
    ModeBias {
        minimal: Bias { shift: 0, add: 0 },
        non_minimal: Bias { shift, add },
        growth,
    }
}

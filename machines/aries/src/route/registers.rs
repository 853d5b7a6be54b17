//! The configuration registers of an Aries chip: its tiles' view of the dragonfly.
//!
//! The XC white paper names four route tables per tile, biases and VC switching ("Aries Router",
//! "Cray XC Routing"); their layout here is ours.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Network ports: the 40 network tiles, one link each.
pub const NETWORK_PORTS: usize = 40;
/// NICs of a chip; NIC n is on port [`FIRST_NIC_PORT`] + n, and Netlink spreads its packets over
/// the processor tiles of its pair.
pub const NICS: usize = 4;
/// The port of NIC 0.
pub const FIRST_NIC_PORT: usize = NETWORK_PORTS;
/// Ports of a chip: 40 network ports, then 4 NIC ports.
pub const PORTS: usize = NETWORK_PORTS + NICS;
pub const VCS: usize = phitwire_framing::aries::flit::VCS;

/// Ports as a bit mask: bit n = port n.
pub type PortMask = u64;

/// Kind of a port's link (XC white paper, "Dragonfly Implementation"). Packets inside a group take
/// green links before black ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum PortKind {
    /// To a NIC.
    Processor = 0,
    /// Rank 1: to another router of the chassis.
    Green = 1,
    /// Rank 2: to the router of the same slot in another chassis of the group.
    Black = 2,
    /// Rank 3: to another group.
    Blue = 3,
}

impl PortKind {
    /// Every kind, at the index of its discriminant.
    pub const ALL: [Self; 4] = [Self::Processor, Self::Green, Self::Black, Self::Blue];
}

/// The four route tables of a tile. A table has one entry per destination: per router of the group
/// (local) or per group (global). An entry is the set of ports that may be used, of which the tile
/// draws two at random; an empty one means that no such path exists from here.
///
/// The tables differ by the kind of the port by which a packet came in ("each tile has four sets of
/// route tables"), which keeps green before black. Minimal entries lead to the destination.
/// Non-minimal entries lead one hop on the path "up" to a random intermediate router, the *root*; a
/// root is reached where the entry is empty or where "stay" is drawn; an adaptive packet, which
/// draws no "stay" on its path to a root, makes the first router its root whose path down costs no
/// more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteTables {
    /// By router of this group: ports of minimal paths. This router's own entry is empty: the
    /// destination gives the NIC.
    pub local_minimal: Vec<PortMask>,
    /// By router of this group: ports on the path up to a root from which that router can be
    /// reached.
    pub local_non_minimal: Vec<PortMask>,
    /// By group: ports of minimal paths to that group. The own group's entry is empty.
    pub global_minimal: Vec<PortMask>,
    /// By group: ports on the path up to an intermediate group from which that group can be
    /// reached.
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

    /// Like [`by_name`](Self::by_name), mutable.
    pub fn by_name_mut(&mut self) -> [(&'static str, &mut [PortMask]); 4] {
        [
            ("local_minimal", &mut self.local_minimal),
            ("local_non_minimal", &mut self.local_non_minimal),
            ("global_minimal", &mut self.global_minimal),
            ("global_non_minimal", &mut self.global_non_minimal),
        ]
    }
}

/// The bias of a kind of path: its load becomes `(load << shift) + add`, and the least wins.
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
    /// For minimal candidates.
    pub minimal: Bias,
    /// For non-minimal candidates.
    pub non_minimal: Bias,
    /// 0 to 63: added to non-minimal loads for each step of the packet's position: 1 after a green
    /// link, 2 after a black one, 3 more in an intermediate group.
    pub growth: u8,
}

/// The registers of one chip. Values common to its tiles are stored once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AriesRegisters {
    /// This router's group.
    pub group: u16,
    /// This router's number within its group: chassis times blades per chassis plus blade.
    pub router: u8,
    /// Kind of each port's link; `None`: no link. [`PORTS`] entries.
    pub ports: Vec<Option<PortKind>>,
    /// The route tables for packets from ports of each [`PortKind`].
    pub tables: [Arc<RouteTables>; 4],
    /// Parallel links to each router of the black dimension (three on a full machine): the weight
    /// of "stay" when a step in that dimension is drawn.
    pub black_links: u8,
    /// Biases of the adaptive modes 0 to 3.
    pub bias: [ModeBias; 4],
    /// Class of the virtual channel (0 to 3) that a packet takes after a blue link, by its class on
    /// that link: first if this is its destination's group, second if it is an intermediate one.
    pub blue_classes: [[u8; 4]; 2],
    /// Class that a packet takes at its Valiant root, by its class on arrival.
    pub root_classes: [u8; 4],
    /// Class of non-minimal packets on their path up inside their destination's own group.
    pub local_up_class: u8,
    /// Forward-progress timeout of every output virtual channel, in emulated nanoseconds.
    pub forward_progress_ns: u64,
}

impl AriesRegisters {
    /// The ports named by any table.
    pub fn named_ports(&self) -> PortMask {
        let tables = self.tables.iter().flat_map(|tables| tables.by_name());
        let entries = tables.flat_map(|(_, entries)| entries);
        entries.fold(0, |all, ports| all | ports)
    }

    /// [`blue_classes`](Self::blue_classes) of a deadlock-free machine: source group 0, towards the
    /// root 1, from the root 2, target group 3 (XC white paper, "Cray XC Routing"; classes
    /// inferred).
    pub const BLUE_CLASSES: [[u8; 4]; 2] = [[3, 3, 3, 3], [1, 1, 2, 3]];
    /// [`root_classes`](Self::root_classes) of such a machine.
    pub const ROOT_CLASSES: [u8; 4] = [2, 2, 2, 3];
    /// [`local_up_class`](Self::local_up_class) of such a machine.
    pub const LOCAL_UP_CLASS: u8 = 1;
    /// [`bias`](Self::bias) of the four modes: none, growing along the path, small, large. The
    /// modes are public, their numbers are not. Loads of ports are 0 to 15, those of non-minimal
    /// paths 0 to 30. A small bias is worth a few waiting packets; a large one lets a minimal path
    /// fill up before another is taken. `docs/guide/src/results.md` gives the accepted load of each
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

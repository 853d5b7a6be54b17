//! The data model of a dragonfly.

use phitwire_framing::aries::flit::NodeId;

use super::generate::Generator;
use crate::link::rates;
use crate::nic::HostTimes;
use crate::route::registers::{
    AriesRegisters, FIRST_NIC_PORT, ModeBias, NETWORK_PORTS, PORTS, PortKind,
};
use phitwire::link::LaneRate;
use phitwire::net::{End, Link, Network, NodeRef, Settings};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Number of groups, 1 to 241.
    pub groups: u16,
    /// Number of chassis per group, 1 to 6.
    pub chassis: u8,
    /// Number of blades per chassis, 1 to 16; each blade has one router.
    pub blades: u8,
    /// Number of NICs per router, 1 to 4.
    pub nics: u8,
}

impl Shape {
    /// Maximum number of groups: the 960 global links of a group, in sets of four, connect it to
    /// 240 others (XC white paper, "Dragonfly Implementation").
    pub const MAX_GROUPS: u16 = 241;
    /// Maximum number of chassis in a group: those of two cabinets.
    pub const MAX_CHASSIS: u8 = 6;
    pub const MAX_BLADES: u8 = 16;
    pub const MAX_NICS: u8 = NodeId::NICS;

    pub const fn group_routers(&self) -> usize {
        self.chassis as usize * self.blades as usize
    }

    /// Number of routers, including those of absent blades.
    pub const fn routers(&self) -> usize {
        self.groups as usize * self.group_routers()
    }

    /// Number of NICs, including those of absent blades.
    pub const fn all_nics(&self) -> usize {
        self.routers() * self.nics as usize
    }

    pub const fn group_of(&self, router: u32) -> u16 {
        (router as usize / self.group_routers()) as u16
    }

    /// Number of a router in its group: chassis times blades plus blade.
    pub const fn local_of(&self, router: u32) -> u8 {
        (router as usize % self.group_routers()) as u8
    }

    pub const fn place_of(&self, router: u32) -> (u8, u8) {
        let local = self.local_of(router);
        (local / self.blades, local % self.blades)
    }

    pub const fn router(&self, group: u16, local: u8) -> u32 {
        (group as usize * self.group_routers() + local as usize) as u32
    }

    /// Name of a router: `g0-c1s3` stands for group 0, chassis 1, slot 3.
    pub fn router_name(&self, router: u32) -> String {
        let (chassis, blade) = self.place_of(router);
        format!("g{}-c{chassis}s{blade}", self.group_of(router))
    }

    /// The address of a NIC, given its number in the machine.
    pub const fn node_id(&self, nic: u32) -> NodeId {
        let router = nic / self.nics as u32;
        NodeId::new(
            self.group_of(router),
            self.local_of(router),
            (nic % self.nics as u32) as u8,
        )
    }

    /// The NIC with the given address; `None` if the machine has none.
    pub fn nic_of(&self, id: NodeId) -> Option<u32> {
        let inside = id.group() < self.groups
            && usize::from(id.router()) < self.group_routers()
            && id.nic() < self.nics;
        inside.then(|| {
            self.router(id.group(), id.router()) * u32::from(self.nics) + u32::from(id.nic())
        })
    }

    /// The node with the name `nic7` or `g0-c1s3`; `None` if the shape has no such node.
    pub fn find(&self, name: &str) -> Option<NodeRef> {
        let number = |text: &str| -> Option<u32> {
            let plain = !text.is_empty() && (text == "0" || !text.starts_with('0'));
            let digits = text.bytes().all(|b| b.is_ascii_digit());
            (plain && digits).then(|| text.parse().ok()).flatten()
        };
        if let Some(nic) = name.strip_prefix("nic") {
            let nic = number(nic)?;
            return ((nic as usize) < self.all_nics()).then_some(NodeRef::Processor(nic));
        }
        let (group, position) = name.strip_prefix('g')?.split_once("-c")?;
        let (chassis, blade) = position.split_once('s')?;
        let (group, chassis, blade) = (number(group)?, number(chassis)?, number(blade)?);
        let inside = group < u32::from(self.groups)
            && chassis < u32::from(self.chassis)
            && blade < u32::from(self.blades);
        inside.then(|| {
            let local = chassis * u32::from(self.blades) + blade;
            NodeRef::Chip(self.router(group as u16, local as u8))
        })
    }
}

/// A complete dragonfly: all nodes, links and settings. The [`shape`](Self::shape) determines the
/// nodes. A [`NodeRef::Chip`] is a router by its number in the machine (group by group), a
/// [`NodeRef::Processor`] a NIC by its number (router by router).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dragonfly {
    pub name: String,
    pub shape: Shape,
    /// Parameters of generated links; `None` if each link is listed.
    pub generator: Option<Generator>,
    pub settings: DragonflySettings,
    pub classes: Classes,
    pub bias: [ModeBias; 4],
    /// Times of the hosts of NICs, in the machine's time.
    pub host: HostTimes,
    /// Absent routers, which are absent together with their NICs; sorted.
    pub absent: Vec<u32>,
    /// Links; a link's id is its index.
    pub links: Vec<DragonflyLink>,
}

/// A link between two routers, or between a router and its NIC. Its rate follows from its kind.
pub type DragonflyLink = Link<()>;

/// Changes of virtual channel classes along a path: see the fields with these names in
/// [`AriesRegisters`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classes {
    pub blue: [[u8; 4]; 2],
    pub root: [u8; 4],
    pub local_up: u8,
}

impl Default for Classes {
    fn default() -> Self {
        Self {
            blue: AriesRegisters::BLUE_CLASSES,
            root: AriesRegisters::ROOT_CLASSES,
            local_up: AriesRegisters::LOCAL_UP_CLASS,
        }
    }
}

/// Settings shared by all nodes and links of a dragonfly. The memory size is a multiple of 64
/// bytes, and a NIC may have at most 1,024 packets outstanding.
pub type DragonflySettings = Settings<DragonflyLanes>;

/// Settings that only a dragonfly has: the lanes of its links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DragonflyLanes {
    /// Rate of a lane within a group: one of [`rates::ALL`].
    pub rate: LaneRate,
    /// Rate of a lane between groups: one of [`rates::ALL`].
    pub global_rate: LaneRate,
    /// Number of lanes that a link may lose and still work (publicly known of the registers), 0 to
    /// 2.
    pub degrades_allowed: u8,
}

impl Default for DragonflyLanes {
    fn default() -> Self {
        Self {
            // 14 Gb/s within a group, 12.5 Gb/s on active optical cables (XC white paper,
            // "Dragonfly Implementation").
            rate: rates::G14_0,
            global_rate: rates::G12_5,
            degrades_allowed: 2,
        }
    }
}

impl DragonflyLanes {
    pub const fn rate_of(&self, kind: PortKind) -> LaneRate {
        match kind {
            PortKind::Processor => rates::NIC,
            PortKind::Green | PortKind::Black => self.rate,
            PortKind::Blue => self.global_rate,
        }
    }
}

pub(super) fn gbps(rate: LaneRate) -> f64 {
    rate.bits_per_second() as f64 / 1e9
}

impl Dragonfly {
    /// The name of a node; `?` if the shape has no such node.
    pub fn node_name(&self, node: NodeRef) -> String {
        match node {
            NodeRef::Processor(n) if (n as usize) < self.shape.all_nics() => format!("nic{n}"),
            NodeRef::Chip(r) if (r as usize) < self.shape.routers() => self.shape.router_name(r),
            _ => String::from("?"),
        }
    }

    /// Name of a link end: `NODE:PORT`.
    pub fn end_name(&self, end: End) -> String {
        Network::end_name(self, end)
    }

    /// Whether a node exists: it is in the shape and not on an absent blade.
    pub fn has(&self, node: NodeRef) -> bool {
        let router = match node {
            NodeRef::Processor(n) => n / u32::from(self.shape.nics.max(1)),
            NodeRef::Chip(r) => r,
        };
        (router as usize) < self.shape.routers() && self.absent.binary_search(&router).is_err()
    }

    pub fn find(&self, name: &str) -> Option<NodeRef> {
        self.shape.find(name).filter(|&node| self.has(node))
    }

    pub fn routers(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.shape.routers() as u32).filter(|&r| self.has(NodeRef::Chip(r)))
    }

    pub fn nics(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.shape.all_nics() as u32).filter(|&n| self.has(NodeRef::Processor(n)))
    }

    /// Kind of a link, derived from its ends; `None` if no link is possible there.
    pub fn kind(&self, link: &DragonflyLink) -> Option<PortKind> {
        match (link.a.node, link.b.node) {
            (NodeRef::Chip(a), NodeRef::Chip(b)) => self.kind_between(a, b),
            (NodeRef::Processor(n), NodeRef::Chip(_)) => self.is_nic_link(n, link.b, link.a),
            (NodeRef::Chip(_), NodeRef::Processor(n)) => self.is_nic_link(n, link.a, link.b),
            (NodeRef::Processor(_), NodeRef::Processor(_)) => None,
        }
    }

    /// A NIC belongs to exactly one port of one router.
    fn is_nic_link(&self, nic: u32, router: End, own: End) -> Option<PortKind> {
        (self.nic_ends(nic) == (own, router)).then_some(PortKind::Processor)
    }

    pub fn nic_ends(&self, nic: u32) -> (End, End) {
        let nics = u32::from(self.shape.nics);
        let port = FIRST_NIC_PORT as u8 + (nic % nics) as u8;
        (End::processor(nic, 0), End::chip(nic / nics, port))
    }

    fn kind_between(&self, a: u32, b: u32) -> Option<PortKind> {
        if a == b {
            return None;
        }
        if self.shape.group_of(a) != self.shape.group_of(b) {
            return Some(PortKind::Blue);
        }
        let ((chassis_a, blade_a), (chassis_b, blade_b)) =
            (self.shape.place_of(a), self.shape.place_of(b));
        match (chassis_a == chassis_b, blade_a == blade_b) {
            (true, false) => Some(PortKind::Green),
            (false, true) => Some(PortKind::Black),
            _ => None,
        }
    }

    /// Number of ports of a node: 44 of a router, one of a NIC.
    pub const fn ports_of(node: NodeRef) -> u8 {
        match node {
            NodeRef::Processor(_) => 1,
            NodeRef::Chip(_) => PORTS as u8,
        }
    }

    /// Whether a router's port is one of the 40 ports to other routers.
    pub const fn is_network_port(port: u8) -> bool {
        (port as usize) < NETWORK_PORTS
    }
}

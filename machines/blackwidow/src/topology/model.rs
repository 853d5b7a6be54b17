//! The elements of a folded Clos.

use crate::link::rates;
use crate::route::registers::{PORTS, PortKind, RouteEntry, Subtree, TABLE_ENTRIES};
use phitwire::link::LaneRate;
use phitwire::net::{End, Link, NodeRef, PortSet, Settings, Shown};

/// Number of destinations that 15 bits can address, the width of location and mask of root detect
/// (BlackWidow sec. 5.1).
pub const MAX_PROCESSORS: u32 = 1 << 15;
/// Maximum number of slices: a processor has four injection ports (BlackWidow sec. 2.2).
pub const MAX_SLICES: u8 = 4;

/// A complete network: all slices, nodes, links and registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoldedClos {
    pub name: String,
    /// Number of slices, 1 to 4: port *s* of every processor leads to slice *s*.
    pub slices: u8,
    pub settings: ClosSettings,
    /// Processors, each with one NIC of [`slices`](Self::slices) ports.
    pub processors: Vec<Processor>,
    pub chips: Vec<Chip>,
    /// Links; a link's id is its index.
    pub links: Vec<Link>,
}

/// Settings of all nodes and links of a folded Clos.
pub type ClosSettings = Settings<ClosLinks>;

/// Link settings that only a folded Clos has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosLinks {
    /// Default lane rate of links.
    pub rate: LaneRate,
    /// Default cable length of links in metres; `None` leaves it to the simulation.
    pub metres: Option<u16>,
    /// Longest packet that an LCB accepts, in phits (BlackWidow sec. 4.3).
    pub max_packet_phits: u8,
}

impl Default for ClosLinks {
    fn default() -> Self {
        Self {
            rate: rates::G6_25,
            metres: None,
            // A 32-byte write (BlackWidow sec. 4.3).
            max_packet_phits: 19,
        }
    }
}

/// The rates of the SerDes (BlackWidow sec. 4.4) as written in descriptions, in Gb/s.
const RATES: [(&str, LaneRate); 6] = [
    ("6.25", rates::G6_25),
    ("5.0", rates::G5_0),
    ("3.125", rates::G3_125),
    ("2.5", rates::G2_5),
    ("1.5625", rates::G1_5625),
    ("1.25", rates::G1_25),
];

/// A lane rate in Gb/s, such as `3.125`.
pub fn rate_text(rate: LaneRate) -> &'static str {
    RATES
        .iter()
        .find(|(_, known)| *known == rate)
        .map_or("?", |(text, _)| *text)
}

/// Parses a lane rate in Gb/s, without rounding.
///
/// # Errors
/// A message with the valid rates.
pub fn parse_rate(text: &str) -> Result<LaneRate, String> {
    // Accept 6.250 and 5 too.
    let plain = |s: &str| match s.split_once('.') {
        Some((whole, rest)) => (whole.to_owned(), rest.trim_end_matches('0').to_owned()),
        None => (s.to_owned(), String::new()),
    };
    let wanted = plain(text.trim());
    let found = RATES.iter().find(|(known, _)| plain(known) == wanted);
    found.map(|(_, rate)| *rate).ok_or_else(|| {
        let all: Vec<&str> = RATES.iter().map(|(text, _)| *text).collect();
        format!(
            "invalid lane rate {} Gb/s: expected one of {}",
            Shown(text),
            all.join(", ")
        )
    })
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Processor {
    pub name: String,
    /// Address of the processor in packets, below 32,768.
    pub number: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chip {
    pub name: String,
    /// The virtual routers that share the chip: one with up to 64 ports, or several (BlackWidow
    /// sec. 7.4).
    pub routers: Vec<VirtualRouter>,
}

/// A router of the network: some or all ports of one chip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VirtualRouter {
    pub name: String,
    /// Rank of the router: 1 with processors attached, up to 3.
    pub rank: u8,
    pub slice: u8,
    /// Ports of the chip that belong to this router.
    pub ports: PortSet,
    pub subtree: Subtree,
    /// Register values of every tile of the router.
    pub registers: RouterRegisters,
}

/// The routing registers of a virtual router. All its tiles have the same values except the kind of
/// a tile's link, which follows from the links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouterRegisters {
    /// Destinations to which packets are routed down (BlackWidow sec. 5.1).
    pub root_detect: Subtree,
    /// Routes up or sideways; the matching entry with the highest index wins (BlackWidow sec. 5.1).
    pub table: [RouteEntry; TABLE_ENTRIES],
    /// Down route: right shift of the destination (BlackWidow sec. 5).
    pub down_shift: u8,
    /// Down route: mask of the shifted destination, which gives the logical port.
    pub down_mask: u16,
    /// Physical port of each logical port, or [`NO_PORT`](super::NO_PORT).
    pub port_map: [u8; PORTS],
    /// First of the 8 hash bits used (BlackWidow sec. 7.8.2).
    pub hash_shift: u8,
    /// Ports by which packets may leave (BlackWidow sec. 7.4).
    pub exit_mask: PortSet,
}

impl RouterRegisters {
    /// The entry that decides the upward or sideways hop to `destination`: the matching one with
    /// the highest index (BlackWidow sec. 5.1).
    pub fn entry_for(&self, destination: u16) -> Option<(usize, &RouteEntry)> {
        let used = self
            .table
            .iter()
            .enumerate()
            .rev()
            .filter(|(_, e)| e.ports != 0);
        used.into_iter()
            .find(|(_, e)| e.subtree.contains(destination))
    }

    /// Physical port of the down route to `destination`, if the map has one.
    pub fn down_port(&self, destination: u16) -> Option<u8> {
        let shifted = destination
            .checked_shr(u32::from(self.down_shift))
            .unwrap_or(0);
        let port = *self.port_map.get(usize::from(shifted & self.down_mask))?;
        (usize::from(port) < PORTS).then_some(port)
    }
}

impl FoldedClos {
    pub fn find(&self, name: &str) -> Option<NodeRef> {
        let chip = || self.chips.iter().position(|c| c.name == name);
        match self.processors.iter().position(|p| p.name == name) {
            Some(i) => Some(NodeRef::Processor(i as u32)),
            None => chip().map(|i| NodeRef::Chip(i as u32)),
        }
    }

    /// Every virtual router with the index of its chip.
    pub fn routers(&self) -> impl Iterator<Item = (usize, &VirtualRouter)> {
        self.chips
            .iter()
            .enumerate()
            .flat_map(|(c, chip)| chip.routers.iter().map(move |r| (c, r)))
    }

    /// The kind of a link as seen from `end`, by rank; processors are below all routers (BlackWidow
    /// sec. 5).
    pub fn kind_of(&self, end: End, other: End) -> PortKind {
        match self.rank_of(end).cmp(&self.rank_of(other)) {
            core::cmp::Ordering::Less => PortKind::Up,
            core::cmp::Ordering::Equal => PortKind::Side,
            core::cmp::Ordering::Greater => PortKind::Down,
        }
    }

    /// Rank of the router that owns the port; 0 for a processor or for a port without a router.
    pub fn rank_of(&self, end: End) -> u8 {
        match end.node {
            NodeRef::Processor(_) => 0,
            NodeRef::Chip(c) => self
                .chips
                .get(c as usize)
                .and_then(|chip| chip.routers.iter().find(|r| r.ports.contains(end.port)))
                .map_or(0, |r| r.rank),
        }
    }
}

/// The smallest aligned subtree that contains the processor numbers `first..=last`.
pub(super) fn subtree_of_range(first: u16, last: u16) -> Subtree {
    let differing = first ^ last;
    let mask = if differing == 0 {
        0
    } else {
        (1u32 << (16 - differing.leading_zeros())) - 1
    };
    Subtree {
        location: first & !(mask as u16),
        mask: mask as u16,
    }
}

/// First and last processor number of a subtree with a contiguous mask.
pub(super) fn range_of_subtree(subtree: Subtree) -> (u16, u16) {
    let first = subtree.location & !subtree.mask;
    (first, first | subtree.mask)
}

/// Whether the mask is `0..01..1` and the location has none of its bits, so that the subtree is one
/// aligned range of numbers.
pub(super) fn is_aligned(subtree: Subtree) -> bool {
    let next = subtree.mask.wrapping_add(1);
    subtree.mask & next == 0 && subtree.mask < 1 << 15 && subtree.location & subtree.mask == 0
}

//! The configuration registers of a YARC chip (BlackWidow sec. 5.1, 5.2, 7.4, 7.7, 7.8.2).

use serde::{Deserialize, Serialize};

/// Number of physical ports, and so of tiles, of one chip.
pub const PORTS: usize = 64;
/// A logical port without a link: no processor with that number is connected.
pub const NO_PORT: u8 = 0xff;
/// Number of entries in the up/side routing table of each tile (BlackWidow sec. 5.1).
pub const TABLE_ENTRIES: usize = 8;

/// Direction of a port's link, as seen from its (virtual) router (BlackWidow sec. 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PortKind {
    /// Towards the processors: a lower-rank router or a NIC.
    Down,
    /// Towards a higher-rank router.
    Up,
    /// To a peer router of the same rank.
    Side,
}

/// A subtree of the machine: the destinations that equal `location` in every bit that is not set in
/// `mask`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subtree {
    pub location: u16,
    /// 15-bit mask of the bits that are *not* compared. Location 0x0060 with mask 0x001f covers
    /// destinations 96 to 127.
    pub mask: u16,
}

impl Subtree {
    #[inline]
    pub const fn contains(self, destination: u16) -> bool {
        (destination ^ self.location) & !self.mask & 0x7fff == 0
    }
}

/// One entry of the up/side routing table. The matching entry with the highest index wins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteEntry {
    /// Destinations to which the entry applies.
    pub subtree: Subtree,
    /// Bit mask of the physical ports (uplinks or sidelinks) that may be used; 0 if the entry is
    /// not in use.
    pub ports: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TileRegisters {
    pub kind: PortKind,
    /// The subtree below this (virtual) router. Packets to it are routed down.
    pub root_detect: Subtree,
    pub table: [RouteEntry; TABLE_ENTRIES],
    /// Down route: right shift of the destination.
    pub down_shift: u8,
    /// Down route: mask of the shifted destination, which gives the logical port.
    pub down_mask: u16,
    /// Physical port of each logical port, or [`NO_PORT`].
    #[serde(with = "serde_ports")]
    pub port_map: [u8; PORTS],
    /// First of the 8 hash bits that the deterministic hash uses (rank 1: 0, rank 2: 5, rank 3:
    /// 10).
    pub hash_shift: u8,
    /// Ports by which packets from this tile may leave: those of its virtual router.
    pub exit_mask: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChipRegisters {
    /// Registers per physical port; `None` for a tile without a link.
    pub tiles: Vec<Option<TileRegisters>>,
    /// Forward-progress timeout of every output virtual channel, in emulated nanoseconds
    /// (BlackWidow sec. 7.7).
    pub forward_progress_ns: u64,
}

impl ChipRegisters {
    /// A stand-alone chip without uplinks: packets to destination d, below 64, leave by port d.
    pub fn flat() -> Self {
        let last = PORTS as u16 - 1;
        let tile = TileRegisters {
            kind: PortKind::Down,
            root_detect: Subtree {
                location: 0,
                mask: last,
            },
            table: [RouteEntry::default(); TABLE_ENTRIES],
            down_shift: 0,
            down_mask: last,
            port_map: core::array::from_fn(|port| port as u8),
            hash_shift: 0,
            exit_mask: u64::MAX,
        };
        Self {
            tiles: vec![Some(tile); PORTS],
            forward_progress_ns: 1_000_000,
        }
    }
}

mod serde_ports {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    pub fn serialize<S: Serializer>(map: &[u8; 64], s: S) -> Result<S::Ok, S::Error> {
        map.as_slice().serialize(s)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<[u8; 64], D::Error> {
        Vec::<u8>::deserialize(d)?.try_into().map_err(|v: Vec<u8>| {
            D::Error::custom(format!("the port map has {} entries, expected 64", v.len()))
        })
    }
}

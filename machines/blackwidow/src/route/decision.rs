//! The route decision at the head of an input queue (BlackWidow sec. 5.1, 5.2, 7.4, 7.7, 7.8.2).

use super::modulo::{modulo, supported_at_most};
use super::registers::{
    ChipRegisters, PORTS, PortKind, RouteEntry, Subtree, TABLE_ENTRIES, TileRegisters,
};

/// Why a packet cannot be routed. It is dropped up to its end and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// No table entry matches the destination, or the logical port has no link.
    Unroutable,
    /// The packet arrived on an uplink and would have to leave by a link other than a downlink
    /// (forbidden by BlackWidow sec. 7.7).
    UpDownViolation,
    /// The packet would leave its virtual router (BlackWidow sec. 7.4).
    VirtualRouterViolation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Leave by this port: down, or up or sideways by the deterministic hash.
    Port(u8),
    /// Leave by the port with the most room among these; never empty.
    Adaptive(u64),
    /// The hash needs the second phit, which has not arrived.
    NeedsHash,
    Refused(Refusal),
}

/// The fields of a head phit that routing uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteRequest {
    /// Destination processor, 15 bits.
    pub destination: u16,
    /// The `a` bit: route adaptively upwards.
    pub adaptive: bool,
    /// The `h` bit: the deterministic hash includes the hash bits of the second phit.
    pub hashed: bool,
    /// The 15 hash bits, if the second phit has arrived.
    pub hash_bits: Option<u16>,
}

/// The ports of a chip that have links, and their direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChipPorts {
    pub in_use: u64,
    pub down: u64,
}

impl ChipPorts {
    pub fn new(registers: &ChipRegisters) -> Self {
        let mut ports = Self::default();
        for (port, tile) in registers.tiles.iter().take(PORTS).enumerate() {
            if let Some(tile) = tile {
                ports.in_use |= 1 << port;
                if tile.kind == PortKind::Down {
                    ports.down |= 1 << port;
                }
            }
        }
        ports
    }
}

/// A decision with its steps, for display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Explanation {
    /// The destination is below: its bits select a logical port, which the map translates.
    Down {
        logical: u8,
        port: u8,
    },
    /// A table entry has the upward ports.
    Up {
        entry: u8,
        ports: u64,
        /// The hash of a packet that uses this entry.
        hash: u16,
        /// Modulus of the hash: the number of ports over which it spreads packets.
        spread: u8,
    },
    Nowhere,
}

/// A routing table entry, prepared for comparison.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// Existing ports of the entry that this tile may use.
    usable: u64,
    /// `location`, reduced to the compared bits.
    location: u16,
    /// Bits of the destination that are compared.
    compared: u16,
    /// Number of ports over which the hash spreads packets: the size of `usable`, or the next
    /// smaller supported count.
    spread: u8,
    /// The reason, if `usable` is empty.
    refusal: Option<Refusal>,
}

/// The routing registers of one tile, compiled for the hot path.
#[derive(Clone, Debug)]
pub struct TileRoutes {
    input: u8,
    from_uplink: bool,
    root: Subtree,
    down_shift: u8,
    down_mask: u16,
    hash_shift: u8,
    /// Bit mask of the table entries in use, so that the search can start at the highest index.
    entries_in_use: u8,
    exits: u64,
    ports: ChipPorts,
    entries: [Entry; TABLE_ENTRIES],
    port_map: [u8; PORTS],
}

impl TileRoutes {
    /// Compiles the registers of the tile of port `input`.
    pub fn new(input: u8, tile: &TileRegisters, ports: ChipPorts) -> Self {
        let from_uplink = tile.kind == PortKind::Up;
        let mut routes = Self {
            input,
            from_uplink,
            root: tile.root_detect,
            down_shift: tile.down_shift.min(15),
            down_mask: if tile.down_shift > 15 {
                0
            } else {
                tile.down_mask
            },
            hash_shift: tile.hash_shift.min(15),
            entries_in_use: 0,
            exits: tile.exit_mask,
            ports,
            entries: [Entry::default(); TABLE_ENTRIES],
            port_map: tile.port_map,
        };
        for (index, entry) in tile.table.iter().enumerate().filter(|(_, e)| e.ports != 0) {
            routes.entries_in_use |= 1 << index;
            routes.entries[index] = routes.compile(entry);
        }
        routes
    }

    fn compile(&self, entry: &RouteEntry) -> Entry {
        let mut refusal = None;
        let mut usable = entry.ports;
        let mut restrict = |mask: u64, why: Refusal| {
            usable &= mask;
            if usable == 0 && refusal.is_none() {
                refusal = Some(why);
            }
        };
        restrict(self.ports.in_use, Refusal::Unroutable);
        restrict(self.exits, Refusal::VirtualRouterViolation);
        if self.from_uplink {
            restrict(self.ports.down, Refusal::UpDownViolation);
        }
        Entry {
            usable,
            compared: !entry.subtree.mask & 0x7fff,
            location: entry.subtree.location & !entry.subtree.mask & 0x7fff,
            spread: supported_at_most(usable.count_ones()) as u8,
            refusal,
        }
    }

    #[inline]
    pub fn decide(&self, request: RouteRequest) -> Decision {
        let destination = request.destination & 0x7fff;
        if self.root.contains(destination) {
            return self.down(destination);
        }
        // The matching entry with the highest index wins (BlackWidow sec. 5.1).
        let mut candidates = self.entries_in_use;
        while candidates != 0 {
            let index = 7 - candidates.leading_zeros() as usize % 8;
            let entry = &self.entries[index];
            if destination & entry.compared == entry.location {
                return self.up(entry, request);
            }
            candidates &= !(1 << index);
        }
        Decision::Refused(Refusal::Unroutable)
    }

    /// The hash bits of the second phit that determine where packets from this tile leave. Packets
    /// that differ only in other bits take the same path. A modulus of 2^n depends on the n low
    /// bits of the hash, any other modulus on all bits.
    pub fn deciding_hash_bits(&self) -> u16 {
        let mut all = 0;
        for (index, entry) in self.entries.iter().enumerate() {
            if self.entries_in_use >> index & 1 != 0 && entry.spread > 1 {
                all |= match entry.spread.is_power_of_two() {
                    true => u16::from(entry.spread) - 1,
                    false => 0xff,
                };
            }
        }
        (all & 0xff) << self.hash_shift & 0x7fff
    }

    /// Explains the decision for a packet with these fields.
    pub fn explain(&self, request: RouteRequest) -> Explanation {
        let destination = request.destination & 0x7fff;
        if self.root.contains(destination) {
            let logical = (destination >> self.down_shift) & self.down_mask;
            let port = self.port_map.get(usize::from(logical));
            return port.map_or(Explanation::Nowhere, |&port| Explanation::Down {
                logical: logical as u8,
                port,
            });
        }
        let matches = |index: &usize| {
            let entry = &self.entries[*index];
            let in_use = self.entries_in_use >> index & 1 != 0;
            in_use && destination & entry.compared == entry.location
        };
        let found = (0..TABLE_ENTRIES).rev().find(matches);
        found.map_or(Explanation::Nowhere, |index| Explanation::Up {
            entry: index as u8,
            ports: self.entries[index].usable,
            hash: self.hash(destination, request.hash_bits.unwrap_or(0)),
            spread: self.entries[index].spread,
        })
    }

    /// The down route (BlackWidow sec. 5.2): shift, mask, and map from logical to physical ports.
    #[inline]
    fn down(&self, destination: u16) -> Decision {
        let logical = usize::from((destination >> self.down_shift) & self.down_mask);
        let Some(&port) = self.port_map.get(logical) else {
            return Decision::Refused(Refusal::Unroutable);
        };
        self.check_exit(port)
            .map_or_else(Decision::Refused, |()| Decision::Port(port))
    }

    /// Whether a packet from this tile may leave by `port`. Also applies to source-routed packets.
    ///
    /// # Errors
    /// The rule that forbids it.
    #[inline]
    pub fn check_exit(&self, port: u8) -> Result<(), Refusal> {
        if port as usize >= PORTS || self.ports.in_use >> port & 1 == 0 {
            Err(Refusal::Unroutable)
        } else if self.exits >> port & 1 == 0 {
            Err(Refusal::VirtualRouterViolation)
        } else if self.from_uplink && self.ports.down >> port & 1 == 0 {
            Err(Refusal::UpDownViolation)
        } else {
            Ok(())
        }
    }

    #[inline]
    fn up(&self, entry: &Entry, request: RouteRequest) -> Decision {
        if entry.usable == 0 {
            return Decision::Refused(entry.refusal.unwrap_or(Refusal::Unroutable));
        }
        if request.adaptive {
            return Decision::Adaptive(entry.usable);
        }
        let hash_bits = match (request.hashed, request.hash_bits) {
            (false, _) => 0,
            (true, Some(bits)) => bits,
            (true, None) => return Decision::NeedsHash,
        };
        let hash = self.hash(request.destination, hash_bits);
        let chosen = modulo(u32::from(hash), u32::from(entry.spread));
        Decision::Port(nth_set_bit(entry.usable, chosen))
    }

    /// The deterministic hash: XOR of the input port, the destination and the 8 hash bits (of 15)
    /// that this tile uses.
    #[inline]
    fn hash(&self, destination: u16, hash_bits: u16) -> u16 {
        let selected = ((hash_bits & 0x7fff) >> self.hash_shift) & 0xff;
        u16::from(self.input) ^ (destination & 0x7fff) ^ selected
    }
}

/// The position of the set bit with index `n` in `mask`, counted from bit 0.
///
/// Takes six halving steps on bit counts. Returns 63 if fewer than `n + 1` bits are set.
#[inline]
pub const fn nth_set_bit(mask: u64, mut n: u32) -> u8 {
    let mut position = 0;
    let mut width = 32;
    while width > 0 {
        let below = ((mask >> position) & ((1u64 << width) - 1)).count_ones();
        if n >= below {
            n -= below;
            position += width;
        }
        width /= 2;
    }
    position as u8
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

#[cfg(test)]
#[path = "hash_tests.rs"]
mod hash_tests;

//! Computes the registers from the structure of a healthy network.

use super::model::{FoldedClos, RouterRegisters, VirtualRouter, is_aligned, range_of_subtree};
use super::wiring::{ClosWiring, Neighbour};
use crate::route::registers::{PORTS, PortKind, RouteEntry, Subtree, TABLE_ENTRIES};
use phitwire::net::PortSet;

pub use crate::route::registers::NO_PORT;

/// Every destination that 15 bits can address (BlackWidow sec. 5.1: "the entire network").
pub(super) const ENTIRE_NETWORK: Subtree = Subtree {
    location: 0,
    mask: 0x7fff,
};

/// Text such as `all`, `4-7` or `4`; `None` if the subtree is not a range.
pub(super) fn range_text(subtree: Subtree) -> Option<String> {
    let (first, last) = range_of_subtree(subtree);
    match subtree {
        ENTIRE_NETWORK => Some(String::from("all")),
        _ if !is_aligned(subtree) => None,
        _ if first == last => Some(first.to_string()),
        _ => Some(format!("{first}-{last}")),
    }
}

/// Computes the registers of `router` from its links:
///
/// - root detect is the router's subtree (BlackWidow sec. 5.1);
/// - entry 0 of the table contains the entire network and all uplinks; every peer subtree has a
///   separate entry with its sidelinks (BlackWidow sec. 5.1). Peers beyond the eighth entry are
///   omitted, which [`check`](super::check()) reports;
/// - the down shift is the largest that distinguishes the children (BlackWidow sec. 5). Several
///   links to one child share its destinations;
/// - the hash uses the bits from 0, 5 or 10 on, by rank (BlackWidow sec. 7.8.2);
/// - the exit mask contains the router's ports (BlackWidow sec. 7.4).
pub fn computed_registers(
    topology: &FoldedClos,
    wiring: &ClosWiring,
    router: u32,
) -> RouterRegisters {
    let me = wiring.router(topology, router);
    let (down_shift, down_mask, port_map) = down_route(topology, wiring, router, me);
    RouterRegisters {
        root_detect: me.subtree,
        table: up_table(topology, wiring, router),
        down_shift,
        down_mask,
        port_map,
        hash_shift: 5 * me.rank.saturating_sub(1).min(2),
        exit_mask: me.ports,
    }
}

/// The subtrees behind links of a kind, in the order of their first ports, with all ports to each.
fn joined(
    topology: &FoldedClos,
    wiring: &ClosWiring,
    router: u32,
    kind: PortKind,
) -> Vec<(Subtree, PortSet)> {
    let chip = wiring.chip_of(router);
    let mut joined: Vec<(Subtree, PortSet)> = Vec::new();
    for port in wiring.ports_of_kind(topology, router, kind).iter() {
        let subtree = match wiring.neighbour(chip, port) {
            Some(Neighbour::Processor(p)) => Subtree {
                location: topology.processors[p as usize].number,
                mask: 0,
            },
            Some(Neighbour::Router(other, _)) => wiring.router(topology, other).subtree,
            None => continue,
        };
        match joined.iter_mut().find(|(known, _)| *known == subtree) {
            Some((_, ports)) => *ports = ports.with(port),
            None => joined.push((subtree, PortSet::EMPTY.with(port))),
        }
    }
    joined
}

/// Peer subtrees of a router with their sidelinks, by location.
pub(super) fn peers(
    topology: &FoldedClos,
    wiring: &ClosWiring,
    router: u32,
) -> Vec<(Subtree, PortSet)> {
    let mut peers = joined(topology, wiring, router, PortKind::Side);
    peers.sort_by_key(|(subtree, _)| (subtree.location, subtree.mask));
    peers
}

fn up_table(
    topology: &FoldedClos,
    wiring: &ClosWiring,
    router: u32,
) -> [RouteEntry; TABLE_ENTRIES] {
    let mut table = [RouteEntry::default(); TABLE_ENTRIES];
    let up = wiring.ports_of_kind(topology, router, PortKind::Up);
    let up = (!up.is_empty()).then_some((ENTIRE_NETWORK, up));
    let entries = up.into_iter().chain(peers(topology, wiring, router));
    for (slot, (subtree, ports)) in table.iter_mut().zip(entries) {
        *slot = RouteEntry {
            subtree,
            ports: ports.bits(),
        };
    }
    table
}

fn down_route(
    topology: &FoldedClos,
    wiring: &ClosWiring,
    router: u32,
    me: &VirtualRouter,
) -> (u8, u16, [u8; PORTS]) {
    let mut map = [NO_PORT; PORTS];
    let mut children = joined(topology, wiring, router, PortKind::Down);
    children.retain(|(subtree, _)| is_aligned(*subtree));
    if children.is_empty() || !is_aligned(me.subtree) {
        return (0, 0, map);
    }
    // A child of 2^k processors on 2^p parallel links needs 2^p logical ports.
    let bits = |subtree: &Subtree| subtree.mask.count_ones();
    let shift = children
        .iter()
        .map(|(subtree, ports)| {
            bits(subtree).saturating_sub(ports.len().next_power_of_two().ilog2())
        })
        .min()
        .unwrap_or(0)
        .max(bits(&me.subtree).saturating_sub(PORTS.ilog2()));
    let mask = me.subtree.mask >> shift;
    for (subtree, ports) in &children {
        let first = subtree.location >> shift & mask;
        let slots = subtree.mask.checked_shr(shift).unwrap_or(0) + 1;
        let ports: Vec<u8> = ports.iter().collect();
        for (logical, &port) in (first..first + slots).zip(ports.iter().cycle()) {
            // `check` reports a child outside the router's own subtree; some of its logical ports
            // may not exist.
            if let Some(entry) = map.get_mut(usize::from(logical)) {
                *entry = port;
            }
        }
    }
    (shift as u8, mask, map)
}

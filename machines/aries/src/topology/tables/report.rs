//! Compares the pairs that the tables connect with the pairs that links connect.

use super::Faults;
use crate::route::registers::{AriesRegisters, NETWORK_PORTS, PortKind};
use crate::topology::model::Dragonfly;
use crate::topology::wiring::{DragonflyWiring, Far};

const MOST_PAIRS: usize = 10_000;

/// The pairs that route tables connect. Pairs are ordered pairs of routers, by number in the
/// machine; the result also applies to their NICs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteReport {
    /// Pairs of working routers that are connected by live links, but not by the tables; at most
    /// 10,000.
    pub lost: Vec<(u32, u32)>,
    /// Number of such pairs.
    pub lost_pairs: u64,
    /// Number of pairs of working routers that no chain of live links connects.
    pub cut_pairs: u64,
    /// Number of pairs of working routers that the tables connect.
    pub reached_pairs: u64,
    /// Ordered pairs of groups with a source router that has no minimal path, so that its packets
    /// cross a third group.
    pub detours: Vec<(u16, u16)>,
}

/// Bit mask of the routers of `group` that packets from a router reach, including itself.
pub(super) fn reached(registers: &AriesRegisters, group: u16, coverage: &[u128]) -> u128 {
    let tables = &registers.tables[PortKind::Processor as usize];
    let to = usize::from(group);
    if group != registers.group {
        let some = |table: &[u64]| table.get(to).is_some_and(|&ports| ports != 0);
        let any = some(&tables.global_minimal) || some(&tables.global_non_minimal);
        return if any { coverage[to] } else { 0 };
    }
    let both = tables.local_minimal.iter().zip(&tables.local_non_minimal);
    let others = both.enumerate().filter(|(_, (a, b))| **a | **b != 0);
    others.fold(1 << registers.router, |set, (x, _)| set | 1 << x)
}

/// Connected components of working routers: a number per router, equal within a component.
fn components(network: &Dragonfly, wiring: &DragonflyWiring, faults: &Faults) -> Vec<u32> {
    let mut component = vec![u32::MAX; network.shape.routers()];
    let mut todo = Vec::new();
    for start in network.routers() {
        if component[start as usize] != u32::MAX || faults.routers.contains(&start) {
            continue;
        }
        component[start as usize] = start;
        todo.push(start);
        while let Some(router) = todo.pop() {
            for port in 0..NETWORK_PORTS as u8 {
                let dead = |link| faults.links.contains(&link);
                if let Some(Far::Router(peer, _)) = wiring.far(router, port)
                    && component[peer as usize] == u32::MAX
                    && !faults.routers.contains(&peer)
                    && !wiring.link(router, port).is_some_and(dead)
                {
                    component[peer as usize] = start;
                    todo.push(peer);
                }
            }
        }
    }
    component
}

pub(super) fn report(
    network: &Dragonfly,
    wiring: &DragonflyWiring,
    faults: &Faults,
    registers: &[AriesRegisters],
    coverage: &[u128],
) -> RouteReport {
    let shape = &network.shape;
    let component = components(network, wiring, faults);
    // By group, its components with their routers. There is only one unless the network is
    // partitioned.
    let members: Vec<Vec<(u32, u128)>> = component
        .chunks(shape.group_routers())
        .map(|group| {
            let mut sets: Vec<(u32, u128)> = Vec::new();
            for (local, &number) in group.iter().enumerate().filter(|(_, n)| **n != u32::MAX) {
                match sets.iter_mut().find(|(known, _)| *known == number) {
                    Some((_, set)) => *set |= 1 << local,
                    None => sets.push((number, 1 << local)),
                }
            }
            sets
        })
        .collect();
    let mut report = RouteReport::default();
    for (from, registers) in registers.iter().enumerate() {
        if component[from] == u32::MAX {
            continue;
        }
        for (group, sets) in members.iter().enumerate() {
            let living = sets.iter().fold(0, |all, (_, set)| all | set);
            let mine = sets.iter().find(|(number, _)| *number == component[from]);
            let connected = mine.map_or(0, |(_, set)| *set);
            let reached = reached(registers, group as u16, coverage) & connected;
            let lost = connected & !reached;
            report.reached_pairs += u64::from(reached.count_ones());
            report.cut_pairs += u64::from((living & !connected).count_ones());
            report.lost_pairs += u64::from(lost.count_ones());
            for local in (0..shape.group_routers()).filter(|local| lost >> local & 1 != 0) {
                if report.lost.len() < MOST_PAIRS {
                    let to = shape.router(group as u16, local as u8);
                    report.lost.push((from as u32, to));
                }
            }
            let minimal = &registers.tables[PortKind::Processor as usize].global_minimal;
            let pair = (registers.group, group as u16);
            if pair.0 != pair.1 && connected != 0 && minimal[group] == 0 {
                // Routers are ordered by group.
                if report.detours.last() != Some(&pair) && !report.detours.contains(&pair) {
                    report.detours.push(pair);
                }
            }
        }
    }
    // A router forms no pair with itself.
    let living = component.iter().filter(|&&n| n != u32::MAX).count() as u64;
    report.reached_pairs -= living;
    report
}

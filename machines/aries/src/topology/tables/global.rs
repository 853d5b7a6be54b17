//! The global tables for paths between groups, one destination group at a time.

use super::Making;
use super::local::{LocalGroup, ports_to};
use crate::route::registers::PortMask;

/// The routers of group `to` that packets from other groups will reach: all that any arrival router
/// reaches, if one of them reaches them all; otherwise those of the router that reaches most. A
/// global entry does not distinguish the routers of a group, so every blue link in use must reach
/// the same ones.
pub(super) fn coverage(groups: &[LocalGroup], to: usize) -> u128 {
    let group = &groups[to];
    let arrivals = (0..group.routers()).filter(|&x| !group.blue[x].is_empty());
    let (mut all, mut most) = (0, 0_u128);
    for router in arrivals {
        let reach = group.reach[router];
        all |= reach;
        if reach.count_ones() > most.count_ones() {
            most = reach;
        }
    }
    // The union equals the best router's reach if one router reaches them all.
    if all == most { all } else { most }
}

/// Ports of all routers for packets to one group.
#[derive(Debug)]
pub(super) struct Reaching {
    /// By router in the machine: own blue ports to the group.
    direct: Vec<PortMask>,
    after_green: Vec<PortMask>,
    /// Minimal ports at the source and at a root.
    minimal: Vec<PortMask>,
    /// Blue ports to intermediate groups.
    away: Vec<PortMask>,
    /// By group: routers where packets may arrive on their path up.
    arrivals: Vec<u128>,
}

impl Reaching {
    pub(super) fn new(routers: usize) -> Self {
        Self {
            direct: vec![0; routers],
            after_green: vec![0; routers],
            minimal: vec![0; routers],
            away: vec![0; routers],
            arrivals: Vec::new(),
        }
    }

    /// Finds the paths to group `to` that reach the routers in `covered`.
    pub(super) fn towards(&mut self, groups: &[LocalGroup], to: usize, covered: u128) {
        let size = groups[to].routers();
        let arrives_well = |local: u8| groups[to].reach[usize::from(local)] & covered == covered;
        self.arrivals.clear();
        for (g, group) in groups.iter().enumerate() {
            let first = g * size;
            for local in 0..size {
                let direct = group.blue[local]
                    .iter()
                    .filter(|blue| usize::from(blue.group) == to && arrives_well(blue.local))
                    .fold(0, |ports, blue| ports | 1 << blue.port);
                self.direct[first + local] = if g == to { 0 } else { direct };
            }
            for local in 0..size {
                let direct = &self.direct[first..first + size];
                self.after_green[first + local] = match direct[local] {
                    0 => ports_to(group.black_peers(local), |peer| direct[peer] != 0),
                    own => own,
                };
            }
            for local in 0..size {
                let after_green = &self.after_green[first..first + size];
                self.minimal[first + local] = match self.direct[first + local] {
                    0 => {
                        after_green[local]
                            | ports_to(group.green_peers(local), |peer| after_green[peer] != 0)
                    }
                    own => own,
                };
            }
            let minimal = &self.minimal[first..first + size];
            let is_root = |peer: usize| minimal[peer] != 0;
            let arrivals = (0..size).filter(|&local| {
                is_root(local)
                    || group.green_peers(local).any(|(peer, _)| is_root(peer))
                    || group.black_peers(local).any(|(peer, _)| is_root(peer))
            });
            self.arrivals.push(arrivals.fold(0, |set, x| set | 1 << x));
        }
        for (g, group) in groups.iter().enumerate() {
            self.find_away(group, g, to);
        }
    }

    /// Blue ports of a group to intermediate groups. If there are none, as with two groups, uses
    /// the links of all routers to the destination's group, not only those of the nearest.
    fn find_away(&mut self, group: &LocalGroup, g: usize, to: usize) {
        let first = g * group.routers();
        let mut any = 0;
        for (local, links) in group.blue.iter().enumerate() {
            let ports = links
                .iter()
                .filter(|blue| usize::from(blue.group) != to)
                .filter(|blue| self.arrivals[usize::from(blue.group)] >> blue.local & 1 != 0)
                .fold(0, |ports, blue| ports | 1 << blue.port);
            self.away[first + local] = if g == to { 0 } else { ports };
            any |= self.away[first + local];
        }
        if any == 0 {
            let all = first..first + group.routers();
            self.away[all.clone()].copy_from_slice(&self.direct[all]);
        }
    }

    /// Fills in the entries of all routers for group `to`.
    pub(super) fn fill(&self, groups: &[LocalGroup], to: usize, making: &mut [Making]) {
        let size = groups[to].routers();
        for (g, group) in groups.iter().enumerate().filter(|(g, _)| *g != to) {
            let all = g * size..(g + 1) * size;
            let ways = NonMinimalPaths {
                group,
                away: &self.away[all.clone()],
                minimal: &self.minimal[all.clone()],
            };
            let black_up: Vec<BlackUp> = (0..size).map(|from| ways.black_up(from)).collect();
            for (local, making) in making[all.clone()].iter_mut().enumerate() {
                let router = all.start + local;
                let direct = self.direct[router];
                making.processor.global_minimal[to] = self.minimal[router];
                making.green.global_minimal[to] = self.after_green[router];
                making.black.global_minimal[to] = direct;
                let own = self.away[router];
                making.processor.global_non_minimal[to] = own | ways.up_at_source(local, &black_up);
                making.green.global_non_minimal[to] = own | black_up[local].ports;
                making.black.global_non_minimal[to] = own;
                making.blue_non_minimal[to] = own | ways.up_at_arrival(local, &black_up);
            }
        }
    }
}

/// Black ports for non-minimal packets after a green link. One entry serves both the source's
/// group, where a blue link to another group must follow, and an intermediate group, where the next
/// router may become the root.
#[derive(Clone, Copy, Debug)]
struct BlackUp {
    ports: PortMask,
    /// Whether the ports lead to another group, but not all to a root. Intermediate groups must not
    /// use such ports.
    only_away: bool,
}

/// The non-minimal paths of one group towards another.
struct NonMinimalPaths<'a> {
    group: &'a LocalGroup,
    away: &'a [PortMask],
    minimal: &'a [PortMask],
}

impl NonMinimalPaths<'_> {
    fn is_away(&self, router: usize) -> bool {
        self.away[router] != 0
    }

    fn is_root(&self, router: usize) -> bool {
        self.minimal[router] != 0
    }

    fn black_up(&self, from: usize) -> BlackUp {
        let ports = |wanted: &dyn Fn(usize) -> bool| ports_to(self.group.black_peers(from), wanted);
        let both = ports(&|peer| self.is_away(peer) && self.is_root(peer));
        // A router without a minimal path is used only if no other leads to another group.
        let away = match both == 0 && !self.is_away(from) {
            true => ports(&|peer| self.is_away(peer)),
            false => 0,
        };
        BlackUp {
            ports: both | away,
            only_away: away != 0,
        }
    }

    /// Green and black ports at the source, class 0: each leads to a blue link to another group.
    fn up_at_source(&self, from: usize, black_up: &[BlackUp]) -> PortMask {
        let black = ports_to(self.group.black_peers(from), |peer| self.is_away(peer));
        let green = ports_to(self.group.green_peers(from), |peer| {
            self.is_away(peer) || black_up[peer].ports != 0
        });
        green | black
    }

    /// Green and black ports where a packet arrives in an intermediate group, class 1: each leads
    /// to a root.
    fn up_at_arrival(&self, from: usize, black_up: &[BlackUp]) -> PortMask {
        let black = ports_to(self.group.black_peers(from), |peer| self.is_root(peer));
        let green = ports_to(self.group.green_peers(from), |peer| {
            !black_up[peer].only_away && (self.is_root(peer) || black_up[peer].ports != 0)
        });
        green | black
    }
}

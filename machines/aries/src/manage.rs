//! Plans new tables around faults, and compares them with the old ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::route::registers::{PortKind, RouteTables};
use crate::router::digest;
use crate::topology::{Dragonfly, DragonflyWiring, Faults, Routed, Shape, endangered};
use phitwire::net::{Reroutable, RoutedTables};

/// Maximum number of pairs in a list.
const MOST_PAIRS: usize = 10_000;

/// Pairs of routers (source, destination) that the new tables connect but the old ones did not, or
/// whose packets could get stuck with the old ones. After a fault these are the pairs that it
/// affected, after a repair those that recover. Not computed for networks of more than 1,024
/// routers.
fn restored(
    network: &Dragonfly,
    wiring: &DragonflyWiring,
    installed: &Routed,
    routed: &Routed,
    faults: &Faults,
) -> Option<Vec<(u32, u32)>> {
    let mut harmed: BTreeSet<(u32, u32)> = endangered(network, wiring, faults, installed)?
        .into_iter()
        .collect();
    harmed.retain(|&(from, to)| routed.joins(&network.shape, from, to));
    Some(harmed.into_iter().take(MOST_PAIRS).collect())
}

impl Reroutable for Dragonfly {
    fn link_kind(&self, link: u32) -> &'static str {
        let link = self.links.get(link as usize);
        match link.and_then(|link| self.kind(link)) {
            Some(PortKind::Processor) => "processor",
            Some(PortKind::Green) => "green",
            Some(PortKind::Black) => "black",
            Some(PortKind::Blue) => "blue",
            None => "",
        }
    }

    fn routed(&self, faults: &Faults) -> Box<dyn RoutedTables> {
        Box::new(InShape {
            shape: self.shape,
            routed: self.route(faults),
        })
    }

    fn restored(&self, installed: &BTreeMap<u32, Value>, faults: &Faults) -> Option<usize> {
        let mut all = self.route(&Faults::default());
        for (&router, tables) in installed {
            let tables = serde_json::from_value::<[RouteTables; 4]>(tables.clone());
            // Skip unreadable tables here: installing them reports the error.
            if let (Some(own), Ok(tables)) = (all.registers.get_mut(router as usize), tables) {
                own.tables = tables.map(Arc::new);
            }
        }
        let wiring = DragonflyWiring::new(self);
        let routed = self.route_with(&wiring, faults);
        restored(self, &wiring, &all, &routed, faults).map(|pairs| pairs.len())
    }
}

/// The tables of a dragonfly of a given shape.
#[derive(Debug)]
struct InShape {
    shape: Shape,
    routed: Routed,
}

impl InShape {
    fn of(&self, router: u32) -> Option<&[Arc<RouteTables>; 4]> {
        let registers = self.routed.registers.get(router as usize)?;
        Some(&registers.tables)
    }
}

impl RoutedTables for InShape {
    fn tables(&self, router: u32) -> Option<Value> {
        Some(json!(self.of(router)?.each_ref().map(|tables| &**tables)))
    }

    fn digest(&self, router: u32) -> Option<String> {
        self.of(router).map(digest)
    }

    fn joins(&self, from: u32, to: u32) -> bool {
        self.routed.joins(&self.shape, from, to)
    }

    fn is_unroutable(&self, from: u32, to: u32) -> bool {
        self.routed.report.lost.contains(&(from, to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::DragonflySpec;
    use phitwire::net::NodeRef;

    fn network() -> Dragonfly {
        let spec = DragonflySpec {
            shape: Shape {
                groups: 3,
                chassis: 2,
                blades: 2,
                nics: 1,
            },
            global_links: Some(2),
            ..DragonflySpec::default()
        };
        spec.generate().expect("a valid spec")
    }

    /// New tables around faults, and their effects.
    struct Plan {
        routed: Routed,
        /// Working routers whose registers differ from the installed ones.
        changed: Vec<u32>,
        /// Pairs that could communicate before and no longer can.
        lost: Vec<(u32, u32)>,
        restored: Vec<(u32, u32)>,
    }

    fn plan_reroute(network: &Dragonfly, installed: &Routed, faults: &Faults) -> Plan {
        let wiring = DragonflyWiring::new(network);
        let routed = network.route_with(&wiring, faults);
        let alive = |router: &u32| !faults.routers.contains(router);
        let differ = |r: &u32| routed.registers[*r as usize] != installed.registers[*r as usize];
        let joins = |tables: &Routed, a, b| tables.joins(&network.shape, a, b);
        let pairs = network
            .routers()
            .flat_map(|a| network.routers().map(move |b| (a, b)));
        let is_lost = |&(a, b): &(u32, u32)| {
            let still = alive(&a) && alive(&b) && joins(&routed, a, b);
            a != b && joins(installed, a, b) && !still
        };
        let restored = restored(network, &wiring, installed, &routed, faults);
        Plan {
            changed: network.routers().filter(alive).filter(differ).collect(),
            lost: pairs.filter(is_lost).collect(),
            restored: restored.expect("a small network reports it"),
            routed,
        }
    }

    fn links_between(network: &Dragonfly, a: u16, b: u16) -> BTreeSet<u32> {
        let group = |node| match node {
            NodeRef::Chip(r) => Some(network.shape.group_of(r)),
            NodeRef::Processor(_) => None,
        };
        let joins = |(a1, b1): (Option<u16>, Option<u16>)| (a1, b1) == (Some(a), Some(b));
        let all = network.links.iter().enumerate();
        all.filter(|(_, link)| joins((group(link.a.node), group(link.b.node))))
            .map(|(id, _)| id as u32)
            .collect()
    }

    #[test]
    fn a_cut_bundle_harms_pairs_and_the_plan_restores_all() {
        let network = network();
        let installed = network.route(&Faults::default());
        let faults = Faults::of_links(&network, links_between(&network, 0, 1));
        assert!(faults.routers.is_empty());
        let plan = plan_reroute(&network, &installed, &faults);
        assert_eq!((plan.lost.len(), plan.routed.report.lost_pairs), (0, 0));
        let restored = plan.restored;
        // Router 0 sees that its link is down and sends packets over group 2. Packets of router 1
        // reach it when they can no longer be diverted.
        assert!(
            restored.contains(&(1, 4)) && !restored.contains(&(0, 4)),
            "{restored:?}"
        );
        assert!(
            !restored.contains(&(8, 9)),
            "pairs within group 2 are not affected"
        );
        assert!(!plan.changed.is_empty());
        // With the new tables nothing is at risk, and a second plan changes nothing.
        let again = plan_reroute(&network, &plan.routed, &faults);
        assert_eq!(again.changed, [] as [u32; 0]);
        assert_eq!(again.restored, []);
    }

    #[test]
    fn a_dead_router_is_lost_and_comes_back() {
        let network = network();
        let installed = network.route(&Faults::default());
        let victim = NodeRef::Chip(5);
        let links = network.links.iter().enumerate();
        let dead = links
            .filter(|(_, link)| [link.a.node, link.b.node].contains(&victim))
            .map(|(id, _)| id as u32);
        let faults = Faults::of_links(&network, dead.collect());
        assert_eq!(
            faults.routers,
            BTreeSet::from([5]),
            "all links of the router are dead"
        );
        let plan = plan_reroute(&network, &installed, &faults);
        assert_eq!(plan.lost.len(), 22);
        assert!(plan.lost.iter().all(|&(from, to)| from == 5 || to == 5));
        let report = &plan.routed.report;
        assert_eq!((report.cut_pairs, report.lost_pairs), (0, 0));
        assert!(!plan.changed.contains(&5));
        let back = plan_reroute(&network, &plan.routed, &Faults::default());
        assert_eq!(back.lost, []);
        let restored = back.restored;
        assert!(restored.contains(&(5, 0)) && restored.contains(&(0, 5)));
        assert_eq!(back.routed.registers, installed.registers);
    }
}

//! Computes tables around failures while a torus runs: other paths, isolated nodes, and spare nodes
//! that take over numbers (T3E sec. 9).

use std::collections::{BTreeMap, BTreeSet};

use phitwire_framing::t3e::direction::Direction;
use serde_json::{Value, json};

use super::model::Torus;
use super::routes::Routes;
use crate::route::{Broken, Shape, TABLE_ENTRIES, dependency};
use crate::router::RouterTables;
use phitwire::net::{Faults, NodeRef, Reroutable, RoutedTables};

const NETWORK_PORTS: u8 = (1 << Direction::ALL.len()) - 1;

impl Torus {
    /// Defects of the description and the given faults.
    fn broken_by(&self, faults: &Faults) -> Broken {
        let mut broken = self.broken();
        for &link in &faults.links {
            let Some(link) = self.graph.links.get(link as usize) else {
                continue;
            };
            let direction = Direction::ALL.get(usize::from(link.a.port));
            if let (NodeRef::Chip(node), NodeRef::Chip(_), Some(&direction)) =
                (link.a.node, link.b.node, direction)
            {
                broken.set_link(&self.shape, node, direction, true);
            }
        }
        for &router in &faults.routers {
            if router < self.shape.nodes() {
                broken.set_isolated(&self.shape, router, true);
            }
        }
        broken
    }

    /// The nodes of the logical processors after replacements.
    fn destinations_by(&self, replaced: &BTreeMap<u32, u32>) -> Vec<u32> {
        let standing_in = |&node: &u32| {
            let mut last = node;
            // Follow substitutes that failed too; the bound ends cycles.
            for _ in 0..replaced.len() {
                last = replaced.get(&last).copied().unwrap_or(last);
            }
            last
        };
        self.destinations.iter().map(standing_in).collect()
    }

    /// The number of the processor at a node. A replaced node gets the number of its substitute, to
    /// which no path leads, so that responses to requests that it still sends do not reach the
    /// substitute.
    fn number_by(&self, node: u32, destinations: &[u32]) -> u16 {
        let mut numbers = 0..destinations.len();
        if let Some(number) = numbers.find(|&number| destinations[number] == node) {
            return number as u16;
        }
        match self.processor(node) {
            Some(number) => destinations[usize::from(number)] as u16,
            None => self.own_number(node),
        }
    }
}

impl Reroutable for Torus {
    fn link_kind(&self, link: u32) -> &'static str {
        let port = self.graph.links.get(link as usize).map(|link| link.a.port);
        match port.map(usize::from) {
            Some(port @ 0..6) => ["X", "Y", "Z"][port % 3],
            _ => "",
        }
    }

    fn judge_change(
        &self,
        isolated: &BTreeSet<u32>,
        replaced: &BTreeMap<u32, u32>,
    ) -> Result<(), String> {
        let nodes = self.shape.nodes();
        let named = isolated
            .iter()
            .chain(replaced.keys())
            .chain(replaced.values());
        if let Some(node) = named.into_iter().find(|&&node| node >= nodes) {
            return Err(format!("node {node} does not exist"));
        }
        if !replaced.is_empty() && self.destinations.len() > TABLE_ENTRIES {
            return Err(format!(
                "above {TABLE_ENTRIES} processors, a look-up table entry serves four: a single \
                 processor cannot be replaced"
            ));
        }
        let mut taken = BTreeSet::new();
        for (&from, &to) in replaced {
            if self.processor(to).is_some() {
                return Err(format!("node {to} is not a spare: it has a processor"));
            }
            if self.processor(from).is_none() && !replaced.values().any(|&other| other == from) {
                return Err(format!("node {from} has no processor number to hand over"));
            }
            if !taken.insert(to) {
                return Err(format!("node {to} already replaces another node"));
            }
        }
        let all: BTreeSet<u32> = self.destinations_by(replaced).into_iter().collect();
        match all.len() == self.destinations.len() {
            true => Ok(()),
            false => Err(String::from("two processors would share a node")),
        }
    }

    fn routed(&self, faults: &Faults) -> Box<dyn RoutedTables> {
        let destinations = self.destinations_by(&faults.replaced);
        let routes = self.routes_around(self.broken_by(faults), &destinations);
        let checked = routes
            .map_err(|error| error.to_string())
            .and_then(|routes| {
                match dependency::check(&self.shape, &routes.registers, &routes.tables) {
                    Ok(()) => Ok(routes),
                    Err(circle) => Err(format!(
                        "possible deadlock: packets can wait for each other in a cycle: {circle}"
                    )),
                }
            });
        Box::new(Rerouted::new(self, checked, destinations, faults))
    }
}

/// Tables of all routers, or the reason why there are none.
#[derive(Debug)]
struct Rerouted {
    tables: Vec<RouterTables>,
    numbers: Vec<u16>,
    /// Pairs of nodes such that the look-up tables have no path from the first to the processor of
    /// the second.
    unreached: BTreeSet<(u32, u32)>,
    /// By node: its part of the network, connected by working links.
    parts: Vec<u32>,
    refused: Option<String>,
}

impl Rerouted {
    fn new(
        torus: &Torus,
        routes: Result<Routes, String>,
        destinations: Vec<u32>,
        faults: &Faults,
    ) -> Self {
        let shape = &torus.shape;
        let number = |node| torus.number_by(node, &destinations);
        let numbers: Vec<u16> = (0..shape.nodes()).map(number).collect();
        let routes = match routes {
            Ok(routes) => routes,
            Err(why) => {
                return Self {
                    tables: Vec::new(),
                    numbers,
                    unreached: BTreeSet::new(),
                    parts: Vec::new(),
                    refused: Some(why),
                };
            }
        };
        let tables = (0..shape.nodes()).map(|node| {
            let mut registers = torus.registers_by(&routes, node, numbers[node as usize]);
            registers.cut_off = cut_off(shape, &faults.isolated, node);
            RouterTables::of(&registers)
        });
        let unreached = routes.tables.unreachable().iter();
        Self {
            tables: tables.collect(),
            unreached: unreached
                .map(|&(from, pe)| (from, destinations[pe as usize]))
                .collect(),
            parts: parts(shape, &routes.broken),
            numbers,
            refused: None,
        }
    }

    fn part(&self, node: u32) -> Option<u32> {
        self.parts.get(node as usize).copied()
    }
}

/// The isolated ports of a router while the given nodes are isolated.
fn cut_off(shape: &Shape, isolated: &BTreeSet<u32>, node: u32) -> u8 {
    if isolated.contains(&node) {
        return NETWORK_PORTS;
    }
    let leads_there = |direction: &&Direction| {
        let peer = shape.neighbour(node, **direction);
        peer.is_some_and(|peer| isolated.contains(&peer))
    };
    let directions = Direction::ALL.iter().filter(leads_there);
    directions.fold(0, |ports, direction| ports | 1 << direction.index())
}

/// For each node the lowest node that it reaches over working links.
fn parts(shape: &Shape, broken: &Broken) -> Vec<u32> {
    let mut parts = vec![u32::MAX; shape.nodes() as usize];
    let mut stack = Vec::new();
    for first in 0..shape.nodes() {
        stack.push(first);
        while let Some(node) = stack.pop() {
            if parts[node as usize] != u32::MAX {
                continue;
            }
            parts[node as usize] = first;
            let works = |&direction: &Direction| broken.works(node, direction);
            let leads = Direction::ALL.into_iter().filter(works);
            stack.extend(leads.filter_map(|direction| shape.neighbour(node, direction)));
        }
    }
    parts
}

impl RoutedTables for Rerouted {
    fn tables(&self, router: u32) -> Option<Value> {
        self.tables.get(router as usize).map(|tables| json!(tables))
    }

    fn digest(&self, router: u32) -> Option<String> {
        self.tables.get(router as usize).map(RouterTables::digest)
    }

    /// Whether tables could connect the two nodes. No table leads to a node without a number.
    fn joins(&self, from: u32, to: u32) -> bool {
        let part = self.part(from);
        part.is_some() && part == self.part(to) && !self.unreached.contains(&(from, to))
    }

    fn is_unroutable(&self, from: u32, to: u32) -> bool {
        let part = self.part(from);
        part.is_some() && part == self.part(to) && self.unreached.contains(&(from, to))
    }

    fn number(&self, nic: u32) -> Option<u16> {
        self.numbers.get(nic as usize).copied()
    }

    fn refused(&self) -> Option<String> {
        self.refused.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::TorusSpec;

    fn torus(size: &str, spares: u32) -> Torus {
        let shape = size.parse().expect("a shape");
        let spec = TorusSpec {
            spares,
            ..TorusSpec::new(shape)
        };
        spec.torus()
    }

    fn differing(torus: &Torus, routed: &dyn RoutedTables) -> usize {
        let whole = torus.routed(&Faults::default());
        let nodes = 0..torus.shape().nodes();
        nodes
            .filter(|&node| whole.digest(node) != routed.digest(node))
            .count()
    }

    #[test]
    fn tables_of_the_whole_are_those_that_routers_begin_with() {
        let torus = torus("3x3x3", 1);
        let routed = torus.routed(&Faults::default());
        for (node, registers) in (0..).zip(torus.registers().expect("tables")) {
            let own = RouterTables::of(&registers);
            assert_eq!(routed.digest(node), Some(own.digest()));
            assert_eq!(routed.number(node), Some(node as u16));
        }
        assert!(routed.tables(27).is_none() && routed.digest(27).is_none());
    }

    #[test]
    fn a_dead_link_changes_tables_and_cuts_nobody_off() {
        let torus = torus("3x3x3", 0);
        for link in [0, 10, 80] {
            let faults = Faults {
                links: BTreeSet::from([link]),
                ..Faults::default()
            };
            let routed = torus.routed(&faults);
            assert_eq!(routed.refused(), None);
            assert!(differing(&torus, &*routed) > 0);
            let nodes = || 0..27;
            let joined = nodes().all(|a| nodes().all(|b| routed.joins(a, b)));
            assert!(joined, "link {link}, {}", torus.link_kind(link));
        }
    }

    #[test]
    fn an_isolated_node_is_cut_off_on_both_sides() {
        let torus = torus("3x3x3", 1);
        let faults = Faults {
            routers: BTreeSet::from([13]),
            isolated: BTreeSet::from([13]),
            ..Faults::default()
        };
        let routed = torus.routed(&faults);
        assert_eq!(routed.refused(), None);
        assert!(!routed.joins(0, 13) && !routed.joins(13, 0) && routed.joins(12, 14));
        let field = |node, name: &str| {
            let tables = routed.tables(node).expect("tables");
            tables[name].as_u64().expect("a number")
        };
        assert_eq!(field(13, "cut_off"), 0x3f);
        assert_eq!(field(0, "cut_off"), 0);
        assert_eq!(field(12, "cut_off"), 1 << Direction::PlusX.index());
        assert_eq!(
            routed.tables(12).expect("tables")["entries"][13],
            Value::Null
        );
    }

    #[test]
    fn a_spare_takes_the_number_of_another_and_gives_its_own() {
        let torus = torus("3x3x3", 2);
        let none = BTreeSet::new();
        let replaced = BTreeMap::from([(13, 26)]);
        assert_eq!(torus.judge_change(&none, &replaced), Ok(()));
        let faults = Faults {
            replaced,
            ..Faults::default()
        };
        let routed = torus.routed(&faults);
        assert_eq!(
            [13, 26, 25, 12].map(|node| routed.number(node)),
            [Some(26), Some(13), Some(25), Some(12)]
        );
        // The spare has failed too.
        let replaced = BTreeMap::from([(13, 26), (26, 25)]);
        assert_eq!(torus.judge_change(&none, &replaced), Ok(()));
        let faults = Faults {
            replaced,
            ..Faults::default()
        };
        assert_eq!(torus.routed(&faults).number(25), Some(13));
        for wrong in [
            BTreeMap::from([(13, 12)]),
            BTreeMap::from([(25, 26)]),
            BTreeMap::from([(13, 27)]),
            BTreeMap::from([(13, 26), (12, 26)]),
        ] {
            assert!(torus.judge_change(&none, &wrong).is_err(), "{wrong:?}");
        }
    }
}

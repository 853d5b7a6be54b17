//! Networks whose route tables can be computed around failures.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

use super::model::NodeRef;
use super::network::Network;

/// Failures in a network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Dead links, by id.
    pub links: BTreeSet<u32>,
    /// Dead routers, by number in the machine; their links are dead too.
    pub routers: BTreeSet<u32>,
    /// Dead routers isolated on purpose, which also send no packets.
    pub isolated: BTreeSet<u32>,
    /// NICs that others replace: the replaced one and its replacement, by number in the machine.
    pub replaced: BTreeMap<u32, u32>,
}

impl Faults {
    /// The faults implied by dead links: a router whose links to other routers are all dead counts
    /// as dead.
    pub fn of_links(network: &(impl Network + ?Sized), links: BTreeSet<u32>) -> Self {
        let mut living: BTreeMap<u32, u32> = BTreeMap::new();
        for id in 0..network.link_count() {
            let (a, b) = network.ends(id);
            if let (NodeRef::Chip(a), NodeRef::Chip(b)) = (a.node, b.node) {
                for router in [a, b] {
                    *living.entry(router).or_default() += u32::from(!links.contains(&(id as u32)));
                }
            }
        }
        let dead = living.into_iter().filter(|&(_, living)| living == 0);
        Self {
            links,
            routers: dead.map(|(router, _)| router).collect(),
            ..Self::default()
        }
    }

    pub fn is_empty(&self) -> bool {
        self.links.is_empty() && self.routers.is_empty() && self.replaced.is_empty()
    }
}

/// A network of a machine whose routers accept route tables while running
/// ([`Rerouting`](crate::device::Rerouting)).
pub trait Reroutable {
    /// The machine's name for the kind of a link between routers, such as a colour; empty if it has
    /// none.
    fn link_kind(&self, _link: u32) -> &'static str {
        ""
    }

    /// Checks that these routers can be isolated, and that these NICs can replace others.
    ///
    /// # Errors
    /// Why one of them cannot.
    fn judge_change(
        &self,
        _isolated: &BTreeSet<u32>,
        _replaced: &BTreeMap<u32, u32>,
    ) -> Result<(), String> {
        Err(String::from(
            "this machine cannot isolate routers or replace NICs",
        ))
    }

    /// The tables of all routers, avoiding failures.
    fn routed(&self, faults: &Faults) -> Box<dyn RoutedTables>;

    /// Number of ordered pairs of working routers whose traffic tables without `faults` would
    /// restore: with the present tables, packets between them have no route or could get stuck.
    /// `installed` has the tables that routers reported; all others have those of a network without
    /// faults. `None` if the machine does not compute this.
    fn restored(&self, _installed: &BTreeMap<u32, Value>, _faults: &Faults) -> Option<usize> {
        None
    }
}

/// Route tables of all routers of a network.
pub trait RoutedTables: fmt::Debug {
    /// A router's tables in the form that it accepts; `None` if the router does not exist.
    fn tables(&self, router: u32) -> Option<Value>;

    /// Digest of the router's tables, as the router reports it.
    fn digest(&self, router: u32) -> Option<String>;

    /// Whether the tables have a route between two working routers.
    fn joins(&self, from: u32, to: u32) -> bool;

    /// Whether working links connect two routers between which the tables have no route.
    fn is_unroutable(&self, from: u32, to: u32) -> bool;

    /// The number that a NIC must have; `None` if numbers never change.
    fn number(&self, _nic: u32) -> Option<u16> {
        None
    }

    /// The reason why there are no tables: every candidate lets packets wait for each other in a
    /// cycle.
    fn refused(&self) -> Option<String> {
        None
    }
}

//! Networks whose route tables can be computed around what has failed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

use super::model::NodeRef;
use super::network::Network;

/// What is dead in a network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Links, by id.
    pub links: BTreeSet<u32>,
    /// Routers, by number over the machine; all their links are dead with them.
    pub routers: BTreeSet<u32>,
    /// Those of them that are cut off on purpose: nothing comes from them either.
    pub isolated: BTreeSet<u32>,
    /// Network interfaces, by number over the machine, that others stand in for, and which.
    pub replaced: BTreeMap<u32, u32>,
}

impl Faults {
    /// Those of dead links: a router of which every link to other routers is dead is taken for dead
    /// itself.
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

    /// Whether nothing is dead.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty() && self.routers.is_empty() && self.replaced.is_empty()
    }
}

/// A network of a machine whose routers take route tables while they run
/// ([`Rerouting`](crate::device::Rerouting)).
pub trait Reroutable {
    /// The machine's word for a kind of links between routers, such as a colour; empty if it has
    /// none for this link.
    fn link_kind(&self, _link: u32) -> &'static str {
        ""
    }

    /// Whether network interfaces can stand in for others in this way, and routers be cut off.
    ///
    /// # Errors
    /// Why not.
    fn judge_change(
        &self,
        _isolated: &BTreeSet<u32>,
        _replaced: &BTreeMap<u32, u32>,
    ) -> Result<(), String> {
        Err(String::from(
            "routers of this machine can neither be isolated nor be told of other processors",
        ))
    }

    /// The tables of all routers, without what is dead.
    fn routed(&self, faults: &Faults) -> Box<dyn RoutedTables>;

    /// How many pairs of living routers, from and to, the tables without `faults` help: with those
    /// that the routers have now packets between them could get stuck, or got nowhere. `installed`
    /// has what routers say of their tables; the others have those of a network without faults.
    /// `None` where that is not looked for.
    fn restored(&self, _installed: &BTreeMap<u32, Value>, _faults: &Faults) -> Option<usize> {
        None
    }
}

/// Route tables of all routers of a network.
pub trait RoutedTables: fmt::Debug {
    /// The tables of a router as it takes them; `None` if there is no such router.
    fn tables(&self, router: u32) -> Option<Value>;

    /// Their digest, as the router tells it.
    fn digest(&self, router: u32) -> Option<String>;

    /// Whether the tables lead from one living router to another.
    fn joins(&self, from: u32, to: u32) -> bool;

    /// Whether living links lead from one to the other although the tables do not.
    fn is_unroutable(&self, from: u32, to: u32) -> bool;

    /// The number that a network interface has to have; `None` where numbers never change.
    fn number(&self, _nic: u32) -> Option<u16> {
        None
    }

    /// Why there are no tables: with those that there could be, packets might wait for each other
    /// in a circle.
    fn refused(&self) -> Option<String> {
        None
    }
}

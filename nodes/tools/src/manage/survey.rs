//! Surveys of the failures in a lab.

use std::collections::{BTreeMap, BTreeSet};

use phitwire::net::{End, Faults, Network, NodeRef};
use phitwire_nodes::control::{LinkReport, Request, RoutingReport};

use super::commanded::Commanded;
use super::fleet::{Routers, ask_all};
use super::routers;

/// The state of a lab's routers at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// The faults that route tables have to avoid.
    pub faults: Faults,
    /// Failed links between two routers that reply, by id, and why they are not up.
    pub links: BTreeMap<u32, String>,
    /// Silent routers, by number, and why.
    pub silent: BTreeMap<u32, String>,
    /// NICs whose link to a router that replies is not up, and why.
    pub nics: BTreeMap<u32, String>,
    /// The digest of the route tables of each router that replies.
    pub digests: BTreeMap<u32, String>,
}

impl Survey {
    /// Queries every router for its links. Commanded isolation counts as failure too.
    pub fn take(network: &dyn Network, fleet: &mut impl Routers, commanded: &Commanded) -> Self {
        let mut survey = Self::default();
        let mut ports = BTreeMap::new();
        let all: Vec<u32> = routers(network).collect();
        let links = ask_all::<Vec<LinkReport>>(fleet, &all, &Request::Links);
        let routing = ask_all::<RoutingReport>(fleet, &all, &Request::Routing);
        for ((router, links), routing) in all.into_iter().zip(links).zip(routing) {
            match (links, routing) {
                (Ok(links), Ok(routing)) => {
                    survey.digests.insert(router, routing.digest);
                    ports.insert(router, links);
                }
                (Err(error), _) | (_, Err(error)) => {
                    survey.silent.insert(router, error.to_string());
                }
            }
        }
        survey.judge(network, &ports);
        survey.obey(network, commanded);
        survey
    }

    /// Treats isolated nodes as dead, without reporting them as faults.
    fn obey(&mut self, network: &dyn Network, commanded: &Commanded) {
        let isolated = commanded.isolated(network);
        let is_isolated =
            |node| matches!(node, NodeRef::Chip(router) if isolated.contains(&router));
        for id in 0..network.link_count() {
            let (a, b) = network.ends(id);
            if ![a, b].iter().any(|end| is_isolated(end.node)) {
                continue;
            }
            self.links.remove(&(id as u32));
            for end in [a, b] {
                if let NodeRef::Processor(nic) = end.node {
                    self.nics.remove(&nic);
                }
            }
        }
        self.faults.routers.extend(&isolated);
        self.faults.isolated = isolated;
        self.faults.replaced = commanded.replaced(network);
    }

    fn judge(&mut self, network: &dyn Network, ports: &BTreeMap<u32, Vec<LinkReport>>) {
        let mut failed = BTreeSet::new();
        for id in 0..network.link_count() {
            let (a, b) = network.ends(id);
            let id = id as u32;
            let Some(why) = [a, b].iter().find_map(|end| trouble(end, ports)) else {
                continue;
            };
            match (a.node, b.node) {
                (NodeRef::Processor(nic), _) | (_, NodeRef::Processor(nic)) => {
                    // Omit the link of a dead router, since the router itself is listed.
                    if let Some(why) = why {
                        self.nics.insert(nic, why);
                    }
                }
                _ => {
                    failed.insert(id);
                    if let Some(why) = why {
                        self.links.insert(id, why);
                    }
                }
            }
        }
        self.faults = Faults::of_links(network, failed);
        self.faults.routers.extend(self.silent.keys());
        // Omit links of silent routers, which are listed themselves.
        self.links.retain(|&id, _| {
            let (a, b) = network.ends(id as usize);
            ![a, b].iter().any(|end| match end.node {
                NodeRef::Chip(router) => self.silent.contains_key(&router),
                NodeRef::Processor(_) => false,
            })
        });
    }

    /// Whether the failures are the same, possibly for different reasons.
    pub fn is_like(&self, other: &Self) -> bool {
        self.faults == other.faults && self.nics.keys().eq(other.nics.keys())
    }

    /// Routers that need tables: they reply, and either can be reached by packets or are isolated.
    pub fn living(&self, network: &dyn Network) -> impl Iterator<Item = u32> {
        let needs_tables = |router: &u32| {
            self.faults.isolated.contains(router) && self.digests.contains_key(router)
        };
        routers(network)
            .filter(move |router| !self.faults.routers.contains(router) || needs_tables(router))
    }
}

/// The trouble at an end of a link, if any; `Some(None)` if the end's router does not reply.
fn trouble(end: &End, ports: &BTreeMap<u32, Vec<LinkReport>>) -> Option<Option<String>> {
    // Skip the NIC's end: the router's end reports the same.
    let NodeRef::Chip(router) = end.node else {
        return None;
    };
    let Some(links) = ports.get(&router) else {
        return Some(None);
    };
    match links.iter().find(|link| link.port == end.port) {
        Some(link) if link.up => None,
        Some(link) => Some(Some(match &link.why {
            Some(why) => format!("{}: {why}", link.state),
            None => link.state.clone(),
        })),
        None => Some(Some(String::from(
            "the router has no such port: does the lab run another topology?",
        ))),
    }
}

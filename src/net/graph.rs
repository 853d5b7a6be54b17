//! A network that is only a list of nodes and links.

use std::borrow::Cow;

use super::model::{End, Link, NodeRef, ends_of};
use super::network::Network;
use super::plan::{PlanError, Runtime, link_config};
use super::reading::name_problem;
use super::settings::Settings;
use super::{Location, MistakeKind, Mistakes};
use crate::link::{LaneRate, LinkConfig, LinkStandard};

/// Routers named `r0`, `r1` and so on, NICs named `nic0`, `nic1` and so on, and identical links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    pub name: String,
    pub chips: u32,
    pub nics: u32,
    /// The links; their ids are their indices.
    pub links: Vec<Link<()>>,
}

impl Graph {
    /// Routers and NICs without links.
    pub fn new(name: String, chips: u32, nics: u32) -> Self {
        let links = Vec::new();
        Self {
            name,
            chips,
            nics,
            links,
        }
    }

    pub fn join(&mut self, a: End, b: End) {
        self.links.push(Link {
            a,
            b,
            rate: (),
            metres: None,
            cable: Default::default(),
        });
    }

    /// All nodes, routers first.
    pub fn nodes(&self) -> Vec<NodeRef> {
        let chips = (0..self.chips).map(NodeRef::Chip);
        chips
            .chain((0..self.nics).map(NodeRef::Processor))
            .collect()
    }

    pub fn node_name(&self, node: NodeRef) -> Cow<'static, str> {
        match node {
            NodeRef::Chip(chip) if chip < self.chips => Cow::Owned(format!("r{chip}")),
            NodeRef::Processor(nic) if nic < self.nics => Cow::Owned(format!("nic{nic}")),
            _ => Cow::Borrowed("?"),
        }
    }

    /// The node with that name.
    ///
    /// # Errors
    /// [`PlanError::NoSuchNode`].
    pub fn find(&self, name: &str) -> Result<NodeRef, PlanError> {
        let mut nodes = self.nodes().into_iter();
        let found = nodes.find(|node| self.node_name(*node) == name);
        found.ok_or_else(|| PlanError::NoSuchNode(name.to_owned()))
    }

    /// Mistakes in the network's name; the other fields are always valid.
    pub fn judge_name(&self) -> Mistakes {
        let mut mistakes = Mistakes::default();
        if let Some(why) = name_problem(&self.name) {
            let message = format!("invalid network name: {why}");
            mistakes.push(MistakeKind::BadValue.at(Location::Network, message));
        }
        mistakes
    }

    /// The ports of a node of `network`, which has this graph, with the configurations of their
    /// links of the given standard and rate.
    ///
    /// # Errors
    /// See [`PlanError`].
    pub fn ports<Own>(
        &self,
        (network, settings): (&impl Network, &Settings<Own>),
        node: NodeRef,
        rate: (LinkStandard, LaneRate),
        runtime: &Runtime,
    ) -> Result<Vec<(u8, LinkConfig)>, PlanError> {
        let configured = |(id, end, _): (usize, End, End)| {
            let link_end = (id, &self.links[id], end);
            let config = link_config(network, settings, link_end, rate, runtime)?;
            let built = config.build();
            let config = built.map_err(|error| PlanError::Link { link: id, error })?;
            Ok((end.port, config))
        };
        ends_of(&self.links, node).map(configured).collect()
    }
}

/// Implements the node and link methods of a [`Network`](crate::net::Network), inside its `impl`,
/// by the [`Graph`] in its field `$graph`.
#[doc(hidden)]
#[macro_export]
macro_rules! of_graph {
    ($graph:ident) => {
        fn name(&self) -> &str {
            &self.$graph.name
        }

        fn nodes(&self) -> Vec<$crate::net::NodeRef> {
            self.$graph.nodes()
        }

        fn node_name(&self, node: $crate::net::NodeRef) -> std::borrow::Cow<'_, str> {
            self.$graph.node_name(node)
        }

        fn link_count(&self) -> usize {
            self.$graph.links.len()
        }

        fn ends(&self, link: usize) -> ($crate::net::End, $crate::net::End) {
            self.$graph.links[link].ends()[0]
        }
    };
}

pub use of_graph;

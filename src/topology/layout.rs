//! What a world needs of a topology, whatever the machine.

use core::fmt::Write as _;

use super::dragonfly::Dragonfly;
use super::model::{End, NodeRef, Topology};
use super::plan::{LinkAddresses, MAX_LIVE_LINKS, PlanError, Runtime};
use crate::device::{Device, Kind};
use crate::time::Time;

/// Nodes, the links between their ports, and each node itself when it is wanted.
pub trait Layout {
    /// Its name.
    fn name(&self) -> &str;

    /// The nodes that are there: network interfaces before routers, each in the order of the
    /// topology.
    fn nodes(&self) -> Vec<NodeRef>;

    /// The name of a node.
    fn node_name(&self, node: NodeRef) -> String;

    /// The ends A and B of each link, by number.
    fn links(&self) -> Vec<[End; 2]>;

    /// The node of that name, whose links begin to train at `now`.
    ///
    /// # Errors
    /// See [`PlanError`].
    fn device(
        &self,
        node: &str,
        runtime: &Runtime,
        now: Time,
    ) -> Result<Box<dyn Device>, PlanError>;

    /// The nodes that are there, routers before network interfaces, as people list them.
    fn routers_first(&self) -> Vec<NodeRef> {
        let mut nodes = self.nodes();
        nodes.sort_by_key(|node| matches!(node, NodeRef::Processor(_)));
        nodes
    }

    /// Tab-separated lines for scripts: `node NAME router|nic` for every node, then
    /// `link ID NODE_A PORT_A NODE_B PORT_B IF_A IF_B ADDR_A ADDR_B` for every link. An interface
    /// is called `p` and the port; each link has a /31 of 198.18.0.0/15.
    ///
    /// # Errors
    /// [`PlanError::TooManyLinks`] if there are more links than ids and addresses.
    fn plan_lines(&self) -> Result<String, PlanError> {
        let links = self.links();
        if links.len() > MAX_LIVE_LINKS {
            return Err(PlanError::TooManyLinks(links.len() - 1));
        }
        let mut lines = String::new();
        // Writing into a String never fails.
        for node in self.routers_first() {
            let kind = match node {
                NodeRef::Chip(_) => Kind::Router,
                NodeRef::Processor(_) => Kind::Nic,
            };
            let _ = writeln!(lines, "node\t{}\t{kind}", self.node_name(node));
        }
        for (id, [end_a, end_b]) in links.into_iter().enumerate() {
            let Some(LinkAddresses { a, b }) = LinkAddresses::of(id) else {
                continue;
            };
            let (node_a, node_b) = (self.node_name(end_a.node), self.node_name(end_b.node));
            let (port_a, port_b) = (end_a.port, end_b.port);
            let _ = writeln!(
                lines,
                "link\t{id}\t{node_a}\t{port_a}\t{node_b}\t{port_b}\tp{port_a}\tp{port_b}\t{a}\t{b}"
            );
        }
        Ok(lines)
    }
}

impl Layout for Topology {
    fn name(&self) -> &str {
        &self.name
    }

    fn nodes(&self) -> Vec<NodeRef> {
        let processors = (0..self.processors.len() as u32).map(NodeRef::Processor);
        let chips = (0..self.chips.len() as u32).map(NodeRef::Chip);
        processors.chain(chips).collect()
    }

    fn node_name(&self, node: NodeRef) -> String {
        Self::node_name(self, node).to_owned()
    }

    fn links(&self) -> Vec<[End; 2]> {
        self.links.iter().map(|link| [link.a, link.b]).collect()
    }

    fn device(
        &self,
        node: &str,
        runtime: &Runtime,
        now: Time,
    ) -> Result<Box<dyn Device>, PlanError> {
        Ok(self.plan(node, runtime)?.device(now))
    }
}

impl Layout for Dragonfly {
    fn name(&self) -> &str {
        &self.name
    }

    fn nodes(&self) -> Vec<NodeRef> {
        let nics = self.nics().map(NodeRef::Processor);
        nics.chain(self.routers().map(NodeRef::Chip)).collect()
    }

    fn node_name(&self, node: NodeRef) -> String {
        Self::node_name(self, node)
    }

    fn links(&self) -> Vec<[End; 2]> {
        self.links.iter().map(|link| [link.a, link.b]).collect()
    }

    fn device(
        &self,
        node: &str,
        runtime: &Runtime,
        now: Time,
    ) -> Result<Box<dyn Device>, PlanError> {
        Ok(self.plan(node, runtime)?.device(now))
    }
}

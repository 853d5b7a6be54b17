//! What a world needs of a topology, whatever the machine.

use super::dragonfly::Dragonfly;
use super::model::{End, NodeRef, Topology};
use super::plan::{NodePlan, PlanError, Runtime};
use crate::device::Device;
use crate::time::Time;

/// Nodes, the links between their ports, and how each node is configured.
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

    /// The configuration of the node of that name.
    ///
    /// # Errors
    /// See [`PlanError`].
    fn plan(&self, node: &str, runtime: &Runtime) -> Result<NodePlan, PlanError>;

    /// The node of that name, whose links begin to train at `now`.
    ///
    /// # Errors
    /// See [`PlanError`].
    fn device(
        &self,
        node: &str,
        runtime: &Runtime,
        now: Time,
    ) -> Result<Box<dyn Device>, PlanError> {
        Ok(self.plan(node, runtime)?.device(now))
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

    fn plan(&self, node: &str, runtime: &Runtime) -> Result<NodePlan, PlanError> {
        Self::plan(self, node, runtime)
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

    fn plan(&self, node: &str, runtime: &Runtime) -> Result<NodePlan, PlanError> {
        Self::plan(self, node, runtime)
    }
}

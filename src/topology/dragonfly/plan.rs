//! From a dragonfly to the configuration of one process, and to what scripts need to wire it.

use core::fmt::Write as _;

use super::model::Dragonfly;
use crate::topology::model::NodeRef;
use crate::topology::plan::{LinkAddresses, MAX_LIVE_LINKS, NodePlan, PlanError, Runtime};

impl Dragonfly {
    /// The configuration of the node of that name.
    ///
    /// # Errors
    /// See [`PlanError`].
    pub fn plan(&self, node: &str, _runtime: &Runtime) -> Result<NodePlan, PlanError> {
        Err(PlanError::NoSuchNode(node.to_owned()))
    }

    /// Tab-separated lines for scripts, in the format of [`Topology::plan_lines`](crate::topology::Topology::plan_lines).
    ///
    /// # Errors
    /// [`PlanError::TooManyLinks`] if there are more links than ids and addresses.
    pub fn plan_lines(&self) -> Result<String, PlanError> {
        if self.links.len() > MAX_LIVE_LINKS {
            return Err(PlanError::TooManyLinks(self.links.len() - 1));
        }
        let mut lines = String::new();
        // Writing into a String never fails.
        for router in self.routers() {
            let _ = writeln!(lines, "node\t{}\trouter", self.shape.router_name(router));
        }
        for nic in self.nics() {
            let _ = writeln!(
                lines,
                "node\t{}\tnic",
                self.node_name(NodeRef::Processor(nic))
            );
        }
        for (id, link) in self.links.iter().enumerate() {
            let Some(LinkAddresses { a, b }) = LinkAddresses::of(id) else {
                continue;
            };
            let (node_a, node_b) = (self.node_name(link.a.node), self.node_name(link.b.node));
            let (port_a, port_b) = (link.a.port, link.b.port);
            let _ = writeln!(
                lines,
                "link\t{id}\t{node_a}\t{port_a}\t{node_b}\t{port_b}\tp{port_a}\tp{port_b}\t{a}\t{b}"
            );
        }
        Ok(lines)
    }
}

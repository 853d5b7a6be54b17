//! The dragonfly as a network among those of all machines.

use std::borrow::Cow;

use super::{Dragonfly, check, show};
use crate::machine::blackwidow::topology::{NodePlan, PlanError};
use crate::net::{Effort, End, Mistakes, Network, NodeRef, Reroutable, Runtime, TooLarge};

impl Network for Dragonfly {
    fn name(&self) -> &str {
        &self.name
    }

    fn summary(&self) -> String {
        show::summary(self)
    }

    fn nodes(&self) -> Vec<NodeRef> {
        let routers = self.routers().map(NodeRef::Chip);
        routers.chain(self.nics().map(NodeRef::Processor)).collect()
    }

    fn node_name(&self, node: NodeRef) -> Cow<'_, str> {
        Cow::Owned(self.node_name(node))
    }

    fn link_count(&self) -> usize {
        self.links.len()
    }

    fn ends(&self, link: usize) -> (End, End) {
        self.links[link].ends()[0]
    }

    fn write(&self) -> String {
        super::write(self)
    }

    fn judge(&self, effort: Effort) -> (Mistakes, bool) {
        check::within(self, effort)
    }

    fn table(&self, rows: usize) -> String {
        show::table(self, rows)
    }

    fn dot(&self) -> String {
        show::dot(self)
    }

    fn svg(&self) -> Result<String, TooLarge> {
        show::svg(self)
    }

    fn inventory(&self) -> Option<String> {
        Some(show::inventory(self))
    }

    fn plan(&self, node: &str, runtime: &Runtime) -> Result<NodePlan, PlanError> {
        self.plan(node, runtime)
    }

    fn reroute(&self) -> Option<&dyn Reroutable> {
        Some(self)
    }

    fn is_same(&self, other: &dyn Network) -> bool {
        other.of_machine() == Some(self)
    }
}

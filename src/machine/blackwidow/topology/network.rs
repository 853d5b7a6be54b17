//! The folded Clos as a network among those of all machines.

use std::borrow::Cow;

use super::model::FoldedClos;
use super::plan::{NodePlan, PlanError};
use super::{check, description, show};
use crate::net::{Effort, End, Mistakes, Network, NodeRef, Runtime, TooLarge};

impl Network for FoldedClos {
    fn name(&self) -> &str {
        &self.name
    }

    fn summary(&self) -> String {
        show::summary(self)
    }

    fn nodes(&self) -> Vec<NodeRef> {
        let chips = (0..self.chips.len() as u32).map(NodeRef::Chip);
        let processors = (0..self.processors.len() as u32).map(NodeRef::Processor);
        chips.chain(processors).collect()
    }

    fn node_name(&self, node: NodeRef) -> Cow<'_, str> {
        let name = match node {
            NodeRef::Processor(i) => self.processors.get(i as usize).map(|p| &p.name),
            NodeRef::Chip(i) => self.chips.get(i as usize).map(|c| &c.name),
        };
        Cow::Borrowed(name.map_or("?", String::as_str))
    }

    fn link_count(&self) -> usize {
        self.links.len()
    }

    fn ends(&self, link: usize) -> (End, End) {
        self.links[link].ends()[0]
    }

    fn write(&self) -> String {
        description::write(self)
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

    fn plan(&self, node: &str, runtime: &Runtime) -> Result<NodePlan, PlanError> {
        self.plan(node, runtime)
    }

    fn is_same(&self, other: &dyn Network) -> bool {
        other.of_machine() == Some(self)
    }
}

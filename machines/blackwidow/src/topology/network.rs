//! The folded Clos as a `Network`.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::generate::fill_registers;
use super::model::FoldedClos;
use super::{check, description, show};
use crate::nic::BlackWidowNic;
use crate::router::Yarc;
use phitwire::device::Device;
use phitwire::net::{
    DrawError, Effort, End, Mistakes, Network, NodeRef, PlanError, Runtime, TooLarge,
};
use phitwire::time::Time;

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

    fn without(&self, links: &BTreeSet<usize>) -> Option<Box<dyn Network>> {
        let mut network = self.clone();
        let mut link = 0..;
        network
            .links
            .retain(|_| !link.next().is_some_and(|link| links.contains(&link)));
        fill_registers(&mut network);
        Some(Box::new(network))
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

    fn drawing(&self, part: Option<&str>) -> Result<String, DrawError> {
        show::drawing(self, part)
    }

    fn device(
        &self,
        node: &str,
        runtime: &Runtime,
        now: Time,
    ) -> Result<Box<dyn Device>, PlanError> {
        Ok(match self.find(node) {
            Some(NodeRef::Processor(processor)) => {
                Box::new(BlackWidowNic::new(self.plan_nic(processor, runtime)?, now))
            }
            Some(NodeRef::Chip(chip)) => Box::new(Yarc::new(self.plan_router(chip, runtime)?, now)),
            None => return Err(PlanError::NoSuchNode(node.to_owned())),
        })
    }
}

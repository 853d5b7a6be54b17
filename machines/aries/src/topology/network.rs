//! The dragonfly as a network of the machine-independent layer.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::{Dragonfly, Faults, check, show};
use crate::nic::AriesNic;
use crate::router::Aries;
use phitwire::device::Device;
use phitwire::net::{
    DrawError, Effort, End, Mistakes, Network, NodeRef, PlanError, Reroutable, Runtime, TooLarge,
};
use phitwire::time::Time;

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

    fn has_host_times(&self) -> bool {
        true
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

    fn without(&self, links: &BTreeSet<usize>) -> Option<Box<dyn Network>> {
        let mut network = self.clone();
        let mut link = 0..;
        network
            .links
            .retain(|_| !link.next().is_some_and(|link| links.contains(&link)));
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

    fn inventory(&self) -> Option<String> {
        Some(show::inventory(self))
    }

    fn device(
        &self,
        node: &str,
        runtime: &Runtime,
        now: Time,
    ) -> Result<Box<dyn Device>, PlanError> {
        Ok(match self.find(node) {
            Some(NodeRef::Chip(router)) => {
                let mut routed = self.route(&Faults::default());
                // `find` has found the router, so it has registers.
                let registers = routed.registers.swap_remove(router as usize);
                Box::new(Aries::new(
                    self.plan_router(router, registers, runtime)?,
                    now,
                ))
            }
            Some(NodeRef::Processor(nic)) => {
                Box::new(AriesNic::new(self.plan_nic(nic, runtime)?, now))
            }
            None => return Err(PlanError::NoSuchNode(node.to_owned())),
        })
    }

    fn reroute(&self) -> Option<&dyn Reroutable> {
        Some(self)
    }
}

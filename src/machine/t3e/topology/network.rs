//! The torus as a network among those of all machines.

use super::model::Torus;
use super::{check, show};
use crate::device::Device;
use crate::machine::t3e::router::T3eRouter;
use crate::net::{Effort, Mistakes, Network, NodeRef, PlanError, Runtime, TooLarge, of_graph};
use crate::time::Time;

impl Network for Torus {
    of_graph!(graph);

    fn summary(&self) -> String {
        show::summary(self)
    }

    fn write(&self) -> String {
        super::write::write(self)
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

    fn device(
        &self,
        node: &str,
        runtime: &Runtime,
        now: Time,
    ) -> Result<Box<dyn Device>, PlanError> {
        match self.graph.find(node)? {
            NodeRef::Chip(router) => {
                let config = self.router(router, runtime)?;
                Ok(Box::new(T3eRouter::new(config, now)))
            }
            NodeRef::Processor(nic) => self.processor_device(nic, runtime, now),
        }
    }
}

impl Torus {
    /// The network interface of a processor.
    fn processor_device(
        &self,
        nic: u32,
        _: &Runtime,
        _: Time,
    ) -> Result<Box<dyn Device>, PlanError> {
        let name = self.node_name(NodeRef::Processor(nic));
        let message = format!("`{name}`: processors of a T3E are not emulated yet");
        Err(PlanError::Refused(message))
    }
}

//! The torus as a network among those of all machines.

use super::check;
use super::model::Torus;
use crate::device::Device;
use crate::machine::t3e::router::T3eRouter;
use crate::net::{Effort, Mistakes, Network, NodeRef, PlanError, Runtime, of_graph};
use crate::time::Time;

impl Network for Torus {
    of_graph!(graph);

    fn summary(&self) -> String {
        let spares = match self.spares {
            0 => String::new(),
            spares => format!(" ({spares} spare)"),
        };
        let broken = match self.defects.is_empty() {
            true => String::new(),
            false => format!(", broken: {}", self.defects),
        };
        format!(
            "{}: torus of {}, {} nodes{spares}, {} links{broken}, {}",
            self.graph.name,
            self.shape,
            self.shape.nodes(),
            self.graph.links.len(),
            self.settings.headline()
        )
    }

    fn write(&self) -> String {
        super::write::write(self)
    }

    fn judge(&self, effort: Effort) -> (Mistakes, bool) {
        check::within(self, effort)
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

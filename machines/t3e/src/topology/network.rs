//! The torus as a network of the machine-independent layer.

use std::collections::BTreeSet;

use phitwire_framing::t3e::direction::Direction;

use super::defects::Defect;
use super::model::{Torus, TorusSpec};
use super::{check, show};
use crate::pe::{Pe, PeConfig};
use crate::router::T3eRouter;
use phitwire::device::Device;
use phitwire::net::{
    DrawError, Effort, Mistakes, Network, NodeRef, PlanError, Reroutable, Runtime, SideNetworks,
    TooLarge, TunableChannels, of_graph,
};
use phitwire::time::{Duration, Time};

/// Maximum number of responses that wait for the link of a processor.
const ANSWERS: usize = 64;

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

    fn without(&self, links: &BTreeSet<usize>) -> Option<Box<dyn Network>> {
        let mut defects = self.defects.clone();
        for &link in links {
            let end = self.graph.links.get(link)?.a;
            let direction = *Direction::ALL.get(usize::from(end.port))?;
            let NodeRef::Chip(node) = end.node else {
                return None;
            };
            defects.add(Defect::link(&self.shape, node, direction)?);
        }
        let torus = TorusSpec {
            name: self.graph.name.clone(),
            shape: self.shape.clone(),
            spares: self.spares,
            defects,
            adaptive: self.adaptive,
            channels: self.channels,
            vc_tables: self.vc_tables.clone(),
            settings: self.settings.clone(),
        };
        Some(Box::new(torus.torus()))
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

    fn reroute(&self) -> Option<&dyn Reroutable> {
        Some(self)
    }

    fn inventory(&self) -> Option<String> {
        Some(show::inventory(self))
    }

    fn takes_part(&self, nic: NodeRef) -> bool {
        !matches!(nic, NodeRef::Processor(node) if self.defects.has(Defect::Node(node)))
    }

    fn side_networks(&self) -> Option<&dyn SideNetworks> {
        Some(self)
    }

    fn tunable_channels(&self) -> Option<&dyn TunableChannels> {
        Some(self)
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
    fn processor_device(
        &self,
        nic: u32,
        runtime: &Runtime,
        now: Time,
    ) -> Result<Box<dyn Device>, PlanError> {
        let settings = &self.settings;
        let config = PeConfig {
            number: self.own_number(nic),
            nics: self.destinations.len() as u16,
            links: vec![self.ports(NodeRef::Processor(nic), runtime)?.remove(0).1],
            memory_bytes: settings.memory_bytes,
            outstanding: self.outstanding(runtime.profile.unwrap_or(settings.profile)),
            // Responses have separate channels.
            answers: ANSWERS,
            timeout: Duration::from_ms(settings.request_timeout_ms),
            incarnation: runtime.incarnation,
            seed: None,
        };
        Ok(Box::new(Pe::new(config, now)))
    }
}

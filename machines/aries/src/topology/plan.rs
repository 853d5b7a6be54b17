//! Derives the configuration of each process, and of the wiring scripts, from a dragonfly.

use super::model::Dragonfly;
use crate::link::STANDARD;
use crate::link::{AriesLinkConfig, LcbRegisters, SetProfile};
use crate::nic::{AriesNicConfig, Domain, HostTimes, Permissions, RUN_DOMAIN, VirtualNodes};
use crate::route::registers::{AriesRegisters, PortKind};
use crate::router::AriesConfig;
use phitwire::chip::Grain;
use phitwire::net::{Clock, End, NodeRef, PlanError, Profile, Runtime, ends_of, link_config};
use phitwire::time::Duration;

/// The memory domain that every node of a lab has from the start; it covers all of its memory.
pub const LAB_DOMAIN: u16 = RUN_DOMAIN;

/// The protection key of [`LAB_DOMAIN`], which is the same at all nodes of a lab and differs from
/// that of most other labs.
pub const fn lab_key(runtime: &Runtime) -> u16 {
    (runtime.fabric ^ runtime.fabric >> 16) as u16
}

impl Dragonfly {
    /// The configuration of a router with the given registers, except their timeouts.
    pub(crate) fn plan_router(
        &self,
        router: u32,
        mut registers: AriesRegisters,
        runtime: &Runtime,
    ) -> Result<AriesConfig, PlanError> {
        let name = self.shape.router_name(router);
        runtime.refuse_cut_through(&name)?;
        let mut ports = Vec::new();
        for (id, end, _) in ends_of(&self.links, NodeRef::Chip(router)) {
            ports.push((end.port, self.link_config(id, end, runtime)?));
        }
        ports.sort_by_key(|(port, _)| *port);
        let clock = runtime.clock.unwrap_or(self.settings.clock);
        registers.forward_progress_ns = clock.emulated_ns(self.settings.forward_progress_ms);
        // A free-running router moves whole packets, without cycle times.
        let grain = runtime.grain.unwrap_or(match clock {
            Clock::FreeRunning => Grain::Packet,
            Clock::Paced { .. } => Grain::Flit,
        });
        Ok(AriesConfig {
            name,
            registers,
            grain,
            ports,
            clock,
        })
    }

    /// The configuration of a NIC. Virtual nodes are all existing NICs in order.
    pub(crate) fn plan_nic(
        &self,
        nic: u32,
        runtime: &Runtime,
    ) -> Result<AriesNicConfig, PlanError> {
        let node = NodeRef::Processor(nic);
        let name = self.node_name(node);
        let found = ends_of(&self.links, node).next();
        let (id, end, _) =
            found.ok_or_else(|| PlanError::Refused(format!("`{name}` has no link")))?;
        let link = self.link_config(id, end, runtime)?;
        let domain = Domain {
            base: 0,
            length: self.settings.memory_bytes,
            key: lab_key(runtime),
            permissions: Permissions::ALL,
        };
        let nodes = self.nics().map(|nic| self.shape.node_id(nic)).collect();
        let host = runtime.host.map(|host| HostTimes {
            processes: host.processes.unwrap_or(self.host.processes),
            ..self.host
        });
        AriesNicConfig::builder(&name, self.shape.node_id(nic), link)
            .virtual_nodes(VirtualNodes::new(nodes))
            .domain(LAB_DOMAIN, domain)
            .memory_bytes(self.settings.memory_bytes)
            .max_outstanding(self.settings.outstanding)
            .request_timeout(Duration::from_ms(self.settings.request_timeout_ms))
            .incarnation(runtime.incarnation)
            .seed(runtime.seed ^ u64::from(nic))
            .joined_answers(self.profile(runtime) == Profile::Live)
            .host(host)
            .build()
            .map_err(|error| PlanError::Refused(format!("`{name}`: {error}")))
    }

    fn profile(&self, runtime: &Runtime) -> Profile {
        runtime.profile.unwrap_or(self.settings.profile)
    }

    fn link_config(
        &self,
        id: usize,
        end: End,
        runtime: &Runtime,
    ) -> Result<AriesLinkConfig, PlanError> {
        let (link, settings) = (&self.links[id], &self.settings);
        let mut sets = match self.profile(runtime) {
            Profile::Paper => SetProfile::paper(),
            Profile::Live => SetProfile::live(),
        };
        // Six bits are too few if frames can overtake each other.
        sets.full_numbers |= runtime.real_wires || runtime.frames_overtake;
        let kind = self.kind(link).unwrap_or(PortKind::Green);
        let rate = settings.own.rate_of(kind);
        let registers = LcbRegisters {
            max_degrades: settings.own.degrades_allowed,
            ..LcbRegisters::default()
        };
        link_config(self, settings, (id, link, end), (STANDARD, rate), runtime)?
            .build()
            .and_then(|link| AriesLinkConfig::new(link, sets)?.with_registers(registers))
            .map_err(|error| PlanError::Link { link: id, error })
    }
}

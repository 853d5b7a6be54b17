//! From a dragonfly to the configuration of one process, and to what scripts need to wire it.

use phitwire_framing::frame::LinkEnd;

use super::model::Dragonfly;
use super::tables::Faults;
use crate::link::{
    AriesLinkConfig, EndName, LcbRegisters, LinkClock, LinkConfig, LinkProfile, SetProfile,
};
use crate::nic::aries::{AriesNicConfig, Domain, Permissions, RUN_DOMAIN, VirtualNodes};
use crate::router::aries::AriesConfig;
use crate::router::aries::registers::PortKind;
use crate::router::yarc::RouterClock;
use crate::time::Duration;
use crate::topology::model::{Clock, End, NodeRef, Profile};
use crate::topology::plan::{NodePlan, PlanError, Runtime};

/// The memory domain that every node of a lab has from the start: all of its memory.
pub const LAB_DOMAIN: u16 = RUN_DOMAIN;

/// The protection key of [`LAB_DOMAIN`]: the same at all nodes of a lab, and other than in most
/// other labs.
pub const fn lab_key(runtime: &Runtime) -> u16 {
    (runtime.fabric ^ runtime.fabric >> 16) as u16
}

impl Dragonfly {
    /// The configuration of the node of that name. Virtual nodes are all network interfaces that
    /// are there, in their order.
    ///
    /// # Errors
    /// See [`PlanError`]; a network that [`check`](super::check) has passed has links for every
    /// node, but may have too many of them for processes.
    pub fn plan(&self, node: &str, runtime: &Runtime) -> Result<NodePlan, PlanError> {
        match self.find(node) {
            Some(NodeRef::Chip(router)) => {
                self.plan_router(router, runtime).map(NodePlan::AriesRouter)
            }
            Some(NodeRef::Processor(nic)) => {
                let config = self.plan_nic(nic, runtime)?;
                Ok(NodePlan::AriesNic(Box::new(config)))
            }
            None => Err(PlanError::NoSuchNode(node.to_owned())),
        }
    }

    fn plan_router(&self, router: u32, runtime: &Runtime) -> Result<AriesConfig, PlanError> {
        let name = self.shape.router_name(router);
        let mut ports = Vec::new();
        for (id, end, other) in self.ends_of(NodeRef::Chip(router)) {
            ports.push((end.port, self.link_config(id, end, other, runtime)?));
        }
        ports.sort_by_key(|(port, _)| *port);
        let mut routed = self.route(&Faults::default());
        // `find` has found the router, so that it has registers.
        let mut registers = routed.registers.swap_remove(router as usize);
        let clock = runtime.clock.unwrap_or(self.settings.clock);
        registers.forward_progress_ns = clock.emulated_ns(self.settings.forward_progress_ms);
        let clock = match clock {
            Clock::FreeRunning => RouterClock::FreeRunning,
            Clock::Paced { dilation } => RouterClock::Paced { dilation },
        };
        Ok(AriesConfig {
            name,
            registers,
            ports,
            clock,
        })
    }

    fn plan_nic(&self, nic: u32, runtime: &Runtime) -> Result<AriesNicConfig, PlanError> {
        let node = NodeRef::Processor(nic);
        let name = self.node_name(node);
        let (id, end, other) = self
            .ends_of(node)
            .next()
            .ok_or_else(|| PlanError::NoInjection {
                node: name.clone(),
                slice: 0,
            })?;
        let link = self.link_config(id, end, other, runtime)?;
        let domain = Domain {
            base: 0,
            length: self.settings.memory_bytes,
            key: lab_key(runtime),
            permissions: Permissions::ALL,
        };
        let nodes = self.nics().map(|nic| self.shape.node_id(nic)).collect();
        AriesNicConfig::builder(&name, self.shape.node_id(nic), link)
            .virtual_nodes(VirtualNodes::new(nodes))
            .domain(LAB_DOMAIN, domain)
            .memory_bytes(self.settings.memory_bytes)
            .max_outstanding(self.settings.outstanding)
            .request_timeout(Duration::from_ms(self.settings.request_timeout_ms))
            .incarnation(runtime.incarnation)
            .seed(runtime.seed ^ u64::from(nic))
            .build()
            .map_err(|error| PlanError::AriesNic { node: name, error })
    }

    /// Links of a node: id, its own end, the other end.
    fn ends_of(&self, node: NodeRef) -> impl Iterator<Item = (usize, End, End)> {
        self.links.iter().enumerate().flat_map(move |(id, link)| {
            let both = [(id, link.a, link.b), (id, link.b, link.a)];
            both.into_iter().filter(move |(_, end, _)| end.node == node)
        })
    }

    fn link_config(
        &self,
        id: usize,
        end: End,
        other: End,
        runtime: &Runtime,
    ) -> Result<AriesLinkConfig, PlanError> {
        let number = u16::try_from(id).map_err(|_| PlanError::TooManyLinks(id))?;
        let (link, settings) = (&self.links[id], &self.settings);
        let side = if end == link.a {
            LinkEnd::A
        } else {
            LinkEnd::B
        };
        let name = |end: End| EndName {
            node: self.node_name(end.node),
            port: end.port,
        };
        let (mut profile, mut sets) = match runtime.profile.unwrap_or(settings.profile) {
            Profile::Paper => (LinkProfile::paper(), SetProfile::paper()),
            Profile::Live => (LinkProfile::live(), SetProfile::live()),
        };
        let clock = match runtime.clock.unwrap_or(settings.clock) {
            Clock::FreeRunning => LinkClock::FreeRunning,
            Clock::Paced { dilation } => LinkClock::Paced { dilation },
        };
        if runtime.real_wires {
            profile = profile.over_real_wires(clock);
            // Six bits are too few where frames overtake each other.
            sets.full_numbers = true;
        }
        profile = profile.patient(runtime.real_wires, settings.give_up_ms, settings.silence_ms);
        let rate = match self.kind(link) {
            Some(PortKind::Blue) => settings.global_lane_rate,
            _ => settings.lane_rate,
        };
        let registers = LcbRegisters {
            max_degrades: settings.degrades_allowed,
            ..LcbRegisters::default()
        };
        LinkConfig::builder(number, side, name(end), name(other))
            .fabric(runtime.fabric)
            .profile(profile)
            .clock(clock)
            .rate(rate)
            .cable(link.cable)
            .lane_retry_threshold(settings.lane_retry_threshold)
            .epoch(runtime.epoch)
            .build()
            .and_then(|link| AriesLinkConfig::new(link, sets)?.with_registers(registers))
            .map_err(|error| PlanError::Link { link: id, error })
    }
}

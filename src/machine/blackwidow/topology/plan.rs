//! From the topology to the configuration of one process, and to what scripts need to wire it.

use thiserror::Error;

use super::model::{Chip, FoldedClos, Processor};
use crate::chip::Grain;
use crate::chip::RouterClock;
use crate::device::Device;
use crate::link::{LinkConfig, LinkConfigError};
use crate::machine::aries::nic::{AriesNic, AriesNicConfig, AriesNicConfigError};
use crate::machine::aries::router::{Aries, AriesConfig};
use crate::machine::blackwidow::link::STANDARD;
use crate::machine::blackwidow::nic::{BlackwidowNic, NicConfig, NicConfigError};
use crate::machine::blackwidow::route::registers::{ChipRegisters, PORTS, TileRegisters};
use crate::machine::blackwidow::router::{Yarc, YarcConfig};
use crate::net::{Clock, End, NodeRef, Runtime, ends_of, link_config};
use crate::time::{Duration, Time};

/// Why a node cannot be configured.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// No node has that name.
    #[error("the topology has no node `{0}`")]
    NoSuchNode(String),
    /// A router cannot wait for whole packets.
    #[error(
        "`{0}` moves phits: a YARC sends them on before their packet is whole, so that packets cannot be its grain"
    )]
    PhitsOnly(String),
    /// The id of a link does not fit into a frame.
    #[error("link {0} cannot run between processes: their ids end at 65535")]
    TooManyLinks(usize),
    /// A link cannot be configured.
    #[error("link {link}: {error}")]
    Link {
        /// Id of the link.
        link: usize,
        /// What is wrong.
        error: LinkConfigError,
    },
    /// A network interface cannot be configured.
    #[error("`{node}`: {error}")]
    Nic {
        /// The processor's name.
        node: String,
        /// What is wrong.
        error: NicConfigError,
    },
    /// A network interface of a dragonfly cannot be configured.
    #[error("`{node}`: {error}")]
    AriesNic {
        /// Its name.
        node: String,
        /// What is wrong.
        error: AriesNicConfigError,
    },
    /// A processor without link into a slice.
    #[error("`{node}` has no link into slice {slice}")]
    NoInjection {
        /// The processor's name.
        node: String,
        /// The slice.
        slice: u8,
    },
}

/// The configuration of one node.
#[derive(Clone, Debug)]
pub enum NodePlan {
    /// A router chip.
    Router(YarcConfig),
    /// A network interface.
    Nic(NicConfig),
    /// The router of an Aries.
    AriesRouter(AriesConfig),
    /// A network interface of an Aries.
    AriesNic(Box<AriesNicConfig>),
}

impl NodePlan {
    /// The node, whose links begin to train at `now`.
    pub fn device(self, now: Time) -> Box<dyn Device> {
        match self {
            Self::Router(config) => Box::new(Yarc::new(config, now)),
            Self::Nic(config) => Box::new(BlackwidowNic::new(config, now)),
            Self::AriesRouter(config) => Box::new(Aries::new(config, now)),
            Self::AriesNic(config) => Box::new(AriesNic::new(*config, now)),
        }
    }
}

impl FoldedClos {
    /// The configuration of the node of that name.
    ///
    /// # Errors
    /// See [`PlanError`]; a topology that [`check`](super::check) has passed has links for every
    /// node, but may have too many of them for processes.
    pub fn plan(&self, node: &str, runtime: &Runtime) -> Result<NodePlan, PlanError> {
        match self.find(node) {
            Some(NodeRef::Processor(p)) => self.plan_nic(p, runtime).map(NodePlan::Nic),
            Some(NodeRef::Chip(c)) => self.plan_router(c, runtime).map(NodePlan::Router),
            None => Err(PlanError::NoSuchNode(node.to_owned())),
        }
    }

    fn plan_router(&self, chip: u32, runtime: &Runtime) -> Result<YarcConfig, PlanError> {
        let Chip { name, .. } = &self.chips[chip as usize];
        if runtime.grain == Some(Grain::Packet) {
            return Err(PlanError::PhitsOnly(name.clone()));
        }
        let mut ports = Vec::new();
        for (id, end, _) in ends_of(&self.links, NodeRef::Chip(chip)) {
            ports.push((end.port, self.link_config(id, end, runtime)?));
        }
        ports.sort_by_key(|(port, _)| *port);
        let mut registers = self
            .chip_registers(chip)
            .ok_or_else(|| PlanError::NoSuchNode(name.clone()))?;
        let clock = runtime.clock.unwrap_or(self.settings.clock);
        registers.forward_progress_ns = clock.emulated_ns(self.settings.forward_progress_ms);
        let clock = match clock {
            Clock::FreeRunning => RouterClock::FreeRunning,
            Clock::Paced { dilation } => RouterClock::Paced { dilation },
        };
        Ok(YarcConfig {
            name: name.clone(),
            registers,
            ports,
            grain: Grain::Flit,
            clock,
        })
    }

    fn plan_nic(&self, processor: u32, runtime: &Runtime) -> Result<NicConfig, PlanError> {
        let Processor { name, number } = &self.processors[processor as usize];
        let mut ports = Vec::new();
        for slice in 0..self.slices {
            let here = End::processor(processor, slice);
            let found = ends_of(&self.links, here.node).find(|(_, end, _)| *end == here);
            let (id, end, _) = found.ok_or_else(|| PlanError::NoInjection {
                node: name.clone(),
                slice,
            })?;
            ports.push(self.link_config(id, end, runtime)?);
        }
        NicConfig::builder(name, *number, ports)
            .memory_bytes(self.settings.memory_bytes)
            .max_outstanding(self.settings.outstanding)
            .request_timeout(Duration::from_ms(self.settings.request_timeout_ms))
            .incarnation(runtime.incarnation)
            .seed(runtime.seed ^ u64::from(*number))
            .build()
            .map_err(|error| PlanError::Nic {
                node: name.clone(),
                error,
            })
    }

    /// The registers of a chip, tile by tile; tiles without link have none.
    pub fn chip_registers(&self, chip: u32) -> Option<ChipRegisters> {
        self.chips.get(chip as usize)?;
        let mut registers = self.without_tiles();
        for (_, end, other) in ends_of(&self.links, NodeRef::Chip(chip)) {
            self.add_tile(&mut registers, end, other);
        }
        Some(registers)
    }

    /// The registers of every chip, in time linear in the size of the network.
    pub fn all_chip_registers(&self) -> Vec<ChipRegisters> {
        let mut all = vec![self.without_tiles(); self.chips.len()];
        for link in &self.links {
            for (end, other) in link.ends() {
                if let NodeRef::Chip(chip) = end.node
                    && let Some(registers) = all.get_mut(chip as usize)
                {
                    self.add_tile(registers, end, other);
                }
            }
        }
        all
    }

    fn without_tiles(&self) -> ChipRegisters {
        ChipRegisters {
            tiles: vec![None; PORTS],
            forward_progress_ns: self.settings.forward_progress_ms.saturating_mul(1_000_000),
        }
    }

    /// Adds the tile whose link has the ends given, the first of which is at a chip.
    fn add_tile(&self, chip: &mut ChipRegisters, end: End, other: End) {
        let NodeRef::Chip(number) = end.node else {
            return;
        };
        let routers = &self.chips[number as usize].routers;
        let router = routers.iter().find(|r| r.ports.contains(end.port));
        let slot = chip.tiles.get_mut(usize::from(end.port));
        if let (Some(router), Some(slot)) = (router, slot) {
            let registers = &router.registers;
            *slot = Some(TileRegisters {
                kind: self.kind_of(end, other),
                root_detect: registers.root_detect,
                table: registers.table,
                down_shift: registers.down_shift,
                down_mask: registers.down_mask,
                port_map: registers.port_map,
                hash_shift: registers.hash_shift,
                exit_mask: registers.exit_mask.bits(),
            });
        }
    }

    fn link_config(&self, id: usize, end: End, runtime: &Runtime) -> Result<LinkConfig, PlanError> {
        let link = &self.links[id];
        link_config(
            self,
            &self.settings,
            (id, link, end),
            (STANDARD, link.rate),
            runtime,
        )?
        .max_packet_phits(self.settings.own.max_packet_phits)
        .first_packet(runtime.first_packet)
        .build()
        .map_err(|error| PlanError::Link { link: id, error })
    }
}

//! From the topology to the configuration of one process, and to what scripts need to wire it.

use std::net::Ipv4Addr;

use phitwire_framing::frame::LinkEnd;
use thiserror::Error;

use super::model::{Chip, Clock, End, NodeRef, Processor, Profile, Topology};
use crate::device::Device;
use crate::link::{EndName, LinkClock, LinkConfig, LinkConfigError, LinkProfile};
use crate::nic::aries::{AriesNic, AriesNicConfig, AriesNicConfigError};
use crate::nic::{BlackwidowNic, Incarnation, NicConfig, NicConfigError};
use crate::router::aries::{Aries, AriesConfig};
use crate::router::yarc::registers::{ChipRegisters, PORTS, TileRegisters};
use crate::router::yarc::{RouterClock, Yarc, YarcConfig};
use crate::time::{Duration, Time};

/// Links that 16-bit ids and the addresses of 198.18.0.0/15 can name.
pub(super) const MAX_LIVE_LINKS: usize = 1 << 16;
/// The network for benchmarks of RFC 2544, which no real interface should have.
const FIRST_ADDRESS: u32 = u32::from_be_bytes([198, 18, 0, 0]);

/// What a topology does not know: facts of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runtime {
    /// Identifies the lab in every frame.
    pub fabric: u32,
    /// Incarnation of the process, unlike any before of the same node.
    pub epoch: u32,
    /// What the node's network interface knows of those before it.
    pub incarnation: Incarnation,
    /// Clock instead of the topology's.
    pub clock: Option<Clock>,
    /// Profile instead of the topology's.
    pub profile: Option<Profile>,
    /// Whether frames travel over wires between processes, which have their own round trip,
    /// whatever the clock: then the times of a profile are [those that such a wire
    /// needs](LinkProfile::over_real_wires) at least.
    pub real_wires: bool,
    /// Seed of everything random in the node.
    pub seed: u64,
    /// Number of the first packet of each session of a BlackWidow link, the same in all processes
    /// of a lab.
    pub first_packet: u64,
}

impl Runtime {
    /// A run of the lab of that name in virtual time, with the topology's own clock and profile.
    pub fn new(lab: &str, epoch: u32) -> Self {
        // FNV-1a: any hash will do that is the same in every process of a lab.
        let fabric = lab.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
            (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        });
        Self {
            fabric,
            epoch,
            incarnation: Incarnation::default(),
            clock: None,
            profile: None,
            real_wires: false,
            seed: u64::from(fabric),
            first_packet: 0,
        }
    }
}

/// Why a node cannot be configured.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// No node has that name.
    #[error("the topology has no node `{0}`")]
    NoSuchNode(String),
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

/// Addresses of the two ends of a link when it runs over UDP: a /31 each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkAddresses {
    /// End A: the even one.
    pub a: Ipv4Addr,
    /// End B.
    pub b: Ipv4Addr,
}

impl LinkAddresses {
    /// The addresses of the link of that id; `None` beyond 65,535.
    pub fn of(link: usize) -> Option<Self> {
        let link = u32::from(u16::try_from(link).ok()?);
        let a = FIRST_ADDRESS + 2 * link;
        Some(Self {
            a: Ipv4Addr::from(a),
            b: Ipv4Addr::from(a + 1),
        })
    }
}

impl Topology {
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
        let mut ports = Vec::new();
        for (id, end, other) in self.ends_of(NodeRef::Chip(chip)) {
            ports.push((end.port, self.link_config(id, end, other, runtime)?));
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
            clock,
        })
    }

    fn plan_nic(&self, processor: u32, runtime: &Runtime) -> Result<NicConfig, PlanError> {
        let Processor { name, number } = &self.processors[processor as usize];
        let mut ports = Vec::new();
        for slice in 0..self.slices {
            let here = End {
                node: NodeRef::Processor(processor),
                port: slice,
            };
            let found = self.ends_of(here.node).find(|(_, end, _)| *end == here);
            let (id, end, other) = found.ok_or_else(|| PlanError::NoInjection {
                node: name.clone(),
                slice,
            })?;
            ports.push(self.link_config(id, end, other, runtime)?);
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
        for (_, end, other) in self.ends_of(NodeRef::Chip(chip)) {
            self.add_tile(&mut registers, end, other);
        }
        Some(registers)
    }

    /// The registers of every chip, in time linear in the size of the network.
    pub fn all_chip_registers(&self) -> Vec<ChipRegisters> {
        let mut all = vec![self.without_tiles(); self.chips.len()];
        for link in &self.links {
            for (end, other) in [(link.a, link.b), (link.b, link.a)] {
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
    ) -> Result<LinkConfig, PlanError> {
        let number = u16::try_from(id).map_err(|_| PlanError::TooManyLinks(id))?;
        let link = &self.links[id];
        let side = if end == link.a {
            LinkEnd::A
        } else {
            LinkEnd::B
        };
        let name = |end: End| EndName {
            node: self.node_name(end.node).to_owned(),
            port: end.port,
        };
        let clock = match runtime.clock.unwrap_or(self.settings.clock) {
            Clock::FreeRunning => LinkClock::FreeRunning,
            Clock::Paced { dilation } => LinkClock::Paced { dilation },
        };
        let mut profile = match runtime.profile.unwrap_or(self.settings.profile) {
            Profile::Paper => LinkProfile::paper(),
            Profile::Live => LinkProfile::live(),
        };
        if runtime.real_wires {
            profile = profile.over_real_wires(clock);
        }
        let (give_up_ms, silence_ms) = (self.settings.give_up_ms, self.settings.silence_ms);
        profile = profile.patient(runtime.real_wires, give_up_ms, silence_ms);
        LinkConfig::builder(number, side, name(end), name(other))
            .fabric(runtime.fabric)
            .profile(profile)
            .clock(clock)
            .rate(link.rate)
            .cable(link.cable)
            .lane_retry_threshold(self.settings.lane_retry_threshold)
            .max_packet_phits(self.settings.max_packet_phits)
            .epoch(runtime.epoch)
            .first_packet(runtime.first_packet)
            .build()
            .map_err(|error| PlanError::Link { link: id, error })
    }
}

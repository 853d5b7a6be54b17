//! Derives the configuration of each process, and of the wiring scripts, from a topology.

use super::model::{Chip, FoldedClos, Processor};
use crate::link::{PhitLinkConfig, PhitProfile, STANDARD};
use crate::nic::{self, NicConfig};
use crate::route::registers::{ChipRegisters, PORTS, TileRegisters};
use crate::router::YarcConfig;
use phitwire::chip::Grain;
use phitwire::link::CutThrough;
use phitwire::net::{Clock, End, NodeRef, PlanError, Profile, Runtime, ends_of, link_config};
use phitwire::time::Duration;

impl FoldedClos {
    pub(crate) fn plan_router(
        &self,
        chip: u32,
        runtime: &Runtime,
    ) -> Result<YarcConfig, PlanError> {
        let Chip { name, .. } = &self.chips[chip as usize];
        if runtime.grain == Some(Grain::Packet) {
            return Err(PlanError::Refused(format!(
                "`{name}` cannot use packet grain: a YARC forwards phits before the packet is \
                 complete"
            )));
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
        Ok(YarcConfig {
            name: name.clone(),
            registers,
            ports,
            grain: Grain::Flit,
            clock,
        })
    }

    pub(crate) fn plan_nic(
        &self,
        processor: u32,
        runtime: &Runtime,
    ) -> Result<NicConfig, PlanError> {
        let Processor { name, number } = &self.processors[processor as usize];
        let mut ports = Vec::new();
        for slice in 0..self.slices {
            let here = End::processor(processor, slice);
            let found = ends_of(&self.links, here.node).find(|(_, end, _)| *end == here);
            let (id, end, _) = found.ok_or_else(|| {
                PlanError::Refused(format!("`{name}` has no link to slice {slice}"))
            })?;
            ports.push(self.link_config(id, end, runtime)?);
        }
        Ok(NicConfig {
            memory_bytes: self.settings.memory_bytes,
            outstanding: self.settings.outstanding,
            timeout: Duration::from_ms(self.settings.request_timeout_ms),
            incarnation: runtime.incarnation,
            seed: Some(runtime.seed ^ u64::from(*number)),
            ..nic::config(*number, ports)
        })
    }

    /// The registers of a chip, by tile; tiles without a link have none.
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

    /// Adds the tile for the link with these ends; the first end is at a chip.
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

    fn link_config(
        &self,
        id: usize,
        end: End,
        runtime: &Runtime,
    ) -> Result<PhitLinkConfig, PlanError> {
        let link = &self.links[id];
        // Only routers cut through: NICs accept whole packets.
        let cut_through = match (end.node, runtime.clock.unwrap_or(self.settings.clock)) {
            (NodeRef::Processor(_), _) => CutThrough::Frames,
            (NodeRef::Chip(_), clock) => runtime.cut_through.unwrap_or(match clock {
                Clock::FreeRunning => CutThrough::Frames,
                Clock::Paced { .. } => CutThrough::Phits,
            }),
        };
        let phits = match runtime.profile.unwrap_or(self.settings.profile) {
            Profile::Paper => PhitProfile::paper(),
            Profile::Live => PhitProfile::live(),
        };
        let longest = self.settings.own.max_packet_phits;
        let builder = link_config(
            self,
            &self.settings,
            (id, link, end),
            (STANDARD, link.rate),
            runtime,
        )?;
        let builder = builder.first_packet(runtime.first_packet);
        let link = builder.cut_through(cut_through).build();
        link.and_then(|link| PhitLinkConfig::new(link, phits, longest))
            .map_err(|error| PlanError::Link { link: id, error })
    }
}

//! An Aries router as a node: the core, with a link control block and an input buffer per port.

use phitwire_framing::aries::flit::Flit;
use serde_json::{Map, Value, json};

use super::core::Core;
use super::counters::AriesCounters;
use super::event::AriesEvent;
use super::load::LoadSteps;
use super::pipeline::CYCLE_PS;
use super::tiles::Ports;
use crate::link::{AriesLcb, AriesLinkConfig};
use crate::route::registers::{AriesRegisters, FIRST_NIC_PORT, PORTS, VCS};
use phitwire::chip::{Chip, ChipConfig, ChipCore, Links, RegisterError, calls_of_the_core};
use phitwire::device::pipeline::Stage;
use phitwire::device::{NodeAccount, PipelineReport, Registers, Rerouting};
use phitwire::kit::below;
use phitwire::link::{Change, LinkEvent, LinkView, NodeLink};
use phitwire::node::PortId;
use phitwire::time::Time;
use phitwire::trace::{Outlooks, Watch};

/// The router of an Aries chip: 48 tiles and Netlink, with 40 network ports and 4 NIC ports, some
/// of which may have no link. The NICs are separate nodes.
pub type Aries = Chip<Core>;

/// The configuration of an Aries router. A cycle of its paced clock is 1.143 ns (875 MHz).
pub type AriesConfig = ChipConfig<AriesRegisters, AriesLinkConfig>;

impl Ports for Links<AriesLcb> {
    #[inline]
    fn front(&self, port: usize, vc: usize) -> Option<Flit> {
        self.input(port)?.front(vc)
    }
    #[inline]
    fn pop(&mut self, port: usize, vc: usize) -> Option<Flit> {
        self.input_mut(port)?.pop(vc)
    }
    #[inline]
    fn can_begin(&self, port: usize, vc: usize, flits: usize) -> bool {
        self.end(port)
            .is_some_and(|lcb| lcb.wire().can_begin(vc, flits))
    }
    #[inline]
    fn can_promise(&self, port: usize, vc: usize, flits: usize) -> bool {
        self.end(port).is_some_and(|lcb| {
            lcb.is_active() && lcb.wire().credits_of(below::<VCS>(vc)) as usize >= flits
        })
    }
    #[inline]
    fn is_active(&self, port: usize) -> bool {
        self.end(port).is_some_and(AriesLcb::is_active)
    }
    #[inline]
    fn push(&mut self, port: usize, flit: Flit) {
        if let Some(lcb) = self.end_mut(port) {
            lcb.push(flit);
        }
    }
    #[inline]
    fn pop_into(&mut self, port: usize, vc: usize, into: &mut [Flit]) -> usize {
        self.input_mut(port)
            .map_or(0, |input| input.pop_into(vc, into))
    }
    #[inline]
    fn push_packet(&mut self, port: usize, packet: &[Flit]) {
        if let Some(lcb) = self.end_mut(port) {
            lcb.push_packet(packet);
        }
    }
    #[inline]
    fn backlog_flits(&self, port: usize) -> u32 {
        self.end(port).map_or(0, |lcb| lcb.wire().backlog_flits())
    }
    #[inline]
    fn far_flits(&self, port: usize) -> u32 {
        self.end(port).map_or(0, |lcb| lcb.wire().far_flits())
    }
    #[inline]
    fn peer_load(&self, port: usize) -> u8 {
        self.end(port).map_or(0, |lcb| lcb.wire().peer_load())
    }
    #[inline]
    fn loads(&self, port: usize) -> (u32, u32, u8) {
        self.end(port).map_or((0, 0, 0), |lcb| {
            let wire = lcb.wire();
            (wire.backlog_flits(), wire.far_flits(), wire.peer_load())
        })
    }
    #[inline]
    fn set_load(&mut self, port: usize, load: u8) {
        if let Some(lcb) = self.end_mut(port) {
            let (wire, link, _) = lcb.parts_mut();
            wire.set_load(link, load);
        }
    }
}

impl ChipCore for Core {
    type End = AriesLcb;
    type Registers = AriesRegisters;
    type Event = AriesEvent;

    const PORTS: usize = PORTS;
    const CYCLE_PS: u64 = CYCLE_PS;

    calls_of_the_core!();

    fn new(config: &AriesConfig) -> Self {
        let mut core = Self::new(config.registers.clone(), config.grain, config.clock);
        // All links of a router are configured alike.
        if let Some((_, link)) = config.ports.first() {
            core.set_load_steps(LoadSteps::of(link.sets()));
        }
        core
    }

    #[inline]
    fn changed(&mut self, port: usize, vc: usize, change: Change) {
        // An Aries link never withdraws an arrived packet, so no other packet can come to the
        // front.
        if let Change::Arrived(flits) = change {
            self.arrived(port, vc, flits);
        }
    }

    #[inline]
    fn link_changed(&mut self, port: usize) {
        self.link_changed(port);
    }

    #[inline]
    fn sent(&mut self, port: usize) {
        // Sending made room: retry packets that wait for the link.
        self.output_changed(port);
    }

    #[inline]
    fn watch(&mut self) -> Option<&mut Option<Box<Watch>>> {
        Some(self.watch())
    }

    fn link_event(port: PortId, event: LinkEvent) -> AriesEvent {
        AriesEvent::Link { port, event }
    }

    fn for_each_counter(&self, events_lost: u64, visit: &mut dyn FnMut(&str, u64)) {
        with_lost(self.counters(), events_lost).for_each(&mut *visit);
        visit("cycles", self.cycle());
        let stalls = ["stalls.input", "stalls.row", "stalls.column"];
        for (name, value) in stalls.into_iter().zip(self.stalls()) {
            visit(name, value);
        }
    }

    fn get(&self, links: &Links<AriesLcb>, name: &str) -> Option<u64> {
        match name {
            "chip.drained" => Some(rests(self, links).into()),
            "chip.ports_in_use" => Some(links.in_use()),
            _ => self.get(name),
        }
    }

    fn set(&mut self, name: &str, value: u64) -> Result<(), RegisterError> {
        match name {
            "chip.drained" | "chip.ports_in_use" => Err(RegisterError::ReadOnly),
            _ => self.set(name, value),
        }
    }

    fn account(chip: &Aries) -> NodeAccount {
        NodeAccount {
            inside: chip.core().flits_inside() + chip.queued_everywhere(),
            unit: "flits",
            ..NodeAccount::default()
        }
    }

    fn pipeline(chip: &Aries) -> PipelineReport {
        let [input, ..] = chip.core().stalls();
        let ports = chip.links().in_use();
        let mut stages = vec![
            chip.input_stage(Stage::inside("input buffer", "flits", "port"))
                .stalls(input),
        ];
        stages.extend(chip.core().stages(ports));
        stages.push(chip.link_stage());
        PipelineReport { stages }
    }

    fn describe(chip: &Aries) -> Map<String, Value> {
        let registers = chip.core().registers();
        let facts = [
            ("family", json!("aries")),
            ("group", json!(registers.group)),
            ("router", json!(registers.router)),
        ];
        Map::from_iter(facts.map(|(name, fact)| (name.to_owned(), fact)))
    }

    fn seed(&mut self, seed: u64) {
        self.seed(seed);
    }

    fn registers(chip: &mut Aries) -> Option<&mut dyn Registers> {
        Some(chip)
    }

    fn outlook(chip: &mut Aries) -> Option<&mut dyn Outlooks> {
        Some(chip)
    }

    fn rerouting(chip: &mut Aries) -> Option<&mut dyn Rerouting> {
        Some(chip)
    }
}

/// A core's counters, plus events lost outside it.
fn with_lost(mut counters: AriesCounters, events_lost: u64) -> AriesCounters {
    counters.events_lost += events_lost;
    counters
}

pub fn counted(chip: &Aries) -> AriesCounters {
    with_lost(chip.core().counters(), chip.link_events_lost())
}

/// Whether this router is free of packets: its tiles and the input buffers of its network ports are
/// empty, and everything that these ports have sent is acknowledged. If all routers of a machine
/// are quiesced and drained, no packet is in flight in the network.
pub fn is_drained(chip: &Aries) -> bool {
    rests(chip.core(), chip.links())
}

fn rests(core: &Core, links: &Links<AriesLcb>) -> bool {
    let at_rest = |(number, link): (usize, &AriesLcb)| {
        let wire = link.wire();
        (number >= FIRST_NIC_PORT || link.input().is_empty())
            && (!link.is_active() || wire.backlog_flits() == 0 && wire.unacknowledged_sets() == 0)
    };
    core.flits_inside() == 0 && links.iter().all(at_rest)
}

#[cfg(test)]
#[path = "node_tests.rs"]
mod tests;

//! A YARC chip as a node: the core, with a link control block and an input queue per port.

use phitwire_framing::yarc::packet::Vc;
use phitwire_framing::yarc::phit::Phit;
use serde_json::{Map, Value, json};

use super::core::{Core, Ports};
use super::counters::RouterCounters;
use super::event::RouterEvent;
use super::pipeline::CYCLE_PS;
use super::register_map::register_address;
use crate::link::{Lcb, PhitLinkConfig};
use crate::route::registers::{ChipRegisters, PORTS};
use phitwire::chip::{
    Chip, ChipConfig, ChipCore, Links, RegisterError, RouterClock, calls_of_the_core,
};
use phitwire::device::pipeline::Stage;
use phitwire::device::{NodeAccount, PipelineReport, Registers};
use phitwire::link::{Change, LinkEvent, LinkView};
use phitwire::node::PortId;
use phitwire::time::Time;
use phitwire::trace::{Outlooks, Watch};

/// A YARC chip with 64 tiles, some of which may have no link.
pub type Yarc = Chip<Core>;

/// The configuration of a YARC. A cycle of its paced clock is 1.25 ns (800 MHz).
pub type YarcConfig = ChipConfig<ChipRegisters, PhitLinkConfig>;

impl Ports for Links<Lcb> {
    #[inline]
    fn front(&self, port: usize, vc: usize) -> Option<Phit> {
        self.input(port)?.front(Vc::from_index(vc))
    }
    #[inline]
    fn second(&self, port: usize, vc: usize) -> Option<Phit> {
        self.input(port)?.second(Vc::from_index(vc))
    }
    fn nth(&self, port: usize, vc: usize, behind: usize) -> Option<Phit> {
        self.input(port)?.nth(Vc::from_index(vc), behind)
    }
    #[inline]
    fn pop(&mut self, port: usize, vc: usize) -> Option<Phit> {
        let (input, vc) = (self.input_mut(port)?, Vc::from_index(vc));
        input.ready(vc).then(|| input.pop(vc))
    }
    #[inline]
    fn can_begin(&self, port: usize, vc: usize) -> bool {
        self.end(port)
            .is_some_and(|lcb| lcb.wire().can_begin(Vc::from_index(vc)))
    }
    #[inline]
    fn is_active(&self, port: usize) -> bool {
        self.end(port).is_some_and(Lcb::is_active)
    }
    #[inline]
    fn push(&mut self, port: usize, phit: Phit) {
        if let Some(lcb) = self.end_mut(port) {
            lcb.push(phit);
        }
    }
}

impl ChipCore for Core {
    type End = Lcb;
    type Registers = ChipRegisters;
    type Event = RouterEvent;

    const PORTS: usize = PORTS;
    const CYCLE_PS: u64 = CYCLE_PS;

    calls_of_the_core!();

    fn new(config: &YarcConfig) -> Self {
        let mut core = Self::new(config.registers.clone());
        if let RouterClock::Paced { dilation } = config.clock {
            core.set_dilation(dilation);
        }
        core
    }

    #[inline]
    fn changed(&mut self, port: usize, vc: usize, change: Change) {
        match change {
            // If the link has also withdrawn rejected phits, the core assumes too many, never too
            // few, until it finds the queue empty.
            Change::Arrived(phits) => self.arrived(port, vc, phits),
            Change::Front => self.front_changed(port, vc),
        }
    }

    #[inline]
    fn watch(&mut self) -> Option<&mut Option<Box<Watch>>> {
        Some(self.watch())
    }

    fn link_event(port: PortId, event: LinkEvent) -> RouterEvent {
        RouterEvent::Link { port, event }
    }

    fn for_each_counter(&self, events_lost: u64, visit: &mut dyn FnMut(&str, u64)) {
        with_lost(self.counters(), events_lost).for_each(&mut *visit);
        visit("cycles", self.cycle());
    }

    fn get(&self, _links: &Links<Lcb>, name: &str) -> Option<u64> {
        self.read_register(register_address(name)?)
    }

    fn set(&mut self, name: &str, value: u64) -> Result<(), RegisterError> {
        let address = register_address(name).ok_or(RegisterError::Unknown)?;
        self.write_register(address, value)
    }

    fn account(chip: &Yarc) -> NodeAccount {
        NodeAccount {
            inside: chip.core().phits_inside(),
            unit: "phits",
            ..NodeAccount::default()
        }
    }

    fn pipeline(chip: &Yarc) -> PipelineReport {
        let [input, row, column] = chip.core().stalls();
        let ports = chip.links().in_use();
        let mut stages = vec![
            chip.input_stage(Stage::outside("input buffer", "phits", "port"))
                .stalls(input),
        ];
        let [rows, columns, maintenance] = chip.core().stages(ports);
        stages.extend([rows.stalls(row), columns.stalls(column), maintenance]);
        stages.push(chip.link_stage());
        PipelineReport { stages }
    }

    fn describe(chip: &Yarc) -> Map<String, Value> {
        let tiles = chip.core().registers().tiles.iter().flatten().count();
        Map::from_iter([("tiles_in_use".to_owned(), json!(tiles))])
    }

    fn outlook(chip: &mut Yarc) -> Option<&mut dyn Outlooks> {
        Some(chip)
    }

    fn registers(chip: &mut Yarc) -> Option<&mut dyn Registers> {
        Some(chip)
    }
}

/// Adds events lost outside the core to its counters.
fn with_lost(mut counters: RouterCounters, events_lost: u64) -> RouterCounters {
    counters.events_lost += events_lost;
    counters
}

pub fn counted(chip: &Yarc) -> RouterCounters {
    with_lost(chip.core().counters(), chip.link_events_lost())
}

#[cfg(test)]
#[path = "node_tests.rs"]
mod tests;

//! The core of a router chip: the crossbar between its links.

use std::sync::Arc;

use phitwire_framing::t3e::maintenance::{MaintenanceCommand, MaintenancePacket, SourceRoute};

use super::barriers::{Pace, Urgent};
use super::crossbar::Crossbar;
use super::lookup::LookUpTable;
use super::maintenance::MaintenanceCounters;
use super::names::Names;
use super::ports::PORTS;
use super::registers;
use crate::CYCLE_PS;
use crate::barrier::BarrierRouter;
use crate::link::{FlitEnd, FlitLinkConfig, URGENT};
use crate::route::RouteRegisters;
use phitwire::chip::{
    Chip, ChipConfig, ChipCore, CoreRemoteRegisters, Grain, Links, RegisterError, RouterClock,
};
use phitwire::device::pipeline::Stage;
use phitwire::device::{
    DeviceError, DeviceEvent, NodeAccount, PipelineReport, RegisterName, Registers,
    RemoteRegisters, Rerouting,
};
use phitwire::kit::bits;
use phitwire::link::{Change, LinkEvent, LinkView};
use phitwire::node::PortId;
use phitwire::trace::{Outlooks, Watch};

pub type T3eRouter = Chip<RouterCore>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouterRegisters {
    /// Position of the router, and the channels of its rings.
    pub route: RouteRegisters,
    pub table: LookUpTable,
    /// The logical "who am I": the processor's number.
    pub processor: u16,
    /// Ports closed to requests and responses because the nodes behind them are isolated, one bit
    /// each (T3E sec. 9). Maintenance packets and barrier messages still pass.
    pub cut_off: u8,
    /// Processor numbers by the positions where paths end.
    pub names: Arc<Names>,
}

#[derive(Debug)]
pub struct RouterCore {
    crossbar: Crossbar,
    urgent: Urgent,
    /// Ports whose link may have a new session, one bit each.
    changed: u64,
    /// Session counts of the links at the last check.
    sessions: [u64; PORTS],
}

impl RouterCore {
    pub fn crossbar(&self) -> &Crossbar {
        &self.crossbar
    }

    /// The crossbar, for commands.
    pub(super) fn crossbar_mut(&mut self) -> &mut Crossbar {
        &mut self.crossbar
    }

    pub fn barriers(&self) -> &BarrierRouter {
        &self.urgent.barriers
    }

    pub fn maintenance(&self) -> &MaintenanceCounters {
        &self.urgent.maintenance.counters
    }

    /// The barrier units, to configure them.
    pub(super) fn barriers_mut(&mut self) -> &mut BarrierRouter {
        &mut self.urgent.barriers
    }

    /// Routes waiting packets again after tables or registers have changed.
    pub(super) fn route_again(&mut self) {
        self.crossbar.invalidate_decisions();
    }

    pub(super) fn each_counter(&self, visit: &mut dyn FnMut(&str, u64)) {
        self.crossbar.counters().for_each(&mut *visit);
        let urgent = &self.urgent;
        let mut name = String::new();
        let mut report = |group: &str, counter: &str, value| {
            name.clear();
            name.push_str(group);
            name.push_str(counter);
            visit(&name, value);
        };
        let barriers = urgent.barriers.counters();
        barriers.for_each(|counter, value| report("barrier.", counter, value));
        report("barrier.", "corrected", urgent.corrected);
        let maintenance = &urgent.maintenance.counters;
        maintenance.for_each(|counter, value| report("maintenance.", counter, value));
    }

    /// Moves barrier and maintenance flits, and returns the ports by which they left.
    fn run_urgent(&mut self, pace: Pace, links: &mut Links<FlitEnd>) -> u8 {
        let mut requests = Vec::new();
        let keep = |_: &mut Urgent, packet: &MaintenancePacket, _: &Links<FlitEnd>| {
            requests.push(*packet);
        };
        let used = self.urgent.run(pace, links, keep);
        for request in requests {
            self.execute(&request);
        }
        used
    }

    fn execute(&mut self, request: &MaintenancePacket) {
        let register = request.register;
        let (command, value) = match request.command {
            MaintenanceCommand::Write => match self.write_register(register, request.value) {
                Ok(()) => (MaintenanceCommand::Done, request.value),
                Err(error) => (registers::refusal(&error), 0),
            },
            _ => match self.read_register(register) {
                Some(value) => (MaintenanceCommand::Done, value),
                None => (MaintenanceCommand::Unknown, 0),
            },
        };
        self.urgent.maintenance.reply(request, command, value);
    }

    /// Handles links that went down, even if they are up again.
    fn follow_links(&mut self, links: &Links<FlitEnd>) {
        for port in bits(core::mem::take(&mut self.changed)) {
            let sessions = links.end(port).map_or(0, FlitEnd::sessions);
            if core::mem::replace(&mut self.sessions[port], sessions) != sessions {
                self.crossbar.cut(port);
                self.urgent.cut(port);
            }
            let is_up = links.end(port).is_some_and(FlitEnd::is_active);
            self.crossbar.set_down(port, !is_up);
        }
    }
}

impl ChipCore for RouterCore {
    type End = FlitEnd;
    type Registers = RouterRegisters;
    type Event = DeviceEvent;

    const PORTS: usize = PORTS;
    const CYCLE_PS: u64 = CYCLE_PS;

    fn new(config: &ChipConfig<RouterRegisters, FlitLinkConfig>) -> Self {
        let RouterRegisters {
            route,
            table,
            processor,
            cut_off,
            names,
        } = config.registers.clone();
        let mut crossbar = Crossbar::new(route, table, processor);
        if config.grain == Grain::Packet {
            let is_timed = config.clock != RouterClock::FreeRunning;
            crossbar = crossbar.with_whole_packets(is_timed);
        }
        crossbar.rename(names);
        crossbar.set_cut_off(cut_off);
        // All links start as down, until they report that they are up.
        (0..PORTS).for_each(|port| crossbar.set_down(port, true));
        Self {
            crossbar,
            urgent: Urgent::default(),
            changed: 0,
            sessions: [0; PORTS],
        }
    }

    #[inline]
    fn changed(&mut self, port: usize, vc: usize, change: Change) {
        match change {
            Change::Arrived(_) if vc == URGENT => self.urgent.on_urgent_flit(port),
            Change::Arrived(flits) => self.crossbar.enqueue(port, vc, flits),
            Change::Front => {}
        }
    }

    #[inline]
    fn output_changed(&mut self, port: usize) {
        self.urgent.unblock(port);
        self.changed |= u64::from(self.crossbar.is_down(port)) << port;
        self.crossbar.wake();
    }

    fn link_changed(&mut self, port: usize) {
        self.changed |= 1 << port;
    }

    fn take_moved(&mut self) -> u64 {
        self.crossbar.take_moved() | self.urgent.take_moved()
    }

    fn run(&mut self, links: &mut Links<FlitEnd>) {
        self.follow_links(links);
        while self.urgent.has_work() {
            self.run_urgent(Pace::Free, links);
        }
        self.crossbar.run(links);
    }

    fn run_until(&mut self, limit: u64, links: &mut Links<FlitEnd>) {
        self.follow_links(links);
        while self.urgent.has_work() && self.crossbar.cycle() < limit {
            // Urgent flits have these wires in this clock, so keep other flits off them.
            let used = self.run_urgent(Pace::Clock, links);
            let wires = |links: &mut Links<FlitEnd>, taken| {
                for port in bits(used.into()) {
                    if let Some(end) = links.end_mut(port) {
                        end.take_wires(taken);
                    }
                }
            };
            wires(links, true);
            self.crossbar.run_until(self.crossbar.cycle() + 1, links);
            wires(links, false);
            if used != 0 {
                self.crossbar.wake();
            }
        }
        self.crossbar.run_until(limit, links);
    }

    fn next_cycle(&self) -> Option<u64> {
        match self.urgent.has_work() {
            true => Some(self.crossbar.cycle()),
            false => self.crossbar.next_cycle(),
        }
    }

    #[inline]
    fn watch(&mut self) -> Option<&mut Option<Box<Watch>>> {
        Some(self.crossbar.watch())
    }

    fn link_event(port: PortId, event: LinkEvent) -> DeviceEvent {
        DeviceEvent::Link { port, event }
    }

    fn account(chip: &T3eRouter) -> NodeAccount {
        NodeAccount {
            inside: chip.queued_everywhere() + chip.core().crossbar.kept_flits(),
            unit: "flits",
            ..NodeAccount::default()
        }
    }

    fn pipeline(chip: &T3eRouter) -> PipelineReport {
        let crossbar = &chip.core().crossbar;
        let kept = crossbar.kept_flits();
        let memory = Stage::inside("memory, for rerouting", "flits", "router");
        PipelineReport {
            stages: vec![
                chip.input_stage(Stage::inside("input buffer", "flits", "port")),
                crossbar.stage(chip.links().in_use()),
                memory.single("kept", kept),
                chip.link_stage(),
            ],
        }
    }

    fn outlook(chip: &mut T3eRouter) -> Option<&mut dyn Outlooks> {
        Some(chip)
    }

    fn rerouting(chip: &mut T3eRouter) -> Option<&mut dyn Rerouting> {
        Some(chip)
    }

    fn for_each_counter(&self, _: u64, visit: &mut dyn FnMut(&str, u64)) {
        self.each_counter(visit);
    }

    fn registers(chip: &mut T3eRouter) -> Option<&mut dyn Registers> {
        Some(chip)
    }

    fn remote_registers(chip: &mut T3eRouter) -> Option<&mut dyn RemoteRegisters> {
        Some(chip)
    }
}

impl CoreRemoteRegisters for RouterCore {
    fn ask(
        chip: &mut T3eRouter,
        way: &[i8],
        register: RegisterName<'_>,
        write: Option<u64>,
    ) -> Result<u32, DeviceError> {
        let legs = way
            .try_into()
            .map(SourceRoute)
            .ok()
            .filter(SourceRoute::fits);
        let way = legs.ok_or_else(|| DeviceError::Unreachable {
            register: register.to_string(),
        })?;
        // Look up the name here: all routers have the same registers.
        let register = registers::address_of(chip.core(), register)?;
        let core = chip.core_mut();
        let (tag, own) = core.urgent.maintenance.request(way, register, write);
        if let Some(request) = own {
            core.execute(&request);
        }
        Ok(tag.into())
    }

    fn answer(chip: &mut T3eRouter, question: u32) -> Option<Result<u64, RegisterError>> {
        let tag = u8::try_from(question).ok()?;
        let (command, value) = chip.core_mut().urgent.maintenance.answer(tag)?;
        Some(match command {
            MaintenanceCommand::ReadOnly => Err(RegisterError::ReadOnly),
            MaintenanceCommand::BadValue => Err(RegisterError::BadValue {
                takes: "another value; read the register's range at the router itself",
            }),
            MaintenanceCommand::Unknown => Err(RegisterError::Unknown),
            _ => Ok(value),
        })
    }
}

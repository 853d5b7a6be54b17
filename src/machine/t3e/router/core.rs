//! The core of a router chip: the crossbar between its links.

use std::sync::Arc;

use super::crossbar::Crossbar;
use super::lookup::LookUpTable;
use super::names::Names;
use super::ports::PORTS;
use crate::chip::{Chip, ChipConfig, ChipCore, Links};
use crate::device::{DeviceEvent, NodeAccount, Rerouting};
use crate::kit::bits;
use crate::link::{Change, EndStatus, LinkEvent};
use crate::machine::t3e::CYCLE_PS;
use crate::machine::t3e::link::{FlitEnd, FlitLinkConfig};
use crate::machine::t3e::route::RouteRegisters;
use crate::node::PortId;

/// A router.
pub type T3eRouter = Chip<RouterCore>;

/// What a router is configured by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouterRegisters {
    /// Where it is, and the channels of its rings.
    pub route: RouteRegisters,
    /// Its look-up table.
    pub table: LookUpTable,
    /// The logical "who am I": the number of its processor.
    pub processor: u16,
    /// Ports that nothing comes or goes by, one bit each: the nodes behind them are isolated (paper,
    /// section 9).
    pub cut_off: u8,
    /// What the ends of ways are called.
    pub names: Arc<Names>,
}

/// The core of a router.
#[derive(Debug)]
pub struct RouterCore {
    crossbar: Crossbar,
    /// Ports whose link may have another session, one bit each.
    changed: u64,
    /// The sessions that their links had when they were looked at last.
    sessions: [u64; PORTS],
}

impl RouterCore {
    /// The crossbar.
    pub fn crossbar(&self) -> &Crossbar {
        &self.crossbar
    }

    /// The crossbar, for commands.
    pub(super) fn crossbar_mut(&mut self) -> &mut Crossbar {
        &mut self.crossbar
    }

    /// Notices links that went down, also those that are up again.
    fn follow_links(&mut self, links: &Links<FlitEnd>) {
        for port in bits(core::mem::take(&mut self.changed)) {
            let sessions = links.end(port).map_or(0, FlitEnd::sessions);
            if core::mem::replace(&mut self.sessions[port], sessions) != sessions {
                self.crossbar.cut(port);
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
        crossbar.rename(names);
        crossbar.set_cut_off(cut_off);
        // Links are down until they say that they are up.
        (0..PORTS).for_each(|port| crossbar.set_down(port, true));
        Self {
            crossbar,
            changed: 0,
            sessions: [0; PORTS],
        }
    }

    #[inline]
    fn changed(&mut self, port: usize, vc: usize, change: Change) {
        if let Change::Arrived(flits) = change {
            self.crossbar.enqueue(port, vc, flits);
        }
    }

    #[inline]
    fn output_changed(&mut self, port: usize) {
        self.changed |= u64::from(self.crossbar.is_down(port)) << port;
        self.crossbar.wake();
    }

    fn link_changed(&mut self, port: usize) {
        self.changed |= 1 << port;
    }

    fn take_moved(&mut self) -> u64 {
        self.crossbar.take_moved()
    }

    fn run(&mut self, links: &mut Links<FlitEnd>) {
        self.follow_links(links);
        self.crossbar.run(links);
    }

    fn run_until(&mut self, limit: u64, links: &mut Links<FlitEnd>) {
        self.follow_links(links);
        self.crossbar.run_until(limit, links);
    }

    fn next_cycle(&self) -> Option<u64> {
        self.crossbar.next_cycle()
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

    fn rerouting(chip: &mut T3eRouter) -> Option<&mut dyn Rerouting> {
        Some(chip)
    }

    fn for_each_counter(&self, _: u64, visit: &mut dyn FnMut(&str, u64)) {
        self.crossbar.counters().for_each(visit);
    }
}

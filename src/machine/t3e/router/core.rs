//! The core of a router chip: the crossbar between its links.

use super::crossbar::Crossbar;
use super::lookup::LookUpTable;
use super::ports::PORTS;
use crate::chip::{Chip, ChipConfig, ChipCore, Grain, Links, RouterClock};
use crate::device::DeviceEvent;
use crate::kit::bits;
use crate::link::{Change, LinkEvent};
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

    /// Notices links that went down, also those that are up again.
    fn follow_links(&mut self, links: &Links<FlitEnd>) {
        for port in bits(core::mem::take(&mut self.changed)) {
            let sessions = links.end(port).map_or(0, FlitEnd::sessions);
            if core::mem::replace(&mut self.sessions[port], sessions) != sessions {
                self.crossbar.cut(port);
            }
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
        } = config.registers.clone();
        let mut crossbar = Crossbar::new(route, table, processor);
        if config.grain == Grain::Packet && config.clock == RouterClock::FreeRunning {
            crossbar = crossbar.with_whole_packets();
        }
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
    fn output_changed(&mut self, _: usize) {
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

    fn for_each_counter(&self, _: u64, visit: &mut dyn FnMut(&str, u64)) {
        self.crossbar.counters().for_each(visit);
    }
}

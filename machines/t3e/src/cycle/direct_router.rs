//! A router with its links: the crossbar, and the link end of each port.

use phitwire_framing::t3e::flit::{Flit, FlitKind, VCS};
use phitwire_framing::t3e::header::Header;
use prefetch_index::prefetch_index;

use super::T3e;
use super::credits::{CYCLE_BITS, CYCLES, Returned};
use super::terminal::slots;
use crate::link::{Depths, IdealEnd};
use crate::router::{Crossbar, CrossbarCounters, FlitPorts, PORTS, PROCESSOR, RouterRegisters};
use phitwire::device::pipeline::Stage;
use phitwire::kit::bits;
use phitwire::link::MAX_VCS;
use phitwire::sim::direct::exchange::{Arrivals, Exchange};
use phitwire::sim::direct::model::{self, ChipView, NO_SLOT, PortAccount};
use phitwire::trace::Watch;

#[derive(Debug)]
pub struct DirectRouter {
    crossbar: Crossbar,
    links: Links,
}

#[derive(Debug)]
struct Links {
    ends: [IdealEnd; PORTS],
    /// Slot of the link end at the other side of each port.
    peers: [u32; PORTS],
    /// Ports with a failed link.
    down: u8,
    out: [Arrivals<T3e>; PORTS],
    /// Ports with credits that are not returned yet, one bit each.
    owing: u8,
    sent: [u64; PORTS],
    overflows: u64,
}

impl DirectRouter {
    pub(super) fn new(registers: RouterRegisters) -> Self {
        let RouterRegisters {
            route,
            table,
            processor,
            ..
        } = registers;
        let depths = |port| match port {
            PROCESSOR => Depths::PROCESSOR,
            _ => Depths::PAPER,
        };
        Self {
            crossbar: Crossbar::new(route, table, processor),
            links: Links {
                ends: core::array::from_fn(|port| IdealEnd::new(depths(port))),
                peers: [NO_SLOT; PORTS],
                down: 0,
                out: [Arrivals::default(); PORTS],
                owing: 0,
                sent: [0; PORTS],
                overflows: 0,
            },
        }
    }

    /// Connects `port` to the link end at `slot`.
    pub(super) fn connect(&mut self, port: usize, slot: u32) {
        self.links.peers[port] = slot;
    }

    /// Puts the window's flits into their buffers, and announces each to the crossbar. Returns the
    /// credits that arrive in the window.
    ///
    /// Visits all ports: which of them have arrivals is nearly random, and testing costs more than
    /// it saves.
    fn take_arrivals(&mut self, chip: usize, base: u64, exchange: &mut Exchange<T3e>) -> Credited {
        let size = exchange.window;
        let first = Exchange::<T3e>::chip_slot(chip, 0) as usize;
        exchange.read.chip_ports[chip] = 0;
        let mut credited = Credited::default();
        let mut flits = 0_u64;
        let slots = &mut exchange.read.arrivals[first..first + PORTS];
        for (port, slot) in slots.iter_mut().enumerate() {
            let arrivals = core::mem::take(slot);
            credited.add(port, arrivals.credits);
            flits |= arrivals.phits << (PORT_CYCLES * port);
        }
        if self.crossbar.watch().is_some() {
            for bit in bits(flits) {
                let (port, cycle) = (bit / PORT_CYCLES, bit % PORT_CYCLES);
                let flit = exchange.read.phits[(first + port) * size + cycle];
                if let FlitKind::Data(vc) = flit.control.kind() {
                    let cycle = base + cycle as u64;
                    self.crossbar.watch_announced(cycle, port, vc.into());
                }
            }
        }
        for bit in bits(flits) {
            let (port, cycle) = (bit / PORT_CYCLES, bit % PORT_CYCLES);
            let flit = exchange.read.phits[(first + port) * size + cycle];
            if let FlitKind::Data(vc) = flit.control.kind() {
                if port == PROCESSOR && flit.control.is_head() {
                    // Prefetch the entry for the look-up after the stages.
                    let destination = Header::destination_in(flit.word);
                    self.crossbar.table.fetch(destination);
                }
                if self.links.ends[port].receive(vc.into(), flit) {
                    self.crossbar.announce(base + cycle as u64, port, vc.into());
                } else {
                    self.links.overflows += 1;
                }
            }
        }
        credited
    }
}

/// Bits per port in a mask of all ports: one for each cycle of a window.
const PORT_CYCLES: usize = CYCLES;
const _: () = assert!(PORT_CYCLES * PORTS <= 64 && PORTS <= CYCLE_BITS);

/// The credits returned to a router in one window.
#[derive(Clone, Copy, Debug, Default)]
struct Credited {
    returned: [Returned; PORTS],
    /// Ports with a credit, one bit each in a byte per cycle.
    ports: u32,
}

impl Credited {
    #[inline]
    fn add(&mut self, port: usize, returned: Returned) {
        self.returned[port] = returned;
        self.ports |= returned.cycles() << port;
    }

    #[inline]
    fn of(&self, cycle: usize) -> impl Iterator<Item = (usize, usize)> {
        bits(u64::from(self.ports >> (CYCLE_BITS * cycle) & 0xff))
            .filter_map(move |port| Some((port, self.returned[port].get(cycle)?)))
    }
}

impl Links {
    /// Ports with output in this window, one bit each.
    #[inline]
    fn filled(&self) -> u64 {
        let outs = self.out.iter().enumerate();
        outs.fold(0, |ports, (port, out)| {
            let any = out.phits != 0 || out.credits != Returned::default();
            ports | u64::from(any) << port
        })
    }
}

struct Window<'a> {
    links: &'a mut Links,
    flits: &'a mut [Flit],
    size: usize,
    base: u64,
    now: usize,
}

impl Window<'_> {
    /// Returns waiting credits in every cycle from the current one to `until`.
    #[inline]
    fn return_until(&mut self, until: usize) {
        for port in bits(u64::from(self.links.owing)) {
            let end = &mut self.links.ends[port];
            for cycle in self.now..until {
                if let Some(vc) = end.next_credit() {
                    self.links.out[port].credits.set(cycle, vc);
                }
            }
            if !end.owes() {
                self.links.owing &= !(1 << port);
            }
        }
        self.now = until;
    }
}

impl FlitPorts for Window<'_> {
    #[inline]
    fn begin_cycle(&mut self, cycle: u64) {
        self.return_until((cycle - self.base) as usize);
    }

    #[inline]
    fn credits(&self, port: usize, vc: usize) -> u32 {
        self.links.ends[port].credits(vc)
    }

    #[inline]
    fn takes(&self, port: usize) -> bool {
        self.links.down >> port & 1 == 0
    }

    #[inline]
    fn push(&mut self, port: usize, vc: usize, flit: Flit) {
        self.links.ends[port].send(vc);
        self.links.out[port].phits |= 1 << self.now;
        self.links.sent[port] += 1;
        self.flits[self.links.peers[port] as usize * self.size + self.now] = flit;
    }

    #[inline]
    fn front(&self, port: usize, vc: usize) -> u64 {
        self.links.ends[port].front(vc)
    }

    #[inline]
    fn pop(&mut self, port: usize, vc: usize) -> u64 {
        self.links.owing |= 1 << port;
        self.links.ends[port].pop(vc)
    }
}

impl model::DirectRouter<T3e> for DirectRouter {
    fn run(&mut self, chip: usize, base: u64, exchange: &mut Exchange<T3e>) -> bool {
        let size = exchange.window;
        self.crossbar.rest_until(base);
        let credited = self.take_arrivals(chip, base, exchange);
        let Self {
            crossbar, links, ..
        } = self;
        let mut window = Window {
            links,
            flits: &mut exchange.write.phits,
            size,
            base,
            now: 0,
        };
        for cycle in 0..size {
            for (port, vc) in credited.of(cycle) {
                window.links.ends[port].give(vc);
                crossbar.wake();
            }
            crossbar.run_until(base + cycle as u64 + 1, &mut window);
        }
        window.return_until(size);
        for port in bits(self.links.filled()) {
            let out = core::mem::take(&mut self.links.out[port]);
            exchange.send(self.links.peers[port], out);
        }
        crossbar.next_cycle().is_some() || self.links.owing != 0
    }

    #[inline]
    fn fetch(&self, chip: usize, exchange: &Exchange<T3e>) {
        exchange.fetch(chip);
        self.crossbar.fetch();
        let links = &self.links;
        for port in 0..PORTS {
            prefetch_index(links.ends.as_slice(), port);
        }
        for port in (0..PORTS).step_by(4) {
            prefetch_index(links.out.as_slice(), port);
        }
        prefetch_index(links.peers.as_slice(), 0);
        prefetch_index(links.sent.as_slice(), 0);
    }

    fn peer(&self, port: usize) -> Option<u32> {
        Some(self.links.peers[port]).filter(|&slot| slot != NO_SLOT)
    }

    fn account(&self, port: usize) -> PortAccount {
        let end = &self.links.ends[port];
        let depths = match port {
            PROCESSOR => Depths::PROCESSOR,
            _ => Depths::PAPER,
        };
        let mut account = PortAccount {
            slots: Some(slots(depths)),
            ..PortAccount::default()
        };
        for (vc, owed) in end.owed().into_iter().enumerate() {
            account.credits[vc] = end.credits(vc);
            // Freed slots count as occupied until the peer has their credits.
            account.queued[vc] = end.len(vc) + owed;
        }
        account
    }

    fn sent(&self) -> &[u64] {
        &self.links.sent
    }

    fn phits_inside(&self) -> u64 {
        self.links.ends.iter().map(|end| end.flits()).sum()
    }

    fn view(&self) -> ChipView {
        ChipView {
            phits_by_stage: [model::DirectRouter::phits_inside(self), 0, 0],
            phit_hops: self.links.sent.iter().sum(),
            overflows: self.links.overflows,
            ..view(self.crossbar.counters())
        }
    }

    fn stages(&self, ports: u64) -> Vec<Stage> {
        vec![self.crossbar.stage(ports)]
    }

    fn watch(&mut self) -> Option<&mut Option<Box<Watch>>> {
        Some(self.crossbar.watch())
    }

    fn set_link(&mut self, cycle: u64, port: usize, up: bool) {
        // Advance an idle crossbar, whose clock has fallen behind.
        self.crossbar.rest_until(cycle);
        self.links.down = self.links.down & !(1 << port) | u8::from(!up) << port;
        self.crossbar.wake();
    }
}

#[cfg(test)]
impl DirectRouter {
    /// The oldest flit in the input buffer of a channel.
    pub(super) fn front(&self, port: usize, vc: usize) -> Option<u64> {
        let end = &self.links.ends[port];
        (end.len(vc) > 0).then(|| end.front(vc))
    }

    /// Adds a credit to a port that its peer has not returned.
    pub(super) fn invent_credit(&mut self, port: usize, vc: usize) {
        self.links.ends[port].give(vc);
    }

    pub(super) fn lose_credit(&mut self, port: usize, vc: usize) {
        self.links.ends[port].send(vc);
    }

    /// The routing registers, for corrupting them.
    pub(super) fn registers_mut(&mut self) -> &mut crate::route::RouteRegisters {
        &mut self.crossbar.registers
    }
}

/// The counters of a router that do not depend on its links.
pub(super) fn view(counters: &CrossbarCounters) -> ChipView {
    ChipView {
        stalls: [counters.stalled_input_cycles, 0, 0],
        refused: counters.unroutable_packets,
        discarded: [
            counters.unroutable_packets + counters.misdirected_packets + counters.cut_packets,
            counters.discarded_flits,
        ],
        choices: [
            counters.packets - counters.adaptive_packets,
            counters.adaptive_packets,
        ],
        ..ChipView::default()
    }
}

const _: () = assert!(VCS <= MAX_VCS, "see `link::MAX_VCS`");

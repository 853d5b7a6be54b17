//! A router with its links: the tiles, and the link end of each port.

mod window;

use core::cell::Cell;

use phitwire_framing::aries::flit::Flit;

use self::window::{Freeing, Leaving, NoPorts, Window};

use super::credits::Returned;
use super::{Aries, INPUT_FLITS, NIC_LANES};
use crate::link::{IdealEnd, SetProfile};
use crate::route::registers::{AriesRegisters, FIRST_NIC_PORT, PORTS};
use crate::router::grain::{Flits, Items, Packets};
use crate::router::pace::Pace;
use crate::router::pipeline::INPUT_CYCLES;
use crate::router::{AriesCounters, Tiles};
use phitwire::chip::Grain;
use phitwire::device::pipeline::Stage;
use phitwire::kit::bits;
use phitwire::sim::direct::exchange::{Arrivals, Exchange};
use phitwire::sim::direct::model::{self, ChipView, Lanes as _, NO_SLOT, PortAccount, Stream};
use phitwire::trace::Watch;

/// Number of lanes of all ports.
const LANES: usize = Aries::CHIP_LANES;
/// Maximum number of flits that can leave by a port in a window, plus those that Netlink may then
/// request at once.
const AMPLE: u32 = NIC_LANES as u32 * 64 + 160;

#[derive(Debug)]
struct Lanes {
    ends: Box<[IdealEnd; PORTS]>,
    /// Packets handed over whole, by port; empty if flits move one by one.
    leaving: Vec<Leaving>,
    /// Ports whose `leaving` packet is not finished.
    leaving_ports: u64,
    /// Packets taken whole, by port; empty if flits move one by one.
    freeing: Vec<Freeing>,
    freeing_ports: u64,
    /// The first lane of the peer of each port.
    peers: [u32; PORTS],
    /// Ports with a failed link.
    down: u64,
    out: Box<[Arrivals<Aries>; LANES]>,
    reported: u64,
    returning: u64,
    /// Returned credits of this window, by port and lane.
    returned: Box<[[Returned; NIC_LANES]; PORTS]>,
    /// Ports whose credits of this window were returned early.
    early: u64,
    /// The load last reported by the other end of each port before this window.
    peer_loads: [u8; PORTS],
    sent: Box<[u64; PORTS]>,
    /// Ports whose link is slower than full speed.
    slow: u64,
    /// Pace of the links in `slow`, or full speed.
    slow_pace: Pace,
}

/// A router with its links, moving flits or whole packets.
#[derive(Debug)]
pub enum DirectRouter {
    Flits(Box<Router<Flits>>),
    Packets(Box<Router<Packets>>),
}

macro_rules! each {
    ($site:expr, $router:ident => $call:expr) => {
        match $site {
            DirectRouter::Flits($router) => $call,
            DirectRouter::Packets($router) => $call,
        }
    };
}

#[derive(Debug)]
pub struct Router<I> {
    tiles: Tiles<I>,
    lanes: Lanes,
    received: u64,
    forwarded: u64,
    /// Cycles of this window in which awaited credits may arrive, and the ports of each cycle.
    wake_cycles: u64,
    wakes: Box<[u64; 64]>,
}

impl Lanes {
    fn new(packets: bool) -> Self {
        let end = IdealEnd::new(&SetProfile::paper(), 0);
        let ends = vec![end; PORTS].into_boxed_slice();
        Self {
            ends: ends.try_into().expect("an end for every port"),
            leaving: vec![Leaving::NOTHING; if packets { PORTS } else { 0 }],
            leaving_ports: 0,
            freeing: vec![Freeing::default(); if packets { PORTS } else { 0 }],
            freeing_ports: 0,
            peers: [NO_SLOT; PORTS],
            down: 0,
            out: Box::new([Arrivals::default(); LANES]),
            reported: 0,
            returning: 0,
            returned: Box::new([[Returned::default(); NIC_LANES]; PORTS]),
            early: 0,
            peer_loads: [0; PORTS],
            sent: Box::new([0; PORTS]),
            slow: 0,
            slow_pace: Pace::PORT,
        }
    }

    #[inline]
    const fn pace(&self, port: usize) -> Pace {
        if port >= FIRST_NIC_PORT {
            Pace::NIC
        } else if self.slow >> port & 1 != 0 {
            self.slow_pace
        } else {
            Pace::PORT
        }
    }

    /// Flits in input buffers.
    fn queued(&self) -> u64 {
        self.ends.iter().map(|end| u64::from(end.flits())).sum()
    }

    /// Flits handed to links but not sent yet.
    fn leaving(&self) -> u64 {
        let flits = self.leaving.iter().map(Leaving::flits);
        flits.map(u64::from).sum()
    }
}

impl DirectRouter {
    pub(super) fn new(registers: AriesRegisters, seed: u64, grain: Grain) -> Self {
        match grain {
            Grain::Flit => Self::Flits(Box::new(Router::new(registers, seed))),
            Grain::Packet => Self::Packets(Box::new(Router::new(registers, seed))),
        }
    }

    fn lanes(&self) -> &Lanes {
        each!(self, router => &router.lanes)
    }

    /// Joins `port` to the link end at `slot`, and its other lanes to the following slots. A flit
    /// takes `cycles` cycles over the link. Network ports can have at most one pace besides full
    /// speed.
    pub(super) fn connect(&mut self, port: usize, slot: u32, cycles: u32, pace: Pace) {
        if port < FIRST_NIC_PORT && pace != Pace::PORT {
            each!(self, router => {
                router.lanes.slow |= 1 << port;
                router.lanes.slow_pace = pace;
                router.tiles.set_slow_ports(router.lanes.slow, pace);
            });
        }
        let lanes = each!(self, router => &mut router.lanes);
        lanes.peers[port] = slot;
        // Round trip: out, through the peer's input stages, and back.
        let round = 2 * cycles as u16 + INPUT_CYCLES as u16;
        lanes.ends[port] = IdealEnd::new(&SetProfile::paper(), round);
    }
}

impl<I: Items> Router<I> {
    fn new(registers: AriesRegisters, seed: u64) -> Self {
        let mut tiles = Tiles::new(registers);
        tiles.seed(seed);
        Self {
            tiles,
            lanes: Lanes::new(I::PACKETS),
            received: 0,
            forwarded: 0,
            wake_cycles: 0,
            wakes: Box::new([0; 64]),
        }
    }

    /// Queues the window's flits, and reports their arrival cycles to the core.
    fn take_arrivals(&mut self, chip: usize, base: u64, exchange: &mut Exchange<Aries>) {
        let mut lanes = core::mem::take(&mut exchange.read.chip_ports[chip]);
        while lanes != 0 {
            let lane = lanes.trailing_zeros() as usize;
            let port = if lane < FIRST_NIC_PORT {
                lane
            } else {
                FIRST_NIC_PORT + (lane - FIRST_NIC_PORT) / NIC_LANES
            };
            let (first, count) = Aries::lanes(port);
            lanes &= !(((1 << count) - 1) << first);
            let slot = Exchange::<Aries>::chip_slot(chip, port) as usize;
            let mut cycles = [0; NIC_LANES];
            let mut returned = [Returned::default(); NIC_LANES];
            for lane in 0..count {
                let arrivals = core::mem::take(&mut exchange.read.arrivals[slot + lane]);
                cycles[lane] = arrivals.phits;
                returned[lane] = arrivals.credits;
            }
            let size = exchange.window;
            let flits = &exchange.read.phits[slot * size..(slot + count) * size];
            match self.tiles.watch().is_some() {
                false => self.take_flits::<false>(port, base, cycles, flits, size),
                true => self.take_flits::<true>(port, base, cycles, flits, size),
            }
            self.take_returned(port, returned);
        }
    }

    #[inline]
    fn take_flits<const WATCHED: bool>(
        &mut self,
        port: usize,
        base: u64,
        cycles: [u64; NIC_LANES],
        flits: &[u64],
        size: usize,
    ) {
        for cycle in bits(cycles.into_iter().fold(0, |all, lane| all | lane)) {
            for lane in 0..NIC_LANES {
                if cycles[lane] >> cycle & 1 == 0 {
                    continue;
                }
                let flit = Flit::new(flits[lane * size + cycle]);
                if let Some(vc) = self.lanes.ends[port].receive(flit) {
                    self.tiles.announce(base + cycle as u64, port, vc);
                    if WATCHED {
                        self.tiles.watch_announced(base + cycle as u64, port, vc);
                    }
                }
                self.received += 1;
            }
        }
    }

    /// Returns credits at once if nothing can wait for them in this window, otherwise each in its
    /// cycle.
    fn take_returned(&mut self, port: usize, returned: [Returned; NIC_LANES]) {
        let cycles = returned.iter().fold(0, |all, lane| all | lane.cycles);
        if cycles == 0 && !returned[0].has_loads() {
            return;
        }
        self.lanes.returning |= 1 << port;
        self.lanes.returned[port] = returned;
        let end = &mut self.lanes.ends[port];
        if end.is_ample(AMPLE) {
            self.lanes.early |= 1 << port;
            for lane in returned {
                for cycle in bits(lane.cycles) {
                    end.give(lane.vc(cycle as u32));
                }
            }
            return;
        }
        self.wake_cycles |= cycles;
        for cycle in bits(cycles) {
            self.wakes[cycle] |= 1 << port;
        }
    }

    /// Returns the credits of `cycle` of the window, and wakes packets that wait for them.
    fn give(tiles: &mut Tiles<I>, window: &mut Window<'_>, cycle: usize, ports: u64) {
        for port in bits(ports) {
            for lane in window.lanes.returned[port] {
                if lane.cycles >> cycle & 1 != 0 {
                    window.lanes.ends[port].give(lane.vc(cycle as u32));
                }
            }
            if window.blocked.get() >> port & 1 != 0 {
                window.blocked.set(window.blocked.get() & !(1 << port));
                tiles.output_changed(port);
            }
        }
    }

    /// Hands the core's output of this window to the links.
    fn send(&mut self, moved: u64, exchange: &mut Exchange<Aries>) {
        let lanes = &mut self.lanes;
        for port in bits(core::mem::take(&mut lanes.returning)) {
            if let Some(load) = lanes.returned[port][0].load(exchange.window as u32 - 1) {
                lanes.peer_loads[port] = load;
            }
        }
        lanes.early = 0;
        for port in bits(moved | self.tiles.take_moved() | core::mem::take(&mut lanes.reported)) {
            let (first, count) = Aries::lanes(port);
            for lane in 0..count {
                let out = core::mem::take(&mut lanes.out[first + lane]);
                if out == Arrivals::default() {
                    continue;
                }
                let flits = u64::from(out.phits.count_ones());
                self.forwarded += flits;
                lanes.sent[port] += flits;
                exchange.send(lanes.peers[port] + lane as u32, out);
            }
        }
    }

    fn run(&mut self, chip: usize, base: u64, exchange: &mut Exchange<Aries>) -> bool {
        let size = exchange.window;
        self.tiles.run_until(base, &mut NoPorts);
        self.take_arrivals(chip, base, exchange);
        let mut window = Window {
            lanes: &mut self.lanes,
            flits: &mut exchange.write.phits,
            size,
            base,
            now: 0,
            // All packets that waited before this window still wait for credits.
            blocked: Cell::new(u64::MAX),
        };
        let (leaving, freeing) = (window.lanes.leaving_ports, window.lanes.freeing_ports);
        window.send_leaving(leaving);
        window.free(freeing);
        for cycle in bits(core::mem::take(&mut self.wake_cycles)) {
            self.tiles.run_until(base + cycle as u64, &mut window);
            let ports = core::mem::take(&mut self.wakes[cycle]);
            Self::give(&mut self.tiles, &mut window, cycle, ports);
        }
        self.tiles.run_until(base + size as u64, &mut window);
        self.send(leaving | freeing, exchange);
        let rest = self.lanes.leaving_ports | self.lanes.freeing_ports;
        self.tiles.next_cycle().is_some() || rest != 0
    }

    fn phits_inside(&self) -> u64 {
        self.tiles.flits_inside() + self.lanes.queued() + self.lanes.leaving()
    }

    fn view(&self) -> ChipView {
        let counters = self.tiles.counters();
        let phits_by_stage = if self.received == self.forwarded {
            [0; 3]
        } else {
            // Flits in Netlink are counted with the input queues that they left.
            let [netlink, rows, columns] = self.tiles.flits_by_stage();
            let (queued, leaving) = (self.lanes.queued(), self.lanes.leaving());
            [queued + netlink, rows, columns + leaving]
        };
        let overflows = self.lanes.ends.iter().map(|end| u64::from(end.refused()));
        ChipView {
            phit_hops: self.forwarded,
            overflows: overflows.sum(),
            ..view(counters, self.tiles.stalls(), phits_by_stage)
        }
    }
}

/// The state of a router for views, without its links.
pub(super) fn view(
    counters: AriesCounters,
    stalls: [u64; 3],
    phits_by_stage: [u64; 3],
) -> ChipView {
    ChipView {
        phits_by_stage,
        stalls,
        phit_hops: counters.flits_forwarded,
        overflows: 0,
        rule_violations: 0,
        refused: counters.unroutable_packets
            + counters.no_live_port_packets
            + counters.headless_flits
            + counters.dead_port_packets
            + counters.stalled_port_packets,
        discarded: [
            counters.unroutable_packets
                + counters.no_live_port_packets
                + counters.dead_port_packets
                + counters.stalled_port_packets,
            counters.swallowed_flits + counters.dead_port_flits + counters.stalled_port_flits,
        ],
        // Summed over all routers. A packet that a later router diverted or returned counts by its
        // final path.
        choices: {
            let went_up = counters
                .diverted_decisions
                .wrapping_sub(counters.returned_decisions);
            let up = counters.non_minimal_decisions + counters.fallback_up_decisions;
            [
                counters.minimal_decisions.wrapping_sub(went_up),
                up.wrapping_add(went_up),
            ]
        },
    }
}

impl model::DirectRouter<Aries> for DirectRouter {
    fn run(&mut self, chip: usize, base: u64, exchange: &mut Exchange<Aries>) -> bool {
        each!(self, router => router.run(chip, base, exchange))
    }

    fn peer(&self, port: usize) -> Option<u32> {
        Some(self.lanes().peers[port]).filter(|&slot| slot != NO_SLOT)
    }

    fn account(&self, port: usize) -> PortAccount {
        let lanes = self.lanes();
        let end = &lanes.ends[port];
        let (vc, left) = end.coming();
        let mut queued = core::array::from_fn(|vc| end.len(vc));
        if let Some(freeing) = lanes.freeing.get(port) {
            // The slots of a partly taken packet are not free yet.
            queued[usize::from(freeing.vc)] += u32::from(freeing.left);
        }
        PortAccount {
            credits: end.used().map(|used| INPUT_FLITS.wrapping_sub(used)),
            queued,
            slots: None,
            coming: Stream { vc, left },
        }
    }

    fn sent(&self) -> &[u64] {
        &self.lanes().sent[..]
    }

    fn phits_inside(&self) -> u64 {
        each!(self, router => router.phits_inside())
    }

    fn stages(&self, ports: u64) -> Vec<Stage> {
        each!(self, router => router.tiles.stages(ports).to_vec())
    }

    fn set_link(&mut self, cycle: u64, port: usize, up: bool) {
        each!(self, router => {
            // Run the earlier cycles first, without this change.
            router.tiles.run_until(cycle, &mut NoPorts);
            let down = &mut router.lanes.down;
            *down = *down & !(1 << port) | u64::from(!up) << port;
            router.tiles.link_changed(port);
        });
    }

    fn view(&self) -> ChipView {
        each!(self, router => router.view())
    }

    fn watch(&mut self) -> Option<&mut Option<Box<Watch>>> {
        Some(each!(self, router => router.tiles.watch()))
    }
}

#[cfg(test)]
impl DirectRouter {
    /// Canary for the checker: sets the used credits of `vc` on a port to `used`, bypassing the
    /// link.
    pub(super) fn spoil_credits(&mut self, port: usize, vc: usize, used: u32) {
        each!(self, router => router.lanes.ends[port].spoil(vc, used));
    }

    /// Uses up all credits of a port.
    pub(super) fn fill(&mut self, port: usize) {
        each!(self, router => router.lanes.ends[port].fill());
    }
}

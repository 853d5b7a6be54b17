//! A router with its links: tiles, and the link end of each port.

use core::cell::Cell;

use phitwire_framing::flit48::{Flit, MAX_PACKET_FLITS};

use super::credits::Returned;
use super::{Aries, INPUT_FLITS, NIC_LANES};
use crate::chip::Grain;
use crate::machine::aries::link::{IdealEnd, SetProfile};
use crate::machine::aries::route::registers::{AriesRegisters, FIRST_NIC_PORT, PORTS, VCS};
use crate::machine::aries::router::grain::{Flits, Items, Packets};
use crate::machine::aries::router::pipeline::{INPUT_CYCLES, LOAD_CYCLES};
use crate::machine::aries::router::{AriesCounters, Ports, Tiles};
use crate::sim::direct::exchange::{Arrivals, Exchange};
use crate::sim::direct::model::{self, ChipView, Lanes as _, NO_SLOT, PortAccount, Stream};

/// Lanes of all ports.
const LANES: usize = Aries::CHIP_LANES;
/// Flits that can leave by a port in a window, and those that Netlink may then ask for at once, at most.
const AMPLE: u32 = NIC_LANES as u32 * 64 + 160;

/// Cycles of a window, one bit each, up to and including `now`.
#[inline]
const fn up_to(now: u32) -> u64 {
    u64::MAX >> (63 - now)
}

/// What is left of a packet that was handed to a link whole: its flits go out in the cycles in which they would have been
/// handed over one by one.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    flits: [u64; MAX_PACKET_FLITS],
    from: u8,
    to: u8,
    /// Cycle and lane of the next flit.
    cycle: u64,
    lane: u8,
}

impl Leaving {
    const NOTHING: Self = Self {
        flits: [0; MAX_PACKET_FLITS],
        from: 0,
        to: 0,
        cycle: 0,
        lane: 0,
    };

    const fn flits(&self) -> u32 {
        (self.to - self.from) as u32
    }
}

/// Places that a packet which was taken whole frees one after the other, as if its flits were taken one by one.
#[derive(Clone, Copy, Debug, Default)]
struct Freeing {
    vc: u8,
    left: u8,
    /// Cycle and lane of the next credit.
    cycle: u64,
    lane: u8,
}

/// The links of a router.
#[derive(Debug)]
struct Lanes {
    ends: Box<[IdealEnd; PORTS]>,
    /// Packets that were handed over whole, by port; empty where flits are handed over.
    leaving: Vec<Leaving>,
    /// Ports with something left of one.
    leaving_ports: u64,
    /// The same of packets that were taken whole.
    freeing: Vec<Freeing>,
    freeing_ports: u64,
    /// Where each port's link ends: the first of its lanes there.
    peers: [u32; PORTS],
    /// Ports whose link is down.
    down: u64,
    /// What goes out on each lane in this window.
    out: Box<[Arrivals<Aries>; LANES]>,
    /// Ports that have told a load in this window.
    told: u64,
    /// Ports that something came back for in this window, and what; of NIC ports there are two.
    returning: u64,
    returned: Box<[[Returned; NIC_LANES]; PORTS]>,
    /// Ports whose credits of this window have been given already.
    early: u64,
    /// The load that the other end of each port told last, before this window.
    peer_loads: [u8; PORTS],
    sent: Box<[u64; PORTS]>,
}

/// A router of either grain with its links.
#[derive(Debug)]
pub enum DirectRouter {
    /// Of flits.
    Flits(Box<Router<Flits>>),
    /// Of packets.
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

/// A router with its links.
#[derive(Debug)]
pub struct Router<I> {
    tiles: Tiles<I>,
    lanes: Lanes,
    received: u64,
    forwarded: u64,
    /// Cycles of this window in which credits arrive that somebody may wait for, and for which ports.
    wake_cycles: u64,
    wakes: Box<[u64; 64]>,
}

/// The links of a router during one window.
struct Window<'a> {
    lanes: &'a mut Lanes,
    flits: &'a mut [u64],
    size: usize,
    base: u64,
    /// Cycle of the window that runs.
    now: u32,
    /// Ports that had no room when they were asked.
    blocked: Cell<u64>,
}

impl Window<'_> {
    const fn cycle(&self) -> u64 {
        self.base + self.now as u64
    }

    /// Puts a flit on a lane of a port's link in a cycle of this window.
    #[inline]
    fn put(&mut self, port: usize, lane: usize, now: u32, flit: u64) {
        let lanes = &mut *self.lanes;
        let (first, _) = Aries::lanes(port);
        lanes.out[first + lane].phits |= 1 << now;
        let slot = lanes.peers[port] as usize + lane;
        self.flits[slot * self.size + now as usize] = flit;
    }

    /// Returns the credits of this window for packets that were taken whole.
    fn free(&mut self, mut ports: u64) {
        while ports != 0 {
            let port = ports.trailing_zeros() as usize;
            ports &= ports - 1;
            let mut freeing = self.lanes.freeing[port];
            let (first, count) = Aries::lanes(port);
            let end = self.base + self.size as u64;
            while freeing.left > 0 && freeing.cycle < end {
                let out = &mut self.lanes.out[first + usize::from(freeing.lane)];
                let now = (freeing.cycle - self.base) as u32;
                out.credits.credit(now, freeing.vc.into());
                freeing.left -= 1;
                freeing.lane += 1;
                if usize::from(freeing.lane) == count {
                    (freeing.lane, freeing.cycle) = (0, freeing.cycle + 1);
                }
            }
            let left = u64::from(freeing.left > 0);
            let all = &mut self.lanes.freeing_ports;
            *all = *all & !(1 << port) | left << port;
            self.lanes.freeing[port] = freeing;
        }
    }

    /// Sends what this window has of packets that were handed over whole.
    fn send_leaving(&mut self, mut ports: u64) {
        while ports != 0 {
            let port = ports.trailing_zeros() as usize;
            ports &= ports - 1;
            let mut leaving = self.lanes.leaving[port];
            let end = self.base + self.size as u64;
            while leaving.from < leaving.to && leaving.cycle < end {
                let flit = leaving.flits[usize::from(leaving.from)];
                let now = self.cycle();
                self.lanes.ends[port].push(Flit::new(flit), now);
                let now = (leaving.cycle - self.base) as u32;
                self.put(port, leaving.lane.into(), now, flit);
                leaving.from += 1;
                if port >= FIRST_NIC_PORT && leaving.lane == 0 {
                    leaving.lane = 1;
                    continue;
                }
                (leaving.lane, leaving.cycle) = (0, leaving.cycle + 1);
                if port < FIRST_NIC_PORT && leaving.cycle % LOAD_CYCLES == LOAD_CYCLES - 1 {
                    leaving.cycle += 1;
                }
            }
            let left = u64::from(leaving.flits() > 0);
            let all = &mut self.lanes.leaving_ports;
            *all = *all & !(1 << port) | left << port;
            self.lanes.leaving[port] = leaving;
        }
    }
}

/// Cycles before `cycle` in which a network port can send data.
const fn data_cycles(cycle: u64) -> u64 {
    cycle - cycle / LOAD_CYCLES
}

impl Ports for Window<'_> {
    #[inline]
    fn begin_cycle(&mut self, cycle: u64) {
        self.now = (cycle - self.base) as u32;
    }

    #[inline]
    fn front(&self, port: usize, vc: usize) -> Option<Flit> {
        self.lanes.ends[port].front(vc)
    }

    #[inline]
    fn pop(&mut self, port: usize, vc: usize) -> Option<Flit> {
        let flit = self.lanes.ends[port].pop(vc)?;
        let (lane, _) = Aries::lanes(port);
        let used = self.lanes.out[lane].credits.cycles >> self.now & 1;
        debug_assert!(used == 0 || port >= FIRST_NIC_PORT);
        let credits = &mut self.lanes.out[lane + used as usize].credits;
        credits.credit(self.now, vc);
        Some(flit)
    }

    fn pop_into(&mut self, port: usize, vc: usize, into: &mut [Flit]) -> usize {
        let taken = self.lanes.ends[port].pop_into(vc, into);
        let (first, _) = Aries::lanes(port);
        debug_assert_eq!(self.lanes.freeing[port].left, 0);
        self.lanes.freeing[port] = Freeing {
            vc: vc as u8,
            left: taken as u8,
            cycle: self.cycle(),
            // Behind a packet of a single flit in the same cycle.
            lane: (self.lanes.out[first].credits.cycles >> self.now & 1) as u8,
        };
        debug_assert!(usize::from(self.lanes.freeing[port].lane) < Aries::lanes(port).1);
        self.free(1 << port);
        taken
    }

    #[inline]
    fn can_begin(&self, port: usize, vc: usize, flits: usize) -> bool {
        if self.lanes.down >> port & 1 != 0 {
            return false;
        }
        let fits = self.lanes.ends[port].has_credits(vc, flits);
        if !fits {
            self.blocked.set(self.blocked.get() | 1 << port);
        }
        fits
    }

    #[inline]
    fn is_active(&self, port: usize) -> bool {
        self.lanes.peers[port] != NO_SLOT && self.lanes.down >> port & 1 == 0
    }

    #[inline]
    fn push(&mut self, port: usize, flit: Flit) {
        let now = self.cycle();
        self.lanes.ends[port].push(flit, now);
        let (first, _) = Aries::lanes(port);
        let lane = (self.lanes.out[first].phits >> self.now & 1) as usize;
        debug_assert!(lane == 0 || port >= FIRST_NIC_PORT);
        self.put(port, lane, self.now, flit.bits());
    }

    fn push_packet(&mut self, port: usize, packet: &[Flit]) {
        let (first, _) = Aries::lanes(port);
        let mut leaving = Leaving {
            to: packet.len() as u8,
            cycle: self.cycle(),
            // Behind a packet of a single flit in the same cycle.
            lane: (self.lanes.out[first].phits >> self.now & 1) as u8,
            ..Leaving::NOTHING
        };
        for (place, flit) in leaving.flits.iter_mut().zip(packet) {
            *place = flit.bits();
        }
        debug_assert_eq!(self.lanes.leaving[port].flits(), 0);
        debug_assert!(usize::from(leaving.lane) < Aries::lanes(port).1);
        self.lanes.leaving[port] = leaving;
        self.send_leaving(1 << port);
    }

    #[inline]
    fn backlog_flits(&self, port: usize) -> u32 {
        let Some(leaving) = self.lanes.leaving.get(port) else {
            return 0;
        };
        // Those of this window are in it already.
        let next = data_cycles(self.cycle() + 1);
        leaving.flits() + data_cycles(leaving.cycle).saturating_sub(next) as u32
    }

    #[inline]
    fn far_flits(&self, port: usize) -> u32 {
        let end = &self.lanes.ends[port];
        if self.lanes.early >> port & 1 == 0 {
            return end.far_flits(self.cycle(), 0);
        }
        // Credits that have been given and come only later in this window.
        let later = !up_to(self.now);
        let lanes = self.lanes.returned[port].iter();
        let early = lanes.map(|lane| (lane.cycles & later).count_ones()).sum();
        end.far_flits(self.cycle(), early)
    }

    #[inline]
    fn peer_load(&self, port: usize) -> u8 {
        let before = self.lanes.peer_loads[port];
        if self.lanes.returning >> port & 1 == 0 {
            return before;
        }
        self.lanes.returned[port][0]
            .load(self.now)
            .unwrap_or(before)
    }

    #[inline]
    fn set_load(&mut self, port: usize, load: u8) {
        let (lane, _) = Aries::lanes(port);
        self.lanes.out[lane].credits.tell(self.now, load);
        self.lanes.told |= 1 << port;
    }
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
            told: 0,
            returning: 0,
            returned: Box::new([[Returned::default(); NIC_LANES]; PORTS]),
            early: 0,
            peer_loads: [0; PORTS],
            sent: Box::new([0; PORTS]),
        }
    }

    /// Flits in input buffers.
    fn queued(&self) -> u64 {
        self.ends.iter().map(|end| u64::from(end.flits())).sum()
    }

    /// Flits that were handed to links and are not on them.
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

    /// Joins `port` to the link end of that slot, and the next for its second lane; the link takes `cycles` cycles.
    pub(super) fn connect(&mut self, port: usize, slot: u32, cycles: u32) {
        let lanes = each!(self, router => &mut router.lanes);
        lanes.peers[port] = slot;
        // There, through the other end's input stages, and back.
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

    /// Puts the window's flits into their queues and tells the core when each will be there.
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
            self.take_flits(port, base, cycles, flits, size);
            self.take_returned(port, returned);
        }
    }

    #[inline]
    fn take_flits(
        &mut self,
        port: usize,
        base: u64,
        cycles: [u64; NIC_LANES],
        flits: &[u64],
        size: usize,
    ) {
        let mut left = cycles[0] | cycles[1];
        while left != 0 {
            let cycle = left.trailing_zeros() as usize;
            left &= left - 1;
            for lane in 0..NIC_LANES {
                if cycles[lane] >> cycle & 1 == 0 {
                    continue;
                }
                let flit = Flit::new(flits[lane * size + cycle]);
                if let Some(vc) = self.lanes.ends[port].receive(flit) {
                    self.tiles.announce(base + cycle as u64, vc, 1 << port);
                }
                self.received += 1;
            }
        }
    }

    /// Credits that nobody can be waiting for in this window are given at once; the others each in its cycle.
    fn take_returned(&mut self, port: usize, returned: [Returned; NIC_LANES]) {
        let cycles = returned[0].cycles | returned[1].cycles;
        if cycles == 0 && !returned[0].has_loads() {
            return;
        }
        self.lanes.returning |= 1 << port;
        self.lanes.returned[port] = returned;
        let end = &mut self.lanes.ends[port];
        if end.is_ample(AMPLE) {
            self.lanes.early |= 1 << port;
            for lane in returned {
                let mut cycles = lane.cycles;
                while cycles != 0 {
                    end.give(lane.vc(cycles.trailing_zeros()));
                    cycles &= cycles - 1;
                }
            }
            return;
        }
        self.wake_cycles |= cycles;
        let mut left = cycles;
        while left != 0 {
            self.wakes[left.trailing_zeros() as usize] |= 1 << port;
            left &= left - 1;
        }
    }

    /// Gives the credits of `cycle` of the window and wakes who waited for them.
    fn give(tiles: &mut Tiles<I>, window: &mut Window<'_>, cycle: usize, mut ports: u64) {
        while ports != 0 {
            let port = ports.trailing_zeros() as usize;
            ports &= ports - 1;
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

    /// Hands what the core did in this window to the links.
    fn send(&mut self, moved: u64, exchange: &mut Exchange<Aries>) {
        let lanes = &mut self.lanes;
        let mut returning = core::mem::take(&mut lanes.returning);
        while returning != 0 {
            let port = returning.trailing_zeros() as usize;
            returning &= returning - 1;
            if let Some(load) = lanes.returned[port][0].load(exchange.window as u32 - 1) {
                lanes.peer_loads[port] = load;
            }
        }
        lanes.early = 0;
        let mut moved = moved | self.tiles.take_moved() | core::mem::take(&mut lanes.told);
        while moved != 0 {
            let port = moved.trailing_zeros() as usize;
            moved &= moved - 1;
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
            // Who waited before this window waits in it as well, as far as credits come.
            blocked: Cell::new(u64::MAX),
        };
        let (leaving, freeing) = (window.lanes.leaving_ports, window.lanes.freeing_ports);
        window.send_leaving(leaving);
        window.free(freeing);
        let mut wakes = core::mem::take(&mut self.wake_cycles);
        while wakes != 0 {
            let cycle = wakes.trailing_zeros() as usize;
            wakes &= wakes - 1;
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
            let [rows, columns] = self.tiles.flits_by_stage();
            let columns = columns + self.lanes.leaving();
            [self.phits_inside() - rows - columns, rows, columns]
        };
        let overflows = self.lanes.ends.iter().map(|end| u64::from(end.refused()));
        ChipView {
            phit_hops: self.forwarded,
            overflows: overflows.sum(),
            ..view(counters, self.tiles.stalls(), phits_by_stage)
        }
    }
}

/// What a router says of itself, whatever its links.
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
        choices: [counters.minimal_decisions, counters.non_minimal_decisions],
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
        let mut queued = core::array::from_fn(|vc| end.len(vc % VCS));
        if let Some(freeing) = lanes.freeing.get(port) {
            // Their places are not free yet.
            queued[usize::from(freeing.vc)] += u32::from(freeing.left);
        }
        PortAccount {
            credits: end.used().map(|used| INPUT_FLITS.wrapping_sub(used)),
            queued,
            coming: Stream { vc, left },
        }
    }

    fn sent(&self) -> &[u64] {
        &self.lanes().sent[..]
    }

    fn phits_inside(&self) -> u64 {
        each!(self, router => router.phits_inside())
    }

    fn set_link(&mut self, cycle: u64, port: usize, up: bool) {
        each!(self, router => {
            // What happened before does not know of it.
            router.tiles.run_until(cycle, &mut NoPorts);
            let down = &mut router.lanes.down;
            *down = *down & !(1 << port) | u64::from(!up) << port;
            router.tiles.link_changed(port);
        });
    }

    fn view(&self) -> ChipView {
        each!(self, router => router.view())
    }
}

#[cfg(test)]
impl DirectRouter {
    /// Says that a port's virtual channel uses `used` credits, without any link knowing: a canary for the checker.
    pub(super) fn spoil_credits(&mut self, port: usize, vc: usize, used: u32) {
        each!(self, router => router.lanes.ends[port].spoil(vc, used));
    }

    /// Takes all credits of a port away.
    pub(super) fn fill(&mut self, port: usize) {
        each!(self, router => router.lanes.ends[port].fill());
    }
}

/// Links on which nothing happens: a core that has rested runs up to the present.
struct NoPorts;

impl Ports for NoPorts {
    fn front(&self, _: usize, _: usize) -> Option<Flit> {
        None
    }
    fn pop(&mut self, _: usize, _: usize) -> Option<Flit> {
        None
    }
    fn can_begin(&self, _: usize, _: usize, _: usize) -> bool {
        false
    }
    fn is_active(&self, _: usize) -> bool {
        true
    }
    fn push(&mut self, _: usize, _: Flit) {}
}

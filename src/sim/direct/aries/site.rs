//! A router with its links: a core, the input buffers in front of it and the credits behind it.

use core::cell::Cell;

use phitwire_framing::flit48::Flit;

use super::credits::{Returned, Room};
use super::flight::Flight;
use super::queues::Queues;
use super::{Aries, NIC_LANES};
use crate::router::aries::registers::{AriesRegisters, FIRST_NIC_PORT, PORTS, VCS};
use crate::router::aries::{Core, Ports};
use crate::sim::direct::exchange::{Arrivals, Exchange};
use crate::sim::direct::family::{self, ChipView, NO_SLOT, Parts, PortAccount, Stream};

/// Lanes of all ports.
const LANES: usize = Aries::CHIP_LANES;
/// Flits that can leave by a port in a window, and those that Netlink may then ask for at once, at most.
const AMPLE: usize = NIC_LANES * 64 + 160;

/// Cycles of a window, one bit each, up to and including `now`.
#[inline]
const fn up_to(now: u32) -> u64 {
    u64::MAX >> (63 - now)
}

/// The links of a router.
#[derive(Debug)]
struct Lanes {
    queues: Queues,
    /// Packet that comes in and packet that goes out at each port.
    coming: [Stream; PORTS],
    going: [Stream; PORTS],
    rooms: [Room; PORTS],
    flights: [Flight; PORTS],
    /// Where each port's link ends: the first of its lanes there.
    peers: [u32; PORTS],
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

/// A router with its links.
#[derive(Debug)]
pub struct Site {
    core: Core,
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

impl Ports for Window<'_> {
    #[inline]
    fn begin_cycle(&mut self, cycle: u64) {
        self.now = (cycle - self.base) as u32;
    }

    #[inline]
    fn front(&self, port: usize, vc: usize) -> Option<Flit> {
        self.lanes.queues.front(port, vc).map(Flit::new)
    }

    #[inline]
    fn pop(&mut self, port: usize, vc: usize) -> Option<Flit> {
        let flit = self.lanes.queues.pop(port, vc)?;
        let (lane, _) = Aries::lanes(port);
        let used = self.lanes.out[lane].credits.cycles >> self.now & 1;
        debug_assert!(used == 0 || port >= FIRST_NIC_PORT);
        let credits = &mut self.lanes.out[lane + used as usize].credits;
        credits.credit(self.now, vc);
        Some(Flit::new(flit))
    }

    #[inline]
    fn can_begin(&self, port: usize, vc: usize, flits: usize) -> bool {
        let fits = self.lanes.rooms[port].fits(vc, flits);
        if !fits {
            self.blocked.set(self.blocked.get() | 1 << port);
        }
        fits
    }

    #[inline]
    fn is_active(&self, port: usize) -> bool {
        self.lanes.peers[port] != NO_SLOT
    }

    #[inline]
    fn push(&mut self, port: usize, flit: Flit) {
        let lanes = &mut *self.lanes;
        let vc = Aries::follow(&mut lanes.going[port], flit.bits());
        lanes.rooms[port].take(vc);
        lanes.flights[port].sent(self.base + u64::from(self.now));
        let (first, _) = Aries::lanes(port);
        let lane = (lanes.out[first].phits >> self.now & 1) as usize;
        debug_assert!(lane == 0 || port >= FIRST_NIC_PORT);
        lanes.out[first + lane].phits |= 1 << self.now;
        let slot = lanes.peers[port] as usize + lane;
        self.flits[slot * self.size + self.now as usize] = flit.bits();
    }

    #[inline]
    fn far_flits(&self, port: usize) -> u32 {
        let flits = self.lanes.rooms[port].all();
        let flying = self.lanes.flights[port].flits(self.base + u64::from(self.now));
        if self.lanes.early >> port & 1 == 0 {
            return flits.saturating_sub(flying);
        }
        // Credits that have been given and come only later in this window.
        let later = !up_to(self.now);
        let lanes = &self.lanes.returned[port];
        let flits = flits
            + lanes
                .iter()
                .map(|lane| (lane.cycles & later).count_ones())
                .sum::<u32>();
        flits.saturating_sub(flying)
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
    fn new() -> Self {
        Self {
            queues: Queues::new(),
            coming: [Stream::default(); PORTS],
            going: [Stream::default(); PORTS],
            rooms: [Room::default(); PORTS],
            flights: [Flight::default(); PORTS],
            peers: [NO_SLOT; PORTS],
            out: Box::new([Arrivals::default(); LANES]),
            told: 0,
            returning: 0,
            returned: Box::new([[Returned::default(); NIC_LANES]; PORTS]),
            early: 0,
            peer_loads: [0; PORTS],
            sent: Box::new([0; PORTS]),
        }
    }
}

impl Site {
    pub(super) fn new(registers: AriesRegisters, seed: u64) -> Self {
        let mut core = Core::new(registers);
        core.seed(seed);
        Self {
            core,
            lanes: Lanes::new(),
            received: 0,
            forwarded: 0,
            wake_cycles: 0,
            wakes: Box::new([0; 64]),
        }
    }

    /// Joins `port` to the link end of that slot, and the next for its second lane; the link takes so many cycles.
    pub(super) fn connect(&mut self, port: usize, slot: u32, cycles: u32) {
        self.lanes.peers[port] = slot;
        self.lanes.flights[port] = Flight::over(cycles);
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
                let flit = flits[lane * size + cycle];
                let vc = Aries::follow(&mut self.lanes.coming[port], flit);
                self.lanes.queues.push(port, vc, flit);
                self.core.announce(base + cycle as u64, vc, 1 << port);
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
        let room = &mut self.lanes.rooms[port];
        if room.is_ample(AMPLE) {
            self.lanes.early |= 1 << port;
            returned.iter().for_each(|lane| room.give_all(lane));
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
    fn give(core: &mut Core, window: &mut Window<'_>, cycle: usize, mut ports: u64) {
        while ports != 0 {
            let port = ports.trailing_zeros() as usize;
            ports &= ports - 1;
            for lane in window.lanes.returned[port] {
                if lane.cycles >> cycle & 1 != 0 {
                    window.lanes.rooms[port].give(lane.vc(cycle as u32));
                }
            }
            if window.blocked.get() >> port & 1 != 0 {
                window.blocked.set(window.blocked.get() & !(1 << port));
                core.output_changed(port);
            }
        }
    }

    /// Hands what the core did in this window to the links.
    fn send(&mut self, exchange: &mut Exchange<Aries>) {
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
        let mut moved = self.core.take_moved() | core::mem::take(&mut lanes.told);
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
}

impl family::Site<Aries> for Site {
    fn run(&mut self, chip: usize, base: u64, exchange: &mut Exchange<Aries>) -> bool {
        let size = exchange.window;
        self.core.run_until(base, &mut NoPorts);
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
        let mut wakes = core::mem::take(&mut self.wake_cycles);
        while wakes != 0 {
            let cycle = wakes.trailing_zeros() as usize;
            wakes &= wakes - 1;
            self.core.run_until(base + cycle as u64, &mut window);
            let ports = core::mem::take(&mut self.wakes[cycle]);
            Self::give(&mut self.core, &mut window, cycle, ports);
        }
        self.core.run_until(base + size as u64, &mut window);
        self.send(exchange);
        self.core.next_cycle().is_some()
    }

    fn peer(&self, port: usize) -> Option<u32> {
        Some(self.lanes.peers[port]).filter(|&slot| slot != NO_SLOT)
    }

    fn account(&self, port: usize) -> PortAccount {
        PortAccount {
            credits: self.lanes.rooms[port].left(),
            queued: core::array::from_fn(|vc| self.lanes.queues.len(port, vc % VCS)),
            coming: self.lanes.coming[port],
        }
    }

    fn sent(&self) -> &[u64] {
        &self.lanes.sent[..]
    }

    fn phits_inside(&self) -> u64 {
        self.core.flits_inside() + self.lanes.queues.all()
    }

    fn view(&self) -> ChipView {
        let counters = self.core.counters();
        let phits_by_stage = if self.received == self.forwarded {
            [0; 3]
        } else {
            let [rows, columns] = self.core.flits_by_stage();
            [self.phits_inside() - rows - columns, rows, columns]
        };
        ChipView {
            phits_by_stage,
            stalls: self.core.stalls(),
            phit_hops: self.forwarded,
            overflows: self.lanes.queues.overflows(),
            rule_violations: 0,
            refused: counters.unroutable_packets
                + counters.no_live_port_packets
                + counters.headless_flits
                + counters.dead_port_packets
                + counters.stalled_port_packets,
            choices: [counters.minimal_decisions, counters.non_minimal_decisions],
        }
    }
}

#[cfg(test)]
impl Site {
    /// Takes credits of a port's virtual channel away behind everybody's back, or gives some.
    pub(super) fn spoil_credits(&mut self, port: usize, vc: usize, used: u16) {
        self.lanes.rooms[port].spoil(vc, used);
    }

    /// Takes all credits of a port away.
    pub(super) fn fill(&mut self, port: usize) {
        self.lanes.rooms[port] = Room::full();
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

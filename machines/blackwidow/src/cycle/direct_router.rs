use phitwire_framing::yarc::packet::Vc;
use phitwire_framing::yarc::phit::Phit;

use super::BlackWidow;
use super::length::Pace;
use super::slow::Slow;
use crate::link::IdealEnds;
use crate::route::registers::{ChipRegisters, PORTS};
use crate::router::{Core, Ports};
use phitwire::device::pipeline::Stage;
use phitwire::kit::bits;
use phitwire::sim::direct::exchange::{Exchange, Set};
use phitwire::sim::direct::model::{self, ChipView, NO_SLOT, PortAccount, Stream};
use phitwire::trace::Watch;

type Arrivals = phitwire::sim::direct::exchange::Arrivals<BlackWidow>;

#[derive(Clone, Debug)]
struct Lanes {
    ends: IdealEnds<PORTS>,
    /// Phits in an input queue that arrive later in this window, as a mask of cycles.
    coming: Box<[u64; 2 * PORTS]>,
    /// The link end at the other side of each port.
    peers: Box<[u32; PORTS]>,
    /// Ports with a failed link.
    down: u64,
    out: Box<[Arrivals; PORTS]>,
    sent: Box<[u64; PORTS]>,
    /// Links that cannot accept a phit in every cycle, if there are any.
    slow: Option<Box<Slow>>,
}

/// A chip with its links: a router core, and the link end of each port.
#[derive(Debug)]
pub struct DirectRouter {
    core: Core,
    lanes: Lanes,
    received: u64,
    forwarded: u64,
    /// Cycles of this window with credits for which a packet may wait, and the ports of each cycle.
    wake_cycles: u64,
    came: u64,
    wakes: Box<[[u64; 2]; 64]>,
}

struct Window<'a> {
    lanes: &'a mut Lanes,
    phits: &'a mut [u32],
    size: usize,
    base: u64,
    /// Current cycle of the window.
    now: u32,
}

impl Ports for Window<'_> {
    #[inline]
    fn begin_cycle(&mut self, cycle: u64) {
        self.now = (cycle - self.base) as u32;
    }
    #[inline]
    fn front(&self, port: usize, vc: usize) -> Option<Phit> {
        self.lanes.ends.front(port, Vc::from_index(vc))
    }
    #[inline]
    fn second(&self, port: usize, vc: usize) -> Option<Phit> {
        // Phits are queued at the start of the window, but become visible in their cycle.
        let coming = self.lanes.coming[port * 2 + vc] >> self.now >> 1;
        let (ends, vc) = (&self.lanes.ends, Vc::from_index(vc));
        if ends.len(port, vc) < 2 + coming.count_ones() {
            return None;
        }
        ends.second(port, vc)
    }
    /// Includes phits that arrive later in this window, which does no harm to inspection.
    fn nth(&self, port: usize, vc: usize, behind: usize) -> Option<Phit> {
        self.lanes.ends.nth(port, Vc::from_index(vc), behind)
    }
    #[inline]
    fn pop(&mut self, port: usize, vc: usize) -> Option<Phit> {
        let phit = self.lanes.ends.pop(port, Vc::from_index(vc))?;
        self.lanes.out[port].credits[vc] |= 1 << self.now;
        Some(phit)
    }
    #[inline]
    fn can_begin(&self, port: usize, vc: usize) -> bool {
        self.lanes.ends.credits(port).has_room(Vc::from_index(vc))
            && self.lanes.down >> port & 1 == 0
            && match &self.lanes.slow {
                None => true,
                Some(slow) => slow.can_begin(port, self.base + u64::from(self.now)),
            }
    }
    #[inline]
    fn is_active(&self, port: usize) -> bool {
        self.lanes.peers[port] != NO_SLOT && self.lanes.down >> port & 1 == 0
    }
    #[inline]
    fn push(&mut self, port: usize, phit: Phit) {
        let lanes = &mut *self.lanes;
        let vc = lanes.ends.push(port, phit);
        let mut leaves = self.now as usize;
        if let Some(slow) = lanes.slow.as_mut().filter(|slow| slow.is_slow(port)) {
            let (now, end) = (self.base + leaves as u64, self.base + self.size as u64);
            match slow.push(port, phit.to_bits(), vc, now, end) {
                Some(cycle) => leaves = (cycle - self.base) as usize,
                None => return,
            }
        }
        lanes.out[port].phits |= 1 << leaves;
        self.phits[lanes.peers[port] as usize * self.size + leaves] = phit.to_bits();
    }
}

impl Window<'_> {
    /// Puts waiting phits that leave in this window on slow links, and returns the ports.
    fn take_waiting(&mut self) -> u64 {
        let lanes = &mut *self.lanes;
        let Some(slow) = &mut lanes.slow else {
            return 0;
        };
        let (end, ports) = (self.base + self.size as u64, slow.ports());
        for port in bits(ports) {
            while let Some((leaves, phit)) = slow.pop(port, end) {
                let cycle = (leaves - self.base) as usize;
                lanes.out[port].phits |= 1 << cycle;
                self.phits[lanes.peers[port] as usize * self.size + cycle] = phit;
            }
        }
        ports
    }
}

impl Lanes {
    fn new(max_packet_phits: u8) -> Self {
        Self {
            ends: IdealEnds::for_packets(max_packet_phits),
            coming: Box::new([0; 2 * PORTS]),
            peers: Box::new([NO_SLOT; PORTS]),
            down: 0,
            out: Box::new([Arrivals::default(); PORTS]),
            sent: Box::new([0; PORTS]),
            slow: None,
        }
    }
}

impl DirectRouter {
    /// A chip whose links accept packets of up to `max_packet_phits` phits.
    pub(crate) fn new(registers: ChipRegisters, max_packet_phits: u8) -> Self {
        Self {
            core: Core::new(registers),
            lanes: Lanes::new(max_packet_phits),
            received: 0,
            forwarded: 0,
            wake_cycles: 0,
            came: 0,
            wakes: Box::new([[0; 2]; 64]),
        }
    }

    pub(super) fn connect(&mut self, port: usize, slot: u32, pace: Pace) {
        self.lanes.peers[port] = slot;
        if pace.is_slow() {
            let slow = self.lanes.slow.get_or_insert_with(Slow::new);
            slow.connect(port, pace);
        }
    }

    fn run_window(&mut self, chip: usize, base: u64, exchange: &mut Exchange<BlackWidow>) -> bool {
        let size = exchange.window;
        self.core.run_until(base, &mut NoPorts);
        self.take_arrivals(chip, base, size, &mut exchange.read);
        let mut window = Window {
            lanes: &mut self.lanes,
            phits: &mut exchange.write.phits,
            size,
            base,
            now: 0,
        };
        let mut waited = 0;
        let mut wakes = core::mem::take(&mut self.wake_cycles);
        if window.lanes.slow.is_some() {
            waited = window.take_waiting();
            // Check slow links in every cycle: it is not known in advance when they become free.
            wakes = u64::MAX >> (64 - size);
        }
        for cycle in bits(wakes) {
            self.core.run_until(base + cycle as u64, &mut window);
            if let Some(slow) = &mut window.lanes.slow {
                for port in bits(slow.freed(base + cycle as u64)) {
                    self.core.output_changed(port);
                }
            }
            for vc in 0..2 {
                for port in bits(core::mem::take(&mut self.wakes[cycle][vc])) {
                    if window.lanes.ends.give(port, Vc::from_index(vc)) {
                        self.core.output_changed(port);
                    }
                }
            }
        }
        self.core.run_until(base + size as u64, &mut window);
        self.send(exchange, waited);
        let is_busy = self.lanes.slow.as_ref().is_some_and(|slow| slow.is_busy());
        self.core.next_cycle().is_some() || is_busy
    }

    /// Queues the window's phits, and announces to the core when each arrives.
    fn take_arrivals(&mut self, chip: usize, base: u64, size: usize, read: &mut Set<BlackWidow>) {
        for port in bits(core::mem::take(&mut read.chip_ports[chip])) {
            let slot = Exchange::<BlackWidow>::chip_slot(chip, port) as usize;
            let arrivals = core::mem::take(&mut read.arrivals[slot]);
            let phits = &read.phits[slot * size..(slot + 1) * size];
            self.take_phits(port, base, arrivals.phits, phits);
            for (vc, cycles) in Vc::ALL.into_iter().zip(arrivals.credits) {
                self.take_credits(port, vc, size, cycles);
            }
        }
    }

    #[inline]
    fn take_phits(&mut self, port: usize, base: u64, cycles: u64, phits: &[u32]) {
        if cycles == 0 {
            return;
        }
        self.came |= 1 << port;
        self.received += u64::from(cycles.count_ones());
        let coming = self.lanes.ends.receive(port, cycles, phits);
        for (vc, cycles) in coming.into_iter().enumerate() {
            self.lanes.coming[port * 2 + vc] = cycles;
            let come = bits(cycles).map(|cycle| base + cycle as u64);
            self.core.watch_announced(port, vc, come);
            for cycle in bits(cycles) {
                self.core.announce(base + cycle as u64, vc, 1 << port);
            }
        }
    }

    /// Adds credits at once if no packet can wait for them in this window, otherwise each in its
    /// cycle.
    #[inline]
    fn take_credits(&mut self, port: usize, vc: Vc, size: usize, cycles: u64) {
        if cycles == 0 {
            return;
        }
        let credits = self.lanes.ends.credits_mut(port);
        if credits.is_ample(vc, size as u32) {
            credits.give(vc, cycles.count_ones());
            return;
        }
        self.wake_cycles |= cycles;
        for cycle in bits(cycles) {
            self.wakes[cycle][vc.index()] |= 1 << port;
        }
    }

    /// Passes the core's output of this window, and phits that waited at ports, to the links.
    fn send(&mut self, exchange: &mut Exchange<BlackWidow>, waited: u64) {
        for port in bits(core::mem::take(&mut self.came)) {
            self.lanes.coming[port * 2] = 0;
            self.lanes.coming[port * 2 + 1] = 0;
        }
        for port in bits(self.core.take_moved() | waited) {
            let out = core::mem::take(&mut self.lanes.out[port]);
            let phits = u64::from(out.phits.count_ones());
            self.forwarded += phits;
            self.lanes.sent[port] += phits;
            exchange.send(self.lanes.peers[port], out);
        }
    }

    /// Number of phits that wait for a slow link, per virtual channel.
    fn waiting(&self, port: usize) -> [u32; 2] {
        let slow = self.lanes.slow.as_ref();
        slow.map_or([0; 2], |slow| slow.waiting(port))
    }
}

impl model::DirectRouter<BlackWidow> for DirectRouter {
    fn run(&mut self, chip: usize, base: u64, exchange: &mut Exchange<BlackWidow>) -> bool {
        self.run_window(chip, base, exchange)
    }

    fn peer(&self, port: usize) -> Option<u32> {
        Some(self.lanes.peers[port]).filter(|&slot| slot != NO_SLOT)
    }

    fn account(&self, port: usize) -> PortAccount {
        let ends = &self.lanes.ends;
        let mut account = PortAccount {
            coming: Stream {
                vc: ends.coming(port) as u8,
                left: 0,
            },
            ..PortAccount::default()
        };
        for vc in Vc::ALL {
            // A phit that waits for its link counts as unsent.
            let waiting = self.waiting(port)[vc.index()];
            account.credits[vc.index()] = ends.credits(port).available(vc) + waiting;
            account.queued[vc.index()] = ends.len(port, vc);
        }
        account
    }

    fn sent(&self) -> &[u64] {
        &self.lanes.sent[..]
    }

    fn phits_inside(&self) -> u64 {
        let waiting = (0..PORTS).map(|port| self.waiting(port).iter().sum::<u32>());
        self.core.phits_inside() + self.lanes.ends.queued() + u64::from(waiting.sum::<u32>())
    }

    fn stages(&self, ports: u64) -> Vec<Stage> {
        let [_, row, column] = self.core.stalls();
        let [rows, columns, maintenance] = self.core.stages(ports);
        vec![rows.stalls(row), columns.stalls(column), maintenance]
    }

    fn set_link(&mut self, cycle: u64, port: usize, up: bool) {
        // Run up to this cycle first: earlier cycles must not see the change.
        self.core.run_until(cycle, &mut NoPorts);
        let down = &mut self.lanes.down;
        *down = *down & !(1 << port) | u64::from(!up) << port;
        self.core.output_changed(port);
    }

    fn watch(&mut self) -> Option<&mut Option<Box<Watch>>> {
        Some(self.core.watch())
    }

    fn view(&self) -> ChipView {
        let phits_by_stage = if self.received == self.forwarded {
            [0; 3]
        } else {
            let [rows, columns] = self.core.phits_by_stage();
            [self.lanes.ends.queued(), rows, columns]
        };
        ChipView {
            phit_hops: self.forwarded,
            overflows: self.lanes.ends.refused(),
            ..view(&self.core, phits_by_stage)
        }
    }
}

/// The state of a core for views, with direct or encoded links.
pub(super) fn view(core: &Core, phits_by_stage: [u64; 3]) -> ChipView {
    let counters = core.counters();
    ChipView {
        phits_by_stage,
        stalls: core.stalls(),
        phit_hops: counters.phits_forwarded,
        overflows: 0,
        rule_violations: counters.up_down_violations,
        refused: counters.unroutable_packets
            + counters.virtual_router_violations
            + counters.headless_packets
            + counters.dead_port_packets,
        discarded: [
            counters.unroutable_packets
                + counters.virtual_router_violations
                + counters.up_down_violations
                + counters.dead_port_packets
                + counters.stalled_port_packets,
            counters.swallowed_phits + counters.dead_port_phits + counters.stalled_port_phits,
        ],
        choices: [0; 2],
    }
}

#[cfg(test)]
impl DirectRouter {
    pub(crate) fn credits(&self, port: usize, vc: usize) -> u32 {
        self.lanes.ends.credits(port).available(Vc::from_index(vc))
    }

    /// Corrupts the credits of a port's virtual channel without the knowledge of either end.
    pub(crate) fn spoil_credits(&mut self, port: usize, vc: usize, credits: u32) {
        let ends = &mut self.lanes.ends;
        ends.credits_mut(port).spoil(Vc::from_index(vc), credits);
    }

    /// Drops the last phit of an input queue. Returns whether there was one.
    pub(crate) fn lose_phit(&mut self) -> bool {
        self.lanes.ends.lose_last()
    }
}

/// Links without events, for running an idle core up to the present.
struct NoPorts;

impl Ports for NoPorts {
    fn front(&self, _: usize, _: usize) -> Option<Phit> {
        None
    }
    fn second(&self, _: usize, _: usize) -> Option<Phit> {
        None
    }
    fn pop(&mut self, _: usize, _: usize) -> Option<Phit> {
        None
    }
    fn can_begin(&self, _: usize, _: usize) -> bool {
        false
    }
    fn is_active(&self, _: usize) -> bool {
        true
    }
    fn push(&mut self, _: usize, _: Phit) {}
}

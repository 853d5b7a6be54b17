//! The links of a router during a window, as its tiles use them.

use core::cell::Cell;

use phitwire_framing::aries::flit::{Flit, MAX_PACKET_FLITS};

use super::{Aries, Lanes};
use crate::route::registers::FIRST_NIC_PORT;
use crate::router::Ports;
use crate::router::pace::Pace;
use phitwire::kit::bits;
use phitwire::sim::direct::exchange::Arrivals;
use phitwire::sim::direct::model::{Lanes as _, NO_SLOT};

/// The cycles of a window up to and including `now`, one bit each.
#[inline]
const fn up_to(now: u32) -> u64 {
    u64::MAX >> (63 - now)
}

/// The rest of a packet that was handed to a link whole. Its flits leave in the same cycles as if
/// they were handed over one by one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    pub(super) flits: [u64; MAX_PACKET_FLITS],
    pub(super) from: u8,
    pub(super) to: u8,
    /// Cycle and lane of the next flit.
    pub(super) cycle: u64,
    pub(super) lane: u8,
}

impl Leaving {
    pub(super) const NOTHING: Self = Self {
        flits: [0; MAX_PACKET_FLITS],
        from: 0,
        to: 0,
        cycle: 0,
        lane: 0,
    };

    pub(super) const fn flits(&self) -> u32 {
        (self.to - self.from) as u32
    }
}

/// Slots of a packet that was taken whole. They are freed in the same cycles as if its flits were
/// taken one by one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Freeing {
    pub(super) vc: u8,
    pub(super) left: u8,
    /// Cycle and lane of the next credit.
    pub(super) cycle: u64,
    pub(super) lane: u8,
}

pub(super) struct Window<'a> {
    pub(super) lanes: &'a mut Lanes,
    pub(super) flits: &'a mut [u64],
    pub(super) size: usize,
    pub(super) base: u64,
    pub(super) now: u32,
    /// Ports found to have no room.
    pub(super) blocked: Cell<u64>,
}

impl Window<'_> {
    const fn cycle(&self) -> u64 {
        self.base + self.now as u64
    }

    /// The first unused lane of a port in this cycle.
    #[inline]
    fn next_lane(&self, port: usize, used: impl Fn(&Arrivals<Aries>) -> u64) -> usize {
        let (first, count) = Aries::lanes(port);
        let lanes = self.lanes.out[first..first + count].iter();
        let lane = lanes
            .take_while(|out| used(out) >> self.now & 1 != 0)
            .count();
        debug_assert!(lane < count, "more lanes than the width of the port");
        lane
    }

    /// Sends a flit on a lane of a port's link in a cycle of this window.
    #[inline]
    fn put(&mut self, port: usize, lane: usize, now: u32, flit: u64) {
        let lanes = &mut *self.lanes;
        let (first, _) = Aries::lanes(port);
        lanes.out[first + lane].phits |= 1 << now;
        let slot = lanes.peers[port] as usize + lane;
        self.flits[slot * self.size + now as usize] = flit;
    }

    /// Returns the credits that become due in this window for packets that were taken whole.
    pub(super) fn free(&mut self, ports: u64) {
        for port in bits(ports) {
            let mut freeing = self.lanes.freeing[port];
            let (first, _) = Aries::lanes(port);
            let end = self.base + self.size as u64;
            while freeing.left > 0 && freeing.cycle < end {
                let out = &mut self.lanes.out[first + usize::from(freeing.lane)];
                let now = (freeing.cycle - self.base) as u32;
                out.credits.credit(now, freeing.vc.into());
                freeing.left -= 1;
                freeing.lane += 1;
                if u64::from(freeing.lane) >= slots_in(port, freeing.cycle) {
                    (freeing.lane, freeing.cycle) = (0, freeing.cycle + 1);
                }
            }
            let left = u64::from(freeing.left > 0);
            let all = &mut self.lanes.freeing_ports;
            *all = *all & !(1 << port) | left << port;
            self.lanes.freeing[port] = freeing;
        }
    }

    /// Sends the flits that become due in this window for packets that were handed over whole.
    pub(super) fn send_leaving(&mut self, ports: u64) {
        for port in bits(ports) {
            let mut leaving = self.lanes.leaving[port];
            let end = self.base + self.size as u64;
            let pace = self.lanes.pace(port);
            let mut slot = pace.before(leaving.cycle) + u64::from(leaving.lane);
            while leaving.from < leaving.to && leaving.cycle < end {
                let flit = leaving.flits[usize::from(leaving.from)];
                let now = self.cycle();
                self.lanes.ends[port].push(Flit::new(flit), now);
                let now = (leaving.cycle - self.base) as u32;
                self.put(port, leaving.lane.into(), now, flit);
                leaving.from += 1;
                slot += 1;
                leaving.cycle = pace.cycle_of(slot);
                // Links between routers have one lane, and divisions are slow.
                leaving.lane = match port < FIRST_NIC_PORT {
                    true => 0,
                    false => (slot - pace.before(leaving.cycle)) as u8,
                };
            }
            let left = u64::from(leaving.flits() > 0);
            let all = &mut self.lanes.leaving_ports;
            *all = *all & !(1 << port) | left << port;
            self.lanes.leaving[port] = leaving;
        }
    }
}

/// Number of flits that the router can take from a port in a cycle, over the row bus of a network
/// tile or from a NIC.
#[inline]
const fn slots_in(port: usize, cycle: u64) -> u64 {
    match port < FIRST_NIC_PORT {
        true => 1,
        false => Pace::NIC.slots_in(cycle),
    }
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
        let (first, _) = Aries::lanes(port);
        let lane = self.next_lane(port, |out| out.credits.cycles);
        let credits = &mut self.lanes.out[first + lane].credits;
        credits.credit(self.now, vc);
        Some(flit)
    }

    fn pop_into(&mut self, port: usize, vc: usize, into: &mut [Flit]) -> usize {
        let taken = self.lanes.ends[port].pop_into(vc, into);
        debug_assert_eq!(self.lanes.freeing[port].left, 0);
        self.lanes.freeing[port] = Freeing {
            vc: vc as u8,
            left: taken as u8,
            cycle: self.cycle(),
            // Packets that end in the same cycle use the lower lanes.
            lane: self.next_lane(port, |out| out.credits.cycles) as u8,
        };
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
        let lane = self.next_lane(port, |out| out.phits);
        self.put(port, lane, self.now, flit.bits());
    }

    fn push_packet(&mut self, port: usize, packet: &[Flit]) {
        let mut leaving = Leaving {
            to: packet.len() as u8,
            cycle: self.cycle(),
            // Packets that end in the same cycle use the lower lanes.
            lane: self.next_lane(port, |out| out.phits) as u8,
            ..Leaving::NOTHING
        };
        for (word, flit) in leaving.flits.iter_mut().zip(packet) {
            *word = flit.bits();
        }
        debug_assert_eq!(self.lanes.leaving[port].flits(), 0);
        self.lanes.leaving[port] = leaving;
        self.send_leaving(1 << port);
    }

    #[inline]
    fn backlog_flits(&self, port: usize) -> u32 {
        let Some(leaving) = self.lanes.leaving.get(port) else {
            return 0;
        };
        // The flits of this window are already included.
        let pace = self.lanes.pace(port);
        let next = pace.before(self.cycle() + 1);
        leaving.flits() + pace.before(leaving.cycle).saturating_sub(next) as u32
    }

    #[inline]
    fn far_flits(&self, port: usize) -> u32 {
        let end = &self.lanes.ends[port];
        if self.lanes.early >> port & 1 == 0 {
            return end.far_flits(self.cycle(), 0);
        }
        // Credits that were returned early but arrive later in this window do not count as
        // returned.
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
        self.lanes.out[lane].credits.record_load(self.now, load);
        self.lanes.reported |= 1 << port;
    }
}

/// Links without events, for running an idle core up to the present.
pub(super) struct NoPorts;

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

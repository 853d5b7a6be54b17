//! The router: packets go straight from input buffers to links, in one cycle each.
//!
//! To keep waiting packets from filling the ring, a packet enters it only where two buffers are
//! free: bubble flow control (Carrión et al., *A flow control mechanism to avoid message deadlock
//! in k-ary n-cube networks*, 1997). NICs accept everything that arrives.

use std::cmp::Ordering;

use super::link::RingEnd;
use super::{CYCLE_PS, Packet};
use phitwire::chip::{Chip, ChipConfig, ChipCore, Links};
use phitwire::device::DeviceEvent;
use phitwire::link::LinkEvent;
use phitwire::node::PortId;
use phitwire::packets::PacketLinkConfig;

/// The port to the next router clockwise.
pub const CLOCKWISE: u8 = 0;
/// The port to the next router counterclockwise.
pub const COUNTERCLOCKWISE: u8 = 1;
/// The first NIC port; the second follows.
pub const FIRST_NIC: u8 = 2;

pub type RingRouter = Chip<RingCore>;

/// The position of a router.
#[derive(Clone, Copy, Debug)]
pub struct RingPosition {
    /// Number of this router.
    pub own: u16,
    /// Routers of the ring.
    pub routers: u16,
    /// Number of buffers that must stay free where a packet enters the ring: 1, or 0 to show the
    /// deadlock.
    pub bubble: u64,
}

/// Switches packets between the ports.
#[derive(Debug)]
pub struct RingCore {
    position: RingPosition,
    cycle: u64,
    /// Whether a packet may be able to move.
    awake: bool,
    moved: u64,
    packets: u64,
}

impl RingCore {
    pub fn route(RingPosition { own, routers, .. }: RingPosition, packet: &Packet) -> u8 {
        let (dest, odd) = (packet.0[0] as u16, packet.0[0] & 1 != 0);
        let ahead = (dest / 2 + routers - own) % routers;
        match ahead.cmp(&(routers - ahead)) {
            _ if ahead == 0 => FIRST_NIC + u8::from(odd),
            // Half-way round, both directions are equally long: half of the packets take each.
            Ordering::Equal if odd => COUNTERCLOCKWISE,
            Ordering::Less | Ordering::Equal => CLOCKWISE,
            Ordering::Greater => COUNTERCLOCKWISE,
        }
    }

    /// Runs one cycle, in which each link takes at most one packet.
    fn step(&mut self, links: &mut Links<RingEnd>) {
        let mut taken = 0_u64;
        for turn in 0..Self::PORTS {
            let port = (turn + self.cycle as usize) % Self::PORTS;
            let Some(&packet) = links.input(port).and_then(|input| input.front(0)) else {
                continue;
            };
            let out = usize::from(Self::route(self.position, &packet));
            let enters = port >= FIRST_NIC.into() && out < FIRST_NIC.into();
            let spare = if enters { self.position.bubble } else { 0 };
            let end = links.end_mut(out).filter(|end| end.room(0) > spare);
            if let Some(end) = end.filter(|_| taken & 1 << out == 0) {
                end.push(packet);
                links.input_mut(port).and_then(|input| input.pop(0));
                taken |= 1 << out;
                self.moved |= 1 << out | 1 << port;
                self.packets += 1;
            }
        }
        self.cycle += 1;
        self.awake = taken != 0;
    }
}

impl ChipCore for RingCore {
    type End = RingEnd;
    type Registers = RingPosition;
    type Event = DeviceEvent;

    const PORTS: usize = 4;
    const CYCLE_PS: u64 = CYCLE_PS;

    fn new(config: &ChipConfig<RingPosition, PacketLinkConfig>) -> Self {
        Self {
            position: config.registers,
            cycle: 0,
            awake: false,
            moved: 0,
            packets: 0,
        }
    }

    fn output_changed(&mut self, _: usize) {
        self.awake = true;
    }

    fn take_moved(&mut self) -> u64 {
        core::mem::take(&mut self.moved)
    }

    fn run(&mut self, links: &mut Links<RingEnd>) {
        while self.awake {
            self.step(links);
        }
    }

    fn run_until(&mut self, limit: u64, links: &mut Links<RingEnd>) {
        while self.awake && self.cycle < limit {
            self.step(links);
        }
        self.cycle = self.cycle.max(limit);
    }

    fn next_cycle(&self) -> Option<u64> {
        self.awake.then_some(self.cycle)
    }

    fn link_event(port: PortId, event: LinkEvent) -> DeviceEvent {
        DeviceEvent::Link { port, event }
    }

    fn for_each_counter(&self, _: u64, visit: &mut dyn FnMut(&str, u64)) {
        visit("packets", self.packets);
    }
}

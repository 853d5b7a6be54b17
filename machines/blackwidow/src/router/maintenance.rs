//! Source-routed maintenance packets: forwarding and register access (BlackWidow sec. 4.1).
//!
//! The input tile gathers a maintenance packet, and processes it once its end has arrived and marks
//! it as undamaged. So a packet that was forwarded speculatively and turned out to be damaged has
//! no effect. The packet is then either forwarded (with its hop index incremented and its check
//! patched) or, if its vector is exhausted, executed; the reply leaves from the same input tile by
//! the return vector. Each input virtual channel has room for one packet to send; further packets
//! wait in the input queue.

use phitwire_framing::yarc::crc16::CrcPatch;
use phitwire_framing::yarc::maintenance::{
    Maintenance as Packet, Operation, RegisterStatus, hops_in_second, next_hop, port_in_phit,
    vector_phit,
};
use phitwire_framing::yarc::packet::{
    EopStatus, PacketBuf, Vc, check_packet, head_payload, head_vc,
};
use phitwire_framing::yarc::phit::{Phit, PhitKind};

use super::core::Core;
use super::event::RouterEvent;
use crate::route::Refusal;
use crate::route::registers::PORTS;
use phitwire::kit::below;

/// A packet waiting for the row bus of its input tile.
#[derive(Debug)]
struct Side {
    port_vc: u8,
    column: u8,
    rows: u8,
    sent: u8,
    packet: PacketBuf,
}

/// A packet whose end has not arrived.
#[derive(Debug)]
struct Gathering {
    port_vc: u8,
    too_long: bool,
    packet: PacketBuf,
}

/// The maintenance packets inside a router, at most two per input virtual channel.
#[derive(Debug, Default)]
pub(super) struct Maintenance {
    /// Ports, per virtual channel, with a packet to send.
    pub(super) side: [u64; 2],
    sides: Vec<Side>,
    gathering: Vec<Gathering>,
}

const fn port_vc(port: usize, vc: usize) -> u8 {
    (port * 2 + vc) as u8
}

impl Maintenance {
    fn find(&self, port: usize, vc: usize) -> Option<usize> {
        self.sides
            .iter()
            .position(|side| side.port_vc == port_vc(port, vc))
    }

    /// The next phit to send, with its column and its row mask.
    pub(super) fn side_front(&self, port: usize, vc: usize) -> Option<(Phit, u8, u8)> {
        let side = &self.sides[self.find(port, vc)?];
        let phit = side.packet.as_slice().get(usize::from(side.sent))?;
        Some((*phit, side.column, side.rows))
    }

    /// Records that the phit returned by [`side_front`](Self::side_front) was sent.
    pub(super) fn side_advance(&mut self, port: usize, vc: usize) {
        let Some(index) = self.find(port, vc) else {
            return;
        };
        self.sides[index].sent += 1;
        if usize::from(self.sides[index].sent) == self.sides[index].packet.len() {
            self.sides.swap_remove(index);
            self.side[vc] &= !(1 << port);
        }
    }

    /// Number of phits of packets that are being gathered or not yet sent.
    pub(super) fn phits(&self) -> u64 {
        let gathered = self.gathering.iter().map(|g| g.packet.len() as u64);
        let to_send = |side: &Side| side.packet.len() as u64 - u64::from(side.sent);
        gathered.chain(self.sides.iter().map(to_send)).sum()
    }
}

impl Core {
    /// Whether there is room for the result of a gathered packet's end: the packet forwarded on its
    /// virtual channel, or a reply.
    pub(super) fn may_finish_maintenance(&self, port: usize, vc: usize) -> bool {
        (self.maintenance.side[vc] | self.maintenance.side[1]) >> port & 1 == 0
    }

    pub(super) fn gather(&mut self, port: usize, vc: usize, phit: Phit) {
        let list = &mut self.maintenance.gathering;
        let index = match list.iter().position(|g| g.port_vc == port_vc(port, vc)) {
            Some(index) => index,
            None => {
                let packet = PacketBuf::new();
                list.push(Gathering {
                    port_vc: port_vc(port, vc),
                    too_long: false,
                    packet,
                });
                list.len() - 1
            }
        };
        if !list[index].packet.push(phit) {
            list[index].too_long = true;
        }
        if phit.is_eop() {
            let done = list.swap_remove(index);
            if done.too_long {
                self.counters.maintenance_malformed += 1;
            } else {
                self.finish_maintenance(port, vc, &done.packet);
            }
        }
    }

    fn finish_maintenance(&mut self, port: usize, vc: usize, packet: &PacketBuf) {
        match check_packet(packet.as_slice()) {
            Ok(EopStatus::Healthy) => {}
            Ok(EopStatus::TransmitError | EopStatus::SoftError) | Err(_) => {
                self.counters.maintenance_damaged += 1;
                return;
            }
        }
        // `check_packet` has verified that there are at least four phits.
        let phits = packet.as_slice();
        let (hop, hops) = (
            head_payload(phits[0].content()),
            hops_in_second(phits[1].content()),
        );
        if head_vc(phits[0].content()).index() != vc {
            self.counters.maintenance_malformed += 1;
        } else if hop == hops {
            self.execute(port, packet);
        } else if let Some(phit) = phits.get(vector_phit(hop)).filter(|phit| !phit.is_eop()) {
            let out = port_in_phit(phit.content(), hop);
            if self.send_side(port, vc, out, increment_hop(packet)) {
                self.counters.maintenance_forwarded += 1;
            }
        } else {
            self.counters.maintenance_malformed += 1;
        }
    }

    /// Executes a request to this router, and replies to it.
    fn execute(&mut self, port: usize, packet: &PacketBuf) {
        let Ok(request) = Packet::decode(packet.as_slice()) else {
            self.counters.maintenance_malformed += 1;
            return;
        };
        let (status, value) = match request.operation {
            Operation::Read { .. } => match self.read_register(request.register) {
                Some(value) => (RegisterStatus::Done, value),
                None => (RegisterStatus::Unknown, 0),
            },
            Operation::Write { value, .. } => match self.write_register(request.register, value) {
                Ok(()) => (RegisterStatus::Done, value),
                Err(error) => (super::register_map::status_of(error), 0),
            },
            Operation::ReadReply { .. } | Operation::WriteReply { .. } => {
                self.counters.maintenance_malformed += 1;
                return;
            }
        };
        match (status, request.operation) {
            (RegisterStatus::Done, Operation::Write { .. }) => {
                self.counters.maintenance_writes += 1;
                let address = request.register;
                self.events
                    .push(RouterEvent::RegisterWritten { address, value });
            }
            (RegisterStatus::Done, _) => self.counters.maintenance_reads += 1,
            _ => self.counters.maintenance_refused += 1,
        }
        let mut reply = PacketBuf::new();
        let written = request
            .reply(status, value)
            .is_some_and(|r| r.encode(&mut reply));
        // This router takes the reply's first hop: the first port of the return vector.
        let first = reply
            .as_slice()
            .get(vector_phit(0))
            .map(|phit| port_in_phit(phit.content(), 0));
        let has_hops = reply
            .as_slice()
            .get(1)
            .is_some_and(|p| hops_in_second(p.content()) > 0);
        match first {
            Some(out) if written && has_hops => {
                self.send_side(port, Vc::Response.index(), out, increment_hop(&reply));
            }
            _ => self.counters.maintenance_malformed += 1,
        }
    }

    /// Queues a packet at input tile `port` for output `out`. Returns `false` if it may not leave
    /// there.
    fn send_side(&mut self, port: usize, vc: usize, out: u8, packet: PacketBuf) -> bool {
        let allowed = match &self.routes[below::<PORTS>(port)] {
            Some(routes) => routes.check_exit(out),
            None => Err(Refusal::Unroutable),
        };
        if let Err(why) = allowed {
            self.refuse(port, 0, why);
            return false;
        }
        debug_assert!(
            self.maintenance.find(port, vc).is_none(),
            "the caller checked for room"
        );
        self.maintenance.sides.push(Side {
            port_vc: port_vc(port, vc),
            column: out & 7,
            rows: 1 << (out >> 3 & 7),
            sent: 0,
            packet,
        });
        self.maintenance.side[vc] |= 1 << port;
        self.inputs.wake(port, vc, true);
        true
    }
}

/// The packet with its hop index incremented, and its check patched such that damage stays
/// detectable.
fn increment_hop(packet: &PacketBuf) -> PacketBuf {
    let mut packet = *packet;
    let phits = packet.as_mut_slice();
    let old = phits[0].content();
    let new = next_hop(old);
    phits[0] = Phit::new(PhitKind::Head, new);
    let mut patch = CrcPatch::new(old ^ new);
    let last = phits.len() - 1;
    for _ in 1..last {
        patch.advance();
    }
    phits[last] = Phit::new(PhitKind::Eop, patch.apply(phits[last].content()));
    packet
}

#[cfg(test)]
#[path = "maintenance_tests.rs"]
mod tests;

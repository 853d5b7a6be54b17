//! Replaces the links of a core in tests, with plain queues as input and recorded phits as output.

use std::collections::VecDeque;
use std::ops::Range;

use phitwire_framing::yarc::crc16::PacketCrc;
use phitwire_framing::yarc::packet::{EopStatus, Head, Vc, head_vc, second_phit};
use phitwire_framing::yarc::phit::{Phit, PhitKind};

use super::core::{Core, Ports};
use crate::route::registers::{ChipRegisters, PORTS, PortKind, RouteEntry, Subtree, TileRegisters};

/// The subtree of destinations up to `mask`.
pub(super) const fn low(mask: u16) -> Subtree {
    Subtree { location: 0, mask }
}

/// A chip with 64 tiles; destination d, below 64, is at port d.
pub(super) fn flat_chip() -> ChipRegisters {
    ChipRegisters::flat()
}

/// A tile that routes destination d down by port d.
pub(super) fn down_tile() -> TileRegisters {
    let mut tiles = flat_chip().tiles;
    tiles.remove(0).expect("every port has a tile")
}

/// The flat chip, with each tile changed according to its port.
pub(super) fn chip_of(change: impl Fn(usize, &mut TileRegisters)) -> ChipRegisters {
    let mut chip = flat_chip();
    let tiles = chip.tiles.iter_mut().flatten();
    tiles
        .enumerate()
        .for_each(|(port, tile)| change(port, tile));
    chip
}

/// A chip with destinations up to 31 at their ports; ports 32 to 63 lead up to all others.
pub(super) fn up_chip() -> ChipRegisters {
    chip_of(|port, tile| {
        tile.root_detect = low(31);
        tile.down_mask = 31;
        tile.table[0] = RouteEntry {
            subtree: low(0x7fff),
            ports: 0xffff_ffff << 32,
        };
        if port >= 32 {
            tile.kind = PortKind::Up;
        }
    })
}

pub(super) fn flat() -> (Core, Bench) {
    (Core::new(flat_chip()), Bench::default())
}

pub(super) fn head(dest: u16, vc: Vc) -> Head {
    Head {
        dest,
        vc,
        hashed: false,
        adaptive: false,
        source_routed: false,
        payload: 0,
    }
}

/// An undamaged packet of `phits` phits (at least 4) whose payload phits all contain `id`.
pub(super) fn packet(head: Head, hash: u16, id: u32, phits: usize) -> Vec<Phit> {
    let mut crc = PacketCrc::new();
    let mut packet = vec![Phit::new(PhitKind::Head, head.emit())];
    packet.push(Phit::new(PhitKind::Body, second_phit(hash, 0)));
    packet.extend((3..phits).map(|_| Phit::new(PhitKind::Body, id)));
    packet.iter().for_each(|phit| crc.update(phit.content()));
    packet.push(Phit::new(PhitKind::Eop, crc.eop(EopStatus::Healthy)));
    packet
}

/// A packet cut short after `phits` phits (at least 1) with a `transmit_error` end.
pub(super) fn cut(packet: &[Phit], phits: usize) -> Vec<Phit> {
    let mut crc = PacketCrc::new();
    let mut short = packet[..phits].to_vec();
    short.iter().for_each(|phit| crc.update(phit.content()));
    short.push(Phit::new(PhitKind::Eop, crc.eop(EopStatus::TransmitError)));
    short
}

/// Queues in front of a core, and recorders behind it.
pub(super) struct Bench {
    pub(super) queues: Vec<[VecDeque<Phit>; 2]>,
    /// Cycle and phit of everything pushed to each port.
    pub(super) sent: Vec<Vec<(u64, Phit)>>,
    /// Ports that accept no packets, per virtual channel.
    pub(super) blocked: [u64; 2],
    pub(super) down: u64,
    pub(super) open: u64,
    now: u64,
}

impl Default for Bench {
    fn default() -> Self {
        Self {
            queues: (0..PORTS).map(|_| Default::default()).collect(),
            sent: vec![Vec::new(); PORTS],
            blocked: [0; 2],
            down: 0,
            open: 0,
            now: 0,
        }
    }
}

impl Ports for Bench {
    fn begin_cycle(&mut self, cycle: u64) {
        self.now = cycle;
    }
    fn front(&self, port: usize, vc: usize) -> Option<Phit> {
        self.queues[port][vc].front().copied()
    }
    fn second(&self, port: usize, vc: usize) -> Option<Phit> {
        self.queues[port][vc].get(1).copied()
    }
    fn pop(&mut self, port: usize, vc: usize) -> Option<Phit> {
        self.queues[port][vc].pop_front()
    }
    fn can_begin(&self, port: usize, vc: usize) -> bool {
        (self.blocked[vc] | self.down | self.open) >> port & 1 == 0
    }
    fn is_active(&self, port: usize) -> bool {
        self.down >> port & 1 == 0
    }
    fn push(&mut self, port: usize, phit: Phit) {
        let open = self.open >> port & 1 != 0;
        assert_eq!(phit.is_head(), !open, "packets are not interleaved");
        assert_eq!(phit.sideband(), 0);
        let is_live = self.down >> port & 1 == 0;
        assert!(open || is_live, "no packet starts on a dead link");
        let last = self.sent[port].last();
        let is_next = last.is_none_or(|&(cycle, _)| cycle < self.now);
        assert!(is_next, "one phit per cycle and output");
        if phit.is_head() {
            let blocked = self.blocked[head_vc(phit.content()).index()] >> port & 1;
            assert_eq!(blocked, 0, "no packet starts without credits");
        }
        self.open &= !(1 << port);
        self.open |= u64::from(!phit.is_eop()) << port;
        self.sent[port].push((self.now, phit));
    }
}

impl Bench {
    /// Delivers a whole packet in the current cycle.
    pub(super) fn inject(&mut self, core: &mut Core, port: usize, packet: &[Phit]) {
        let vc = head_vc(packet[0].content()).index();
        self.queues[port][vc].extend(packet);
        core.arrived(port, vc, packet.len() as u32);
    }

    /// Delivers one packet per id in the current cycle.
    pub(super) fn inject_all(
        &mut self,
        core: &mut Core,
        port: usize,
        ids: Range<u32>,
        packet: impl Fn(u32) -> Vec<Phit>,
    ) {
        ids.for_each(|id| self.inject(core, port, &packet(id)));
    }

    pub(super) fn run(&mut self, core: &mut Core, cycles: u64) {
        core.run_until(core.cycle() + cycles, self);
    }

    /// Runs until nothing can move.
    ///
    /// # Panics
    /// If a phit still moves after a million cycles.
    pub(super) fn drain(&mut self, core: &mut Core) {
        for _ in 0..1_000_000 {
            let Some(next) = core.next_cycle() else {
                return;
            };
            core.run_until(next + 1, self);
        }
        panic!("the core does not drain");
    }

    /// The packets that left by `port`, without their cycles.
    pub(super) fn packets(&self, port: usize) -> Vec<Vec<Phit>> {
        let phits: Vec<Phit> = self.sent[port].iter().map(|&(_, phit)| phit).collect();
        let packets = phits.split_inclusive(|phit| phit.is_eop());
        packets.map(<[Phit]>::to_vec).collect()
    }
}

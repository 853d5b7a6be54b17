use super::super::grain::Items;
use super::super::pipeline::{FIRST_PROCESSOR_TILE, NETLINK_OUTPUT_FLITS, PAIR_TILES};
use super::super::pool::{Item, Pool};
use super::super::tiles::{Ports, Tiles};
use super::{NONE, Netlink, PACKET, PROCESSOR_TILES};
use crate::route::registers::{FIRST_NIC_PORT, NICS};
use phitwire::kit::below;

/// The output tiles of the first pair of NICs.
const PAIR: u64 = 0xf << FIRST_PROCESSOR_TILE;

impl Netlink {
    /// Flits reserved on the link of `nic`, and whether the queue of processor tile `output` has
    /// room for a packet.
    #[inline]
    pub(in super::super) fn output_room(&self, output: usize, nic: usize) -> (usize, bool) {
        let taken = self.outputs[below::<PROCESSOR_TILES>(output - FIRST_PROCESSOR_TILE)].taken;
        let room = taken + PACKET <= NETLINK_OUTPUT_FLITS;
        (self.reserved[below::<NICS>(nic)].into(), room)
    }

    pub(in super::super) fn reserve_output(&mut self, output: usize, nic: usize, flits: u8) {
        self.outputs[below::<PROCESSOR_TILES>(output - FIRST_PROCESSOR_TILE)].taken +=
            u16::from(flits);
        self.reserved[below::<NICS>(nic)] += u16::from(flits);
    }

    /// Takes an item from processor tile `tile` (0 to 7).
    #[inline]
    pub(in super::super) fn push(&mut self, tile: usize, item: Item, pool: &mut Pool) {
        let output = &mut self.outputs[below::<PROCESSOR_TILES>(tile)];
        pool.push(&mut output.fifo, item);
        output.flits += u16::from(item.flits());
    }

    /// Records that flits from a processor tile have reached the NICs' side.
    #[inline]
    pub(in super::super) fn output_arrived(&mut self, tile: usize, flits: u32) {
        self.output_filled(tile, flits);
        self.wake_outputs(tile);
    }

    #[inline]
    fn output_filled(&mut self, tile: usize, flits: u32) {
        self.outputs[below::<PROCESSOR_TILES>(tile)].visible += flits as u16;
        self.outputs_filled |= 1 << tile;
    }

    #[inline]
    fn wake_outputs(&mut self, tile: usize) {
        let pair = tile / PAIR_TILES;
        if self.outputs_filled >> (pair * PAIR_TILES) & 0xf != 0 {
            self.outputs_active |= 3 << (pair * 2);
        }
    }

    /// Records that the link of `nic` may accept a packet again.
    #[inline]
    pub(in super::super) fn wake_output(&mut self, nic: usize) {
        if self.outputs_filled != 0 {
            self.outputs_active |= 1 << below::<NICS>(nic);
        }
    }

    /// The tile from which `nic` takes its next packet: one whose packet has arrived completely, or
    /// else one whose packet has started to arrive.
    // Measured: without inlining, this and two other functions cost one to four percent of the
    // message rate.
    #[inline(always)]
    fn output_tile<P: Ports>(&mut self, nic: usize, pool: &Pool, io: &P) -> Option<(usize, u8)> {
        let first = nic / 2 * PAIR_TILES;
        let mut filled = u32::from(self.outputs_filled >> first) & 0xf;
        if filled == 0 {
            return None;
        }
        // Start after the last served tile.
        let turn = (usize::from(self.served[nic]) + 1) % PAIR_TILES;
        filled = (filled | filled << PAIR_TILES) >> turn & 0xf;
        let mut begun = None;
        while filled != 0 {
            let tile = first + (filled.trailing_zeros() as usize + turn) % PAIR_TILES;
            filled &= filled - 1;
            let output = &self.outputs[tile];
            let Some(head) = pool.front(&output.fifo) else {
                continue;
            };
            // If another NIC is halfway through a packet, the front is not a head.
            if !head.is_head() || head.nic() != nic {
                continue;
            }
            let port = FIRST_NIC_PORT + nic;
            let (vc, length) = (head.vc(), head.length());
            // A link that is down drops the packets for which it had room.
            if !io.can_begin(port, vc, length.into()) && io.is_active(port) {
                continue;
            }
            let choice = (tile, length);
            if output.visible >= u16::from(length) {
                return Some(choice);
            }
            begun.get_or_insert(choice);
        }
        begun
    }
}

impl<I: Items> Tiles<I> {
    /// Each NIC uses its slots of the cycle to take flits from the processor tiles of its pair.
    pub(in super::super) fn netlink_output_stage<P: Ports>(&mut self, io: &mut P) {
        let mut pending = self.netlink.outputs_active & !self.netlink.busy[1];
        let end = self.netlink.slots[1];
        while pending != 0 {
            let nic = below::<NICS>(pending.trailing_zeros() as usize);
            pending &= pending - 1;
            let mut slot = self.netlink.next_slot(1, nic);
            while slot < end {
                match self.move_to_nic(nic, slot, io) {
                    Some(next) => slot = next,
                    None => {
                        self.netlink.outputs_active &= !(1 << nic);
                        break;
                    }
                }
            }
            self.netlink.free[1][nic] = slot;
        }
    }

    /// Handles an item that leaves processor tile `tile` (0 to 7) for its NIC. A packet that no
    /// other packet in the pair's tiles precedes is handed over at once
    /// ([`through`](super::super::through)).
    #[inline]
    pub(in super::super) fn leave_for_nic<P: Ports>(
        &mut self,
        tile: usize,
        item: Item,
        io: &mut P,
    ) {
        let tile = below::<PROCESSOR_TILES>(tile);
        let Some((nic, slot)) = self.slot_at_once(tile, item, io) else {
            self.netlink.push(tile, item, &mut self.pool);
            return self.on_way_to_nics(tile, item.flits());
        };
        let flits = u16::from(item.flits());
        let netlink = &mut self.netlink;
        if I::THROUGH {
            netlink.served[nic] = (tile % PAIR_TILES) as u8;
            netlink.outputs[tile].taken -= flits;
            netlink.reserved[nic] -= flits;
            netlink.free[1][nic] = slot + 1;
            self.columns.wake(PAIR << (tile / PAIR_TILES * PAIR_TILES));
            if self.watch.is_some() {
                self.watch_to_nic(tile, nic, item.slot);
            }
            self.push_to(FIRST_NIC_PORT + nic, item, io);
        } else {
            netlink.push(tile, item, &mut self.pool);
            netlink.output_filled(tile, flits.into());
            if let Some(next) = self.move_to_nic(nic, slot, io) {
                self.netlink.free[1][nic] = next;
            }
        }
    }

    /// The NIC and the slot in which it takes a packet from a processor tile without delay. That
    /// requires wires that take no time, no packet that waits for a NIC of the pair, and room on
    /// the NIC's link.
    #[inline]
    fn slot_at_once<P: Ports>(&self, tile: usize, item: Item, io: &P) -> Option<(usize, u64)> {
        let first = tile / PAIR_TILES * PAIR_TILES;
        if I::TIMED || self.netlink.outputs_filled >> first & 0xf != 0 {
            return None;
        }
        let head = item.slot;
        let nic = first / PAIR_TILES * 2 + head.nic() % 2;
        let slot = self.netlink.next_slot(1, nic);
        let port = FIRST_NIC_PORT + nic;
        let takes = slot < self.netlink.slots[1]
            && (io.can_begin(port, head.vc(), head.length().into()) || !io.is_active(port));
        takes.then_some((nic, slot))
    }

    /// Hands an item to a NIC's link in `slot`. Returns the next free slot, or `None` if there is
    /// no item to hand over now.
    #[inline]
    fn move_to_nic<P: Ports>(&mut self, nic: usize, slot: u64, io: &mut P) -> Option<u64> {
        let netlink = &mut self.netlink;
        if netlink.serving[nic].0 == NONE {
            let (tile, length) = netlink.output_tile(nic, &self.pool, io)?;
            netlink.serving[nic] = (tile as u8, length);
            netlink.served[nic] = (tile % PAIR_TILES) as u8;
        }
        let (tile, left) = netlink.serving[nic];
        let number = below::<PROCESSOR_TILES>(tile.into());
        let output = &mut netlink.outputs[number];
        if output.visible == 0 {
            return None;
        }
        let Some(item) = self.pool.pop(&mut output.fifo) else {
            unreachable!("a visible flit is in the queue");
        };
        let flits = item.flits();
        output.visible -= u16::from(flits);
        netlink.outputs_filled &= !(u8::from(output.visible == 0) << number);
        output.flits -= u16::from(flits);
        output.taken -= u16::from(flits);
        netlink.reserved[nic] -= u16::from(flits);
        let room = NETLINK_OUTPUT_FLITS - output.taken;
        let last = left == flits;
        netlink.serving[nic] = if last {
            (NONE, 0)
        } else {
            (tile, left - flits)
        };
        if last {
            // The tile's next packet may be for the other NIC, and packets at any tile of the pair
            // may have waited until this packet's flits counted as the link's.
            netlink.wake_outputs(number);
            self.columns
                .wake(PAIR << (number / PAIR_TILES * PAIR_TILES));
        } else if room >= PACKET {
            self.columns.wake(1 << (FIRST_PROCESSOR_TILE + number));
        }
        if item.slot.is_head() && self.watch.is_some() {
            self.watch_to_nic(number, nic, item.slot);
        }
        self.push_to(FIRST_NIC_PORT + nic, item, io);
        Some(self.passes_nic(1, nic, slot, flits))
    }
}

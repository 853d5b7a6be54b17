//! The grain: the unit that moves through the stages as one item. Most differences between a core
//! that moves packets and one that moves flits are in this file. In addition, free-running stages
//! run in the opposite order (`tiles`), and a packet can bypass the buffers (`through`).
//!
//! | grain | clock | an item | wires and fixed stages | buses and outputs are taken |
//! |---|---|---|---|---|
//! | [`Flits`] | any | a flit, as on the chip | take their cycles | for a cycle |
//! | [`Packets`] | paced, virtual | a packet | take their cycles | for a cycle per flit |
//! | [`FreePackets`] | free-running | a packet | take none | none if alone, else a cycle |
//!
//! Stages, arbiters, routing decisions, loads and buffer depths are the same. A packet starts at a
//! router only after all of it has arrived, so that no output is held for a packet whose rest was
//! lost on a link and must be resent. This adds the flits after the head to the latency, once per
//! router; in the chip the head goes ahead. A packet may be written to a buffer with one free slot,
//! because flit by flit its first flits would have left when its last ones arrive.

use core::fmt::Debug;

use phitwire_framing::aries::flit::Head;

use super::pace::Pace;
use super::pipeline::{
    COLUMN_CREDIT_CYCLES, COLUMN_CYCLES, ColumnBufferId, FIRST_PROCESSOR_TILE, INPUT_CYCLES,
    NETLINK_CYCLES, ROW_CREDIT_CYCLES, ROW_CYCLES, ROWS, RowBufferId, Wake,
};
use super::pool::{Item, Slot};
use super::tiles::{
    NIC_FREE, OUTPUT_ARRIVALS, OUTPUT_FREE, Ports, ROW_BUS_FREE, ROW_FREE, SWITCH_FREE, Tiles,
};
use phitwire::kit::{Next, Pipe, Room};

/// The unit that moves as one item, and whether moving takes time.
pub trait Items: Copy + Debug + Default + Send + Sync + 'static {
    /// Whether items are whole packets.
    const PACKETS: bool;
    /// Whether wires and fixed stages take their cycles.
    const TIMED: bool;
    /// Whether an isolated packet bypasses the buffers; see `through`.
    const THROUGH: bool;

    /// Whether a packet can start when `visible` of its flits have arrived.
    #[inline]
    fn can_begin(visible: u32, head: Head) -> bool {
        !Self::PACKETS || visible >= head.length().into()
    }

    #[inline]
    fn is_item(head: Head) -> bool {
        Self::PACKETS || head.length() == 1
    }

    #[inline]
    fn room<const D: u8, const F: u32, const B: u32>(
        pipe: &mut Pipe<D, F, B>,
        now: u32,
        after: u32,
    ) -> Room {
        if !Self::TIMED {
            if pipe.has_slot_at_once() {
                Room::Open
            } else {
                Room::Starved
            }
        } else if Self::PACKETS {
            pipe.room_for_some(now, after)
        } else {
            pipe.room(now, after)
        }
    }

    /// Writes an item of that many flits; returns whether to wake the reader when it arrives.
    #[inline]
    fn write<const D: u8, const F: u32, const B: u32>(
        pipe: &mut Pipe<D, F, B>,
        now: u32,
        flits: u8,
    ) -> bool {
        if !Self::TIMED {
            return pipe.write_at_once(flits);
        }
        if Self::PACKETS {
            pipe.take_slots(flits);
        }
        pipe.write(now).1
    }

    #[inline]
    fn read<const D: u8, const F: u32, const B: u32>(
        pipe: &mut Pipe<D, F, B>,
        now: u32,
        flits: u8,
    ) -> (Next, bool) {
        if !Self::TIMED {
            return pipe.read_at_once(flits);
        }
        if Self::PACKETS {
            pipe.free_slots(flits);
        }
        pipe.read(now)
    }

    /// Flits in a buffer and on the wire to it.
    #[inline]
    fn flits<const D: u8, const F: u32, const B: u32>(pipe: &Pipe<D, F, B>) -> u8 {
        if Self::PACKETS {
            pipe.slots()
        } else {
            pipe.len()
        }
    }
}

/// Single flits, as on the chip.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flits;

/// Packets that take cycles to move.
#[derive(Clone, Copy, Debug, Default)]
pub struct Packets;

/// Packets that move without delay.
#[derive(Clone, Copy, Debug, Default)]
pub struct FreePackets;

/// Like [`FreePackets`], but every packet passes all buffers.
#[cfg(test)]
#[derive(Clone, Copy, Debug, Default)]
pub struct BufferedPackets;

#[cfg(test)]
impl Items for BufferedPackets {
    const PACKETS: bool = true;
    const TIMED: bool = false;
    const THROUGH: bool = false;
}

impl Items for Flits {
    const PACKETS: bool = false;
    const TIMED: bool = true;
    const THROUGH: bool = false;
}

impl Items for Packets {
    const PACKETS: bool = true;
    const TIMED: bool = true;
    const THROUGH: bool = false;
}

impl Items for FreePackets {
    const PACKETS: bool = true;
    const TIMED: bool = false;
    const THROUGH: bool = true;
}

impl<I: Items> Tiles<I> {
    /// The cycle on the clock of the wires between the stages; see [`Pipe`].
    #[inline]
    pub(super) fn wire_clock(&self) -> u32 {
        self.cycle as u32
    }

    /// Schedules `wake` for the delivery on a wire of that many cycles.
    #[inline]
    pub(super) fn wake_ahead(&mut self, cycles: u64, wake: Wake) {
        debug_assert!(I::TIMED, "only timed wires wake ahead");
        self.calendar.enter(self.cycle, cycles, wake);
    }

    /// Records a freed row buffer slot for which its input tile waits.
    #[inline]
    pub(super) fn wake_row_writer(&mut self, id: RowBufferId) {
        if I::TIMED {
            self.wake_ahead(ROW_CREDIT_CYCLES, Wake::RowWriter(id));
        } else {
            self.row_slot_freed(id);
        }
    }

    /// Records a freed column buffer slot for which its subswitch waits.
    #[inline]
    pub(super) fn wake_column_writer(&mut self, id: ColumnBufferId) {
        if I::TIMED {
            self.wake_ahead(COLUMN_CREDIT_CYCLES, Wake::ColumnWriter(id));
        } else {
            self.column_slot_freed(id);
        }
    }

    /// Records flits that Netlink writes to the queue of a processor tile. `channel` is the tile
    /// times 8 plus the virtual channel.
    #[inline]
    pub(super) fn reaches_tile(&mut self, channel: usize, flits: u8) {
        if I::TIMED {
            let due = self.cycle + INPUT_CYCLES;
            self.delay.enter(due, channel as u16, flits.into());
        } else {
            self.inputs.arrived(channel, flits.into());
        }
    }

    /// Records an item on its way to a row buffer. `wakes` means that the subswitch has nothing
    /// else to read there.
    #[inline]
    pub(super) fn on_row_bus(&mut self, id: RowBufferId, flits: u8, wakes: bool) {
        if wakes && I::TIMED {
            self.wake_ahead(ROW_CYCLES, Wake::RowReader(id));
        } else if wakes {
            self.request_output(id);
        }
        self.takes_row_bus(id.tile(), flits);
    }

    /// Records that an item taken from a tile's input queue occupies its row bus.
    #[inline]
    pub(super) fn takes_row_bus(&mut self, tile: usize, flits: u8) {
        if self.takes_cycles(flits) {
            self.inputs.busy |= 1 << tile;
            self.free_later(flits.into(), ROW_BUS_FREE + tile);
        }
    }

    /// Records an item on its way to a column buffer. `wakes` means that the output has nothing
    /// else to read there.
    #[inline]
    pub(super) fn on_column_bus(&mut self, id: ColumnBufferId, wakes: bool) {
        if wakes && I::TIMED {
            self.wake_ahead(COLUMN_CYCLES, Wake::ColumnReader(id));
        } else if wakes {
            self.columns.arrived(id);
        }
    }

    /// Records flits on their way from processor tile `tile` (0 to 7) to the NICs. A packet's last
    /// flit leaves the tile later than its first, and arrives no earlier than it would alone.
    #[inline]
    pub(super) fn on_way_to_nics(&mut self, tile: usize, flits: u8) {
        if I::TIMED {
            let later = u64::from(flits) - Pace::NIC.cycles_for(0, flits.into());
            let due = self.cycle + NETLINK_CYCLES + later;
            self.delay
                .enter(due, (OUTPUT_ARRIVALS + tile) as u16, flits.into());
        } else {
            self.netlink.output_arrived(tile, flits.into());
        }
    }

    #[inline]
    pub(super) const fn has_slots(&self) -> bool {
        I::TIMED
    }
}

impl<I: Items> Tiles<I> {
    #[inline]
    fn takes_cycles(&self, flits: u8) -> bool {
        I::PACKETS && I::TIMED && flits > 1
    }

    fn free_later(&mut self, cycles: u64, what: usize) {
        self.delay.enter(self.cycle + cycles, what as u16, 0);
    }

    /// Records an item that moves from a row buffer to a column bus; `next` says when the next one
    /// can follow. Returns false if the next one need not wait for this one to pass.
    #[inline]
    pub(super) fn passes_switch(
        &mut self,
        from: RowBufferId,
        to: ColumnBufferId,
        flits: u8,
        next: Next,
    ) -> bool {
        if !self.takes_cycles(flits) {
            return false;
        }
        let (number, row) = (to.subswitch(), to.row());
        self.rows.take_output(number, row);
        self.free_later(flits.into(), SWITCH_FREE + number * ROWS + row);
        self.rows.begin_reading(from);
        let cycles = match next {
            Next::Ahead(cycles) => u64::from(cycles).max(flits.into()),
            Next::Ready | Next::Empty => flits.into(),
        };
        self.free_later(cycles, ROW_FREE + from.index());
        true
    }

    /// Records an item that leaves by an output tile.
    #[inline]
    pub(super) fn is_leaving(&mut self, output: usize, flits: u8) {
        if !self.takes_cycles(flits) {
            return;
        }
        let cycles = if output < FIRST_PROCESSOR_TILE {
            self.columns
                .pace(output)
                .cycles_for(self.cycle, flits.into())
        } else {
            flits.into()
        };
        self.columns.busy |= 1 << output;
        self.free_later(cycles, OUTPUT_FREE + output);
    }

    /// Passes an item between a NIC and Netlink (`way` is 0 for in, 1 for out), from `slot` of
    /// `Pace::NIC` on. Returns the next slot.
    #[inline]
    pub(super) fn passes_nic(&mut self, way: usize, nic: usize, slot: u64, flits: u8) -> u64 {
        if !self.takes_cycles(flits) {
            return slot + 1;
        }
        let next = slot + u64::from(flits);
        let cycles = Pace::NIC.cycle_of(next) - self.cycle;
        if cycles > 1 {
            self.netlink.busy[way] |= 1 << nic;
            self.free_later(cycles, NIC_FREE + way * 4 + nic);
        }
        next
    }

    /// Frees the resource `what` that a passing packet occupied.
    #[cold]
    pub(super) fn packet_passed(&mut self, what: usize) {
        if what >= ROW_FREE {
            let id = RowBufferId::at(what - ROW_FREE);
            if self.rows.end_reading(id, self.cycle as u32) {
                self.request_output(id);
            }
        } else if what >= SWITCH_FREE {
            let output = what - SWITCH_FREE;
            self.rows.free_output(output / ROWS, output % ROWS);
        } else if what >= NIC_FREE {
            let nic = what - NIC_FREE;
            self.netlink.busy[nic / 4] &= !(1 << (nic % 4));
        } else if what >= OUTPUT_FREE {
            self.columns.busy &= !(1 << (what - OUTPUT_FREE));
        } else {
            self.inputs.busy &= !(1 << (what - ROW_BUS_FREE));
        }
    }
}

impl<I: Items> Tiles<I> {
    /// Takes an item from a link's input queue, and replaces its head by `slot`.
    #[inline]
    pub(super) fn take_from<P: Ports>(
        &mut self,
        port: usize,
        vc: usize,
        slot: Slot,
        io: &mut P,
    ) -> Option<Item> {
        if I::PACKETS {
            let take = |flits: &mut [_]| io.pop_into(port, vc, flits);
            return Some(self.pool.packet(slot, take));
        }
        io.pop(port, vc)?;
        Some(Item::flit(slot))
    }

    /// Hands an item to the link of `port`.
    #[inline]
    pub(super) fn hand_over<P: Ports>(&mut self, port: usize, item: Item, io: &mut P) {
        if I::PACKETS {
            self.pool
                .unload(item, |packet| io.push_packet(port, packet));
        } else {
            io.push(port, item.slot.flit());
        }
    }
}

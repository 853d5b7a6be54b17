//! Netlink: the multiplexer between the four NICs and the eight processor tiles (XC white paper,
//! "Aries Router").
//!
//! NICs 0 and 1 share the first four processor tiles, NICs 2 and 3 the others. Each packet of a NIC
//! enters the tile of its pair with the emptiest input queue. The four tiles carry four flits per
//! cycle and a NIC sends up to 2.56 (`Pace::NIC`), so one NIC can exceed its share of two while the
//! other is idle. If both wait for room, the least recently granted NIC goes first, separately for
//! requests and responses. An ordered packet goes to the tile that its flow's hash selects, so that
//! no later packet overtakes it.
//!
//! Towards the NICs every tile has a queue for two packets. A NIC takes whole packets from the
//! tiles in turn. A packet enters the queue only if the NIC's link has credits for it, so it never
//! blocks the packets behind it.
//!
//! A packet moves only if there is room for the longest packet; otherwise short packets would use
//! the room piece by piece, and a long one would starve.

use phitwire_framing::aries::flit::{Flit, Head};

mod to_nics;

use super::grain::Items;
use super::pace::Pace;
use super::pipeline::{FIRST_PROCESSOR_TILE, NETLINK_INPUT_FLITS, PAIR_TILES};
use super::pool::{Fifo, Item, Pool, Slot};
use super::tiles::{NIC_ARRIVALS, Ports, Tiles};
use crate::route::registers::{FIRST_NIC_PORT, NICS, VCS};
use phitwire::kit::below;

const PROCESSOR_TILES: usize = NICS / 2 * PAIR_TILES;
/// Sentinel for no NIC, tile or channel.
const NONE: u8 = 0xff;
const PACKET: u16 = phitwire_framing::aries::flit::MAX_PACKET_FLITS as u16;

#[derive(Clone, Copy, Debug)]
pub(super) struct NicInput {
    /// Flits in the link's input queues that have passed the stages before Netlink.
    pub(super) visible: [u32; VCS],
    /// Missing flits of each virtual channel's current packet.
    left: [u8; VCS],
    /// Processor tile (0 to 7) of each channel's current packet.
    tile: [u8; VCS],
    /// Virtual channels that may move a flit.
    ready: u8,
    /// Virtual channels that wait for room in a tile.
    stalled: u8,
    /// The virtual channel of the last moved flit.
    current: u8,
}

/// The input queue of a processor tile, for requests and for responses.
#[derive(Clone, Copy, Debug)]
struct TileInput {
    fifos: [Fifo; 2],
    flits: [u16; 2],
    /// Occupied room: queued flits, and missing flits of packets in progress.
    taken: [u16; 2],
    /// NIC times 8 plus virtual channel of the packet in progress.
    writer: [u8; 2],
}

/// The path from a processor tile to the NICs.
#[derive(Clone, Copy, Debug)]
struct TileOutput {
    fifo: Fifo,
    /// Flits in the queue that have passed the wires.
    visible: u16,
    flits: u16,
    /// Flits in the queue, and missing flits of the arriving packet.
    taken: u16,
}

#[derive(Debug)]
pub(super) struct Netlink {
    pub(super) quiesced: bool,
    pub(super) nics: [NicInput; NICS],
    inputs: [TileInput; PROCESSOR_TILES],
    outputs: [TileOutput; PROCESSOR_TILES],
    /// The NIC of each pair with precedence, for requests and for responses.
    first: [[u8; 2]; NICS / 2],
    /// First free slot of `Pace::NIC` of the path from or to each NIC.
    free: [[u64; NICS]; 2],
    /// The tile (0 to 7) whose packet each NIC is taking, and the number of its missing flits.
    serving: [(u8, u8); NICS],
    /// The tile of its pair (0 to 3) from which each NIC last took a packet.
    served: [u8; NICS],
    /// Flits of packets to each NIC that its link has not accepted yet.
    reserved: [u16; NICS],
    /// NICs that may have flits for a tile.
    pub(super) inputs_active: u8,
    /// NICs that may have flits to take.
    outputs_active: u8,
    /// NICs with a packet on the path in, and on the path out.
    pub(super) busy: [u8; 2],
    /// Processor tiles (0 to 7) with a non-empty output queue.
    outputs_filled: u8,
    /// Whether a virtual channel of a NIC may wait for room in a tile.
    some_stalled: bool,
    /// The first slot of `Pace::NIC` in this cycle and in the next.
    slots: [u64; 2],
    turn: u8,
}

impl Netlink {
    pub(super) const fn new() -> Self {
        Self {
            quiesced: false,
            nics: [NicInput {
                visible: [0; VCS],
                left: [0; VCS],
                tile: [0; VCS],
                ready: 0,
                stalled: 0,
                current: 0,
            }; NICS],
            inputs: [TileInput {
                fifos: [Fifo::EMPTY; 2],
                flits: [0; 2],
                taken: [0; 2],
                writer: [NONE; 2],
            }; PROCESSOR_TILES],
            outputs: [TileOutput {
                fifo: Fifo::EMPTY,
                visible: 0,
                flits: 0,
                taken: 0,
            }; PROCESSOR_TILES],
            first: [[0; 2], [2; 2]],
            free: [[0; NICS]; 2],
            serving: [(NONE, 0); NICS],
            served: [PAIR_TILES as u8 - 1; NICS],
            reserved: [0; NICS],
            inputs_active: 0,
            outputs_active: 0,
            busy: [0; 2],
            outputs_filled: 0,
            some_stalled: false,
            slots: [0; 2],
            turn: 0,
        }
    }

    #[inline]
    pub(super) fn is_active(&self) -> bool {
        self.pending_inputs() | self.outputs_active & !self.busy[1] != 0
    }

    /// NICs that may have flits to send now.
    #[inline]
    pub(super) const fn pending_inputs(&self) -> u8 {
        self.inputs_active & !self.busy[0]
    }

    #[inline]
    pub(super) fn begin_cycle(&mut self, cycle: u64) {
        self.slots = [cycle, cycle + 1].map(|cycle| Pace::NIC.before(cycle));
    }

    /// The first free slot from a NIC (`way` is 0) or to it (1), in this cycle or later.
    #[inline]
    fn next_slot(&self, way: usize, nic: usize) -> u64 {
        self.free[way][below::<NICS>(nic)].max(self.slots[0])
    }

    #[inline]
    pub(super) fn next_turn(&mut self) -> usize {
        self.turn = self.turn.wrapping_add(1);
        self.turn.into()
    }

    /// Accepts packets from the NICs again.
    pub(super) fn release(&mut self) {
        self.quiesced = false;
        for nic in 0..NICS {
            self.wake(nic, 0xff);
        }
    }

    /// Lets virtual channels of a NIC retry if they have flits.
    fn wake(&mut self, nic: usize, vcs: u8) {
        let state = &mut self.nics[nic];
        for vc in (0..VCS).filter(|vc| vcs >> vc & 1 != 0) {
            if state.visible[vc] > 0 {
                state.ready |= 1 << vc;
            }
        }
        state.stalled &= !vcs;
        if state.ready != 0 {
            self.inputs_active |= 1 << nic;
        }
    }

    /// Records that flits of a NIC's virtual channel (`index` is NIC times 8 plus channel) have
    /// reached Netlink.
    #[inline]
    pub(super) fn arrived(&mut self, index: usize, flits: u32) {
        let (nic, vc) = (below::<NICS>(index / VCS), index % VCS);
        let state = &mut self.nics[nic];
        state.visible[vc] = state.visible[vc].saturating_add(flits);
        if state.stalled >> vc & 1 == 0 {
            state.ready |= 1 << vc;
            self.inputs_active |= 1 << nic;
        }
    }

    // The input queues of processor tiles. Requests are on virtual channel 0, responses on 4.

    #[inline]
    pub(super) fn front(&self, tile: usize, vc: usize, pool: &Pool) -> Option<Flit> {
        let input = &self.inputs[below::<PROCESSOR_TILES>(tile - FIRST_PROCESSOR_TILE)];
        pool.front(&input.fifos[below::<2>(vc / 4)]).map(Slot::flit)
    }

    #[inline]
    pub(super) fn pop(&mut self, tile: usize, vc: usize, pool: &mut Pool) -> Option<Item> {
        let tile = below::<PROCESSOR_TILES>(tile - FIRST_PROCESSOR_TILE);
        let (input, half) = (&mut self.inputs[tile], below::<2>(vc / 4));
        let item = pool.pop(&mut input.fifos[half])?;
        input.flits[half] -= u16::from(item.flits());
        input.taken[half] -= u16::from(item.flits());
        if input.room(half) >= PACKET {
            self.wake_stalled(tile);
        }
        Some(item)
    }

    /// Wakes stalled channels of a tile's NIC pair.
    #[inline]
    fn wake_stalled(&mut self, tile: usize) {
        if !self.some_stalled {
            return;
        }
        let first = tile / PAIR_TILES * 2;
        for nic in first..first + 2 {
            let stalled = self.nics[nic].stalled;
            if stalled != 0 {
                self.wake(nic, stalled);
            }
        }
        self.some_stalled = self.nics.iter().any(|nic| nic.stalled != 0);
    }

    /// Whether the other NIC of the pair has precedence over `nic` and may have a packet to start
    /// now.
    #[inline]
    fn yields_to_other(&self, nic: usize, half: usize) -> bool {
        let other = nic ^ 1;
        let is_pending = self.pending_inputs() & 1 << other != 0;
        usize::from(self.first[nic / 2][half]) == other
            && is_pending
            && self.nics[other].ready >> (4 * half) & 0xf != 0
    }

    /// The tile for a packet from a NIC, or `None` if no tile has room.
    fn input_tile(&mut self, nic: usize, half: usize, hash: Option<u64>) -> Option<usize> {
        let first = nic / 2 * PAIR_TILES;
        let can = |input: &TileInput| input.writer[half] == NONE && input.room(half) >= PACKET;
        if let Some(hash) = hash {
            let tile = first + (hash % PAIR_TILES as u64) as usize;
            return can(&self.inputs[tile]).then_some(tile);
        }
        let turn = self.next_turn();
        let mut best = None;
        let mut least = u16::MAX;
        for i in 0..PAIR_TILES {
            let tile = first + (turn + i) % PAIR_TILES;
            let input = &self.inputs[below::<PROCESSOR_TILES>(tile)];
            if input.load() < least && can(input) {
                (best, least) = (Some(tile), input.load());
            }
            if least == 0 {
                break;
            }
        }
        best
    }

    #[cfg(test)]
    pub(super) fn apart_from_places(&self) -> String {
        let inputs = self.inputs.map(|of| (of.flits, of.taken, of.writer));
        let outputs = self.outputs.map(|of| (of.visible, of.flits, of.taken));
        let turns = (self.first, self.free, self.serving, self.served, self.turn);
        let active = (self.inputs_active, self.outputs_active, self.outputs_filled);
        format!(
            "{:?} {inputs:?} {outputs:?} {turns:?} {:?} {active:?}",
            self.nics, self.reserved
        )
    }

    /// Flits of requests and of responses in the input queue of processor tile `tile` (0 to 7), and
    /// flits in its queue towards the NICs.
    pub(super) fn held_at(&self, tile: usize) -> ([u64; 2], u64) {
        let (input, output) = (&self.inputs[tile], &self.outputs[tile]);
        (input.flits.map(u64::from), output.flits.into())
    }

    pub(super) fn flits(&self) -> u64 {
        let inputs = self.inputs.iter().flat_map(|input| input.flits);
        let outputs = self.outputs.iter().map(|output| output.flits);
        inputs.chain(outputs).map(u64::from).sum()
    }
}

impl TileInput {
    #[inline]
    fn room(&self, half: usize) -> u16 {
        NETLINK_INPUT_FLITS - self.taken[half]
    }

    #[inline]
    fn load(&self) -> u16 {
        self.taken[0] + self.taken[1]
    }
}

impl<I: Items> Tiles<I> {
    /// Each NIC uses its slots of the cycle to move flits to processor tiles.
    pub(super) fn netlink_input_stage<P: Ports>(&mut self, io: &mut P) {
        for pair in 0..NICS / 2 {
            let pending = self.netlink.pending_inputs() >> (2 * pair) & 3;
            if pending == 0 {
                continue;
            }
            let nic = 2 * pair + usize::from(pending == 2);
            if !I::TIMED {
                self.move_in_turns(nic, io);
                continue;
            }
            // The first NIC skips packets for which the other has precedence, and retries them
            // after the other's turn.
            let held = self.move_from(nic, true, io);
            if self.netlink.pending_inputs() & 1 << (nic ^ 1) != 0 {
                self.move_from(nic ^ 1, false, io);
            }
            if held {
                self.move_from(nic, false, io);
            }
        }
    }

    /// Lets a NIC pair use its slots of the cycle packet by packet in turn, when items are packets:
    /// then a packet takes no more slots than a flit.
    fn move_in_turns<P: Ports>(&mut self, mut nic: usize, io: &mut P) {
        let mut idle = 0;
        let pair = 3 << (nic / 2 * 2);
        // One attempt more than there are NICs: the first NIC may have yielded to one that cannot
        // move.
        while idle < 3 && self.netlink.pending_inputs() & pair != 0 {
            let before = self.netlink.next_slot(0, nic);
            if self.netlink.pending_inputs() & 1 << nic != 0 {
                self.move_from(nic, true, io);
            }
            let moved = self.netlink.free[0][below::<NICS>(nic)] > before;
            idle = if moved { 0 } else { idle + 1 };
            nic ^= 1;
        }
    }

    /// Lets a NIC use its remaining slots of the cycle. Returns whether it skipped channels to
    /// yield to the other NIC of its pair.
    fn move_from<P: Ports>(&mut self, nic: usize, yields: bool, io: &mut P) -> bool {
        let nic = below::<NICS>(nic);
        let mut slot = self.netlink.next_slot(0, nic);
        let end = self.netlink.slots[1];
        let mut held = 0;
        while slot < end {
            let NicInput {
                ready,
                current,
                left,
                ..
            } = self.netlink.nics[nic];
            if ready == 0 {
                self.netlink.inputs_active &= !(1 << nic);
                break;
            }
            let ready = ready & !held;
            if ready == 0 {
                break;
            }
            // The current packet continues while it can; then it is the next channel's turn.
            let turn = u32::from(current) + u32::from(left[usize::from(current)] == 0);
            let vc = ((ready.rotate_right(turn).trailing_zeros() + turn) % 8) as usize;
            if yields && left[vc] == 0 && self.netlink.yields_to_other(nic, vc / 4) {
                held |= 1 << vc;
                continue;
            }
            slot = self.move_from_nic(nic, vc, slot, io);
        }
        self.netlink.free[0][nic] = slot;
        held != 0
    }

    /// Moves an item from a NIC to a processor tile in `slot`, or marks the channel as not ready.
    /// Returns the next free slot.
    #[inline]
    fn move_from_nic<P: Ports>(&mut self, nic: usize, vc: usize, slot: u64, io: &mut P) -> u64 {
        let port = FIRST_NIC_PORT + nic;
        let state = &mut self.netlink.nics[nic];
        if state.visible[vc] == 0 {
            state.ready &= !(1 << vc);
            return slot;
        }
        let mut head = None;
        if state.left[vc] == 0 {
            head = self.begin_from_nic(nic, vc, io);
            if head.is_none() {
                self.netlink.nics[nic].ready &= !(1 << vc);
                return slot;
            }
        }
        self.inputs.popped |= 1 << port;
        let left = self.netlink.nics[nic].left[vc];
        let Some(item) = self.take_from_nic(port, vc, left, head, io) else {
            let state = &mut self.netlink.nics[nic];
            state.visible[vc] = 0;
            state.ready &= !(1 << vc);
            return slot;
        };
        let state = &mut self.netlink.nics[nic];
        let flits = item.flits();
        state.visible[vc] -= u32::from(flits);
        state.left[vc] -= flits;
        state.current = vc as u8;
        let tile = below::<PROCESSOR_TILES>(state.tile[vc].into());
        let last = left == flits;
        let half = vc / 4;
        if last {
            self.netlink.inputs[tile].writer[half] = NONE;
            self.netlink.wake_stalled(tile);
        }
        self.enter_tile(tile, half, head, item, io);
        self.passes_nic(0, nic, slot, flits)
    }

    /// Adds an item to the input queue of processor tile `tile` (0 to 7); `head` is its head, if it
    /// has one. A packet with no other ahead of it bypasses the queue
    /// ([`through`](super::through)).
    #[inline]
    fn enter_tile<P: Ports>(
        &mut self,
        tile: usize,
        half: usize,
        head: Option<Head>,
        item: Item,
        io: &mut P,
    ) {
        let at = (FIRST_PROCESSOR_TILE + tile, half * 4);
        let head = head.filter(|_| !I::TIMED && self.is_idle(at.0, at.1));
        let flits = item.flits();
        let mut waits = Some(item);
        if let (Some(head), true) = (head, I::THROUGH) {
            waits = self.send_past_queue(at, head, item, io);
        }
        let input = &mut self.netlink.inputs[tile];
        let Some(item) = waits else {
            input.taken[half] -= u16::from(flits);
            return;
        };
        self.pool.push(&mut input.fifos[half], item);
        input.flits[half] += u16::from(flits);
        if head.is_none() || !I::THROUGH {
            self.reaches_tile(at.0 * VCS + at.1, flits);
        }
        if head.is_some() && !I::THROUGH {
            self.send_from(at.0, io);
        }
    }

    /// Takes a flit or packet from a NIC's queue. `left` is the number of missing flits of its
    /// packet, `head` the head if it is next.
    #[inline]
    fn take_from_nic<P: Ports>(
        &mut self,
        port: usize,
        vc: usize,
        left: u8,
        head: Option<Head>,
        io: &mut P,
    ) -> Option<Item> {
        if let Some(head) = head.filter(|_| I::PACKETS) {
            return self.take_from(port, vc, Slot::head(head, 0, 0, true), io);
        }
        let flit = io.pop(port, vc)?;
        Some(Item::flit(Slot::body(flit, left == 1)))
    }

    /// Finds a tile for the packet at the front of a NIC's queue and returns its head, or `None` if
    /// no tile is available now.
    fn begin_from_nic<P: Ports>(&mut self, nic: usize, vc: usize, io: &mut P) -> Option<Head> {
        let port = FIRST_NIC_PORT + nic;
        if self.netlink.quiesced {
            return None;
        }
        let Some(flit) = io.front(port, vc) else {
            self.netlink.nics[nic].visible[vc] = 0;
            return None;
        };
        let Some(head) = Head::parse(flit) else {
            self.drop_headless_of_nic(nic, vc, io);
            return None;
        };
        if !I::can_begin(self.netlink.nics[nic].visible[vc], head) {
            // The rest of the packet wakes the channel.
            return None;
        }
        let ordered = head.routing().is_deterministic();
        let hash = ordered.then(|| self.routes.flow_hash(port as u8, head));
        let (half, length) = (vc / 4, u16::from(head.length()));
        let netlink = &mut self.netlink;
        let Some(tile) = netlink.input_tile(nic, half, hash) else {
            self.counters.netlink_stalls += 1;
            netlink.nics[nic].stalled |= 1 << vc;
            netlink.some_stalled = true;
            return None;
        };
        netlink.first[nic / 2][half] = (nic ^ 1) as u8;
        let input = &mut netlink.inputs[tile];
        input.writer[half] = (nic * VCS + vc) as u8;
        input.taken[half] += length;
        let state = &mut netlink.nics[nic];
        state.left[vc] = head.length();
        state.tile[vc] = tile as u8;
        if self.watch.is_some() {
            self.watch_nic(nic, vc, tile, head);
        }
        Some(head)
    }

    /// Drops a flit that is not a head where a packet should begin.
    #[cold]
    fn drop_headless_of_nic<P: Ports>(&mut self, nic: usize, vc: usize, io: &mut P) {
        let port = FIRST_NIC_PORT + nic;
        self.inputs.popped |= 1 << port;
        self.counters.headless_flits += 1;
        io.pop(port, vc);
        // If there are more flits, the channel retries in the next cycle.
        let visible = &mut self.netlink.nics[nic].visible[vc];
        *visible -= 1;
        if *visible > 0 {
            *visible -= 1;
            let channel = NIC_ARRIVALS + nic * VCS + vc;
            self.delay.enter(self.cycle + 1, channel as u16, 1);
        }
    }
}

#[cfg(test)]
#[path = "netlink_tests.rs"]
mod tests;

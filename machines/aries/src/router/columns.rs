//! Third stage: column buffers and output multiplexers (XC white paper, "Aries Router").
//!
//! An output arbitrates between the virtual channels, and among the column buffers of a channel.
//! The winning packet keeps the output until its end, because packets are not interleaved on a
//! link; it starts only when the link can accept all of it (virtual cut-through). Packets for an
//! inactive link are discarded, and so are packets for a tile and virtual channel whose
//! forward-progress timer has expired.
//!
//! Processor tiles pass their packets to Netlink, network tiles to their link.

use phitwire_framing::aries::flit::Head;

use super::event::AriesEvent;
use super::grain::Items;
use super::pace::Pace;
use super::pipeline::{
    BUFFERS, ColumnBufferId, ColumnPipe, FIRST_PROCESSOR_TILE, NETWORK, ROWS, TILES, Wake,
};
use super::pool::{Fifo, Item, Pool, Slot};
use super::tiles::{Ports, Tiles};
use crate::route::registers::{FIRST_NIC_PORT, VCS};
use phitwire::kit::below;
use phitwire::kit::tiles::boxed;
use phitwire::kit::{MatrixArbiter, Next};

/// The packet being sent by an output multiplexer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Current(u16);

impl Current {
    const NONE: Self = Self(0xffff);
    const DEAD: u16 = 1 << 8;
    const STALLED: u16 = 1 << 9;

    pub(super) const fn new(vc: usize, source_row: usize, drain: u16) -> Self {
        Self(vc as u16 | (source_row as u16) << 3 | drain)
    }
    const fn vc(self) -> usize {
        (self.0 & 7) as usize
    }
    const fn source_row(self) -> usize {
        (self.0 >> 3 & 7) as usize
    }
    const fn drains(self) -> u16 {
        self.0 & (Self::DEAD | Self::STALLED)
    }
}

#[derive(Clone, Copy, Debug)]
struct Output {
    /// Source rows with flits: a byte per virtual channel.
    requests: u64,
    vc_turn: MatrixArbiter,
    /// The last granted source row of each virtual channel.
    last: [u8; VCS],
    current: Current,
}

/// All column buffers and output multiplexers of a chip.
#[derive(Debug)]
pub(super) struct Columns {
    /// Output tiles that may have a packet to send.
    pub(super) active: u64,
    /// Output tiles that are sending a packet.
    pub(super) busy: u64,
    /// Output tiles with waiting flits.
    waiting: u64,
    /// Output tiles, per virtual channel, that have begun to send a packet since the last
    /// forward-progress check.
    pub(super) moved: [u64; VCS],
    /// Output tiles, per virtual channel, whose forward-progress timer has expired.
    pub(super) discarding: [u64; VCS],
    /// Ports that were handed flits since the last query.
    pub(super) pushed: u64,
    /// Network ports below full speed, and their pace.
    slow: (u64, Pace),
    fifos: Box<[Fifo; BUFFERS]>,
    pub(super) pipes: Box<[ColumnPipe; BUFFERS]>,
    outputs: Box<[Output; TILES]>,
}

/// A packet that an output could start on a virtual channel.
enum Candidate {
    Packet(usize),
    Drain(usize, u16),
}

impl Columns {
    pub(super) fn new() -> Self {
        Self {
            active: 0,
            busy: 0,
            waiting: 0,
            moved: [0; VCS],
            discarding: [0; VCS],
            pushed: 0,
            slow: (0, Pace::PORT),
            fifos: boxed(Fifo::EMPTY),
            pipes: boxed(ColumnPipe::new(0)),
            outputs: boxed(Output {
                requests: 0,
                vc_turn: MatrixArbiter::new(),
                last: [0; VCS],
                current: Current::NONE,
            }),
        }
    }

    /// Sets a slower pace for these network ports, because links without lanes cannot delay flits
    /// themselves.
    pub(super) fn set_slow(&mut self, ports: u64, pace: Pace) {
        self.slow = (ports & NETWORK, pace);
    }

    #[inline]
    pub(super) fn pace(&self, port: usize) -> Pace {
        match self.slow {
            (ports, pace) if ports >> port & 1 != 0 => pace,
            _ => Pace::PORT,
        }
    }

    /// Those of `ports` that may send a flit in `cycle`.
    #[inline]
    fn with_slot(&self, ports: u64, cycle: u64) -> u64 {
        let (slow, pace) = self.slow;
        let (mut open, slow) = (ports & !slow, ports & slow);
        if Pace::PORT.slots_in(cycle) == 0 {
            open = 0;
        }
        if slow != 0 && pace.slots_in(cycle) > 0 {
            open |= slow;
        }
        open
    }

    #[inline]
    pub(super) fn pending(&self) -> u64 {
        self.active & !self.busy
    }

    /// Puts an item on a column bus. Returns true if the output must be woken when the item
    /// arrives.
    #[inline]
    pub(super) fn write<I: Items>(
        &mut self,
        cycle: u32,
        id: ColumnBufferId,
        item: Item,
        pool: &mut Pool,
    ) -> bool {
        let wakes = I::write(&mut self.pipes[id.index()], cycle, item.flits());
        pool.push(&mut self.fifos[id.index()], item);
        wakes
    }

    /// Records that a flit arrived in a column buffer that was empty for its output.
    #[inline]
    pub(super) fn arrived(&mut self, id: ColumnBufferId) {
        let output = below::<TILES>(id.output());
        self.outputs[output].requests |= 1 << (id.vc() * 8 + id.source_row());
        self.waiting |= 1 << output;
        self.active |= 1 << output;
    }

    #[cfg(test)]
    pub(super) fn outputs(&self) -> &impl core::fmt::Debug {
        &self.outputs
    }

    /// Flits in column buffers and on the wires to them, by output tile and virtual channel.
    pub(super) fn by_output<I: Items>(&self) -> [[u64; VCS]; TILES] {
        let mut held = [[0; VCS]; TILES];
        for (index, pipe) in self.pipes.iter().enumerate() {
            let id = ColumnBufferId::at(index);
            // Two of the eight row numbers are unused.
            if let Some(held) = held.get_mut(id.output()) {
                held[id.vc()] += u64::from(I::flits(pipe));
            }
        }
        held
    }

    /// Flits in column buffers and on the wires to them.
    pub(super) fn flits<I: Items>(&self) -> u64 {
        self.pipes
            .iter()
            .map(|pipe| u64::from(I::flits(pipe)))
            .sum()
    }

    /// Lets these outputs retry.
    #[inline]
    pub(super) fn wake(&mut self, outputs: u64) {
        self.active |= self.waiting & outputs;
    }

    /// Output tiles, per virtual channel, with waiting flits that are not discarded.
    pub(super) fn waiting_to_progress(&self) -> [u64; VCS] {
        let mut waiting = [0; VCS];
        let mut outputs = self.waiting;
        while outputs != 0 {
            let output = outputs.trailing_zeros() as usize;
            outputs &= outputs - 1;
            let requests = self.outputs[below::<TILES>(output)].requests.to_le_bytes();
            for (waiting, sources) in waiting.iter_mut().zip(requests) {
                *waiting |= u64::from(sources != 0) << output;
            }
        }
        for (waiting, discarding) in waiting.iter_mut().zip(self.discarding) {
            *waiting &= !discarding;
        }
        waiting
    }

    /// The head at the front of a column buffer.
    #[inline]
    fn front(&self, id: ColumnBufferId, pool: &Pool) -> Option<Slot> {
        pool.front(&self.fifos[id.index()])
    }
}

impl<I: Items> Tiles<I> {
    /// Each output that can send forwards one flit. Network ports send only in cycles with a slot.
    pub(super) fn output_stage<P: Ports>(&mut self, io: &mut P) {
        let mut pending = self.columns.pending();
        if self.has_slots() {
            let network = self.columns.with_slot(pending & NETWORK, self.cycle);
            pending = pending & !NETWORK | network;
        }
        while pending != 0 {
            let output = pending.trailing_zeros() as usize;
            pending &= pending - 1;
            self.output(below::<TILES>(output), io);
        }
    }

    /// Takes the flit at the front of a column buffer.
    #[inline]
    fn read_column(&mut self, output: usize, current: Current) -> Item {
        let (vc, source_row) = (current.vc(), current.source_row());
        let id = ColumnBufferId::at_output(output, vc, source_row);
        let now = self.wire_clock();
        let columns = &mut self.columns;
        let Some(item) = self.pool.pop(&mut columns.fifos[id.index()]) else {
            unreachable!("a requesting column buffer has a flit");
        };
        let (next, wakes_subswitch) = I::read(&mut columns.pipes[id.index()], now, item.flits());
        if next != Next::Ready {
            let requests = &mut columns.outputs[output].requests;
            *requests &= !(1 << (vc * 8 + source_row));
            if *requests == 0 {
                columns.waiting &= !(1 << output);
                columns.active &= !(1 << output);
            }
            if let Next::Ahead(cycles) = next {
                self.wake_ahead(cycles.into(), Wake::ColumnReader(id));
            }
        }
        if wakes_subswitch {
            self.wake_column_writer(id);
        }
        item
    }

    #[inline]
    pub(super) fn output<P: Ports>(&mut self, output: usize, io: &mut P) {
        let Output {
            requests,
            mut current,
            ..
        } = self.columns.outputs[output];
        if current == Current::NONE {
            current = self.grant_output(output, requests, io);
            if current == Current::NONE {
                self.stalls[2] += u64::from(requests != 0);
                self.columns.active &= !(1 << output);
                return;
            }
            self.columns.outputs[output].current = current;
        } else if requests >> (current.vc() * 8 + current.source_row()) & 1 == 0 {
            self.columns.active &= !(1 << output);
            return;
        }
        let item = self.read_column(output, current);
        self.leave_by(output, current, item, io);
    }

    /// Sends or discards an item that `output` has read from a column buffer.
    #[inline]
    pub(super) fn leave_by<P: Ports>(
        &mut self,
        output: usize,
        current: Current,
        item: Item,
        io: &mut P,
    ) {
        let (slot, flits) = (item.slot, item.flits());
        self.loads.leave(output, flits);
        if slot.is_head() && self.watch.is_some() {
            self.watch_output(output, current, slot);
        }
        if slot.is_last() {
            self.columns.outputs[output].current = Current::NONE;
        }
        self.is_leaving(output, flits);
        if current.drains() != 0 {
            self.pool.unload(item, |_| ());
            return self.discard(current, flits, slot.is_last());
        }
        if output < FIRST_PROCESSOR_TILE {
            self.push_to(output, item, io);
        } else {
            self.leave_for_nic(output - FIRST_PROCESSOR_TILE, item, io);
        }
    }

    /// Traces a head that leaves a column buffer or is discarded.
    #[cold]
    fn watch_output(&mut self, output: usize, current: Current, slot: Slot) {
        let (vc, source_row) = (current.vc(), current.source_row());
        let id = ColumnBufferId::at_output(output, vc, source_row);
        let discarded = match current.drains() {
            0 => None,
            Current::DEAD => Some("the link of the output is down"),
            _ => Some("nothing left the output within the forward-progress timeout"),
        };
        if let Some(head) = Head::parse(slot.flit()) {
            self.watch_column(id, output, head, discarded);
        }
    }

    #[inline]
    pub(super) fn push_to<P: Ports>(&mut self, port: usize, item: Item, io: &mut P) {
        let slot = item.slot;
        self.columns.pushed |= 1 << port;
        self.loads.hand_over(port);
        self.counters.flits_forwarded += u64::from(item.flits());
        self.counters.packets_forwarded += u64::from(slot.is_last());
        if slot.is_head() {
            let poisoned = Head::parse(slot.flit()).is_some_and(Head::poisoned);
            self.counters.poisoned_packets_forwarded += u64::from(poisoned);
        }
        self.hand_over(port, item, io);
    }

    /// Grants an idle output to a packet; returns the packet, its source, and whether to discard
    /// it.
    #[inline]
    fn grant_output<P: Ports>(&mut self, output: usize, requests: u64, io: &P) -> Current {
        let mut asks = 0u8;
        let mut chosen = [0u16; VCS];
        let mut left = requests;
        while left != 0 {
            let vc = left.trailing_zeros() as usize / 8;
            let sources = (left >> (8 * vc)) as u8;
            left &= !(0xff << (8 * vc));
            let Some(candidate) = self.candidate(output, vc, sources, io) else {
                continue;
            };
            asks |= 1 << vc;
            chosen[vc] = match candidate {
                Candidate::Packet(source_row) => Current::new(vc, source_row, 0),
                Candidate::Drain(source_row, why) => Current::new(vc, source_row, why),
            }
            .0;
        }
        if asks == 0 {
            return Current::NONE;
        }
        let vc = usize::from(self.columns.outputs[output].vc_turn.pick(asks));
        let current = Current(chosen[below::<VCS>(vc)]);
        let id = ColumnBufferId::at_output(output, current.vc(), current.source_row());
        if let Some(head) = self.columns.front(id, &self.pool) {
            self.begin_leaving(output, current, head);
        }
        current
    }

    /// Records the grant of an output to the packet with `head`. At a processor tile, also reserves
    /// room in Netlink and on the NIC's link.
    #[inline]
    pub(super) fn begin_leaving(&mut self, output: usize, current: Current, head: Slot) {
        let vc = current.vc();
        self.columns.moved[vc] |= 1 << output;
        let state = &mut self.columns.outputs[output];
        state.vc_turn.grant(vc as u8);
        state.last[vc] = current.source_row() as u8;
        if output >= FIRST_PROCESSOR_TILE && current.drains() == 0 {
            self.netlink
                .reserve_output(output, head.nic(), head.length());
        }
    }

    /// The port by which the packet with `head` leaves `output`, and whether it can start now.
    #[inline]
    pub(super) fn can_leave<P: Ports>(
        &self,
        output: usize,
        vc: usize,
        head: Slot,
        io: &P,
    ) -> (usize, bool) {
        let length = usize::from(head.length());
        if output < FIRST_PROCESSOR_TILE {
            return (output, io.can_begin(output, vc, length));
        }
        let port = FIRST_NIC_PORT + head.nic();
        let (before, room) = self.netlink.output_room(output, head.nic());
        (port, room && io.can_promise(port, vc, before + length))
    }

    /// A packet that an idle output could start on a channel with packets from `sources`: the next
    /// in turn or, at processor tiles, the next whose NIC can accept it.
    #[inline]
    fn candidate<P: Ports>(
        &mut self,
        output: usize,
        vc: usize,
        sources: u8,
        io: &P,
    ) -> Option<Candidate> {
        let turn = u32::from(self.columns.outputs[output].last[vc]) + 1;
        let discarding = self.columns.discarding[vc] >> output & 1 != 0;
        let mut first = None;
        let mut left = sources.rotate_right(turn);
        while left != 0 {
            let source_row = below::<ROWS>(((left.trailing_zeros() + turn) % 8) as usize);
            left &= left - 1;
            let id = ColumnBufferId::at_output(output, vc, source_row);
            let head = self.columns.front(id, &self.pool)?;
            let (port, can) = self.can_leave(output, vc, head, io);
            if can {
                if discarding {
                    self.resume(output, vc);
                }
                return Some(Candidate::Packet(source_row));
            }
            if !io.is_active(port) {
                return Some(Candidate::Drain(source_row, Current::DEAD));
            }
            first.get_or_insert(source_row);
            if output < FIRST_PROCESSOR_TILE {
                break;
            }
        }
        if discarding {
            return Some(Candidate::Drain(first?, Current::STALLED));
        }
        None
    }

    /// Stops discarding, because the link accepts packets again.
    #[cold]
    pub(super) fn resume(&mut self, output: usize, vc: usize) {
        self.columns.discarding[vc] &= !(1 << output);
        self.events.push(AriesEvent::ForwardProgressRestored {
            tile: output as u8,
            vc: vc as u8,
        });
    }

    #[cold]
    fn discard(&mut self, current: Current, flits: u8, ends: bool) {
        let (flits, packets) = (u64::from(flits), u64::from(ends));
        if current.drains() & Current::DEAD != 0 {
            self.counters.dead_port_flits += flits;
            self.counters.dead_port_packets += packets;
        } else {
            self.counters.stalled_port_flits += flits;
            self.counters.stalled_port_packets += packets;
        }
    }
}

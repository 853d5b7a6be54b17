//! Third stage: column buffers and output multiplexers (BlackWidow sec. 3, 4.2, 6, 7.5, 7.7).
//!
//! Packets win an output by 8-to-1 arbitration among the column buffers, per virtual channel, and
//! then 2-to-1 arbitration between the virtual channels. They keep the output until their end,
//! because packets are not interleaved on a link. A packet starts only when the link can accept all
//! of it (virtual cut-through). Packets for an inactive link are discarded, and so are packets for
//! a port and virtual channel whose forward-progress timer has expired.

use phitwire_framing::yarc::packet::{EopStatus, Vc, eop_status};
use phitwire_framing::yarc::phit::CONTENT_MASK;

use super::core::{Core, Ports, SLOT_EOP, SLOT_KIND_MASK, Slot, from_slot};
use super::event::RouterEvent;
use super::pipeline::{BUFFERS, COLUMN_CREDIT_CYCLES, ColumnBufferId, ColumnPipe, Ring, Wake};
use crate::route::registers::PORTS;
use phitwire::kit::below;
use phitwire::kit::pipe::RING_SLOTS;
use phitwire::kit::tiles::boxed;
use phitwire::kit::{MatrixArbiter, Next, RoundRobin};

/// The packet that holds an output multiplexer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Current(u8);

impl Current {
    const NONE: Self = Self(0xff);
    const DEAD: u8 = 1 << 4;
    const STALLED: u8 = 1 << 5;

    const fn new(vc: usize, source_row: u8, drain: u8) -> Self {
        Self(vc as u8 | source_row << 1 | drain)
    }
    const fn vc(self) -> usize {
        (self.0 & 1) as usize
    }
    const fn source_row(self) -> u8 {
        self.0 >> 1 & 7
    }
    const fn drains(self) -> u8 {
        self.0 & (Self::DEAD | Self::STALLED)
    }
}

#[derive(Clone, Copy, Debug)]
struct Output {
    source_turn: [MatrixArbiter; 2],
    requests: [u8; 2],
    current: Current,
}

/// All column buffers and output multiplexers of a chip.
#[derive(Debug)]
pub(super) struct Columns {
    /// Outputs that may have a phit to send.
    pub(super) active: u64,
    /// Outputs with waiting phits, per virtual channel.
    pub(super) waiting: [u64; 2],
    /// Outputs, per virtual channel, that have begun to send a packet since the last
    /// forward-progress check.
    pub(super) moved: [u64; 2],
    /// Outputs, per virtual channel, whose forward-progress timer has expired.
    pub(super) discarding: [u64; 2],
    /// Outputs that sent phits since the last call of `take_moved`.
    pub(super) pushed: u64,
    rings: Box<[Ring; BUFFERS]>,
    pub(super) pipes: Box<[ColumnPipe; BUFFERS]>,
    outputs: Box<[Output; PORTS]>,
    vc_turn: RoundRobin,
}

impl Columns {
    pub(super) fn new() -> Self {
        Self {
            active: 0,
            waiting: [0; 2],
            moved: [0; 2],
            discarding: [0; 2],
            pushed: 0,
            rings: boxed(Ring([0; RING_SLOTS])),
            pipes: boxed(ColumnPipe::new(0)),
            outputs: boxed(Output {
                source_turn: [MatrixArbiter::new(); 2],
                requests: [0; 2],
                current: Current::NONE,
            }),
            vc_turn: RoundRobin::new(),
        }
    }

    /// Puts a phit on a column channel. Returns true if the output must be woken when the phit
    /// arrives.
    #[inline]
    pub(super) fn write(&mut self, cycle: u32, id: ColumnBufferId, slot: Slot) -> bool {
        let (place, wakes) = self.pipes[id.index()].write(cycle);
        self.rings[id.index()].0[place] = slot;
        wakes
    }

    /// Records that a phit arrived in a column buffer that was empty for its output.
    #[inline]
    pub(super) fn arrived(&mut self, id: ColumnBufferId) {
        let output = id.output();
        self.outputs[output].requests[id.vc()] |= 1 << id.source_row();
        self.waiting[id.vc()] |= 1 << output;
        self.active |= 1 << output;
    }

    /// The free slots in the eight column buffers of one virtual channel that the subswitch knows
    /// of.
    #[inline]
    pub(super) fn credits_of_subswitch(&self, subswitch: usize, vc: usize, cycle: u32) -> [u8; 8] {
        core::array::from_fn(|row| {
            self.pipes[ColumnBufferId::new(subswitch, vc, row).index()].credits(cycle)
        })
    }

    /// Phits in column buffers and on the wires to them.
    pub(super) fn phits(&self) -> u64 {
        self.pipes.iter().map(|pipe| u64::from(pipe.len())).sum()
    }

    /// Phits by output tile and virtual channel.
    pub(super) fn by_output(&self) -> [[u64; 2]; PORTS] {
        let mut held = [[0; 2]; PORTS];
        for (index, pipe) in self.pipes.iter().enumerate() {
            let id = ColumnBufferId::at(index);
            held[id.output()][id.vc()] += u64::from(pipe.len());
        }
        held
    }

    /// Lets an output retry its waiting phits.
    #[inline]
    pub(super) fn wake(&mut self, output: usize) {
        self.active |= (self.waiting[0] | self.waiting[1]) & 1 << output;
    }
}

impl Core {
    /// Each ready output sends one phit.
    pub(super) fn output_stage<P: Ports>(&mut self, io: &mut P) {
        let mut pending = self.columns.active;
        while pending != 0 {
            let output = pending.trailing_zeros() as usize;
            pending &= pending - 1;
            self.output(output, io);
        }
    }

    /// Takes the phit at the front of a column buffer.
    #[inline]
    fn read_column(&mut self, output: usize, current: Current) -> Slot {
        let (vc, source_row) = (current.vc(), current.source_row());
        let id = ColumnBufferId::at_output(output, vc, usize::from(source_row));
        let columns = &mut self.columns;
        let pipe = &mut columns.pipes[id.index()];
        let slot = columns.rings[id.index()].0[pipe.front()];
        let (next, wakes_subswitch) = pipe.read(self.cycle as u32);
        if next != Next::Ready {
            let requests = &mut columns.outputs[below::<PORTS>(output)].requests[vc];
            *requests &= !(1 << source_row);
            if *requests == 0 {
                columns.waiting[vc] &= !(1 << output);
            }
            if let Next::Ahead(cycles) = next {
                self.calendar
                    .enter(self.cycle, cycles.into(), Wake::ColumnReader(id));
            }
        }
        if wakes_subswitch {
            self.calendar
                .enter(self.cycle, COLUMN_CREDIT_CYCLES, Wake::ColumnWriter(id));
        }
        slot
    }

    #[inline]
    fn output<P: Ports>(&mut self, output: usize, io: &mut P) {
        let Output {
            requests,
            mut current,
            ..
        } = self.columns.outputs[below::<PORTS>(output)];
        if current == Current::NONE {
            current = self.grant_output(output, requests, io);
            if current == Current::NONE {
                self.stalls[2] += u64::from(requests[0] | requests[1] != 0);
                self.columns.active &= !(1 << output);
                return;
            }
            self.columns.outputs[below::<PORTS>(output)].current = current;
            self.columns.moved[current.vc()] |= 1 << output;
            if self.watch.is_some() {
                self.watch_output(output, current);
            }
        } else if requests[current.vc()] >> current.source_row() & 1 == 0 {
            self.columns.active &= !(1 << output);
            return;
        }
        let slot = self.read_column(output, current);
        let ends = slot & SLOT_KIND_MASK == SLOT_EOP;
        if ends {
            self.columns.outputs[below::<PORTS>(output)].current = Current::NONE;
        }
        if current.drains() != 0 {
            return self.discard(current, ends);
        }
        self.counters.phits_forwarded += 1;
        if ends {
            self.counters.packets_forwarded += 1;
            let healthy = eop_status(slot & CONTENT_MASK) == Some(EopStatus::Healthy);
            self.counters.poisoned_packets_forwarded += u64::from(!healthy);
        }
        self.columns.pushed |= 1 << output;
        io.push(output, from_slot(slot));
    }

    /// Traces a head that is about to leave a column buffer.
    #[cold]
    fn watch_output(&mut self, output: usize, current: Current) {
        let (vc, source_row) = (current.vc(), current.source_row());
        let id = ColumnBufferId::at_output(output, vc, usize::from(source_row));
        let pipe = &self.columns.pipes[id.index()];
        let slot = self.columns.rings[id.index()].0[pipe.front()];
        let discarded = match current.drains() {
            0 => None,
            Current::DEAD => Some("the link of the output is down"),
            _ => Some("nothing left the output within the forward-progress timeout"),
        };
        self.watch_column(id, slot, (output, vc), discarded);
    }

    /// Grants an idle output to a packet; returns the packet, its source, and whether to discard
    /// it.
    #[inline]
    fn grant_output<P: Ports>(&mut self, output: usize, requests: [u8; 2], io: &P) -> Current {
        let mut drain = [0; 2];
        let mut asks = [false; 2];
        for vc in 0..2 {
            if requests[vc] == 0 {
                continue;
            }
            if io.can_begin(output, vc) {
                asks[vc] = true;
                if self.columns.discarding[vc] >> output & 1 != 0 {
                    self.resume(output, vc);
                }
            } else if !io.is_active(output) {
                asks[vc] = true;
                drain[vc] = Current::DEAD;
            } else if self.columns.discarding[vc] >> output & 1 != 0 {
                asks[vc] = true;
                drain[vc] = Current::STALLED;
            }
        }
        if !(asks[0] || asks[1]) {
            return Current::NONE;
        }
        let vc = self
            .columns
            .vc_turn
            .arbitrate(output as u32, asks[0], asks[1]);
        let turn = &mut self.columns.outputs[below::<PORTS>(output)].source_turn[vc];
        let source_row = turn.arbitrate(requests[vc]);
        Current::new(vc, source_row, drain[vc])
    }

    /// Stops discarding, because the link accepts packets again.
    #[cold]
    fn resume(&mut self, output: usize, vc: usize) {
        self.columns.discarding[vc] &= !(1 << output);
        let vc = Vc::from_index(vc);
        self.events.push(RouterEvent::ForwardProgressRestored {
            port: output as u8,
            vc,
        });
    }

    #[cold]
    fn discard(&mut self, current: Current, ends: bool) {
        let packets = u64::from(ends);
        if current.drains() & Current::DEAD != 0 {
            self.counters.dead_port_phits += 1;
            self.counters.dead_port_packets += packets;
        } else {
            self.counters.stalled_port_phits += 1;
            self.counters.stalled_port_packets += packets;
        }
    }
}

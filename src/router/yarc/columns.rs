//! Third stage: column buffers and output multiplexers (paper, sections 3, 4.2, 6, 7.5, 7.7).
//!
//! An output is given to one packet by 8-to-1 arbitration among the column buffers, per virtual
//! channel, then 2-to-1 between the virtual channels, and stays with it until its end: on a link packets
//! are not interleaved, and one starts only when the link can take all of it (virtual
//! cut-through). Packets for a link that is not active go nowhere, as do those for a port and virtual
//! channel whose forward-progress timer has expired.

use phitwire_framing::packet24::{EopStatus, Vc, eop_status};
use phitwire_framing::phit24::CONTENT_MASK;

use super::core::{Core, Ports, SLOT_EOP, SLOT_KIND_MASK, Slot, boxed, from_slot};
use super::event::RouterEvent;
use super::pipeline::{
    BUFFERS, COLUMN_CREDIT_CYCLES, COLUMN_CYCLES, COLUMN_SLOTS, ColumnBufferId, PORT_VCS,
};
use super::registers::PORTS;
use crate::switch::{DelayLine, MatrixArbiter, RoundRobin};

/// The packet that an output multiplexer is busy with.
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

/// The state of one column buffer of one virtual channel: a ring of ten places.
#[derive(Clone, Copy, Debug)]
struct ColumnBuffer {
    head: u8,
    tail: u8,
    /// Phits that have arrived over the wire and not been read.
    visible: u8,
}

/// All column buffers and output multiplexers of a chip.
#[derive(Debug)]
pub(super) struct Columns {
    /// Outputs that may have something to send.
    pub(super) active: u64,
    /// Outputs, per virtual channel, for which phits wait.
    pub(super) waiting: [u64; 2],
    /// Outputs, per virtual channel, that a phit left by since the last forward-progress check.
    pub(super) moved: [u64; 2],
    /// Outputs, per virtual channel, whose forward-progress timer has expired.
    pub(super) discarding: [u64; 2],
    /// Outputs that phits were handed to since the owner last asked.
    pub(super) pushed: u64,
    slots: Box<[Slot; BUFFERS * COLUMN_SLOTS]>,
    buffers: Box<[ColumnBuffer; BUFFERS]>,
    /// Which source rows have phits, per (output, virtual channel).
    requests: Box<[u8; PORT_VCS]>,
    current: Box<[Current; PORTS]>,
    source_turn: Box<[MatrixArbiter; PORT_VCS]>,
    vc_turn: RoundRobin,
    /// Phits on the column channels: column buffers that will see one more.
    pub(super) inbound: DelayLine<u16>,
    /// Credits on their way back to the subswitches.
    pub(super) freed: DelayLine<u16>,
}

impl Columns {
    pub(super) fn new() -> Self {
        Self {
            active: 0,
            waiting: [0; 2],
            moved: [0; 2],
            discarding: [0; 2],
            pushed: 0,
            slots: boxed(0),
            buffers: boxed(ColumnBuffer {
                head: 0,
                tail: 0,
                visible: 0,
            }),
            requests: boxed(0),
            current: boxed(Current::NONE),
            source_turn: boxed(MatrixArbiter::new()),
            vc_turn: RoundRobin::new(),
            inbound: DelayLine::new(COLUMN_CYCLES),
            freed: DelayLine::new(COLUMN_CREDIT_CYCLES),
        }
    }

    /// Puts a phit on a column channel.
    #[inline]
    pub(super) fn write(&mut self, now: u64, id: ColumnBufferId, slot: Slot) {
        let buffer = &mut self.buffers[id.index()];
        self.slots[id.index() * COLUMN_SLOTS + usize::from(buffer.tail)] = slot;
        buffer.tail = next_place(buffer.tail);
        self.inbound.push(now, id.0);
    }

    /// A phit has come over the column channel into its column buffer.
    #[inline]
    pub(super) fn arrived(&mut self, id: ColumnBufferId) {
        let buffer = &mut self.buffers[id.index()];
        buffer.visible += 1;
        debug_assert!(
            usize::from(buffer.visible) <= COLUMN_SLOTS,
            "a column buffer overflowed"
        );
        let output = id.output();
        self.requests[output * 2 + id.vc()] |= 1 << id.source_row();
        self.waiting[id.vc()] |= 1 << output;
        self.active |= 1 << output;
    }

    /// Lets an output look again at what waits for it.
    #[inline]
    pub(super) fn wake(&mut self, output: usize) {
        self.active |= (self.waiting[0] | self.waiting[1]) & 1 << output;
    }

    /// Takes the phit at the front of a column buffer.
    #[inline]
    fn read(&mut self, now: u64, output: usize, vc: usize, source_row: u8) -> Slot {
        let id = ColumnBufferId::at_output(output, vc, usize::from(source_row));
        let buffer = &mut self.buffers[id.index()];
        let slot = self.slots[id.index() * COLUMN_SLOTS + usize::from(buffer.head)];
        buffer.head = next_place(buffer.head);
        buffer.visible -= 1;
        if buffer.visible == 0 {
            let requests = &mut self.requests[output * 2 + vc];
            *requests &= !(1 << source_row);
            if *requests == 0 {
                self.waiting[vc] &= !(1 << output);
            }
        }
        self.moved[vc] |= 1 << output;
        self.freed.push(now, id.0);
        slot
    }
}

#[inline]
const fn next_place(place: u8) -> u8 {
    if place as usize + 1 == COLUMN_SLOTS {
        0
    } else {
        place + 1
    }
}

impl Core {
    /// Lets every output that can send one phit.
    pub(super) fn output_stage<P: Ports>(&mut self, io: &mut P) {
        let mut pending = self.columns.active;
        while pending != 0 {
            let output = pending.trailing_zeros() as usize;
            pending &= pending - 1;
            self.output(output, io);
        }
    }

    #[inline]
    fn output<P: Ports>(&mut self, output: usize, io: &mut P) {
        let mut current = self.columns.current[output];
        if current == Current::NONE {
            current = self.grant_output(output, io);
            if current == Current::NONE {
                self.columns.active &= !(1 << output);
                return;
            }
            self.columns.current[output] = current;
        } else if self.columns.requests[output * 2 + current.vc()] >> current.source_row() & 1 == 0
        {
            self.columns.active &= !(1 << output);
            return;
        }
        let slot = self
            .columns
            .read(self.cycle, output, current.vc(), current.source_row());
        let ends = slot & SLOT_KIND_MASK == SLOT_EOP;
        if ends {
            self.columns.current[output] = Current::NONE;
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

    /// Gives an idle output to a packet: which, from where, and whether it is to be discarded.
    #[inline]
    fn grant_output<P: Ports>(&mut self, output: usize, io: &P) -> Current {
        let mut drain = [0; 2];
        let mut asks = [false; 2];
        for vc in 0..2 {
            if self.columns.requests[output * 2 + vc] == 0 {
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
        let index = output * 2 + vc;
        let source_row = self.columns.source_turn[index].arbitrate(self.columns.requests[index]);
        Current::new(vc, source_row, drain[vc])
    }

    /// The link takes packets again: nothing more is discarded.
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

//! First stage: input queues, route decision and row buses (BlackWidow sec. 3 and 5).
//!
//! A row bus carries one phit per cycle from a single port, so arbitration is only between the two
//! virtual channels of the port. A phit is sent when its row buffer has a free slot.

use phitwire_framing::yarc::packet::{
    hash_bits, head_adaptive, head_dest, head_hashed, head_source_routed,
};
use phitwire_framing::yarc::phit::Phit;

use super::core::{Core, Ports, SLOT_BODY, SLOT_KIND_MASK, SLOT_MASK_SHIFT, Slot, to_slot};
use super::event::RouterEvent;
use super::pipeline::{PORT_VCS, ROW_CYCLES, RowBufferId, Wake};
use crate::route::adaptive::{column_mask, open_columns, preferred_columns, row_mask};
use crate::route::decision::RouteRequest;
use crate::route::registers::PORTS;
use crate::route::{Decision, Refusal};
use phitwire::kit::below;
use phitwire::kit::tiles::boxed;
use phitwire::kit::{Calendar, MatrixArbiter, Room, RoundRobin};

/// Number of columns, and of rows, of a chip.
const COLUMNS: u8 = 8;
/// Value of `flow`: the next phit is a head.
const AT_HEAD: u8 = 0xff;
/// Value of `flow`: discard the packet up to its end.
const SWALLOW: u8 = 0xfe;
/// Value of `flow`: gather a maintenance packet up to its end.
const GATHER: u8 = 0xfd;
/// Value of `waits_for`: no column.
const NOTHING: u8 = 0;

/// Slots for announced arrivals, one per cycle from now on.
pub(super) const ANNOUNCED_SLOTS: usize = 128;

/// The read side of one input virtual channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct InputVc {
    /// Phits that have passed the stages of the input block. May be too high after the link
    /// withdrew a rejected packet, until the queue is found empty.
    visible: u32,
    /// Column of the packet in progress, or one of the constants above.
    flow: u8,
    /// Bit mask of columns. A row buffer of one of them must free a slot before this channel can
    /// continue.
    waits_for: u8,
}

/// State of all input queues, without their contents.
#[derive(Debug)]
pub(super) struct Inputs {
    /// Ports that can send a phit, per virtual channel.
    pub(super) ready: [u64; 2],
    /// Ports that were read since the last call of `take_moved`.
    pub(super) popped: u64,
    vcs: Box<[InputVc; PORT_VCS]>,
    vc_turn: RoundRobin,
    column_turn: Box<[MatrixArbiter; PORTS]>,
    pub(super) arrivals: Calendar<(u8, u32)>,
    /// Ports with single announced phits, per virtual channel, by the cycle (modulo the number of
    /// slots) in which the phits will have passed the input block.
    announced: Box<[[u64; 2]; ANNOUNCED_SLOTS]>,
    /// Non-empty slots of `announced`.
    announced_slots: u128,
}

impl Inputs {
    pub(super) fn new() -> Self {
        Self {
            ready: [0; 2],
            popped: 0,
            vcs: boxed(InputVc {
                visible: 0,
                flow: AT_HEAD,
                waits_for: NOTHING,
            }),
            vc_turn: RoundRobin::new(),
            column_turn: boxed(MatrixArbiter::new()),
            arrivals: Calendar::new(),
            announced: boxed([0; 2]),
            announced_slots: 0,
        }
    }

    #[inline]
    pub(super) fn announce(&mut self, visible: u64, vc: usize, ports: u64) {
        let slot = visible as usize % ANNOUNCED_SLOTS;
        self.announced[slot][vc] |= ports;
        self.announced_slots |= 1 << slot;
    }

    /// The first cycle at or after `now` for which phits are announced.
    #[inline]
    pub(super) fn next_announced(&self, now: u64) -> Option<u64> {
        if self.announced_slots == 0 {
            return None;
        }
        let turn = (now as usize % ANNOUNCED_SLOTS) as u32;
        let ahead = self.announced_slots.rotate_right(turn).trailing_zeros();
        Some(now + u64::from(ahead))
    }

    /// Handles the phits announced for `now`, which have passed the input block.
    #[inline]
    pub(super) fn take_announced(&mut self, now: u64) {
        let slot = now as usize % ANNOUNCED_SLOTS;
        if self.announced_slots >> slot & 1 == 0 {
            return;
        }
        self.announced_slots &= !(1 << slot);
        let ports = core::mem::take(&mut self.announced[slot]);
        for (vc, mut ports) in ports.into_iter().enumerate() {
            while ports != 0 {
                let port = ports.trailing_zeros();
                ports &= ports - 1;
                self.arrived((port * 2) as u8 | vc as u8, 1);
            }
        }
    }

    /// Records that phits of (port, virtual channel) `port_vc` have passed the input block.
    #[inline]
    pub(super) fn arrived(&mut self, port_vc: u8, phits: u32) {
        let index = below::<PORT_VCS>(port_vc.into());
        let state = &mut self.vcs[index];
        state.visible = state.visible.saturating_add(phits);
        // Within a packet only a free slot helps. Before a head it may be another packet than the
        // one that waited (the link withdraws rejected packets), so decide again.
        if state.waits_for == NOTHING || state.flow == AT_HEAD {
            state.waits_for = NOTHING;
            self.ready[index & 1] |= 1 << (index >> 1);
        }
    }

    #[inline]
    fn sleep(&mut self, port: usize, vc: usize) {
        self.ready[vc] &= !(1 << port);
    }

    /// Decides again, because the packet at the front may not be the one that waited.
    #[cold]
    pub(super) fn front_changed(&mut self, port: usize, vc: usize) {
        let state = &mut self.vcs[port * 2 + vc];
        if state.flow == AT_HEAD && state.visible > 0 {
            state.waits_for = NOTHING;
            self.ready[vc] |= 1 << port;
        }
    }

    /// Wakes a channel to check its queue or, if `side`, its side packet. Within a packet that
    /// waits for its row buffer, only a free slot helps.
    pub(super) fn wake(&mut self, port: usize, vc: usize, side: bool) {
        let state = &mut self.vcs[port * 2 + vc];
        if state.flow < COLUMNS && state.waits_for != NOTHING {
            return;
        }
        state.waits_for = NOTHING;
        if side || state.visible > 0 {
            self.ready[vc] |= 1 << port;
        } else {
            self.sleep(port, vc);
        }
    }
}

impl Core {
    /// Handles the report of a free slot in a row buffer at the input tile.
    #[inline]
    pub(super) fn row_slot_freed(&mut self, id: RowBufferId) {
        let (port, vc) = (id.tile(), id.vc());
        if self.inputs.vcs[port * 2 + vc].waits_for >> id.column() & 1 != 0 && self.has_room(id, 0)
        {
            self.inputs.vcs[port * 2 + vc].waits_for = NOTHING;
            self.inputs.ready[vc] |= 1 << port;
        }
    }

    /// Whether a phit can be written to a row buffer in this cycle (`after` is 0) or the next (1).
    /// If not, the input tile will be woken when it can.
    #[inline]
    fn has_room(&mut self, id: RowBufferId, after: u32) -> bool {
        match self.rows.pipes[id.index()].room(self.cycle as u32, after) {
            Room::Open => true,
            Room::Ahead(cycles) => {
                self.calendar
                    .enter(self.cycle, cycles.into(), Wake::RowWriter(id));
                false
            }
            Room::Starved => false,
        }
    }

    /// Puts a channel to sleep until `column`'s row buffer frees a slot.
    #[inline]
    fn wait_for(&mut self, port: usize, vc: usize, column: u8) {
        self.stalls[0] += 1;
        self.inputs.vcs[port * 2 + vc].waits_for = 1 << below::<8>(column.into());
        self.inputs.sleep(port, vc);
    }

    /// Puts a channel to sleep until a row buffer of one of `columns` frees a slot; all of them are
    /// full.
    #[cold]
    fn wait_for_any(&mut self, port: usize, vc: usize, columns: u8) {
        for column in (0..8).filter(|column| columns >> column & 1 != 0) {
            // Request a wake by each of them.
            self.has_room(RowBufferId::new(port, vc, column), 0);
        }
        self.stalls[0] += 1;
        self.inputs.vcs[port * 2 + vc].waits_for = columns;
        self.inputs.sleep(port, vc);
    }

    /// Each ready port sends one phit over its row bus.
    pub(super) fn input_stage<P: Ports>(&mut self, io: &mut P) {
        let [requests, responses] = self.inputs.ready;
        let mut pending = requests | responses;
        while pending != 0 {
            let port = pending.trailing_zeros();
            pending &= pending - 1;
            let vc = self.inputs.vc_turn.arbitrate(
                port,
                requests >> port & 1 != 0,
                responses >> port & 1 != 0,
            );
            self.move_input(port as usize, vc, io);
        }
    }

    #[inline]
    fn move_input<P: Ports>(&mut self, port: usize, vc: usize, io: &mut P) {
        let index = port * 2 + vc;
        let InputVc { visible, flow, .. } = self.inputs.vcs[index];
        if self.maintenance.side[vc] >> port & 1 != 0 && (flow == AT_HEAD || flow == GATHER) {
            return self.move_side(port, vc);
        }
        if visible == 0 {
            // The channel was woken for a free slot, but the next phit has not arrived: sleep until
            // it does.
            return self.inputs.sleep(port, vc);
        }
        if flow < COLUMNS {
            let Some(phit) = self.pop(port, vc, io) else {
                return self.on_underrun(port, vc);
            };
            let mut slot = to_slot(phit);
            if phit.is_head() {
                self.counters.stray_heads += 1;
                slot = slot & !SLOT_KIND_MASK | SLOT_BODY;
            }
            self.send_to_row(RowBufferId::new(port, vc, usize::from(flow)), slot);
            self.after_pop(port, vc, phit);
        } else if flow == AT_HEAD {
            self.begin_packet(port, vc, io);
        } else {
            self.move_without_row(port, vc, flow, io);
        }
    }

    #[inline]
    fn pop<P: Ports>(&mut self, port: usize, vc: usize, io: &mut P) -> Option<Phit> {
        self.inputs.popped |= 1 << port;
        io.pop(port, vc)
    }

    /// Handles a queue that holds less than was announced, because the link withdrew a rejected
    /// packet.
    #[cold]
    fn on_underrun(&mut self, port: usize, vc: usize) {
        self.inputs.vcs[port * 2 + vc].visible = 0;
        self.inputs.sleep(port, vc);
    }

    /// Writes a phit to the row buffer of `column`, where it becomes visible after the wire delay.
    #[inline]
    fn send_to_row(&mut self, id: RowBufferId, slot: Slot) {
        if self.rows.write(self.cycle as u32, id, slot) {
            self.calendar
                .enter(self.cycle, ROW_CYCLES, Wake::RowReader(id));
        }
    }

    /// Updates the state after a phit within a packet was taken from the queue.
    #[inline]
    fn after_pop(&mut self, port: usize, vc: usize, phit: Phit) {
        let index = port * 2 + vc;
        let state = &mut self.inputs.vcs[index];
        state.visible -= 1;
        if phit.is_eop() {
            state.flow = AT_HEAD;
        }
        let InputVc { visible, flow, .. } = *state;
        if flow < COLUMNS && !self.has_room(RowBufferId::new(port, vc, usize::from(flow)), 1) {
            self.wait_for(port, vc, flow);
        } else if visible == 0 && !(flow == AT_HEAD && self.maintenance.side[vc] >> port & 1 != 0) {
            // A maintenance packet that arrived while the packet held the channel is next.
            self.inputs.sleep(port, vc);
        }
    }

    /// Makes the routing decision (BlackWidow sec. 5) when the head reaches the front, and repeats
    /// it until it can be carried out.
    #[inline]
    fn begin_packet<P: Ports>(&mut self, port: usize, vc: usize, io: &mut P) {
        let Some(head) = io.front(port, vc) else {
            return self.on_underrun(port, vc);
        };
        if !head.is_head() {
            self.counters.headless_packets += 1;
            return self.move_without_row(port, vc, SWALLOW, io);
        }
        let content = head.content();
        if head_source_routed(content) {
            return self.move_without_row(port, vc, GATHER, io);
        }
        let hashed = head_hashed(content);
        let adaptive = head_adaptive(content);
        let request = RouteRequest {
            destination: head_dest(content),
            adaptive,
            hashed,
            hash_bits: if hashed && !adaptive {
                second_hash_bits(io, port, vc)
            } else {
                None
            },
        };
        let decision = match self.routes.get(port) {
            Some(Some(routes)) => routes.decide(request),
            _ => Decision::Refused(Refusal::Unroutable),
        };
        if self.watch.is_some() {
            let visible = self.inputs.vcs[port * 2 + vc].visible;
            self.watch_decision((port, vc), (head, visible), (request, decision), io);
        }
        match decision {
            Decision::Port(out) => {
                self.send_head(port, vc, out & 7, 1 << (out >> 3 & 7), false, io);
            }
            Decision::Adaptive(ports) => {
                let credits = self.rows.credits_of_input(port, vc, self.cycle as u32);
                let columns = open_columns(credits, column_mask(ports));
                if columns == 0 {
                    return self.wait_for_any(port, vc, column_mask(ports));
                }
                let columns = preferred_columns(credits, columns);
                let column = self.inputs.column_turn[port].pick(columns);
                if self.watch.is_some() {
                    self.watch_columns((port, vc), head, (credits, column_mask(ports)), column);
                }
                self.send_head(port, vc, column, row_mask(ports, column), true, io);
            }
            // The arrival of the next phit wakes the channel.
            Decision::NeedsHash => self.inputs.sleep(port, vc),
            Decision::Refused(why) => {
                self.refuse(port, request.destination, why);
                self.move_without_row(port, vc, SWALLOW, io);
            }
        }
    }

    #[inline]
    fn send_head<P: Ports>(
        &mut self,
        port: usize,
        vc: usize,
        column: u8,
        rows: u8,
        adaptive: bool,
        io: &mut P,
    ) {
        let id = RowBufferId::new(port, vc, below::<8>(usize::from(column)));
        if !self.has_room(id, 0) {
            return self.wait_for(port, vc, column);
        }
        let Some(phit) = self.pop(port, vc, io) else {
            return self.on_underrun(port, vc);
        };
        if adaptive {
            self.inputs.column_turn[port].grant(column);
            self.counters.adaptive_packets += 1;
        }
        self.inputs.vcs[port * 2 + vc].flow = column;
        self.send_to_row(id, to_slot(phit) | Slot::from(rows) << SLOT_MASK_SHIFT);
        if self.watch.is_some() {
            self.watch_row((port, vc), phit, id);
        }
        self.after_pop(port, vc, phit);
    }

    #[cold]
    pub(super) fn refuse(&mut self, port: usize, destination: u16, why: Refusal) {
        let port = port as u8;
        self.events.push(match why {
            Refusal::Unroutable => {
                self.counters.unroutable_packets += 1;
                RouterEvent::Unroutable { port, destination }
            }
            Refusal::UpDownViolation => {
                self.counters.up_down_violations += 1;
                RouterEvent::UpDownViolation { port, destination }
            }
            Refusal::VirtualRouterViolation => {
                self.counters.virtual_router_violations += 1;
                RouterEvent::VirtualRouterViolation { port, destination }
            }
        });
    }

    /// Takes a phit that does not go to a row buffer, from a packet without a route or a
    /// maintenance packet.
    #[cold]
    fn move_without_row<P: Ports>(&mut self, port: usize, vc: usize, flow: u8, io: &mut P) {
        // A gathered packet is processed at its end, which may need room for the resulting packet.
        if flow == GATHER
            && io.front(port, vc).is_some_and(Phit::is_eop)
            && !self.may_finish_maintenance(port, vc)
        {
            return self.inputs.sleep(port, vc);
        }
        let Some(phit) = self.pop(port, vc, io) else {
            return self.on_underrun(port, vc);
        };
        self.inputs.vcs[port * 2 + vc].flow = flow;
        self.after_pop(port, vc, phit);
        if flow == GATHER {
            self.gather(port, vc, phit);
        } else {
            self.counters.swallowed_phits += 1;
        }
    }

    /// Sends a phit of a maintenance packet that this router forwards or replies with. It is sent
    /// between packets of the queue, or while one is gathered, and is not interrupted.
    #[cold]
    fn move_side(&mut self, port: usize, vc: usize) {
        let Some((phit, column, rows)) = self.maintenance.side_front(port, vc) else {
            return self.inputs.sleep(port, vc);
        };
        let id = RowBufferId::new(port, vc, below::<8>(usize::from(column)));
        if !self.has_room(id, 0) {
            return self.wait_for(port, vc, column);
        }
        let mask = if phit.is_head() {
            Slot::from(rows) << SLOT_MASK_SHIFT
        } else {
            0
        };
        self.send_to_row(id, to_slot(phit) | mask);
        self.maintenance.side_advance(port, vc);
        if phit.is_eop() {
            // The queue behind it, and an end of packet that waited for room, can continue.
            for vc in 0..2 {
                self.inputs
                    .wake(port, vc, self.maintenance.side[vc] >> port & 1 != 0);
            }
        }
    }
}

/// The hash bits of the packet at the front; `None` before its second phit arrives.
#[inline]
fn second_hash_bits<P: Ports>(io: &P, port: usize, vc: usize) -> Option<u16> {
    // A packet that an error cut short may end right after its head; it may take any path.
    io.second(port, vc).map(|phit| {
        if phit.is_eop() {
            0
        } else {
            hash_bits(phit.content())
        }
    })
}

#[cfg(test)]
#[path = "input_tests.rs"]
mod tests;

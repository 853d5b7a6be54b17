//! First stage: the input queues, the route decision and the row buses.
//!
//! A row bus carries one flit per cycle from a single tile, so arbitration is only between the
//! eight virtual channels of the tile. A flit is sent when its row buffer has a free slot. The
//! input queues of network tiles belong to the links, those of processor tiles to Netlink.

use phitwire_framing::aries::flit::{Flit, Head};

use super::event::AriesEvent;
use super::grain::Items;
use super::pipeline::{
    COLUMNS, FIRST_PROCESSOR_TILE, PAIR_TILES, RowBufferId, TILE_VCS, TILES, Wake,
};
use super::pool::{Item, Slot};
use super::tiles::{Ports, Tiles};
use crate::route::registers::{AriesRegisters, FIRST_NIC_PORT, PortKind, VCS};
use crate::route::{Arrival, Choice, Decision, Refusal};
use phitwire::kit::below;
use phitwire::kit::tiles::boxed;
use phitwire::kit::{MatrixArbiter, Room};

/// Value of `flow`: the packet is discarded up to its end.
const SWALLOW: u8 = 0xfe;
/// Value of `waits_for`: no column.
const NOTHING: u8 = 0xff;

/// The read side of one input virtual channel.
#[derive(Clone, Copy, Debug)]
struct InputVc {
    /// Flits that have passed the stages of the input block.
    visible: u32,
    /// Missing flits of the current packet; if 0, the next flit is a head.
    left: u8,
    /// Column of the current packet, or [`SWALLOW`].
    flow: u8,
    /// The column whose row buffer must free a slot before this channel can continue.
    waits_for: u8,
}

/// The route of a packet through the router.
struct Onward {
    output: usize,
    row_buffer: RowBufferId,
    /// The rewritten head.
    slot: Slot,
    kind: Choice,
    up: bool,
}

/// State of the input queues of all tiles, without their contents.
#[derive(Debug)]
pub(super) struct Inputs {
    pub(super) active: u64,
    /// Tiles whose row bus carries a packet.
    pub(super) busy: u64,
    /// Ports read since the owner's last query.
    pub(super) popped: u64,
    /// Virtual channels of each tile that can send a flit.
    ready: [u8; TILES],
    vcs: Box<[InputVc; TILE_VCS]>,
    vc_turn: Box<[MatrixArbiter; TILES]>,
    kinds: [PortKind; TILES],
}

impl Inputs {
    pub(super) fn new() -> Self {
        Self {
            active: 0,
            busy: 0,
            popped: 0,
            ready: [0; TILES],
            vcs: boxed(InputVc {
                visible: 0,
                left: 0,
                flow: SWALLOW,
                waits_for: NOTHING,
            }),
            vc_turn: boxed(MatrixArbiter::new()),
            kinds: [PortKind::Processor; TILES],
        }
    }

    /// Sets the kinds of the tiles' links from the registers. A network port without a kind counts
    /// as blue, the kind with the fewest onward paths.
    pub(super) fn set_kinds(&mut self, registers: &AriesRegisters) {
        for (tile, kind) in self.kinds.iter_mut().enumerate() {
            *kind = if tile >= FIRST_PROCESSOR_TILE {
                PortKind::Processor
            } else {
                registers
                    .ports
                    .get(tile)
                    .copied()
                    .flatten()
                    .unwrap_or(PortKind::Blue)
            };
        }
    }

    #[inline]
    pub(super) fn kind(&self, tile: usize) -> PortKind {
        self.kinds[below::<TILES>(tile)]
    }

    /// Tiles that can send an item now.
    #[inline]
    pub(super) fn pending(&self) -> u64 {
        self.active & !self.busy
    }

    /// Omits a column, which is meaningful only within a packet.
    #[cfg(test)]
    pub(super) fn left_behind(&self) -> String {
        let vcs = self.vcs.map(|of| (of.visible, of.left, of.waits_for));
        format!("{:?} {:?} {vcs:?}", self.ready, self.vc_turn)
    }

    #[inline]
    fn make_ready(&mut self, tile: usize, vc: usize) {
        self.ready[tile] |= 1 << vc;
        self.active |= 1 << tile;
    }

    #[inline]
    pub(super) fn sleep(&mut self, tile: usize, vc: usize) {
        self.ready[tile] &= !(1 << vc);
        if self.ready[tile] == 0 {
            self.active &= !(1 << tile);
        }
    }

    /// Records that flits of virtual channel `index` (tile times 8 plus channel) have passed the
    /// input block.
    #[inline]
    pub(super) fn arrived(&mut self, index: usize, flits: u32) {
        let state = &mut self.vcs[below::<TILE_VCS>(index)];
        state.visible = state.visible.saturating_add(flits);
        if state.waits_for == NOTHING {
            self.make_ready(below::<TILES>(index / VCS), index % VCS);
        }
    }
}

impl<I: Items> Tiles<I> {
    /// Handles the report of a free slot in a row buffer at the input tile.
    #[inline]
    pub(super) fn row_slot_freed(&mut self, id: RowBufferId) {
        let (tile, vc) = (id.tile(), id.vc());
        let index = tile * VCS + vc;
        if usize::from(self.inputs.vcs[index].waits_for) == id.column() && self.has_room(id, 0) {
            self.inputs.vcs[index].waits_for = NOTHING;
            self.inputs.make_ready(tile, vc);
        }
    }

    /// Whether a flit can be written to a row buffer in this cycle (`after` is 0) or the next (1).
    /// If not, the input tile will be woken when it can.
    #[inline]
    fn has_room(&mut self, id: RowBufferId, after: u32) -> bool {
        if !I::TIMED && self.rows.are_empty() {
            return true; // Without a look at the buffer, which is seldom in the cache.
        }
        let now = self.wire_clock();
        match I::room(&mut self.rows.pipes[id.index()], now, after) {
            Room::Open => true,
            Room::Ahead(cycles) => {
                self.wake_ahead(cycles.into(), Wake::RowWriter(id));
                false
            }
            Room::Starved => false,
        }
    }

    /// Puts a channel to sleep until `column`'s row buffer frees a slot.
    #[inline]
    fn wait_for(&mut self, tile: usize, vc: usize, column: u8) {
        self.stalls[0] += 1;
        self.inputs.vcs[tile * VCS + vc].waits_for = column;
        self.inputs.sleep(tile, vc);
    }

    /// Each ready tile sends one flit over its row bus.
    pub(super) fn input_stage<P: Ports>(&mut self, io: &mut P) {
        let mut pending = self.inputs.pending();
        // Without wire delays packets reach an output one after another, so each cycle starts with
        // another tile.
        let first = if I::TIMED {
            0
        } else {
            self.cycle % TILES as u64
        };
        pending = pending.rotate_right(first as u32);
        while pending != 0 {
            let tile = (u64::from(pending.trailing_zeros()) + first) % 64;
            pending &= pending - 1;
            self.send_from(below::<TILES>(tile as usize), io);
        }
    }

    /// Sends an item from a tile, if it has one that can be sent.
    #[inline]
    pub(super) fn send_from<P: Ports>(&mut self, tile: usize, io: &mut P) {
        let ready = self.inputs.ready[tile];
        let vc = self.inputs.vc_turn[tile].arbitrate(ready);
        self.move_input(tile, usize::from(vc), io);
    }

    #[inline]
    fn move_input<P: Ports>(&mut self, tile: usize, vc: usize, io: &mut P) {
        let InputVc {
            visible,
            left,
            flow,
            ..
        } = self.inputs.vcs[tile * VCS + vc];
        if visible == 0 {
            // A slot was freed before the next flit arrived.
            return self.inputs.sleep(tile, vc);
        }
        if left == 0 {
            return self.begin_packet(tile, vc, io);
        }
        let Some(flit) = self.pop(tile, vc, io) else {
            return self.on_underrun(tile, vc);
        };
        if usize::from(flow) < COLUMNS {
            let id = RowBufferId::new(tile, vc, flow.into());
            self.send_to_row(id, Item::flit(Slot::body(flit, left == 1)));
        } else {
            self.counters.swallowed_flits += 1;
        }
        self.after_pop(tile, vc, 1, left - 1, flow);
    }

    /// The flit at the front of a tile's input queue.
    #[inline]
    fn front<P: Ports>(&self, tile: usize, vc: usize, io: &P) -> Option<Flit> {
        if tile < FIRST_PROCESSOR_TILE {
            io.front(tile, vc)
        } else {
            self.netlink.front(tile, vc, &self.pool)
        }
    }

    #[inline]
    fn pop<P: Ports>(&mut self, tile: usize, vc: usize, io: &mut P) -> Option<Flit> {
        if tile < FIRST_PROCESSOR_TILE {
            self.inputs.popped |= 1 << tile;
            io.pop(tile, vc)
        } else {
            let item = self.netlink.pop(tile, vc, &mut self.pool)?;
            Some(item.slot.flit())
        }
    }

    /// Handles a queue that holds less than the link announced, which is an error of the link.
    #[cold]
    fn on_underrun(&mut self, tile: usize, vc: usize) {
        self.inputs.vcs[tile * VCS + vc].visible = 0;
        self.inputs.sleep(tile, vc);
    }

    /// Writes a flit to a row buffer, where it becomes visible after the wire delay.
    #[inline]
    pub(super) fn send_to_row(&mut self, id: RowBufferId, item: Item) {
        let now = self.wire_clock();
        let wakes = self.rows.write::<I>(now, id, item, &mut self.pool);
        self.on_row_bus(id, item.flits(), wakes);
    }

    /// Updates the state after `taken` flits were taken from the queue.
    #[inline]
    fn after_pop(&mut self, tile: usize, vc: usize, taken: u8, left: u8, flow: u8) {
        let state = &mut self.inputs.vcs[tile * VCS + vc];
        state.visible -= u32::from(taken);
        state.left = left;
        state.flow = flow;
        let visible = state.visible;
        if left > 0
            && usize::from(flow) < COLUMNS
            && !self.has_room(RowBufferId::new(tile, vc, flow.into()), 1)
        {
            self.wait_for(tile, vc, flow);
        } else if visible == 0 {
            self.inputs.sleep(tile, vc);
        }
    }

    /// Makes the routing decision when the head reaches the front, and repeats it until it can be
    /// carried out.
    #[inline]
    fn begin_packet<P: Ports>(&mut self, tile: usize, vc: usize, io: &mut P) {
        let Some(flit) = self.front(tile, vc, io) else {
            return self.on_underrun(tile, vc);
        };
        let Some(head) = Head::parse(flit) else {
            return self.drop_headless(tile, vc, io);
        };
        if !I::can_begin(self.inputs.vcs[tile * VCS + vc].visible, head) {
            // The rest of the packet wakes the channel.
            return self.inputs.sleep(tile, vc);
        }
        let visible = self.inputs.vcs[tile * VCS + vc].visible;
        let way = match self.decide((tile, vc), head, visible, io) {
            Ok(way) => way,
            Err(why) => return self.refuse(tile, vc, head, why, io),
        };
        let column = way.row_buffer.column() as u8;
        if !self.has_room(way.row_buffer, 0) {
            return self.wait_for(tile, vc, column);
        }
        let Some(item) = self.take(tile, vc, way.slot, io) else {
            return self.on_underrun(tile, vc);
        };
        let left = head.length() - item.flits();
        self.begin(&way, item, io);
        self.after_pop(tile, vc, item.flits(), left, column);
    }

    /// The route of a packet that arrived at a tile on `vc`, if any. `visible` flits of its channel
    /// are visible.
    // Inlined: as a call it returned its result through memory, on which the caller stalled.
    #[inline(always)]
    fn decide<P: Ports>(
        &mut self,
        (tile, vc): (usize, usize),
        head: Head,
        visible: u32,
        io: &P,
    ) -> Result<Onward, Refusal> {
        let arrival = Arrival {
            port: tile as u8,
            kind: self.inputs.kinds[tile],
            head,
        };
        let Decision { way, kind } = if self.watch.is_some() {
            self.watched_choice(arrival, (tile, vc), visible, io)
        } else {
            let loads = &self.loads;
            self.routes
                .choose(arrival, self.live, &mut self.rng, |port| loads.of(port, io))
        }?;
        let mut output = usize::from(way.port);
        if output >= FIRST_NIC_PORT {
            output = self.ejection_tile(tile, head);
        }
        let vc_out = head.vc() & 4 | way.class & 3;
        let sent = head.with_vc(vc_out).with_non_minimal(way.non_minimal);
        Ok(Onward {
            output,
            row_buffer: RowBufferId::new(tile, vc, output % COLUMNS),
            slot: Slot::head(sent, output / COLUMNS, vc_out.into(), I::is_item(head)),
            kind,
            up: way.non_minimal,
        })
    }

    /// Sends a packet's head, or the whole packet, along the chosen route.
    #[inline]
    fn begin<P: Ports>(&mut self, way: &Onward, item: Item, io: &mut P) {
        self.count(way.kind, way.up);
        self.loads.commit(way.output, way.slot.length());
        if self.watch.is_some()
            && let Some(sent) = Head::parse(way.slot.flit())
        {
            let id = way.row_buffer;
            self.watch_row(id.tile(), id.vc(), sent, id);
        }
        self.send_on(way.output, way.row_buffer, item, io);
    }

    /// Whether no packet is ahead of one that enters a tile's queue.
    #[inline]
    pub(super) fn is_idle(&self, tile: usize, vc: usize) -> bool {
        let state = &self.inputs.vcs[tile * VCS + vc];
        self.inputs.ready[tile] == 0 && state.visible == 0 && state.waits_for == NOTHING
    }

    /// Forwards a packet that arrives at an idle tile past its queue. Returns the packet if it must
    /// wait there.
    #[inline]
    pub(super) fn send_past_queue<P: Ports>(
        &mut self,
        (tile, vc): (usize, usize),
        head: Head,
        item: Item,
        io: &mut P,
    ) -> Option<Item> {
        self.inputs.vc_turn[tile].grant(vc as u8);
        let flits = item.flits();
        match self.decide((tile, vc), head, flits.into(), io) {
            Ok(way) if self.has_room(way.row_buffer, 0) => {
                self.begin(&way, item.with_slot(way.slot), io);
            }
            Ok(way) => {
                self.inputs.vcs[tile * VCS + vc].visible = flits.into();
                self.wait_for(tile, vc, way.row_buffer.column() as u8);
                return Some(item);
            }
            Err(why) => self.throw_away((tile, vc), head, item, why),
        }
        None
    }

    /// Takes a head or a packet from a tile's input queue, and replaces the head by `slot`.
    #[inline]
    fn take<P: Ports>(&mut self, tile: usize, vc: usize, slot: Slot, io: &mut P) -> Option<Item> {
        if tile >= FIRST_PROCESSOR_TILE {
            let item = self.netlink.pop(tile, vc, &mut self.pool)?;
            return Some(item.with_slot(slot));
        }
        self.inputs.popped |= 1 << tile;
        self.take_from(tile, vc, slot, io)
    }

    /// The processor tile by which a packet leaves to its NIC: the least loaded of the NIC's pair
    /// or, for an ordered packet, the tile that its hash selects.
    fn ejection_tile(&mut self, tile: usize, head: Head) -> usize {
        let nic = usize::from(head.destination().nic());
        let first = FIRST_PROCESSOR_TILE + nic / 2 * PAIR_TILES;
        if head.routing().is_deterministic() {
            return first + (self.routes.flow_hash(tile as u8, head) % PAIR_TILES as u64) as usize;
        }
        // Start after the tile used last, so that ties rotate.
        let turn = self.netlink.next_turn();
        let (mut best, mut least) = (first, u16::MAX);
        for i in 0..PAIR_TILES {
            let tile = first + (turn + i) % PAIR_TILES;
            let waiting = self.loads.committed(tile);
            if waiting < least {
                (best, least) = (tile, waiting);
            }
            if least == 0 {
                break;
            }
        }
        best
    }

    #[inline]
    pub(super) fn count(&mut self, kind: Choice, up: bool) {
        let counters = &mut self.counters;
        counters.fallback_up_decisions += u64::from(up && kind == Choice::Fallback);
        *match kind {
            Choice::Transit => return,
            Choice::Eject => &mut counters.eject_decisions,
            Choice::Minimal => &mut counters.minimal_decisions,
            Choice::NonMinimal => &mut counters.non_minimal_decisions,
            Choice::Root => &mut counters.root_decisions,
            Choice::Diverted => &mut counters.diverted_decisions,
            Choice::Returned => &mut counters.returned_decisions,
            Choice::Fallback => &mut counters.fallback_decisions,
        } += 1;
    }

    /// Drops a flit that is not a head where a packet should begin.
    #[cold]
    fn drop_headless<P: Ports>(&mut self, tile: usize, vc: usize, io: &mut P) {
        if self.pop(tile, vc, io).is_none() {
            return self.on_underrun(tile, vc);
        }
        self.counters.headless_flits += 1;
        self.after_pop(tile, vc, 1, 0, SWALLOW);
    }

    /// Counts and reports a packet without a route, and begins to discard it. Its source notices by
    /// a timeout (XC white paper, "Network Reliability").
    #[cold]
    fn refuse<P: Ports>(&mut self, tile: usize, vc: usize, head: Head, why: Refusal, io: &mut P) {
        let slot = Slot::head(head, 0, 0, true);
        let Some(item) = self.take(tile, vc, slot, io) else {
            return self.on_underrun(tile, vc);
        };
        let left = head.length() - item.flits();
        self.throw_away((tile, vc), head, item, why);
        self.after_pop(tile, vc, item.flits(), left, SWALLOW);
    }

    /// Discards the taken part of a packet without a route.
    #[cold]
    fn throw_away(&mut self, (tile, vc): (usize, usize), head: Head, item: Item, why: Refusal) {
        self.pool.unload(item, |_| ());
        self.takes_row_bus(tile, item.flits());
        if self.watch.is_some() {
            self.watch_refusal(tile, vc, head, why);
        }
        let destination = head.destination();
        let number = tile as u8;
        self.events.push(match why {
            Refusal::Unroutable => {
                self.counters.unroutable_packets += 1;
                AriesEvent::Unroutable {
                    tile: number,
                    destination,
                }
            }
            Refusal::Dead => {
                self.counters.no_live_port_packets += 1;
                AriesEvent::NoLivePort {
                    tile: number,
                    destination,
                }
            }
        });
        self.counters.swallowed_flits += u64::from(item.flits());
    }
}

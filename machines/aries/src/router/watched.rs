//! Tracing of passing packets. This code is cold: a router that does not trace checks that once per
//! head and stage.

use core::cell::RefCell;

use phitwire_framing::aries::flit::{Head, NodeId, Routing};

use super::grain::Items;
use super::pipeline::{
    COLUMN_CYCLES, ColumnBufferId, FIRST_PROCESSOR_TILE, INPUT_CYCLES, NETLINK_CYCLES, ROW_CYCLES,
    RowBufferId,
};
use super::pool::Slot;
use super::tiles::{Ports, Tiles};
use crate::route::registers::{FIRST_NIC_PORT, VCS};
use crate::route::{Arrival, Choice, Decision, Loads, NextHop, Refusal};
use phitwire::trace::{self, Candidate, Opening, QueueId, Stage, Watch};

/// The path from a NIC's link to a processor tile.
const NETLINK_IN: Stage = stage("netlink in", NETLINK_CYCLES);
/// From the input queue to the grant of the row bus.
const INPUT: Stage = stage("input queue", INPUT_CYCLES);
/// From the row buffer to the grant of the subswitch.
const ROW: Stage = stage("row buffer", ROW_CYCLES);
/// From the column buffer to the grant of the output multiplexer.
const COLUMN: Stage = stage("column buffer", COLUMN_CYCLES);
/// The path from a processor tile to a NIC's link.
const NETLINK_OUT: Stage = stage("netlink out", NETLINK_CYCLES);

const fn stage(name: &'static str, cycles: u64) -> Stage {
    Stage { name, cycles }
}

// Trace positions consist of a kind and the number of the queue or buffer.
const INPUT_QUEUES: QueueId = 0;
const ROW_QUEUES: QueueId = 1 << 16;
const COLUMN_QUEUES: QueueId = 2 << 16;
const NETLINK_QUEUES: QueueId = 3 << 16;

/// The queue of a tile's virtual channel.
const fn input_queue(tile: usize, vc: usize) -> QueueId {
    INPUT_QUEUES + (tile * VCS + vc) as QueueId
}

/// The parts of a head that never change on its path.
const fn key(head: Head) -> u64 {
    head.with_vc(0).with_non_minimal(false).flit().bits() & !(1 << 6)
}

fn is_of(watch: &Watch, head: Head) -> bool {
    watch.flow().destination(head.is_response()) == head.destination().bits()
}

/// The drawn candidates, with the loads that were queried.
struct Seen<'a, F> {
    load: F,
    candidates: &'a RefCell<Vec<Candidate>>,
}

impl<F: Fn(u8) -> u32> Loads for Seen<'_, F> {
    fn of(&self, port: u8) -> u32 {
        let load = (self.load)(port);
        let mut candidates = self.candidates.borrow_mut();
        let of_port = candidates.iter_mut().filter(|of| of.number == port);
        of_port.for_each(|candidate| candidate.load = Some(load));
        load
    }

    fn drawn(&self, port: u8, up: bool) {
        let kind = if up { "non-minimal" } else { "minimal" };
        let candidate = Candidate {
            load: Some((self.load)(port)),
            ..Candidate::new(port, kind)
        };
        let mut candidates = self.candidates.borrow_mut();
        if !candidates.contains(&candidate) {
            candidates.push(candidate);
        }
    }
}

impl<I: Items> Tiles<I> {
    /// Traces flits that arrived in the queue of a port. NIC queues are numbered after those of the
    /// tiles.
    #[cold]
    pub(super) fn watch_arrival(&mut self, cycle: u64, port: usize, vc: usize, flits: u32) {
        if let Some(watch) = &mut self.watch {
            watch.arrived(input_queue(queue_of(port), vc), cycle, flits);
        }
    }

    /// Traces an [announced](Self::announce) arrival.
    pub fn watch_announced(&mut self, cycle: u64, port: usize, vc: usize) {
        self.watch_arrival(cycle, port, vc, 1);
    }

    fn opening(&self, watch: &Watch, head: Head, queue_id: QueueId) -> Opening {
        Opening {
            queue_id,
            key: key(head),
            identity: Some(head.packet_id().into()),
            response: head.is_response(),
            units: Some(head.length()),
            from: (0, head.vc()),
            arrived_ps: watch.front_arrived(queue_id, head.length().into(), self.cycle),
        }
    }

    /// Traces a packet that begins to move from a NIC to a processor tile; `visible` flits of its
    /// channel are visible there.
    #[cold]
    pub(super) fn watch_nic(&mut self, nic: usize, vc: usize, tile: usize, head: Head) {
        let Some(mut watch) = self.watch.take() else {
            return;
        };
        if is_of(&watch, head) {
            let port = FIRST_NIC_PORT + nic;
            let queue = input_queue(queue_of(port), vc);
            let held = self.netlink.nics[nic].visible[vc];
            let seen_by = if I::TIMED {
                self.cycle.saturating_sub(NETLINK_CYCLES)
            } else {
                self.cycle
            };
            let queue_id = input_queue(FIRST_PROCESSOR_TILE + tile, vc / 4 * 4);
            watch.open(Opening {
                from: (port as u8, vc as u8),
                arrived_ps: watch.front_arrived(queue, held, seen_by),
                ..self.opening(&watch, head, queue_id)
            });
            watch.step((queue_id, queue_id), key(head), NETLINK_IN, self.cycle);
        }
        self.watch = Some(watch);
    }

    /// Decides like an untraced router, and traces the decision.
    #[cold]
    #[inline(never)]
    pub(super) fn watched_choice<P: Ports>(
        &mut self,
        arrival: Arrival,
        (port, vc): (usize, usize),
        visible: u32,
        io: &P,
    ) -> Result<Decision, Refusal> {
        let Some(mut watch) = self.watch.take() else {
            unreachable!("the caller checked for a watch");
        };
        let head = arrival.head;
        let loads = &self.loads;
        let candidates = RefCell::default();
        let seen = Seen {
            load: |port| loads.of(port, io),
            candidates: &candidates,
        };
        let decision = self.routes.choose(arrival, self.live, &mut self.rng, seen);
        if is_of(&watch, head) {
            let tile = usize::from(arrival.port);
            let queue_id = input_queue(tile, vc);
            if !watch.follows(queue_id, key(head)) {
                let seen_by = if I::TIMED {
                    self.cycle.saturating_sub(INPUT_CYCLES)
                } else {
                    self.cycle
                };
                let queue = input_queue(queue_of(port), vc);
                watch.open(Opening {
                    from: (port as u8, vc as u8),
                    arrived_ps: watch.front_arrived(queue, visible, seen_by),
                    ..self.opening(&watch, head, queue_id)
                });
            }
            let choice = self.describe_decision(arrival, &decision, candidates.into_inner());
            watch.decided(queue_id, key(head), choice);
        }
        self.watch = Some(watch);
        decision
    }

    /// Describes a decision in words.
    fn describe_decision(
        &self,
        arrival: Arrival,
        decision: &Result<Decision, Refusal>,
        mut candidates: Vec<Candidate>,
    ) -> trace::Choice {
        let head = arrival.head;
        let mode = head.routing();
        let is_up = |candidate: &Candidate| candidate.kind != "minimal";
        let both = candidates.iter().any(is_up) && !candidates.iter().all(is_up);
        if let (Some(mode), true) = (mode.adaptive_mode(), both) {
            // The load of a non-minimal path is the sum of both candidates, which may be the same.
            let ups = candidates.iter().filter(|candidate| is_up(candidate));
            let ups: Vec<u32> = ups.filter_map(|candidate| candidate.load).collect();
            let up_load: u32 = ups.iter().cycle().take(2).sum();
            for candidate in &mut candidates {
                let of = |load| match is_up(candidate) {
                    true => (up_load, true),
                    false => (load, false),
                };
                let cost = |load| self.routes.cost(mode, arrival, of(load));
                candidate.cost = candidate.load.map(cost);
            }
        }
        let is_hashed = mode.is_deterministic();
        let why = match decision {
            Err(Refusal::Unroutable) => "no table entry with a port",
            Err(Refusal::Dead) => "no port in the tables has a live link",
            Ok(Decision { kind, .. }) => match kind {
                Choice::Eject => "arrived at the destination router",
                Choice::Fallback => "no live port for the other kind of path",
                _ if is_hashed => "by the flow hash",
                Choice::Diverted => "non-minimal path less loaded after the bias of the mode",
                Choice::Returned => "minimal path not more loaded after the bias of the mode",
                _ if both => "least load after the bias of the mode",
                Choice::Root => "at the root: minimal from here on",
                _ if candidates.len() < 2 => "the only port",
                _ => "the less loaded of the drawn ports",
            },
        };
        let winner = decision.as_ref().map_or(u8::MAX, |of| of.way.port);
        if let (Ok(decision), true) = (decision, is_hashed && candidates.is_empty()) {
            let ways = self.routes.ways(arrival.kind, head);
            let alike = |way: &NextHop| way.non_minimal == decision.way.non_minimal;
            let live = |way: &NextHop| self.live >> way.port & 1 != 0;
            let kind = if decision.way.non_minimal {
                "non-minimal"
            } else {
                "minimal"
            };
            let all = ways.iter().filter(alike).filter(live);
            candidates.extend(all.map(|way| Candidate::new(way.port, kind)));
        }
        if candidates.is_empty() && winner != u8::MAX {
            let up = decision.as_ref().is_ok_and(|of| of.way.non_minimal);
            let kind = match decision.as_ref().map(|of| of.kind) {
                Ok(Choice::Eject) => "ejection",
                _ if up => "non-minimal",
                _ => "minimal",
            };
            candidates.push(Candidate::new(winner, kind));
        }
        trace::Choice {
            among: "port".into(),
            mode: mode_name(mode).into(),
            candidates,
            winner,
            why: why.into(),
            times: 1,
        }
    }

    /// Traces a head that leaves an input queue for a row buffer.
    #[cold]
    pub(super) fn watch_row(&mut self, tile: usize, vc: usize, head: Head, id: RowBufferId) {
        if let Some(watch) = self.watch.as_mut().filter(|watch| is_of(watch, head)) {
            let to = ROW_QUEUES + id.index() as QueueId;
            watch.step((input_queue(tile, vc), to), key(head), INPUT, self.cycle);
        }
    }

    /// Traces a head that leaves a column buffer by an output tile, or is discarded there.
    #[cold]
    pub(super) fn watch_column(
        &mut self,
        from: ColumnBufferId,
        output: usize,
        head: Head,
        discarded: Option<&'static str>,
    ) {
        let Some(watch) = self.watch.as_mut().filter(|watch| is_of(watch, head)) else {
            return;
        };
        let (queue_id, key) = (COLUMN_QUEUES + from.index() as QueueId, key(head));
        if let Some(why) = discarded {
            watch.discarded(queue_id, key, why);
        } else if output < FIRST_PROCESSOR_TILE {
            watch.left(queue_id, key, COLUMN, self.cycle, (output as u8, head.vc()));
        } else {
            let to = NETLINK_QUEUES + (output - FIRST_PROCESSOR_TILE) as QueueId;
            watch.step((queue_id, to), key, COLUMN, self.cycle);
        }
    }

    /// Traces a head that leaves Netlink for a NIC.
    #[cold]
    pub(super) fn watch_to_nic(&mut self, tile: usize, nic: usize, slot: Slot) {
        let Some(head) = Head::parse(slot.flit()) else {
            return;
        };
        if let Some(watch) = self.watch.as_mut().filter(|watch| is_of(watch, head)) {
            let queue_id = NETLINK_QUEUES + tile as QueueId;
            let port = (FIRST_NIC_PORT + nic) as u8;
            watch.left(
                queue_id,
                key(head),
                NETLINK_OUT,
                self.cycle,
                (port, head.vc()),
            );
        }
    }

    /// Traces a packet without a route.
    #[cold]
    pub(super) fn watch_refusal(&mut self, tile: usize, vc: usize, head: Head, why: Refusal) {
        if let Some(watch) = self.watch.as_mut().filter(|watch| is_of(watch, head)) {
            let why = match why {
                Refusal::Unroutable => "no table entry with a port for the destination",
                Refusal::Dead => "no port in the tables has a live link",
            };
            watch.discarded(input_queue(tile, vc), key(head), why);
        }
    }
}

/// Traces a head that leaves a row buffer for a column buffer.
#[cold]
pub(super) fn watch_switch(
    watch: &mut Option<Box<Watch>>,
    cycle: u64,
    (from, to): (RowBufferId, ColumnBufferId),
    slot: Slot,
) {
    let Some(head) = Head::parse(slot.flit()) else {
        return;
    };
    if let Some(watch) = watch.as_mut().filter(|watch| is_of(watch, head)) {
        let from = ROW_QUEUES + from.index() as QueueId;
        let to = COLUMN_QUEUES + to.index() as QueueId;
        watch.step((from, to), key(head), ROW, cycle);
    }
}

/// Index of a port's arrival queue; NIC queues are numbered after those of the tiles.
const fn queue_of(port: usize) -> usize {
    if port < FIRST_NIC_PORT {
        port
    } else {
        port + super::pipeline::TILES
    }
}

const fn mode_name(mode: Routing) -> &'static str {
    match mode {
        Routing::Adaptive0 => "adaptive0",
        Routing::Adaptive1 => "adaptive1",
        Routing::Adaptive2 => "adaptive2",
        Routing::Adaptive3 => "adaptive3",
        Routing::Ordered => "ordered",
        Routing::OrderedNonMinimal => "ordered non-minimal",
        Routing::Minimal => "minimal",
        Routing::Valiant => "valiant",
        Routing::MinHash => "min-hash",
        Routing::NminHash => "nmin-hash",
    }
}

const _: () = assert!(NodeId::BITS <= u32::BITS, "flow numbers have 32 bits");

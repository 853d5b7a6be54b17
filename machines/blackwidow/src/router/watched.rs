//! Tracing of passing packets. This code is cold: a router that does not trace checks that once per
//! head and stage.

use std::borrow::Cow;

use phitwire_framing::yarc::packet::{head_dest, head_vc, second_payload};
use phitwire_framing::yarc::phit::{CONTENT_MASK, Phit};

use super::core::{Core, Ports, Slot};
use super::pipeline::{COLUMN_CYCLES, ColumnBufferId, INPUT_CYCLES, ROW_CYCLES, RowBufferId};
use crate::route::adaptive::{COLUMN_BUFFER_PHITS, ROW_BUFFER_PHITS};
use crate::route::decision::{Explanation, RouteRequest};
use crate::route::{Decision, Refusal};
use phitwire::trace::{Candidate, Choice, Opening, QueueId, Stage, Watch};

/// From the input queue to the row-bus grant.
const INPUT: Stage = stage("input queue", INPUT_CYCLES);
/// From the row buffer to the subswitch grant.
const ROW: Stage = stage("row buffer", ROW_CYCLES);
/// From the column buffer to the grant of the output multiplexer.
const COLUMN: Stage = stage("column buffer", COLUMN_CYCLES);

const fn stage(name: &'static str, cycles: u64) -> Stage {
    Stage { name, cycles }
}

// A trace position consists of a kind and the number of the queue or buffer.
const INPUT_QUEUES: QueueId = 0;
const ROW_QUEUES: QueueId = 1 << 16;
const COLUMN_QUEUES: QueueId = 2 << 16;

const fn input_queue(port: usize, vc: usize) -> QueueId {
    INPUT_QUEUES + (port * 2 + vc) as QueueId
}

/// Bits of the transaction id in the third and fourth phit of a request.
const REQUEST_BITS: [u32; 2] = [14, 6];
/// Bits of the transaction id in the third phit of a response; the second phit has seven more.
const RESPONSE_BITS: u32 = 13;
const CONTENT_BITS: u32 = CONTENT_MASK.count_ones();

/// Distinguishes a packet from others of its flow by the transaction id, which is in the third and
/// fourth phit of a request and the second and third of a response
/// (`docs/guide/src/wire-format.md`).
pub(crate) fn identity_of(response: bool, phit: impl Fn(usize) -> Option<u32>) -> Option<u64> {
    let third = phit(2)?;
    let identity = if response {
        u32::from(second_payload(phit(1)?)) << RESPONSE_BITS
            | third >> (CONTENT_BITS - RESPONSE_BITS)
    } else {
        let [high, low] = REQUEST_BITS;
        (third & ((1 << high) - 1)) << low | phit(3)? >> (CONTENT_BITS - low)
    };
    Some(identity.into())
}

/// Whether a packet with this head belongs to the traced flow.
fn is_of(watch: &Watch, head: u32) -> bool {
    let response = head_vc(head).index() == 1;
    watch.flow().destination(response) == u32::from(head_dest(head))
}

/// Describes a packet's routing bits in words.
const fn mode(request: &RouteRequest) -> &'static str {
    match (request.adaptive, request.hashed) {
        (true, _) => "adaptive",
        (false, true) => "deterministic, hashed by address",
        (false, false) => "deterministic",
    }
}

impl Core {
    /// Traces phits that arrived in the queue of a port.
    #[cold]
    pub(super) fn watch_arrival(&mut self, cycle: u64, port: usize, vc: usize, phits: u32) {
        if let Some(watch) = &mut self.watch {
            watch.arrived(input_queue(port, vc), cycle, phits);
        }
    }

    /// Traces single announced phits.
    pub(crate) fn watch_announced(
        &mut self,
        port: usize,
        vc: usize,
        cycles: impl Iterator<Item = u64>,
    ) {
        if self.watch.is_some() {
            cycles.for_each(|cycle| self.watch_arrival(cycle, port, vc, 1));
        }
    }

    /// Traces a routing decision for the head at the front of a queue, whose channel has `visible`
    /// phits.
    #[cold]
    pub(super) fn watch_decision<P: Ports>(
        &mut self,
        (port, vc): (usize, usize),
        (head, visible): (Phit, u32),
        (request, decision): (RouteRequest, Decision),
        io: &P,
    ) {
        let Some(watch) = &mut self.watch else { return };
        let head = head.content();
        if !is_of(watch, head) {
            return;
        }
        let (queue_id, key, response) = (input_queue(port, vc), u64::from(head), vc == 1);
        if !watch.follows(queue_id, key) {
            let seen_by = self.cycle.saturating_sub(INPUT_CYCLES);
            watch.open(Opening {
                queue_id,
                key,
                identity: None,
                response,
                units: None,
                from: (port as u8, vc as u8),
                arrived_ps: watch.front_arrived(queue_id, visible, seen_by),
            });
        }
        let phit = |at| io.nth(port, vc, at).map(Phit::content);
        if let Some(identity) = identity_of(response, phit) {
            watch.identify(queue_id, key, identity);
        }
        let explained = self.routes.get(port).and_then(Option::as_ref);
        let explained = explained.map(|routes| routes.explain(request));
        let (candidates, winner, why) = match (decision, explained) {
            (Decision::Port(port), Some(Explanation::Down { logical, .. })) => (
                vec![Candidate::new(port, "down")],
                port,
                Cow::Owned(format!("down: logical port {logical} of the port map")),
            ),
            (
                Decision::Port(port),
                Some(Explanation::Up {
                    entry,
                    ports,
                    hash,
                    spread,
                }),
            ) => (
                numbers(ports)
                    .map(|port| Candidate::new(port, "up"))
                    .collect(),
                port,
                Cow::Owned(format!(
                    "table entry {entry}: hash {hash:#x} modulo {spread}"
                )),
            ),
            (Decision::Adaptive(ports), _) => (
                numbers(ports)
                    .map(|port| Candidate::new(port, "up"))
                    .collect(),
                u8::MAX,
                Cow::Borrowed("adaptive: see column and row"),
            ),
            (Decision::Refused(why), _) => (Vec::new(), u8::MAX, Cow::Borrowed(refusal(why))),
            _ => return,
        };
        let choice = Choice {
            among: "port".into(),
            mode: mode(&request).into(),
            candidates,
            winner,
            why,
            times: 1,
        };
        watch.decided(queue_id, key, choice);
        if let Decision::Refused(why) = decision {
            watch.discarded(queue_id, key, refusal(why));
        }
    }

    /// Traces the column chosen for a packet that may use several.
    #[cold]
    pub(super) fn watch_columns(
        &mut self,
        (port, vc): (usize, usize),
        head: Phit,
        (credits, open): ([u8; 8], u8),
        column: u8,
    ) {
        if let Some(watch) = &mut self.watch {
            let choice = among("column", (credits, ROW_BUFFER_PHITS), open, column);
            watch.decided(input_queue(port, vc), head.content().into(), choice);
        }
    }

    /// Traces a head that leaves an input queue for a row buffer.
    #[cold]
    pub(super) fn watch_row(&mut self, (port, vc): (usize, usize), head: Phit, id: RowBufferId) {
        if let Some(watch) = &mut self.watch {
            let queue_ids = (input_queue(port, vc), ROW_QUEUES + id.index() as QueueId);
            watch.step(queue_ids, head.content().into(), INPUT, self.cycle);
        }
    }

    /// Traces the row chosen for a packet that may use several.
    #[cold]
    pub(super) fn watch_rows(&mut self, id: RowBufferId, slot: Slot, of: ([u8; 8], u8), row: u8) {
        if let Some(watch) = &mut self.watch {
            let choice = among("row", (of.0, COLUMN_BUFFER_PHITS), of.1, row);
            watch.decided(ROW_QUEUES + id.index() as QueueId, key(slot), choice);
        }
    }

    /// Traces a head that leaves a column buffer by an output, or is discarded there.
    #[cold]
    pub(super) fn watch_column(
        &mut self,
        from: ColumnBufferId,
        slot: Slot,
        (output, vc): (usize, usize),
        discarded: Option<&'static str>,
    ) {
        if let Some(watch) = &mut self.watch {
            let queue_id = COLUMN_QUEUES + from.index() as QueueId;
            match discarded {
                Some(why) => watch.discarded(queue_id, key(slot), why),
                None => watch.left(
                    queue_id,
                    key(slot),
                    COLUMN,
                    self.cycle,
                    (output as u8, vc as u8),
                ),
            }
        }
    }
}

/// Traces a head that leaves a row buffer for a column buffer.
#[cold]
pub(super) fn watch_switch(
    watch: &mut Watch,
    cycle: u64,
    (from, to): (RowBufferId, ColumnBufferId),
    slot: Slot,
) {
    let from = ROW_QUEUES + from.index() as QueueId;
    let to = COLUMN_QUEUES + to.index() as QueueId;
    watch.step((from, to), key(slot), ROW, cycle);
}

fn key(slot: Slot) -> u64 {
    (slot & CONTENT_MASK).into()
}

fn numbers(mask: u64) -> impl Iterator<Item = u8> {
    phitwire::kit::bits(mask).map(|bit| bit as u8)
}

/// Describes the choice of a column or row by the occupancy of its buffers.
fn among(what: &'static str, (credits, depth): ([u8; 8], u8), open: u8, winner: u8) -> Choice {
    let taken = |number: u8| depth.saturating_sub(credits[usize::from(number) % 8]);
    let candidates = numbers(open.into()).map(|number| Candidate {
        load: Some(taken(number).into()),
        ..Candidate::new(number, "")
    });
    let candidates: Vec<_> = candidates.collect();
    Choice {
        among: what.into(),
        mode: "adaptive".into(),
        why: match candidates.len() {
            1 => "the only candidate".into(),
            _ => "round-robin among those less than half full".into(),
        },
        candidates,
        winner,
        times: 1,
    }
}

const fn refusal(why: Refusal) -> &'static str {
    match why {
        Refusal::Unroutable => "no table entry matches the destination",
        Refusal::UpDownViolation => "a packet from above may not go up again",
        Refusal::VirtualRouterViolation => "the packet may not leave its virtual router",
    }
}

#[cfg(test)]
mod tests {
    use phitwire_framing::yarc::memory::{
        Request, Response, Status, encode_request, encode_response,
    };
    use phitwire_framing::yarc::packet::PacketBuf;

    use super::*;

    #[test]
    fn packets_are_known_by_their_transaction() {
        let (mut request, mut response) = (PacketBuf::new(), PacketBuf::new());
        for tid in [0, 1, 0xf_ffff, 0xa_5a5a, 0x3_1234] {
            let read = Request::Read {
                address: 0xffff_ffff_ffc0,
                len: 8,
            };
            encode_request(0x7fff, 0x2aaa, tid, &read, &mut request).expect("the packet fits");
            let done = Response::WriteDone {
                tid,
                status: Status::Busy,
            };
            encode_response(0x7fff, &done, &mut response).expect("the packet fits");
            let of = |packet: &PacketBuf, response| {
                identity_of(response, |at| {
                    packet.as_slice().get(at).map(|phit| phit.content())
                })
            };
            assert_eq!(of(&request, false), Some(tid.into()));
            assert_eq!(of(&response, true), Some(tid.into()));
        }
    }
}

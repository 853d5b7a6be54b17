//! The requesting side: sends requests, matches responses and handles timeouts.

use std::collections::VecDeque;

use phitwire_framing::yarc::memory::{
    EncodeError, Request, Response, Status, decode_response, encode_request,
};
use phitwire_framing::yarc::packet::PacketBuf;
use phitwire_framing::yarc::phit::Phit;

use super::counters::NicCounters;
use super::outstanding::{Asker, Outstanding, Pending, Tid};
use super::port::Port;
use phitwire::nic::periods::Periods;
use phitwire::time::{Duration, Time};

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// Too many requests are outstanding or too many completions are not fetched, or this period
    /// has no more ids for this NIC. New ids become available after a few seconds.
    #[error("too many requests are outstanding")]
    TooMany,
    #[error("the queue of the link is full")]
    QueueFull,
    #[error("port {0} does not exist")]
    Port(u8),
    #[error("{0}")]
    Encode(EncodeError),
    #[error("the route has too many hops")]
    Route,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The data is in the target's memory.
    Written,
    /// The bytes read are the first `len` of `data`.
    Read {
        /// Bytes from `len` on are zero.
        data: [u8; 32],
        len: u8,
    },
    Refused {
        status: Status,
    },
    /// No response arrived in time. The request may or may not have been executed.
    TimedOut,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The id that [`post`](super::BlackWidowNic::post) returned.
    pub tid: Tid,
    pub dest: u16,
    pub address: u64,
    pub posted: Time,
    /// When the response was processed, or the request timed out.
    pub completed: Time,
    pub outcome: Outcome,
}

/// The slice for a request to `address`, if there are `slices` slices (1 to 4).
///
/// It depends only on the address bits above the 64-byte block, so requests to one address take one
/// slice and stay in order. It depends on all of those bits, so the hash bits that select the
/// uplink within a slice keep their diversity (compare BlackWidow sec. 7.8.2, on routers of
/// successive ranks).
#[inline]
pub const fn slice_of(address: u64, slices: usize) -> usize {
    let mixed = (address >> 6).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    (mixed as usize * slices) >> 32
}

/// A response with its request, or the timeout of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub tid: Tid,
    pub pending: Pending,
    pub outcome: Outcome,
}

#[derive(Debug)]
pub(crate) struct Requester {
    processor: u16,
    timeout: Duration,
    pub outstanding: Outstanding,
    completions: VecDeque<Completion>,
    /// Requests of the user that are outstanding or whose completion is not fetched.
    user_open: usize,
    max_user_open: usize,
    pub counters: NicCounters,
}

impl Requester {
    pub(crate) fn new(
        processor: u16,
        max_outstanding: u32,
        periods: Periods,
        timeout: Duration,
    ) -> Self {
        Self {
            processor,
            timeout,
            outstanding: Outstanding::new(max_outstanding, periods),
            completions: VecDeque::new(),
            user_open: 0,
            max_user_open: max_outstanding as usize,
            counters: NicCounters::default(),
        }
    }

    pub(crate) fn user_has_room(&self) -> bool {
        self.user_open < self.max_user_open
    }

    /// Begins a request and sends or queues it on the port of its slice.
    #[inline]
    pub(crate) fn issue(
        &mut self,
        now: Time,
        dest: u16,
        request: &Request,
        asker: Asker,
        ports: &mut [Port],
    ) -> Result<Tid, PostError> {
        let address = request.address();
        let port = &mut ports[slice_of(address, ports.len())];
        if !port.request_has_room() {
            return Err(PostError::QueueFull);
        }
        let is_read = matches!(request, Request::Read { .. });
        let len = request.len();
        let pending = Pending {
            address,
            posted: now,
            dest,
            len,
            is_read,
            asker,
        };
        self.outstanding.slab.advance(now);
        let tid = self.outstanding.begin(pending).ok_or(PostError::TooMany)?;
        let mut packet = PacketBuf::new();
        if let Err(error) = encode_request(dest, self.processor, tid.bits(), request, &mut packet) {
            self.outstanding.finish(tid);
            return Err(PostError::Encode(error));
        }
        port.send_request(Some(tid), &packet);
        self.user_open += usize::from(asker == Asker::User);
        self.counters.reads_posted += u64::from(is_read);
        self.counters.writes_posted += u64::from(!is_read);
        Ok(tid)
    }

    /// Matches a response packet. Counts it and returns `None` if it matches no request.
    #[inline]
    pub(crate) fn answer(&mut self, packet: &[Phit]) -> Option<Answer> {
        let (dest, response) = match decode_response(packet) {
            Ok(decoded) => decoded,
            Err(error) => {
                self.counters.malformed(error);
                return None;
            }
        };
        if dest != self.processor {
            self.counters.discard_misrouted += 1;
            return None;
        }
        let (Response::WriteDone { tid, .. }
        | Response::ReadData { tid, .. }
        | Response::Refused { tid, .. }) = response;
        let tid = Tid::from_bits(tid);
        let Some(&pending) = self.outstanding.get(tid) else {
            if !self.outstanding.is_recent(tid) {
                self.counters.stale_responses += 1;
            } else if self.outstanding.late(tid) {
                self.counters.late_responses += 1;
            } else {
                self.counters.unknown_responses += 1;
            }
            return None;
        };
        let outcome = match response {
            Response::WriteDone {
                status: Status::Done,
                ..
            } if !pending.is_read => {
                self.counters.writes_done += 1;
                Outcome::Written
            }
            Response::ReadData { data, len, .. } if pending.is_read && len == pending.len => {
                self.counters.reads_done += 1;
                Outcome::Read { data, len }
            }
            Response::Refused { status, .. } if status != Status::Done => {
                self.counters.requests_refused += 1;
                Outcome::Refused { status }
            }
            _ => {
                self.counters.mismatched_responses += 1;
                return None;
            }
        };
        self.outstanding.finish(tid);
        Some(Answer {
            tid,
            pending,
            outcome,
        })
    }

    #[inline]
    pub(crate) fn expire(&mut self, now: Time) -> Option<Answer> {
        let (at, oldest) = self.outstanding.slab.times_out(self.timeout)?;
        if at > now {
            return None;
        }
        let (tid, pending) = self.outstanding.expire(oldest)?;
        self.counters.requests_timed_out += 1;
        Some(Answer {
            tid,
            pending,
            outcome: Outcome::TimedOut,
        })
    }

    pub(crate) fn stood_still(&mut self, now: Time, span: Duration) {
        let slab = &mut self.outstanding.slab;
        slab.stood_still(now, span, self.timeout);
    }

    /// When the next request times out, or requests become possible again.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        self.outstanding.slab.next_deadline(self.timeout)
    }

    pub(crate) fn complete(&mut self, now: Time, answer: Answer) {
        let asked = answer.pending;
        self.completions.push_back(Completion {
            tid: answer.tid,
            dest: asked.dest,
            address: asked.address,
            posted: asked.posted,
            completed: now,
            outcome: answer.outcome,
        });
    }

    pub(crate) fn poll_completion(&mut self) -> Option<Completion> {
        let completion = self.completions.pop_front()?;
        self.user_open -= 1;
        Some(completion)
    }
}

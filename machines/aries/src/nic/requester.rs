//! The requesting side: sends requests, matches responses and handles timeouts.

use std::collections::VecDeque;

use phitwire_framing::aries::flit::{Flit, Head, NodeId, Routing};
use phitwire_framing::aries::packet::{
    Command, EmitError, PacketError, REQUEST_HEADER_FLITS, Request, RequestView, Response, Status,
};

use super::completion::Failure;
use super::counters::AriesNicCounters;
use super::host::Host;
use super::outstanding::{
    Landing, Outstanding, PacketId, Pending, PendingEntry, RESERVED, RequestName, RequestOrigin,
    Share,
};
use super::packet_buf::{PacketBuf, PacketQueue};
use phitwire::nic::periods::Periods;
use phitwire::time::{Duration, Time};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask<'a> {
    pub node: NodeId,
    pub command: Command,
    pub handle: u16,
    pub key: u16,
    pub ssid: u16,
    pub address: u64,
    pub routing: Routing,
    pub data: &'a [u8],
    /// Data bytes of a successful response.
    pub answer_bytes: u8,
    pub landing: Landing,
}

/// The end of a request: its response, or the lack of one. The data is passed separately.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub pending: Pending,
    pub failure: Option<Failure>,
}

#[derive(Debug)]
pub(crate) struct Requester {
    node: NodeId,
    timeout: Duration,
    pub outstanding: Outstanding,
    queue: PacketQueue,
    queue_limit: usize,
    /// The host, if its times are modelled, and when each queued packet has left it.
    pub host: Option<Box<Host>>,
    ready: VecDeque<Time>,
    /// When the next packet can be sent, if it cannot yet.
    waits: Option<Time>,
    pub counters: AriesNicCounters,
}

impl Requester {
    pub(crate) fn new(
        node: NodeId,
        max_outstanding: u32,
        periods: Periods,
        timeout: Duration,
    ) -> Self {
        Self {
            node,
            timeout,
            outstanding: Outstanding::new(max_outstanding, periods),
            queue: PacketQueue::default(),
            queue_limit: (max_outstanding + RESERVED) as usize,
            host: None,
            ready: VecDeque::new(),
            waits: None,
            counters: AriesNicCounters::default(),
        }
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    #[inline]
    pub(crate) fn has_room(&self, share: Share) -> bool {
        self.outstanding.has_room(share) && self.queue.len() < self.queue_limit
    }

    /// Whether a packet id is free for a request with the given mode and address.
    #[inline]
    pub(crate) fn has_id(&self, routing: Routing, address: u64) -> bool {
        self.outstanding.has_id(routing, address)
    }

    #[inline]
    pub(crate) fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Turns `ask` into a request and queues it for the link.
    ///
    /// # Errors
    /// On an [`EmitError`], which means that the request does not fit a packet, nothing is
    /// requested.
    ///
    /// # Panics
    /// If there is no room even in the reserve, or no free id. Check [`has_room`](Self::has_room)
    /// first, and [`has_id`](Self::has_id) for a deterministic mode.
    // Inlined so that `ask` stays in registers: a copy would stall on its stores.
    #[inline(always)]
    pub(crate) fn issue(
        &mut self,
        now: Time,
        ask: &Ask<'_>,
        origin: RequestOrigin,
    ) -> Result<PacketId, EmitError> {
        let request = PendingEntry {
            posted: now,
            origin,
            offset: ask.address,
            node: ask.node,
            command: ask.command,
            handle: ask.handle,
            answer_bytes: ask.answer_bytes,
            ..PendingEntry::NONE
        };
        let pending = Pending::new(request, ask.landing);
        let (id, echo) = self.outstanding.begin(pending, ask.routing);
        let request = Request {
            destination: ask.node,
            source: self.node,
            routing: ask.routing,
            packet_id: id.bits(),
            command: ask.command,
            mdh: ask.handle,
            echo,
            ssid: ask.ssid,
            address: ask.address,
            key: ask.key,
        };
        let packet = self.queue.vacant();
        match request.emit(ask.data, packet.room()) {
            Ok(flits) => packet.set_len(flits),
            Err(error) => {
                self.outstanding.finish(id);
                return Err(error);
            }
        }
        self.queue.push_vacant();
        if let Some(host) = &mut self.host {
            self.ready
                .push_back(host.leaves(now, origin, ask.data.len()));
        }
        self.counters.posted(ask.command);
        Ok(id)
    }

    /// The next request for the link, without removing it, if it has left the host. Drops and
    /// counts requests that have timed out in the queue; no response to them can arrive.
    #[inline]
    pub(crate) fn next_packet(&mut self, now: Time) -> Option<&PacketBuf> {
        while let Some((id, echo)) = self.queue.front().and_then(name_of)
            && !self.outstanding.waits(id, echo)
        {
            self.packet_sent();
            if self.outstanding.is_recent(id, echo) {
                self.outstanding.release(id);
            }
            self.counters.requests_unsent += 1;
        }
        self.waits = self.ready.front().copied().filter(|&at| at > now);
        match self.waits {
            None => self.queue.front(),
            Some(_) => None,
        }
    }

    /// Records that the link accepted the packet of [`next_packet`](Self::next_packet).
    #[inline]
    pub(crate) fn packet_sent(&mut self) {
        self.queue.pop_front();
        self.ready.pop_front();
    }

    /// Matches a response with `bytes` bytes of data. Returns `None`, and counts the response, if
    /// no request awaits it. Ignores other requests that the response completes.
    #[inline(always)] // Inlined like `issue`.
    pub(crate) fn answer(&mut self, response: &Response, bytes: usize) -> Option<Answer> {
        let id = PacketId::from_bits(response.packet_id);
        let mut answer = Answer {
            pending: self.waiting(response, id)?,
            failure: None,
        };
        match response.status {
            Status::Done if bytes == usize::from(answer.pending.answer_bytes) => {
                self.counters.requests_done += 1;
            }
            Status::Done => {
                self.counters.mismatched_responses += 1;
                return None;
            }
            status => {
                self.counters.requests_refused += 1;
                answer.failure = Some(Failure::Refused(status));
            }
        }
        self.outstanding.finish(id);
        Some(answer)
    }

    /// Ends a request of the collective engine that a message of its receiver completed; no
    /// response will follow.
    pub(crate) fn answered_by_message(&mut self, (id, echo): RequestName) -> Option<Answer> {
        let pending = self.outstanding.answered_by(id, echo)?;
        if !matches!(pending.origin, RequestOrigin::Collective(_)) {
            return None;
        }
        self.counters.requests_done += 1;
        self.counters.collective_answered += 1;
        self.outstanding.finish(id);
        Some(Answer {
            pending,
            failure: None,
        })
    }

    /// The outstanding request that `response` answers; its packet id is `id`.
    #[inline]
    fn waiting(&mut self, response: &Response, id: PacketId) -> Option<Pending> {
        if response.destination != self.node {
            self.counters.discard_misrouted += 1;
            return None;
        }
        let echo = response.echo;
        if !self.outstanding.waits(id, echo) {
            self.unexpected(id, echo);
        }
        self.outstanding.answered_by(id, echo)
    }

    /// Counts a response without an outstanding request.
    #[cold]
    fn unexpected(&mut self, id: PacketId, echo: u8) {
        if !self.outstanding.is_recent(id, echo) {
            self.counters.stale_responses += 1;
        } else if self.outstanding.release(id) {
            self.counters.late_responses += 1;
        } else {
            self.counters.unknown_responses += 1;
        }
    }

    /// Handles an unusable response. If only its body is damaged, the requester is notified that
    /// the outcome is unknown. The id is quarantined, since it may be damaged too.
    #[cold]
    pub(crate) fn damaged(&mut self, packet: &[Flit], error: PacketError) -> Option<Answer> {
        let header = match (error, Response::parse_header(packet)) {
            (PacketError::Poisoned | PacketError::Crc, Ok((header, _))) => header,
            _ => {
                self.counters.malformed(error);
                return None;
            }
        };
        self.counters.damaged_responses += 1;
        let id = PacketId::from_bits(header.packet_id);
        let pending = self.waiting(&header, id)?;
        self.outstanding.give_up(id);
        let failure = Some(Failure::DamagedResponse);
        Some(Answer { pending, failure })
    }

    #[inline]
    pub(crate) fn expire(&mut self, now: Time) -> Option<Answer> {
        let (at, oldest) = self.outstanding.slab.times_out(self.timeout)?;
        if at > now {
            return None;
        }
        let (_, pending) = self.outstanding.expire(oldest)?;
        self.counters.requests_timed_out += 1;
        let failure = Some(Failure::TimedOut);
        Some(Answer { pending, failure })
    }

    pub(crate) fn handle_suspension(&mut self, now: Time, span: Duration) {
        let slab = &mut self.outstanding.slab;
        slab.handle_suspension(now, span, self.timeout);
    }

    /// Whether a process can issue a message now.
    #[inline]
    pub(crate) fn may_issue(&self, now: Time) -> bool {
        self.host
            .as_ref()
            .is_none_or(|host| host.next_free() <= now)
    }

    /// When the next request times out, requests become possible again, or one leaves the host.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        let request = self.outstanding.slab.next_deadline(self.timeout);
        request.into_iter().chain(self.waits).min()
    }
}

/// The id and the echo of a request packet.
#[inline]
fn name_of(packet: &PacketBuf) -> Option<(PacketId, u8)> {
    let header = packet.as_slice().first_chunk::<REQUEST_HEADER_FLITS>()?;
    let id = Head::parse(header[0])?.packet_id();
    Some((PacketId::from_bits(id), RequestView::new(*header).echo()))
}

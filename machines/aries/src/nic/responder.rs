//! The responding side: carries out requests of other nodes in local memory.

use std::collections::VecDeque;

use phitwire_framing::aries::flit::{Flit, NodeId};
use phitwire_framing::aries::packet::{
    AmoOp, Command, MAX_DATA, Operands, PacketError, Request, Response, Status, Width,
};

use super::amo;
use super::amo_cache::CachedMemory;
use super::collective::CollectiveUnit;
use super::completion::TargetEvent;
use super::config::AriesNicConfig;
use super::counters::AriesNicCounters;
use super::domain::{Access, Denied, Domains};
use super::host::Served;
use super::packet_buf::PacketBuf;
use super::receive::{HANDLE_BYTES, Piece, Receives};
use super::traffic::{RUN_BLOCK_CODE, RUN_CODE, RUN_DOMAIN, announcement_status};
use super::transaction::whole_ssid;
use super::virtual_handle::VirtualHandleCam;
use phitwire::nic::checker::{ANNOUNCEMENT_BYTES, Announced, Announcement, Checker, Purpose};
use phitwire::time::Time;

/// Code of the control request that adds a transaction's event to the target's queue. 12 and 13 are
/// used by traffic runs, lower codes by the collective engine. 15 is unused, since a packet that a
/// link cut off is filled with ones.
pub(crate) const EVENT_CODE: u8 = 14;
/// Code of the control request with which a probe puts; its data is discarded.
pub(crate) const PROBE_CODE: u8 = 11;
/// Data bytes of a transaction's event.
pub(crate) const EVENT_BYTES: usize = 8;
/// A stalled message is given up after this many timeouts, by which time its source has given it
/// up.
const PATIENCE: u64 = 4;

#[derive(Debug)]
pub(crate) struct Responder {
    node: NodeId,
    pub memory: CachedMemory,
    pub domains: Domains,
    pub handles: VirtualHandleCam,
    pub receives: Receives,
    /// Events that are not fetched yet, oldest first.
    pub events: VecDeque<TargetEvent>,
    most_events: usize,
    pub checker: Checker,
    /// The request carried out last, for the host.
    pub served: Option<Served>,
    pub counters: AriesNicCounters,
}

impl From<Denied> for Status {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::UnknownHandle => Self::BadMdh,
            Denied::WrongKey => Self::BadKey,
            Denied::Permission => Self::Unsupported,
            Denied::OutOfBounds => Self::OutOfBounds,
        }
    }
}

impl Responder {
    /// The responding side of a NIC; `begin` is random.
    pub(crate) fn new(config: &AriesNicConfig, begin: u64) -> Self {
        let memory = CachedMemory::new(config.memory_bytes, config.amo_update);
        let mut domains = Domains::default();
        for &(handle, domain) in &config.domains {
            domains
                .register(handle, domain, memory.memory())
                .expect("the builder checked the domains");
        }
        Self {
            node: config.node,
            memory,
            domains,
            handles: VirtualHandleCam::default(),
            receives: Receives::new(config.request_timeout.times(PATIENCE), begin),
            events: VecDeque::new(),
            most_events: config.target_queue,
            checker: Checker::default(),
            served: None,
            counters: AriesNicCounters::default(),
        }
    }

    pub(crate) fn node(&self) -> NodeId {
        self.node
    }

    /// Carries out the request in `packet`, and writes the response to `out`. Returns false if
    /// there is no valid source to respond to, which is counted, or if the collective unit will
    /// respond.
    #[inline]
    pub(crate) fn serve(
        &mut self,
        now: Time,
        packet: &[Flit],
        out: &mut PacketBuf,
        collective: &mut CollectiveUnit,
    ) -> bool {
        let (mut data, mut answer) = ([0; MAX_DATA], [0; MAX_DATA]);
        self.served = None;
        let (request, outcome) = match Request::parse(packet, &mut data) {
            Ok((request, _)) if request.destination != self.node => {
                self.counters.discard_misrouted += 1;
                return false;
            }
            Ok((request, bytes)) => {
                let data = &data[..bytes];
                let misses = self.memory.counts.misses;
                let outcome = self.carry_out(now, &request, data, &mut answer, collective);
                self.served = Some(Served {
                    command: request.command,
                    bytes: bytes.max(outcome.unwrap_or(0)),
                    hit: self.memory.counts.misses == misses,
                });
                (request, outcome)
            }
            Err(error) => match self.damaged(packet, error) {
                Some((request, status)) => (request, Err(status)),
                None => return false,
            },
        };
        let (status, bytes) = match outcome {
            Ok(bytes) => (Status::Done, bytes),
            Err(status) => (status, 0),
        };
        self.counters.served(request.command, status);
        let response = Response {
            destination: request.source,
            routing: request.routing.of_response(),
            packet_id: request.packet_id,
            echo: request.echo,
            status,
            joined: false,
        };
        if collective.keeps(now, &response) {
            return false;
        }
        let emitted = response.emit(&answer[..bytes], out.room());
        debug_assert!(emitted.is_ok(), "a response has at most 64 bytes of data");
        emitted.map(|flits| out.set_len(flits)).is_ok()
    }

    /// Rejects a damaged request if its header still identifies the requester.
    #[cold]
    fn damaged(&mut self, packet: &[Flit], error: PacketError) -> Option<(Request, Status)> {
        let status = match error {
            PacketError::Poisoned => Status::Poisoned,
            PacketError::Crc => Status::BadCrc,
            _ => {
                self.counters.malformed(error);
                return None;
            }
        };
        let cut_off = NodeId::from_bits(u32::MAX);
        match Request::parse_header(packet) {
            Ok((request, _)) if request.source != cut_off && request.destination == self.node => {
                Some((request, status))
            }
            _ => {
                self.counters.malformed(error);
                None
            }
        }
    }

    /// Carries out a request. Writes the response's data to the front of `answer` and returns its
    /// length, or the reason for a rejection.
    #[inline]
    fn carry_out(
        &mut self,
        now: Time,
        request: &Request,
        data: &[u8],
        answer: &mut [u8; MAX_DATA],
        collective: &mut CollectiveUnit,
    ) -> Result<usize, Status> {
        let status = match request.command {
            Command::Put { event } => return self.put(request, data, event),
            Command::Get { words } => {
                let bytes = 4 * usize::from(words);
                return self.get(request, &mut answer[..bytes]);
            }
            Command::Amo { op, width, fetch } => {
                let operands = Operands::from_bytes(data, width);
                let old = self.atomic(request, op, width, operands)?;
                if !fetch {
                    return Ok(0);
                }
                let bytes = width.bytes();
                let old = old << (64 - 8 * bytes);
                answer[..8].copy_from_slice(&old.to_be_bytes());
                return Ok(bytes);
            }
            Command::Message { .. } => return self.message(now, request, data, answer),
            Command::Control { code: EVENT_CODE } => return self.queue_event(request, data),
            Command::Control {
                code: RUN_BLOCK_CODE,
            } => return self.block_arrived(request, data),
            // Discard a probe's data.
            Command::Control { code: PROBE_CODE } => Status::Done,
            Command::Control { code: RUN_CODE } => self.announced(request, data),
            Command::Control { code } => collective.serve(now, request, code, data),
        };
        match status {
            Status::Done => Ok(0),
            refused => Err(refused),
        }
    }

    /// The local address of the bytes that a request accesses.
    #[inline]
    fn locate(&mut self, request: &Request, bytes: usize, access: Access) -> Result<u64, Status> {
        let Request {
            key, mdh, address, ..
        } = *request;
        let handle = self.handles.translate(key, mdh);
        self.counters.handles_translated += u64::from(handle != mdh);
        Ok(self
            .domains
            .locate(handle, key, address, bytes as u64, access)?)
    }

    #[inline]
    fn put(&mut self, request: &Request, data: &[u8], event: bool) -> Result<usize, Status> {
        let at = self.locate(request, data.len(), Access::Put)?;
        let source = request.source.bits();
        let mut whole = None;
        if request.mdh == RUN_DOMAIN {
            let memory = self.memory.memory();
            whole = self.checker.line(source, request.address, data, memory);
        }
        let written = self.memory.write(at, data);
        written.map_err(|_| Status::OutOfBounds)?;
        if request.mdh == RUN_DOMAIN {
            self.checker.put(source, request.address, data);
        }
        if let Some((index, number)) = whole {
            let memory = self.memory.memory();
            self.checker.block(source, index, number, memory);
        }
        if event && !self.is_last_line(request, data) {
            let event = TargetEvent::Put {
                source: request.source,
                ssid: request.ssid,
                handle: self.handles.translate(request.key, request.mdh),
                offset: request.address,
                len: data.len() as u8,
            };
            self.event(event);
        }
        Ok(0)
    }

    /// Passes the last line of a traffic run's block to the checker, which verifies the block once
    /// it is complete. Returns false if this was not such a line.
    fn is_last_line(&mut self, request: &Request, data: &[u8]) -> bool {
        let (source, memory) = (request.source.bits(), self.memory.memory());
        request.mdh == RUN_DOMAIN
            && self
                .checker
                .last_line(source, request.address, data, memory)
    }

    #[inline]
    fn get(&mut self, request: &Request, out: &mut [u8]) -> Result<usize, Status> {
        let at = self.locate(request, out.len(), Access::Get)?;
        if at % 4 != 0 {
            return Err(Status::Misaligned);
        }
        let read = self.memory.read(at, out);
        read.map_err(|_| Status::OutOfBounds)?;
        Ok(out.len())
    }

    /// Performs the operation and returns the old word.
    #[inline]
    fn atomic(
        &mut self,
        request: &Request,
        op: AmoOp,
        width: Width,
        operands: Operands,
    ) -> Result<u64, Status> {
        let bytes = width.bytes();
        let mut at = self.locate(request, bytes, Access::Atomic);
        if at == Err(Status::Unsupported) && amo::is_read(op, operands) {
            at = self.locate(request, bytes, Access::Get);
        }
        let at = at?;
        if at % bytes as u64 != 0 {
            return Err(Status::Misaligned);
        }
        let old = match width {
            Width::Bits64 => self
                .memory
                .update_64(at, |old| amo::apply(op, width, old, operands)),
            Width::Bits32 => self
                .memory
                .update_32(at, |old| amo::apply(op, width, old.into(), operands) as u32)
                .map(u64::from),
        };
        old.map_err(|_| Status::OutOfBounds)
    }

    fn message(
        &mut self,
        now: Time,
        request: &Request,
        data: &[u8],
        answer: &mut [u8; MAX_DATA],
    ) -> Result<usize, Status> {
        let (ssid, address) = whole_ssid(request.ssid, request.address);
        let piece = Piece {
            source: request.source,
            ssid,
            handle: request.mdh,
            key: request.key,
            address,
            last: request.command == Command::Message { last: true },
            data,
        };
        let taken = self.receives.take(now, &piece, &mut self.memory);
        if let Some(event) = taken.event {
            self.event(event);
        }
        if taken.status != Status::Done {
            return Err(taken.status);
        }
        Ok(taken.handle.map_or(0, |handle| {
            answer[..HANDLE_BYTES].copy_from_slice(&u32::from(handle).to_be_bytes());
            HANDLE_BYTES
        }))
    }

    /// Queues the event of a successful transaction.
    fn queue_event(&mut self, request: &Request, data: &[u8]) -> Result<usize, Status> {
        let (ssid, address) = whole_ssid(request.ssid, request.address);
        let domain = Request {
            address,
            ..*request
        };
        self.locate(&domain, 0, Access::Put)?;
        let word = data.first_chunk::<EVENT_BYTES>();
        let word = u64::from_be_bytes(*word.ok_or(Status::Unsupported)?);
        let event = TargetEvent::Transaction {
            source: request.source,
            ssid,
            handle: self.handles.translate(request.key, request.mdh),
            data: word,
        };
        self.event(event);
        Ok(0)
    }

    /// Handles the announcement of a traffic run, or a query about one. Any source that may put to
    /// the run's addresses may announce it.
    #[cold]
    fn announced(&mut self, request: &Request, data: &[u8]) -> Status {
        let whole = data.split_at_checked(ANNOUNCEMENT_BYTES);
        let announced = whole.filter(|(_, filling)| filling.iter().all(|&byte| byte == 0));
        let Some((purpose, announcement)) =
            announced.and_then(|(announced, _)| Announcement::parse(announced))
        else {
            return Status::Unsupported;
        };
        let (source, own) = (request.source.bits(), self.node.bits());
        if purpose == Purpose::Ask {
            let known = self.checker.knows(source, &announcement);
            return announcement_status(known);
        }
        let range = Request {
            mdh: RUN_DOMAIN,
            address: announcement.base,
            ..*request
        };
        let bytes = announcement.bytes() as usize;
        match self.locate(&range, bytes, Access::Put) {
            Ok(at) if at == announcement.base => {
                let memory = self.memory.memory_mut();
                let announced = self.checker.announce(source, own, announcement, memory);
                self.counters.runs_outdated += u64::from(announced == Announced::Outdated);
                announcement_status(announced)
            }
            Ok(_) => Status::OutOfBounds,
            Err(status) => status,
        }
    }

    /// Handles the event that reports a traffic run's block in memory, when its last line was too
    /// short to announce it.
    fn block_arrived(&mut self, request: &Request, data: &[u8]) -> Result<usize, Status> {
        self.locate(request, 0, Access::Put)?;
        let word = data.first_chunk::<EVENT_BYTES>();
        let word = u64::from_be_bytes(*word.ok_or(Status::Unsupported)?);
        let (index, number) = ((word >> 32) as u32, word as u32);
        let source = request.source.bits();
        self.checker
            .block(source, index, number, self.memory.memory());
        Ok(0)
    }

    #[inline]
    pub(crate) fn event(&mut self, event: TargetEvent) {
        if let TargetEvent::Received { failure, .. } = event {
            self.counters.receives_done += u64::from(failure.is_none());
            self.counters.receives_failed += u64::from(failure.is_some());
        }
        // Keep every receive event: the number of posted receives is bounded.
        let is_bounded = matches!(event, TargetEvent::Received { .. });
        if is_bounded || self.events.len() < self.most_events {
            self.events.push_back(event);
            self.counters.target_events += 1;
        } else {
            self.counters.target_event_overflows += 1;
        }
    }
}

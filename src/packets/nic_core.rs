//! A NIC without its users: its ports, and the requests that wait for replies.

use super::counters::{Count, NicCounting};
use super::nic::TransferNicConfig;
use super::outstanding::{Outstanding, Pending, RequestOrigin};
use super::port::Port;
use super::responder::Responder;
use super::transfer::{Kind, Transfer};
use super::transfer_end::{ConfigOf, TransferEnd};
use crate::device::PipelineReport;
use crate::device::pipeline::Stage;
use crate::link::{LinkView, NodeLink as _};
use crate::nic::checker::ANNOUNCE_ADDRESS;
use crate::nic::{Issuer, Message, RunRequest};
use crate::time::{Duration, Time};

#[derive(Debug)]
pub(super) struct NicCore<E: TransferEnd> {
    pub(crate) counters: E::Counters,
    pub(crate) config: TransferNicConfig<()>,
    pub(crate) now: Time,
    pub(crate) ports: Vec<Port<E>>,
    pub(crate) outstanding: Outstanding,
    pub(crate) responder: Responder,
    /// Whether requests of the current run keep their order.
    pub(crate) ordered: bool,
}

impl<E: TransferEnd> NicCore<E> {
    /// Number of replies inside the NIC. Zero if requests share their queues: such queues are
    /// reported as outside the NIC, because requests already count as outstanding.
    pub(super) fn inside(&self) -> u64 {
        let answers = self.ports.iter().map(|port| port.waiting()[1]);
        match E::REQUEST_QUEUE {
            0 => answers.sum(),
            _ => 0,
        }
    }

    /// The queues and their fill levels.
    pub(super) fn pipeline(&self) -> PipelineReport {
        let end: &dyn LinkView = &self.ports[0].link;
        let unit = end.account().units.credits;
        let links = || self.ports.iter().map(|port| &port.link).enumerate();
        let views = links().map(|(port, link)| (port as u8, link as &dyn LinkView));
        let answers = self.config.answers as u64;
        let waiting = match E::REQUEST_QUEUE {
            0 => Stage::inside("waiting for the link", "packets", "NIC")
                .single("responses", self.inside())
                .capacity([answers]),
            most => {
                let mut stage = Stage::outside("waiting for the link", "packets", "port")
                    .channels(&["requests", "responses"])
                    .capacity([most as u64, answers]);
                let waiting = self.ports.iter().map(Port::waiting).enumerate();
                waiting.for_each(|(port, held)| stage.holds(port, held));
                stage
            }
        };
        PipelineReport {
            stages: vec![
                Stage::inside("outstanding requests", "requests", "NIC")
                    .single("without response", self.outstanding.slab.used().into())
                    .capacity([self.config.outstanding.into()]),
                waiting,
                Stage::of_links(views),
                Stage::outside("input buffer", unit, "port").of_inputs(links()),
            ],
        }
    }

    pub(super) fn new(config: TransferNicConfig<ConfigOf<E>>, now: Time) -> Self {
        let (links, config) = config.split();
        assert!(!links.is_empty(), "a NIC has a link");
        let names = (E::NAME_BITS, config.outstanding);
        let can = (E::ABILITIES, E::MESSAGES);
        Self {
            counters: E::Counters::default(),
            now,
            ports: links.into_iter().map(|link| Port::new(link, now)).collect(),
            outstanding: Outstanding::new(names, config.incarnation, config.timeout, now),
            responder: Responder::new(config.number, can, config.memory_bytes),
            ordered: false,
            config,
        }
    }

    /// Advances the time.
    #[inline]
    pub(super) fn see(&mut self, now: Time) {
        self.now = now;
        self.outstanding.slab.advance(now);
    }

    /// Serves a request that arrived on `port`.
    #[inline]
    pub(super) fn serve(&mut self, port: usize, asked: &Transfer) {
        let answer = self.responder.serve(asked, &mut self.counters);
        self.ports[port].answer(&answer);
    }

    /// Rejects a request that arrived damaged on `port`.
    #[cold]
    pub(super) fn spoiled(&mut self, port: usize, asked: &Transfer) {
        self.counters.count(Count::DamagedRequest);
        self.ports[port].answer(&asked.answer(Kind::Damaged));
    }

    /// Whether no request can be accepted on `port`, because its queue of replies is full.
    #[inline]
    pub(super) fn is_full(&self, port: usize) -> bool {
        self.ports[port].answers.len() >= self.config.answers
    }

    /// Sends the transfers that wait for `port`, as long as its link has room.
    #[inline]
    pub(super) fn flush(&mut self, port: usize) {
        let outstanding = &self.outstanding;
        let unsent = self.ports[port].flush(|name| outstanding.get(name).is_some());
        for _ in 0..unsent {
            self.counters.count(Count::Unsent);
        }
    }

    #[inline]
    fn port_of(&self, address: u64) -> &Port<E> {
        &self.ports[E::port_of(address, self.ports.len())]
    }

    /// Whether a request can leave or wait.
    #[inline]
    pub(super) fn has_room(&self, asked: &Transfer) -> bool {
        let port = self.port_of(asked.address);
        port.request_has_room(asked.kind, asked.len)
    }

    /// Posts a request for which there is room. Returns its name, or `None` if none is free.
    #[inline]
    pub(super) fn ask(&mut self, mut asked: Transfer, origin: RequestOrigin) -> Option<u64> {
        let Transfer {
            kind, address, len, ..
        } = asked;
        debug_assert!(self.has_room(&asked), "the caller checked for room");
        asked.from = self.config.number;
        asked.name = self.outstanding.begin(Pending {
            posted: self.now,
            origin,
            kind,
            address,
            answer_bytes: kind.answer_bytes(len),
        })?;
        let port = E::port_of(address, self.ports.len());
        self.ports[port].ask(&asked);
        self.counters.count(Count::Posted(kind));
        Some(asked.name)
    }

    /// Removes and returns the request that the reply `answer` ends. A reply whose name matches no
    /// request is counted.
    #[inline]
    pub(super) fn ended(&mut self, answer: &Transfer, is_whole: bool) -> Option<Pending> {
        let Some(&request) = self.outstanding.get(answer.name) else {
            self.counters
                .count(match self.outstanding.late(answer.name) {
                    true => Count::Late,
                    false if self.outstanding.is_recent(answer.name) => Count::Unknown,
                    false => Count::Stale,
                });
            return None;
        };
        if is_whole && answer.kind == Kind::Done && answer.len != request.answer_bytes {
            self.counters.count(Count::Mismatched);
            return None;
        }
        self.outstanding.finish(answer.name);
        self.counters.count(Count::Ended(request.kind, answer.kind));
        Some(request)
    }

    /// See [`Node::handle_suspension`](crate::node::Node::handle_suspension).
    pub(super) fn handle_suspension(&mut self, now: Time, span: Duration) {
        for port in &mut self.ports {
            port.link.handle_suspension(now, span);
        }
        self.outstanding.handle_suspension(now, span);
    }

    /// The next request that timed out.
    #[inline]
    pub(super) fn expire(&mut self) -> Option<(u64, Pending)> {
        let expired = self.outstanding.expire(self.now)?;
        self.counters.count(Count::TimedOut);
        Some(expired)
    }
}

impl<E: TransferEnd> Issuer for NicCore<E> {
    #[inline]
    fn can_go(&self, address: u64) -> bool {
        self.port_of(address).request_can_go(Kind::Get, 0)
    }

    fn has_alternative_paths(&self) -> bool {
        let can_go = |port: &Port<E>| port.request_can_go(Kind::Get, 0);
        self.ports.len() > 1 && self.ports.iter().any(can_go)
    }

    #[inline]
    fn issue(&mut self, dest: u16, request: RunRequest, message: &Message<'_>) -> bool {
        let (kind, address, len, data) = match *message {
            Message::Announce(data) => (Kind::Put, ANNOUNCE_ADDRESS, data.len() as u8, &data[..]),
            Message::Put { address, data } => (Kind::Put, address, data.len() as u8, data),
            Message::Get { address, len } => (Kind::Get, address, len, &[][..]),
            Message::Add { address } => (Kind::Increment, address, 0, &[][..]),
            Message::Block(_) => unreachable!("this machine sends no blocks"),
        };
        if !self.port_of(address).request_has_room(kind, len) {
            return false;
        }
        let mut asked = Transfer::new(dest, kind, address);
        asked.data[..data.len()].copy_from_slice(data);
        asked.len = len;
        asked.ordered = self.ordered;
        self.ask(asked, RequestOrigin::Run(request)).is_some()
    }
}

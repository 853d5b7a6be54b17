//! The NIC without its link: consumes and produces packets.

#[path = "interface_ends.rs"]
mod ends;
#[path = "interface_host.rs"]
mod host;
#[path = "interface_probe.rs"]
mod probe;

use std::collections::VecDeque;

use phitwire_framing::aries::flit::{Flit, NodeId, Routing};
use phitwire_framing::aries::packet::{Command, MAX_DATA, Response, others};

use self::host::Unseen;
use super::ABILITIES;
use super::block_transfer::{BlockError, BlockTransfer};
use super::bte::{BlockTransferEngine, TransferOwner};
use super::client_words::client_of;
use super::collective::CollectiveUnit;
use super::completion::Completion;
use super::config::AriesNicConfig;
use super::counters::AriesNicCounters;
use super::outstanding::{Landing, RequestOrigin, Share};
use super::packet_buf::PacketBuf;
use super::request::{Operation, Post, PostError};
use super::requester::{Ask, Requester};
use super::responder::{EVENT_CODE, Responder};
use super::traffic::{BlockWork, PacketIssuer, RUN_DOMAIN, routing_of};
use super::transaction::{RemoteEvent, Ssid, Transactions, high_ssid};
use super::virtual_node::{Target, VirtualNodes};
use phitwire::nic::ProbeLog;
use phitwire::nic::local::Client;
use phitwire::nic::periods::Periods;
use phitwire::nic::runs::Runs;
use phitwire::nic::traffic::Source;
use phitwire::nic::traffic_report::TrafficReport;
use phitwire::nic::traffic_spec::{SpecError, TrafficSpec};
use phitwire::rng::Rng;
use phitwire::time::{Duration, Time};

const FLAG_BYTES: u64 = 8;
/// Exclusive limit of offsets.
const OFFSETS: u64 = super::domain::MAX_DOMAIN_BYTES;

/// Upper limit of [`answer_wait`].
const LONGEST_ANSWER_WAIT: Duration = Duration::from_ms(5);

/// Owner of a request: a user, with its value, or a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    User(u64),
    Transaction(Ssid),
}

/// How long collective engines delay a response for their next message to carry: long compared with
/// an operation, short compared with the requester's timeout.
fn answer_wait(config: &AriesNicConfig) -> Duration {
    match config.joined_answers {
        true => LONGEST_ANSWER_WAIT.min(Duration::from_ns(config.request_timeout.as_ns() / 8)),
        false => Duration::ZERO,
    }
}

/// A NIC without its link. Call order: [`handle_response`](Self::handle_response) and
/// [`serve`](Self::serve) for arrivals, then [`advance`](Self::advance), then take packets from the
/// requester.
#[derive(Debug)]
pub(crate) struct Interface {
    pub requester: Requester,
    pub responder: Responder,
    pub transactions: Transactions,
    pub transfers: BlockTransferEngine,
    pub collective: CollectiveUnit,
    pub runs: Runs,
    work: BlockWork,
    /// The last finished run, until it is fetched.
    pub run_done: Option<u64>,
    pub virtual_nodes: VirtualNodes,
    /// Counters that the parts do not keep.
    pub counters: AriesNicCounters,
    completions: VecDeque<Completion>,
    local: VecDeque<(Client, Completion)>,
    /// Completions that are expected or not yet fetched.
    due: usize,
    most_due: usize,
    /// Completions of runs that the processes do not see yet.
    unseen: VecDeque<(Time, Unseen)>,
    /// When a process can issue the next message, if none can now.
    free_at: Option<Time>,
    /// When the host accepts packets again, if it accepts none now.
    pub busy_until: Option<Time>,
    pub probes: ProbeLog,
    probed: u64,
}

impl Interface {
    pub(crate) fn new(config: &AriesNicConfig, now: Time) -> Self {
        let outstanding = config.max_outstanding;
        let timeout = config.request_timeout;
        let periods = Periods::new(config.incarnation, now, timeout, 1);
        // Externally visible numbers start at random values, so that no late packet of a
        // predecessor matches.
        let epoch = config.link.link().epoch();
        let begin = Rng::new(config.seed, epoch.into()).next_u64();
        let (wait, attempts) = (config.send_retry, config.send_attempts);
        let mut interface = Self {
            requester: Requester::new(config.node, outstanding, periods, timeout),
            responder: Responder::new(config, begin),
            transactions: Transactions::new(begin),
            transfers: BlockTransferEngine::new(outstanding, wait, attempts),
            collective: CollectiveUnit::new(config.node, answer_wait(config)),
            runs: Runs::default(),
            work: BlockWork::begin(now),
            run_done: None,
            virtual_nodes: config.virtual_nodes.clone(),
            counters: AriesNicCounters::default(),
            completions: VecDeque::new(),
            local: VecDeque::new(),
            due: 0,
            most_due: config.completion_queue,
            unseen: VecDeque::new(),
            free_at: None,
            busy_until: None,
            probes: ProbeLog::default(),
            probed: 0,
        };
        if let Some(times) = config.host {
            interface.set_host(times, now);
        }
        interface
    }

    pub(super) fn handle_suspension(&mut self, now: Time, span: Duration) {
        self.requester.handle_suspension(now, span);
        self.runs.handle_suspension(now, span);
        self.collective.handle_suspension(now, span);
    }

    fn memory_bytes(&self) -> u64 {
        self.responder.memory.memory().size()
    }

    fn check_local(&self, address: u64, len: u64) -> Result<(), PostError> {
        match self.responder.memory.memory().contains(address, len) {
            true => Ok(()),
            false => Err(PostError::LocalBounds(address)),
        }
    }

    #[inline]
    pub(crate) fn post(
        &mut self,
        now: Time,
        owner: Owner,
        post: &Post<'_>,
    ) -> Result<(), PostError> {
        self.requester.outstanding.slab.advance(now);
        if !self.requester.has_room(Share::User) {
            return Err(PostError::TooMany);
        }
        let (origin, ssid) = match owner {
            Owner::User(_) if self.due >= self.most_due => {
                return Err(PostError::CompletionQueueFull);
            }
            Owner::User(user) => (RequestOrigin::User(user), 0),
            Owner::Transaction(ssid) if self.transactions.is_open(ssid) => {
                (RequestOrigin::Transaction(ssid.bits()), ssid.bits())
            }
            Owner::Transaction(_) => return Err(PostError::Transaction),
        };
        let mut operands = [0; 16];
        let ask = self.ask(post, ssid, &mut operands)?;
        if ssid != 0 && ask.answer_bytes != 0 && ask.landing.local.is_none() {
            return Err(PostError::NoAddress);
        }
        if !self.requester.has_id(ask.routing, ask.address) {
            return Err(PostError::TooMany);
        }
        self.requester
            .issue(now, &ask, origin)
            .map_err(PostError::Emit)?;
        match owner {
            Owner::User(_) => self.due += 1,
            Owner::Transaction(_) => self.transactions.began(ssid),
        }
        Ok(())
    }

    /// Converts `post` to a request; `operands` is the buffer for atomic operands.
    #[inline]
    fn ask<'a>(
        &self,
        post: &Post<'a>,
        ssid: u16,
        operands: &'a mut [u8; 16],
    ) -> Result<Ask<'a>, PostError> {
        let at = post.at;
        if at.handle >= 1 << 12 {
            return Err(PostError::Handle(at.handle));
        }
        if at.offset >= OFFSETS {
            return Err(PostError::Offset(at.offset));
        }
        let (command, data, landing) = match post.operation {
            Operation::Put { data, event } => {
                if !(1..=MAX_DATA).contains(&data.len()) {
                    return Err(PostError::Length(data.len()));
                }
                (Command::Put { event }, data, Landing::NONE)
            }
            Operation::Get { len, into, flag } => {
                if len == 0 || usize::from(len) > MAX_DATA || len % 4 != 0 {
                    return Err(PostError::Length(len.into()));
                }
                let landing = Landing {
                    skip: 0,
                    take: len,
                    local: into,
                    flag,
                };
                (Command::Get { words: len / 4 }, [].as_slice(), landing)
            }
            Operation::Atomic {
                op,
                width,
                operands: values,
                fetch,
                into,
            } => {
                let (bytes, len) = values.to_bytes(op, width);
                *operands = bytes;
                let landing = Landing {
                    take: if fetch { width.bytes() as u8 } else { 0 },
                    local: into.filter(|_| fetch),
                    ..Landing::NONE
                };
                (Command::Amo { op, width, fetch }, &operands[..len], landing)
            }
        };
        if let Some(local) = landing.local {
            self.check_local(local, landing.take.into())?;
        }
        if let Some((address, _)) = landing.flag {
            self.check_local(address, FLAG_BYTES)?;
        }
        Ok(Ask {
            node: self.resolve(at.target)?,
            command,
            handle: at.handle,
            key: at.key,
            ssid,
            address: at.offset,
            routing: post.routing,
            data,
            answer_bytes: command.response_bytes() as u8,
            landing,
        })
    }

    #[inline]
    fn resolve(&self, target: Target) -> Result<NodeId, PostError> {
        let number = match target {
            Target::Node(node) => return Ok(node),
            Target::Virtual(number) => number,
        };
        self.virtual_nodes
            .get(number)
            .ok_or(PostError::VirtualNode(number))
    }

    pub(crate) fn open(&mut self, now: Time, user: u64) -> Result<Ssid, PostError> {
        if self.due >= self.most_due {
            return Err(PostError::CompletionQueueFull);
        }
        let ssid = self
            .transactions
            .open(now, user)
            .ok_or(PostError::Transaction)?;
        self.due += 1;
        Ok(ssid)
    }

    pub(crate) fn close(
        &mut self,
        now: Time,
        ssid: Ssid,
        event: Option<RemoteEvent>,
    ) -> Result<(), PostError> {
        if let Some(event) = event {
            self.resolve(event.target)?;
        }
        let progress = self.transactions.close(ssid, event);
        self.progressed(now, progress.ok_or(PostError::Transaction)?);
        Ok(())
    }

    pub(crate) fn transfer(
        &mut self,
        now: Time,
        channel: usize,
        transfer: BlockTransfer,
    ) -> Result<(), BlockError> {
        if self.due >= self.most_due {
            return Err(BlockError::QueueFull);
        }
        let Some(node) = self.virtual_nodes.resolve(transfer.target) else {
            let Target::Virtual(number) = transfer.target else {
                unreachable!("physical nodes always resolve");
            };
            return Err(BlockError::VirtualNode(number));
        };
        let memory = self.responder.memory.memory();
        let owner = TransferOwner::User(client_of(transfer.user).map_or(0, |client| client.0));
        self.transfers
            .queue(now, (owner, channel), transfer, node, memory)?;
        self.delay_transfer(now, channel, &transfer);
        self.due += 1;
        Ok(())
    }

    pub(crate) fn own_number(&self) -> Option<u16> {
        let own = Some(self.responder.node());
        (0..=u16::MAX).find(|&number| self.virtual_nodes.get(number.into()) == own)
    }

    /// Starts a traffic run; `nonce` must differ between incarnations.
    pub(crate) fn start_traffic(
        &mut self,
        now: Time,
        nonce: u32,
        spec: TrafficSpec,
    ) -> Result<(), SpecError> {
        let nodes = &self.virtual_nodes;
        let source = Source {
            processor: self.own_number().ok_or(SpecError::NoNumber)?,
            memory_bytes: self.memory_bytes(),
            nonce,
            abilities: ABILITIES,
            timeout: self.requester.timeout(),
        };
        let identity = |number: u16| nodes.get(number.into()).map(NodeId::bits);
        self.runs.start(now, spec, source, identity)
    }

    /// Stops the current run. In a run that is already stopping, drops blocks that are not fully
    /// sent.
    pub(crate) fn stop_traffic(&mut self, now: Time) {
        if self.runs.stop() {
            self.give_up(now, TransferOwner::Run);
        }
    }

    pub(crate) fn traffic_report(&self, run: Option<u64>) -> Option<TrafficReport> {
        let memory = &self.responder.memory;
        let read = |address| memory.peek_64(address);
        self.runs.report(run, &self.responder.checker, read)
    }

    /// The oldest completion for the node itself, not a client.
    #[inline]
    pub(crate) fn poll_completion(&mut self) -> Option<Completion> {
        let completion = self.completions.pop_front()?;
        self.due -= 1;
        Some(completion)
    }

    pub(crate) fn poll_local(&mut self) -> Option<(Client, Completion)> {
        let next = self.local.pop_front()?;
        self.due -= 1;
        Some(next)
    }

    fn complete(&mut self, completion: Completion) {
        match client_of(completion.user) {
            None => self.completions.push_back(completion),
            Some(client) => self.local.push_back((client, completion)),
        }
    }

    /// Ends all transfers of an owner, except those that are fully sent.
    pub(crate) fn give_up(&mut self, now: Time, owner: TransferOwner) {
        self.transfers.give_up(owner, &mut self.transactions);
        self.collect_transfers(now);
    }

    #[inline]
    pub(crate) fn handle_response(&mut self, now: Time, packet: &[Flit]) {
        let mut data = [0; MAX_DATA];
        let mut response = Response::BLANK;
        let bytes = match response.read(packet, &mut data) {
            Ok(bytes) => bytes,
            Err(error) => {
                if let Some(answer) = self.requester.damaged(packet, error) {
                    self.settle(now, answer, &data);
                }
                return;
            }
        };
        let own_bytes = if response.joined { 0 } else { bytes };
        if let Some(answer) = self.requester.answer(&response, own_bytes) {
            self.settle(now, answer, &data);
        }
        if !response.joined {
            return;
        }
        for number in others(response.packet_id, &data[..bytes]) {
            let other = Response {
                packet_id: number,
                ..response
            };
            if let Some(answer) = self.requester.answer(&other, 0) {
                self.settle(now, answer, &data);
            }
        }
    }

    /// Carries out a request packet and writes the response to `out`; returns false if there is
    /// none.
    #[inline]
    pub(crate) fn serve(&mut self, now: Time, packet: &[Flit], out: &mut PacketBuf) -> bool {
        let has_answer = self.responder.serve(now, packet, out, &mut self.collective);
        if let Some(name) = self.collective.take_answered()
            && let Some(answer) = self.requester.answered_by_message(name)
        {
            self.settle(now, answer, &[0; MAX_DATA]);
        }
        has_answer
    }

    /// Writes to `out` a delayed response that no message of a collective engine carried in time;
    /// returns false if there is none.
    #[inline]
    pub(crate) fn overdue_answer(&mut self, now: Time, out: &mut PacketBuf) -> bool {
        let Some(response) = self.collective.next_answer(now) else {
            return false;
        };
        out.fill(|flits| response.emit(&[], flits))
            .expect("a response without data fits into a packet");
        true
    }

    /// Handles timeouts and lets every part issue its requests.
    pub(crate) fn advance(&mut self, now: Time) {
        self.requester.outstanding.slab.advance(now);
        self.work = BlockWork::begin(now);
        while let Some(answer) = self.requester.expire(now) {
            self.settle(now, answer, &[0; MAX_DATA]);
        }
        while let Some(event) = self.responder.receives.expire(now) {
            self.responder.event(event);
        }
        self.see(now);
        self.send_events(now);
        self.advance_collective(now);
        let memory = &mut self.responder.memory;
        if let Some(spec) = self.runs.spec() {
            let domain = self.responder.domains.get(RUN_DOMAIN);
            let mut issuer = PacketIssuer {
                now,
                requester: &mut self.requester,
                transfers: &mut self.transfers,
                memory,
                work: &mut self.work,
                nodes: &self.virtual_nodes,
                key: domain.map_or(0, |domain| domain.key),
                routing: routing_of(spec.ways()),
            };
            self.run_done = self.runs.issue(now, &mut issuer).or(self.run_done);
        }
        let free = self.requester.host.as_ref().map(|host| host.next_free());
        self.free_at = free.filter(|&at| at > now);
        self.issue_transfers(now);
    }

    /// Advances block transfers, and returns whether any packet was issued.
    #[inline]
    pub(crate) fn issue_transfers(&mut self, now: Time) -> bool {
        let (requester, transactions) = (&mut self.requester, &mut self.transactions);
        let memory = &mut self.responder.memory;
        let issued = self.transfers.issue(now, requester, memory, transactions);
        self.collect_transfers(now);
        issued
    }

    /// When [`advance`](Self::advance) must be called even if nothing arrives.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        let deadlines = [
            self.requester.next_deadline(),
            self.responder.receives.next_deadline(),
            self.transfers.next_deadline(),
            self.collective.next_deadline(),
            self.runs.deadline(),
            self.work.deadline(),
            self.host_deadline(),
        ];
        let earliest = deadlines
            .into_iter()
            .fold(Time::NEVER, |at, next| at.min(next.unwrap_or(Time::NEVER)));
        (earliest != Time::NEVER).then_some(earliest)
    }

    /// Sends the events of transactions that have succeeded.
    fn send_events(&mut self, now: Time) {
        while let Some((ssid, event)) = self.transactions.next_event() {
            if !self.requester.has_room(Share::Reserve) {
                return;
            }
            self.transactions.event_sent();
            let Ok(node) = self.resolve(event.target) else {
                unreachable!(
                    "the target was resolved at closing, and virtual nodes are never removed"
                );
            };
            let ask = Ask {
                node,
                command: Command::Control { code: EVENT_CODE },
                handle: event.handle,
                key: event.key,
                ssid,
                address: high_ssid(ssid),
                routing: Routing::default(),
                data: &event.data.to_be_bytes(),
                answer_bytes: 0,
                landing: Landing::NONE,
            };
            let origin = RequestOrigin::TransactionEvent(ssid);
            self.requester
                .issue(now, &ask, origin)
                .expect("8 bytes of control fit into a packet");
        }
    }

    /// Sum of the counters of all parts.
    pub(crate) fn counters(&self) -> AriesNicCounters {
        let cache = self.responder.memory.counts;
        let mut all = AriesNicCounters {
            amo_cache_hits: cache.hits,
            amo_cache_misses: cache.misses,
            amo_cache_writebacks: cache.writebacks,
            ..self.counters.clone()
        };
        all.add(&self.requester.counters);
        all.add(&self.responder.counters);
        all.add(self.collective.counters());
        all
    }
}

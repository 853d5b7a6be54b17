//! The NIC as a node, with link, memory, requests and transfers.

use phitwire_framing::aries::flit::{FIRST_RESPONSE_VC, NodeId};

use super::answers::Answers;
use super::block_transfer::{BlockError, BlockTransfer};
use super::clients::Clients;
use super::completion::{Completion, TargetEvent};
use super::config::AriesNicConfig;
use super::counters::AriesNicCounters;
use super::domain::{Domain, RegisterError};
use super::interface::{Interface, Owner};
use super::packet_buf::{Arrival, PacketBuf};
use super::receive::Receive;
use super::request::{Post, PostError};
use super::responder::Responder;
use super::transaction::{RemoteEvent, Ssid};
use super::virtual_handle::{VirtualHandleError, VirtualHandles};
use super::virtual_node::VirtualNodes;
use crate::link::AriesLcb;
use phitwire::kit::Events;
use phitwire::link::{LinkEvent, NodeLink};
use phitwire::nic::memory::Memory;
use phitwire::nic::traffic_report::TrafficReport;
use phitwire::nic::traffic_spec::{SpecError, TrafficSpec};
use phitwire::node::{Node, PortId, WakeReason, Wakeup};
use phitwire::rng::Rng;
use phitwire::time::{Duration, Time};

/// Maximum number of events kept until they are fetched; further ones replace the oldest.
const MAX_EVENTS: usize = 1024;
/// No more requests are taken while this many responses wait for the link.
const RESPONSE_QUEUE: usize = 64;
/// Block transfers send nothing while this many flits wait in the link, since a single request
/// would wait behind them. About twenty frames.
const TRANSFER_BACKLOG: u32 = 4096;
/// First virtual channel of requests. Routers change the channel on the way.
const REQUEST_VC: usize = 0;
const RESPONSE_VC: usize = FIRST_RESPONSE_VC as usize;
/// Virtual channels of requests, one bit each; the other channels carry responses.
const REQUEST_VCS: u8 = (1 << RESPONSE_VC) - 1;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AriesNicEvent {
    Link {
        event: LinkEvent,
    },
    /// All messages of a traffic run have been issued, and all responses have arrived or timed out.
    TrafficDone {
        run: u64,
    },
}

/// An Aries NIC; see the module's documentation.
///
/// The commands, such as [`post`](Self::post), may be called at any time, preferably between
/// `advance` and `poll_frame`. Call [`poll_completion`](Self::poll_completion) and
/// [`poll_target_event`](Self::poll_target_event) after `advance`.
#[derive(Debug)]
pub struct AriesNic {
    config: AriesNicConfig,
    link: AriesLcb,
    pub(super) interface: Interface,
    /// The packet taken last from the input buffer.
    arrived: PacketBuf,
    responses: Answers,
    /// The virtual channel whose requests are served first.
    turn: usize,
    events: Events<AriesNicEvent>,
    pub(super) clients: Clients,
    /// Number of puts requested by IP so far.
    named: u64,
    now: Time,
}

impl AriesNic {
    /// Creates a NIC whose link starts to train at `now`.
    pub fn new(config: AriesNicConfig, now: Time) -> Self {
        Self {
            link: AriesLcb::new(config.link.clone(), now),
            interface: Interface::new(&config, now),
            arrived: PacketBuf::new(),
            responses: Answers::new(config.joined_answers),
            turn: 0,
            events: Events::new(MAX_EVENTS),
            clients: Clients::default(),
            named: 0,
            now,
            config,
        }
    }

    pub fn config(&self) -> &AriesNicConfig {
        &self.config
    }

    pub fn node(&self) -> NodeId {
        self.config.node
    }

    pub fn virtual_number(&self) -> Option<u16> {
        self.interface.own_number()
    }

    /// Posts a single request. Its completion repeats `user`. This and all other values that a
    /// completion or event repeats must be below 2^56: [clients](phitwire::nic::local) use the
    /// numbers above.
    ///
    /// # Errors
    /// On a [`PostError`] nothing is requested.
    pub fn post(&mut self, now: Time, user: u64, post: &Post<'_>) -> Result<(), PostError> {
        self.interface.post(now, Owner::User(user), post)?;
        self.flush();
        Ok(())
    }

    /// Posts a request in an open transaction. A request that returns data needs a local address.
    ///
    /// # Errors
    /// On a [`PostError`] nothing is requested.
    pub fn post_in(&mut self, now: Time, ssid: Ssid, post: &Post<'_>) -> Result<(), PostError> {
        self.interface.post(now, Owner::Transaction(ssid), post)?;
        self.flush();
        Ok(())
    }

    pub(super) fn next_name(&mut self) -> u64 {
        self.named += 1;
        self.named
    }

    /// Opens a transaction; its completion repeats `user`.
    ///
    /// # Errors
    /// [`PostError::Transaction`] if 511 transactions and transfers are open;
    /// [`PostError::CompletionQueueFull`].
    pub fn open(&mut self, now: Time, user: u64) -> Result<Ssid, PostError> {
        self.interface.open(now, user)
    }

    /// Closes a transaction, which completes when all its responses have arrived. If all requests
    /// succeeded, the `event` is then sent to its target, and the transaction completes when the
    /// target has it.
    ///
    /// # Errors
    /// [`PostError::Transaction`], [`PostError::VirtualNode`].
    pub fn close(
        &mut self,
        now: Time,
        ssid: Ssid,
        event: Option<RemoteEvent>,
    ) -> Result<(), PostError> {
        self.interface.close(now, ssid, event)
    }

    /// Queues a block transfer on a channel (0 to 3). It begins with the next `advance`.
    ///
    /// # Errors
    /// See [`BlockError`].
    pub fn transfer(
        &mut self,
        now: Time,
        channel: usize,
        transfer: BlockTransfer,
    ) -> Result<(), BlockError> {
        self.interface.transfer(now, channel, transfer)
    }

    pub fn poll_completion(&mut self) -> Option<Completion> {
        self.interface.poll_completion()
    }

    /// Number of requests that wait for a response.
    pub fn outstanding(&self) -> u32 {
        self.interface.requester.outstanding.slab.used()
    }

    pub(super) fn waiting_responses(&self) -> usize {
        self.responses.len()
    }

    /// Number of block transfers that are queued or open.
    pub fn open_transfers(&self) -> usize {
        self.interface.transfers.open()
    }

    /// Maps the virtual node numbers of the job to nodes.
    pub fn virtual_nodes(&self) -> &VirtualNodes {
        &self.interface.virtual_nodes
    }

    /// Maps virtual node `number` to `node` for later requests, and returns the previous node;
    /// `None` if the virtual node does not exist.
    pub fn remap(&mut self, number: u32, node: NodeId) -> Option<NodeId> {
        let before = self.interface.virtual_nodes.remap(number, node);
        self.number_nodes();
        before
    }

    /// Starts a traffic run. Its processors are virtual nodes, and it uses the domain
    /// [`RUN_DOMAIN`](super::RUN_DOMAIN).
    ///
    /// # Errors
    /// See [`SpecError`]; a run in progress then continues.
    pub fn start_traffic(&mut self, now: Time, spec: TrafficSpec) -> Result<(), SpecError> {
        let seed = self.config.seed ^ now.as_ps();
        let nonce = Rng::new(seed, self.config.node.bits().into()).next_u64();
        self.interface.start_traffic(now, nonce as u32, spec)
    }

    /// Stops issuing messages of the current run, if any, and waits for outstanding ones. In a run
    /// that has already stopped issuing, this gives up the blocks that are not fully sent. The run
    /// is then done when its outstanding packets and the events of arrived blocks are answered or
    /// timed out, however long its blocks are.
    pub fn stop_traffic(&mut self) {
        self.interface.stop_traffic(self.now);
    }

    /// Report of `run`, as its source and as a target. For `None`: of the last run started here, or
    /// else of the last one announced here. Returns `None` if no such run is known.
    pub fn traffic_report(&self, run: Option<u64>) -> Option<TrafficReport> {
        self.interface.traffic_report(run)
    }

    /// Exposes a part of memory to the network.
    ///
    /// # Errors
    /// See [`RegisterError`].
    pub fn register(&mut self, handle: u16, domain: Domain) -> Result<(), RegisterError> {
        let Responder {
            domains, memory, ..
        } = &mut self.interface.responder;
        domains.register(handle, domain, memory.memory())
    }

    /// Removes a memory domain; later requests to it are rejected.
    pub fn deregister(&mut self, handle: u16) -> Option<Domain> {
        self.interface.responder.domains.deregister(handle)
    }

    pub fn domain(&self, handle: u16) -> Option<&Domain> {
        self.interface.responder.domains.get(handle)
    }

    /// Adds handle translations for requests with a given key.
    ///
    /// # Errors
    /// See [`VirtualHandleError`].
    pub fn add_virtual_handles(
        &mut self,
        handles: VirtualHandles,
    ) -> Result<(), VirtualHandleError> {
        self.interface.responder.handles.add(handles)
    }

    /// Removes the handle translations of `key`, and returns their number.
    pub fn remove_virtual_handles(&mut self, key: u16) -> usize {
        self.interface.responder.handles.remove(key)
    }

    /// Posts a receive for a message. Returns false if the message would not fit there, or if
    /// [`MAX_RECEIVES`](super::MAX_RECEIVES) are posted.
    pub fn post_receive(&mut self, receive: Receive) -> bool {
        let responder = &mut self.interface.responder;
        let memory = responder.memory.memory();
        memory.contains(receive.local, receive.length) && responder.receives.post(receive)
    }

    pub fn posted_receives(&self) -> usize {
        self.interface.responder.receives.waiting()
    }

    /// The oldest event from another node.
    pub fn poll_target_event(&mut self) -> Option<TargetEvent> {
        self.interface.responder.events.pop_front()
    }

    /// This node's memory, which may be stale with lazy AMO updates: see
    /// [`flush_atomics`](Self::flush_atomics).
    pub fn memory(&self) -> &Memory {
        self.interface.responder.memory.memory()
    }

    /// This node's memory, for writes by its processor, after a flush of the AMO cache.
    pub fn memory_mut(&mut self) -> &mut Memory {
        self.interface.responder.memory.memory_mut()
    }

    pub fn flush_atomics(&mut self) {
        self.interface.responder.memory.flush();
    }

    pub fn lcb(&self) -> &AriesLcb {
        &self.link
    }

    /// The link control block, for fault commands.
    pub fn lcb_mut(&mut self) -> &mut AriesLcb {
        &mut self.link
    }

    /// Counters of the NIC without those of its link.
    pub fn counters(&self) -> AriesNicCounters {
        let mut counters = self.interface.counters();
        counters.responses_joined += self.responses.joined();
        counters
    }

    fn event(&mut self, event: AriesNicEvent) {
        self.interface.counters.events_lost += self.events.push(event);
    }

    /// Moves packets to the link, alternating between responses and requests, so that neither the
    /// requests of others nor this NIC's starve.
    pub(super) fn flush(&mut self) {
        let (lcb, responses) = (&mut self.link, &mut self.responses);
        let requester = &mut self.interface.requester;
        let now = self.now;
        responses.close();
        let mut idle = false;
        while !idle {
            idle = true;
            if let Some(packet) = responses.front()
                && push(lcb, RESPONSE_VC, packet)
            {
                responses.pop_front();
                idle = false;
            }
            if let Some(packet) = requester.next_packet(now)
                && push(lcb, REQUEST_VC, packet)
            {
                requester.packet_sent();
                idle = false;
            }
        }
    }

    /// Takes all responses on `vcs`, one bit per virtual channel.
    fn receive_responses(&mut self, now: Time, vcs: u8) {
        let mut left = vcs & !REQUEST_VCS;
        self.interface.busy_until = None;
        while left != 0 && !self.interface.is_busy(now) {
            let vc = left.trailing_zeros() as usize;
            match self.arrived.take(self.link.input_mut(), vc) {
                Arrival::Packet => {
                    let packet = self.arrived.as_slice();
                    self.interface.handle_response(now, packet);
                }
                Arrival::Stray => self.interface.counters.discard_no_head += 1,
                Arrival::Nothing => left &= left - 1,
            }
        }
    }

    /// Sends as much as the link accepts, including responses whose delay in the host has passed.
    fn flush_delayed(&mut self, now: Time) {
        loop {
            while self.responses.len() < RESPONSE_QUEUE
                && self.interface.delayed_answer(now, self.responses.vacant())
            {
                self.responses.push_vacant();
            }
            let waiting = self.responses.len();
            self.flush();
            // A full queue may have left some that are due.
            if waiting < RESPONSE_QUEUE || self.responses.len() == waiting {
                return;
            }
        }
    }

    /// Takes requests on `vcs` while there is room for their responses. The virtual channels take
    /// turns.
    fn receive_requests(&mut self, now: Time, vcs: u8) {
        let mut left = vcs & REQUEST_VCS;
        loop {
            if self.responses.len() >= RESPONSE_QUEUE {
                self.flush();
                if self.responses.len() >= RESPONSE_QUEUE {
                    self.interface.counters.response_stalls += 1;
                    return;
                }
            }
            if left == 0 || self.interface.is_full() || self.interface.is_busy(now) {
                return;
            }
            let behind = left >> self.turn << self.turn;
            let vc = if behind == 0 { left } else { behind }.trailing_zeros() as usize;
            match self.arrived.take(self.link.input_mut(), vc) {
                Arrival::Packet => {
                    let out = self.responses.vacant();
                    if self.interface.serve(now, self.arrived.as_slice(), out)
                        && !self.interface.delays(now, out)
                    {
                        self.responses.push_vacant();
                    }
                }
                Arrival::Stray => self.interface.counters.discard_no_head += 1,
                Arrival::Nothing => {
                    left &= !(1 << vc);
                    continue;
                }
            }
            self.turn = (vc + 1) % RESPONSE_VC;
        }
    }
}

/// Pushes a packet to the link if it fits completely.
#[inline]
fn push(lcb: &mut AriesLcb, vc: usize, packet: &PacketBuf) -> bool {
    let flits = packet.as_slice();
    let can = lcb.wire().can_begin(vc, flits.len());
    if can {
        lcb.push_packet(flits);
    }
    can
}

impl Node for AriesNic {
    type Event = AriesNicEvent;

    fn ports(&self) -> usize {
        1
    }

    fn handle_frame(&mut self, now: Time, port: PortId, bytes: &[u8]) {
        if port == 0 {
            self.link.handle_frame(now, bytes);
        }
    }

    fn handle_suspension(&mut self, now: Time, span: Duration) {
        self.link.handle_suspension(now, span);
        self.interface.handle_suspension(now, span);
    }

    fn advance(&mut self, now: Time) {
        self.now = now;
        self.link.handle_timers(now);
        while let Some(event) = self.link.poll_event() {
            self.event(AriesNicEvent::Link { event });
        }
        let vcs = self.link.input().pending_vcs();
        self.receive_responses(now, vcs);
        self.receive_requests(now, vcs);
        self.interface.advance(now);
        if let Some(run) = self.interface.run_done.take() {
            self.event(AriesNicEvent::TrafficDone { run });
        }
        while self.responses.len() < RESPONSE_QUEUE
            && self.interface.overdue_answer(now, self.responses.vacant())
        {
            self.responses.push_vacant();
        }
        self.flush_delayed(now);
        while self.link.wire().backlog_flits() < TRANSFER_BACKLOG
            && self.interface.issue_transfers(now)
        {
            self.flush();
        }
        self.send_completions(now);
        self.link.give_back();
    }

    fn ready_ports(&self) -> u64 {
        u64::from(self.link.wants_to_send(self.now))
    }

    fn poll_frame(&mut self, now: Time, port: PortId, buf: &mut [u8]) -> Option<usize> {
        if port != 0 {
            return None;
        }
        self.link.poll_frame(now, buf)
    }

    fn next_wakeup(&self) -> Option<Wakeup> {
        let link = Wakeup::at(self.link.next_wakeup(), WakeReason::Link);
        let request = self.interface.next_deadline().into_iter();
        let request = request.chain(self.next_seen(self.now)).min();
        Wakeup::earlier(
            link,
            request.and_then(|at| Wakeup::at(at, WakeReason::Request)),
        )
    }

    fn poll_event(&mut self) -> Option<AriesNicEvent> {
        self.events.pop()
    }
}

//! The network interface as a node: link, memory, requests and transfers put together.

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
use crate::link::{AriesInput, AriesLcb};
use phitwire::kit::Events;
use phitwire::link::{LinkEvent, LinkPort};
use phitwire::nic::memory::Memory;
use phitwire::nic::traffic_report::TrafficReport;
use phitwire::nic::traffic_spec::{SpecError, TrafficSpec};
use phitwire::node::{Node, PortId, WakeReason, Wakeup};
use phitwire::rng::Rng;
use phitwire::time::{Duration, Time};

/// Events kept until they are fetched; the oldest goes first.
const MAX_EVENTS: usize = 1024;
/// Responses that wait for the link before no more requests are taken.
const RESPONSE_QUEUE: usize = 64;
/// Flits that wait in the link above which block transfers send no more: a single request goes
/// behind them. Some twenty frames.
const TRANSFER_BACKLOG: u32 = 4096;
/// Where requests and responses begin their way; routers change it.
const REQUEST_VC: usize = 0;
const RESPONSE_VC: usize = FIRST_RESPONSE_VC as usize;
/// The virtual channels of requests, one bit each; the others are those of responses.
const REQUEST_VCS: u8 = (1 << RESPONSE_VC) - 1;

/// What an Aries network interface reports by [`Node::poll_event`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AriesNicEvent {
    /// Something happened on the link to the router.
    Link {
        /// What happened.
        event: LinkEvent,
    },
    /// A traffic run has issued its last message, and every answer has come or timed out.
    TrafficDone {
        /// The run.
        run: u64,
    },
}

/// An Aries network interface: see the module's own description.
///
/// Besides the calls of [`Node`]: [`post`](Self::post) and the other commands at any time, best
/// between `advance` and `poll_frame`; [`poll_completion`](Self::poll_completion) and
/// [`poll_target_event`](Self::poll_target_event) after `advance`.
#[derive(Debug)]
pub struct AriesNic {
    config: AriesNicConfig,
    link: LinkPort<AriesLcb>,
    pub(super) interface: Interface,
    /// The packet that was taken out of the input buffer last.
    arrived: PacketBuf,
    /// Responses that wait for the link.
    responses: Answers,
    /// The virtual channel whose requests are looked at first.
    turn: usize,
    events: Events<AriesNicEvent>,
    pub(super) clients: Clients,
    /// Puts that IP has asked for so far.
    named: u64,
    now: Time,
}

impl AriesNic {
    /// A network interface whose link begins its initialisation at `now`.
    pub fn new(config: AriesNicConfig, now: Time) -> Self {
        Self {
            link: LinkPort::new(config.link.clone(), now),
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

    /// What the network interface was told before it started.
    pub fn config(&self) -> &AriesNicConfig {
        &self.config
    }

    /// Where it is.
    pub fn node(&self) -> NodeId {
        self.config.node
    }

    /// Its number among the virtual nodes, if it is one of them.
    pub fn virtual_number(&self) -> Option<u16> {
        self.interface.own_number()
    }

    // Requests.

    /// Posts a single request; its completion repeats `user`, which is below 2^56: above, numbers
    /// of [clients](phitwire::nic::local) stand. So it is wherever a completion or an event repeats
    /// something.
    ///
    /// # Errors
    /// See [`PostError`]; nothing was asked then.
    pub fn post(&mut self, now: Time, user: u64, post: &Post<'_>) -> Result<(), PostError> {
        self.interface.post(now, Owner::User(user), post)?;
        self.flush();
        Ok(())
    }

    /// Posts a request as part of an open transaction; data that it brings back need a local
    /// address.
    ///
    /// # Errors
    /// See [`PostError`]; nothing was asked then.
    pub fn post_in(&mut self, now: Time, ssid: Ssid, post: &Post<'_>) -> Result<(), PostError> {
        self.interface.post(now, Owner::Transaction(ssid), post)?;
        self.flush();
        Ok(())
    }

    /// A name for a request that no other has.
    pub(super) fn next_name(&mut self) -> u64 {
        self.named += 1;
        self.named
    }

    /// Opens a transaction, whose completion repeats `user`.
    ///
    /// # Errors
    /// [`PostError::Transaction`] when 511 are open, less the transfers under way;
    /// [`PostError::CompletionQueueFull`].
    pub fn open(&mut self, now: Time, user: u64) -> Result<Ssid, PostError> {
        self.interface.open(now, user)
    }

    /// Closes a transaction: it completes when all its responses are in. `event` is left at a
    /// target after that, if all went well; the transaction completes when the target has it.
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

    /// Queues a block transfer on a channel (0 to 3); it begins with the next `advance`.
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

    /// The next completion of what this node has asked for, oldest first.
    pub fn poll_completion(&mut self) -> Option<Completion> {
        self.interface.poll_completion()
    }

    /// Requests of callers that wait for their response.
    pub fn outstanding(&self) -> u32 {
        self.interface.requester.outstanding.slab.used()
    }

    /// The link with what has come in and has not been looked at.
    pub(super) fn link_port(&self) -> &LinkPort<AriesLcb> {
        &self.link
    }

    /// Responses that wait for the link.
    pub(super) fn waiting_responses(&self) -> usize {
        self.responses.len()
    }

    /// Block transfers queued or under way.
    pub fn open_transfers(&self) -> usize {
        self.interface.transfers.open()
    }

    /// The job's numbering of its nodes.
    pub fn virtual_nodes(&self) -> &VirtualNodes {
        &self.interface.virtual_nodes
    }

    /// Lets virtual node `number` be `node` for requests from now on, and answers what it was;
    /// `None` when there is no such virtual node.
    pub fn remap(&mut self, number: u32, node: NodeId) -> Option<NodeId> {
        let before = self.interface.virtual_nodes.remap(number, node);
        self.number_nodes();
        before
    }

    // Traffic runs.

    /// Starts a traffic run. Its processors are virtual nodes; it uses the domain
    /// [`RUN_DOMAIN`](super::RUN_DOMAIN).
    ///
    /// # Errors
    /// See [`SpecError`]; a run that is going on is not disturbed.
    pub fn start_traffic(&mut self, now: Time, spec: TrafficSpec) -> Result<(), SpecError> {
        let seed = self.config.seed ^ now.as_ps();
        let nonce = Rng::new(seed, self.config.node.bits().into()).next_u64();
        self.interface.start_traffic(now, nonce as u32, spec)
    }

    /// Ends the issuing of the run that is going on, if any; outstanding messages are waited for.
    /// Of a run that issues no more, blocks that are not wholly out are given up: it is done when
    /// its outstanding packets have been answered or have timed out, and the events of blocks that
    /// are there, however long its blocks are.
    pub fn stop_traffic(&mut self) {
        self.interface.stop_traffic(self.now);
    }

    /// What is known here of `run`, as its source and as a target; `None` (no run given): of the
    /// run started here last, else of the one announced here last. `None` when nothing is known.
    pub fn traffic_report(&self, run: Option<u64>) -> Option<TrafficReport> {
        self.interface.traffic_report(run)
    }

    // Being asked.

    /// Lets the network reach a part of the memory.
    ///
    /// # Errors
    /// See [`RegisterError`].
    pub fn register(&mut self, handle: u16, domain: Domain) -> Result<(), RegisterError> {
        let Responder {
            domains, memory, ..
        } = &mut self.interface.responder;
        domains.register(handle, domain, memory.memory())
    }

    /// Takes a memory domain away; requests to it are refused from now on.
    pub fn deregister(&mut self, handle: u16) -> Option<Domain> {
        self.interface.responder.domains.deregister(handle)
    }

    /// The domain of a handle.
    pub fn domain(&self, handle: u16) -> Option<&Domain> {
        self.interface.responder.domains.get(handle)
    }

    /// Translates handles of requests that come with a key.
    ///
    /// # Errors
    /// See [`VirtualHandleError`].
    pub fn add_virtual_handles(
        &mut self,
        handles: VirtualHandles,
    ) -> Result<(), VirtualHandleError> {
        self.interface.responder.handles.add(handles)
    }

    /// Stops translating handles of requests with `key`, and answers how many entries there were.
    pub fn remove_virtual_handles(&mut self, key: u16) -> usize {
        self.interface.responder.handles.remove(key)
    }

    /// Posts a receive for a message; false when the message could not go there, or when there are
    /// [`MAX_RECEIVES`](super::MAX_RECEIVES) already.
    pub fn post_receive(&mut self, receive: Receive) -> bool {
        let responder = &mut self.interface.responder;
        let memory = responder.memory.memory();
        memory.contains(receive.local, receive.length) && responder.receives.post(receive)
    }

    /// Receives that wait for a message.
    pub fn posted_receives(&self) -> usize {
        self.interface.responder.receives.waiting()
    }

    /// The next event that others have left here, oldest first.
    pub fn poll_target_event(&mut self) -> Option<TargetEvent> {
        self.interface.responder.events.pop_front()
    }

    /// This node's memory. With lazy AMO updates it may be behind: see
    /// [`flush_atomics`](Self::flush_atomics).
    pub fn memory(&self) -> &Memory {
        self.interface.responder.memory.memory()
    }

    /// This node's memory, for its processor to write; the AMO cache is emptied first.
    pub fn memory_mut(&mut self) -> &mut Memory {
        self.interface.responder.memory.memory_mut()
    }

    /// Brings the memory up to date with the AMO cache.
    pub fn flush_atomics(&mut self) {
        self.interface.responder.memory.flush();
    }

    // The link.

    /// The link control block.
    pub fn lcb(&self) -> &AriesLcb {
        self.link.end()
    }

    /// The link control block and its input buffer, for fault commands.
    pub fn lcb_mut(&mut self) -> (&mut AriesLcb, &mut AriesInput) {
        self.link.parts_mut()
    }

    /// Counters, the link's not included.
    pub fn counters(&self) -> AriesNicCounters {
        let mut counters = self.interface.counters();
        counters.responses_joined += self.responses.joined();
        counters
    }

    fn event(&mut self, event: AriesNicEvent) {
        self.interface.counters.events_lost += self.events.push(event);
    }

    /// Moves packets onto the link, responses and requests in turn, so that neither a flood of
    /// requests from others nor one of our own stops the other.
    pub(super) fn flush(&mut self) {
        let (lcb, responses) = (self.link.end_mut(), &mut self.responses);
        let requester = &mut self.interface.requester;
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
            if let Some(packet) = requester.next_packet()
                && push(lcb, REQUEST_VC, packet)
            {
                requester.packet_sent();
                idle = false;
            }
        }
    }

    /// Takes all responses that have arrived on `vcs`, a bit for each virtual channel.
    fn receive_responses(&mut self, now: Time, vcs: u8) {
        let mut left = vcs & !REQUEST_VCS;
        while left != 0 {
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

    /// Takes requests that have arrived on `vcs` as long as their responses have somewhere to go,
    /// the virtual channels in turn.
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
            if left == 0 {
                return;
            }
            let behind = left >> self.turn << self.turn;
            let vc = if behind == 0 { left } else { behind }.trailing_zeros() as usize;
            match self.arrived.take(self.link.input_mut(), vc) {
                Arrival::Packet => {
                    let out = self.responses.vacant();
                    if self.interface.serve(now, self.arrived.as_slice(), out) {
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

/// Pushes a packet into the link if it can take all of it.
#[inline]
fn push(lcb: &mut AriesLcb, vc: usize, packet: &PacketBuf) -> bool {
    let flits = packet.as_slice();
    let can = lcb.can_begin(vc, flits.len());
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

    fn stood_still(&mut self, now: Time, span: Duration) {
        self.link.stood_still(now, span);
        self.interface.stood_still(now, span);
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
        self.flush();
        while self.lcb().backlog_flits() < TRANSFER_BACKLOG && self.interface.issue_transfers(now) {
            self.flush();
        }
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
        let request = self.interface.next_deadline();
        Wakeup::earlier(
            link,
            request.and_then(|at| Wakeup::at(at, WakeReason::Request)),
        )
    }

    fn poll_event(&mut self) -> Option<AriesNicEvent> {
        self.events.pop()
    }
}

//! The interface between the parts of a simulation that all machines share (phases, windows,
//! reports) and those that differ (chips, terminals). Here a phit is whatever unit a link carries
//! in a cycle.
//!
//! A [`CycleModel`] simulates a machine over encoded links. A machine that also models direct
//! links, which pass phits without frames, names that model as its [`DirectModel`]; others use
//! [`NoDirectLinks`].

use core::fmt::Debug;

use schemars::JsonSchema;
use serde::Serialize;

use super::config::{Config, ConfigError, Traffic};
use super::direct_part::DirectPart;
use super::encoded::EncodedPart;
use super::exchange::Exchange;
use super::mail::{MailError, Reader};
use super::shared::{Common, Shared};
use super::source::NEVER;
use crate::device::PipelineReport;
use crate::device::pipeline::Stage;
use crate::link::impair::Netem;
use crate::link::{MAX_VCS, NodeLink};
use crate::net::Network;
use crate::node::{Node, PortId};
use crate::time::Duration;
use crate::trace::Watch;

/// The slot of a port without a link.
pub const NO_SLOT: u32 = u32::MAX;

/// The options in the results of a machine that has no options.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct NoOptions {}

/// How the networks of a machine are simulated.
pub trait CycleModel: Copy + Debug + Default + Eq + Send + Sync + 'static {
    type Topology: Network;
    /// Options specific to this machine.
    type Options: Clone + Debug + Default + Eq + Send + Sync;
    /// The description of the options in results, with named fields.
    type About: Serialize + JsonSchema;
    /// State with which a partition's terminals build and parse packets.
    type Format: Clone + Debug + Send;
    type Packet: Debug + Send;
    /// The part of a request that a terminal keeps until it sends the reply.
    type Reply: Debug + Send;
    /// A source and sink.
    type Terminal: Terminal<Self>;
    /// A router with encoded links.
    type Router: Node + Send;
    type End: NodeLink;
    /// Reassembles packets that reach a terminal over an encoded link.
    type Assemblies: Debug + Default + Send;
    /// Direct links, or [`NoDirectLinks`].
    type Direct: DirectModel<Self>;

    /// Ports per chip, at most 64.
    const PORTS: usize;
    /// Cycle time.
    const CYCLE: Duration;
    /// Names of the kinds of links between routers in reports.
    const LINK_KINDS: &'static [&'static str];
    /// Bytes of the largest message, which is one packet.
    const MAX_MESSAGE_BYTES: u8;
    /// Default message size in bytes.
    const MESSAGE_BYTES: u8;
    /// Bits of the birth cycle that a packet carries. A packet in flight for longer has a wrong
    /// latency.
    const BIRTH_BITS: u32;
    /// Names in reports of the stages of [`ChipView`], at most three.
    const STAGES: &'static [&'static str] = &["input queues", "row buffers", "column buffers"];
    /// Name in reports of the other choices in `ChipView::choices`; empty if routers count none.
    const OTHER_WAYS: &'static str = "";

    /// Describes the options, for people and programs that read results.
    fn about(options: &Self::Options) -> Self::About;
    /// The highest load of this traffic at which every source can be served, as a fraction of a
    /// port's rate: above it some link would be overloaded, regardless of queues and arbiters.
    /// `None` if that is not computed.
    ///
    /// # Errors
    /// See [`ConfigError`].
    fn bound(
        topology: &Self::Topology,
        config: &Config,
        options: &Self::Options,
    ) -> Result<Option<f64>, ConfigError> {
        let _ = (topology, config, options);
        Ok(None)
    }
    /// Default phits per message: the request and the reply, if any.
    fn message_phits(traffic: &Traffic) -> usize;
    /// Number of the terminal at a port of a NIC, if there is one.
    fn terminal(topology: &Self::Topology, nic: u32, port: u8) -> Option<u64>;
    /// Builds the network of `topology` over encoded links, whose frames are impaired by `netem`,
    /// in `partitions` partitions (at least one).
    ///
    /// # Errors
    /// See [`ConfigError`].
    fn build_encoded(
        topology: &Self::Topology,
        config: &Config,
        options: &Self::Options,
        netem: Option<Netem>,
        partitions: usize,
    ) -> Result<Partitioned<EncodedPart<Self>>, ConfigError>;
    /// Cycles for which a frame travels on an encoded link.
    ///
    /// # Errors
    /// [`ConfigError::Topology`].
    fn wire_cycles(
        topology: &Self::Topology,
        options: &Self::Options,
        link: usize,
    ) -> Result<u32, ConfigError>;
    /// The link end at a port of a router, if it has one.
    fn end(router: &Self::Router, port: PortId) -> Option<&Self::End>;
    /// The state of a router for reports and checkers.
    fn view(router: &Self::Router) -> ChipView;
    /// Contents of the stages of a router with encoded links.
    fn pipeline(router: &Self::Router) -> PipelineReport;
    /// Packets that have passed a router; `None` if its links count them.
    fn packets_passed(router: &Self::Router) -> Option<u64> {
        let _ = router;
        None
    }
    /// Phits that a link end has sent, including resent ones.
    fn sent(end: &Self::End) -> u64;
    /// Receives everything that has reached a terminal by `cycle`.
    fn receive(
        input: &mut <Self::End as NodeLink>::Input,
        assemblies: &mut Self::Assemblies,
        cycle: u64,
        terminal: &mut Self::Terminal,
        shared: &mut Shared<Self>,
    );
    /// Whether a link accepts a terminal's next request, or next reply, now.
    fn has_room(end: &Self::End, is_reply: bool, shared: &Shared<Self>) -> bool;
    /// Hands a packet to a link that has room for it. Returns the number of its phits.
    fn push(end: &mut Self::End, packet: &Self::Packet) -> u64;
}

/// A source and sink behind one link.
pub trait Terminal<M: CycleModel>: Debug + Send {
    /// The part shared by the terminals of all machines.
    fn common(&self) -> &Common<M>;
    fn common_mut(&mut self) -> &mut Common<M>;
    fn next_request(&mut self, shared: &mut Shared<M>) -> M::Packet;
    fn reply(reply: M::Reply, shared: &mut Shared<M>) -> M::Packet;

    /// First cycle in which the next request may be sent; [`NEVER`] if there is none.
    fn request_due(&self, shared: &Shared<M>) -> u64 {
        let _ = shared;
        self.common().source.head().birth
    }

    /// First cycles in which the next request and the next reply may be sent.
    fn due(&self, shared: &Shared<M>) -> [u64; 2] {
        [self.request_due(shared), self.common().reply_due()]
    }

    /// The next packet: a request or a reply, alternately if both may be sent.
    fn next_packet(
        &mut self,
        [request, reply]: [bool; 2],
        shared: &mut Shared<M>,
    ) -> Option<M::Packet> {
        match self.common_mut().turn.arbitrate(0, request, reply) {
            0 if request => Some(self.next_request(shared)),
            1 if reply => self.next_reply(shared),
            _ => None,
        }
    }

    fn next_reply(&mut self, shared: &mut Shared<M>) -> Option<M::Packet> {
        let (_, reply) = self.common_mut().replies.pop_front()?;
        Some(Self::reply(reply, shared))
    }

    /// Whether a packet has partly arrived.
    fn is_receiving(&self) -> bool {
        false
    }

    /// Whether nothing is left that can be sent, and no packet has partly arrived.
    fn is_at_rest(&self) -> bool {
        let common = self.common();
        let has_replies = common.is_up && !common.replies.is_empty();
        common.packet.is_none() && !has_replies && !self.is_receiving()
    }

    /// Unsent phits of a packet already begun.
    fn reserved(&self) -> u64 {
        0
    }

    /// Runs the cycles of a window from `base` on, behind a direct link. Returns the next cycle in
    /// which there is work even if nothing arrives. Behind encoded links, nodes run the terminals.
    fn run_window(
        &mut self,
        _index: usize,
        _base: u64,
        _exchange: &mut Exchange<M::Direct>,
        _shared: &mut Shared<M>,
    ) -> u64 {
        NEVER
    }

    /// Account of the terminal's end of its direct link.
    fn account(&self) -> PortAccount {
        PortAccount::default()
    }
}

/// The phits, credits and lanes of direct links.
pub trait Lanes: Copy + Debug + Default + Eq + Send + Sync + 'static {
    /// The bits that a lane carries in a cycle.
    type Phit: Copy + Debug + Default + Eq + Send;
    /// The credits that a lane returns in one window.
    type Credits: Copy + Debug + Default + Eq + Send;

    /// Lanes of all ports of a chip, at most 64. A lane carries a phit and a credit per cycle.
    const CHIP_LANES: usize;
    /// Lanes of a terminal's link.
    const TERMINAL_LANES: usize = 1;
    /// Phits that a terminal sends at full load, and the cycles that they take.
    const TERMINAL_RATE: [u64; 2] = [1, 1];

    /// A port's first lane and its number of lanes.
    fn lanes(port: usize) -> (usize, usize);
    /// Delays the credits of a window of `window` cycles by `by`: those that arrive in the same
    /// window, and in the next.
    fn delay_credits(credits: &Self::Credits, by: usize, window: usize) -> [Self::Credits; 2];
    /// Adds credits for other cycles of the same window.
    fn add_credits(credits: &mut Self::Credits, more: &Self::Credits);
    /// Number of the credits that arrive, per virtual channel.
    fn count_credits(credits: &Self::Credits) -> [u32; MAX_VCS];
    /// Appends a phit to a [mail](super::mail).
    fn write_phit(phit: Self::Phit, mail: &mut Vec<u8>);
    /// Reads a phit from a mail.
    ///
    /// # Errors
    /// [`MailError::Phit`] if no link carries it; [`MailError::Entries`] if the mail has ended.
    fn read_phit(mail: &mut Reader<'_>) -> Result<Self::Phit, MailError>;
    /// Appends the credits of a window to a mail.
    fn write_credits(credits: &Self::Credits, mail: &mut Vec<u8>);
    /// Reads the credits of a window of `window` cycles from a mail.
    ///
    /// # Errors
    /// [`MailError::Credits`] if no link returns them; [`MailError::Entries`] if the mail has
    /// ended.
    fn read_credits(mail: &mut Reader<'_>, window: usize) -> Result<Self::Credits, MailError>;
}

/// How networks with direct links are simulated.
pub trait DirectModel<M: CycleModel>: Lanes {
    type Router: DirectRouter<M>;

    /// Whether the machine has such a model.
    const EXISTS: bool = true;
    /// Virtual channels of a link, at most 8.
    const VCS: usize;
    /// Phits that one virtual channel of an idle link may send, unless its account specifies
    /// another number.
    const CREDITS: u32;

    /// Virtual channel of a link's next phit; `stream` holds the link's state.
    fn follow(stream: &mut Stream, phit: Self::Phit) -> usize;
    /// Builds the network of `topology` in `partitions` partitions (at least one).
    ///
    /// # Errors
    /// See [`ConfigError`].
    fn build(
        topology: &M::Topology,
        config: &Config,
        options: &M::Options,
        partitions: usize,
    ) -> Result<Partitioned<DirectPart<M>>, ConfigError>;
}

/// Stands in for the model of direct links on machines whose links carry only frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoDirectLinks;

/// The router of machines without direct links: none exists.
#[derive(Debug)]
pub enum NoRouter {}

impl Lanes for NoDirectLinks {
    type Phit = ();
    type Credits = ();

    const CHIP_LANES: usize = 1;

    fn lanes(_: usize) -> (usize, usize) {
        (0, 1)
    }
    fn delay_credits((): &(), _: usize, _: usize) -> [(); 2] {
        [(); 2]
    }
    fn add_credits((): &mut (), (): &()) {}
    fn count_credits((): &()) -> [u32; MAX_VCS] {
        [0; MAX_VCS]
    }
    fn write_phit((): (), _: &mut Vec<u8>) {}
    fn read_phit(_: &mut Reader<'_>) -> Result<(), MailError> {
        Err(MailError::Phit)
    }
    fn write_credits((): &(), _: &mut Vec<u8>) {}
    fn read_credits(_: &mut Reader<'_>, _: usize) -> Result<(), MailError> {
        Err(MailError::Credits)
    }
}

impl<M: CycleModel> DirectModel<M> for NoDirectLinks {
    type Router = NoRouter;

    const EXISTS: bool = false;
    const VCS: usize = 0;
    const CREDITS: u32 = 0;

    fn follow(_: &mut Stream, (): ()) -> usize {
        0
    }
    fn build(
        _: &M::Topology,
        _: &Config,
        _: &M::Options,
        _: usize,
    ) -> Result<Partitioned<DirectPart<M>>, ConfigError> {
        Err(ConfigError::NoDirectLinks)
    }
}

impl<M: CycleModel> DirectRouter<M> for NoRouter {
    fn run(&mut self, _: usize, _: u64, _: &mut Exchange<M::Direct>) -> bool {
        match *self {}
    }
    fn peer(&self, _: usize) -> Option<u32> {
        match *self {}
    }
    fn account(&self, _: usize) -> PortAccount {
        match *self {}
    }
    fn sent(&self) -> &[u64] {
        match *self {}
    }
    fn phits_inside(&self) -> u64 {
        match *self {}
    }
    fn view(&self) -> ChipView {
        match *self {}
    }
    fn stages(&self, _: u64) -> Vec<Stage> {
        match *self {}
    }
    fn set_link(&mut self, _: u64, _: usize, _: bool) {
        match *self {}
    }
}

/// A network cut into parts of type `P`.
#[derive(Debug)]
pub struct Partitioned<P> {
    pub parts: Vec<P>,
    /// Kind of each chip's ports, by the topology's numbers; `None` without a link.
    pub kinds: Vec<Option<PortUse>>,
    /// Cycles between two mail exchanges: the shortest link latency between partitions.
    pub stride: u32,
    /// The longest link latency.
    pub longest: u32,
    /// Cycles per phit on the slowest link.
    pub slowest: u32,
}

/// A link's position within its current packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stream {
    /// Virtual channel of the packet in flight.
    pub vc: u8,
    /// Phits of that packet still to arrive, if its head gives its length.
    pub left: u8,
}

/// The node at the other end of a port's link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortUse {
    /// To a terminal.
    Ejection,
    /// To a router; index of the link's kind in [`CycleModel::LINK_KINDS`].
    Link(u8),
}

/// A link end's view of its virtual channels between windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortAccount {
    /// Phits that may still be sent, including those reserved but unsent.
    pub credits: [u32; MAX_VCS],
    /// Phits that may be sent on the idle link, if that differs between links.
    pub slots: Option<[u32; MAX_VCS]>,
    /// Phits in the input queue here.
    pub queued: [u32; MAX_VCS],
    /// The packet being received.
    pub coming: Stream,
}

/// State of a chip between windows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChipView {
    /// Phits in each of the [stages](CycleModel::STAGES).
    pub phits_by_stage: [u64; 3],
    /// Number of stalls in each of those stages.
    pub stalls: [u64; 3],
    /// Phits sent.
    pub phit_hops: u64,
    /// Phits that found no free slot.
    pub overflows: u64,
    /// Packets that broke the network's routing rule.
    pub rule_violations: u64,
    /// Rejected packets.
    pub refused: u64,
    /// Packets dropped for any reason, and their phits.
    pub discarded: [u64; 2],
    /// Packets sent by the preferred choice, such as a minimal path, and by the
    /// [others](CycleModel::OTHER_WAYS), where the chip chooses.
    pub choices: [u64; 2],
}

/// A router with direct links.
pub trait DirectRouter<M: CycleModel>: Debug + Send {
    /// Runs the cycles of a window from `base` on. Returns whether there is work afterwards even if
    /// nothing arrives.
    fn run(&mut self, chip: usize, base: u64, exchange: &mut Exchange<M::Direct>) -> bool;
    /// Prefetches what [`run`](Self::run) needs while the previous router runs.
    #[inline]
    fn fetch(&self, _chip: usize, _exchange: &Exchange<M::Direct>) {}
    /// Slot of the other end of a port's link.
    fn peer(&self, port: usize) -> Option<u32>;
    /// Account of a port's link end.
    fn account(&self, port: usize) -> PortAccount;
    /// Phits sent by each port.
    fn sent(&self) -> &[u64];
    /// Phits in queues and buffers.
    fn phits_inside(&self) -> u64;
    /// State for reports and checkers.
    fn view(&self) -> ChipView;
    /// Contents of the stages behind the input buffers; packets pass between `ports`, a bit mask.
    fn stages(&self, ports: u64) -> Vec<Stage>;
    /// Holds the packet watch, if the router supports one.
    fn watch(&mut self) -> Option<&mut Option<Box<Watch>>> {
        None
    }
    /// Sets whether a port's link accepts packets from `cycle`, the start of a window. A packet
    /// that has begun to leave continues.
    fn set_link(&mut self, cycle: u64, port: usize, up: bool);
}

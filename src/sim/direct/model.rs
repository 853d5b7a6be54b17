//! What differs between the machines whose networks can be simulated: the seam between phases,
//! windows and reports, which are the same for all, and chips and terminals, which are not. What a
//! link carries in a cycle is called a phit here, whatever the machine calls it.
//!
//! A [`CycleModel`] is what a machine needs for encoded links. One that has a model of links which
//! hand phits over as well names it as its [`DirectModel`]; the others have [`NoDirectLinks`].

use core::fmt::Debug;

use serde_json::{Map, Value};

use super::config::{Config, ConfigError, Traffic};
use super::exchange::Exchange;
use super::partition::Partition;
use super::shared::{Common, Shared};
use super::source::NEVER;
use crate::device::pipeline::Stage;
use crate::device::{LinkEnd, PipelineReport};
use crate::link::LinkControlBlock;
use crate::link::impair::Netem;
use crate::net::Network;
use crate::node::{Node, PortId};
use crate::time::Duration;
use crate::trace::Watch;

/// Virtual channels of a link at most.
pub const MAX_VCS: usize = 8;
/// A port without link.
pub const NO_SLOT: u32 = u32::MAX;

/// How the networks of a machine are simulated.
pub trait CycleModel: Copy + Debug + Default + Eq + Send + Sync + 'static {
    /// What describes a network.
    type Topology: Network;
    /// What can be chosen for networks of this machine only.
    type Options: Clone + Debug + Default + Eq + Send + Sync;
    /// What the terminals of a partition need to know to make and take apart packets.
    type Format: Clone + Debug + Send;
    /// A packet to be sent.
    type Packet: Debug + Send;
    /// What a terminal keeps of a request until it has sent the reply.
    type Reply: Debug + Send;
    /// A source and sink.
    type Terminal: Terminal<Self>;
    /// A router with encoded links.
    type Router: Node + Send;
    /// One end of an encoded link.
    type End: LinkEnd;
    /// What takes packets apart that come to a terminal over an encoded link.
    type Assemblies: Debug + Default + Send;
    /// Links that hand phits over, or [`NoDirectLinks`].
    type Direct: DirectModel<Self>;

    /// Ports of a chip, at most 64.
    const PORTS: usize;
    /// Time of a cycle.
    const CYCLE: Duration;
    /// Names of the kinds of links between routers, as reports have them.
    const LINK_KINDS: &'static [&'static str];
    /// Bytes of the largest message, which is one packet.
    const MAX_MESSAGE_BYTES: u8;
    /// Bytes of a message if nothing else is said.
    const MESSAGE_BYTES: u8;
    /// Bits of its birth that a packet carries; what is under way longer is dated wrongly.
    const BIRTH_BITS: u32;
    /// What the other ways are called of `ChipView::choices`, as reports have it.
    const OTHER_WAYS: &'static str = "non-minimal";

    /// What these options are, for people and programs that read results.
    fn about(options: &Self::Options) -> Map<String, Value> {
        let _ = options;
        Map::new()
    }
    /// The highest load of this traffic that everybody can be served at, a fraction of a port's
    /// rate: at any higher one some link would have to carry more than it can, whatever queues and
    /// arbiters do. `None` where that is not computed.
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
    /// Phits of a message if nothing is chosen: request and, if there is one, reply.
    fn message_phits(traffic: &Traffic) -> usize;
    /// The number of the terminal at a port of a network interface, if it is there.
    fn terminal(topology: &Self::Topology, nic: u32, port: u8) -> Option<u64>;
    /// The network of `topology` over encoded links, whose frames are impaired as `netem` says, in
    /// this number of partitions, at least one.
    ///
    /// # Errors
    /// See [`ConfigError`].
    fn build_encoded(
        topology: &Self::Topology,
        config: &Config,
        options: &Self::Options,
        netem: Option<Netem>,
        partitions: usize,
    ) -> Result<Partitioned<Self>, ConfigError>;
    /// The link end at a port of a router, if it has one.
    fn end(router: &Self::Router, port: PortId) -> Option<&Self::End>;
    /// What reports and checkers want to know of a router.
    fn view(router: &Self::Router) -> ChipView;
    /// What is in the stages of a router with encoded links.
    fn pipeline(router: &Self::Router) -> PipelineReport;
    /// Packets that have passed a router; `None` where they are those that its links count.
    fn packets_passed(router: &Self::Router) -> Option<u64> {
        let _ = router;
        None
    }
    /// Phits that a link end has sent, repetitions included.
    fn sent(end: &Self::End) -> u64;
    /// Takes what has come to a terminal by `cycle`.
    fn receive(
        input: &mut <Self::End as LinkControlBlock>::Input,
        assemblies: &mut Self::Assemblies,
        cycle: u64,
        terminal: &mut Self::Terminal,
        shared: &mut Shared<Self>,
    );
    /// Whether a link takes the next request, or the next reply, of a terminal now.
    fn has_room(end: &Self::End, is_reply: bool, shared: &Shared<Self>) -> bool;
    /// Hands a packet to a link that has room for it; the number of its phits.
    fn push(end: &mut Self::End, packet: &Self::Packet) -> u64;
}

/// A source and sink behind one link.
pub trait Terminal<M: CycleModel>: Debug + Send {
    /// What it has in common with the terminals of other machines.
    fn common(&self) -> &Common<M>;
    /// The same, to be changed.
    fn common_mut(&mut self) -> &mut Common<M>;
    /// The next request of the source.
    fn next_request(&mut self, shared: &mut Shared<M>) -> M::Packet;
    /// The packet of a reply.
    fn reply(reply: M::Reply, shared: &mut Shared<M>) -> M::Packet;

    /// The cycle from which on the next request may be sent; [`NEVER`] if there is none.
    fn request_due(&self, shared: &Shared<M>) -> u64 {
        let _ = shared;
        self.common().source.head().birth
    }

    /// The same of the next request and of the next reply.
    fn due(&self, shared: &Shared<M>) -> [u64; 2] {
        [self.request_due(shared), self.common().reply_due()]
    }

    /// The next packet: a request or a reply, whichever `may` be sent, in turn.
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

    /// The oldest reply, if there is one.
    fn next_reply(&mut self, shared: &mut Shared<M>) -> Option<M::Packet> {
        let (_, reply) = self.common_mut().replies.pop_front()?;
        Some(Self::reply(reply, shared))
    }

    /// Whether a packet has come in part.
    fn is_receiving(&self) -> bool {
        false
    }

    /// Whether nothing is left to send that could be, and nothing half received.
    fn is_at_rest(&self) -> bool {
        let common = self.common();
        let has_replies = common.is_up && !common.replies.is_empty();
        common.packet.is_none() && !has_replies && !self.is_receiving()
    }

    /// Phits of a packet begun that are not sent yet.
    fn reserved(&self) -> u64 {
        0
    }

    /// Runs the cycles of a window from `base` on, behind a direct link. Returns the cycle in which
    /// there is next something to do even if nothing arrives. Terminals behind encoded links are
    /// run by their nodes.
    fn run_window(
        &mut self,
        _index: usize,
        _base: u64,
        _exchange: &mut Exchange<M::Direct>,
        _shared: &mut Shared<M>,
    ) -> u64 {
        NEVER
    }

    /// The end of its direct link.
    fn account(&self) -> PortAccount {
        PortAccount::default()
    }
}

/// What a direct link carries from window to window.
pub trait Lanes: Copy + Debug + Default + Eq + Send + Sync + 'static {
    /// What a link carries in a cycle, as bits.
    type Phit: Copy + Debug + Default + Eq + Send;
    /// The credits that come back on a link in one window.
    type Credits: Copy + Debug + Default + Eq + Send;

    /// Lanes of all ports of a chip, at most 64. A lane carries a phit and a credit per cycle.
    const CHIP_LANES: usize;
    /// Lanes of a terminal's link.
    const TERMINAL_LANES: usize = 1;
    /// Phits that a terminal sends at full load, and in how many cycles.
    const TERMINAL_RATE: [u64; 2] = [1, 1];

    /// The first of a port's lanes, and how many it has.
    fn lanes(port: usize) -> (usize, usize);
    /// What arrives `by` cycles later of credits of a window of `window` cycles: in that window and
    /// in the next.
    fn delay_credits(credits: &Self::Credits, by: usize, window: usize) -> [Self::Credits; 2];
    /// Adds credits for other cycles of the same window.
    fn add_credits(credits: &mut Self::Credits, more: &Self::Credits);
    /// Number of the credits that arrive, per virtual channel.
    fn count_credits(credits: &Self::Credits) -> [u32; MAX_VCS];
}

/// How the networks of a machine are simulated whose links hand phits over.
pub trait DirectModel<M: CycleModel>: Lanes {
    /// A router with its links.
    type Router: DirectRouter<M>;

    /// Whether there is such a model.
    const EXISTS: bool = true;
    /// Virtual channels of a link, at most 8.
    const VCS: usize;
    /// Phits that one virtual channel of an idle link may send, where its
    /// account does not say otherwise.
    const CREDITS: u32;

    /// The virtual channel of the next phit of a link, whose state is kept in `stream`.
    fn follow(stream: &mut Stream, phit: Self::Phit) -> usize;
    /// The network of `topology` in this number of partitions, at least one.
    ///
    /// # Errors
    /// See [`ConfigError`].
    fn build(
        topology: &M::Topology,
        config: &Config,
        options: &M::Options,
        partitions: usize,
    ) -> Result<Partitioned<M>, ConfigError>;
}

/// What a machine has whose links carry frames only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoDirectLinks;

/// The router that nobody has.
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
    ) -> Result<Partitioned<M>, ConfigError> {
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

/// A network cut into partitions.
#[derive(Debug)]
pub struct Partitioned<M: CycleModel> {
    pub partitions: Vec<Partition<M>>,
    /// Kind of each chip's ports, by the topology's numbers; `None` without link.
    pub kinds: Vec<Option<PortUse>>,
    /// Cycles between two exchanges of mail: the shortest time that a phit travels between
    /// partitions.
    pub stride: u32,
    /// The longest time that a phit travels.
    pub longest: u32,
    /// Cycles from phit to phit on the slowest link.
    pub slowest: u32,
}

/// Where a link is within its packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stream {
    /// Virtual channel of the packet under way.
    pub vc: u8,
    /// Phits of it that are still to come, where its head says how many there are.
    pub left: u8,
}

/// What reports need to know of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortUse {
    /// To a terminal.
    Ejection,
    /// To a router, with the place of the link's kind in [`CycleModel::LINK_KINDS`].
    Link(u8),
}

/// What one end of a link knows of its virtual channels between windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortAccount {
    /// Phits that may still be sent; with those that have been reserved and not sent.
    pub credits: [u32; MAX_VCS],
    /// Phits that may be sent while the link is idle, where links differ in that.
    pub places: Option<[u32; MAX_VCS]>,
    /// Phits in the input queue here.
    pub queued: [u32; MAX_VCS],
    /// The packet that comes in.
    pub coming: Stream,
}

/// What is to be known of a chip between windows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChipView {
    /// Phits in its input queues, row buffers and column buffers.
    pub phits_by_stage: [u64; 3],
    /// How often something waited in each of them.
    pub stalls: [u64; 3],
    /// Phits that it has sent.
    pub phit_hops: u64,
    /// Phits for which no place was left.
    pub overflows: u64,
    /// Packets that broke the network's routing rule.
    pub rule_violations: u64,
    /// Packets that were refused.
    pub refused: u64,
    /// Packets that were thrown away for whatever reason, and their phits.
    pub discarded: [u64; 2],
    /// Packets that it sent on the ways that come first, such as minimal ones, and on the
    /// [others](CycleModel::OTHER_WAYS), where it chooses.
    pub choices: [u64; 2],
}

/// A router with its links.
pub trait DirectRouter<M: CycleModel>: Debug + Send {
    /// Runs the cycles of a window from `base` on. Returns whether there is something to do after
    /// it even if nothing arrives.
    fn run(&mut self, chip: usize, base: u64, exchange: &mut Exchange<M::Direct>) -> bool;
    /// Has what [`run`](Self::run) needs brought close to the core, while a router before it runs.
    #[inline]
    fn fetch(&self, _chip: usize, _exchange: &Exchange<M::Direct>) {}
    /// Where a port's link ends.
    fn peer(&self, port: usize) -> Option<u32>;
    /// The link end of a port.
    fn account(&self, port: usize) -> PortAccount;
    /// Phits that each port has sent.
    fn sent(&self) -> &[u64];
    /// Phits in queues and buffers.
    fn phits_inside(&self) -> u64;
    /// What reports and checkers want to know.
    fn view(&self) -> ChipView;
    /// What is in its stages behind the input buffers; packets pass between `ports`, one bit each.
    fn stages(&self, ports: u64) -> Vec<Stage>;
    /// Where the watch over packets is kept, if it can have one.
    fn watch(&mut self) -> Option<&mut Option<Box<Watch>>> {
        None
    }
    /// From `cycle` on, the beginning of a window, the link of a port takes packets or does not.
    /// One that has begun to leave goes on.
    fn set_link(&mut self, cycle: u64, port: usize, up: bool);
}

/// What a link's end says about what it sends and what it received.
#[derive(Clone, Debug)]
pub(crate) struct LinkAccount {
    /// Number of the link, and whether it is its second end.
    pub(crate) end: (u32, bool),
    pub(crate) account: crate::device::EndAccount,
    /// Incarnations of this end and, as far as it knows, of the other.
    pub(crate) epochs: (u32, u32),
}

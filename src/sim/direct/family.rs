//! What differs between the networks that can be simulated: the seam between phases, windows and reports, which
//! are the same for all, and chips and terminals, which are not. What a link carries in a cycle is called a phit here;
//! those of Aries are its flits.

use core::fmt::Debug;

use super::config::{Config, ConfigError, Traffic};
use super::exchange::Exchange;
use super::partition::Partition;
use super::shared::Shared;
use crate::device::LinkView;
use crate::link::LinkControlBlock;
use crate::link::impair::Netem;
use crate::net::Network as Layout;
use crate::node::{Node, PortId};
use crate::time::Duration;

/// Virtual channels of a link at most.
pub const MAX_VCS: usize = 8;
/// A port without link.
pub(crate) const NO_SLOT: u32 = u32::MAX;

/// A family of machines: BlackWidow or Aries.
pub trait Family: Parts {}

/// What a [`Family`] is made of.
pub trait Parts: Copy + Debug + Default + Eq + Send + Sync + 'static {
    /// What describes a network.
    type Topology: Layout;
    /// What a link carries in a cycle, as bits.
    type Phit: Copy + Debug + Default + Eq + Send;
    /// The credits that come back on a link in one window.
    type Credits: Copy + Debug + Default + Eq + Send;
    /// What the terminals of a partition need to know to make and take apart packets.
    type Format: Clone + Debug + Send;
    /// A router with its links.
    type Site: Site<Self>;
    /// A source and sink.
    type Terminal: Terminal<Self>;
    /// A router with encoded links.
    type Router: Node + Send;
    /// One end of an encoded link.
    type End: LinkControlBlock + LinkView + Send;
    /// What takes packets apart that come to a terminal over an encoded link.
    type Assemblies: Debug + Default + Send;

    /// Ports of a chip, at most 64.
    const PORTS: usize;
    /// Lanes of all ports of a chip, at most 64. A lane carries a phit and a credit per cycle.
    const CHIP_LANES: usize;
    /// Lanes of a terminal's link.
    const TERMINAL_LANES: usize;
    /// Virtual channels of a link, at most [`MAX_VCS`].
    const VCS: usize;
    /// Phits that one virtual channel of an idle link may send.
    const CREDITS: u32;
    /// Time of a cycle.
    const CYCLE: Duration;
    /// Names of the kinds of links between routers, as reports have them.
    const LINK_KINDS: &'static [&'static str];

    /// Phits of a message: request and, if there is one, reply.
    fn message_phits(traffic: &Traffic) -> usize;
    /// The first of a port's lanes, and how many it has.
    fn lanes(port: usize) -> (usize, usize);
    /// The virtual channel of the next phit of a link, whose state is kept in `stream`.
    fn follow(stream: &mut Stream, phit: Self::Phit) -> usize;
    /// What arrives `by` cycles later of credits of a window of so many cycles: in that window and in the next.
    fn delay_credits(credits: &Self::Credits, by: usize, window: usize) -> [Self::Credits; 2];
    /// Adds credits for other cycles of the same window.
    fn add_credits(credits: &mut Self::Credits, more: &Self::Credits);
    /// Number of the credits that arrive, per virtual channel.
    fn count_credits(credits: &Self::Credits) -> [u32; MAX_VCS];
    /// The network of `topology` with direct links in so many partitions, at least one.
    ///
    /// # Errors
    /// See [`ConfigError`].
    fn build(
        topology: &Self::Topology,
        config: &Config,
        partitions: usize,
    ) -> Result<Network<Self>, ConfigError>;

    /// The number of the terminal at a port of a network interface, if it is there.
    fn terminal(topology: &Self::Topology, nic: u32, port: u8) -> Option<u64>;

    // Over encoded links.

    /// The same network over encoded links, whose frames are impaired as `netem` says.
    ///
    /// # Errors
    /// See [`ConfigError`].
    fn build_encoded(
        topology: &Self::Topology,
        config: &Config,
        netem: Option<Netem>,
        partitions: usize,
    ) -> Result<Network<Self>, ConfigError>;
    /// The link end at a port of a router, if it has one.
    fn end(router: &Self::Router, port: PortId) -> Option<&Self::End>;
    /// What reports and checkers want to know of a router.
    fn view(router: &Self::Router) -> ChipView;
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
    /// Hands over the packets of a terminal that are due by `cycle` and have room in the link.
    fn transmit(
        end: &mut Self::End,
        cycle: u64,
        terminal: &mut Self::Terminal,
        shared: &mut Shared<Self>,
    );
    /// The cycle in which a packet of the terminal is due for which the link has room;
    /// [`NEVER`](super::source::NEVER) if there is none.
    fn next_due(end: &Self::End, terminal: &Self::Terminal, shared: &Shared<Self>) -> u64;
}

/// A network cut into partitions.
#[derive(Debug)]
pub struct Network<F: Parts> {
    pub(crate) partitions: Vec<Partition<F>>,
    /// Kind of each chip's ports, by the topology's numbers; `None` without link.
    pub(crate) kinds: Vec<Option<PortUse>>,
    /// Terminals that send.
    pub(crate) senders: u64,
    /// Cycles between two exchanges of mail: the shortest time that a phit travels between partitions.
    pub(crate) stride: u32,
    /// The longest time that a phit travels.
    pub(crate) longest: u32,
    /// Cycles from phit to phit on the slowest link.
    pub(crate) slowest: u32,
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
    /// To a router, with the place of the link's kind in [`Parts::LINK_KINDS`].
    Link(u8),
}

/// What one end of a link knows of its virtual channels between windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortAccount {
    /// Phits that may still be sent; with those that have been reserved and not sent.
    pub credits: [u32; MAX_VCS],
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
    /// Packets from its terminals that it sent on minimal and on non-minimal ways.
    pub choices: [u64; 2],
}

/// A router with its links.
pub trait Site<F: Parts>: Debug + Send {
    /// Runs the cycles of a window from `base` on. Returns whether there is something to do after
    /// it even if nothing arrives.
    fn run(&mut self, chip: usize, base: u64, exchange: &mut Exchange<F>) -> bool;
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
    /// From `cycle` on, the beginning of a window, the link of a port takes packets or does not. One
    /// that has begun to leave goes on.
    fn set_link(&mut self, cycle: u64, port: usize, up: bool);
}

/// A source and sink behind one link.
pub trait Terminal<F: Parts>: Debug + Send {
    /// Runs the cycles of a window from `base` on. Returns the cycle in which there is next
    /// something to do even if nothing arrives.
    fn run(
        &mut self,
        index: usize,
        base: u64,
        exchange: &mut Exchange<F>,
        shared: &mut Shared<F>,
    ) -> u64;
    /// What it has in common with other families' terminals.
    fn common(&self) -> &super::shared::Common;
    /// The same, to be changed.
    fn common_mut(&mut self) -> &mut super::shared::Common;
    /// Where the link ends.
    fn peer(&self) -> u32;
    /// The link's end here.
    fn account(&self) -> PortAccount;
    /// Phits of a packet begun that are not sent yet.
    fn reserved(&self) -> u64;
    /// Whether nothing is left to send that could be, and nothing half received.
    fn is_at_rest(&self) -> bool;
    /// From the next window on its link takes packets or does not.
    fn set_link(&mut self, up: bool);
}

/// What a link's end says about what it sends and what it received.
#[derive(Clone, Debug)]
pub struct LinkAccount {
    /// Number of the link, and whether it is its second end.
    pub(crate) end: (u32, bool),
    pub(crate) account: crate::device::EndAccount,
    /// Incarnations of this end and, as far as it knows, of the other.
    pub(crate) epochs: (u32, u32),
}

//! Direct mode's traffic over encoded links: framed, impaired, parsed and acknowledged.
//!
//! Routers are the complete nodes that processes run, and terminals have their own link control
//! blocks, all with the chip's own depths and times. Each partition is a [`Fabric`] whose links
//! into other partitions leave it; a link's latency is at least the window, and impairments only
//! add delay. Everything above the links is that of direct mode: sources, sinks, phases,
//! measurement.

pub mod build;
pub(crate) mod endpoint;
pub(crate) mod member;
pub mod network;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

pub(super) use endpoint::TerminalNode;
use member::EncodedNode;

use super::exchange::Mail;
use super::model::{ChipView, CycleModel, LinkAccount};
use super::shared::Shared;
use crate::device::{LinkView as _, PipelineReport};
use crate::link::EndStatus;
use crate::link::impair::Netem;
use crate::sim::check;
use crate::sim::fabric::{Direction, Fabric, LinkId, LinkSpec, NodeId};
use crate::sim::tap::Tap;
use crate::time::{Duration, Time};

/// Longest frame: Ethernet's. The chips' bursts are far shorter.
const MTU: usize = 1_500;

/// Sources and sinks of a partition while its nodes run.
#[derive(Debug)]
struct Traffic<M: CycleModel> {
    shared: Shared<M>,
    terminals: Vec<M::Terminal>,
}

/// Traffic that the nodes of one fabric share. Only one thread at a time runs a fabric, so the lock
/// is never contended.
type SharedTraffic<M> = Arc<Mutex<Traffic<M>>>;

fn locked<M: CycleModel>(traffic: &SharedTraffic<M>) -> MutexGuard<'_, Traffic<M>> {
    traffic.lock().unwrap_or_else(|broken| broken.into_inner())
}

/// This partition's end of a link into another.
#[derive(Clone, Copy, Debug)]
struct CrossLink {
    /// The link's number in the topology.
    link: u32,
    /// Whether this end is the link's second.
    is_b: bool,
    /// Link through which frames enter.
    entry: LinkId,
    /// Exit through which frames leave.
    exit: usize,
    /// Partition of the other end.
    partition: usize,
}

/// The nodes of one partition of a network with encoded links.
pub(crate) struct EncodedPartition<M: CycleModel> {
    fabric: Fabric<EncodedNode<M>>,
    traffic: SharedTraffic<M>,
    /// Nodes of the chips, in partition order.
    chips: Vec<NodeId>,
    abroad: Vec<CrossLink>,
    /// Links with both ends here: numbers in the topology and in the fabric.
    home: Vec<(u32, LinkId)>,
}

impl<M: CycleModel> core::fmt::Debug for EncodedPartition<M> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("EncodedPartition")
            .field("chips", &self.chips)
            .finish_non_exhaustive()
    }
}

impl<M: CycleModel> EncodedPartition<M> {
    fn new(seed: u64, traffic: SharedTraffic<M>) -> Self {
        Self {
            fabric: Fabric::new(seed),
            traffic,
            chips: Vec::new(),
            abroad: Vec::new(),
            home: Vec::new(),
        }
    }

    /// Connects two ports of this partition.
    fn connect(
        &mut self,
        link: u32,
        ends: [(NodeId, u8); 2],
        latency: Duration,
        netem: Option<Netem>,
    ) {
        let spec = LinkSpec { latency, mtu: MTU };
        let id = self
            .fabric
            .connect(ends[0], ends[1], spec)
            .expect("a checked topology uses every port once");
        for (direction, is_b) in [(Direction::AToB, true), (Direction::BToA, false)] {
            self.impair(id, direction, netem, stream(link, is_b));
        }
        self.home.push((link, id));
    }

    /// Connects a port to one of another partition; `is_b`: the port is the link's second end.
    fn connect_abroad(
        &mut self,
        (link, is_b): (u32, bool),
        end: (NodeId, u8),
        partition: usize,
        latency: Duration,
        netem: Option<Netem>,
    ) {
        let spec = LinkSpec { latency, mtu: MTU };
        let (entry, exit) = self
            .fabric
            .connect_abroad(end, spec)
            .expect("a checked topology uses every port once");
        self.impair(entry, Direction::AToB, netem, stream(link, is_b));
        self.abroad.push(CrossLink {
            link,
            is_b,
            entry,
            exit,
            partition,
        });
    }

    fn impair(&mut self, link: LinkId, direction: Direction, netem: Option<Netem>, stream: u64) {
        if let Some(netem) = netem {
            self.fabric.impair_as(link, direction, netem, stream);
        }
    }

    /// Passes every frame that a link end here sends from now on to `tap`.
    pub(super) fn set_tap(&mut self, tap: Tap) {
        let mut ends = BTreeMap::new();
        for &(link, id) in &self.home {
            let [a, b] = self.fabric.ends(id);
            ends.extend([(a, (link, false)), (b, (link, true))]);
        }
        for abroad in &self.abroad {
            let own = self.fabric.end_of(abroad.entry, Direction::AToB);
            ends.insert(own, (abroad.link, abroad.is_b));
        }
        self.fabric.set_tap(Box::new(move |at, node, port, bytes| {
            if let Some(&(link, is_b)) = ends.get(&(node, port)) {
                tap.frame(at, link, is_b, bytes);
            }
        }));
    }

    /// Exchanges the traffic between the partition, which holds it between windows, and the nodes.
    fn swap(&mut self, shared: &mut Shared<M>, terminals: &mut Vec<M::Terminal>) {
        let mut traffic = locked(&self.traffic);
        core::mem::swap(&mut traffic.shared, shared);
        core::mem::swap(&mut traffic.terminals, terminals);
    }

    pub(super) fn each_end(&self, mut visit: impl FnMut(u32, bool, &M::End)) {
        let end = |(node, port): (NodeId, u8)| self.fabric.node(node).end(port);
        for &(link, id) in &self.home {
            for (at, is_b) in self.fabric.ends(id).into_iter().zip([false, true]) {
                if let Some(end) = end(at) {
                    visit(link, is_b, end);
                }
            }
        }
        for abroad in &self.abroad {
            if let Some(end) = end(self.fabric.end_of(abroad.entry, Direction::AToB)) {
                visit(abroad.link, abroad.is_b, end);
            }
        }
    }

    /// The router of chip number `index` of the partition.
    fn chip(&self, index: usize) -> &M::Router {
        let node = self.fabric.node(self.chips[index]);
        node.router().expect("chips are routers")
    }

    /// Runs the nodes up to the start of cycle `end`, exclusive.
    pub(super) fn run_window(
        &mut self,
        end: u64,
        shared: &mut Shared<M>,
        terminals: &mut Vec<M::Terminal>,
        outboxes: &mut [Mail<M::Direct>],
    ) {
        for abroad in &self.abroad {
            self.fabric.catch_up(abroad.entry);
        }
        self.swap(shared, terminals);
        let end = Time::ZERO + M::CYCLE.times(end);
        self.fabric.run_until(Time::from_ps(end.as_ps() - 1));
        self.swap(shared, terminals);
        while self.fabric.poll_event().is_some() {}
        for abroad in &self.abroad {
            let mut frames = Vec::new();
            self.fabric.take_out(abroad.exit, &mut frames);
            if !frames.is_empty() {
                let mail = (abroad.link, !abroad.is_b, frames);
                outboxes[abroad.partition].frames.push(mail);
            }
        }
    }

    /// Receives the frames that another partition sent.
    pub(super) fn receive(&mut self, mail: &mut Mail<M::Direct>) {
        for (link, is_b, mut frames) in mail.frames.drain(..) {
            let here = self
                .abroad
                .binary_search_by_key(&(link, is_b), |abroad| (abroad.link, abroad.is_b))
                .expect("a frame arrives at the end of its link");
            self.fabric.put_in(self.abroad[here].entry, &mut frames);
        }
    }

    /// Makes every endpoint check again what its terminals have to send.
    pub(super) fn wake_endpoints(&mut self) {
        for id in (0..self.fabric.nodes() as u32).map(NodeId) {
            self.fabric.command(id, |_, _| ());
        }
    }

    /// Cuts a link, losing what is under way, or restores it.
    pub(super) fn set_link(&mut self, link: u32, up: bool) {
        let home = self.home.iter().filter(|(number, _)| *number == link);
        let both = home.flat_map(|&(_, id)| Direction::BOTH.map(|direction| (id, direction)));
        let abroad = self.abroad.iter().filter(|abroad| abroad.link == link);
        let towards = abroad.map(|abroad| (abroad.entry, Direction::AToB));
        for (id, direction) in both.chain(towards) {
            match up {
                true => self.fabric.restore_one(id, direction),
                false => self.fabric.cut_one(id, direction),
            }
        }
    }

    /// Adds the account of every link end.
    pub(super) fn accounts(&self, into: &mut Vec<LinkAccount>) {
        self.each_end(|link, is_b, end| {
            into.push(LinkAccount {
                end: (link, is_b),
                account: end.account(),
                epochs: end.epochs(),
            });
        });
    }

    /// State of a chip, by partition order.
    pub(super) fn view(&self, index: usize) -> ChipView {
        M::view(self.chip(index))
    }

    /// Contents of a chip's stages.
    pub(super) fn pipeline(&self, index: usize) -> PipelineReport {
        M::pipeline(self.chip(index))
    }

    /// Phits that a chip sent on each of its links, including resent ones.
    pub(super) fn sent(&self, index: usize) -> Vec<u64> {
        let chip = self.chip(index);
        let ends = (0..M::PORTS as u8).map(|port| M::end(chip, port));
        ends.map(|end| end.map_or(0, M::sent)).collect()
    }

    /// Units that link ends here resent (see [`CycleModel::Router`]'s links), frames sent, frames
    /// lost to impairment.
    pub(super) fn work(&self) -> [u64; 3] {
        let mut again = 0;
        self.each_end(|_, _, end| again += end.resent());
        let counters = self.fabric.wire_counters();
        [again, counters.sent, counters.impaired.lost]
    }

    /// Undamaged packets that routers here accepted. Damaged ones are resent, but may still have
    /// been forwarded, marked as damaged.
    pub(super) fn packets_taken(&self) -> u64 {
        let ports =
            |index| (0..M::PORTS as u8).filter_map(move |port| M::end(self.chip(index), port));
        let healthy = |end: &M::End| -> u64 {
            let counters = end.counters();
            counters.rx_packets - counters.rx_poisoned_packets
        };
        let of = |index| {
            let passed = M::packets_passed(self.chip(index));
            passed.unwrap_or_else(|| ports(index).map(healthy).sum())
        };
        (0..self.chips.len()).map(of).sum()
    }
}

/// Random stream of the impairment towards one end of a link.
fn stream(link: u32, towards_b: bool) -> u64 {
    // Terminals use small stream numbers; these do not collide with them.
    1 << 40 | u64::from(link) << 1 | u64::from(towards_b)
}

/// Whether both ends of every link are active in the same session.
pub(super) fn all_up(accounts: &mut [LinkAccount]) -> bool {
    accounts.sort_by_key(|account| account.end);
    accounts.chunk_by(|x, y| x.end.0 == y.end.0).all(|pair| {
        let [a, b] = pair else { return false };
        let (own, peer) = b.epochs;
        a.account.active && b.account.active && a.epochs == (peer, own)
    })
}

/// Checks links at rest: each direction by the accounts of its two ends.
pub(super) fn check_links(accounts: &mut [LinkAccount], violations: &mut Vec<check::Violation>) {
    accounts.sort_by_key(|account| account.end);
    for pair in accounts.chunk_by(|x, y| x.end.0 == y.end.0) {
        if let [a, b] = pair {
            let link = LinkId(a.end.0);
            let (a, b) = (&a.account, &b.account);
            check::check_direction(link, Direction::AToB, a, b, true, violations);
            check::check_direction(link, Direction::BToA, b, a, true, violations);
        }
    }
}

//! Direct mode's traffic over encoded links: framed, impaired, parsed and acknowledged.
//!
//! Routers are the complete nodes that processes run, and terminals have their own link control
//! blocks, all with the chip's own depths and times. Each part is a [`Fabric`] with exits for its
//! links into other parts; a link's latency is at least the window, and impairments only add delay.
//! Everything above the links is as in direct mode: sources, sinks, phases, measurement.

pub mod build;
pub(crate) mod endpoint;
mod frame_mail;
pub(crate) mod member;
pub mod network;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

pub(super) use endpoint::TerminalNode;
use member::EncodedNode;

use super::endpoints::Endpoints;
use super::mail::{Addresses, MailError};
use super::model::CycleModel;
use super::part::{Command, LocalPart, Part};
use super::summary::{LinkAccount, PartSnapshot, Section, Summary};
use super::watch::of_encoded;
use crate::link::LinkView;
use crate::link::impair::Netem;
use crate::sim::check;
use crate::sim::fabric::{Direction, Fabric, LinkId, LinkSpec, NodeId, SentFrame};
use crate::sim::tap::Tap;
use crate::time::{Duration, Time};

/// Longest frame: Ethernet's. The chips' bursts are far shorter.
const MTU: usize = 1_500;

/// Terminals that the nodes of one fabric share. Only one thread at a time runs a fabric, so the
/// lock is never contended.
type SharedEndpoints<M> = Arc<Mutex<Endpoints<M>>>;

fn locked<M: CycleModel>(endpoints: &SharedEndpoints<M>) -> MutexGuard<'_, Endpoints<M>> {
    endpoints
        .lock()
        .unwrap_or_else(|broken| broken.into_inner())
}

/// This part's end of a link into another part.
#[derive(Clone, Copy, Debug)]
struct CrossLink {
    /// The link's number in the topology.
    link: u32,
    /// Whether this is end B of the link.
    is_b: bool,
    /// Link through which frames enter.
    entry: LinkId,
    /// Exit through which frames leave.
    exit: usize,
    /// Part of the other end.
    part: usize,
}

/// Frames of one link to another part: the link's number, whether they go to its end B, and the
/// frames in the order of sending.
pub type LinkFrames = (u32, bool, Vec<SentFrame>);

/// Chips and terminals as nodes behind encoded links.
pub struct EncodedPart<M: CycleModel> {
    fabric: Fabric<EncodedNode<M>>,
    endpoints: SharedEndpoints<M>,
    /// The topology's number of each chip, and its node.
    chips: Vec<(u32, NodeId)>,
    abroad: Vec<CrossLink>,
    /// Links with both ends here: numbers in the topology and in the fabric.
    home: Vec<(u32, LinkId)>,
    outboxes: Vec<Vec<LinkFrames>>,
    /// Cycles of a window.
    window: u64,
    cycle: u64,
    addresses: Addresses,
}

impl<M: CycleModel> core::fmt::Debug for EncodedPart<M> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("EncodedPart")
            .field("chips", &self.chips)
            .finish_non_exhaustive()
    }
}

impl<M: CycleModel> EncodedPart<M> {
    /// Part `number` of `count`, which exchange mail every `window` cycles; without nodes yet.
    fn new(seed: u64, endpoints: Endpoints<M>, window: u64, (number, count): (u32, usize)) -> Self {
        Self {
            fabric: Fabric::new(seed),
            endpoints: Arc::new(Mutex::new(endpoints)),
            chips: Vec::new(),
            abroad: Vec::new(),
            home: Vec::new(),
            outboxes: vec![Vec::new(); count],
            window,
            cycle: 0,
            addresses: Addresses::new(number, count),
        }
    }

    /// Connects two ports of this part.
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

    /// Connects a port to a port of another part. With `is_b`, the port here is end B of the link.
    fn connect_remote(
        &mut self,
        (link, is_b): (u32, bool),
        end: (NodeId, u8),
        part: usize,
        latency: Duration,
        netem: Option<Netem>,
    ) {
        let spec = LinkSpec { latency, mtu: MTU };
        let (entry, exit) = self
            .fabric
            .connect_remote(end, spec)
            .expect("a checked topology uses every port once");
        self.impair(entry, Direction::AToB, netem, stream(link, is_b));
        self.abroad.push(CrossLink {
            link,
            is_b,
            entry,
            exit,
            part,
        });
    }

    fn impair(&mut self, link: LinkId, direction: Direction, netem: Option<Netem>, stream: u64) {
        if let Some(netem) = netem {
            self.fabric.impair_as(link, direction, netem, stream);
        }
    }

    /// Passes every frame that a link end here sends from now on to `tap`.
    fn set_tap(&mut self, tap: Tap) {
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

    fn each_end(&self, mut visit: impl FnMut(u32, bool, &M::End)) {
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

    /// The local end of a link from another part.
    fn entry(&self, link: u32, is_b: bool) -> Option<&CrossLink> {
        let abroad = &self.abroad;
        let here = abroad.binary_search_by_key(&(link, is_b), |end| (end.link, end.is_b));
        here.ok().map(|here| &abroad[here])
    }

    fn routers(&self) -> impl Iterator<Item = &M::Router> {
        self.chips.iter().map(|&(_, node)| {
            let node = self.fabric.node(node);
            node.router().expect("chips are routers")
        })
    }

    /// Makes every terminal check again for packets to send.
    fn wake_terminals(&mut self) {
        for id in (0..self.fabric.nodes() as u32).map(NodeId) {
            self.fabric.command(id, |_, _| ());
        }
    }

    /// Cuts a link, which loses the frames in flight, or restores it.
    fn set_link(&mut self, link: u32, up: bool) {
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

    fn accounts(&self) -> Vec<LinkAccount> {
        let mut accounts = Vec::new();
        self.each_end(|link, is_b, end| {
            accounts.push(LinkAccount {
                end: (link, is_b),
                account: end.account(),
                epochs: end.epochs(),
            });
        });
        accounts
    }

    fn snapshot(&self) -> PartSnapshot {
        let mut snapshot = PartSnapshot::default();
        self.each_end(|link, is_b, end| {
            snapshot.encoded.push(((link, is_b), of_encoded(end)));
        });
        let chips = self.chips.iter().zip(self.routers());
        let routers = chips.map(|(&(chip, _), router)| (chip, M::pipeline(router)));
        snapshot.routers = routers.collect();
        snapshot
    }

    /// Undamaged packets that routers here accepted. Damaged ones are resent, but may still have
    /// been forwarded, marked as damaged.
    fn packets_taken(&self) -> u64 {
        let healthy = |end: &M::End| -> u64 {
            let counters = end.counters();
            counters.rx_packets - counters.rx_poisoned_packets
        };
        let of = |router| {
            let passed = M::packets_passed(router);
            passed.unwrap_or_else(|| ends::<M>(router).flatten().map(healthy).sum())
        };
        self.routers().map(of).sum()
    }
}

/// The link end at each port of a router.
fn ends<M: CycleModel>(router: &M::Router) -> impl Iterator<Item = Option<&M::End>> {
    (0..M::PORTS as u8).map(|port| M::end(router, port))
}

impl<M: CycleModel> Part for EncodedPart<M> {
    /// Runs the nodes up to the first cycle of the next window, exclusive.
    fn run_window(&mut self) {
        for abroad in &self.abroad {
            self.fabric.catch_up(abroad.entry);
        }
        self.cycle += self.window;
        let end = Time::ZERO + M::CYCLE.times(self.cycle);
        self.fabric.run_until(Time::from_ps(end.as_ps() - 1));
        while self.fabric.poll_event().is_some() {}
        for abroad in &self.abroad {
            let mut frames = Vec::new();
            self.fabric.take_out(abroad.exit, &mut frames);
            if !frames.is_empty() {
                let mail = (abroad.link, !abroad.is_b, frames);
                self.outboxes[abroad.part].push(mail);
            }
        }
        self.addresses.advance();
    }

    fn give(&mut self, to: usize, mail: &mut Vec<u8>) {
        frame_mail::write(&mut self.outboxes[to], mail, self.addresses.to(to));
    }

    fn take(&mut self, from: usize, mail: &[u8]) -> Result<(), MailError> {
        let address = self.addresses.from(from)?;
        // Frames that a command makes a node send leave at the end of the previous window.
        let since = M::CYCLE
            .times(self.cycle.saturating_sub(self.window))
            .as_ps();
        let since = Time::from_ps(since.saturating_sub(1));
        let leads_here = |link, is_b| {
            let abroad = self.entry(link, is_b);
            abroad.is_some_and(|abroad| abroad.part == from)
        };
        let mut frames = frame_mail::read(mail, address, (since, self.fabric.now()), leads_here)?;
        self.addresses.took(from);
        self.receive(&mut frames);
        Ok(())
    }

    fn command(&mut self, command: &Command) {
        locked(&self.endpoints).command(command, self.cycle);
        match command {
            Command::Begin(_) => self.wake_terminals(),
            &Command::SetLink { link, up, .. } => self.set_link(link, up),
            Command::Tap(tap) => self.set_tap(Arc::clone(tap)),
            Command::Measure(_)
            | Command::CountBirths
            | Command::Trace(_)
            | Command::EndTrace
            | Command::Stop => {}
        }
    }

    fn summary(&self, section: Section) -> Summary {
        let mut summary = locked(&self.endpoints).summary(section, self.cycle);
        match section {
            Section::Census => {
                summary.census.chips = self.chips.iter().map(|&(chip, _)| chip).collect();
            }
            Section::Chips => {
                for router in self.routers() {
                    summary.chips.add(&M::view(router));
                }
            }
            Section::Loads => {
                let ends = self.routers().flat_map(ends::<M>);
                summary.loads.ports = ends.map(|end| end.map_or(0, M::sent)).collect();
            }
            Section::Ends => summary.ends.encoded = self.accounts(),
            Section::Results => {
                let results = &mut summary.results;
                self.each_end(|_, _, end| results.resent += end.resent());
                let counters = self.fabric.wire_counters();
                results.frames_sent = counters.sent;
                results.frames_lost = counters.impaired.lost;
                results.packets_taken = self.packets_taken();
            }
            Section::Snapshot => summary.snapshot = self.snapshot(),
            Section::Tally | Section::Terminals | Section::Births | Section::Records => {}
        }
        summary
    }
}

impl<M: CycleModel> LocalPart for EncodedPart<M> {
    type Mail = Vec<LinkFrames>;

    fn outbox(&mut self, to: usize) -> &mut Vec<LinkFrames> {
        &mut self.outboxes[to]
    }

    fn receive(&mut self, mail: &mut Vec<LinkFrames>) {
        for (link, is_b, mut frames) in mail.drain(..) {
            let here = self.entry(link, is_b);
            let entry = here.expect("a frame goes to where its link ends").entry;
            self.fabric.put_in(entry, &mut frames);
        }
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

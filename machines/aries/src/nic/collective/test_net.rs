//! A network of many NICs for the tests of the collective engine: packets are delayed, reordered,
//! lost, duplicated and damaged; a NIC is called only when a packet arrives or its deadline does.

use std::collections::BTreeMap;

use phitwire_framing::aries::flit::{Flit, Head};
use phitwire_framing::carrier::frame::LinkEnd;

use super::super::config::AriesNicConfig;
use super::super::interface::Interface;
use super::super::packet_buf::PacketBuf;
use super::super::test_bench::link;
use super::super::virtual_node::VirtualNodes;
use super::*;
use phitwire::rng::Rng;
use phitwire::time::Duration;

pub(super) const KEY: u16 = 0x1234;
pub(super) const TIMEOUT: Duration = Duration::from_us(100);

/// Rates of packet faults, per mille.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Harm {
    pub lost: u64,
    pub doubled: u64,
    pub poisoned: u64,
}

impl Harm {
    pub(super) const HARSH: Self = Self {
        lost: 80,
        doubled: 80,
        poisoned: 30,
    };
}

pub(super) struct Net {
    pub nics: Vec<Interface>,
    pub now: Time,
    pub harm: Harm,
    /// NICs cut off from the network.
    pub cut: Vec<usize>,
    /// Request packets sent.
    pub requests: u64,
    pub rng: Rng,
    serial: u64,
    wire: BTreeMap<(Time, u64), (usize, Vec<Flit>)>,
}

/// Ranks are spread over routers and groups.
pub(super) fn node(rank: usize) -> NodeId {
    NodeId::new((rank / 8) as u16, (rank / 4 % 2) as u8, (rank % 4) as u8)
}

impl Net {
    pub(super) fn new(ranks: usize, seed: u64) -> Self {
        Self::with(ranks, seed, seed % 2 == 1)
    }

    /// With `joins`, messages carry responses to each other.
    pub(super) fn with(ranks: usize, seed: u64, joins: bool) -> Self {
        let table = VirtualNodes::new((0..ranks).map(node).collect());
        let nic = |rank| {
            let config = AriesNicConfig::builder("n", node(rank), link(LinkEnd::A, 1))
                .memory_bytes(1 << 16)
                .max_outstanding(4)
                .request_timeout(TIMEOUT)
                .joined_answers(joins)
                .virtual_nodes(table.clone());
            Interface::new(&config.build().unwrap(), Time::ZERO)
        };
        Self {
            nics: (0..ranks).map(nic).collect(),
            now: Time::from_ns(1),
            harm: Harm::default(),
            cut: Vec::new(),
            requests: 0,
            rng: Rng::new(seed, 1),
            serial: 0,
            wire: BTreeMap::new(),
        }
    }

    pub(super) fn tree(&self, branching: u32, root: u32, rank: usize) -> CollectiveTree {
        let nodes: Vec<Target> = (0..self.nics.len() as u32).map(Target::Virtual).collect();
        let tree = CollectiveTree::of_rank(&nodes, branching, root, rank as u32, KEY, 7);
        CollectiveTree {
            patience: Duration::from_ms(20),
            ..tree.unwrap()
        }
    }

    pub(super) fn set_up(&mut self, engine: usize, branching: u32, root: u32) {
        for rank in 0..self.nics.len() {
            let tree = self.tree(branching, root, rank);
            self.nics[rank].set_up_collective(engine, &tree).unwrap();
        }
    }

    pub(super) fn join(&mut self, rank: usize, engine: usize, join: &Join) {
        self.nics[rank].join(self.now, engine, join).unwrap();
        self.collect(rank);
    }

    fn send(&mut self, from: usize, packet: &[Flit]) {
        let mut packet = packet.to_vec();
        let head = Head::parse(packet[0]).unwrap();
        self.requests += u64::from(!head.is_response());
        let number = head.destination();
        let Some(to) = (0..self.nics.len()).find(|&rank| node(rank) == number) else {
            return;
        };
        if self.cut.contains(&from) || self.cut.contains(&to) {
            return;
        }
        if self.rng.chance(self.harm.poisoned, 1000) {
            packet[0] = head.with_poison().flit();
        }
        let copies = match self.rng.below(1000) {
            n if n < self.harm.lost => 0,
            n if n < self.harm.lost + self.harm.doubled => 2,
            _ => 1,
        };
        for _ in 0..copies {
            // Some arrive after their timeout, and after the next operation has begun.
            let longest = if self.rng.chance(1, 20) {
                300_000
            } else {
                8_000
            };
            let delay = Duration::from_ns(500 + self.rng.below(longest));
            self.serial += 1;
            let due = (self.now + delay, self.serial);
            self.wire.insert(due, (to, packet.clone()));
        }
    }

    /// Sends the packets that a NIC has ready.
    pub(super) fn collect(&mut self, rank: usize) {
        while let Some(packet) = self.nics[rank].requester.next_packet(Time::NEVER) {
            let packet = packet.as_slice().to_vec();
            self.nics[rank].requester.packet_sent();
            self.send(rank, &packet);
        }
    }

    pub(super) fn next(&self) -> Option<Time> {
        let deadlines = self.nics.iter().filter_map(Interface::next_deadline);
        let wire = self.wire.keys().next().map(|&(at, _)| at);
        deadlines.chain(wire).min()
    }

    /// Advances to `now` and handles what is due; returns the NICs called.
    pub(super) fn step_to(&mut self, now: Time) -> Vec<usize> {
        assert!(now >= self.now);
        self.now = now;
        let mut called = Vec::new();
        let mut out = PacketBuf::new();
        while let Some(entry) = self.wire.first_entry()
            && entry.key().0 <= now
        {
            let (to, packet) = entry.remove();
            if Head::parse(packet[0]).unwrap().is_response() {
                self.nics[to].handle_response(now, &packet);
            } else if self.nics[to].serve(now, &packet, &mut out) {
                self.send(to, out.as_slice());
            }
            called.push(to);
        }
        for rank in 0..self.nics.len() {
            if self.nics[rank].next_deadline().is_some_and(|at| at <= now) {
                called.push(rank);
            }
        }
        called.sort_unstable();
        called.dedup();
        for &rank in &called {
            self.nics[rank].advance(now);
            while self.nics[rank].overdue_answer(now, &mut out) {
                self.send(rank, out.as_slice());
            }
            self.collect(rank);
        }
        called
    }

    /// Runs until no event is left, or until `end`.
    pub(super) fn settle(&mut self, end: Time) {
        while let Some(at) = self.next().filter(|&at| at <= end) {
            self.step_to(at.max(self.now));
        }
    }

    pub(super) fn completions(&mut self, rank: usize) -> Vec<CollectiveCompletion> {
        core::iter::from_fn(|| self.nics[rank].collective.poll_completion()).collect()
    }

    pub(super) fn counters(&self) -> AriesNicCounters {
        let mut sum = AriesNicCounters::default();
        self.nics.iter().for_each(|nic| sum.add(&nic.counters()));
        sum
    }
}

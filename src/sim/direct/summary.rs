//! The report of a part: plain data, merged over the parts of a network.

use super::message_trace::MessageTrace;
use super::model::ChipView;
use super::tally::{LatencyTotals, Tally};
use super::watch::EndSnapshot;
use crate::device::PipelineReport;
use crate::link::MAX_VCS;
use crate::trace::Passage;

/// A section of a [`Summary`]. A part fills one on request, because some visit all of its nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// [`Summary::census`].
    Census,
    /// [`Summary::tally`].
    Tally,
    /// [`Summary::chips`].
    Chips,
    /// [`Summary::terminals`].
    Terminals,
    /// [`Summary::loads`].
    Loads,
    /// [`Summary::births`].
    Births,
    /// [`Summary::ends`].
    Ends,
    /// [`Summary::results`].
    Results,
    /// [`Summary::records`].
    Records,
    /// [`Summary::snapshot`].
    Snapshot,
}

/// The state of a part, or of all parts of a network, between two windows.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    pub census: Census,
    pub tally: Tally,
    /// Sum over all chips.
    pub chips: ChipView,
    pub terminals: TerminalSums,
    pub loads: Loads,
    /// Requests born since the measurement began, up to the last
    /// [`CountBirths`](super::part::Command::CountBirths), by terminal in the census's order.
    /// Births do not depend on the network, so they are counted even if a source falls behind.
    pub births: Vec<u64>,
    pub ends: Ends,
    pub results: Results,
    pub records: Records,
    pub snapshot: PartSnapshot,
}

/// The nodes of a part, which do not change during a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// The topology's numbers of the chips.
    pub chips: Vec<u32>,
    pub terminals: Vec<TerminalName>,
    /// Phits of a message, replies included.
    pub message_phits: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalName {
    /// Number among all terminals.
    pub number: u64,
    /// Whether the traffic pattern keeps it from sending.
    pub silent: bool,
    /// Whether its source had something to send when the census was taken.
    pub sends: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TerminalSums {
    /// Terminals that have not begun to send all measured requests.
    pub behind: u64,
    /// Terminals with something to send, or that receive a packet.
    pub busy: u64,
    /// Unsent phits of packets already begun.
    pub reserved: u64,
}

/// Phits sent by ports and terminals, and requests waiting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loads {
    /// Requests born but not yet sent.
    pub waiting: u64,
    /// Phits sent by each port of each chip, in the census's order.
    pub ports: Vec<u64>,
    /// Phits sent by each terminal, in the census's order.
    pub terminals: Vec<u64>,
}

/// Accounts of link ends.
#[derive(Clone, Debug, Default)]
pub struct Ends {
    /// Phits in routers and on direct links.
    pub inside: u64,
    pub(crate) direct: Vec<EndAccount>,
    pub(crate) encoded: Vec<LinkAccount>,
}

/// A direct link end's view of credits and phits at the end of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EndAccount {
    /// Part and slot.
    pub(crate) end: (u32, u32),
    /// Part and slot of the other end.
    pub(crate) peer: (u32, u32),
    /// Credits of this end for sending, per virtual channel.
    pub credits: [u32; MAX_VCS],
    /// Credits about to arrive here.
    pub(crate) credits_coming: [u32; MAX_VCS],
    /// Phits about to arrive here.
    pub(crate) phits_coming: [u32; MAX_VCS],
    /// Phits in the input queue here.
    pub(crate) queued: [u32; MAX_VCS],
    /// See [`PortAccount::slots`](super::model::PortAccount::slots).
    pub(crate) slots: Option<[u32; MAX_VCS]>,
}

/// State of the sending and receiving sides of an encoded link end.
#[derive(Clone, Debug)]
pub(crate) struct LinkAccount {
    /// The link's number, and whether this is its end B.
    pub(crate) end: (u32, bool),
    pub(crate) account: crate::device::EndAccount,
    /// Epoch of this end, and of the peer as far as this end knows.
    pub(crate) epochs: (u32, u32),
}

/// Results of the run so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Results {
    /// Latencies of messages born in the measurement.
    pub latencies: LatencyTotals,
    /// Latencies of messages that arrived in the measurement.
    pub arrived_latencies: LatencyTotals,
    /// Number of each terminal, and the hash of its deliveries.
    pub traces: Vec<(u64, u64)>,
    /// Undamaged packets that routers have taken from encoded links.
    pub packets_taken: u64,
    /// Units that encoded links resent.
    pub resent: u64,
    /// Frames sent over encoded links.
    pub frames_sent: u64,
    /// Frames lost to impairment.
    pub frames_lost: u64,
}

/// Records of the traced flow.
#[derive(Clone, Debug, Default)]
pub struct Records {
    /// Records of terminals, by part.
    pub(crate) terminals: Vec<MessageTrace>,
    /// Records of routers: the chip's number, its records, and the number of packets that found no
    /// room.
    pub(crate) routers: Vec<(u32, Vec<Passage>, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EndName {
    /// A chip by the topology's number, and its port.
    Port(u32, u8),
    /// A terminal, by its number among all terminals.
    Terminal(u64),
}

/// State of links and routers, for display.
#[derive(Clone, Debug, Default)]
pub struct PartSnapshot {
    /// Ends of direct links.
    pub(crate) direct: Vec<(EndName, EndSnapshot)>,
    /// Ends of encoded links: the link's number, and whether this is its end B.
    pub(crate) encoded: Vec<((u32, bool), EndSnapshot)>,
    /// Contents of the routers' stages, with the router's number.
    pub(crate) routers: Vec<(u32, PipelineReport)>,
}

impl Summary {
    /// The summary of several parts, in their order.
    pub fn of(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut sum = Self::default();
        parts.into_iter().for_each(|part| sum.merge(part));
        sum
    }

    /// Adds the summary of further parts: sums are added, lists are appended.
    pub fn merge(&mut self, other: Self) {
        self.census.merge(other.census);
        self.tally.add(&other.tally);
        self.chips.add(&other.chips);
        self.terminals.merge(other.terminals);
        self.loads.merge(other.loads);
        self.births.extend(other.births);
        self.ends.merge(other.ends);
        self.results.merge(other.results);
        self.records.merge(other.records);
        self.snapshot.merge(other.snapshot);
    }
}

impl Census {
    fn merge(&mut self, other: Self) {
        self.chips.extend(other.chips);
        self.terminals.extend(other.terminals);
        self.message_phits = self.message_phits.max(other.message_phits);
    }

    /// Whether the node of `end` is in this census.
    pub(crate) fn has(&self, end: EndName) -> bool {
        match end {
            EndName::Port(chip, _) => self.chips.contains(&chip),
            EndName::Terminal(number) => self.terminals.iter().any(|t| t.number == number),
        }
    }
}

impl TerminalSums {
    fn merge(&mut self, other: Self) {
        self.behind += other.behind;
        self.busy += other.busy;
        self.reserved += other.reserved;
    }
}

impl Loads {
    fn merge(&mut self, other: Self) {
        self.waiting += other.waiting;
        self.ports.extend(other.ports);
        self.terminals.extend(other.terminals);
    }
}

impl Ends {
    fn merge(&mut self, other: Self) {
        self.inside += other.inside;
        self.direct.extend(other.direct);
        self.encoded.extend(other.encoded);
    }
}

impl Results {
    fn merge(&mut self, other: Self) {
        self.latencies.merge(other.latencies);
        self.arrived_latencies.merge(other.arrived_latencies);
        self.traces.extend(other.traces);
        self.packets_taken += other.packets_taken;
        self.resent += other.resent;
        self.frames_sent += other.frames_sent;
        self.frames_lost += other.frames_lost;
    }
}

impl Records {
    fn merge(&mut self, other: Self) {
        self.terminals.extend(other.terminals);
        self.routers.extend(other.routers);
    }
}

impl PartSnapshot {
    fn merge(&mut self, other: Self) {
        self.direct.extend(other.direct);
        self.encoded.extend(other.encoded);
        self.routers.extend(other.routers);
    }
}

impl ChipView {
    /// Adds the state of other chips.
    pub fn add(&mut self, other: &Self) {
        let each = |own: &mut [u64], other: &[u64]| {
            for (own, other) in own.iter_mut().zip(other) {
                *own += *other;
            }
        };
        each(&mut self.phits_by_stage, &other.phits_by_stage);
        each(&mut self.stalls, &other.stalls);
        each(&mut self.discarded, &other.discarded);
        // A count may be below zero: a packet in flight may have changed its path since it was
        // counted.
        for (own, other) in self.choices.iter_mut().zip(&other.choices) {
            *own = own.wrapping_add(*other);
        }
        self.phit_hops += other.phit_hops;
        self.overflows += other.overflows;
        self.rule_violations += other.rule_violations;
        self.refused += other.refused;
    }
}

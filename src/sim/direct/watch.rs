//! Snapshots of a simulation while it runs.
//!
//! Taking them changes nothing: a watched run takes the same course, cycle by cycle.

use std::collections::BTreeMap;

use super::model::{CycleModel, DirectModel as _, DirectRouter};
use super::summary::{EndName, PartSnapshot};
use crate::device::PipelineReport;
use crate::device::pipeline::Stage;
use crate::link::{LinkView, MAX_VCS, NodeLink};
use crate::net::{End, Network as _, NodeRef};

/// The state of a network between two cycles.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The next cycle.
    pub cycle: u64,
    /// Link ends: A and B of the first link, of the second, and so on. `None` where the state is
    /// unknown.
    pub ends: Vec<Option<EndSnapshot>>,
    /// Contents of the routers' stages, with the router's number.
    pub routers: Vec<(u32, PipelineReport)>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndSnapshot {
    /// Whether the end accepts packets.
    pub up: bool,
    /// Phits sent, or frames on encoded links.
    pub carried: u64,
    /// Frames received, on encoded links.
    pub received: Option<u64>,
    /// Units sent for the first time.
    pub sent: u64,
    pub resent: u64,
    /// Units received with an invalid check.
    pub bad_checks: u64,
    /// Unacknowledged units.
    pub window: u64,
    /// Number of lanes received on and sent on, where links have lanes.
    pub lanes: [u32; 2],
    /// Credits left, by virtual channel.
    pub credits: Vec<u32>,
    /// Credits left when nothing is in flight, by virtual channel.
    pub offers: Vec<u32>,
}

/// Receives the snapshots.
pub type Watcher = Box<dyn FnMut(Snapshot)>;

/// A watcher with its schedule.
pub(crate) struct Watch {
    /// Cycles between two snapshots.
    every: u64,
    /// Cycle at which the next snapshot is due.
    next: u64,
    /// Index of each link end.
    indices: BTreeMap<EndName, usize>,
    ends: usize,
    watcher: Watcher,
}

impl Watch {
    /// A watcher of a network, called every `every` cycles (at least 1).
    pub(crate) fn new<M: CycleModel>(topology: &M::Topology, every: u64, watcher: Watcher) -> Self {
        let mut indices = BTreeMap::new();
        for link in 0..topology.link_count() {
            let (a, b) = topology.ends(link);
            for (side, end) in [a, b].into_iter().enumerate() {
                let name = end_name::<M>(topology, end);
                indices.extend(name.map(|name| (name, 2 * link + side)));
            }
        }
        Self {
            every: every.max(1),
            next: 0,
            indices,
            ends: 2 * topology.link_count(),
            watcher,
        }
    }

    /// Cycles from `cycle` to the next snapshot; zero if it is due.
    pub(crate) fn due_in(&self, cycle: u64) -> u64 {
        self.next.saturating_sub(cycle)
    }

    /// Passes a snapshot of the network, before cycle `cycle`, to the watcher.
    pub(crate) fn pass_snapshot(
        &mut self,
        cycle: u64,
        of: PartSnapshot,
        is_broken: impl Fn(u32) -> bool,
    ) {
        self.next = cycle - cycle % self.every + self.every;
        let mut ends = vec![None; self.ends];
        for ((link, is_b), end) in of.encoded {
            let index = 2 * link as usize + usize::from(is_b);
            if let Some(slot) = ends.get_mut(index) {
                *slot = Some(end);
            }
        }
        for (name, end) in of.direct {
            if let Some(&index) = self.indices.get(&name) {
                ends[index] = Some(end);
            }
        }
        for (index, end) in ends.iter_mut().enumerate() {
            if let Some(end) = end {
                end.up &= !is_broken(index as u32 / 2);
            }
        }
        (self.watcher)(Snapshot {
            cycle,
            ends,
            routers: of.routers,
        });
    }
}

/// The name of a link end; `None` if a topology's NIC lacks that port.
pub(crate) fn end_name<M: CycleModel>(topology: &M::Topology, end: End) -> Option<EndName> {
    match end.node {
        NodeRef::Chip(chip) => Some(EndName::Port(chip, end.port)),
        NodeRef::Processor(nic) => M::terminal(topology, nic, end.port).map(EndName::Terminal),
    }
}

pub(crate) fn of_encoded(end: &impl LinkView) -> EndSnapshot {
    let (account, counters) = (end.account(), end.counters());
    EndSnapshot {
        up: account.active,
        carried: counters.tx_frames,
        received: Some(counters.rx_frames),
        sent: end.sent(),
        resent: end.resent(),
        bad_checks: end.bad_checks(),
        window: account.unacknowledged,
        lanes: [end.rx_lanes(), end.tx_lanes()].map(u8::count_ones),
        credits: account.credits,
        offers: account.offers,
    }
}

/// The stages of a router with direct links.
pub(crate) fn pipeline_of<M: CycleModel>(router: &impl DirectRouter<M>) -> PipelineReport {
    let names = <M::End as NodeLink>::VC_NAMES;
    let mut input = Stage::inside("input buffer", "phits", "port").channels(names);
    let mut ports = 0;
    for port in (0..M::PORTS).filter(|&port| router.peer(port).is_some()) {
        ports |= 1 << port;
        let account = router.account(port);
        let slots = account.slots.unwrap_or([M::Direct::CREDITS; MAX_VCS]);
        input.capacity.resize(names.len(), 0);
        // Longer links have larger buffers: report the capacity of the largest.
        for (room, &count) in input.capacity.iter_mut().zip(&slots) {
            *room = (*room).max(count.into());
        }
        let queued = account.queued[..names.len()].iter();
        input.holds(port, queued.map(|&queued| queued.into()));
    }
    input.stalls = Some(router.view().stalls[0]);
    let mut stages = vec![input];
    stages.extend(router.stages(ports));
    PipelineReport { stages }
}

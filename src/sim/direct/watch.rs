//! Snapshots of a simulation while it runs.
//!
//! Taking them changes nothing: a watched run takes the same course, cycle by cycle.

use std::collections::BTreeMap;

use super::model::{CycleModel, DirectModel as _, DirectRouter, MAX_VCS, Terminal as _};
use super::partition::Partition;
use crate::device::pipeline::Stage;
use crate::device::{LinkEnd, LinkView, PipelineReport};
use crate::net::{Network as _, NodeRef};

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

/// The state of a link end.
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
    /// Units resent.
    pub resent: u64,
    /// Units received with an invalid check.
    pub bad_checks: u64,
    /// Unacknowledged units.
    pub window: u64,
    /// Number of lanes received on and sent on, where links have lanes.
    pub lanes: [u32; 2],
    /// Credits left, by virtual channel.
    pub credits: Vec<u32>,
    /// Credits left when nothing is under way, by virtual channel.
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
    /// Index of each link end: by chip and port, and by terminal.
    ports: BTreeMap<(u32, u8), usize>,
    terminals: BTreeMap<u64, usize>,
    ends: usize,
    tell: Watcher,
}

impl Watch {
    /// A watcher of a network, called every `every` cycles (at least 1).
    pub(crate) fn new<M: CycleModel>(topology: &M::Topology, every: u64, tell: Watcher) -> Self {
        let (mut ports, mut terminals) = (BTreeMap::new(), BTreeMap::new());
        for link in 0..topology.link_count() {
            let (a, b) = topology.ends(link);
            for (side, end) in [a, b].into_iter().enumerate() {
                let place = 2 * link + side;
                match end.node {
                    NodeRef::Chip(chip) => {
                        ports.insert((chip, end.port), place);
                    }
                    NodeRef::Processor(nic) => {
                        let number = M::terminal(topology, nic, end.port);
                        terminals.extend(number.map(|number| (number, place)));
                    }
                }
            }
        }
        Self {
            every: every.max(1),
            next: 0,
            ports,
            terminals,
            ends: 2 * topology.link_count(),
            tell,
        }
    }

    /// Cycles from `cycle` to the next snapshot.
    pub(crate) fn due_in(&self, cycle: u64) -> u64 {
        self.next.saturating_sub(cycle)
    }

    /// Passes a snapshot to the watcher, if one is due.
    pub(crate) fn look<M: CycleModel>(
        &mut self,
        cycle: u64,
        partitions: &[Partition<M>],
        is_broken: impl Fn(u32) -> bool,
    ) {
        if cycle < self.next {
            return;
        }
        self.next = cycle - cycle % self.every + self.every;
        let mut shot = Snapshot {
            cycle,
            ends: vec![None; self.ends],
            routers: Vec::new(),
        };
        for partition in partitions {
            partition.each_encoded_end(|link, is_b, end| {
                let place = 2 * link as usize + usize::from(is_b);
                if let Some(slot) = shot.ends.get_mut(place) {
                    *slot = Some(of_encoded(end));
                }
            });
            partition.each_pipeline(|chip, report| shot.routers.push((chip, report)));
            self.direct(partition, &mut shot);
        }
        for (place, end) in shot.ends.iter_mut().enumerate() {
            if let Some(end) = end {
                end.up &= !is_broken(place as u32 / 2);
            }
        }
        (self.tell)(shot);
    }

    /// Adds the ends of direct links.
    fn direct<M: CycleModel>(&self, partition: &Partition<M>, shot: &mut Snapshot) {
        for (router, &chip) in partition.routers.iter().zip(&partition.chips) {
            for (port, &sent) in router.sent().iter().enumerate() {
                if let Some(&place) = self.ports.get(&(chip, port as u8)) {
                    let account = router.account(port);
                    let vcs = M::Direct::VCS;
                    let offers = account.places.unwrap_or([M::Direct::CREDITS; MAX_VCS]);
                    shot.ends[place] = Some(EndSnapshot {
                        up: true,
                        carried: sent,
                        sent,
                        credits: account.credits[..vcs].to_vec(),
                        offers: offers[..vcs].to_vec(),
                        ..EndSnapshot::default()
                    });
                }
            }
        }
        if partition.is_encoded() {
            return;
        }
        for terminal in &partition.terminals {
            let common = terminal.common();
            if let Some(&place) = self.terminals.get(&common.number) {
                shot.ends[place] = Some(EndSnapshot {
                    up: common.is_up,
                    carried: common.sent_phits,
                    sent: common.sent_phits,
                    ..EndSnapshot::default()
                });
            }
        }
    }
}

fn of_encoded(end: &impl LinkView) -> EndSnapshot {
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
    let names = <M::End as LinkEnd>::VC_NAMES;
    let mut input = Stage::inside("input buffer", "phits", "port").channels(names);
    let mut ports = 0;
    for port in (0..M::PORTS).filter(|&port| router.peer(port).is_some()) {
        ports |= 1 << port;
        let account = router.account(port);
        let places = account.places.unwrap_or([M::Direct::CREDITS; MAX_VCS]);
        input.capacity.resize(names.len(), 0);
        // Longer links have larger buffers: report the capacity of the largest.
        for (room, &place) in input.capacity.iter_mut().zip(&places) {
            *room = (*room).max(place.into());
        }
        let queued = account.queued[..names.len()].iter();
        input.holds(port, queued.map(|&queued| queued.into()));
    }
    input.stalls = Some(router.view().stalls[0]);
    let mut stages = vec![input];
    stages.extend(router.stages(ports));
    PipelineReport { stages }
}

//! How a simulation stands at one moment, for those who look on while it runs.
//!
//! Looking changes nothing: a run that is watched takes the same course, cycle by cycle.

use std::collections::BTreeMap;

use super::model::{CycleModel, DirectModel as _, DirectRouter, MAX_VCS, Terminal as _};
use super::partition::Partition;
use crate::device::pipeline::Stage;
use crate::device::{LinkEnd, LinkView, PipelineReport};
use crate::net::{Network as _, NodeRef};

/// How all stands between two cycles.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The next cycle.
    pub cycle: u64,
    /// The ends of links: A and B of the first link, of the second, and so on. `None` where nothing
    /// is known.
    pub ends: Vec<Option<EndSnapshot>>,
    /// What is in the stages of routers, by their numbers.
    pub routers: Vec<(u32, PipelineReport)>,
}

/// How an end of a link stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndSnapshot {
    /// Whether packets can go.
    pub up: bool,
    /// Phits that it has sent, or frames on links that are encoded.
    pub carried: u64,
    /// Frames that have come, on links that are encoded.
    pub received: Option<u64>,
    /// Units sent for the first time, sent again, and that came with a wrong check.
    pub sent: u64,
    /// See there.
    pub resent: u64,
    /// See there.
    pub bad_checks: u64,
    /// Units that are not acknowledged.
    pub window: u64,
    /// Lanes received on, and sent on, where links have lanes.
    pub lanes: [u32; 2],
    /// Credits left, and what they are when nothing is under way, by virtual channel.
    pub credits: Vec<u32>,
    /// See there.
    pub offers: Vec<u32>,
}

/// Who is told.
pub type Watcher = Box<dyn FnMut(Snapshot)>;

/// A watcher, and what it takes to tell it.
pub(crate) struct Watch {
    /// Cycles between two snapshots.
    every: u64,
    /// When the next one is due.
    next: u64,
    /// Where the ends of links are among all: by chip and port, and by terminal.
    ports: BTreeMap<(u32, u8), usize>,
    terminals: BTreeMap<u64, usize>,
    ends: usize,
    tell: Watcher,
}

impl Watch {
    /// A watcher that is told every so many cycles, at least 1, of a network.
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

    /// Tells how all stands, if it is time to.
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

    /// The ends of links that hand phits over.
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

/// The stages of a router whose links hand phits over.
pub(crate) fn pipeline_of<M: CycleModel>(router: &impl DirectRouter<M>) -> PipelineReport {
    let names = <M::End as LinkEnd>::VC_NAMES;
    let mut input = Stage::inside("input buffer", "phits", "port").channels(names);
    let mut ports = 0;
    for port in (0..M::PORTS).filter(|&port| router.peer(port).is_some()) {
        ports |= 1 << port;
        let account = router.account(port);
        let places = account.places.unwrap_or([M::Direct::CREDITS; MAX_VCS]);
        input.capacity.resize(names.len(), 0);
        // Longer links have larger buffers: the stage has the room of its largest.
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

//! The load of ports: three metrics, one of this end and two of the other end (XC white paper,
//! "Aries Router").
//!
//! * *near end*: flits routed to a port but not sent yet;
//! * *far end*, estimated: flits that the other end has acknowledged without returning their
//!   credits (credit round trips of Kim et al., *Technology-Driven, Highly-Scalable Dragonfly
//!   Topology*, the white paper's reference 1), which are the contents of the other end's input
//!   queue. If flits in flight counted, a blue link would look more loaded the longer its cable is,
//!   and packets would take detours on an idle machine;
//! * *downstream*: the neighbour's own load in its last tenth flit.
//!
//! The quantisation and combination of the metrics are not published. Here each is scaled to 4
//! bits, the size of the chip's congestion values, and the largest is the port's load: a path is as
//! loaded as its narrowest point. (With a sum, a link that is full at both ends would count as
//! worse than an idle link that leads to it, and in a thin network packets would detour over the
//! idle links without benefit.)

use super::grain::Items;
use super::pipeline::{LOAD_CYCLES, NETWORK, TILES};
use super::tiles::{Ports, Tiles};
use crate::link::SetProfile;
use crate::route::registers::{FIRST_NIC_PORT, NETWORK_PORTS, NICS, PortKind};
use phitwire::kit::below;

/// The largest value of each metric.
const MAX: u32 = 15;

/// Flits per step of each metric, so that the largest load means full queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadSteps {
    pub near: u32,
    pub far: u32,
    /// The load reported to neighbours.
    pub reported: u32,
}

impl LoadSteps {
    /// The chip's steps. The far end is graded over all 1,024 flits of its input buffer. At the
    /// near end, a step is a leaving packet of 14 flits.
    pub const PAPER: Self = Self {
        near: 10,
        far: 64,
        reported: 24,
    };

    /// Steps for links with the depths of `sets`: the chip's steps, scaled by the ratio of the
    /// depths. At the near end, flits can queue in the tiles, which have the chip's depth, and in
    /// the link; at the far end, in the input buffer.
    pub fn of(sets: &SetProfile) -> Self {
        let paper = SetProfile::paper();
        let (near, far) = (Self::PAPER.near * MAX, paper.input_flits());
        let waiting = sets.backlog_flits.saturating_sub(paper.backlog_flits);
        let scaled = |flits: u32, by: u32, of: u32| (flits * by).div_ceil(of).max(1);
        Self {
            near: scaled(Self::PAPER.near, near + waiting, near),
            far: scaled(Self::PAPER.far, sets.input_flits(), far),
            reported: scaled(Self::PAPER.reported, near + waiting, near),
        }
    }
}

/// Converts a metric to steps, 0 to 15.
#[inline]
fn graded(flits: u32, step: u32) -> u32 {
    // Fast path: most metrics are below one step, and a division costs about ten instructions.
    if flits < step {
        return 0;
    }
    (flits / step).min(MAX)
}

#[derive(Debug)]
pub(super) struct Loads {
    steps: LoadSteps,
    /// Flits in row and column buffers, and the missing flits of the packets there, by output tile.
    committed: [u16; TILES],
    used: u64,
    /// Ports whose link may have unsent flits.
    waiting: u64,
    /// The load last reported to the neighbours behind ports of each kind.
    reported: [u8; 4],
    /// Whether the load may have changed since the last computation.
    stale: bool,
}

impl Loads {
    pub(super) const fn new() -> Self {
        Self {
            steps: LoadSteps::PAPER,
            committed: [0; TILES],
            used: 0,
            waiting: 0,
            reported: [0; 4],
            stale: false,
        }
    }

    /// Records that a packet of `flits` flits will leave by `tile`.
    #[inline]
    pub(super) fn commit(&mut self, tile: usize, flits: u8) {
        self.committed[tile] += u16::from(flits);
        self.used |= 1 << tile;
        self.stale = true;
    }

    /// Records that `flits` flits have left by `tile`.
    #[inline]
    pub(super) fn leave(&mut self, tile: usize, flits: u8) {
        self.committed[tile] -= u16::from(flits);
        if self.committed[tile] == 0 {
            self.used &= !(1 << tile);
        }
        self.stale = true;
    }

    /// Records that an item was handed to the link of `port`.
    #[inline]
    pub(super) fn hand_over(&mut self, port: usize) {
        self.waiting |= 1 << port;
    }

    #[inline]
    pub(super) fn committed(&self, tile: usize) -> u16 {
        self.committed[tile]
    }

    /// Records a change of link states or tables.
    #[inline]
    pub(super) fn ways_changed(&mut self) {
        self.stale = true;
    }

    /// Records that a link sent something, so that the reported load may be too high.
    #[inline]
    pub(super) fn output_changed(&mut self) {
        self.stale |= self.reported != [0; 4];
    }

    /// When to compute the load next: every tenth cycle while it may change.
    #[inline]
    pub(super) fn next_update(&self, now: u64) -> Option<u64> {
        self.stale.then(|| now.next_multiple_of(LOAD_CYCLES))
    }

    #[inline]
    fn near<P: Ports>(&self, port: usize, io: &P) -> u32 {
        u32::from(self.committed[port]) + io.backlog_flits(port)
    }

    /// The load of a network port, 0 to 15.
    #[inline]
    pub(super) fn of<P: Ports>(&self, port: u8, io: &P) -> u32 {
        let port = below::<TILES>(usize::from(port));
        let (backlog, far, peer) = io.loads(port);
        let near = graded(u32::from(self.committed[port]) + backlog, self.steps.near);
        let far = graded(far, self.steps.far);
        near.max(far).max(peer.into()).min(MAX)
    }
}

impl<I: Items> Tiles<I> {
    pub fn set_load_steps(&mut self, steps: LoadSteps) {
        self.loads.steps = steps;
        self.loads.ways_changed();
    }

    /// Computes the load that this router reports to its neighbours, and passes changes to the
    /// links.
    ///
    /// A neighbour gets the near-end load of the ports by which its packets may continue in the
    /// network, which it cannot measure itself. Black and blue links follow a green link, blue
    /// links follow a black one, and green and black links follow a blue one. Each kind counts with
    /// its mean, rounded up, and the largest of the kinds is reported. (With the largest of all
    /// ports, every router with one full link would appear full on all its paths.) A dead port that
    /// is still in the tables makes its kind full, so that adaptive packets avoid a router that
    /// cannot forward them until new tables are computed.
    pub(super) fn update_loads<P: Ports>(&mut self, io: &mut P) {
        self.loads.stale = false;
        let mut sums = [0u32; 4];
        let mut used = (self.loads.used | self.loads.waiting) & NETWORK;
        while used != 0 {
            let port = used.trailing_zeros() as usize;
            used &= used - 1;
            if io.backlog_flits(port) == 0 {
                self.loads.waiting &= !(1 << port);
            }
            let load = graded(self.loads.near(port, io), self.loads.steps.reported);
            sums[self.inputs.kind(port) as usize] += load;
        }
        let mut means = [0u32; 4];
        for kind in PortKind::ALL {
            let ports = self.routes.ports_of(kind).count_ones().max(1);
            means[kind as usize] = sums[kind as usize].div_ceil(ports);
        }
        let mut dead = self.routes.named_ports() & !self.live & NETWORK;
        while dead != 0 {
            let port = dead.trailing_zeros() as usize;
            dead &= dead - 1;
            means[self.inputs.kind(port) as usize] = MAX;
        }
        let [_, green, black, blue] = means;
        let mut loads = [0; 4];
        loads[PortKind::Processor as usize] = green.max(black).max(blue) as u8;
        loads[PortKind::Green as usize] = black.max(blue) as u8;
        loads[PortKind::Black as usize] = blue as u8;
        loads[PortKind::Blue as usize] = green.max(black) as u8;
        if loads == self.loads.reported {
            return;
        }
        for kind in PortKind::ALL {
            let load = loads[kind as usize];
            if load == self.loads.reported[kind as usize] {
                continue;
            }
            self.counters.load_changes += 1;
            let mut ports = self.routes.ports_of(kind);
            while ports != 0 {
                let port = ports.trailing_zeros() as usize;
                ports &= ports - 1;
                io.set_load(port, load);
            }
        }
        self.loads.reported = loads;
    }

    /// The load last reported to the neighbours behind ports of `kind`, 0 to 15.
    pub fn reported_load(&self, kind: PortKind) -> u8 {
        self.loads.reported[kind as usize]
    }

    /// Flits in the core that will leave by `port` or, for a NIC port, by the processor tiles of
    /// its pair.
    pub fn committed_flits(&self, port: usize) -> u32 {
        if port < NETWORK_PORTS {
            return self.loads.committed[port].into();
        }
        let first = FIRST_NIC_PORT + below::<NICS>(port - FIRST_NIC_PORT) / 2 * 4;
        (first..first + 4)
            .map(|tile| u32::from(self.loads.committed[tile]))
            .sum()
    }
}

//! The load of ports: three metrics, one here and two of the other end (white paper, "Aries
//! Router").
//!
//! * *near end*: flits that have been decided to leave by a port and have not been sent;
//! * *far end*, estimated: flits that the other end has acknowledged and for which no credit has
//!   come back (credit round trips of Kim et al., *Technology-Driven, Highly-Scalable Dragonfly
//!   Topology*, the white paper's reference 1): what lies in the other end's input queue. With
//!   those on their way counted, a blue link would look the more loaded the longer its cable is,
//!   and packets would go round on an idle machine;
//! * *downstream*: what the neighbour said of itself in the last tenth flit.
//!
//! How they are quantised and combined is not published. Each is brought to 4 bits, the size of the
//! chip's congestion values, and the largest is the port's load: a way is as loaded as its
//! narrowest place. (Added up, a link that is full at both ends would be worse than an idle one
//! that leads to it, and where the network is thin, packets would go round by way of the idle ones
//! to no avail.)

use super::grain::Items;
use super::pipeline::{LOAD_CYCLES, NETWORK, TILES};
use super::tiles::{Ports, Tiles};
use crate::link::SetProfile;
use crate::route::registers::{FIRST_NIC_PORT, NETWORK_PORTS, NICS, PortKind};
use phitwire::kit::below;

/// The largest of each metric.
const MAX: u32 = 15;

/// Flits of a step of each metric, so that a load is graded over what can queue up there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadSteps {
    /// Near end.
    pub near: u32,
    /// Far end.
    pub far: u32,
    /// The load that neighbours are told.
    pub told: u32,
}

impl LoadSteps {
    /// Those of the chip. The far end is graded over the whole of its input buffer of 1,024 flits;
    /// a packet of 14 flits that leaves is one step at the near end.
    pub const PAPER: Self = Self {
        near: 10,
        far: 64,
        told: 24,
    };

    /// Those of links with the depths of `sets`: the chip's, as many times as its depths go into
    /// these. What can queue up near a port is what lies in the tiles, which are the chip's, and
    /// what waits in the link; far from it is the other end's input buffer.
    pub fn of(sets: &SetProfile) -> Self {
        let paper = SetProfile::paper();
        let (near, far) = (Self::PAPER.near * MAX, paper.input_flits());
        let waiting = sets.backlog_flits.saturating_sub(paper.backlog_flits);
        let scaled = |flits: u32, by: u32, of: u32| (flits * by).div_ceil(of).max(1);
        Self {
            near: scaled(Self::PAPER.near, near + waiting, near),
            far: scaled(Self::PAPER.far, sets.input_flits(), far),
            told: scaled(Self::PAPER.told, near + waiting, near),
        }
    }
}

/// A metric in steps, 0 to 15.
#[inline]
fn graded(flits: u32, step: u32) -> u32 {
    // Most metrics are below one step, and a division costs about ten instructions.
    if flits < step {
        return 0;
    }
    (flits / step).min(MAX)
}

/// What is known of the loads here.
#[derive(Debug)]
pub(super) struct Loads {
    steps: LoadSteps,
    /// Flits in row and column buffers, and still to come of the packets in them, by the output
    /// tile that they will leave by.
    committed: [u16; TILES],
    /// Tiles for which there are any.
    used: u64,
    /// Ports whose link may have flits that it has not sent.
    waiting: u64,
    /// What neighbours behind ports of each kind were told.
    told: [u8; 4],
    /// Whether something may have changed since the last computation.
    stale: bool,
}

impl Loads {
    pub(super) const fn new() -> Self {
        Self {
            steps: LoadSteps::PAPER,
            committed: [0; TILES],
            used: 0,
            waiting: 0,
            told: [0; 4],
            stale: false,
        }
    }

    /// A packet of `flits` flits will leave by `tile`.
    #[inline]
    pub(super) fn commit(&mut self, tile: usize, flits: u8) {
        self.committed[tile] += u16::from(flits);
        self.used |= 1 << tile;
        self.stale = true;
    }

    /// So many flits have left by `tile`.
    #[inline]
    pub(super) fn leave(&mut self, tile: usize, flits: u8) {
        self.committed[tile] -= u16::from(flits);
        if self.committed[tile] == 0 {
            self.used &= !(1 << tile);
        }
        self.stale = true;
    }

    /// Something was handed to the link of `port`.
    #[inline]
    pub(super) fn hand_over(&mut self, port: usize) {
        self.waiting |= 1 << port;
    }

    #[inline]
    pub(super) fn committed(&self, tile: usize) -> u16 {
        self.committed[tile]
    }

    /// A link came or went, or tables changed.
    #[inline]
    pub(super) fn ways_changed(&mut self) {
        self.stale = true;
    }

    /// The link of some port sent something: what was told may have become too much.
    #[inline]
    pub(super) fn output_changed(&mut self) {
        self.stale |= self.told != [0; 4];
    }

    /// When the load is to be computed next: in every tenth cycle, while it may change.
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
    /// Counts loads in these steps from now on.
    pub fn set_load_steps(&mut self, steps: LoadSteps) {
        self.loads.steps = steps;
        self.loads.ways_changed();
    }

    /// Computes the load of this router as its neighbours see it, and hands it to the links where
    /// it changed.
    ///
    /// A neighbour is told the near-end load of the ports by which its packets may go on in the
    /// network: that is what it cannot know itself. After a green link come black and blue ones,
    /// after a black link blue ones, after a blue link green and black ones; of each kind it is the
    /// mean, rounded up, and the largest of the kinds. (The largest of all ports would make every
    /// router look full that has one full link, to all ways by it.) A dead port that tables
    /// still name makes its kind full, so that adaptive packets leave a router that cannot take
    /// them on before anybody has computed new tables.
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
            let load = graded(self.loads.near(port, io), self.loads.steps.told);
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
        let mut told = [0; 4];
        told[PortKind::Processor as usize] = green.max(black).max(blue) as u8;
        told[PortKind::Green as usize] = black.max(blue) as u8;
        told[PortKind::Black as usize] = blue as u8;
        told[PortKind::Blue as usize] = green.max(black) as u8;
        if told == self.loads.told {
            return;
        }
        for kind in PortKind::ALL {
            let load = told[kind as usize];
            if load == self.loads.told[kind as usize] {
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
        self.loads.told = told;
    }

    /// The load that neighbours behind ports of `kind` were told last, 0 to 15.
    pub fn told_load(&self, kind: PortKind) -> u8 {
        self.loads.told[kind as usize]
    }

    /// Flits inside the core that will leave by `port`; of a NIC port, by the processor tiles of
    /// its pair.
    pub fn committed_flits(&self, port: usize) -> u32 {
        if port < NETWORK_PORTS {
            return self.loads.committed[port].into();
        }
        let first = FIRST_NIC_PORT + (port - FIRST_NIC_PORT) % NICS / 2 * 4;
        (first..first + 4)
            .map(|tile| u32::from(self.loads.committed[tile]))
            .sum()
    }
}

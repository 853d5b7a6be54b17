//! Links that are slower than their chip: phits that a router sends in consecutive cycles wait
//! until the lanes are free.

use std::collections::VecDeque;

use phitwire_framing::yarc::packet::Vc;

use super::length::Pace;
use crate::route::registers::PORTS;
use phitwire::kit::bits;

/// A router may begin the next packet this many cycles before a link is free, so that arbitration
/// leaves no gap.
const AHEAD: u64 = 8;

/// A waiting phit: the cycle in which it leaves, its bits and its virtual channel.
type Waiting = (u64, u32, Vc);

/// The slow links of a chip. At most a packet and a few phits wait at each.
#[derive(Clone, Debug)]
pub(super) struct Slow {
    paces: [Pace; PORTS],
    /// Phits that leave in a later window than that in which they were sent.
    waiting: [VecDeque<Waiting>; PORTS],
    held: u64,
    /// Busy ports for which the router must be woken when they become free.
    busy: u64,
}

impl Slow {
    pub(super) fn new() -> Box<Self> {
        Box::new(Self {
            paces: [Pace::default(); PORTS],
            waiting: [const { VecDeque::new() }; PORTS],
            held: 0,
            busy: 0,
        })
    }

    pub(super) fn connect(&mut self, port: usize, pace: Pace) {
        self.paces[port] = pace;
    }

    pub(super) fn is_slow(&self, port: usize) -> bool {
        self.paces[port].is_slow()
    }

    /// Whether a packet may begin. Always true on a link that is not slow.
    pub(super) fn can_begin(&self, port: usize, now: u64) -> bool {
        !self.is_slow(port) || self.paces[port].next() <= now + AHEAD
    }

    /// Gives a slow link a phit; returns the cycle in which it leaves, if that is before `end`.
    pub(super) fn push(
        &mut self,
        port: usize,
        phit: u32,
        vc: Vc,
        now: u64,
        end: u64,
    ) -> Option<u64> {
        self.busy |= 1 << port;
        let leaves = self.paces[port].send(now);
        if leaves < end {
            return Some(leaves);
        }
        self.held |= 1 << port;
        self.waiting[port].push_back((leaves, phit, vc));
        None
    }

    /// The next phit of a port that leaves before `end`.
    pub(super) fn pop(&mut self, port: usize, end: u64) -> Option<(u64, u32)> {
        let &(leaves, phit, _) = self.waiting[port].front().filter(|first| first.0 < end)?;
        self.waiting[port].pop_front();
        if self.waiting[port].is_empty() {
            self.held &= !(1 << port);
        }
        Some((leaves, phit))
    }

    /// Ports that became free, for which the router must be woken in this cycle.
    pub(super) fn freed(&mut self, now: u64) -> u64 {
        let mut freed = 0;
        for port in bits(self.busy) {
            freed |= u64::from(self.can_begin(port, now)) << port;
        }
        self.busy &= !freed;
        freed
    }

    /// Whether a link is busy or phits wait, so that the links must run even without new input.
    pub(super) const fn is_busy(&self) -> bool {
        (self.busy | self.held) != 0
    }

    pub(super) const fn ports(&self) -> u64 {
        self.held
    }

    /// Number of phits that wait at a port, per virtual channel.
    pub(super) fn waiting(&self, port: usize) -> [u32; 2] {
        let mut counts = [0; 2];
        for &(_, _, vc) in &self.waiting[port] {
            counts[vc.index()] += 1;
        }
        counts
    }
}

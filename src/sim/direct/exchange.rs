//! Contents of the links: the arrivals at every lane of a port in one window.
//!
//! A window is as long as the shortest link takes. Phits and credits sent over such a link in one
//! window arrive in the next one, in the cycle of the same number. One set of slots is read while
//! the other is written, so the order in which nodes run a window does not matter. A port behind a
//! longer link, or in another [part](super::DirectPart), has a ghost slot here; at the end of the
//! window its content is packed and kept until the window in which it arrives, so only data in
//! flight takes memory.

use core::ops::Range;

use prefetch_index::prefetch_index;

use super::in_flight::InFlight;
use super::model::Lanes;
use crate::kit::bits;

/// Arrivals at one link end in a window; the phits are stored separately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrivals<L: Lanes> {
    /// Cycles of the window in which a phit arrives, as a bit mask.
    pub phits: u64,
    /// Credits for the other direction.
    pub credits: L::Credits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A chip of this partition, by number, and one of its lanes.
    Chip(usize, usize),
    /// A terminal of this partition, by number.
    Terminal(usize),
    /// A ghost, by number.
    Ghost(usize),
}

/// One of the two sets of slots.
#[derive(Clone, Debug, Default)]
pub struct Set<L: Lanes> {
    pub arrivals: Vec<Arrivals<L>>,
    /// A window's worth of phits per slot.
    pub phits: Vec<L::Phit>,
    /// Lanes of each chip at which something arrives.
    pub chip_ports: Vec<u64>,
    pub(crate) due_chips: Bits,
    pub(crate) due_terminals: Bits,
}

/// The slots of a partition.
#[derive(Clone, Debug)]
pub struct Exchange<L: Lanes> {
    pub window: usize,
    chips: usize,
    terminals: usize,
    /// Number of this partition.
    own: u32,
    /// Number of the window that is read.
    now: u64,
    /// Destination of each ghost's content.
    ghosts: Vec<Ghost>,
    pub read: Set<L>,
    pub write: Set<L>,
    /// Ghosts with content.
    filled: Vec<u32>,
    /// Arrivals of later windows, by window modulo their number.
    later: Vec<Batch<L>>,
}

/// A slot elsewhere: its partition and number there, and the link's latency in cycles.
#[derive(Clone, Copy, Debug)]
struct Ghost {
    peer: (u32, u32),
    latency: u32,
}

/// Arrivals in packed form: those of a later window, or the mail of another part.
#[derive(Clone, Debug, Default)]
pub struct Batch<L: Lanes> {
    /// Window, slot and its arrivals.
    pub(super) slots: Vec<(u64, u32, Arrivals<L>)>,
    /// The phits of all slots, in cycle order.
    pub(super) phits: Vec<L::Phit>,
}

/// Delays the cycles of a mask by `by`: those in the same window of `window` cycles, and those in
/// the next.
#[inline]
pub fn delay_cycles(cycles: u64, by: usize, window: usize) -> [u64; 2] {
    if by == 0 {
        return [cycles, 0];
    }
    [cycles << by & all_cycles(window), cycles >> (window - by)]
}

/// The cycles of a window of `window` cycles, at most 64, as a mask.
#[inline]
pub const fn all_cycles(window: usize) -> u64 {
    u64::MAX >> (64 - window)
}

/// Prefetches the cache lines of these elements.
#[inline]
fn fetch<T>(of: &[T], elements: Range<usize>) {
    let by_line = const {
        assert!(size_of::<T>() > 0 && size_of::<T>() <= 64);
        64 / size_of::<T>()
    };
    for element in elements.clone().step_by(by_line) {
        prefetch_index(of, element);
    }
    prefetch_index(of, elements.end - 1);
}

/// A set of small numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    pub(crate) fn new(size: usize) -> Self {
        Self(vec![0; size.div_ceil(64)])
    }
    #[inline]
    pub(crate) fn set(&mut self, i: usize) {
        self.0[i / 64] |= 1 << (i % 64);
    }
    pub(crate) fn words(&self) -> usize {
        self.0.len()
    }
    /// Takes all members in 64-bit word `word`.
    #[inline]
    pub(crate) fn take_word(&mut self, word: usize) -> u64 {
        core::mem::take(&mut self.0[word])
    }
}

impl<L: Lanes> Exchange<L> {
    pub(crate) fn new(own: u32, window: usize, chips: usize, terminals: usize) -> Self {
        let set = || Set {
            arrivals: Vec::new(),
            phits: Vec::new(),
            chip_ports: vec![0; chips],
            due_chips: Bits::new(chips),
            due_terminals: Bits::new(terminals),
        };
        Self {
            window,
            chips,
            terminals,
            own,
            now: 0,
            ghosts: Vec::new(),
            read: set(),
            write: set(),
            filled: Vec::new(),
            later: Vec::new(),
        }
    }

    /// Prefetches the arrivals at a chip.
    #[inline]
    pub fn fetch(&self, chip: usize) {
        let first = chip * L::CHIP_LANES;
        let lanes = first..first + L::CHIP_LANES;
        fetch(&self.read.arrivals, lanes.clone());
        fetch(
            &self.read.phits,
            lanes.start * self.window..lanes.end * self.window,
        );
    }

    /// Slot of the first lane of a chip's port.
    #[inline]
    pub fn chip_slot(chip: usize, port: usize) -> u32 {
        (chip * L::CHIP_LANES + L::lanes(port).0) as u32
    }

    /// Slot of a terminal's first lane.
    #[inline]
    pub fn terminal_slot(&self, terminal: usize) -> u32 {
        (self.chips * L::CHIP_LANES + terminal * L::TERMINAL_LANES) as u32
    }

    fn own_slots(&self) -> usize {
        self.chips * L::CHIP_LANES + self.terminals * L::TERMINAL_LANES
    }

    /// Adds a slot that stands for slot `peer` (partition, slot), behind a link of `latency`
    /// cycles, at least a window.
    pub(crate) fn add_ghost(&mut self, peer: (u32, u32), latency: u32) -> u32 {
        debug_assert!(latency as usize >= self.window);
        self.ghosts.push(Ghost { peer, latency });
        (self.own_slots() + self.ghosts.len() - 1) as u32
    }

    /// Allocates all slots; to be called once, after the last ghost. `longest` is the longest
    /// link's latency in cycles.
    pub(crate) fn finish(&mut self, longest: u32) {
        let slots = self.own_slots() + self.ghosts.len();
        for set in [&mut self.read, &mut self.write] {
            set.arrivals = vec![Arrivals::default(); slots];
            set.phits = vec![L::Phit::default(); slots * self.window];
        }
        let windows = longest as usize / self.window + 2;
        self.later = vec![Batch::default(); windows];
    }

    /// The partition of a slot, and its slot there.
    pub(crate) fn peer_of(&self, slot: u32) -> (u32, u32) {
        match self.owner(slot) {
            Owner::Ghost(ghost) => self.ghosts[ghost].peer,
            Owner::Chip(..) | Owner::Terminal(_) => (self.own, slot),
        }
    }

    #[inline]
    pub(crate) fn owner(&self, slot: u32) -> Owner {
        let slot = slot as usize;
        let ports = self.chips * L::CHIP_LANES;
        let lanes = self.terminals * L::TERMINAL_LANES;
        if slot < ports {
            Owner::Chip(slot / L::CHIP_LANES, slot % L::CHIP_LANES)
        } else if slot - ports < lanes {
            Owner::Terminal((slot - ports) / L::TERMINAL_LANES)
        } else {
            Owner::Ghost(slot - ports - lanes)
        }
    }

    /// Sends `arrivals` to a slot. The caller writes its phits, before or after.
    #[inline]
    pub fn send(&mut self, slot: u32, arrivals: Arrivals<L>) {
        self.write.arrivals[slot as usize] = arrivals;
        match self.owner(slot) {
            Owner::Chip(chip, port) => {
                self.write.chip_ports[chip] |= 1 << port;
                self.write.due_chips.set(chip);
            }
            Owner::Terminal(terminal) => self.write.due_terminals.set(terminal),
            Owner::Ghost(ghost) => self.filled.push(ghost as u32),
        }
    }

    /// Ends a window: swaps the sets, and puts the arrivals for other partitions into `out`.
    pub(crate) fn turn(&mut self, out: &mut [Batch<L>]) {
        let window = self.window;
        let first = self.own_slots();
        let filled = core::mem::take(&mut self.filled);
        for &ghost in &filled {
            let Ghost { peer, latency } = self.ghosts[ghost as usize];
            let (partition, to) = peer;
            let slot = first + ghost as usize;
            let arrivals = core::mem::take(&mut self.write.arrivals[slot]);
            let phits = &self.write.phits[slot * window..(slot + 1) * window];
            let by = latency as usize % window;
            let arrives = self.now + u64::from(latency) / window as u64;
            let cycles = delay_cycles(arrivals.phits, by, window);
            let credits = L::delay_credits(&arrivals.credits, by, window);
            for (part, at) in [(0, arrives), (1, arrives + 1)] {
                let arrivals = Arrivals {
                    phits: cycles[part],
                    credits: credits[part],
                };
                if arrivals == Arrivals::default() {
                    continue;
                }
                let batch = if partition == self.own {
                    let later = self.later.len() as u64;
                    &mut self.later[(at % later) as usize]
                } else {
                    &mut out[partition as usize]
                };
                batch.slots.push((at, to, arrivals));
                // The cycles of this half before the delay: the phits are stored by these.
                let sent = match part {
                    0 => cycles[0] >> by,
                    _ => cycles[1] << (window - by),
                };
                batch.phits.extend(bits(sent).map(|cycle| phits[cycle]));
            }
        }
        self.filled = filled;
        self.filled.clear();
        core::mem::swap(&mut self.read, &mut self.write);
        self.now += 1;
        self.take_due();
    }

    /// Unpacks the arrivals of the window to be read next.
    fn take_due(&mut self) {
        let later = self.later.len() as u64;
        let slot = (self.now % later) as usize;
        if self.later[slot].slots.is_empty() {
            return;
        }
        let mut batch = core::mem::take(&mut self.later[slot]);
        let mut from = 0;
        for &(_, slot, arrivals) in &batch.slots {
            let count = arrivals.phits.count_ones() as usize;
            self.put(slot, arrivals, &batch.phits[from..from + count]);
            from += count;
        }
        batch.slots.clear();
        batch.phits.clear();
        self.later[slot] = batch;
    }

    /// Adds to a slot's arrivals in the window to be read next.
    fn put(&mut self, slot: u32, arrivals: Arrivals<L>, phits: &[L::Phit]) {
        let at = slot as usize * self.window;
        for (cycle, &phit) in bits(arrivals.phits).zip(phits) {
            self.read.phits[at + cycle] = phit;
        }
        let there = &mut self.read.arrivals[slot as usize];
        there.phits |= arrivals.phits;
        L::add_credits(&mut there.credits, &arrivals.credits);
        match self.owner(slot) {
            Owner::Chip(chip, lane) => {
                self.read.chip_ports[chip] |= 1 << lane;
                self.read.due_chips.set(chip);
            }
            Owner::Terminal(terminal) => self.read.due_terminals.set(terminal),
            Owner::Ghost(_) => unreachable!("mail addresses only slots of this partition"),
        }
    }

    /// Takes the arrivals that another partition sent in the windows that have just ended.
    pub(crate) fn receive(&mut self, batch: &mut Batch<L>) {
        let mut from = 0;
        for &(window, slot, arrivals) in &batch.slots {
            let count = arrivals.phits.count_ones() as usize;
            let phits = &batch.phits[from..from + count];
            from += count;
            if window == self.now {
                self.put(slot, arrivals, phits);
            } else {
                let later = self.later.len() as u64;
                let into = &mut self.later[(window % later) as usize];
                into.slots.push((window, slot, arrivals));
                into.phits.extend_from_slice(phits);
            }
        }
        batch.slots.clear();
        batch.phits.clear();
    }

    /// Whether the slot belongs to a link end of this partition.
    pub(super) fn owns(&self, slot: u32) -> bool {
        (slot as usize) < self.own_slots()
    }

    /// Whether mail may have arrivals for this window.
    pub(super) fn awaits(&self, window: u64) -> bool {
        let later = self.later.len() as u64;
        window
            .checked_sub(self.now)
            .is_some_and(|ahead| ahead < later)
    }

    /// Phits on links.
    pub(crate) fn phits(&self) -> u64 {
        let read = self.read.arrivals.iter().map(|a| a.phits.count_ones());
        let later = self.later.iter().map(|batch| batch.phits.len() as u64);
        read.map(u64::from).sum::<u64>() + later.sum::<u64>()
    }

    /// All phits and credits on links, for the checkers.
    pub(crate) fn in_flight(&self) -> InFlight<L> {
        let mut in_flight = InFlight::new();
        for (slot, &arrivals) in self.read.arrivals.iter().enumerate() {
            if arrivals != Arrivals::default() {
                let at = slot * self.window;
                let cycles = (0..self.window).filter(|&cycle| arrivals.phits >> cycle & 1 != 0);
                let phits = cycles.map(|cycle| self.read.phits[at + cycle]);
                in_flight.add(slot as u32, self.now, arrivals, phits);
            }
        }
        for batch in &self.later {
            let mut phits = batch.phits.iter().copied();
            for &(window, slot, arrivals) in &batch.slots {
                let count = arrivals.phits.count_ones() as usize;
                in_flight.add(slot, window, arrivals, phits.by_ref().take(count));
            }
        }
        in_flight.sort();
        in_flight
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_are_delayed_into_this_window_and_the_next() {
        assert_eq!(delay_cycles(0b1001, 0, 4), [0b1001, 0]);
        assert_eq!(delay_cycles(0b1011, 1, 4), [0b0110, 0b1]);
        assert_eq!(
            delay_cycles(u64::MAX, 24, 64),
            [u64::MAX << 24, (1 << 24) - 1]
        );
    }
}

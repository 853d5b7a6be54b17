//! What is on the links: for every port, what arrives there in one window.
//!
//! Whatever is sent in a window of as many cycles as a link takes arrives in the next one, in the cycle of
//! the same number. There are two sets of slots, one that is read and one that is written, so that
//! the order in which nodes run a window changes nothing. A port that is in another
//! [partition](super::Partition) has a ghost slot here, whose content is sent over when the window ends.

use super::blackwidow::BlackWidow;
use super::family::Parts;
use crate::sim::fabric::SentFrame;

/// What one end of a link receives in a window, its phits apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arrivals<F: Parts> {
    /// Cycles of the window in which a phit arrives, as a bit mask.
    pub phits: u64,
    /// Credits for the other direction.
    pub credits: F::Credits,
}

/// Whom a slot belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A chip of this partition, by number, and its port.
    Chip(usize, usize),
    /// A terminal of this partition, by number.
    Terminal(usize),
    /// A ghost, by number.
    Ghost(usize),
}

/// One of the two sets of slots.
#[derive(Clone, Debug, Default)]
pub(crate) struct Set<F: Parts> {
    pub(crate) arrivals: Vec<Arrivals<F>>,
    /// A window's worth of phits per slot.
    pub(crate) phits: Vec<F::Phit>,
    /// Ports of each chip at which something arrives.
    pub(crate) chip_ports: Vec<u64>,
    pub(crate) due_chips: Bits,
    pub(crate) due_terminals: Bits,
}

/// The slots of a partition.
#[derive(Clone, Debug)]
pub struct Exchange<F: Parts> {
    pub(crate) window: usize,
    chips: usize,
    terminals: usize,
    /// Where each ghost's content goes: partition and slot there.
    ghosts: Vec<(u32, u32)>,
    pub(crate) read: Set<F>,
    pub(crate) write: Set<F>,
    /// Ghosts with content.
    filled: Vec<u32>,
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
    /// Takes all members between 64 times `word` and the next word.
    #[inline]
    pub(crate) fn take_word(&mut self, word: usize) -> u64 {
        core::mem::take(&mut self.0[word])
    }
}

/// Links that go to another partition, with what is on them.
#[derive(Clone, Debug, Default)]
pub struct Mail<F: Parts = BlackWidow> {
    slots: Vec<(u32, Arrivals<F>)>,
    /// A window's worth for each slot that has phits.
    phits: Vec<F::Phit>,
    /// Frames of encoded links: number of the link, whether they go to its second end, frames.
    pub(crate) frames: Vec<(u32, bool, Vec<SentFrame>)>,
}

impl<F: Parts> Mail<F> {
    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty() && self.frames.is_empty()
    }
}

impl<F: Parts> Exchange<F> {
    pub(crate) fn new(window: usize, chips: usize, terminals: usize) -> Self {
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
            ghosts: Vec::new(),
            read: set(),
            write: set(),
            filled: Vec::new(),
        }
    }

    /// Slot of a chip's port.
    pub(crate) fn chip_slot(chip: usize, port: usize) -> u32 {
        (chip * F::PORTS + port) as u32
    }

    /// Slot of a terminal.
    pub(crate) fn terminal_slot(&self, terminal: usize) -> u32 {
        (self.chips * F::PORTS + terminal) as u32
    }

    /// A new slot that stands for a slot of another partition.
    pub(crate) fn add_ghost(&mut self, partition: u32, slot: u32) -> u32 {
        self.ghosts.push((partition, slot));
        (self.chips * F::PORTS + self.terminals + self.ghosts.len() - 1) as u32
    }

    /// Makes room for all slots; to be called once, after the last ghost.
    pub(crate) fn finish(&mut self) {
        let slots = self.chips * F::PORTS + self.terminals + self.ghosts.len();
        for set in [&mut self.read, &mut self.write] {
            set.arrivals = vec![Arrivals::default(); slots];
            set.phits = vec![F::Phit::default(); slots * self.window];
        }
    }

    /// Partition and slot there of a slot of partition `own`, this one.
    pub(crate) fn place(&self, own: u32, slot: u32) -> (u32, u32) {
        match self.owner(slot) {
            Owner::Ghost(ghost) => self.ghosts[ghost],
            Owner::Chip(..) | Owner::Terminal(_) => (own, slot),
        }
    }

    #[inline]
    pub(crate) fn owner(&self, slot: u32) -> Owner {
        let slot = slot as usize;
        let ports = self.chips * F::PORTS;
        if slot < ports {
            Owner::Chip(slot / F::PORTS, slot % F::PORTS)
        } else if slot - ports < self.terminals {
            Owner::Terminal(slot - ports)
        } else {
            Owner::Ghost(slot - ports - self.terminals)
        }
    }

    /// Sends `arrivals` to a slot. Its phits have been or will be written by the caller.
    #[inline]
    pub(crate) fn send(&mut self, slot: u32, arrivals: Arrivals<F>) {
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

    /// Ends a window: what was written can be read, and what goes elsewhere is in `out`, by
    /// partition.
    pub(crate) fn turn(&mut self, out: &mut [Mail<F>]) {
        let window = self.window;
        let first = self.chips * F::PORTS + self.terminals;
        for ghost in self.filled.drain(..) {
            let (partition, to) = self.ghosts[ghost as usize];
            let slot = first + ghost as usize;
            let arrivals = core::mem::take(&mut self.write.arrivals[slot]);
            let mail = &mut out[partition as usize];
            mail.slots.push((to, arrivals));
            if arrivals.phits != 0 {
                let at = slot * window;
                mail.phits
                    .extend_from_slice(&self.write.phits[at..at + window]);
            }
        }
        core::mem::swap(&mut self.read, &mut self.write);
    }

    /// Takes what came from another partition in the window that has just ended.
    pub(crate) fn receive(&mut self, mail: &mut Mail<F>) {
        let window = self.window;
        let mut from = 0;
        // What arrives in the next window is what is read then.
        core::mem::swap(&mut self.read, &mut self.write);
        for (slot, arrivals) in mail.slots.drain(..) {
            if arrivals.phits != 0 {
                let at = slot as usize * window;
                self.write.phits[at..at + window].copy_from_slice(&mail.phits[from..from + window]);
                from += window;
            }
            self.send(slot, arrivals);
        }
        core::mem::swap(&mut self.read, &mut self.write);
        mail.phits.clear();
    }
}

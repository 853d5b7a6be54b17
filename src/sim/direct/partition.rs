//! A part of a network that runs its windows on its own.

use phitwire_framing::packet24::head_vc;
use phitwire_framing::phit24::Phit;

use super::encoded::{LinkAccount, Region};
use super::exchange::{Exchange, Mail};
use super::site::Site;
use super::source::NEVER;
use super::terminal::{Shared, Terminal};
use crate::router::yarc::Core;
use crate::router::yarc::registers::PORTS;

/// Windows that the calendar of terminals looks ahead; what is due later is looked at again then.
const CALENDAR_WINDOWS: u64 = 1024;

/// Cycle in which sources begin that wait for links to come up: later than any.
pub(crate) const HELD_BACK: u64 = 1 << 50;

/// Chips and terminals with the links between them, to be run a window at a time.
///
/// A window has as many cycles as a phit travels on a link, so that nothing sent in a window arrives in
/// it. Partitions of one network can therefore run a window at the same time. Between windows the
/// [`Mail`] of each has to be handed to the others: call [`run_window`](Self::run_window) on all,
/// then exchange every [`outbox`](Self::outbox) by [`receive`](Self::receive).
#[derive(Debug)]
pub struct Partition {
    pub(crate) number: u32,
    pub(crate) sites: Vec<Site>,
    /// Chip of the topology that each site is.
    pub(crate) chips: Vec<u32>,
    pub(crate) terminals: Vec<Terminal>,
    pub(crate) shared: Shared,
    pub(crate) exchange: Exchange,
    outboxes: Vec<Mail>,
    /// Terminals by the window in which they are due, modulo [`CALENDAR_WINDOWS`].
    calendar: Vec<Vec<u32>>,
    cycle: u64,
    /// Chips and terminals as nodes behind encoded links, instead of [`sites`](Self::sites).
    encoded: Option<Box<Region>>,
}

/// What is to be known of a chip between windows.
pub(crate) struct ChipView<'a> {
    pub core: &'a Core,
    /// Phits in its input queues, row buffers and column buffers.
    pub phits_by_stage: [u64; 3],
    /// Phits that it has sent: phit-hops.
    pub phit_hops: u64,
    /// Phits for which no place was left.
    pub overflows: u64,
}

/// What one end of a link knows of credits and phits at the end of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EndAccount {
    /// Partition and slot.
    pub end: (u32, u32),
    /// Partition and slot of the other end.
    pub peer: (u32, u32),
    /// Credits for what this end sends, per virtual channel.
    pub credits: [u32; 2],
    /// Credits that are about to arrive here.
    pub credits_coming: [u32; 2],
    /// Phits that are about to arrive here.
    pub phits_coming: [u32; 2],
    /// Phits in the input queue here.
    pub queued: [u32; 2],
}

impl Partition {
    pub(crate) fn new(
        number: u32,
        sites: Vec<Site>,
        chips: Vec<u32>,
        terminals: Vec<Terminal>,
        shared: Shared,
        exchange: Exchange,
        partitions: usize,
    ) -> Self {
        let mut partition = Self {
            number,
            sites,
            chips,
            terminals,
            shared,
            exchange,
            outboxes: vec![Mail::default(); partitions],
            calendar: vec![Vec::new(); CALENDAR_WINDOWS as usize],
            cycle: 0,
            encoded: None,
        };
        for index in 0..partition.terminals.len() {
            let birth = partition.terminals[index].source.head().birth;
            partition.schedule(index, birth);
        }
        partition
    }

    /// A partition whose links are encoded.
    pub(crate) fn with_region(
        number: u32,
        chips: Vec<u32>,
        terminals: Vec<Terminal>,
        shared: Shared,
        window: usize,
        region: Region,
        partitions: usize,
    ) -> Self {
        let mut exchange = Exchange::new(window, 0, 0);
        exchange.finish();
        Self {
            number,
            sites: Vec::new(),
            chips,
            terminals,
            shared,
            exchange,
            outboxes: vec![Mail::default(); partitions],
            calendar: Vec::new(),
            cycle: 0,
            encoded: Some(Box::new(region)),
        }
    }

    /// Cycles that have run.
    pub fn cycle(&self) -> u64 {
        self.cycle
    }

    /// Runs one window.
    pub fn run_window(&mut self) {
        let base = self.cycle;
        let size = self.exchange.window as u64;
        if let Some(region) = &mut self.encoded {
            self.cycle = base + size;
            return region.run_window(
                self.cycle,
                &mut self.shared,
                &mut self.terminals,
                &mut self.outboxes,
            );
        }
        let slot = (base / size % CALENDAR_WINDOWS) as usize;
        let mut due = core::mem::take(&mut self.calendar[slot]);
        for terminal in due.drain(..) {
            self.terminals[terminal as usize].scheduled = NEVER;
            self.exchange.read.due_terminals.set(terminal as usize);
        }
        self.calendar[slot] = due;
        for word in 0..self.exchange.read.due_terminals.words() {
            let mut due = self.exchange.read.due_terminals.take_word(word);
            while due != 0 {
                let index = word * 64 + due.trailing_zeros() as usize;
                due &= due - 1;
                self.run_terminal(index, base);
            }
        }
        for word in 0..self.exchange.read.due_chips.words() {
            let mut due = self.exchange.read.due_chips.take_word(word);
            while due != 0 {
                let index = word * 64 + due.trailing_zeros() as usize;
                due &= due - 1;
                if self.sites[index].run(index, base, &mut self.exchange) {
                    self.exchange.write.due_chips.set(index);
                }
            }
        }
        self.cycle = base + size;
        self.exchange.turn(&mut self.outboxes);
    }

    #[inline]
    fn run_terminal(&mut self, index: usize, base: u64) {
        let terminal = &mut self.terminals[index];
        let next = terminal.run(index, base, &mut self.exchange, &mut self.shared);
        let size = self.exchange.window as u64;
        if next < base + 2 * size {
            self.exchange.write.due_terminals.set(index);
        } else {
            self.schedule(index, next);
        }
    }

    /// Enters a terminal into the calendar for the window of `cycle`, unless it is there already.
    fn schedule(&mut self, index: usize, cycle: u64) {
        if cycle == NEVER {
            return;
        }
        let size = self.exchange.window as u64;
        let now = self.cycle / size;
        let window = (cycle / size).clamp(now, now + CALENDAR_WINDOWS - 1);
        let terminal = &mut self.terminals[index];
        if terminal.scheduled > window {
            terminal.scheduled = window;
            self.calendar[(window % CALENDAR_WINDOWS) as usize].push(index as u32);
        }
    }

    /// What goes to partition number `to`, after a window.
    pub fn outbox(&mut self, to: usize) -> &mut Mail {
        &mut self.outboxes[to]
    }

    /// Takes what another partition sent in the window that has just run; `mail` is empty then.
    pub fn receive(&mut self, mail: &mut Mail) {
        match &mut self.encoded {
            Some(region) => region.receive(mail),
            None => self.exchange.receive(mail),
        }
    }

    /// Looks at every chip, in the order of [`chips`](Self::chips).
    pub(crate) fn each_chip(&self, mut visit: impl FnMut(ChipView<'_>)) {
        for site in &self.sites {
            visit(ChipView {
                core: site.core(),
                phits_by_stage: site.phits_by_stage(),
                phit_hops: site.phit_hops(),
                overflows: site.overflows(),
            });
        }
        if let Some(region) = &self.encoded {
            for index in 0..self.chips.len() {
                let yarc = region.chip(index);
                let [rows, columns] = yarc.core().phits_by_stage();
                visit(ChipView {
                    core: yarc.core(),
                    phits_by_stage: [region.queued(index), rows, columns],
                    phit_hops: yarc.core().counters().phits_forwarded,
                    overflows: 0,
                });
            }
        }
    }

    /// Phits that each port of each chip has sent.
    pub(crate) fn sent_by_port(&self) -> Vec<[u64; PORTS]> {
        match &self.encoded {
            Some(region) => (0..self.chips.len()).map(|i| region.sent(i)).collect(),
            None => self.sites.iter().map(|site| *site.sent()).collect(),
        }
    }

    /// Lets the sources, which were held back until then, begin in cycle `cycle`.
    pub(crate) fn begin_at(&mut self, cycle: u64) {
        for terminal in &mut self.terminals {
            terminal.source.reschedule(HELD_BACK, cycle);
        }
        if let Some(region) = &mut self.encoded {
            region.wake_endpoints();
        }
    }

    /// The accounts of all encoded link ends.
    pub(crate) fn link_accounts(&self, into: &mut Vec<LinkAccount>) {
        if let Some(region) = &self.encoded {
            region.accounts(into);
        }
    }

    /// Healthy packets that routers have taken from encoded links.
    pub(crate) fn packets_taken(&self) -> u64 {
        self.encoded
            .as_ref()
            .map_or(0, |region| region.packets_taken())
    }

    /// Packets sent again, frames sent and frames lost on encoded links.
    pub(crate) fn link_work(&self) -> [u64; 3] {
        self.encoded.as_ref().map_or([0; 3], |region| {
            let (frames, lost) = region.frames();
            [region.retransmitted(), frames, lost]
        })
    }

    /// Ends all sources.
    pub(crate) fn stop_sources(&mut self) {
        self.terminals.iter_mut().for_each(Terminal::stop);
    }

    /// Phits in routers and on links.
    pub(crate) fn phits_inside(&self) -> u64 {
        let on_links: u64 = self
            .exchange
            .read
            .arrivals
            .iter()
            .map(|arrivals| u64::from(arrivals.phits.count_ones()))
            .sum();
        let in_chips: u64 = self
            .sites
            .iter()
            .map(|site| site.core().phits_inside() + site.in_queues())
            .sum();
        on_links + in_chips
    }

    /// The accounts of all link ends.
    pub(crate) fn accounts(&self, into: &mut Vec<EndAccount>) {
        if self.encoded.is_some() {
            return;
        }
        for (index, site) in self.sites.iter().enumerate() {
            for port in 0..PORTS {
                let Some(peer) = site.peer(port) else {
                    continue;
                };
                let slot = Exchange::chip_slot(index, port);
                into.push(EndAccount {
                    credits: [0, 1].map(|vc| site.credits(port, vc).into()),
                    queued: [0, 1].map(|vc| site.queued(port, vc).into()),
                    ..self.account(slot, peer, site.vc_in(port))
                });
            }
        }
        for (index, terminal) in self.terminals.iter().enumerate() {
            let slot = self.exchange.terminal_slot(index);
            into.push(EndAccount {
                credits: [0, 1].map(|vc| terminal.credits(vc) + terminal.reserved(vc)),
                ..self.account(slot, terminal.peer(), terminal.vc_in())
            });
        }
    }

    fn account(&self, slot: u32, peer: u32, mut vc: usize) -> EndAccount {
        let arrivals = self.exchange.read.arrivals[slot as usize];
        let size = self.exchange.window;
        let mut phits_coming = [0; 2];
        for cycle in (0..size).filter(|cycle| arrivals.phits >> cycle & 1 != 0) {
            let phit = Phit::from_bits(self.exchange.read.phits[slot as usize * size + cycle]);
            if phit.is_head() {
                vc = head_vc(phit.content()).index();
            }
            phits_coming[vc] += 1;
        }
        EndAccount {
            end: (self.number, slot),
            peer: self.exchange.place(self.number, peer),
            credits_coming: arrivals.credits.map(u64::count_ones),
            phits_coming,
            ..EndAccount::default()
        }
    }
}

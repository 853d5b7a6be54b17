//! A part of a network that runs its windows independently.

use super::build::DirectRouterOf;
use super::coming::Coming;
use super::encoded::EncodedPartition;
use super::exchange::{Exchange, Mail};
use super::model::{
    ChipView, CycleModel, DirectModel, DirectRouter, Lanes as _, LinkAccount, MAX_VCS, PortAccount,
    Terminal,
};
use super::shared::Shared;
use super::source::NEVER;
use super::watch::pipeline_of;
use super::witness::{Found, Witness};
use crate::device::PipelineReport;
use crate::kit::bits;
use crate::sim::tap::Tap;
use crate::trace::Watch;

/// Windows that the terminal calendar covers; a terminal due later is checked again at its end.
const CALENDAR_WINDOWS: u64 = 1024;

/// Start cycle of sources that wait for links to come up: later than any other.
pub const HELD_BACK: u64 = 1 << 50;

/// Chips and terminals with the links between them, run one window at a time.
///
/// A window is as long as the shortest link, so nothing sent in a window arrives in it, and
/// partitions of one network can run a window concurrently. Between windows each partition's mail
/// must reach the others: call [`run_window`](Self::run_window) on all, then hand every
/// [`outbox`](Self::outbox) to [`receive`](Self::receive).
#[derive(Debug)]
pub struct Partition<M: CycleModel> {
    pub(crate) number: u32,
    pub routers: Vec<DirectRouterOf<M>>,
    /// The topology's chip for each router.
    pub(crate) chips: Vec<u32>,
    pub terminals: Vec<M::Terminal>,
    pub shared: Shared<M>,
    pub exchange: Exchange<M::Direct>,
    outboxes: Vec<Mail<M::Direct>>,
    /// Terminals by the window in which they are due, modulo [`CALENDAR_WINDOWS`].
    calendar: Vec<Vec<u32>>,
    cycle: u64,
    /// Windows between two mail exchanges.
    round: u64,
    /// Chips and terminals as nodes behind encoded links, instead of [`routers`](Self::routers).
    encoded: Option<Box<EncodedPartition<M>>>,
}

/// A link end's view of credits and phits at the end of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EndAccount {
    /// Partition and slot.
    pub(crate) end: (u32, u32),
    /// Partition and slot of the other end.
    pub(crate) peer: (u32, u32),
    /// Credits for what this end sends, per virtual channel.
    pub credits: [u32; MAX_VCS],
    /// Credits about to arrive here.
    pub(crate) credits_coming: [u32; MAX_VCS],
    /// Phits about to arrive here.
    pub(crate) phits_coming: [u32; MAX_VCS],
    /// Phits in the input queue here.
    pub(crate) queued: [u32; MAX_VCS],
    /// See [`PortAccount::places`].
    pub(crate) places: Option<[u32; MAX_VCS]>,
}

impl<M: CycleModel> Partition<M> {
    pub(crate) fn new(
        number: u32,
        routers: Vec<DirectRouterOf<M>>,
        chips: Vec<u32>,
        terminals: Vec<M::Terminal>,
        shared: Shared<M>,
        exchange: Exchange<M::Direct>,
        partitions: usize,
    ) -> Self {
        let mut partition = Self {
            number,
            routers,
            chips,
            terminals,
            shared,
            exchange,
            outboxes: vec![Mail::default(); partitions],
            calendar: vec![Vec::new(); CALENDAR_WINDOWS as usize],
            cycle: 0,
            round: 1,
            encoded: None,
        };
        for index in 0..partition.terminals.len() {
            let birth = partition.terminals[index].common().source.head().birth;
            partition.schedule(index, birth);
        }
        partition
    }

    /// Sets that the partition exchanges mail only after every `round` windows.
    pub(crate) fn with_round(self, round: u64) -> Self {
        Self { round, ..self }
    }

    /// A partition whose links are encoded.
    pub(crate) fn with_encoded_links(
        number: u32,
        chips: Vec<u32>,
        terminals: Vec<M::Terminal>,
        shared: Shared<M>,
        window: usize,
        nodes: EncodedPartition<M>,
        partitions: usize,
    ) -> Self {
        let mut exchange = Exchange::new(number, window, 0, 0);
        exchange.finish(window as u32);
        Self {
            number,
            routers: Vec::new(),
            chips,
            terminals,
            shared,
            exchange,
            outboxes: vec![Mail::default(); partitions],
            calendar: Vec::new(),
            cycle: 0,
            round: 1,
            encoded: Some(Box::new(nodes)),
        }
    }

    /// Passes every frame that a link end here sends from now on to `tap`, if links are encoded.
    pub(super) fn set_tap(&mut self, tap: &Tap) {
        if let Some(nodes) = &mut self.encoded {
            nodes.set_tap(tap.clone());
        }
    }

    /// Cycles that have run.
    pub fn cycle(&self) -> u64 {
        self.cycle
    }

    /// Runs the windows until mail must be exchanged.
    pub(crate) fn run_window(&mut self) {
        for _ in 0..self.round {
            self.run_one();
        }
    }

    fn run_one(&mut self) {
        let base = self.cycle;
        let size = self.exchange.window as u64;
        if let Some(nodes) = &mut self.encoded {
            self.cycle = base + size;
            return nodes.run_window(
                self.cycle,
                &mut self.shared,
                &mut self.terminals,
                &mut self.outboxes,
            );
        }
        let slot = (base / size % CALENDAR_WINDOWS) as usize;
        let mut due = core::mem::take(&mut self.calendar[slot]);
        for terminal in due.drain(..) {
            self.terminals[terminal as usize].common_mut().scheduled = NEVER;
            self.exchange.read.due_terminals.set(terminal as usize);
        }
        self.calendar[slot] = due;
        for word in 0..self.exchange.read.due_terminals.words() {
            let due = self.exchange.read.due_terminals.take_word(word);
            for bit in bits(due) {
                self.run_terminal(word * 64 + bit, base);
            }
        }
        for word in 0..self.exchange.read.due_chips.words() {
            let due = self.exchange.read.due_chips.take_word(word);
            let mut due = bits(due).map(|bit| word * 64 + bit).peekable();
            while let Some(index) = due.next() {
                if let Some(&next) = due.peek() {
                    self.routers[next].fetch(next, &self.exchange);
                }
                if self.routers[index].run(index, base, &mut self.exchange) {
                    self.exchange.write.due_chips.set(index);
                }
            }
        }
        self.cycle = base + size;
        self.exchange.turn(&mut self.outboxes);
    }

    #[inline]
    fn run_terminal(&mut self, index: usize, base: u64) {
        let (exchange, shared) = (&mut self.exchange, &mut self.shared);
        let next = self.terminals[index].run_window(index, base, exchange, shared);
        let size = self.exchange.window as u64;
        if next < base + 2 * size {
            self.exchange.write.due_terminals.set(index);
        } else {
            self.schedule(index, next);
        }
    }

    /// Enters a terminal for the window of `cycle`, unless it is entered for that or an earlier
    /// one.
    fn schedule(&mut self, index: usize, cycle: u64) {
        if cycle == NEVER {
            return;
        }
        let size = self.exchange.window as u64;
        let now = self.cycle / size;
        let window = (cycle / size).clamp(now, now + CALENDAR_WINDOWS - 1);
        let terminal = self.terminals[index].common_mut();
        if terminal.scheduled > window {
            terminal.scheduled = window;
            self.calendar[(window % CALENDAR_WINDOWS) as usize].push(index as u32);
        }
    }

    /// Mail for partition number `to`, after a window.
    pub(crate) fn outbox(&mut self, to: usize) -> &mut Mail<M::Direct> {
        &mut self.outboxes[to]
    }

    /// Takes what another partition sent in the window that has just run, leaving `mail` empty.
    pub(crate) fn receive(&mut self, mail: &mut Mail<M::Direct>) {
        match &mut self.encoded {
            Some(nodes) => nodes.receive(mail),
            None => self.exchange.receive(mail),
        }
    }

    /// Visits every chip, in the order of [`chips`](Self::chips).
    pub(crate) fn each_chip(&self, mut visit: impl FnMut(ChipView)) {
        match &self.encoded {
            Some(nodes) => (0..self.chips.len()).for_each(|index| visit(nodes.view(index))),
            None => self.routers.iter().for_each(|router| visit(router.view())),
        }
    }

    pub(crate) const fn is_encoded(&self) -> bool {
        self.encoded.is_some()
    }

    /// Visits every encoded link end here: the link's number, whether it is end B, the end.
    pub(crate) fn each_encoded_end(&self, visit: impl FnMut(u32, bool, &M::End)) {
        if let Some(nodes) = &self.encoded {
            nodes.each_end(visit);
        }
    }

    /// Visits the stages of every chip, with its number.
    pub(crate) fn each_pipeline(&self, mut visit: impl FnMut(u32, PipelineReport)) {
        for (index, &chip) in self.chips.iter().enumerate() {
            let report = match &self.encoded {
                Some(nodes) => nodes.pipeline(index),
                None => pipeline_of::<M>(&self.routers[index]),
            };
            visit(chip, report);
        }
    }

    /// Phits that each port of each chip has sent.
    pub(crate) fn sent_by_port(&self) -> Vec<u64> {
        match &self.encoded {
            Some(nodes) => (0..self.chips.len())
                .flat_map(|index| nodes.sent(index))
                .collect(),
            None => self
                .routers
                .iter()
                .flat_map(|router| router.sent())
                .copied()
                .collect(),
        }
    }

    /// Starts the sources, held back until now, in cycle `cycle`.
    pub(crate) fn begin_at(&mut self, cycle: u64) {
        for terminal in &mut self.terminals {
            terminal.common_mut().source.reschedule(HELD_BACK, cycle);
        }
        if let Some(nodes) = &mut self.encoded {
            nodes.wake_endpoints();
        }
    }

    /// Makes all routers watch, and terminals record, the packets of a flow.
    pub(crate) fn watch(&mut self, witness: &Witness, cycle_ps: u64) {
        let Some(flow) = witness.flow else { return };
        self.shared.witness = Some(Box::new(witness.clone()));
        for router in &mut self.routers {
            if let Some(watch) = router.watch() {
                *watch = Some(Box::new(Watch::first_of(flow, (0, cycle_ps))));
            }
        }
    }

    /// Adds what was recorded of the packets to `found`.
    pub(crate) fn watched(&mut self, found: &mut Found) {
        for (router, &chip) in self.routers.iter_mut().zip(&self.chips) {
            if let Some(watch) = router.watch().and_then(Option::take) {
                let watched = watch.report(None);
                found.add_router(chip, watched.passages, watched.dropped);
            }
        }
        if let Some(witness) = &self.shared.witness {
            found.add_messages(witness);
        }
    }

    /// The position of a topology's chip, if it is here.
    pub(crate) fn place_of(&self, chip: u32) -> Option<usize> {
        self.chips.iter().position(|&own| own == chip)
    }

    /// Sets whether the link at a port of the chip at `place` accepts packets from now on.
    pub(crate) fn set_chip_link(&mut self, place: usize, port: usize, up: bool) {
        self.routers[place].set_link(self.cycle, port, up);
        self.exchange.read.due_chips.set(place);
    }

    /// Sets whether a terminal's link accepts packets from now on.
    pub(crate) fn set_terminal_link(&mut self, place: usize, up: bool) {
        self.terminals[place].common_mut().is_up = up;
        self.exchange.read.due_terminals.set(place);
    }

    /// Cuts or restores an encoded link that has an end here.
    pub(crate) fn set_encoded_link(&mut self, link: u32, up: bool) {
        if let Some(nodes) = &mut self.encoded {
            nodes.set_link(link, up);
        }
    }

    /// Adds the accounts of all encoded link ends.
    pub(crate) fn link_accounts(&self, into: &mut Vec<LinkAccount>) {
        if let Some(nodes) = &self.encoded {
            nodes.accounts(into);
        }
    }

    /// Undamaged packets that routers have taken from encoded links.
    pub(crate) fn packets_taken(&self) -> u64 {
        self.encoded
            .as_ref()
            .map_or(0, |nodes| nodes.packets_taken())
    }

    /// Packets resent, frames sent and frames lost on encoded links.
    pub(crate) fn link_work(&self) -> [u64; 3] {
        self.encoded.as_ref().map_or([0; 3], |nodes| nodes.work())
    }

    /// Ends all sources.
    pub(crate) fn stop_sources(&mut self) {
        self.terminals
            .iter_mut()
            .for_each(|terminal| terminal.common_mut().source.stop());
    }

    /// Phits in routers and on links.
    pub(crate) fn phits_inside(&self) -> u64 {
        let in_chips: u64 = self.routers.iter().map(DirectRouter::phits_inside).sum();
        self.exchange.phits() + in_chips
    }

    /// Adds the accounts of all link ends.
    pub(crate) fn accounts(&self, into: &mut Vec<EndAccount>) {
        if self.encoded.is_some() {
            return;
        }
        let coming = self.exchange.coming();
        let mut add = |slot, lanes, peer, port| {
            into.push(self.account((slot, lanes), peer, port, &coming));
        };
        for (index, router) in self.routers.iter().enumerate() {
            for port in 0..M::PORTS {
                if let Some(peer) = router.peer(port) {
                    let slot = Exchange::<M::Direct>::chip_slot(index, port);
                    add(slot, M::Direct::lanes(port).1, peer, router.account(port));
                }
            }
        }
        for (index, terminal) in self.terminals.iter().enumerate() {
            let slot = self.exchange.terminal_slot(index);
            let (lanes, peer) = (M::Direct::TERMINAL_LANES, terminal.common().peer);
            add(slot, lanes, peer, terminal.account());
        }
    }

    fn account(
        &self,
        (slot, lanes): (u32, usize),
        peer: u32,
        port: PortAccount,
        coming: &Coming<M::Direct>,
    ) -> EndAccount {
        let slots = slot..slot + lanes as u32;
        let mut stream = port.coming;
        let mut phits_coming = [0; MAX_VCS];
        for phit in coming.phits(slots.clone()) {
            phits_coming[M::Direct::follow(&mut stream, phit)] += 1;
        }
        let mut credits_coming = [0; MAX_VCS];
        for credits in coming.credits(slots) {
            let counts = M::Direct::count_credits(&credits);
            credits_coming
                .iter_mut()
                .zip(counts)
                .for_each(|(sum, n)| *sum += n);
        }
        EndAccount {
            end: (self.number, slot),
            peer: self.exchange.place(peer),
            credits: port.credits,
            queued: port.queued,
            places: port.places,
            credits_coming,
            phits_coming,
        }
    }
}

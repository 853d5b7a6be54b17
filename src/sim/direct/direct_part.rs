//! A part of a network with direct links.

use super::build::DirectRouterOf;
use super::endpoints::Endpoints;
use super::exchange::{Batch, Exchange};
use super::in_flight::InFlight;
use super::mail::{Addresses, MailError};
use super::message_trace::MessageTrace;
use super::model::{CycleModel, DirectModel, DirectRouter, Lanes as _, PortAccount, Terminal};
use super::part::{Command, LocalPart, Part};
use super::source::NEVER;
use super::summary::{EndAccount, EndName, PartSnapshot, Section, Summary};
use super::watch::{EndSnapshot, pipeline_of};
use crate::kit::bits;
use crate::link::MAX_VCS;
use crate::trace::{Passage, Watch};

/// Windows that the terminal calendar covers; a terminal due later is checked again at its end.
const CALENDAR_WINDOWS: u64 = 1024;

/// A part whose links pass phits directly, not in frames.
#[derive(Debug)]
pub struct DirectPart<M: CycleModel> {
    number: u32,
    pub routers: Vec<DirectRouterOf<M>>,
    /// The topology's chip for each router.
    chips: Vec<u32>,
    pub endpoints: Endpoints<M>,
    pub exchange: Exchange<M::Direct>,
    outboxes: Vec<Batch<M::Direct>>,
    /// Terminals by the window in which they are due, modulo [`CALENDAR_WINDOWS`].
    calendar: Vec<Vec<u32>>,
    cycle: u64,
    /// Windows between two mail exchanges.
    round: u64,
    addresses: Addresses,
    /// Records of the routers: see [`Records`](super::summary::Records).
    records: Vec<(u32, Vec<Passage>, u64)>,
}

impl<M: CycleModel> DirectPart<M> {
    /// Part `number` of `count`, which exchange mail every `round` windows.
    pub(super) fn new(
        number: u32,
        (chips, routers): (Vec<u32>, Vec<DirectRouterOf<M>>),
        endpoints: Endpoints<M>,
        exchange: Exchange<M::Direct>,
        (round, count): (u64, usize),
    ) -> Self {
        let mut part = Self {
            number,
            routers,
            chips,
            endpoints,
            exchange,
            outboxes: vec![Batch::default(); count],
            calendar: vec![Vec::new(); CALENDAR_WINDOWS as usize],
            cycle: 0,
            round,
            addresses: Addresses::new(number, count),
            records: Vec::new(),
        };
        part.schedule_all();
        part
    }

    pub fn cycle(&self) -> u64 {
        self.cycle
    }

    fn run_one(&mut self) {
        let base = self.cycle;
        let size = self.exchange.window as u64;
        let slot = (base / size % CALENDAR_WINDOWS) as usize;
        let mut due = core::mem::take(&mut self.calendar[slot]);
        for terminal in due.drain(..) {
            self.endpoints.terminals[terminal as usize]
                .common_mut()
                .scheduled = NEVER;
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
        let Endpoints {
            terminals, shared, ..
        } = &mut self.endpoints;
        let next = terminals[index].run_window(index, base, &mut self.exchange, shared);
        let size = self.exchange.window as u64;
        if next < base + 2 * size {
            self.exchange.write.due_terminals.set(index);
        } else {
            self.schedule(index, next);
        }
    }

    /// Enters every terminal in the calendar for the window of its next packet.
    fn schedule_all(&mut self) {
        for index in 0..self.endpoints.terminals.len() {
            let birth = self.endpoints.terminals[index].common().source.head().birth;
            self.schedule(index, birth);
        }
    }

    /// Enters a terminal in the calendar for the window of `cycle`, unless it is already entered
    /// for that window or an earlier one.
    fn schedule(&mut self, index: usize, cycle: u64) {
        if cycle == NEVER {
            return;
        }
        let size = self.exchange.window as u64;
        let now = self.cycle / size;
        let window = (cycle / size).clamp(now, now + CALENDAR_WINDOWS - 1);
        let terminal = self.endpoints.terminals[index].common_mut();
        if terminal.scheduled > window {
            terminal.scheduled = window;
            self.calendar[(window % CALENDAR_WINDOWS) as usize].push(index as u32);
        }
    }

    /// Makes all routers watch the packets of a flow.
    fn watch(&mut self, message_trace: &MessageTrace) {
        self.records.clear();
        let Some(flow) = message_trace.flow else {
            return;
        };
        for router in &mut self.routers {
            if let Some(watch) = router.watch() {
                *watch = Some(Box::new(Watch::first_of(flow, (0, M::CYCLE.as_ps()))));
            }
        }
    }

    /// Sets whether the link at `end` accepts packets from now on. Ignores ends of other parts.
    fn set_link(&mut self, end: EndName, up: bool) {
        match end {
            EndName::Port(chip, port) => {
                let Some(index) = self.chips.iter().position(|&own| own == chip) else {
                    return;
                };
                self.routers[index].set_link(self.cycle, port.into(), up);
                self.exchange.read.due_chips.set(index);
            }
            EndName::Terminal(number) => {
                let mut terminals = self.endpoints.terminals.iter();
                let Some(index) = terminals.position(|t| t.common().number == number) else {
                    return;
                };
                self.endpoints.terminals[index].common_mut().is_up = up;
                self.exchange.read.due_terminals.set(index);
            }
        }
    }

    /// Phits in routers and on links.
    fn phits_inside(&self) -> u64 {
        let in_chips: u64 = self.routers.iter().map(DirectRouter::phits_inside).sum();
        self.exchange.phits() + in_chips
    }

    /// Takes the routers' records of the watched packets.
    fn end_watch(&mut self) {
        for (&chip, router) in self.chips.iter().zip(&mut self.routers) {
            if let Some(watch) = router.watch().and_then(Option::take) {
                let watched = watch.report(None);
                let records = (chip, watched.passages, watched.dropped);
                self.records.push(records);
            }
        }
    }

    fn snapshot(&self) -> PartSnapshot {
        let mut snapshot = PartSnapshot::default();
        for (&chip, router) in self.chips.iter().zip(&self.routers) {
            snapshot.routers.push((chip, pipeline_of::<M>(router)));
            for (port, &sent) in router.sent().iter().enumerate() {
                if router.peer(port).is_none() {
                    continue;
                }
                let account = router.account(port);
                let vcs = M::Direct::VCS;
                let offers = account.slots.unwrap_or([M::Direct::CREDITS; MAX_VCS]);
                let end = EndSnapshot {
                    up: true,
                    carried: sent,
                    sent,
                    credits: account.credits[..vcs].to_vec(),
                    offers: offers[..vcs].to_vec(),
                    ..EndSnapshot::default()
                };
                snapshot.direct.push((EndName::Port(chip, port as u8), end));
            }
        }
        for terminal in &self.endpoints.terminals {
            let common = terminal.common();
            let end = EndSnapshot {
                up: common.is_up,
                carried: common.sent_phits,
                sent: common.sent_phits,
                ..EndSnapshot::default()
            };
            let name = EndName::Terminal(common.number);
            snapshot.direct.push((name, end));
        }
        snapshot
    }

    fn accounts(&self) -> Vec<EndAccount> {
        let in_flight = self.exchange.in_flight();
        let mut accounts = Vec::new();
        let mut add = |slot, lanes, peer, port| {
            accounts.push(self.account((slot, lanes), peer, port, &in_flight));
        };
        for (index, router) in self.routers.iter().enumerate() {
            for port in 0..M::PORTS {
                if let Some(peer) = router.peer(port) {
                    let slot = Exchange::<M::Direct>::chip_slot(index, port);
                    add(slot, M::Direct::lanes(port).1, peer, router.account(port));
                }
            }
        }
        for (index, terminal) in self.endpoints.terminals.iter().enumerate() {
            let slot = self.exchange.terminal_slot(index);
            let (lanes, peer) = (M::Direct::TERMINAL_LANES, terminal.common().peer);
            add(slot, lanes, peer, terminal.account());
        }
        accounts
    }

    fn account(
        &self,
        (slot, lanes): (u32, usize),
        peer: u32,
        port: PortAccount,
        in_flight: &InFlight<M::Direct>,
    ) -> EndAccount {
        let slots = slot..slot + lanes as u32;
        let mut stream = port.coming;
        let mut phits_coming = [0; MAX_VCS];
        for phit in in_flight.phits(slots.clone()) {
            phits_coming[M::Direct::follow(&mut stream, phit)] += 1;
        }
        let mut credits_coming = [0; MAX_VCS];
        for credits in in_flight.credits(slots) {
            let counts = M::Direct::count_credits(&credits);
            credits_coming
                .iter_mut()
                .zip(counts)
                .for_each(|(sum, n)| *sum += n);
        }
        EndAccount {
            end: (self.number, slot),
            peer: self.exchange.peer_of(peer),
            credits: port.credits,
            queued: port.queued,
            slots: port.slots,
            credits_coming,
            phits_coming,
        }
    }
}

impl<M: CycleModel> Part for DirectPart<M> {
    fn run_window(&mut self) {
        for _ in 0..self.round {
            self.run_one();
        }
        self.addresses.advance();
    }

    fn give(&mut self, to: usize, mail: &mut Vec<u8>) {
        self.outboxes[to].write(mail, self.addresses.to(to));
    }

    fn take(&mut self, from: usize, mail: &[u8]) -> Result<(), MailError> {
        let mut batch = self.exchange.read(mail, self.addresses.from(from)?)?;
        self.addresses.took(from);
        self.exchange.receive(&mut batch);
        Ok(())
    }

    fn command(&mut self, command: &Command) {
        self.endpoints.command(command, self.cycle);
        match command {
            Command::Begin(_) => self.schedule_all(),
            Command::Trace(message_trace) => self.watch(message_trace),
            Command::EndTrace => self.end_watch(),
            Command::SetLink { ends, up, .. } => {
                ends.iter().for_each(|&end| self.set_link(end, *up));
            }
            Command::Measure(_) | Command::CountBirths | Command::Stop | Command::Tap(_) => {}
        }
    }

    fn summary(&self, section: Section) -> Summary {
        let mut summary = self.endpoints.summary(section, self.cycle);
        match section {
            Section::Census => summary.census.chips.clone_from(&self.chips),
            Section::Chips => {
                for router in &self.routers {
                    summary.chips.add(&router.view());
                }
            }
            Section::Loads => {
                let sent = self.routers.iter().flat_map(|router| router.sent());
                summary.loads.ports = sent.copied().collect();
            }
            Section::Ends => {
                summary.ends.inside = self.phits_inside();
                summary.ends.direct = self.accounts();
            }
            Section::Records => summary.records.routers.clone_from(&self.records),
            Section::Snapshot => summary.snapshot = self.snapshot(),
            Section::Tally | Section::Terminals | Section::Births | Section::Results => {}
        }
        summary
    }
}

impl<M: CycleModel> LocalPart for DirectPart<M> {
    type Mail = Batch<M::Direct>;

    fn outbox(&mut self, to: usize) -> &mut Batch<M::Direct> {
        &mut self.outboxes[to]
    }

    fn receive(&mut self, mail: &mut Batch<M::Direct>) {
        self.exchange.receive(mail);
    }
}

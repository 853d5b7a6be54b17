//! Routers and processors on a torus, with ordered links that have latency, and checkers.

use std::collections::VecDeque;

use phitwire_framing::t3e::barrier::{Kind, Message, UnitNumber};

use super::plan::{Plan, Role};
use super::torus::Torus;
use crate::barrier::{
    BarrierRouter, BarrierShell, Ignored, Notified, Operation, Port, PortSet, SpanningTree, State,
};
use phitwire::rng::Rng;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// A processor was released from a barrier before all had joined it.
    Early,
    /// A processor was notified of a eureka that no processor had signalled.
    Phantom,
    /// A processor was released without notification of the round's eureka.
    Missed,
    /// A message did not fit the state of a processor's unit.
    Unexpected,
    /// A message did not fit the state of a router's unit.
    Fault(Ignored),
    /// A eureka of a round was in flight when its barrier completed.
    Leftover,
    /// Too many messages waited for a port.
    TooMany,
    /// Some processors have not finished, and nothing moves.
    Stuck,
    /// All processors have finished, but messages remain.
    Remains,
    /// The number of messages is not one of each kind per link of the tree.
    Messages,
}

/// A deliberate fault in message number n of the given kind, counting messages from routers.
#[derive(Clone, Copy, Debug)]
pub enum Sabotage {
    Drop(Kind, u64),
    /// The message leaves the order of its link and arrives this many ticks later.
    Delay(Kind, u64, u64),
    /// The message arrives, and arrives again this many ticks later.
    Repeat(Kind, u64, u64),
    /// A bit of the message's word is wrong.
    Damage(Kind, u64),
    /// The router of this node does not wait for its last child.
    EarlySignal(usize),
}

#[derive(Clone, Debug)]
pub struct Options {
    pub seed: u64,
    /// Latency of a link between routers, in ticks.
    pub link: u64,
    /// Latency between processor and router, in ticks.
    pub end: u64,
    /// Maximum random addition to each latency.
    pub jitter: u64,
    /// Maximum time that a processor waits before its next action.
    pub skew: u64,
    /// A port sends in one out of this many ticks.
    pub slowness: u64,
    pub sabotage: Option<Sabotage>,
    /// Whether a fault that a router ignores ends the run.
    pub strict: bool,
    /// Maximum number of messages that wait for a child, and for the parent.
    pub bounds: [u32; 2],
}

impl Options {
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            link: 1,
            end: 1,
            jitter: 0,
            skew: 0,
            slowness: 1,
            sabotage: None,
            strict: true,
            bounds: [3, 2],
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Tick of the last release from a barrier.
    pub last_release: u64,
    /// Tick in which the last processor saw a eureka.
    pub last_eureka: u64,
    /// Words on links between routers, by code of their kind.
    pub words: [u64; 4],
    /// Eurekas that routers dropped because they were repeated.
    pub repeats: u64,
    /// Eureka notifications that reached armed processors.
    pub notified_armed: u64,
    /// Maximum number of messages that waited for a child, and for the parent.
    pub longest: [u32; 2],
    /// Hash of all notifications of processors, with their times.
    pub trace: u64,
}

/// A path on which messages stay in order.
#[derive(Clone, Debug, Default)]
struct OrderedChannel(VecDeque<(u64, u64)>);

/// The progress of a processor in its unit's plan.
#[derive(Clone, Debug, Default)]
struct Progress {
    round: usize,
    ready_at: u64,
    /// Whether the processor has signalled or seen the eureka, and joins next.
    joins: bool,
    joined: bool,
    eureka_notified: bool,
}

struct Unit {
    number: UnitNumber,
    plan: Plan,
    tree: SpanningTree,
    progress: Vec<Progress>,
    /// Number of processors that have joined, by round.
    joined: Vec<usize>,
    /// Whether any processor has signalled the eureka, by round.
    signalled: Vec<bool>,
}

pub struct Network {
    options: Options,
    torus: Torus,
    rng: Rng,
    now: u64,
    routers: Vec<BarrierRouter>,
    shells: Vec<BarrierShell>,
    /// Messages from routers, by port.
    down: Vec<[OrderedChannel; Port::COUNT]>,
    /// Messages from processors to their routers.
    up: Vec<OrderedChannel>,
    /// Messages out of order, with their arrival time, node and port.
    late: Vec<(u64, usize, Port, u64)>,
    units: Vec<Unit>,
    /// Messages sent by routers, by code of their kind.
    sent: [u64; 4],
    report: Report,
}

impl Network {
    /// Builds the network with a tree per plan.
    ///
    /// # Panics
    /// If participants are not connected.
    pub fn new(torus: Torus, plans: Vec<Plan>, options: Options) -> Self {
        let nodes = torus.nodes() as usize;
        let mut routers = vec![BarrierRouter::new(); nodes];
        let mut shells = vec![BarrierShell::new(); nodes];
        let unit = |(number, plan): (UnitNumber, Plan)| {
            let neighbour = |node, direction| torus.neighbour(node, direction);
            let tree = SpanningTree::build(&plan.participants, neighbour).expect("connected");
            for (node, register) in tree.registers() {
                assert!(routers[node as usize].configure(number, register));
            }
            for &node in &plan.participants {
                shells[node as usize].grant(number, true);
                shells[node as usize].set_interrupting(number, true);
            }
            let rounds = plan.rounds.len();
            Unit {
                number,
                tree,
                progress: vec![Progress::default(); plan.participants.len()],
                joined: vec![0; rounds],
                signalled: vec![false; rounds],
                plan,
            }
        };
        let mut units: Vec<Unit> = UnitNumber::all().zip(plans).map(unit).collect();
        let mut rng = Rng::new(options.seed, 1);
        for progress in units.iter_mut().flat_map(|unit| &mut unit.progress) {
            progress.ready_at = rng.below(options.skew + 1);
        }
        Self {
            rng,
            options,
            torus,
            now: 0,
            routers,
            shells,
            down: vec![Default::default(); nodes],
            up: vec![OrderedChannel::default(); nodes],
            late: Vec::new(),
            units,
            sent: [0; 4],
            report: Report::default(),
        }
    }

    pub fn tree(&self, unit: usize) -> &SpanningTree {
        &self.units[unit].tree
    }

    /// Runs until all rounds are done, or a violation is found.
    pub fn run(mut self) -> Result<Report, Violation> {
        let mut quiet = 0;
        // No message is delayed, and no processor waits, for longer than `patience` ticks.
        let options = &self.options;
        let patience = 100
            + options.link
            + options.end
            + options.jitter
            + options.skew
            + 200 * options.slowness;
        loop {
            let mut moved = self.deliver()?;
            moved |= self.act();
            moved |= self.send();
            let through = self.units.iter().all(|unit| {
                let rounds = unit.plan.rounds.len();
                unit.progress
                    .iter()
                    .all(|progress| progress.round == rounds)
            });
            if through && self.is_quiet() {
                return self.finish();
            }
            quiet = if moved { 0 } else { quiet + 1 };
            if quiet > patience + self.sabotage_delay() {
                return Err(if through {
                    Violation::Remains
                } else {
                    Violation::Stuck
                });
            }
            self.now += 1;
        }
    }

    fn sabotage_delay(&self) -> u64 {
        match self.options.sabotage {
            Some(Sabotage::Delay(_, _, delay) | Sabotage::Repeat(_, _, delay)) => delay,
            _ => 0,
        }
    }

    /// Whether no message is in flight.
    fn is_quiet(&self) -> bool {
        let links = self.down.iter().flatten().chain(&self.up);
        self.late.is_empty()
            && links.into_iter().all(|way| way.0.is_empty())
            && self
                .routers
                .iter()
                .all(|router| router.pending_ports().is_empty())
            && !self.shells.iter().any(BarrierShell::has_pending)
    }

    fn finish(mut self) -> Result<Report, Violation> {
        let mut expected = [0; 4];
        for unit in &self.units {
            if self
                .routers
                .iter()
                .any(|router| !router.is_idle(unit.number))
            {
                return Err(Violation::Remains);
            }
            let links = unit.tree.links() as u64;
            let eurekas = unit.plan.eurekas() as u64;
            expected[Kind::Arrive as usize] += links * unit.plan.rounds.len() as u64;
            expected[Kind::BarrierDone as usize] += links * unit.plan.rounds.len() as u64;
            expected[Kind::Eureka as usize] += links * eurekas;
            expected[Kind::EurekaDone as usize] += links * eurekas;
        }
        // Fewer eurekas may go up: a router passes none once it has been notified of another.
        let eurekas = &mut expected[Kind::Eureka as usize];
        *eurekas = self.report.words[Kind::Eureka as usize].min(*eurekas);
        if self.report.words != expected {
            return Err(Violation::Messages);
        }
        let repeats = |router: &BarrierRouter| router.counters().eurekas_repeated;
        self.report.repeats = self.routers.iter().map(repeats).sum();
        Ok(self.report)
    }

    fn deliver(&mut self) -> Result<bool, Violation> {
        let mut moved = false;
        for node in 0..self.routers.len() {
            while let Some(word) = self.up[node].take(self.now) {
                moved = true;
                self.at_router(node, Port::Local, word)?;
            }
            for port in Port::ALL {
                while let Some(word) = self.down[node][port.index()].take(self.now) {
                    moved = true;
                    self.through(node, port, word)?;
                }
            }
        }
        if let Some(at) = self.late.iter().position(|&(at, ..)| at <= self.now) {
            moved = true;
            let (_, node, port, word) = self.late.remove(at);
            self.through(node, port, word)?;
        }
        Ok(moved)
    }

    /// Delivers a word to the node behind a port.
    fn through(&mut self, node: usize, port: Port, word: u64) -> Result<(), Violation> {
        let Port::Link(direction) = port else {
            return self.at_processor(node, word);
        };
        let other = self.torus.neighbour(node as u32, direction);
        let other = other.expect("trees use working links");
        self.at_router(other as usize, Port::Link(direction.opposite()), word)
    }

    fn at_router(&mut self, node: usize, from: Port, word: u64) -> Result<(), Violation> {
        let router = &mut self.routers[node];
        let before = router.counters().barriers_done;
        if let Err(reason) = router.receive_word(from, word)
            && reason.is_fault()
            && self.options.strict
        {
            return Err(Violation::Fault(reason));
        }
        let Ok(message) = Message::decode(word) else {
            return Ok(());
        };
        if matches!(self.options.sabotage, Some(Sabotage::EarlySignal(hasty)) if hasty == node) {
            let register = router.register(message.unit);
            let missing = register.children().bits() & !register.signalled().bits();
            if message.kind == Kind::Arrive && missing.is_power_of_two() {
                let child = PortSet::from_bits(missing).iter().next().expect("one");
                router
                    .receive(child, message)
                    .expect("the child has not arrived");
            }
        }
        let done = router.counters().barriers_done > before;
        let register = router.register(message.unit);
        for port in register.children().iter() {
            let waits = router.pending_len(port, message.unit);
            self.report.longest[0] = self.report.longest[0].max(waits);
        }
        if let Some(parent) = register.parent() {
            let waits = router.pending_len(Port::Link(parent), message.unit);
            self.report.longest[1] = self.report.longest[1].max(waits);
        }
        let [child, parent] = self.report.longest;
        if child > self.options.bounds[0] || parent > self.options.bounds[1] {
            return Err(Violation::TooMany);
        }
        if done && register.parent().is_none() && self.has_eureka_on_the_way(message.unit) {
            return Err(Violation::Leftover);
        }
        Ok(())
    }

    /// Whether a eureka of a unit is on its way up anywhere.
    fn has_eureka_on_the_way(&self, unit: UnitNumber) -> bool {
        let word = Message {
            kind: Kind::Eureka,
            unit,
        }
        .encode();
        let mut ways = self.down.iter().flatten().chain(&self.up);
        let waits = |router: &BarrierRouter| {
            // Only eurekas can wait here: an arrival has left when the barrier is done.
            let parent = router.register(unit).parent();
            parent.is_some_and(|parent| router.pending_len(Port::Link(parent), unit) > 0)
        };
        ways.any(|way| way.0.iter().any(|&(_, other)| other == word))
            || self.late.iter().any(|&(.., other)| other == word)
            || self.routers.iter().any(waits)
            || self
                .shells
                .iter()
                .any(|shell| shell.unit(unit).has_pending())
    }

    fn at_processor(&mut self, node: usize, word: u64) -> Result<(), Violation> {
        let message = match Message::decode(word) {
            Ok(message) => message,
            Err(error) if self.options.strict => {
                return Err(Violation::Fault(Ignored::Damaged(error)));
            }
            Err(_) => return Ok(()),
        };
        let notified = self.shells[node].receive(message);
        let unit = &mut self.units[message.unit.index()];
        let mut participants = unit.plan.participants.iter();
        let index = participants.position(|&other| other as usize == node);
        let progress = &mut unit.progress[index.expect("local children take part")];
        let interrupts = self.shells[node].take_interrupts();
        let interrupted = interrupts == 1 << message.unit.index();
        let round = progress.round;
        match notified {
            Notified::BarrierDone => {
                assert!(interrupted, "a completed barrier interrupts");
                if unit.joined[round] < unit.plan.participants.len() {
                    return Err(Violation::Early);
                }
                if progress.eureka_notified != unit.plan.has_eureka(round) {
                    return Err(Violation::Missed);
                }
                self.report.last_release = self.now;
                *progress = Progress {
                    round: round + 1,
                    ready_at: self.now + self.rng.below(self.options.skew + 1),
                    ..Progress::default()
                };
            }
            Notified::EurekaSeen | Notified::EurekaKnown => {
                assert_eq!(interrupted, notified == Notified::EurekaSeen);
                if round >= unit.signalled.len() || !unit.signalled[round] {
                    return Err(Violation::Phantom);
                }
                progress.eureka_notified = true;
                self.report.last_eureka = self.now;
                let armed = self.shells[node].state(message.unit) == State::Arm;
                self.report.notified_armed += u64::from(armed);
            }
            Notified::Unexpected => return Err(Violation::Unexpected),
        }
        let event = [self.now, node as u64, word].into_iter();
        self.report.trace = event.fold(self.report.trace, |trace, word| {
            phitwire::rng::spread(trace ^ word)
        });
        Ok(())
    }

    fn act(&mut self) -> bool {
        let mut moved = false;
        for unit in &mut self.units {
            let nodes = unit.plan.participants.iter().zip(&mut unit.progress);
            for (index, (&node, progress)) in nodes.enumerate() {
                let round = progress.round;
                let waits = progress.joined || self.now < progress.ready_at;
                if waits || round == unit.plan.rounds.len() {
                    continue;
                }
                let shell = &mut self.shells[node as usize];
                let state = shell.state(unit.number);
                let operation = match unit.plan.rounds[round][index] {
                    Role::Watch if state == State::Bar => continue,
                    Role::Trigger if !progress.joins => Operation::Eur,
                    Role::TriggerAndJoin => Operation::EurB,
                    _ => Operation::Bar,
                };
                let joins = operation != Operation::Bar;
                unit.signalled[round] |= joins;
                progress.joined = operation != Operation::Eur;
                unit.joined[round] += usize::from(progress.joined);
                progress.joins = true;
                progress.ready_at = self.now + self.rng.below(self.options.skew + 1);
                let done = shell.operate(unit.number, operation);
                assert_eq!(done, Ok(()), "an unarmed processor may act");
                moved = true;
            }
        }
        moved
    }

    fn send(&mut self) -> bool {
        let mut moved = false;
        for node in 0..self.routers.len() {
            if self.rng.below(self.options.slowness) == 0
                && let Some(message) = self.shells[node].next_message()
            {
                moved = true;
                let at = self.arrival(self.options.end);
                self.up[node].put(at, message.encode());
            }
            for port in self.routers[node].pending_ports().iter() {
                if self.rng.below(self.options.slowness) > 0 {
                    continue;
                }
                let message = self.routers[node].next(port).expect("the port is pending");
                moved = true;
                self.put(node, port, message);
            }
        }
        moved
    }

    fn arrival(&mut self, latency: u64) -> u64 {
        self.now + latency + self.rng.below(self.options.jitter + 1)
    }

    fn put(&mut self, node: usize, port: Port, message: Message) {
        let (kind, word) = (message.kind, message.encode());
        let n = self.sent[kind as usize];
        self.sent[kind as usize] += 1;
        let is_link = port != Port::Local;
        self.report.words[kind as usize] += u64::from(is_link);
        let options = &self.options;
        let latency = if is_link { options.link } else { options.end };
        let at = self.arrival(latency);
        let way = &mut self.down[node][port.index()];
        match self.options.sabotage {
            Some(Sabotage::Drop(what, which)) if (what, which) == (kind, n) => {}
            Some(Sabotage::Delay(what, which, delay)) if (what, which) == (kind, n) => {
                self.late.push((at + delay, node, port, word));
            }
            Some(Sabotage::Repeat(what, which, delay)) if (what, which) == (kind, n) => {
                way.put(at, word);
                self.late.push((at + delay, node, port, word));
                self.report.words[kind as usize] += u64::from(is_link);
            }
            Some(Sabotage::Damage(what, which)) if (what, which) == (kind, n) => {
                way.put(at, word ^ 1 << 4);
            }
            _ => way.put(at, word),
        }
    }
}

impl OrderedChannel {
    /// Appends a message behind those in flight.
    fn put(&mut self, at: u64, word: u64) {
        let before = self.0.back().map_or(0, |&(before, _)| before);
        self.0.push_back((at.max(before), word));
    }

    fn take(&mut self, now: u64) -> Option<u64> {
        let due = self.0.front().is_some_and(|&(at, _)| at <= now);
        due.then(|| self.0.pop_front().expect("the queue is not empty").1)
    }
}

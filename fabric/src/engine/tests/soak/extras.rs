//! Extras that only some seeds draw: other endpoints in the domains of programs, registered memory
//! that is closed in the middle, cancelled receives, peeks, and bytes that are not a message.

use super::plan::{Access, *};
use super::*;
use crate::engine::shared::Open;
use crate::engine::tests::network::Dice;

/// Layout of memory that is closed: reads are below the first offset, writes above it.
const BRIEF_WRITES_AT: usize = 20_000;
const BRIEF_BYTES: usize = 40_000;

/// Registered memory that its program closes while peers access it.
pub struct Brief {
    pub at: usize,
    pub bytes: Bytes,
    /// Whether it is a part of the memory that the program has registered for good.
    pub is_part: bool,
    /// Whether NICs reach it.
    pub is_open: bool,
    pub key: u64,
}

/// Extras that only some seeds draw.
#[derive(Default)]
pub struct Extras {
    /// Programs that have another endpoint, which opens their memory, ordered by the numbers of
    /// these endpoints.
    pub companions: Vec<usize>,
    pub briefs: Vec<Brief>,
    /// The program of each peek.
    pub peeks: Vec<usize>,
    /// Number of handles of each program, including that of the stages; `None` if there are enough.
    pub handles: Option<usize>,
    /// Receives that replace cancelled ones.
    pub replacements: Vec<(usize, usize)>,
}

impl Plan {
    /// Draws extras for some of the seeds, and leaves the rest of their plan unchanged.
    pub fn draw_extras(&mut self, dice: &mut Dice, span: Duration) {
        if self.shape != Shape::Silence && self.shape.loses() && dice.chance(200) {
            // No limit of patience is needed: cuts end, and ended programs are detected.
            self.gives_up = false;
        }
        for at in 0..self.nodes {
            if self.has_all_receives() && dice.chance(200) {
                self.extras.companions.push(at);
                if dice.chance(400) {
                    let end = Action::CloseCompanion(self.extras.companions.len() - 1);
                    self.agenda.push((dice.between(Duration::ZERO, span), end));
                }
            }
        }
        if dice.chance(300) {
            self.draw_briefs(dice, span);
        }
        if dice.chance(300) {
            self.draw_cancels(dice, span);
        }
        for _ in 0..dice.below(10) {
            let at = dice.below(self.nodes as u64) as usize;
            let when = dice.between(Duration::ZERO, span);
            match dice.chance(500) {
                true => {
                    let peek = Action::Peek(self.extras.peeks.len());
                    self.agenda.push((when, peek));
                    self.extras.peeks.push(at);
                }
                false => {
                    let len = dice.one_of(&[0, 1, 95, 96, 97, 8_192]);
                    let bytes = (0..len).map(|_| dice.below(256) as u8).collect();
                    self.agenda.push((when, Action::Noise(at, bytes)));
                }
            }
        }
        if dice.chance(50) {
            self.draw_burst(dice, span);
        }
        if dice.chance(150) {
            self.extras.handles = Some(1 + dice.below(6) as usize);
        }
    }

    fn draw_briefs(&mut self, dice: &mut Dice, span: Duration) {
        for number in 0..1 + dice.below(4) as usize {
            let at = dice.below(self.nodes as u64) as usize;
            let is_part = dice.chance(300);
            let bytes = match is_part {
                true => self.regions[at]
                    .part(READ_AT, READ_BYTES)
                    .expect("it is inside"),
                false => self.lend(0, BRIEF_BYTES),
            };
            if !is_part {
                let constants: Vec<_> = (0..BRIEF_WRITES_AT).map(constant).collect();
                Pieces::One(bytes).fill(0, &constants);
            }
            let is_open = dice.chance(600);
            self.extras.briefs.push(Brief {
                at,
                bytes,
                is_part,
                is_open,
                key: 0,
            });
            let when = dice.between(Duration::ZERO, span);
            self.agenda.push((when, Action::Close(number)));
            for _ in 0..dice.below(8) {
                let from = dice.below(self.nodes as u64) as usize;
                if from != at {
                    self.draw_brief_access(dice, (from, at), number, span);
                }
            }
        }
    }

    fn draw_brief_access(
        &mut self,
        dice: &mut Dice,
        (from, to): (usize, usize),
        brief: usize,
        span: Duration,
    ) {
        let len = dice.one_of(&[4, 8, 60, 1_000, 9_000, 19_000]);
        let at = dice.below(1_000) as usize;
        let kind = match !self.extras.briefs[brief].is_part && dice.chance(500) {
            true => Kind::BriefWrite { brief, at, len },
            false => Kind::BriefRead { brief, at, len },
        };
        self.add_access(dice, (from, to), kind, span);
    }

    /// The offset of an access within memory that is closed.
    pub fn brief_at(kind: Kind) -> usize {
        match kind {
            Kind::BriefWrite { at, .. } => BRIEF_WRITES_AT + at,
            Kind::BriefRead { at, .. } => at,
            _ => unreachable!("it accesses other memory"),
        }
    }

    fn draw_cancels(&mut self, dice: &mut Dice, span: Duration) {
        for number in 0..self.receives.len() {
            if dice.chance(300) {
                let mut replacement = self.receives[number].clone();
                replacement.into = self.pieces(dice, replacement.into.len());
                let when = dice.between(Duration::ZERO, span);
                self.agenda.push((when, Action::Cancel(number)));
                let instead = self.receives.len();
                self.extras.replacements.push((number, instead));
                self.receives.push(replacement);
            }
        }
    }

    /// Draws more operations than a NIC takes at a time.
    fn draw_burst(&mut self, dice: &mut Dice, span: Duration) {
        let (from, to) = self.pair(dice, false);
        for _ in 0..300 {
            let at = dice.below(READ_BYTES as u64 - 20_000) as usize;
            let kind = Kind::Read { at, len: 8 };
            self.add_access(dice, (from, to), kind, span / 10);
        }
    }

    fn add_access(
        &mut self,
        dice: &mut Dice,
        (from, to): (usize, usize),
        kind: Kind,
        span: Duration,
    ) {
        let number = self.accesses.len();
        let memory = self.memory_of(dice, number, kind);
        let when = dice.between(Duration::ZERO, span);
        self.agenda.push((when, Action::Access(number)));
        self.accesses.push(Access {
            from,
            to,
            kind,
            memory,
        });
    }

    /// The number of the other endpoint of a program.
    pub fn companion(&self, at: usize) -> Option<usize> {
        let mut companions = self.extras.companions.iter();
        Some(self.nodes + companions.position(|&program| program == at)?)
    }

    pub fn endpoints(&self, at: usize) -> impl Iterator<Item = usize> {
        std::iter::once(at).chain(self.companion(at))
    }

    /// Closes the other endpoint of a program.
    pub fn close_companion(&self, net: &mut Network, number: usize) -> bool {
        let (at, program) = (self.nodes + number, self.extras.companions[number]);
        if net.nodes[at].is_ended {
            return true;
        }
        if net.running(program).is_none() {
            return false;
        }
        net.in_domain(at, |net, at| {
            let node = &mut net.nodes[at];
            node.endpoint.close(&mut node.shared);
        });
        net.leave(at);
        true
    }

    /// A program closes registered memory and waits until it is closed; false while it is not.
    pub fn close(&self, net: &mut Network, judge: &mut Judge, number: usize) -> bool {
        let brief = &self.extras.briefs[number];
        let at = brief.at;
        if net.running(at).is_none() {
            return net.nodes[at].is_ended;
        }
        match judge.closing.get(&at).copied() {
            None => {
                let closer = self.begin_close(net, brief);
                judge.closing.insert(at, (number, closer));
                return false;
            }
            Some((other, _)) if other != number => return false,
            Some((_, closer)) => {
                let is_over = |at: usize| {
                    let node = &net.nodes[at];
                    let is_closed = node.endpoint.ended_registration().is_some();
                    node.is_ended
                        || (!node.endpoint.is_using(brief.key) && (closer != Some(at) || is_closed))
                };
                if !self.endpoints(at).all(is_over) {
                    return false;
                }
                if let Some(closer) = closer {
                    net.nodes[closer].endpoint.leave_registration();
                }
            }
        }
        judge.closing.remove(&at);
        judge.closed.insert(number);
        if !brief.is_part {
            Pieces::One(brief.bytes).fill(0, &vec![memory::OWN; BRIEF_BYTES]);
        }
        true
    }

    /// Begins to close memory. Returns the endpoint that closes it at its NIC.
    fn begin_close(&self, net: &mut Network, brief: &Brief) -> Option<usize> {
        let regions = &mut net.nodes[brief.at].shared.regions;
        let region = regions.remove(&brief.key).expect("it is closed once");
        let mut closer = None;
        if let Some(Open { reach, by }) = region.open {
            let mut endpoints = self.endpoints(brief.at);
            closer = endpoints.find(|&at| Some(net.nodes[at].endpoint.address()) == by);
            if let Some(at) = closer {
                net.nodes[at].endpoint.begin_closing(reach.handle);
            }
        }
        for at in self.endpoints(brief.at) {
            net.in_domain(at, |net, at| {
                let node = &mut net.nodes[at];
                node.endpoint.region_closed(&mut node.shared, brief.key);
            });
        }
        closer
    }

    /// Checks that nobody has written closed memory, which is the program's again.
    pub fn is_closed_memory_untouched(&self, net: &Network, judge: &Judge) -> Result<(), String> {
        for &number in &judge.closed {
            let brief = &self.extras.briefs[number];
            let is_own = |bytes: &[u8]| bytes.iter().all(|&byte| byte == memory::OWN);
            if !brief.is_part && !net.nodes[brief.at].is_ended && !brief.bytes.with(is_own) {
                return Err(format!("memory {number} was written after it was closed"));
            }
        }
        Ok(())
    }

    pub fn cancel(&self, net: &mut Network, judge: &mut Judge, number: usize) -> bool {
        let at = self.receives[number].at;
        let Some(node) = net.running(at) else {
            return net.nodes[at].is_ended;
        };
        let is_cancelled = node.endpoint.cancel(&mut node.shared, RECEIVE | number);
        let mut all = self.extras.replacements.iter();
        match all.find(|(cancelled, _)| *cancelled == number && is_cancelled) {
            Some(&(_, instead)) => self.receive(net, judge, instead),
            None => true,
        }
    }

    pub fn peek(&self, net: &mut Network, judge: &mut Judge, number: usize) -> bool {
        let at = self.extras.peeks[number];
        let Some(node) = net.running(at) else {
            return net.nodes[at].is_ended;
        };
        let (mut wanted, _) = program::posted(PEEK | number, 0, 0);
        wanted.ignore = u64::MAX;
        node.endpoint.peek(&mut node.shared, &wanted, 0);
        judge.begun(PEEK | number, Ok(()))
    }
}

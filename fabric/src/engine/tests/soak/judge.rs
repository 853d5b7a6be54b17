//! Checks the operations of a seed.

use std::collections::{BTreeMap, BTreeSet};

use super::plan::*;
use super::*;
use crate::flags::{FI_REMOTE_CQ_DATA, FI_REMOTE_WRITE};

pub type Outcome = Result<(Entry, u64), (i32, Why)>;

/// Records the operations of one seed, and checks their outcome.
pub struct Judge {
    /// Operations that have begun, and the outcome of those that have ended.
    ops: BTreeMap<usize, Option<Outcome>>,
    /// Receives in the order in which they were posted.
    posted: Vec<usize>,
    /// Messages in the order in which they were sent.
    sent: Vec<usize>,
    /// Accesses in the order in which they began.
    accesses: Vec<usize>,
    /// Data of remote writes that their targets were notified of.
    announced: BTreeMap<u64, usize>,
    /// Operations that were permanently rejected.
    rejected: Vec<String>,
    /// The memory that each program is closing, and the endpoint that closes it at its NIC.
    pub closing: BTreeMap<usize, (usize, Option<usize>)>,
    /// Memory that has been closed.
    pub closed: BTreeSet<usize>,
    /// Beginnings and ends of operations, numbered in their order.
    steps: BTreeMap<usize, (usize, usize)>,
    step: usize,
}

impl Judge {
    pub fn new(_: &Plan) -> Self {
        Self {
            ops: BTreeMap::new(),
            posted: Vec::new(),
            sent: Vec::new(),
            accesses: Vec::new(),
            announced: BTreeMap::new(),
            rejected: Vec::new(),
            closing: BTreeMap::new(),
            closed: BTreeSet::new(),
            steps: BTreeMap::new(),
            step: 0,
        }
    }

    /// Records that an operation has begun, or was rejected; false if it must be tried again.
    pub fn begun(&mut self, context: usize, begun: Result<(), i32>) -> bool {
        match begun {
            Ok(()) => {
                // A receive may have ended already; no completion was taken so far.
                self.ops.insert(context, None);
                self.step += 1;
                self.steps.insert(context, (self.step, usize::MAX));
                let number = context & (SEND - 1);
                match context & !(SEND - 1) {
                    ACCESS => self.accesses.push(number),
                    SEND => self.sent.push(number),
                    _ => {}
                }
                true
            }
            Err(libc::EAGAIN) => false,
            Err(errno) => {
                self.rejected.push(format!("{}: {errno}", name(context)));
                true
            }
        }
    }

    pub fn posted(&mut self, number: usize) {
        self.posted.push(number);
    }

    /// Whether an access may begin: only one at a time may change a slot.
    pub fn may_begin(&self, plan: &Plan, number: usize) -> bool {
        let wanted = &plan.accesses[number];
        let Kind::Write { slot, .. } = wanted.kind else {
            return true;
        };
        self.accesses.iter().all(|&other| {
            let access = &plan.accesses[other];
            let same = matches!(access.kind, Kind::Write { slot: s, .. } if s == slot);
            let is_same = same && (access.from, access.to) == (wanted.from, wanted.to);
            !is_same || self.ops[&(ACCESS | other)].is_some()
        })
    }

    /// Takes the completions of a program.
    pub fn take(&mut self, plan: &Plan, net: &mut Network, at: usize) -> Result<(), String> {
        let queue = net.nodes[at].shared.queues.get_mut(0);
        let queue = queue.expect("it is there");
        for (entry, source) in queue.entries.drain(..) {
            if entry.flags & FI_REMOTE_WRITE != 0 && entry.flags & FI_REMOTE_CQ_DATA != 0 {
                *self.announced.entry(entry.data).or_default() += 1;
                continue;
            }
            self.ended(plan, at, entry.context, Ok((entry, source)))?;
        }
        for (entry, failure, _) in queue.errors.drain(..) {
            self.ended(plan, at, entry.context, Err((failure.errno, failure.why)))?;
        }
        Ok(())
    }

    fn ended(
        &mut self,
        plan: &Plan,
        at: usize,
        context: usize,
        outcome: Outcome,
    ) -> Result<(), String> {
        match self.ops.get_mut(&context) {
            Some(slot @ None) => {
                *slot = Some(outcome);
                self.step += 1;
                self.steps.entry(context).or_default().1 = self.step;
                memory::at_end(plan, context, &outcome)
            }
            other => Err(format!(
                "{} at {at} ends with {outcome:?}, and was {other:?}",
                name(context)
            )),
        }
    }

    fn outcome(&self, context: usize) -> Option<&Outcome> {
        self.ops.get(&context)?.as_ref()
    }

    /// Whether everything has ended, and nothing is in flight.
    pub fn is_over(&self, net: &Network) -> bool {
        net.next_event().is_none()
            && self.ops.values().all(Option::is_some)
            && (0..net.nodes.len()).all(|at| left(net, at).is_ok())
    }

    /// Checks the final state.
    pub fn judge(&self, plan: &Plan, net: &mut Network, postponed: usize) -> Result<(), String> {
        if postponed > 0 {
            return Err(format!("{postponed} operations find no room for ever"));
        }
        if let Some(rejected) = self.rejected.first() {
            return Err(format!("rejected: {rejected}"));
        }
        let excused = self.all_ended(plan, net)?;
        self.failures(plan)?;
        self.messages(plan)?;
        self.acknowledged(plan)?;
        for (&context, outcome) in &self.ops {
            if let Some(outcome) = outcome {
                memory::is_untouched(plan, context, outcome)?;
            }
        }
        self.order(plan)?;
        self.writes(plan, net)?;
        plan.is_closed_memory_untouched(net, self)?;
        self.counters(plan, net)?;
        let mut nodes = (0..plan.nodes).filter(|at| !excused.contains(at));
        nodes.try_for_each(|at| left(net, at))
    }

    /// Checks that every operation has ended. The loss of a peer fails the receives from any source
    /// that are posted at that time. Therefore a later receive from any source, of a program that
    /// was notified of a loss, need not end, and neither need long messages that found no such
    /// receive. Returns the programs of those messages.
    fn all_ended(&self, plan: &Plan, net: &Network) -> Result<BTreeSet<usize>, String> {
        let knows = |at: usize| {
            let failures = net.nodes[at].endpoint.failures();
            plan.matching != Match::Exact && failures.iter().any(Option::is_some)
        };
        let mut excused = BTreeSet::new();
        for (&context, _) in self.ops.iter().filter(|(_, outcome)| outcome.is_none()) {
            let number = context & (SEND - 1);
            let (at, may_wait) = match context & !(SEND - 1) {
                SEND => (plan.messages[number].from, knows(plan.messages[number].to)),
                RECEIVE => (plan.receives[number].at, knows(plan.receives[number].at)),
                PEEK => (plan.extras.peeks[number], false),
                _ => (plan.accesses[number].from, false),
            };
            let node = &net.nodes[at];
            if !node.is_ended && !may_wait {
                let peers = node.endpoint.failures();
                let left: Vec<_> = (0..net.nodes.len())
                    .filter_map(|at| left(net, at).err())
                    .collect();
                let name = name(context);
                return Err(format!("{name} at {at} never ends; {peers:?}; {left:?}"));
            }
            excused.insert(at);
            if context & !(SEND - 1) == SEND {
                excused.insert(plan.messages[number].to);
            }
        }
        Ok(excused)
    }

    /// Checks that nothing fails without a reason.
    fn failures(&self, plan: &Plan) -> Result<(), String> {
        if plan.loses() {
            return Ok(());
        }
        for (&context, outcome) in &self.ops {
            if let Some(Err((errno, why))) = outcome {
                let number = context & (SEND - 1);
                let may_fail = match context & !(SEND - 1) {
                    RECEIVE => *errno == libc::ECANCELED,
                    PEEK => *errno == libc::ENOMSG,
                    ACCESS => self.access_may_fail(plan, number, *why),
                    _ => false,
                };
                if !may_fail {
                    return Err(format!("{} fails with {errno}, {why:?}", name(context)));
                }
            }
        }
        Ok(())
    }

    fn access_may_fail(&self, plan: &Plan, number: usize, why: Why) -> bool {
        match plan.accesses[number].kind {
            // It is unknown whether an atomic operation without an answer was carried out.
            Kind::Add => plan.reaches_own && plan.shape != Shape::Calm && why == Why::Unknown,
            Kind::BriefRead { .. } => why == Why::Refused,
            // A part may have been written before the memory was closed.
            Kind::BriefWrite { .. } => matches!(why, Why::Refused | Why::Unknown),
            _ => false,
        }
    }

    fn messages(&self, plan: &Plan) -> Result<(), String> {
        let mut taken = vec![0; plan.messages.len()];
        for (number, receive) in plan.receives.iter().enumerate() {
            let Some(Ok((entry, source))) = self.outcome(RECEIVE | number) else {
                continue;
            };
            let wrong = |what: &str| Err(format!("receive {number}: {what}: {entry:?}"));
            let sent = entry.data as usize;
            let Some(message) = plan.messages.get(sent) else {
                return wrong("no such message");
            };
            taken[sent] += 1;
            let is_wanted = receive.from.is_none_or(|from| from == message.from)
                && receive.tag.is_none_or(|tag| tag == message.tag)
                && receive.at == message.to;
            if !is_wanted || *source != message.from as u64 || entry.tag != message.tag {
                return wrong("a message that it does not want");
            }
        }
        for (number, &count) in taken.iter().enumerate() {
            let message = &plan.messages[number];
            let was_sent = matches!(self.outcome(SEND | number), Some(Ok(_)));
            if count > 1 || (count == 0 && was_sent && !plan.loses()) {
                let to = message.to;
                return Err(format!(
                    "message {number} to {to} was received {count} times"
                ));
            }
        }
        Ok(())
    }

    /// Checks that a message does not fail once its sender has received one that the receiver sent
    /// later, since that one acknowledged it.
    fn acknowledged(&self, plan: &Plan) -> Result<(), String> {
        let receives =
            (0..plan.receives.len()).filter_map(|number| match self.outcome(RECEIVE | number)? {
                Ok((entry, _)) => Some((entry.data as usize, self.steps[&(RECEIVE | number)].1)),
                Err(_) => None,
            });
        let received: BTreeMap<usize, usize> = receives.collect();
        for (&number, &taken_in) in &received {
            let Some(Err(failure)) = self.outcome(SEND | number) else {
                continue;
            };
            let message = &plan.messages[number];
            let failed = self.steps[&(SEND | number)].1;
            let is_reply = |(&other, &arrived): (&usize, &usize)| {
                let reply = &plan.messages[other];
                (reply.from, reply.to) == (message.to, message.from)
                    && self.steps[&(SEND | other)].0 > taken_in
                    && arrived < failed
            };
            if message.from != message.to && received.iter().any(is_reply) {
                return Err(format!(
                    "message {number} was acknowledged, and fails with {failure:?}"
                ));
            }
        }
        Ok(())
    }

    /// Checks that messages of one sender do not overtake each other in receives with the same tag.
    fn order(&self, plan: &Plan) -> Result<(), String> {
        let mut last: BTreeMap<_, (usize, usize)> = BTreeMap::new();
        let sent: Vec<_> = self.send_order(plan);
        for &number in &self.posted {
            let Some(Ok((entry, _))) = self.outcome(RECEIVE | number) else {
                continue;
            };
            let receive = &plan.receives[number];
            let message = entry.data as usize;
            let key = (receive.at, receive.tag, plan.messages[message].from);
            let at = sent[message];
            if let Some(&(before, other)) = last.get(&key)
                && before > at
            {
                return Err(format!("message {message} overtook {other}"));
            }
            last.insert(key, (at, message));
        }
        Ok(())
    }

    /// The rank of each message in the order in which its sender sent.
    fn send_order(&self, plan: &Plan) -> Vec<usize> {
        let mut ranks = vec![usize::MAX; plan.messages.len()];
        for (rank, number) in self.sent.iter().enumerate() {
            ranks[*number] = rank;
        }
        ranks
    }

    fn writes(&self, plan: &Plan, net: &Network) -> Result<(), String> {
        // The allowed contents of a slot: those of the last write that did not fail, or of a later
        // one.
        let mut slots: BTreeMap<(usize, usize, usize), Vec<Vec<u8>>> = BTreeMap::new();
        for &number in &self.accesses {
            let access = &plan.accesses[number];
            let outcome = self.outcome(ACCESS | number);
            let is_done = matches!(outcome, Some(Ok(_)));
            let Kind::Write {
                slot,
                len,
                with_data,
            } = access.kind
            else {
                continue;
            };
            let count = self.announced.get(&(number as u64)).copied().unwrap_or(0);
            if count > 1 || (with_data && is_done && count == 0) {
                return Err(format!("write {number} was announced {count} times"));
            }
            let key = (access.from, access.to, slot);
            let may = slots
                .entry(key)
                .or_insert_with(|| vec![vec![0; SLOT_BYTES]]);
            match outcome {
                Some(Ok(_)) => {
                    let data = pattern(len, number + 77);
                    may.iter_mut()
                        .for_each(|bytes| bytes[..len].copy_from_slice(&data));
                }
                // It was not carried out.
                Some(Err((_, Why::Unreachable | Why::Departed | Why::Refused))) => {}
                // Some of its bytes may be there, so the content is unknown.
                _ => may.clear(),
            }
        }
        for ((from, to, slot), may) in slots {
            if net.nodes[to].is_ended || may.is_empty() {
                continue;
            }
            let at = slot_at(from, slot);
            let found = Pieces::One(plan.regions[to]).to_vec(at, SLOT_BYTES);
            if !may.contains(&found) {
                return Err(format!(
                    "slot {slot} of {from} at {to} holds what was not written last"
                ));
            }
        }
        Ok(())
    }

    fn counters(&self, plan: &Plan, net: &Network) -> Result<(), String> {
        for to in (0..plan.nodes).filter(|&to| !net.nodes[to].is_ended) {
            for (kind, offset) in [(Kind::Add, ADDS), (Kind::Triple, TRIPLES)] {
                let all = self.accesses.iter().filter(|&&number| {
                    let access = &plan.accesses[number];
                    (access.to, access.kind) == (to, kind)
                });
                let outcomes: Vec<_> = all.map(|n| self.outcome(ACCESS | n)).collect();
                let done = outcomes.iter().filter(|o| matches!(o, Some(Ok(_)))).count();
                let found = Pieces::One(plan.regions[to]).to_vec(offset, 8);
                let found = u64::from_le_bytes(found.try_into().unwrap_or_default());
                let may = |count: usize| match kind {
                    Kind::Add => count as u64,
                    _ => 3_u64.wrapping_pow(count as u32),
                };
                // Operations with other outcomes were not carried out.
                let unknown =
                    |o: &&Option<&Outcome>| matches!(o, None | Some(Err((_, Why::Unknown))));
                let most = done + outcomes.iter().filter(unknown).count();
                if !(done..=most).any(|count| may(count) == found) {
                    return Err(format!("{kind:?} at {to}: {found} after {done} to {most}"));
                }
            }
        }
        Ok(())
    }
}

pub fn name(context: usize) -> String {
    let number = context & (SEND - 1);
    match context & !(SEND - 1) {
        SEND => format!("send {number}"),
        RECEIVE => format!("receive {number}"),
        PEEK => format!("peek {number}"),
        _ => format!("access {number}"),
    }
}

/// Checks that nothing is left in an endpoint.
fn left(net: &Network, at: usize) -> Result<(), String> {
    let node = &net.nodes[at];
    let endpoint = &node.endpoint;
    if node.is_ended || node.is_silent {
        return Ok(());
    }
    match endpoint.left().into_iter().find(|(_, count)| *count > 0) {
        Some((what, count)) => Err(format!("{count} {what} are left at {at}")),
        None => Ok(()),
    }
}

//! Packets of a run that are traced: some messages between two terminals, and what the routers have
//! written down of them.

use std::collections::BTreeMap;

use crate::net::{NodeRef, Sightings};
use crate::trace::{Flow, Passage};

/// Which messages are traced: the first of the measurement from one network interface to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traced {
    /// Where they come from, by its number among the network's processors.
    pub from: u32,
    /// Where they go to.
    pub to: u32,
    /// The two by the numbers that routers know.
    pub flow: Flow,
    /// How many.
    pub count: usize,
}

/// A traced message. No source makes two in one cycle, so that its birth names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The cycle in which it was born.
    pub birth: u64,
    /// What routers know it by.
    pub identity: u64,
    /// What routers know the answer by.
    pub answer_identity: u64,
    /// The cycle in which the last of it arrived.
    pub arrived: Option<u64>,
    /// The cycle in which the last of the answer arrived, where messages are answered.
    pub answered: Option<u64>,
}

/// What became of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The messages, oldest first.
    pub messages: Vec<Message>,
    /// What routers have written down; times are picoseconds since cycle 0.
    pub seen: Sightings,
    /// Packets that routers have written nothing down of, for want of room.
    pub dropped: u64,
}

impl Found {
    /// Adds what one part of the network knows.
    pub(crate) fn add_messages(&mut self, witness: &Witness) {
        self.messages.extend(&witness.sent);
    }

    /// Adds when they arrived, as one part of the network knows, and puts them in order.
    pub(crate) fn add_arrivals(&mut self, witness: &Witness) {
        self.messages.sort_by_key(|message| message.birth);
        for message in &mut self.messages {
            let arrived = witness.arrived.get(&message.birth).copied();
            message.arrived = message.arrived.or(arrived);
            let answered = witness.answered.get(&message.birth).copied();
            message.answered = message.answered.or(answered);
        }
    }

    /// Adds what a router has written down.
    pub(crate) fn add_router(&mut self, chip: u32, passages: Vec<Passage>, dropped: u64) {
        self.seen.insert(NodeRef::Chip(chip), passages);
        self.dropped += dropped;
    }
}

/// What the terminals of a part of the network write down of traced messages.
#[derive(Clone, Debug, Default)]
pub struct Witness {
    /// The numbers of the terminals of the network interfaces.
    pub(crate) from: Vec<u64>,
    pub(crate) to: Vec<u64>,
    pub(crate) flow: Option<Flow>,
    /// Messages born before are none of them.
    pub(crate) since: u64,
    pub(crate) count: usize,
    sent: Vec<Message>,
    /// By their birth.
    arrived: BTreeMap<u64, u64>,
    answered: BTreeMap<u64, u64>,
}

/// Arrivals that are kept at most, of all messages between the two.
const MOST_ARRIVALS: usize = 1 << 16;

impl Witness {
    /// One of what is to be traced between the terminals of two network interfaces.
    pub(crate) fn new(traced: &Traced, (from, to): (Vec<u64>, Vec<u64>)) -> Self {
        Self {
            from,
            to,
            flow: Some(traced.flow),
            count: traced.count,
            ..Self::default()
        }
    }

    /// A terminal begins to send a message to another; `identities` tells what routers know it and
    /// its answer by.
    #[cold]
    pub fn sent(
        &mut self,
        (from, to): (u64, u64),
        birth: u64,
        identities: impl FnOnce() -> [u64; 2],
    ) {
        let is_one = birth >= self.since && self.from.contains(&from) && self.to.contains(&to);
        if is_one && self.sent.len() < self.count {
            let [identity, answer_identity] = identities();
            self.sent.push(Message {
                birth,
                identity,
                answer_identity,
                arrived: None,
                answered: None,
            });
        }
    }

    /// A message born then has arrived; both ends by the numbers that routers know.
    #[cold]
    pub fn arrived(&mut self, from: u32, to: u32, birth: u64, now: u64) {
        if self.flow == Some(Flow { from, to }) && self.arrived.len() < MOST_ARRIVALS {
            self.arrived.insert(birth, now);
        }
    }

    /// The answer to a message of `from` that was born then has arrived.
    #[cold]
    pub fn answered(&mut self, from: u32, birth: u64, now: u64) {
        let is_source = self.flow.is_some_and(|flow| flow.from == from);
        if is_source && self.answered.len() < MOST_ARRIVALS {
            self.answered.insert(birth, now);
        }
    }
}

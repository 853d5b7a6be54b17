//! Tracing of packets: some messages between two terminals, and the routers' records of them.

use std::collections::BTreeMap;

use crate::net::{NodeRef, Sightings};
use crate::trace::{Flow, Passage};

/// Selects the messages to trace: the first of the measurement from one NIC to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traced {
    /// The sending NIC, by its number among the network's processors.
    pub from: u32,
    /// The receiving NIC.
    pub to: u32,
    /// The two NICs by the numbers that routers use.
    pub flow: Flow,
    /// Number of messages.
    pub count: usize,
}

/// A traced message. No source creates two in one cycle, so its birth identifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Birth cycle of the message.
    pub birth: u64,
    /// The message's identity for routers.
    pub identity: u64,
    /// The reply's identity for routers.
    pub answer_identity: u64,
    /// Cycle in which the message's last phit arrived.
    pub arrived: Option<u64>,
    /// Cycle in which the reply's last phit arrived, if there are replies.
    pub answered: Option<u64>,
}

/// The result of a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The messages, oldest first.
    pub messages: Vec<Message>,
    /// Records of the routers; times are picoseconds since cycle 0.
    pub seen: Sightings,
    /// Packets that routers did not record, for lack of room.
    pub dropped: u64,
}

impl Found {
    /// Adds the messages that one part of the network sent.
    pub(crate) fn add_messages(&mut self, message_trace: &MessageTrace) {
        self.messages.extend(&message_trace.sent);
    }

    /// Adds the arrivals in one part of the network, and sorts the messages.
    pub(crate) fn add_arrivals(&mut self, message_trace: &MessageTrace) {
        self.messages.sort_by_key(|message| message.birth);
        for message in &mut self.messages {
            let arrived = message_trace.arrived.get(&message.birth).copied();
            message.arrived = message.arrived.or(arrived);
            let answered = message_trace.answered.get(&message.birth).copied();
            message.answered = message.answered.or(answered);
        }
    }

    /// Adds a router's records.
    pub(crate) fn add_router(&mut self, chip: u32, passages: Vec<Passage>, dropped: u64) {
        self.seen.insert(NodeRef::Chip(chip), passages);
        self.dropped += dropped;
    }
}

/// Records of traced messages in one part of the network.
#[derive(Clone, Debug, Default)]
pub struct MessageTrace {
    /// Numbers of the NICs' terminals.
    pub(crate) from: Vec<u64>,
    pub(crate) to: Vec<u64>,
    pub(crate) flow: Option<Flow>,
    /// Messages born earlier are not traced.
    pub(crate) since: u64,
    pub(crate) count: usize,
    sent: Vec<Message>,
    /// Arrival cycles, by birth.
    arrived: BTreeMap<u64, u64>,
    /// Arrival cycles of replies, by birth of the message.
    answered: BTreeMap<u64, u64>,
}

/// Maximum number of arrivals kept, of all messages between the two NICs.
const MOST_ARRIVALS: usize = 1 << 16;

impl MessageTrace {
    /// A witness of messages between the terminals of two NICs.
    pub(crate) fn new(traced: &Traced, (from, to): (Vec<u64>, Vec<u64>)) -> Self {
        Self {
            from,
            to,
            flow: Some(traced.flow),
            count: traced.count,
            ..Self::default()
        }
    }

    /// A terminal starts to send a message; `identities` gives its identity and its reply's for
    /// routers.
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

    /// A message born in cycle `birth` has arrived; both ends by the numbers that routers use.
    #[cold]
    pub fn arrived(&mut self, from: u32, to: u32, birth: u64, now: u64) {
        if self.flow == Some(Flow { from, to }) && self.arrived.len() < MOST_ARRIVALS {
            self.arrived.insert(birth, now);
        }
    }

    /// The reply to a message from `from`, born in cycle `birth`, has arrived.
    #[cold]
    pub fn answered(&mut self, from: u32, birth: u64, now: u64) {
        let is_source = self.flow.is_some_and(|flow| flow.from == from);
        if is_source && self.answered.len() < MOST_ARRIVALS {
            self.answered.insert(birth, now);
        }
    }
}

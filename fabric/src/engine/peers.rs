//! The peers of an endpoint.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::shared::{Failure, Op};
use super::wire::{Address, Head};

/// Action once a message has arrived, or never will.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// No action.
    Nothing,
    /// Complete the operation, which had this many bytes.
    Op(Op, usize),
    /// Continue the request; if the message never arrives, fail it.
    Request(u64),
    /// Continue the announced transfer; if the message never arrives, fail it.
    Offer(u64),
    /// The lost peer with this number knows.
    Notice(usize),
}

/// A message waiting to be sent.
#[derive(Debug)]
pub struct Parcel {
    /// Head of the message, without sequence numbers.
    pub head: Head,
    /// Payload of the message.
    pub payload: Vec<u8>,
    /// Action at the end of the message.
    pub end: End,
}

/// Another endpoint, or this one.
#[derive(Debug, Default)]
pub struct Peer {
    /// Address of the peer.
    pub address: Address,
    /// Whether the peer is this endpoint.
    pub is_self: bool,
    /// Messages waiting to be sent.
    pub out: VecDeque<Parcel>,
    /// Sequence number of the next message.
    pub next: u64,
    /// Number of messages that the peer has acknowledged.
    pub acked: u64,
    /// Maximum number of messages in flight to the peer.
    pub window: u64,
    /// The next sequence number expected from it.
    pub expected: u64,
    /// The peer wants an acknowledgement, or sent a duplicate and so may have missed one.
    pub wants_ack: bool,
    /// Messages that arrived early.
    pub held: BTreeMap<u64, (Head, Vec<u8>)>,
    /// Unfinished atomic operations on its opened memory, by request.
    pub changes: usize,
    /// Whether the peer is in the list of those that could not be sent to.
    pub is_waiting: bool,
    /// Why the peer is lost, if it is.
    pub failed: Option<Failure>,
    /// Whether the peer has given a sign of life since the last check that awaited it.
    pub is_heard: bool,
}

/// All peers.
#[derive(Debug)]
pub struct Peers {
    /// The peers by number.
    pub all: Vec<Peer>,
    numbers: HashMap<Address, usize>,
    own: Address,
}

impl Peers {
    /// No peers yet, of the endpoint with this address.
    pub fn new(own: Address) -> Self {
        Self {
            all: Vec::new(),
            numbers: HashMap::new(),
            own,
        }
    }

    /// Why a peer is lost, if it is.
    pub fn failure(&self, address: &Address) -> Option<Failure> {
        self.all[*self.numbers.get(address)?].failed
    }

    /// The number of an address, assigned if new.
    pub fn number(&mut self, address: Address) -> usize {
        let next = self.all.len();
        let number = *self.numbers.entry(address).or_insert(next);
        if number == next {
            self.all.push(Peer {
                address,
                is_self: address == self.own,
                ..Peer::default()
            });
        }
        number
    }

    /// A peer gave a sign of life.
    pub fn heard(&mut self, peer: usize) {
        self.all[peer].is_heard = true;
    }

    /// Whether a peer has given a sign of life since this was last asked.
    pub fn take_heard(&mut self, peer: usize) -> bool {
        std::mem::take(&mut self.all[peer].is_heard)
    }

    /// The number of this endpoint among its peers.
    pub fn own(&mut self) -> usize {
        self.number(self.own)
    }
}

/// A value for each peer, its default at first.
#[derive(Debug)]
pub struct PerPeer<T>(Vec<T>);

impl<T> Default for PerPeer<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Default> PerPeer<T> {
    /// The value of a peer.
    pub fn of(&mut self, peer: usize) -> &mut T {
        if self.0.len() <= peer {
            self.0.resize_with(peer + 1, T::default);
        }
        &mut self.0[peer]
    }

    /// The value of a peer; `None` if it was never changed.
    pub fn get(&self, peer: usize) -> Option<&T> {
        self.0.get(peer)
    }

    /// All values that may have changed.
    #[cfg(test)]
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }
}

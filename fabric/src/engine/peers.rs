//! The peers of an endpoint.

use std::collections::HashMap;

use super::shared::Failure;
use super::wire::Address;

/// Another endpoint, or this one.
#[derive(Debug, Default)]
pub struct Peer {
    pub address: Address,
    /// Whether the peer is this endpoint.
    pub is_self: bool,
    /// Why the peer is lost, if it is.
    pub failed: Option<Failure>,
    /// Whether a lost peer no longer waits for this endpoint: it has been notified, has given up
    /// this endpoint, or has ended.
    pub is_notified: bool,
    /// Whether the peer has given a sign of life since the last check that awaited it.
    pub is_heard: bool,
}

#[derive(Debug)]
pub struct Peers {
    all: Vec<Peer>,
    numbers: HashMap<Address, usize>,
    own: Address,
    /// Number of peers added because they sent a message.
    senders: usize,
}

/// Maximum number of peers added because they sent a message.
const MOST_SENDERS: usize = 4096;

impl Peers {
    /// The peers of the endpoint with this address: none at first.
    pub fn new(own: Address) -> Self {
        Self {
            all: Vec::new(),
            numbers: HashMap::new(),
            own,
            senders: 0,
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
        debug_assert_eq!(self.all.len(), self.numbers.len(), "a peer has one address");
        number
    }

    /// The number of a sender; `None` if it is new and the limit of new senders is reached.
    pub fn number_of_sender(&mut self, address: Address) -> Option<usize> {
        if !self.numbers.contains_key(&address) {
            if self.senders >= MOST_SENDERS {
                return None;
            }
            self.senders += 1;
        }
        Some(self.number(address))
    }

    pub fn get(&self, peer: usize) -> Option<&Peer> {
        self.all.get(peer)
    }

    pub const fn len(&self) -> usize {
        self.all.len()
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Peer> {
        self.all.iter()
    }

    /// Marks a peer as lost, for good.
    pub fn lose(&mut self, peer: usize, failure: Failure) {
        let old = self.all[peer].failed.replace(failure);
        debug_assert!(old.is_none(), "a peer is lost once");
    }

    /// Marks a lost peer that no longer waits for this endpoint.
    pub fn notified(&mut self, peer: usize) {
        self.all[peer].is_notified = true;
    }

    /// Records a sign of life of a peer.
    pub fn heard(&mut self, peer: usize) {
        self.all[peer].is_heard = true;
    }

    /// Whether a peer has given a sign of life since the last call.
    pub fn take_heard(&mut self, peer: usize) -> bool {
        std::mem::take(&mut self.all[peer].is_heard)
    }

    /// The number of this endpoint among its peers.
    pub fn own(&mut self) -> usize {
        self.number(self.own)
    }
}

impl std::ops::Index<usize> for Peers {
    type Output = Peer;

    fn index(&self, peer: usize) -> &Peer {
        &self.all[peer]
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

    /// All values that may have changed, by peer.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }
}

//! The other ends.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::liveness::Pulse;
use super::shared::{Failure, Op};
use super::wire::{Address, Head};

/// What becomes of a message when it has arrived, or never will.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// Nothing.
    Nothing,
    /// The operation, of so many bytes, has completed.
    Op(Op, usize),
    /// A request goes on; if it never arrives, the request fails.
    Request(u64),
    /// The same for an announced transfer.
    Offer(u64),
}

/// A message that waits to be sent.
#[derive(Debug)]
pub struct Parcel {
    /// Its head, without numbers.
    pub head: Head,
    /// What is behind it.
    pub payload: Vec<u8>,
    /// What then.
    pub end: End,
}

/// Another end point, or this one.
#[derive(Debug, Default)]
pub struct Peer {
    /// Where it is.
    pub address: Address,
    /// Whether it is this one.
    pub is_self: bool,
    /// Messages that wait.
    pub out: VecDeque<Parcel>,
    /// The next message's number.
    pub next: u64,
    /// How many messages it has taken in.
    pub acked: u64,
    /// Most messages on their way to it.
    pub window: u64,
    /// The number of the message that is expected from it.
    pub expected: u64,
    /// It wants an acknowledgement, or has sent something twice, and may have missed one.
    pub wants_ack: bool,
    /// Messages that came too early.
    pub held: BTreeMap<u64, (Head, Vec<u8>)>,
    /// Atomic operations on opened memory of it that have not ended: those of network interfaces,
    /// and those that are requests. One kind at a time keeps their order.
    pub changes: [usize; 2],
    /// It waits in the list of those that could not send.
    pub is_waiting: bool,
    /// It cannot be reached any more.
    pub failed: Option<Failure>,
    /// Whether it gives signs of life.
    pub pulse: Pulse,
}

/// All of them.
#[derive(Debug, Default)]
pub struct Peers {
    /// By number.
    pub all: Vec<Peer>,
    numbers: HashMap<Address, usize>,
}

impl Peers {
    /// Why another end cannot be reached any more.
    pub fn failure(&self, address: &Address) -> Option<Failure> {
        self.all[*self.numbers.get(address)?].failed
    }

    /// The number of an address.
    pub fn number(&mut self, address: Address, own: Address) -> usize {
        let next = self.all.len();
        let number = *self.numbers.entry(address).or_insert(next);
        if number == next {
            self.all.push(Peer {
                address,
                is_self: address == own,
                ..Peer::default()
            });
        }
        number
    }
}

//! Messages that arrive, wait for a receive, or are given up.

use std::time::Duration;

use phitwire_client::door::{Completion, Local, Status};

use super::flight::{Fate, Flight};
use super::{DELIVERY, Ended, Event, Harm, Network};
use crate::engine::wire::Kind;

impl Network {
    pub(super) fn post_receive(&mut self, at: usize, name: u64, into: Local) {
        let here = self.nodes[at].endpoint.address().processor;
        let at_nic = self
            .nodes
            .iter()
            .filter(|node| node.endpoint.address().processor == here);
        let posted: usize = at_nic.map(|node| node.receives.len()).sum();
        if posted >= self.most_receives {
            return self.answer(at, name, Err(Status::TooMany), Duration::ZERO);
        }
        self.nodes[at].receives.push_back((name, into));
        if let Some(flight) = self.nodes[at].arrived.pop_front() {
            self.arrive(flight);
        }
    }

    /// Gives up the oldest message that waits for a receive, if it has waited long enough.
    pub(super) fn give_up(&mut self, to: usize) {
        let arrived = &mut self.nodes[to].arrived;
        let is_due = |flight: &Flight| self.now >= flight.since + DELIVERY;
        if let Some(flight) = arrived.pop_front_if(|flight| is_due(flight))
            && flight.fate != Fate::Late
        {
            let status = match flight.fate {
                Fate::Fine => Status::NoReceive,
                _ => Status::TimedOut,
            };
            self.answer(flight.from, flight.name, Err(status), Duration::ZERO);
        }
    }

    /// Delivers a message; `None` if it has to wait for a receive.
    pub(super) fn deliver(&mut self, flight: Flight, processor: u16, member: u8) -> Option<Ended> {
        let to = self.nodes.iter().position(|node| {
            let address = node.endpoint.address();
            (address.processor, address.member) == (processor, member)
        });
        let Some(to) = to else {
            return Some(Err(Status::NoProcessor));
        };
        let node = &mut self.nodes[to];
        if node.is_ended || node.receives.is_empty() {
            node.arrived.push_back(flight);
            self.after(DELIVERY, Event::GiveUp(to));
            return None;
        }
        if self.harm == Some(Harm::Swallow) && self.dice.chance(200) {
            return Some(Ok(0));
        }
        if self.harm == Some(Harm::Discreet) && flight.data[0] == Kind::Lost as u8 {
            return Some(Ok(0));
        }
        let (name, into) = node.receives.pop_front()?;
        let mut data = flight.data;
        if self.harm == Some(Harm::Flip)
            && let Some(last) = data.get_mut(96..).and_then(<[u8]>::last_mut)
        {
            *last ^= 0x10;
        }
        let processor = self.nodes[flight.from].endpoint.address().processor;
        self.receive(to, (name, into), (processor, &data));
        Some(Ok(0))
    }

    /// Delivers bytes that no endpoint has sent, if the program has a receive.
    pub fn noise(&mut self, at: usize, bytes: &[u8]) {
        if let Some((name, into)) = self.nodes[at].receives.pop_front() {
            self.receive(at, (name, into), (0, bytes));
        }
    }

    fn receive(&mut self, to: usize, (name, into): (u64, Local), (processor, data): (u16, &[u8])) {
        let received = Completion::Received {
            name,
            status: Status::Done,
            processor,
            bytes: data.len() as u64,
        };
        self.store(to, into, data).expect("the receive is its own");
        self.after(Duration::ZERO, Event::End(to, received, None));
    }
}

//! Completions on their way to the local programs of a NIC, unsolicited events, and the numbers by
//! which programs address other nodes.

use phitwire_framing::door::{Completion as DoorCompletion, Status};

use super::AriesNic;
use super::client_words::{client_of, door_completion, name_of};
use super::completion::{Ended, TargetEvent};
use phitwire::nic::local::Client;
use phitwire::time::Time;

impl AriesNic {
    /// Lets the completions of this turn cross the host interface, if its times are modelled.
    pub(super) fn send_completions(&mut self, now: Time) {
        let Some(host) = &self.interface.requester.host else {
            return;
        };
        if !self.clients.are_in_use() {
            return;
        }
        let at = host.seen(now);
        while let Some((client, completion)) = self.next_ended() {
            self.clients.crossing.push_back((at, client, completion));
        }
    }

    /// When programs see the next completion that they do not see yet.
    pub(super) fn next_seen(&self, now: Time) -> Option<Time> {
        let all = self.clients.crossing.iter();
        all.map(|&(at, ..)| at).find(|&at| at > now)
    }

    /// The next completion for a client that has not exited, as the NIC knows it.
    pub(super) fn next_ended(&mut self) -> Option<(Client, DoorCompletion)> {
        while let Some((client, completion)) = self.interface.poll_local() {
            let is_transfer = matches!(completion.ended, Ended::Transfer { .. });
            if self.has_ended(client, is_transfer) {
                return Some((client, door_completion(&completion)));
            }
        }
        while let Some((client, completion)) = self.collective_ended() {
            if self.has_ended(client, false) {
                return Some((client, completion));
            }
        }
        while let Some(event) = self.poll_target_event() {
            if let Some(completion) = self.completion_of_event(event) {
                return Some(completion);
            }
        }
        None
    }

    pub(super) fn number_nodes(&mut self) {
        let nodes = self.virtual_nodes();
        let numbers = (0..=u16::MAX).map_while(|number| Some((nodes.get(number.into())?, number)));
        let mut numbers: Vec<_> = numbers.collect();
        numbers.sort_by_key(|(node, number)| (node.bits(), *number));
        numbers.dedup_by_key(|(node, _)| node.bits());
        self.clients.numbers = numbers;
    }

    pub(super) fn completion_of_event(
        &mut self,
        event: TargetEvent,
    ) -> Option<(Client, DoorCompletion)> {
        Some(match event {
            TargetEvent::Put {
                source,
                handle,
                offset,
                len,
                ..
            } => {
                let completion = DoorCompletion::PutEvent {
                    processor: self.clients.number_of(source),
                    handle,
                    offset,
                    bytes: len.into(),
                };
                (self.clients.owner(handle)?, completion)
            }
            TargetEvent::Transaction {
                source,
                handle,
                data,
                ..
            } => {
                let completion = DoorCompletion::BlockEvent {
                    processor: self.clients.number_of(source),
                    handle,
                    word: data,
                };
                (self.clients.owner(handle)?, completion)
            }
            TargetEvent::Received {
                user,
                source,
                bytes,
                failure,
            } => {
                let client = client_of(user)?;
                let completion = DoorCompletion::Received {
                    name: name_of(user),
                    status: failure.map_or(Status::Done, Status::from),
                    processor: self.clients.number_of(source),
                    bytes,
                };
                self.clients.slot(client)?.receives -= 1;
                (client, completion)
            }
        })
    }
}

//! Unsolicited events for the local programs of a NIC, and the numbers by which programs address
//! other nodes.

use phitwire_framing::door::{Completion as DoorCompletion, Status};

use super::AriesNic;
use super::client_words::{client_of, name_of};
use super::completion::TargetEvent;
use phitwire::nic::local::Client;

impl AriesNic {
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

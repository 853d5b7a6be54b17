//! Collective operations of local programs.
//!
//! Each engine belongs to one program at a time. The tree has the key of the program's job, so that
//! contributions of other jobs are rejected. If a program exits while it waits for an operation,
//! the other participants fail at once; if it exits before they joined, they fail when their
//! patience ends.

use phitwire_framing::door::{
    CollectiveRequest, Completion as DoorCompletion, Local, Reduction, Status,
};

use super::client_words::{client_of, name_of, tagged};
use super::clients::address_of;
use super::collective::{
    CollectiveFailure, CollectiveTree, Contribution, Join, JoinError, TreeError,
};
use super::{AriesNic, Target};
use phitwire::nic::local::{Client, Taken};
use phitwire::nic::{Collective, ENGINES, Operand};
use phitwire::time::{Duration, Time};

/// Maximum number of participants in a program's tree: the number of processor numbers.
const MOST_PARTICIPANTS: u64 = 1 << 16;

pub(super) type Owners = [Option<Client>; ENGINES];

fn collective_of(op: Reduction) -> Result<Collective, Status> {
    Collective::from_code(op as u8).ok_or(Status::Unsupported)
}

fn refusal_of_tree(error: &TreeError) -> Status {
    match error {
        TreeError::Engine(_) => Status::Unsupported,
        TreeError::VirtualNode(_) => Status::NoProcessor,
        TreeError::Branching(_) | TreeError::Twice(_) | TreeError::Patience => Status::Length,
        TreeError::Busy => Status::Busy,
    }
}

impl AriesNic {
    /// Handles a client's request to an engine. A pending join counts as a request.
    pub(super) fn collective_of_client(
        &mut self,
        now: Time,
        (client, name): (Client, u64),
        request: &CollectiveRequest,
    ) -> Taken {
        let engine = usize::from(request.engine());
        let Some(&owner) = self.clients.engines.get(engine) else {
            return Taken::refused(Status::Unsupported);
        };
        let done = |result: Result<(), Status>| match result {
            Ok(()) => Taken::Ended(Status::Done, 0),
            Err(status) => Taken::refused(status),
        };
        match *request {
            CollectiveRequest::SetUp { .. } if owner.is_some_and(|owner| owner != client) => {
                Taken::refused(Status::Busy)
            }
            // Delay the setup: a NIC that has just restarted must not send requests yet, and the
            // patience of the others could end first.
            CollectiveRequest::SetUp { .. } if !self.interface.may_ask(now) => Taken::Later,
            CollectiveRequest::SetUp { .. } => done(self.set_up_for(client, engine, request)),
            _ if owner != Some(client) => Taken::refused(Status::NotYours),
            CollectiveRequest::Join {
                op, word, location, ..
            } => {
                let operand = Operand {
                    bits: word,
                    location,
                };
                self.join_for(now, (client, name), engine, op, operand)
            }
            CollectiveRequest::Leave { .. } => {
                if self.interface.collective.is_joined(engine) {
                    return Taken::refused(Status::Busy);
                }
                self.clients.engines[engine] = None;
                // The unit still delivers results and failures that neighbours lack.
                self.interface.leave_collective(now, engine);
                done(Ok(()))
            }
        }
    }

    fn set_up_for(
        &mut self,
        client: Client,
        engine: usize,
        request: &CollectiveRequest,
    ) -> Result<(), Status> {
        let CollectiveRequest::SetUp {
            rank,
            branching,
            epoch,
            patience_ms,
            processors,
            ..
        } = *request
        else {
            return Err(Status::Unsupported);
        };
        let own = self.virtual_number().ok_or(Status::NoProcessor)?;
        let (key, bytes) = self.clients.key_and_bytes(client).ok_or(Status::NotYours)?;
        let numbers = self.numbers_of(client, bytes, processors)?;
        if numbers.get(usize::from(rank)) != Some(&own) {
            return Err(Status::NoProcessor);
        }
        let nodes: Vec<_> = numbers
            .iter()
            .map(|&number| Target::Virtual(number.into()))
            .collect();
        let tree = CollectiveTree::of_rank(&nodes, branching.into(), 0, rank.into(), key, epoch);
        let tree = CollectiveTree {
            patience: Duration::from_ms(patience_ms.into()),
            ..tree.ok_or(Status::Length)?
        };
        self.set_up_collective(engine, &tree)
            .map_err(|error| refusal_of_tree(&error))?;
        self.clients.engines[engine] = Some(client);
        Ok(())
    }

    /// Reads processor numbers from a client's data.
    fn numbers_of(&mut self, client: Client, bytes: u64, part: Local) -> Result<Vec<u16>, Status> {
        let is_list = part.bytes.is_multiple_of(2) && part.bytes > 0;
        if !is_list || part.bytes > 2 * MOST_PARTICIPANTS {
            return Err(Status::Length);
        }
        let at = address_of(usize::from(client.0) - 1, bytes, part)?;
        let mut list = vec![0; part.bytes as usize];
        let read = self.interface.responder.memory.read(at, &mut list);
        read.map_err(|_| Status::NotInSegment)?;
        let (numbers, _) = list.as_chunks::<2>();
        Ok(numbers.iter().copied().map(u16::from_le_bytes).collect())
    }

    fn join_for(
        &mut self,
        now: Time,
        (client, name): (Client, u64),
        engine: usize,
        op: Reduction,
        operand: Operand,
    ) -> Taken {
        let collective = match collective_of(op) {
            Ok(collective) => collective,
            Err(status) => return Taken::refused(status),
        };
        let join = Join {
            collective,
            contribution: Contribution::Word(operand),
            into: None,
            mark: false,
            user: tagged(client, name),
        };
        match self.interface.join(now, engine, &join) {
            Ok(_) => Taken::UnderWay,
            Err(JoinError::CompletionQueueFull) => Taken::Later,
            Err(JoinError::Pending) => Taken::refused(Status::Busy),
            Err(JoinError::NoTree(_) | JoinError::Driven) => Taken::refused(Status::NotYours),
            Err(JoinError::Operation(_)) => Taken::refused(Status::Unsupported),
            Err(JoinError::LocalBounds(_)) => Taken::refused(Status::NotInSegment),
            Err(JoinError::Broken(failure)) => {
                let (status, word) = self.reason_of(failure);
                Taken::Ended(status, word)
            }
        }
    }

    /// Reason for a missing result, and the node that caused it.
    fn reason_of(&self, failure: CollectiveFailure) -> (Status, u64) {
        let (status, node) = match failure {
            CollectiveFailure::Mismatch => return (Status::Mismatch, 0),
            CollectiveFailure::NoContribution(node)
            | CollectiveFailure::NoResult(node)
            | CollectiveFailure::Unreachable(node)
            | CollectiveFailure::NotReady(node) => (Status::Absent, node),
            CollectiveFailure::Refused(node, _) => (Status::WrongKey, node),
            CollectiveFailure::Stopped(node) => (Status::Left, node),
        };
        (status, self.clients.number_of(node).into())
    }

    pub(super) fn collective_ended(&mut self) -> Option<(Client, DoorCompletion)> {
        let unit = &mut self.interface.collective;
        let ended = unit.poll_completion_of(|user| client_of(user).is_some())?;
        let client = client_of(ended.user)?;
        let (status, word, location) = match ended.outcome {
            Ok(operand) => (Status::Done, operand.bits, operand.location),
            Err(failure) => {
                let (status, word) = self.reason_of(failure);
                (status, word, 0)
            }
        };
        let completion = DoorCompletion::End {
            name: name_of(ended.user),
            status,
            // A barrier has no word.
            word: match ended.collective {
                Collective::Barrier if status == Status::Done => 0,
                _ => word,
            },
            bytes: location,
        };
        Some((client, completion))
    }

    /// Removes an exited client from its engines.
    pub(super) fn leave_engines(&mut self, now: Time, client: Client) {
        for engine in 0..ENGINES {
            if self.clients.engines[engine] == Some(client) {
                self.clients.engines[engine] = None;
                self.interface.leave_collective(now, engine);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_call_operations_as_the_engines_do() {
        let ours: Vec<String> = Collective::all().map(|op| op.to_string()).collect();
        let theirs: Vec<&str> = Reduction::ALL.iter().map(|op| op.name()).collect();
        assert_eq!(ours, theirs);
        for op in Reduction::ALL {
            let collective = collective_of(op).expect("a collective for this operation");
            assert_eq!(collective.to_string(), op.name());
        }
    }
}

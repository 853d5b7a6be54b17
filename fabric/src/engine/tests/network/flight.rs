//! Requests in flight.

use std::time::Duration;

use phitwire_client::door::{Access, AtomicOp, Command, Local, Remote, Request, Status, Width};

use super::{Faults, Network};

/// A request in flight. Its data were copied when it departed.
pub struct Flight {
    pub from: usize,
    pub name: u64,
    pub act: Act,
    pub data: Vec<u8>,
    pub fate: Fate,
    pub since: Duration,
}

#[derive(Clone, Copy)]
pub enum Act {
    Write(Remote),
    Read(Remote, Local),
    Change(Remote, AtomicOp, Width, [u64; 2]),
    Message(u16, u8),
    Open(Local, Access),
    Close(u16),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Fine,
    Unanswered,
    Late,
    DamagedReply,
    /// The request ends with this status and is not carried out.
    Refused(Status),
}

pub enum Source {
    Bytes(Vec<u8>),
    Local(Local),
}

/// A command of an endpoint, copied.
pub enum Taken {
    Receive(Local),
    Other(Act, Source),
}

impl Taken {
    pub fn of(command: &Command<'_>) -> (u64, Self) {
        let none = Source::Bytes(Vec::new());
        let taken = match command.request {
            Request::Receive { into } => Self::Receive(into),
            Request::Put { to, data, .. } => {
                Self::Other(Act::Write(to), Source::Bytes(data.to_vec()))
            }
            Request::BlockPut { to, from, .. } => Self::Other(Act::Write(to), Source::Local(from)),
            Request::Get { from, into, .. } | Request::BlockGet { from, into, .. } => {
                Self::Other(Act::Read(from, into), none)
            }
            Request::Atomic {
                at,
                op,
                width,
                operands,
                ..
            } => Self::Other(Act::Change(at, op, width, operands), none),
            Request::Send {
                processor,
                member,
                from,
            } => Self::Other(Act::Message(processor, member), Source::Local(from)),
            Request::Register { part, access } => Self::Other(Act::Open(part, access), none),
            Request::Deregister { handle } => Self::Other(Act::Close(handle), none),
            Request::CancelReceive | Request::Collective(_) => unreachable!("the engine has none"),
        };
        (command.name, taken)
    }
}

impl Act {
    /// The target's processor, and whether the request stays in order; `None` if it is local.
    pub const fn target(&self) -> Option<(u16, bool)> {
        match self {
            Self::Write(to) | Self::Read(to, _) => Some((to.processor, false)),
            Self::Change(at, ..) => Some((at.processor, true)),
            Self::Message(processor, _) => Some((*processor, false)),
            Self::Open(..) | Self::Close(_) => None,
        }
    }
}

impl Network {
    /// The outcome of a request between two processors, and the time until it arrives or ends.
    pub(super) fn draw(
        &mut self,
        (source, target): (u16, u16),
        is_block: bool,
    ) -> (Fate, Duration) {
        let patience = self
            .dice
            .between(Duration::from_millis(300), Duration::from_secs(3));
        // Nothing is lost between a NIC and itself.
        let faults = match source == target {
            true => Faults::default(),
            false => self.faults,
        };
        let drawn = self.dice.below(1000);
        let mut bounds = [
            faults.lost,
            faults.unanswered,
            faults.late,
            faults.damaged,
            faults.refused,
        ];
        for n in 1..bounds.len() {
            bounds[n] += bounds[n - 1];
        }
        let kind = bounds.iter().position(|&bound| drawn < bound);
        if kind == Some(0) || self.is_cut(source, target) {
            return (Fate::Refused(Status::TimedOut), patience);
        }
        let time = self.latency();
        match kind {
            Some(1) => (Fate::Unanswered, time),
            Some(2) => (Fate::Late, patience),
            Some(3) if self.dice.chance(500) => (Fate::Refused(Status::Damaged), time),
            Some(3) => (Fate::DamagedReply, time),
            Some(4) => {
                let status = self.dice.one_of(&[Status::Busy, Status::Aborted]);
                let status = if is_block { status } else { Status::Busy };
                (Fate::Refused(status), time)
            }
            _ => (Fate::Fine, time),
        }
    }
}

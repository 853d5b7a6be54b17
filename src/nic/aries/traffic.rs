//! Traffic runs: synthetic requests that check themselves, and the control request that announces them.

use phitwire_framing::flit48::Routing;
use phitwire_framing::packet48::{AmoOp, Command, Operands, Status, Width};

use super::completion::Failure;
use super::counters::AriesNicCounters;
use super::outstanding::{Asker, Landing};
use super::request::word_of;
use super::requester::{Answer, Ask, Requester};
use super::virtual_node::VirtualNodes;
use crate::nic::checker::Announced;
use crate::nic::runs::Runs;
use crate::nic::traffic::{Answered, Errand, Issuer, Message};
use crate::time::Time;

/// The memory domain that traffic runs use at all nodes: it begins at the beginning of the memory, and has
/// the same key everywhere.
pub const RUN_DOMAIN: u16 = 0;

/// Code of the control request that announces a run.
pub(crate) const RUN_CODE: u8 = 13;

/// Requests of a run, on their way to the requester.
pub(crate) struct PacketIssuer<'a> {
    pub now: Time,
    pub requester: &'a mut Requester,
    pub nodes: &'a VirtualNodes,
    pub counters: &'a mut AriesNicCounters,
    pub key: u16,
    pub routing: Routing,
}

impl Issuer for PacketIssuer<'_> {
    #[inline]
    fn can_go(&self, _address: u64) -> bool {
        self.requester.has_room(false)
    }

    fn has_other_ways(&self) -> bool {
        false
    }

    #[inline]
    fn issue(&mut self, processor: u16, errand: Errand, message: &Message<'_>) -> bool {
        let Some(node) = self.nodes.get(processor.into()) else {
            unreachable!(
                "starting the run has looked the node up, and virtual nodes never become fewer"
            );
        };
        if !self.requester.has_room(false) {
            return false;
        }
        let operands;
        let mut answer_bytes = 0;
        let (command, address, data) = match *message {
            Message::Announce(data) => (Command::Control { code: RUN_CODE }, 0, data.as_slice()),
            Message::Put { address, data } => (Command::Put { event: false }, address, data),
            Message::Get { address, len } => {
                answer_bytes = len;
                (Command::Get { words: len / 4 }, address, [].as_slice())
            }
            Message::Add { address } => {
                let (op, width) = (AmoOp::Add, Width::Bits64);
                let one = Operands {
                    first: 1,
                    second: 0,
                };
                let (bytes, len) = one.to_bytes(op, width);
                operands = bytes;
                answer_bytes = 8;
                let command = Command::Amo {
                    op,
                    width,
                    fetch: true,
                };
                (command, address, &operands[..len])
            }
        };
        let ask = Ask {
            node,
            command,
            handle: RUN_DOMAIN,
            key: self.key,
            ssid: 0,
            address,
            routing: self.routing,
            data,
            answer_bytes,
            landing: Landing {
                take: answer_bytes,
                ..Landing::NONE
            },
        };
        self.requester
            .issue(self.now, &ask, Asker::Traffic(errand), self.counters)
            .is_ok()
    }
}

/// Hands the end of a request to the run that issued it; `data` is what the response brought.
#[inline]
pub(crate) fn answered(runs: &mut Runs, now: Time, errand: Errand, answer: &Answer, data: &[u8]) {
    let Answer { pending, failure } = answer;
    let answered = match (failure, pending.command) {
        (Some(Failure::Refused(_)), _) => Answered::Refused,
        (Some(_), _) => Answered::Unknown,
        (None, Command::Get { .. }) => Answered::Read(data),
        (None, Command::Amo { .. }) => Answered::Added(word_of(data)),
        (None, _) => Answered::Written,
    };
    runs.answered(now, pending.posted, (errand, pending.offset), answered);
}

impl From<Announced> for Status {
    fn from(announced: Announced) -> Self {
        match announced {
            Announced::Accepted => Self::Done,
            Announced::OutOfRange => Self::OutOfBounds,
            Announced::Full => Self::Busy,
        }
    }
}

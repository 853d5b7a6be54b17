//! The host in the machine's time: delayed responses and completions.

use phitwire_framing::aries::packet::MAX_DATA;

use super::Interface;
use crate::nic::bte::TransferEnded;
use crate::nic::client_words::client_of;
use crate::nic::host::{Host, HostTimes};
use crate::nic::outstanding::Pending;
use crate::nic::packet_buf::PacketBuf;
use crate::nic::requester::Answer;
use crate::nic::traffic;
use crate::nic::{BlockOperation, BlockTransfer};
use phitwire::nic::RunRequest;
use phitwire::time::{Duration, Time};

/// The end of a message of a run, which crosses the host interface.
#[derive(Debug)]
pub(super) enum Unseen {
    Request(RunRequest, Answer, [u8; MAX_DATA]),
    Block(TransferEnded),
}

impl Interface {
    pub(super) fn set_host(&mut self, times: HostTimes, now: Time) {
        let step = Duration::from_ns(times.engine_step_ns);
        self.collective.set_times(step, times.between_collectives());
        self.requester.host = Some(Box::new(Host::new(times, now)));
    }

    /// Whether the host accepts nothing from the network now.
    #[inline]
    pub(crate) fn is_busy(&mut self, now: Time) -> bool {
        let host = self.requester.host.as_ref();
        self.busy_until = host.and_then(|host| host.busy_until(now));
        self.busy_until.is_some()
    }

    /// Whether too many responses wait for the host to accept a request.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        let host = self.requester.host.as_ref();
        host.is_some_and(|host| host.is_full())
    }

    /// Takes the response to the request served last if the host delays it.
    #[inline]
    pub(crate) fn delays(&mut self, now: Time, packet: &PacketBuf) -> bool {
        let (Some(host), Some(served)) = (&mut self.requester.host, self.responder.served.take())
        else {
            return false;
        };
        let at = host.answers(now, served);
        if at > now {
            host.push_answer(at, packet);
        }
        at > now
    }

    /// Writes the next delayed response that can leave to `out`; returns false if there is none.
    #[inline]
    pub(crate) fn delayed_answer(&mut self, now: Time, out: &mut PacketBuf) -> bool {
        let host = self.requester.host.as_mut();
        let Some(packet) = host.and_then(|host| host.pop_answer(now)) else {
            return false;
        };
        *out = packet;
        true
    }

    /// Moves the data of the response to `pending` to host memory.
    #[inline]
    pub(super) fn lands(&mut self, now: Time, pending: &Pending) {
        if let Some(host) = &mut self.requester.host {
            host.lands(now, pending.answer_bytes.into());
        }
    }

    /// Delays a transfer that a program has just queued on `channel` until the host passes it.
    pub(super) fn delay_transfer(&mut self, now: Time, channel: usize, transfer: &BlockTransfer) {
        let client = client_of(transfer.user);
        if let Some(host) = &mut self.requester.host
            && client.is_some()
        {
            let is_get = matches!(transfer.operation, BlockOperation::Get { .. });
            let begins = host.block_begins(now, client, (transfer.length, is_get));
            self.transfers.delay_last(channel, begins);
        }
    }

    /// Keeps the end of a run's request until a process sees it. Returns false without a host.
    #[inline]
    pub(super) fn hides(
        &mut self,
        now: Time,
        request: RunRequest,
        answer: &Answer,
        data: &[u8; MAX_DATA],
    ) -> bool {
        let Some(host) = &mut self.requester.host else {
            return false;
        };
        host.lands(now, answer.pending.answer_bytes.into());
        let at = host.seen(now);
        let end = Unseen::Request(request, *answer, *data);
        self.unseen.push_back((at, end));
        true
    }

    /// Like [`hides`](Self::hides), for the end of a block.
    pub(super) fn hides_block(&mut self, now: Time, ended: TransferEnded) -> bool {
        let Some(host) = &self.requester.host else {
            return false;
        };
        let at = host.seen(now);
        self.unseen.push_back((at, Unseen::Block(ended)));
        true
    }

    /// Makes everything that has crossed the host interface visible to the processes.
    pub(super) fn see(&mut self, now: Time) {
        if let Some(host) = &mut self.requester.host {
            host.arrive(now);
        }
        while self.unseen.front().is_some_and(|(at, _)| *at <= now)
            && let Some((_, end)) = self.unseen.pop_front()
        {
            match end {
                Unseen::Request(request, answer, data) => {
                    let data = &data[..usize::from(answer.pending.answer_bytes)];
                    traffic::answered(&mut self.runs, now, request, &answer, data);
                }
                Unseen::Block(ended) => {
                    let memory = &mut self.responder.memory;
                    traffic::block_ended(&mut self.runs, now, &ended, memory);
                }
            }
        }
    }

    /// When the host next needs a call.
    pub(super) fn host_deadline(&self) -> Option<Time> {
        let host = self.requester.host.as_ref()?;
        let seen = self.unseen.front().map(|&(at, _)| at);
        let all = [seen, host.next_answer(), self.free_at, self.busy_until];
        all.into_iter().flatten().min()
    }
}

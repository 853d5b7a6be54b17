//! Completes requests, transactions and transfers of an Aries NIC.

use phitwire_framing::aries::packet::{Command, MAX_DATA, Status};

use super::Interface;
use crate::nic::bte::TransferOwner;
use crate::nic::completion::{Completion, Ended, Failure, Outcome};
use crate::nic::outstanding::{Landing, Pending, RequestOrigin};
use crate::nic::request::word_of;
use crate::nic::requester::Answer;
use crate::nic::traffic;
use crate::nic::transaction::NextStep;
use phitwire::nic::ProbeOutcome;
use phitwire::time::Time;

impl Interface {
    /// Passes the end of a request to its requester; `data` is the response's data.
    #[inline]
    pub(super) fn settle(&mut self, now: Time, mut answer: Answer, data: &[u8; MAX_DATA]) {
        let Landing { local, flag, .. } = answer.pending.landing();
        if answer.failure.is_none() && (local.is_some() || flag.is_some()) {
            answer.failure = self.land(&answer.pending, data).err();
        }
        let answer = &answer;
        let Answer { pending, failure } = answer;
        match pending.origin {
            RequestOrigin::User(user) => {
                self.lands(now, pending);
                self.complete_request(now, user, answer, data);
            }
            RequestOrigin::Transaction(ssid) | RequestOrigin::TransactionEvent(ssid) => {
                let progress = self.transactions.ended(ssid, *failure);
                self.progressed(now, progress);
            }
            RequestOrigin::Traffic(request) => {
                if self.hides(now, request, answer, data) {
                    return;
                }
                let data = &data[..usize::from(pending.answer_bytes)];
                traffic::answered(&mut self.runs, now, request, answer, data);
            }
            RequestOrigin::Transfer(slot, step) => {
                self.lands(now, pending);
                let data = &data[..usize::from(pending.answer_bytes)];
                let answer = failure.map_or(Ok(data), Err);
                let transactions = &mut self.transactions;
                self.transfers
                    .answered(now, slot, step, pending, answer, transactions);
                self.collect_transfers(now);
            }
            RequestOrigin::Collective(number) => {
                self.collective.answered(now, number, *failure);
            }
            RequestOrigin::Probe(number) => {
                let outcome = match failure {
                    None => ProbeOutcome::Done,
                    Some(Failure::TimedOut) => ProbeOutcome::TimedOut,
                    Some(Failure::Refused(Status::BadCrc | Status::Poisoned)) => {
                        ProbeOutcome::Damaged
                    }
                    Some(Failure::DamagedResponse) => ProbeOutcome::Damaged,
                    Some(_) => ProbeOutcome::Refused,
                };
                self.probes.ended(number, (pending.posted, now), outcome);
            }
        }
    }

    /// Writes the data of a response to local memory, and the flag last. Fails if a program has
    /// unmapped its memory since.
    fn land(&mut self, pending: &Pending, data: &[u8; MAX_DATA]) -> Result<(), Failure> {
        let Landing {
            skip,
            take,
            local,
            flag,
        } = pending.landing();
        let memory = &mut self.responder.memory;
        let wanted = &data[usize::from(skip)..][..usize::from(take)];
        let landed = match (local, pending.command) {
            (Some(at), Command::Amo { .. }) => {
                // Operands are big endian in packets; the processor's memory is little endian.
                let mut word = [0; 8];
                let word = &mut word[..wanted.len()];
                word.copy_from_slice(wanted);
                word.reverse();
                memory.write(at, word)
            }
            (Some(at), _) => memory.write(at, wanted),
            (None, _) => Ok(()),
        };
        landed.map_err(|_| Failure::LocalMemory)?;
        if let Some((at, value)) = flag {
            let written = memory.write(at, &value.to_le_bytes());
            debug_assert!(written.is_ok(), "posting checks local addresses");
            self.counters.flags_written += 1;
        }
        Ok(())
    }

    #[inline]
    fn complete_request(&mut self, now: Time, user: u64, answer: &Answer, data: &[u8; MAX_DATA]) {
        let Answer { pending, failure } = answer;
        let outcome = match (failure, pending.command) {
            (Some(failure), _) => Outcome::Failed(*failure),
            (None, _) if pending.answer_bytes == 0 || pending.landing().local.is_some() => {
                Outcome::Done
            }
            (None, Command::Amo { .. }) => {
                Outcome::Fetched(word_of(&data[..usize::from(pending.answer_bytes)]))
            }
            (None, _) => {
                let (mut own, len) = ([0; MAX_DATA], pending.answer_bytes);
                own[..usize::from(len)].copy_from_slice(&data[..usize::from(len)]);
                Outcome::Data { data: own, len }
            }
        };
        self.complete(Completion {
            user,
            ended: Ended::Request {
                node: pending.node,
                handle: pending.handle,
                offset: pending.offset,
            },
            posted: pending.posted,
            completed: now,
            outcome,
        });
    }

    pub(super) fn progressed(&mut self, now: Time, progress: NextStep) {
        let NextStep::Ended(ended) = progress else {
            return;
        };
        self.counters.transactions_done += u64::from(ended.failure.is_none());
        self.counters.transactions_failed += u64::from(ended.failure.is_some());
        self.complete(Completion {
            user: ended.user,
            ended: Ended::Transaction {
                requests: ended.requests,
                failed: ended.failed,
            },
            posted: ended.opened,
            completed: now,
            outcome: outcome_of(ended.failure),
        });
    }

    pub(super) fn collect_transfers(&mut self, now: Time) {
        while let Some(ended) = self.transfers.next_ended(self.work.is_left()) {
            self.counters.transfers_done += u64::from(ended.failure.is_none());
            self.counters.transfers_failed += u64::from(ended.failure.is_some());
            if ended.owner == TransferOwner::Run {
                self.work.take(ended.transfer.length);
                if self.hides_block(now, ended) {
                    continue;
                }
                traffic::block_ended(&mut self.runs, now, &ended, &mut self.responder.memory);
                continue;
            }
            self.complete(Completion {
                user: ended.transfer.user,
                ended: Ended::Transfer {
                    channel: ended.channel,
                    bytes: ended.bytes,
                },
                posted: ended.queued,
                completed: now,
                outcome: outcome_of(ended.failure),
            });
        }
    }
}

fn outcome_of(failure: Option<Failure>) -> Outcome {
    failure.map_or(Outcome::Done, Outcome::Failed)
}

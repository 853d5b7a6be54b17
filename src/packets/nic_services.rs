//! Services of a NIC: client programs, puts of its own process, and traffic runs.

use phitwire_framing::door::Status;

use super::TransferNic;
use crate::device::{DeviceError, TrafficRuns};
use crate::link::LinkView as _;
use crate::nic::programs::{Programs, Refused, RemoteMemory, RemoteRequest};
use crate::nic::traffic::Source;
use crate::nic::{Abilities, Memory, PutEnd, PutError, RemotePuts, TrafficReport, TrafficSpec};
use crate::packets::atomic;
use crate::packets::counters::NicCounting as _;
use crate::packets::outstanding::RequestOrigin;
use crate::packets::post::{Completion, PostError};
use crate::packets::transfer::{Kind, Transfer};
use crate::packets::transfer_end::TransferEnd;
use crate::rng::Rng;
use crate::time::Time;

impl<E: TransferEnd> RemoteMemory for TransferNic<E> {
    fn known_as(&self) -> Option<u16> {
        RemotePuts::number(self)
    }

    fn most_bytes(&self) -> u16 {
        E::ABILITIES.max_size as u16
    }

    fn has_atomics(&self) -> bool {
        E::ABILITIES.atomics
    }

    fn most_requests(&self) -> u32 {
        self.nic_core.config.outstanding
    }

    fn programs(&mut self) -> &mut Programs {
        &mut self.nic_core.responder.programs
    }

    fn ask(
        &mut self,
        now: Time,
        to: u16,
        address: u64,
        asked: RemoteRequest<'_>,
        ordered: bool,
    ) -> Result<u64, Refused> {
        if ordered && !E::KEEPS_ORDER {
            return Err(Refused::For(Status::Unsupported));
        }
        let mut transfer = match asked {
            RemoteRequest::Put(data) => Transfer::new(to, Kind::Put, address).with(data),
            RemoteRequest::Get(len) => {
                let mut get = Transfer::new(to, Kind::Get, address);
                get.len = len;
                get
            }
            RemoteRequest::Atomic(op, operands) => {
                let known = atomic::of_program(op, operands);
                let (kind, words, count) = known.ok_or(Refused::For(Status::Unsupported))?;
                Transfer::new(to, kind, address).with_words(&words[..count])
            }
        };
        transfer.ordered = ordered;
        if to >= self.nic_core.config.nics {
            return Err(Refused::For(Status::NoProcessor));
        }
        let posted = self.post_for(now, &transfer, RequestOrigin::Program);
        posted.map_err(|error| match error {
            PostError::TooMany | PostError::NoRoom => Refused::Later,
            // The request is an unsupported atomic operation, or has an invalid length.
            PostError::NotHere if matches!(asked, RemoteRequest::Atomic(..)) => {
                Refused::For(Status::Unsupported)
            }
            PostError::NotHere => Refused::For(Status::Length),
        })
    }
}

impl<E: TransferEnd> RemotePuts for TransferNic<E> {
    fn number(&self) -> Option<u16> {
        let Self { nic_core, .. } = self;
        (nic_core.config.number < nic_core.config.nics).then_some(nic_core.config.number)
    }

    fn most_outstanding(&self) -> usize {
        self.nic_core.config.outstanding as usize
    }

    fn longest_put(&self) -> usize {
        E::ABILITIES.max_size as usize
    }

    fn put(
        &mut self,
        now: Time,
        to: u16,
        address: u64,
        data: &[u8],
        ordered: bool,
    ) -> Result<u64, PutError> {
        if data.len() > RemotePuts::longest_put(self) {
            return Err(PutError::Impossible);
        }
        let mut asked = Transfer::new(to, Kind::Put, address).with(data);
        asked.ordered = ordered;
        self.post(now, &asked).map_err(|error| match error {
            PostError::NotHere => PutError::Impossible,
            PostError::TooMany | PostError::NoRoom => PutError::Full,
        })
    }

    fn put_ended(&mut self) -> Option<(u64, PutEnd)> {
        self.poll_completion().map(Completion::end_of_put)
    }

    fn puts_served(&self) -> u64 {
        self.nic_core.counters.puts_served()
    }

    fn own_memory(&self) -> &Memory {
        self.memory()
    }

    fn reserve(&mut self, bytes: u64) {
        self.runs.reserve(bytes);
    }
}

impl<E: TransferEnd> TrafficRuns for TransferNic<E> {
    fn number(&self) -> Option<u16> {
        Some(self.nic_core.config.number)
    }

    /// A run in progress keeps its old number and still gets its replies, because the T3E's router,
    /// not the NIC, writes the origin to which replies are routed.
    fn renumber(&mut self, number: u16) -> Result<(), DeviceError> {
        if E::FIXED_NUMBER {
            return Err(DeviceError::FixedNumber);
        }
        self.nic_core.config.number = number;
        self.nic_core.responder.renumber(number);
        Ok(())
    }

    fn abilities(&self) -> Abilities {
        E::ABILITIES
    }

    fn start(&mut self, now: Time, spec: TrafficSpec) -> Result<(), DeviceError> {
        let config = &self.nic_core.config;
        let nics = config.nics;
        let nonce = match config.seed {
            Some(seed) => Rng::new(seed ^ now.as_ps(), config.number.into()).next_u64() as u32,
            None => self.nic_core.ports[0].link.epochs().0 ^ now.as_ns() as u32,
        };
        let source = Source {
            processor: config.number,
            memory_bytes: config.memory_bytes,
            nonce,
            abilities: E::ABILITIES,
            timeout: config.timeout,
        };
        let there = |nic: u16| (nic < nics).then_some(nic.into());
        let ordered = E::ABILITIES.ways.is_empty() || spec.ways().keeps_order();
        self.runs.start(now, spec, source, there)?;
        self.nic_core.ordered = ordered;
        Ok(())
    }

    fn report(&self, run: Option<u64>) -> Option<TrafficReport> {
        let responder = &self.nic_core.responder;
        let word = |address| {
            let word = responder.word(address);
            word.expect("announced addresses are within the memory")
        };
        self.runs.report(run, &responder.checker, word)
    }

    fn stop(&mut self) {
        self.runs.stop();
    }
}

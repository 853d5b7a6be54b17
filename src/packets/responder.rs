//! The responding side: serves requests of other NICs in this NIC's memory.

use super::atomic;
use super::counters::{Count, NicCounting};
use super::message_queues::{Message, MessageQueues};
use super::transfer::{Kind, MAX_DATA, MESSAGE_BYTES, Refusal, Transfer};
use crate::nic::checker::{ANNOUNCE_ADDRESS, Announced, Announcement, Checker, Purpose};
use crate::nic::programs::{Programs, is_registered};
use crate::nic::{Abilities, Memory, Operation, is_probed};

/// Address of the first read-only word: beyond every memory.
pub const REGISTERS: u64 = 1 << 46;

/// A memory, its queues, and the state of traffic runs that write into it.
#[derive(Debug)]
pub(super) struct Responder {
    number: u16,
    abilities: Abilities,
    has_messages: bool,
    pub(crate) memory: Memory,
    pub(crate) programs: Programs,
    pub(crate) queues: MessageQueues,
    /// Words from [`REGISTERS`] on.
    pub(crate) registers: Vec<u64>,
    pub(crate) checker: Checker,
}

impl Responder {
    pub(super) fn new(
        number: u16,
        (abilities, has_messages): (Abilities, bool),
        memory_bytes: u64,
    ) -> Self {
        Self {
            number,
            abilities,
            has_messages,
            memory: Memory::new(memory_bytes),
            programs: Programs::default(),
            queues: MessageQueues::default(),
            registers: Vec::new(),
            checker: Checker::default(),
        }
    }

    pub(super) fn renumber(&mut self, number: u16) {
        self.number = number;
    }

    /// Serves a request and returns the reply.
    #[inline]
    pub(super) fn serve(&mut self, asked: &Transfer, counters: &mut impl NicCounting) -> Transfer {
        let done = asked.answer(Kind::Done);
        let served = match asked.kind {
            _ if u32::from(asked.len) > self.abilities.max_size => Err(Refusal::Unsupported),
            Kind::Put => self.put(asked).map(|count| (done, count)),
            Kind::Get => self.get(asked, done).ok_or(Refusal::OutOfRange),
            Kind::Message => self.message(asked).map(|count| (done, count)),
            _ => {
                let old = self.atomic(asked).ok_or(Refusal::Unsupported);
                old.map(|old| (done.with_words(&[old]), Count::Served(asked.kind)))
            }
        };
        match served {
            Ok((answer, count)) => {
                counters.count(count);
                answer
            }
            Err(refusal) => {
                counters.count(Count::Refused(asked.kind, refusal));
                Transfer {
                    refusal: Some(refusal),
                    ..asked.answer(Kind::Refused)
                }
            }
        }
    }

    #[inline]
    fn put(&mut self, asked: &Transfer) -> Result<Count, Refusal> {
        let Transfer { from, address, .. } = *asked;
        if address == ANNOUNCE_ADDRESS {
            return self.announced(from, asked.data());
        }
        // Discard the data of a probe's put.
        if is_probed(address) {
            return Ok(Count::Probed);
        }
        let is_program_s = is_registered(address);
        let is_written = match is_program_s {
            true => self.programs.write(address, asked.data()),
            false => self.memory.write(address, asked.data()).is_ok(),
        };
        if !is_written {
            return Err(Refusal::OutOfRange);
        }
        if !is_program_s {
            self.checker.put(from.into(), address, asked.data());
        }
        Ok(Count::Served(Kind::Put))
    }

    #[inline]
    fn get(&self, asked: &Transfer, mut answer: Transfer) -> Option<(Transfer, Count)> {
        answer.len = asked.len;
        let read = answer.data.get_mut(..usize::from(asked.len))?;
        if is_registered(asked.address) {
            self.programs.read(asked.address, read).then_some(())?;
        } else if self.memory.read(asked.address, read).is_err() {
            let word = self.register(asked.address)?;
            *read.first_chunk_mut()? = word.to_le_bytes();
        }
        Some((answer, Count::Served(Kind::Get)))
    }

    /// The read-only word at an address, if there is one.
    #[cold]
    fn register(&self, address: u64) -> Option<u64> {
        let offset = address.checked_sub(REGISTERS)?;
        let aligned = offset.is_multiple_of(size_of::<u64>() as u64);
        let index = usize::try_from(offset / size_of::<u64>() as u64).ok()?;
        self.registers.get(index).copied().filter(|_| aligned)
    }

    /// Performs an atomic operation on an aligned word and returns its old value.
    fn atomic(&mut self, asked: &Transfer) -> Option<u64> {
        if !self.abilities.atomics || !asked.address.is_multiple_of(size_of::<u64>() as u64) {
            return None;
        }
        if is_registered(asked.address) {
            atomic::apply(asked, 0)?;
            let change = |old| atomic::apply(asked, old).unwrap_or(old);
            return self.programs.update(asked.address, &change);
        }
        let old = self.word(asked.address)?;
        let new = atomic::apply(asked, old)?;
        let written = self.memory.write(asked.address, &new.to_le_bytes());
        written.is_ok().then_some(old)
    }

    pub(super) fn word(&self, address: u64) -> Option<u64> {
        let mut word = [0; size_of::<u64>()];
        self.memory.read(address, &mut word).ok()?;
        Some(u64::from_le_bytes(word))
    }

    fn message(&mut self, asked: &Transfer) -> Result<Count, Refusal> {
        const { assert!(MESSAGE_BYTES == MAX_DATA) };
        let Transfer {
            from,
            address,
            len,
            data,
            ..
        } = *asked;
        let is_whole = self.has_messages && usize::from(len) == MESSAGE_BYTES;
        let is_taken = is_whole && self.queues.deliver(address, Message { from, data });
        let served = is_taken.then_some(Count::Served(Kind::Message));
        served.ok_or(Refusal::Full)
    }

    #[cold]
    fn announced(&mut self, source: u16, data: &[u8]) -> Result<Count, Refusal> {
        let Abilities {
            max_size, atomics, ..
        } = self.abilities;
        // Reject runs with operations that this machine lacks, although other machines have them.
        let can = |announcement: &Announcement| {
            (announcement.op != Operation::Amo
                || atomics && announcement.size as usize == size_of::<u64>())
                && announcement.size <= max_size
        };
        let announcement = Announcement::parse(data);
        let announcement = announcement.filter(|(_, announcement)| can(announcement));
        let (purpose, announcement) = announcement.ok_or(Refusal::Unsupported)?;
        let (source, own) = (source.into(), self.number.into());
        let found = match purpose {
            Purpose::Begin => self
                .checker
                .announce(source, own, announcement, &mut self.memory),
            Purpose::Ask => self.checker.knows(source, &announcement),
        };
        Err(match found {
            Announced::Accepted => return Ok(Count::Announced(purpose)),
            Announced::OutOfRange => Refusal::OutOfRange,
            Announced::Outdated => Refusal::Outdated,
            Announced::Full => Refusal::Full,
            Announced::Unknown => Refusal::UnknownRun,
        })
    }
}

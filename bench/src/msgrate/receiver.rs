//! The receives of a program, and the messages that arrived in them.

use std::collections::BTreeSet;
use std::time::Instant;

use phitwire_client::door::{Completion, Local, Status};

use super::door_error::DoorError;
use super::message::{fill, stride};
use super::outcome::RateResult;
use super::program::{PATIENCE, Program};

/// Largest window of sends, since a program posts no more receives.
pub(super) const MOST_RECEIVES: u32 = 256;

/// The target of sends: a receive per message in flight, each with its own slot.
pub(super) struct Receiver {
    parts: Vec<Local>,
    arrived: BTreeSet<u64>,
    /// First number that may not have arrived; all earlier messages have.
    oldest: u64,
    data: Vec<u8>,
    found: Vec<u8>,
}

impl Receiver {
    /// Posts `window` receives of `size` bytes at `target`.
    pub(super) fn new(target: &mut Program, window: u32, size: u32) -> Result<Self, DoorError> {
        let part = |slot: u32| Local {
            offset: u64::from(slot) * stride(size.into()),
            bytes: size.into(),
        };
        let receiver = Self {
            parts: (0..window).map(part).collect(),
            arrived: BTreeSet::new(),
            oldest: 1,
            data: vec![0; size as usize],
            found: vec![0; size as usize],
        };
        for slot in 0..receiver.parts.len() {
            receiver.post(target, slot)?;
        }
        target.nic.flush();
        Ok(receiver)
    }

    fn post(&self, target: &mut Program, slot: usize) -> Result<(), DoorError> {
        let posted = target.nic.receive(slot as u64, self.parts[slot]);
        posted.map_err(|error| target.failed(error))
    }

    /// Accepts arrived messages. Each must have been sent, with a number below `next_number`, and
    /// must not have arrived before. Returns whether there were any.
    pub(super) fn take(
        &mut self,
        target: &mut Program,
        next_number: u64,
        result: &mut RateResult,
    ) -> Result<bool, DoorError> {
        let mut any = false;
        while let Some(completion) = target.nic.poll().map_err(|error| target.failed(error))? {
            let Completion::Received {
                name,
                status,
                bytes,
                ..
            } = completion
            else {
                continue;
            };
            any = true;
            let part = self.parts[name as usize];
            target.nic.read(part.offset, &mut self.found)?;
            let is_whole = status == Status::Done && bytes == part.bytes;
            match self.number_of_found(next_number).filter(|_| is_whole) {
                Some(number) if !self.arrived.insert(number) => result.duplicated += 1,
                Some(_) => {
                    while self.arrived.contains(&self.oldest) {
                        self.oldest += 1;
                    }
                }
                None => result.corrupted += 1,
            }
            self.post(target, name as usize)?;
        }
        target.nic.flush();
        Ok(any)
    }

    /// Number of the message that was just found. If several short messages are equal, takes the
    /// oldest that has not arrived.
    fn number_of_found(&mut self, next_number: u64) -> Option<u64> {
        let from = next_number
            .saturating_sub(4 * u64::from(MOST_RECEIVES))
            .max(1);
        let first = self.found.len().min(8);
        let mut word = [0; 8];
        let oldest = self.oldest.max(from);
        // Messages arrive nearly in order, so try the numbers after the last arrival first.
        for number in (oldest..next_number).chain(from..oldest) {
            fill(number, &mut word[..first]);
            if word[..first] == self.found[..first] {
                fill(number, &mut self.data);
                if self.data == self.found {
                    return Some(number);
                }
            }
        }
        None
    }

    /// Accepts messages in flight, then takes back the receives.
    pub(super) fn end(
        &mut self,
        target: &mut Program,
        next_number: u64,
        result: &mut RateResult,
    ) -> Result<(), DoorError> {
        let begin = Instant::now();
        let arrived = |this: &Self| this.arrived.len() as u64;
        while arrived(self) < result.acknowledged && begin.elapsed() < PATIENCE {
            self.take(target, next_number, result)?;
        }
        result.lost += result.acknowledged.saturating_sub(arrived(self));
        for slot in 0..self.parts.len() {
            let taken = target.nic.take_back(slot as u64);
            taken.map_err(|error| target.failed(error))?;
        }
        let mut left = self.parts.len();
        while left > 0 {
            let ended = target.nic.wait(Some(PATIENCE));
            match ended.map_err(|error| target.failed(error))? {
                Some(Completion::End { .. }) => left -= 1,
                Some(_) => {}
                None => return Err(DoorError::Receives(target.node.clone())),
            }
        }
        Ok(())
    }
}

//! Barrier runs at all units of a processor.

use phitwire_framing::t3e::barrier::{Message, UNITS, UnitNumber};

use super::barrier_run::{BarrierRun, Check};
use super::transfer::FlitTransfers;
use crate::barrier::BarrierShell;
use phitwire::nic::RunPhase;
use phitwire::packets::responder::REGISTERS;
use phitwire::packets::transfer::{Kind, Transfer};
use phitwire::packets::{Completion, Outcome, TransferNic};
use phitwire::time::{Duration, Time};

const WORD: u64 = size_of::<u64>() as u64;

#[derive(Debug, Default)]
pub(super) struct Runs {
    runs: [Option<Box<BarrierRun>>; UNITS],
    /// Units with an unfinished run, one bit each.
    going_on: u32,
    /// Checks that wait for a response: name, unit, run.
    asked: Vec<(u64, usize, u32, Check)>,
}

impl Runs {
    pub fn of(&self, unit: UnitNumber) -> Option<&BarrierRun> {
        self.runs[unit.index()].as_deref()
    }

    pub fn of_mut(&mut self, unit: UnitNumber) -> Option<&mut BarrierRun> {
        self.runs[unit.index()].as_deref_mut()
    }

    pub fn begin(&mut self, unit: UnitNumber, run: BarrierRun) {
        self.going_on |= 1 << unit.index();
        self.runs[unit.index()] = Some(Box::new(run));
    }

    fn going_on(&self) -> impl Iterator<Item = usize> + use<> {
        phitwire::kit::bits(self.going_on.into())
    }

    pub fn handle_suspension(&mut self, now: Time, span: Duration) {
        let runs = self.runs.iter_mut().flatten();
        runs.for_each(|run| run.handle_suspension(now, span));
    }

    pub fn receive(&mut self, now: Time, message: Message, shell: &mut BarrierShell) {
        let what = shell.receive(message);
        if let Some(run) = self.of_mut(message.unit) {
            run.notified(now, what, shell);
        }
    }

    /// Runs due timers, and sends checks.
    pub fn advance(
        &mut self,
        now: Time,
        shell: &mut BarrierShell,
        nic: &mut TransferNic<FlitTransfers>,
    ) {
        for unit in self.going_on() {
            let Some(run) = self.runs[unit].as_deref_mut() else {
                continue;
            };
            run.advance(now, shell);
            if let Some(register) = nic.registers_mut().get_mut(unit) {
                *register = run.word();
            }
            if let Some(check) = run.check() {
                let address = REGISTERS + unit as u64 * WORD;
                let mut get = Transfer::new(check.processor, Kind::Get, address);
                get.len = WORD as u8;
                // Without room for a request, the check is sent later.
                if let Ok(name) = nic.post(now, &get) {
                    run.asked();
                    self.asked.push((name, unit, run.run(), check));
                }
            }
            if run.phase() == RunPhase::Done {
                self.going_on &= !(1 << unit);
            }
        }
    }

    /// Handles the completion of a check. Returns false if the request was not a check.
    pub fn completed(&mut self, completion: &Completion) -> bool {
        let own = |(name, ..): &(u64, usize, u32, Check)| *name == completion.name;
        let Some(at) = self.asked.iter().position(own) else {
            return false;
        };
        let (_, unit, number, check) = self.asked.swap_remove(at);
        let word = match completion.outcome {
            Outcome::Done { data, .. } => data.first_chunk().copied().map(u64::from_le_bytes),
            _ => None,
        };
        if let Some(run) = self.runs[unit].as_deref_mut()
            && run.run() == number
        {
            run.answered(check, word);
        }
        true
    }

    /// When [`advance`](Self::advance) is due.
    pub fn deadline(&self) -> Option<Time> {
        let runs = self
            .going_on()
            .filter_map(|unit| self.runs[unit].as_deref());
        runs.filter_map(BarrierRun::deadline).min()
    }

    /// Ends all runs after the next barrier.
    pub fn stop(&mut self) {
        for unit in self.going_on() {
            if let Some(run) = self.runs[unit].as_deref_mut() {
                run.stop();
            }
        }
    }
}

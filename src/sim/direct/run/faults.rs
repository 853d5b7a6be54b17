//! Faults and repairs during a run.

use super::super::config::ConfigError;
use super::super::fault::{Switch, schedule};
use super::super::model::CycleModel;
use super::super::part::Command;
use super::{Simulation, end_name};

impl<M: CycleModel> Simulation<M> {
    /// Schedules the run's faults, counted from the current cycle.
    pub(super) fn plan_faults(&mut self, topology: &M::Topology) -> Result<(), ConfigError> {
        let faults = core::mem::take(&mut self.config.faults);
        if let Some(fault) = faults.iter().find(|f| self.encoded && f.lasts.is_none()) {
            return Err(ConfigError::Endless(fault.to_string()));
        }
        for mut switch in schedule(&faults, topology, M::CYCLE)? {
            for end in switch.ends {
                let name = end_name::<M>(topology, end);
                let here = name.filter(|&name| self.census.has(name));
                self.names.insert(end, here.ok_or(ConfigError::Topology)?);
            }
            switch.cycle += self.cycle;
            self.switches.push_back(switch);
        }
        self.has_faults = !faults.is_empty();
        self.config.faults = faults;
        Ok(())
    }

    /// Faults that had not happened when the run ended.
    pub(super) fn late_faults(&self) -> Vec<String> {
        let is_late = |number| self.switches.iter().any(|s| s.down && s.fault == number);
        let faults = self.config.faults.iter().enumerate();
        let late = faults.filter(|(number, _)| is_late(*number));
        late.map(|(_, fault)| fault.to_string()).collect()
    }

    /// Applies due link changes. Returns the cycles until the next one.
    pub(super) fn break_links(&mut self) -> u64 {
        while let Some(switch) = self.switches.front().copied() {
            if switch.cycle > self.cycle {
                return switch.cycle - self.cycle;
            }
            self.switches.pop_front();
            let broken = self.broken.entry(switch.link).or_default();
            let was_up = *broken == 0;
            *broken = if switch.down {
                *broken + 1
            } else {
                *broken - 1
            };
            let up = *broken == 0;
            if up != was_up {
                self.set_link(switch, up);
            }
        }
        u64::MAX
    }

    fn set_link(&mut self, switch: Switch, up: bool) {
        self.parts.command(&Command::SetLink {
            link: switch.link,
            ends: switch.ends.map(|end| self.names[&end]),
            up,
        });
    }
}

//! Faults and repairs during a run.

use super::super::config::ConfigError;
use super::super::fault::{Switch, schedule};
use super::super::model::{CycleModel, Terminal};
use super::{Simulation, Whereabouts};
use crate::net::{End, NodeRef};

impl<M: CycleModel> Simulation<M> {
    /// Schedules the run's faults, counted from the current cycle.
    pub(super) fn plan_faults(&mut self, topology: &M::Topology) -> Result<(), ConfigError> {
        let faults = core::mem::take(&mut self.config.faults);
        if let Some(fault) = faults.iter().find(|f| self.encoded && f.lasts.is_none()) {
            return Err(ConfigError::Endless(fault.to_string()));
        }
        for mut switch in schedule(&faults, topology, M::CYCLE)? {
            for end in switch.ends {
                if !self.encoded {
                    let found = self.find(topology, end).ok_or(ConfigError::Topology)?;
                    self.places.insert(end, found);
                }
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

    fn find(&self, topology: &M::Topology, end: End) -> Option<Whereabouts> {
        let mut partitions = self.partitions.iter().enumerate();
        let (partition, place) = match end.node {
            NodeRef::Chip(chip) => {
                partitions.find_map(|(number, p)| Some((number, p.place_of(chip)?)))?
            }
            NodeRef::Processor(nic) => {
                let wanted = M::terminal(topology, nic, end.port)?;
                partitions.find_map(|(number, p)| {
                    let mut all = p.terminals.iter();
                    Some((number, all.position(|t| t.common().number == wanted)?))
                })?
            }
        };
        Some(Whereabouts { partition, place })
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
        if self.encoded {
            for partition in &mut self.partitions {
                partition.set_encoded_link(switch.link, up);
            }
            return;
        }
        for end in switch.ends {
            let Whereabouts { partition, place } = self.places[&end];
            let partition = &mut self.partitions[partition];
            match end.node {
                NodeRef::Chip(_) => partition.set_chip_link(place, end.port.into(), up),
                NodeRef::Processor(_) => partition.set_terminal_link(place, up),
            }
        }
    }
}

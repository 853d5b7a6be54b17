//! Barriers by the barrier units of routers and NICs.

use thiserror::Error;

use super::World;
use crate::device::{DeviceError, RegisterName, capability};
use crate::net::{Network, NodeRef};
use crate::nic::{BarrierReport, BarrierSpec};
use crate::sim::fabric::NodeId;

/// Why barriers cannot start.
#[derive(Debug, Error)]
pub enum BarrierError {
    #[error("the routers of this machine have no barrier units")]
    NoUnits,
    /// No tree reaches all participants.
    #[error("cannot build a barrier tree: {0}")]
    NoTree(String),
    /// A device rejected a command.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl<L: Network + ?Sized> World<L> {
    /// Prepares the unit of `spec` in all routers and at its participants, clearing earlier state.
    ///
    /// # Errors
    /// See [`BarrierError`].
    pub fn prepare_barriers(&mut self, spec: &BarrierSpec) -> Result<(), BarrierError> {
        let participants = self.participants(spec);
        let nics: Vec<(NodeRef, u16)> = participants
            .iter()
            .map(|&(nic, number)| (self.nodes[nic.0 as usize], number))
            .collect();
        let side = self.topology.side_networks().ok_or(BarrierError::NoUnits)?;
        let plan = side.barrier(spec.unit, &nics, &|_| true);
        for set in plan.map_err(BarrierError::NoTree)?.registers {
            let node = self.id(set.node);
            self.fabric.command(node, |device, _| {
                let name = RegisterName::Name(&set.register);
                device.need_registers(name)?.write(name, set.value)
            })?;
        }
        for (nic, _) in participants {
            self.fabric.command(nic, |device, _| {
                device.need::<capability::Barriers>()?.prepare(spec.unit)
            })?;
        }
        Ok(())
    }

    /// Starts `spec` at every participant.
    ///
    /// # Errors
    /// [`DeviceError::Barriers`]; [`DeviceError::Lacks`] if the machine has none.
    pub fn start_barriers(&mut self, spec: &BarrierSpec) -> Result<(), DeviceError> {
        for (nic, _) in self.participants(spec) {
            self.fabric.command(nic, |device, now| {
                device
                    .need::<capability::Barriers>()?
                    .start(now, spec.clone())
            })?;
        }
        Ok(())
    }

    /// The merged report of the last run at the unit of `spec`.
    pub fn barrier_report(&self, spec: &BarrierSpec) -> BarrierReport {
        let mut merged = BarrierReport::default();
        for (nic, _) in self.participants(spec) {
            let runs = self.fabric.node(nic).barriers();
            if let Some(report) = runs.and_then(|runs| runs.report(spec.unit)) {
                merged.merge(&report);
            }
        }
        merged
    }

    fn participants(&self, spec: &BarrierSpec) -> Vec<(NodeId, u16)> {
        let numbered = self.nics().filter_map(|nic| Some((nic, self.number(nic)?)));
        numbered
            .filter(|(_, number)| spec.processors.contains(number))
            .collect()
    }
}

//! Claims on a NIC, so that only one measurement runs at a time.
//!
//! A tool claims each participating NIC before it starts anything, and keeps the claiming
//! connection open. Until it closes, no other client can start a run that uses the NIC as source or
//! target. When the tool closes the connection, or the kernel does after the tool's death, its runs
//! end, so that no NIC keeps sending. A lease would react later, and would end the runs of a tool
//! that is only suspended.

use std::collections::BTreeMap;

use phitwire::device::{Device, Kind, capability};
use phitwire::nic::RunPhase;
use phitwire::time::Time;
use serde_json::{Value, json};

use crate::control::server::ClientId;
use crate::control::{Code, Holder, Refusal, RunKind};

#[derive(Debug, Default)]
pub(crate) struct Claims {
    now: Option<(ClientId, Holder)>,
    /// The holder that disconnected before its run was over, and that run.
    gone: Option<(Holder, RunKind, u64)>,
    /// Holders of barrier units.
    units: BTreeMap<u8, (ClientId, Holder)>,
}

/// Progress of the latest run of one kind.
#[derive(Clone, Copy, Debug)]
struct RunProgress {
    kind: RunKind,
    run: u64,
    phase: RunPhase,
}

/// The latest traffic run and the latest collective run of `device`.
fn latest(device: &dyn Device) -> [Option<RunProgress>; 2] {
    let traffic = device.traffic().and_then(|traffic| traffic.report(None));
    let collective = device.collectives().and_then(|runs| runs.report());
    [
        traffic.map(|report| RunProgress {
            kind: RunKind::Traffic,
            run: report.run,
            phase: report.phase,
        }),
        collective.map(|report| RunProgress {
            kind: RunKind::Collective,
            run: report.run.into(),
            phase: report.phase,
        }),
    ]
}

/// The unfinished runs at `device`.
fn going_on(device: &dyn Device) -> impl Iterator<Item = RunProgress> + use<> {
    let both = latest(device).into_iter().flatten();
    both.filter(|progress| progress.phase != RunPhase::Done)
}

/// Adds the code for an unknown run to the refusal, if the node is a NIC.
pub(crate) fn unknown_run(kind: Kind, refusal: Refusal) -> Refusal {
    Refusal {
        code: (kind == Kind::Nic).then_some(Code::UnknownRun),
        ..refusal
    }
}

impl Claims {
    /// Claims `device` for `holder`, connected as `client`.
    pub(crate) fn claim(
        &mut self,
        device: &mut dyn Device,
        client: ClientId,
        holder: Holder,
    ) -> Result<Value, Refusal> {
        let traffic = device.need::<capability::Traffic>();
        let traffic = traffic.map_err(|error| Refusal::from(error.to_string()))?;
        let latest = traffic.report(None).map_or(0, |report| report.run);
        self.may_start(client)?;
        if self.now.is_none()
            && let Some(progress) = going_on(device).next()
        {
            return Err(self.busy(progress));
        }
        self.now = Some((client, holder));
        Ok(json!({ "latest_run": latest }))
    }

    fn busy(&self, progress: RunProgress) -> Refusal {
        let (kind, run) = (progress.kind, progress.run);
        let gone = self.gone.as_ref();
        let gone = gone.filter(|(_, what, of)| (*what, *of) == (kind, run));
        let holder = gone.map(|(holder, _, _)| holder.clone());
        let ending = holder.is_some() || progress.phase == RunPhase::Draining;
        let whose = holder.as_ref().map_or_else(
            || "which no client holds".to_owned(),
            |holder| format!("whose holder {holder} has disconnected"),
        );
        let (doing, code) = match ending {
            true => ("is waiting for its last responses", Code::Ending),
            false => ("is still in progress", Code::Busy),
        };
        Refusal {
            text: format!("{kind} run {run}, {whose}, {doing}"),
            code: Some(code),
            holder,
            run: Some((kind, run)),
        }
    }

    /// Checks that `client` may start a run.
    pub(crate) fn may_start(&self, client: ClientId) -> Result<(), Refusal> {
        match &self.now {
            Some((keeper, holder)) if *keeper != client => Err(Refusal {
                text: format!("{holder} holds this NIC"),
                code: Some(Code::Taken),
                holder: Some(holder.clone()),
                run: None,
            }),
            _ => Ok(()),
        }
    }

    /// Claims a barrier unit of `device` for `holder`, connected as `client`.
    pub(crate) fn claim_unit(
        &mut self,
        device: &mut dyn Device,
        (client, unit): (ClientId, u8),
        holder: Holder,
    ) -> Result<Value, Refusal> {
        let barriers = device.need::<capability::Barriers>();
        let barriers = barriers.map_err(|error| Refusal::from(error.to_string()))?;
        if unit >= barriers.units() {
            return Err(format!(
                "barrier unit {unit} does not exist: there are {}",
                barriers.units()
            )
            .into());
        }
        self.may_use(client, unit)?;
        self.units.insert(unit, (client, holder));
        Ok(json!({}))
    }

    /// Checks that `client` may use a barrier unit.
    pub(crate) fn may_use(&self, client: ClientId, unit: u8) -> Result<(), Refusal> {
        match self.units.get(&unit) {
            Some((keeper, holder)) if *keeper != client => Err(Refusal {
                text: format!("{holder} holds barrier unit {unit}"),
                code: Some(Code::Taken),
                holder: Some(holder.clone()),
                run: None,
            }),
            _ => Ok(()),
        }
    }

    /// Handles the disconnect of a client, whether or not it was a holder.
    pub(crate) fn client_gone(&mut self, device: &mut dyn Device, now: Time, client: ClientId) {
        self.units.retain(|&unit, (keeper, _)| {
            let stays = *keeper != client;
            if !stays && let Some(barriers) = device.barriers_mut() {
                barriers.stop(unit);
                // Stop again: a second stop ends the run even if other participants never arrive.
                barriers.stop(unit);
            }
            stays
        });
        let Some((_, holder)) = self.now.take_if(|(keeper, _)| *keeper == client) else {
            return;
        };
        for RunProgress { kind, run, .. } in going_on(device) {
            tracing::warn!(run, %kind, %holder,
                "the holder disconnected during its run, which now ends");
            self.gone = Some((holder.clone(), kind, run));
            match kind {
                RunKind::Traffic => {
                    if let Some(traffic) = device.traffic_mut() {
                        traffic.stop();
                    }
                }
                RunKind::Collective => {
                    if let Some(collectives) = device.collectives_mut() {
                        collectives.stop(now);
                        // Stop again: a second stop ends the run even if other participants never
                        // arrive.
                        collectives.stop(now);
                    }
                }
            }
        }
    }
}

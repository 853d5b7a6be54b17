//! Requests to the node of a process, and its replies.

use phitwire::chip::RegisterError;
use phitwire::device::{Device, DeviceError, RegisterName, capability};
use phitwire::nic::ProbeError;
use phitwire::node::PortId;
use phitwire::time::{Duration, Time};
use serde::Serialize;
use serde_json::{Value, json};

use super::LiveDevice;
use crate::claims;
use crate::clock;
use crate::control::server::ClientId;
use crate::control::{Code, ProbeReport, Refusal, Register, Request, WatchedReport};

/// Longest time for which one command quiesces a router, in milliseconds.
const LONGEST_HOLD_MS: u64 = 60_000;

/// Longest time for which a router watches packets, in milliseconds.
const LONGEST_WATCH_MS: u64 = 600_000;
/// Maximum number of passages in one reply, which must fit into a line. The latest ones are kept.
const MAX_LISTED: usize = 512;

/// Offset to add to the process time `now` to get nanoseconds since the machine was started.
fn clock_offset_ns(now: Time) -> i64 {
    let since_boot = i128::from(clock::since_boot_ns());
    (since_boot - i128::from(now.as_ns())) as i64
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The reply cannot be serialised.
    #[error(transparent)]
    Answer(#[from] serde_json::Error),
    #[error("no such traffic run")]
    UnknownRun,
    #[error("no collective run was started here")]
    NoCollectives,
    #[error("no barrier run was started at unit {0}")]
    NoBarriers(u8),
    #[error("the other router reported: {0}")]
    Remote(RegisterError),
    #[error("port {port} has no link; ports with a link: {}", .linked.join(" "))]
    NoLink {
        port: PortId,
        /// The ports that have a link.
        linked: Vec<String>,
    },
    /// The noise rate or the lane is invalid.
    #[error("{0}")]
    Noise(String),
    #[error("{0} is {1}, but at most {2} is allowed")]
    TooLarge(&'static str, u64, u64),
    #[error("the hold must be 1 to {LONGEST_HOLD_MS} ms, not {0}; renew it before it expires")]
    Hold(u64),
    #[error("the watch must be 1 to {LONGEST_WATCH_MS} ms, not {0}")]
    Watch(u64),
    /// The node does not handle the request; the process does.
    #[error("requests of this kind are not for the node")]
    NotOurs,
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        let text = failure.to_string();
        match failure {
            Failure::Device(DeviceError::Probe(ProbeError::Early)) => Self::new(Code::Early, text),
            _ => text.into(),
        }
    }
}

impl LiveDevice {
    /// Handles a request that concerns only the node.
    ///
    /// # Errors
    /// When the node refuses the request, or the process must handle it.
    pub fn answer(
        &mut self,
        now: Time,
        client: ClientId,
        request: Request,
    ) -> Result<Value, Refusal> {
        let (device, claims) = (&mut *self.device, &mut self.claims);
        let kind = device.kind();
        match request {
            Request::Claim(holder) => return claims.claim(device, client, holder),
            Request::ClaimUnit { unit, holder } => {
                return claims.claim_unit(device, (client, unit), holder);
            }
            Request::TrafficStart { .. } | Request::CollectiveStart { .. } => {
                claims.may_start(client)?;
            }
            Request::BarrierPrepare { unit } => claims.may_use(client, unit)?,
            Request::BarrierStart { ref spec } => claims.may_use(client, spec.unit)?,
            Request::TrafficStatus { .. }
            | Request::CollectiveStatus
            | Request::BarrierStatus { .. } => {
                let known = run_answer(device, now, request);
                return known.map_err(|unknown| claims::unknown_run(kind, unknown.into()));
            }
            _ => {}
        }
        Ok(self.answer_itself(now, request)?)
    }

    fn answer_itself(&mut self, now: Time, request: Request) -> Result<Value, Failure> {
        let device = &mut *self.device;
        match request {
            Request::Links => written(&self.links(now)),
            Request::Pipeline => written(&device.pipeline()),
            Request::Fault(fault) => {
                self.fault(now, &fault)?;
                *self.faults.entry((fault.port(), fault.word())).or_default() += 1;
                done()
            }
            Request::Get { register } => {
                let name = register_name(&register);
                let value = device.need_registers(name)?.read(name)?;
                Ok(register_value(&register, value))
            }
            Request::Set { register, value } => {
                let name = register_name(&register);
                device.need_registers(name)?.write(name, value)?;
                Ok(register_value(&register, value))
            }
            Request::Registers => {
                let name = RegisterName::Name("at all");
                written(&device.need_registers(name)?.list())
            }
            Request::Quiesce { hold_ms } => self.quiesce(now, hold_ms),
            Request::Release => {
                self.held_until = None;
                device.need::<capability::Tables>()?.release();
                done()
            }
            Request::Routing => written(&device.need::<capability::Tables>()?.routing()),
            Request::Tables => Ok(device.need::<capability::Tables>()?.tables()),
            Request::Install { tables } => {
                device.need::<capability::Tables>()?.install(tables)?;
                done()
            }
            Request::RemoteAsk {
                way,
                register,
                value,
            } => {
                // The client polls for the reply.
                let remote = device.need::<capability::Maintenance>()?;
                let question = remote.ask(&way, register_name(&register), value)?;
                Ok(json!({ "question": question }))
            }
            Request::RemoteAnswer { question } => {
                let answer = device.need::<capability::Maintenance>()?.answer(question);
                let Some(value) = answer.transpose().map_err(Failure::Remote)? else {
                    return pending();
                };
                Ok(json!({ "value": value, "hex": format!("{value:#x}") }))
            }
            Request::Watch { .. }
            | Request::Want { .. }
            | Request::Watched { .. }
            | Request::Unwatch
            | Request::Probe(_)
            | Request::ProbeEnded { .. }
            | Request::Outlook(_) => trace_answer(device, now, request),
            request => run_answer(device, now, request),
        }
    }

    fn quiesce(&mut self, now: Time, hold_ms: u64) -> Result<Value, Failure> {
        if !(1..=LONGEST_HOLD_MS).contains(&hold_ms) {
            return Err(Failure::Hold(hold_ms));
        }
        self.device.need::<capability::Tables>()?.quiesce();
        self.held_until = Some(now + Duration::from_ms(hold_ms));
        done()
    }
}

/// Replies to a request about traffic, collective or barrier runs.
fn run_answer(device: &mut dyn Device, now: Time, request: Request) -> Result<Value, Failure> {
    match request {
        Request::TrafficStart { spec } => {
            device.need::<capability::Traffic>()?.start(now, *spec)?;
        }
        Request::TrafficStatus { run } => {
            let report = device.need::<capability::Traffic>()?.report(run);
            return written(&report.ok_or(Failure::UnknownRun)?);
        }
        Request::TrafficStop => device.need::<capability::Traffic>()?.stop(),
        Request::Renumber { number } => {
            device.need::<capability::Traffic>()?.renumber(number)?;
        }
        Request::CollectiveStart { spec } => {
            let collectives = device.need::<capability::Collectives>()?;
            collectives.start(now, *spec)?;
        }
        Request::CollectiveStatus => {
            let report = device.need::<capability::Collectives>()?.report();
            return written(&report.ok_or(Failure::NoCollectives)?);
        }
        Request::CollectiveStop => device.need::<capability::Collectives>()?.stop(now),
        Request::BarrierPrepare { unit } => {
            device.need::<capability::Barriers>()?.prepare(unit)?;
        }
        Request::BarrierStart { spec } => {
            device.need::<capability::Barriers>()?.start(now, *spec)?;
        }
        Request::BarrierStatus { unit } => {
            let report = device.need::<capability::Barriers>()?.report(unit);
            return written(&report.ok_or(Failure::NoBarriers(unit))?);
        }
        Request::BarrierStop { unit } => device.need::<capability::Barriers>()?.stop(unit),
        _ => return Err(Failure::NotOurs),
    }
    done()
}

/// Replies to a request about the routes of packets.
fn trace_answer(device: &mut dyn Device, now: Time, request: Request) -> Result<Value, Failure> {
    match request {
        Request::Watch { flow, hold_ms } => {
            if !(1..=LONGEST_WATCH_MS).contains(&hold_ms) {
                return Err(Failure::Watch(hold_ms));
            }
            let until = now + Duration::from_ms(hold_ms);
            device.need::<capability::Watch>()?.watch(now, flow, until);
        }
        Request::Watched { identity } => {
            let watch = device.need::<capability::Watch>()?;
            let mut watched = watch.watched(now, identity);
            let many = watched.passages.len().saturating_sub(MAX_LISTED);
            watched.passages.drain(..many);
            watched.dropped += many as u64;
            return written(&WatchedReport {
                watched,
                clock_offset_ns: clock_offset_ns(now),
            });
        }
        Request::Want { identity } => device.need::<capability::Watch>()?.want(identity),
        Request::Unwatch => device.need::<capability::Watch>()?.unwatch(),
        Request::Probe(spec) => {
            let probe = device.need::<capability::Probing>()?.probe(now, &spec);
            return written(&ProbeReport {
                probe: probe.map_err(DeviceError::from)?,
                sent_ps: now.as_ps(),
                clock_offset_ns: clock_offset_ns(now),
            });
        }
        Request::ProbeEnded { number } => {
            let end = device.need::<capability::Probing>()?.probe_ended(number);
            return end.map_or_else(pending, |end| written(&end));
        }
        Request::Outlook(question) => {
            return written(&device.need::<capability::Outlook>()?.outlook(&question));
        }
        _ => return Err(Failure::NotOurs),
    }
    done()
}

/// The reply to a request without a result.
fn done() -> Result<Value, Failure> {
    Ok(json!({}))
}

/// The reply to a request whose result is not available yet.
fn pending() -> Result<Value, Failure> {
    Ok(json!({ "pending": true }))
}

fn written(answer: &impl Serialize) -> Result<Value, Failure> {
    Ok(serde_json::to_value(answer)?)
}

fn register_name(register: &Register) -> RegisterName<'_> {
    match register {
        Register::Address(address) => RegisterName::Address(*address),
        Register::Name(name) => RegisterName::Name(name),
    }
}

/// The reply to a register access. `hex` is for readers such as `jq` whose numbers are
/// floating-point: a register has 64 bits, the mantissa of a double 53.
fn register_value(register: &Register, value: u64) -> Value {
    json!({ "register": register, "value": value, "hex": format!("{value:#x}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_about_a_register_has_all_64_bits() {
        let answer = register_value(&Register::Name("mask".into()), 1 << 63 | 1);
        assert_eq!(answer["hex"], "0x8000000000000001");
        assert_eq!(answer["value"], 1_u64 << 63 | 1);
    }
}

//! Claims NICs for one measuring tool at a time, and names the current holder.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use phitwire::nic::MAX_RUN;
use phitwire_nodes::control::{Claimed, Code, Holder, Refusal, Request, RunKind};
use phitwire_nodes::output;
use thiserror::Error;

use super::lab::{Lab, LabError, ProcessState, ask, process_state};
use super::run::Clock;

/// Limit on waiting for the last replies of a run whose tool has exited.
const ENDING_LIMIT: Duration = Duration::from_secs(30);
/// Time within which a NIC notices that an exited tool's socket is closed.
const NOTICE_LIMIT: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Why NICs cannot be claimed.
#[derive(Debug, Error)]
pub enum ClaimError {
    /// Other users hold the NICs. Each reason is listed once, with its nodes and a remedy.
    #[error("{0}")]
    InTheWay(String),
    /// The NICs do not reply.
    #[error("{0}")]
    Silent(String),
    /// A NIC has used the highest possible run number.
    #[error(
        "{node} has seen run number {MAX_RUN}, the highest possible: restart every NIC that took \
         part in that run (netns-scripts/node.sh restart {node})"
    )]
    NumbersUsedUp {
        /// The NIC that has used it.
        node: String,
    },
    #[error(transparent)]
    Lab(#[from] LabError),
}

/// This process as the holder of a claim.
pub(crate) fn holder() -> Holder {
    // The subcommand, which the aliases pass too.
    let tool = std::env::args().nth(1).unwrap_or_default();
    Holder {
        tool: format!("phitwire-{tool}"),
        pid: std::process::id(),
    }
}

/// Claims `nodes` of lab `name` until this process closes its connections. Returns the highest
/// traffic run number used at these nodes. Waits for runs that lack only their last replies.
///
/// # Errors
/// See [`ClaimError`].
pub fn claim<'a>(
    name: &str,
    nodes: impl Iterator<Item = &'a str> + Clone,
    lab: &mut dyn Lab,
    clock: &dyn Clock,
) -> Result<u64, ClaimError> {
    let request = Request::Claim(holder());
    let begin = clock.now();
    let mut notified = false;
    loop {
        let (mut latest, mut refusals, mut silent) = (0, Vec::new(), Vec::new());
        for node in nodes.clone() {
            match ask::<Claimed>(lab, node, &request) {
                Ok(claimed) => {
                    latest = latest.max(claimed.latest_run);
                    if latest >= MAX_RUN {
                        let node = node.to_owned();
                        return Err(ClaimError::NumbersUsedUp { node });
                    }
                }
                Err(error) if error.is_silent() => silent.push(node),
                Err(error) => match error.refusal() {
                    Some(refusal) if names_user(refusal) => refusals.push((node, refusal.clone())),
                    _ => return Err(error.into()),
                },
            }
        }
        if !silent.is_empty() {
            return Err(ClaimError::Silent(silent_nodes(&silent, lab)));
        }
        let waited = clock.now() - begin;
        let passes = |(_, refusal): &(_, Refusal)| waited < limit_of(refusal);
        let waits = refusals.iter().all(passes) && clock.stops() == 0;
        match refusals.as_slice() {
            [] => return Ok(latest),
            [(_, refusal), ..] if waits => {
                if !notified && waited >= NOTICE_LIMIT {
                    output::print_error(&format!("waiting: {refusal}"));
                    notified = true;
                }
                clock.sleep(LOOK_EVERY);
            }
            _ => return Err(ClaimError::InTheWay(blocking_runs(name, &refusals))),
        }
    }
}

/// Whether a refusal names another user of the NIC.
fn names_user(refusal: &Refusal) -> bool {
    matches!(refusal.code, Some(Code::Taken | Code::Busy | Code::Ending))
}

/// Limit on waiting for the cause of a refusal to end.
fn limit_of(refusal: &Refusal) -> Duration {
    match (refusal.code, &refusal.holder) {
        (Some(Code::Ending), _) => ENDING_LIMIT,
        (Some(Code::Taken), Some(holder)) => match process_state(holder.pid) {
            ProcessState::Gone => NOTICE_LIMIT,
            _ => Duration::ZERO,
        },
        _ => Duration::ZERO,
    }
}

/// A text that names the silent nodes, and how to wake them.
pub(super) fn silent_nodes(nodes: &[&str], lab: &mut dyn Lab) -> String {
    let mut text = format!("no answer from {}", nodes.join(", "));
    let stopped = nodes.iter().filter_map(|node| match lab.state(node) {
        ProcessState::Stopped(pid) => Some(pid.to_string()),
        _ => None,
    });
    let stopped: Vec<String> = stopped.collect();
    if !stopped.is_empty() {
        let _ = write!(
            text,
            ": stopped, not dead; `kill -CONT {}` resumes them",
            stopped.join(" ")
        );
    }
    text
}

/// A text with each reason once, its nodes and a remedy.
fn blocking_runs(lab: &str, refusals: &[(&str, Refusal)]) -> String {
    let mut reasons: BTreeMap<String, (&Refusal, Vec<&str>)> = BTreeMap::new();
    for (node, refusal) in refusals {
        let reason = reasons.entry(refusal.text.clone());
        reason.or_insert((refusal, Vec::new())).1.push(node);
    }
    let mut text = String::new();
    for (refusal, nodes) in reasons.values() {
        let separator = if text.is_empty() { "" } else { "\n" };
        let _ = write!(text, "{separator}{}: {refusal}; ", nodes.join(", "));
        match (refusal.code, &refusal.holder, refusal.run) {
            (Some(Code::Taken), Some(holder), _) => {
                let pid = holder.pid;
                let _ = write!(
                    text,
                    "wait for it, end it (kill {pid}), or measure other NICs (--from, --to)"
                );
            }
            (Some(Code::Ending), ..) => {
                text.push_str("it ends automatically when they have timed out");
            }
            (_, _, run) => {
                let kind = run.map_or(RunKind::Traffic, |(kind, _)| kind);
                let stop = format!("phitwire ctl --lab {lab} $n {kind} stop");
                let again = match kind {
                    RunKind::Traffic => String::new(),
                    RunKind::Collective => format!("; {stop}"),
                };
                let nodes = nodes.join(" ");
                let _ = write!(text, "to end it: for n in {nodes}; do {stop}{again}; done");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(code: Code, text: &str, run: Option<(RunKind, u64)>) -> Refusal {
        let holder = Holder {
            tool: "phitwire-msgrate".to_owned(),
            pid: 4711,
        };
        Refusal {
            text: text.to_owned(),
            code: Some(code),
            holder: (code == Code::Taken).then_some(holder),
            run,
        }
    }

    #[test]
    fn each_reason_is_printed_once_with_its_nodes_and_a_remedy() {
        let taken = refusal(
            Code::Taken,
            "phitwire-msgrate (process 4711) holds this NIC",
            None,
        );
        let run = Some((RunKind::Traffic, 9));
        let busy = refusal(
            Code::Busy,
            "traffic run 9, which no client holds, is still in progress",
            run,
        );
        let refusals = [
            ("nic0", taken.clone()),
            ("nic1", busy.clone()),
            ("nic2", taken),
            ("nic3", busy),
        ];
        assert_eq!(
            blocking_runs("demo", &refusals),
            "nic0, nic2: phitwire-msgrate (process 4711) holds this NIC; wait for it, end it (kill \
             4711), or measure other NICs (--from, --to)\nnic1, nic3: traffic run 9, which no \
             client holds, is still in progress; to end it: for n in nic1 nic3; do phitwire ctl \
             --lab demo $n traffic stop; done"
        );
        let run = Some((RunKind::Collective, 9));
        let text = blocking_runs("demo", &[("nic0", refusal(Code::Busy, "x", run))]);
        let stop = "phitwire ctl --lab demo $n collective stop";
        assert!(
            text.ends_with(&format!("for n in nic0; do {stop}; {stop}; done")),
            "{text}"
        );
    }
}

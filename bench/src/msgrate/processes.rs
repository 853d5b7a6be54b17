//! The fates of a lab's processes during a run, and the work of their links and routers.

use std::collections::BTreeMap;
use std::time::Duration;

use phitwire_nodes::control::{NodeInfo, Request};
use schemars::JsonSchema;
use serde::Serialize;

use super::lab::{Lab, LabError, ProcessState, ask};
use super::work::Work;

/// Number of processes up to which all are checked each time. If there are more, they are checked
/// once a second.
const OFTEN: usize = 64;
const SELDOM: Duration = Duration::from_secs(1);

/// Processes that something happened to, routers as well as NICs. The names are those of the JSON
/// output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Fates {
    /// Processes that had ended before the run.
    pub processes_dead: Vec<String>,
    /// Processes that ended and were gone when the run was over.
    pub processes_died: Vec<String>,
    /// Processes that were restarted.
    pub processes_restarted: Vec<String>,
    /// Processes that were stopped (SIGSTOP) for a time, or silent.
    pub processes_stopped: Vec<String>,
    /// Link ends that gave up a session because the peer was silent or acknowledged nothing.
    pub links_given_up: Vec<String>,
    /// Processes that did not run for a time, because the host was suspended or overloaded, and for
    /// how many ms in total.
    pub stood_still_ms: BTreeMap<String, u64>,
    /// Processes whose part of the link counters is not, or not fully, known.
    pub uncounted: Vec<String>,
}

impl Fates {
    fn note(&mut self, name: &str, work: &Work) {
        let ends = work.given_up().map(|port| format!("{name}:{port}"));
        self.links_given_up.extend(ends);
        let ms = work.stood_still_ms();
        if ms > 0 {
            self.stood_still_ms.insert(name.to_owned(), ms);
        }
    }
}

#[derive(Debug)]
struct Process {
    name: String,
    /// Process id and counters at the beginning of the run.
    before: Option<(u32, Work)>,
    stopped: bool,
    gone: bool,
}

/// All processes of a lab.
#[derive(Debug)]
pub(super) struct Processes {
    all: Vec<Process>,
    /// Processes that had ended before the run.
    dead: Vec<String>,
    looked: Option<Duration>,
}

impl Processes {
    /// Reads the counters of these processes.
    pub(super) fn new(names: &[String], lab: &mut dyn Lab) -> Self {
        let dead = lab.dead().to_vec();
        let process = |name: &String| {
            let mut stopped = is_stopped(name, lab);
            let before = if stopped {
                None
            } else {
                counted(name, lab).ok()
            };
            stopped |= before.is_none();
            Process {
                name: name.clone(),
                before,
                stopped,
                gone: false,
            }
        };
        Self {
            all: names.iter().map(process).collect(),
            dead,
            looked: None,
        }
    }

    /// Records processes that are stopped or have ended, without sending requests.
    pub(super) fn watch(&mut self, now: Duration, lab: &mut dyn Lab) {
        let recently = self.looked.is_some_and(|at| now < at + SELDOM);
        if self.all.len() > OFTEN && recently {
            return;
        }
        self.looked = Some(now);
        for process in &mut self.all {
            match lab.state(&process.name) {
                ProcessState::Stopped(_) => process.stopped = true,
                ProcessState::Gone => process.gone = true,
                ProcessState::Alive | ProcessState::Unknown => {}
            }
        }
    }

    /// Records that process `name` did not reply.
    pub(super) fn silent(&mut self, name: &str) {
        let mut known = self.all.iter_mut();
        if let Some(process) = known.find(|process| process.name == name) {
            process.stopped = true;
        }
    }

    /// The work of links and routers, process by process, and the fates of the processes.
    pub(super) fn end(mut self, lab: &mut dyn Lab) -> (Work, Fates) {
        let mut fates = Fates {
            processes_dead: self.dead,
            ..Fates::default()
        };
        let mut work = Work::default();
        for process in &mut self.all {
            let name = || process.name.clone();
            let after = if is_stopped(&process.name, lab) {
                process.stopped = true;
                None
            } else {
                match counted(&process.name, lab) {
                    Ok(after) => Some(after),
                    Err(error) => {
                        process.stopped |= error.is_silent();
                        process.gone |= !error.is_silent();
                        None
                    }
                }
            };
            let mut complete = false;
            match (&process.before, after) {
                (Some((old, before)), Some((new, after))) if *old == new => {
                    let own = after.since(before);
                    fates.note(&process.name, &own);
                    work.add(&own);
                    process.gone = false;
                    complete = true;
                }
                // Count only the new process, since the work of its predecessor is unknown.
                (_, Some((_, after))) => {
                    if process.before.is_some() {
                        work.add(&after);
                        fates.processes_restarted.push(name());
                    }
                    process.gone = false;
                }
                (_, None) => {}
            }
            if process.gone {
                fates.processes_died.push(name());
            } else if process.stopped {
                fates.processes_stopped.push(name());
            }
            if !complete {
                fates.uncounted.push(name());
            }
        }
        (work, fates)
    }
}

fn is_stopped(name: &str, lab: &mut dyn Lab) -> bool {
    matches!(lab.state(name), ProcessState::Stopped(_))
}

/// The process that has the name now, and its counters.
fn counted(name: &str, lab: &mut dyn Lab) -> Result<(u32, Work), LabError> {
    let info: NodeInfo = ask(lab, name, &Request::Info)?;
    let stats = lab.ask(name, &Request::Stats)?;
    Ok((info.pid, Work::of(&stats)))
}

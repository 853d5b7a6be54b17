//! The processes of a lab, as needed by a measurement.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::time::Duration;

use phitwire_nodes::control::{Client, ClientError, Code, NodeInfo, NodeKind, Refusal, Request};
use phitwire_nodes::output;
use phitwire_nodes::run_dir::{LabDir, RunDirError};
use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

/// Timeout of a process's reply, which it sends between two turns of its event loop.
const PATIENCE: Duration = Duration::from_secs(3);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Router,
    /// A NIC, with its processor's number.
    Nic {
        processor: u16,
        /// The NIC's group, on machines that have groups.
        group: Option<u16>,
    },
    /// A NIC that is unreachable until it takes the number of another.
    Spare,
    /// The role is unknown, because the process does not reply.
    Silent,
}

/// The state of a process according to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessState {
    /// Running or sleeping.
    Alive,
    /// Stopped (SIGSTOP, or a debugger), with this process id.
    Stopped(u32),
    /// Exited.
    Gone,
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub name: String,
    pub role: Role,
}

/// Why the lab did not reply.
#[derive(Debug, Error)]
pub enum LabError {
    /// The lab's name is invalid, or its directory cannot be read.
    #[error(transparent)]
    Directory(#[from] RunDirError),
    /// No process of such a lab has a control socket.
    #[error("lab `{0}` is not running (start it with netns-scripts/up.sh TOPOLOGY --lab {0})")]
    NotRunning(String),
    /// A process did not reply, or rejected the request.
    #[error("{node}: {error}")]
    Client {
        node: String,
        /// The error. It is not the `source`, which would be printed a second time.
        error: ClientError,
    },
    #[error("{node}: malformed answer: {error}")]
    Malformed {
        node: String,
        error: serde_json::Error,
    },
    /// The NIC has no processor number, so nothing can be sent to it.
    #[error("{node} is a NIC without a processor number")]
    NoNumber { node: String },
}

impl LabError {
    /// Whether the socket exists but nothing listens: the remains of a killed process.
    fn is_of_dead_process(&self) -> bool {
        matches!(
            self,
            Self::Client { error: ClientError::Unreachable { source, .. }, .. }
                if source.kind() == ErrorKind::ConnectionRefused
        )
    }

    /// Whether the error shows that a former participant has died: it does not listen, closed the
    /// connection, or was restarted and does not know the run.
    pub fn reports_death(&self) -> bool {
        match self {
            Self::Client { error, .. } => match error {
                ClientError::Unreachable { .. } => true,
                ClientError::Refused(refusal) => refusal.code == Some(Code::UnknownRun),
                ClientError::Io(error) => matches!(
                    error.kind(),
                    ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
                ),
                ClientError::Name(_)
                | ClientError::Malformed(_)
                | ClientError::HalfSent
                | ClientError::Silent => false,
            },
            _ => false,
        }
    }

    /// Whether the process exists but does not reply.
    pub fn is_silent(&self) -> bool {
        matches!(
            self,
            Self::Client {
                error: ClientError::Silent | ClientError::HalfSent,
                ..
            }
        )
    }

    /// The refusal, if it is one.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Client { error, .. } => error.refusal(),
            _ => None,
        }
    }
}

/// A lab to measure. A trait, so that tests can substitute it.
pub trait Lab {
    /// All processes, by name.
    ///
    /// # Errors
    /// If the lab is not running, or a process does not report its role.
    fn members(&mut self) -> Result<Vec<Member>, LabError>;

    /// Sends a request to a process and returns the data of its reply.
    ///
    /// # Errors
    /// If the process does not reply, or rejects the request.
    fn ask(&mut self, node: &str, request: &Request) -> Result<Value, LabError>;

    /// Processes that [`members`](Self::members) left out because they had ended.
    fn dead(&self) -> &[String] {
        &[]
    }

    /// The state of the process that last had this name, determined without a request.
    fn state(&mut self, node: &str) -> ProcessState {
        let _ = node;
        ProcessState::Unknown
    }
}

/// Sends a request to a process and parses its reply.
///
/// # Errors
/// If the process does not reply, rejects the request, or sends an unexpected reply.
pub fn ask<T: DeserializeOwned>(
    lab: &mut dyn Lab,
    node: &str,
    request: &Request,
) -> Result<T, LabError> {
    let answer = lab.ask(node, request)?;
    serde_json::from_value(answer).map_err(|error| LabError::Malformed {
        node: node.to_owned(),
        error,
    })
}

/// A lab of processes with control sockets.
#[derive(Debug)]
pub struct ControlLab {
    name: String,
    clients: BTreeMap<String, Client>,
    /// Processes that had ended when the members were last requested.
    dead: Vec<String>,
    /// Messages about skipped nodes that have been printed.
    said: BTreeSet<String>,
}

impl ControlLab {
    /// The lab called `name`, which need not be running yet.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            clients: BTreeMap::new(),
            dead: Vec::new(),
            said: BTreeSet::new(),
        }
    }

    /// Prints once that `nodes` are skipped.
    fn print_skipped(&mut self, nodes: &[String], why: &str) {
        let text = format!("skipped, {why}: {}", nodes.join(", "));
        if !nodes.is_empty() && self.said.insert(text.clone()) {
            output::print_error(&text);
        }
    }
}

impl Lab for ControlLab {
    fn members(&mut self) -> Result<Vec<Member>, LabError> {
        let nodes = LabDir::new(&self.name)?.nodes()?;
        if nodes.is_empty() {
            return Err(LabError::NotRunning(self.name.clone()));
        }
        let mut members = Vec::new();
        let (mut dead, mut silent, mut spare) = (Vec::new(), Vec::new(), Vec::new());
        for name in nodes {
            match ask::<NodeInfo>(self, &name, &Request::Info) {
                Ok(info) => {
                    let role = role(&name, &info)?;
                    if role == Role::Spare {
                        spare.push(name.clone());
                    }
                    members.push(Member { role, name });
                }
                // Continue, since a network can be measured despite failures.
                Err(error) if error.is_of_dead_process() => dead.push(name),
                Err(error) if error.is_silent() => {
                    silent.push(name.clone());
                    members.push(Member {
                        role: Role::Silent,
                        name,
                    });
                }
                Err(error) => return Err(error),
            }
        }
        if members.is_empty() {
            return Err(LabError::NotRunning(self.name.clone()));
        }
        self.print_skipped(&dead, "process dead, socket left behind");
        self.print_skipped(&silent, "process does not answer (is it stopped?)");
        self.print_skipped(&spare, "spare (see phitwire manage rename)");
        self.dead = dead;
        Ok(members)
    }

    fn ask(&mut self, node: &str, request: &Request) -> Result<Value, LabError> {
        let wrap = |error| LabError::Client {
            node: node.to_owned(),
            error,
        };
        // A kept connection may lead to a process that has died and was restarted: retry once on a
        // new connection. Do not retry if a new connection breaks.
        if let Some(client) = self.clients.get_mut(node) {
            match client.ask(request) {
                Err(ClientError::Io(_)) => drop(self.clients.remove(node)),
                Err(error @ ClientError::HalfSent) => {
                    self.clients.remove(node);
                    return Err(wrap(error));
                }
                answered => return answered.map_err(wrap),
            }
        }
        let mut client = Client::connect(&self.name, node).map_err(wrap)?;
        client
            .set_timeout(PATIENCE)
            .map_err(|error| wrap(error.into()))?;
        let answer = client.ask(request);
        // Keep the connection to a silent process, since a stopped one accepts no others.
        if !matches!(answer, Err(ClientError::Io(_) | ClientError::HalfSent)) {
            self.clients.insert(node.to_owned(), client);
        }
        answer.map_err(wrap)
    }

    fn dead(&self) -> &[String] {
        &self.dead
    }

    fn state(&mut self, node: &str) -> ProcessState {
        let Some(pid) = self.clients.get(node).and_then(Client::process) else {
            return ProcessState::Unknown;
        };
        process_state(pid)
    }
}

/// The state of a process on this machine.
pub(super) fn process_state(pid: u32) -> ProcessState {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => state_of(pid, &stat),
        // Without /proc, a missing entry does not mean that the process has exited.
        Err(error) if error.kind() == ErrorKind::NotFound => {
            match std::fs::exists("/proc/self/stat") {
                Ok(true) => ProcessState::Gone,
                _ => ProcessState::Unknown,
            }
        }
        Err(_) => ProcessState::Unknown,
    }
}

/// Parses `/proc/PID/stat`, where the state is the letter after the name in parentheses.
fn state_of(pid: u32, stat: &str) -> ProcessState {
    let letter = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.chars().next());
    match letter {
        Some('T' | 't') => ProcessState::Stopped(pid),
        Some('Z' | 'X' | 'x') => ProcessState::Gone,
        Some(_) => ProcessState::Alive,
        None => ProcessState::Unknown,
    }
}

/// The role that a process reports.
fn role(node: &str, info: &NodeInfo) -> Result<Role, LabError> {
    Ok(match (info.kind, info.processor) {
        (NodeKind::Router, _) => Role::Router,
        (NodeKind::Nic, _) if info.spare => Role::Spare,
        (NodeKind::Nic, Some(processor)) => Role::Nic {
            processor,
            group: info.group,
        },
        (NodeKind::Nic, None) => {
            let node = node.to_owned();
            return Err(LabError::NoNumber { node });
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn process_states_are_read_from_stat() {
        let of = |info| role("x", &serde_json::from_value(info).ok()?).ok();
        let router = json!({"kind": "router", "pid": 7, "group": 3});
        assert_eq!(of(router), Some(Role::Router));
        let processor = 7;
        let nic = |group| Role::Nic { processor, group };
        let plain = json!({"kind": "nic", "pid": 7, "processor": 7, "engine": "uring"});
        assert_eq!(of(plain), Some(nic(None)));
        let grouped = json!({"kind": "nic", "pid": 7, "processor": 7, "group": 2});
        assert_eq!(of(grouped), Some(nic(Some(2))));
        let spare = json!({"kind": "nic", "pid": 7, "processor": 26, "spare": true});
        assert_eq!(of(spare), Some(Role::Spare));
        for wrong in [
            json!({}),
            json!({"kind": "toaster", "pid": 7}),
            json!({"kind": "nic", "pid": 7}),
            json!({"kind": "nic", "pid": 7, "processor": null}),
            json!({"kind": "nic", "pid": 7, "processor": 70_000}),
        ] {
            assert_eq!(of(wrong.clone()), None, "{wrong}");
        }
    }

    #[test]
    fn process_states_are_read_from_the_kernel() {
        let of = |stat: &str| state_of(7, stat);
        assert_eq!(of("7 (phitwire) S 1 7 7"), ProcessState::Alive);
        assert_eq!(of("7 (a) T (b) T 1 7"), ProcessState::Stopped(7));
        assert_eq!(of("7 (a) S 1) R 1 7"), ProcessState::Alive);
        assert_eq!(of("7 (phitwire) Z 1 7"), ProcessState::Gone);
        assert_eq!(of("nonsense"), ProcessState::Unknown);
    }

    #[test]
    fn a_lab_that_does_not_run_is_named() {
        let anywhere = "no-such-lab-anywhere";
        for (lab, words) in [(anywhere, " is not running"), ("../up", "")] {
            let error = ControlLab::new(lab).members().expect_err(lab);
            let text = error.to_string();
            assert!(text.contains(&format!("`{lab}`{words}")), "{text}");
        }
    }
}

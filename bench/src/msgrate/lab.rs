//! The processes of a lab, as the measurement needs them.

use std::collections::BTreeMap;
use std::io::ErrorKind;

use phitwire_nodes::control::{Client, ClientError};
use phitwire_nodes::run_dir::{LabDir, RunDirError};
use serde_json::{Value, json};
use thiserror::Error;

/// What a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A router.
    Router,
    /// A network interface, with its processor's number.
    Nic {
        /// The processor.
        processor: u16,
    },
}

/// A process of the lab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its node's name.
    pub name: String,
    /// What it is.
    pub role: Role,
}

/// Why the lab did not answer.
#[derive(Debug, Error)]
pub enum LabError {
    /// The name cannot be a lab's, or its directory cannot be read.
    #[error(transparent)]
    Directory(#[from] RunDirError),
    /// No process of such a lab has a control socket.
    #[error("lab `{0}` is not running (start one with netns-scripts/up.sh TOPOLOGY --lab {0})")]
    NotRunning(String),
    /// A process did not answer, or refused.
    #[error("{node}: {source}")]
    Client {
        /// The node.
        node: String,
        /// What went wrong.
        source: ClientError,
    },
    /// A reply lacks something.
    #[error("{node}: the answer to `{request}` is malformed: {what}")]
    Malformed {
        /// The node.
        node: String,
        /// What was asked.
        request: &'static str,
        /// What is wrong with it.
        what: String,
    },
}

impl LabError {
    /// Whether nobody listens at a socket that is there: what a killed process leaves behind.
    fn is_of_dead_process(&self) -> bool {
        matches!(
            self,
            Self::Client { source: ClientError::Unreachable { source, .. }, .. }
                if source.kind() == ErrorKind::ConnectionRefused
        )
    }

    /// Whether a process that has taken its part before must have died since: nobody listens, it
    /// closed the connection, or it was started again and knows nothing of what it was told.
    pub fn tells_of_death(&self) -> bool {
        match self {
            Self::Client { source, .. } => match source {
                ClientError::Unreachable { .. } | ClientError::Refused(_) => true,
                ClientError::Io(error) => matches!(
                    error.kind(),
                    ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
                ),
                ClientError::Name(_) | ClientError::Malformed(_) | ClientError::Silent => false,
            },
            _ => false,
        }
    }
}

/// A lab to measure. The measurement talks to this, so that tests can put a lab of their own in.
pub trait Lab {
    /// All processes, by name.
    ///
    /// # Errors
    /// When the lab does not run or a process does not say what it is.
    fn members(&mut self) -> Result<Vec<Member>, LabError>;

    /// Asks a process and returns its answer's data.
    ///
    /// # Errors
    /// When it does not answer or refuses.
    fn ask(&mut self, node: &str, request: Value) -> Result<Value, LabError>;
}

/// A lab of processes with control sockets.
#[derive(Debug)]
pub struct ControlLab {
    name: String,
    clients: BTreeMap<String, Client>,
}

impl ControlLab {
    /// The lab called `name`, which need not run yet.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            clients: BTreeMap::new(),
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
        for name in nodes {
            match self.ask(&name, json!({ "cmd": "info" })) {
                Ok(info) => members.push(Member {
                    role: role(&name, &info)?,
                    name,
                }),
                // A network is measured around its failures too.
                Err(error) if error.is_of_dead_process() => {
                    phitwire_nodes::output::complain(&format!(
                        "{name} is left out: its process is dead, only its socket is there"
                    ));
                }
                Err(error) => return Err(error),
            }
        }
        if members.is_empty() {
            return Err(LabError::NotRunning(self.name.clone()));
        }
        Ok(members)
    }

    fn ask(&mut self, node: &str, request: Value) -> Result<Value, LabError> {
        let wrap = |source| LabError::Client {
            node: node.to_owned(),
            source,
        };
        // A connection kept from before may lead to a process that has since died and been started
        // again: that one is worth a second connection. A fresh connection that breaks is not.
        if let Some(client) = self.clients.get_mut(node) {
            match client.request(request.clone()) {
                Err(ClientError::Io(_)) => drop(self.clients.remove(node)),
                answered => return answered.map_err(wrap),
            }
        }
        let mut client = Client::connect(&self.name, node).map_err(wrap)?;
        let answer = client.request(request).map_err(wrap)?;
        self.clients.insert(node.to_owned(), client);
        Ok(answer)
    }
}

/// What `info` says a process is.
fn role(node: &str, info: &Value) -> Result<Role, LabError> {
    let malformed = |what: &str| LabError::Malformed {
        node: node.to_owned(),
        request: "info",
        what: what.to_owned(),
    };
    match info.get("kind").and_then(Value::as_str) {
        Some("router") => Ok(Role::Router),
        Some("nic") => {
            let processor = info.get("processor").and_then(Value::as_u64);
            processor
                .and_then(|processor| u16::try_from(processor).ok())
                .map(|processor| Role::Nic { processor })
                .ok_or_else(|| malformed("no processor number"))
        }
        _ => Err(malformed("neither router nor nic")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_say_what_they_are() {
        let of = |info| role("x", &info);
        assert_eq!(of(json!({"kind": "router"})).ok(), Some(Role::Router));
        let nic = json!({"kind": "nic", "processor": 7});
        assert_eq!(of(nic).ok(), Some(Role::Nic { processor: 7 }));
        for wrong in [
            json!({}),
            json!({"kind": "toaster"}),
            json!({"kind": "nic"}),
            json!({"kind": "nic", "processor": 70_000}),
        ] {
            assert!(of(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_lab_that_does_not_run_is_named() {
        let error = ControlLab::new("no-such-lab-anywhere")
            .members()
            .expect_err("is not there");
        assert!(
            error
                .to_string()
                .contains("`no-such-lab-anywhere` is not running"),
            "{error}"
        );
        let error = ControlLab::new("../up").members().expect_err("is no name");
        assert!(error.to_string().contains("`../up`"), "{error}");
    }
}

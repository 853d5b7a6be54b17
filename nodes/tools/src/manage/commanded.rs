//! Operator commands on a lab: isolated nodes, and NICs that replace others. A file in the lab's
//! directory keeps them, so that every reroute respects them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::PathBuf;

use phitwire::net::{Network, NodeRef};
use phitwire_nodes::run_dir::LabDir;
use serde::{Deserialize, Serialize};

/// The file in the lab's directory.
const FILE: &str = "manage.json";

/// The commands, by node name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Commanded {
    /// Names of isolated routers.
    pub isolated: BTreeSet<String>,
    /// Names of replaced NICs and of their replacements.
    pub replaced: BTreeMap<String, String>,
}

/// An operator command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Isolate(String),
    /// End the isolation of a router.
    Return(String),
    /// Give a NIC the number of another.
    Rename {
        /// The NIC to replace.
        from: String,
        /// The replacement.
        to: String,
    },
    /// Restore the original number of a NIC.
    RenameBack(String),
}

/// Why a command is rejected.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// There is no such node, or it is of another kind.
    #[error("`{0}` is not a {1} of this network")]
    NoNode(String, &'static str),
    /// The machine does not support the command.
    #[error("{0}")]
    Refused(String),
    /// The command would change nothing.
    #[error("{0}")]
    Already(String),
    #[error("{path}: {source}")]
    Io {
        /// Path of the file with the commands.
        path: PathBuf,
        source: io::Error,
    },
}

impl Commanded {
    /// The commands of a lab; empty if the file does not exist.
    pub fn read(lab: &LabDir) -> Self {
        let text = fs::read_to_string(lab.path().join(FILE)).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Writes the commands to their file.
    ///
    /// # Errors
    /// [`ChangeError::Io`]
    pub fn write(&self, lab: &LabDir) -> Result<(), ChangeError> {
        let path = lab.path().join(FILE);
        let half = lab.path().join(format!("{FILE}.new"));
        let text = serde_json::to_string_pretty(self).expect("names always serialise");
        // Replace the file atomically: a watcher may read it at any time.
        fs::write(&half, text + "\n")
            .and_then(|()| fs::rename(&half, &path))
            .map_err(|source| ChangeError::Io { path, source })
    }

    /// Adds a command.
    ///
    /// # Errors
    /// [`ChangeError`], without a change.
    pub fn change(&mut self, network: &dyn Network, change: &Change) -> Result<(), ChangeError> {
        let mut new = self.clone();
        let has_changed = match change {
            Change::Isolate(router) => {
                need(network, router, "router")?;
                new.isolated.insert(router.clone())
            }
            Change::Return(router) => {
                need(network, router, "router")?;
                new.isolated.remove(router)
            }
            Change::Rename { from, to } => {
                need(network, from, "NIC")?;
                need(network, to, "NIC")?;
                new.replaced.insert(from.clone(), to.clone()).as_ref() != Some(to)
            }
            Change::RenameBack(from) => {
                need(network, from, "NIC")?;
                new.replaced.remove(from).is_some()
            }
        };
        if !has_changed {
            return Err(ChangeError::Already(match change {
                Change::Isolate(router) => format!("{router} is already isolated"),
                Change::Return(router) => format!("{router} is not isolated"),
                Change::Rename { from, to } => format!("{to} already has the number of {from}"),
                Change::RenameBack(from) => format!("{from} is not replaced by another NIC"),
            }));
        }
        let planner = network.reroute();
        let judged = planner.map_or_else(
            || Err(String::from("networks of this machine are not rerouted")),
            |planner| planner.judge_change(&new.isolated(network), &new.replaced(network)),
        );
        judged.map_err(ChangeError::Refused)?;
        *self = new;
        Ok(())
    }

    /// Isolated routers, by number.
    pub fn isolated(&self, network: &dyn Network) -> BTreeSet<u32> {
        let number = |name: &String| match find(network, name) {
            Some(NodeRef::Chip(router)) => Some(router),
            _ => None,
        };
        self.isolated.iter().filter_map(number).collect()
    }

    /// Replaced NICs, by number, and their replacements.
    pub fn replaced(&self, network: &dyn Network) -> BTreeMap<u32, u32> {
        let number = |name: &String| match find(network, name) {
            Some(NodeRef::Processor(nic)) => Some(nic),
            _ => None,
        };
        let pair = |(from, to): (&String, &String)| Some((number(from)?, number(to)?));
        self.replaced.iter().filter_map(pair).collect()
    }
}

fn find(network: &dyn Network, name: &str) -> Option<NodeRef> {
    let mut nodes = network.nodes().into_iter();
    nodes.find(|&node| network.node_name(node) == name)
}

fn need(network: &dyn Network, name: &str, kind: &'static str) -> Result<(), ChangeError> {
    let is_right = match find(network, name) {
        Some(NodeRef::Chip(_)) => kind == "router",
        Some(NodeRef::Processor(_)) => kind == "NIC",
        None => false,
    };
    match is_right {
        true => Ok(()),
        false => Err(ChangeError::NoNode(name.to_owned(), kind)),
    }
}

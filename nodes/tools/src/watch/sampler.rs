//! Takes samples of a lab on demand.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use miette::miette;
use phitwire::net::{Network, NodeRef};
use phitwire_nodes::control::{ClientError, NodeKind, Request};
use phitwire_nodes::nearest::nearest;
use phitwire_nodes::run_dir::{LabDir, labs};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::sample::{NodeSample, Sample};
use crate::description;
use crate::manage::fleet::Fleet;

/// Connections to all nodes of a lab. Restarted nodes are reconnected. A sample waits once for all
/// stalled nodes together, and later samples do not wait for them until they have replied.
pub struct Sampler {
    lab: LabDir,
    network: Box<dyn Network>,
    nodes: Vec<(NodeRef, String)>,
    fleet: Fleet,
    /// An instant, and its time in milliseconds since 1970. The wall clock may be adjusted later,
    /// but rates need elapsed time.
    begun: (Instant, u64),
    /// Whether to request pipeline stages.
    pipelines: bool,
    /// For each request, the nodes whose machine does not support it.
    deaf: [Vec<NodeRef>; QUESTIONS.len()],
}

/// Requests that only some nodes support, and the kind of those nodes.
const QUESTIONS: [(Request, NodeKind, Field); 4] = [
    (Request::Routing, NodeKind::Router, |node, answer| {
        node.routing = read(answer);
    }),
    (Request::Pipeline, NodeKind::Router, |node, answer| {
        node.pipeline = read(answer);
    }),
    (Request::Pipeline, NodeKind::Nic, |node, answer| {
        node.pipeline = read(answer);
    }),
    (
        Request::TrafficStatus { run: None },
        NodeKind::Nic,
        |node, answer| node.traffic = read(answer),
    ),
];

/// Stores a reply in its field of the sample.
type Field = fn(&mut NodeSample, Value);

impl Sampler {
    /// Opens a sampler of the lab of this name, which must be running.
    ///
    /// # Errors
    /// If the lab does not exist, or its description cannot be read.
    pub fn open(lab: &str) -> miette::Result<Self> {
        Self::of(LabDir::new(lab).map_err(|error| miette!("{error}"))?)
    }

    /// A sampler of the lab in this directory, which contains its description.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn of(lab: LabDir) -> miette::Result<Self> {
        let description = lab.path().join("topology.toml");
        if !description.exists() {
            if let Some(other) = nearest(lab.lab(), &labs()).filter(|other| *other != lab.lab()) {
                return Err(miette!(
                    "lab `{}` is not running; did you mean `{other}`?",
                    lab.lab()
                ));
            }
            return Err(miette!(
                help = "bring one up with netns-scripts/up.sh TOPOLOGY --lab NAME",
                "lab `{}` is not running: {} does not exist",
                lab.lab(),
                description.display()
            ));
        }
        let network = description::open(&description)?;
        let fleet = Fleet::new(lab.clone(), &*network).map_err(|error| miette!("{error}"))?;
        let name = |node| (node, network.node_name(node).into_owned());
        Ok(Self {
            nodes: network.nodes().into_iter().map(name).collect(),
            lab,
            network,
            fleet,
            begun: (Instant::now(), wall_ms()),
            pipelines: false,
            deaf: Default::default(),
        })
    }

    pub fn lab(&self) -> &str {
        self.lab.lab()
    }

    pub fn network(&self) -> &dyn Network {
        &*self.network
    }

    /// Whether the lab is still the one that was opened.
    pub fn is_there(&self) -> bool {
        self.fleet.is_there()
    }

    /// Sets whether samples include pipeline stages. Off by default, because these replies are the
    /// longest.
    pub fn ask_for_pipelines(&mut self, pipelines: bool) {
        self.pipelines = pipelines;
    }

    /// Sends a request to a node by name, such as for a fault.
    ///
    /// # Errors
    /// If the node does not exist, does not reply in time, or refuses.
    pub fn ask(&mut self, node: &str, request: &Request) -> miette::Result<Value> {
        let found = self.nodes.iter().find(|(_, name)| name == node);
        let (node, name) = found.ok_or_else(|| {
            let lab = self.lab.lab();
            miette!("lab `{lab}` has no node `{node}`")
        })?;
        let mut answers = self.fleet.ask_nodes(&[*node], request);
        let answer = answers.pop().unwrap_or(Err(ClientError::Silent));
        answer.map_err(|error| miette!("{name}: {error}"))
    }

    /// Polls all nodes. Takes as long as the slowest of them, and at most
    /// [`PATIENCE`](crate::manage::fleet::PATIENCE) for all stalled ones together.
    pub fn sample(&mut self) -> Sample {
        let begin = Instant::now();
        let at_ms = self.begun.1 + self.begun.0.elapsed().as_millis() as u64;
        let all: Vec<NodeRef> = self.nodes.iter().map(|&(node, _)| node).collect();
        let stats = self.fleet.ask_nodes(&all, &Request::Stats);
        let links = self.fleet.ask_nodes(&all, &Request::Links);
        let mut nodes = Vec::with_capacity(all.len());
        for (((node, name), stats), links) in self.nodes.iter().zip(stats).zip(links) {
            let mut sample = NodeSample::unknown(name.clone(), kind(*node));
            match take(stats).and_then(|stats| Ok((stats, take(links)?))) {
                Ok((counters, links)) => {
                    (sample.counters, sample.links) = (counters, links);
                    sample.pid = self.fleet.process(*node);
                }
                Err(error) => sample.silent = Some(error.to_string()),
            }
            nodes.push(sample);
        }
        for (question, deaf) in QUESTIONS.iter().zip(&mut self.deaf) {
            if question.0 == Request::Pipeline && !self.pipelines {
                continue;
            }
            let asked: Vec<usize> = (0..nodes.len())
                .filter(|&at| nodes[at].silent.is_none() && nodes[at].kind == question.1)
                .filter(|&at| !deaf.contains(&all[at]))
                .collect();
            let refs: Vec<NodeRef> = asked.iter().map(|&at| all[at]).collect();
            let answers = self.fleet.ask_nodes(&refs, &question.0);
            for (at, answer) in asked.into_iter().zip(answers) {
                match answer {
                    Ok(answer) => question.2(&mut nodes[at], answer),
                    // A router without such tables never gets any; a NIC may run traffic at any
                    // time.
                    Err(ClientError::Refused(_)) if question.1 == NodeKind::Router => {
                        deaf.push(all[at]);
                    }
                    Err(_) => {}
                }
            }
        }
        let took_ms = begin.elapsed().as_millis() as u64;
        Sample {
            at_ms,
            took_ms,
            nodes,
        }
    }
}

/// Milliseconds since 1970, UTC.
fn wall_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

fn kind(node: NodeRef) -> NodeKind {
    match node {
        NodeRef::Chip(_) => NodeKind::Router,
        NodeRef::Processor(_) => NodeKind::Nic,
    }
}

fn take<T: DeserializeOwned>(answer: Result<Value, ClientError>) -> Result<T, ClientError> {
    Ok(serde_json::from_value(answer?)?)
}

/// Parses a reply; `None` if it has an unknown format.
fn read<T: DeserializeOwned>(answer: Value) -> Option<T> {
    serde_json::from_value(answer).ok()
}

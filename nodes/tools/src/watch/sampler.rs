//! Takes samples of a lab, as often as wanted.

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

/// Connections to all nodes of a lab. Nodes that were started again are connected to again; one
/// that stands still is waited for once, together with all others, and not again before it has
/// answered.
pub struct Sampler {
    lab: LabDir,
    network: Box<dyn Network>,
    nodes: Vec<(NodeRef, String)>,
    fleet: Fleet,
    /// A moment, and when it was in milliseconds since 1970: the clock of the machine may be set meanwhile,
    /// and rates are over time that has passed.
    begun: (Instant, u64),
    /// Whether nodes are asked for their stages.
    pipelines: bool,
    /// Nodes that have refused a question which their machine does not know, by question.
    deaf: [Vec<NodeRef>; QUESTIONS.len()],
}

/// What only some nodes answer, and who is asked.
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

/// Puts an answer where it belongs.
type Field = fn(&mut NodeSample, Value);

impl Sampler {
    /// A sampler of the lab of that name, which must be there.
    ///
    /// # Errors
    /// When there is no such lab, or its description cannot be read.
    pub fn open(lab: &str) -> miette::Result<Self> {
        Self::of(LabDir::new(lab).map_err(|error| miette!("{error}"))?)
    }

    /// A sampler of the lab in that directory, which has its description in it.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn of(lab: LabDir) -> miette::Result<Self> {
        let description = lab.path().join("topology.toml");
        if !description.exists() {
            if let Some(other) = nearest(lab.lab(), &labs()).filter(|other| *other != lab.lab()) {
                return Err(miette!(
                    "lab `{}` is not running: did you mean `{other}`?",
                    lab.lab()
                ));
            }
            return Err(miette!(
                help = "netns-scripts/up.sh TOPOLOGY --lab NAME brings one up",
                "lab `{}` is not running: {} is not there",
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

    /// The lab's name.
    pub fn lab(&self) -> &str {
        self.lab.lab()
    }

    /// The network that the lab runs.
    pub fn network(&self) -> &dyn Network {
        &*self.network
    }

    /// Whether the lab is still the one that was opened.
    pub fn is_there(&self) -> bool {
        self.fleet.is_there()
    }

    /// From now on nodes are asked for what is in their stages, too, or are not. At first they are not:
    /// of all that can be asked for it is the longest.
    pub fn ask_for_pipelines(&mut self, pipelines: bool) {
        self.pipelines = pipelines;
    }

    /// Asks a node by name, such as for a fault.
    ///
    /// # Errors
    /// When there is no such node, it does not answer in time, or it refuses.
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

    /// Asks all nodes how they stand. It takes as long as the slowest of them, and at most
    /// [`PATIENCE`](crate::manage::fleet::PATIENCE) for those that stand still, once.
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
                    // A router without such tables never has any; a network interface may run
                    // traffic at any time.
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

/// An answer of another age is none.
fn read<T: DeserializeOwned>(answer: Value) -> Option<T> {
    serde_json::from_value(answer).ok()
}

//! The nodes of a lab, as their control sockets answer.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use phitwire::net::{Network, NodeRef};
use phitwire_client::patience::Patience;
use phitwire_nodes::control::{Client, ClientError, Request};
use phitwire_nodes::run_dir::{LabDir, RunDirError, ThisLab};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// How long a node may take to answer who watches the lab. It answers between two turns of its event
/// loop; a process that a busy machine lets wait longer than this is as good as dead for the network
/// too. With the interval of a watcher, a router that stands still is noticed within a second.
pub const PATIENCE: Duration = Duration::from_millis(750);

/// How long it may take to answer a command that asks once: nobody looks again after it, and a router
/// that was only busy would be taken for dead.
pub const PATIENCE_ONCE: Duration = phitwire_nodes::control::TIMEOUT;

/// What can ask routers something.
pub trait Routers {
    /// Asks router `router`, by its number over the machine.
    ///
    /// # Errors
    /// When it does not answer, or refuses.
    fn ask(&mut self, router: u32, request: &Request) -> Result<Value, ClientError>;

    /// Asks network interface `nic`, by its number over the machine.
    ///
    /// # Errors
    /// When it does not answer, or refuses.
    fn ask_nic(&mut self, nic: u32, request: &Request) -> Result<Value, ClientError>;

    /// Asks many routers the same, in the order given. Those that do not answer are waited for
    /// together.
    fn ask_all(&mut self, routers: &[u32], request: &Request) -> Vec<Result<Value, ClientError>> {
        routers
            .iter()
            .map(|&router| self.ask(router, request))
            .collect()
    }
}

/// Asks, and reads the answer.
///
/// # Errors
/// When it does not answer, refuses, or answers something else.
pub fn ask<T: DeserializeOwned>(
    routers: &mut impl Routers,
    router: u32,
    request: &Request,
) -> Result<T, ClientError> {
    Ok(serde_json::from_value(routers.ask(router, request)?)?)
}

/// Asks many, and reads the answers.
pub fn ask_all<T: DeserializeOwned>(
    routers: &mut impl Routers,
    of: &[u32],
    request: &Request,
) -> Vec<Result<T, ClientError>> {
    let answers = routers.ask_all(of, request).into_iter();
    answers
        .map(|answer| Ok(serde_json::from_value(answer?)?))
        .collect()
}

/// The routers of a lab. Connections are kept, and made anew after any trouble.
///
/// A router that has not answered in time keeps its connection and owes the answer. Until that has
/// come it is not waited for again, and not asked: a process that stands still takes nobody in, and
/// with connection after connection its queue would be full, where a connection is waited for
/// without end.
#[derive(Debug)]
pub struct Fleet {
    lab: LabDir,
    this: ThisLab,
    names: BTreeMap<NodeRef, String>,
    lines: BTreeMap<NodeRef, Line>,
    patience: Duration,
}

/// A connection to a node.
#[derive(Debug)]
struct Line {
    client: Client,
    /// It has been asked, and has not answered.
    owes: bool,
}

impl Fleet {
    /// The routers of `network` that run as `lab` now. Those of a later lab of its name are not
    /// asked.
    ///
    /// # Errors
    /// When there is no such lab.
    pub fn new(lab: LabDir, network: &dyn Network) -> Result<Self, RunDirError> {
        let name = |node| (node, network.node_name(node).into_owned());
        Ok(Self {
            this: lab.this()?,
            lab,
            names: network.nodes().into_iter().map(name).collect(),
            lines: BTreeMap::new(),
            patience: PATIENCE,
        })
    }

    /// The same routers, each of which may take so long to answer instead of [`PATIENCE`].
    #[must_use]
    pub fn patient(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    fn connect(&self, node: NodeRef) -> Result<Line, ClientError> {
        let name = self.names.get(&node).map_or("?", String::as_str);
        let unreachable = |source| ClientError::Unreachable {
            lab: self.lab.lab().to_owned(),
            node: name.to_owned(),
            source,
            hint: String::new(),
        };
        let path = self.lab.socket(name)?;
        let client = Client::connect_within(&path, self.patience).map_err(unreachable)?;
        // Asked afterwards: a node met under its name until now was met in it.
        if !self.this.is_there() {
            return Err(unreachable(io::ErrorKind::NotFound.into()));
        }
        Ok(Line {
            client,
            owes: false,
        })
    }

    /// Whether the lab is still the one whose nodes these are.
    pub fn is_there(&self) -> bool {
        self.this.is_there()
    }

    /// The process of a node that is connected to, if the kernel tells.
    pub fn process(&self, node: NodeRef) -> Option<u32> {
        self.lines.get(&node)?.client.process()
    }

    /// Asks many nodes the same, in the order given. Those that do not answer are waited for
    /// together.
    pub fn ask_nodes(
        &mut self,
        nodes: &[NodeRef],
        request: &Request,
    ) -> Vec<Result<Value, ClientError>> {
        let begun: Vec<_> = nodes
            .iter()
            .map(|&node| self.begin(node, request))
            .collect();
        let mut patience = Patience::new(self.patience);
        let finish = |(&node, begun): (&NodeRef, Result<(), ClientError>)| {
            begun.and_then(|()| self.finish(node, &mut patience))
        };
        nodes.iter().zip(begun).map(finish).collect()
    }

    /// Sends a request to a node that owes nothing.
    fn begin(&mut self, node: NodeRef, request: &Request) -> Result<(), ClientError> {
        let kept = self.lines.remove(&node);
        let is_kept = kept.is_some();
        let mut line = match kept {
            Some(line) => line,
            None => self.connect(node)?,
        };
        if line.owes {
            // Only what is there already: it was waited for when it was asked.
            match line.client.answer_within(Duration::ZERO) {
                Err(ClientError::Silent) => {
                    self.lines.insert(node, line);
                    return Err(ClientError::Silent);
                }
                Ok(_) | Err(ClientError::Refused(_)) => {}
                Err(error) => return Err(error),
            }
        }
        if let Err(error) = line.client.send(request) {
            if !is_kept || !is_closed(&error) {
                return Err(error);
            }
            // Started anew since, or it has left who was quiet when others wanted to be heard.
            line = self.connect(node)?;
            line.client.send(request)?;
        }
        line.owes = true;
        self.lines.insert(node, line);
        Ok(())
    }

    /// Waits for the answer to the command that was begun.
    fn finish(&mut self, node: NodeRef, patience: &mut Patience) -> Result<Value, ClientError> {
        let Some(mut line) = self.lines.remove(&node) else {
            return Err(ClientError::Silent);
        };
        let answer = line.client.answer(patience);
        line.owes = matches!(answer, Err(ClientError::Silent));
        if matches!(
            answer,
            Ok(_) | Err(ClientError::Refused(_) | ClientError::Silent)
        ) {
            self.lines.insert(node, line);
        }
        answer
    }
}

/// Whether the other end has closed the connection.
fn is_closed(error: &ClientError) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset};
    matches!(error, ClientError::Io(error) if matches!(error.kind(), BrokenPipe | ConnectionReset))
}

impl Routers for Fleet {
    fn ask(&mut self, router: u32, request: &Request) -> Result<Value, ClientError> {
        let node = NodeRef::Chip(router);
        self.begin(node, request)?;
        self.finish(node, &mut Patience::new(self.patience))
    }

    fn ask_nic(&mut self, nic: u32, request: &Request) -> Result<Value, ClientError> {
        let node = NodeRef::Processor(nic);
        self.begin(node, request)?;
        self.finish(node, &mut Patience::new(self.patience))
    }

    fn ask_all(&mut self, routers: &[u32], request: &Request) -> Vec<Result<Value, ClientError>> {
        let nodes: Vec<_> = routers.iter().copied().map(NodeRef::Chip).collect();
        self.ask_nodes(&nodes, request)
    }
}

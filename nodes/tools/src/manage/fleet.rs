//! The nodes of a lab, queried through their control sockets.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use phitwire::net::{Network, NodeRef};
use phitwire_client::patience::Patience;
use phitwire_nodes::control::{Client, ClientError, Request};
use phitwire_nodes::run_dir::{LabDir, RunDirError, ThisLab};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Timeout of a node's reply to a watcher. Nodes reply between two turns of the event loop. A
/// process that a busy host delays longer is also useless to the network. Together with a watcher's
/// interval, a stalled router is noticed within a second.
pub const PATIENCE: Duration = Duration::from_millis(750);

/// Timeout of a node's reply to a one-shot command, which does not poll again. With a shorter one,
/// a busy router would count as dead.
pub const PATIENCE_ONCE: Duration = phitwire_nodes::control::TIMEOUT;

/// Access to the routers and NICs of a lab by requests.
pub trait Routers {
    /// Sends a request to router `router`, by its number in the machine.
    ///
    /// # Errors
    /// If the router does not reply, or refuses.
    fn ask(&mut self, router: u32, request: &Request) -> Result<Value, ClientError>;

    /// Sends a request to NIC `nic`, by its number in the machine.
    ///
    /// # Errors
    /// If the NIC does not reply, or refuses.
    fn ask_nic(&mut self, nic: u32, request: &Request) -> Result<Value, ClientError>;

    /// Sends one request to each router in this order, then collects the replies; all share one
    /// timeout.
    fn ask_all(&mut self, routers: &[u32], request: &Request) -> Vec<Result<Value, ClientError>> {
        routers
            .iter()
            .map(|&router| self.ask(router, request))
            .collect()
    }
}

/// Sends a request and parses the reply.
///
/// # Errors
/// If the router does not reply, refuses, or sends an unexpected reply.
pub fn ask<T: DeserializeOwned>(
    routers: &mut impl Routers,
    router: u32,
    request: &Request,
) -> Result<T, ClientError> {
    Ok(serde_json::from_value(routers.ask(router, request)?)?)
}

/// Sends one request to many routers and parses the replies.
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

/// The nodes of a lab. Connections are kept, and reopened after an error.
///
/// A node that does not reply in time keeps its connection and owes the reply. Until that arrives,
/// it gets no further request and is not waited for. Reconnecting would not help: a stalled process
/// accepts no connections, so repeated attempts would fill its queue, after which a connect blocks
/// without limit.
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
    /// Whether a request is unanswered.
    owes: bool,
}

impl Fleet {
    /// The nodes of `network` that run as `lab` now. Those of a later lab of the same name get no
    /// requests.
    ///
    /// # Errors
    /// If the lab does not exist.
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

    /// Sets the timeout, instead of [`PATIENCE`].
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
        // Check after connecting: if the lab still has its name now, the node belongs to it.
        if !self.this.is_there() {
            return Err(unreachable(io::ErrorKind::NotFound.into()));
        }
        Ok(Line {
            client,
            owes: false,
        })
    }

    /// Whether the lab is still the one that was opened.
    pub fn is_there(&self) -> bool {
        self.this.is_there()
    }

    /// Process id of a connected node, if the kernel reports it.
    pub fn process(&self, node: NodeRef) -> Option<u32> {
        self.lines.get(&node)?.client.process()
    }

    /// Sends one request to many nodes in this order. All silent ones share one timeout.
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

    /// Sends a request to a node that does not owe a reply.
    fn begin(&mut self, node: NodeRef, request: &Request) -> Result<(), ClientError> {
        let kept = self.lines.remove(&node);
        let is_kept = kept.is_some();
        let mut line = match kept {
            Some(line) => line,
            None => self.connect(node)?,
        };
        if line.owes {
            // Take only a reply that has already arrived: the request has had its timeout.
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
            // Reconnect: the node was restarted, or closed an idle connection for lack of room.
            line = self.connect(node)?;
            line.client.send(request)?;
        }
        line.owes = true;
        self.lines.insert(node, line);
        Ok(())
    }

    /// Waits for the reply to a sent request.
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

/// Whether the error means that the peer has closed the connection.
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

//! The routers of a lab, as their control sockets answer.

use std::collections::BTreeMap;
use std::time::Duration;

use phitwire::topology::NodeRef;
use phitwire::topology::dragonfly::Dragonfly;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::control::{Client, ClientError, Request};
use crate::run_dir::LabDir;

/// How long a router may take to answer. It answers between two turns of its event loop; a process that a busy
/// machine lets wait longer than this is as good as dead for the network too.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whoever can ask routers something.
pub trait Routers {
    /// Asks router `router`, by its number over the machine.
    ///
    /// # Errors
    /// When it does not answer, or refuses.
    fn ask(&mut self, router: u32, request: &Request) -> Result<Value, ClientError>;
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

/// The routers of a lab. Connections are kept, and made anew after any trouble.
#[derive(Debug)]
pub struct Fleet {
    lab: LabDir,
    names: BTreeMap<u32, String>,
    clients: BTreeMap<u32, Client>,
}

impl Fleet {
    /// The routers of `network` that run as `lab`.
    pub fn new(lab: LabDir, network: &Dragonfly) -> Self {
        let name = |router| (router, network.node_name(NodeRef::Chip(router)));
        Self {
            lab,
            names: network.routers().map(name).collect(),
            clients: BTreeMap::new(),
        }
    }

    fn connect(&self, router: u32) -> Result<Client, ClientError> {
        let name = self.names.get(&router).map_or("?", String::as_str);
        let unreachable = |source| ClientError::Unreachable {
            lab: self.lab.lab().to_owned(),
            node: name.to_owned(),
            source,
            hint: String::new(),
        };
        let mut client = Client::connect_to(&self.lab.socket(name)?).map_err(unreachable)?;
        client.set_timeout(PATIENCE)?;
        Ok(client)
    }
}

impl Routers for Fleet {
    fn ask(&mut self, router: u32, request: &Request) -> Result<Value, ClientError> {
        let mut client = match self.clients.remove(&router) {
            Some(client) => client,
            None => self.connect(router)?,
        };
        let answer = client.ask(request);
        // After a time-out the answer may still come, and would be taken for that to the next question.
        if matches!(answer, Ok(_) | Err(ClientError::Refused(_))) {
            self.clients.insert(router, client);
        }
        answer
    }
}

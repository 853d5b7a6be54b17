//! `--via`: access to routers' registers without their control sockets.

use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use miette::miette;
use phitwire::net::{Network, NodeRef};
use phitwire_nodes::control::{Client, Register, Request};
use serde_json::Value;

use crate::manage::channels::{Registers, value_in};

/// The only value of `--via`.
const MAINTENANCE: &str = "maintenance";
/// Timeout of a maintenance packet.
const LIMIT: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(1);
/// Number of tries for a lost packet, where many registers are read.
const TRIES: usize = 3;

/// An alternative path to registers.
#[derive(Args, Clone, Debug)]
pub struct ViaArgs {
    /// Read and write registers by maintenance packets sent by the router FROM, which get past
    /// congested traffic: `--via maintenance r0`
    #[arg(long, num_args = 2, value_names = ["WAY", "FROM"])]
    via: Option<Vec<String>>,
}

impl ViaArgs {
    /// The router that sends maintenance packets, if `--via` is given.
    ///
    /// # Errors
    /// If `--via` has an unknown value.
    pub fn router(&self) -> miette::Result<Option<&str>> {
        match self.via.as_deref() {
            None => Ok(None),
            Some([way, from]) if way == MAINTENANCE => Ok(Some(from)),
            Some(words) => Err(miette!(
                help =
                    "expected `--via maintenance ROUTER`, with the router that sends the packets",
                "unknown `--via {}`: registers are accessed through control sockets, or with \
                 `{MAINTENANCE}`",
                words.join(" ")
            )),
        }
    }
}

/// A router that reaches others by maintenance packets.
pub struct Maintenance<'n> {
    lab: String,
    network: &'n dyn Network,
    from: NodeRef,
    name: String,
    client: Client,
}

impl<'n> Maintenance<'n> {
    /// The router of this name in a lab that runs `network`.
    ///
    /// # Errors
    /// If the router does not exist, or the machine has no such packets.
    pub fn new(lab: &str, network: &'n dyn Network, name: &str) -> miette::Result<Self> {
        if network.side_networks().is_none() {
            return Err(miette!(
                "lab `{lab}` runs a machine without maintenance packets"
            ));
        }
        Ok(Self {
            lab: lab.to_owned(),
            network,
            from: node(lab, network, name)?,
            name: name.to_owned(),
            client: Client::connect(lab, name).map_err(|error| miette!("{error}"))?,
        })
    }

    /// Reads or writes a register of the router `to`.
    ///
    /// # Errors
    /// If the router does not exist, has no path, does not reply, or refuses.
    pub fn ask(
        &mut self,
        to: &str,
        register: Register,
        value: Option<u64>,
    ) -> miette::Result<Value> {
        let node = node(&self.lab, self.network, to)?;
        self.ask_node(node, register, value)
    }

    fn ask_node(
        &mut self,
        node: NodeRef,
        register: Register,
        value: Option<u64>,
    ) -> miette::Result<Value> {
        let to = self.network.node_name(node).into_owned();
        let name = &self.name;
        let side = self.network.side_networks();
        let way = side.and_then(|side| side.way(self.from, node, &|_| true));
        let way = way.ok_or_else(|| miette!("no path from router {name} to router {to}"))?;
        let mut ask = |request| {
            let answer = self.client.ask(&request);
            answer.map_err(|error| miette!("{name}: {error}"))
        };
        let asked = ask(Request::RemoteAsk {
            way,
            register,
            value,
        })?;
        let question = asked["question"].as_u64();
        let question = question.and_then(|number| u32::try_from(number).ok());
        let question = question.ok_or_else(|| miette!("{name}: malformed answer"))?;
        let begin = Instant::now();
        while begin.elapsed() < LIMIT {
            let answer = ask(Request::RemoteAnswer { question })?;
            if answer["pending"] != true {
                return Ok(answer);
            }
            thread::sleep(LOOK);
        }
        Err(miette!(
            help = "maintenance packets are lost where a link is down, or where two of them meet: \
                    try again, or use another router",
            "{to}: no answer to the maintenance packet of {name} within {LIMIT:?}"
        ))
    }
}

impl Registers for Maintenance<'_> {
    fn ask(&mut self, router: u32, register: &str, value: Option<u64>) -> Result<u64, String> {
        let mut why = String::new();
        for _ in 0..TRIES {
            let register = Register::Name(register.to_owned());
            match self.ask_node(NodeRef::Chip(router), register, value) {
                Ok(answer) => return value_in(&answer),
                Err(report) => why = report.to_string(),
            }
        }
        Err(why)
    }
}

fn node(lab: &str, network: &dyn Network, name: &str) -> miette::Result<NodeRef> {
    let mut nodes = network.nodes().into_iter();
    nodes
        .find(|&node| network.node_name(node) == name)
        .ok_or_else(|| miette!("lab `{lab}` has no node `{name}`"))
}

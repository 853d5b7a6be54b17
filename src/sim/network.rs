//! A whole network in virtual time: a topology's nodes and links in a fabric, traffic, and checks.

use thiserror::Error;

use super::check::{Allowance, EndAccount, Violation, check_direction, check_messages};
use super::fabric::{ConnectError, Direction, Fabric, LinkId, LinkSpec, NodeId};
use super::machine::Machine;
use crate::link::Lcb;
use crate::nic::{BlackwidowNic, Phase, SpecError, TrafficReport, TrafficSpec};
use crate::router::yarc::Yarc;
use crate::time::Duration;
use crate::topology::{End, NodePlan, NodeRef, PlanError, Runtime, Topology};

/// Why a topology did not become a network.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NetworkError {
    /// A node cannot be configured.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A link cannot be made.
    #[error("link {link}: {error}")]
    Connect {
        /// Id of the link in the topology.
        link: usize,
        /// Why.
        error: ConnectError,
    },
}

/// A network in virtual time. Link number *i* of the fabric is link *i* of the topology, its end A
/// named first; processors come before chips among the nodes.
pub struct Network {
    /// The event loop, for everything not offered here.
    pub fabric: Fabric<Machine>,
    topology: Topology,
    runtime: Runtime,
    /// The epoch of each node's present incarnation.
    epochs: Vec<u32>,
}

/// Epochs between two incarnations of a node.
const EPOCH_STRIDE: u32 = 1 << 16;
/// Time between two looks at whether something has come to its end.
const LOOK_EVERY: Duration = Duration::from_us(10);

impl Network {
    /// The network of `topology`, all of whose links begin to train. `seed` decides all chance; every
    /// link is as `spec` says.
    ///
    /// # Errors
    /// See [`NetworkError`]; a topology that passes its own check has none.
    pub fn new(topology: Topology, seed: u64, spec: LinkSpec) -> Result<Self, NetworkError> {
        Self::numbered(topology, seed, spec, 0)
    }

    /// The same, with sessions of links whose first packet is number `first_packet`.
    ///
    /// # Errors
    /// See [`NetworkError`]; `first_packet` must be less than 2^48.
    pub fn numbered(
        topology: Topology,
        seed: u64,
        spec: LinkSpec,
        first_packet: u64,
    ) -> Result<Self, NetworkError> {
        let mut runtime = Runtime::new(&topology.name, 1);
        runtime.seed = seed;
        runtime.first_packet = first_packet;
        let nodes = topology.processors.len() + topology.chips.len();
        let mut network = Self {
            fabric: Fabric::new(seed),
            topology,
            runtime,
            epochs: vec![1; nodes],
        };
        for node in 0..nodes as u32 {
            let machine = network.incarnation(NodeId(node))?;
            network.fabric.add(machine);
        }
        for index in 0..network.topology.links.len() {
            let link = &network.topology.links[index];
            let ends = [link.a, link.b].map(|end| (network.id(end.node), end.port));
            network
                .fabric
                .connect(ends[0], ends[1], spec)
                .map_err(|error| NetworkError::Connect { link: index, error })?;
        }
        Ok(network)
    }

    /// What the network was made from.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The fabric's number of a node of the topology.
    pub fn id(&self, node: NodeRef) -> NodeId {
        NodeId(match node {
            NodeRef::Processor(index) => index,
            NodeRef::Chip(index) => self.topology.processors.len() as u32 + index,
        })
    }

    /// The node of a name.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.topology.find(name).map(|node| self.id(node))
    }

    /// The link at a port of a node.
    pub fn link_at(&self, node: NodeRef, port: u8) -> Option<LinkId> {
        let end = End { node, port };
        let links = &self.topology.links;
        links
            .iter()
            .position(|link| link.a == end || link.b == end)
            .map(|i| LinkId(i as u32))
    }

    /// Processors' nodes, in the order of the topology.
    pub fn processors(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.topology.processors.len() as u32).map(NodeId)
    }

    /// Routers' nodes, in the order of the topology.
    pub fn routers(&self) -> impl Iterator<Item = NodeId> + use<> {
        let first = self.topology.processors.len() as u32;
        (first..first + self.topology.chips.len() as u32).map(NodeId)
    }

    /// The network interface of a processor's node.
    ///
    /// # Panics
    /// If the node is something else.
    pub fn nic(&self, node: NodeId) -> &BlackwidowNic {
        self.fabric
            .node(node)
            .nic()
            .expect("the node is a network interface")
    }

    /// Commands a network interface.
    ///
    /// # Panics
    /// If the node is something else.
    pub fn with_nic<R>(&mut self, node: NodeId, act: impl FnOnce(&mut BlackwidowNic) -> R) -> R {
        self.fabric.command(node, |machine, _| {
            act(machine.nic_mut().expect("the node is a network interface"))
        })
    }

    /// The router of a chip's node.
    ///
    /// # Panics
    /// If the node is something else.
    pub fn router(&self, node: NodeId) -> &Yarc {
        self.fabric
            .node(node)
            .router()
            .expect("the node is a router")
    }

    /// Runs until both ends of every link that is not cut are active in the same session, or `limit`
    /// has passed; says which.
    pub fn bring_up(&mut self, limit: Duration) -> bool {
        self.fabric.run_until_done(limit, LOOK_EVERY, |fabric| {
            (0..fabric.links() as u32).map(LinkId).all(|link| {
                if fabric.wire(link, Direction::AToB).is_cut() {
                    return true;
                }
                let lcb = |(node, port): (NodeId, u8)| fabric.node(node).lcb(port);
                match fabric.ends(link).map(lcb) {
                    [Some(a), Some(b)] => {
                        let (own, peer) = b.epochs();
                        a.is_active() && b.is_active() && a.epochs() == (peer, own)
                    }
                    ends => ends.into_iter().flatten().all(Lcb::is_active),
                }
            })
        })
    }

    /// Starts `spec` on every processor that takes part in it by sending.
    ///
    /// # Errors
    /// See [`SpecError`].
    pub fn start_traffic(&mut self, spec: &TrafficSpec) -> Result<(), SpecError> {
        for node in self.processors() {
            if spec.processors.contains(&self.nic(node).processor()) {
                self.fabric
                    .command(node, |machine, now| match machine.nic_mut() {
                        Some(nic) => nic.start_traffic(now, spec.clone()),
                        None => Ok(()),
                    })?;
            }
        }
        Ok(())
    }

    /// Every processor's number: the participants of a run that all take part in.
    pub fn processor_numbers(&self) -> Vec<u16> {
        self.topology
            .processors
            .iter()
            .map(|processor| processor.number)
            .collect()
    }

    /// Runs until `run` is over at all its sources, or `limit` has passed; says which.
    pub fn finish_traffic(&mut self, run: u64, limit: Duration) -> bool {
        let processors: Vec<NodeId> = self.processors().collect();
        self.fabric.run_until_done(limit, LOOK_EVERY, |fabric| {
            processors.iter().all(|node| {
                let report = fabric
                    .node(*node)
                    .nic()
                    .and_then(|nic| nic.traffic_report(Some(run)));
                report.is_none_or(|report| report.phase == Phase::Done)
            })
        })
    }

    /// The merged report of a run over all processors.
    pub fn report(&self, run: u64) -> TrafficReport {
        let mut merged = TrafficReport {
            run,
            ..TrafficReport::default()
        };
        for node in self.processors() {
            if let Some(report) = self.nic(node).traffic_report(Some(run)) {
                merged.merge(&report);
            }
        }
        merged
    }

    /// Lanes that link ends have given up for noise.
    pub fn lanes_given_up(&self) -> u64 {
        let links = (0..self.fabric.links() as u32).map(LinkId);
        let lcbs = links.flat_map(|link| self.fabric.ends(link));
        lcbs.filter_map(|(node, port)| self.fabric.node(node).lcb(port))
            .map(|lcb| lcb.counters().rx_lanes_decommissioned)
            .sum()
    }

    /// A line per link end: its node, its state, every counter that is not zero.
    pub fn link_states(&self) -> String {
        let mut text = String::new();
        for link in (0..self.fabric.links() as u32).map(LinkId) {
            for (node, port) in self.fabric.ends(link) {
                let Some(lcb) = self.fabric.node(node).lcb(port) else {
                    continue;
                };
                let (link, node, state) = (link.0, node.0, lcb.state());
                text.push_str(&format!("link {link} node {node} port {port}: {state:?}"));
                lcb.counters().for_each(|name, value| {
                    if value != 0 {
                        text.push_str(&format!(" {name}={value}"));
                    }
                });
                text.push('\n');
            }
        }
        text
    }

    /// Kills a node and starts it again: all that was inside it is gone.
    ///
    /// # Errors
    /// None that building the network did not have.
    pub fn restart(&mut self, node: NodeId) -> Result<(), PlanError> {
        // A link end counts its epoch up by itself when it comes up again.
        self.epochs[node.0 as usize] += EPOCH_STRIDE;
        let machine = self.incarnation(node)?;
        self.fabric.replace(node, machine);
        Ok(())
    }

    /// Everything that is not as it must be once all has come to rest. Nothing is demanded of a
    /// link that is cut.
    pub fn violations(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        for link in (0..self.fabric.links() as u32).map(LinkId) {
            if self.fabric.wire(link, Direction::AToB).is_cut() {
                continue;
            }
            let ends = self.fabric.ends(link);
            let account =
                |(node, port): (NodeId, u8)| self.fabric.node(node).lcb(port).map(EndAccount::of);
            let (Some(a), Some(b)) = (account(ends[0]), account(ends[1])) else {
                continue;
            };
            let whole = ends
                .iter()
                .all(|(node, _)| self.epochs[node.0 as usize] == 1);
            check_direction(link, Direction::AToB, &a, &b, whole, &mut found);
            check_direction(link, Direction::BToA, &b, &a, whole, &mut found);
        }
        for node in self.routers() {
            let phits = self.router(node).core().phits_inside();
            if phits != 0 {
                found.push(Violation::PhitsInside { node, phits });
            }
        }
        for node in self.processors() {
            let requests = self.nic(node).outstanding();
            if requests != 0 {
                found.push(Violation::Outstanding { node, requests });
            }
        }
        found
    }

    /// The liveness phase: runs until nothing is amiss at rest, or `limit` has passed, and returns
    /// what is amiss then, the messages of `run` included.
    pub fn drain(&mut self, run: u64, allow: Allowance, limit: Duration) -> Vec<Violation> {
        let mut found = self.amiss(run, allow);
        let end = self.fabric.now() + limit;
        while !found.is_empty() && self.fabric.now() < end {
            let rest = Duration::from_ps(end.as_ps() - self.fabric.now().as_ps());
            let mut asked = false;
            self.fabric.run_until_done(rest, LOOK_EVERY.times(10), |_| {
                core::mem::replace(&mut asked, true)
            });
            found = self.amiss(run, allow);
        }
        found
    }

    fn amiss(&self, run: u64, allow: Allowance) -> Vec<Violation> {
        let mut found = self.violations();
        found.extend(check_messages(&self.report(run), allow).err());
        found
    }

    fn incarnation(&self, node: NodeId) -> Result<Machine, PlanError> {
        let index = node.0 as usize;
        let processors = &self.topology.processors;
        let name = match processors.get(index) {
            Some(processor) => &processor.name,
            None => &self.topology.chips[index - processors.len()].name,
        };
        let runtime = Runtime {
            epoch: self.epochs[index],
            incarnation: crate::nic::Incarnation {
                clock_ns: 0,
                first: self.epochs[index] == 1,
            },
            ..self.runtime.clone()
        };
        let now = self.fabric.now();
        Ok(match self.topology.plan(name, &runtime)? {
            NodePlan::Router(config) => Machine::Router(Box::new(Yarc::new(config, now))),
            NodePlan::Nic(config) => Machine::Nic(Box::new(BlackwidowNic::new(config, now))),
            // A folded Clos has no such node.
            NodePlan::AriesRouter(_) | NodePlan::AriesNic(_) => {
                return Err(PlanError::NoSuchNode(name.clone()));
            }
        })
    }
}

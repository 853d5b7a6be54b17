//! A whole dragonfly in virtual time.

use super::check::{
    AriesAllowance, AriesEndAccount, AriesViolation, check_collectives, check_direction, check_run,
};
use super::machine::AriesMachine;
use crate::link::AriesLcb;
use crate::nic::aries::{AriesNic, CollectiveReport, CollectiveSpec, CollectiveSpecError};
use crate::nic::{Phase, SpecError, TrafficReport, TrafficSpec};
use crate::router::aries::Aries;
use crate::sim::fabric::{Direction, Fabric, LinkId, LinkSpec, NodeId};
use crate::sim::network::NetworkError;
use crate::time::Duration;
use crate::topology::dragonfly::Dragonfly;
use crate::topology::{NodePlan, NodeRef, PlanError, Runtime};

/// Epochs between two incarnations of a node.
const EPOCH_STRIDE: u32 = 1 << 16;
/// Time between two looks at whether something has come to its end.
const LOOK_EVERY: Duration = Duration::from_us(10);

/// A dragonfly in virtual time. Link number *i* of the fabric is link *i* of the topology, its end A named first;
/// network interfaces come before routers among the nodes.
pub struct AriesNetwork {
    /// The event loop, for everything not offered here.
    pub fabric: Fabric<AriesMachine>,
    topology: Dragonfly,
    runtime: Runtime,
    /// Which node of the topology each node of the fabric is.
    nodes: Vec<NodeRef>,
    /// The epoch of each node's present incarnation.
    epochs: Vec<u32>,
}

impl AriesNetwork {
    /// The network of `topology`, all of whose links begin to train. `seed` decides all chance; every link is as
    /// `spec` says.
    ///
    /// # Errors
    /// See [`NetworkError`]; a topology that passes its own check has none.
    pub fn new(topology: Dragonfly, seed: u64, spec: LinkSpec) -> Result<Self, NetworkError> {
        let mut runtime = Runtime::new(&topology.name, 1);
        runtime.seed = seed;
        let nics = topology.nics().map(NodeRef::Processor);
        let nodes: Vec<NodeRef> = nics.chain(topology.routers().map(NodeRef::Chip)).collect();
        let mut network = Self {
            fabric: Fabric::new(seed),
            topology,
            runtime,
            epochs: vec![1; nodes.len()],
            nodes,
        };
        for node in 0..network.nodes.len() as u32 {
            let machine = network.incarnation(NodeId(node))?;
            network.fabric.add(machine);
        }
        for index in 0..network.topology.links.len() {
            let link = &network.topology.links[index];
            let ends = [link.a, link.b].map(|end| (network.id(end.node), end.port));
            let [Some(a), Some(b)] = ends.map(|(id, port)| Some((id?, port))) else {
                let name = network.topology.node_name(link.a.node);
                return Err(PlanError::NoSuchNode(name).into());
            };
            let connected = network.fabric.connect(a, b, spec);
            connected.map_err(|error| NetworkError::Connect { link: index, error })?;
        }
        Ok(network)
    }

    /// The fabric's number of a node of the topology, if that is there.
    pub fn id(&self, node: NodeRef) -> Option<NodeId> {
        let at = self.nodes.iter().position(|own| *own == node)?;
        Some(NodeId(at as u32))
    }

    /// Network interfaces' nodes, in the order of the topology.
    pub fn nics(&self) -> impl Iterator<Item = NodeId> + use<> {
        let is_nic = |node: &&NodeRef| matches!(node, NodeRef::Processor(_));
        (0..self.nodes.iter().filter(is_nic).count() as u32).map(NodeId)
    }

    /// Routers' nodes, in the order of the topology.
    pub fn routers(&self) -> impl Iterator<Item = NodeId> + use<> {
        let first = self.nics().count() as u32;
        (first..self.nodes.len() as u32).map(NodeId)
    }

    /// The network interface of a node.
    ///
    /// # Panics
    /// If the node is something else.
    pub fn nic(&self, node: NodeId) -> &AriesNic {
        let nic = self.fabric.node(node).nic();
        nic.expect("the node is a network interface")
    }

    /// The router of a node.
    ///
    /// # Panics
    /// If the node is something else.
    pub fn router(&self, node: NodeId) -> &Aries {
        let router = self.fabric.node(node).router();
        router.expect("the node is a router")
    }

    /// Runs until both ends of every link that is not cut are active in the same session, or `limit` has passed; says
    /// which.
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
                    ends => ends.into_iter().flatten().all(AriesLcb::is_active),
                }
            })
        })
    }

    /// Starts `spec` on every participant.
    ///
    /// # Errors
    /// See [`SpecError`].
    pub fn start_traffic(&mut self, spec: &TrafficSpec) -> Result<(), SpecError> {
        for node in self.nics() {
            let number = self.nic(node).virtual_number();
            if number.is_some_and(|number| spec.processors.contains(&number)) {
                self.with_nic(node, |nic, now| nic.start_traffic(now, spec.clone()))?;
            }
        }
        Ok(())
    }

    /// Starts a run of collective operations on every participant.
    ///
    /// # Errors
    /// See [`CollectiveSpecError`].
    pub fn start_collectives(&mut self, spec: &CollectiveSpec) -> Result<(), CollectiveSpecError> {
        for node in self.nics() {
            let number = self.nic(node).virtual_number();
            if number.is_some_and(|number| spec.nics.contains(&number.into())) {
                self.with_nic(node, |nic, now| nic.begin_collectives(spec.clone(), now))?;
            }
        }
        Ok(())
    }

    /// Commands a network interface.
    ///
    /// # Panics
    /// If the node is something else.
    pub fn with_nic<R>(
        &mut self,
        node: NodeId,
        act: impl FnOnce(&mut AriesNic, crate::time::Time) -> R,
    ) -> R {
        self.fabric.command(node, |machine, now| {
            let nic = machine.nic_mut();
            act(nic.expect("the node is a network interface"), now)
        })
    }

    /// Runs until traffic run `run` and the last collective run are over everywhere, or `limit` has passed; says which.
    pub fn finish(&mut self, run: u64, limit: Duration) -> bool {
        let nics: Vec<NodeId> = self.nics().collect();
        self.fabric.run_until_done(limit, LOOK_EVERY, |fabric| {
            nics.iter().all(|node| {
                let nic = fabric.node(*node).nic();
                let traffic = nic.and_then(|nic| nic.traffic_report(Some(run)));
                let collectives = nic.and_then(AriesNic::collective_report);
                traffic.is_none_or(|report| report.phase == Phase::Done)
                    && collectives.is_none_or(|report| report.phase == Phase::Done)
            })
        })
    }

    /// The merged report of a run over all network interfaces.
    pub fn report(&self, run: u64) -> TrafficReport {
        let mut merged = TrafficReport {
            run,
            ..TrafficReport::default()
        };
        for node in self.nics() {
            if let Some(report) = self.nic(node).traffic_report(Some(run)) {
                merged.merge(&report);
            }
        }
        merged
    }

    /// The merged report of the last collective run.
    pub fn collective_report(&self) -> CollectiveReport {
        let mut merged = CollectiveReport::default();
        for node in self.nics() {
            if let Some(report) = self.nic(node).collective_report() {
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
                let mut tell = |name: &'static str, value: u64| {
                    if value != 0 {
                        text.push_str(&format!(" {name}={value}"));
                    }
                };
                lcb.counters().for_each(&mut tell);
                lcb.set_counters().for_each(&mut tell);
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

    /// Everything that is not as it must be once all has come to rest. Nothing is demanded of a link that is cut.
    pub fn violations(&self) -> Vec<AriesViolation> {
        let mut found = Vec::new();
        for link in (0..self.fabric.links() as u32).map(LinkId) {
            if self.fabric.wire(link, Direction::AToB).is_cut() {
                continue;
            }
            let ends = self.fabric.ends(link);
            let lcb = |(node, port): (NodeId, u8)| self.fabric.node(node).lcb(port);
            let [Some(a), Some(b)] = ends.map(|end| lcb(end).map(AriesEndAccount::of)) else {
                continue;
            };
            let first = |(node, _): &(NodeId, u8)| self.epochs[node.0 as usize] == 1;
            let whole = ends.iter().all(first);
            check_direction(link, Direction::AToB, [&a, &b], whole, &mut found);
            check_direction(link, Direction::BToA, [&b, &a], whole, &mut found);
        }
        for node in self.routers() {
            let router = self.router(node);
            let queued: u64 = (0..crate::router::aries::registers::PORTS as u8)
                .map(|port| router.queued(port))
                .sum();
            let flits = router.core().flits_inside() + queued;
            if flits != 0 {
                found.push(AriesViolation::FlitsInside { node, flits });
            }
        }
        for node in self.nics() {
            let nic = self.nic(node);
            let (requests, transfers) = (nic.outstanding(), nic.open_transfers());
            if requests != 0 || transfers != 0 {
                found.push(AriesViolation::Outstanding {
                    node,
                    requests,
                    transfers,
                });
            }
        }
        found
    }

    /// The liveness phase: runs until nothing is amiss at rest, or `limit` has passed, and returns what is amiss then,
    /// the messages of `run` and the operations of `collectives`, the last collective run, included.
    pub fn drain(
        &mut self,
        run: u64,
        collectives: Option<&CollectiveSpec>,
        allow: AriesAllowance,
        limit: Duration,
    ) -> Vec<AriesViolation> {
        let end = self.fabric.now() + limit;
        let mut found = self.amiss(run, collectives, allow);
        while !found.is_empty() && self.fabric.now() < end {
            let rest = Duration::from_ps(end.as_ps() - self.fabric.now().as_ps());
            let mut asked = false;
            self.fabric.run_until_done(rest, LOOK_EVERY.times(10), |_| {
                core::mem::replace(&mut asked, true)
            });
            found = self.amiss(run, collectives, allow);
        }
        found
    }

    fn amiss(
        &self,
        run: u64,
        collectives: Option<&CollectiveSpec>,
        allow: AriesAllowance,
    ) -> Vec<AriesViolation> {
        let mut found = self.violations();
        found.extend(check_run(&self.report(run), allow).err());
        if let Some(spec) = collectives {
            let report = self.collective_report();
            found.extend(check_collectives(&report, spec.count, allow).err());
        }
        found
    }

    fn incarnation(&self, node: NodeId) -> Result<AriesMachine, PlanError> {
        let index = node.0 as usize;
        let name = self.topology.node_name(self.nodes[index]);
        let runtime = Runtime {
            epoch: self.epochs[index],
            incarnation: crate::nic::Incarnation {
                clock_ns: 0,
                first: self.epochs[index] == 1,
            },
            ..self.runtime.clone()
        };
        let now = self.fabric.now();
        match self.topology.plan(&name, &runtime)? {
            NodePlan::AriesRouter(config) => {
                let mut router = Aries::new(config, now);
                router.seed(self.runtime.seed ^ u64::from(node.0) << 32);
                Ok(AriesMachine::Router(Box::new(router)))
            }
            NodePlan::AriesNic(config) => {
                Ok(AriesMachine::Nic(Box::new(AriesNic::new(*config, now))))
            }
            // A dragonfly has no such node.
            NodePlan::Router(_) | NodePlan::Nic(_) => Err(PlanError::NoSuchNode(name)),
        }
    }
}

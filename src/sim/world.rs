//! A whole network in virtual time: a topology's nodes and links, traffic, and checks.

mod barriers;
mod messages;
mod sends;

use core::any::Any;
use std::collections::BTreeMap;

use thiserror::Error;

pub use self::barriers::BarrierError;
pub use self::messages::{Measured, MessageOp};
use super::check::{Allowance, Violation, check_collectives, check_direction, check_messages};
use super::fabric::{ConnectError, Direction, Fabric, LinkId, LinkSpec, NodeId};
use crate::device::{BarrierRuns, Device, DeviceError, LinkView, capability};
use crate::net::PlanError;
use crate::net::{Clock, End, HostUse, Network, NodeRef, Profile, Runtime};
use crate::nic::{CollectiveReport, CollectiveSpec};
use crate::nic::{Incarnation, RunPhase, TrafficReport, TrafficSpec};
use crate::node::PortId;
use crate::time::{Duration, Time};

/// Why a topology could not become a world.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WorldError {
    /// A node's configuration is invalid.
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error("link {link}: {error}")]
    Connect {
        /// Id of the link in the topology.
        link: usize,
        error: ConnectError,
    },
}

/// A network of any machine in virtual time. Link number *i* of the fabric is link *i* of the
/// topology, its end A named first; NICs come before routers among the nodes.
pub struct World<L: ?Sized> {
    /// The event loop, for operations that this type does not wrap.
    pub fabric: Fabric<Box<dyn Device>>,
    topology: Box<L>,
    runtime: Runtime,
    /// The topology's node for each node of the fabric.
    nodes: Vec<NodeRef>,
    /// Epoch of each node's current incarnation.
    epochs: Vec<u32>,
}

/// Epochs between two incarnations of a node.
const EPOCH_STRIDE: u32 = 1 << 16;
/// Interval of checks for the end of a run.
const LOOK_EVERY: Duration = Duration::from_us(10);

impl<L: Network> World<L> {
    /// The world of `topology`, with all links starting to train. `seed` determines everything
    /// random; every link is as in `spec`.
    ///
    /// # Errors
    /// See [`WorldError`]; a topology that passes its own check has none.
    pub fn new(topology: L, seed: u64, spec: LinkSpec) -> Result<Self, WorldError> {
        Self::numbered(topology, seed, spec, 0)
    }

    /// Like [`new`](Self::new); each session numbers its first packet `first_packet`, where links
    /// number packets.
    ///
    /// # Errors
    /// See [`WorldError`]; `first_packet` must be less than 2^48.
    pub(crate) fn numbered(
        topology: L,
        seed: u64,
        spec: LinkSpec,
        first_packet: u64,
    ) -> Result<Self, WorldError> {
        let mut runtime = Runtime::new(topology.name(), 1);
        runtime.seed = seed;
        runtime.first_packet = first_packet;
        Self::of_runtime(Box::new(topology), |_| spec, runtime)
    }

    /// The world of `topology` with the timeouts of links between processes: the description's
    /// `give_up_ms` and `silence_ms` apply in virtual time, too.
    ///
    /// # Errors
    /// See [`WorldError`].
    pub fn of_processes(topology: L, seed: u64, spec: LinkSpec) -> Result<Self, WorldError> {
        let mut runtime = Runtime::new(topology.name(), 1);
        runtime.seed = seed;
        runtime.real_wires = true;
        Self::of_runtime(Box::new(topology), |_| spec, runtime)
    }
}

impl<L: Network + ?Sized> World<L> {
    /// The world of a machine in the machine's own time, regardless of the description's clock and
    /// profile: with the chip's depths, and a clock that counts the machine's nanoseconds. `wires`
    /// has the travel time of frames on each link.
    ///
    /// # Errors
    /// See [`WorldError`].
    ///
    /// # Panics
    /// If a link has no travel time.
    pub fn of_machine(topology: Box<L>, seed: u64, wires: &[Duration]) -> Result<Self, WorldError> {
        Self::with_hosts(topology, seed, wires, None)
    }

    /// Like [`of_machine`](Self::of_machine), but NICs account for the times of their hosts as in
    /// `host`.
    ///
    /// # Errors
    /// See [`WorldError`].
    ///
    /// # Panics
    /// If a link has no travel time.
    pub fn with_hosts(
        topology: Box<L>,
        seed: u64,
        wires: &[Duration],
        host: Option<HostUse>,
    ) -> Result<Self, WorldError> {
        let runtime = Runtime {
            clock: Some(Clock::Paced { dilation: 1 }),
            profile: Some(Profile::Paper),
            host,
            seed,
            ..Runtime::new(topology.name(), 1)
        };
        let spec = |link: usize| LinkSpec {
            latency: wires[link],
            ..LinkSpec::default()
        };
        Self::of_runtime(topology, spec, runtime)
    }

    fn of_runtime(
        topology: Box<L>,
        spec: impl Fn(usize) -> LinkSpec,
        runtime: Runtime,
    ) -> Result<Self, WorldError> {
        let mut nodes = topology.nodes();
        nodes.sort_by_key(|node| matches!(node, NodeRef::Chip(_)));
        let mut world = Self {
            fabric: Fabric::new(runtime.seed),
            topology,
            runtime,
            epochs: vec![1; nodes.len()],
            nodes,
        };
        for node in 0..world.nodes.len() as u32 {
            let device = world.incarnation(NodeId(node))?;
            world.fabric.add(device);
        }
        let ids: BTreeMap<NodeRef, NodeId> = (world.nodes.iter().copied())
            .zip((0..).map(NodeId))
            .collect();
        for link in 0..world.topology.link_count() {
            let (a, b) = world.topology.ends(link);
            let end = |end: End| match ids.get(&end.node) {
                Some(id) => Ok((*id, end.port)),
                None => {
                    let name = world.topology.node_name(end.node);
                    Err(PlanError::NoSuchNode(name.into_owned()))
                }
            };
            let connected = world.fabric.connect(end(a)?, end(b)?, spec(link));
            connected.map_err(|error| WorldError::Connect { link, error })?;
        }
        Ok(world)
    }

    pub fn topology(&self) -> &L {
        &self.topology
    }

    /// The fabric's number of a topology node.
    ///
    /// # Panics
    /// If the topology has no such node.
    pub fn id(&self, node: NodeRef) -> NodeId {
        let at = self.nodes.iter().position(|own| *own == node);
        NodeId(at.expect("the topology has the node") as u32)
    }

    pub fn link_at(&self, node: NodeRef, port: PortId) -> Option<LinkId> {
        let own = End { node, port };
        let is_at = |&link: &usize| {
            let (a, b) = self.topology.ends(link);
            a == own || b == own
        };
        let at = (0..self.topology.link_count()).find(is_at)?;
        Some(LinkId(at as u32))
    }

    /// The NICs' node ids, in topology order.
    pub fn nics(&self) -> impl Iterator<Item = NodeId> + use<L> {
        let is_nic = |node: &&NodeRef| matches!(node, NodeRef::Processor(_));
        (0..self.nodes.iter().filter(is_nic).count() as u32).map(NodeId)
    }

    /// The routers' node ids, in topology order.
    pub fn routers(&self) -> impl Iterator<Item = NodeId> + use<L> {
        let first = self.nics().count() as u32;
        (first..self.nodes.len() as u32).map(NodeId)
    }

    pub fn links(&self) -> impl Iterator<Item = LinkId> + use<L> {
        (0..self.fabric.links() as u32).map(LinkId)
    }

    /// A node as its concrete type.
    ///
    /// # Panics
    /// If the node has another type.
    pub fn node<D: Any>(&self, node: NodeId) -> &D {
        let own = self.fabric.node(node).downcast_ref();
        own.expect("the node has this type")
    }

    /// Commands a node as its concrete type, and schedules it to run.
    ///
    /// # Panics
    /// If the node has another type.
    pub fn command<D: Any, R>(&mut self, node: NodeId, act: impl FnOnce(&mut D, Time) -> R) -> R {
        self.fabric.command(node, |device, now| {
            let own = device.downcast_mut();
            act(own.expect("the node has this type"), now)
        })
    }

    /// The numbers of all NICs in traffic runs, as participants of a run.
    pub fn traffic_numbers(&self) -> Vec<u16> {
        let numbers = self.nics().filter_map(|nic| self.number(nic));
        numbers.collect()
    }

    /// The number of a NIC in traffic runs; `None` if it takes no part in them.
    pub fn number(&self, nic: NodeId) -> Option<u16> {
        let takes_part = self.topology.takes_part(self.nodes[nic.0 as usize]);
        let runs = self.fabric.node(nic).traffic().filter(|_| takes_part);
        runs?.number()
    }

    fn ends(&self, link: LinkId) -> [Option<&dyn LinkView>; 2] {
        ends(&self.fabric, link)
    }

    /// Runs until both ends of every uncut link are active in the same session, or `limit` has
    /// passed. Returns whether they are.
    pub fn bring_up(&mut self, limit: Duration) -> bool {
        self.fabric.run_until_done(limit, LOOK_EVERY, |fabric| {
            (0..fabric.links() as u32).map(LinkId).all(|link| {
                if fabric.wire(link, Direction::AToB).is_cut() {
                    return true;
                }
                match ends(fabric, link) {
                    [Some(a), Some(b)] => {
                        let (own, peer) = b.epochs();
                        a.is_active() && b.is_active() && a.epochs() == (peer, own)
                    }
                    ends => ends.into_iter().flatten().all(|end| end.is_active()),
                }
            })
        })
    }

    /// Starts `spec` on every NIC that sends in it.
    ///
    /// # Errors
    /// [`DeviceError::Traffic`].
    pub fn start_traffic(&mut self, spec: &TrafficSpec) -> Result<(), DeviceError> {
        for node in self.nics() {
            let number = self.number(node);
            if number.is_some_and(|number| spec.processors.contains(&number)) {
                self.fabric.command(node, |device, now| {
                    device
                        .need::<capability::Traffic>()?
                        .start(now, spec.clone())
                })?;
            }
        }
        Ok(())
    }

    /// Starts a run of collective operations on every participant.
    ///
    /// # Errors
    /// [`DeviceError::Collectives`]; [`DeviceError::Lacks`] if the machine has none.
    pub(crate) fn start_collectives(&mut self, spec: &CollectiveSpec) -> Result<(), DeviceError> {
        for node in self.nics() {
            let number = self.number(node);
            if number.is_some_and(|number| spec.nics.contains(&number.into())) {
                self.fabric.command(node, |device, now| {
                    device
                        .need::<capability::Collectives>()?
                        .start(now, spec.clone())
                })?;
            }
        }
        Ok(())
    }

    /// Runs until traffic run `run`, the last collective run and the last run of each barrier unit
    /// have ended everywhere, or `limit` has passed. Returns whether they have.
    pub fn finish(&mut self, run: u64, limit: Duration) -> bool {
        let nics: Vec<NodeId> = self.nics().collect();
        self.fabric.run_until_done(limit, LOOK_EVERY, |fabric| {
            nics.iter().all(|nic| {
                let nic = fabric.node(*nic);
                let traffic = nic.traffic().and_then(|runs| runs.report(Some(run)));
                let collectives = nic.collectives().and_then(|runs| runs.report());
                traffic.is_none_or(|report| report.phase == RunPhase::Done)
                    && collectives.is_none_or(|report| report.phase == RunPhase::Done)
                    && nic.barriers().is_none_or(are_over)
            })
        })
    }

    /// The merged report of a run over all NICs.
    pub fn report(&self, run: u64) -> TrafficReport {
        let mut merged = TrafficReport {
            run,
            ..TrafficReport::default()
        };
        for nic in self.nics() {
            let runs = self.fabric.node(nic).traffic();
            if let Some(report) = runs.and_then(|runs| runs.report(Some(run))) {
                merged.merge(&report);
            }
        }
        merged
    }

    /// The merged report of the participants of a collective run; others may have the report of an
    /// earlier one.
    pub(crate) fn collective_report(&self, spec: &CollectiveSpec) -> CollectiveReport {
        let mut merged = CollectiveReport::default();
        let takes_part = |nic: &NodeId| {
            let number = self.number(*nic);
            number.is_some_and(|number| spec.nics.contains(&number.into()))
        };
        for nic in self.nics().filter(takes_part) {
            let runs = self.fabric.node(nic).collectives();
            if let Some(report) = runs.and_then(|runs| runs.report()) {
                merged.merge(&report);
            }
        }
        merged
    }

    /// Lanes that link ends have decommissioned for noise.
    pub(crate) fn lanes_given_up(&self) -> u64 {
        let ends = self.links().flat_map(|link| self.ends(link));
        ends.flatten()
            .map(|end| end.counters().rx_lanes_decommissioned)
            .sum()
    }

    /// One line per link end: node, state, every nonzero counter.
    pub fn link_states(&self) -> String {
        let mut text = String::new();
        for link in self.links() {
            for ((node, port), end) in self.fabric.ends(link).into_iter().zip(self.ends(link)) {
                let Some(end) = end else {
                    continue;
                };
                let (link, node, state) = (link.0, node.0, end.state());
                text.push_str(&format!("link {link} node {node} port {port}: {state:?}"));
                end.for_each_counter(&mut |name, value| {
                    if value != 0 {
                        text.push_str(&format!(" {name}={value}"));
                    }
                });
                text.push('\n');
            }
        }
        text
    }

    /// Restarts a node; its contents are lost.
    ///
    /// # Errors
    /// Only errors that also prevent building the world.
    pub fn restart(&mut self, node: NodeId) -> Result<(), PlanError> {
        // Leave a gap of epochs: a link end increments its own when it comes up again.
        self.epochs[node.0 as usize] += EPOCH_STRIDE;
        let device = self.incarnation(node)?;
        self.fabric.replace(node, device);
        Ok(())
    }

    /// Every invariant violated at rest. Cut links are not checked.
    pub fn violations(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        for link in self.links() {
            if self.fabric.wire(link, Direction::AToB).is_cut() {
                continue;
            }
            let [Some(a), Some(b)] = self.ends(link).map(|end| end.map(LinkView::account)) else {
                continue;
            };
            let first = |(node, _): &(NodeId, u8)| self.epochs[node.0 as usize] == 1;
            let whole = self.fabric.ends(link).iter().all(first);
            check_direction(link, Direction::AToB, &a, &b, whole, &mut found);
            check_direction(link, Direction::BToA, &b, &a, whole, &mut found);
        }
        for node in (0..self.nodes.len() as u32).map(NodeId) {
            found.extend(Violation::of_node(node, self.fabric.node(node).account()));
        }
        found
    }

    /// Runs the liveness phase: until no invariant is violated or `limit` has passed. Returns the
    /// remaining violations, including those of the messages of `run` and of `collectives`, the
    /// last collective run.
    pub fn drain(
        &mut self,
        run: u64,
        collectives: Option<&CollectiveSpec>,
        allow: Allowance,
        limit: Duration,
    ) -> Vec<Violation> {
        let end = self.fabric.now() + limit;
        let mut found = self.all_violations(run, collectives, allow);
        while !found.is_empty() && self.fabric.now() < end {
            let rest = Duration::from_ps(end.as_ps() - self.fabric.now().as_ps());
            let mut asked = false;
            self.fabric.run_until_done(rest, LOOK_EVERY.times(10), |_| {
                core::mem::replace(&mut asked, true)
            });
            found = self.all_violations(run, collectives, allow);
        }
        found
    }

    fn all_violations(
        &self,
        run: u64,
        collectives: Option<&CollectiveSpec>,
        allow: Allowance,
    ) -> Vec<Violation> {
        let mut found = self.violations();
        found.extend(check_messages(&self.report(run), allow).err());
        if let Some(spec) = collectives {
            let report = self.collective_report(spec);
            found.extend(check_collectives(&report, spec.count, allow).err());
        }
        found
    }

    fn incarnation(&self, node: NodeId) -> Result<Box<dyn Device>, PlanError> {
        let index = node.0 as usize;
        let name = self.topology.node_name(self.nodes[index]);
        let runtime = Runtime {
            epoch: self.epochs[index],
            incarnation: Incarnation {
                clock_ns: 0,
                first: self.epochs[index] == 1,
            },
            ..self.runtime.clone()
        };
        let mut device = self.topology.device(&name, &runtime, self.fabric.now())?;
        device.seed(self.runtime.seed ^ u64::from(node.0) << 32);
        Ok(device)
    }
}

fn are_over(runs: &dyn BarrierRuns) -> bool {
    let mut reports = (0..runs.units()).filter_map(|unit| runs.report(unit));
    reports.all(|report| report.phase == RunPhase::Done)
}

fn ends(fabric: &Fabric<Box<dyn Device>>, link: LinkId) -> [Option<&dyn LinkView>; 2] {
    fabric
        .ends(link)
        .map(|(node, port)| fabric.node(node).link(port))
}

//! Builds partitions from nodes and encoded links.

use std::sync::{Arc, Mutex};

use super::{EncodedNode, EncodedPartition, TerminalNode, Traffic};
use crate::link::LinkControlBlock;
use crate::link::impair::Netem;
use crate::net::{Clock, End, Network as _, NodeRef, PlanError, Profile, Runtime};
use crate::sim::direct::config::ConfigError;
use crate::sim::direct::model::CycleModel;
use crate::sim::direct::partition::Partition;
use crate::sim::direct::places::Places;
use crate::sim::direct::shared::Shared;
use crate::sim::fabric::NodeId;
use crate::time::Duration;

/// Link configuration of model `M`.
pub(crate) type LinkOf<M> = <<M as CycleModel>::End as LinkControlBlock>::Config;

/// Makes the nodes of a network.
pub trait Nodes<M: CycleModel> {
    /// A router; `None` if the chip is missing.
    ///
    /// # Errors
    /// See [`PlanError`].
    fn router(&self, chip: u32, runtime: &Runtime) -> Result<Option<M::Router>, PlanError>;
    /// The links of a NIC, port by port.
    ///
    /// # Errors
    /// See [`PlanError`].
    fn links(&self, nic: u32, runtime: &Runtime) -> Result<Vec<LinkOf<M>>, PlanError>;
    /// Latency of a link in cycles.
    ///
    /// # Errors
    /// [`ConfigError::Topology`].
    fn cycles(&self, link: usize) -> Result<u32, ConfigError>;
    /// Adjusts the nodes' runtime.
    fn runtime(&self, usual: Runtime) -> Runtime {
        usual
    }
}

/// The partitions of a network with encoded links, with windows of `window` cycles.
///
/// # Errors
/// Those of `nodes`.
pub fn encoded<M: CycleModel>(
    network: &M::Topology,
    places: &Places,
    nodes: &impl Nodes<M>,
    (seed, netem): (u64, Option<Netem>),
    (shared, terminals): (Shared<M>, Vec<Vec<M::Terminal>>),
    window: u32,
) -> Result<Vec<Partition<M>>, ConfigError> {
    let runtime = nodes.runtime(Runtime {
        // The chip's own depths and times: this simulates the machine, not a lab.
        clock: Some(Clock::Paced { dilation: 1 }),
        profile: Some(Profile::Paper),
        frames_overtake: netem.is_some_and(|netem| netem.may_overtake()),
        seed,
        ..Runtime::new(network.name(), 1)
    });
    let mut builder = Builder::new(seed, shared, terminals);
    let mut chips = vec![Place::NOWHERE; places.chips.len()];
    for (partition, here) in (0..).zip(places.placed(0..chips.len())) {
        for (chip, index) in here {
            if let Some(router) = nodes.router(chip, &runtime)? {
                chips[index] = builder.add_router(partition, chip, router);
            }
        }
    }
    let mut terminals = vec![Place::NOWHERE; places.terminals.len()];
    for node in network.nodes() {
        let NodeRef::Processor(nic) = node else {
            continue;
        };
        for (port, link) in (0..).zip(nodes.links(nic, &runtime)?) {
            let place = places.of(End { node, port })?;
            terminals[places.terminal(nic, port)] = builder.add_terminal(place, link);
        }
    }
    let at = |End { node, port }| match node {
        NodeRef::Chip(chip) => (chips[chip as usize], port),
        NodeRef::Processor(nic) => (terminals[places.terminal(nic, port)], 0),
    };
    for link in 0..network.link_count() {
        let (a, b) = network.ends(link);
        for end in [a, b] {
            places.of(end)?;
        }
        let latency = M::CYCLE.times(nodes.cycles(link)?.into());
        builder.connect(link as u32, [at(a), at(b)], latency, netem);
    }
    Ok(builder.finish(window as usize))
}

/// Location of a node: its partition, and its number there.
#[derive(Clone, Copy, Debug)]
struct Place(usize, NodeId);

impl Place {
    /// Location of a missing node.
    const NOWHERE: Self = Self(0, NodeId(u32::MAX));
}

/// A partition under construction.
struct Part<M: CycleModel> {
    chips: Vec<u32>,
    terminals: Vec<M::Terminal>,
    nodes: EncodedPartition<M>,
}

/// Partitions with encoded links under construction.
struct Builder<M: CycleModel> {
    shared: Shared<M>,
    parts: Vec<Part<M>>,
}

impl<M: CycleModel> Builder<M> {
    /// Partitions with only these terminals.
    fn new(seed: u64, shared: Shared<M>, terminals: Vec<Vec<M::Terminal>>) -> Self {
        let part = |terminals| {
            let traffic = Traffic {
                shared: shared.clone(),
                terminals: Vec::new(),
            };
            Part {
                chips: Vec::new(),
                terminals,
                nodes: EncodedPartition::new(seed, Arc::new(Mutex::new(traffic))),
            }
        };
        let parts = terminals.into_iter().map(part).collect();
        Self { shared, parts }
    }

    /// Adds the router of a topology's chip.
    fn add_router(&mut self, partition: u32, chip: u32, router: M::Router) -> Place {
        let Part { chips, nodes, .. } = &mut self.parts[partition as usize];
        let id = nodes.fabric.add(EncodedNode::Router(Box::new(router)));
        nodes.chips.push(id);
        chips.push(chip);
        Place(partition as usize, id)
    }

    /// Adds the link end of a terminal, by its number in its partition.
    fn add_terminal(&mut self, (partition, number): (u32, u32), config: LinkOf<M>) -> Place {
        let nodes = &mut self.parts[partition as usize].nodes;
        let endpoint = TerminalNode::new(config, number as usize, Arc::clone(&nodes.traffic));
        let id = nodes
            .fabric
            .add(EncodedNode::TerminalNode(Box::new(endpoint)));
        Place(partition as usize, id)
    }

    /// Connects the ends A and B of a link.
    fn connect(
        &mut self,
        link: u32,
        [(Place(part_a, a), port_a), (Place(part_b, b), port_b)]: [(Place, u8); 2],
        latency: Duration,
        netem: Option<Netem>,
    ) {
        let (a, b) = ((a, port_a), (b, port_b));
        if part_a == part_b {
            let nodes = &mut self.parts[part_a].nodes;
            return nodes.connect(link, [a, b], latency, netem);
        }
        let half = &mut self.parts[part_a].nodes;
        half.connect_abroad((link, false), a, part_b, latency, netem);
        let half = &mut self.parts[part_b].nodes;
        half.connect_abroad((link, true), b, part_a, latency, netem);
    }

    /// The finished partitions, with windows of `window` cycles.
    fn finish(self, window: usize) -> Vec<Partition<M>> {
        let count = self.parts.len();
        let parts = (0..).zip(self.parts);
        parts
            .map(|(number, mut part)| {
                let abroad = &mut part.nodes.abroad;
                abroad.sort_by_key(|abroad| (abroad.link, abroad.is_b));
                let (chips, terminals) = (part.chips, part.terminals);
                let shared = self.shared.clone();
                let nodes = part.nodes;
                Partition::with_encoded_links(
                    number, chips, terminals, shared, window, nodes, count,
                )
            })
            .collect()
    }
}

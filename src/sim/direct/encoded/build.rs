//! Builds parts from nodes and encoded links.

use std::sync::Arc;

use super::{EncodedNode, EncodedPart, TerminalNode};
use crate::link::NodeLink;
use crate::link::impair::Netem;
use crate::net::{Clock, End, Network as _, NodeRef, PlanError, Profile, Runtime};
use crate::sim::direct::config::ConfigError;
use crate::sim::direct::endpoints::Endpoints;
use crate::sim::direct::model::CycleModel;
use crate::sim::direct::placement::Placement;
use crate::sim::direct::shared::Shared;
use crate::sim::fabric::NodeId;
use crate::time::Duration;

/// Link configuration of model `M`.
pub(crate) type LinkOf<M> = <<M as CycleModel>::End as NodeLink>::Config;

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
    /// Adjusts the nodes' runtime.
    fn runtime(&self, usual: Runtime) -> Runtime {
        usual
    }
}

/// Builds the parts of a network with encoded links and `options`, with windows of `window` cycles.
///
/// # Errors
/// Those of `nodes`.
pub fn encoded<M: CycleModel>(
    network: &M::Topology,
    placement: &Placement,
    nodes: &impl Nodes<M>,
    (seed, netem): (u64, Option<Netem>),
    (shared, terminals): (Shared<M>, Vec<Vec<M::Terminal>>),
    (options, window): (&M::Options, u32),
) -> Result<Vec<EncodedPart<M>>, ConfigError> {
    let runtime = nodes.runtime(Runtime {
        // The chip's own depths and times: this simulates the machine, not a lab.
        clock: Some(Clock::Paced { dilation: 1 }),
        profile: Some(Profile::Paper),
        frames_overtake: netem.is_some_and(|netem| netem.may_overtake()),
        seed,
        ..Runtime::new(network.name(), 1)
    });
    let mut builder = Builder::new(seed, &shared, terminals, window);
    let mut chips = vec![NodeLocation::NOWHERE; placement.chips.len()];
    for (partition, here) in (0..).zip(placement.placed(0..chips.len())) {
        for (chip, index) in here {
            if let Some(router) = nodes.router(chip, &runtime)? {
                chips[index] = builder.add_router(partition, chip, router);
            }
        }
    }
    let mut terminals = vec![NodeLocation::NOWHERE; placement.terminals.len()];
    for node in network.nodes() {
        let NodeRef::Processor(nic) = node else {
            continue;
        };
        for (port, link) in (0..).zip(nodes.links(nic, &runtime)?) {
            let location = placement.of(End { node, port })?;
            terminals[placement.terminal(nic, port)] = builder.add_terminal(location, link);
        }
    }
    let at = |End { node, port }| match node {
        NodeRef::Chip(chip) => (chips[chip as usize], port),
        NodeRef::Processor(nic) => (terminals[placement.terminal(nic, port)], 0),
    };
    for link in 0..network.link_count() {
        let (a, b) = network.ends(link);
        for end in [a, b] {
            placement.of(end)?;
        }
        let latency = wire::<M>(network, options, link)?;
        builder.connect(link as u32, [at(a), at(b)], latency, netem);
    }
    Ok(builder.finish())
}

/// Travel time of a frame on a link.
pub(crate) fn wire<M: CycleModel>(
    network: &M::Topology,
    options: &M::Options,
    link: usize,
) -> Result<Duration, ConfigError> {
    let cycles = M::wire_cycles(network, options, link)?;
    Ok(M::CYCLE.times(cycles.into()))
}

/// Location of a node: its part, and its number there.
#[derive(Clone, Copy, Debug)]
struct NodeLocation(usize, NodeId);

impl NodeLocation {
    /// Location of a missing node.
    const NOWHERE: Self = Self(0, NodeId(u32::MAX));
}

/// Parts with encoded links under construction.
struct Builder<M: CycleModel> {
    parts: Vec<EncodedPart<M>>,
}

impl<M: CycleModel> Builder<M> {
    /// Parts with only these terminals, and windows of `window` cycles.
    fn new(seed: u64, shared: &Shared<M>, terminals: Vec<Vec<M::Terminal>>, window: u32) -> Self {
        let count = terminals.len();
        let part = |(number, terminals)| {
            let endpoints = Endpoints::new(terminals, shared.clone());
            EncodedPart::new(seed, endpoints, window.into(), (number, count))
        };
        let parts = (0..).zip(terminals).map(part).collect();
        Self { parts }
    }

    /// Adds the router of a topology's chip.
    fn add_router(&mut self, part: u32, chip: u32, router: M::Router) -> NodeLocation {
        let nodes = &mut self.parts[part as usize];
        let id = nodes.fabric.add(EncodedNode::Router(Box::new(router)));
        nodes.chips.push((chip, id));
        NodeLocation(part as usize, id)
    }

    /// Adds the link end of a terminal, by its number in its part.
    fn add_terminal(&mut self, (part, number): (u32, u32), config: LinkOf<M>) -> NodeLocation {
        let nodes = &mut self.parts[part as usize];
        let endpoint = TerminalNode::new(config, number as usize, Arc::clone(&nodes.endpoints));
        let id = nodes
            .fabric
            .add(EncodedNode::TerminalNode(Box::new(endpoint)));
        NodeLocation(part as usize, id)
    }

    fn connect(
        &mut self,
        link: u32,
        [
            (NodeLocation(part_a, a), port_a),
            (NodeLocation(part_b, b), port_b),
        ]: [(NodeLocation, u8); 2],
        latency: Duration,
        netem: Option<Netem>,
    ) {
        let (a, b) = ((a, port_a), (b, port_b));
        if part_a == part_b {
            let nodes = &mut self.parts[part_a];
            return nodes.connect(link, [a, b], latency, netem);
        }
        let half = &mut self.parts[part_a];
        half.connect_remote((link, false), a, part_b, latency, netem);
        let half = &mut self.parts[part_b];
        half.connect_remote((link, true), b, part_a, latency, netem);
    }

    fn finish(mut self) -> Vec<EncodedPart<M>> {
        for part in &mut self.parts {
            part.abroad.sort_by_key(|abroad| (abroad.link, abroad.is_b));
        }
        self.parts
    }
}

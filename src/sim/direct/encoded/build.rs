//! From nodes and links to partitions.

use std::sync::{Arc, Mutex};

use super::{EncodedNode, EncodedPartition, TerminalNode, Traffic};
use crate::link::LinkControlBlock;
use crate::link::impair::Netem;
use crate::sim::direct::model::CycleModel;
use crate::sim::direct::partition::Partition;
use crate::sim::direct::shared::Shared;
use crate::sim::fabric::NodeId;
use crate::time::Duration;

/// Where a node went: partition and number there.
#[derive(Clone, Copy, Debug)]
pub struct Place(usize, NodeId);

impl Place {
    /// Where nothing went.
    pub const NOWHERE: Self = Self(0, NodeId(u32::MAX));
}

/// What becomes a partition.
struct Part<M: CycleModel> {
    chips: Vec<u32>,
    terminals: Vec<M::Terminal>,
    nodes: EncodedPartition<M>,
}

/// Partitions with encoded links while they are made.
pub struct Builder<M: CycleModel> {
    shared: Shared<M>,
    parts: Vec<Part<M>>,
}

impl<M: CycleModel> Builder<M> {
    /// Partitions with these terminals and nothing else.
    pub fn new(seed: u64, shared: Shared<M>, terminals: Vec<Vec<M::Terminal>>) -> Self {
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

    /// Adds the router of a chip of the topology.
    pub fn add_router(&mut self, partition: u32, chip: u32, router: M::Router) -> Place {
        let Part { chips, nodes, .. } = &mut self.parts[partition as usize];
        let id = nodes.fabric.add(EncodedNode::Router(Box::new(router)));
        nodes.chips.push(id);
        chips.push(chip);
        Place(partition as usize, id)
    }

    /// Adds the link end of a terminal, by its number in its partition.
    pub fn add_terminal(
        &mut self,
        partition: u32,
        number: u32,
        config: <M::End as LinkControlBlock>::Config,
    ) -> Place {
        let nodes = &mut self.parts[partition as usize].nodes;
        let endpoint = TerminalNode::new(config, number as usize, Arc::clone(&nodes.traffic));
        let id = nodes
            .fabric
            .add(EncodedNode::TerminalNode(Box::new(endpoint)));
        Place(partition as usize, id)
    }

    /// Joins the ends A and B of a link.
    pub fn connect(
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

    /// The partitions, with windows of that many cycles.
    pub fn finish(self, window: usize) -> Vec<Partition<M>> {
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

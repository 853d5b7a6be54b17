//! Placement of a network's nodes in partitions.

use super::config::ConfigError;
use super::model::PortUse;
use crate::net::{End, Network, NodeRef};

/// Numbers the nodes of each partition.
pub struct Numbers(Vec<u32>);

impl Numbers {
    /// `partitions` empty partitions.
    pub fn new(partitions: usize) -> Self {
        Self(vec![0; partitions])
    }

    /// Adds a node to `partition`. Returns the partition and the node's number there.
    pub fn enter(&mut self, partition: u32) -> (u32, u32) {
        let number = &mut self.0[partition as usize];
        *number += 1;
        (partition, *number - 1)
    }
}

/// Locations of nodes.
#[derive(Debug)]
pub struct Placement {
    pub partitions: usize,
    /// Partition and number there of each chip.
    pub chips: Vec<(u32, u32)>,
    /// Partition and number there of each terminal: those at port 0 of all NICs, then those at port
    /// 1, and so on; `None` for missing ones.
    pub terminals: Vec<Option<(u32, u32)>>,
    /// Number of NICs, including missing ones.
    pub nics: usize,
}

impl Placement {
    /// Number of the terminal at a port of a NIC.
    pub(crate) fn terminal(&self, nic: u32, port: u8) -> usize {
        usize::from(port) * self.nics + nic as usize
    }

    /// Partition and number there of the node at this end of a link.
    pub(super) fn of(&self, end: End) -> Result<(u32, u32), ConfigError> {
        let location = match end.node {
            NodeRef::Chip(chip) => self.chips.get(chip as usize).copied(),
            NodeRef::Processor(nic) => {
                let terminal = self.terminals.get(self.terminal(nic, end.port));
                terminal.copied().flatten()
            }
        };
        location.ok_or(ConfigError::Topology)
    }

    /// Distributes one item per chip, with the chip's number, in the order of locations.
    pub(super) fn placed<T>(&self, chips: impl IntoIterator<Item = T>) -> Vec<Vec<(u32, T)>> {
        let mut placed: Vec<_> = self.chips.iter().zip((0..).zip(chips)).collect();
        placed.sort_by_key(|(location, _)| **location);
        let mut parts = Vec::new();
        parts.resize_with(self.partitions, Vec::new);
        for ((partition, _), chip) in placed {
            parts[*partition as usize].push(chip);
        }
        parts
    }

    /// The terminals of every partition; `make` gets their numbers.
    pub fn terminals<T>(&self, mut make: impl FnMut(usize) -> T) -> Vec<Vec<T>> {
        let mut parts = Vec::new();
        parts.resize_with(self.partitions, Vec::new);
        for (terminal, location) in self.terminals.iter().enumerate() {
            if let Some((partition, _)) = location {
                parts[*partition as usize].push(make(terminal));
            }
        }
        parts
    }
}

/// Both ends of every link, each with the other end and the link's number.
pub(crate) fn ends(network: &impl Network) -> impl Iterator<Item = (End, End, usize)> {
    (0..network.link_count()).flat_map(|link| {
        let (a, b) = network.ends(link);
        [(a, b, link), (b, a, link)]
    })
}

/// The kind of node that each of the `ports` ports of every chip leads to. `kind` returns the kind
/// of a link between chips, as seen from its first argument.
pub fn kinds(
    network: &impl Network,
    (chips, ports): (usize, usize),
    kind: impl Fn(End, End, usize) -> u8,
) -> Vec<Option<PortUse>> {
    let mut kinds = vec![None; chips * ports];
    for (end, other, link) in ends(network) {
        if let NodeRef::Chip(chip) = end.node {
            kinds[chip as usize * ports + usize::from(end.port)] = Some(match other.node {
                NodeRef::Chip(_) => PortUse::Link(kind(end, other, link)),
                NodeRef::Processor(_) => PortUse::Ejection,
            });
        }
    }
    kinds
}

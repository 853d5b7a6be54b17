//! Where the nodes of a network go when it is cut into partitions.

use super::config::ConfigError;
use super::model::PortUse;
use crate::net::{End, Network, NodeRef};

/// Numbers what goes to each partition.
pub struct Numbers(Vec<u32>);

impl Numbers {
    /// So many partitions, and nothing in them.
    pub fn new(partitions: usize) -> Self {
        Self(vec![0; partitions])
    }

    /// The place of the next thing that goes to `partition`: that, and its number there.
    pub fn enter(&mut self, partition: u32) -> (u32, u32) {
        let number = &mut self.0[partition as usize];
        *number += 1;
        (partition, *number - 1)
    }
}

/// Where nodes go.
#[derive(Debug)]
pub struct Places {
    /// Partitions in all.
    pub partitions: usize,
    /// Partition and number there of each chip.
    pub chips: Vec<(u32, u32)>,
    /// The same of each terminal: those at port 0 of all network interfaces, those at port 1, and
    /// so on; `None` for those that are not there.
    pub terminals: Vec<Option<(u32, u32)>>,
    /// Network interfaces, those that are not there included.
    pub nics: usize,
}

impl Places {
    /// Number of the terminal at a port of a network interface.
    pub(crate) fn terminal(&self, nic: u32, port: u8) -> usize {
        usize::from(port) * self.nics + nic as usize
    }

    /// Partition and number there of the node at this end of a link.
    pub(super) fn of(&self, end: End) -> Result<(u32, u32), ConfigError> {
        let place = match end.node {
            NodeRef::Chip(chip) => self.chips.get(chip as usize).copied(),
            NodeRef::Processor(nic) => {
                let terminal = self.terminals.get(self.terminal(nic, end.port));
                terminal.copied().flatten()
            }
        };
        place.ok_or(ConfigError::Topology)
    }

    /// What there is one of for every chip, with its number, in the order of places.
    pub(super) fn placed<T>(&self, chips: impl IntoIterator<Item = T>) -> Vec<Vec<(u32, T)>> {
        let mut placed: Vec<_> = self.chips.iter().zip((0..).zip(chips)).collect();
        placed.sort_by_key(|(place, _)| **place);
        let mut parts = Vec::new();
        parts.resize_with(self.partitions, Vec::new);
        for ((partition, _), chip) in placed {
            parts[*partition as usize].push(chip);
        }
        parts
    }

    /// The terminals of every partition; `make` is told their numbers.
    pub fn terminals<T>(&self, mut make: impl FnMut(usize) -> T) -> Vec<Vec<T>> {
        let mut parts = Vec::new();
        parts.resize_with(self.partitions, Vec::new);
        for (terminal, place) in self.terminals.iter().enumerate() {
            if let Some((partition, _)) = place {
                parts[*partition as usize].push(make(terminal));
            }
        }
        parts
    }
}

/// Both ends of every link, each with the other and the number of the link.
pub(crate) fn ends(network: &impl Network) -> impl Iterator<Item = (End, End, usize)> {
    (0..network.link_count()).flat_map(|link| {
        let (a, b) = network.ends(link);
        [(a, b, link), (b, a, link)]
    })
}

/// What each of the `ports` ports of every chip leads to. `kind` says the kind of a link between
/// chips, seen from its first end.
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

//! Encoded partitions of a network of plain nodes and links: every NIC is a terminal with one link,
//! and all links are equally long.

use super::EncodedPart;
use super::build::{Nodes, encoded};
use crate::link::impair::Netem;
use crate::net::{Network, NodeRef};
use crate::sim::direct::config::{Config, ConfigError};
use crate::sim::direct::model::{CycleModel, Lanes as _, Partitioned};
use crate::sim::direct::pattern::{Destinations, Population};
use crate::sim::direct::placement::{Numbers, Placement, ends, kinds};
use crate::sim::direct::shared::{Common, Shared};
use crate::sim::direct::source::{Births, HELD_BACK};

/// Assigns ranges of routers to partitions; each NIC goes with the router that it is linked to.
pub fn placement(network: &impl Network, partitions: usize) -> Result<Placement, ConfigError> {
    let nodes = network.nodes();
    let is_chip = |node: &&NodeRef| matches!(node, NodeRef::Chip(_));
    let chips = nodes.iter().filter(is_chip).count();
    let nics = nodes.len() - chips;
    let partitions = partitions.clamp(1, chips.max(1));
    let mut numbers = Numbers::new(partitions);
    let chips: Vec<_> = (0..chips)
        .map(|chip| numbers.enter((chip * partitions / chips) as u32))
        .collect();
    let mut of_nics = vec![None; nics];
    for (end, other, _) in ends(network) {
        if let (NodeRef::Processor(nic), NodeRef::Chip(chip)) = (end.node, other.node) {
            of_nics[nic as usize] = Some(chips[chip as usize].0);
        }
    }
    let mut numbers = Numbers::new(partitions);
    let enter = |partition: Option<u32>| {
        let partition = partition.ok_or(ConfigError::Topology)?;
        Ok(Some(numbers.enter(partition)))
    };
    let terminals = of_nics.into_iter().map(enter);
    Ok(Placement {
        partitions,
        chips,
        terminals: terminals.collect::<Result<_, ConfigError>>()?,
        nics,
    })
}

/// Splits `network` with its traffic into `partitions` partitions, over links with a latency of
/// `cycles` cycles. `terminal` makes terminals.
///
/// # Errors
/// See [`ConfigError`].
pub(crate) fn partitioned<M: CycleModel>(
    network: &M::Topology,
    nodes: &impl Nodes<M>,
    (format, terminal): (M::Format, impl Fn(Common<M>) -> M::Terminal),
    (config, netem, partitions): (&Config, Option<Netem>, usize),
    (options, cycles): (&M::Options, u32),
) -> Result<Partitioned<EncodedPart<M>>, ConfigError> {
    config.validate(M::MAX_MESSAGE_BYTES)?;
    let (traffic, seed) = (&config.traffic, config.seed);
    let placement = placement(network, partitions)?;
    let numbers: Vec<u32> = (0..placement.nics as u32).collect();
    let population = Population {
        numbers: &numbers,
        slices: 1,
        grid: None,
    };
    let to = Destinations::new(traffic, population, seed, |_, _| None)?;
    let births = Births::new(traffic, M::message_phits(traffic), M::Direct::TERMINAL_RATE);
    let shared = Shared::new(births, to, traffic.request_reply, format);
    let terminals = placement.terminals(|number| {
        let number = number as u64;
        let source = shared.source(seed, number, HELD_BACK);
        terminal(Common::new(number, source))
    });
    let traffic = (shared, terminals);
    Ok(Partitioned {
        parts: encoded(
            network,
            &placement,
            nodes,
            (seed, netem),
            traffic,
            (options, cycles),
        )?,
        kinds: kinds(network, (placement.chips.len(), M::PORTS), |_, _, _| 0),
        stride: cycles,
        longest: cycles,
        slowest: 1,
    })
}

//! Encoded partitions of a network that is nothing but nodes and links: every network interface is
//! a terminal with one link, and all links are equally long.

use super::build::{Builder, Place};
use crate::link::LinkControlBlock;
use crate::link::impair::Netem;
use crate::net::{Clock, End, Network, NodeRef, PlanError, Profile, Runtime};
use crate::sim::direct::config::{Config, ConfigError};
use crate::sim::direct::model::{CycleModel, NO_SLOT, Partitioned, PortUse};
use crate::sim::direct::partition::HELD_BACK;
use crate::sim::direct::pattern::{Destinations, Population};
use crate::sim::direct::shared::{Common, Shared};
use crate::sim::direct::source::{Births, Source};

/// The configuration of a link of model `M`.
type LinkOf<M> = <<M as CycleModel>::End as LinkControlBlock>::Config;

/// What makes the nodes of a network.
pub(crate) trait Nodes<M: CycleModel> {
    /// A router.
    fn router(&self, chip: u32, runtime: &Runtime) -> Result<M::Router, PlanError>;
    /// The link of a network interface.
    fn link(&self, nic: u32, runtime: &Runtime) -> Result<LinkOf<M>, PlanError>;
    /// A terminal.
    fn terminal(&self, common: Common<M>) -> M::Terminal;
}

/// Where nodes go: routers in ranges, network interfaces with the routers that they are linked to.
struct Places {
    /// Partitions of routers.
    chips: Vec<u32>,
    /// Partitions of network interfaces, and their numbers there.
    nics: Vec<(u32, u32)>,
    partitions: usize,
    /// What every port of every router leads to.
    kinds: Vec<Option<PortUse>>,
}

impl Places {
    fn new(network: &impl Network, ports: usize, partitions: usize) -> Result<Self, ConfigError> {
        let nodes = network.nodes();
        let is_chip = |node: &&NodeRef| matches!(node, NodeRef::Chip(_));
        let chips = nodes.iter().filter(is_chip).count();
        let partitions = partitions.clamp(1, chips.max(1));
        let partition = |chip: usize| (chip * partitions / chips) as u32;
        let mut kinds = vec![None; chips * ports];
        let mut of_nics = vec![None; nodes.len() - chips];
        for link in 0..network.link_count() {
            let (a, b) = network.ends(link);
            for (end, other) in [(a, b), (b, a)] {
                match (end.node, other.node) {
                    (NodeRef::Chip(chip), other) => {
                        let is_link = matches!(other, NodeRef::Chip(_));
                        let kind = if is_link {
                            PortUse::Link(0)
                        } else {
                            PortUse::Ejection
                        };
                        kinds[chip as usize * ports + usize::from(end.port)] = Some(kind);
                    }
                    (NodeRef::Processor(nic), NodeRef::Chip(chip)) => {
                        of_nics[nic as usize] = Some(partition(chip as usize));
                    }
                    (NodeRef::Processor(_), NodeRef::Processor(_)) => {}
                }
            }
        }
        let mut numbers = vec![0; partitions];
        let number = |partition: Option<u32>| {
            let partition = partition.ok_or(ConfigError::Topology)?;
            let number = &mut numbers[partition as usize];
            *number += 1;
            Ok((partition, *number - 1))
        };
        Ok(Self {
            chips: (0..chips).map(partition).collect(),
            nics: of_nics
                .into_iter()
                .map(number)
                .collect::<Result<_, ConfigError>>()?,
            partitions,
            kinds,
        })
    }
}

/// `network` with its traffic in this number of partitions, over links on which everything travels
/// for `cycles` cycles.
///
/// # Errors
/// See [`ConfigError`].
pub(crate) fn partitioned<M: CycleModel>(
    network: &M::Topology,
    nodes: &impl Nodes<M>,
    format: M::Format,
    (config, netem, partitions): (&Config, Option<Netem>, usize),
    cycles: u32,
) -> Result<Partitioned<M>, ConfigError> {
    config.validate(M::MAX_MESSAGE_BYTES)?;
    let traffic = &config.traffic;
    let places = Places::new(network, M::PORTS, partitions)?;
    let numbers: Vec<u32> = (0..places.nics.len() as u32).collect();
    let population = Population {
        numbers: &numbers,
        slices: 1,
    };
    let to = Destinations::new(traffic, population, config.seed, |_, _| None)?;
    let births = Births::new(traffic, M::message_phits(traffic), 1);
    let is_sender = |nic: &&u32| !to.is_silent(u64::from(**nic));
    let senders = numbers.iter().filter(is_sender).count() as u64;
    let mut terminals: Vec<Vec<M::Terminal>> = Vec::new();
    terminals.resize_with(places.partitions, Vec::new);
    for (number, (partition, _)) in (0..).zip(&places.nics) {
        let mut source = Source::new(config.seed, number, to.is_silent(number), &births);
        source.reschedule(0, HELD_BACK);
        terminals[*partition as usize].push(nodes.terminal(Common::new(number, source, NO_SLOT)));
    }
    let shared = Shared::new(births, to, traffic.request_reply, format);
    let mut builder = Builder::new(config.seed, shared, terminals);
    let runtime = Runtime {
        // The chip's own depths and time: what is simulated is the machine, not a lab.
        clock: Some(Clock::Paced { dilation: 1 }),
        profile: Some(Profile::Paper),
        seed: config.seed,
        ..Runtime::new(network.name(), 1)
    };
    let mut chips: Vec<Place> = Vec::new();
    for (chip, partition) in (0..).zip(&places.chips) {
        chips.push(builder.add_router(*partition, chip, nodes.router(chip, &runtime)?));
    }
    let mut nics: Vec<Place> = Vec::new();
    for (nic, (partition, number)) in (0..).zip(&places.nics) {
        nics.push(builder.add_terminal(*partition, *number, nodes.link(nic, &runtime)?));
    }
    let at = |End { node, port }| match node {
        NodeRef::Chip(chip) => (chips[chip as usize], port),
        NodeRef::Processor(nic) => (nics[nic as usize], port),
    };
    for link in 0..network.link_count() {
        let (a, b) = network.ends(link);
        builder.connect(
            link as u32,
            [at(a), at(b)],
            M::CYCLE.times(cycles.into()),
            netem,
        );
    }
    Ok(Partitioned {
        partitions: builder.finish(cycles as usize),
        kinds: places.kinds,
        senders,
        stride: cycles,
        longest: cycles,
        slowest: 1,
    })
}

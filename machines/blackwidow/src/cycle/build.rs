use super::direct_router::DirectRouter;
use super::length::{self, Pace};
use super::packet::Seal;
use super::terminal::Terminal;
use super::{BlackWidow, BlackWidowOptions, Format, destinations};
use crate::link::PhitLinkConfig;
use crate::route::decision::{ChipPorts, TileRoutes};
use crate::route::registers::{ChipRegisters, PORTS, PortKind};
use crate::router::Yarc;
use crate::topology::{ClosWiring, FoldedClos};
use phitwire::link::impair::Netem;
use phitwire::net::{Link, PlanError, Runtime};
use phitwire::sim::direct::build::{self, DirectLinks, Windows};
use phitwire::sim::direct::config::{Config, ConfigError};
use phitwire::sim::direct::encoded::build as encoded;
use phitwire::sim::direct::model::{CycleModel as _, Partitioned, PortUse};
use phitwire::sim::direct::pattern::Destinations;
use phitwire::sim::direct::placement::{Numbers, Placement, kinds};
use phitwire::sim::direct::source::{Births, HELD_BACK};
use phitwire::sim::direct::{DirectPart, EncodedPart};
use phitwire::time::Time;
use phitwire_framing::yarc::memory::write_phits;

type Shared = phitwire::sim::direct::shared::Shared<BlackWidow>;

/// Assigns nodes to partitions. Chips are distributed rank by rank in ranges, so that every
/// partition has its share of each rank's traffic; terminals go with their routers.
fn placement(topology: &FoldedClos, wiring: &ClosWiring, partitions: usize) -> Placement {
    let partitions = partitions.clamp(1, topology.chips.len().max(1));
    let rank = |chip: usize| {
        let routers = &topology.chips[chip].routers;
        let slice = routers.first().map_or(0, |router| router.slice);
        (slice, routers.first().map_or(0, |router| router.rank))
    };
    let mut order: Vec<usize> = (0..topology.chips.len()).collect();
    order.sort_by_key(|&chip| (rank(chip), chip));
    let mut chips = vec![(0, 0); topology.chips.len()];
    let mut numbers = Numbers::new(partitions);
    for group in order.chunk_by(|&a, &b| rank(a) == rank(b)) {
        for (i, &chip) in group.iter().enumerate() {
            chips[chip] = numbers.enter((i * partitions / group.len()) as u32);
        }
    }
    let mut numbers = Numbers::new(partitions);
    let mut terminals = Vec::new();
    for slice in 0..topology.slices {
        for processor in 0..topology.processors.len() as u32 {
            let injection = wiring.injection(topology, processor, slice);
            let chip = injection.map(|(router, _)| wiring.chip_of(router));
            terminals.push(chip.map(|chip| numbers.enter(chips[chip as usize].0)));
        }
    }
    Placement {
        partitions,
        chips,
        terminals,
        nics: topology.processors.len(),
    }
}

struct Nodes<'a> {
    topology: &'a FoldedClos,
    options: &'a BlackWidowOptions,
}

impl Nodes<'_> {
    /// The partition of every node, and the state that terminals share.
    fn prepare(
        &self,
        config: &Config,
        partitions: usize,
    ) -> Result<(Placement, Shared), ConfigError> {
        self.options.validate()?;
        config.validate(BlackWidow::MAX_MESSAGE_BYTES)?;
        let bytes = config.traffic.message_bytes;
        let (phits, most) = (
            write_phits(bytes.into()),
            self.topology.settings.own.max_packet_phits,
        );
        if phits > usize::from(most) {
            return Err(ConfigError::Refused(format!(
                "a message of {bytes} bytes needs a packet of {phits} phits, but \
                 `max_packet_phits` of the network is {most}; send less or raise the limit"
            )));
        }
        let wiring = ClosWiring::new(self.topology);
        let destinations = destinations(&config.traffic, self.topology, &wiring, config.seed)?;
        let placement = placement(self.topology, &wiring, partitions);
        if placement.terminals.iter().all(Option::is_none) {
            return Err(ConfigError::NoTerminals);
        }
        Ok((placement, shared(self.topology, config, destinations)))
    }

    fn link(&self, link: usize) -> &Link {
        &self.topology.links[link]
    }

    fn kinds(&self) -> Vec<Option<PortUse>> {
        let kind = |end, other, _| match self.topology.kind_of(end, other) {
            PortKind::Up => 0,
            PortKind::Side => 1,
            PortKind::Down => 2,
        };
        kinds(self.topology, (self.topology.chips.len(), PORTS), kind)
    }
}

impl DirectLinks<BlackWidow> for Nodes<'_> {
    fn cycles(&self, link: usize) -> Result<u32, ConfigError> {
        Ok(length::cycles(self.link(link), self.options))
    }

    fn connect(&self, router: &mut DirectRouter, port: usize, slot: u32, link: usize) {
        router.connect(port, slot, Pace::of(self.link(link).rate));
    }

    fn attach(&self, terminal: &mut Terminal, link: usize) {
        let max_packet_phits = self.topology.settings.own.max_packet_phits;
        terminal.set_link(Pace::of(self.link(link).rate), max_packet_phits);
    }
}

impl encoded::Nodes<BlackWidow> for Nodes<'_> {
    fn router(&self, chip: u32, runtime: &Runtime) -> Result<Option<Yarc>, PlanError> {
        let config = self.topology.plan_router(chip, runtime)?;
        Ok(Some(Yarc::new(config, Time::ZERO)))
    }

    fn links(&self, nic: u32, runtime: &Runtime) -> Result<Vec<PhitLinkConfig>, PlanError> {
        Ok(self.topology.plan_nic(nic, runtime)?.links)
    }
}

pub(super) fn direct(
    topology: &FoldedClos,
    (config, options): (&Config, &BlackWidowOptions),
    partitions: usize,
) -> Result<Partitioned<DirectPart<BlackWidow>>, ConfigError> {
    let nodes = Nodes { topology, options };
    let (placement, shared) = nodes.prepare(config, partitions)?;
    let registers = topology.all_chip_registers().into_iter();
    let most = topology.settings.own.max_packet_phits;
    let routers = registers.map(|own| DirectRouter::new(own, most));
    let routers = routers.collect();
    let made = (routers, terminals(&placement, (config.seed, 0), &shared));
    let (window, longest) = length::window_and_longest(topology, options);
    let windows = Windows {
        window,
        longest,
        round: 1,
    };
    Ok(Partitioned {
        parts: build::direct(topology, &placement, &nodes, made, &shared, windows)?,
        kinds: nodes.kinds(),
        stride: window,
        longest,
        slowest: length::slowest(topology),
    })
}

/// Builds the same network from nodes behind encoded links.
pub(super) fn encoded(
    topology: &FoldedClos,
    (config, options): (&Config, &BlackWidowOptions),
    netem: Option<Netem>,
    partitions: usize,
) -> Result<Partitioned<EncodedPart<BlackWidow>>, ConfigError> {
    let nodes = Nodes { topology, options };
    let (placement, mut shared) = nodes.prepare(config, partitions)?;
    shared.format.seal = Seal::Crc;
    let terminals = terminals(&placement, (config.seed, HELD_BACK), &shared);
    let (how, traffic) = ((config.seed, netem), (shared, terminals));
    let (shortest, longest) = length::window_and_longest(topology, options);
    Ok(Partitioned {
        parts: encoded::encoded(
            topology,
            &placement,
            &nodes,
            how,
            traffic,
            (options, shortest),
        )?,
        kinds: nodes.kinds(),
        stride: shortest,
        longest,
        slowest: length::slowest(topology),
    })
}

/// Builds the terminals of each partition, whose sources start in cycle `begin`.
fn terminals(
    placement: &Placement,
    (seed, begin): (u64, u64),
    shared: &Shared,
) -> Vec<Vec<Terminal>> {
    let numbers = &shared.format.numbers;
    placement.terminals(|number| {
        let processor = numbers[number % numbers.len()];
        let source = shared.source(seed, number as u64, begin);
        Terminal::new(number as u64, processor, source)
    })
}

fn shared(topology: &FoldedClos, config: &Config, destinations: Destinations) -> Shared {
    let traffic = &config.traffic;
    let format = Format {
        numbers: topology.processors.iter().map(|p| p.number).collect(),
        request_phits: write_phits(usize::from(traffic.message_bytes)),
        outstanding: (topology.settings.outstanding / u32::from(topology.slices.max(1))).max(1),
        seal: Seal::Key,
        deciding_hash_bits: deciding_hash_bits(&topology.all_chip_registers()),
    };
    let births = Births::new(traffic, BlackWidow::message_phits(traffic), [1, 1]);
    Shared::new(births, destinations, traffic.request_reply, format)
}

/// The hash bits that determine a packet's path anywhere in the network.
fn deciding_hash_bits(chips: &[ChipRegisters]) -> u16 {
    let of_tile = |chip: &ChipRegisters| {
        let ports = ChipPorts::new(chip);
        let tiles = chip.tiles.iter().enumerate();
        let routes = tiles.filter_map(|(port, tile)| {
            let routes = TileRoutes::new(port as u8, tile.as_ref()?, ports);
            Some(routes.deciding_hash_bits())
        });
        routes.fold(0, |all, bits| all | bits)
    };
    chips.iter().map(of_tile).fold(0, |all, bits| all | bits)
}

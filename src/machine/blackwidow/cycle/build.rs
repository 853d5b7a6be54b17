//! From a topology to partitions.

use super::direct_router::DirectRouter;
use super::length::{self, Pace};
use super::packet::Seal;
use super::terminal::Terminal;
use super::{BlackWidow, BlackWidowOptions, Format, destinations};
use crate::link::impair::Netem;
use crate::machine::blackwidow::route::registers::{PORTS, PortKind};
use crate::machine::blackwidow::router::Yarc;
use crate::machine::blackwidow::topology::{ClosWiring, FoldedClos, Neighbour};
use crate::net::{Clock, End, NodeRef, Profile, Runtime};
use crate::sim::direct::config::{Config, ConfigError};
use crate::sim::direct::encoded::build::{Builder, Place};
use crate::sim::direct::model::{CycleModel as _, NO_SLOT, Partitioned, PortUse};
use crate::sim::direct::partition::{HELD_BACK, Partition};
use crate::sim::direct::pattern::Destinations;
use crate::sim::direct::source::{Births, Source};
use crate::time::Time;
use phitwire_framing::yarc::memory::write_phits;

type Exchange = crate::sim::direct::exchange::Exchange<BlackWidow>;
type Shared = crate::sim::direct::shared::Shared<BlackWidow>;

/// Where the nodes of the topology went.
struct Places {
    /// Partition and number there of each chip.
    chips: Vec<(u32, u32)>,
    /// Router end, partition and number there of each terminal, or `None` without link.
    terminals: Vec<Option<TerminalPlace>>,
}

#[derive(Clone, Copy)]
struct TerminalPlace {
    chip: u32,
    port: u8,
    partition: u32,
    number: u32,
}

impl Places {
    /// Chips are dealt out rank by rank, in ranges, so that every partition has its share of each
    /// rank's traffic; terminals go with their routers.
    fn new(topology: &FoldedClos, wiring: &ClosWiring, partitions: usize) -> Self {
        let rank = |chip: usize| {
            let routers = &topology.chips[chip].routers;
            let slice = routers.first().map_or(0, |router| router.slice);
            (slice, routers.first().map_or(0, |router| router.rank))
        };
        let mut order: Vec<usize> = (0..topology.chips.len()).collect();
        order.sort_by_key(|&chip| (rank(chip), chip));
        let mut chips = vec![(0, 0); topology.chips.len()];
        let mut numbers = vec![0; partitions];
        for group in order.chunk_by(|&a, &b| rank(a) == rank(b)) {
            for (i, &chip) in group.iter().enumerate() {
                let partition = i * partitions / group.len();
                chips[chip] = (partition as u32, numbers[partition]);
                numbers[partition] += 1;
            }
        }
        let mut numbers = vec![0; partitions];
        let mut terminals = Vec::new();
        for slice in 0..topology.slices {
            for processor in 0..topology.processors.len() as u32 {
                let injection = wiring.injection(topology, processor, slice);
                terminals.push(injection.map(|(router, port)| {
                    let chip = wiring.chip_of(router);
                    let partition = chips[chip as usize].0;
                    let number = numbers[partition as usize];
                    numbers[partition as usize] += 1;
                    TerminalPlace {
                        chip,
                        port,
                        partition,
                        number,
                    }
                }));
            }
        }
        Self { chips, terminals }
    }

    fn chip_slot(&self, chip: u32, port: u8) -> (u32, u32) {
        let (partition, number) = self.chips[chip as usize];
        (
            partition,
            Exchange::chip_slot(number as usize, usize::from(port)),
        )
    }
}

/// What a network is made from, whatever its links are.
struct Prepared {
    wiring: ClosWiring,
    places: Places,
    shared: Shared,
    partitions: usize,
    /// Terminals that send.
    senders: u64,
}

impl Prepared {
    fn new(
        topology: &FoldedClos,
        (config, options): (&Config, &BlackWidowOptions),
        partitions: usize,
    ) -> Result<Self, ConfigError> {
        options.validate()?;
        config.validate(BlackWidow::MAX_MESSAGE_BYTES)?;
        let partitions = partitions.clamp(1, topology.chips.len().max(1));
        let wiring = ClosWiring::new(topology);
        let destinations = destinations(&config.traffic, topology, &wiring, config.seed)?;
        let places = Places::new(topology, &wiring, partitions);
        if places.terminals.iter().all(Option::is_none) {
            return Err(ConfigError::NoTerminals);
        }
        let linked = (0u64..).zip(&places.terminals);
        let senders = linked
            .filter(|(number, place)| place.is_some() && !destinations.is_silent(*number))
            .count() as u64;
        Ok(Self {
            wiring,
            places,
            shared: shared(topology, config, destinations),
            partitions,
            senders,
        })
    }

    /// The terminals of every partition, whose sources begin in cycle `begin`; `peer` says the slot
    /// that the link of each ends at.
    fn terminals(
        &self,
        seed: u64,
        begin: u64,
        mut peer: impl FnMut(&TerminalPlace) -> (u32, Pace),
    ) -> Vec<Vec<Terminal>> {
        let mut terminals: Vec<Vec<Terminal>> = (0..self.partitions).map(|_| Vec::new()).collect();
        for (number, place) in (0u64..).zip(&self.places.terminals) {
            let Some(place) = place else { continue };
            let silent = self.shared.destinations.is_silent(number);
            let mut source = Source::new(seed, number, silent, &self.shared.births);
            source.reschedule(0, begin);
            let processor =
                self.shared.format.numbers[number as usize % self.shared.format.numbers.len()];
            let (peer, pace) = peer(place);
            let terminal = Terminal::new(number, processor, peer, source).with_pace(pace);
            terminals[place.partition as usize].push(terminal);
        }
        terminals
    }
}

/// Cuts `topology` into partitions, at least one.
pub(super) fn direct(
    topology: &FoldedClos,
    (config, options): (&Config, &BlackWidowOptions),
    partitions: usize,
) -> Result<Partitioned<BlackWidow>, ConfigError> {
    let prepared = Prepared::new(topology, (config, options), partitions)?;
    let Prepared {
        wiring,
        places,
        shared,
        partitions,
        ..
    } = &prepared;
    let (window, longest) = length::window_and_longest(topology, options);
    let mut exchanges: Vec<Exchange> = (0..*partitions as u32)
        .map(|partition| {
            let chips = places.chips.iter().filter(|c| c.0 == partition).count();
            let terminals = places.terminals.iter().flatten();
            let terminals = terminals.filter(|t| t.partition == partition).count();
            Exchange::new(partition, window as usize, chips, terminals)
        })
        .collect();
    let terminals = prepared.terminals(config.seed, 0, |place| {
        let there = places.chip_slot(place.chip, place.port);
        let link = wiring.link(place.chip, place.port);
        let link = link.map(|link| &topology.links[link as usize]);
        let cycles = link.map_or(window, |link| length::cycles(link, options));
        let slot = slot_for(&mut exchanges, place.partition, there, cycles);
        (
            slot,
            link.map_or(Pace::default(), |link| Pace::of(link.rate)),
        )
    });
    let (routers, chips) = routers(topology, wiring, places, options, &mut exchanges)?;
    let parts = exchanges.into_iter().zip(routers).zip(chips).zip(terminals);
    let partitions = (0..)
        .zip(parts)
        .map(|(number, (((mut exchange, routers), chips), terminals))| {
            exchange.finish(longest);
            let shared = shared.clone();
            Partition::new(
                number,
                routers,
                chips,
                terminals,
                shared,
                exchange,
                *partitions,
            )
        })
        .collect();
    Ok(Partitioned {
        partitions,
        kinds: kinds(topology, wiring),
        senders: prepared.senders,
        stride: window,
        longest,
        slowest: length::slowest(topology),
    })
}

/// The slot in partition `here` that what goes to slot `there` over a link of `cycles` cycles is
/// written to.
fn slot_for(exchanges: &mut [Exchange], here: u32, there: (u32, u32), cycles: u32) -> u32 {
    let exchange = &mut exchanges[here as usize];
    if there.0 == here && cycles as usize == exchange.window {
        there.1
    } else {
        exchange.add_ghost(there, cycles)
    }
}

/// The same network as nodes behind encoded links.
pub(super) fn encoded(
    topology: &FoldedClos,
    (config, options): (&Config, &BlackWidowOptions),
    netem: Option<Netem>,
    partitions: usize,
) -> Result<Partitioned<BlackWidow>, ConfigError> {
    let mut prepared = Prepared::new(topology, (config, options), partitions)?;
    prepared.shared.format.seal = Seal::Crc;
    let terminals = prepared.terminals(config.seed, HELD_BACK, |_| (NO_SLOT, Pace::default()));
    let Prepared {
        wiring,
        places,
        shared,
        senders,
        ..
    } = prepared;
    let mut builder = Builder::new(config.seed, shared, terminals);
    let nodes = add_nodes(topology, &places, config.seed, &mut builder)?;
    let (shortest, longest) = length::window_and_longest(topology, options);
    for (number, link) in (0u32..).zip(&topology.links) {
        let latency = BlackWidow::CYCLE.times(length::cycles(link, options).into());
        let ends = [link.a, link.b].map(|end| nodes.of(end));
        builder.connect(number, ends, latency, netem);
    }
    Ok(Partitioned {
        partitions: builder.finish(shortest as usize),
        kinds: kinds(topology, &wiring),
        senders,
        stride: shortest,
        longest,
        slowest: length::slowest(topology),
    })
}

/// Where every chip and every terminal went, the latter slice by slice.
struct Nodes {
    chips: Vec<Place>,
    terminals: Vec<Place>,
    processors: usize,
}

impl Nodes {
    /// Node and port there of a link's end.
    fn of(&self, end: End) -> (Place, u8) {
        match end.node {
            NodeRef::Chip(chip) => (self.chips[chip as usize], end.port),
            NodeRef::Processor(processor) => {
                let terminal = usize::from(end.port) * self.processors + processor as usize;
                (self.terminals[terminal], 0)
            }
        }
    }
}

fn add_nodes(
    topology: &FoldedClos,
    places: &Places,
    seed: u64,
    builder: &mut Builder<BlackWidow>,
) -> Result<Nodes, ConfigError> {
    let runtime = Runtime {
        // The chip's own depths and time: what is simulated is the machine, not a lab.
        clock: Some(Clock::Paced { dilation: 1 }),
        profile: Some(Profile::Paper),
        seed,
        ..Runtime::new(&topology.name, 1)
    };
    let mut order: Vec<usize> = (0..topology.chips.len()).collect();
    order.sort_by_key(|&chip| places.chips[chip]);
    let mut chips = vec![Place::NOWHERE; order.len()];
    for chip in order {
        let config = topology.plan_router(chip as u32, &runtime)?;
        let (partition, _) = places.chips[chip];
        let router = Yarc::new(config, Time::ZERO);
        chips[chip] = builder.add_router(partition, chip as u32, router);
    }
    let processors = topology.processors.len();
    let mut terminals = vec![Place::NOWHERE; places.terminals.len()];
    for index in 0..processors {
        let config = topology.plan_nic(index as u32, &runtime)?;
        for (slice, link) in config.ports().iter().enumerate() {
            let number = slice * processors + index;
            let place = places.terminals[number].ok_or(ConfigError::Topology)?;
            let (partition, own) = (place.partition, place.number);
            terminals[number] = builder.add_terminal(partition, own, link.clone());
        }
    }
    Ok(Nodes {
        chips,
        terminals,
        processors,
    })
}

/// Kinds of the links of all chips' ports.
fn kinds(topology: &FoldedClos, wiring: &ClosWiring) -> Vec<Option<PortUse>> {
    let ports = (0..topology.chips.len() as u32)
        .flat_map(|chip| (0..PORTS as u8).map(move |port| (chip, port)));
    ports
        .map(|(chip, port)| {
            let neighbour = wiring.neighbour(chip, port)?;
            Some(kind(topology, wiring, (chip, port), neighbour))
        })
        .collect()
}

fn kind(
    topology: &FoldedClos,
    wiring: &ClosWiring,
    (chip, port): (u32, u8),
    neighbour: Neighbour,
) -> PortUse {
    let Neighbour::Router(router, far) = neighbour else {
        return PortUse::Ejection;
    };
    let end = |chip, port| End {
        node: NodeRef::Chip(chip),
        port,
    };
    match topology.kind_of(end(chip, port), end(wiring.chip_of(router), far)) {
        PortKind::Up => PortUse::Link(0),
        PortKind::Side => PortUse::Link(1),
        PortKind::Down => PortUse::Link(2),
    }
}

fn shared(topology: &FoldedClos, config: &Config, destinations: Destinations) -> Shared {
    let traffic = &config.traffic;
    let format = Format {
        numbers: topology.processors.iter().map(|p| p.number).collect(),
        request_phits: write_phits(usize::from(traffic.message_bytes)),
        seal: Seal::Key,
        hashed_ways: topology.chips.iter().any(|chip| {
            chip.routers
                .iter()
                .any(|router| router.registers.table.iter().any(|e| e.ports != 0))
        }),
    };
    let births = Births::new(traffic, BlackWidow::message_phits(traffic), 1);
    Shared::new(births, destinations, traffic.request_reply, format)
}

type DirectRouters = (Vec<Vec<DirectRouter>>, Vec<Vec<u32>>);

/// The chips of every partition, joined by their links.
fn routers(
    topology: &FoldedClos,
    wiring: &ClosWiring,
    places: &Places,
    options: &BlackWidowOptions,
    exchanges: &mut [Exchange],
) -> Result<DirectRouters, ConfigError> {
    let mut terminal_at = vec![NO_SLOT; topology.chips.len() * PORTS];
    for (number, place) in (0u32..).zip(&places.terminals) {
        if let Some(place) = place {
            terminal_at[place.chip as usize * PORTS + usize::from(place.port)] = number;
        }
    }
    let mut routers: Vec<Vec<Option<DirectRouter>>> = Vec::new();
    let mut chips: Vec<Vec<u32>> = Vec::new();
    for partition in 0..exchanges.len() as u32 {
        let count = places.chips.iter().filter(|c| c.0 == partition).count();
        routers.push((0..count).map(|_| None).collect());
        chips.push(vec![0; count]);
    }
    for (chip, registers) in (0u32..).zip(topology.all_chip_registers()) {
        let (partition, number) = places.chips[chip as usize];
        let mut router = DirectRouter::new(registers);
        for port in 0..PORTS as u8 {
            let at = chip as usize * PORTS + usize::from(port);
            let Some(neighbour) = wiring.neighbour(chip, port) else {
                continue;
            };
            let (there, slot) = match neighbour {
                Neighbour::Processor(_) => {
                    let terminal = places.terminals.get(terminal_at[at] as usize);
                    let place = terminal.copied().flatten().ok_or(ConfigError::Topology)?;
                    let exchange = &exchanges[place.partition as usize];
                    let slot = exchange.terminal_slot(place.number as usize);
                    (place.partition, slot)
                }
                Neighbour::Router(router, far) => places.chip_slot(wiring.chip_of(router), far),
            };
            let link = wiring.link(chip, port).ok_or(ConfigError::Topology)?;
            let link = &topology.links[link as usize];
            let cycles = length::cycles(link, options);
            let slot = slot_for(exchanges, partition, (there, slot), cycles);
            router.connect(usize::from(port), slot, Pace::of(link.rate));
        }
        routers[partition as usize][number as usize] = Some(router);
        chips[partition as usize][number as usize] = chip;
    }
    let whole = routers
        .into_iter()
        .map(|part| part.into_iter().flatten().collect());
    Ok((whole.collect(), chips))
}

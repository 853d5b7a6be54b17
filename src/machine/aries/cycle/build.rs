//! From a dragonfly to partitions.

use super::direct_router::DirectRouter;
use super::options::refused;
use super::packet::request_flits;
use super::terminal::Terminal;
use super::{Aries, AriesOptions, Format, NIC_LANES};
use crate::link::impair::Netem;
use crate::machine::aries::route::registers::{PORTS, PortKind};
use crate::machine::aries::router;
use crate::machine::aries::router::pipeline::LOAD_CYCLES;
use crate::machine::aries::topology::{Dragonfly, DragonflyWiring, Far, Faults};
use crate::net::{Clock, End, NodeRef, Profile, Runtime};
use crate::nic;
use crate::sim::direct::config::{Config, ConfigError};
use crate::sim::direct::encoded::build::{Builder, Place};
use crate::sim::direct::model::{CycleModel as _, NO_SLOT, Partitioned, PortUse};
use crate::sim::direct::partition::{HELD_BACK, Partition};
use crate::sim::direct::pattern::{Destinations, Pattern, Population, Rule};
use crate::sim::direct::source::{Births, Source};
use crate::time::Time;
use phitwire_framing::aries::flit::Routing;

type Exchange = crate::sim::direct::exchange::Exchange<Aries>;
type Shared = crate::sim::direct::shared::Shared<Aries>;

/// Where routers and NICs went.
struct Places {
    partitions: usize,
    /// Partition and number there of each router.
    chips: Vec<(u32, u32)>,
    /// The same of each NIC; `None` for those that are not there.
    terminals: Vec<Option<(u32, u32)>>,
    /// Kind of the shortest links that lead from one partition to another.
    cut: PortKind,
}

impl Places {
    /// Networks are cut where links are longest: between groups, or else chassis, or else routers.
    fn new(topology: &Dragonfly, partitions: usize) -> Self {
        let shape = &topology.shape;
        let blades = usize::from(shape.blades);
        let (size, cut) = if shape.groups > 1 {
            (shape.group_routers(), PortKind::Blue)
        } else if shape.chassis > 1 {
            (blades, PortKind::Black)
        } else {
            (1, PortKind::Green)
        };
        let units = shape.routers().div_ceil(size);
        let partitions = partitions.clamp(1, units.max(1));
        let mut numbers = vec![0; partitions];
        let mut enter = |router: u32| {
            let partition = router as usize / size * partitions / units;
            let number = numbers[partition];
            numbers[partition] += 1;
            (partition as u32, number)
        };
        // Routers that are absent are there, with nothing to do.
        let chips: Vec<_> = (0..shape.routers() as u32).map(&mut enter).collect();
        let mut numbers = vec![0; partitions];
        let mut terminals = vec![None; shape.all_nics()];
        for nic in topology.nics() {
            let (partition, _) = chips[nic as usize / usize::from(shape.nics)];
            let number = &mut numbers[partition as usize];
            terminals[nic as usize] = Some((partition, *number));
            *number += 1;
        }
        Self {
            partitions,
            chips,
            terminals,
            cut,
        }
    }

    fn chip_slot(&self, router: u32, port: u8) -> (u32, u32) {
        let (partition, number) = self.chips[router as usize];
        let slot = Exchange::chip_slot(number as usize, usize::from(port));
        (partition, slot)
    }

    fn exchanges(&self, window: u32) -> Vec<Exchange> {
        let partitions = 0..self.partitions as u32;
        partitions
            .map(|partition| {
                let of = |place: &&(u32, u32)| place.0 == partition;
                let chips = self.chips.iter().filter(of).count();
                let terminals = self.terminals.iter().flatten().filter(of).count();
                Exchange::new(partition, window as usize, chips, terminals)
            })
            .collect()
    }
}

/// Cuts `topology` into the configured number of partitions, at least one.
pub(super) fn direct(
    topology: &Dragonfly,
    (config, options): (&Config, AriesOptions),
    partitions: usize,
) -> Result<Partitioned<Aries>, ConfigError> {
    config.validate(Aries::MAX_MESSAGE_BYTES)?;
    options.validate()?;
    let places = Places::new(topology, partitions);
    let window = options.window();
    let round = (options.cycles(places.cut) / window).max(1);
    let mut exchanges = places.exchanges(window);
    let destinations = destinations(topology, config)?;
    let shared = shared(topology, (config, options), destinations);
    let mut senders = 0;
    let mut links = Links {
        config,
        options,
        places: &places,
        exchanges: &mut exchanges,
    };
    let terminals = terminals(topology, &mut links, &shared, &mut senders);
    let wiring = DragonflyWiring::new(topology);
    let (routers, chips) = routers(topology, &wiring, &mut links);
    let parts = exchanges.into_iter().zip(routers).zip(chips).zip(terminals);
    let count = places.partitions;
    let partitions = (0..)
        .zip(parts)
        .map(|(number, (((mut exchange, routers), chips), terminals))| {
            exchange.finish(options.longest());
            let shared = shared.clone();
            Partition::new(number, routers, chips, terminals, shared, exchange, count)
                .with_round(round.into())
        })
        .collect();
    Ok(Partitioned {
        partitions,
        kinds: kinds(topology, &wiring),
        senders,
        stride: window * round,
        longest: options.longest(),
        // Nine flits in ten cycles.
        slowest: 1,
    })
}

/// The same network as nodes behind encoded links. A NIC's link is one like any other there.
pub(super) fn encoded(
    topology: &Dragonfly,
    (config, options): (&Config, AriesOptions),
    netem: Option<Netem>,
    partitions: usize,
) -> Result<Partitioned<Aries>, ConfigError> {
    config.validate(Aries::MAX_MESSAGE_BYTES)?;
    options.validate()?;
    // The window is what frames take at least.
    let window = options.window() - LOAD_CYCLES as u32;
    if window == 0 {
        return Err(refused(options.window()));
    }
    let places = Places::new(topology, partitions);
    let shared = shared(topology, (config, options), destinations(topology, config)?);
    let mut senders = 0;
    let mut terminals: Vec<Vec<Terminal>> = (0..places.partitions).map(|_| Vec::new()).collect();
    for (number, nic) in (0u64..).zip(topology.nics()) {
        let (partition, _) = places.terminals[nic as usize].ok_or(ConfigError::Topology)?;
        let terminal = terminal(
            config.seed,
            &shared,
            number,
            HELD_BACK,
            NO_SLOT,
            &mut senders,
        );
        terminals[partition as usize].push(terminal);
    }
    let mut builder = Builder::new(config.seed, shared, terminals);
    let wiring = DragonflyWiring::new(topology);
    let overtake = netem.is_some_and(|netem| netem.may_overtake());
    let nodes = add_nodes(
        topology,
        &wiring,
        &places,
        (config, options, overtake),
        &mut builder,
    )?;
    let place = |end: End| match end.node {
        NodeRef::Chip(router) => (nodes[0][router as usize], end.port),
        NodeRef::Processor(nic) => (nodes[1][nic as usize], 0),
    };
    for (number, link) in (0u32..).zip(&topology.links) {
        let kind = topology.kind(link).ok_or(ConfigError::Topology)?;
        // Gathering a set is the link control block's own time.
        let cycles = options.cycles(kind) - LOAD_CYCLES as u32;
        let latency = Aries::CYCLE.times(cycles.into());
        builder.connect(number, [link.a, link.b].map(place), latency, netem);
    }
    Ok(Partitioned {
        partitions: builder.finish(window as usize),
        kinds: kinds(topology, &wiring),
        senders,
        stride: window,
        longest: options.longest(),
        slowest: 1,
    })
}

/// Adds routers and NICs; where each went, by its number.
fn add_nodes(
    topology: &Dragonfly,
    wiring: &DragonflyWiring,
    places: &Places,
    (config, options, frames_overtake): (&Config, AriesOptions, bool),
    builder: &mut Builder<Aries>,
) -> Result<[Vec<Place>; 2], ConfigError> {
    let runtime = Runtime {
        // The chip's own depths and time: what is simulated is the machine, not a lab.
        clock: Some(Clock::Paced { dilation: 1 }),
        grain: Some(options.grain),
        frames_overtake,
        profile: Some(Profile::Paper),
        seed: config.seed,
        ..Runtime::new(&topology.name, 1)
    };
    let mut routers = vec![Place::NOWHERE; places.chips.len()];
    let registers = topology.route_with(wiring, &Faults::default()).registers;
    for (router, registers) in (0u32..).zip(registers) {
        if !topology.has(NodeRef::Chip(router)) {
            continue;
        }
        let plan = topology.plan_router(router, registers, &runtime)?;
        let (partition, _) = places.chips[router as usize];
        let mut node = router::Aries::new(plan, Time::ZERO);
        node.seed(config.seed);
        routers[router as usize] = builder.add_router(partition, router, node);
    }
    let mut nics = vec![Place::NOWHERE; places.terminals.len()];
    for nic in topology.nics() {
        let plan = topology.plan_nic(nic, &runtime)?;
        let (partition, number) = places.terminals[nic as usize].ok_or(ConfigError::Topology)?;
        nics[nic as usize] = builder.add_terminal(partition, number, plan.link().clone());
    }
    Ok([routers, nics])
}

fn shared(
    topology: &Dragonfly,
    (config, options): (&Config, AriesOptions),
    destinations: Destinations,
) -> Shared {
    let traffic = &config.traffic;
    let nodes = topology
        .nics()
        .map(|nic| topology.shape.node_id(nic).bits());
    let format = Format {
        nodes: nodes.collect::<Vec<_>>().into(),
        request_flits: request_flits(usize::from(traffic.message_bytes)),
        routing: options.routing,
        outstanding: topology.settings.outstanding as usize,
    };
    let births = Births::new(traffic, Aries::message_phits(traffic), NIC_LANES);
    Shared::new(births, destinations, traffic.request_reply, format)
}

/// The pattern of the traffic over the NICs that are there.
fn destinations(topology: &Dragonfly, config: &Config) -> Result<Destinations, ConfigError> {
    let numbers: Vec<u32> = topology.nics().collect();
    let population = Population {
        numbers: &numbers,
        slices: 1,
    };
    Destinations::new(
        &config.traffic,
        population,
        config.seed,
        |pattern, participants| {
            let routers = numbers[..participants as usize]
                .iter()
                .map(|nic| nic / u32::from(topology.shape.nics));
            (*pattern == Pattern::Common(nic::Pattern::GroupAdversarial))
                .then(|| Rule::next_group(routers.map(|r| topology.shape.group_of(r))))
        },
    )
}

/// What links are made with.
struct Links<'a> {
    config: &'a Config,
    options: AriesOptions,
    places: &'a Places,
    exchanges: &'a mut [Exchange],
}

impl Links<'_> {
    /// The slot in partition `here` that what goes to slot `there` over a link of `kind` is written
    /// to.
    fn slot(&mut self, here: u32, there: (u32, u32), kind: PortKind) -> u32 {
        let cycles = self.options.cycles(kind);
        let exchange = &mut self.exchanges[here as usize];
        if there.0 == here && cycles as usize == exchange.window {
            return there.1;
        }
        let lanes = if kind == PortKind::Processor {
            NIC_LANES
        } else {
            1
        };
        let first = exchange.add_ghost(there, cycles);
        for lane in 1..lanes as u32 {
            exchange.add_ghost((there.0, there.1 + lane), cycles);
        }
        first
    }
}

fn terminals(
    topology: &Dragonfly,
    links: &mut Links<'_>,
    shared: &Shared,
    senders: &mut u64,
) -> Vec<Vec<Terminal>> {
    let mut terminals: Vec<Vec<Terminal>> =
        (0..links.places.partitions).map(|_| Vec::new()).collect();
    for (number, nic) in (0u64..).zip(topology.nics()) {
        let (_, router) = topology.nic_ends(nic);
        let at = nic / u32::from(topology.shape.nics);
        let there = links.places.chip_slot(at, router.port);
        let peer = links.slot(there.0, there, PortKind::Processor);
        let terminal = terminal(links.config.seed, shared, number, 0, peer, senders);
        terminals[there.0 as usize].push(terminal);
    }
    terminals
}

/// A terminal whose source begins in cycle `begin` and whose link ends at slot `peer`. Counts it if
/// it sends.
fn terminal(
    seed: u64,
    shared: &Shared,
    number: u64,
    begin: u64,
    peer: u32,
    senders: &mut u64,
) -> Terminal {
    let ordered = matches!(
        shared.format.routing,
        Routing::Ordered | Routing::OrderedNonMinimal
    );
    let silent = shared.destinations.is_silent(number);
    *senders += u64::from(!silent);
    let mut source = Source::new(seed, number, silent, &shared.births);
    source.reschedule(0, begin);
    let node = shared.format.nodes[number as usize];
    Terminal::new(number, node, peer, source, ordered)
}

/// Kinds of the links of all routers' ports.
fn kinds(topology: &Dragonfly, wiring: &DragonflyWiring) -> Vec<Option<PortUse>> {
    let routers = 0..topology.shape.routers() as u32;
    let ports = routers.flat_map(|router| (0..PORTS as u8).map(move |port| (router, port)));
    let kind = |(router, port)| match (wiring.far(router, port)?, wiring.kind(router, port)?) {
        (Far::Nic(_), _) => Some(PortUse::Ejection),
        (Far::Router(..), kind) => Some(PortUse::Link(kind as u8 - PortKind::Green as u8)),
    };
    ports.map(kind).collect()
}

type DirectRouters = (Vec<Vec<DirectRouter>>, Vec<Vec<u32>>);

/// The routers of every partition, joined by their links.
fn routers(topology: &Dragonfly, wiring: &DragonflyWiring, links: &mut Links<'_>) -> DirectRouters {
    let registers = topology.route_with(wiring, &Faults::default()).registers;
    let mut routers: Vec<Vec<DirectRouter>> =
        (0..links.places.partitions).map(|_| Vec::new()).collect();
    let mut chips: Vec<Vec<u32>> = vec![Vec::new(); links.places.partitions];
    for (router, registers) in (0u32..).zip(registers) {
        let (partition, _) = links.places.chips[router as usize];
        let mut node = DirectRouter::new(registers, links.config.seed, links.options.grain);
        for port in 0..PORTS as u8 {
            let (Some(far), Some(kind)) = (wiring.far(router, port), wiring.kind(router, port))
            else {
                continue;
            };
            let there = match far {
                Far::Nic(nic) => {
                    let Some((partition, number)) = links.places.terminals[nic as usize] else {
                        continue;
                    };
                    let exchange = &links.exchanges[partition as usize];
                    let slot = exchange.terminal_slot(number as usize);
                    (partition, slot)
                }
                Far::Router(far, port) => links.places.chip_slot(far, port),
            };
            let slot = links.slot(partition, there, kind);
            debug_assert_ne!(slot, NO_SLOT);
            node.connect(usize::from(port), slot, links.options.cycles(kind));
        }
        routers[partition as usize].push(node);
        chips[partition as usize].push(router);
    }
    (routers, chips)
}

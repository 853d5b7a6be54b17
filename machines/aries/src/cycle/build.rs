//! Builds partitions of a dragonfly.

use super::direct_router::DirectRouter;
use super::options::refused;
use super::packet::request_flits;
use super::terminal::{Order, Terminal};
use super::{Aries, AriesOptions, Format};
use crate::link::AriesLinkConfig;
use crate::route::registers::{AriesRegisters, PORTS, PortKind};
use crate::router;
use crate::router::pace::Pace;
use crate::router::pipeline::LOAD_CYCLES;
use crate::topology::{Dragonfly, Faults};
use phitwire::link::impair::Netem;
use phitwire::net::{NodeRef, PlanError, Runtime};
use phitwire::nic;
use phitwire::sim::direct::build::{self, DirectLinks, Windows};
use phitwire::sim::direct::config::{Config, ConfigError};
use phitwire::sim::direct::encoded::build as encoded;
use phitwire::sim::direct::model::{CycleModel as _, Lanes as _, Partitioned, PortUse};
use phitwire::sim::direct::pattern::{Destinations, Pattern, Population, Rule};
use phitwire::sim::direct::placement::{Numbers, Placement, kinds};
use phitwire::sim::direct::source::{Births, HELD_BACK};
use phitwire::sim::direct::{DirectPart, EncodedPart};
use phitwire::time::Time;
use phitwire_framing::aries::set::DATA_FLITS;

type Shared = phitwire::sim::direct::shared::Shared<Aries>;

/// Latency of a link's wire in cycles, without the time to gather a set, which the link control
/// block adds.
pub(super) fn wire_cycles(
    topology: &Dragonfly,
    options: &AriesOptions,
    link: usize,
) -> Result<u32, ConfigError> {
    options.validate()?;
    let kind = topology.kind(&topology.links[link]);
    let kind = kind.ok_or(ConfigError::Topology)?;
    let gathering = match kind {
        PortKind::Processor => Pace::NIC.cycles_for(0, DATA_FLITS as u64),
        _ => LOAD_CYCLES,
    };
    Ok(options.cycles(kind) - gathering as u32)
}

/// Assigns routers and NICs to partitions, and returns the kind of the shortest links between
/// partitions. A network is cut at its longest links: between groups if possible, otherwise between
/// chassis or routers.
fn placement(topology: &Dragonfly, partitions: usize) -> (Placement, PortKind) {
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
    let mut numbers = Numbers::new(partitions);
    // Absent routers are included, but have no work.
    let chips: Vec<_> = (0..shape.routers())
        .map(|router| numbers.enter((router / size * partitions / units) as u32))
        .collect();
    let mut numbers = Numbers::new(partitions);
    let nics = shape.all_nics();
    let mut terminals = vec![None; nics];
    for nic in topology.nics() {
        let (partition, _) = chips[nic as usize / usize::from(shape.nics)];
        terminals[nic as usize] = Some(numbers.enter(partition));
    }
    let placement = Placement {
        partitions,
        chips,
        terminals,
        nics,
    };
    (placement, cut)
}

/// Builds and joins the nodes of a dragonfly.
struct Nodes<'a> {
    topology: &'a Dragonfly,
    seed: u64,
    options: AriesOptions,
    registers: Vec<AriesRegisters>,
}

impl<'a> Nodes<'a> {
    fn new(
        topology: &'a Dragonfly,
        (config, options): (&Config, AriesOptions),
    ) -> Result<Self, ConfigError> {
        config.validate(Aries::MAX_MESSAGE_BYTES)?;
        options.validate()?;
        Ok(Self {
            topology,
            seed: config.seed,
            options,
            registers: topology.route(&Faults::default()).registers,
        })
    }

    fn kind(&self, link: usize) -> Option<PortKind> {
        self.topology.kind(&self.topology.links[link])
    }

    fn kinds(&self) -> Vec<Option<PortUse>> {
        let kind = |_, _, link| {
            let kind = self.kind(link).unwrap_or(PortKind::Green);
            kind as u8 - PortKind::Green as u8
        };
        kinds(self.topology, (self.topology.shape.routers(), PORTS), kind)
    }
}

impl DirectLinks<Aries> for Nodes<'_> {
    fn cycles(&self, link: usize) -> Result<u32, ConfigError> {
        let kind = self.kind(link).ok_or(ConfigError::Topology)?;
        Ok(self.options.cycles(kind))
    }

    fn connect(&self, router: &mut DirectRouter, port: usize, slot: u32, link: usize) {
        let kind = self.kind(link).unwrap_or(PortKind::Green);
        let pace = match kind {
            PortKind::Processor => Pace::NIC,
            kind => Pace::of_port(self.topology.settings.own.rate_of(kind)),
        };
        router.connect(port, slot, self.options.cycles(kind), pace);
    }
}

impl encoded::Nodes<Aries> for Nodes<'_> {
    fn router(&self, chip: u32, runtime: &Runtime) -> Result<Option<router::Aries>, PlanError> {
        if !self.topology.has(NodeRef::Chip(chip)) {
            return Ok(None);
        }
        let registers = self.registers[chip as usize].clone();
        let plan = self.topology.plan_router(chip, registers, runtime)?;
        let mut node = router::Aries::new(plan, Time::ZERO);
        node.core_mut().seed(self.seed);
        Ok(Some(node))
    }

    /// A NIC has a single link.
    fn links(&self, nic: u32, runtime: &Runtime) -> Result<Vec<AriesLinkConfig>, PlanError> {
        let plan = self.topology.plan_nic(nic, runtime)?;
        Ok(vec![plan.link().clone()])
    }

    fn runtime(&self, usual: Runtime) -> Runtime {
        Runtime {
            grain: Some(self.options.grain),
            ..usual
        }
    }
}

/// Cuts `topology` into the configured number of partitions, at least one.
pub(super) fn direct(
    topology: &Dragonfly,
    (config, options): (&Config, AriesOptions),
    partitions: usize,
) -> Result<Partitioned<DirectPart<Aries>>, ConfigError> {
    let mut nodes = Nodes::new(topology, (config, options))?;
    let (placement, cut) = placement(topology, partitions);
    let shared = shared(topology, (config, options))?;
    let registers = core::mem::take(&mut nodes.registers).into_iter();
    let routers = registers.map(|own| DirectRouter::new(own, config.seed, options.grain));
    let made = (
        routers.collect(),
        terminals(&placement, (config.seed, 0), &shared),
    );
    let (window, longest) = (options.window(), options.longest());
    let round = (options.cycles(cut) / window).max(1);
    let windows = Windows {
        window,
        longest,
        round,
    };
    Ok(Partitioned {
        parts: build::direct(topology, &placement, &nodes, made, &shared, windows)?,
        kinds: nodes.kinds(),
        stride: window * round,
        longest,
        // Nine flits in ten cycles.
        slowest: 1,
    })
}

/// Builds the network from nodes with encoded links.
pub(super) fn encoded(
    topology: &Dragonfly,
    (config, options): (&Config, AriesOptions),
    netem: Option<Netem>,
    partitions: usize,
) -> Result<Partitioned<EncodedPart<Aries>>, ConfigError> {
    let nodes = Nodes::new(topology, (config, options))?;
    // The window is the shortest flight time of a frame.
    let window = options.window() - LOAD_CYCLES as u32;
    if window == 0 {
        return Err(refused(options.window()));
    }
    let (placement, _) = placement(topology, partitions);
    let shared = shared(topology, (config, options))?;
    let terminals = terminals(&placement, (config.seed, HELD_BACK), &shared);
    let (how, traffic) = ((config.seed, netem), (shared, terminals));
    Ok(Partitioned {
        parts: encoded::encoded(
            topology,
            &placement,
            &nodes,
            how,
            traffic,
            (&options, window),
        )?,
        kinds: nodes.kinds(),
        stride: window,
        longest: options.longest(),
        slowest: 1,
    })
}

fn shared(
    topology: &Dragonfly,
    (config, options): (&Config, AriesOptions),
) -> Result<Shared, ConfigError> {
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
    let births = Births::new(traffic, Aries::message_phits(traffic), Aries::TERMINAL_RATE);
    let destinations = destinations(topology, config)?;
    Ok(Shared::new(
        births,
        destinations,
        traffic.request_reply,
        format,
    ))
}

fn destinations(topology: &Dragonfly, config: &Config) -> Result<Destinations, ConfigError> {
    let numbers: Vec<u32> = topology.nics().collect();
    let population = Population {
        numbers: &numbers,
        slices: 1,
        grid: None,
    };
    Destinations::new(
        &config.traffic,
        population,
        config.seed,
        |pattern, participants| {
            let routers = numbers[..participants as usize]
                .iter()
                .map(|nic| nic / u32::from(topology.shape.nics));
            (*pattern == Pattern::Common(nic::TrafficPattern::GroupAdversarial))
                .then(|| Rule::next_group(routers.map(|r| topology.shape.group_of(r))))
        },
    )
}

/// Builds the terminals of each partition, whose sources start in cycle `begin`.
fn terminals(
    placement: &Placement,
    (seed, begin): (u64, u64),
    shared: &Shared,
) -> Vec<Vec<Terminal>> {
    let order = Order::of(shared.format.routing);
    let mut nodes = (0..).zip(shared.format.nodes.iter());
    placement.terminals(|_| {
        let (number, &node) = nodes.next().expect("a node for every terminal");
        Terminal::new(number, node, shared.source(seed, number, begin), order)
    })
}

use super::direct_router::DirectRouter;
use super::terminal::{Format, Terminal};
use super::{T3e, T3eOptions};
use crate::link::FlitLinkConfig;
use crate::router::{LINK_CYCLES, PORTS, PROCESSOR_CYCLES, T3eRouter};
use crate::topology::Torus;
use phitwire::chip::Grain;
use phitwire::link::impair::Netem;
use phitwire::net::{End, Network as _, NodeRef, PlanError, Profile, Runtime};
use phitwire::sim::direct::Grid;
use phitwire::sim::direct::build::{self, DirectLinks, Windows};
use phitwire::sim::direct::config::{Config, ConfigError};
use phitwire::sim::direct::encoded::build as encoded;
use phitwire::sim::direct::encoded::network::placement;
use phitwire::sim::direct::model::{CycleModel as _, Partitioned, PortUse};
use phitwire::sim::direct::pattern::{Destinations, Population};
use phitwire::sim::direct::placement::{Placement, kinds};
use phitwire::sim::direct::source::{Births, HELD_BACK, Source};
use phitwire::sim::direct::{DirectPart, EncodedPart};
use phitwire::time::Time;

type Shared = phitwire::sim::direct::shared::Shared<T3e>;

/// The simulated torus (the description with the options applied), and the grain of its routers.
pub(super) struct SimulatedTorus(pub(super) Torus, pub(super) Grain);

impl SimulatedTorus {
    pub(super) fn new(topology: &Torus, options: &T3eOptions) -> Self {
        let torus = topology.choosing(options.adaptive, options.channels);
        Self(torus, options.grain)
    }

    /// The kind of each port's link: its dimension.
    fn kinds(&self) -> Vec<Option<PortUse>> {
        let chips = self.0.shape().nodes() as usize;
        kinds(&self.0, (chips, PORTS), |end, _, _| end.port % 3)
    }
}

/// Latency of a link in cycles.
pub(super) fn cycles(topology: &Torus, link: usize) -> u32 {
    let (a, b) = topology.ends(link);
    let is_processor = |end: End| matches!(end.node, NodeRef::Processor(_));
    match is_processor(a) || is_processor(b) {
        true => PROCESSOR_CYCLES as u32,
        false => LINK_CYCLES as u32,
    }
}

impl DirectLinks<T3e> for SimulatedTorus {
    fn cycles(&self, link: usize) -> Result<u32, ConfigError> {
        Ok(cycles(&self.0, link))
    }

    fn connect(&self, router: &mut DirectRouter, port: usize, slot: u32, _: usize) {
        router.connect(port, slot);
    }
}

impl encoded::Nodes<T3e> for SimulatedTorus {
    fn router(&self, chip: u32, runtime: &Runtime) -> Result<Option<T3eRouter>, PlanError> {
        let config = self.0.router(chip, runtime)?;
        Ok(Some(T3eRouter::new(config, Time::ZERO)))
    }

    fn links(&self, nic: u32, runtime: &Runtime) -> Result<Vec<FlitLinkConfig>, PlanError> {
        let ports = self.0.ports(NodeRef::Processor(nic), runtime)?;
        Ok(ports.into_iter().map(|(_, link)| link).collect())
    }

    fn runtime(&self, usual: Runtime) -> Runtime {
        Runtime {
            grain: Some(self.1),
            ..usual
        }
    }
}

/// Cuts `topology` into the given number of partitions, at least one.
pub(super) fn direct(
    topology: &Torus,
    (config, options): (&Config, &T3eOptions),
    partitions: usize,
) -> Result<Partitioned<DirectPart<T3e>>, ConfigError> {
    config.validate(T3e::MAX_MESSAGE_BYTES)?;
    if options.grain == Grain::Packet {
        let why = "--grain packet: ideal links move single flits; add --links encoded";
        return Err(ConfigError::Refused(why.to_owned()));
    }
    let of = SimulatedTorus::new(topology, options);
    let placement = placement(&of.0, partitions)?;
    let shared = shared(&of.0, (config, options))?;
    let registers = of.0.registers().map_err(|_| ConfigError::Topology)?;
    let made = (
        registers.into_iter().map(DirectRouter::new).collect(),
        terminals(&of.0, &placement, (config.seed, 0), &shared),
    );
    let (window, longest) = (LINK_CYCLES as u32, PROCESSOR_CYCLES as u32);
    let windows = Windows {
        window,
        longest,
        round: 1,
    };
    Ok(Partitioned {
        parts: build::direct(&of.0, &placement, &of, made, &shared, windows)?,
        kinds: of.kinds(),
        stride: window,
        longest,
        slowest: 1,
    })
}

/// Builds the simulated network from nodes with encoded links.
pub(super) fn encoded(
    topology: &Torus,
    (config, options): (&Config, &T3eOptions),
    netem: Option<Netem>,
    partitions: usize,
) -> Result<Partitioned<EncodedPart<T3e>>, ConfigError> {
    config.validate(T3e::MAX_MESSAGE_BYTES)?;
    let of = SimulatedTorus::new(topology, options);
    let placement = placement(&of.0, partitions)?;
    let shared = shared(&of.0, (config, options))?;
    let terminals = terminals(&of.0, &placement, (config.seed, HELD_BACK), &shared);
    let (how, traffic) = ((config.seed, netem), (shared, terminals));
    let window = LINK_CYCLES as u32;
    Ok(Partitioned {
        parts: encoded::encoded(&of.0, &placement, &of, how, traffic, (options, window))?,
        kinds: of.kinds(),
        stride: window,
        longest: PROCESSOR_CYCLES as u32,
        slowest: 1,
    })
}

fn shared(
    topology: &Torus,
    (config, options): (&Config, &T3eOptions),
) -> Result<Shared, ConfigError> {
    let traffic = &config.traffic;
    let requests = options.requests(traffic)?;
    let (numbers, to) = destinations(topology, config)?;
    let format = Format {
        operation: options.operation,
        bytes: traffic.message_bytes,
        ordered: !topology.is_adaptive(),
        outstanding: topology.outstanding(Profile::Paper).min(requests) as usize,
        memory: options.memory_cycles(),
        numbers: numbers.iter().map(|&number| number as u16).collect(),
    };
    let [request, response] = format.commands().map(|command| command.flits());
    let flits = request + usize::from(traffic.request_reply) * response;
    let births = Births::new(traffic, flits, [1, 1]);
    Ok(Shared::new(births, to, traffic.request_reply, format))
}

/// The participating processors and their traffic, by index.
pub(super) fn destinations(
    topology: &Torus,
    config: &Config,
) -> Result<(Vec<u32>, Destinations), ConfigError> {
    let numbers = participants(topology);
    let grid = grid(topology, &numbers);
    let population = Population {
        numbers: &numbers,
        slices: 1,
        grid: Some(&grid),
    };
    let to = Destinations::new(&config.traffic, population, config.seed, |_, _| None)?;
    Ok((numbers, to))
}

/// The logical processors that send and receive: all but those at isolated nodes.
fn participants(topology: &Torus) -> Vec<u32> {
    let broken = topology.broken();
    let numbered = (0..).zip(topology.destinations());
    let linked = numbered.filter(|(_, node)| !broken.is_isolated(**node));
    linked.map(|(number, _)| number).collect()
}

/// Positions of the given processors, X first; partial planes are at the end of Z.
fn grid(topology: &Torus, numbers: &[u32]) -> Grid {
    let shape = topology.shape();
    let nodes = topology.destinations();
    let at = |&number: &u32| shape.coordinates(nodes[number as usize]).0.map(u16::from);
    let planes = shape.partial().iter().map(|block| u16::from(block[2]));
    let mut size = shape.size().map(u16::from);
    size[2] += planes.sum::<u16>();
    Grid::new(size, numbers.iter().map(at))
}

/// The index among the participants of the processor at a node, if it is one.
pub(super) fn index(topology: &Torus, node: u32) -> Option<u64> {
    let number = topology.processor(node)?;
    let mut numbers = participants(topology).into_iter();
    let index = numbers.position(|other| other == u32::from(number))?;
    Some(index as u64)
}

/// The terminals of every partition; their sources begin in cycle `begin`. Nodes without a
/// participating processor are silent.
fn terminals(
    topology: &Torus,
    placement: &Placement,
    (seed, begin): (u64, u64),
    shared: &Shared,
) -> Vec<Vec<Terminal>> {
    let mut by_node = vec![None; topology.shape().nodes() as usize];
    for (index, &number) in shared.format.numbers.iter().enumerate() {
        by_node[topology.destinations()[usize::from(number)] as usize] = Some(index);
    }
    let ordered = !topology.is_adaptive();
    placement.terminals(|node| match by_node[node] {
        Some(index) => {
            let source = shared.source(seed, index as u64, begin);
            let own = shared.format.numbers[index];
            Terminal::new((index as u64, own), source, ordered)
        }
        None => {
            let index = (by_node.len() + node) as u64;
            let source = Source::new(seed, index, true, &shared.births);
            Terminal::new((index, u16::MAX), source, ordered)
        }
    })
}

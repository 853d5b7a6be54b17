//! Messages of NICs between the processes of two hosts (XC white paper, "Aries Performance",
//! figures 11 to 15), by NICs, links and routers in the machine's time, as in `phitwire sim --op`.

mod figures;
#[cfg(test)]
mod tests;

pub use figures::{amo, figure11, figure12, figure13, figure14, figure15, hop};

use crate::cycle::{Aries, AriesOptions};
use crate::nic::HostTimes;
use crate::topology::{Dragonfly, DragonflySpec, Shape};
use phitwire::net::HostUse;
use phitwire::nic::{Operation, TrafficPattern, TrafficSpec};
use phitwire::sim::direct::CycleModel as _;
use phitwire::sim::{Measured, MessageOp, World};
use phitwire::time::Duration;
use phitwire_framing::aries::flit::Routing;

/// Time for the links to train.
const TRAINING: Duration = Duration::from_ms(10);
/// Maximum duration of a run.
const LIMIT: Duration = Duration::from_ms(100);

/// The network of figure 15: two groups, of which 750 nodes take part.
pub const FIGURE_15: Shape = Shape {
    groups: 2,
    chassis: 6,
    blades: 16,
    nics: 4,
};

/// A network and the times of its hosts. Each measurement is a separate run.
#[derive(Clone, Debug)]
pub struct Setup {
    pub shape: Shape,
    /// Blue links between two groups; `None`: as many as fit.
    pub blue: Option<u16>,
    pub host: HostTimes,
    /// Metres of cable: green, black and blue.
    pub metres: [u32; 3],
    pub seed: u64,
}

impl Setup {
    /// Two NICs of one router, with the hosts of the paper.
    pub fn pair(seed: u64) -> Self {
        Self {
            shape: Shape {
                groups: 1,
                chassis: 1,
                blades: 1,
                nics: 2,
            },
            blue: None,
            host: HostTimes::PAPER,
            metres: AriesOptions::METRES,
            seed,
        }
    }

    fn network(&self) -> Result<Dragonfly, String> {
        let spec = DragonflySpec {
            shape: self.shape,
            global_links: self.blue,
            ..DragonflySpec::default()
        };
        let mut network = spec.generate().map_err(|error| error.to_string())?;
        network.host = self.host;
        Ok(network)
    }

    fn world(&self) -> Result<World<Dragonfly>, String> {
        let network = self.network()?;
        let options = AriesOptions::with_metres(Routing::default(), self.metres);
        let wire = |link| Aries::wire_cycles(&network, &options, link);
        let wires: Result<Vec<_>, _> = (0..network.links.len())
            .map(|link| wire(link).map(|cycles| Aries::CYCLE.times(cycles.into())))
            .collect();
        let wires = wires.map_err(|error| error.to_string())?;
        let host = Some(HostUse::default());
        let world = World::with_hosts(Box::new(network), self.seed, &wires, host);
        let mut world = world.map_err(|error| error.to_string())?;
        match world.bring_up(TRAINING) {
            true => Ok(world),
            false => Err(world.link_states()),
        }
    }

    /// Nanoseconds of a message from the first NIC to the last, one at a time.
    fn latency_ns(&self, op: Operation, size: u32) -> Result<f64, String> {
        const COUNT: u64 = 50;
        let mut world = self.world()?;
        let spec = self.one_way(&world, op, size);
        let spec = TrafficSpec {
            window: 1,
            count: COUNT,
            ..spec
        };
        let measured = run(&mut world, &spec)?;
        Ok(measured.elapsed.as_ps() as f64 / 1e3 / COUNT as f64)
    }

    /// The longest time of an 8-byte put from a NIC of the first half to one of the second, and
    /// back, in nanoseconds: each pair alone.
    fn farthest_ns(&self) -> Result<f64, String> {
        const COUNT: u64 = 5;
        let mut world = self.world()?;
        let numbers = world.traffic_numbers();
        let (first, second) = numbers.split_at(numbers.len() / 2);
        let mut longest = 0.0_f64;
        let pairs = first
            .iter()
            .flat_map(|from| second.iter().map(move |to| (from, to)));
        for (run_number, (&from, &to)) in (1..).zip(pairs) {
            let spec = TrafficSpec {
                run: run_number,
                processors: vec![from],
                pattern: TrafficPattern::List {
                    destinations: vec![to],
                },
                window: 1,
                count: COUNT,
                ..self.one_way(&world, Operation::Put, 8)
            };
            let measured = run(&mut world, &spec)?;
            longest = longest.max(measured.elapsed.as_ps() as f64 / 1e3 / COUNT as f64);
        }
        Ok(longest)
    }

    fn one_way(&self, world: &World<Dragonfly>, op: Operation, size: u32) -> TrafficSpec {
        let numbers = world.traffic_numbers();
        let to = numbers.last().copied().unwrap_or_default();
        TrafficSpec {
            processors: numbers[..1].to_vec(),
            pattern: TrafficPattern::List {
                destinations: vec![to],
            },
            op,
            size,
            seed: self.seed,
            ..TrafficSpec::default()
        }
    }

    /// Messages per second of each source, in a run of `us` microseconds.
    fn rate(&self, load: Load, us: u64) -> Result<f64, String> {
        let mut world = self.world()?;
        let mut spec = self.one_way(&world, load.op, load.size);
        spec.window = load.window;
        spec.duration_ns = us * 1_000;
        if load.both_ways {
            let numbers = world.traffic_numbers();
            let ends = [numbers.first(), numbers.last()];
            spec.processors = ends.into_iter().flatten().copied().collect();
            spec.pattern = TrafficPattern::BitComplement;
        }
        let measured = run(&mut world, &spec)?;
        Ok(measured.per_second(MessageOp::Put))
    }
}

/// The messages of a source.
#[derive(Clone, Copy, Debug)]
struct Load {
    op: Operation,
    size: u32,
    window: u32,
    /// Whether the first and the last NIC send to each other.
    both_ways: bool,
}

impl Load {
    const fn puts(size: u32, window: u32) -> Self {
        Self {
            op: Operation::Put,
            size,
            window,
            both_ways: false,
        }
    }
}

fn run(world: &mut World<Dragonfly>, spec: &TrafficSpec) -> Result<Measured, String> {
    let measured = world.measure_traffic(spec, LIMIT);
    verified(measured.map_err(|error| error.to_string())?)
}

fn verified(measured: Measured) -> Result<Measured, String> {
    match measured.violations.first() {
        None => Ok(measured),
        Some(violation) => Err(violation.to_string()),
    }
}

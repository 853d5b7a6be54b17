//! Random dragonflies in direct mode, one per seed: shapes, arrangements, routing modes, traffic,
//! cables and missing links.
//!
//! The tables are computed for the remaining network. They must pass the topology's own check (each
//! path ends at its destination, and no channels form a cycle), and the run must pass all
//! [checkers](phitwire::sim::direct::Violation): every packet arrives once and undamaged, in order
//! if the mode keeps order, every credit returns, and the network drains in bounded time. Every
//! fourth case is rerun in several partitions and must produce the same trace.

use phitwire_framing::aries::flit::Routing;

use super::dragonfly;
use crate::cycle::{Aries, AriesOptions};
use crate::router::pipeline::CYCLE_PS;
use crate::topology::{
    Dragonfly, DragonflySettings, DragonflySpec, DragonflyWiring, Faults, Shape, check_routes,
};
use phitwire::chip::Grain;
use phitwire::net::Mistake;
use phitwire::rng::Rng;
use phitwire::sim::direct::{
    Config, Load, Pattern, Process, Report, Serial, Simulation, Traffic, Warmup,
};
use phitwire::sim::soak::random::pick;
use phitwire::sim::soak::{CaseReport, Failure, Keep, SoakCase};
use phitwire::time::Time;

const STREAM: u64 = 0xa41e5;
const GRAIN_STREAM: u64 = 0x64a15;
const MOST_ROUTERS: usize = 40;

/// A random dragonfly. Its printed form describes it completely.
#[derive(Clone, Debug)]
pub struct DragonflyCase {
    pub seed: u64,
    pub spec: DragonflySpec,
    pub cut: Vec<u32>,
    pub config: Config,
    /// Options specific to these networks.
    pub options: AriesOptions,
    /// Number of partitions of the second run; 1 means no second run.
    pub partitions: usize,
}

/// The network without the links in `cut`.
fn without(topology: &Dragonfly, cut: &[u32]) -> Dragonfly {
    let mut left = topology.clone();
    let mut number = 0;
    left.links.retain(|_| {
        number += 1;
        !cut.contains(&(number - 1))
    });
    left
}

/// Mistakes in the tables of a network.
fn mistakes(topology: &Dragonfly) -> Vec<Mistake> {
    let wiring = DragonflyWiring::new(topology);
    let routed = topology.route_with(&wiring, &Faults::default());
    check_routes(topology, &wiring, &Faults::default(), &routed)
}

/// A random set of links between routers whose removal leaves a path between all pairs of NICs.
fn cuts(rng: &mut Rng, topology: &Dragonfly) -> Vec<u32> {
    let between = |&number: &u32| {
        let kind = topology.kind(&topology.links[number as usize]);
        kind != Some(crate::route::registers::PortKind::Processor)
    };
    let links: Vec<u32> = (0..topology.links.len() as u32).filter(between).collect();
    let mut cut = Vec::new();
    if links.is_empty() {
        return cut;
    }
    for _ in 0..rng.below(6) {
        let link = pick(rng, &links);
        if cut.contains(&link) {
            continue;
        }
        cut.push(link);
        if !mistakes(&without(topology, &cut)).is_empty() {
            cut.pop();
        }
    }
    cut
}

fn traffic(rng: &mut Rng, shape: &Shape) -> Traffic {
    let mut patterns = vec![
        "uniform",
        "uniform",
        "tornado",
        "neighbour",
        "permutation",
        "hotspot:0:40",
    ];
    if shape.groups > 1 {
        patterns.extend(["group-adversarial"; 3]);
    }
    let millionths = pick(rng, &[50_000, 200_000, 500_000, 800_000, 1_000_000]);
    Traffic {
        pattern: pick(rng, &patterns).parse().unwrap_or_default(),
        load: Load::from_millionths(millionths).unwrap_or(Load::FULL),
        message_bytes: 1 + rng.below(64) as u8,
        request_reply: rng.chance(1, 2),
        process: pick(rng, &[Process::Bernoulli, Process::OnOff]),
        ..Traffic::default()
    }
}

impl DragonflyCase {
    pub fn random(seed: u64) -> Self {
        let mut rng = Rng::new(seed, STREAM);
        let settings = DragonflySettings::default();
        let (spec, topology) = dragonfly(&mut rng, [7, 4, 6, 4], [3, 8], MOST_ROUTERS, &settings);
        let routing = pick(&mut rng, &Routing::ALL);
        let mut metres = AriesOptions::METRES;
        if rng.chance(1, 2) {
            metres = [(); 3].map(|()| 1 + rng.below(100) as u32);
        }
        let mut config = Config {
            seed,
            traffic: traffic(&mut rng, &spec.shape),
            warmup: Warmup::Cycles(200 + rng.below(1_000)),
            measure_cycles: 200 + rng.below(2_000),
            // A saturated network may not drain in this time, which is no failure.
            drain_cycles: 3_000,
            ..Config::default()
        };
        let mut options = AriesOptions::with_metres(routing, metres);
        // Uses a separate stream, so that older seeds keep their other choices.
        if Rng::new(seed, GRAIN_STREAM).chance(1, 3) {
            options.grain = Grain::Packet;
        }
        // Replace an impossible pattern: a permutation of two or three may map each to itself.
        if Simulation::<Aries>::new(&topology, &config, &options, 1).is_err() {
            config.traffic.pattern = Pattern::default();
        }
        Self {
            seed,
            cut: cuts(&mut rng, &topology),
            config,
            options,
            partitions: if rng.chance(1, 4) {
                2 + rng.below(4) as usize
            } else {
                1
            },
            spec,
        }
    }

    fn simulate(&self, topology: &Dragonfly, partitions: usize) -> Result<Report, Failure> {
        let mut simulation =
            Simulation::<Aries>::new(topology, &self.config, &self.options, partitions)?;
        let report = simulation.run(&mut Serial, |_| {});
        if report.violations.is_empty() {
            return Ok(report);
        }
        let report = Box::new(report);
        Err(Failure::Direct { report })
    }
}

impl SoakCase for DragonflyCase {
    /// The run has nothing to trace.
    fn run(&self, _trace: &mut dyn FnMut(Time, &str)) -> Result<CaseReport, Failure> {
        let whole = self.spec.generate();
        let whole = whole.map_err(|error| Failure::Topology(error.to_string()))?;
        let topology = without(&whole, &self.cut);
        if let Some(mistake) = mistakes(&topology).first() {
            return Err(Failure::Routes(mistake.to_string()));
        }
        let report = self.simulate(&topology, 1)?;
        if self.partitions > 1 {
            let theirs = self.simulate(&topology, self.partitions)?.trace_hash;
            if theirs != report.trace_hash {
                return Err(Failure::Partitions {
                    partitions: self.partitions,
                    ours: report.trace_hash,
                    theirs,
                });
            }
        }
        Ok(CaseReport {
            trace_hash: report.trace_hash,
            time: Time::from_ps(CYCLE_PS * report.cycles),
            flit_hops: report.phit_hops,
            acknowledged: report.packets,
            ..CaseReport::default()
        })
    }

    /// Here harms are the missing links, impairment means long cables, partitions and bursts, and
    /// messages are the cycles of the measurement.
    fn reduced(&self, keep: &Keep) -> Box<dyn SoakCase> {
        let mut case = self.clone();
        if let Some(kept) = &keep.harms {
            let links = (0..).zip(&self.cut);
            let left = links.filter(|(index, _)| kept.contains(index));
            case.cut = left.map(|(_, &link)| link).collect();
        }
        if keep.clear {
            let routing = case.options.routing;
            case.options = AriesOptions::with_metres(routing, AriesOptions::METRES);
            case.config.traffic.process = Process::Bernoulli;
            case.partitions = 1;
        }
        if let Some(cycles) = keep.messages {
            case.config.measure_cycles = cycles.max(1);
        }
        Box::new(case)
    }

    fn whole(&self) -> Keep {
        Keep {
            harms: Some((0..self.cut.len()).collect()),
            clear: false,
            messages: Some(self.config.measure_cycles),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Arrangement;
    use phitwire::sim::direct::Violation;

    fn run(case: &dyn SoakCase) -> Result<CaseReport, Failure> {
        case.run(&mut |_, _| {})
    }

    #[test]
    fn a_seed_is_one_dragonfly_and_one_run() {
        let hash = |seed| run(&DragonflyCase::random(seed)).unwrap().trace_hash;
        assert_eq!(hash(3), hash(3));
        assert_ne!(hash(3), hash(4));
    }

    #[test]
    fn every_kind_of_dragonfly_comes_up() {
        let cases: Vec<_> = (0..150).map(DragonflyCase::random).collect();
        let any = |wanted: fn(&DragonflyCase) -> bool| cases.iter().any(wanted);
        for routing in Routing::ALL {
            let has = |case: &DragonflyCase| case.options.routing == routing;
            assert!(cases.iter().any(has), "{routing:?}");
        }
        for (name, arrangement) in Arrangement::ALL {
            let has = |case: &DragonflyCase| case.spec.arrangement == arrangement;
            assert!(cases.iter().any(has), "{name}");
        }
        assert!(any(|case| case.cut.len() > 2) && any(|case| case.cut.is_empty()));
        assert!(any(|case| case.partitions > 1));
        assert!(any(|case| case.spec.shape.groups == 1));
        assert!(any(|case| case.spec.shape.groups > 5));
    }

    /// Canary: missing links that separate NICs are found, and shrinking keeps only those.
    #[test]
    fn a_failure_is_found_and_shrunk() {
        let mut case = DragonflyCase::random(1);
        case.spec = DragonflySpec {
            shape: Shape {
                groups: 2,
                chassis: 2,
                blades: 1,
                nics: 1,
            },
            black_links: Some(2),
            global_links: Some(2),
            ..DragonflySpec::default()
        };
        case.config.traffic.pattern = "uniform".parse().unwrap();
        let topology = case.spec.generate().unwrap();
        let of = |kind| {
            let links = (0..).zip(&topology.links);
            let links = links.filter(|(_, link)| topology.kind(link) == Some(kind));
            links.map(|(number, _)| number).collect::<Vec<u32>>()
        };
        use crate::route::registers::PortKind;
        let blue = of(PortKind::Blue);
        let black = of(PortKind::Black);
        assert_eq!((blue.len(), black.len()), (2, 4));
        case.cut = vec![blue[0], black[0], blue[1]];
        let failure = run(&case).expect_err("two groups have no link");
        assert!(matches!(failure, Failure::Routes(_)), "{failure}");
        let keep = (&case as &dyn SoakCase).shrink(|case| run(case).is_err());
        assert_eq!(keep.harms, Some(vec![0, 2]));
        assert_eq!((keep.clear, keep.messages), (true, Some(1)));
        assert!(run(&*case.reduced(&keep)).is_err());
        case.cut.pop();
        assert!(run(&case).is_ok());
    }

    /// Canary of the run's own checkers: a network without its blue links rejects packets.
    #[test]
    fn a_run_that_refuses_packets_is_a_failure() {
        let of_two = |case: &DragonflyCase| {
            let pattern = case.config.traffic.pattern.to_string();
            case.spec.shape.groups == 2 && pattern == "uniform"
        };
        let case = (0..).map(DragonflyCase::random).find(of_two).unwrap();
        let whole = case.spec.generate().unwrap();
        let kind = Some(crate::route::registers::PortKind::Blue);
        let blue = (0..).zip(&whole.links);
        let blue = blue.filter(|(_, link)| whole.kind(link) == kind);
        let blue: Vec<u32> = blue.map(|(number, _)| number).collect();
        assert!(case.simulate(&whole, 1).is_ok());
        // Do not use `run`, which would reject such tables first.
        let failure = case.simulate(&without(&whole, &blue), 1);
        let Err(Failure::Direct { report }) = failure else {
            panic!("the case has no direct failure: {failure:?}");
        };
        let refused = |v: &Violation| matches!(v, Violation::Refused(packets) if *packets > 0);
        assert!(
            report.violations.iter().any(refused),
            "{:?}",
            report.violations
        );
        assert!(matches!(run(&case), Ok(outcome) if outcome.acknowledged > 0));
    }
}

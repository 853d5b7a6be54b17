//! Whole runs of dragonflies.

use super::super::*;
use crate::topology::dragonfly::{Dragonfly, DragonflySpec, Shape};
use phitwire_framing::flit48::Routing;

fn dragonfly(groups: u16, chassis: u8, blades: u8, nics: u8, global: u16) -> Dragonfly {
    let spec = DragonflySpec {
        shape: Shape {
            groups,
            chassis,
            blades,
            nics,
        },
        global_links: (groups > 1).then_some(global),
        ..DragonflySpec::default()
    };
    spec.generate().unwrap()
}

fn config(millionths: u32, routing: Routing) -> Config {
    Config {
        traffic: Traffic {
            load: Load::from_millionths(millionths).unwrap(),
            message_bytes: 64,
            ..Traffic::default()
        },
        measure_cycles: 4_000,
        warmup: Warmup::Cycles(2_000),
        aries: AriesOptions {
            routing,
            ..AriesOptions::default()
        },
        ..Config::default()
    }
}

fn with(pattern: &str, millionths: u32, routing: Routing) -> Config {
    let mut config = config(millionths, routing);
    config.traffic.pattern = pattern.parse().unwrap();
    config
}

fn run(topology: &Dragonfly, config: &Config, partitions: usize) -> Report {
    let mut simulation = Simulation::<Aries>::of(topology, config, partitions).unwrap();
    let report = simulation.run(&mut Serial, |_| {});
    assert_eq!(report.violations, []);
    report
}

#[test]
fn one_router() {
    let topology = dragonfly(1, 1, 1, 4, 0);
    let report = run(&topology, &config(10_000, Routing::Adaptive0), 1);
    println!("{report:#?}");
    let report = run(&topology, &config(900_000, Routing::Adaptive0), 1);
    println!("{report:#?}");
}

#[test]
fn small() {
    let topology = dragonfly(3, 2, 2, 2, 4);
    for load in [10_000, 300_000, 800_000] {
        let report = run(&topology, &config(load, Routing::Adaptive0), 1);
        println!("{report:#?}");
    }
}

//! Simulated traffic on dragonflies, as in `phitwire sim`: over encoded links, and over ideal ones.

use phitwire::chip::Grain;
use phitwire::sim::direct::{Config, Load, Report, Serial, Simulation, Traffic, Warmup};
use phitwire_aries::cycle::{Aries, AriesOptions};
use phitwire_aries::topology::Dragonfly;

use crate::harness::{dragonfly, netem};

/// Messages of 64 bytes at 0.15 of a NIC's rate, each with a reply, on paths that routers choose by
/// load.
pub fn traffic(grain: Grain) -> RunConfig {
    let config = Config {
        traffic: Traffic {
            load: Load::from_millionths(150_000).expect("a load"),
            message_bytes: 64,
            request_reply: true,
            ..Traffic::default()
        },
        warmup: Warmup::Cycles(2_000),
        measure_cycles: 4_000,
        ..Config::default()
    };
    let options = AriesOptions {
        grain,
        ..AriesOptions::default()
    };
    (config, options)
}

/// Configuration of a run, with the machine's options.
pub type RunConfig = (Config, AriesOptions);

fn finish(mut simulation: Simulation<Aries>) -> Report {
    let report = simulation.run(&mut Serial, |_| {});
    assert_eq!(report.violations, []);
    assert!(report.packets > 500, "{report:?}");
    report
}

/// A run over encoded links with the netem impairments in `words`, none if empty.
pub fn encoded(
    topology: &Dragonfly,
    (config, options): &RunConfig,
    words: &str,
    partitions: usize,
) -> Report {
    let netem = (!words.is_empty()).then(|| netem(words));
    let simulation =
        Simulation::with_encoded_links(topology, config, options, netem, partitions, &mut Serial);
    finish(simulation.expect("the links come up"))
}

fn direct(topology: &Dragonfly, (config, options): &RunConfig, partitions: usize) -> Report {
    finish(Simulation::new(topology, config, options, partitions).expect("the run is possible"))
}

/// A run must be the same in any number of partitions, and differ with another seed. Four groups
/// allow as many partitions as requested. A third of a run's usual length shows every kind of
/// exchange.
fn is_the_same_in_any_number_of_partitions(run: impl Fn(&Dragonfly, &RunConfig, usize) -> Report) {
    let topology = dragonfly(4, 2);
    for grain in [Grain::Flit, Grain::Packet] {
        let (config, options) = traffic(grain);
        let config = Config {
            warmup: Warmup::Cycles(500),
            measure_cycles: 1_500,
            ..config
        };
        let asked = (config, options);
        let one = run(&topology, &asked, 1);
        for partitions in [2, 4] {
            let other = run(&topology, &asked, partitions);
            assert_eq!(other, one, "{grain:?}, {partitions} partitions");
        }
        let (config, options) = asked;
        let reseeded = (Config { seed: 2, ..config }, options);
        let other = run(&topology, &reseeded, 4);
        assert_ne!(other.trace_hash, one.trace_hash, "{grain:?}");
    }
}

#[test]
fn partitions_change_nothing_over_ideal_links() {
    is_the_same_in_any_number_of_partitions(direct);
}

#[test]
fn partitions_change_nothing_over_encoded_links() {
    for words in [
        "",
        "loss 1% delay 300ns 200ns",
        // The fate of a frame depends on those held when it is sent.
        "delay 500ns reorder 30% gap 3 limit 4",
    ] {
        is_the_same_in_any_number_of_partitions(|topology, config, partitions| {
            let report = encoded(topology, config, words, partitions);
            assert_eq!(report.frames_lost > 0, words.starts_with("loss"), "{words}");
            report
        });
    }
}

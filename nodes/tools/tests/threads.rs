//! Tests of partitions in separate threads.

use phitwire::catalogue::OptionValues;
use phitwire::sim::direct::byte_parts::ExchangingBytes;
use phitwire::sim::direct::{Config, Executor, Links, Report, Serial, Simulation, Warmup};
use phitwire_aries::cycle::{Aries, AriesOptions};
use phitwire_machines::{CATALOGUE, MACHINES};
use phitwire_tools::sim::Threads;

fn config() -> Config {
    Config {
        warmup: Warmup::Cycles(500),
        measure_cycles: 1_000,
        ..Config::default()
    }
}

/// Runs the network of that name.
fn run(name: &str, threads: usize, executor: &mut dyn Executor) -> Report {
    let network = CATALOGUE
        .generate(name)
        .expect("a name")
        .expect("a network");
    let mut machines = MACHINES.iter().filter_map(|machine| machine.simulation);
    let simulation = machines.find(|simulation| (simulation.is_of)(&*network));
    let chosen = (simulation.expect("its machine").choose)(&OptionValues::default());
    let config = config();
    let one = &chosen.expect("the defaults")[0];
    let built = one.build(&*network, &config, Links::Direct, threads, executor);
    built.expect("a network").run(executor, &mut |_| {})
}

#[test]
fn threads_change_nothing() {
    for (name, packets) in [("r2-96", 1_000), ("aries-3x2x2x2:2", 500)] {
        let alone = run(name, 1, &mut Serial);
        assert!(alone.packets > packets && alone.violations.is_empty());
        for threads in [2, 3] {
            assert_eq!(run(name, threads, &mut Threads), alone);
        }
    }
}

/// Each partition runs in its own thread, and they exchange only bytes.
#[test]
fn threads_that_exchange_bytes_change_nothing() {
    let network = CATALOGUE.generate("aries-3x2x2x2:2").expect("a name");
    let network = network.expect("a network");
    let network = network.of_machine().expect("a dragonfly");
    let options = AriesOptions::default();
    let made = Simulation::<Aries>::assembled(network, &config(), &options, 3, &ExchangingBytes);
    let report = made.expect("a network").run(&mut Threads, |_| {});
    assert_eq!(report, run("aries-3x2x2x2:2", 1, &mut Serial));
}

//! Saturation of networks against closed forms: the capacity of the links that all traffic crosses.

use phitwire::catalogue::OptionValues;
use phitwire::sim::direct::{Config, Links, Load, Report, Serial, State, Traffic, Warmup};
use phitwire_machines::{CATALOGUE, MACHINES};

/// Runs the named network under a pattern, with options of its machine.
fn run(name: &str, pattern: &str, load: f64, options: &[(&'static str, &str)]) -> Report {
    let network = CATALOGUE.generate(name).expect(name).expect(name);
    let mut simulations = MACHINES.iter().filter_map(|machine| machine.simulation);
    let simulation = simulations.find(|of| (of.is_of)(&*network)).expect(name);
    let mut given = OptionValues::default();
    for &(name, value) in options {
        given.add(name, vec![value.to_owned()]);
    }
    let chosen = (simulation.choose)(&given).expect("good options");
    let config = Config {
        traffic: Traffic {
            pattern: pattern.parse().expect(pattern),
            load: Load::from_millionths((load * 1e6) as u32).expect("a load"),
            message_bytes: simulation.message_bytes,
            ..Traffic::default()
        },
        warmup: Warmup::Cycles(4_000),
        measure_cycles: 16_000,
        most_measure_cycles: 64_000,
        ..Config::default()
    };
    let built = chosen[0].build(&*network, &config, Links::Direct, 1, &mut Serial);
    let report = built.expect(name).run(&mut Serial, &mut |_| {});
    assert_eq!(report.violations, [], "{name} {pattern}");
    report
}

/// Asserts that a network offered twice `bound` accepts between `part * bound` and `bound`, and
/// that well below that it is steady and accepts everything.
fn saturates_below(
    bound: f64,
    part: f64,
    (name, pattern): (&str, &str),
    options: &[(&'static str, &str)],
) {
    let full = run(name, pattern, (2.0 * bound).min(1.0), options);
    assert_eq!(full.state, State::Saturated, "{name} {full:?}");
    let accepted = full.accepted_load;
    assert!(accepted <= 1.01 * bound, "{name}: {accepted} of {bound}");
    assert!(accepted >= part * bound, "{name}: {accepted} of {bound}");
    takes_all(0.8 * part * bound, (name, pattern), options);
}

/// Asserts that a network is steady at this load.
fn takes_all(load: f64, (name, pattern): (&str, &str), options: &[(&'static str, &str)]) {
    let below = run(name, pattern, load, options);
    assert_eq!(below.state, State::Steady, "{name} {below:?}");
    let short = below.offered_load - below.accepted_load;
    assert!(short.abs() < 0.03 * below.offered_load, "{name} {below:?}");
}

#[test]
fn a_clos_with_a_hot_spot_takes_what_one_port_does() {
    // 63 of 64 processors send to one, whose link carries a phit per cycle. Its own packets reach
    // the others without contention.
    let (of, bound) = (("r2-64", "hotspot:0:100"), 1.0 / 63.0);
    let full = run(of.0, of.1, 2.0 * bound, &[]);
    assert_eq!(full.state, State::Saturated, "{full:?}");
    let hot = 64.0 * full.accepted_load - full.served[0];
    assert!((0.95..=1.01).contains(&hot), "{hot} phits per cycle");
    takes_all(0.8 * 0.95 * bound, of, &[]);
}

#[test]
fn a_dragonfly_under_the_adversary_takes_what_the_links_between_two_groups_do() {
    // Eight NICs of 2.56 flits per cycle each, and four links to the one group that all send to.
    let (name, pattern) = ("aries-3x1x4x2:4", "group-adversarial");
    let options = [("routing", "minimal")];
    let full = run(name, pattern, 1.0, &options);
    let blue = full.links.iter().find(|(kind, _)| *kind == "blue");
    // The rate of the description, less the tenth flit.
    let rate = blue.expect("blue links").1.max;
    assert!((0.75..=0.9001).contains(&rate), "{rate}");
    saturates_below(4.0 * rate / (8.0 * 2.56), 0.85, (name, pattern), &options);
}

#[test]
fn a_ring_whose_packets_go_half_round_takes_half() {
    // Eight processors with four hops each share sixteen links: each gets half of a link's rate.
    let options = [("routing", "deterministic")];
    saturates_below(0.5, 0.8, ("t3e-8x1x1", "grid-opposite"), &options);
}

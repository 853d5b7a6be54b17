//! Effects of the routing modes on whole networks.

use phitwire_framing::aries::flit::Routing;

use super::tests::{dragonfly, run, with};
use crate::route::registers::{Bias, ModeBias};
use crate::topology::Dragonfly;
use phitwire::sim::direct::Report;

const ADAPTIVE: [Routing; 4] = [
    Routing::Adaptive0,
    Routing::Adaptive1,
    Routing::Adaptive2,
    Routing::Adaptive3,
];

fn measured(topology: &Dragonfly, pattern: &str, load: u32, routing: Routing, seed: u64) -> Report {
    let mut config = with(pattern, load, routing);
    config.seed = seed;
    config.measure_cycles = 3_000;
    run(topology, &config, 2)
}

fn share(report: &Report) -> f64 {
    report.other_ways.expect("routers choose").1
}

/// Four routers of a group send all packets to the next group: mode 0 diverts the most, mode 3 the
/// fewest. They offer 4.3 flits per cycle (1.075 of each NIC's 2.56), which is between the 1.6 that
/// two blue links carry and the 6.4 of all eight. Where all queues are full, a bias has no effect.
#[test]
fn modes_divert_in_the_order_of_their_names() {
    let topology = dragonfly(5, 1, 4, 1, 2);
    let [none, growing, small, large] = ADAPTIVE.map(|mode| {
        let of = |seed| {
            share(&measured(
                &topology,
                "group-adversarial",
                420_000,
                mode,
                seed,
            ))
        };
        (1..=3).map(of).sum::<f64>()
    });
    let shares = [none, growing, small, large];
    assert!(none > growing && growing > large, "{shares:?}");
    assert!(none > small && small > large, "{shares:?}");
    assert!(
        large > 0.0,
        "even a large bias does not exclude non-minimal paths: {shares:?}"
    );
}

/// In networks with few blue links, of which a non-minimal packet takes two, the accepted load past
/// saturation stays near that of minimal routing in every mode.
#[test]
fn thin_networks_hold_what_they_accept_in_every_mode() {
    for topology in thin() {
        let minimal = measured(&topology, "uniform", 1_000_000, Routing::Minimal, 1);
        for mode in ADAPTIVE {
            let found = measured(&topology, "uniform", 1_000_000, mode, 1);
            let ratio = found.accepted_load / minimal.accepted_load;
            assert!(
                ratio > 0.9,
                "{mode:?} on {}: {ratio}",
                topology.shape.groups
            );
        }
    }
}

/// Canary: with a bias towards non-minimal paths, thin networks accept less.
#[test]
fn a_bias_against_minimal_ways_is_seen_on_thin_networks() {
    let [_, mut topology] = thin();
    let minimal = measured(&topology, "uniform", 1_000_000, Routing::Minimal, 1);
    topology.bias[0] = ModeBias {
        minimal: Bias { shift: 2, add: 4 },
        ..ModeBias::default()
    };
    let found = measured(&topology, "uniform", 1_000_000, Routing::Adaptive0, 1);
    assert!(
        found.accepted_load < 0.8 * minimal.accepted_load,
        "{found:?}"
    );
}

fn thin() -> [Dragonfly; 2] {
    [dragonfly(3, 2, 2, 1, 2), dragonfly(4, 2, 2, 2, 4)]
}

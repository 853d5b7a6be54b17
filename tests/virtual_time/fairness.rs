//! Fairness when several sources send more to one output than it carries, by machine, grain and
//! kind of link; and the rates of saturated links.
//!
//! Arbiters are fair among their requesters: inputs, rows, virtual channels. So flows are equal if
//! they pass equally many arbiters, each with equally many others; cases group flows accordingly.

#![allow(
    clippy::single_range_in_vec_init,
    reason = "a range is a group of sources"
)]

use phitwire::chip::Grain;
use phitwire::link::LaneRate;
use phitwire::sim::direct::{
    Config, CycleModel, Load, Report, Serial, Simulation, Traffic, Warmup,
};
use phitwire_aries::cycle::{Aries, AriesOptions};
use phitwire_aries::link::rates::{G12_5, G14_0};
use phitwire_aries::topology::{Dragonfly, DragonflySpec, Shape};
use phitwire_blackwidow::cycle::{BlackWidow, BlackWidowOptions};
use phitwire_blackwidow::link::rates as of_yarc;
use phitwire_blackwidow::topology::{BlackWidowSpec, FoldedClos};
use phitwire_framing::aries::flit::Routing;
use phitwire_t3e::cycle::{T3e, T3eOptions};
use phitwire_t3e::topology::{Torus, TorusSpec};

const GRAINS: [Grain; 2] = [Grain::Flit, Grain::Packet];
const LINKS: [&str; 2] = ["direct", "encoded"];

/// A configuration in which all sources send at full load.
fn full(pattern: &str, message_bytes: u8, request_reply: bool) -> Config {
    Config {
        traffic: Traffic {
            pattern: pattern.parse().expect("a pattern"),
            load: Load::FULL,
            message_bytes,
            request_reply,
            ..Traffic::default()
        },
        warmup: Warmup::Cycles(3_000),
        measure_cycles: 8_000,
        drain_cycles: 2_000,
        ..Config::default()
    }
}

fn run<M: CycleModel>(
    network: &M::Topology,
    config: &Config,
    options: &M::Options,
    links: &str,
) -> Report {
    let simulation = match links {
        "direct" => Simulation::<M>::new(network, config, options, 1),
        _ => Simulation::with_encoded_links(network, config, options, None, 1, &mut Serial),
    };
    let mut simulation = simulation.expect("the run is possible");
    // A phase may be lengthened to whole windows; the progress display then shows the new length.
    let report = simulation.run(&mut Serial, |progress| {
        assert!(progress.cycles <= progress.limit);
    });
    assert_eq!(report.violations, []);
    report
}

/// A dragonfly of groups, chassis, blades and NICs, with one link between each pair of groups.
fn aries([groups, chassis, blades, nics]: [u8; 4]) -> Dragonfly {
    let spec = DragonflySpec {
        shape: Shape {
            groups: groups.into(),
            chassis,
            blades,
            nics,
        },
        global_links: (groups > 1).then_some(1),
        ..DragonflySpec::default()
    };
    spec.generate().expect("a dragonfly")
}

fn minimal(grain: Grain) -> AriesOptions {
    AriesOptions {
        grain,
        routing: Routing::Minimal,
        ..AriesOptions::default()
    }
}

fn yarc(processors: u32) -> FoldedClos {
    let spec = BlackWidowSpec {
        processors,
        subtree: 32,
        ..BlackWidowSpec::default()
    };
    spec.generate().expect("a router")
}

fn t3e(size: [u8; 3]) -> Torus {
    let shape = phitwire_t3e::route::Shape::new(size, vec![]).expect("a shape");
    TorusSpec::new(shape).torus()
}

/// The service of each group's sources: least, most and Jain's index.
fn shares(report: &Report, groups: &[Vec<usize>]) -> Vec<(f64, f64, f64)> {
    let of = |group: &Vec<usize>| {
        let served = group.iter().map(|&source| report.served[source]);
        let (sum, squares, least, most) = served.fold((0.0, 0.0, f64::MAX, 0.0), |all, one| {
            let (sum, squares, least, most): (f64, f64, f64, f64) = all;
            (
                sum + one,
                squares + one * one,
                least.min(one),
                most.max(one),
            )
        });
        let jain = if squares > 0.0 {
            sum * sum / (group.len() as f64 * squares)
        } else {
            0.0
        };
        (least, most, jain)
    };
    groups.iter().map(of).collect()
}

/// A case: the sources of a group should be served equally.
struct Case {
    name: String,
    report: Report,
    groups: Vec<Vec<usize>>,
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |name: String, report: Report, groups: Vec<Vec<usize>>| {
        cases.push(Case {
            name,
            report,
            groups,
        });
    };
    let ranges = |all: &[core::ops::Range<usize>]| -> Vec<Vec<usize>> {
        all.iter().cloned().map(Vec::from_iter).collect()
    };
    for links in LINKS {
        for grain in GRAINS {
            let options = minimal(grain);
            for reply in [false, true] {
                let config = full("group-adversarial", 64, reply);
                for (shape, groups, flows) in [
                    ([2, 1, 1, 2], ranges(&[0..2, 2..4]), 2),
                    // Four NICs at the router with the link and four at another router.
                    ([2, 1, 2, 4], ranges(&[0..8, 8..16]), 8),
                ] {
                    let report = run::<Aries>(&aries(shape), &config, &options, links);
                    let what = if reply { ", replies" } else { "" };
                    let name = format!("aries, {grain:?}, {links}, {flows} at a blue link{what}");
                    add(name, report, groups);
                }
            }
            let report = run::<Aries>(
                &aries([1, 1, 1, 4]),
                &full("neighbour", 64, false),
                &options,
                links,
            );
            let name = format!("aries, {grain:?}, {links}, two pairs of NICs");
            add(name, report, ranges(&[0..4]));
        }
        for reply in [false, true] {
            let config = full("hotspot:0:100", 16, reply);
            let options = BlackWidowOptions::default();
            let what = if reply { ", replies" } else { "" };
            let report = run::<BlackWidow>(&yarc(3), &config, &options, links);
            let name = format!("yarc, {links}, 2 at an output{what}");
            add(name, report, ranges(&[1..3]));
            // Eight ports in each row: the other seven of the output's own row share one half, the
            // eight of the second row the other.
            let report = run::<BlackWidow>(&yarc(16), &config, &options, links);
            let name = format!("yarc, {links}, 8 at an output{what}");
            add(name, report, ranges(&[1..8, 8..16]));
        }
        let config = full("hotspot:0:100", 16, false);
        let options = T3eOptions::default();
        let report = run::<T3e>(&t3e([3, 1, 1]), &config, &options, links);
        add(
            format!("t3e, {links}, 2 at an output"),
            report,
            ranges(&[1..3]),
        );
        // Each of the target's four neighbours sends its own packets and forwards those of two of
        // the other four nodes, which have two paths each and so get twice as much
        // (`docs/guide/src/results.md`, "Fairness").
        let report = run::<T3e>(&t3e([3, 3, 1]), &config, &options, links);
        let name = format!("t3e, {links}, 8 at an output");
        add(name, report, vec![vec![1, 2, 3, 6], vec![4, 5, 7, 8]]);
    }
    cases
}

#[test]
fn equal_flows_at_one_output_are_served_equally() {
    for Case {
        name,
        report,
        groups,
    } in cases()
    {
        for (least, most, jain) in shares(&report, &groups) {
            println!("{name}: least {least:.4}, most {most:.4}, Jain {jain:.4}");
            assert!(jain > 0.99, "{name}: {jain}");
            assert!(least > 0.75 * most, "{name}: {least} of {most}");
        }
    }
}

/// Canary: a source that gets nothing.
#[test]
fn a_starved_flow_is_noticed() {
    let report = Report {
        served: vec![0.45, 0.0],
        ..Report::default()
    };
    let (least, most, jain) = shares(&report, &[vec![0, 1]])[0];
    assert_eq!((least, most), (0.0, 0.45));
    assert!(jain < 0.51);
}

/// NIC 3 sends to NICs that receive from no other NIC, while the others send to NIC 3. It shares
/// the path into the router with NIC 2, and gets half of it.
#[test]
fn an_incast_leaves_its_target_the_half_of_its_pair() {
    for links in LINKS {
        for grain in GRAINS {
            let mut config = full("hotspot:3:100", 64, false);
            config.traffic.load = Load::from_millionths(600_000).expect("a load");
            let report = run::<Aries>(&aries([1, 1, 1, 4]), &config, &minimal(grain), links);
            let [.., second, victim] = report.served[..] else {
                unreachable!("four NICs");
            };
            assert!(victim > 0.95 * second, "{grain:?} {links} {report:?}");
            assert!(victim > 0.25, "{grain:?} {links} {victim}");
        }
    }
}

/// "The Aries NIC can perform a 64-byte read or write every five cycles (10.2 GB/s at 800MHz)":
/// more than its share of the processor tiles, while its neighbour is quiet. First NICs 1 and 2
/// send to each other while NICs 0 and 3 are silent; then all send.
#[test]
fn a_nic_puts_at_10_gb_per_second_next_to_a_quiet_one_and_at_8_next_to_a_busy_one() {
    let network = aries([1, 1, 1, 4]);
    for links in LINKS {
        for grain in GRAINS {
            let alone = full("transpose", 64, false);
            let report = run::<Aries>(&network, &alone, &minimal(grain), links);
            // 64 bytes of payload in 14 flits, at 2.56 flits in a cycle of 1/875 us.
            let payload = |load: f64| load * 2.56 * 0.875 * 64.0 / 14.0;
            let gigabytes = payload(report.accepted_load);
            assert!(
                (9.9..10.3).contains(&gigabytes),
                "{grain:?} {links}: {gigabytes} GB/s"
            );
            let reported = report.bytes_per_cycle * report.accepted_load * 0.875;
            assert!((reported - gigabytes).abs() < 1e-9, "{reported} GB/s");
            let both = full("neighbour", 64, false);
            let report = run::<Aries>(&network, &both, &minimal(grain), links);
            let gigabytes = payload(report.accepted_load);
            assert!(
                (7.4..8.1).contains(&gigabytes),
                "{grain:?} {links}: {gigabytes} GB/s"
            );
        }
    }
}

/// Checks that the loads in a report correspond to the bytes of the messages that arrived, and that
/// no source offers much less than the others.
fn loads_count_bytes<M: CycleModel>(network: &M::Topology, options: &M::Options, bytes: u8) {
    let mut config = full("uniform", bytes, false);
    config.traffic.load = Load::from_millionths(300_000).expect("a load");
    (config.measure_cycles, config.drain_cycles) = (40_000, 20_000);
    for links in LINKS {
        let report = run::<M>(network, &config, options, links);
        let sources = report.served.len() as f64;
        let cycles = report.measure_cycles as f64;
        let arrived = report.latency_cycles.count as f64 * f64::from(bytes);
        let reported = report.bytes_per_cycle * report.accepted_load * cycles * sources;
        assert!(
            (arrived / reported - 1.0).abs() < 0.01,
            "{links}: {arrived} bytes arrived, {reported} were reported"
        );
        let (source, offered) = report.fairness.least.expect("a source");
        assert!(
            (0.9..1.1).contains(&(offered / 0.3)),
            "{links}: source {source} offered {offered} of 0.3"
        );
    }
}

#[test]
fn loads_of_every_machine_count_bytes() {
    loads_count_bytes::<Aries>(&aries([1, 1, 1, 4]), &minimal(Grain::Flit), 64);
    loads_count_bytes::<BlackWidow>(&yarc(4), &BlackWidowOptions::default(), 16);
    loads_count_bytes::<T3e>(&t3e([2, 2, 1]), &T3eOptions::default(), 64);
}

/// The highest rate of a link of that kind.
fn busiest(report: &Report, kind: &str) -> f64 {
    let found = report.links.iter().find(|(name, _)| *name == kind);
    found.expect("a kind of link").1.max
}

#[test]
fn links_of_a_dragonfly_carry_what_their_lane_rate_allows() {
    let rate = |rate: LaneRate| 0.9 * rate.bits_per_second() as f64 / 14e9;
    for grain in GRAINS {
        for lanes in [G12_5, G14_0] {
            let mut blue = aries([2, 1, 1, 2]);
            blue.settings.own.global_rate = lanes;
            let mut green = aries([1, 1, 2, 4]);
            green.settings.own.rate = lanes;
            for (network, kind, pattern) in [
                (&blue, "blue", "group-adversarial"),
                (&green, "green", "tornado"),
            ] {
                let config = full(pattern, 64, false);
                let carried = LINKS.map(|links| {
                    let report = run::<Aries>(network, &config, &minimal(grain), links);
                    busiest(&report, kind)
                });
                for carried in carried {
                    let most = rate(lanes);
                    assert!(
                        (0.99 * most..1.003 * most).contains(&carried),
                        "{grain:?} {kind} {lanes:?}: {carried} of {most}"
                    );
                }
            }
        }
    }
}

#[test]
fn links_of_a_yarc_carry_what_their_lane_rate_allows() {
    for lanes in [of_yarc::G6_25, of_yarc::G3_125, of_yarc::G1_5625] {
        let mut network = yarc(8);
        for link in &mut network.links {
            link.rate = lanes;
        }
        let config = full("neighbour", 16, false);
        let options = BlackWidowOptions::default();
        let [direct, encoded] =
            LINKS.map(|links| run::<BlackWidow>(&network, &config, &options, links).accepted_load);
        let most = lanes.bits_per_second() as f64 / 6.25e9;
        assert!((0.97 * most..1.001 * most).contains(&direct), "{direct}");
        assert!(
            (0.96..1.001).contains(&(encoded / direct)),
            "{lanes:?}: {encoded} and {direct}"
        );
    }
}

#[test]
fn a_yarc_keeps_to_its_longest_packet_and_outstanding_requests() {
    let mut network = yarc(4);
    let options = BlackWidowOptions::default();
    let mut config = full("neighbour", 16, true);
    let served = |network: &FoldedClos, config: &Config| {
        LINKS.map(|links| run::<BlackWidow>(network, config, &options, links).accepted_load)
    };
    let many = served(&network, &config);
    network.settings.outstanding = 1;
    // Each round trip takes one message of 13 phits and one reply of four.
    for (one, many) in served(&network, &config).into_iter().zip(many) {
        assert!(one < 0.2 * many, "{one} of {many}");
    }
    network.settings.own.max_packet_phits = 12;
    for links in LINKS {
        let refused = match links {
            "direct" => Simulation::<BlackWidow>::new(&network, &config, &options, 1).err(),
            _ => Simulation::<BlackWidow>::with_encoded_links(
                &network,
                &config,
                &options,
                None,
                1,
                &mut Serial,
            )
            .err(),
        };
        let refused = refused.expect("16 bytes are 13 phits").to_string();
        assert!(refused.contains("max_packet_phits"), "{refused}");
    }
    config.traffic.message_bytes = 8;
    served(&network, &config);
}

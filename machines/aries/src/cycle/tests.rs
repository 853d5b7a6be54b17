use super::terminal::Order;
use super::*;
use crate::route::registers::PortKind;
use crate::topology::{Dragonfly, DragonflySpec, Shape};
use phitwire::chip::Grain;
use phitwire::sim::direct::*;
use phitwire_framing::aries::flit::Routing;

pub(super) fn dragonfly(groups: u16, chassis: u8, blades: u8, nics: u8, global: u16) -> Dragonfly {
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

#[derive(Clone)]
pub(super) struct TestConfig {
    config: Config,
    aries: AriesOptions,
}

impl core::ops::Deref for TestConfig {
    type Target = Config;
    fn deref(&self) -> &Config {
        &self.config
    }
}

impl core::ops::DerefMut for TestConfig {
    fn deref_mut(&mut self) -> &mut Config {
        &mut self.config
    }
}

pub(super) fn config(millionths: u32, routing: Routing) -> TestConfig {
    let config = Config {
        traffic: Traffic {
            load: Load::from_millionths(millionths).unwrap(),
            message_bytes: 64,
            ..Traffic::default()
        },
        measure_cycles: 4_000,
        warmup: Warmup::Cycles(2_000),
        ..Config::default()
    };
    let aries = AriesOptions {
        routing,
        ..AriesOptions::default()
    };
    TestConfig { config, aries }
}

pub(super) fn with(pattern: &str, millionths: u32, routing: Routing) -> TestConfig {
    let mut config = config(millionths, routing);
    config.traffic.pattern = pattern.parse().unwrap();
    config
}

fn direct(topology: &Dragonfly, asked: &TestConfig, partitions: usize) -> Simulation<Aries> {
    Simulation::new(topology, asked, &asked.aries, partitions).unwrap()
}

fn over_links(
    topology: &Dragonfly,
    asked: &TestConfig,
    netem: Option<Netem>,
    partitions: usize,
) -> Result<Simulation<Aries>, ConfigError> {
    let options = &asked.aries;
    Simulation::with_encoded_links(topology, asked, options, netem, partitions, &mut Serial)
}

pub(super) fn run(topology: &Dragonfly, config: &TestConfig, partitions: usize) -> Report {
    let mut simulation = direct(topology, config, partitions);
    let report = simulation.run(&mut Serial, |_| {});
    assert_eq!(report.violations, []);
    report
}

/// Latency through one router: both NIC links, Netlink on both sides, the router, and the 13 flits
/// after the head.
const ONE_ROUTER: u64 = 2 * 40 + 2 * 6 + 47 + 13;

#[test]
fn an_idle_router_has_the_latency_of_its_stages() {
    let report = run(
        &dragonfly(1, 1, 1, 4, 0),
        &config(10_000, Routing::Adaptive0),
        1,
    );
    let latency = report.latency_cycles;
    assert_eq!((latency.min, latency.max), (ONE_ROUTER, ONE_ROUTER));
    assert_eq!((report.hops_mean, report.other_ways), (1.0, None));
}

#[test]
fn every_hop_takes_a_hundred_nanoseconds_and_its_cable() {
    // A green, a black and a blue link. A set has nine flits of data, so a packet of 14 flits loses
    // a cycle or two on every link, and three or four on a blue link of 12.5 Gb/s.
    for (shape, cycles, lost) in [
        ((1, 1, 2, 1, 0), 40, 1),
        ((1, 2, 1, 1, 0), 50, 1),
        ((2, 1, 1, 1, 2), 120, 3),
    ] {
        let (groups, chassis, blades, nics, global) = shape;
        let topology = dragonfly(groups, chassis, blades, nics, global);
        let report = run(&topology, &config(10_000, Routing::Minimal), 1);
        let least = ONE_ROUTER + 47 + cycles + lost;
        assert_eq!(report.latency_cycles.min, least, "{shape:?}");
        assert!(
            report.latency_cycles.max <= least + 20,
            "{shape:?} {report:?}"
        );
        assert_eq!(report.hops_mean, 2.0);
        let hops: f64 = report.hops_by_kind.iter().map(|(_, hops)| hops).sum();
        assert!((hops - 1.0).abs() < 0.3, "{report:?}");
    }
}

#[test]
fn a_reply_costs_another_traversal() {
    let mut config = config(10_000, Routing::Adaptive0);
    config.traffic.request_reply = true;
    let report = run(&dragonfly(1, 1, 1, 4, 0), &config, 1);
    // The target adds one cycle, and the reply has one flit instead of 14.
    assert_eq!(report.latency_cycles.min, 2 * ONE_ROUTER + 1 - 13);
}

#[test]
fn every_mode_keeps_the_rules() {
    let topology = dragonfly(3, 2, 2, 2, 4);
    for routing in Routing::ALL {
        for (pattern, load) in [("uniform", 300_000), ("group-adversarial", 900_000)] {
            let mut config = with(pattern, load, routing);
            config.measure_cycles = 2_000;
            config.traffic.request_reply = load < 500_000;
            config.traffic.message_bytes = if load < 500_000 { 20 } else { 64 };
            let report = run(&topology, &config, 1);
            assert!(report.packets > 1_000, "{routing:?} {pattern}");
            let share = report.other_ways.unwrap().1;
            // Replies to deterministic requests are adaptive.
            match routing {
                mode if mode.is_deterministic() && config.traffic.request_reply => {
                    assert_eq!(share > 0.4, mode.is_non_minimal(), "{mode:?}: {share}");
                }
                Routing::Minimal | Routing::Ordered | Routing::MinHash => assert_eq!(share, 0.0),
                Routing::Valiant | Routing::OrderedNonMinimal | Routing::NminHash => {
                    assert!(share > 0.9);
                }
                _ => assert!(share < 0.95),
            }
        }
    }
}

#[test]
fn partitions_change_nothing() {
    // Partitions are cut between groups, between chassis, and between routers.
    for (topology, grain) in [
        (dragonfly(3, 2, 2, 2, 4), Grain::Flit),
        (dragonfly(3, 2, 2, 2, 4), Grain::Packet),
        (dragonfly(1, 3, 2, 2, 0), Grain::Flit),
        (dragonfly(1, 1, 5, 2, 0), Grain::Packet),
        (dragonfly(1, 1, 5, 2, 0), Grain::Flit),
    ] {
        let mut config = config(300_000, Routing::Adaptive1);
        config.aries.grain = grain;
        config.traffic.request_reply = true;
        config.measure_cycles = 1_000;
        config.warmup = Warmup::Cycles(500);
        let one = run(&topology, &config, 1);
        assert!(one.packets > 300);
        for partitions in [2, 3, 7] {
            assert_eq!(run(&topology, &config, partitions), one, "{partitions}");
        }
        let mut other = config;
        other.seed = 2;
        assert_ne!(run(&topology, &other, 2).trace_hash, one.trace_hash);
    }
}

#[test]
fn nothing_is_left_behind_between_any_two_exchanges() {
    let topology = dragonfly(3, 2, 2, 2, 4);
    let config = config(600_000, Routing::Adaptive0);
    let mut simulation = direct(&topology, &config, 2);
    for _ in 0..40 {
        simulation.run_windows(1);
        let mut violations = Vec::new();
        simulation.check_now(&mut violations);
        assert_eq!(violations, []);
    }
}

#[test]
fn a_link_carries_nine_flits_in_ten_cycles() {
    // Two routers of four NICs each, with one link between them.
    let topology = dragonfly(1, 1, 2, 4, 0);
    let report = run(&topology, &with("tornado", 900_000, Routing::Minimal), 1);
    let green = report.links.iter().find(|(kind, _)| *kind == "green");
    let (_, green) = green.unwrap();
    assert!(green.max > 0.88 && green.max <= 0.9 + 1e-3, "{green:?}");
}

fn adversary(topology: &Dragonfly, routing: Routing) -> Report {
    run(topology, &with("group-adversarial", 1_000_000, routing), 2)
}

#[test]
fn minimal_ways_give_the_adversary_the_links_between_two_groups_and_others_more() {
    // Four routers with one NIC each send 10.24 flits per cycle into a group, which has two links
    // of 12.5 Gb/s to each of four others.
    let topology = dragonfly(5, 1, 4, 1, 2);
    let minimal = adversary(&topology, Routing::Minimal).accepted_load;
    // Packets for either link wait in the same queues, which costs a tenth.
    let links = 2.0 * 45.0 / 56.0 / 10.24;
    assert!(
        minimal > 0.85 * links && minimal < links,
        "{minimal} of {links}"
    );
    let valiant = adversary(&topology, Routing::Valiant).accepted_load;
    let adaptive = adversary(&topology, Routing::Adaptive0).accepted_load;
    assert!(valiant > 1.3 * minimal, "{valiant}");
    assert!(adaptive > 1.3 * minimal, "{adaptive}");
}

#[test]
fn long_cables_divert_no_packet() {
    // Blue links of 35 m have a round trip of 400 cycles: flits in flight do not count as load.
    let topology = dragonfly(5, 1, 4, 1, 2);
    let share = |metres| {
        let mut config = config(200_000, Routing::Adaptive0);
        config.aries = AriesOptions::with_metres(Routing::Adaptive0, metres);
        run(&topology, &config, 1).other_ways.unwrap().1
    };
    // Without a bias some packets take non-minimal paths, as many with long cables as with short
    // ones.
    let short = share([1, 3, 1]);
    for metres in [[1, 3, 20], [1, 3, 35]] {
        let more = share(metres) - short;
        assert!(more < 0.05, "{more} more than {short} at {metres:?}");
    }
}

/// At low load and with a bias towards minimal paths, packets take the same paths in both grains.
/// The router's own test sends isolated packets.
#[test]
fn where_nobody_waits_a_packet_grain_costs_the_flits_behind_the_head() {
    let topology = dragonfly(3, 2, 2, 2, 4);
    let run = |grain| {
        // With a bias, so that a packet just ahead does not divert another one.
        let mut config = config(10_000, Routing::Adaptive3);
        config.measure_cycles = 60_000;
        config.aries.grain = grain;
        run(&topology, &config, 2)
    };
    let [flits, packets] = [Grain::Flit, Grain::Packet].map(run);
    assert_eq!(flits.packets, packets.packets);
    let none = Some(("non-minimal", 0.0));
    assert_eq!((flits.other_ways, packets.other_ways), (none, none));
    assert!((flits.hops_mean - packets.hops_mean).abs() < 0.02);
    // The 13 flits after the head add their time once per router: at the first router 2.56 arrive
    // per cycle, at the others one per cycle except every tenth. The output to the NIC is as fast.
    let behind = 13.0 / 2.56 + 13.0 * (packets.hops_mean - 1.0);
    let more = packets.latency_cycles.mean - flits.latency_cycles.mean;
    assert!(
        (behind - 1.0..1.2 * behind).contains(&more),
        "{more} of {behind}"
    );
}

#[test]
fn both_grains_saturate_within_a_tenth_of_each_other() {
    let topology = dragonfly(5, 1, 4, 1, 2);
    for routing in [Routing::Minimal, Routing::Adaptive0] {
        for pattern in ["uniform", "group-adversarial"] {
            let accepted = [Grain::Flit, Grain::Packet].map(|grain| {
                let mut config = with(pattern, 1_000_000, routing);
                config.measure_cycles = 8_000;
                config.aries.grain = grain;
                run(&topology, &config, 2).accepted_load
            });
            let ratio = accepted[1] / accepted[0];
            assert!(
                (0.9..1.1).contains(&ratio),
                "{routing:?} {pattern} {accepted:?}"
            );
        }
    }
}

#[test]
fn packets_are_conserved_in_the_middle_of_them() {
    for topology in [dragonfly(3, 2, 2, 2, 4), dragonfly(1, 1, 2, 4, 0)] {
        let mut config = config(700_000, Routing::Adaptive0);
        config.traffic.request_reply = true;
        config.aries.grain = Grain::Packet;
        let mut simulation = direct(&topology, &config, 2);
        for _ in 0..60 {
            simulation.run_windows(1);
            let mut violations = Vec::new();
            simulation.check_now(&mut violations);
            assert_eq!(violations, []);
        }
    }
}

fn blue_links(topology: &Dragonfly) -> Vec<usize> {
    let is_blue = |link: &usize| topology.kind(&topology.links[*link]) == Some(PortKind::Blue);
    (0..topology.links.len()).filter(is_blue).collect()
}

/// Runs about 9 us with these faults, with different numbers of partitions.
fn broken(topology: &Dragonfly, faults: &[String], encoded: bool) -> Report {
    let mut config = config(200_000, Routing::Adaptive2);
    config.faults = faults.iter().map(|fault| fault.parse().unwrap()).collect();
    let run = |partitions, grain| {
        let mut config = config.clone();
        config.aries.grain = grain;
        let mut simulation = if encoded {
            over_links(topology, &config, None, partitions).unwrap()
        } else {
            direct(topology, &config, partitions)
        };
        let report = simulation.run(&mut Serial, |_| {});
        assert_eq!(report.violations, [], "{faults:?}");
        report
    };
    let [_, flits] = [Grain::Packet, Grain::Flit].map(|grain| {
        let report = run(1, grain);
        assert_eq!(run(3, grain), report, "{faults:?}");
        report
    });
    flits
}

#[test]
fn links_and_routers_break_and_come_back_while_it_runs() {
    let topology = dragonfly(3, 2, 2, 2, 4);
    let whole = broken(&topology, &[], false);
    assert_eq!(whole.discarded_packets, 0);
    let blue = blue_links(&topology);
    let one = format!("link {} down at 3us for 2us", blue[0]);
    let report = broken(&topology, core::slice::from_ref(&one), false);
    assert_ne!(report.trace_hash, whole.trace_hash);
    assert!(report.packets + report.discarded_packets > whole.packets * 9 / 10);
    // All links between two groups have failed: adaptive packets go over the third group.
    let between: Vec<String> = blue[..4]
        .iter()
        .map(|link| format!("link {link} down at 2us"))
        .collect();
    let report = broken(&topology, &between, false);
    assert!(report.other_ways > whole.other_ways, "{report:?}");
    // A link that was broken twice works only after two repairs.
    let other = format!("link {} down at 4us for 2us", blue[0]);
    broken(&topology, &[one, other], false);
    let report = broken(
        &topology,
        &["router g1-c0s1 down at 2us for 4us".into()],
        false,
    );
    assert!(report.discarded_packets > 0, "{report:?}");
}

#[test]
fn over_encoded_links_a_cut_costs_time_and_no_packet() {
    let topology = dragonfly(2, 1, 2, 1, 2);
    let whole = broken(&topology, &[], true);
    let blue = blue_links(&topology)[0];
    let cut = broken(
        &topology,
        &[format!("link {blue} down at 3us for 2us")],
        true,
    );
    assert_eq!(cut.discarded_packets, 0);
    assert!(cut.retransmitted_packets > whole.retransmitted_packets);
    let mut config = config(100_000, Routing::Minimal);
    config.faults = vec!["link 0 down at 3us".parse().unwrap()];
    let endless = over_links(&topology, &config, None, 1);
    assert!(matches!(endless.err(), Some(ConfigError::Endless(_))));
}

#[test]
fn encoded_links_carry_what_direct_ones_do() {
    let topology = dragonfly(3, 2, 2, 1, 2);
    for (grain, reply) in [(Grain::Flit, false), (Grain::Packet, true)] {
        let mut config = config(150_000, Routing::Adaptive3);
        config.aries.grain = grain;
        config.traffic.request_reply = reply;
        let direct = run(&topology, &config, 1);
        let encoded = |words: &str, partitions| {
            let netem = (!words.is_empty()).then(|| words.parse().unwrap());
            let mut simulation = over_links(&topology, &config, netem, partitions).unwrap();
            let report = simulation.run(&mut Serial, |_| {});
            assert_eq!(report.violations, [], "{words}");
            report
        };
        let clean = encoded("", 1);
        let ratio = clean.latency_cycles.mean / direct.latency_cycles.mean;
        assert!((0.9..1.4).contains(&ratio), "{grain:?} {ratio}");
        assert!((clean.accepted_load - direct.accepted_load).abs() < 0.01);
        let hops = |report: &Report| (report.hops_mean - direct.hops_mean).abs();
        assert!(hops(&clean) < 0.1, "{clean:?}, {direct:?}");
        assert_eq!(encoded("", 3), clean);
        // Frames overtake each other by several wraps of six-bit numbers.
        encoded("delay 2us 2us duplicate 1%", 1);
        let lossy = encoded("loss 2%", 1);
        assert!(lossy.frames_lost > 0 && lossy.retransmitted_packets > 0);
        assert!(hops(&lossy) < 0.2, "{lossy:?}, {direct:?}");
        assert!(lossy.latency_cycles.mean > clean.latency_cycles.mean);
        assert_eq!(encoded("loss 2%", 2), lossy);
    }
}

mod canaries {
    use super::*;
    use phitwire::sim::direct::check::Violation;

    /// Runs for a while, lets `spoil` break something, and runs to the end.
    fn spoiled(routing: Routing, spoil: impl FnOnce(&mut DirectPart<Aries>)) -> Vec<Violation> {
        let topology = dragonfly(2, 2, 2, 2, 2);
        let config = config(300_000, routing);
        let mut simulation = direct(&topology, &config, 1);
        simulation.run_windows(20);
        let mut violations = Vec::new();
        simulation.check_now(&mut violations);
        assert_eq!(violations, [], "no violations before the sabotage");
        spoil(&mut simulation.direct_parts_mut()[0]);
        simulation.check_now(&mut violations);
        violations.extend(simulation.run(&mut Serial, |_| {}).violations);
        violations
    }

    fn has(violations: &[Violation], found: impl Fn(&Violation) -> bool) -> bool {
        violations.iter().any(found)
    }

    #[test]
    fn nothing_is_found_where_nothing_was_spoiled() {
        assert_eq!(spoiled(Routing::Adaptive0, |_| {}), []);
    }

    #[test]
    fn a_lost_or_invented_credit_is_missed() {
        for used in [0, 100] {
            let violations = spoiled(Routing::Adaptive0, |part| {
                part.routers[0].spoil_credits(0, 5, used + 3);
            });
            let credits = |v: &Violation| matches!(v, Violation::Credits { vc: 5, .. });
            assert!(has(&violations, credits), "{violations:?}");
        }
    }

    #[test]
    fn a_wrong_bit_is_noticed() {
        let violations = spoiled(Routing::Adaptive0, |part| {
            let size = part.exchange.window;
            let first = part.exchange.terminal_slot(0) as usize;
            let slots = first..part.exchange.read.arrivals.len();
            let index = slots.into_iter().find_map(|slot| {
                let cycles = part.exchange.read.arrivals[slot].phits;
                (cycles != 0).then(|| slot * size + 63 - cycles.leading_zeros() as usize)
            });
            part.exchange.read.phits[index.expect("a flit is under way")] ^= 1 << 3;
        });
        assert!(has(&violations, |v| matches!(v, Violation::Damaged(1))));
    }

    #[test]
    fn a_flit_too_few_is_missed() {
        let violations = spoiled(Routing::Adaptive0, |part| {
            part.endpoints.shared.tally.sent_phits += 1
        });
        assert!(has(&violations, |v| matches!(v, Violation::Phits { .. })));
    }

    #[test]
    fn two_requests_exchanged_on_one_way_are_noticed() {
        let violations = spoiled(Routing::Ordered, |part| {
            part.endpoints.terminals[0].swap_next()
        });
        assert_eq!(violations, [Violation::Overtaken(1)]);
    }

    #[test]
    fn packets_out_of_order_are_seen_to_overtake() {
        let violations = |routing, order| {
            spoiled(routing, |part| {
                part.endpoints
                    .terminals
                    .iter_mut()
                    .for_each(|t| t.expect_order(order));
            })
        };
        let overtaken = |v: &Violation| matches!(v, Violation::Overtaken(_));
        assert_eq!(violations(Routing::Adaptive0, None), []);
        for order in [Order::PerPair, Order::PerLine] {
            let found = violations(Routing::Adaptive0, Some(order));
            assert!(has(&found, overtaken), "{order:?}");
        }
        for hashed in [Routing::MinHash, Routing::NminHash] {
            // Only requests to the same line stay in order.
            assert_eq!(spoiled(hashed, |_| {}), []);
            let of_pairs = violations(hashed, Some(Order::PerPair));
            assert!(has(&of_pairs, overtaken), "{hashed:?}");
        }
        assert_eq!(spoiled(Routing::Ordered, |_| {}), []);
    }

    #[test]
    fn packets_that_never_leave_are_noticed() {
        // Before any packet is in flight: no credit will return.
        let topology = dragonfly(2, 2, 2, 2, 2);
        let config = config(300_000, Routing::Minimal);
        let mut simulation = direct(&topology, &config, 1);
        simulation.direct_parts_mut()[0].routers[0].fill(0);
        let violations = simulation.run(&mut Serial, |_| {}).violations;
        assert!(has(&violations, |v| matches!(v, Violation::Starved { .. })));
    }

    #[test]
    fn packets_without_a_path_are_noticed() {
        let mut topology = dragonfly(2, 1, 2, 1, 1);
        let is_blue = |link: &crate::topology::DragonflyLink| {
            topology.kind(link) == Some(crate::route::registers::PortKind::Blue)
        };
        let blue = topology.links.iter().position(is_blue).unwrap();
        topology.links.remove(blue);
        for grain in [Grain::Flit, Grain::Packet] {
            let mut config = config(100_000, Routing::Minimal);
            config.aries.grain = grain;
            let mut simulation = direct(&topology, &config, 1);
            let violations = simulation.run(&mut Serial, |_| {}).violations;
            assert!(has(&violations, |v| matches!(v, Violation::Refused(_))));
            let credits = |v: &Violation| matches!(v, Violation::Credits { .. });
            assert!(!has(&violations, credits), "{grain:?} {violations:?}");
        }
    }
}

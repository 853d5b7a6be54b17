mod encoded;

use super::*;
use crate::route::clocks::Corners;
use crate::route::{Shape, walk};
use crate::router::{PROCESSOR, PROCESSOR_CYCLES};
use crate::topology::{Channels, Defect, Defects, TorusSpec};
use phitwire::chip::Grain;
use phitwire::net::Describe as _;
use phitwire::sim::direct::*;

fn torus(size: &str) -> Torus {
    let found = Torus::generate(&format!("t3e-{size}"));
    found.expect("a torus").expect("a size")
}

fn broken(size: &str, defects: &[&str]) -> Torus {
    let shape: Shape = size.parse().unwrap();
    let mut all = Defects::default();
    for text in defects {
        assert!(all.add(Defect::read(text, &shape).unwrap()));
    }
    let spec = TorusSpec {
        defects: all,
        ..TorusSpec::new(shape)
    };
    spec.torus()
}

fn config(pattern: &str, millionths: u32) -> Config {
    Config {
        traffic: Traffic {
            pattern: pattern.parse().unwrap(),
            load: Load::from_millionths(millionths).unwrap(),
            message_bytes: 64,
            ..Traffic::default()
        },
        measure_cycles: 4_000,
        warmup: Warmup::Cycles(2_000),
        ..Config::default()
    }
}

const fn choosing(adaptive: bool, channels: Option<Channels>) -> T3eOptions {
    T3eOptions {
        operation: Operation::Put,
        adaptive: Some(adaptive),
        channels,
        grain: Grain::Flit,
        e_registers: None,
        memory_ns: 0,
    }
}

const DETERMINISTIC: T3eOptions = choosing(false, None);
const ADAPTIVE: T3eOptions = choosing(true, None);
const ALL: [T3eOptions; 4] = [
    DETERMINISTIC,
    ADAPTIVE,
    choosing(false, Some(Channels::TimeOfCrossing)),
    choosing(true, Some(Channels::TimeOfCrossing)),
];

fn direct(
    topology: &Torus,
    config: &Config,
    options: &T3eOptions,
    partitions: usize,
) -> Simulation<T3e> {
    Simulation::new(topology, config, options, partitions).unwrap()
}

fn run(topology: &Torus, config: &Config, options: &T3eOptions) -> Report {
    let mut simulation = direct(topology, config, options, 1);
    let report = simulation.run(&mut Serial, |_| {});
    assert_eq!(report.violations, [], "{options:?} {config:?}");
    report
}

fn over_links(
    topology: &Torus,
    config: &Config,
    options: &T3eOptions,
    (words, partitions): (&str, usize),
) -> Report {
    let netem = (!words.is_empty()).then(|| words.parse().unwrap());
    let mut simulation: Simulation<T3e> =
        Simulation::with_encoded_links(topology, config, options, netem, partitions, &mut Serial)
            .unwrap();
    let report = simulation.run(&mut Serial, |_| {});
    assert_eq!(report.violations, [], "{words} {options:?} {config:?}");
    report
}

/// Clocks of the wires from a processor to its router. T3E figure 7 already includes those to the
/// destination.
const WIRES: u64 = PROCESSOR_CYCLES;
/// Flits after the header of a put of 64 bytes.
const BEHIND: u64 = 9;

/// Clocks of all pairs, from the generation of a put of 64 bytes to its last flit.
fn clocks(topology: &Torus) -> Vec<u64> {
    let routes = topology.routes().unwrap();
    let nodes = topology.shape().nodes();
    let pairs = (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to)));
    let between = pairs.filter(|(from, to)| from != to);
    let of = |(from, to)| {
        let entry = routes.tables.route(from, to).unwrap();
        let (shape, registers) = (topology.shape(), &routes.registers);
        let way = walk(shape, &routes.broken, registers, from, to, &entry).unwrap();
        u64::from(Corners::of(&way).clocks()) + WIRES + BEHIND
    };
    between.map(of).collect()
}

#[test]
fn packets_alone_take_the_clocks_of_table_2() {
    // Along a ring, and through a turn; the path back is equal.
    for (size, pattern, passed) in [
        ("4x1x1", "neighbour", 0),
        ("8x1x1", "tornado", 2 * 3),
        ("2x2x1", "bit-complement", 6),
        ("2x2x2", "bit-complement", 2 * 6),
    ] {
        for options in ALL {
            let report = run(&torus(size), &config(pattern, 10_000), &options);
            let LatencySummary { min, p50, .. } = report.latency_cycles;
            let alone = WIRES + 10 + passed + 10 + BEHIND;
            assert_eq!((min, p50), (alone, alone), "{size} {options:?}");
        }
    }
    let topology = torus("4x4x4");
    let all = clocks(&topology);
    let mean = all.iter().sum::<u64>() as f64 / all.len() as f64;
    let mut config = config("uniform", 2_000);
    config.measure_cycles = 200_000;
    for options in [DETERMINISTIC, ADAPTIVE] {
        let LatencySummary {
            min,
            mean: found,
            count,
            ..
        } = run(&topology, &config, &options).latency_cycles;
        assert!(count > 2_000 && min == *all.iter().min().unwrap());
        assert!(
            (found - mean).abs() < 0.01 * mean,
            "{found} of {mean} {options:?}"
        );
    }
}

#[test]
fn an_answer_takes_its_own_way() {
    let mut config = config("neighbour", 10_000);
    config.traffic.request_reply = true;
    // A put sends ten flits there and two back, after a clock at the target; a get does the
    // reverse.
    for operation in [Operation::Put, Operation::Get] {
        let options = T3eOptions {
            operation,
            ..ADAPTIVE
        };
        let report = run(&torus("4x1x1"), &config, &options);
        let latency = report.latency_cycles.min;
        assert_eq!(latency, 2 * (WIRES + 20) + BEHIND + 1 + 1, "{operation:?}");
        assert_eq!(report.hops_mean, 4.0);
    }
}

#[test]
fn every_way_pattern_and_load_keeps_the_rules() {
    let sizes = ["2x2x2", "2x4x1", "5x3x2", "4x4x2-2x4x1-4x2x1"];
    for size in sizes {
        let topology = torus(size);
        for (at, pattern) in ["uniform", "tornado", "permutation", "hotspot:1:60"]
            .iter()
            .enumerate()
        {
            for (millionths, bytes) in [(200_000, 8), (600_000, 64), (1_000_000, 64)] {
                for options in ALL {
                    let mut config = config(pattern, millionths);
                    (config.measure_cycles, config.warmup) = (700, Warmup::Cycles(300));
                    config.traffic.message_bytes = bytes;
                    config.traffic.request_reply = (at + bytes as usize / 8).is_multiple_of(2);
                    config.traffic.process = match at % 2 {
                        0 => Process::Bernoulli,
                        _ => Process::OnOff,
                    };
                    let operation = match millionths {
                        600_000 => Operation::Get,
                        _ => Operation::Put,
                    };
                    let options = T3eOptions {
                        operation,
                        ..options
                    };
                    let report = run(&topology, &config, &options);
                    assert!(report.packets > 30, "{size} {pattern} {report:?}");
                }
            }
        }
    }
}

#[test]
fn other_patterns_do_so_as_well() {
    let topology = torus("4x4x4");
    for pattern in [
        "bit-complement",
        "transpose",
        "bit-reverse",
        "shuffle",
        "neighbour",
        "diagonal",
        "asymmetric",
        "grid-transpose",
        "grid-rotation",
        "grid-tornado",
        "grid-bit-reverse",
    ] {
        for options in [DETERMINISTIC, ADAPTIVE] {
            let mut config = config(pattern, 900_000);
            config.measure_cycles = 1_000;
            let report = run(&topology, &config, &options);
            assert!(report.packets > 1_000, "{pattern} {report:?}");
        }
    }
}

#[test]
fn nothing_is_left_behind_between_any_two_windows() {
    for options in ALL {
        for (size, reply) in [("4x4x2-2x4x1", true), ("8x2x1", false)] {
            let mut config = config("uniform", 900_000);
            config.traffic.request_reply = reply;
            let mut simulation = direct(&torus(size), &config, &options, 3);
            for _ in 0..400 {
                simulation.run_windows(1);
                let mut violations = Vec::new();
                simulation.check_now(&mut violations);
                assert_eq!(violations, []);
            }
        }
    }
}

#[test]
fn partitions_change_nothing() {
    for (size, options) in [
        ("4x4x4", ADAPTIVE),
        ("4x4x2-2x4x1", ADAPTIVE),
        ("8x4x1", DETERMINISTIC),
    ] {
        let topology = torus(size);
        let mut config = config("uniform", 500_000);
        config.traffic.request_reply = true;
        (config.measure_cycles, config.warmup) = (1_000, Warmup::Cycles(500));
        let one = run(&topology, &config, &options);
        assert!(one.packets > 300);
        for partitions in [2, 3, 7] {
            let mut simulation = direct(&topology, &config, &options, partitions);
            let report = simulation.run(&mut Serial, |_| {});
            assert_eq!(report, one, "{size} {partitions}");
        }
        config.seed = 2;
        assert_ne!(run(&topology, &config, &options).trace_hash, one.trace_hash);
    }
}

#[test]
fn without_adaptive_routing_nobody_gets_more_than_links_have() {
    let topology = torus("4x4x4");
    for pattern in ["bit-complement", "tornado", "grid-rotation"] {
        let mut full = config(pattern, 1_000_000);
        full.measure_cycles = 10_000;
        let bound = T3e::bound(&topology, &full, &DETERMINISTIC);
        let bound = bound.unwrap().unwrap();
        let [plain, adaptive] =
            [DETERMINISTIC, ADAPTIVE].map(|options| run(&topology, &full, &options));
        // The packets of some source use the most loaded link. Measured packets may have been sent
        // slightly earlier.
        let least = plain.fairness.min;
        assert!(least <= bound * 1.01, "{pattern} {least} of {bound}");
        assert!(least > bound * 0.3, "{pattern} {least} of {bound}");
        assert!(plain.links.iter().all(|(_, link)| link.max <= 1.0));
        let ratio = adaptive.accepted_load / plain.accepted_load;
        assert!(ratio > 0.7, "{pattern} {ratio}");
        let half = config(pattern, (500_000.0 * bound) as u32);
        assert!(
            !run(&topology, &half, &DETERMINISTIC).saturated,
            "{pattern}"
        );
    }
}

#[test]
fn two_neighbours_fill_their_link() {
    // T3E table 4: a flit in every clock, in one direction and in both.
    let report = run(
        &torus("2x1x1"),
        &config("neighbour", 1_000_000),
        &DETERMINISTIC,
    );
    let (_, links) = &report.links[0];
    assert!(links.max > 0.99, "{report:?}");
}

#[test]
fn partial_planes_broken_links_and_spares_lose_nothing() {
    let mut spared = TorusSpec {
        spares: 5,
        ..TorusSpec::new("4x4x2".parse().unwrap())
    };
    for node in [3, 9] {
        spared.defects.add(Defect::Node(node));
    }
    for topology in [
        broken("4x4x2", &["(0,0,0)+X", "(1,2,1)+Y", "(3,3,0)+Z"]),
        // An isolated node neither sends nor receives.
        broken("4x4x4", &["(1,1,1)", "(2,2,0)+X"]),
        broken("4x4x2+2x4x1", &["(1,1,2)+Y"]),
        // Spares have the numbers of two nodes; three nodes have none.
        spared.torus(),
    ] {
        for options in [DETERMINISTIC, ADAPTIVE] {
            for reply in [false, true] {
                let mut config = config("uniform", 600_000);
                config.traffic.request_reply = reply;
                (config.measure_cycles, config.warmup) = (1_000, Warmup::Cycles(500));
                let one = run(&topology, &config, &options);
                assert!(one.packets > 1_000);
                let mut simulation = direct(&topology, &config, &options, 2);
                assert_eq!(simulation.run(&mut Serial, |_| {}), one);
            }
        }
    }
}

#[test]
fn links_and_routers_break_and_come_back_while_it_runs() {
    let topology = torus("4x4x2");
    let mut config = config("uniform", 300_000);
    config.traffic.request_reply = true;
    for faults in [
        &["link 3 down at 30us for 5us"][..],
        &[
            "link 3 down at 30us for 5us",
            "link 40 down at 31us for 9us",
        ],
        &["router r5 down at 30us for 10us"],
    ] {
        config.faults = faults.iter().map(|fault| fault.parse().unwrap()).collect();
        for options in [DETERMINISTIC, ADAPTIVE] {
            let one = run(&topology, &config, &options);
            let mut simulation = direct(&topology, &config, &options, 3);
            assert_eq!(simulation.run(&mut Serial, |_| {}), one, "{faults:?}");
        }
    }
}

/// Trace hashes of runs with ideal links. Every change needs an explanation.
#[test]
fn traces_stay_what_they_are() {
    let hash = |size: &str, config: &Config, options: &T3eOptions| {
        format!("{:016x}", run(&torus(size), config, options).trace_hash)
    };
    let short = |config| Config {
        measure_cycles: 1_000,
        warmup: Warmup::Cycles(500),
        ..config
    };
    let uniform = short(config("uniform", 600_000));
    let mut answered = short(config("permutation", 700_000));
    answered.traffic.request_reply = true;
    answered.traffic.process = Process::OnOff;
    let mut broken = short(config("uniform", 500_000));
    broken.faults = vec!["link 7 down at 10us for 5us".parse().unwrap()];
    assert_eq!(
        [
            hash("4x4x4", &uniform, &ADAPTIVE),
            hash("4x4x4", &uniform, &DETERMINISTIC),
            hash("4x8x2", &answered, &ALL[3]),
            hash("4x4x2-2x4x1", &answered, &ADAPTIVE),
            hash("2x2x2", &broken, &ADAPTIVE),
        ],
        [
            "8a3d0d8ad77515ca",
            "6f225020e94241f1",
            "4c7a6bff77ea1546",
            "bbb9a8eb56f057f3",
            "d974de7fd7fe245f",
        ]
    );
}

mod closed_loop;
mod waits;

mod canaries {
    use super::*;
    use phitwire::sim::direct::check::Violation;

    /// Runs for a while, lets `spoil` inject a fault, and runs to the end.
    fn spoiled(options: T3eOptions, spoil: impl FnOnce(&mut DirectPart<T3e>)) -> Vec<Violation> {
        let topology = torus("4x4x2");
        let mut simulation = direct(&topology, &config("uniform", 500_000), &options, 1);
        simulation.run_windows(50);
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
        assert_eq!(spoiled(ADAPTIVE, |_| {}), []);
    }

    #[test]
    fn a_lost_or_invented_credit_is_missed() {
        let credits = |v: &Violation| matches!(v, Violation::Credits { vc: 3, .. });
        let invented = spoiled(ADAPTIVE, |part| part.routers[0].invent_credit(0, 3));
        assert!(has(&invented, credits), "{invented:?}");
        let lost = spoiled(ADAPTIVE, |part| part.routers[0].lose_credit(1, 3));
        assert!(has(&lost, credits), "{lost:?}");
    }

    #[test]
    fn flits_without_a_slot_are_counted() {
        let violations = spoiled(DETERMINISTIC, |part| {
            for router in &mut part.routers {
                for port in 0..PROCESSOR {
                    (0..1_000).for_each(|_| router.invent_credit(port, 0));
                }
            }
        });
        let overflow = |v: &Violation| matches!(v, Violation::Overflow(_));
        assert!(has(&violations, overflow), "{violations:?}");
    }

    #[test]
    fn a_wrong_bit_is_noticed() {
        let violations = spoiled(ADAPTIVE, |part| {
            let size = part.exchange.window;
            let first = part.exchange.terminal_slot(0) as usize;
            let slots = first..part.exchange.read.arrivals.len();
            let index = slots.into_iter().find_map(|slot| {
                let cycles = part.exchange.read.arrivals[slot].phits;
                let index = slot * size + 63 - cycles.leading_zeros() as usize;
                let is_body = cycles != 0 && !part.exchange.read.phits[index].control.is_head();
                is_body.then_some(index)
            });
            part.exchange.read.phits[index.expect("a flit is under way")].word ^= 1 << 3;
        });
        let damaged = |v: &Violation| matches!(v, Violation::Damaged(1));
        assert!(has(&violations, damaged), "{violations:?}");
    }

    #[test]
    fn a_flit_too_few_is_missed() {
        let violations = spoiled(ADAPTIVE, |part| part.endpoints.shared.tally.sent_phits += 1);
        assert!(has(&violations, |v| matches!(v, Violation::Phits { .. })));
    }

    #[test]
    fn two_requests_exchanged_on_one_way_are_noticed() {
        let violations = spoiled(DETERMINISTIC, |part| {
            part.endpoints.terminals[0].swap_next()
        });
        assert_eq!(violations, [Violation::Overtaken(1)]);
    }

    #[test]
    fn packets_of_adaptive_ways_are_seen_to_overtake() {
        let expect_order = |part: &mut DirectPart<T3e>| {
            part.endpoints
                .terminals
                .iter_mut()
                .for_each(Terminal::expect_order);
        };
        let overtaken = |v: &Violation| matches!(v, Violation::Overtaken(_));
        assert!(has(&spoiled(ADAPTIVE, expect_order), overtaken));
        assert_eq!(spoiled(DETERMINISTIC, expect_order), []);
    }

    #[test]
    fn a_ring_without_datelines_is_seen_to_stand_still() {
        let run = |spoils: bool| {
            let mut config = config("tornado", 1_000_000);
            config.traffic.request_reply = false;
            let mut simulation = direct(&torus("16x1x1"), &config, &ALL[2], 1);
            if spoils {
                for router in &mut simulation.direct_parts_mut()[0].routers {
                    router.registers_mut().datelines = Default::default();
                }
            }
            simulation.run(&mut Serial, |_| {}).violations
        };
        assert_eq!(run(false), []);
        let starved = |v: &Violation| matches!(v, Violation::Starved { .. });
        assert!(has(&run(true), starved));
    }

    /// Canary of the check that encoded links are idle.
    #[test]
    fn packets_in_flight_over_encoded_links_are_not_at_rest() {
        let topology = torus("2x2x1");
        let config = config("uniform", 500_000);
        let mut simulation: Simulation<T3e> =
            Simulation::with_encoded_links(&topology, &config, &ADAPTIVE, None, 1, &mut Serial)
                .unwrap();
        let mut violations = Vec::new();
        for _ in 0..200 {
            simulation.run_windows(1);
            simulation.check_now(&mut violations);
        }
        let link = |v: &Violation| matches!(v, Violation::Link(_));
        assert!(has(&violations, link));
    }
}

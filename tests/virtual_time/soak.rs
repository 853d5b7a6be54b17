//! Random networks, traffic and harm, from a seed each.
//!
//! `PHITWIRE_SOAK_SEEDS=17` or `=1..1000` replays or widens the run:
//! `PHITWIRE_SOAK_SEEDS=17 cargo test --test virtual_time soak -- --nocapture`.

use phitwire::link::impair::Probability;
use phitwire::nic::{Operation, Pattern, TrafficSpec};
use phitwire::rng::Rng;
use phitwire::sim::check::Allowance;
use phitwire::sim::{Direction, LinkId, LinkSpec, Network};
use phitwire::time::Duration;
use phitwire::topology::{BlackwidowSpec, Rank, Taper, Topology};

use crate::harness::{bring_up, finish, live, netem, paced};

/// Seeds of the ordinary run.
const SEEDS: std::ops::Range<u64> = 1..51;

/// One random case. What it prints on failure is all there is to it.
#[derive(Debug)]
struct Case {
    seed: u64,
    #[expect(dead_code, reason = "printed")]
    spec: BlackwidowSpec,
    link: LinkSpec,
    impairment: String,
    traffic: TrafficSpec,
    harms: Vec<(Duration, Harm)>,
}

/// Something done to the network while traffic flows. Links and nodes are numbers modulo how many
/// there are.
#[derive(Clone, Debug)]
enum Harm {
    Cut { link: u32, span: Duration },
    ForceRetry { link: u32 },
    LaneNoise { link: u32, lane: u8, a_to_b: bool },
    Impair { link: u32, words: String },
    SoftError { link: u32 },
    DownAndUp { link: u32, span: Duration },
    RestartRouter { router: u32 },
    RestartNic { nic: u32 },
}

impl Harm {
    /// Whether messages may be lost by it.
    fn destroys(&self) -> bool {
        matches!(
            self,
            Self::SoftError { .. }
                | Self::DownAndUp { .. }
                | Self::RestartRouter { .. }
                | Self::RestartNic { .. }
        )
    }
}

fn pick<T: Clone>(rng: &mut Rng, from: &[T]) -> T {
    from[rng.below(from.len() as u64) as usize].clone()
}

fn up_to(rng: &mut Rng, bound_us: u64) -> Duration {
    Duration::from_us(rng.below(bound_us) + 1)
}

/// Words of netem; delays in proportion to the round trip.
fn random_netem(rng: &mut Rng, unit_us: u64) -> String {
    let mut words = String::new();
    if rng.chance(1, 2) {
        let delay = rng.below(20 * unit_us) + 1;
        words += &format!("delay {delay}us {}us ", rng.below(delay + 1));
        if rng.chance(1, 3) {
            words += &format!("reorder {}% gap {} ", rng.below(50) + 1, rng.below(5) + 1);
        }
    }
    match rng.below(4) {
        0 => words += &format!("loss {}% ", rng.below(25)),
        1 => words += &format!("loss {}% 25% ", rng.below(10)),
        2 => words += "loss gemodel 1% 20% 80% 0.1% ",
        _ => {}
    }
    if rng.chance(1, 3) {
        words += &format!("duplicate {}% ", rng.below(10) + 1);
    }
    if rng.chance(1, 3) {
        words += &format!("corrupt {}% ", rng.below(5) + 1);
    }
    words + "limit 100000"
}

fn random_spec(rng: &mut Rng) -> (BlackwidowSpec, Topology) {
    loop {
        let subtree = 1 + rng.below(6) as u32;
        let processors = 2 + rng.below(15) as u32;
        let base = if rng.chance(1, 3) { paced } else { live };
        let fraction = Taper::new(1 + rng.below(3) as u32, 3);
        let mut spec = BlackwidowSpec {
            rank: rng.chance(3, 4).then(|| pick(rng, &Rank::ALL)),
            slices: 1 + rng.below(3) as u8,
            uplinks: rng.chance(1, 2).then(|| 1 + rng.below(4) as u32),
            taper: [fraction.unwrap_or(Taper::FULL); 3],
            virtual_radix: pick(rng, &[8, 16, 32]),
            group: rng.chance(1, 2).then_some(2),
            ..base(processors, subtree)
        };
        spec.settings.lane_retry_threshold = 20;
        // Not every combination is a network.
        if let Ok(topology) = spec.generate()
            && phitwire::topology::check(&topology).is_empty()
        {
            return (spec, topology);
        }
    }
}

fn random_harm(rng: &mut Rng, unit_us: u64) -> Harm {
    let link = rng.next_u64() as u32;
    let long = up_to(rng, 300 * unit_us);
    match rng.below(12) {
        0..3 => Harm::Cut { link, span: long },
        3..5 => Harm::ForceRetry { link },
        5..7 => Harm::LaneNoise {
            link,
            lane: rng.below(3) as u8,
            a_to_b: rng.chance(1, 2),
        },
        7..9 => Harm::Impair {
            link,
            words: random_netem(rng, unit_us),
        },
        9 => Harm::SoftError { link },
        10 => Harm::DownAndUp { link, span: long },
        _ if rng.chance(1, 2) => Harm::RestartRouter { router: link },
        _ => Harm::RestartNic { nic: link },
    }
}

fn random_case(seed: u64) -> (Case, Topology) {
    let mut rng = Rng::new(seed, 0x50a4);
    let (spec, topology) = random_spec(&mut rng);
    let is_paced = spec.settings.profile == phitwire::topology::Profile::Paper;
    // Times scale with the round trip: 25 ns of cable, or microseconds between processes.
    let unit_us = if is_paced { 1 } else { 20 };
    let latency = if is_paced {
        Duration::from_ns(1 + rng.below(200))
    } else {
        up_to(&mut rng, 20)
    };
    let link = LinkSpec {
        latency,
        mtu: pick(&mut rng, &[180, 512, 1472, 9000]),
    };
    let patterns = [
        Pattern::Uniform,
        Pattern::Neighbour,
        Pattern::BitComplement,
        Pattern::Tornado,
        Pattern::Permutation,
        Pattern::Hotspot {
            targets: vec![topology.processors[0].number],
            percent: 40,
        },
    ];
    let traffic = TrafficSpec {
        run: 1,
        pattern: pick(&mut rng, &patterns),
        processors: topology.processors.iter().map(|p| p.number).collect(),
        op: pick(&mut rng, &[Operation::Put, Operation::Put, Operation::Get]),
        size: 1 + rng.below(32) as u8,
        window: 1 + rng.below(200) as u32,
        count: 30 + rng.below(200),
        addresses: 1 + rng.below(64) as u16,
        seed,
        ..TrafficSpec::default()
    };
    let harms = (0..rng.below(8))
        .map(|_| {
            (
                up_to(&mut rng, 60 * unit_us),
                random_harm(&mut rng, unit_us),
            )
        })
        .collect();
    let impairment = if rng.chance(2, 3) {
        random_netem(&mut rng, unit_us)
    } else {
        String::new()
    };
    (
        Case {
            seed,
            spec,
            link,
            impairment,
            traffic,
            harms,
        },
        topology,
    )
}

fn inflict(network: &mut Network, harm: &Harm) {
    let links = network.fabric.links() as u32;
    let on_port = |network: &mut Network, link: u32, act: &dyn Fn(&mut phitwire::link::Lcb)| {
        let (node, port) = network.fabric.ends(LinkId(link % links))[0];
        network.fabric.command(node, |machine, now| {
            machine.with_lcb(now, port, |lcb, _| act(lcb))
        });
    };
    let now = network.fabric.now();
    match harm {
        Harm::Cut { link, span } => {
            let link = LinkId(link % links);
            network.fabric.cut(link);
            network.fabric.run_for(*span);
            network.fabric.restore(link);
        }
        Harm::ForceRetry { link } => on_port(network, *link, &|lcb| lcb.force_retry(now)),
        Harm::LaneNoise { link, lane, a_to_b } => {
            let direction = if *a_to_b {
                Direction::AToB
            } else {
                Direction::BToA
            };
            let rate = Probability::from_ratio(1, 500);
            network
                .fabric
                .lane_noise(LinkId(link % links), direction, Some((*lane, rate)));
        }
        Harm::Impair { link, words } => {
            for direction in Direction::BOTH {
                network
                    .fabric
                    .impair(LinkId(link % links), direction, Some(netem(words)));
            }
        }
        Harm::SoftError { link } => on_port(network, *link, &|lcb| lcb.soft_error_next()),
        Harm::DownAndUp { link, span } => {
            let (node, port) = network.fabric.ends(LinkId(link % links))[0];
            network.fabric.command(node, |machine, now| {
                machine.with_lcb(now, port, |lcb, input| lcb.link_down(now, input))
            });
            network.fabric.run_for(*span);
            on_port(network, *link, &|lcb| lcb.link_up(now + *span));
        }
        Harm::RestartRouter { router } => {
            let count = network.routers().count() as u32;
            let node = network.routers().nth((router % count) as usize);
            network
                .restart(node.expect("a number below the count"))
                .expect("a sound topology");
        }
        Harm::RestartNic { nic } => {
            let count = network.processors().count() as u32;
            let node = network.processors().nth((nic % count) as usize);
            network
                .restart(node.expect("a number below the count"))
                .expect("a sound topology");
        }
    }
}

fn run_case(case: &Case, topology: Topology) -> u64 {
    let mut network = bring_up(topology, case.seed, case.link);
    network.fabric.impair_all(Some(netem(&case.impairment)));
    network
        .start_traffic(&case.traffic)
        .expect("the run is possible");
    let mut allow = Allowance::default();
    for (after, harm) in &case.harms {
        network.fabric.run_for(*after);
        inflict(&mut network, harm);
        allow.losses |= harm.destroys();
    }
    // A while under what is left of the harm, then the liveness phase.
    network.fabric.run_for(Duration::from_ms(5));
    network.fabric.impair_all(None);
    for link in (0..network.fabric.links() as u32).map(LinkId) {
        for direction in Direction::BOTH {
            network.fabric.lane_noise(link, direction, None);
        }
    }
    let limit = Duration::from_ms(120_000);
    let restarted = case
        .harms
        .iter()
        .any(|(_, harm)| matches!(harm, Harm::RestartNic { .. }));
    if restarted {
        // The report of a dead network interface is gone, so that nothing can be added up.
        assert!(network.finish_traffic(1, limit), "{:#?}", network.report(1));
        let report = network.report(1);
        assert_eq!((report.duplicated, report.misordered), (0, 0));
        // A new incarnation's memory is empty: gets find it so.
        let is_get = case.traffic.op == Operation::Get;
        assert!(report.corrupted == 0 || is_get, "{report:#?}");
    } else {
        finish(&mut network, 1, limit, allow);
    }
    // Whatever happened: everything after flows again, and nothing of it is lost.
    let links = crate::harness::link_states(&network);
    assert!(network.bring_up(limit), "all links come up again\n{links}");
    // Only soft errors that have not found a packet yet may still strike.
    let armed = case
        .harms
        .iter()
        .filter(|(_, harm)| matches!(harm, Harm::SoftError { .. }))
        .count();
    let again = TrafficSpec {
        run: 2,
        count: 20,
        ..case.traffic.clone()
    };
    network.start_traffic(&again).expect("the run is possible");
    let report = finish(&mut network, 2, limit, Allowance { losses: armed > 0 });
    assert!(report.timed_out <= armed as u64, "{report:#?}");
    println!(
        "seed {}: {} ms, {} nodes, {} frames, {} runs",
        case.seed,
        network.fabric.now().as_ns() / 1_000_000,
        network.fabric.nodes(),
        network.fabric.wire_counters().sent,
        network.fabric.runs()
    );
    network.fabric.trace_hash()
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test may be told which seeds to run"
)]
fn seeds() -> Vec<u64> {
    let Ok(text) = std::env::var("PHITWIRE_SOAK_SEEDS") else {
        return SEEDS.collect();
    };
    let number = |text: &str| {
        text.trim()
            .parse::<u64>()
            .expect("seeds are numbers: 17 or 1..1000")
    };
    match text.split_once("..") {
        Some((first, end)) => (number(first)..number(end)).collect(),
        None => vec![number(&text)],
    }
}

#[test]
fn soak() {
    for seed in seeds() {
        let (case, topology) = random_case(seed);
        let outcome = std::panic::catch_unwind(|| run_case(&case, topology));
        if let Err(panic) = outcome {
            println!("replay: PHITWIRE_SOAK_SEEDS={seed} cargo test --test virtual_time soak");
            println!("{case:#?}");
            std::panic::resume_unwind(panic);
        }
    }
}

#[test]
fn a_soak_seed_is_one_run() {
    let hash = |seed| {
        let (case, topology) = random_case(seed);
        run_case(&case, topology)
    };
    assert_eq!(hash(3), hash(3));
    assert_ne!(hash(3), hash(4));
}

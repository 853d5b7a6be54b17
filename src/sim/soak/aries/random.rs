//! How a case follows from its seed.

use super::{AriesCase, AriesHarm};
use crate::link::MIN_SET_FRAME_BYTES;
use crate::nic::aries::{Collective, CollectiveSpec};
use crate::nic::{Operation, Pattern, TrafficSpec, Ways};
use crate::rng::Rng;
use crate::sim::fabric::LinkSpec;
use crate::sim::soak::RUNS;
use crate::sim::soak::random::{Beside, Hardship, Late, netem, pick, up_to};
use crate::time::Duration;
use crate::topology::dragonfly::{
    Arrangement, DragonflySettings, DragonflySpec, Shape, check as check_topology,
};

/// Stream of the random numbers that a case is made from; those of its run are others.
const STREAM: u64 = 0xa41e6;
/// Stream of the random numbers that late copies are made from.
const LATE_STREAM: u64 = 0x1a7e6;
/// Times scale with the round trip of links between processes.
const UNIT_US: u64 = 20;
/// Ends stand still for less than the two seconds after which a link between processes is given up.
const LONGEST_STOP: Duration = Duration::from_ms(1_500);
/// Nodes of a case at most.
const MOST_ROUTERS: usize = 9;

fn spec(rng: &mut Rng, lane_retry_threshold: u32) -> DragonflySpec {
    loop {
        let shape = Shape {
            groups: 1 + rng.below(3) as u16,
            chassis: 1 + rng.below(2) as u8,
            blades: 1 + rng.below(4) as u8,
            nics: 1 + rng.below(2) as u8,
        };
        let spec = DragonflySpec {
            shape,
            black_links: (shape.chassis > 1).then(|| 1 + rng.below(2) as u8),
            global_links: (shape.groups > 1).then(|| 1 + rng.below(3) as u16),
            arrangement: pick(rng, &Arrangement::ALL).1,
            settings: DragonflySettings {
                lane_retry_threshold,
                ..DragonflySettings::default()
            },
            ..DragonflySpec::default()
        };
        // Not every combination is a network.
        if shape.routers() <= MOST_ROUTERS
            && shape.all_nics() > 1
            && let Ok(topology) = spec.generate()
            && check_topology(&topology).is_empty()
        {
            return spec;
        }
    }
}

fn harm(rng: &mut Rng) -> AriesHarm {
    let link = rng.next_u64() as u32;
    let span = up_to(rng, 300 * UNIT_US);
    match rng.below(16) {
        0..3 => AriesHarm::Cut { link, span },
        3..5 => AriesHarm::ForceRetry { link },
        5 => AriesHarm::BadCrc { link },
        6 => AriesHarm::Reinitialise { link },
        7 => AriesHarm::LoseClock { link, span },
        8..10 => AriesHarm::LaneNoise {
            link,
            // A lane of each link, so that no link loses all.
            lane: 0,
            a_to_b: rng.chance(1, 2),
        },
        10..12 => AriesHarm::Impair {
            link,
            words: netem(rng, UNIT_US),
        },
        12..14 => AriesHarm::SoftError { link },
        14 => AriesHarm::DownAndUp { link, span },
        _ => AriesHarm::RestartRouter { router: link },
    }
}

/// Payload bytes that `op` can have: of one packet, or of a block transfer.
fn size(rng: &mut Rng, op: Operation) -> u32 {
    let size = 1 + rng.below(200) as u32;
    match op {
        Operation::Put => size,
        Operation::Get if size <= 64 => size.next_multiple_of(4),
        Operation::Get => size,
        Operation::Amo => 8,
    }
}

fn ways(rng: &mut Rng, unnumbered: bool) -> Option<Ways> {
    let ordered = [Ways::Ordered, Ways::OrderedNonMinimal];
    let any = [
        Ways::Adaptive0,
        Ways::Adaptive1,
        Ways::Adaptive2,
        Ways::Adaptive3,
        Ways::Ordered,
        Ways::OrderedNonMinimal,
        Ways::Minimal,
        Ways::Valiant,
    ];
    let picked = pick(rng, if unnumbered { &ordered } else { &any[..] });
    rng.chance(3, 4).then_some(picked)
}

fn traffic(rng: &mut Rng, nics: usize, destroyed: bool, seed: u64) -> TrafficSpec {
    let patterns = [
        Pattern::Uniform,
        Pattern::Uniform,
        Pattern::Neighbour,
        Pattern::BitComplement,
        Pattern::Permutation,
        Pattern::Hotspot {
            targets: vec![0],
            percent: 40,
        },
    ];
    let op = pick(
        rng,
        &[
            Operation::Put,
            Operation::Put,
            Operation::Get,
            Operation::Amo,
        ],
    );
    let mut size = size(rng, op);
    if destroyed {
        // Stamps of fewer bytes cannot tell a loss from other damage.
        size = size.max(8);
    }
    let ways = ways(rng, op == Operation::Put && size < 8);
    TrafficSpec {
        run: RUNS[0],
        pattern: pick(rng, &patterns),
        processors: (0..nics as u16).collect(),
        op,
        size,
        window: 1 + rng.below(200) as u32,
        count: 30 + rng.below(200),
        addresses: 1 + rng.below(64) as u16,
        seed,
        ways,
        ..TrafficSpec::default()
    }
}

fn collectives(rng: &mut Rng, nics: usize) -> Option<CollectiveSpec> {
    let ops: Vec<Collective> = Collective::all().collect();
    let spec = CollectiveSpec {
        run: RUNS[0] as u32,
        nics: (0..nics as u32).rev().collect(),
        branching: 1 + rng.below(4) as u32,
        root: rng.below(nics as u64) as u32,
        engine: rng.below(4) as u8,
        op: pick(rng, &ops),
        count: 5 + rng.below(40),
        duration_ns: 0,
        // Longer than the repetitions of a request that was lost.
        patience_ns: 300_000_000_000,
    };
    rng.chance(2, 3).then_some(spec)
}

impl AriesCase {
    /// The case of `seed`.
    pub fn random(seed: u64) -> Self {
        Self::made(seed, Late::Seldom)
    }

    /// The case of `seed` with late copies, beside lanes that are given up, ends that stand still and routers that start
    /// again.
    pub fn with_late_copies(seed: u64) -> Self {
        Self::made(seed, Late::Always)
    }

    fn made(seed: u64, how: Late) -> Self {
        let mut rng = Rng::new(seed, STREAM);
        let mut late_rng = Rng::new(seed, LATE_STREAM);
        let beside = Beside::random(how, &mut late_rng);
        let spec = spec(&mut rng, beside.lane_threshold());
        let link = LinkSpec {
            latency: up_to(&mut rng, 20),
            mtu: pick(&mut rng, &[MIN_SET_FRAME_BYTES, 512, 1472, 9000]),
        };
        let mut harms: Vec<(Duration, AriesHarm)> = (0..rng.below(8))
            .map(|_| (up_to(&mut rng, 60 * UNIT_US), harm(&mut rng)))
            .collect();
        let mut impairment = if rng.chance(2, 3) {
            netem(&mut rng, UNIT_US)
        } else {
            String::new()
        };
        let unit = Duration::from_ms(10);
        let nics = spec.shape.all_nics();
        let is_lossy =
            |harm: &AriesHarm| matches!(harm, AriesHarm::SoftError { .. }) || harm.destroys();
        let destroyed = how == Late::Always || harms.iter().any(|(_, harm)| is_lossy(harm));
        let mut traffic = traffic(&mut rng, nics, destroyed, seed);
        let collectives = collectives(&mut rng, nics);
        if beside.late {
            let (link, percent, lateness) = beside.copies(&mut late_rng, unit);
            let copies = match how {
                Late::Seldom => AriesHarm::LateCopies {
                    link,
                    percent,
                    lateness,
                },
                // A link chosen at random may be one that two sources do not use.
                Late::Always => AriesHarm::LateCopiesEverywhere { percent, lateness },
            };
            harms.insert(0, (Duration::from_us(1), copies));
            beside.run_long(&mut traffic);
            if how == Late::Always {
                let hardship = Hardship::random(beside, &mut late_rng, unit, LONGEST_STOP);
                suffer_late(&mut harms, beside, &hardship);
            }
            impairment = beside.words(impairment);
        }
        Self {
            seed,
            link,
            impairment,
            traffic,
            collectives,
            harms,
            spec,
            #[cfg(test)]
            forgery: None,
        }
    }
}

/// What is done to links whose frames come again, and what the rest must not do then.
fn suffer_late(harms: &mut Vec<(Duration, AriesHarm)>, beside: Beside, hardship: &Hardship) {
    for (_, harm) in harms.iter_mut().filter(|_| beside.lanes) {
        if let AriesHarm::Impair { words, .. } = harm {
            *words = beside.words(core::mem::take(words));
        }
    }
    if let Some((after, busy, a_to_b)) = hardship.noise {
        harms.push((after, AriesHarm::LoseLane { busy, a_to_b }));
    }
    if let Some((after, busy, first, span)) = hardship.stop {
        harms.push((after, AriesHarm::Stop { busy, first, span }));
    }
    if let Some((after, busy)) = hardship.restart {
        harms.push((after, AriesHarm::RestartEnd { busy }));
    }
}

//! Random BlackWidow networks: folded Clos networks of YARCs.

use core::convert::Infallible;

use crate::link::MIN_FRAME_BYTES;
use crate::topology::{
    BlackWidowSpec, ClosSettings, FoldedClos, Rank, Taper, check as check_topology,
};
use phitwire::net::{Clock, Profile};
use phitwire::nic::{Operation, TrafficPattern, TrafficSpec};
use phitwire::rng::Rng;
use phitwire::sim::LinkSpec;
use phitwire::sim::soak::random::{LateConditions, netem, pick, up_to};
use phitwire::sim::soak::{Case, Family, Harm, Hooks, Late, RUNS, Soaked};
use phitwire::time::Duration;

pub(super) const FAMILIES: [Family; 1] =
    [Family::over_links::<BlackWidow>("blackwidow", "blackwidow")];

/// Random stream that builds a case. Its run uses other streams.
const STREAM: u64 = 0x50a4;
/// Random stream that makes late copies.
const LATE_STREAM: u64 = 0x1a7e;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlackWidow;

/// The chip's own depths and 1.25 ns cycle, or those of processes on real wires.
fn settings(paced: bool, lane_retry_threshold: u32) -> ClosSettings {
    let mut settings = ClosSettings {
        lane_retry_threshold,
        ..ClosSettings::default()
    };
    if paced {
        settings.profile = Profile::Paper;
        settings.clock = Clock::Paced { dilation: 1 };
    }
    settings
}

fn spec(rng: &mut Rng, lane_retry_threshold: u32) -> (BlackWidowSpec, FoldedClos) {
    loop {
        let subtree = 1 + rng.below(6) as u32;
        let processors = 2 + rng.below(15) as u32;
        let paced = rng.chance(1, 3);
        let fraction = Taper::new(1 + rng.below(3) as u32, 3);
        let spec = BlackWidowSpec {
            processors,
            subtree,
            rank: rng.chance(3, 4).then(|| pick(rng, &Rank::ALL)),
            slices: 1 + rng.below(3) as u8,
            uplinks: rng.chance(1, 2).then(|| 1 + rng.below(4) as u32),
            taper: [fraction.unwrap_or(Taper::FULL); 3],
            virtual_radix: pick(rng, &[8, 16, 32]),
            group: rng.chance(1, 2).then_some(2),
            settings: settings(paced, lane_retry_threshold),
            ..BlackWidowSpec::default()
        };
        // Skip combinations that do not form a network.
        if let Ok(topology) = spec.generate()
            && check_topology(&topology).is_empty()
        {
            return (spec, topology);
        }
    }
}

fn harm(rng: &mut Rng, unit_us: u64) -> Harm<Infallible> {
    let link = rng.next_u64() as u32;
    let span = up_to(rng, 300 * unit_us);
    match rng.below(12) {
        0..3 => Harm::Cut { link, span },
        3..5 => Harm::ForceRetry { link },
        5..7 => Harm::LaneNoise {
            link,
            lane: rng.below(3) as u8,
            a_to_b: rng.chance(1, 2),
        },
        7..9 => Harm::Impair {
            link,
            words: netem(rng, unit_us),
        },
        9 => Harm::SoftError { link },
        10 => Harm::DownAndUp { link, span },
        _ if rng.chance(1, 2) => Harm::RestartRouter { router: link },
        _ => Harm::RestartNic { nic: link },
    }
}

fn traffic(rng: &mut Rng, topology: &FoldedClos, seed: u64) -> TrafficSpec {
    let patterns = [
        TrafficPattern::Uniform,
        TrafficPattern::Neighbour,
        TrafficPattern::BitComplement,
        TrafficPattern::Tornado,
        TrafficPattern::Permutation,
        TrafficPattern::Hotspot {
            targets: vec![topology.processors[0].number],
            percent: 40,
        },
    ];
    TrafficSpec {
        run: RUNS[0],
        pattern: pick(rng, &patterns),
        processors: topology.processors.iter().map(|p| p.number).collect(),
        op: pick(rng, &[Operation::Put, Operation::Put, Operation::Get]),
        size: 1 + rng.below(32) as u32,
        window: 1 + rng.below(200) as u32,
        count: 30 + rng.below(200),
        addresses: 1 + rng.below(64) as u16,
        seed,
        ..TrafficSpec::default()
    }
}

impl Soaked for BlackWidow {
    type Spec = BlackWidowSpec;
    type Topology = FoldedClos;
    type Own = Infallible;

    const LIVENESS: Duration = Duration::from_ms(120_000);
    const REFUSALS: bool = false;

    fn generate(spec: &BlackWidowSpec) -> Result<FoldedClos, String> {
        spec.generate().map_err(|error| error.to_string())
    }

    /// Number of the first packet, often chosen so that 16, 32 or all 48 bits wrap during the run.
    fn first_packet(seed: u64) -> u64 {
        // Uses a separate stream, so that existing seeds keep their other choices.
        let mut rng = Rng::new(seed, STREAM + 1);
        match rng.below(4) {
            0 => 0,
            width => (1 << (16 * width)) - 1 - rng.below(200),
        }
    }

    fn case(seed: u64, how: Late) -> Case<Self> {
        let mut rng = Rng::new(seed, STREAM);
        let mut late_rng = Rng::new(seed, LATE_STREAM);
        let conditions = LateConditions::random(how, &mut late_rng);
        let (spec, topology) = spec(&mut rng, conditions.lane_threshold());
        // Times scale with the round trip: 25 ns of cable, or microseconds between processes.
        let is_paced = spec.settings.profile == Profile::Paper;
        let (unit_us, latency) = if is_paced {
            (1, Duration::from_ns(1 + rng.below(200)))
        } else {
            (20, up_to(&mut rng, 20))
        };
        let link = LinkSpec {
            latency,
            mtu: pick(&mut rng, &[MIN_FRAME_BYTES, 512, 1472, 9000]),
        };
        let mut traffic = traffic(&mut rng, &topology, seed);
        let harms: Vec<(Duration, Harm<Infallible>)> = (0..rng.below(8))
            .map(|_| (up_to(&mut rng, 60 * unit_us), harm(&mut rng, unit_us)))
            .collect();
        if harms.iter().any(|(_, harm)| harm.may_lose()) {
            // Stamps below 4 bytes cannot distinguish a loss from other damage.
            traffic.size = traffic.size.max(4);
        }
        let impairment = if rng.chance(2, 3) {
            netem(&mut rng, unit_us)
        } else {
            String::new()
        };
        // Unusable frames end a session after a millisecond in one profile, and after a second in
        // the other.
        let (unit, longest) = if is_paced {
            (Duration::from_us(500), Duration::from_ms(3))
        } else {
            (Duration::from_ms(10), Duration::from_ms(3_000))
        };
        let case = Case {
            seed,
            spec,
            link,
            impairment,
            traffic,
            collectives: None,
            barriers: Vec::new(),
            harms,
            hooks: Hooks::default(),
        };
        case.with((how, conditions), &mut late_rng, unit, longest)
    }
}

#[cfg(test)]
mod canary;
#[cfg(test)]
mod tests;

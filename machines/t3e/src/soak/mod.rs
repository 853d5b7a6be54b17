//! Random tori of T3E routers. The cases vary shapes with rings of two and with partial planes,
//! broken links that the tables avoid, isolated nodes, both channel assignments, adaptive or
//! ordered packets, and barriers at several units. Harms are those of all links, and wrong bits
//! above their carriers.

use phitwire_framing::t3e::barrier::UNITS;
use phitwire_framing::t3e::burst::Burst;
use phitwire_framing::t3e::direction::Direction;

use crate::route::Shape;
use crate::topology::{Channels, Defect, Defects, Torus, TorusSpec};
use phitwire::device::LinkFault;
use phitwire::link::impair::Probability;
use phitwire::net::{Clock, Effort, Network as _, Profile};
use phitwire::nic::{BarrierSpec, Operation, RoutingMode, TrafficPattern, TrafficSpec};
use phitwire::rng::Rng;
use phitwire::sim::LinkSpec;
use phitwire::sim::soak::random::{LateConditions, netem, pick, up_to};
use phitwire::sim::soak::{Case, Family, Harm, Hooks, Late, OwnHarm, RUNS, Soaked};
use phitwire::time::Duration;

pub(super) const FAMILIES: [Family; 1] = [Family::over_links::<Tori>("t3e", "t3e")];

/// Random stream that builds a case. Its run uses other streams.
const STREAM: u64 = 0x73e_50a4;
const LATE_STREAM: u64 = 0x73e_1a7e;
/// Random stream for isolated nodes and barriers.
const BESIDE_STREAM: u64 = 0x73e_ba44;
/// Timeout of barriers, whose messages harms may lose.
const PATIENCE: Duration = Duration::from_ms(2_000);
const MOST_NODES: u32 = 16;
/// On a noisy lane one bit in this many is wrong. A packet has at most fifty bits on a lane.
/// Sometimes two of them are wrong, which is detected. Three are wrong, possibly undetected, in
/// about one packet of 10^10.
const NOISE_OF: u64 = 50_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tori;

/// Harms specific to links that carry flits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlitHarm {
    /// Wrong bits on a lane in one direction, above the carrier, where only packets' checks detect
    /// them.
    WrongBits { link: u32, lane: u8, a_to_b: bool },
}

impl OwnHarm for FlitHarm {
    fn fault(&self) -> (u32, LinkFault) {
        let Self::WrongBits { link, lane, .. } = *self;
        let per_bit = Probability::from_ratio(1, NOISE_OF);
        (link, LinkFault::LaneNoise { lane, per_bit })
    }

    fn end(&self) -> usize {
        let Self::WrongBits { a_to_b, .. } = self;
        usize::from(!a_to_b)
    }

    fn cure(&self) -> Option<LinkFault> {
        let Self::WrongBits { lane, .. } = *self;
        let per_bit = Probability::ZERO;
        Some(LinkFault::LaneNoise { lane, per_bit })
    }

    /// A packet with two wrong bits in its header is discarded, and one with two wrong bits in its
    /// data is rejected.
    fn destroys(&self) -> bool {
        true
    }
}

fn shape(rng: &mut Rng) -> Shape {
    loop {
        let size = [5, 4, 3].map(|most| 1 + rng.below(most) as u8);
        let partial = match rng.chance(1, 3) {
            true => {
                let [x, y, _] = size.map(|most| 1 + rng.below(most.into()) as u8);
                vec![[x, y, 1 + rng.below(2) as u8]]
            }
            false => Vec::new(),
        };
        // Draw again until the sizes are valid.
        if let Ok(shape) = Shape::new(size, partial)
            && (2..=MOST_NODES).contains(&shape.nodes())
        {
            return shape;
        }
    }
}

/// Breaks links such that all pairs keep a path and no circular wait arises.
fn break_links(rng: &mut Rng, spec: &mut TorusSpec) {
    for _ in 0..rng.below(4) {
        let node = rng.below(spec.shape.nodes().into()) as u32;
        let direction = pick(rng, &Direction::ALL);
        let Some(defect) = Defect::link(&spec.shape, node, direction) else {
            continue;
        };
        let kept = spec.defects.clone();
        spec.defects.add(defect);
        if !is_sound(spec) {
            spec.defects = kept;
        }
    }
}

/// Isolates a node in one case of four, if all others keep a path.
fn isolate(rng: &mut Rng, spec: &mut TorusSpec) {
    let node = rng.below(spec.shape.nodes().into()) as u32;
    let kept = spec.defects.clone();
    if rng.chance(1, 4) {
        spec.defects.add(Defect::Node(node));
        if processors(spec).len() < 2 || !is_sound(spec) {
            spec.defects = kept;
        }
    }
}

/// The numbers of the processors that are not isolated.
fn processors(spec: &TorusSpec) -> Vec<u16> {
    let torus = spec.clone().torus();
    let nodes = torus.destinations().iter().zip(0..);
    let there = nodes.filter(|(node, _)| !spec.defects.has(Defect::Node(**node)));
    there.map(|(_, number)| number).collect()
}

/// Barriers at up to three units, each among some of the processors, in about every other case.
fn barriers(rng: &mut Rng, processors: &[u16]) -> Vec<BarrierSpec> {
    let mut units: Vec<u8> = Vec::new();
    for _ in 0..rng.below(7).saturating_sub(3) {
        let unit = rng.below(UNITS as u64) as u8;
        if !units.contains(&unit) {
            units.push(unit);
        }
    }
    let spec = |unit| {
        let all = rng.chance(1, 2);
        let mut members = processors.to_vec();
        members.retain(|_| all || rng.chance(1, 2));
        if members.is_empty() {
            members.push(processors[0]);
        }
        BarrierSpec {
            run: RUNS[0] as u32,
            unit,
            processors: members,
            eureka: rng.chance(1, 4),
            count: 1 + rng.below(60),
            skew_ns: rng.below(20_000),
            patience_ns: PATIENCE.as_ns(),
            ..BarrierSpec::default()
        }
    };
    units.into_iter().map(spec).collect()
}

fn is_sound(spec: &TorusSpec) -> bool {
    let (mistakes, _) = spec.clone().torus().judge(Effort::Exact);
    mistakes.is_empty()
}

fn torus(rng: &mut Rng, lane_retry_threshold: u32) -> TorusSpec {
    loop {
        let shape = shape(rng);
        let mut spec = TorusSpec {
            adaptive: rng.chance(3, 4),
            channels: pick(rng, &Channels::ALL).1,
            spares: match rng.chance(1, 4) {
                true => rng.below(u64::from(shape.nodes() / 2) + 1) as u32,
                false => 0,
            },
            ..TorusSpec::new(shape)
        };
        spec.settings.lane_retry_threshold = lane_retry_threshold;
        if rng.chance(1, 3) {
            spec.settings.profile = Profile::Paper;
            spec.settings.clock = Clock::Paced { dilation: 1 };
        }
        spec.defects = Defects::default();
        if spec.shape.nodes() - spec.spares < 2 || !is_sound(&spec) {
            continue;
        }
        break_links(rng, &mut spec);
        return spec;
    }
}

fn harm(rng: &mut Rng, unit_us: u64) -> Harm<FlitHarm> {
    let link = rng.next_u64() as u32;
    let span = up_to(rng, 300 * unit_us);
    match rng.below(16) {
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
        9..12 => Harm::Own(FlitHarm::WrongBits {
            link,
            lane: rng.below(Burst::LANES.into()) as u8,
            a_to_b: rng.chance(1, 2),
        }),
        12..14 => Harm::DownAndUp { link, span },
        14 => Harm::RestartRouter { router: link },
        _ => Harm::RestartNic { nic: link },
    }
}

/// Whether corruption affects the links. It may cost them all lanes, because it affects every lane
/// and runs are long.
fn corrupts(impairment: &str, harms: &[(Duration, Harm<FlitHarm>)]) -> bool {
    let mut own = harms.iter().filter_map(|(_, harm)| match harm {
        Harm::Impair { words, .. } => Some(words.as_str()),
        _ => None,
    });
    impairment.contains("corrupt") || own.any(|words| words.contains("corrupt"))
}

fn traffic(rng: &mut Rng, processors: &[u16], seed: u64) -> TrafficSpec {
    let patterns = [
        TrafficPattern::Uniform,
        TrafficPattern::Uniform,
        TrafficPattern::Neighbour,
        TrafficPattern::BitComplement,
        TrafficPattern::Tornado,
        TrafficPattern::Permutation,
        TrafficPattern::Hotspot {
            targets: vec![processors[0]],
            percent: 40,
        },
    ];
    let ops = [
        Operation::Put,
        Operation::Put,
        Operation::Get,
        Operation::Amo,
    ];
    let op = pick(rng, &ops);
    // Put at least four bytes: shorter stamps cannot distinguish a loss from other damage.
    let size = match op {
        Operation::Put => 4 + rng.below(61) as u32,
        Operation::Get => 8 * (1 + rng.below(8) as u32),
        Operation::Amo => 8,
    };
    let ways = match op == Operation::Put && size < 8 {
        true => RoutingMode::Ordered,
        false => pick(rng, &[RoutingMode::Adaptive0, RoutingMode::Ordered]),
    };
    TrafficSpec {
        run: RUNS[0],
        pattern: pick(rng, &patterns),
        processors: processors.to_vec(),
        op,
        size,
        window: 1 + rng.below(200) as u32,
        count: 30 + rng.below(200),
        addresses: 1 + rng.below(64) as u16,
        seed,
        ways: rng.chance(3, 4).then_some(ways),
        ..TrafficSpec::default()
    }
}

impl Soaked for Tori {
    type Spec = TorusSpec;
    type Topology = Torus;
    type Own = FlitHarm;

    /// Requests time out after 20 s, and a run is announced up to three times to each target.
    const LIVENESS: Duration = Duration::from_ms(900_000);
    /// The destination responds to uncorrectable packets as damaged.
    const REFUSALS: bool = true;

    fn generate(spec: &TorusSpec) -> Result<Torus, String> {
        Ok(spec.clone().torus())
    }

    fn case(seed: u64, how: Late) -> Case<Self> {
        let mut rng = Rng::new(seed, STREAM);
        let mut late_rng = Rng::new(seed, LATE_STREAM);
        let conditions = LateConditions::random(how, &mut late_rng);
        let mut spec = torus(&mut rng, conditions.lane_threshold());
        // Times scale with the round trip: 25 ns of cable, or microseconds between processes.
        let is_paced = spec.settings.profile == Profile::Paper;
        let (unit_us, latency) = match is_paced {
            true => (1, Duration::from_ns(1 + rng.below(200))),
            false => (20, up_to(&mut rng, 20)),
        };
        let link = LinkSpec {
            latency,
            mtu: pick(&mut rng, &[512, 1472, 9000]),
        };
        let mut beside_rng = Rng::new(seed, BESIDE_STREAM);
        isolate(&mut beside_rng, &mut spec);
        let processors = processors(&spec);
        let traffic = traffic(&mut rng, &processors, seed);
        let harms: Vec<(Duration, Harm<FlitHarm>)> = (0..rng.below(8))
            .map(|_| (up_to(&mut rng, 60 * unit_us), harm(&mut rng, unit_us)))
            .collect();
        let impairment = match rng.chance(2, 3) {
            true => netem(&mut rng, unit_us),
            false => String::new(),
        };
        // Times scale with the time after which unusable frames end a session: a millisecond in one
        // profile, a second in the other.
        let (unit, longest) = match is_paced {
            true => (Duration::from_us(500), Duration::from_ms(3)),
            false => (Duration::from_ms(10), Duration::from_ms(3_000)),
        };
        // Corruption affects all lanes, so do not give up lanes. Cases that must give up lanes drop
        // the corruption instead.
        if !conditions.lanes && corrupts(&impairment, &harms) {
            spec.settings.lane_retry_threshold = 0;
        }
        let case = Case {
            seed,
            spec,
            link,
            impairment,
            traffic,
            collectives: None,
            barriers: barriers(&mut beside_rng, &processors),
            harms,
            hooks: Hooks::default(),
        };
        case.with((how, conditions), &mut late_rng, unit, longest)
    }
}

#[cfg(test)]
mod tests;
